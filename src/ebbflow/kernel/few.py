"""Steps of a few rows: groups whose loop is given one argument.

To give a compiled loop twenty arrays takes Python longer than to add a row to a cell. So the arrays
that it needs are a *bundle*: their addresses and shapes in an array of ints, made once, and anew
when one of them is another. The rows are where the loop expects them, in arrays that are always the
same, and so is what it gives: who wants to keep that copies it before the next step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel.addresses import floats_at, rows_at, words_at
from ebbflow.kernel.compiled import compiled
from ebbflow.kernel.group_loops import FINE, step_of_groups
from ebbflow.kernel.groups import Groups
from ebbflow.kernel.hashing import Words

FEW = 8
"""How many rows a few are, at most."""
NO_ROOM = -1
GIVEN = 5
"""So many bits of what the loop gives say how many rows the change has."""


class FewSteps:
    """Steps of groups on rows that are in these arrays, as the first so many of them.

    >>> from ebbflow.kernel.groups import ADD, TOTAL, Addend, Result
    >>> sums = Groups(1, [Addend(ADD, 0)], [Result(TOTAL, 1)])
    >>> keys, values, weights = np.full((FEW, 1), 7), np.full((FEW, 1), 10), np.ones(FEW, np.int64)
    >>> step = FewSteps(sums, keys, values, weights)
    >>> given = step(1)
    >>> step.out[:6].tolist(), given
    ([7, 0, 10, 0, 1, 0], 1)
    >>> step.words(2, step(2)).tolist()
    [[7, 7], [10, 30], [-1, 1]]
    """

    __slots__ = ("bundle", "done", "given", "groups", "held", "out", "plain", "views")

    def __init__(self, groups: Groups, keys: Words, values: Words, weights: Words) -> None:
        self.groups = groups
        self.plain = groups.values is None and not groups.folds
        """Whether one loop does all of a step."""
        self.given = keys, values, weights
        height = groups.table.width + len(groups.results) + 1
        room: Any = np.zeros(height * 2 * FEW, np.int64)
        self.out = memoryview(room)
        """What the last step gave: the words of each field, and the weights, each with room for the
        old and the new result of every row of the step."""
        self.views = [
            room[: height * 2 * rows].reshape(height, 2 * rows) for rows in range(FEW + 1)
        ]
        self.held: tuple[Any, ...] = ()
        self._bind()

    def __call__(self, rows: int) -> int:
        """Add the first so many rows, and say how many rows the change of the results has."""
        groups = self.groups
        journal, table, note, held = groups.journal, groups.table, groups.spare, self.held
        if journal or not self.plain:
            return self._in_general(rows)
        if (
            held[0] is not table.keys or held[1] is not table.places or held[2] is not table.free
            or held[3] is not table.state or held[4] is not groups.cells
            or held[5] is not groups.marks or held[6] is not note
        ):  # fmt: skip
            self._bind()
            note = groups.spare
        self.done[0] = 0
        note.empties = True
        groups.epoch += 1
        if journal is not None:
            journal.append(note)  # before anything is done, as an interrupt may come
        found: int = few_of_groups(self.bundle, rows, groups.epoch)
        if found < 0:
            if found == NO_ROOM:
                return self._in_general(rows)
            groups.fail(note, NO_ROOM - found)
        if found < 1 << GIVEN:
            note.empties = False
        elif journal is None:
            groups.release(note)
        return found & ((1 << GIVEN) - 1)

    def words(self, rows: int, given: int) -> Words:
        """What a step of so many rows gave, in memory of its own: each field, and the weights."""
        found: Words = self.views[rows]
        return (found if given == 2 * rows else found[:, :given]).copy()

    def _bind(self) -> None:
        """Have a bundle of the arrays as they are. `held` comes last: an interrupt before that
        leaves arrays that are not those of the groups, and the next step makes a bundle."""
        groups = self.groups
        groups.fit()
        table, note = groups.table, groups.spare
        held = (
            table.keys, table.places, table.free, table.state, groups.cells, groups.marks, note,
        )  # fmt: skip
        arrays = (
            *self.given, groups.totals, groups.cells, groups.marks, note.touched, note.old,
            note.count, table.places, table.keys, table.free, table.state, table.hashes, note.slots,
            groups.results, self.views[-1], *groups.room,
        )  # fmt: skip
        shapes = [(each.ctypes.data, *each.shape, 1)[:3] for each in arrays]
        self.bundle = np.array(shapes, np.int64)
        count: Any = note.count
        self.done = memoryview(count)
        self.held = held

    def _in_general(self, rows: int) -> int:
        """The step as it is for any number of rows."""
        out, weights = self.groups.step(*[each[:rows] for each in self.given])
        given = len(weights)
        self.views[rows][:-1, :given], self.views[rows][-1, :given] = out, weights
        return given


@compiled
def few_of_groups(bundle: Words, rows: int, epoch: int) -> int:
    """`step_of_groups` for the first rows of a bundle: gives how many rows the change has, and
    behind these bits how many groups are empty now; or NO_ROOM, where nothing was done, or what is
    wrong, below zero."""
    store = rows_at(bundle[10, 0], bundle[10, 1], bundle[10, 2])
    state = words_at(bundle[12, 0], bundle[12, 1])
    if state[1] + len(store) - state[0] < rows:
        return -1
    out = rows_at(bundle[16, 0], bundle[16, 1], 2 * rows)
    _, given, status, gone = step_of_groups(
        rows_at(bundle[0, 0], rows, bundle[0, 2]),
        rows_at(bundle[1, 0], rows, bundle[1, 2]),
        words_at(bundle[2, 0], rows),
        0,
        rows_at(bundle[3, 0], bundle[3, 1], bundle[3, 2]),
        rows_at(bundle[4, 0], bundle[4, 1], bundle[4, 2]),
        words_at(bundle[5, 0], bundle[5, 1]),
        epoch,
        words_at(bundle[6, 0], bundle[6, 1]),
        rows_at(bundle[7, 0], bundle[7, 1], bundle[7, 2]),
        words_at(bundle[8, 0], bundle[8, 1]),
        words_at(bundle[9, 0], bundle[9, 1]),
        store,
        words_at(bundle[11, 0], bundle[11, 1]),
        state,
        words_at(bundle[13, 0], bundle[13, 1]),
        words_at(bundle[14, 0], bundle[14, 1]),
        rows_at(bundle[15, 0], bundle[15, 1], bundle[15, 2]),
        out,
        floats_at(bundle[17, 0], bundle[17, 1]),
        words_at(bundle[18, 0], bundle[18, 1]),
    )
    if status != FINE:
        return -1 - status
    return given | (gone << 5)
