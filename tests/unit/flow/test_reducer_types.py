"""A reducer that cannot compute with the values of a field is refused where it is written: what a
program lets pass does not fail at its first rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import ebbflow as ef
from ebbflow.record import record

Point = record("Point", x=int, y=int)
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "int": (int, [1, 2]),
    "float": (float, [1.5, 2.5]),
    "bool": (bool, [True, False]),
    "Decimal": (Decimal, [Decimal(1), Decimal(2)]),
    "Fraction": (Fraction, [Fraction(1, 2), Fraction(1, 3)]),
    "complex": (complex, [1j, 2j]),
    "str": (str, ["a", "b"]),
    "bytes": (bytes, [b"a", b"b"]),
    "date": (dt.date, [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]),
    "datetime": (dt.datetime, [dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2)]),
    "time": (dt.time, [dt.time(1), dt.time(2)]),
    "timedelta": (dt.timedelta, [dt.timedelta(1), dt.timedelta(2)]),
    "tuple": (tuple[int, ...], [(1,), (2,)]),
    "list": (list[int], [[1], [2]]),
    "set": (frozenset[int], [frozenset([1]), frozenset([2])]),
    "dict": (dict[str, int], [{"a": 1}, {"a": 2}]),
    "row": (Point, [Point(1, 2), Point(2, 2)]),
    "Text": (ef.Text, ["a", "b"]),
    "int or None": (int | None, [1, None, 2]),
    "str or None": (str | None, ["a", None, "b"]),
}
REDUCERS = [
    ef.count("v"), ef.sum("v"), ef.mean("v"), ef.naive_sum("v"), ef.product("v"),
    ef.variance("v"), ef.stddev("v"), ef.covariance("v", "v"), ef.weighted_mean("v", "id"),
    ef.weighted_mean("id", "v"), ef.min("v"), ef.max("v"), ef.median("v"), ef.quantile(0.5, "v"),
    ef.quantile(0.5, "v", discrete=True), ef.approx_quantile(0.5, "v"), ef.top_k(2, "v"),
    ef.first("v", "id"), ef.last("id", "v"), ef.collect("v"), ef.string_agg("v"), ef.mode("v"),
    ef.bool_and("v"), ef.bool_or("v"), ef.bit_xor("v"), ef.count_distinct("v"),
    ef.approx_count_distinct("v"), ef.histogram("v"), ef.set_of("v"), ef.rank(1, "v"),
]  # fmt: skip


@pytest.mark.parametrize("reducer", REDUCERS, ids=repr)
def test_what_is_not_refused_where_it_is_written_can_be_computed(reducer: ef.Reducer) -> None:
    for name, (hint, values) in VALUES.items():
        Row = record("Row", id=int, v=hint)
        try:
            program = ef.Input("rows", Row).agg(x=reducer)
        except ef.EbbflowError:
            continue
        view = program.run()
        view.step(rows=[Row(at, value) for at, value in enumerate(values)])
        assert len(view.value) == 1, name


@pytest.mark.parametrize(
    ("reducer", "hint", "what", "remedy"),
    [
        (ef.sum("v"), str, "agg(x=sum('v')): 'v' is of type str, and no numbers",
         'ebbflow.sum("id")'),
        (ef.sum("v"), str | None, "agg(x=sum('v')): 'v' is of type str | None, and no numbers",
         'ebbflow.sum("id")'),
        (ef.variance("v"), dt.timedelta,
         "agg(x=variance('v')): 'v' is of type timedelta, and no numbers",
         'ebbflow.variance("id")'),
        (ef.bit_xor("v"), float, "agg(x=bit_xor('v')): 'v' is of type float, and no whole numbers",
         'ebbflow.bit_xor("id")'),
        (ef.mean(lambda row: row.v), tuple[int, ...],
         "agg(x=mean(<lambda>)): its values are of type tuple[int, ...], and no numbers",
         'ebbflow.mean("id")'),
    ],
)  # fmt: skip
def test_the_refusal_says_what_the_field_is_and_what_to_do(
    reducer: ef.Reducer, hint: Any, what: str, remedy: str
) -> None:
    with pytest.raises(ef.EbbflowError) as error:
        ef.Input("rows", record("Row", id=int, v=hint)).agg(x=reducer)
    assert (error.value.what, error.value.remedy) == (what, remedy)


def test_numbers_and_what_adds_up_like_them_pass() -> None:
    def passes(reducer: ef.Reducer) -> set[str]:
        found = set()
        for name, (hint, _) in VALUES.items():
            try:
                ef.Input("rows", record("Row", id=int, v=hint)).agg(x=reducer)
            except ef.EbbflowError:
                continue
            found.add(name)
        return found

    numbers = {"int", "float", "bool", "Decimal", "Fraction", "int or None"}
    assert passes(ef.product("v")) == numbers
    assert passes(ef.sum("v")) == numbers | {"timedelta"}
    assert passes(ef.median("v")) == numbers | {"complex", "timedelta", "date", "datetime"}
    assert passes(ef.bit_xor("v")) == {"int", "bool", "int or None"}
    assert passes(ef.max("v")) == set(VALUES)
