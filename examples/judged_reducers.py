"""Reducers that people write, right and wrong, and what ebbflow says about each.

    ebbflow check examples.judged_reducers --all

`EXPECTED` is the verdict each deserves. The wrong ones are not contrived: most have been published,
in documentation and in answers, and all of them pass a quick look.
"""

from __future__ import annotations

import random
from bisect import insort
from typing import Any, NamedTuple

from ebbflow.reducer import RECOMPUTE, Reducer

SMALL = range(-3, 4)
WORDS = ("", "a", "b", "ab")

# ---- averages ----

running_mean = Reducer(
    (0.0, 0),
    lambda acc, x: ((acc[0] * acc[1] + x) / (acc[1] + 1), acc[1] + 1),
    lambda acc, x: ((acc[0] * acc[1] - x) / (acc[1] - 1), acc[1] - 1) if acc[1] > 1 else (0.0, 0),
    name="running_mean", elements=(0.1, 0.7, 3),
)  # fmt: skip
mean_only = Reducer(
    None,
    lambda mean, x: x if mean is None else (mean + x) / 2,
    lambda mean, x: 2 * mean - x,
    name="mean_only", elements=SMALL,
)  # fmt: skip
sum_and_count = Reducer(
    (0, 0),
    lambda acc, x: (acc[0] + x, acc[1] + 1),
    lambda acc, x: (acc[0] - x, acc[1] - 1),
    result=lambda acc: acc[0] / acc[1] if acc[1] else None,
    name="sum_and_count", elements=SMALL,
)  # fmt: skip
heaviest_mean = Reducer(
    (0, 0),
    lambda acc, row: row if row[1] > acc[1] else acc,
    lambda acc, row: (0, 0) if row[1] >= acc[1] else acc,
    name="heaviest_mean", elements=[(10, 1), (20, 2), (30, 2)],
)  # fmt: skip
weighted_mean = Reducer(
    (0, 0),
    lambda acc, row: (acc[0] + row[0] * row[1], acc[1] + row[1]),
    lambda acc, row: (acc[0] - row[0] * row[1], acc[1] - row[1]),
    result=lambda acc: acc[0] / acc[1] if acc[1] else None,
    name="weighted_mean", elements=[(10, 1), (20, 2), (30, 0)],
)  # fmt: skip

# ---- maximum and minimum ----

max_forgets_nothing = Reducer(
    0, max, lambda best, x: best, name="max_forgets_nothing", elements=range(4)
)
max_recomputes = Reducer(
    None,
    lambda best, x: x if best is None else max(best, x),
    lambda best, x: RECOMPUTE if x == best else best,
    name="max_recomputes", elements=SMALL,
)  # fmt: skip
max_always_recomputes = Reducer(
    None, lambda best, x: x if best is None else max(best, x), lambda best, x: RECOMPUTE,
    name="max_always_recomputes", elements=SMALL,
)  # fmt: skip
max_by_merge = Reducer(float("-inf"), max, merge=max, name="max_by_merge", elements=SMALL)
max_by_folding = Reducer(float("-inf"), max, name="max_by_folding", elements=SMALL)

INF = float("inf")


def _second_add(acc: tuple[Any, Any], x: int) -> tuple[Any, Any]:
    low, second = acc
    return (x, low) if x < low else (low, min(second, x))


def _second_remove(acc: tuple[Any, Any], x: int) -> Any:
    low, second = acc
    return (second, INF) if x == low else acc


second_best_careless = Reducer(
    (INF, INF), _second_add, _second_remove, name="second_best_careless", elements=range(4)
)


def _lowest_two_add(acc: tuple[Any, Any, int], x: int) -> tuple[Any, Any, int]:
    low, second, count = acc
    if x < low:
        return x, low, 1
    if x == low:
        return low, second, count + 1
    return low, min(second, x), count


def _lowest_two_remove(acc: tuple[Any, Any, int], x: int) -> Any:
    low, second, count = acc
    if x == low:
        return (low, second, count - 1) if count > 1 else RECOMPUTE
    return RECOMPUTE if x == second else acc


second_best_careful = Reducer(
    (INF, INF, 0), _lowest_two_add, _lowest_two_remove,
    name="second_best_careful", elements=range(4),
)  # fmt: skip

# ---- the row that comes first or last ----


class Order(NamedTuple):
    id: int
    city: str
    price: int
    day: int


ORDERS = [Order(1, "Rome", 30, 4), Order(2, "Oslo", 50, 2), Order(3, "Bern", 20, 7)]


def _recompute(acc: Any, order: Order) -> Any:
    return RECOMPUTE


dearest = Reducer(
    None,
    lambda best, order: order if best is None or order.price > best.price else best,
    _recompute, name="dearest", elements=ORDERS,
)  # fmt: skip
dearest_by_id = Reducer(
    None,
    lambda best, order: order if best is None or _rank(order) > _rank(best) else best,
    _recompute, name="dearest_by_id", elements=ORDERS,
)  # fmt: skip
latest = Reducer(
    None,
    lambda last, order: order if last is None or order.day >= last.day else last,
    _recompute, name="latest", elements=ORDERS,
)  # fmt: skip
last_of_each_city = Reducer(
    {}, lambda last, order: {**last, order.city: order.price}, _recompute,
    name="last_of_each_city", elements=ORDERS,
)  # fmt: skip
first_price_of_each = Reducer(
    {}, lambda first, order: {order.id: order.price, **first}, _recompute,
    name="first_price_of_each", elements=ORDERS,
)  # fmt: skip


def _rank(order: Order) -> tuple[int, Order]:
    return order.price, order


# ---- texts and sets ----

concatenation = Reducer(
    "", lambda text, word: text + word, lambda text, word: text.removesuffix(word),
    name="concatenation", elements=WORDS,
)  # fmt: skip
set_without_counts = Reducer(
    frozenset(), lambda seen, x: seen | {x}, lambda seen, x: seen - {x},
    name="set_without_counts", elements=range(3),
)  # fmt: skip


def _counted(counts: dict[Any, int], x: Any, n: int) -> dict[Any, int]:
    new = {**counts, x: counts.get(x, 0) + n}
    return {key: count for key, count in new.items() if count}


set_with_counts = Reducer(
    {}, lambda counts, x: _counted(counts, x, 1), lambda counts, x: _counted(counts, x, -1),
    result=frozenset, name="set_with_counts", elements=range(3),
)  # fmt: skip
zero_buckets = Reducer(
    {},
    lambda counts, x: {**counts, x: counts.get(x, 0) + 1},
    lambda counts, x: {**counts, x: counts[x] - 1},
    name="zero_buckets", elements=range(3),
)  # fmt: skip

# ---- numbers ----

naive_float_sum = Reducer(
    0.0, lambda total, x: total + x, lambda total, x: total - x,
    name="naive_float_sum", elements=[0.1, 0.2, 0.3, 1e16],
)  # fmt: skip
int_sum = Reducer(
    0, lambda total, x: total + x, lambda total, x: total - x, name="int_sum", elements=SMALL
)
sum_modulo_7 = Reducer(
    0, lambda total, x: (total + x) % 7, lambda total, x: (total - x) % 7,
    name="sum_modulo_7", elements=SMALL,
)  # fmt: skip
product_with_zeros = Reducer(
    1, lambda total, x: total * x, lambda total, x: total // x if x else total,
    name="product_with_zeros", elements=SMALL,
)  # fmt: skip
product_counting_zeros = Reducer(
    (1, 0),
    lambda acc, x: (acc[0] * x, acc[1]) if x else (acc[0], acc[1] + 1),
    lambda acc, x: (acc[0] // x, acc[1]) if x else (acc[0], acc[1] - 1),
    result=lambda acc: 0 if acc[1] else acc[0],
    name="product_counting_zeros", elements=SMALL,
)  # fmt: skip
xor = Reducer(0, lambda bits, x: bits ^ x, lambda bits, x: bits ^ x, name="xor", elements=range(8))

# ---- accumulators that are changed in place, and worse ----


def _append(rows: list[Any], x: Any) -> list[Any]:
    rows.append(x)
    return rows


def _insert(rows: list[Any], x: Any) -> list[Any]:
    insort(rows, x)
    return rows


def _take(rows: list[Any], x: Any) -> list[Any]:
    rows.remove(x)
    return rows


appended_in_place = Reducer([], _append, _take, name="appended_in_place", elements=SMALL)
sorted_in_place = Reducer([], _insert, _take, name="sorted_in_place", elements=SMALL)
sorted_list = Reducer(
    [], lambda rows, x: sorted([*rows, x]), lambda rows, x: _take([*rows], x),
    name="sorted_list", elements=SMALL,
)  # fmt: skip

_shared: list[Any] = []
shared_start = Reducer(lambda: _shared, _insert, _take, name="shared_start", elements=SMALL)

_seen: set[Any] = set()


def _first_time(count: int, x: Any) -> int:
    new = x not in _seen
    _seen.add(x)
    return count + new


def _any_ints() -> Any:
    from hypothesis import strategies as st

    return st.integers()


remembers = Reducer(0, _first_time, name="remembers", elements=_any_ints)
sampled = Reducer(
    0, lambda acc, x: acc + x * random.randrange(2), name="sampled", elements=range(1, 9)
)
_turns = [0]


def _moody(total: int) -> int:
    _turns[0] += 1
    return total + _turns[0] % 2


moody_result = Reducer(
    0, lambda total, x: total + x, lambda total, x: total - x, result=_moody,
    name="moody_result", elements=SMALL,
)  # fmt: skip
rounded_total = Reducer(
    0, lambda total, x: total + x // 2, lambda total, x: total - x // 2,
    name="rounded_total", elements=SMALL,
)  # fmt: skip
clamped = Reducer(
    0, lambda total, x: min(total + x, 5), lambda total, x: total - x,
    name="clamped", elements=range(4),
)  # fmt: skip
promised = Reducer(
    None, max_recomputes.add, max_recomputes.remove, name="promised", partial=False, elements=SMALL
)

EXPECTED = {
    "running_mean": "refuted",
    "mean_only": "refuted",
    "sum_and_count": "invertible",
    "heaviest_mean": "refuted",
    "weighted_mean": "invertible",
    "max_forgets_nothing": "refuted",
    "max_recomputes": "partial",
    "max_always_recomputes": "partial",
    "max_by_merge": "tree",
    "max_by_folding": "refold",
    "second_best_careless": "refuted",
    "second_best_careful": "partial",
    "dearest": "refuted",
    "dearest_by_id": "partial",
    "latest": "refuted",
    "last_of_each_city": "refuted",
    "first_price_of_each": "refuted",
    "concatenation": "refuted",
    "set_without_counts": "refuted",
    "set_with_counts": "invertible",
    "zero_buckets": "refuted",
    "naive_float_sum": "refuted",
    "int_sum": "invertible",
    "sum_modulo_7": "invertible",
    "product_with_zeros": "refuted",
    "product_counting_zeros": "invertible",
    "xor": "invertible",
    "appended_in_place": "refuted",
    "sorted_in_place": "refuted",
    "sorted_list": "invertible",
    "shared_start": "refuted",
    "remembers": "refuted",
    "sampled": "refuted",
    "moody_result": "refuted",
    "rounded_total": "invertible",
    "clamped": "refuted",
    "promised": "refuted",
}

if __name__ == "__main__":
    from ebbflow.laws import judge

    for name, expected in EXPECTED.items():
        judged = judge(globals()[name], examples=30)
        assert judged.verdict == expected, (name, judged.verdict)
        print(f"{judged.verdict:<11} {name}")
