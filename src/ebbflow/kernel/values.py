"""How often each value of a group is there: what a minimum, a maximum and a count of different
values need, so that a value may also go.

An *entry* is a value of one group that one reducer looks at, found by a hash table, with how often
it is there. The entries of a group are in a heap beside that (`ebbflow.kernel.heaps`), with the one
that comes first at the root. So the cost follows the change, also in a group of a million rows; and
from a group its values are found, all of them, by a walk through its heap. A count of different
values needs the heap for that alone.

An entry whose value is gone stays in its heap until it is at the root, and is used again where its
value comes back. When there are more of these than of others, all heaps are made anew.

Entries compare by a number that has the order of the values (`ebbflow.kernel.word_order`).
`ebbflow.kernel.groups.Groups` is the only one who uses this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.hashing import Words, WordTable, added, grown, hashed, is_full, taken_out
from ebbflow.kernel.heaps import BEYOND, NOWHERE, WHERE, members, put_in, without_root
from ebbflow.kernel.text_order import NO_TEXTS, TextOrder
from ebbflow.kernel.word_order import WordOrder, number_of, word_of
from ebbflow.kernel.words import NULL

COUNT = 0
"""Of an entry, how often its value is there; then what `ebbflow.kernel.heaps` says."""
GIVEN_BACK = 3
"""In the place of a heap that an entry is in: its slot is given back."""
FEW_GONE = 1000
"""So many values that are gone are left where they are."""


class Looked(NamedTuple):
    """What one reducer looks at: the values of which column, in which cell of the group its result
    is, and in which order the first value is that; without an order it is how many different ones
    there are."""

    column: int
    cell: int
    order: WordOrder | None = None

    @property
    def words(self) -> tuple[int, ...]:
        """The same, for loops."""
        order = self.order or WordOrder("int", True)
        return self.column, self.cell, int(self.order is not None), order.how, order.compared


class Values:
    """The values of groups, which are numbers; see the module.

    >>> values = Values([Looked(0, 1, WordOrder("int", True))])
    >>> cells, group = np.zeros((1, 2), np.int64), np.zeros(2, np.int64)
    >>> values.step(group, np.array([[3], [8]]), np.ones(2, np.int64), group[:1], cells)
    True
    >>> values.step(group[:1], np.array([[8]]), np.array([-1]), group[:1], cells), cells.tolist()
    (True, [[0, 3]])
    """

    __slots__ = ("entries", "gone", "looked", "notes", "parts", "roots", "table", "texts")

    def __init__(self, looked: Sequence[Looked], texts: TextOrder | None = None) -> None:
        self.looked = looked
        self.parts = np.array([each.words for each in looked], np.int64).reshape(-1, 5)
        ordered = (each.order.form for each in looked if each.order is not None)
        self.texts = texts if "text" in ordered else None
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
        parts, texts = self.parts, self._texts
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
                self.table.state, np.empty((1, 2), np.int64), *texts,
            )  # fmt: skip
            if at == len(slots) * len(parts) or not fine:
                break
            self.entries = grown(self.entries, self.table.next_size)
            self.table.grow()
        if fine:
            _show(
                touched, parts, cells, self.entries, self.roots, self.gone, note.done, note.count,
                self.table.keys, *texts,
            )  # fmt: skip
        return bool(fine)

    @property
    def _texts(self) -> tuple[Words, Words]:
        return NO_TEXTS if self.texts is None else self.texts.followed

    @property
    def width(self) -> int:
        """How many columns it is given at least."""
        return 1 + max((each.column for each in self.looked), default=-1)

    def columns_of(self, number: int) -> tuple[int, ...]:
        """The columns that one reducer looks at."""
        return (self.looked[number].column,)

    def times(self, slots: Words) -> Words:
        """How often the first value of each group is there, reducer by reducer."""
        width = len(self.parts)
        found = slots.reshape(-1, 1) * width + np.arange(width)
        roots = self.roots[found]
        return np.where(roots == -1, 0, self.entries[roots, COUNT])

    def held(self, number: int, slots: Words) -> tuple[Words, Words, Words]:
        """The values of some groups that one reducer looks at: of which of these groups each is,
        its word, the only one, and how often it is there."""
        roots = self.roots[slots * len(self.parts) + number].reshape(-1, 1)
        owners, entries = members(roots, 0, self.entries, self.table.end)
        there = np.flatnonzero(self.entries[entries, COUNT] > 0)
        entries = entries[there]
        words = self._words(entries, self.parts[np.full(len(entries), number)])
        return owners[there], words.reshape(-1, 1), self.entries[entries, COUNT]

    def undo(self, steps: int | None = None) -> None:
        """Have the values as before the last steps, or as when it was last settled. Doing it twice
        is doing it once."""
        for note in self.notes[: -1 - (steps or len(self.notes)) : -1]:
            _undo(
                note.done, note.count[0], self.parts, self.entries, self.roots, self.gone,
                self.table.keys, *self._texts,
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
        made = Values(self.looked, self.texts)
        used = self.table.used()
        there = used[self.entries[used, COUNT] > 0]
        slots = made.table.add(self.table.keys[there])
        made.entries = np.zeros((len(made.table.keys), 4), np.int64)
        made.entries[slots, COUNT] = self.entries[there, COUNT]
        made.roots = np.full(len(self.roots), -1, np.int64)
        _heap(slots, made.parts, made.entries, made.roots, made.table.keys, *self._texts)
        return made

    def everything(self, *, gone: bool = False) -> tuple[Words, Words, Words]:
        """All values: of which group and reducer (its slot, times the number of reducers, and the
        number of the reducer), the word, and how often it is there; also those that are `gone`, and
        still have a place."""
        used = self.table.used()
        there = used if gone else used[self.entries[used, COUNT] > 0]
        of = self.table.keys[there, 0]
        words = self._words(there, self.parts[of % len(self.parts)])
        return of, words, self.entries[there, COUNT]

    def _words(self, entries: Words, parts: Words) -> Words:
        words = np.empty(len(entries), np.int64)
        _words(self.table.keys[entries, 1], parts, words)
        return words

    def __len__(self) -> int:
        return len(self.table)


class ValueNote:
    """What a step did: the entries that it touched or took out of a heap, and how often each value
    was there."""

    __slots__ = ("count", "done")

    def __init__(self, most: int, gone: int) -> None:
        self.done = np.empty((2 * most + gone, 2), np.int64)
        self.count = np.zeros(1, np.int64)


@compiled
def _words(numbers: Words, parts: Words, words: Words) -> None:
    for i in range(len(numbers)):
        words[i] = word_of(numbers[i], parts[i, 3])


@inlined
def _put(
    entry: int, of: int, parts: Words, entries: Words, roots: Words, keys: Words, places: Words,
    pool: Words,
) -> None:  # fmt: skip
    """Put an entry into its heap."""
    compared = parts[of % len(parts), 4:]
    roots[of] = put_in(entry, roots[of], 0, BEYOND, entries, keys, compared, places, pool)


@compiled
def _heap(
    slots: Words, parts: Words, entries: Words, roots: Words, keys: Words, places: Words,
    pool: Words,
) -> None:  # fmt: skip
    for i in range(len(slots)):
        _put(slots[i], keys[slots[i], 0], parts, entries, roots, keys, places, pool)


# ---- one step ----


@compiled
def _count(
    slots: Words, values: Words, weights: Words, start: int, parts: Words, cells: Words,
    entries: Words, roots: Words, gone: Words, note: Words, done: Words, places: Words,
    keys: Words, free: Words, state: Words, key: Words, text_places: Words, pool: Words,
) -> tuple[int, bool]:  # fmt: skip
    """Count values from one on; gives how far there was room, and whether all were there."""
    count = done[0]
    width = len(parts)
    for t in range(start, len(slots) * width):
        i, j = t // width, t % width
        value = values[i, parts[j, 0]]
        if value == NULL:
            continue
        if is_full(keys, state):
            done[0] = count
            return t, True
        of = slots[i] * width + j
        key[0, 0], key[0, 1] = of, number_of(value, parts[j, 3])
        there = state[0] - state[1]
        entry = added(key, 0, hashed(key, 0), places, keys, free, state)
        if state[0] - state[1] > there:
            entries[entry, COUNT], entries[entry, WHERE] = 0, NOWHERE
        was = entries[entry, COUNT]
        now = was + weights[i]
        note[count, 0], note[count, 1] = entry, was
        count += 1
        done[0] = count
        entries[entry, COUNT] = now
        more = np.int64(now > 0) - np.int64(was > 0)
        if more != 0:
            if parts[j, 2] == 0:
                cells[slots[i], parts[j, 1]] += more
            if entries[entry, WHERE] == BEYOND:
                gone[0] -= more
            elif more > 0:
                _put(entry, of, parts, entries, roots, keys, text_places, pool)
    for k in range(count):
        if entries[note[k, 0], COUNT] < 0:
            return len(slots) * width, False
    return len(slots) * width, True


@compiled
def _show(
    touched: Words, parts: Words, cells: Words, entries: Words, roots: Words, gone: Words,
    note: Words, done: Words, keys: Words, places: Words, pool: Words,
) -> None:  # fmt: skip
    """Take values that are gone out of the heaps, as far as they are at the root, and write the
    first value of each group into its cell."""
    count = done[0]
    width = len(parts)
    for i in range(len(touched)):
        for j in range(width):
            of = touched[i] * width + j
            root = roots[of]
            while root != -1 and entries[root, COUNT] == 0:
                note[count, 0], note[count, 1] = root, 0
                count += 1
                compared = parts[j, 4:]
                root = without_root(root, 0, BEYOND, entries, keys, compared, places, pool)
                gone[0] -= 1
            roots[of] = root
            if parts[j, 2] != 0:
                found = NULL
                if root != -1:
                    found = word_of(keys[root, 1], parts[j, 3])
                cells[touched[i], parts[j, 1]] = found
    done[0] = count


@compiled
def _undo(
    note: Words, count: int, parts: Words, entries: Words, roots: Words, gone: Words, keys: Words,
    places: Words, pool: Words,
) -> None:  # fmt: skip
    for i in range(count - 1, -1, -1):
        entry, was = note[i, 0], note[i, 1]
        now = entries[entry, COUNT]
        entries[entry, COUNT] = was
        if entries[entry, WHERE] == BEYOND:
            gone[0] += np.int64(now > 0) - np.int64(was > 0)
    for i in range(count):
        entry = note[i, 0]
        if entries[entry, COUNT] > 0 and entries[entry, WHERE] == NOWHERE:
            _put(entry, keys[entry, 0], parts, entries, roots, keys, places, pool)


@compiled
def _give_back(
    note: Words, count: int, entries: Words, places: Words, keys: Words, free: Words, state: Words
) -> None:
    for i in range(count):
        entry = note[i, 0]
        if entries[entry, COUNT] == 0 and entries[entry, WHERE] == NOWHERE:
            entries[entry, WHERE] = GIVEN_BACK
            taken_out(entry, places, keys, free, state)
