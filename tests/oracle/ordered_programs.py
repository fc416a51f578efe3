"""Random programs that need an order, or how often each value is there: the first rows of each key,
and reducers that show the first value or the last, or count different ones."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.oracle.column_programs import Sale, Shop, less

import ebbflow as ef

SALES: list[Any] = [
    "price", "rate", "city", "tax", "day", "paid", lambda r: r.price % 3, lambda r: -r.id,
    lambda r: (r.tax, r.city), lambda r: r.rate * 2, lambda r: r.city[1:], ("city", "price"),
]  # fmt: skip
SHOPS: list[Any] = [
    "owner",
    "opened",
    "score",
    "at",
    "size",
    ("size", "city"),
    lambda r: r.size * 2,
]


def order(random: Random, parts: list[Any]) -> Any:
    if random.random() < 0.5:
        return random.choice(parts)
    chosen = random.sample(parts, random.randrange(1, 4))
    return tuple(ef.desc(each) if random.random() < 0.5 else each for each in chosen)


def top(random: Random) -> Any:
    """The first rows of a collection, and sometimes more behind them."""
    sales, shops = ef.Input("sales", Sale), ef.Input("shops", Shop)
    shape = random.randrange(5)
    rows, parts = (shops, SHOPS) if shape == 0 else (sales, SALES)
    rows = less(rows, random)
    if shape == 1:
        rows = sales.filter(lambda r: r.price > 0)
    if shape == 2:
        rows = sales.join(shops.select("city", "size"), on="city").select("city", "id", "size")
        parts = ["size", "id", "city", lambda r: r.size - r.id]
    per = random.choice([None, "city", "city", ("city", lambda r: r.id > 9)])
    per = "city" if shape in (0, 2) and per is not None else per
    n, by = random.choice([1, 1, 2, 3, 7, 100]), order(random, parts)
    if random.random() < 0.4:
        offset = random.choice([0, 1, 2, 5])
        return rows.limit(n, order=by, per=per, offset=offset, descending=random.random() < 0.3)
    smallest, ties = random.random() < 0.5, random.random() < 0.2 and not isinstance(by, tuple)
    found: Any = rows.top_k(n, order=by, per=per, smallest=smallest, ties=ties)
    if shape == 3:
        return found.group_by("city").agg(n=ef.count(), sum=ef.sum("id"))
    return found


def ends(random: Random) -> Any:
    """A group-by with the first and last values of groups, and other reducers beside them."""
    sales, shops = ef.Input("sales", Sale), ef.Input("shops", Shop)
    sales, shops = less(sales, random), less(shops, random)
    if random.random() < 0.3:
        rows: Any = shops
        fields = [*Shop._fields, lambda r: r.size * 2 - 1]
    else:
        rows = sales if random.random() < 0.6 else sales.filter(lambda r: r.price > 0)
        fields = [*Sale._fields, lambda r: r.city[1:], lambda r: r.price % 3, lambda r: -r.rate]
    part = lambda: random.choice(fields)
    made: list[Any] = [ef.min("city"), ef.max("city"), ef.max(lambda r: r.city[1:])]
    if rows is shops:
        made += [ef.min("owner"), ef.max("owner")]
    made += [ef.first(part(), order=part()), ef.last(part(), order=part())]
    made += [ef.arg_min(part(), part()), ef.arg_max(part(), part())]
    others = [ef.count(), ef.max(part()), ef.count_distinct(part()), ef.min(part())]
    if random.random() < 0.3:  # no minimum and no maximum: the rows are not kept
        made, others = [*made[-4:], ef.count_distinct(part())], others[::2]
    chosen = random.sample(made, random.randrange(1, 4)) + random.sample(
        others, random.randrange(3)
    )
    named = {f"x{i}": each for i, each in enumerate(chosen)}
    grouped = rows.group_by("city") if random.random() < 0.8 else rows
    return grouped.agg(**named)
