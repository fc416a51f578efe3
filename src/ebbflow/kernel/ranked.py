"""The values of groups in an order, with a fence behind the first few of each group.

An *entry* is a value of one group, of one or several words, found by a hash table, with its weight:
how often it is there. A *fence* stands behind the first so many of a group, each value counted as
often as it is there. Of an entry it knows how many are *inside*. The entries of a group are in two
heaps for each fence: those with some inside, the last of them at the root, and the others, the
first of them at the root. So a step compares a value that is new with those two, and where one
crosses the fence, another may have to cross it the other way. Only the last entry that is inside
can be so in part, and it is at the root.

An entry that is gone stays in its heap (`ebbflow.kernel.heaps`) until it is at the root, or comes
back; when there are more of these than of others, all heaps are made anew. So the cost follows the
change: not the size of a group, nor how many are inside.

A fence behind none leaves one heap, with the first entry of the group at its root.

Where the fences stand is known from the weights alone. So the way back is to have the old weights,
and to follow them again. This is what `ebbflow.kernel.top.FirstRows` is made of, and
`ebbflow.kernel.firsts.Firsts`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ebbflow.kernel.hashing import Words, WordTable, grown
from ebbflow.kernel.heaps import NUMBER, members
from ebbflow.kernel.ranked_loops import (
    CHANGES,
    FENCES,
    LAST,
    STALE,
    WEIGHT,
    follow,
    give_back,
    heap_anew,
    restore,
    weigh,
    write_delta,
)
from ebbflow.kernel.text_order import NO_TEXTS, TextOrder

FEW_GONE = 1000
"""So many values that are gone are left where they are."""


class Ranked:
    """Values of groups; `compared` says how their words compare, `limits` how many are before each
    fence.

    >>> ranked = Ranked([NUMBER], [2])
    >>> rows = np.array([[0, 5], [0, 9], [0, 7]])     # of the group 0
    >>> ranked.step(rows, np.ones(3, np.int64), 1)
    True
    >>> entries, weights = ranked.delta()
    >>> ranked.table.keys[entries, 1].tolist(), weights.tolist()
    ([7, 9], [1, 1])
    >>> ranked.step(rows[1:2], np.array([-1]), 1)
    True
    >>> entries, weights = ranked.delta()
    >>> sorted(zip(ranked.table.keys[entries, 1].tolist(), weights.tolist()))
    [(5, 1), (9, -1)]
    """

    __slots__ = ("compared", "entries", "fences", "limits", "lists", "notes", "step_number",
                 "table", "texts")  # fmt: skip

    def __init__(
        self, compared: Sequence[int], limits: Sequence[int], texts: TextOrder | None = None
    ) -> None:
        self.compared = np.array(compared, np.int64)
        self.limits = np.array(limits, np.int64)
        self.texts = texts if max(compared, default=NUMBER) != NUMBER else None
        self.step_number = 0
        self.clear()

    def clear(self) -> None:
        """Have no values."""
        self.notes: list[WeightNote] = []
        """What was done since it was last settled."""
        self.lists = np.array([LAST, LAST, 0, 0], np.int64)
        self.table = WordTable(1 + len(self.compared))
        count = len(self.limits)
        self.entries = np.zeros((len(self.table.keys), FENCES + 4 * count), np.int64)
        self.fences = np.zeros((0, 1 + 3 * count), np.int64)
        """Of each group: how many entries it has, and for each fence how many are inside, and the
        roots of its heaps."""

    def step(self, rows: Words, weights: Words, groups: int) -> bool:
        """Add values, each behind the slot of its group, of which there are so many at most; says
        whether no weight is negative then, or too large. It has changed nothing if not."""
        self.fit(groups)
        self.step_number += 1
        note = WeightNote(len(rows))
        self.notes.append(note)
        at, fine = 0, True
        while True:
            at, fine = weigh(
                rows, weights, at, self.step_number, self.entries, note.done, note.count,
                self.table.places, self.table.keys, self.table.free, self.table.state,
                self.table.hashes,
            )  # fmt: skip
            if at == len(rows) or not fine:
                break
            self.entries = grown(self.entries, self.table.next_size)
            self.table.grow()
        if not fine:
            self.undo(1)
            return False
        self._follow(note.done[: note.count[0]], True)
        return True

    def fit(self, groups: int) -> None:
        """Have fences for so many groups; an interrupt may have come before they were made."""
        if len(self.fences) < groups:
            at, fences = len(self.fences), grown(self.fences, groups)
            fences[at:] = 0
            for root in (2, 3):
                fences[at:, root::3] = -1
            self.fences = fences

    def _follow(self, done: Words, shown: bool) -> None:
        """Have the fences stand where the weights say, of all entries that may have another weight
        than the fences know. Doing it twice is doing it once."""
        follow(
            done, shown, self.entries, self.fences, self.limits, self.lists,
            self.table.keys, self.compared, *self._texts,
        )  # fmt: skip

    @property
    def _texts(self) -> tuple[Words, Words]:
        return NO_TEXTS if self.texts is None else self.texts.followed

    def delta(self) -> tuple[Words, Words]:
        """The entries of which the last step shows more, or fewer, and how many. Shown are those
        inside the first fence, and not inside the second."""
        room = int(self.lists[CHANGES])
        found, changes = np.empty(room, np.int64), np.empty(room, np.int64)
        count = write_delta(self.entries, self.lists, found, changes)
        return found[:count], changes[:count]

    def shown(self) -> tuple[Words, Words]:
        """All entries that are shown, and how often."""
        used = self.table.used()
        weights = self.entries[used, FENCES].copy()
        if len(self.limits) > 1:
            weights -= self.entries[used, FENCES + 4]
        there = np.flatnonzero(weights)
        return used[there], weights[there]

    def everything(self) -> tuple[Words, Words]:
        """The entries that are there, and their weights."""
        used = self.table.used()
        there = used[self.entries[used, WEIGHT] > 0]
        return there, self.entries[there, WEIGHT]

    def held(self, groups: Words) -> tuple[Words, Words]:
        """The entries of some groups that are there: of which of these groups each is, and the
        entry."""
        owners, entries = members(self.fences[groups, 2:4], FENCES, self.entries, self.table.end)
        there = self.weights(entries) > 0
        return owners[there], entries[there]

    def weights(self, entries: Words) -> Words:
        """How often the values of these entries are there."""
        return self.entries[entries, WEIGHT]

    def inside(self, entries: Words) -> Words:
        """How many of these entries are before the first fence."""
        return self.entries[entries, FENCES]

    def noted(self) -> Words:
        """The entries that were touched since it was last settled, and the weights that they had
        then."""
        if not self.notes:
            return np.empty((0, 2), np.int64)
        done = np.concatenate([note.done[: note.count[0]] for note in self.notes])
        _, first = np.unique(done[:, 0], return_index=True)
        return done[first]

    def undo(self, steps: int | None = None) -> None:
        """Have the weights as before the last steps, or as when it was last settled. Doing it twice
        is doing it once."""
        notes = self.notes[: -1 - (steps or len(self.notes)) : -1]
        if notes:
            done = np.concatenate([note.done[: note.count[0]] for note in notes])
            restore(done, self.entries)
            self._follow(done, False)

    def settle(self) -> None:
        """Keep what is done, and give back the entries that are gone. Doing it twice is doing it
        once."""
        many = self.table.end > FEW_GONE
        if many and 2 * self.lists[STALE] > len(self.table) * len(self.limits):
            heap_anew(
                self.table.used(), self.entries, self.fences, self.lists, self.table.keys,
                self.compared, *self._texts,
            )  # fmt: skip
        table = self.table
        give_back(self.entries, self.lists, table.places, table.keys, table.free, table.state)
        self.notes = []
        table.shrink()

    def __len__(self) -> int:
        return len(self.table)


class WeightNote:
    """The entries that a step touched, and the weights that they had."""

    __slots__ = ("count", "done")

    def __init__(self, most: int) -> None:
        self.done = np.empty((most, 2), np.int64)
        self.count = np.zeros(1, np.int64)
