"""A column in any form that a library has: it is read as the values that it holds, or refused by an
error that names the input and the column."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any

import pytest

import ebbflow as ef
from ebbflow.record import record

np: Any = pytest.importorskip("numpy")
pa: Any = pytest.importorskip("pyarrow")

DAY, AT = date(2026, 5, 1), datetime(2026, 5, 1, 10, 0)
READ: dict[str, tuple[Any, Any, list[Any]]] = {
    "datetime64 in a list": (date, [np.datetime64(DAY), np.datetime64(DAY)], [DAY, DAY]),
    "minutes in a list": (datetime, [np.datetime64("2026-05-01T10:00")], [AT]),
    "hours in a list": (datetime, [np.datetime64("2026-05-01T10")], [AT]),
    "seconds in a list": (datetime, [np.datetime64("2026-05-01T10:00:00")], [AT]),
    "days": (date, np.array([DAY], "datetime64[D]"), [DAY]),
    "weeks": (date, np.array(["2026-04-30"], "datetime64[W]"), [date(2026, 4, 30)]),
    "months": (date, np.array(["2026-05"], "datetime64[M]"), [DAY]),
    "minutes": (datetime, np.array([AT], "datetime64[m]"), [AT]),
    "ten minutes": (datetime, np.array(["2026-05-01T10:00"], "datetime64[10m]"), [AT]),
    "25 seconds": (datetime, np.array([AT], "datetime64[25s]"), [AT]),
    "ten microseconds": (datetime, np.array([AT], "datetime64[10us]"), [AT]),
    "objects of NumPy": (int, np.array([np.int8(3), 4], object), [3, 4]),
    "half floats": (float, np.array([1.5], "float16"), [1.5]),
    "halffloat": (float, pa.array([np.float16(1.5)], pa.float16()), [1.5]),
    "uint64": (int, pa.array([5], pa.uint64()), [5]),
    "string_view": (str, pa.array(["a", "sea" * 9], pa.string_view()), ["a", "sea" * 9]),
    "binary_view": (bytes, pa.array([b"a"], pa.binary_view()), [b"a"]),
    "large_string": (str, pa.array(["a"], pa.large_string()), ["a"]),
    "fixed binary": (bytes, pa.array([b"ab"], pa.binary(2)), [b"ab"]),
    "dictionary": (str, pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    "dictionary of views": (
        str, pa.DictionaryArray.from_arrays([1, 0], pa.array(["a", "b"], pa.string_view())),
        ["b", "a"],
    ),
    "runs": (int, pa.RunEndEncodedArray.from_arrays([2, 3], [7, 8]), [7, 7, 8]),
    "part of runs": (
        int, pa.RunEndEncodedArray.from_arrays([2, 5, 6], [7, 8, 9]).slice(1, 3), [7, 8, 8],
    ),
    "runs of views": (
        str, pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["a", "b"], pa.string_view())),
        ["a", "a", "b"],
    ),
    "runs of nulls": (
        int | None, pa.RunEndEncodedArray.from_arrays([2, 3], [None, 8]), [None, None, 8],
    ),
    "list_view": (tuple[int, ...], pa.array([[1, 2], []], pa.list_view(pa.int64())), [(1, 2), ()]),
    "part of list_view": (
        tuple[int, ...] | None, pa.array([[9], [1, 2], None], pa.list_view(pa.int64())).slice(1),
        [(1, 2), None],
    ),
    "large_list_view": (
        tuple[int, ...] | None, pa.array([[1], None], pa.large_list_view(pa.int64())), [(1,), None],
    ),
    "lists of views": (tuple[str, ...], pa.array([["a"]], pa.list_(pa.string_view())), [("a",)]),
    "large_list": (tuple[int, ...], pa.array([[1]], pa.large_list(pa.int64())), [(1,)]),
    "fixed_size_list": (tuple[int, ...], pa.array([[1, 2]], pa.list_(pa.int64(), 2)), [(1, 2)]),
    "decimal256": (Decimal, pa.array([Decimal("1.5")], pa.decimal256(50, 2)), [Decimal("1.5")]),
    "date64": (date, pa.array([DAY], pa.date64()), [DAY]),
    "nanoseconds": (datetime, pa.array([AT], pa.timestamp("ns")), [AT]),
}  # fmt: skip
"""Columns, each with the hint of its field and the values that it holds."""
REFUSED: dict[str, tuple[Any, Any]] = {
    "uint64 beyond int64": (int, pa.array([2**63 + 5], pa.uint64())),
    "picoseconds": (datetime, np.array([AT], "datetime64[ps]")),
    "nanoseconds in a list": (datetime, [np.datetime64("2026-05-01T10:00:00.000000001")]),
    "parts of a microsecond": (datetime, pa.array([1], pa.timestamp("ns"))),
    "far years": (date, [np.datetime64("20000-01-01")]),
    "far timestamps": (datetime, pa.array([2**62], pa.timestamp("us"))),
    "early timestamps": (datetime, pa.array([-(2**62)], pa.timestamp("us"))),
    "far instants": (Annotated[datetime, UTC], pa.array([2**62], pa.timestamp("us", "UTC"))),
    "far seconds": (datetime, pa.array([2**40], pa.timestamp("s"))),
    "far dates": (date, pa.array([2**30], pa.date32())),
    "far dates in a dictionary": (date, pa.array([2**30], pa.date32()).dictionary_encode()),
    "far milliseconds": (date, pa.array([2**60], pa.date64())),
    "duration": (timedelta, pa.array([timedelta(1)], pa.duration("s"))),
    "timedelta64": (timedelta, np.array([3], "timedelta64[m]")),
    "timedelta64 in a list": (timedelta, [np.timedelta64(3, "m")]),
    "time32": (time, pa.array([time(1)], pa.time32("s"))),
    "time64": (time, pa.array([1], pa.time64("ns"))),
    "interval": (timedelta, pa.array([(1, 2, 3)], pa.month_day_nano_interval())),
    "complex": (float, np.array([1j])),
    "longdouble": (float, np.array([1.5], np.longdouble)),
    "two types": (int, [np.datetime64(DAY), 3]),
    "nulls": (int, pa.nulls(1)),
    "struct": (int, pa.array([{"a": 1}])),
    "union": (int, pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])),
}  # fmt: skip


def added(view: Any, columns: dict[str, Any]) -> None:
    view.step(things=columns)


def fed(view: Any, columns: dict[str, Any]) -> None:
    kinds = {"kind": ["I"] * len(columns["id"])}
    view.input("things").feed(columns | kinds, op="kind", insert="I", update="U", delete="D")


def upserted(view: Any, columns: dict[str, Any]) -> None:
    view.input("things").upsert(columns)


def replaced(view: Any, columns: dict[str, Any]) -> None:
    view.input("things").replace(columns)


WAYS: list[Callable[[Any, dict[str, Any]], None]] = [added, fed, upserted, replaced]


def running(hint: Any) -> tuple[Any, Any]:
    row = record("Thing", id=int, x=hint)
    return row, ef.Input("things", row, key="id").run()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", READ)
def test_column_is_read_as_the_values_it_holds(form: str, way: Any) -> None:
    hint, column, values = READ[form]
    ids = list(range(len(values)))
    whole: list[Any] = [{"id": ids, "x": column}]
    if isinstance(column, pa.Array):
        whole.append(pa.table({"id": ids, "x": column}))
        whole.append(pa.table({"id": ids, "x": pa.chunked_array([column])}))
    for table in whole:
        row, view = running(hint)
        if way is fed and not isinstance(table, dict):
            kinds = pa.array(["I"] * len(ids)).dictionary_encode()
            view.step(things=ef.feed(table.append_column("kind", kinds), op="kind", insert="I"))
        else:
            way(view, table)
        assert sorted(view.value) == [row(*each) for each in zip(ids, values, strict=True)]
        assert [type(each.x) for each in sorted(view.value)] == [type(each) for each in values]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", REFUSED)
def test_column_that_does_not_fit_is_refused_by_name(form: str, way: Any) -> None:
    hint, column = REFUSED[form]
    _, view = running(hint)
    view.step(things=[])
    before = view.value
    with pytest.raises(ef.EbbflowError) as error:
        way(view, {"id": list(range(len(column))), "x": column})
    assert "input 'things'" in str(error.value)
    assert "column 'x'" in str(error.value)
    assert error.value.remedy
    assert "field Any" not in str(error.value)
    assert (view.value, view.epoch) == (before, 1)


def test_far_dates_inside_lists_are_refused() -> None:
    _, view = running(tuple[date, ...])
    dates = pa.array([[DAY], [DAY, None]], pa.list_(pa.date32()))
    with pytest.raises(ef.EbbflowError, match=r"'x\[1\]'"):
        view.step(things=pa.table({"id": [1, 2], "x": dates}))
    dates = pa.array([[1], [2, 2**30]], pa.list_(pa.date32()))
    with pytest.raises(ef.EbbflowError, match="column 'x' is outside the years 1 to 9999"):
        view.step(things=pa.table({"id": [1, 2], "x": dates}))
    assert view.value == ef.ZSet()


def test_a_weight_is_not_spoken_of_as_a_field() -> None:
    _, view = running(int)
    for weights in ([1.5], ["x"]):
        with pytest.raises(ef.EbbflowError, match="column 'weight' is") as error:
            view.step(things={"id": [1], "x": [2], "weight": weights})
        assert error.value.remedy == "cast the column to int"
