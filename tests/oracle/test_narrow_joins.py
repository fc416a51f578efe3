"""Joins that make narrow rows, and look at a pair before they do, against recomputing."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.zset import ZSet


class Bid(NamedTuple):
    item: int
    price: float | None
    by: str
    at: int
    note: str


class Item(NamedTuple):
    id: int
    kind: str
    opens: int
    ends: int
    seller: int


class Seller(NamedTuple):
    seller: int
    name: str
    town: str


bids, items, sellers = (
    ef.Input("bids", Bid), ef.Input("items", Item, key="id"), ef.Input("sellers", Seller),
)  # fmt: skip
both = bids.join(items, left_on="item", right_on="id")
open_ones = both.filter(lambda row: (row.at >= row.opens) & (row.at <= row.ends))
PROGRAMS = {
    "max": open_ones.group_by("kind").agg(best=ef.max("price")),
    "max of whole rows": both.group_by("kind").agg(best=ef.max("price")),
    "sum": open_ones.group_by("kind").agg(n=ef.sum("at"), m=ef.count()),
    "distinct values": open_ones.group_by("seller").agg(n=ef.count_distinct("price")),
    "top": open_ones.select("kind", "price", "at").top_k(2, order="at", per="kind"),
    "join of a join": open_ones.join(sellers, on="seller")
    .filter(lambda row: row.town != row.kind)
    .group_by("name")
    .agg(last=ef.max("at")),
    "semi": open_ones.select("seller", "kind").join(sellers, on="seller", how="semi"),
    "left": both.select("item", "kind", "at").join(
        sellers, left_on="at", right_on="seller", how="left"
    ),
    "an error in the middle": both.filter(lambda row: row.at // (row.ends + 1) >= 0)
    .group_by("kind")
    .agg(best=ef.max("price")),
}
PRICES = (1.5, -0.0, 0.0, None, float("nan"), 2.0**63, float("inf"))


def row(random: Random, name: str) -> Any:
    if name == "bids":
        return Bid(
            random.randrange(4), random.choice(PRICES), random.choice("ab"), random.randrange(4),
            random.choice("xy"),
        )  # fmt: skip
    if name == "items":
        return Item(random.randrange(4), random.choice("kl"), random.randrange(3),
                    random.randrange(1, 4), random.randrange(3))  # fmt: skip
    return Seller(random.randrange(3), random.choice("mn"), random.choice("klt"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_view_is_what_recomputing_gives(name: str) -> None:
    random = Random(name)
    program = PROGRAMS[name]
    view = program.run()
    there: dict[str, ZSet[Any]] = {each: ZSet() for each in view.plan.sources}
    for number in range(60):
        change = {}
        for each, rows in there.items():
            gone = [old for old in rows if random.random() < (0.9 if number % 20 == 19 else 0.2)]
            new = [row(random, each) for _ in range(random.randrange(4))]
            if each == "items":
                left = {old.id for old in rows if old not in gone}
                new = [*{item.id: item for item in new if item.id not in left}.values()]
            delta = ZSet.of(new) - ZSet({old: rows.weight(old) for old in gone})
            change[each] = delta
            there[each] = rows + delta
        view.step(change)
        (expected,) = evaluate(view.plan, there).values()
        assert view.value == expected
