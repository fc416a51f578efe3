"""Random programs over Decimals with digits, and random changes of their inputs: values of all
lengths that words hold, halves that are rounded, None, and values of more than 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import ebbflow as ef
from ebbflow.zset import ZSet


class Line(NamedTuple):
    id: int
    city: str
    price: ef.decimal(12, 2)  # type: ignore[valid-type]
    rate: ef.decimal(4, 3) | None  # type: ignore[valid-type]
    long: ef.decimal(18, 4)  # type: ignore[valid-type]
    wide: ef.decimal(38, 6) | None  # type: ignore[valid-type]
    whole: ef.decimal(9)  # type: ignore[valid-type]


class Offer(NamedTuple):
    city: str
    least: ef.decimal(6, 2)  # type: ignore[valid-type]
    most: ef.decimal(15, 2) | None  # type: ignore[valid-type]
    share: ef.decimal(5, 4)  # type: ignore[valid-type]


def units(count: int, scale: int) -> Decimal:
    return Decimal(f"{count}E-{scale}")


def line(random: Random, hard: float) -> Line:
    odd = random.random() < hard
    return Line(
        random.randrange(20),
        random.choice(["Rome", "Oslo", ""]),
        units(random.choice([10**12 - 1, -(10**12) + 1]) if odd else random.randrange(-3, 260), 2),
        None if random.random() < 0.3 else units(random.choice([0, 5, 50, 125, -1000, 9999]), 3),
        units(random.choice([10**18 - 1, -(10**18) + 1]) if odd else random.randrange(10**6), 4),
        random.choice(
            [units(2**63, 6), Decimal("1E+20").quantize(units(1, 6))] if random.random() < hard / 9
            else [None, units(2**63 - 1, 6), units(1 - 2**63, 6)] if odd
            else [None, units(random.randrange(-(10**9), 10**9), 6)]
        ),
        Decimal(random.randrange(-5, 6)),
    )  # fmt: skip


def offer(random: Random, hard: float) -> Offer:
    odd = random.random() < hard
    return Offer(
        random.choice(["Rome", "Oslo", "Bergen"]),
        units(random.randrange(-3, 20), 2),
        random.choice([None, units(10**15 - 1, 2) if odd else units(random.randrange(300), 2)]),
        units(random.randrange(10_000), 4),
    )


D = Decimal
TESTS: list[Callable[[Any], Any]] = [
    lambda r: r.price > 1,
    lambda r: r.price >= D("1.255"),
    lambda r: r.price != r.whole,
    lambda r: r.price == r.long,
    lambda r: r.rate is None or r.rate < D("0.5"),
    lambda r: r.rate == D("0.1250"),
    lambda r: r.rate != 1,
    lambda r: r.price in (D("0.50"), D("1.5"), 2),
    lambda r: r.price,
    lambda r: r.price * r.whole < r.long,
    lambda r: r.whole != 0 and r.price / r.whole > r.id,
    lambda r: r.price / 3 > D("0.333333"),
    lambda r: abs(r.price - r.long) % 7 > 3,
    lambda r: float(r.price) < 1.25,
    lambda r: int(r.price) == r.id,
    lambda r: round(r.price) > 1,
    lambda r: r.wide is not None and r.wide > -r.price,
]
PARTS: list[Any] = [
    "price",
    "rate",
    "long",
    "wide",
    "whole",
    lambda r: r.price * (1 - r.whole),
    lambda r: r.price + r.long,
    lambda r: r.long - r.id,
    lambda r: r.price * r.long,
    lambda r: r.price * r.price * r.price,
    lambda r: r.price / 7,
    lambda r: r.price / D("0.03"),
    lambda r: r.long / r.whole if r.whole else None,
    lambda r: r.price // 3,
    lambda r: r.price % r.whole if r.whole != 0 else r.price,
    lambda r: r.long % D("0.003"),
    lambda r: -r.price,
    lambda r: abs(r.long),
    lambda r: round(r.price, 1),
    lambda r: round(r.long, 2),
    lambda r: round(r.price, -1),
    lambda r: round(r.price, 5),
    lambda r: r.price if r.whole > 0 else r.long,
    lambda r: r.rate if r.id > 3 else 0,
    lambda r: r.price if r.rate is None else r.price * r.rate,
]


def _computed(random: Random) -> dict[str, Any]:
    chosen = random.sample(PARTS, 3)
    fields = {f"y{at}": each for at, each in enumerate(chosen[:2])}
    return {"id": "id", "city": "city", **fields}


def grouped(rows: Any, random: Random) -> Any:
    made, kept = [ef.sum, ef.mean, ef.count, ef.bool_or], random.random() < 0.6
    if kept:
        made += [ef.min, ef.max, ef.count_distinct]
    named = {
        f"x{at}": random.choice(made)(random.choice(PARTS)) for at in range(random.randrange(1, 4))
    }
    if random.random() < 0.4:
        named = {
            name: each if each.made[0] in (ef.min, ef.max) else each.where(random.choice(TESTS[:4]))
            for name, each in named.items()
        }
    if random.random() < 0.4:
        kept, named = False, {"total": ef.sum("price"), "usual": ef.mean("rate"), "n": ef.count()}
    if kept and random.random() < 0.3:
        named["far"] = ef.arg_max("price", of="long")
    keys = random.choice(
        [["city"], ["city", "price"], ["rate"], ["whole"], [], [random.choice(PARTS)]]
    )
    if keys and callable(keys[0]):
        return rows.group_by(key=keys[0]).agg(**named)
    return (rows.group_by(*keys) if keys else rows).agg(**named)


def program(random: Random) -> Any:
    """One of the shapes that columns know."""
    lines, offers = ef.Input("lines", Line), ef.Input("offers", Offer)
    rows: Any = lines
    for _ in range(random.randrange(3)):
        rows = rows.filter(random.choice(TESTS))
    shape = random.randrange(10)
    if shape == 0:
        return rows.select(**_computed(random))
    if shape < 4:
        return grouped(rows, random)
    if shape == 4:
        return rows.select("price", "rate").distinct()
    if shape == 5:
        order = random.choice(["price", ef.desc("long"), ("rate", "whole"), random.choice(PARTS)])
        return rows.top_k(2, order=order, per=random.choice(["city", "whole", None]))
    right: Any = offers.filter(lambda r: r.share < D("0.9"))
    if shape == 6:
        return rows.join(right, left_on=("city", "price"), right_on=("city", "least"))
    if shape == 7:
        how = random.choice(["semi", "anti"])
        return rows.join(right, left_on="price", right_on=random.choice(["least", "most"]), how=how)
    joined = rows.join(right, on="city")
    if shape == 8:
        return joined.filter(lambda r: r.price > r.least).select(
            "id", "most", paid=lambda r: r.price * (1 - r.share), rest=lambda r: r.long - r.least
        )
    return joined.group_by("city").agg(
        paid=ef.sum(lambda r: r.price * r.share), least=ef.min("least"), most=ef.mean("most")
    )


def epochs(
    random: Random, names: list[str], count: int, hard: float
) -> Iterator[dict[str, ZSet[Any]]]:
    """Changes of these inputs: rows come, some of them several times, and go."""
    there: dict[str, ZSet[Any]] = {name: ZSet() for name in names}
    make: dict[str, Any] = {"lines": line, "offers": offer}
    for _ in range(count):
        epoch: dict[str, ZSet[Any]] = {}
        for name in random.sample(names, random.randrange(1, 1 + len(names))):
            rows = dict(there[name].items())
            change: ZSet[Any] = ZSet(
                (make[name](random, hard), random.choice([1, 1, 2, 5]))
                for _ in range(random.choice([0, 1, 2, 12]))
            )
            gone = random.sample(list(rows), min(len(rows), random.choice([0, 1, 2, 6])))
            if random.random() < 0.1:
                gone = list(rows)
            change = change - ZSet((row, random.randint(1, rows[row])) for row in gone)
            there[name] = there[name] + change
            epoch[name] = change
        yield epoch
