"""The cells of groups as columns: how many rows each group has, and what its reducers add up.

A group has a slot by its key, and a row of `cells`: first its size, the number of its rows, then
what `totals` say. A total is what is added for a row: its value in a column as often as the row
comes, or 1 for a value that is not None. A group without rows has no slot.

A step adds a change to the cells and gives the change of the results: for every group whose result
is another now, the old row goes and the new one comes. `Result` says how a result is read off the
cells. This equals the step of `ebbflow.reducer.running.ReduceByKey`.

All sums are exact, those of floats as well (`fixed`), and what is divided is rounded once. A sum
that would not fit raises `DoesNotFit`, with the cells as they were.

A minimum, a maximum and a count of different values are in the cells too; `Values` finds them, and
`Firsts` what comes first or last in an order. So is what a reducer keeps
that somebody wrote; `GroupFold` does its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, NoReturn

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.firsts import PlacedColumns, values_of
from ebbflow.kernel.folds import GroupFold
from ebbflow.kernel.group_loops import (
    ADD,
    ADD_FLOAT,
    ADD_SQUARE,
    ALL,
    ANY,
    CELLS,
    COUNT,
    COUNT_TRUE,
    DECIMAL_MEAN,
    DECIMAL_TOTAL,
    FINE,
    FLOAT_MEAN,
    FLOAT_TOTAL,
    MEAN,
    NEGATIVE,
    ONLY,
    OVERFLOWS,
    SEEN,
    STDDEV,
    TOTAL,
    TOTAL_OR_NULL,
    VARIANCE,
    XOR,
    free_groups,
    given_by_groups,
    step_of_groups,
)
from ebbflow.kernel.hashing import EMPTY, Words, WordTable, grown
from ebbflow.kernel.text_order import TextOrder
from ebbflow.kernel.values import Looked
from ebbflow.kernel.words import NULL

SMALL = 8
MANY_ROWS = 1 << 12
"""Steps of up to so many rows use memory that is there, and have room for what they may give."""
NOTHING = np.empty((1, 0), np.int64)
REFUSED = 3
WHY = {
    OVERFLOWS: "a sum of too many bits",
    REFUSED: "a step that Python would refuse, or an int of more than 64 bits",
    NEGATIVE: "a group of fewer rows than none",
}
__all__ = [
    "ADD", "ADD_FLOAT", "ADD_SQUARE", "ALL", "ANY", "CELLS", "COUNT", "COUNT_TRUE",
    "DECIMAL_MEAN", "DECIMAL_TOTAL", "FLOAT_MEAN", "FLOAT_TOTAL", "MEAN", "ONLY",
    "SEEN", "STDDEV", "TOTAL", "TOTAL_OR_NULL", "VARIANCE", "XOR", "Addend", "Groups", "Result",
    "StepNote",
]  # fmt: skip


class Addend(NamedTuple):
    """What is added for a row: `how`, and the number of the column that it is read from."""

    how: int
    column: int


class Result(NamedTuple):
    """How a result is read off cells: `how`, from the cell of a sum and that of its size. Of a
    variance or its root, `less` is by how much less than the size its sum of squares is divided; a
    total of Decimals has to be less than it, and one for a mean is multiplied by it."""

    how: int
    total: int
    size: int = 0
    less: int = 0


class Groups:
    """Groups by keys of `width` words; `looked` says which values of a group are counted, `placed`
    which are in an order, and `folds` are steps of reducers that have loops of their own.

    >>> sums = Groups(1, [Addend(ADD, 0)], [Result(TOTAL, 1)])
    >>> keys, ones = np.array([[7], [8], [7]]), np.ones(3, np.int64)
    >>> out, weights = sums.step(keys, np.array([[10], [20], [30]]), ones)
    >>> out.tolist(), weights.tolist()
    ([[7, 8], [40, 20]], [1, 1])
    >>> out, weights = sums.step(np.array([[7]]), np.array([[10]]), np.array([-1]))
    >>> out.tolist(), weights.tolist()
    ([[7, 7], [40, 30]], [-1, 1])
    """

    __slots__ = ("cells", "epoch", "folds", "journal", "marks", "results", "room", "spare", "table",
                 "totals", "values")  # fmt: skip
    backing = None

    def __init__(
        self, width: int, totals: Sequence[Addend], results: Sequence[Result],
        looked: Sequence[Looked] = (), placed: Sequence[PlacedColumns] = (),
        texts: TextOrder | None = None, folds: Sequence[GroupFold] = (),
    ) -> None:  # fmt: skip
        places = [1, *accumulate([CELLS[each.how] for each in totals], initial=1)]
        rows = [(*each, at) for each, at in zip(totals, places[1:], strict=False)]
        self.totals = np.array(rows, np.int64).reshape(-1, 3)
        self.results = np.array(results, np.int64).reshape(-1, 4)
        self.values = values_of(looked, placed, texts)
        self.folds = folds
        self.table = WordTable(width)
        self.cells = np.zeros((len(self.table.keys), places[-1]), np.int64)
        self.marks = np.zeros(len(self.table.keys), np.int64)
        """The last step that touched each slot."""
        self.epoch = 0
        self.journal: list[StepNote] | None = None
        self.spare = StepNote(SMALL, places[-1])
        """For the first step of an epoch."""
        one = np.zeros(1, np.float64)
        self.room = one, one.view(np.int64)
        """Where a loop writes a float to read its bits."""

    def step(self, keys: Words, values: Words, weights: Words) -> tuple[Words, Words]:
        """Add rows, and give the change of the results: the words of each field, and weights."""
        self.fit()
        self.epoch += 1
        note = self._note(len(keys))
        if self.journal is not None:
            self.journal.append(note)  # before anything is done, as an interrupt may come
        table, at, once = self.table, 0, self._at_once and len(keys) <= MANY_ROWS
        out, there = self._out(len(keys)) if once else NOTHING, len(table)
        while True:
            at, given, status, gone = step_of_groups(
                keys, values, weights, at, self.totals, self.cells, self.marks, self.epoch,
                note.touched, note.old, note.count, table.places, table.keys, table.free,
                table.state, table.hashes, note.slots, self.results, out, *self.room,
            )  # fmt: skip
            if at == len(keys) or status != FINE:
                break
            table.grow(table.size_after(at, len(table) - there, len(keys) - at))
            self.fit()
        if status == FINE and not self._fold(note, values, weights):
            status = REFUSED
        counted = status == FINE and self.values is not None
        if counted and not self._count(note, values, weights):
            status = NEGATIVE
        if status == FINE and not once:
            out = self._out(int(note.count[0]))
            given, status, gone = given_by_groups(
                note.touched, note.count[0], note.old, self.cells, table.keys, self.results, out,
                *self.room,
            )  # fmt: skip
        note.empties = gone > 0
        if status != FINE:
            if counted:
                self.values.undo(1)
            self.fail(note, status)
        if self.journal is None:
            self._settle()
            if gone:
                self.release(note)
        return out[:-1, :given], out[-1, :given]

    def fail(self, note: StepNote, status: int) -> NoReturn:
        """Have the cells as they were before a step that cannot be, and raise what is wrong."""
        self._restore(note)
        self.release(note)
        if self.journal is None:
            self._settle()
        raise DoesNotFit(WHY[status])

    def _note(self, rows: int) -> StepNote:
        """Where a step of so many rows writes what it did: what the last epoch had for that, where
        this epoch has not had it yet."""
        note = self.spare
        if self.journal or len(note.touched) < rows:
            note = StepNote(rows if rows > MANY_ROWS else 1 << rows.bit_length(), self.width)
            if rows <= MANY_ROWS and not self.journal:
                self.spare = note
        note.count[0], note.empties = 0, True
        return note

    def _out(self, groups: int) -> Words:
        """Room for the results of so many groups, as they were and as they are, and for weights."""
        return np.empty((self.table.width + len(self.results) + 1, 2 * groups), np.int64)

    @property
    def _at_once(self) -> bool:
        """Whether results are read off cells that one loop has written."""
        return self.values is None and not self.folds

    def _fold(self, note: StepNote, values: Words, weights: Words) -> bool:
        """Have the steps of folds on rows that were added."""
        slots, (touched, _) = note.slots[: len(weights)], note.done
        return all(fold.step(slots, values, weights, touched, self.cells) for fold in self.folds)

    def show(self, slots: Words) -> None:
        """Have the results of folds for groups whose cells were put there."""
        none = np.empty((0, 1), np.int64)
        for fold in self.folds:
            if not fold.step(none[:, 0], none, none[:, 0], slots, self.cells):
                raise DoesNotFit(WHY[REFUSED])

    def _count(self, note: StepNote, values: Words, weights: Words) -> bool:
        """Count the values of rows that were added."""
        slots = note.slots[: len(weights)]
        fine: bool = self.values.step(slots, values, weights, note.done[0], self.cells)
        return fine

    def put_values(
        self, number: int, of: Words, words: Words, times: Words, touched: Words
    ) -> None:
        """Have values of groups whose cells were put there: those of one reducer, each with the
        slot of its group and how often it is there. All groups that were `touched` show theirs."""
        side = np.full((len(of), self.values.width), NULL)
        side[:, self.values.columns_of(number)] = words
        if not self.values.step(of, side, times, touched, self.cells):
            raise DoesNotFit(WHY[NEGATIVE])
        self._settle()

    def read(self) -> Words:
        """The results of all groups: the words of each field."""
        self.fit()
        slots = self.table.used()
        none = np.zeros((len(slots), self.width), np.int64)
        out = self._out(len(slots))
        given, status, _ = given_by_groups(
            slots, len(slots), none, self.cells, self.table.keys, self.results, out, *self.room
        )
        assert status == FINE
        return out[:-1, :given]

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
        self.fit()
        slots = self.table.used()
        return slots[self.cells[slots, 0] != 0]

    def has(self, keys: Words) -> Words:
        """Which of these keys have rows now."""
        self.fit()
        slots = self.table.find(keys)
        return (slots != EMPTY) & (self.cells[slots, 0] > 0)

    @property
    def width(self) -> int:
        """How many cells a group has."""
        return int(self.cells.shape[1])

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
                self.release(note)
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

    def fit(self) -> None:
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

    def release(self, note: StepNote) -> None:
        """Give back the slots of groups without rows. Their cells are zero: nothing is left."""
        free_groups(
            note.done[0], self.cells, self.marks, self.table.places, self.table.keys,
            self.table.free, self.table.state,
        )  # fmt: skip
        self.table.shrink()


class StepNote:
    """What a step did: the slots that it touched, and the cells that they had. `slots` are those
    of all rows, one after the other."""

    __slots__ = ("count", "empties", "old", "slots", "touched")

    def __init__(self, most: int, width: int) -> None:
        self.slots = np.empty(most, np.int64)
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
