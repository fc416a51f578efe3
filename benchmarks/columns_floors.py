"""The floors of `columns.py`: loops over arrays that Numba compiles, for one query alone.

Each takes a change as arrays (input -> fields and weights) and gives the change of its result as
arrays. They believe their input: a row that goes is there, no weight is other than 1 and -1, no
sum overflows, and a step that began is not undone. Keys and values are ints of 64 bits, and a row
that goes is found by its id. What an engine does beside this is what it costs to be one.

A table of keys is one array of *places*: a key is looked for from where its hash points, until it
is there or a place is free. Places of keys without rows stay until the table grows.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = Any
Arrays = dict[str, Array]
FREE = np.iinfo(np.int64).min
compiled = numba.njit(cache=True, nogil=True)


@compiled
def place(key: int, places: Array) -> int:
    """Where a key is in the first column of a table, or would be."""
    last = len(places) - 1
    at = ((key * -7046029254386353131) >> 24) & last
    while places[at, 0] != key and places[at, 0] != FREE:
        at = (at + 1) & last
    return at


@compiled
def copied(old: Array, new: Array) -> int:
    """Put what is in a table into a larger one; gives how many keys there are."""
    count = 0
    for i in range(len(old)):
        if old[i, 0] != FREE:
            new[place(old[i, 0], new)] = old[i]
            count += 1
    return count


def empty(size: int, width: int) -> Array:
    places = np.zeros((size, width), np.int64)
    places[:, 0] = FREE
    return places


# ---- sum and count of every group ----


class KernelGroups:
    """A place has a key, the sum, the count, and the number of the last step that touched it."""

    def __init__(self) -> None:
        self.places = empty(1 << 10, 4)
        self.used = self.steps = 0

    def step(self, change: dict[str, Arrays]) -> Arrays:
        orders = change["orders"]
        keys, prices, weights = orders["key"], orders["price"], orders["__weight"]
        self.steps += 1
        touched = np.empty((min(len(keys), len(self.places)), 3), np.int64)
        at = count = 0
        while True:
            at, count, self.used = add_rows(
                keys, prices, weights, at, self.places, self.used, self.steps, touched, count
            )
            if at == len(keys):
                break
            old, self.places = self.places, empty(4 * len(self.places), 4)
            self.used = copied(old, self.places)
            more = np.empty((min(len(keys), len(self.places)), 3), np.int64)
            more[:count] = touched[:count]
            touched = more
        out = changed(touched, count, self.places)
        return dict(zip(("key", "total", "n", "__weight"), out, strict=True))

    def value(self) -> Array:
        return self.places[(self.places[:, 0] != FREE) & (self.places[:, 2] != 0), :3]


@compiled
def add_rows(
    keys: Array, prices: Array, weights: Array, begin: int, places: Array, used: int, step: int,
    touched: Array, count: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Add rows from one on, and remember what each group was before the step. Gives how far there
    was room, how many groups were touched, and how many places are used."""
    for i in range(begin, len(keys)):
        key = keys[i]
        p = place(key, places)
        if places[p, 0] == FREE:
            if 2 * used >= len(places):
                return i, count, used
            used += 1
            places[p, 0] = key
        if places[p, 3] != step:
            places[p, 3] = step
            touched[count, 0], touched[count, 1], touched[count, 2] = (
                key,
                places[p, 1],
                places[p, 2],
            )
            count += 1
        places[p, 1] += prices[i] * weights[i]
        places[p, 2] += weights[i]
    return len(keys), count, used


@compiled
def changed(touched: Array, count: int, places: Array) -> Array:
    """The old row of each group that is another now, and the new one."""
    out = np.empty((4, 2 * count), np.int64)
    n = 0
    for i in range(count):
        p = place(touched[i, 0], places)
        if touched[i, 1] == places[p, 1] and touched[i, 2] == places[p, 2]:
            continue
        if touched[i, 2]:
            for j in range(3):
                out[j, n] = touched[i, j]
            out[3, n] = -1
            n += 1
        if places[p, 2]:
            for j in range(3):
                out[j, n] = places[p, j]
            out[3, n] = 1
            n += 1
    return out[:, :n]


# ---- join ----

FIELDS = ("click", "user", "page", "sale", "price", "__weight")


class KernelPairs:
    """A place has a key, and for each side its last row, plus 1, and how many there are. A row has
    the one before it: a chain.

    The change of the left meets the old right, then the change of the right meets the new left; a
    pair that came and went on the way is given twice, and adds up to nothing.
    """

    def __init__(self) -> None:
        self.places = empty(1 << 10, 5)
        self.used = 0
        self.sides = [np.empty((1 << 10, 4), np.int64) for _ in range(2)]
        """Of each row: its id, its value, the row before it, and the place of a free one."""
        self.ends = np.zeros((2, 2), np.int64)
        """Of each side: how many rows there have been, and how many of them are free."""

    def step(self, change: dict[str, Arrays]) -> Arrays:
        parts = []
        for side, (name, ident, value) in enumerate(
            (("clicks", "click", "page"), ("sales", "sale", "price"))
        ):
            rows = change[name]
            ids, keys, values = rows[ident], rows["user"], rows[value]
            weights = rows["__weight"]
            self.room(side, len(keys))
            found = np.empty(len(keys), np.int64)
            self.used, pairs = find_places(keys, self.places, self.used, found, 1 - side)
            out = np.empty((6, pairs), np.int64)
            meet(keys, ids, values, weights, found, self.places, self.sides[1 - side], side, out)
            parts.append(out)
            chain(ids, values, weights, found, self.places, side, self.sides[side], self.ends[side])
        return dict(zip(FIELDS, np.concatenate(parts, axis=1), strict=True))

    def room(self, side: int, more: int) -> None:
        """Have room for more rows on a side, and for as many keys."""
        if 2 * (self.used + more) > len(self.places):
            size = 1 << (2 * (self.used + more)).bit_length()
            old, self.places = self.places, empty(size, 5)
            self.used = copied(old, self.places)
        need = int(self.ends[side, 0]) + more
        if need > len(self.sides[side]):
            old, self.sides[side] = self.sides[side], np.empty((2 * need, 4), np.int64)
            self.sides[side][: len(old)] = old

    def value(self) -> Array:
        """By the loop that meets: every left row once more."""
        rows = left_rows(self.places, self.sides[0])
        found = np.empty(len(rows), np.int64)
        keys, ids, values = (np.ascontiguousarray(column) for column in rows.T)
        self.used, pairs = find_places(keys, self.places, self.used, found, 1)
        out = np.empty((6, pairs), np.int64)
        ones = np.ones(len(rows), np.int64)
        meet(keys, ids, values, ones, found, self.places, self.sides[1], 0, out)
        return out[:5].T


@compiled
def find_places(keys: Array, places: Array, used: int, found: Array, other: int) -> tuple[int, int]:
    """The place of each key, new ones included. Gives how many are used, and how many pairs the
    keys make with the rows of the other side."""
    for i in range(len(keys)):
        p = place(keys[i], places)
        if places[p, 0] == FREE:
            used += 1
            places[p, 0] = keys[i]
        found[i] = p
    pairs = 0
    for i in range(len(keys)):
        pairs += places[found[i], 3 + other]
    return used, pairs


@compiled
def meet(
    keys: Array, ids: Array, values: Array, weights: Array, found: Array, places: Array,
    others: Array, side: int, out: Array,
) -> None:  # fmt: skip
    """Every row with the chain of its key on the other side."""
    n = 0
    my_id, my_value, their_id, their_value = (0, 2, 3, 4) if side == 0 else (3, 4, 0, 2)
    for i in range(len(keys)):
        at = places[found[i], 2 - side] - 1
        while at >= 0:
            out[my_id, n], out[my_value, n] = ids[i], values[i]
            out[their_id, n], out[their_value, n] = others[at, 0], others[at, 1]
            out[1, n], out[5, n] = keys[i], weights[i]
            n += 1
            at = others[at, 2]


@compiled
def chain(
    ids: Array, values: Array, weights: Array, found: Array, places: Array, side: int, rows: Array,
    ends: Array,
) -> None:  # fmt: skip
    """Put rows that come at the end of their chain, and take out those that go."""
    for i in range(len(ids)):
        p = found[i]
        last = places[p, 1 + side] - 1
        places[p, 3 + side] += weights[i]
        if weights[i] > 0:
            if ends[1]:
                ends[1] -= 1
                at = rows[ends[1], 3]
            else:
                at = ends[0]
                ends[0] += 1
            rows[at, 0], rows[at, 1], rows[at, 2] = ids[i], values[i], last
            places[p, 1 + side] = at + 1
            continue
        at, after = last, -1
        while rows[at, 0] != ids[i]:
            at, after = rows[at, 2], at
        if after < 0:
            places[p, 1 + side] = rows[at, 2] + 1
        else:
            rows[after, 2] = rows[at, 2]
        rows[ends[1], 3] = at
        ends[1] += 1


@compiled
def left_rows(places: Array, rows: Array) -> Array:
    """The key, the id and the value of every row on the left."""
    count = 0
    for p in range(len(places)):
        count += places[p, 3]
    out = np.empty((count, 3), np.int64)
    n = 0
    for p in range(len(places)):
        at = places[p, 1] - 1
        while at >= 0:
            out[n, 0], out[n, 1], out[n, 2] = places[p, 0], rows[at, 0], rows[at, 1]
            n += 1
            at = rows[at, 2]
    return out


KERNELS = {"group": KernelGroups, "join": KernelPairs}
