"""Rows with weights as columns: added up, and the rows of an input.

The rows of an input are kept in two moves, as `ebbflow.engine.runtime.rows.Rows` keeps rows:
`prepare` looks at a change and changes nothing, `keep` writes final weights, so that doing it twice
is doing it once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel.compiled import compiled
from ebbflow.kernel.hashing import EMPTY, Words, WordTable, grown

NOTHING = np.empty(0, np.int64)


class RowTotals:
    """Rows of words, added up: each once, with a weight that is not zero.

    >>> totals = RowTotals(np.array([[7], [8], [7], [9]]), np.array([1, 1, 1, 0]))
    >>> totals.rows.tolist(), totals.weights.tolist()
    ([[7], [8]], [2, 1])
    """

    __slots__ = ("rows", "table", "weights")

    def __init__(self, rows: Words, weights: Words) -> None:
        self.table = WordTable(rows.shape[1])
        slots = self.table.add(rows)
        totals = np.zeros(self.table.end, np.int64)
        _add_up(slots, weights, totals)
        self.rows = self.table.keys[: self.table.end]
        self.weights = totals
        there = np.flatnonzero(totals)
        if len(there) < len(totals):
            self.rows, self.weights = self.rows[there], totals[there]
            self.table.remove(np.flatnonzero(totals == 0))


class RowTable:
    """The rows of an input, of `width` words, each with a weight that is not zero.

    >>> rows = RowTable(1)
    >>> rows.prepare(RowTotals(np.array([[7], [8]]), np.array([2, 1]))); rows.keep(); len(rows)
    2
    >>> rows.prepare(RowTotals(np.array([[7], [9]]), np.array([-2, -1]))).tolist()
    [1]
    """

    __slots__ = ("_after", "_slots", "_waiting", "table", "weights")

    def __init__(self, width: int) -> None:
        self.table = WordTable(width)
        self.weights = np.zeros(len(self.table.keys), np.int64)
        self._waiting: RowTotals | None = None
        self._slots = self._after = NOTHING

    def prepare(self, change: RowTotals) -> Any:
        """Be ready to add rows, and give the numbers of those whose weight would be negative; None
        where there are none."""
        self._waiting = None
        self._slots = self.table.find(change.rows)
        self._after = self.there(self._slots) + change.weights
        if len(self._after) and self._after.min() < 0:
            return np.flatnonzero(self._after < 0)
        self._waiting = change
        return None

    def there(self, slots: Words) -> Words:
        """The weights of slots; 0 of EMPTY."""
        return np.where(slots == EMPTY, 0, self.weights[slots])

    def keep(self) -> None:
        """Make what was prepared so. Doing it twice is doing it once."""
        change, slots, after = self._waiting, self._slots, self._after
        if change is None:
            return
        if not len(self.table):
            self.table = change.table
            self.weights = np.zeros(len(change.table.keys), np.int64)
            self.weights[self.table.find(change.rows)] = after
        else:
            new = np.flatnonzero(slots == EMPTY)
            slots[new] = self.table.add(change.rows[new])
            if len(self.table.keys) > len(self.weights):
                self.weights = grown(self.weights, len(self.table.keys))
            self.weights[slots] = after
            gone = self.table.find(change.rows[after == 0])
            self.table.remove(gone[gone != EMPTY])
        self._waiting = None

    def everything(self) -> tuple[Words, Words]:
        """All rows, and their weights."""
        slots = self.table.used()
        return self.table.keys[slots], self.weights[slots]

    def __len__(self) -> int:
        return len(self.table)


@compiled
def _add_up(slots: Words, weights: Words, totals: Words) -> None:
    for i in range(len(slots)):
        totals[slots[i]] += weights[i]
