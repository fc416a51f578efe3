"""Rows with weights as columns: added up, and the rows of an input.

The rows of an input are kept in two moves, as `ebbflow.engine.runtime.rows.Rows` keeps rows:
`prepare` looks at a change and changes no weight, `keep` writes final weights, so that doing it
twice is doing it once.
"""

from __future__ import annotations

import numpy as np

from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.few import FEW
from ebbflow.kernel.hashing import (
    BLOCK,
    EMPTY,
    Words,
    WordTable,
    added,
    is_full,
    look_ahead,
    taken_out,
)


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

    A change is looked up once. Rows that are new have a slot from then on, with the weight zero,
    until they are kept, or until the next change is looked up.

    >>> rows = RowTable(1)
    >>> rows.prepare(np.array([[7], [8], [7]]), np.ones(3, np.int64)).weights.tolist()
    [2, 1]
    >>> rows.keep(); len(rows)
    2
    >>> change = rows.prepare(np.array([[7], [9]]), np.array([-2, -1]))
    >>> change.wrong, change.there.tolist()
    (1, [2, 0])
    """

    __slots__ = ("_few", "_waiting", "table")

    def __init__(self, width: int) -> None:
        self.table = WordTable(width, beside=2)
        """Beside each row: its weight, and which row of the last change it is."""
        self._waiting: LookedUp | None = None
        self._few = LookedUp(FEW)
        """For changes of a few rows."""

    def prepare(self, rows: Words, weights: Words) -> LookedUp:
        """Be ready to add rows, unless a weight would be negative. What it gives is good until the
        next time."""
        if self._waiting is not None:
            self._drop_waiting()
        count, table, at = len(rows), self.table, 0
        change = self._few if count <= FEW else LookedUp(count)
        change.count[0] = 0  # before it waits, as an interrupt may come
        self._waiting = change
        if count > len(table.keys):
            table.reserve(count)
        while True:
            at, change.wrong, change.zeros = _look_up(
                rows, weights, at, table.places, table.keys, table.free, table.state, table.hashes,
                change.found, change.count,
            )  # fmt: skip
            if at == count:
                return change
            table.grow()

    def keep(self) -> None:
        """Make what was prepared so. Doing it twice is doing it once."""
        change = self._waiting
        if change is not None and change.wrong == EMPTY:
            table = self.table
            if _write(change.found, change.count, table.keys, table.width):
                self._drop_waiting()
            self._waiting = None

    def _drop_waiting(self) -> None:
        """Give back the slots of the last change whose rows have no weight."""
        change, table = self._waiting, self.table
        if change is not None:
            _drop(change.found, change.count, table.places, table.keys, table.free, table.state)
            self._waiting = None
            table.shrink()

    def everything(self) -> tuple[Words, Words]:
        """All rows, and their weights."""
        slots = self.table.used()
        slots = slots[self._weights(slots) != 0]
        return self.table.words(slots), self._weights(slots)

    def _weights(self, slots: Words) -> Words:
        """How often the rows of these slots are there."""
        return self.table.keys[slots, self.table.width]

    def __len__(self) -> int:
        new = 0
        if self._waiting is not None:
            slots = self._waiting.found[: self._waiting.count[0], 0]
            new = int((self._weights(slots) == 0).sum())
        return len(self.table) - new


class LookedUp:
    """A change of rows that was looked up, with equal rows added up."""

    __slots__ = ("count", "found", "wrong", "zeros")

    def __init__(self, most: int) -> None:
        self.found = np.empty((most, 4), np.int64)
        """Of each row: its slot, where it is in the change, what that adds to its weight, and what
        the weight is then."""
        self.count = np.zeros(1, np.int64)
        self.wrong = self.zeros = EMPTY
        """The first row that would have a negative weight, and how many change nothing."""

    @property
    def first(self) -> Words:
        """Where each is in the change, for the first time."""
        return self.found[: self.count[0], 1]

    @property
    def weights(self) -> Words:
        """How often each comes, or goes."""
        return self.found[: self.count[0], 2]

    @property
    def there(self) -> Words:
        """How often each was there."""
        done = self.found[: self.count[0]]
        return done[:, 3] - done[:, 2]


@inlined
def _checked(found: Words, count: int) -> tuple[int, int]:
    """Compute what the weights will be; gives the first that is negative, or EMPTY, and how many
    rows change nothing."""
    zeros = 0
    for i in range(count):
        found[i, 3] += found[i, 2]
        zeros += found[i, 2] == 0
    for i in range(count):
        if found[i, 3] < 0:
            return i, zeros
    return -1, zeros


@compiled
def _look_up(
    rows: Words, weights: Words, start: int, places: Words, store: Words, free: Words,
    state: Words, hashes: Words, found: Words, done: Words,
) -> tuple[int, int, int]:  # fmt: skip
    """Find or make the slot of each row from one on. Gives how far there was room, and behind the
    last row, which weight would be negative, if one would, and how many change nothing."""
    count = done[0]
    weight, number = rows.shape[1], rows.shape[1] + 1
    begin = end = start
    for i in range(start, len(rows)):
        if is_full(store, state):
            done[0] = count
            return i, -1, 0
        if i == end:
            begin, end = i, min(i + BLOCK, len(rows))
            look_ahead(rows, begin, end, places, store, hashes)
        there = state[0] - state[1]
        slot = added(rows, i, hashes[i - begin], places, store, free, state)
        if state[0] - state[1] > there:
            store[slot, weight] = 0
            store[slot, number] = count
        at = store[slot, number]
        if at < count and found[at, 0] == slot:
            found[at, 2] += weights[i]
        else:
            store[slot, number] = count
            found[count, 0], found[count, 1], found[count, 2] = slot, i, weights[i]
            found[count, 3] = store[slot, weight]
            count += 1
    done[0] = count
    wrong, zeros = _checked(found, count)
    return len(rows), wrong, zeros


@compiled
def _write(found: Words, done: Words, store: Words, width: int) -> int:
    """Have the new weights, and say how many are zero."""
    gone = 0
    for i in range(done[0]):
        store[found[i, 0], width] = found[i, 3]
        gone += found[i, 3] == 0
    return gone


@compiled
def _drop(
    found: Words, done: Words, places: Words, store: Words, free: Words, state: Words
) -> None:
    """Give back the slots of rows without weight: they are among those that will have none, or
    had none."""
    count, done[0] = done[0], 0
    for i in range(count):
        slot, weight = found[i, 0], found[i, 3]
        if (weight == 0 or weight == found[i, 2]) and store[slot, state[2]] == 0:
            taken_out(slot, places, store, free, state)


@compiled
def _add_up(slots: Words, weights: Words, totals: Words) -> None:
    for i in range(len(slots)):
        totals[slots[i]] += weights[i]
