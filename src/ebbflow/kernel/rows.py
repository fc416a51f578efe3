"""Rows with weights as columns: those of an input.

They are kept in two moves, as `ebbflow.engine.runtime.rows.Rows` keeps rows: `prepare` looks at a
change and changes nothing, `keep` writes final weights, so that doing it twice is doing it once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel.hashing import EMPTY, Words, WordTable, grown

NOTHING = np.empty(0, np.int64)


class RowTable:
    """Rows of `width` words, each with a weight that is not zero.

    >>> rows = RowTable(1)
    >>> rows.prepare(np.array([[7], [8]]), np.array([2, 1])); rows.keep(); len(rows)
    2
    >>> rows.prepare(np.array([[7], [9]]), np.array([-2, -1])).tolist()
    [1]
    """

    __slots__ = ("_after", "_rows", "table", "weights")

    def __init__(self, width: int) -> None:
        self.table = WordTable(width)
        self.weights = np.zeros(len(self.table.keys), np.int64)
        self._rows: Words = np.empty((0, width), np.int64)
        self._after: Words = NOTHING

    def prepare(self, rows: Words, weights: Words) -> Any:
        """Be ready to add rows, each given once, and give those whose weight would be negative, by
        their numbers; None where there are none."""
        self._rows, self._after = rows, weights
        if len(self.table):
            slots = self.table.find(rows)
            there = np.where(slots == EMPTY, 0, self.weights[slots])
            self._after = there + weights
        if len(self._after) and self._after.min() < 0:
            negative = np.flatnonzero(self._after < 0)
            self._rows, self._after = rows[:0], NOTHING
            return negative
        return None

    def there(self, rows: Words) -> Words:
        """How often rows are there."""
        slots = self.table.find(rows)
        return np.where(slots == EMPTY, 0, self.weights[slots])

    def keep(self) -> None:
        """Make what was prepared so. Doing it twice is doing it once."""
        rows, after = self._rows, self._after
        if not len(rows):
            return
        room = self.table.room(len(rows))
        if room > len(self.weights):
            self.weights = grown(self.weights, room)
        slots = self.table.add(rows)
        self.weights[slots] = after
        if after.min() == 0:
            self.table.remove(slots[after == 0])
        self._rows, self._after = rows[:0], NOTHING

    def everything(self) -> tuple[Words, Words]:
        """All rows, and their weights."""
        slots = self.table.used()
        return self.table.keys[slots], self.weights[slots]

    def __len__(self) -> int:
        return len(self.table)
