"""The join of two indices of rows: how a change of one, or of both, meets the other.

This equals the loop of `ebbflow.operator.joins.Join`, for changes that have every row once. The
indices have them already (`ebbflow.kernel.chained`), and know what the rows were before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.chained import MARK, NEXT, ChainedRows, half, is_touched, times
from ebbflow.kernel.compiled import compiled, prefetched_whole
from ebbflow.kernel.hashing import BLOCK, Words
from ebbflow.kernel.words import NULL


class Change(NamedTuple):
    """A change of one side of a join: keys, rows and weights, and of each row its entry, and the
    weight that it had before."""

    keys: Words
    rows: Words
    weights: Words
    entries: Words


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
            slots, ours.weights, ours.rows, ours.entries, *right.walked, plan, 0, out, weights, 0,
            walking,
        )  # fmt: skip
    if theirs is not None and done >= 0:
        done = _join(
            others, theirs.weights, theirs.rows, theirs.entries, *left.walked, plan, 1, out,
            weights, done, walking,
        )  # fmt: skip
    if done < 0:
        raise DoesNotFit("a weight of more than 64 bits")
    return out[:, :done], weights[:done]


@compiled
def _join(
    slots: Words, weights: Words, rows: Words, own: Words, keys: Words, first: int, store: Words,
    halves: Words, width: int, touched: Words, many: int, plan: Words, side: int, out: Words,
    products: Words, start: int, walking: Words,
) -> int:  # fmt: skip
    """The pairs of changed rows, whose entries are `own`, with the entries of the other side,
    behind those there are; gives how many there are then, or -1 where a weight has no room. The
    entries of many rows are walked along together, each `walking` with where it is, so that the
    memory of the next ones comes meanwhile."""
    count = start
    for begin in range(0, len(slots), BLOCK):
        alive = 0
        for i in range(begin, min(begin + BLOCK, len(slots))):
            if slots[i] != -1:
                entry = half(keys, slots[i], first)
                prefetched_whole(store, entry)
                walking[alive, 0], walking[alive, 1] = i, entry
                alive += 1
        while alive > 0:
            walked, alive = alive, 0
            for at in range(walked):
                i, entry = walking[at, 0], walking[at, 1]
                after = half(halves, entry, 2 * width + NEXT)
                if after != -1:
                    prefetched_whole(store, after)
                    walking[alive, 0], walking[alive, 1] = i, after
                    alive += 1
                weight = store[entry, width]
                mark = half(halves, entry, 2 * width + MARK)
                if not is_touched(entry, mark, touched, many):
                    product = times(weight, weights[i])
                elif side == 1:
                    continue
                else:
                    was = own[i, 1]
                    product = times(was + weights[i], weight)
                    less = times(was, touched[mark, 1])
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
