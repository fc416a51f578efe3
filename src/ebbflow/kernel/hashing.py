"""The hash table of kernels: several words to a slot.

A *slot* is a small number that stands for a key of `width` words. A table finds the slot of a key,
gives new keys a slot, and takes slots back: so whatever is kept for keys is kept in plain arrays,
by slot. Keys are found by open addressing: places are tried one after the other from where the
hash points, until the key is there or a place is empty. When a slot is given back, the places
behind it move up, so that nothing has to remember that one was there.

    places     place -> EMPTY, or in one word the slot, and before it the last bits of the hash
    keys       slot -> the words of its key, and those that are kept beside it
    free       slots that were given back

At most half of the places have a key, or three of four in a table that is *dense*, which is smaller
and a little slower. What is not used of an array takes no memory: only places are written before
they are needed.

A key is compared itself where those bits of the hash are the same, which is seldom for nothing; and
they say where the place of a key would be, if no other were there. A slot has 34 bits: no memory
has room for more. What is kept `beside` a key is read with it: it is in the same lines of memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel.compiled import compiled, inlined, prefetched, prefetched_whole

EMPTY = -1
SMALLEST = 16
BLOCK = 128
"""Of so many keys the memory is asked for before the first of them is looked up."""
FEW = 1 << 16
"""Tables of fewer keys grow faster."""
MANY = 1 << 12
"""So many rows say what keys those behind them will have."""
BITS = 34
"""So many bits of a place are its slot."""
SLOTS = (1 << BITS) - 1
TAGS = (1 << 63) - (1 << BITS)
"""The bits of a place that are those of a hash, from its last one on."""
Words = Any
"""An array of 64-bit words."""


class WordTable:
    """Keys of `width` words, each with a slot, and with room for some words `beside` it.

    >>> table = WordTable(1)
    >>> table.add(np.array([[7], [9], [7]])).tolist(), len(table)
    ([0, 1, 0], 2)
    >>> table.remove(np.array([0])); table.find(np.array([[7], [9]])).tolist()
    [-1, 1]
    """

    __slots__ = ("beside", "dense", "free", "hashes", "keys", "places", "state", "width")

    def __init__(self, width: int, beside: int = 0) -> None:
        self.width, self.beside = width, beside
        self.dense = False
        """Whether it is to be dense when it grows."""
        self.hashes = np.empty(BLOCK, np.int64)
        """Where a loop has the hashes of the keys that come next."""
        self.clear()

    def clear(self) -> None:
        """Have no keys. An interrupt does no harm, where there were none before."""
        self.state = np.array([0, 0, self.width], np.int64)
        """How many slots there are, how many of them are free, and how many words a key has."""
        self.keys = np.empty((SMALLEST // 2, self.width + self.beside), np.int64)
        self.free = np.empty(SMALLEST // 2, np.int64)
        self.places = np.full(SMALLEST, EMPTY, np.int64)

    def __len__(self) -> int:
        return int(self.state[0] - self.state[1])

    @property
    def end(self) -> int:
        """One more than the largest slot that was ever given."""
        return int(self.state[0])

    @property
    def is_full(self) -> bool:
        """Whether a new key would have no room."""
        slots, free, _ = self.state.tolist()
        return bool(free == 0 and slots == len(self.keys))

    @property
    def next_size(self) -> int:
        """How many keys there is room for when it has grown. The room for keys says so, and not
        the places: an interrupt may have come between the two."""
        size = len(self.keys)
        return self._room(self._places(size) * (4 if size < FEW else 2))

    def _room(self, places: int) -> int:
        """How many keys may be in so many places."""
        return places * 3 // 4 if self.dense else places // 2

    def _places(self, keys: int) -> int:
        """How many places so many keys need: a power of two."""
        places = 1 << keys.bit_length()
        return places if keys <= self._room(places) else 2 * places

    def size_for(self, more: int) -> int:
        """How many keys there must be room for, if so many are to come at once; 0 where that is no
        more than is grown by anyway, by and by."""
        if more <= self.next_size:
            return 0
        return self._room(self._places(len(self) + more))

    def reserve(self, more: int) -> None:
        """Have room for so many keys that come."""
        size = self.size_for(more)
        if size:
            self.grow(size)

    def size_after(self, rows: int, new: int, more: int) -> int:
        """How many keys there must be room for, if of so many rows that came at once nearly all had
        a new key, and so many more are to come; 0 where that is not to be expected."""
        if new < MANY or 50 * new < 49 * rows:
            return 0
        return min(1 << (len(self) + more - 1).bit_length(), 64 * len(self.keys))

    def grow(self, size: int = 0) -> None:
        """Have room for more keys. The room for keys comes last, and all sizes follow from it. So
        an interrupt does no harm: growing again makes arrays of the same sizes. Arrays by slot must
        have room before."""
        size = max(size, self.next_size)
        self.free = grown(self.free, size, int(self.state[1]))
        places = np.full(self._places(size), EMPTY, np.int64)
        _place(self.used(), self.keys, self.state, places)
        self.places = places
        self.keys = grown(self.keys, size, self.end)

    def add(self, keys: Words, found: Words = None) -> Words:
        """The slot of each key, written into `found`; a key that is new gets one."""
        found = np.empty(len(keys), np.int64) if found is None else found
        at = _add(keys, 0, self.places, self.keys, self.free, self.state, found)
        while at < len(keys):
            self.grow()
            at = _add(keys, at, self.places, self.keys, self.free, self.state, found)
        return found

    def find(self, keys: Words) -> Words:
        """The slot of each key, or EMPTY."""
        found = np.empty(len(keys), np.int64)
        _find(keys, self.places, self.keys, self.hashes, found)
        return found

    def remove(self, slots: Words) -> None:
        """Give slots back, each once."""
        _remove(slots, self.places, self.keys, self.free, self.state)
        self.shrink()

    def shrink(self) -> None:
        """Let go of the memory of keys that were there, when none is left."""
        slots, free, _ = self.state.tolist()
        if slots > 4 * SMALLEST and slots == free:
            self.clear()

    def used(self) -> Words:
        """The slots that have a key."""
        if not self.state[1]:
            return np.arange(self.end)
        there = np.ones(self.end, np.bool_)
        there[self.free[: self.state[1]]] = False
        return np.flatnonzero(there)

    def words(self, slots: Words) -> Words:
        """The keys of slots, one after the other."""
        return np.ascontiguousarray(self.keys[slots, : self.width])


def grown(array: Words, size: int, used: int | None = None) -> Words:
    """An array with room for so many, or more, in which the first ones, as many as are `used`, are
    the same; what is new in it is undefined."""
    if len(array) >= size:
        return array
    made = np.empty((size, *array.shape[1:]), array.dtype)
    used = len(array) if used is None else used
    made[:used] = array[:used]
    return made


def matrix(columns: Any) -> Words:
    """Columns side by side: an array of one key, or one row, after the other."""
    if len(columns) == 1:
        return np.ascontiguousarray(columns[0]).reshape(-1, 1)
    made = np.empty((len(columns[0]), len(columns)), np.int64)
    for at, column in enumerate(columns):
        made[:, at] = column
    return made


@inlined
def hash_of(words: Words, at: int, width: int) -> Any:
    """The hash of the first so many words of a row: each is mixed in and spread over all bits."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for j in range(width):
        h = (h ^ np.uint64(words[at, j])) * np.uint64(0xFF51AFD7ED558CCD)
        h = h ^ (h >> np.uint64(32))
    return np.int64(h)


@inlined
def hashed(keys: Words, at: int) -> Any:
    """The hash of a key."""
    return hash_of(keys, at, keys.shape[1])


@inlined
def equal(one: Words, i: int, other: Words, j: int) -> bool:
    """Whether a key is the first words of another row."""
    for k in range(one.shape[1]):  # noqa: SIM110, Numba knows no generators
        if one[i, k] != other[j, k]:
            return False
    return True


@inlined
def place_of(keys: Words, i: int, h: int, places: Words, store: Words) -> Any:
    """The place of a key with this hash, or the empty one where it would be."""
    mask = len(places) - 1
    tag = (h << BITS) & TAGS
    p = h & mask
    if keys.shape[1] == 1:
        key = keys[i, 0]
        while places[p] >= 0:
            slot = places[p] ^ tag
            if slot <= SLOTS and store[slot, 0] == key:
                break
            p = (p + 1) & mask
    else:
        while places[p] >= 0:
            slot = places[p] ^ tag
            if slot <= SLOTS and equal(keys, i, store, slot):
                break
            p = (p + 1) & mask
    return p


@inlined
def slot_in(place: int) -> Any:
    """The slot that is in a place, or EMPTY."""
    return place & SLOTS if place >= 0 else np.int64(-1)


@inlined
def slot_of(keys: Words, i: int, h: int, places: Words, store: Words) -> Any:
    """The slot of a key with this hash, or EMPTY."""
    return slot_in(places[place_of(keys, i, h, places, store)])


@inlined
def new_slot(free: Words, state: Words) -> Any:
    """A slot that nobody has."""
    if state[1] > 0:
        state[1] -= 1
        slot = free[state[1]]
    else:
        slot = state[0]
        state[0] += 1
    return slot


@inlined
def added(
    keys: Words, i: int, h: int, places: Words, store: Words, free: Words, state: Words
) -> Any:
    """The slot of a key with this hash, which gets one if it has none."""
    p = place_of(keys, i, h, places, store)
    slot = slot_in(places[p])
    if slot == -1:
        slot = new_slot(free, state)
        places[p] = ((h << BITS) & TAGS) | slot
        for k in range(keys.shape[1]):
            store[slot, k] = keys[i, k]
    return slot


@inlined
def look_ahead(
    keys: Words, begin: int, end: int, places: Words, store: Words, hashes: Words
) -> None:
    """Hash some keys, at most a BLOCK, and ask for the memory that looking them up will read. The
    processor waits for one after the other where each is looked up to the end, and for all of them
    together here."""
    mask = len(places) - 1
    for i in range(begin, end):
        h = hashed(keys, i)
        hashes[i - begin] = h
        prefetched(places, h & mask)
    for i in range(begin, end):
        place = places[hashes[i - begin] & mask]
        if place >= 0:
            prefetched_whole(store, place & SLOTS)


@inlined
def taken_out(slot: int, places: Words, store: Words, free: Words, state: Words) -> None:
    """Give a slot back: what was pushed on by its key moves up."""
    mask = len(places) - 1
    width = state[2]
    p = hash_of(store, slot, width) & mask
    while places[p] & SLOTS != slot:
        p = (p + 1) & mask
    free[state[1]] = slot
    state[1] += 1
    q = p
    while True:
        q = (q + 1) & mask
        if places[q] < 0:
            break
        home = places[q] >> BITS
        if mask > TAGS >> BITS:
            home = hash_of(store, places[q] & SLOTS, width)
        if ((q - home) & mask) >= ((q - p) & mask):
            places[p] = places[q]
            p = q
    places[p] = -1


@inlined
def is_full(store: Words, state: Words) -> Any:
    """Whether a new key would have no room."""
    return state[1] == 0 and state[0] == len(store)


@compiled
def _add(
    keys: Words, at: int, places: Words, store: Words, free: Words, state: Words, found: Words
) -> int:
    """Add keys from the one at `at` on; gives how far there was room."""
    for i in range(at, len(keys)):
        h = hashed(keys, i)
        if is_full(store, state):
            found[i] = slot_of(keys, i, h, places, store)
            if found[i] == -1:
                return i
        else:
            found[i] = added(keys, i, h, places, store, free, state)
    return len(keys)


@compiled
def _find(keys: Words, places: Words, store: Words, hashes: Words, found: Words) -> None:
    for begin in range(0, len(keys), BLOCK):
        end = min(begin + BLOCK, len(keys))
        look_ahead(keys, begin, end, places, store, hashes)
        for i in range(begin, end):
            found[i] = slot_of(keys, i, hashes[i - begin], places, store)


@compiled
def _remove(slots: Words, places: Words, store: Words, free: Words, state: Words) -> None:
    for i in range(len(slots)):
        taken_out(slots[i], places, store, free, state)


@compiled
def _place(slots: Words, store: Words, state: Words, places: Words) -> None:
    """Have the keys of some slots in places that are empty."""
    mask = len(places) - 1
    for i in range(len(slots)):
        h = hash_of(store, slots[i], state[2])
        p = h & mask
        while places[p] >= 0:
            p = (p + 1) & mask
        places[p] = ((h << BITS) & TAGS) | slots[i]
