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
and to follow them again. This is what `ebbflow.kernel.top.TopRows` is made of, and
`ebbflow.kernel.firsts.Firsts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.hashing import (
    BLOCK,
    Words,
    WordTable,
    added,
    grown,
    is_full,
    look_ahead,
    taken_out,
)
from ebbflow.kernel.heaps import (
    BEYOND,
    NOWHERE,
    NUMBER,
    WITHIN,
    is_sooner,
    put_in,
    without_root,
)
from ebbflow.kernel.text_order import TextOrder

WEIGHT, FOLLOWED, NOTED, GONE, MOVED, SHOWN, FENCES = range(7)
"""Of each entry: its weight, the one that the fences know, the last step that noted it, the next in
the list of those that are gone, the next in the list of those of which others are shown than before
the step, and how many were. Then, for each fence: how many are inside, the links of the heap, and
which one that is."""
INSIDE, CHILD, NEXT, WHERE = range(4)
NOT_LISTED, LAST = -2, -1
FEW_GONE = 1000
"""So many values that are gone are left where they are."""


class Ranked:
    """Values of groups; `kinds` says what their words are, `limits` how many are before each fence.

    >>> ranked = Ranked([NUMBER], [2])
    >>> rows = np.array([[0, 5], [0, 9], [0, 7]])     # of the group 0
    >>> ranked.step(rows, np.ones(3, np.int64), 1)
    True
    >>> entries, weights = ranked.moved()
    >>> ranked.table.keys[entries, 1].tolist(), weights.tolist()
    ([7, 9], [1, 1])
    >>> ranked.step(rows[1:2], np.array([-1]), 1)
    True
    >>> entries, weights = ranked.moved()
    >>> sorted(zip(ranked.table.keys[entries, 1].tolist(), weights.tolist()))
    [(5, 1), (9, -1)]
    """

    __slots__ = ("entries", "fences", "kinds", "limits", "lists", "notes", "step_number", "table",
                 "texts")  # fmt: skip

    def __init__(
        self, kinds: Sequence[int], limits: Sequence[int], texts: TextOrder | None = None
    ) -> None:
        self.kinds = np.array(kinds, np.int64)
        self.limits = np.array(limits, np.int64)
        self.texts = texts if max(kinds, default=NUMBER) != NUMBER else None
        self.step_number = 0
        self.clear()

    def clear(self) -> None:
        """Have no values."""
        self.notes: list[WeightNote] = []
        """What was done since it was last settled."""
        self.lists = np.array([LAST, LAST, 0, 0], np.int64)
        """The first entry that is gone, the first that has moved and how many have, and how many
        places in heaps are those of entries that are gone."""
        self.table = WordTable(1 + len(self.kinds))
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
            at, fine = _weigh(
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
        self._follow(note, True)
        return True

    def fit(self, groups: int) -> None:
        """Have fences for so many groups; an interrupt may have come before they were made."""
        if len(self.fences) < groups:
            at, fences = len(self.fences), grown(self.fences, groups)
            fences[at:] = 0
            for root in (2, 3):
                fences[at:, root::3] = -1
            self.fences = fences

    def _follow(self, note: WeightNote, shown: bool) -> None:
        """Have the fences stand where the weights say. Doing it twice is doing it once."""
        _follow(
            note.done, note.count[0], shown, self.entries, self.fences, self.limits, self.lists,
            self.table.keys, self.kinds, *self._texts,
        )  # fmt: skip

    @property
    def _texts(self) -> tuple[Words, Words]:
        if self.texts is None:
            return NO_TEXTS
        self.texts.follow()
        return self.texts.places, self.texts.pool

    def moved(self) -> tuple[Words, Words]:
        """The entries of which the last step shows more, or fewer, and how many. Shown are those
        inside the first fence, and not inside the second."""
        room = int(self.lists[2])
        found, changes = np.empty(room, np.int64), np.empty(room, np.int64)
        count = _moved(self.entries, self.lists, found, changes)
        return found[:count], changes[:count]

    def shown(self) -> tuple[Words, Words]:
        """All entries that are shown, and how often."""
        used = self.table.used()
        weights = self.entries[used, FENCES + INSIDE].copy()
        if len(self.limits) > 1:
            weights -= self.entries[used, FENCES + 4 + INSIDE]
        there = np.flatnonzero(weights)
        return used[there], weights[there]

    def everything(self) -> tuple[Words, Words]:
        """The entries that are there, and their weights."""
        used = self.table.used()
        there = used[self.entries[used, WEIGHT] > 0]
        return there, self.entries[there, WEIGHT]

    def undo(self, steps: int | None = None) -> None:
        """Have the weights as before the last steps, or as when it was last settled. Doing it twice
        is doing it once."""
        notes = self.notes[: -1 - (steps or len(self.notes)) : -1]
        for note in notes:
            _restore(note.done, note.count[0], self.entries)
        for note in notes:
            self._follow(note, False)

    def settle(self) -> None:
        """Keep what is done, and give back the entries that are gone. Doing it twice is doing it
        once."""
        many = self.table.end > FEW_GONE
        if many and 2 * self.lists[3] > len(self.table) * len(self.limits):
            _heap_anew(
                self.table.used(), self.entries, self.fences, self.lists, self.table.keys,
                self.kinds, *self._texts,
            )  # fmt: skip
        table = self.table
        _give_back(self.entries, self.lists, table.places, table.keys, table.free, table.state)
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


NO_TEXTS = np.zeros((0, 3), np.int64), np.zeros(0, np.uint8)


# ---- weights ----


@compiled
def _weigh(
    rows: Words, weights: Words, start: int, step: int, entries: Words, note: Words, done: Words,
    places: Words, keys: Words, free: Words, state: Words, hashes: Words,
) -> tuple[int, bool]:  # fmt: skip
    """Add weights from one row on; gives how far there was room, and whether all are fine."""
    count, fine = done[0], True
    begin = end = start
    for i in range(start, len(rows)):
        if is_full(keys, state):
            done[0] = count
            return i, True
        if i == end:
            begin, end = i, min(i + BLOCK, len(rows))
            look_ahead(rows, begin, end, places, keys, entries, hashes)
        there = state[0] - state[1]
        entry = added(rows, i, hashes[i - begin], places, keys, free, state)
        if state[0] - state[1] > there:
            for k in range(entries.shape[1]):
                entries[entry, k] = 0
            entries[entry, 3], entries[entry, 4] = NOT_LISTED, NOT_LISTED
        was = entries[entry, 0]
        if entries[entry, 2] != step:
            entries[entry, 2] = step
            note[count, 0], note[count, 1] = entry, was
            count += 1
        now = was + weights[i]
        fine = fine and not ((was ^ now) & (weights[i] ^ now) < 0)
        entries[entry, 0] = now
    done[0] = count
    for i in range(count):
        fine = fine and entries[note[i, 0], 0] >= 0
    return len(rows), fine


@compiled
def _restore(note: Words, count: int, entries: Words) -> None:
    for i in range(count):
        entries[note[i, 0], 0] = note[i, 1]


@compiled
def _give_back(
    entries: Words, lists: Words, places: Words, keys: Words, free: Words, state: Words
) -> None:
    """Give back the slots of entries that are gone and in no heap."""
    entry, lists[0] = lists[0], LAST
    while entry != LAST:
        following = entries[entry, 3]
        entries[entry, 3] = NOT_LISTED
        if entries[entry, 0] == 0 and in_no_heap(entry, entries):
            taken_out(entry, places, keys, free, state)
        entry = following


@inlined
def in_no_heap(entry: int, entries: Words) -> Any:
    """Whether an entry is in the heaps of no fence."""
    for at in range(FENCES + 3, entries.shape[1], 4):
        if entries[entry, at] != NOWHERE:
            return False
    return True


@inlined
def list_gone(entry: int, entries: Words, lists: Words) -> None:
    """Have an entry without a weight given back, if it is in no heap."""
    if entries[entry, 3] == NOT_LISTED and in_no_heap(entry, entries):
        entries[entry, 3] = lists[0]
        lists[0] = entry


# ---- heaps made anew ----


@compiled
def _heap_anew(
    used: Words, entries: Words, fences: Words, lists: Words, keys: Words, kinds: Words,
    places: Words, pool: Words,
) -> None:  # fmt: skip
    """Make all heaps of the entries that are there; those of others are given back."""
    for f in range((fences.shape[1] - 1) // 3):
        at = FENCES + 4 * f
        for i in range(len(used)):
            group = keys[used[i], 0]
            fences[group, 3 * f + 2], fences[group, 3 * f + 3] = -1, -1
            entries[used[i], at + 3] = NOWHERE
        for i in range(len(used)):
            entry = used[i]
            if entries[entry, 0] > 0:
                where = WITHIN if entries[entry, at] > 0 else BEYOND
                group, root = keys[entry, 0], 3 * f + 1 + where
                fences[group, root] = put_in(
                    entry, fences[group, root], at, where, entries, keys, kinds, places, pool
                )
    for i in range(len(used)):
        if entries[used[i], 0] == 0:
            list_gone(used[i], entries, lists)
    lists[3] = 0


# ---- fences ----


@compiled
def _follow(
    note: Words, count: int, shown: bool, entries: Words, fences: Words, limits: Words,
    lists: Words, keys: Words, kinds: Words, places: Words, pool: Words,
) -> None:  # fmt: skip
    """Have the fences of the groups of these entries stand where the weights say; `shown` is
    whether it is asked then what has moved."""
    drop_moved(entries, lists)
    for i in range(count):
        entry = note[i, 0]
        group = keys[entry, 0]
        was, now = entries[entry, 1], entries[entry, 0]
        entries[entry, 1] = now
        fences[group, 0] += np.int64(now > 0) - np.int64(was > 0)
        for f in range(len(limits)):
            at, limit = FENCES + 4 * f, limits[f]
            where = entries[entry, at + 3]
            if where == NOWHERE:
                if now > 0:
                    fences[group, 3 * f + 3] = put_in(
                        entry, fences[group, 3 * f + 3], at, BEYOND, entries, keys, kinds, places,
                        pool,
                    )  # fmt: skip
                continue
            lists[3] += np.int64(now == 0) - np.int64(was == 0)
            if where == WITHIN:
                inside, most = entries[entry, at], min(now, limit)
                if inside == min(was, limit) or inside > most:
                    set_inside(entry, most, f, entries, fences, lists, keys)
        if now == 0:
            list_gone(entry, entries, lists)
    for i in range(count):
        for f in range(len(limits)):
            balance(
                keys[note[i, 0], 0], f, entries, fences, limits, lists, keys, kinds, places, pool
            )
    if not shown:
        drop_moved(entries, lists)


@inlined
def set_inside(
    entry: int, inside: int, f: int, entries: Words, fences: Words, lists: Words, keys: Words
) -> None:
    """Have so many of an entry inside."""
    at = FENCES + 4 * f
    if entries[entry, 4] == NOT_LISTED:
        entries[entry, 4], lists[1] = lists[1], entry
        entries[entry, 5] = shown_of(entry, entries)
        lists[2] += 1
    fences[keys[entry, 0], 3 * f + 1] += inside - entries[entry, at]
    entries[entry, at] = inside


@inlined
def shown_of(entry: int, entries: Words) -> Any:
    """How many of an entry are inside the first fence, and not inside the second."""
    if entries.shape[1] > FENCES + 4:
        return entries[entry, FENCES] - entries[entry, FENCES + 4]
    return entries[entry, FENCES]


@inlined
def balance(
    group: int, f: int, entries: Words, fences: Words, limits: Words, lists: Words, keys: Words,
    kinds: Words, places: Words, pool: Words,
) -> None:  # fmt: skip
    """Have as many inside a fence as should be: the first ones."""
    at, limit = FENCES + 4 * f, limits[f]
    total, within, beyond = 3 * f + 1, 3 * f + 2, 3 * f + 3
    while True:
        for where in range(WITHIN, BEYOND + 1):
            root = fences[group, total + where]
            while root != -1 and entries[root, 0] == 0:
                rest = without_root(root, at, where, entries, keys, kinds, places, pool)
                lists[3] -= 1
                list_gone(root, entries, lists)
                root = rest
            fences[group, total + where] = root
        last, first = fences[group, within], fences[group, beyond]
        more = limit - fences[group, total]
        if more < 0:
            inside = entries[last, at]
            set_inside(last, max(inside + more, 0), f, entries, fences, lists, keys)
            if inside + more <= 0:
                fences[group, within] = without_root(
                    last, at, WITHIN, entries, keys, kinds, places, pool
                )
                fences[group, beyond] = put_in(
                    last, first, at, BEYOND, entries, keys, kinds, places, pool
                )
            continue
        crosses = first != -1 and last != -1
        crosses = crosses and is_sooner(first, last, keys, kinds, places, pool)
        if more > 0 and not crosses and last != -1:
            left = min(entries[last, 0], limit) - entries[last, at]
            if left > 0:
                set_inside(
                    last, entries[last, at] + min(left, more), f, entries, fences, lists, keys
                )
                continue
        if crosses or (more > 0 and first != -1):
            fences[group, beyond] = without_root(
                first, at, BEYOND, entries, keys, kinds, places, pool
            )
            fences[group, within] = put_in(
                first, last, at, WITHIN, entries, keys, kinds, places, pool
            )
            set_inside(first, min(entries[first, 0], limit), f, entries, fences, lists, keys)
            continue
        break


# ---- what has moved ----


@inlined
def drop_moved(entries: Words, lists: Words) -> None:
    """Have none that has moved."""
    entry = lists[1]
    while entry != LAST:
        following = entries[entry, 4]
        entries[entry, 4] = NOT_LISTED
        entry = following
    lists[1], lists[2] = LAST, 0


@compiled
def _moved(entries: Words, lists: Words, found: Words, changes: Words) -> int:
    """Write down what has moved, once."""
    count, entry = 0, lists[1]
    while entry != LAST:
        change = shown_of(entry, entries) - entries[entry, 5]
        if change != 0:
            found[count], changes[count] = entry, change
            count += 1
        entry = entries[entry, 4]
    drop_moved(entries, lists)
    return count
