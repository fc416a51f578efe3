"""Rows by key as columns: the index of one side of a join.

Every row that is there is an *entry*: its words, its weight, and the next entry of the same key; a
key has a slot, which knows its first entry. An entry is also found by its row, so that whatever is
done to a row costs the same, however many rows its key has. What belongs to an entry, but for its
words, is side by side in memory, as it is read together.

While an epoch is open, entries that it touched keep the weight that they had (`before`), and those
whose weight is zero stay until it ends. So a join can ask for the rows as they are now or as they
were, and the way back is to have the old weights again.

This equals `ebbflow.state.index.Index`, and `meet` the loop of `ebbflow.operator.joins.Join`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.compiled import compiled, inlined, prefetched
from ebbflow.kernel.hashing import (
    BLOCK,
    Words,
    WordTable,
    added,
    grown,
    hashed,
    is_full,
    look_ahead,
    place_of,
    taken_out,
)
from ebbflow.kernel.words import LARGEST, NULL

NOW, WAS = 0, 1
NOBODY = -1
NEXT, PREVIOUS, SLOT, WEIGHT, BEFORE, MARK = 0, 1, 2, 3, 4, 5
"""Of each entry: the next and the previous of its key, the slot of that, its weight, the weight
before the epoch, and the last epoch that touched it."""
GONE = -1


class ChainedRows:
    """Rows of `width` words by keys of `key_width` words; in a `bag` no weight is negative.

    >>> index = ChainedRows(1, 2, bag=True)
    >>> index.apply(np.array([[7], [7]]), np.array([[7, 1], [7, 2]]), np.array([1, 1]))
    True
    >>> at, entries, weights, _ = index.meet(np.array([[7], [8]]), np.array([1, 1]), NOW)
    >>> at.tolist(), index.rows.keys[entries].tolist(), weights.tolist()
    ([0, 0], [[7, 2], [7, 1]], [1, 1])
    """

    __slots__ = ("bag", "entries", "epoch", "first", "journal", "keys", "rows", "touched")
    backing = None

    def __init__(self, key_width: int, width: int, *, bag: bool) -> None:
        self.bag = bag
        self.keys = WordTable(key_width)
        self.rows = WordTable(width)
        self.first = _none_of(len(self.keys.keys))
        """Of each slot: its first entry, and how many there are."""
        self.entries = np.zeros((len(self.rows.keys), 6), np.int64)
        self.epoch = 1
        self.journal: list[tuple[Words, Words]] | None = None
        self.touched = np.empty(0, np.int64)
        """The entries of the last change: one for each of its rows, if none came twice."""

    def apply(self, keys: Words, rows: Words, weights: Words) -> bool:
        """Add rows with weights, and say whether none of them came twice."""
        size = self.rows.size_for(len(rows))
        if size:
            self._grow_rows(size)
        at, touched, count = 0, np.empty(len(rows), np.int64), np.zeros(1, np.int64)
        if self.journal is not None:
            self.journal.append((touched, count))  # first, as an interrupt may come
        while True:
            at = _apply(
                keys, rows, weights, at, self.epoch, touched, count, self.first, self.entries,
                self.keys.places, self.keys.keys, self.keys.free, self.keys.state,
                self.rows.places, self.rows.keys, self.rows.free, self.rows.state,
                self.rows.hashes,
            )  # fmt: skip
            if at == len(rows):
                break
            self._grow()
        touched = self.touched = touched[: count[0]]
        if self.bag and _some_negative(touched, self.entries):
            _put_back(touched, self.entries)
            self._end([touched])
            raise DoesNotFit("a row is taken away that is not there")
        if self.journal is None:
            self._end([touched])
        return len(touched) == len(rows)

    def meet(self, keys: Words, weights: Words, when: int) -> tuple[Words, Words, Words, Words]:
        """The entries that rows with these keys meet: for each pair the number of the row and the
        entry, the product of the weights, and whether this epoch has touched the entry. `when` says
        whether entries count as they are NOW, or as they WERE before the epoch."""
        slots, count = self.slots_met(keys)
        at = np.empty(count, np.int64)
        entries = np.empty(count, np.int64)
        products = np.empty(count, np.int64)
        fresh = np.empty(count, np.bool_)
        count = _meet(
            slots, weights, when, self.epoch, self.first, self.entries, at, entries, products, fresh
        )
        if count < 0:
            raise DoesNotFit("a weight of more than 64 bits")
        return at[:count], entries[:count], products[:count], fresh[:count]

    def slots_met(self, keys: Words) -> tuple[Words, int]:
        """The slots of keys, and how many pairs there may be with rows of these keys."""
        slots = np.empty(len(keys), np.int64)
        table = self.keys
        return slots, _slots_met(keys, table.places, table.keys, table.hashes, self.first, slots)

    def everything(self) -> tuple[Words, Words]:
        """All rows, and their weights."""
        entries = self.rows.used()
        entries = entries[self.entries[entries, WEIGHT] != 0]
        return self.rows.keys[entries], self.entries[entries, WEIGHT]

    def column(self, at: int, entries: Words) -> Words:
        """A field of these entries."""
        return self.rows.keys[entries, at]

    def __len__(self) -> int:
        return len(self.rows)

    # ---- one epoch ----

    def begin(self) -> None:
        """Remember from here on what is done."""
        self.journal = []

    def commit(self) -> None:
        """Keep what was done since `begin`. Doing it twice is doing it once."""
        if self.journal is not None:
            self._end([touched[: count[0]] for touched, count in self.journal])
            self.journal = None

    def rollback(self) -> None:
        """Undo what was done since `begin`."""
        for touched, count in self.journal or ():
            _put_back(touched[: count[0]], self.entries)
        self.commit()

    def forget(self) -> None:
        """Have no epoch open, whatever it did."""
        self.journal = None

    def clear(self) -> None:
        """Have no rows."""
        self.keys.clear()
        self.rows.clear()
        self.first = _none_of(len(self.first))

    def _grow(self) -> None:
        """Have room where there is none: first for what is kept by slot, and then for slots."""
        if is_full(self.keys.keys, self.keys.state):
            first = _none_of(self.keys.next_size)
            first[: len(self.first)] = self.first[: len(first)]
            self.first = first
            self.keys.grow()
        if is_full(self.rows.keys, self.rows.state):
            self._grow_rows(self.rows.next_size)

    def _grow_rows(self, room: int) -> None:
        self.entries = grown(self.entries, room)
        self.rows.grow(room)

    def _end(self, journal: list[Words]) -> None:
        """The epoch is over: entries of weight zero go, and so do keys without entries."""
        self.epoch += 1
        for touched in journal:
            _drop(
                touched, self.first, self.entries, self.keys.places, self.keys.keys,
                self.keys.free, self.keys.state, self.rows.places, self.rows.keys, self.rows.free,
                self.rows.state,
            )  # fmt: skip
        self.rows.shrink()
        self.keys.shrink()


def _none_of(size: int) -> Words:
    """No entries, for so many slots."""
    first = np.zeros((size, 2), np.int64)
    first[:, 0] = NOBODY
    return first


@compiled
def _apply(
    keys: Words, rows: Words, weights: Words, start: int, epoch: int, touched: Words, done: Words,
    first: Words, entries: Words, key_places: Words, key_store: Words, key_free: Words,
    key_state: Words, row_places: Words, row_store: Words, row_free: Words, row_state: Words,
    hashes: Words,
) -> int:  # fmt: skip
    """Add rows from the one at `start` on, and give how far there was room; `done` says how many
    entries are touched."""
    count = done[0]
    begin = end = start
    for i in range(start, len(rows)):
        if is_full(row_store, row_state) or is_full(key_store, key_state):
            done[0] = count
            return i
        if i == end:
            begin, end = i, min(i + BLOCK, len(rows))
            look_ahead(rows, begin, end, row_places, row_store, entries, hashes)
            mask = len(key_places) - 1
            for j in range(begin, end):
                if weights[j] > 0:
                    prefetched(key_places, hashed(keys, j) & mask)
            for j in range(begin, end):
                if weights[j] > 0:
                    slot = key_places[hashed(keys, j) & mask, 0]
                    if slot != -1:
                        prefetched(first, slot)
        there = row_state[0] - row_state[1]
        entry = added(rows, i, hashes[i - begin], row_places, row_store, row_free, row_state)
        if row_state[0] - row_state[1] > there:
            h = hashed(keys, i)
            slot = added(keys, i, h, key_places, key_store, key_free, key_state)
            after = first[slot, 0]
            entries[entry, NEXT], entries[entry, PREVIOUS] = after, -1
            entries[entry, SLOT] = slot
            if after != -1:
                entries[after, PREVIOUS] = entry
            first[slot, 0] = entry
            first[slot, 1] += 1
            entries[entry, WEIGHT] = 0
            entries[entry, MARK] = 0
        if entries[entry, MARK] != epoch:
            entries[entry, MARK] = epoch
            entries[entry, BEFORE] = entries[entry, WEIGHT]
            touched[count] = entry
            count += 1
        entries[entry, WEIGHT] += weights[i]
    done[0] = count
    return len(rows)


@compiled
def _some_negative(touched: Words, entries: Words) -> bool:
    found = False
    for i in range(len(touched)):
        found |= entries[touched[i], WEIGHT] < 0
    return found


@compiled
def _put_back(touched: Words, entries: Words) -> None:
    for i in range(len(touched)):
        entries[touched[i], WEIGHT] = entries[touched[i], BEFORE]


@compiled
def _drop(
    touched: Words, first: Words, entries: Words, key_places: Words, key_store: Words,
    key_free: Words, key_state: Words, row_places: Words, row_store: Words, row_free: Words,
    row_state: Words,
) -> None:  # fmt: skip
    """Have the entries go that have no weight, each once."""
    for i in range(len(touched)):
        entry = touched[i]
        if entries[entry, WEIGHT] != 0 or entries[entry, MARK] == GONE:
            continue
        entries[entry, MARK] = GONE
        after, ahead, slot = entries[entry, NEXT], entries[entry, PREVIOUS], entries[entry, SLOT]
        first[slot, 1] -= 1
        if after != -1:
            entries[after, PREVIOUS] = ahead
        if ahead != -1:
            entries[ahead, NEXT] = after
        else:
            first[slot, 0] = after
            if after == -1:
                taken_out(slot, key_places, key_store, key_free, key_state)
        taken_out(entry, row_places, row_store, row_free, row_state)


@compiled
def _slots_met(
    keys: Words, places: Words, store: Words, hashes: Words, first: Words, slots: Words
) -> int:
    """Find the slots of keys; gives how many pairs there may be."""
    count = 0
    begin = end = 0
    for i in range(len(keys)):
        if i == end:
            begin, end = i, min(i + BLOCK, len(keys))
            look_ahead(keys, begin, end, places, store, first, hashes)
        slot = places[place_of(keys, i, hashes[i - begin], places, store), 0]
        slots[i] = slot
        if slot != -1:
            count += first[slot, 1]
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
    slots: Words, weights: Words, when: int, epoch: int, first: Words, entries: Words, at: Words,
    found: Words, products: Words, fresh: Words,
) -> int:  # fmt: skip
    count = 0
    for i in range(len(slots)):
        if slots[i] == -1:
            continue
        entry = first[slots[i], 0]
        while entry != -1:
            touched = entries[entry, MARK] == epoch
            weight = entries[entry, BEFORE if touched and when == WAS else WEIGHT]
            if weight != 0:
                at[count], found[count] = i, entry
                products[count], fresh[count] = times(weight, weights[i]), touched
                if products[count] == NULL:
                    return -1
                count += 1
            entry = entries[entry, NEXT]
    return count


# ---- a join of two indices ----


def joined(
    left: ChainedRows, right: ChainedRows, ours: Change | None, theirs: Change | None, plan: Words
) -> tuple[Words, Words]:
    """The change of a join, from the changes of its sides, which are in the indices already and
    have every row once. `plan` says which words a pair becomes: each is a field of the left or of
    the right (0 or 1, and its number). Gives these words, field by field, and the weights.

    A pair of two changed rows is met from the left alone, and its weight is what the product of
    their weights is now, less what it was: so no pair comes twice.
    """
    if ours is not None and len(ours.entries) == len(left):
        theirs = None  # no row of the left was there before
    most = 0
    if ours is not None:
        slots, count = right.slots_met(ours.keys)
        most += count
    if theirs is not None:
        others, count = left.slots_met(theirs.keys)
        most += count
    out, weights = np.empty((len(plan), most), np.int64), np.empty(most, np.int64)
    walking = np.empty((BLOCK, 2), np.int64)
    done = 0
    if ours is not None:
        done = _join(
            slots, ours.weights, ours.rows, ours.entries, left.entries, right.epoch, right.first,
            right.entries, right.rows.keys, plan, 0, out, weights, 0, walking,
        )  # fmt: skip
    if theirs is not None and done >= 0:
        done = _join(
            others, theirs.weights, theirs.rows, theirs.entries, right.entries, left.epoch,
            left.first, left.entries, left.rows.keys, plan, 1, out, weights, done, walking,
        )  # fmt: skip
    if done < 0:
        raise DoesNotFit("a weight of more than 64 bits")
    return out[:, :done], weights[:done]


class Change(NamedTuple):
    """A change of one side of a join: keys, rows and weights, and the entry of each row."""

    keys: Words
    rows: Words
    weights: Words
    entries: Words


@compiled
def _join(
    slots: Words, weights: Words, rows: Words, own: Words, mine: Words, epoch: int, first: Words,
    entries: Words, store: Words, plan: Words, side: int, out: Words, products: Words, start: int,
    walking: Words,
) -> int:  # fmt: skip
    """The pairs of changed rows, which are `own` of the entries in `mine`, with the entries of the
    other side, behind those there are; gives how many there are then, or -1 where a weight has no
    room. The entries of many rows are walked along together, each `walking` with where it is, so
    that the memory of the next ones comes meanwhile."""
    count = start
    for begin in range(0, len(slots), BLOCK):
        alive = 0
        for i in range(begin, min(begin + BLOCK, len(slots))):
            if slots[i] != -1:
                entry = first[slots[i], 0]
                prefetched(entries, entry)
                prefetched(store, entry)
                walking[alive, 0], walking[alive, 1] = i, entry
                alive += 1
        while alive > 0:
            walked, alive = alive, 0
            for at in range(walked):
                i, entry = walking[at, 0], walking[at, 1]
                after = entries[entry, NEXT]
                if after != -1:
                    prefetched(entries, after)
                    prefetched(store, after)
                    walking[alive, 0], walking[alive, 1] = i, after
                    alive += 1
                weight = entries[entry, WEIGHT]
                if entries[entry, MARK] != epoch:
                    product = times(weight, weights[i])
                elif side == 1:
                    continue
                else:
                    now, was = mine[own[i], WEIGHT], mine[own[i], BEFORE]
                    product = times(now, weight)
                    less = times(was, entries[entry, BEFORE])
                    product = NULL if product == NULL or less == NULL else product - less
                if product == NULL:
                    return -1
                if product != 0:
                    for j in range(len(plan)):
                        if plan[j, 0] == side:
                            out[j, count] = rows[i, plan[j, 1]]
                        else:
                            out[j, count] = store[entry, plan[j, 1]]
                    products[count] = product
                    count += 1
    return count
