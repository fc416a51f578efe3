"""The loops of `ebbflow.kernel.ranked`: weights, and fences that follow them.

`weigh` adds weights, and no fence knows of it. `follow` has the fences of the groups that were
touched stand where the weights say; each entry says which weight they know of it. So an interrupt
between the two does no harm, whether the weights are kept or had back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.hashing import BLOCK, Words, added, is_full, look_ahead, taken_out
from ebbflow.kernel.heaps import (
    BEYOND,
    NOWHERE,
    WHERE,
    WITHIN,
    is_sooner,
    put_in,
    without_root,
)

WEIGHT, FOLLOWED, NOTED, GONE, CHANGED, SHOWN, FENCES = range(7)
"""Of each entry: its weight, the one that the fences know, the last step that noted it, the next in
the list of those that are gone, the next in the list of those of which others are shown than before
the step, and how many were. Then, for each fence: how many are inside, and what
`ebbflow.kernel.heaps` says."""
NOT_LISTED, LAST = -2, -1
FIRST_GONE, FIRST_CHANGED, CHANGES, STALE = range(4)
"""What is known of all groups together: the first entry that is gone, the first of which others are
shown and how many of these there are, and how many places in heaps are those of entries that are
gone."""


@compiled
def weigh(
    rows: Words, weights: Words, start: int, step: int, entries: Words, note: Words, done: Words,
    places: Words, keys: Words, free: Words, state: Words, hashes: Words,
) -> tuple[int, bool]:  # fmt: skip
    """Add weights from one row on; gives how far there was room, and whether all are fine."""
    count, fine = done[0], True
    begin = end = start
    for i in range(start, len(rows)):
        if is_full(keys, state):
            done[0] = count
            return i, fine
        if i == end:
            begin, end = i, min(i + BLOCK, len(rows))
            look_ahead(rows, begin, end, places, keys, hashes)
        there = state[0] - state[1]
        entry = added(rows, i, hashes[i - begin], places, keys, free, state)
        if state[0] - state[1] > there:
            for k in range(entries.shape[1]):
                entries[entry, k] = 0
            entries[entry, GONE], entries[entry, CHANGED] = NOT_LISTED, NOT_LISTED
        was = entries[entry, WEIGHT]
        if entries[entry, NOTED] != step:
            entries[entry, NOTED] = step
            note[count, 0], note[count, 1] = entry, was
            count += 1
        now = was + weights[i]
        fine = fine and not ((was ^ now) & (weights[i] ^ now) < 0)
        entries[entry, WEIGHT] = now
    done[0] = count
    for i in range(count):
        fine = fine and entries[note[i, 0], WEIGHT] >= 0
    return len(rows), fine


@compiled
def restore(done: Words, entries: Words) -> None:
    """Have the weights that were noted."""
    for i in range(len(done)):
        entries[done[i, 0], WEIGHT] = done[i, 1]


@compiled
def give_back(
    entries: Words, lists: Words, places: Words, keys: Words, free: Words, state: Words
) -> None:
    """Give back the slots of entries that are gone and in no heap."""
    entry, lists[FIRST_GONE] = lists[FIRST_GONE], LAST
    while entry != LAST:
        following = entries[entry, GONE]
        entries[entry, GONE] = NOT_LISTED
        if entries[entry, WEIGHT] == 0 and in_no_heap(entry, entries):
            taken_out(entry, places, keys, free, state)
        entry = following


@inlined
def in_no_heap(entry: int, entries: Words) -> Any:
    """Whether an entry is in the heaps of no fence."""
    for at in range(FENCES + WHERE, entries.shape[1], 4):  # noqa: SIM110, Numba knows no generators
        if entries[entry, at] != NOWHERE:
            return False
    return True


@inlined
def list_gone(entry: int, entries: Words, lists: Words) -> None:
    """Have an entry without a weight given back, if it is in no heap."""
    if entries[entry, GONE] == NOT_LISTED and in_no_heap(entry, entries):
        entries[entry, GONE] = lists[FIRST_GONE]
        lists[FIRST_GONE] = entry


# ---- heaps made anew ----


@compiled
def heap_anew(
    used: Words, entries: Words, fences: Words, lists: Words, keys: Words, compared: Words,
    places: Words, pool: Words,
) -> None:  # fmt: skip
    """Make all heaps of the entries that are there; those of others are given back."""
    for f in range((fences.shape[1] - 1) // 3):
        at = FENCES + 4 * f
        for i in range(len(used)):
            group = keys[used[i], 0]
            fences[group, 3 * f + 2], fences[group, 3 * f + 3] = -1, -1
            entries[used[i], at + WHERE] = NOWHERE
        for i in range(len(used)):
            entry = used[i]
            if entries[entry, WEIGHT] > 0:
                where = WITHIN if entries[entry, at] > 0 else BEYOND
                group, root = keys[entry, 0], 3 * f + 1 + where
                fences[group, root] = put_in(
                    entry, fences[group, root], at, where, entries, keys, compared, places, pool
                )
    for i in range(len(used)):
        if entries[used[i], WEIGHT] == 0:
            list_gone(used[i], entries, lists)
    lists[STALE] = 0


# ---- fences ----


@compiled
def follow(
    done: Words, shown: bool, entries: Words, fences: Words, limits: Words, lists: Words,
    keys: Words, compared: Words, places: Words, pool: Words,
) -> None:  # fmt: skip
    """Have the fences of the groups of these entries stand where the weights say; of all other
    entries they know the weight. `shown` is whether the delta of
    what is shown is asked for then."""
    drop_changed(entries, lists)
    for i in range(len(done)):
        entry = done[i, 0]
        group = keys[entry, 0]
        was, now = entries[entry, FOLLOWED], entries[entry, WEIGHT]
        entries[entry, FOLLOWED] = now
        fences[group, 0] += np.int64(now > 0) - np.int64(was > 0)
        for f in range(len(limits)):
            at, limit = FENCES + 4 * f, limits[f]
            where = entries[entry, at + WHERE]
            if where == NOWHERE:
                if now > 0:
                    fences[group, 3 * f + 3] = put_in(
                        entry, fences[group, 3 * f + 3], at, BEYOND, entries, keys, compared,
                        places, pool,
                    )  # fmt: skip
                continue
            lists[STALE] += np.int64(now == 0) - np.int64(was == 0)
            if where == WITHIN:
                inside, most = entries[entry, at], min(now, limit)
                if inside == min(was, limit) or inside > most:
                    set_inside(entry, most, f, entries, fences, lists, keys)
        if now == 0:
            list_gone(entry, entries, lists)
    for i in range(len(done)):
        for f in range(len(limits)):
            balance(
                keys[done[i, 0], 0], f, entries, fences, limits, lists, keys, compared, places, pool
            )
    if not shown:
        drop_changed(entries, lists)


@inlined
def set_inside(
    entry: int, inside: int, f: int, entries: Words, fences: Words, lists: Words, keys: Words
) -> None:
    """Have so many of an entry inside."""
    at = FENCES + 4 * f
    if entries[entry, CHANGED] == NOT_LISTED:
        entries[entry, CHANGED], lists[FIRST_CHANGED] = lists[FIRST_CHANGED], entry
        entries[entry, SHOWN] = shown_of(entry, entries)
        lists[CHANGES] += 1
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
    compared: Words, places: Words, pool: Words,
) -> None:  # fmt: skip
    """Have as many inside a fence as should be: the first ones."""
    at, limit = FENCES + 4 * f, limits[f]
    total, within, beyond = 3 * f + 1, 3 * f + 2, 3 * f + 3
    while True:
        for where in range(WITHIN, BEYOND + 1):
            root = fences[group, total + where]
            while root != -1 and entries[root, WEIGHT] == 0:
                rest = without_root(root, at, where, entries, keys, compared, places, pool)
                lists[STALE] -= 1
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
                    last, at, WITHIN, entries, keys, compared, places, pool
                )
                fences[group, beyond] = put_in(
                    last, first, at, BEYOND, entries, keys, compared, places, pool
                )
            continue
        crosses = first != -1 and last != -1
        crosses = crosses and is_sooner(first, last, keys, compared, places, pool)
        if more > 0 and not crosses and last != -1:
            left = min(entries[last, WEIGHT], limit) - entries[last, at]
            if left > 0:
                set_inside(
                    last, entries[last, at] + min(left, more), f, entries, fences, lists, keys
                )
                continue
        if crosses or (more > 0 and first != -1):
            fences[group, beyond] = without_root(
                first, at, BEYOND, entries, keys, compared, places, pool
            )
            fences[group, within] = put_in(
                first, last, at, WITHIN, entries, keys, compared, places, pool
            )
            set_inside(first, min(entries[first, WEIGHT], limit), f, entries, fences, lists, keys)
            continue
        break


# ---- what is shown ----


@inlined
def drop_changed(entries: Words, lists: Words) -> None:
    """Have none of which others are shown."""
    entry = lists[FIRST_CHANGED]
    while entry != LAST:
        following = entries[entry, CHANGED]
        entries[entry, CHANGED] = NOT_LISTED
        entry = following
    lists[FIRST_CHANGED], lists[CHANGES] = LAST, 0


@compiled
def write_delta(entries: Words, lists: Words, found: Words, changes: Words) -> int:
    """Write down of which others are shown, and how many, once."""
    count, entry = 0, lists[FIRST_CHANGED]
    while entry != LAST:
        change = shown_of(entry, entries) - entries[entry, SHOWN]
        if change != 0:
            found[count], changes[count] = entry, change
            count += 1
        entry = entries[entry, CHANGED]
    drop_changed(entries, lists)
    return count
