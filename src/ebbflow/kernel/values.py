"""How often each value of a group is there: what a minimum, a maximum and a count of different
values need, so that a value may also go.

An *entry* is a value of one group that one reducer looks at, found by a hash table, with how often
it is there. For a minimum or a maximum, the entries of a group are in a *pairing heap* beside that:
each has a first child and a next sibling, no child comes before its parent, and so the first value
is at the root. To put one in takes one comparison, whatever the size; to take the root away takes
about as many as the logarithm of the size, on average. So the cost follows the change, also in a
group of a million rows.

An entry whose value is gone stays in its heap until it is at the root, and is used again where its
value comes back. When there are more of these than of others, all heaps are made anew.

Entries compare by a number that has the order of the values; NaN comes after all other floats, as
everywhere here. `ebbflow.kernel.groups.Groups` is the only one who uses this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.hashing import Words, WordTable, added, grown, hashed, is_full, taken_out
from ebbflow.kernel.words import NULL

DIFFERENT, GREATEST, LEAST = 0, 1, 2
COUNT, CHILD, NEXT, WHERE = range(4)
"""What is kept of an entry: how often its value is there, its links, and whether it is outside of
a heap (0), in one (1), or not used any more (2)."""
FEW_GONE = 1000
"""So many values that are gone are left where they are."""


class Looked(NamedTuple):
    """What one reducer looks at: for which result, the values of which column, whether these are
    floats, and in which cell of the group the result is."""

    how: int
    column: int
    floats: int
    cell: int


class Values:
    """The values of groups, which are numbers; see the module.

    >>> values = Values([Looked(GREATEST, 0, 0, 1)])
    >>> cells, group = np.zeros((1, 2), np.int64), np.zeros(2, np.int64)
    >>> values.step(group, np.array([[3], [8]]), np.ones(2, np.int64), group[:1], cells)
    True
    >>> values.step(group[:1], np.array([[8]]), np.array([-1]), group[:1], cells), cells.tolist()
    (True, [[0, 3]])
    """

    __slots__ = ("entries", "gone", "notes", "parts", "roots", "table")

    def __init__(self, parts: Sequence[Looked]) -> None:
        self.parts = np.array(parts, np.int64).reshape(-1, 4)
        self.notes: list[ValueNote] = []
        """What was done since it was last settled."""
        self.clear()

    def clear(self) -> None:
        """Have no values."""
        self.notes = []
        self.table = WordTable(2)
        self.entries = np.zeros((len(self.table.keys), 4), np.int64)
        self.roots = np.full(len(self.parts), -1, np.int64)
        """The first entry of each group, reducer by reducer."""
        self.gone = np.zeros(1, np.int64)
        """How many entries in heaps have a value that is gone."""

    def step(
        self, slots: Words, values: Words, weights: Words, touched: Words, cells: Words
    ) -> bool:
        """Count the values of rows, whose groups are `slots`, and write the results into the cells
        of the groups that were touched; says whether no value went more often than it came."""
        parts = self.parts
        if len(self.roots) < len(cells) * len(parts):
            at, roots = len(self.roots), grown(self.roots, len(cells) * len(parts))
            roots[at:] = -1
            self.roots = roots
        note = ValueNote(len(slots) * len(parts), int(self.gone[0]))
        self.notes.append(note)
        at, fine = 0, True
        while True:
            at, fine = _count(
                slots, values, weights, at, parts, cells, self.entries, self.roots, self.gone,
                note.done, note.count, self.table.places, self.table.keys, self.table.free,
                self.table.state, np.empty((1, 2), np.int64),
            )  # fmt: skip
            if at == len(slots) * len(parts) or not fine:
                break
            self.entries = grown(self.entries, self.table.next_size)
            self.table.grow()
        if fine:
            _show(
                touched, parts, cells, self.entries, self.roots, self.gone, note.done, note.count,
                self.table.keys,
            )  # fmt: skip
        return bool(fine)

    def times(self, slots: Words) -> Words:
        """How often the first value of each group is there, reducer by reducer."""
        width = len(self.parts)
        found = slots.reshape(-1, 1) * width + np.arange(width)
        roots = self.roots[found]
        return np.where(roots == -1, 0, self.entries[roots, COUNT])

    def undo(self, steps: int | None = None) -> None:
        """Have the values as before the last steps, or as when it was last settled. Doing it twice
        is doing it once."""
        for note in self.notes[: -1 - (steps or len(self.notes)) : -1]:
            _undo(
                note.done, note.count[0], self.parts, self.entries, self.roots, self.gone,
                self.table.keys,
            )  # fmt: skip

    def settled(self) -> Values:
        """Keep what is done, and give back entries that nobody needs; doing it twice is doing it
        once. What it gives has to be used from there on."""
        for note in self.notes:
            _give_back(
                note.done, note.count[0], self.entries, self.table.places, self.table.keys,
                self.table.free, self.table.state,
            )  # fmt: skip
        self.notes = []
        many = self.table.end > FEW_GONE
        if many and (2 * self.gone[0] > len(self.table) or not len(self.table)):
            return self._without_gone()
        return self

    def _without_gone(self) -> Values:
        """The same, with heaps made anew of the values that are there."""
        made = Values([Looked(*each) for each in self.parts.tolist()])
        used = self.table.used()
        there = used[self.entries[used, COUNT] > 0]
        slots = made.table.add(self.table.keys[there])
        made.entries = np.zeros((len(made.table.keys), 4), np.int64)
        made.entries[slots, COUNT] = self.entries[there, COUNT]
        made.roots = np.full(len(self.roots), -1, np.int64)
        _heap(slots, self.entries[there, WHERE], made.entries, made.roots, made.table.keys)
        return made

    def everything(self) -> tuple[Words, Words, Words]:
        """All values: of which group and reducer (its slot, times the number of reducers, and the
        number of the reducer), the word, and how often it is there."""
        used = self.table.used()
        there = used[self.entries[used, COUNT] > 0]
        of, orders = self.table.keys[there, 0], self.table.keys[there, 1]
        words = np.empty(len(orders), np.int64)
        _words(orders, self.parts[of % len(self.parts)], words)
        return of, words, self.entries[there, COUNT]

    def __len__(self) -> int:
        return len(self.table)


class ValueNote:
    """What a step did: the entries that it touched or took out of a heap, and how often each value
    was there."""

    __slots__ = ("count", "done")

    def __init__(self, most: int, gone: int) -> None:
        self.done = np.empty((2 * most + gone, 2), np.int64)
        self.count = np.zeros(1, np.int64)


# ---- the order of words ----


@inlined
def order_of(word: Any, how: Any, floats: Any) -> Any:
    """A number that is larger, the sooner a value is to be found."""
    if floats != 0 and word < 0:
        word = word ^ 0x7FFFFFFFFFFFFFFF
    return ~word if how == 2 else word


@inlined
def word_of(order: Any, how: Any, floats: Any) -> Any:
    """The word that has this number."""
    word = ~order if how == 2 else order
    if floats != 0 and word < 0:
        word = word ^ 0x7FFFFFFFFFFFFFFF
    return word


@compiled
def _words(orders: Words, parts: Words, words: Words) -> None:
    for i in range(len(orders)):
        words[i] = word_of(orders[i], parts[i, 0], parts[i, 2])


# ---- heaps ----


@inlined
def melded(a: int, b: int, entries: Words, keys: Words) -> Any:
    """Two heaps as one; gives its root."""
    if keys[a, 1] < keys[b, 1]:
        a, b = b, a
    entries[b, 2] = entries[a, 1]
    entries[a, 1] = b
    return a


@inlined
def put_in(entry: int, of: int, entries: Words, roots: Words, keys: Words) -> None:
    """Put an entry into its heap."""
    entries[entry, 1], entries[entry, 2], entries[entry, 3] = -1, -1, 1
    root = roots[of]
    roots[of] = entry if root == -1 else melded(root, entry, entries, keys)


@inlined
def without_root(root: int, entries: Words, keys: Words) -> Any:
    """The heap of all but the root: its children in pairs, and then all pairs."""
    child, pairs = entries[root, 1], -1
    while child != -1:
        one, other = child, entries[child, 2]
        if other == -1:
            entries[one, 2] = pairs
            pairs = one
            break
        child = entries[other, 2]
        one = melded(one, other, entries, keys)
        entries[one, 2] = pairs
        pairs = one
    found = -1
    while pairs != -1:
        one, pairs = pairs, entries[pairs, 2]
        entries[one, 2] = -1
        found = one if found == -1 else melded(found, one, entries, keys)
    entries[root, 1], entries[root, 3] = -1, 0
    return found


@compiled
def _heap(slots: Words, where: Words, entries: Words, roots: Words, keys: Words) -> None:
    for i in range(len(slots)):
        if where[i] == 1:
            put_in(slots[i], keys[slots[i], 0], entries, roots, keys)


# ---- one step ----


@compiled
def _count(
    slots: Words, values: Words, weights: Words, start: int, parts: Words, cells: Words,
    entries: Words, roots: Words, gone: Words, note: Words, done: Words, places: Words,
    keys: Words, free: Words, state: Words, key: Words,
) -> tuple[int, bool]:  # fmt: skip
    """Count values from one on; gives how far there was room, and whether all were there."""
    count = done[0]
    width = len(parts)
    for t in range(start, len(slots) * width):
        i, j = t // width, t % width
        how, value = parts[j, 0], values[i, parts[j, 1]]
        if value == NULL:
            continue
        if is_full(keys, state):
            done[0] = count
            return t, True
        key[0, 0] = slots[i] * width + j
        key[0, 1] = order_of(value, how, parts[j, 2])
        there = state[0] - state[1]
        entry = added(key, 0, hashed(key, 0), places, keys, free, state)
        if state[0] - state[1] > there:
            entries[entry, 0], entries[entry, 3] = 0, 0
        was = entries[entry, 0]
        now = was + weights[i]
        note[count, 0], note[count, 1] = entry, was
        count += 1
        done[0] = count
        entries[entry, 0] = now
        inside = entries[entry, 3] == 1
        if was <= 0 and now > 0:
            if how == 0:
                cells[slots[i], parts[j, 3]] += 1
            elif inside:
                gone[0] -= 1
            else:
                put_in(entry, key[0, 0], entries, roots, keys)
        elif was > 0 and now <= 0:
            if how == 0:
                cells[slots[i], parts[j, 3]] -= 1
            elif inside:
                gone[0] += 1
    for k in range(count):
        if entries[note[k, 0], 0] < 0:
            return len(slots) * width, False
    return len(slots) * width, True


@compiled
def _show(
    touched: Words, parts: Words, cells: Words, entries: Words, roots: Words, gone: Words,
    note: Words, done: Words, keys: Words,
) -> None:  # fmt: skip
    """Write the first value of each group into its cell, and take those that are gone out of the
    heaps on the way."""
    count = done[0]
    width = len(parts)
    for i in range(len(touched)):
        for j in range(width):
            how = parts[j, 0]
            if how == 0:
                continue
            of = touched[i] * width + j
            root = roots[of]
            while root != -1 and entries[root, 0] == 0:
                note[count, 0], note[count, 1] = root, 0
                count += 1
                root = without_root(root, entries, keys)
                gone[0] -= 1
            roots[of] = root
            found = NULL
            if root != -1:
                found = word_of(keys[root, 1], how, parts[j, 2])
            cells[touched[i], parts[j, 3]] = found
    done[0] = count


@compiled
def _undo(
    note: Words, count: int, parts: Words, entries: Words, roots: Words, gone: Words, keys: Words
) -> None:
    for i in range(count - 1, -1, -1):
        entry, was = note[i, 0], note[i, 1]
        now = entries[entry, 0]
        entries[entry, 0] = was
        if entries[entry, 3] == 1:
            if now > 0 and was <= 0:
                gone[0] += 1
            elif now <= 0 and was > 0:
                gone[0] -= 1
    for i in range(count):
        entry = note[i, 0]
        of = keys[entry, 0]
        if entries[entry, 0] > 0 and entries[entry, 3] == 0 and parts[of % len(parts), 0] != 0:
            put_in(entry, of, entries, roots, keys)


@compiled
def _give_back(
    note: Words, count: int, entries: Words, places: Words, keys: Words, free: Words, state: Words
) -> None:
    for i in range(count):
        entry = note[i, 0]
        if entries[entry, 0] == 0 and entries[entry, 3] == 0:
            entries[entry, 3] = 2
            taken_out(entry, places, keys, free, state)
