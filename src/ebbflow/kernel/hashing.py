"""The hash table of kernels: several words to a slot.

A *slot* is a small number that stands for a key of `width` words. A table finds the slot of a key,
gives new keys a slot, and takes slots back: so whatever is kept for keys is kept in plain arrays,
by slot. Keys are found by open addressing: places are tried one after the other from where the
hash points, until the key is there or a place is empty. When a slot is given back, the places
behind it move up, so that nothing has to remember that one was there.

    slots      place -> slot, or EMPTY
    keys       slot -> the words of its key
    free       slots that were given back
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel.compiled import compiled, inlined

EMPTY = -1
SMALLEST = 16
Words = Any
"""An array of 64-bit words."""


class WordTable:
    """Keys of `width` words, each with a slot.

    >>> table = WordTable(1)
    >>> table.add(np.array([[7], [9], [7]])).tolist(), len(table)
    ([0, 1, 0], 2)
    >>> table.remove(np.array([0])); table.find(np.array([[7], [9]])).tolist()
    [-1, 1]
    """

    __slots__ = ("free", "keys", "places", "state", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.clear()

    def clear(self) -> None:
        """Have no keys."""
        self.places = np.full(SMALLEST, EMPTY, np.int64)
        self.keys = np.empty((SMALLEST // 2, self.width), np.int64)
        self.free = np.empty(SMALLEST // 2, np.int64)
        self.state = np.zeros(2, np.int64)
        """How many slots there are, and how many of them are free."""

    def __len__(self) -> int:
        return int(self.state[0] - self.state[1])

    @property
    def end(self) -> int:
        """One more than the largest slot that was ever given."""
        return int(self.state[0])

    def room(self, more: int) -> int:
        """Have room for so many keys more, and give for how many there is."""
        needed = self.end + more
        if needed > len(self.keys):
            size = max(needed, 2 * len(self.keys))
            self.keys = grown(self.keys, size)
            self.free = grown(self.free, size)
        places = len(self.places)
        if 2 * (len(self) + more) > places:
            while places < 2 * (len(self) + more):
                places *= 2
            self.places = np.full(2 * places, EMPTY, np.int64)
            _replace(self.places, self.keys, self.free, self.state)
        return len(self.keys)

    def add(self, keys: Words) -> Words:
        """The slot of each key; a key that is new gets one."""
        self.room(len(keys))
        found = np.empty(len(keys), np.int64)
        _add(keys, self.places, self.keys, self.free, self.state, found)
        return found

    def find(self, keys: Words) -> Words:
        """The slot of each key, or EMPTY."""
        found = np.empty(len(keys), np.int64)
        _find(keys, self.places, self.keys, found)
        return found

    def remove(self, slots: Words) -> None:
        """Give slots back, each once."""
        _remove(slots, self.places, self.keys, self.free, self.state)
        if self.end > 4 * SMALLEST and not len(self):
            self.clear()

    def used(self) -> Words:
        """The slots that have a key."""
        there = np.ones(self.end, np.bool_)
        there[self.free[: self.state[1]]] = False
        return np.flatnonzero(there)


def grown(array: Words, size: int) -> Words:
    """An array with room for more; what is new in it is undefined."""
    made = np.empty((size, *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    return made


def matrix(columns: Any) -> Words:
    """Columns side by side: an array of one key, or one row, after the other."""
    if len(columns) == 1:
        return np.ascontiguousarray(columns[0]).reshape(-1, 1)
    return np.stack(columns, axis=1)


@inlined
def hashed(keys: Words, at: int) -> Any:
    """The hash of a key: every word is mixed in and spread over all bits."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for j in range(keys.shape[1]):
        h = h ^ np.uint64(keys[at, j])
        h = (h ^ (h >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        h = h ^ (h >> np.uint64(29))
    return h


@inlined
def equal(one: Words, i: int, other: Words, j: int) -> bool:
    """Whether two keys are the same words."""
    for k in range(one.shape[1]):  # noqa: SIM110, Numba knows no generators
        if one[i, k] != other[j, k]:
            return False
    return True


@inlined
def place_of(keys: Words, i: int, places: Words, store: Words) -> Any:
    """The place of a key, or the empty one where it would be."""
    mask = np.uint64(len(places) - 1)
    p = hashed(keys, i) & mask
    while places[p] != -1 and not equal(keys, i, store, places[p]):
        p = (p + np.uint64(1)) & mask
    return p


@inlined
def new_slot(free: Words, state: Words) -> int:
    """A slot that nobody has."""
    if state[1] > 0:
        state[1] -= 1
        slot = free[state[1]]
    else:
        slot = state[0]
        state[0] += 1
    return slot


@inlined
def added(keys: Words, i: int, places: Words, store: Words, free: Words, state: Words) -> int:
    """The slot of a key, which gets one if it has none."""
    p = place_of(keys, i, places, store)
    slot = places[p]
    if slot == -1:
        slot = new_slot(free, state)
        places[p] = slot
        for k in range(keys.shape[1]):
            store[slot, k] = keys[i, k]
    return slot


@inlined
def taken_out(slot: int, places: Words, store: Words, free: Words, state: Words) -> None:
    """Give a slot back: what was pushed on by its key moves up."""
    mask = np.uint64(len(places) - 1)
    p = place_of(store, slot, places, store)
    free[state[1]] = slot
    state[1] += 1
    q = p
    while True:
        q = (q + np.uint64(1)) & mask
        if places[q] == -1:
            break
        home = hashed(store, places[q]) & mask
        if ((q - home) & mask) >= ((q - p) & mask):
            places[p] = places[q]
            p = q
    places[p] = -1


@compiled
def _add(keys: Words, places: Words, store: Words, free: Words, state: Words, found: Words) -> None:
    for i in range(len(keys)):
        found[i] = added(keys, i, places, store, free, state)


@compiled
def _find(keys: Words, places: Words, store: Words, found: Words) -> None:
    for i in range(len(keys)):
        found[i] = places[place_of(keys, i, places, store)]


@compiled
def _remove(slots: Words, places: Words, store: Words, free: Words, state: Words) -> None:
    for i in range(len(slots)):
        taken_out(slots[i], places, store, free, state)


@compiled
def _replace(places: Words, store: Words, free: Words, state: Words) -> None:
    """Put every key into a larger table."""
    gone = np.zeros(state[0], np.bool_)
    for i in range(state[1]):
        gone[free[i]] = True
    for slot in range(state[0]):
        if not gone[slot]:
            places[place_of(store, slot, places, store)] = slot
