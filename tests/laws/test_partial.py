"""A reduce in two halves: what a change adds to every cell, and that added to the cells."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from operator import itemgetter
from random import Random
from typing import Any

import pytest

from ebbflow import reducer as r
from ebbflow.reducer.running import ReduceByKey
from ebbflow.state.cells import Cells
from ebbflow.zset import ZSet, trusted

KEY, VALUE = itemgetter(0), itemgetter(1)
KINDS: dict[str, Any] = {
    "ints": lambda dice: dice.choice([None, 0, 1, -3, 7, 2**70]),
    "bools": lambda dice: dice.choice([True, False, 5, None]),
    "floats": lambda dice: dice.choice([0.1, 1e300, -1e300, 2.5, 3, None, float("inf")]),
    "decimals": lambda dice: dice.choice([Decimal("0.10"), Decimal("1e-30"), 4, None]),
    "fractions": lambda dice: dice.choice([Fraction(1, 3), Fraction(-2, 7), 1, None]),
}
REDUCERS: dict[str, Any] = {
    "count": r.count(),
    "count of": r.count(VALUE),
    "sum": r.sum(VALUE),
    "mean": r.mean(VALUE),
    "all": r.count() & r.sum(VALUE) & r.mean(VALUE) & r.count(VALUE),
}


def changes(dice: Random, value: Any, rows: dict[Any, int], size: int) -> dict[Any, int]:
    """Rows that come, and rows that go and are there."""
    change: dict[Any, int] = {}
    for _ in range(size):
        gone = [row for row, n in rows.items() if n + change.get(row, 0) > 0]
        if gone and dice.random() < 0.45:
            row = dice.choice(gone)
            change[row] = change.get(row, 0) - 1
        else:
            row = (dice.choice("ab"), value(dice))
            change[row] = change.get(row, 0) + dice.randint(1, 2)
    return {row: n for row, n in change.items() if n}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", REDUCERS)
def test_003_what_pieces_of_a_change_add_up_to_is_the_step(name: str, kind: str) -> None:
    operator = ReduceByKey(REDUCERS[name], (KEY,))
    assert operator.partial is not None
    for seed in range(30):
        dice = Random(seed)
        whole, halves = operator.init(ZSet()), operator.init(ZSet())
        rows: dict[Any, int] = {}
        for _ in range(6):
            change = changes(dice, KINDS[kind], rows, dice.randint(1, 8))
            pieces: list[dict[Any, int]] = [{}, {}, {}]
            for row, n in change.items():
                pieces[dice.randrange(3)][row] = n
            pairs = [pair for piece in pieces for pair in operator.partial(piece).items()]
            dice.shuffle(pairs)
            _, moved = operator.step(whole, trusted(change))
            assert trusted(operator.merge_partial(halves, pairs)) == moved
            assert halves.values == whole.values
            for row, n in change.items():
                rows[row] = rows.get(row, 0) + n
        assert operator.invariant(ZSet(rows), halves)


def test_what_is_added_is_in_the_journal() -> None:
    operator = ReduceByKey(r.sum(VALUE), (KEY,))
    assert operator.partial is not None
    cells = operator.init(ZSet.of([("a", 1), ("b", 2)]))
    before = dict(cells.values)
    cells.begin()
    operator.merge_partial(
        cells, operator.partial({("a", 5): 1, ("b", 2): -1, ("c", 3): 1}).items()
    )
    assert cells.values != before
    cells.rollback()
    assert cells.values == before


def test_a_group_that_owes_rows_is_refused() -> None:
    operator = ReduceByKey(r.count(), (KEY,))
    assert operator.partial is not None
    added = operator.partial({("a", 1): -1})
    assert added == {"a": (-1,)}
    with pytest.raises(Exception, match="taken"):
        operator.merge_partial(Cells(), added.items())


@pytest.mark.parametrize(
    "reducer", [r.max(VALUE), r.median(VALUE), r.Reducer(0, lambda a, x: a + x[1])]
)
def test_other_reducers_have_no_halves(reducer: Any) -> None:
    assert ReduceByKey(reducer, (KEY,)).partial is None
