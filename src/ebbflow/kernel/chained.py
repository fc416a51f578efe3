"""Rows by key as columns: the index of one side of a join.

Every row that is there is an *entry*: its words, its weight, and the next entry of the same key; a
key has a slot, which knows its first entry. An entry is also found by its row, so that whatever is
done to a row costs the same, however many rows its key has.

While an epoch is open, entries that it touched keep the weight that they had (`before`), and those
whose weight is zero stay until it ends. So a join can ask for the rows as they are now or as they
were, and the way back is to have the old weights again.

This equals `ebbflow.state.index.Index`, and `meet` the loop of `ebbflow.operator.joins.Join`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.compiled import compiled
from ebbflow.kernel.hashing import Words, WordTable, added, grown, is_full, taken_out
from ebbflow.kernel.words import LARGEST

NOW, WAS = 0, 1
NOBODY = -1


class ChainedRows:
    """Rows of `width` words by keys of `key_width` words; in a `bag` no weight is negative.

    >>> index = ChainedRows(1, 2, bag=True)
    >>> index.apply(np.array([[7], [7]]), np.array([[7, 1], [7, 2]]), np.array([1, 1]))
    True
    >>> at, entries, weights, _ = index.meet(np.array([[7], [8]]), np.array([1, 1]), NOW)
    >>> at.tolist(), index.rows.keys[entries].tolist(), weights.tolist()
    ([0, 0], [[7, 2], [7, 1]], [1, 1])
    """

    __slots__ = ("bag", "before", "epoch", "first", "journal", "keys", "links", "marks", "rows",
                 "touched", "weights")  # fmt: skip
    backing = None

    def __init__(self, key_width: int, width: int, *, bag: bool) -> None:
        self.bag = bag
        self.keys = WordTable(key_width)
        self.rows = WordTable(width)
        self.first = _none_of(len(self.keys.keys))
        """Of each slot: its first entry, and how many there are."""
        room = len(self.rows.keys)
        self.links = np.empty((room, 3), np.int64)
        """Of each entry: the next, the one before, and the slot of the key."""
        self.weights = np.zeros(room, np.int64)
        self.before = np.zeros(room, np.int64)
        self.marks = np.zeros(room, np.int64)
        """The last epoch that touched each entry."""
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
                keys, rows, weights, at, self.epoch, touched, count, self.first, self.links,
                self.weights, self.before, self.marks, self.keys.places, self.keys.keys,
                self.keys.free, self.keys.state, self.rows.places, self.rows.keys, self.rows.free,
                self.rows.state,
            )  # fmt: skip
            if at == len(rows):
                break
            self._grow()
        touched = self.touched = touched[: count[0]]
        if self.bag and len(touched) and self.weights[touched].min() < 0:
            self.weights[touched] = self.before[touched]
            self._end([touched])
            raise DoesNotFit("a row is taken away that is not there")
        if self.journal is None:
            self._end([touched])
        return len(touched) == len(rows)

    def meet(self, keys: Words, weights: Words, when: int) -> tuple[Words, Words, Words, Words]:
        """The entries that rows with these keys meet: for each pair the number of the row and the
        entry, the product of the weights, and whether this epoch has touched the entry. `when` says
        whether entries count as they are NOW, or as they WERE before the epoch."""
        slots = self.keys.find(keys)
        count = _meetings(slots, self.first)
        at = np.empty(count, np.int64)
        entries = np.empty(count, np.int64)
        products = np.empty(count, np.int64)
        fresh = np.empty(count, np.bool_)
        count = _meet(
            slots, weights, when, self.epoch, self.first, self.links, self.weights, self.before,
            self.marks, at, entries, products, fresh,
        )  # fmt: skip
        if count < 0:
            raise DoesNotFit("a weight of more than 64 bits")
        return at[:count], entries[:count], products[:count], fresh[:count]

    def slots_met(self, keys: Words) -> tuple[Words, int]:
        """The slots of keys, and how many pairs there may be with rows of these keys."""
        slots = self.keys.find(keys)
        return slots, _meetings(slots, self.first)

    def everything(self) -> tuple[Words, Words]:
        """All rows, and their weights."""
        entries = self.rows.used()
        entries = entries[self.weights[entries] != 0]
        return self.rows.keys[entries], self.weights[entries]

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
            these = touched[: count[0]]
            self.weights[these] = self.before[these]
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
        self.links, self.weights = grown(self.links, room), grown(self.weights, room)
        self.before, self.marks = grown(self.before, room), grown(self.marks, room)
        self.rows.grow(room)

    def _end(self, journal: list[Words]) -> None:
        """The epoch is over: entries of weight zero go, and so do keys without entries."""
        self.epoch += 1
        for touched in journal:
            _drop(
                touched[self.weights[touched] == 0], self.marks, self.first, self.links,
                self.keys.places, self.keys.keys, self.keys.free, self.keys.state,
                self.rows.places, self.rows.keys, self.rows.free, self.rows.state,
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
    first: Words, links: Words, totals: Words, before: Words, marks: Words, key_places: Words,
    key_store: Words, key_free: Words, key_state: Words, row_places: Words, row_store: Words,
    row_free: Words, row_state: Words,
) -> int:  # fmt: skip
    """Add rows from the one at `start` on, and give how far there was room; `done` says how many
    entries are touched."""
    count = done[0]
    for i in range(start, len(rows)):
        if is_full(row_store, row_state) or is_full(key_store, key_state):
            done[0] = count
            return i
        there = row_state[0] - row_state[1]
        entry = added(rows, i, row_places, row_store, row_free, row_state)
        if row_state[0] - row_state[1] > there:
            slot = added(keys, i, key_places, key_store, key_free, key_state)
            after = first[slot, 0]
            links[entry, 0], links[entry, 1], links[entry, 2] = after, -1, slot
            if after != -1:
                links[after, 1] = entry
            first[slot, 0] = entry
            first[slot, 1] += 1
            totals[entry] = 0
            marks[entry] = 0
        if marks[entry] != epoch:
            marks[entry] = epoch
            before[entry] = totals[entry]
            touched[count] = entry
            count += 1
        totals[entry] += weights[i]
    done[0] = count
    return len(rows)


@compiled
def _drop(
    entries: Words, marks: Words, first: Words, links: Words, key_places: Words, key_store: Words,
    key_free: Words, key_state: Words, row_places: Words, row_store: Words, row_free: Words,
    row_state: Words,
) -> None:  # fmt: skip
    for i in range(len(entries)):
        entry = entries[i]
        if marks[entry] == -1:
            continue
        marks[entry] = -1
        after, ahead, slot = links[entry, 0], links[entry, 1], links[entry, 2]
        first[slot, 1] -= 1
        if after != -1:
            links[after, 1] = ahead
        if ahead != -1:
            links[ahead, 0] = after
        else:
            first[slot, 0] = after
            if after == -1:
                taken_out(slot, key_places, key_store, key_free, key_state)
        taken_out(entry, row_places, row_store, row_free, row_state)


@compiled
def _meetings(slots: Words, first: Words) -> int:
    """How many pairs there may be."""
    count = 0
    for i in range(len(slots)):
        if slots[i] != -1:
            count += first[slots[i], 1]
    return count


@compiled
def _meet(
    slots: Words, weights: Words, when: int, epoch: int, first: Words, links: Words,
    totals: Words, before: Words, marks: Words, at: Words, entries: Words, products: Words,
    fresh: Words,
) -> int:  # fmt: skip
    count = 0
    for i in range(len(slots)):
        if slots[i] == -1:
            continue
        entry = first[slots[i], 0]
        while entry != -1:
            touched = marks[entry] == epoch
            weight = before[entry] if touched and when == 1 else totals[entry]
            if weight != 0:
                if abs(weight) > LARGEST // abs(weights[i]):
                    return -1
                at[count], entries[count] = i, entry
                products[count], fresh[count] = weight * weights[i], touched
                count += 1
            entry = links[entry, 0]
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
    most = 0
    if ours is not None:
        slots, count = right.slots_met(ours.keys)
        most += count
    if theirs is not None:
        others, count = left.slots_met(theirs.keys)
        most += count
    out, weights = np.empty((len(plan), most), np.int64), np.empty(most, np.int64)
    done = 0
    if ours is not None:
        done = _join(
            slots, ours.weights, ours.rows, ours.entries, left.weights, left.before, right.epoch,
            right.first, right.links, right.weights, right.before, right.marks, right.rows.keys,
            plan, 0, out, weights, 0,
        )  # fmt: skip
    if theirs is not None and done >= 0:
        done = _join(
            others, theirs.weights, theirs.rows, theirs.entries, right.weights, right.before,
            left.epoch, left.first, left.links, left.weights, left.before, left.marks,
            left.rows.keys, plan, 1, out, weights, done,
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
    slots: Words, weights: Words, rows: Words, own: Words, own_totals: Words, own_before: Words,
    epoch: int, first: Words, links: Words, totals: Words, before: Words, marks: Words,
    store: Words, plan: Words, side: int, out: Words, products: Words, start: int,
) -> int:  # fmt: skip
    """The pairs of changed rows with the entries of the other side, behind those there are; gives
    how many there are then, or -1 where a weight has no room."""
    count = start
    for i in range(len(slots)):
        if slots[i] == -1:
            continue
        mine = own[i]
        entry = first[slots[i], 0]
        while entry != -1:
            weight = totals[entry]
            if marks[entry] != epoch:
                if abs(weight) > LARGEST // abs(weights[i]):
                    return -1
                product = weight * weights[i]
            elif side == 1:
                product = np.int64(0)
            else:
                now, was = own_totals[mine], own_before[mine]
                most = max(abs(now), abs(was))
                if most != 0 and max(abs(weight), abs(before[entry])) > (LARGEST // 2) // most:
                    return -1
                product = now * weight - was * before[entry]
            if product != 0:
                for j in range(len(plan)):
                    if plan[j, 0] == side:
                        out[j, count] = rows[i, plan[j, 1]]
                    else:
                        out[j, count] = store[entry, plan[j, 1]]
                products[count] = product
                count += 1
            entry = links[entry, 0]
    return count
