"""Pairing heaps of entries, side by side in one array.

Each entry has a first child and a next sibling. So all entries of a heap are also found from its
root, by a walk (`members`): heaps are the link from a group to its values.

An entry has columns of `entries` for each fence, from `at` on: its first child, its next sibling,
and which of the two heaps of the fence it is in. No child comes before its parent. To put an entry
in takes one comparison; to take the root away takes about as many as the logarithm of the size, on
average.

Entries compare by their `keys`, word by word: a number that is larger comes sooner, a text by its
place among all texts (`ebbflow.kernel.text_order`). In the heap WITHIN a fence the last entry is at
the root, in the one BEYOND it the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.hashing import Words
from ebbflow.kernel.text_order import text_behind

NUMBER, GREATEST_TEXT, LEAST_TEXT = 0, 1, 2
"""What a word is, and for a text which ones come sooner."""
CHILD, NEXT, WHERE = 1, 2, 3
"""The columns of an entry, behind the one at `at`, which is not for its heap."""
NOWHERE, WITHIN, BEYOND = range(3)
"""Which heap it is in."""


@inlined
def is_sooner(a: int, b: int, keys: Words, compared: Words, places: Words, pool: Words) -> Any:
    """Whether an entry comes before another of its group."""
    for k in range(len(compared)):
        x, y = keys[a, k + 1], keys[b, k + 1]
        if x != y:
            if compared[k] == NUMBER:
                return x > y
            return text_behind(x, y, places, pool) == (compared[k] == GREATEST_TEXT)
    return False


@inlined
def melded(
    a: int, b: int, at: int, where: int, entries: Words, keys: Words, compared: Words,
    places: Words, pool: Words,
) -> Any:  # fmt: skip
    """Two heaps of a fence, whose columns begin at `at`, as one; gives its root."""
    if is_sooner(a, b, keys, compared, places, pool) == (where == WITHIN):
        a, b = b, a
    entries[b, at + NEXT] = entries[a, at + CHILD]
    entries[a, at + CHILD] = b
    return a


@inlined
def put_in(
    entry: int, root: int, at: int, where: int, entries: Words, keys: Words, compared: Words,
    places: Words, pool: Words,
) -> Any:  # fmt: skip
    """The root of a heap into which an entry is put."""
    entries[entry, at + CHILD], entries[entry, at + NEXT] = -1, -1
    entries[entry, at + WHERE] = where
    if root == -1:
        return entry
    return melded(root, entry, at, where, entries, keys, compared, places, pool)


@inlined
def without_root(
    root: int, at: int, where: int, entries: Words, keys: Words, compared: Words, places: Words,
    pool: Words,
) -> Any:  # fmt: skip
    """The root of the heap of all but the root: its children in pairs, and then all pairs."""
    child, pairs = entries[root, at + CHILD], -1
    while child != -1:
        one, other = child, entries[child, at + NEXT]
        child = -1
        if other != -1:
            child = entries[other, at + NEXT]
            one = melded(one, other, at, where, entries, keys, compared, places, pool)
        entries[one, at + NEXT] = pairs
        pairs = one
    found = -1
    while pairs != -1:
        one, pairs = pairs, entries[pairs, at + NEXT]
        entries[one, at + NEXT] = -1
        if found == -1:
            found = one
        else:
            found = melded(found, one, at, where, entries, keys, compared, places, pool)
    entries[root, at + CHILD], entries[root, at + WHERE] = -1, NOWHERE
    return found


# ---- all entries of heaps ----


def members(roots: Words, at: int, entries: Words, most: int) -> tuple[Words, Words]:
    """All entries of the heaps with these roots, of which each group has a row; of each entry the
    number of the group, and the entry. There are so many entries at most."""
    owners, found = np.empty(most, np.int64), np.empty(most, np.int64)
    count = _walk(roots, at, entries, owners, found)
    return owners[:count], found[:count]


@compiled
def _walk(roots: Words, at: int, entries: Words, owners: Words, found: Words) -> int:
    """Write down the entries of heaps: those that are there already say where others are."""
    count = 0
    for i in range(len(roots)):
        begin = count
        for j in range(roots.shape[1]):
            if roots[i, j] != -1:
                owners[count], found[count] = i, roots[i, j]
                count += 1
        while begin < count:
            child = entries[found[begin], at + CHILD]
            begin += 1
            while child != -1:
                owners[count], found[count] = i, child
                count += 1
                child = entries[child, at + NEXT]
    return count
