"""Reducers in the generated loop, and beside it, are what they are from scratch."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.fn import Fn
from ebbflow.reducer import Reducer
from ebbflow.reducer.reducer import counted
from ebbflow.reducer.running import ReduceByKey
from ebbflow.reducer.shape import PAIR
from ebbflow.zset import ZSet


class Row(NamedTuple):
    key: int
    x: Any
    y: int


def _large(row: Row) -> bool:
    return row.y > 3


def _value(row: Row) -> Any:
    return row.x


def _own() -> Reducer[Any]:
    return counted(0, lambda n, row, count: n + row.y * count, partial=False)


REDUCERS: dict[str, Callable[[], Any]] = {
    "count": ef.count,
    "count where": lambda: ef.count().where(_large),
    "sum where": lambda: ef.sum("x").where(_large),
    "mean then": lambda: ef.mean("x").then(repr),
    "sum on": lambda: ef.sum().on("y"),
    "sum where on": lambda: ef.sum().where(lambda y: y > 3).on("y"),
    "count_distinct": lambda: ef.count_distinct("x"),
    "count_distinct where": lambda: ef.count_distinct("x").where(_large),
    "histogram": lambda: ef.histogram("x"),
    "set_of": lambda: ef.set_of(_value),
    "max": lambda: ef.max("x"),
    "min": lambda: ef.min("x"),
    "max where": lambda: ef.max("x").where(_large),
    "arg_max": lambda: ef.arg_max("x"),
    "arg_min": lambda: ef.arg_min("y", "x"),
    "first": lambda: ef.first("x", order="y"),
    "last": lambda: ef.last("y", order="x"),
    "last where": lambda: ef.last("y", order="x").where(_large),
    "last on": lambda: ef.last(None, order=abs).on("y"),
    "variance": lambda: ef.variance("y"),
    "stddev": lambda: ef.stddev("y").where(_large),
    "covariance": lambda: ef.covariance("y", "key"),
    "bool_and": lambda: ef.bool_and(_large),
    "bool_or": lambda: ef.bool_or(_large),
    "bit_xor": lambda: ef.bit_xor("y"),
    "median": lambda: ef.median("y"),
    "top_k": lambda: ef.top_k(2, "x"),
    "collect": lambda: ef.collect("x"),
    "mode": lambda: ef.mode("x"),
    "string_agg": lambda: ef.string_agg("y"),
    "by": lambda: ef.sum("y").by("x"),
    "own": _own,
    "own without remove": lambda: Reducer(0, lambda n, row: n + row.y),
}
VALUES = (None, 0, 1, 2, 2.0, -1, 0.5, math.nan, math.inf, 7)


def followed(reducer: Any, values: tuple[Any, ...], seed: int) -> None:
    """Random changes of a few groups, until all rows are gone: after each, what is given is what
    the reducer gives from scratch, and the state is that of its rows, also when it was stored."""
    random = Random(seed)
    operator = ReduceByKey(reducer, Fn.of("key", Row), PAIR, Row)
    state, rows, out = operator.init(ZSet()), ZSet[Row](), ZSet[Any]()
    for step in range(14):
        change: dict[Row, int] = {}
        for row, count in rows.items():
            if step == 13 or random.random() < 0.4:
                change[row] = -count if step == 13 else -random.randint(1, count)
        for _ in range(random.randrange(6) if step < 13 else 0):
            row = Row(random.randrange(2), random.choice(values), random.randrange(7))
            change[row] = change.get(row, 0) + random.randint(1, 2)
        delta = ZSet(change)
        _, moved = operator.step(state, delta)
        rows, out = rows + delta, out + moved
        assert out == operator.f(rows)
        assert operator.invariant(rows, state)
        cells = state[1] if operator.keeps_rows else state
        for key, cell in cells.values.items():
            assert operator.load(key, operator.dump(key, cell)) == cell
            parts = zip(operator.parts, operator.accs(cell), strict=True)
            older = cell[0], *[part.dump(acc) for part, acc in parts]
            assert operator.load(key, older) == cell, "what older versions have stored"
    assert not out


@pytest.mark.parametrize("name", REDUCERS)
def test_a_reducer_alone(name: str) -> None:
    numbers = name.split()[0] in ("sum", "mean", "max", "min", "count_distinct", "top_k", "last")
    for seed in range(6):
        followed(REDUCERS[name](), VALUES if numbers or seed % 2 else ("a", "b", None, ""), seed)


@pytest.mark.parametrize("seed", range(25))
def test_reducers_side_by_side(seed: int) -> None:
    chosen = Random(seed).sample(list(REDUCERS), 4)
    made = [REDUCERS[name]() for name in chosen]
    followed(made[0] & made[1] & made[2] & made[3], VALUES, seed)


def test_a_maximum_that_goes_is_looked_for_once_and_not_with_every_row() -> None:
    """As long as the best stays, rows cost no look at the others; then a few of the best are kept,
    and not all rows are looked through for each that goes."""
    seen = 0

    def value(row: Row) -> Any:
        nonlocal seen
        seen += 1
        return row.x

    operator = ReduceByKey(ef.max(value), Fn.of("key", Row), PAIR, Row)
    state = operator.init(ZSet())
    rows = [Row(0, x, 0) for x in range(1_000)]
    operator.step(state, ZSet.of(rows))
    assert seen == 1_000
    for row in rows[:500]:
        operator.step(state, ZSet({row: -1}))
    assert seen == 1_500
    for row in reversed(rows[900:]):
        operator.step(state, ZSet({row: -1}))
    assert seen < 4_000
    assert operator.read(state) == {(0, 899): 1}


def test_a_stored_maximum_of_before_is_read() -> None:
    """State that was written down when all of it was a top buffer."""
    operator = ReduceByKey(ef.max("x"), Fn.of("key", Row), PAIR, Row)
    ranking = operator.parts[0].ranking  # type: ignore[attr-defined]
    buffer = ranking.picked({3: 1, 5: 2}, 16)
    cell = operator.load(0, (3, buffer))
    assert operator.accs(cell) == [(5, 0, buffer)]
    assert cell[-1] == (0, 5)
