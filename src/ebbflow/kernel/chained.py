"""Rows by key as columns: the index of one side of a join.

Every row that is there is an *entry*: its words, its weight, and the next entry of the same key; a
key knows its first entry. An entry is also found by its row, so that whatever is done to a row
costs the same, however many rows its key has. Rows and keys are two tables, and what belongs to an
entry is beside its words, as it is read together. Entries are numbers of 32 bits, two in a word:

    keys     the words of a key, its first entry, and how many it has
    rows     the words of a row, its weight, its next and previous entry, the slot of its key, and
             where it is among the entries that this epoch touched, if it is there

While an epoch is open, those that it touched are listed, with the weights that they had before; and
those whose weight is zero stay until it ends. So a join can ask for the rows as they are now or as
they were, and the way back is to have the old weights again.

This equals `ebbflow.state.index.Index`, and `meet` the loop of `ebbflow.operator.joins.Join`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.compiled import compiled, inlined, prefetched
from ebbflow.kernel.hashing import (
    BLOCK,
    SLOTS,
    SMALLEST,
    Words,
    WordTable,
    added,
    grown,
    hashed,
    is_full,
    look_ahead,
    slot_of,
    taken_out,
)
from ebbflow.kernel.words import LARGEST, NULL

NOW, WAS = 0, 1
FIRST, COUNT = 0, 1
"""Numbers of 32 bits beside a key, behind its words."""
NEXT, PREVIOUS, SLOT, MARK = 2, 3, 4, 5
"""Those beside a row, behind its words and its weight, which has 64 bits."""
MOST = (1 << 31) - 1
FEW = 1 << 12
"""Room for so many touched entries is kept from one epoch to the next."""


class ChainedRows:
    """Rows of `width` words by keys of `key_width` words; in a `bag` no weight is negative.

    >>> index = ChainedRows(1, 2, bag=True)
    >>> index.apply(np.array([[7], [7]]), np.array([[7, 1], [7, 2]]), np.array([1, 1])).tolist()
    [[0, 0], [1, 0]]
    >>> at, entries, weights, _ = index.meet(np.array([[7], [8]]), np.array([1, 1]), NOW)
    >>> at.tolist(), index.rows.words(entries).tolist(), weights.tolist()
    ([0, 0], [[7, 2], [7, 1]], [1, 1])
    """

    __slots__ = ("bag", "count", "journal", "keys", "rows", "touched")
    backing = None

    def __init__(self, key_width: int, width: int, *, bag: bool) -> None:
        self.bag = bag
        self.keys = WordTable(key_width, beside=1)
        self.rows = WordTable(width, beside=3)
        self.journal: bool | None = None
        """Whether an epoch is open."""
        self.touched = np.empty((SMALLEST, 2), np.int64)
        """The entries that the open epoch touched, and the weight of each before."""
        self.count = np.zeros(1, np.int64)
        """How many of them there are; the loop writes it."""

    def apply(self, keys: Words, rows: Words, weights: Words) -> Words | None:
        """Add rows with weights. Gives the entry of each row, and the weight that it had before the
        epoch; None if some row has come twice in this epoch."""
        self.reserve(len(rows))
        before = int(self.count[0])
        if before + len(rows) > len(self.touched):
            self.touched = grown(self.touched, before + len(rows))
        at, there = 0, len(self.keys)
        while True:
            at = _apply(
                keys, rows, weights, at, self.touched, self.count,
                self.keys.places, self.keys.keys, _halves(self.keys), self.keys.free,
                self.keys.state, self.rows.places, self.rows.keys, _halves(self.rows),
                self.rows.free, self.rows.state, self.rows.hashes,
            )  # fmt: skip
            if at == len(rows):
                break
            if self.rows.is_full:
                self._grow(self.rows)
            if self.keys.is_full:
                new = len(self.keys) - there
                self._grow(self.keys, self.keys.size_after(at, new, len(rows) - at))
        entries = self.touched[before : self.count[0]]
        if self.bag and _some_negative(entries, self.rows.keys, self.rows.width):
            self._undo(before)
            raise DoesNotFit("a row is taken away that is not there")
        if self.journal is None:
            self._end(0)
        return entries if len(entries) == len(rows) else None

    def reserve(self, more: int) -> None:
        """Have room for so many rows that come."""
        size = self.rows.size_for(more)
        if size:
            self._grow(self.rows, size)

    def meet(self, keys: Words, weights: Words, when: int) -> tuple[Words, Words, Words, Words]:
        """The entries that rows with these keys meet: for each pair the number of the row and the
        entry, the product of the weights, and whether this epoch has touched the entry. `when` says
        whether entries count as they are NOW, or as they WERE before the epoch."""
        slots, count = self.slots_met(keys)
        at = np.empty(count, np.int64)
        entries = np.empty(count, np.int64)
        products = np.empty(count, np.int64)
        fresh = np.empty(count, np.bool_)
        count = _meet(slots, weights, when, *self.walked, at, entries, products, fresh)
        if count < 0:
            raise DoesNotFit("a weight of more than 64 bits")
        return at[:count], entries[:count], products[:count], fresh[:count]

    @property
    def walked(self) -> tuple[Words, int, Words, Words, int, Words, int]:
        """What a loop reads that walks along the entries of a key."""
        keys, rows = self.keys, self.rows
        first = 2 * keys.width + FIRST
        halves = _halves(rows)
        return _halves(keys), first, rows.keys, halves, rows.width, self.touched, self.count[0]

    def slots_met(self, keys: Words) -> tuple[Words, int]:
        """The slots of keys, and how many pairs there may be with rows of these keys."""
        slots = np.empty(len(keys), np.int64)
        table = self.keys
        return slots, _slots_met(
            keys, table.places, table.keys, _halves(table), table.hashes, slots
        )

    def everything(self) -> tuple[Words, Words]:
        """All rows, and their weights."""
        entries = self.rows.used()
        entries = entries[self.weights(entries) != 0]
        return self.rows.words(entries), self.weights(entries)

    def weights(self, entries: Words) -> Words:
        """How often the rows of these entries are there."""
        return self.rows.keys[entries, self.rows.width]

    def column(self, at: int, entries: Words) -> Words:
        """A field of these entries."""
        return self.rows.keys[entries, at]

    def changed(self) -> tuple[Words, Words]:
        """The entries whose weight the open epoch has changed, and by how much."""
        entries, before = self.touched[: self.count[0]].T
        more = self.weights(entries) - before
        some = np.flatnonzero(more)
        return entries[some], more[some]

    def keys_of(self, entries: Words) -> Words:
        """The keys of these entries."""
        return self.keys.words(_halves(self.rows)[entries, 2 * self.rows.width + SLOT])

    def __len__(self) -> int:
        return len(self.rows)

    # ---- one epoch ----

    def begin(self) -> None:
        """Remember from here on what is done."""
        self.journal = True

    def commit(self) -> None:
        """Keep what was done since `begin`. Doing it twice is doing it once."""
        if self.journal is not None:
            self._end(0)
            self.journal = None

    def rollback(self) -> None:
        """Undo what was done since `begin`."""
        if self.journal is not None:
            self._undo(0)
            self.journal = None

    def forget(self) -> None:
        """Have no epoch open, whatever it did."""
        self.count[0] = 0
        self.journal = None

    def clear(self) -> None:
        """Have no rows."""
        self.count[0] = 0
        self.keys.clear()
        self.rows.clear()

    def _grow(self, table: WordTable, size: int = 0) -> None:
        """Have room where there is none."""
        if max(size, table.next_size) > MOST:
            raise DoesNotFit("an index of more rows than there are numbers of 32 bits")
        table.grow(size)

    def _undo(self, start: int) -> None:
        """Have the weights as they were, of what was touched from one on."""
        _put_back(self.touched[start : self.count[0]], self.rows.keys, self.rows.width)
        self._end(start)

    def _end(self, start: int) -> None:
        """What was touched from one on is as it will be: entries of weight zero go, and so do keys
        without entries."""
        _drop(
            self.touched, start, self.count, self.keys.places, self.keys.keys, _halves(self.keys),
            self.keys.free, self.keys.state, self.rows.places, self.rows.keys, _halves(self.rows),
            self.rows.free, self.rows.state,
        )  # fmt: skip
        self.rows.shrink()
        self.keys.shrink()
        if len(self.touched) > FEW and not start:
            self.touched = np.empty((SMALLEST, 2), np.int64)


def _halves(table: WordTable) -> Words:
    """The numbers of 32 bits in a table, in the memory of its words."""
    return table.keys.view(np.int32)


@inlined
def half(halves: Words, row: int, at: int) -> Any:
    """One of the numbers of 32 bits of a row."""
    return np.int64(halves[row, at])


@compiled
def _apply(
    keys: Words, rows: Words, weights: Words, start: int, touched: Words, done: Words,
    key_places: Words, key_store: Words, key_halves: Words, key_free: Words, key_state: Words,
    row_places: Words, row_store: Words, row_halves: Words, row_free: Words, row_state: Words,
    hashes: Words,
) -> int:  # fmt: skip
    """Add rows from the one at `start` on, and give how far there was room; `done` says how many
    entries are touched."""
    count = done[0]
    begin = end = start
    width, behind_key, behind = rows.shape[1], 2 * keys.shape[1], 2 * rows.shape[1]
    for i in range(start, len(rows)):
        if is_full(row_store, row_state) or is_full(key_store, key_state):
            done[0] = count
            return i
        if i == end:
            begin, end = i, min(i + BLOCK, len(rows))
            look_ahead(rows, begin, end, row_places, row_store, hashes)
            mask = len(key_places) - 1
            for j in range(begin, end):
                if weights[j] > 0:
                    prefetched(key_places, hashed(keys, j) & mask)
            for j in range(begin, end):
                if weights[j] > 0:
                    place = key_places[hashed(keys, j) & mask]
                    if place >= 0:
                        prefetched(key_store, place & SLOTS)
        there = row_state[0] - row_state[1]
        entry = added(rows, i, hashes[i - begin], row_places, row_store, row_free, row_state)
        mark = half(row_halves, entry, behind + MARK)
        if row_state[0] - row_state[1] > there:
            there = key_state[0] - key_state[1]
            slot = added(keys, i, hashed(keys, i), key_places, key_store, key_free, key_state)
            if key_state[0] - key_state[1] > there:
                key_halves[slot, behind_key + FIRST], key_halves[slot, behind_key + COUNT] = -1, 0
            after = key_halves[slot, behind_key + FIRST]
            row_halves[entry, behind + NEXT], row_halves[entry, behind + PREVIOUS] = after, -1
            row_halves[entry, behind + SLOT] = slot
            if after != -1:
                row_halves[after, behind + PREVIOUS] = entry
            key_halves[slot, behind_key + FIRST] = entry
            key_halves[slot, behind_key + COUNT] += 1
            row_store[entry, width] = 0
            mark = count
        if not is_touched(entry, mark, touched, count):
            row_halves[entry, behind + MARK] = count
            touched[count, 0], touched[count, 1] = entry, row_store[entry, width]
            count += 1
        row_store[entry, width] += weights[i]
    done[0] = count
    return len(rows)


@inlined
def is_touched(entry: int, mark: int, touched: Words, count: int) -> bool:
    """Whether an entry with this mark is among the first so many that were touched."""
    return mark < count and touched[mark, 0] == entry


@compiled
def _some_negative(touched: Words, store: Words, width: int) -> bool:
    found = False
    for i in range(len(touched)):
        found |= store[touched[i, 0], width] < 0
    return found


@compiled
def _put_back(touched: Words, store: Words, width: int) -> None:
    for i in range(len(touched)):
        store[touched[i, 0], width] = touched[i, 1]


@compiled
def _drop(
    touched: Words, start: int, done: Words, key_places: Words, key_store: Words,
    key_halves: Words, key_free: Words, key_state: Words, row_places: Words, row_store: Words,
    row_halves: Words, row_free: Words, row_state: Words,
) -> None:  # fmt: skip
    """Have the entries go that were touched, from one on, and have no weight; none is touched from
    there on then."""
    width, behind_key, behind = row_state[2], 2 * key_state[2], 2 * row_state[2]
    count, done[0] = done[0], start
    for i in range(start, count):
        entry = touched[i, 0]
        if row_store[entry, width] != 0:
            continue
        after, ahead = row_halves[entry, behind + NEXT], row_halves[entry, behind + PREVIOUS]
        slot = half(row_halves, entry, behind + SLOT)
        key_halves[slot, behind_key + COUNT] -= 1
        if after != -1:
            row_halves[after, behind + PREVIOUS] = ahead
        if ahead != -1:
            row_halves[ahead, behind + NEXT] = after
        else:
            key_halves[slot, behind_key + FIRST] = after
            if after == -1:
                taken_out(slot, key_places, key_store, key_free, key_state)
        taken_out(entry, row_places, row_store, row_free, row_state)


@compiled
def _slots_met(
    keys: Words, places: Words, store: Words, halves: Words, hashes: Words, slots: Words
) -> int:
    """Find the slots of keys; gives how many pairs there may be."""
    count = 0
    begin = end = 0
    for i in range(len(keys)):
        if i == end:
            begin, end = i, min(i + BLOCK, len(keys))
            look_ahead(keys, begin, end, places, store, hashes)
        slot = slot_of(keys, i, hashes[i - begin], places, store)
        slots[i] = slot
        if slot != -1:
            count += halves[slot, 2 * keys.shape[1] + COUNT]
    return count


@inlined
def times(one: Any, other: Any) -> Any:
    """The product of two weights, of which two can be added up; NULL where it has too many bits."""
    small = abs(one) < 1 << 31 and abs(other) < 1 << 31
    if small or one == 0 or abs(other) <= (LARGEST // 2) // abs(one):
        return one * other
    return np.int64(NULL)


@compiled
def _meet(
    slots: Words, weights: Words, when: int, keys: Words, first: int, store: Words, halves: Words,
    width: int, touched: Words, many: int, at: Words, found: Words, products: Words, fresh: Words,
) -> int:  # fmt: skip
    count = 0
    for i in range(len(slots)):
        if slots[i] == -1:
            continue
        entry = half(keys, slots[i], first)
        while entry != -1:
            mark = half(halves, entry, 2 * width + MARK)
            recent = is_touched(entry, mark, touched, many)
            weight = touched[mark, 1] if recent and when == WAS else store[entry, width]
            if weight != 0:
                at[count], found[count] = i, entry
                products[count], fresh[count] = times(weight, weights[i]), recent
                if products[count] == NULL:
                    return -1
                count += 1
            entry = half(halves, entry, 2 * width + NEXT)
    return count
