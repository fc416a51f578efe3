"""Random programs that run in columns, and random changes of them with the values that are hard:
NaN, None, -0.0, the largest ints, texts that are empty, dates of long ago, all rows removed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import ebbflow as ef
from ebbflow.zset import ZSet

LARGE = 2**63 - 1


class Sale(NamedTuple):
    id: int
    city: str
    price: int
    tax: int | None
    rate: float
    day: date
    paid: bool


class Shop(NamedTuple):
    city: str
    size: int
    owner: str | None
    opened: date | None
    score: float | None
    at: datetime


def sale(random: Random, hard: float) -> Sale:
    odd = random.random() < hard
    return Sale(
        random.randrange(20),
        random.choice(["Rome", "Oslo", "", "Łódź"]),
        random.choice([LARGE, -LARGE, 2**53 + 1, 0]) if odd else random.randrange(-3, 9),
        random.choice([None, 0, 1, 2]),
        random.choice([math.nan, -0.0, math.inf, 1e308]) if odd else random.randrange(8) / 4,
        random.choice([date(1, 1, 1), date(2024, 2, 29), date(2024, 3, 1)]),
        random.random() < 0.5,
    )


def shop(random: Random, hard: float) -> Shop:
    return Shop(
        random.choice(["Rome", "Oslo", "", "Bergen"]),
        random.choice([2**53 + 1, -1]) if random.random() < hard else random.randrange(4),
        random.choice([None, "ann", "bob"]),
        random.choice([None, date(1969, 12, 31), date(2024, 3, 1)]),
        random.choice([None, math.nan, 0.5, -0.0]),
        random.choice([datetime(1, 1, 1), datetime(2024, 3, 1, 12, 30, 0, 5)]),
    )


HAS_O, SHORT = re.compile("o|O"), re.compile("R.*m")


def odd_price(row: Any) -> bool:
    """A function that cannot be read, of several fields."""
    for place, other in (("Rome", 1), ("Oslo", 2)):
        if row.city == place and row.price % 2 == other:
            return False
    return row.tax is None or row.id // (row.tax + 1) >= 0


TESTS: list[Callable[[Any], Any]] = [
    lambda r: HAS_O.search(r.city) is None,
    lambda r: SHORT.match(r.city),
    lambda r: r.city.title() != "Rome",
    lambda r: r.city < "P",
    lambda r: r.id**2 > r.price,
    lambda r: str(r.city[1:]) == "slo",
    odd_price,
    lambda r: r.price > 2,
    lambda r: r.price * 2 - 1 != r.id + 3,
    lambda r: (r.city == "Rome") | (r.city != "Oslo"),
    lambda r: r.tax is not None and r.tax > 0,
    lambda r: r.paid and not (r.price > 4),
    lambda r: r.rate >= 0.5,
    lambda r: r.rate < r.price,
    lambda r: r.day >= date(2024, 1, 1) and r.day.month == 2,
    lambda r: r.city in ("Rome", "Łódź"),
    lambda r: r.id != 0 and r.price // r.id > 0,
    lambda r: r.price % 3 == 1,
    lambda r: r.price,
    lambda r: "o" in r.city,
    lambda r: len(r.city) == 4,
    lambda r: r.city[:2] == "Os",
    lambda r: (r.tax if r.paid else 0) == 0,
    lambda r: (0 if r.tax is None else r.tax) + r.price > 1,
    lambda r: (r.rate if r.price else r.id) > 0.5,
]
WINDOWS: list[Callable[[Any], Any]] = [
    lambda rows: rows.tumbling("price", 3),
    lambda rows: rows.tumbling("id", 7, origin=-2),
    lambda rows: rows.tumbling(lambda r: r.price * 2 - r.id, 5),
    lambda rows: rows.tumbling(lambda r: 0 if r.tax is None else r.tax, 2, origin=2**62),
    lambda rows: rows.tumbling("rate", 0.5),
    lambda rows: rows.tumbling("day", timedelta(days=2)),
]
MADE: list[dict[str, Any]] = [
    {"city": "city", "price": lambda r: r.price + 1},
    {"city": "city", "price": lambda r: r.price * r.id, "paid": "paid"},
    {"id": "id", "price": lambda r: -r.price if r.paid else abs(r.price), "city": "city"},
    {"city": "city", "price": "price", "year": lambda r: r.day.year, "half": lambda r: r.price / 2},
    {"city": lambda r: r.city[1:], "price": "price"},
    {"price": "price", "tax": "tax", "city": "city", "rate": lambda r: r.rate * 2 + r.price},
    {
        "city": "city",
        "price": lambda r: r.price - 2**40,
        "day": "day",
        "float": lambda r: r.id + 0.5,
    },
    {"city": "city", "price": lambda r: 0 if r.tax is None else r.tax},
    {"city": "city", "price": lambda r: r.tax if r.paid else r.price, "rate": "rate"},
    {"city": "city", "price": "price", "rate": lambda r: r.rate if r.paid else None},
    {"city": "city", "price": "price", "rate": lambda r: r.rate if r.paid else math.nan},
    {"city": "city", "price": lambda r: None if r.id else r.paid},
]


def _group(collection: Any, random: Random, key: Any) -> Any:
    there = collection.node.type._fields
    sums = [ef.sum("price"), ef.mean("price"), ef.sum(lambda r: r.price * 3 - 1), ef.count("price")]
    sums += [
        ef.variance("price"),
        ef.stddev("price"),
        ef.bool_and("price"),
        ef.mean(lambda r: r.price - 2**54),
    ]
    sums += [ef.bit_xor("price"), ef.bit_xor(lambda r: -r.price)]
    kept = [ef.max("price"), ef.min(lambda r: r.price * 2 - 1), ef.count_distinct("city")]
    if "tax" in there:
        sums += [ef.sum("tax"), ef.mean("tax"), ef.count("tax"), ef.stddev("tax", ddof=0)]
        sums += [ef.bool_or("tax"), ef.bool_and(lambda r: r.tax), ef.bit_xor("tax")]
        kept += [ef.min("tax"), ef.max("tax"), ef.count_distinct("tax")]
    if "rate" in there:
        sums += [ef.sum("rate"), ef.sum(lambda r: r.rate * 0.1 - 1.5), ef.mean("rate")]
        kept += [ef.min("rate"), ef.max("rate"), ef.count_distinct("rate")]
    if "day" in there:
        kept += [ef.min("day"), ef.max("day")]
    if "at" in there:
        kept += [ef.max("at"), ef.min("score"), ef.max("opened"), ef.count_distinct("owner")]
    some = random.choice([lambda r: r.price > 1, lambda r: r.city != "Oslo", lambda r: r.price])
    with_price = lambda r: r.price is not None and r.price > 2
    sums += [
        each.where(with_price).where(lambda r: r.city != "") for each in random.sample(sums, 2)
    ]
    sums += [each.where(some) for each in random.sample(sums, 3)]
    sums += [ef.count().where(some), ef.count_distinct("city").where(with_price)]
    sums += [ef.sum(lambda r: 6 // r.price).where(with_price), ef.max("price").where(some)]
    if random.random() < 0.4:
        sums = [*random.sample(sums, 2), *kept]
    chosen = random.sample(sums, random.randrange(1, 4))
    named = {f"x{i}": each for i, each in enumerate(chosen)}
    if random.random() < 0.5:
        named["n"] = ef.count()
    groups = collection.group_by(*key) if key else collection
    return groups.agg(**named)


def less(rows: Any, random: Random) -> Any:
    """Now and then rows behind `-`: some are taken away, and none is owed."""
    if random.random() < 0.8:
        return rows
    some = rows.filter((lambda r: r.size == 2) if rows.node.type is Shop else random.choice(TESTS))
    return random.choice([rows - some, rows + rows - some, rows - some + some])


def program(random: Random) -> Any:
    """One of the shapes that columns know, and what is around it."""
    sales, shops = ef.Input("sales", Sale), less(ef.Input("shops", Shop), random)
    rows: Any = sales
    for _ in range(random.randrange(3)):
        rows = rows.filter(random.choice(TESTS))
    rows = less(rows, random)
    shape = random.randrange(13)
    if shape == 12:
        rows = random.choice(WINDOWS)(rows)
        return rows if random.random() < 0.3 else _group(rows, random, ["city", "window_end"])
    if shape < 4 and random.random() < 0.5:
        rows = rows.select(**random.choice(MADE))
    if shape == 0:
        return rows
    if shape == 1:
        return _group(rows, random, random.choice([["city"], [], ["city", "price"]]))
    if shape == 2:
        other = sales.filter(random.choice(TESTS))
        if rows.node.type is not Sale:
            return _group(rows, random, ["city"])
        rows = rows + other if random.random() < 0.5 else rows + other + other
        return _group(rows, random, ["city"]) if random.random() < 0.5 else rows
    if shape == 3:
        return _group(rows, random, ["city"]).filter(lambda r: r.x0 is not None)
    right: Any = shops.filter(lambda s: s.size < 3) if random.random() < 0.5 else shops
    if shape == 11:
        return comparing(random, rows, right)
    if shape == 8:
        how = random.choice(["semi", "anti"])
        some = rows.join(right, on="city", how=how)
        return some if random.random() < 0.5 else _group(some, random, ["city"])
    if shape == 9:
        few = rows.select("city", "price").distinct()
        return few if random.random() < 0.5 else few.join(right, on="city").select("price", "size")
    if shape == 10:
        if random.random() < 0.5:
            right = right.select("city").distinct()
        both = rows.join(right, on="city", how="semi").join(shops, on="city")
        return rows.join(right, on="city", how="left") if random.random() < 0.5 else both
    if shape == 4:
        joined = rows.join(right, on="city")
    elif shape == 5:
        joined = rows.select("city", "price", "tax").join(right.select("city", "owner"), on="city")
    elif shape == 6:
        joined = rows.join(shops.select("city", "size", "score"), left_on=("city", "id"),
                           right_on=("city", "size"))  # fmt: skip
    else:
        joined = rows.join(right, on="city").filter(lambda r: r.price > 0)
        joined = joined.select("city", "owner", price=lambda r: r.price + r.size)
    if random.random() < 0.5:
        return joined
    return _group(joined, random, random.choice([["city"], ["city", "price"]]))


def comparing(random: Random, rows: Any, right: Any) -> Any:
    """Rows that are compared with those of another collection, by their own values or by the one
    row that there is."""
    how, shape = random.choice(["semi", "anti"]), random.randrange(9)
    sizes = {"n": ef.count(), "size": ef.sum("size"), "low": ef.min("score")}
    if shape == 0:
        return rows.join(right, on="city", where=ef.ne("price", "size"), how=how)
    if shape == 1:
        return rows.join(
            right.select("city", "size"), on="city", where=ef.ne("tax", "size"), how=how
        )
    if shape == 2:
        few = right.select("score", "city")
        return rows.join(few, on="city", where=ef.ne("rate", "score"), how=how)
    if shape == 3:
        return rows.join(rows.select("id", "city"), on="id", where=ef.ne("city", "city"), how=how)
    if shape == 4:
        where = ef.ne("day", lambda shop: shop.opened)
        return rows.join(right, left_on="tax", right_on="size", where=where, how=how)
    if shape == 5:
        half = ef.ne(lambda sale: sale.city[1:], lambda shop: shop.owner)
        return rows.join(
            right, left_on=("city", "id"), right_on=("city", "size"), where=half, how=how
        )
    if shape == 6:
        both = rows.join(right, on="city", how=how).join(right, on="city")
        return both.join(right, on="city", where=ef.ne("owner", "owner"), how=how).select("id")
    if shape == 7:
        ones = right.group_by("city").agg(**sizes)
        return rows.filter(lambda r, one: r.price * one.n > one.size, ones, on="city")
    if random.random() < 0.5:
        ones = right.group_by("city").agg(**sizes)
        few = rows.filter(lambda r, one: one.low is None or r.price > one.low, ones, on="city")
        return _group(few, random, ["city"])
    return rows.filter(lambda r, one: r.id * one.n > one.size, right.agg(**sizes))


def ends_of_groups(random: Random) -> Any:
    """A group-by with minima and maxima, and other reducers beside them."""
    rows: Any = less(ef.Input("sales", Sale), random)
    if random.random() < 0.3:
        rows = rows.join(ef.Input("shops", Shop).select("city", "score"), on="city")
    elif random.random() < 0.5:
        rows = rows.filter(random.choice(TESTS))
    ends = [ef.max("price"), ef.min(lambda r: r.price * 2 - 1), ef.min("tax"), ef.max("tax")]
    ends += [ef.min("rate"), ef.max("rate"), ef.min("day"), ef.max("paid")]
    others = [ef.count(), ef.mean("rate"), ef.variance("price"), ef.bit_xor("tax"), ef.sum("price")]
    chosen = random.sample(ends, random.randrange(1, 4)) + random.sample(
        others, random.randrange(3)
    )
    named = {f"x{i}": each for i, each in enumerate(chosen)}
    return rows.group_by(*random.choice([["city"], ["city", "paid"]])).agg(**named)


def epochs(
    random: Random, names: list[str], count: int, hard: float
) -> Iterator[dict[str, ZSet[Any]]]:
    """Changes of these inputs: rows come, some of them several times, and go, also all of them."""
    there: dict[str, dict[Any, int]] = {"sales": {}, "shops": {}}
    make = {"sales": sale, "shops": shop}
    for _ in range(count):
        epoch: dict[str, ZSet[Any]] = {}
        for name in random.sample(names, random.randrange(1, 1 + len(names))):
            rows = ZSet(there[name])
            several = random.choice([(1,), (1, 2, 5)])
            change: ZSet[Any] = ZSet(
                (make[name](random, hard), random.choice(several))
                for _ in range(random.choice([0, 1, 2, 9]))
            )
            gone = rows if random.random() < 0.1 else ZSet(
                (row, random.randint(1, there[name][row])) for row in
                random.sample(list(there[name]), min(len(there[name]), random.randrange(6)))
            )  # fmt: skip
            change = change - gone
            there[name] = dict((rows + change).items())
            epoch[name] = change
        yield epoch
