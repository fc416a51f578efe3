"""Changes that are here already, as one Arrow table. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
import pytest

from ebbflow.engine.runtime.table.arrow import arrow_schema, from_arrow
from ebbflow.engine.runtime.table.given import BATCH, table_of
from ebbflow.engine.runtime.table.layout import Layout, layout_of
from ebbflow.errors import ChangeError
from ebbflow.flow.plan import Source
from ebbflow.nan import NAN
from ebbflow.record import record
from ebbflow.zset import ZSet


class Order(NamedTuple):
    id: int
    city: str
    price: float | None = None


ORDERS = Source(name="orders", type=Order)
ROME, OSLO = Order(1, "Rome", 2.5), Order(2, "Oslo")


def read(given: Any, source: Source = ORDERS) -> dict[Any, int]:
    """What a change comes to."""
    table = table_of(source, given)
    assert table.schema == arrow_schema(source.type)
    rows, weights = from_arrow(table, source.type)
    return dict(ZSet(zip(rows, weights, strict=True)).items())


def columns(**more: Any) -> Any:
    """A table of both orders."""
    return pa.table({"id": [1, 2], "city": ["Rome", "Oslo"], "price": [2.5, None], **more})


# ---- what is read ----


@pytest.mark.parametrize(
    "given",
    [
        ZSet({ROME: 2, OSLO: -1}),
        {ROME: 2, OSLO: -1},
        {ROME: 2, OSLO: -1, Order(3, "x"): 0},
        columns(weight=[2, -1]),
        columns(__weight=pa.array([2, -1], pa.int8())),
    ],
    ids=["zset", "dict", "zero", "weight", "__weight"],
)
def test_rows_with_weights(given: Any) -> None:
    assert read(given) == {ROME: 2, OSLO: -1}


@pytest.mark.parametrize(
    "given",
    [[ROME, OSLO], iter([ROME, OSLO]), columns(), columns().to_batches()[0], columns().to_reader()],
    ids=["list", "iterator", "table", "batch", "reader"],
)
def test_rows_alone_count_once(given: Any) -> None:
    assert read(given) == {ROME: 1, OSLO: 1}


def test_rows_that_are_repeated_count_again() -> None:
    assert read([ROME, ROME, OSLO]) == {ROME: 2, OSLO: 1}
    assert read(pa.concat_tables([columns(), columns()])) == {ROME: 2, OSLO: 2}


def test_many_rows_are_cut_into_batches() -> None:
    numbers = Source(name="numbers", type=int)
    table = table_of(numbers, range(BATCH + 1))
    assert [batch.num_rows for batch in table.to_batches()] == [BATCH, 1]


@pytest.mark.parametrize("given", [[], {}, columns().slice(0, 0), columns(weight=[0, 0])])
def test_nothing_is_an_empty_table(given: Any) -> None:
    assert table_of(ORDERS, given).num_rows == 0
    assert read(given) == {}


def test_nan_of_pandas_is_nan_where_nothing_may_be_missing() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.5, float("nan")]})
    assert read(frame, Source(name="xs", type=record("X", x=float))) == {(1.5,): 1, (NAN,): 1}
    loose = Source(name="xs", type=record("X", x=float | None))
    assert read(frame, loose) == {(1.5,): 1, (None,): 1}


def test_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"price": [2.5, None], "id": [1, 2], "city": ["Rome", "Oslo"]})
    assert read(frame) == {ROME: 1, OSLO: 1}
    assert read(frame.assign(weight=[2, -1]).iloc[1:]) == {OSLO: -1}
    few = Source(name="few", type=record("Few", n=int | None))
    assert read(pandas.DataFrame({"n": [1, None]}), few) == {(1,): 1, (None,): 1}
    with pytest.raises(ChangeError, match=r"'n', which is double, has 1\.5 in row 0"):
        read(pandas.DataFrame({"n": [1.5, None]}), few)


def test_the_change_feed_of_a_delta_table() -> None:
    kinds = ["insert", "update_preimage", "update_postimage", "delete"]
    table = pa.table(
        {
            "id": [1, 2, 3, 4],
            "city": ["a", "b", "c", "d"],
            "price": pa.nulls(4),
            "_change_type": kinds,
            "_commit_version": [7, 7, 7, 8],
            "_commit_timestamp": pa.array([datetime(2024, 1, 1)] * 4),
            "_metadata": [{"row_id": n} for n in range(4)],
        }
    )
    assert {row.id: weight for row, weight in read(table).items()} == {1: 1, 2: -1, 3: 1, 4: -1}


@pytest.mark.parametrize("by", ["op", "__op"])
def test_unwrapped_changes_of_debezium(by: str) -> None:
    more = {by: ["r", "d"], "ts_ms": [1, 2], "__deleted": ["false", "true"]}
    assert read(columns(**more)) == {ROME: 1, OSLO: -1}


IMAGE = pa.struct([("id", pa.int32()), ("city", pa.string()), ("price", pa.float32())])


def images(*changes: tuple[Any, Any, Any], kind: Any = IMAGE) -> Any:
    before = [None if row is None else row._asdict() for _, row, _ in changes]
    after = [None if row is None else row._asdict() for _, _, row in changes]
    return pa.table(
        {
            "before": pa.array(before, kind),
            "after": pa.array(after, kind),
            "source": [{"db": "shop"}] * len(changes),
            "op": pa.array([op for op, *_ in changes], pa.string()),
            "ts_ms": [1] * len(changes),
        }
    )


def test_changes_of_debezium_with_rows_before_and_after() -> None:
    moved = ROME._replace(city="Bari")
    given = images(("c", None, OSLO), ("u", ROME, moved), ("d", OSLO, None), ("r", None, OSLO))
    assert read(given) == {OSLO: 1, ROME: -1, moved: 1}


def test_a_tombstone_of_debezium_says_nothing() -> None:
    assert read(images((None, None, None), ("c", None, ROME))) == {ROME: 1}
    assert read(images((None, None, None))) == {}


def test_a_field_named_like_a_mark_is_a_field() -> None:
    kind = record("Parcel", op=str, weight=int, before=int)
    parcels = Source(name="parcels", type=kind)
    given = pa.table({"op": ["x"], "weight": [3], "before": [1]})
    assert read(given, parcels) == {("x", 3, 1): 1}
    assert read(given.append_column("__weight", pa.array([-1])), parcels) == {("x", 3, 1): -1}


@pytest.mark.parametrize(
    ("names", "layout"),
    [
        (["id", "city", "price"], Layout("rows")),
        (["price", "id", "city", "weight"], Layout("weight", "weight")),
        (["op", "before", "after", "anything"], Layout("images", "op")),
    ],
)
def test_the_columns_tell_the_layout(names: list[str], layout: Layout) -> None:
    assert layout_of(ORDERS, names) == layout


@pytest.mark.parametrize(
    ("hint", "array", "value"),
    [
        (int, pa.array([7], pa.uint8()), 7),
        (float, pa.array([7], pa.int64()), 7.0),
        (float, pa.array([0.5], pa.float32()), 0.5),
        (str, pa.array(["a"]).dictionary_encode(), "a"),
        (str, pa.array(["a"], pa.large_string()), "a"),
        (bytes, pa.array([b"ab"], pa.binary(2)), b"ab"),
        (datetime, pa.array([10**9], pa.timestamp("s")), datetime(2001, 9, 9, 1, 46, 40)),
        (datetime, pa.array([10**18], pa.timestamp("ns")), datetime(2001, 9, 9, 1, 46, 40)),
        (
            Annotated[datetime, UTC],
            pa.array([10**9], pa.timestamp("s", "Europe/Rome")),
            datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC),
        ),
        (Decimal, pa.array([Decimal("1.5")]), Decimal("1.5")),
        (Decimal, pa.array([3]), Decimal(3)),
        (tuple[int, ...], pa.array([[1, 2]], pa.large_list(pa.int32())), (1, 2)),
        (int | None, pa.nulls(1), None),
    ],
    ids=str,
)
def test_a_column_is_widened_where_nothing_is_lost(hint: Any, array: Any, value: Any) -> None:
    source = Source(name="x", type=record("Row", f=hint))
    assert read(pa.table({"f": array}), source) == {(value,): 1}


# ---- what is refused ----


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (columns().drop(["city"]), "there is no column 'city'"),
        (columns().drop(["city", "id"]), "there are no columns 'id', 'city'"),
        (columns(tax=[1, 2]), r"Order\(id, city, price\) has no field for column 'tax'"),
        (columns(_commit_version=[1, 2]), "has no field for column '_commit_version'"),
        (columns().append_column("id", pa.array([1, 2])), "there are several columns 'id'"),
        (pa.table({"id": ["1"], "city": ["a"], "price": [1.0]}), "'id' is string, not int"),
        (pa.table({"id": [1.0], "city": ["a"], "price": [1.0]}), "'id' is double, not int"),
        (pa.table({"id": [1], "city": [2], "price": [1.0]}), "'city' is int64, not str"),
        (pa.table({"id": [1], "city": ["a"], "price": [True]}), "is bool, not float | None"),
        (pa.table({"id": [1, None], "city": ["a", "b"], "price": [1.0, 1.0]}), "'id' is null"),
        (pa.table({"id": pa.nulls(1), "city": ["a"], "price": [1.0]}), "'id' is null"),
        (pa.table({"id": pa.array([2**63], pa.uint64()), "city": ["a"], "price": [1.0]}),
         "column 'id', which is uint64, has 9223372036854775808 in row 0, which is no int"),
        (columns(weight=["1", "2"]), "'weight' is string, not int"),
        (columns(weight=[1, None]), "a weight is null"),
        (columns(_change_type=["insert", "upsert"]), "_change_type 'upsert' is no change"),
        (columns(op=["c", None]), "op None is no change of a row"),
        (columns(op=["c", "u"]), "an update is given by its new row alone"),
        (images(("t", None, None)), "op 't' is no change of a row"),
        (images((None, None, ROME)), "op None is no change of a row"),
        (images(("u", None, ROME)), "a row is updated or deleted, and 'before' is null"),
        (images(("c", ROME, None)), "a row is added or updated, and 'after' is null"),
        (images(("c", None, ROME), kind=pa.struct([("id", pa.int64())])),
         "there are no columns 'city', 'price' in 'after'"),
        (pa.table({"op": ["c"], "before": [1], "after": [1]}), "'after' is int64, not a row"),
        ([Order("1", "Rome")], "input 'orders': field 'id' must be an int, not the str '1'"),  # type: ignore[arg-type]
        ({ROME: 1.5}, "a weight must be an int, not float"),
        (ROME, "one row was given where a change is asked"),
        (7, "a value of type int is not a change"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_the_name_of_the_input(given: Any, text: str) -> None:
    with pytest.raises(ChangeError, match=text) as caught:
        table_of(ORDERS, given)
    assert caught.value.what.startswith("input 'orders': ")
    assert caught.value.remedy


def test_a_near_miss_is_named() -> None:
    with pytest.raises(ChangeError) as caught:
        table_of(ORDERS, columns().rename_columns(["id", "ctiy", "price"]))
    assert caught.value.remedy == "rename 'ctiy' to 'city'"


@pytest.mark.parametrize(
    ("hint", "array", "remedy"),
    [
        (datetime, pa.array([0], pa.timestamp("us", "UTC")), "Annotated[datetime, UTC]"),
        (Annotated[datetime, UTC], pa.array([0], pa.timestamp("us")), "the hint datetime"),
        (Any, pa.array([1]), "a hint for the field 'f'"),
    ],
    ids=str,
)
def test_times_and_anything_say_which_hint_would_do(hint: Any, array: Any, remedy: str) -> None:
    with pytest.raises(ChangeError, match="column 'f' is ") as caught:
        table_of(Source(name="x", type=record("Row", f=hint)), pa.table({"f": array}))
    assert remedy in caught.value.remedy


def test_microseconds_are_not_lost_in_silence() -> None:
    source = Source(name="x", type=record("Row", f=datetime))
    with pytest.raises(ChangeError, match="column 'f', which is timestamp"):
        table_of(source, pa.table({"f": pa.array([1], pa.timestamp("ns"))}))


def test_a_table_for_an_input_without_a_type_is_refused() -> None:
    with pytest.raises(ChangeError, match="the rows of this input are of type Any"):
        table_of(Source(name="things"), columns())


def test_a_pickled_column_is_not_taken_back() -> None:
    things = Source(name="things")
    table = table_of(things, [(1, "a"), frozenset({2})])
    with pytest.raises(ChangeError, match="which only rows of Python's can fill"):
        read(table, things)
    nothing = pa.table({"value": pa.nulls(1)})
    assert read(nothing, things) == {None: 1}
