"""The cells of groups as columns: how many rows each group has, and what its reducers add up.

A group has a slot by its key, and a row of `cells`: first its size, the number of its rows, then
what `totals` say. A total is what is added for a row: its value in a column as often as the row
comes, or 1 for a value that is not None. A group without rows has no slot.

A step adds a change to the cells and gives the change of the results: for every group whose result
is another now, the old row goes and the new one comes. `Result` says how a result is read off the
cells. This equals the step of `ebbflow.reducer.running.ReduceByKey` for counts, sums and means.

All sums are exact, those of floats as well (`fixed`). One that would not fit raises `DoesNotFit`,
with the cells as they were; so does a mean whose sum is beyond 2**53, where dividing floats would
round twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.compiled import compiled
from ebbflow.kernel.fixed import HIGHEST, nearest, negated, plus, units_of
from ebbflow.kernel.hashing import EMPTY, Words, WordTable, grown
from ebbflow.kernel.words import NULL

ADD, COUNT, ADD_FLOAT = 0, 1, 2
CELLS = {ADD: 1, COUNT: 1, ADD_FLOAT: 2}
"""How many cells each takes."""
TOTAL, TOTAL_OR_NULL, MEAN, FLOAT_TOTAL = 0, 1, 2, 3
NOTHING = np.empty(0, np.int64)
LARGEST = (1 << 63) - 1
MANY = 1000
"""How often a float is added at once."""
FINE, OVERFLOWS, NEGATIVE, INEXACT = 0, 1, 2, 3
_WHY = {
    OVERFLOWS: "a sum of too many bits",
    NEGATIVE: "a group of fewer rows than none",
    INEXACT: "a mean of a sum beyond 2**53",
}


class Addend(NamedTuple):
    """What is added for a row: `how`, and the number of the column that it is read from."""

    how: int
    column: int


class Result(NamedTuple):
    """How a result is read off cells: `how`, from the cell of a sum and that of its size."""

    how: int
    total: int
    size: int = 0


class Groups:
    """Groups by keys of `width` words.

    >>> sums = Groups(1, [Addend(ADD, 0)], [Result(TOTAL, 1)])
    >>> keys, ones = np.array([[7], [8], [7]]), np.ones(3, np.int64)
    >>> out, weights = sums.step(keys, np.array([[10], [20], [30]]), ones)
    >>> out.tolist(), weights.tolist()
    ([[7, 8], [40, 20]], [1, 1])
    >>> out, weights = sums.step(np.array([[7]]), np.array([[10]]), np.array([-1]))
    >>> out.tolist(), weights.tolist()
    ([[7, 7], [40, 30]], [-1, 1])
    """

    __slots__ = ("cells", "epoch", "journal", "marks", "results", "table", "totals")
    backing = None

    def __init__(self, width: int, totals: Sequence[Addend], results: Sequence[Result]) -> None:
        places = [1, *accumulate([CELLS[each.how] for each in totals], initial=1)]
        rows = [(*each, at) for each, at in zip(totals, places[1:], strict=False)]
        self.totals = np.array(rows, np.int64).reshape(-1, 3)
        self.results = np.array(results, np.int64).reshape(-1, 3)
        self.table = WordTable(width)
        self.cells = np.zeros((len(self.table.keys), places[-1]), np.int64)
        self.marks = np.zeros(len(self.table.keys), np.int64)
        """The last step that touched each slot."""
        self.epoch = 0
        self.journal: list[tuple[Words, Words]] | None = None

    def step(self, keys: Words, values: Words, weights: Words) -> tuple[Words, Words]:
        """Add rows, and give the change of the results: the words of each field, and weights."""
        n = len(keys)
        slots = self._slots(keys)
        self.epoch += 1
        touched = np.empty(n, np.int64)
        old = np.empty((n, self.cells.shape[1]), np.int64)
        count, status = _add(
            slots, values, weights, self.totals, self.cells, self.marks, self.epoch, touched, old
        )
        touched, old = touched[:count], old[:count]
        if status == FINE:
            out = np.empty((keys.shape[1] + len(self.results), 2 * count), np.int64)
            signs = np.empty(2 * count, np.int64)
            given, status = _give(
                touched, old, self.cells, self.table.keys, self.results, out, signs
            )
        if status != FINE:
            self._restore(touched, old)
            self._release(np.unique(slots))
            raise DoesNotFit(_WHY[status])
        if self.journal is None:
            self._release(touched)
        else:
            self.journal.append((touched, old))
        return out[:, :given], signs[:given]

    def read(self) -> Words:
        """The results of all groups: the words of each field."""
        slots = self.table.used()
        none = np.zeros((len(slots), self.cells.shape[1]), np.int64)
        out = np.empty((self.table.width + len(self.results), 2 * len(slots)), np.int64)
        signs = np.empty(2 * len(slots), np.int64)
        given, status = _give(slots, none, self.cells, self.table.keys, self.results, out, signs)
        assert status == FINE
        return out[:, :given]

    def everything(self) -> tuple[Words, Words]:
        """The keys of all groups, and their cells."""
        slots = self.table.used()
        return self.table.keys[slots], self.cells[slots]

    def has(self, keys: Words) -> Words:
        """Which of these keys have rows now."""
        slots = self.table.find(keys)
        return (slots != EMPTY) & (self.cells[slots, 0] > 0)

    def __len__(self) -> int:
        return len(self.table)

    # ---- one epoch ----

    def begin(self) -> None:
        """Remember from here on what is done."""
        self.journal = []

    def commit(self) -> None:
        """Keep what was done since `begin`."""
        journal, self.journal = self.journal or [], None
        self._release(_together([touched for touched, _ in journal]))

    def rollback(self) -> None:
        """Undo what was done since `begin`."""
        journal, self.journal = self.journal or [], None
        for touched, old in reversed(journal):
            self._restore(touched, old)
        self._release(_together([touched for touched, _ in journal]))

    def forget(self) -> None:
        """Have no epoch open, whatever it did."""
        self.journal = None

    def clear(self) -> None:
        """Have no groups."""
        self.table.clear()
        self.cells[:] = 0

    # ---- slots ----

    def _slots(self, keys: Words) -> Words:
        slots = self.table.add(keys)
        at, room = len(self.cells), len(self.table.keys)
        if room > at:
            self.cells, self.marks = grown(self.cells, room), grown(self.marks, room)
            self.cells[at:] = 0
            self.marks[at:] = 0
        return slots

    def _restore(self, touched: Words, old: Words) -> None:
        self.cells[touched] = old

    def _release(self, touched: Words) -> None:
        """Give back the slots of groups without rows. Their cells are zero: nothing is left."""
        empty = touched[self.cells[touched, 0] == 0]
        if len(empty):
            self.cells[empty] = 0
            self.table.remove(empty)


def _together(several: list[Words]) -> Words:
    """The slots of several steps, each once."""
    return several[0] if len(several) == 1 else np.unique(np.concatenate([NOTHING, *several]))


@compiled
def _add(
    slots: Words, values: Words, weights: Words, totals: Words, cells: Words, marks: Words,
    epoch: int, touched: Words, old: Words,
) -> tuple[int, int]:  # fmt: skip
    """Add every row to the cells of its group. Gives how many groups were touched, and whether all
    is fine; the old cells of each are kept."""
    count = 0
    width = cells.shape[1]
    for i in range(len(slots)):
        slot = slots[i]
        if marks[slot] != epoch:
            marks[slot] = epoch
            touched[count] = slot
            for j in range(width):
                old[count, j] = cells[slot, j]
            count += 1
        weight = weights[i]
        cells[slot, 0] += weight
        for j in range(len(totals)):
            value, at = values[i, totals[j, 1]], totals[j, 2]
            if value == NULL:
                continue
            if totals[j, 0] == 1:
                cells[slot, at] += weight
                continue
            if totals[j, 0] == 2:
                fits, high, low = units_of(value)
                if not fits or abs(weight) > MANY:
                    return count, 1
                if weight < 0:
                    high, low = negated(high, low)
                for _ in range(abs(weight)):
                    cells[slot, at], cells[slot, at + 1] = plus(
                        cells[slot, at], cells[slot, at + 1], high, low
                    )
                    if abs(cells[slot, at]) > HIGHEST:
                        return count, 1
                continue
            if weight != 1 and weight != -1 and abs(value) > LARGEST // abs(weight):
                return count, 1
            more = value * weight
            was = cells[slot, at]
            if was > LARGEST - more if more > 0 else was < -LARGEST - more:
                return count, 1
            cells[slot, at] = was + more
    return count, 0


@compiled
def _give(
    touched: Words, old: Words, cells: Words, keys: Words, results: Words, out: Words,
    signs: Words,
) -> tuple[int, int]:  # fmt: skip
    """For each group that was touched, its old result with weight -1 and the new one with 1, if
    they differ."""
    given = 0
    width = keys.shape[1]
    now = np.empty(len(results), np.int64)
    floats = np.empty(1, np.float64)
    bits = floats.view(np.int64)
    for i in range(len(touched)):
        slot = touched[i]
        if cells[slot, 0] < 0:
            return given, 2
        start = given
        for side in range(2):
            row = old[i] if side == 0 else cells[slot]
            if row[0] == 0:
                continue
            for j in range(len(results)):
                how, at, of = results[j, 0], results[j, 1], results[j, 2]
                if how == 0:
                    now[j] = row[at]
                elif row[of] == 0:
                    now[j] = NULL
                elif how == 1:
                    now[j] = row[at]
                elif how == 3:
                    floats[0] = nearest(row[at], row[at + 1]) + 0.0
                    now[j] = bits[0]
                else:
                    if row[at] > 9007199254740992 or row[at] < -9007199254740992:
                        return given, 3
                    floats[0] = row[at] / row[of] + 0.0
                    now[j] = bits[0]
            if side == 1 and given > start:
                same = True
                for j in range(len(results)):
                    same = same and out[width + j, start] == now[j]
                if same:
                    given = start
                    continue
            for j in range(width):
                out[j, given] = keys[slot, j]
            for j in range(len(results)):
                out[width + j, given] = now[j]
            signs[given] = 2 * side - 1
            given += 1
    return given, 0
