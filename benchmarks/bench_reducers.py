"""What does a row that comes or goes cost, beside the plain Python that does the same?

The plain operation is what one would write by hand for that aggregate: `total += x` for a sum, a
dict of counts for a set, a sorted list with bisect for a minimum. It changes its state in place and
cannot go back to an older one; a reducer's accumulators are values.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from random import Random
from typing import Any

from harness import Row, in_turns, main

from ebbflow import reducer as r

Churn = Callable[[], Any]


def kept_up(reducer: r.Reducer, rows: list[Any], changes: list[tuple[Any, Any]]) -> Churn:
    """Each change adds a row and removes another."""
    full = reducer.fold(rows)

    def churn() -> Any:
        acc, add, remove = full, reducer.add, reducer.remove
        for new, old in changes:
            acc = remove(add(acc, new), old)
        return reducer.finish(acc)

    return churn


def plain_total(rows: list[Any], changes: list[tuple[Any, Any]]) -> Churn:
    def churn() -> Any:
        total = 0
        for new, old in changes:
            total += new
            total -= old
        return total

    return churn


def plain_sums(rows: list[Any], changes: list[tuple[Any, Any]]) -> Churn:
    def churn() -> Any:
        size, total, squares = 0, 0.0, 0.0
        for new, old in changes:
            size, total, squares = size + 1, total + new, squares + new * new
            size, total, squares = size - 1, total - old, squares - old * old
        return squares - total * total

    return churn


def plain_counts(rows: list[Any], changes: list[tuple[Any, Any]]) -> Churn:
    counts: dict[Any, int] = {}
    for row in rows:
        counts[row] = counts.get(row, 0) + 1

    def churn() -> Any:
        for new, old in changes:
            counts[new] = counts.get(new, 0) + 1
            left = counts[old] - 1
            if left:
                counts[old] = left
            else:
                del counts[old]
        for new, old in reversed(changes):
            counts[old] = counts.get(old, 0) + 1
            counts[new] -= 1
        return len(counts)

    return churn


def plain_sorted(rows: list[Any], changes: list[tuple[Any, Any]]) -> Churn:
    ordered = sorted(rows)

    def churn() -> Any:
        for new, old in changes:
            insort(ordered, new)
            del ordered[bisect_left(ordered, old)]
        for new, old in reversed(changes):
            insort(ordered, old)
            del ordered[bisect_left(ordered, new)]
        return ordered[0]

    return churn


TOTAL, SUMS = ("total += x", plain_total), ("three sums", plain_sums)
COUNTS, SORTED = ("dict of counts", plain_counts), ("sorted list", plain_sorted)
BOTH_WAYS = {plain_counts, plain_sorted}

CASES: list[tuple[r.Reducer, str, tuple[str, Any]]] = [
    (r.count(), "ints", TOTAL),
    (r.naive_sum(), "floats", TOTAL),
    (r.sum(), "ints", TOTAL),
    (r.sum(), "floats", TOTAL),
    (r.mean(), "floats", TOTAL),
    (r.variance(), "floats", SUMS),
    (r.covariance(lambda x: x, lambda x: -x), "floats", SUMS),
    (r.weighted_mean(lambda x: x, lambda x: x), "floats", SUMS),
    (r.bool_and(), "ints", TOTAL),
    (r.bit_xor(), "ints", TOTAL),
    (r.count_distinct(), "ints", COUNTS),
    (r.histogram(), "ints", COUNTS),
    (r.set_of(), "ints", COUNTS),
    (r.approx_count_distinct(), "ints", COUNTS),
    (r.sum().by(lambda x: x % 100), "ints", COUNTS),
    (r.mode(), "ints", COUNTS),
    (r.min(), "ints", SORTED),
    (r.max(), "floats", SORTED),
    (r.top_k(10), "ints", SORTED),
    (r.median(), "floats", SORTED),
    (r.quantile(0.9), "floats", SORTED),
    (r.rank(50), "ints", SORTED),
    (r.approx_quantile(0.9), "floats", SORTED),
    (r.arg_max(lambda x: -x), "ints", SORTED),
    (r.first(None, order=lambda x: x), "ints", SORTED),
    (r.collect(), "ints", SORTED),
    (r.string_agg(), "ints", SORTED),
    (r.count() & r.sum() & r.max(), "ints", SORTED),
]


def measure(quick: bool) -> list[Row]:
    dice = Random(1)
    size, steps = (300, 40) if quick else (100_000, 1_000)
    kinds = {
        "ints": [dice.randrange(size) for _ in range(size + steps)],
        "floats": [dice.uniform(0.1, 1e6) for _ in range(size + steps)],
    }
    found = []
    for reducer, kind, (what, plain) in CASES:
        rows, new = kinds[kind][:size], kinds[kind][size:]
        changes = list(zip(new, dice.sample(rows, steps), strict=True))
        ours, theirs = kept_up(reducer, rows, changes), plain(rows, changes)
        times = in_turns({"reducer": ours, "plain": theirs}, rounds=3 if quick else 5)
        calls = 2 * steps
        plain_calls = calls * (2 if plain in BOTH_WAYS else 1)
        mine, other = times["reducer"] / calls * 1e6, times["plain"] / plain_calls * 1e6
        found.append(
            {"reducer": repr(reducer).replace("<lambda>", "f"), "rows": size, "of": kind,
             "µs per add/remove": mine, "plain µs": other, "ratio": mine / other, "plain": what}
        )  # fmt: skip
    return found


if __name__ == "__main__":
    main(str(__doc__).split("\n")[0], measure)
