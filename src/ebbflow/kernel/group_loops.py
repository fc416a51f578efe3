"""The loops of groups: rows are added to the cells of their groups, and results are read off.

Both go column by column: what is to be done with a column is asked once for all rows, and not once
for each row. `ebbflow.kernel.groups` says what cells, totals and results are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel.compiled import compiled, inlined, prefetched
from ebbflow.kernel.fixed import (
    HIGHEST,
    nearest,
    negated,
    plus,
    product,
    ratio,
    root_of_ratio,
    units_of,
)
from ebbflow.kernel.hashing import BLOCK, Words, added, hashed, is_full, slot_of, taken_out
from ebbflow.kernel.scaled import scaled
from ebbflow.kernel.words import LARGEST, NULL

ADD, COUNT, ADD_FLOAT, COUNT_TRUE, ADD_SQUARE, SEEN, XOR, ONLY = 0, 1, 2, 3, 4, 5, 6, 7
CELLS = {ADD: 1, COUNT: 1, ADD_FLOAT: 2, COUNT_TRUE: 1, ADD_SQUARE: 2, SEEN: 1, XOR: 1, ONLY: 1}
"""How many cells each takes. What is SEEN is written by others: by `Values`, or a `GroupFold`. XOR
has the bits of ints, and ONLY those of any words, NULL as well: so while a group has one row, its
cell is the word of that row."""
TOTAL, TOTAL_OR_NULL, MEAN, FLOAT_TOTAL, FLOAT_MEAN, ALL, ANY, VARIANCE = 0, 1, 2, 3, 4, 5, 6, 7
STDDEV, DECIMAL_TOTAL, DECIMAL_MEAN = 8, 9, 10
MANY = 1000
"""How often a float is added at once."""
LARGEST_ROOT = 3_037_000_499
"""The largest number whose square has 63 bits."""
EXACT = 1 << 53
"""Up to this, every int is a float."""
FINE, OVERFLOWS, NEGATIVE = 0, 1, 2


@compiled
def free_groups(
    slots: Words, cells: Words, marks: Words, places: Words, keys: Words, free: Words, state: Words
) -> None:
    for i in range(len(slots)):
        slot = slots[i]
        if cells[slot, 0] == 0 and marks[slot] != -1:
            marks[slot] = -1
            for j in range(cells.shape[1]):
                cells[slot, j] = 0
            taken_out(slot, places, keys, free, state)


@compiled
def step_of_groups(
    keys: Words, values: Words, weights: Words, start: int, totals: Words, cells: Words,
    marks: Words, epoch: int, touched: Words, old: Words, done: Words, places: Words,
    store: Words, free: Words, state: Words, hashes: Words, slots: Words, results: Words,
    out: Words, floats: Any, bits: Words,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Both loops of a step, the second where there is room for what it gives: says how far there
    was room for keys, and what `given_by_groups` says."""
    at, status = _add(
        keys, values, weights, start, totals, cells, marks, epoch, touched, old, done, places,
        store, free, state, hashes, slots,
    )  # fmt: skip
    if at < len(keys) or status != FINE or out.shape[1] == 0:
        return at, 0, status, 0
    given, status, gone = given_by_groups(
        touched, done[0], old, cells, store, results, out, floats, bits
    )
    return at, given, status, gone


@compiled
def _add(
    keys: Words, values: Words, weights: Words, start: int, totals: Words, cells: Words,
    marks: Words, epoch: int, touched: Words, old: Words, done: Words, places: Words,
    store: Words, free: Words, state: Words, hashes: Words, slots: Words,
) -> tuple[int, int]:  # fmt: skip
    """Add rows from one on to the cells of their groups: gives how far there was room, and whether
    all is fine. The old cells of each group are kept, and `done` says how many groups there are;
    `slots` are the groups of the rows."""
    stop = slots_of(keys, start, places, store, free, state, hashes, slots, marks, cells)
    count = done[0]
    for i in range(start, stop):
        slot = slots[i]
        if marks[slot] != epoch:
            marks[slot] = epoch
            touched[count] = slot
            for j in range(cells.shape[1]):
                old[count, j] = cells[slot, j]
            count += 1
        cells[slot, 0] += weights[i]
    done[0] = count
    for j in range(len(totals)):
        how, column, at = totals[j, 0], totals[j, 1], totals[j, 2]
        if how == ADD:
            fine = add_ints(values, column, weights, start, stop, slots, cells, at)
        elif how in (COUNT, COUNT_TRUE):
            least = NULL if how == COUNT else np.int64(0)
            fine = True
            for i in range(start, stop):
                value = values[i, column]
                if value != NULL and value != least:
                    cells[slots[i], at] += weights[i]
        elif how == SEEN:
            fine = True
        else:
            fine = add_others(how, values, column, weights, start, stop, slots, cells, at)
        if not fine:
            return stop, OVERFLOWS
    return stop, FINE


@inlined
def slots_of(
    keys: Words, start: int, places: Words, store: Words, free: Words, state: Words,
    hashes: Words, slots: Words, marks: Words, cells: Words,
) -> Any:  # fmt: skip
    """Find or make the slot of each key from one on, and ask for the memory of what is kept there;
    gives how far there was room."""
    mask = len(places) - 1
    for begin in range(start, len(keys), BLOCK):
        end = min(begin + BLOCK, len(keys))
        for i in range(begin, end):
            hashes[i - begin] = hashed(keys, i)
            prefetched(places, hashes[i - begin] & mask)
        for i in range(begin, end):
            h = hashes[i - begin]
            if is_full(store, state):
                slot = slot_of(keys, i, h, places, store)
                if slot == -1:
                    return i
            else:
                slot = added(keys, i, h, places, store, free, state)
            slots[i] = slot
            prefetched(marks, slot)
            prefetched(cells, slot)
    return len(keys)


@inlined
def add_ints(
    values: Words, column: int, weights: Words, start: int, stop: int, slots: Words, cells: Words,
    at: int,
) -> Any:  # fmt: skip
    """Add the ints of a column as often as their rows come; says whether all sums fit."""
    wrong = False
    for i in range(start, stop):
        value, weight, slot = values[i, column], weights[i], slots[i]
        if value == NULL:
            continue
        if weight != 1 and weight != -1 and abs(value) > LARGEST // abs(weight):
            return False
        more, was = value * weight, cells[slot, at]
        now = np.int64(np.uint64(was) + np.uint64(more))
        wrong |= ((was ^ now) & (more ^ now)) < 0 or now == NULL
        cells[slot, at] = now
    return not wrong


@inlined
def add_others(
    how: int, values: Words, column: int, weights: Words, start: int, stop: int, slots: Words,
    cells: Words, at: int,
) -> Any:  # fmt: skip
    """Add what has several cells, or bits; says whether all fits."""
    for i in range(start, stop):
        value, weight, slot = values[i, column], weights[i], slots[i]
        if value == NULL and how != ONLY:
            continue
        if how in (XOR, ONLY):
            if weight & 1:
                cells[slot, at] ^= value
        elif how == ADD_SQUARE:
            if abs(value) > LARGEST_ROOT:
                return False
            high, low = product(value * value, abs(weight))
            if weight < 0:
                high, low = negated(high, low)
            cells[slot, at], cells[slot, at + 1] = plus(
                cells[slot, at], cells[slot, at + 1], high, low
            )
        else:
            fits, high, low = units_of(value)
            if not fits or abs(weight) > MANY:
                return False
            if weight < 0:
                high, low = negated(high, low)
            for _ in range(abs(weight)):
                cells[slot, at], cells[slot, at + 1] = plus(
                    cells[slot, at], cells[slot, at + 1], high, low
                )
                if abs(cells[slot, at]) > HIGHEST:
                    return False
    return True


@inlined
def spread(total: Any, high: Any, low: Any, size: Any, less: Any, root: Any) -> Any:
    """The variance of so many numbers, of which the sum and the sum of squares are known, or its
    root."""
    more_high, more_low = product(size, low)
    more_high = more_high + size * high
    less_high, less_low = product(abs(total), abs(total))
    less_high, less_low = negated(less_high, less_low)
    more_high, more_low = plus(more_high, more_low, less_high, less_low)
    if root:
        return root_of_ratio(more_high, more_low, size * (size - less))
    return ratio(more_high, more_low, size * (size - less), 0)


@inlined
def result_of(row: Words, how: int, at: int, of: int, less: int, floats: Any, bits: Words) -> Any:
    """Whether all is fine, and the word of a result of cells that say more than their total."""
    if how == DECIMAL_TOTAL:
        present = row[of] > 0
        return not present or -less < row[at] < less, row[at] if present else NULL
    if how == DECIMAL_MEAN:
        if row[of] <= 0:
            return True, NULL
        return scaled(row[at], less, row[of])
    if row[of] <= less:
        return True, NULL
    if how == TOTAL_OR_NULL:
        return row[at] != NULL, row[at]
    if how == ALL:
        return True, np.int64(row[at] == row[of])
    if how == ANY:
        return True, np.int64(row[at] > 0)
    if how == FLOAT_TOTAL:
        found = nearest(row[at], row[at + 1])
    elif how == FLOAT_MEAN:
        found = ratio(row[at], row[at + 1], row[of], 74)
    elif how in (VARIANCE, STDDEV):
        if row[at + 1] >= 1 << 31 or row[of] >= 1 << 31:
            return False, NULL
        root = how == STDDEV
        found = spread(row[at], row[at + 1], row[at + 2], row[of], less, root)
    elif row[at] > EXACT or row[at] < -EXACT:
        found = ratio(np.int64(-1 if row[at] < 0 else 0), row[at], row[of], 0)
    else:
        found = row[at] / row[of]
    floats[0] = found + 0.0
    return True, bits[0]


@compiled
def given_by_groups(
    touched: Words, count: int, old: Words, cells: Words, keys: Words, results: Words, out: Words,
    floats: Any, bits: Words,
) -> tuple[int, int, int]:  # fmt: skip
    """For each group that was touched, its old result with weight -1 and the new one with 1, if
    they differ: field by field, and last the weights. Gives how many rows these are, whether all is
    fine, and how many groups are empty now."""
    width, last = keys.shape[1], len(out) - 1
    given = gone = 0
    for i in range(count):
        size = cells[touched[i], 0]
        if size < 0:
            return 0, NEGATIVE, 0
        gone += size == 0
        out[last, given] = -1
        given += old[i, 0] != 0
        out[last, given] = 1
        given += size != 0
    for j in range(width):
        k = 0
        for i in range(count):
            slot = touched[i]
            out[j, k] = keys[slot, j]
            k += old[i, 0] != 0
            out[j, k] = keys[slot, j]
            k += cells[slot, 0] != 0
    for j in range(len(results)):
        how, at, of, less = results[j, 0], results[j, 1], results[j, 2], results[j, 3]
        k = 0
        if how == TOTAL:
            for i in range(count):
                slot = touched[i]
                out[width + j, k] = old[i, at]
                k += old[i, 0] != 0
                out[width + j, k] = cells[slot, at]
                k += cells[slot, 0] != 0
            continue
        for i in range(count):
            slot = touched[i]
            fine, word = result_of(old[i], how, at, of, less, floats, bits)
            out[width + j, k] = word
            k += old[i, 0] != 0
            still, word = result_of(cells[slot], how, at, of, less, floats, bits)
            out[width + j, k] = word
            k += cells[slot, 0] != 0
            if not (fine and still):
                return 0, OVERFLOWS, 0
    return without_same(touched, count, old, cells, width, out), FINE, gone


@inlined
def without_same(
    touched: Words, count: int, old: Words, cells: Words, width: int, out: Words
) -> Any:
    """Move rows up over those of groups whose old result is also the new one; gives how many rows
    there are then."""
    k = to = 0
    for i in range(count):
        rows: Any = np.int64(old[i, 0] != 0) + np.int64(cells[touched[i], 0] != 0)
        same = rows == 2
        if same:
            for j in range(width, len(out) - 1):
                if out[j, k] != out[j, k + 1]:
                    same = False
                    break
        if not same:
            if to != k:
                for j in range(len(out)):
                    out[j, to] = out[j, k]
                    if rows == 2:
                        out[j, to + 1] = out[j, k + 1]
            to += rows
        k += rows
    return to
