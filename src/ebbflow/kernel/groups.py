"""The cells of groups as columns: how many rows each group has, and what its reducers add up.

A group has a slot by its key, and a row of `cells`: first its size, the number of its rows, then
what `totals` say. A total is what is added for a row: its value in a column as often as the row
comes, or 1 for a value that is not None. A group without rows has no slot.

A step adds a change to the cells and gives the change of the results: for every group whose result
is another now, the old row goes and the new one comes. `Result` says how a result is read off the
cells. This equals the step of `ebbflow.reducer.running.ReduceByKey`.

All sums are exact, those of floats as well (`fixed`), and what is divided is rounded once. A sum
that would not fit raises `DoesNotFit`, with the cells as they were.

A minimum, a maximum and a count of different values are in the cells too; `Values` finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.fixed import HIGHEST, nearest, negated, plus, product, ratio, units_of
from ebbflow.kernel.hashing import (
    EMPTY,
    Words,
    WordTable,
    added,
    found_at,
    grown,
    hashed,
    is_full,
    taken_out,
)
from ebbflow.kernel.values import Looked, Values
from ebbflow.kernel.words import LARGEST, NULL

ADD, COUNT, ADD_FLOAT, COUNT_TRUE, ADD_SQUARE, SEEN, XOR = 0, 1, 2, 3, 4, 5, 6
CELLS = {ADD: 1, COUNT: 1, ADD_FLOAT: 2, COUNT_TRUE: 1, ADD_SQUARE: 2, SEEN: 1, XOR: 1}
"""How many cells each takes. What is SEEN is written by `Values`."""
TOTAL, TOTAL_OR_NULL, MEAN, FLOAT_TOTAL, FLOAT_MEAN, ALL, ANY, VARIANCE = 0, 1, 2, 3, 4, 5, 6, 7
SMALL = 8
"""Of so many rows a step needs no memory of its own to remember what it did."""
NONE = np.empty(0, np.int64)
MANY = 1000
"""How often a float is added at once."""
LARGEST_ROOT = 3_037_000_499
"""The largest number whose square has 63 bits."""
EXACT = 1 << 53
"""Up to this, every int is a float."""
FINE, OVERFLOWS, NEGATIVE = 0, 1, 2
_WHY = {
    OVERFLOWS: "a sum of too many bits",
    NEGATIVE: "a group of fewer rows than none",
}


class Addend(NamedTuple):
    """What is added for a row: `how`, and the number of the column that it is read from."""

    how: int
    column: int


class Result(NamedTuple):
    """How a result is read off cells: `how`, from the cell of a sum and that of its size. Of a
    variance, `less` is by how much less than the size its sum of squares is divided."""

    how: int
    total: int
    size: int = 0
    less: int = 0


class Groups:
    """Groups by keys of `width` words; `looked` says which values of a group are counted.

    >>> sums = Groups(1, [Addend(ADD, 0)], [Result(TOTAL, 1)])
    >>> keys, ones = np.array([[7], [8], [7]]), np.ones(3, np.int64)
    >>> out, weights = sums.step(keys, np.array([[10], [20], [30]]), ones)
    >>> out.tolist(), weights.tolist()
    ([[7, 8], [40, 20]], [1, 1])
    >>> out, weights = sums.step(np.array([[7]]), np.array([[10]]), np.array([-1]))
    >>> out.tolist(), weights.tolist()
    ([[7, 7], [40, 30]], [-1, 1])
    """

    __slots__ = ("cells", "epoch", "journal", "marks", "results", "room", "spare", "table",
                 "totals", "values")  # fmt: skip
    backing = None

    def __init__(
        self, width: int, totals: Sequence[Addend], results: Sequence[Result],
        looked: Sequence[Looked] = (),
    ) -> None:  # fmt: skip
        places = [1, *accumulate([CELLS[each.how] for each in totals], initial=1)]
        rows = [(*each, at) for each, at in zip(totals, places[1:], strict=False)]
        self.totals = np.array(rows, np.int64).reshape(-1, 3)
        self.results = np.array(results, np.int64).reshape(-1, 4)
        self.values = Values(looked) if looked else None
        self.table = WordTable(width)
        self.cells = np.zeros((len(self.table.keys), places[-1]), np.int64)
        self.marks = np.zeros(len(self.table.keys), np.int64)
        """The last step that touched each slot."""
        self.epoch = 0
        self.journal: list[StepNote] | None = None
        self.spare = StepNote(SMALL, places[-1])
        """For small steps, where no other is remembered."""
        one = np.zeros(1, np.float64)
        self.room = np.empty(len(self.results), np.int64), one, one.view(np.int64)
        """Where a loop writes the results of one group, and a float to read its bits."""

    def step(self, keys: Words, values: Words, weights: Words) -> tuple[Words, Words]:
        """Add rows, and give the change of the results: the words of each field, and weights."""
        self._fit()
        self.epoch += 1
        if len(keys) <= SMALL and not self.journal:
            note = self.spare
            note.count[0], note.empties = 0, True
        else:
            note = StepNote(len(keys), self.cells.shape[1])
        if self.journal is not None:
            self.journal.append(note)  # before anything is done, as an interrupt may come
        table, at = self.table, 0
        slots = NONE if self.values is None else np.empty(len(keys), np.int64)
        while True:
            at, status = _add(
                keys, values, weights, at, self.totals, self.cells, self.marks, self.epoch,
                note.touched, note.old, note.count, table.places, table.keys, table.free,
                table.state, slots,
            )  # fmt: skip
            if at == len(keys) or status != FINE:
                break
            table.grow()
            self._fit()
        touched, old = note.done
        counted = status == FINE and self.values is not None
        if counted and not self.values.step(slots, values, weights, touched, self.cells):  # type: ignore[union-attr]
            status = NEGATIVE
        if status == FINE:
            out = np.empty((keys.shape[1] + len(self.results), 2 * len(touched)), np.int64)
            signs = np.empty(2 * len(touched), np.int64)
            given, status, gone = _give(
                touched, old, self.cells, table.keys, self.results, out, signs, *self.room
            )
            note.empties = gone > 0
        if status != FINE:
            if counted:
                self.values.undo(1)  # type: ignore[union-attr]
            self._restore(note)
            self._release(touched)
        if self.journal is None:
            self._settle()
        if status != FINE:
            raise DoesNotFit(_WHY[status])
        if self.journal is None and note.empties:
            self._release(touched)
        return (out, signs) if given == len(signs) else (out[:, :given], signs[:given])

    def read(self) -> Words:
        """The results of all groups: the words of each field."""
        self._fit()
        slots = self.table.used()
        none = np.zeros((len(slots), self.cells.shape[1]), np.int64)
        out = np.empty((self.table.width + len(self.results), 2 * len(slots)), np.int64)
        signs = np.empty(2 * len(slots), np.int64)
        given, status, _ = _give(
            slots, none, self.cells, self.table.keys, self.results, out, signs, *self.room
        )
        assert status == FINE
        return out[:, :given]

    @property
    def looked(self) -> int:
        """How many reducers look at values."""
        return 0 if self.values is None else len(self.values.parts)

    def everything(self) -> tuple[Words, Words]:
        """The keys of all groups, and their cells."""
        slots = self.slots()
        return self.table.keys[slots], self.cells[slots]

    def slots(self) -> Words:
        """The slots of all groups."""
        self._fit()
        slots = self.table.used()
        return slots[self.cells[slots, 0] != 0]

    def has(self, keys: Words) -> Words:
        """Which of these keys have rows now."""
        self._fit()
        slots = self.table.find(keys)
        return (slots != EMPTY) & (self.cells[slots, 0] > 0)

    def __len__(self) -> int:
        return len(self.table)

    # ---- one epoch ----

    def begin(self) -> None:
        """Remember from here on what is done."""
        self.journal = []

    def commit(self) -> None:
        """Keep what was done since `begin`. Doing it twice is doing it once."""
        self._settle()
        for note in self.journal or ():
            if note.empties:
                self._release(note.done[0])
        self.journal = None

    def _settle(self) -> None:
        if self.values is not None:
            self.values = self.values.settled()

    def rollback(self) -> None:
        """Undo what was done since `begin`."""
        if self.values is not None:
            self.values.undo()
        for note in reversed(self.journal or []):
            self._restore(note)
        self.commit()

    def forget(self) -> None:
        """Have no epoch open, whatever it did."""
        self.journal = None

    def clear(self) -> None:
        """Have no groups."""
        self.table.clear()
        self.cells[:] = 0
        if self.values is not None:
            self.values.clear()

    # ---- slots ----

    def _fit(self) -> None:
        """Have cells for all slots; an interrupt may have come before they were made."""
        room = len(self.table.keys)
        if room == len(self.cells) == len(self.marks):
            return
        if room > len(self.cells):
            at, cells = len(self.cells), grown(self.cells, room)
            cells[at:] = 0
            self.cells = cells
        if room > len(self.marks):
            at, marks = len(self.marks), grown(self.marks, room)
            marks[at:] = 0
            self.marks = marks

    def _restore(self, note: StepNote) -> None:
        touched, old = note.done
        note.empties = True
        self.cells[touched] = old

    def _release(self, touched: Words) -> None:
        """Give back the slots of groups without rows. Their cells are zero: nothing is left."""
        _free(
            touched, self.cells, self.marks, self.table.places, self.table.keys, self.table.free,
            self.table.state,
        )  # fmt: skip
        self.table.shrink()


class StepNote:
    """What a step did: the slots that it touched, and the cells that they had."""

    __slots__ = ("count", "empties", "old", "touched")

    def __init__(self, most: int, width: int) -> None:
        self.touched = np.empty(most, np.int64)
        self.old = np.empty((most, width), np.int64)
        self.count = np.zeros(1, np.int64)
        """How many of them there are; the loop writes it."""
        self.empties = True
        """Whether some of them may have no rows now."""

    @property
    def done(self) -> tuple[Words, Words]:
        """The slots, and their old cells."""
        count = int(self.count[0])
        return self.touched[:count], self.old[:count]


@compiled
def _free(
    slots: Words, cells: Words, marks: Words, places: Words, keys: Words, free: Words, state: Words
) -> None:
    for i in range(len(slots)):
        slot = slots[i]
        if cells[slot, 0] == 0 and marks[slot] != -1:
            marks[slot] = -1
            for j in range(cells.shape[1]):
                cells[slot, j] = 0
            taken_out(slot, places, keys, free, state)


@compiled
def _add(
    keys: Words, values: Words, weights: Words, start: int, totals: Words, cells: Words,
    marks: Words, epoch: int, touched: Words, old: Words, done: Words, places: Words,
    store: Words, free: Words, state: Words, slots: Words,
) -> tuple[int, int]:  # fmt: skip
    """Add rows from one on to the cells of their groups: gives how far there was room, and whether
    all is fine. The old cells of each group are kept, and `done` says how many groups there are.
    Where there is room for it, `slots` are the groups of the rows."""
    count = done[0]
    width = cells.shape[1]
    telling = len(slots) > 0
    for i in range(start, len(keys)):
        if is_full(store, state):
            slot = found_at(keys, i, places, store)
            if slot == -1:
                return i, FINE
        else:
            slot = added(keys, i, hashed(keys, i), places, store, free, state)
        if marks[slot] != epoch:
            marks[slot] = epoch
            touched[count] = slot
            for j in range(width):
                old[count, j] = cells[slot, j]
            count += 1
            done[0] = count
        weight = weights[i]
        cells[slot, 0] += weight
        if telling:
            slots[i] = slot
        for j in range(len(totals)):
            how, value, at = totals[j, 0], values[i, totals[j, 1]], totals[j, 2]
            if value == NULL or how == SEEN:
                continue
            if how == COUNT or (how == COUNT_TRUE and value != 0):
                cells[slot, at] += weight
                continue
            if how == COUNT_TRUE:
                continue
            if how == XOR:
                if weight & 1:
                    cells[slot, at] ^= value
                continue
            if how == ADD_SQUARE:
                if abs(value) > LARGEST_ROOT:
                    return i, OVERFLOWS
                high, low = product(value * value, abs(weight))
                if weight < 0:
                    high, low = negated(high, low)
                cells[slot, at], cells[slot, at + 1] = plus(
                    cells[slot, at], cells[slot, at + 1], high, low
                )
                continue
            if how == ADD_FLOAT:
                fits, high, low = units_of(value)
                if not fits or abs(weight) > MANY:
                    return i, OVERFLOWS
                if weight < 0:
                    high, low = negated(high, low)
                for _ in range(abs(weight)):
                    cells[slot, at], cells[slot, at + 1] = plus(
                        cells[slot, at], cells[slot, at + 1], high, low
                    )
                    if abs(cells[slot, at]) > HIGHEST:
                        return i, OVERFLOWS
                continue
            if weight != 1 and weight != -1 and abs(value) > LARGEST // abs(weight):
                return i, OVERFLOWS
            more = value * weight
            was = cells[slot, at]
            if was > LARGEST - more if more > 0 else was < -LARGEST - more:
                return i, OVERFLOWS
            cells[slot, at] = was + more
    return len(keys), FINE


@inlined
def spread(total: Any, high: Any, low: Any, size: Any, less: Any) -> Any:
    """The variance of so many numbers, of which the sum and the sum of squares are known."""
    more_high, more_low = product(size, low)
    more_high = more_high + size * high
    less_high, less_low = product(abs(total), abs(total))
    less_high, less_low = negated(less_high, less_low)
    more_high, more_low = plus(more_high, more_low, less_high, less_low)
    return ratio(more_high, more_low, size * (size - less), 0)


@compiled
def _give(
    touched: Words, old: Words, cells: Words, keys: Words, results: Words, out: Words,
    signs: Words, now: Words, floats: Any, bits: Words,
) -> tuple[int, int, int]:  # fmt: skip
    """For each group that was touched, its old result with weight -1 and the new one with 1, if
    they differ. Gives how many rows these are, whether all is fine, and how many groups are empty
    now."""
    given = gone = 0
    width = keys.shape[1]
    for i in range(len(touched)):
        slot = touched[i]
        if cells[slot, 0] < 0:
            return given, NEGATIVE, gone
        start = given
        for side in range(2):
            row = old[i] if side == 0 else cells[slot]
            if row[0] == 0:
                gone += side
                continue
            for j in range(len(results)):
                how, at, of = results[j, 0], results[j, 1], results[j, 2]
                if how == TOTAL:
                    now[j] = row[at]
                elif row[of] <= results[j, 3]:
                    now[j] = NULL
                elif how == TOTAL_OR_NULL:
                    if row[at] == NULL:
                        return given, OVERFLOWS, gone
                    now[j] = row[at]
                elif how == ALL:
                    now[j] = 1 if row[at] == row[of] else 0
                elif how == ANY:
                    now[j] = 1 if row[at] > 0 else 0
                else:
                    if how == FLOAT_TOTAL:
                        found = nearest(row[at], row[at + 1])
                    elif how == FLOAT_MEAN:
                        found = ratio(row[at], row[at + 1], row[of], 74)
                    elif how == VARIANCE:
                        if row[at + 1] >= 1 << 31 or row[of] >= 1 << 31:
                            return given, OVERFLOWS, gone
                        found = spread(row[at], row[at + 1], row[at + 2], row[of], results[j, 3])
                    elif row[at] > EXACT or row[at] < -EXACT:
                        found = ratio(np.int64(-1 if row[at] < 0 else 0), row[at], row[of], 0)
                    else:
                        found = row[at] / row[of]
                    floats[0] = found + 0.0
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
    return given, FINE, gone
