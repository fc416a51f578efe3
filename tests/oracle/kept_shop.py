"""A shop whose state is on disk, for tests that stop it, kill it and interrupt it.

What an epoch does to its inputs depends on the number of the epoch alone; so a view can be compared
with batch at every moment, whatever has become of the epochs before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any, NamedTuple

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.zset import ZSet

Inputs = dict[str, ZSet[Any]]


class Order(NamedTuple):
    id: int
    city: str
    price: int


class Place(NamedTuple):
    city: str
    land: str


def shop(least: int = 0) -> Any:
    """A program with an index, cells, a tree, and rows of inputs and outputs."""
    orders = ef.Input("orders", Order)
    places = ef.Input("places", Place, key="city")
    paid = orders.filter(lambda order: order.price > least)
    joined = paid.join(places, on="city")
    return ef.program(
        joined=joined,
        lands=joined.group_by("land").agg(total=ef.sum("price"), most=ef.max("price")),
        best=paid.top_k(2, order="price", per="city"),
        cities=orders.select("city").distinct(),
    )


SHOP = shop()


@cache
def change(epoch: int) -> Inputs:
    """What an epoch does to the inputs; the same every time. The shop grows to 60 orders, so that
    epoch 5,000 is compared with batch as fast as epoch 50."""
    dice = Random(epoch)
    there = inputs(epoch - 1)
    cities = {place.city: place for place in there["places"]}
    gone = dice.sample(sorted(there["orders"]), min(2, epoch - 1) if epoch < 30 else 4)
    came = [Order(epoch * 10 + i, dice.choice("abcd"), dice.randrange(9)) for i in range(4)]
    city = dice.choice("abcd")
    moved = [(Place(city, dice.choice("xy")), 1), *([(cities[city], -1)] if city in cities else [])]
    return {"orders": ZSet.of(came) - ZSet.of(gone), "places": ZSet(moved)}


@cache
def inputs(epoch: int) -> Inputs:
    """The inputs after an epoch; they start empty, at epoch 0."""
    if epoch < 1:
        return {"orders": ZSet(), "places": ZSet()}
    return {name: rows + change(epoch)[name] for name, rows in inputs(epoch - 1).items()}


@cache
def expected(epoch: int) -> dict[str, ZSet[Any]]:
    return evaluate(SHOP.plan, inputs(epoch))


def advance(view: Any, last: int, acknowledge: Callable[[int], Any] = lambda epoch: None) -> None:
    while view.epoch < last:
        view.step(change(view.epoch + 1))
        acknowledge(view.epoch)


def whole_life(place: Any, epochs: int, known: list[int], **options: Any) -> None:
    """Run so many epochs at a place, which may crash in any of them; the known ones are noted."""
    view = SHOP.run(path=place, **options)
    end = view._storage._end
    try:
        advance(view, epochs, known.append)
        view.close()
    finally:
        end.detach()  # what has crashed closes nothing


def right(view: Any, epoch: int | None = None) -> None:
    assert view.value == expected(view.epoch if epoch is None else epoch)
