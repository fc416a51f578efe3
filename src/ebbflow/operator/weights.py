"""Operators that ask how often a row is there: every row once, and one bag without another.

They are not linear: what a change does depends on the weight the row had. So they keep the weights
of their rows in cells, and a step looks at the cells of the changed rows only.
"""

from __future__ import annotations

from typing import Any

from ebbflow.change import BAG
from ebbflow.operator.operator import Operator
from ebbflow.operator.relation import TWO_BAGS, Bag, sides
from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import not_there
from ebbflow.zset import ZSet, trusted


class Distinct(Operator[Bag, Bag, Bag, Bag]):
    """Every row once; see `distinct`. Unless it is of a `bag`, weights may be negative."""

    input = BAG
    output = BAG

    def __init__(self, bag: bool = False) -> None:
        self.bag = bag

    def f(self, x: Bag) -> Bag:
        return ZSet.of(set(x))

    def init(self, x: Bag) -> Cells[Any, int]:
        return Cells(x.items())

    def step(self, state: Any, change: Bag) -> tuple[Any, Bag]:
        return state, trusted(self.update(state, change))

    def update(self, state: Any, change: Any) -> dict[Any, int]:
        """Take a change in, and give the rows that came or went altogether."""
        values, old, out = state.values, dict[Any, Any](), dict[Any, int]()
        get = values.get
        if state.journal is not None:
            state.journal.append(old)
        for row, weight in change.items():
            was = get(row, 0)
            now = was + weight
            old[row] = was or ABSENT
            if now:
                values[row] = now
            else:
                del values[row]
            if now > 0:
                if was <= 0:
                    out[row] = 1
            else:
                if was > 0:
                    out[row] = -1
                if now and self.bag:
                    raise not_there(row)
        return out

    def read(self, state: Any) -> dict[Any, int]:
        """The whole output, from the state."""
        return {row: 1 for row, weight in state.everything().items() if weight > 0}

    def keys(self, change: Bag) -> set[Any]:
        """The rows whose weight a step with this change touches."""
        return set(change)

    def accepts(self, state: Any, change: Bag) -> bool:
        get = state.values.get
        return self.input.is_change(change) and all(
            weight > 0 or get(row, 0) + weight >= 0 for row, weight in change.items()
        )

    def __repr__(self) -> str:
        return "distinct()"


def distinct() -> Operator[Bag, Bag, Bag, Bag]:
    """Every row that is there, once.

    >>> distinct().open(ZSet.of("aab")).send(ZSet({"a": -1, "b": -1, "c": 2}))
    ZSet({'b': -1, 'c': 1})
    """
    return Distinct()


class BagDifference(Operator[tuple[Bag, Bag], Any, Bag, Bag]):
    """The rows of the first without those of the second; see `difference`."""

    input = TWO_BAGS
    output = BAG

    def f(self, x: tuple[Bag, Bag]) -> Bag:
        left, right = x
        return ZSet({row: max(n - right.weight(row), 0) for row, n in left.items()})

    def init(self, x: tuple[Bag, Bag]) -> Cells[Any, tuple[int, int]]:
        left, right = x
        return Cells((row, (left.weight(row), right.weight(row))) for row in {*left, *right})

    def step(self, state: Any, change: Any) -> tuple[Any, Bag]:
        left, right = sides(change)
        get, new, out = state.values.get, {}, {}
        for row in dict.fromkeys((*left, *right)):
            a, b = get(row, (0, 0))
            n, m = a + left.weight(row), b + right.weight(row)
            new[row] = (n, m) if n or m else ABSENT
            delta = max(n - m, 0) - max(a - b, 0)
            if delta:
                out[row] = delta
        state.swap(new)
        return state, trusted(out)

    def keys(self, change: Any) -> set[Any]:
        """The rows whose weights a step with this change touches."""
        left, right = sides(change)
        return {*left, *right}

    def accepts(self, state: Any, change: Any) -> bool:
        get = state.values.get
        return self.input.is_change(change) and all(
            get(row, (0, 0))[side] + weight >= 0
            for side, own in enumerate(sides(change))
            for row, weight in own.items()
        )

    def __repr__(self) -> str:
        return "difference()"


def difference() -> Operator[tuple[Bag, Bag], Any, Bag, Bag]:
    """The rows of the first bag without those of the second: `max(n - m, 0)` of each. (EXCEPT ALL.)

    A bag never holds a row less than no times, so this is not the difference of Z-sets: a row that
    the second has more often than the first is absent, and comes back only when the second has lost
    enough of it.

    >>> from ebbflow.change import Second
    >>> live = difference().open((ZSet.of("a"), ZSet({"a": 2})))
    >>> live.send(Second(ZSet({"a": -1}))), live.send(Second(ZSet({"a": -1})))
    (ZSet({}), ZSet({'a': 1}))
    """
    return BagDifference()
