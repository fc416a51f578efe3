"""One table of rules says which values each form of input takes, and as what they are kept.

`CASES` is written by hand and shares no code with the rules. Every form of a change, in memory and
on disk, in rows and in columns, must keep exactly the value that stands there, or refuse it by
name. Values are compared as text, which tells 1 from True and 1.50 from 1.5.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import make_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ebbflow as ef
from ebbflow.engine.runtime.values import check, rules
from ebbflow.engine.runtime.values.hints import rule_of
from ebbflow.errors import ChangeError, EbbflowError
from ebbflow.frozen import Frozen, frozen
from ebbflow.record import record


class State(StrEnum):
    OPEN = "open"


class Level(IntEnum):
    HIGH = 3


class Colour(Enum):
    RED = "red"


class Name(str):
    pass


class Number(int):
    pass


class Point(NamedTuple):
    x: int
    y: float


ROOT = Path(__file__).resolve().parents[2]
REFUSED = "refused"
AT = datetime(2026, 5, 1, 12, 30)
INSTANT = AT.replace(tzinfo=UTC)
ROME = ZoneInfo("Europe/Rome")
IN_ROME = INSTANT.astimezone(ROME)
DAY = date(2026, 5, 1)
NAN = math.nan
Money = Annotated[Decimal, (12, 2)]
Instant = Annotated[datetime, UTC]

CASES: list[tuple[Any, list[tuple[Any, Any]]]] = [
    (int, [
        (1, 1), (True, 1), (Number(3), 3), (Level.HIGH, 3), (np.uint8(200), 200),
        (np.int64(-5), -5), (np.bool_(True), 1), (pa.scalar(7), 7), ("7", REFUSED),
        (1.5, REFUSED), (NAN, REFUSED), (None, REFUSED), (np.float64(1.5), REFUSED),
        (Decimal(1), REFUSED), (pd.NA, REFUSED), (pd.NaT, REFUSED), (b"1", REFUSED),
    ]),
    (float, [
        (1.5, 1.5), (2, 2.0), (-0.0, 0.0), (NAN, NAN), (np.float32(0.5), 0.5), (np.int8(3), 3.0),
        (math.inf, math.inf), (2**53 + 1, REFUSED), ("1.5", REFUSED), (True, REFUSED),
        (Decimal("1.5"), REFUSED),
    ]),
    (bool, [
        (True, True), (np.bool_(False), False), (1, REFUSED), ("True", REFUSED), (None, REFUSED),
        (0.0, REFUSED),
    ]),
    (str, [
        ("a", "a"), (State.OPEN, "open"), (Name("b"), "b"), (np.str_("c"), "c"), (1, REFUSED),
        (b"a", REFUSED), (None, REFUSED), (NAN, REFUSED),
    ]),
    (bytes, [(b"a", b"a"), ("a", REFUSED), (None, REFUSED)]),
    (date, [
        (DAY, DAY), (np.datetime64("2026-05-01"), DAY), (AT, REFUSED), ("2026-05-01", REFUSED),
        (None, REFUSED), (pd.NaT, REFUSED),
    ]),
    (datetime, [
        (AT, AT), (pd.Timestamp(AT), AT), (np.datetime64(AT), AT), (datetime.max, datetime.max),
        (INSTANT, REFUSED), (DAY, REFUSED), ("2026-05-01", REFUSED), (pd.NaT, REFUSED),
        (None, REFUSED), (np.datetime64("2026-05-01T00:00:00.000000001"), REFUSED),
    ]),
    (Instant, [
        (INSTANT, INSTANT), (IN_ROME, INSTANT), (pd.Timestamp(IN_ROME), INSTANT), (AT, REFUSED),
        (DAY, REFUSED), (None, REFUSED), ("2026-05-01T00:00Z", REFUSED),
    ]),
    (Money, [
        (Decimal("1.50"), Decimal("1.50")), (Decimal("1.5"), Decimal("1.50")),
        (3, Decimal("3.00")), (np.int32(4), Decimal("4.00")), (Decimal("1.000"), Decimal("1.00")),
        (Decimal("-0"), Decimal("0.00")), (Decimal("1.005"), REFUSED), (Decimal("1e10"), REFUSED),
        (1.5, REFUSED), ("1.50", REFUSED), (None, REFUSED), (Decimal("NaN"), REFUSED),
    ]),
    (Decimal, [
        (Decimal("1.50"), Decimal("1.5")), (Decimal("1E+2"), Decimal(100)), (5, Decimal(5)),
        (Decimal("-0.0"), Decimal(0)), (1.5, REFUSED), ("1", REFUSED), (None, REFUSED),
    ]),
    (int | None, [(None, None), (np.int8(1), 1), ("1", REFUSED), (pd.NA, None)]),
    (str | None, [(None, None), ("a", "a"), (State.OPEN, "open"), (1, REFUSED)]),
    (float | None, [(None, None), (1, 1.0), (-0.0, 0.0), ("1", REFUSED)]),
    (Literal["a", "b"], [("a", "a"), (Name("b"), "b"), ("c", REFUSED), (1, REFUSED)]),
    (tuple[int, ...], [((1, 2), (1, 2)), ([3, 4], (3, 4)), (("1",), REFUSED), (1, REFUSED)]),
]  # fmt: skip
"""By type, a value that is given, and what is kept: for every form that can carry it."""

ROWS_ONLY: list[tuple[Any, list[tuple[Any, Any]]]] = [
    (int, [(2**70, 2**70), (np.uint64(2**63), 2**63), (1.0, REFUSED)]),
    (float, [(None, REFUSED)]),
    (float | None, [(NAN, NAN)]),
    (int | None, [(NAN, REFUSED)]),
    (bytes, [(bytearray(b"b"), b"b")]),
    (date, [(pd.Timestamp("2026-05-01"), REFUSED)]),
    (datetime, [(pd.Timestamp(1), REFUSED)]),
    (timedelta, [
        (timedelta(1), timedelta(1)), (pd.Timedelta(days=1), timedelta(1)),
        (np.timedelta64(1, "D"), timedelta(1)), (1, REFUSED), (None, REFUSED),
    ]),
    (time, [
        (time(1, 2), time(1, 2)), (time(1, 2, fold=1), time(1, 2)),
        (time(1, 2, tzinfo=ROME), time(1, 2)), (time(1, 2, tzinfo=UTC), REFUSED),
        ("01:02", REFUSED), (None, REFUSED),
    ]),
    (Instant, [(INSTANT.replace(fold=1), INSTANT)]),
    (datetime, [(AT.replace(fold=1), AT)]),
    (Decimal, [
        (Decimal("1E+999999999"), REFUSED), (Decimal("1E-19"), REFUSED),
        (Decimal("NaN"), Decimal("NaN")), (Decimal("NaN123"), Decimal("NaN")),
    ]),
    (complex, [(complex(-0.0, 1), 1j), (complex(1, -0.0), complex(1, 0)), (2, complex(2, 0))]),
    (Colour, [(Colour.RED, Colour.RED), ("red", REFUSED)]),
    (State, [(State.OPEN, State.OPEN), ("open", State.OPEN), ("shut", REFUSED)]),
    (int | str, [(1, 1), ("1", "1"), (True, 1), (State.OPEN, "open"), (1.5, REFUSED)]),
    (int | float, [(1, 1.0), (1.5, 1.5), ("1", REFUSED)]),
    (tuple[int, ...], [((np.int8(1), True), (1, 1))]),
    (tuple[int, str], [((True, State.OPEN), (1, "open")), ((1,), REFUSED), ((1, 2), REFUSED)]),
    (Point, [(Point(True, 1), Point(1, 1.0)), ((1, 2), Point(1, 2.0)), (Point("1", 1), REFUSED)]),
    (frozenset[int], [(frozenset([True]), frozenset([1])), ({2}, frozenset([2])), (1, REFUSED)]),
    (dict[str, int], [({"a": True}, {"a": 1}), ({"a": "1"}, REFUSED)]),
    (Any, [
        (np.int64(1), 1), (1.5, 1.5), (-0.0, 0.0), (np.float64(-0.0), 0.0), (np.float64(NAN), NAN),
        (State.OPEN, State.OPEN), (None, None), ((np.int64(1), (np.bool_(True),)), (1, (True,))),
        (Decimal("1.50"), Decimal("1.5")), (Decimal("1E+2"), Decimal(100)),
        (Decimal("-0.0"), Decimal(0)), (Decimal("1.50E-30"), Decimal("1.5E-30")),
        (Decimal("10E+999999"), Decimal("1E+1000000")),
        (Decimal("-Infinity"), Decimal("-Infinity")),
        (Decimal("NaN123"), Decimal("NaN")), (complex(-0.0, 1), 1j),
        ((1, frozenset([Decimal("1.0")])), (1, frozenset([Decimal(1)]))),
        (Frozen({"a": Decimal("1.0")}), Frozen({"a": Decimal(1)})),
        (IN_ROME, INSTANT), (INSTANT.replace(fold=1), INSTANT),
        (AT.replace(fold=1), AT), (time(1, 2, fold=1), time(1, 2)),
        (time(1, 2, tzinfo=ROME), time(1, 2)), (time(1, 2, tzinfo=UTC), REFUSED),
    ]),
]  # fmt: skip
"""The same for values that tables have no column for, or for which they have another meaning."""

ROWS: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda row, x: [row(1, x)],
    "weights": lambda row, x: {row(1, x): 1},
    "dicts": lambda row, x: [{"id": 1, "x": x}],
    "upsert": lambda row, x: ef.upsert([row(1, x)]),
    "upsert of dicts": lambda row, x: ef.upsert([{"id": 1, "x": x}]),
    "replace": lambda row, x: ef.replace([row(1, x)]),
    "feed": lambda row, x: ef.feed([{"op": "c", "id": 1, "x": x}]),
}
TABLES: dict[str, Callable[[Any, Any], Any]] = {
    "lists": lambda row, x: {"id": [1], "x": [x]},
    "pandas": lambda row, x: pd.DataFrame({"id": [1], "x": [x]}),
    "pandas objects": lambda row, x: pd.DataFrame({"id": [1], "x": pd.Series([x], dtype=object)}),
    "arrow": lambda row, x: pa.table({"id": [1], "x": pa.array([x])}),
    "polars": lambda row, x: pl.DataFrame({"id": [1], "x": [x]}),
    "numpy": lambda row, x: {"id": np.array([1]), "x": np.array([x])},
    "upsert of a table": lambda row, x: ef.upsert({"id": [1], "x": [x]}),
    "feed of a table": lambda row, x: ef.feed({"op": ["c"], "id": [1], "x": [x]}),
}
MODES = {"rows": False, "columns": True}
BY_OTHERS = {"pandas", "pandas objects", "arrow", "polars", "numpy"}


def exactly(value: Any) -> str:
    """A value as text with its class, and with those of what is in it."""
    if isinstance(value, (tuple, frozenset)) and not isinstance(value, Enum):
        return f"{type(value).__name__}({', '.join(map(exactly, value))})"
    if isinstance(value, dict):
        return f"dict({', '.join(map(exactly, value.items()))})"
    return f"{type(value).__name__} {value!r}"


def is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or value != value


def row_types(hint: Any) -> list[Any]:
    fields = [("id", int), ("x", hint)]
    return [NamedTuple("Row", fields), make_dataclass("Row", fields, frozen=True)]


def kept(program: Any, given: Any, **options: Any) -> Any:
    """What is kept of a value that is given, or that it is refused by name."""
    with program.run(**options) as view:
        try:
            view.step(i=given)
        except EbbflowError as error:
            text = str(error)
            named = ("'i'" in text, "x" in text.split("\n")[0], "try  " in text)
            assert all(named), text
            assert (view.epoch, len(view.value)) == (0, 0)
            return REFUSED
        view.verify()
        (row,) = view.value
    if options.get("path") is not None:
        with program.run(**options) as view:
            (again,) = view.value
            assert exactly(again.x) == exactly(row.x)
            view.verify()
    return exactly(row.x)


def made(form: str, make: Callable[[Any, Any], Any], row: Any, value: Any) -> Any:
    """A change in a form, or None where its library has no such value, or makes another of it."""
    if form not in BY_OTHERS:
        return make(row, value)
    if isinstance(value, (Level, State, Number, Name, pa.Scalar, tuple)) or value is pd.NA:
        return None  # libraries take them apart in ways of their own
    if form == "polars" and isinstance(value, Decimal) and not value.is_finite():
        return None  # Polars panics
    if form in ("pandas", "pandas objects") and isinstance(value, (np.datetime64, list)):
        return None  # pandas has no days, and an index of lists
    try:
        return make(row, value)
    except Exception:  # no column of that library holds it
        return None


class Half(float, Enum):
    ONE = 1.0


class Level2(IntEnum):
    ONE = 1


EQUAL: list[list[Any]] = [
    [0, False, 0.0, -0.0, Decimal(0), Decimal("-0.00"), np.float32(-0.0), 0j, complex(-0.0, -0.0)],
    [1, True, 1.0, Decimal("1.00"), Decimal("10E-1"), np.int8(1), Level2.ONE, Half.ONE, Number(1),
     Fraction(1), complex(1, -0.0)],
    [1.5, Decimal("1.5"), Decimal("1.500"), np.float32(1.5), Fraction(3, 2), 1.5 + 0j],
    ["open", State.OPEN, Name("open"), np.str_("open")],
    [b"a", bytearray(b"a"), np.bytes_(b"a")],
    [AT, AT.replace(fold=1), pd.Timestamp(AT), np.datetime64(AT)],
    [INSTANT, IN_ROME, INSTANT.replace(fold=1), INSTANT.astimezone(ZoneInfo("UTC")),
     pd.Timestamp(IN_ROME)],
    [time(12, tzinfo=UTC), time(14, tzinfo=timezone(timedelta(hours=2)))],
    [time(12), time(12, fold=1)],
    [timedelta(1), pd.Timedelta(days=1), np.timedelta64(24, "h")],
]  # fmt: skip
"""Values that are equal, though they do not look alike."""
UNIONS = [
    int | float, bool | float, bool | int, Decimal | int, Decimal | float, Money | int,
    Money | float, Decimal | Money, complex | float, complex | int, Fraction | int,
    State | str, str | State, Level2 | int, Half | float, Name | str, Number | int, bool | str,
    int | str, datetime | Instant, Literal[1] | float, Literal[True] | int,
]  # fmt: skip
ONE_FORM = [
    int, float, bool, str, bytes, datetime, Instant, time, timedelta, complex, Decimal, Money,
    State, Level2, Half, Fraction, Literal[1, "open"], *UNIONS,
]  # fmt: skip
WITHIN: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda hint: hint, lambda x: x),
    (lambda hint: hint | None, lambda x: x),
    (lambda hint: tuple[hint, ...], lambda x: (x,)),
    (lambda hint: tuple[hint, int], lambda x: (x, 1)),
    (lambda hint: list[hint], lambda x: [x]),
    (lambda hint: frozenset[hint], lambda x: frozenset([x])),
    (lambda hint: dict[str, hint], lambda x: {"k": x}),
    (lambda hint: dict[hint, int], lambda x: {x: 1}),
    (lambda hint: record("Inside", x=hint), lambda x: (x,)),
]


@pytest.mark.parametrize("hint", ONE_FORM, ids=str)
def test_equal_values_of_a_field_are_alike(hint: Any) -> None:
    for type_of, put in WITHIN:
        rule = rule_of(type_of(hint))
        for values in EQUAL:
            found = set()
            for value in values:
                if isinstance(value, bytearray) and isinstance(put(0), (frozenset, dict)):
                    continue
                with suppress(rules.WrongValue):
                    given = put(value)
                    made = rule.convert(given)
                    assert rule.convert(made) is made
                    assert check.tester(type_of(hint))([given]) is (made is given)
                    found.add(exactly(made))
            assert len(found) < 2, (type_of(hint), found)


def test_values_without_a_type_have_one_form_of_their_class() -> None:
    for values in EQUAL:
        found: dict[type, set[str]] = {}
        for value in values:
            if not isinstance(value, (time, bytearray)):
                made = rule_of(Any).convert((value, frozen({"k": value})))
                found.setdefault(type(made[0]), set()).add(exactly(made))
        assert all(len(each) == 1 for each in found.values()), found


def test_an_input_of_tuples_takes_tuples_only() -> None:
    with ef.Input("i", tuple).run() as view:
        with pytest.raises(ChangeError, match="a row must be a tuple, not the int 5"):
            view.step(i=[5])
        view.step(i=[Point(1, 2.0)])
        assert [exactly(row) for row in view.value] == [exactly((1, 2.0))]


def test_keys_of_a_dict_that_become_one_are_refused() -> None:
    with pytest.raises(rules.WrongValue, match="has one key twice"):
        rule_of(dict[str | None, int]).convert({None: 1, pd.NA: 2})


def name_of(hint: Any) -> str:
    return str(getattr(hint, "__name__", hint)).replace(" ", "")


@contextmanager
def quietly() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize(("hint", "cases"), CASES + ROWS_ONLY, ids=lambda x: name_of(x)[:20])
def test_rows_keep_the_value_of_their_type(hint: Any, cases: Any, tmp_path: Path) -> None:
    wrong = []
    for at, row_type in enumerate(row_types(hint)):
        source = ef.Input("i", row_type, key="id")
        for value, wanted in cases:
            for form, make in ROWS.items():
                if form == "weights" and isinstance(value, (list, set, dict, bytearray)):
                    continue
                for mode, columns in MODES.items():
                    found = kept(source, make(row_type, value), columns=columns)
                    if found != (wanted if wanted is REFUSED else exactly(wanted)):
                        wrong.append((form, mode, exactly(value), found))
            path = tmp_path / f"{at}-{len(list(tmp_path.iterdir()))}"
            found = kept(source, [row_type(1, value)], path=path)
            if found != (wanted if wanted is REFUSED else exactly(wanted)):
                wrong.append(("disk", "rows", exactly(value), found))
    assert not wrong


@pytest.mark.parametrize(("hint", "cases"), CASES, ids=lambda x: name_of(x)[:20])
def test_tables_keep_the_value_of_their_type(hint: Any, cases: Any, tmp_path: Path) -> None:
    wrong = []
    row_type = row_types(hint)[0]
    for key in ("id", None):
        source = ef.Input("i", row_type, key=key)
        for value, wanted in cases:
            for form, make in TABLES.items():
                if key is None and form.endswith("table"):
                    continue
                with quietly():
                    given = made(form, make, row_type, value)
                if given is None:
                    continue
                for mode, columns in MODES.items():
                    path = (
                        tmp_path / f"{len(list(tmp_path.iterdir()))}" if form == "arrow" else None
                    )
                    found = kept(source, given, columns=columns, path=path)
                    if found != (wanted if wanted is REFUSED else exactly(wanted)):
                        wrong.append((form, mode, exactly(value), found))
    assert not wrong


@pytest.mark.parametrize(("hint", "cases"), CASES + ROWS_ONLY, ids=lambda x: name_of(x)[:20])
def test_keys_follow_the_rules_of_rows(hint: Any, cases: Any) -> None:
    """`delete`, `get`, `in` and `upsert` find a row by any value that stands for its key."""
    row_type = record("Row", x=hint, n=int)
    for value, wanted in cases:
        if isinstance(value, (list, set, dict, bytearray)) or is_missing(value):
            continue
        program = ef.Input("i", row_type, key="x")
        with program.run() as view:
            rows = view.input("i")
            if wanted is REFUSED:
                for ask in (rows.get, rows.delete, rows.__contains__):
                    with pytest.raises(ChangeError, match="input 'i'"):
                        ask(value)
                continue
            view.step(i=[row_type(wanted, 1)])
            assert value in rows, value
            assert exactly(rows.get(value).x) == exactly(wanted)
            view.step(i=ef.upsert([row_type(value, 2)]))
            assert [(exactly(row.x), row.n) for row in view.value] == [(exactly(wanted), 2)]
            view.step(i=ef.delete([value]))
            assert not view.value
            view.verify()


@pytest.mark.parametrize(("hint", "cases"), CASES + ROWS_ONLY, ids=lambda x: name_of(x)[:20])
def test_inputs_without_fields_follow_the_rules_of_fields(hint: Any, cases: Any) -> None:
    if hint is Point:
        return  # it has fields
    for value, wanted in cases:
        if isinstance(value, (list, set, dict, bytearray)):
            continue
        with ef.Input("i", hint).run() as view:
            if wanted is REFUSED:
                with pytest.raises(ChangeError, match="input 'i'"):
                    view.step(i=[value])
                continue
            view.step(i={value: 1})
            assert [exactly(row) for row in view.value] == [exactly(wanted)]
            view.verify()


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (int, "12", 12), (float, "1.5", 1.5), (bool, "true", True), (date, "2026-05-01", DAY),
        (datetime, "2026-05-01 12:30:00", AT), (Instant, "2026-05-01T12:30:00Z", INSTANT),
        (Money, "1.5", Decimal("1.50")), (Decimal, "1.50", Decimal("1.5")), (int | None, "", None),
        (int, "x", REFUSED), (int, "1.5", REFUSED), (bool, "7", REFUSED), (date, "May", REFUSED),
    ],
)  # fmt: skip
def test_texts_are_read_where_that_is_asked_for(hint: Any, text: str, value: Any) -> None:
    row_type = record("Row", id=int, x=hint)
    program = ef.Input("i", row_type, key="id")
    for form in (
        [{"id": "1", "x": text}],
        {"id": ["1"], "x": [text]},
        pd.DataFrame({"id": ["1"], "x": [text]}),
    ):
        for columns in (False, True):
            found = kept(program, ef.upsert(form, parse=True), columns=columns)
            assert found == (value if value is REFUSED else exactly(value)), (form, columns)


@pytest.mark.parametrize("hint", [Decimal, tuple[Decimal, ...]], ids=name_of)
@pytest.mark.parametrize("size", [20, 21, 30, 38])
def test_large_decimals_of_tables_are_exact_or_refused(
    hint: Any, size: int, tmp_path: Path
) -> None:
    """Arrow brings some of them to 18 digits after the point with other numbers, and no error."""
    program = ef.Input("i", record("Row", id=int, x=hint), key="id")
    several = hint is not Decimal

    def put(x: Any) -> Any:
        return [x] if several else x

    for digits in (
        "675830517640746643005476088844675830517",
        "774952696982845118133464913774952696982",
    ):
        value = Decimal(digits[:size])
        wide = pa.array(
            [put(value)], pa.list_(pa.decimal128(38, 0)) if several else pa.decimal128(38, 0)
        )
        text = pa.array([put(str(value))])
        kind = exactly(put(value)) if not several else exactly((value,))
        for given in (
            pa.table({"id": [1], "x": wide}),
            ef.upsert(pa.table({"id": [1], "x": text}), parse=True),
            {"id": [1], "x": [put(value)]},
        ):
            for columns in (False, True):
                assert kept(program, given, columns=columns) in (REFUSED, kind)
        if not several:
            (tmp_path / "x.csv").write_text(f"id,x\n1,{value}\n")
            assert csv_value(program, tmp_path / "x.csv") in (REFUSED, kind)


def csv_value(program: Any, path: Path) -> str:
    with program.run() as view:
        try:
            view.step(i=ef.read_csv(path, program.node.type))
        except EbbflowError:
            return REFUSED
        return exactly(next(iter(view.value)).x)


def test_the_rows_of_a_csv_reader_are_refused_until_they_are_parsed() -> None:
    """Rows of texts: `max` of 9 and 10 is 10, and key "1" is key 1."""
    program = ef.Input("i", NamedTuple("Row", [("id", int), ("x", int)]), key="id")
    most = program.group_by(lambda row: 0).agg(most=ef.max("x"))
    with ef.program(most=most, rows=program).run() as view:
        given = [{"id": "1", "x": "9"}, {"id": "2", "x": "10"}]
        with pytest.raises(ChangeError, match="parse=True"):
            view.step(i=given)
        view.step(i=ef.upsert(given, parse=True))
        assert [row.most for row in view.value["most"]] == [10]
        view.step(i=ef.upsert([{"id": "1", "x": "3"}], parse=True))
        assert len(view.value["rows"]) == 2
        view.step(i=ef.delete(["2"], parse=True))
        assert [row.most for row in view.value["most"]] == [3]


def test_the_page_has_the_table_of_rules() -> None:
    page = (ROOT / "docs" / "howto" / "values.md").read_text().splitlines()
    table = [line for line in (rules.__doc__ or "").splitlines() if line.startswith("|")]
    assert [line for line in table if line not in page] == []
    named = " ".join(table)
    assert [rule.name for rule in rules.RULES.values() if f"`{rule.name}`" not in named] == [
        "complex", "None",
    ]  # fmt: skip


def test_lookups_recommend_what_they_take() -> None:
    """`parse=True` belongs to requests: a key that is looked up, edited or forgotten has none."""
    row_type = record("Row", id=int, day=date, n=int)
    rows = ef.Input("i", row_type, key="id", sequence="n")
    days = rows.group_by("id", "day").agg(n=ef.count())
    with ef.program(rows=rows, days=days).run() as view:
        view.step(i=[row_type(1, DAY, 1)])
        given = view.input("i")
        lookups: list[Callable[[], Any]] = [
            lambda: given.get("1"), lambda: "1" in given, lambda: view["rows"].get("1"),
            lambda: given.edit("1", "n"), lambda: given.forget("1"),
            lambda: view["days"].get(("1", DAY)), lambda: view["days"].get((1, "2026-05-01")),
        ]  # fmt: skip
        for look in lookups:
            with pytest.raises(ChangeError, match=r"field '(id|n|day)' must be an? ") as caught:
                look()
            assert "parse=True" not in str(caught.value)


@pytest.mark.parametrize("check_input", [True, False])
def test_parse_reads_all_that_a_request_is_given(check_input: bool) -> None:
    row_type = record("Row", id=int, day=date, n=int)
    text = {"id": "2", "day": "2026-05-01", "n": "5"}
    wanted, program = row_type(2, DAY, 5), ef.Input("i", row_type, key="id", sequence="n")
    requests = [
        ef.upsert([text], parse=True), ef.upsert(pd.DataFrame([text]), parse=True),
        ef.feed([{"op": "c", **text}], parse=True), ef.replace([text], parse=True),
        ef.replace([text], where={"id": "2", "day": "2026-05-01"}, parse=True),
    ]  # fmt: skip
    for request in requests:
        with program.run(check_input=check_input) as view:
            view.step(i=request)
            assert list(map(exactly, view.value)) == [exactly(wanted)]
            view.step(i=ef.delete(["2"], at="7", parse=True))
            assert not view.value


def test_tables_of_texts_name_the_remedy() -> None:
    program = ef.Input("i", record("Row", id=int))
    for table in (pd.DataFrame({"id": ["1"]}), pa.table({"id": ["1"]}), {"id": ["1"]}):
        with program.run() as view:
            with pytest.raises(ChangeError, match=r"(?s)column 'id'.*parse=True.*read_csv"):
                view.step(i=table)
            view.input("i").add(table, parse=True)
            assert len(view.value) == 1
