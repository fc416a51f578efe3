"""Rows as Arrow batches: what goes in comes out, and what does not fit says where. No Spark."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ebbflow.engine.runtime.table.arrow import arrow_schema, from_arrow, to_arrow
from ebbflow.engine.runtime.table.column_types import ANY, Column, column_of, columns_of
from ebbflow.engine.runtime.values.hints import rule_of
from ebbflow.errors import CompositionError, SchemaMismatch
from ebbflow.frozen import Frozen
from ebbflow.record import record
from ebbflow.reducer import Map
from ebbflow.zset import ZSet


class Place(NamedTuple):
    city: str
    zip: int | None


class Tree(NamedTuple):
    name: str
    left: Optional[Tree]  # noqa: UP045


class Everything(NamedTuple):
    id: int
    price: float
    paid: bool
    name: str
    raw: bytes
    day: date
    at: datetime
    seen: Annotated[datetime, UTC]
    total: Decimal
    cents: Annotated[Decimal, (10, 2)]
    note: str | None
    tags: tuple[str, ...]
    sizes: list[int | None]
    counts: dict[str, int]
    home: Place
    work: Place | None
    pair: tuple[int, str]
    extra: Any


NOON = datetime(2024, 5, 1, 12, 0, 0, 123456)
ROW = Everything(
    id=-(2**63),
    price=-0.5,
    paid=True,
    name="é\0",
    raw=b"\0\xff",
    day=date(1, 1, 1),
    at=NOON,
    seen=NOON.replace(tzinfo=UTC),
    total=Decimal("1.000000000000000001"),
    cents=Decimal("-12345678.90"),
    note=None,
    tags=("a", ""),
    sizes=(1, None),  # type: ignore[arg-type]
    counts=Frozen(a=1, b=2),
    home=Place("Rome", 1),
    work=None,
    pair=(1, "x"),
    extra=frozenset({1, "a"}),
)


def there_and_back(rows: list[Any], weights: list[int], kind: Any) -> tuple[list[Any], list[int]]:
    batch = to_arrow(rows, weights, kind)
    batch.validate(full=True)
    return from_arrow(batch, kind)


def exact(value: Any) -> Any:
    """A value together with the types in it, NaN as a word."""
    if isinstance(value, tuple):
        return type(value).__name__, tuple(map(exact, value))
    if isinstance(value, dict):
        return "dict", {key: exact(item) for key, item in value.items()}
    if isinstance(value, float):
        return "float", "nan" if value != value else (value, math.copysign(1, value))
    return type(value).__name__, value


def test_every_kind_of_field_comes_back_as_it_was() -> None:
    rows, weights = there_and_back(
        [ROW, ROW._replace(work=Place("Oslo", None))], [2, -1], Everything
    )
    assert exact(rows[0]) == exact(ROW)
    assert rows[1].work == Place("Oslo", None)
    assert type(rows[1].work) is Place
    assert weights == [2, -1]
    assert ZSet.of(rows).weight(ROW) == 1  # hashable, and found


def test_the_columns_of_a_row_type_are_these() -> None:
    assert arrow_schema(Everything).remove_metadata() == pa.schema(
        [
            pa.field("id", pa.int64(), False),
            pa.field("price", pa.float64(), False),
            pa.field("paid", pa.bool_(), False),
            pa.field("name", pa.utf8(), False),
            pa.field("raw", pa.binary(), False),
            pa.field("day", pa.date32(), False),
            pa.field("at", pa.timestamp("us"), False),
            pa.field("seen", pa.timestamp("us", "UTC"), False),
            pa.field("total", pa.decimal128(38, 18), False),
            pa.field("cents", pa.decimal128(10, 2), False),
            pa.field("note", pa.utf8(), True),
            pa.field("tags", pa.list_(pa.field("element", pa.utf8(), False)), False),
            pa.field("sizes", pa.list_(pa.field("element", pa.int64(), True)), False),
            pa.field("counts", pa.map_(pa.utf8(), pa.field("value", pa.int64(), False)), False),
            pa.field(
                "home",
                pa.struct([pa.field("city", pa.utf8(), False), pa.field("zip", pa.int64())]),
                False,
            ),
            pa.field("work", pa.struct([pa.field("city", pa.utf8()), pa.field("zip", pa.int64())])),
            pa.field(
                "pair",
                pa.struct([pa.field("_0", pa.int64(), False), pa.field("_1", pa.utf8(), False)]),
                False,
            ),
            pa.field("extra", pa.binary()),
            pa.field("__weight", pa.int64(), False),
        ]
    )


def test_only_a_pickled_column_is_marked() -> None:
    schema = arrow_schema(Everything)
    assert schema.field("extra").metadata == {b"ebbflow": b"pickle"}
    assert [field.name for field in schema if field.metadata] == ["extra"]


UserId = NewType("UserId", int)


def _map(key: str, value: str, make: Any) -> Column:
    return Column("map", parts=(("key", Column(key)), ("value", Column(value))), make=make)


@pytest.mark.parametrize(
    ("hint", "column"),
    [
        (UserId, Column("int")),
        (Literal["a", "b"], Column("text")),
        (Literal["a", None], Column("text", optional=True)),
        (Literal["a", 1], ANY),
        (int | str, ANY),
        (int | str | None, ANY),
        (object, ANY),
        (frozenset[int], Column("set", parts=(("element", Column("int")),))),
        (frozenset, ANY),
        (tuple, ANY),
        (dict[int, str], _map("int", "text", Frozen)),
        (Map[str, int], _map("text", "int", Map)),
        (dict[float, str], ANY),
        (dict[int | None, str], ANY),
        (None, ANY),
        (Annotated[int, "a word"], Column("int")),
        (Annotated[datetime | None, UTC], Column("instant", optional=True)),
        (Annotated[Decimal, (5, 0)] | None, Column("decimal", optional=True, digits=(5, 0))),
    ],
    ids=str,
)
def test_a_hint_has_this_column(hint: Any, column: Column) -> None:
    assert column_of(hint) == column


@pytest.mark.parametrize("digits", [(39, 2), (0, 0), (4, 5), (4, -1), (37, True), ("4", 0)])
def test_digits_that_cannot_be_are_refused(digits: Any) -> None:
    with pytest.raises(CompositionError, match="no such number of digits"):
        column_of(Annotated[Decimal, digits])


def test_a_record_inside_itself_is_pickled_there() -> None:
    tree = Tree("root", Tree("leaf", None))
    assert dict(columns_of(Tree))["left"] == ANY
    assert there_and_back([tree], [1], Tree)[0] == [tree]


@pytest.mark.parametrize("kind", [int, str, Any, tuple[int, str], Place])
def test_no_rows_are_no_rows(kind: Any) -> None:
    assert there_and_back([], [], kind) == ([], [])


def test_rows_that_are_no_records_have_one_column() -> None:
    assert there_and_back([1, 2], [1, 3], int) == ([1, 2], [1, 3])
    assert there_and_back([(1, "a"), None, 2**70], [1, 1, 1], Any)[0] == [(1, "a"), None, 2**70]
    assert to_arrow(["a"], [1], str).schema.names == ["value", "__weight"]


def test_a_record_without_fields_is_a_row_as_well() -> None:
    Nothing = record("Nothing")
    assert there_and_back([Nothing(), Nothing()], [1, 2], Nothing) == ([(), ()], [1, 2])


# ---- at random ----

MOMENTS = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29))
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=-7)), ZoneInfo("Europe/Rome")])
PLAIN: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers(-(2**63), 2**63 - 1)),
    (float, st.floats().map(lambda x: x + 0.0)),  # there is one zero
    (bool, st.booleans()),
    (str, st.text()),
    (bytes, st.binary()),
    (date, st.dates()),
    (datetime, st.datetimes()),
    (Annotated[datetime, UTC], MOMENTS.map(lambda at: at.replace(tzinfo=UTC))),
    (Decimal, st.decimals(-(10**19), 10**19, places=18)),
    (Annotated[Decimal, (6, 2)], st.decimals(-9999, 9999, places=2)),
    (Any, st.integers() | st.text() | st.none() | st.tuples(st.integers(), st.floats())),
    (object, st.frozensets(st.integers())),
]

Shape = tuple[Any, st.SearchStrategy[Any]]


def inside(shapes: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
    def optional(shape: Shape) -> Shape:
        return shape[0] | None, st.none() | shape[1]

    def many(shape: Shape) -> Shape:
        return tuple[shape[0], ...], st.lists(shape[1], max_size=3).map(tuple)  # type: ignore[name-defined]

    def mapping(shape: Shape) -> Shape:
        values = st.dictionaries(st.text(max_size=2), shape[1], max_size=3).map(Frozen)
        return dict[str, shape[0]], values  # type: ignore[name-defined]

    def made(some: list[Shape]) -> Shape:
        kind = record("Made", **{f"f{i}": hint for i, (hint, _) in enumerate(some)})
        return kind, st.tuples(*(values for _, values in some)).map(lambda row: kind(*row))

    def pair(some: list[Shape]) -> Shape:
        hints = tuple(hint for hint, _ in some)
        return tuple.__class_getitem__(hints), st.tuples(*(values for _, values in some))

    several = st.lists(shapes, min_size=1, max_size=3)
    return st.one_of(
        shapes.map(optional),
        shapes.map(many),
        shapes.map(mapping),
        several.map(made),
        several.map(pair),
    )


SHAPES = st.recursive(st.sampled_from(PLAIN), inside, max_leaves=5)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Any, list[Any], list[int]]:
    shapes = draw(st.lists(SHAPES, min_size=1, max_size=3))
    kind = record("Row", **{f"f{i}": hint for i, (hint, _) in enumerate(shapes)})
    rule = rule_of(kind)
    values = st.tuples(*(values for _, values in shapes)).map(lambda x: rule.convert(kind(*x)))
    rows = draw(st.lists(values, max_size=6))
    size = st.integers(-(2**63), 2**63 - 1)
    return kind, rows, draw(st.lists(size, min_size=len(rows), max_size=len(rows)))


@given(batches())
@settings(max_examples=250)
def test_rows_and_weights_come_back_exactly(given_: tuple[Any, list[Any], list[int]]) -> None:
    kind, rows, weights = given_
    found, counts = there_and_back(rows, weights, kind)
    assert exact(tuple(found)) == exact(tuple(rows))
    assert counts == weights


@given(batches(), st.integers(0, 5), st.integers(0, 5))
@settings(max_examples=80)
def test_a_slice_of_a_batch_is_the_slice_of_its_rows(
    given_: tuple[Any, list[Any], list[int]], at: int, count: int
) -> None:
    kind, rows, weights = given_
    batch = to_arrow(rows, weights, kind)
    found, counts = from_arrow(batch.slice(min(at, len(rows)), count), kind)
    assert exact(tuple(found)) == exact(tuple(rows[at : at + count]))
    assert counts == weights[at : at + count]
    found, counts = from_arrow(pa.Table.from_batches([batch, batch]), kind)
    assert (exact(tuple(found)), counts) == (exact(tuple(rows + rows)), weights * 2)


@given(MOMENTS, ZONES)
@example(datetime(2024, 10, 27, 2, 30, fold=1), ZoneInfo("Europe/Rome"))
def test_a_time_with_any_zone_comes_back_as_the_same_instant_in_utc(
    at: datetime, zone: Any
) -> None:
    kind = record("Seen", at=Annotated[datetime, UTC])
    there = at.replace(tzinfo=zone)
    ((back,),), _ = there_and_back([kind(there)], [1], kind)
    assert back.tzinfo is UTC
    assert back == there.astimezone(UTC)


# ---- what does not fit ----


def test_a_value_of_another_type_that_is_equal_becomes_one_of_the_hint() -> None:
    kind = record("Row", n=int, x=float)
    (row,), _ = there_and_back([kind(True, 3)], [1], kind)
    assert exact(tuple(row)) == exact((1, 3.0))


def test_lists_and_dicts_come_back_as_what_can_be_in_a_row() -> None:
    kind = record("Row", a=list[int], b=dict[str, int])
    (row,), _ = there_and_back([kind([1, 2], {"a": 1})], [1], kind)
    assert exact(tuple(row)) == exact(((1, 2), Frozen(a=1)))
    assert hash(row) == hash(((1, 2), Frozen(a=1)))


@pytest.mark.parametrize(
    ("hint", "value", "text"),
    [
        (int, 2**63, "field 'f': 9223372036854775808 has more than 64 bits"),
        (int, None, "field 'f': None is not allowed here"),
        (int, "1", "field 'f': '1' is a str, not int"),
        (int, 1.0, "field 'f': 1.0 is a float, not int"),
        (int | None, "1", "field 'f': '1' is a str, not int | None"),
        (float, 2**53 + 1, "field 'f': 9007199254740993 is no float: it would lose digits"),
        (float, 10**400, "is no float: it would lose digits"),
        (bool, 1, "field 'f': 1 is an int, not bool"),
        (str, "\ud800", "is no text"),
        (date, NOON, "is a datetime, not date"),
        (datetime, NOON.replace(tzinfo=UTC), "has a zone"),
        (Annotated[datetime, UTC], NOON, "has no zone"),
        (
            Annotated[datetime, UTC],
            datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
            "is out of range in UTC",
        ),
        (Decimal, Decimal("1e-19"), r"does not fit decimal128\(38, 18\)"),
        (Decimal, Decimal("1e20"), r"does not fit decimal128\(38, 18\)"),
        (Decimal, Decimal("NaN"), r"does not fit decimal128\(38, 18\)"),
        (Decimal, Decimal("Infinity"), r"does not fit decimal128\(38, 18\)"),
        (Annotated[Decimal, (4, 2)], Decimal("1.234"), r"does not fit decimal128\(4, 2\)"),
        (Decimal, 1.5, "1.5 is a float, not Decimal"),
        (tuple[int, ...], (1, 2, "x"), r"field 'f\[2\]': 'x' is a str, not int"),
        (tuple[int, ...], (None,), r"field 'f\[0\]': None is not allowed here"),
        (tuple[int, ...], "ab", "'ab' is a str, not tuple"),
        (dict[str, int], {"a": 1, "b": 2**64}, r"field 'f\[1\]': 18446744073709551616 has more"),
        (dict[str, int], {1: 1}, r"field 'f\[0\]': 1 is an int, not str"),
        (Place, ("Rome", 2**64), "field 'f.zip': 18446744073709551616 has more than 64 bits"),
        (Place, (None, 1), "field 'f.city': None is not allowed here"),
        (Place | None, ("Rome",), r"\('Rome',\) has 1 fields, not 2"),
        (Place, "Rome", "'Rome' is a str, not Place"),
        (tuple[Place | None, ...], (None, ("Rome", "x")), r"field 'f\[1\].zip': 'x' is a str"),
        (Any, lambda: 0, "cannot be pickled"),
    ],
    ids=lambda each: getattr(each, "__qualname__", str(each)),
)
def test_what_does_not_fit_names_the_row_and_the_field(hint: Any, value: Any, text: str) -> None:
    kind = record("Row", id=int, f=hint)
    filler = _some(hint)
    with pytest.raises(SchemaMismatch, match=text) as caught:
        to_arrow([kind(1, filler), kind(2, value), kind(3, filler)], [1, 1, 1], kind)
    assert caught.value.facts["row"] == kind(2, value)
    assert caught.value.remedy or "not" in text or "fields" in text or "is no text" in text
    assert pickle.loads(pickle.dumps(caught.value)).what == caught.value.what


def _some(hint: Any) -> Any:
    """A value that fits."""
    column = column_of(hint)
    made: dict[str, Any] = {
        "int": 1, "float": 1.0, "bool": True, "text": "", "date": NOON.date(), "time": NOON,
        "instant": NOON.replace(tzinfo=UTC), "decimal": Decimal(1), "list": (), "map": {},
        "record": ("x", 1), "any": 1,
    }  # fmt: skip
    return made[column.form]


def test_the_error_for_none_says_what_hint_allows_it() -> None:
    with pytest.raises(SchemaMismatch) as caught:
        to_arrow([Place(None, 1)], [1], Place)  # type: ignore[arg-type]
    assert caught.value.remedy == "str | None as the hint, where None may be"


def test_a_weight_has_64_bits() -> None:
    with pytest.raises(
        SchemaMismatch, match="a weight: 18446744073709551616 has more than 64 bits"
    ):
        to_arrow([1], [2**64], int)


@pytest.mark.parametrize(("row", "text"), [("Rome", "a row is a str"), ((1,), "has 1 fields")])
def test_a_row_of_another_shape_is_refused(row: Any, text: str) -> None:
    with pytest.raises(SchemaMismatch, match=text):
        to_arrow([Place("Oslo", 1), row], [1, 1], Place)


def test_a_null_in_a_batch_is_refused_where_the_hint_has_none() -> None:
    batch = pa.table({"city": ["Rome", None], "zip": pa.array([1, 2], pa.int64())})
    with pytest.raises(SchemaMismatch, match="field 'city': None is not allowed here") as caught:
        from_arrow(batch, Place)
    assert caught.value.facts["row"] == {"city": None, "zip": 2}


def test_a_null_weight_is_refused() -> None:
    batch = pa.table({"value": [1, 2], "__weight": pa.array([1, None], pa.int64())})
    with pytest.raises(SchemaMismatch, match="field '__weight': None is not allowed here"):
        from_arrow(batch, int)


def test_every_nan_that_comes_back_is_the_same_object() -> None:
    kind = record("Row", x=float, y=Any)
    rows, _ = there_and_back([kind(math.nan, (float("nan"),)), kind(float("nan"), (math.nan,))],
                             [1, 1], kind)  # fmt: skip
    assert rows[0] == rows[1]


def test_a_frozen_dict_cannot_be_changed_and_travels() -> None:
    frozen = Frozen(a=1)
    for change in (lambda: frozen.update(b=1), lambda: frozen.pop("a"), frozen.clear):
        with pytest.raises(TypeError, match="never changes"):
            change()
    with pytest.raises(TypeError, match="never changes"):
        frozen["b"] = 1
    with pytest.raises(TypeError, match="never changes"):
        del frozen["a"]
    assert frozen | {"b": 2} == Frozen(a=1, b=2)
    assert exact(pickle.loads(pickle.dumps(frozen))) == exact(frozen)
    assert type(pickle.loads(pickle.dumps(frozen))) is Frozen
    assert repr(frozen) == "Frozen({'a': 1})"


def test_the_arrow_half_loads_no_pyspark() -> None:
    code = (
        "import sys, ebbflow.engine.runtime.table.arrow, ebbflow.engine.runtime.table.column_types;"
        "print('pyspark' in sys.modules, 'pandas' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]
