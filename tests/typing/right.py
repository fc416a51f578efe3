"""Programs that are right: a type checker has nothing to say of them, and knows their types.

`assert_type` is for the checkers, and gives its argument at run time. The test also runs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, assert_type

import ebbflow as ef
from ebbflow.operator import text
from ebbflow.record import record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ebbflow.engine.spark.output.frames import Frames
    from ebbflow.engine.spark.view import SparkView


class Order(NamedTuple):
    id: int
    city: str
    price: int
    note: str | None = None


class Person(NamedTuple):
    id: int
    name: str


@dataclass(frozen=True)
class Point:
    x: int
    y: int


class Document(NamedTuple):
    id: int
    body: ef.Text


orders = ef.Input("orders", Order, key="id")
people = ef.Input("people", Person, key=lambda person: person.id)
words = ef.Input("words", str)
numbers = ef.Input("numbers", int)


def inputs() -> None:
    assert_type(orders, ef.Input[Order])
    assert_type(ef.Input("points", Point), ef.Input[Point])
    assert_type(ef.Input("pairs", tuple[int, str]), ef.Input[tuple[int, str]])
    assert_type(ef.Input("anything"), ef.Input[Any])
    assert_type(ef.Input("maybe", int | None), ef.Input[Any])
    ef.Input("maybe", int | None, key=lambda n: n)
    assert_type(ef.Input("made", record("Made", id=int), key="id"), ef.Input[Any])
    assert_type(ef.empty(int), ef.Collection[int])
    said: ef.Input[int | None] = ef.Input("maybe", int | None)
    assert_type(said.filter(lambda n: n is not None), ef.Collection[int | None])


def rows() -> None:
    assert_type(orders.filter(lambda order: order.price > 1), ef.Collection[Order])
    assert_type(orders.filter("note"), ef.Collection[Order])
    assert_type(orders.map(lambda order: order.city), ef.Collection[str])
    assert_type(orders.map("city"), ef.Collection[Any])
    assert_type(orders.map(attrgetter("city"), type=str), ef.Collection[str])
    assert_type(orders.map(lambda order: order.note, type=str | None), ef.Collection[Any])
    assert_type(words.map(str.upper).map(len), ef.Collection[int])
    assert_type(words.flat_map(list), ef.Collection[str])
    assert_type(words.flat_map(lambda word: [len(word)] if word else []), ef.Collection[int])
    assert_type(orders.distinct().sample(0.5).limit(3, order="price"), ef.Collection[Order])
    assert_type(orders.top_k(3, order=lambda order: order.price, per="city"), ef.Collection[Order])
    assert_type(orders.top_k(3, order="price", number="place"), ef.Collection[Any])
    assert_type(orders.limit(3, order=("city", ef.desc("price"))), ef.Collection[Order])
    assert_type(orders.select("city", twice=lambda order: order.price * 2), ef.Collection[Any])
    below = orders.filter(
        lambda order, all: order.price < all.mean, orders.agg(mean=ef.mean("price"))
    )
    assert_type(below, ef.Collection[Order])


def two_collections() -> None:
    assert_type(orders + orders, ef.Collection[Order])
    assert_type(numbers.union(ef.Input("more", float)), ef.Collection[int | float])
    assert_type(orders.except_(orders), ef.Collection[Order])
    assert_type(orders.join(people, on="id"), ef.Collection[Any])
    assert_type(orders.join(people, on="id", how="semi"), ef.Collection[Order])
    assert_type(orders.join(people, on=lambda row: row.id, how="anti"), ef.Collection[Order])
    named = orders.join(
        people, left_on=lambda order: order.id, right_on=lambda person: person.id,
        select=lambda order, person: (person.name, order.price),
    )  # fmt: skip
    assert_type(named, ef.Collection[tuple[str, int]])
    or_nobody = orders.join(
        people, on="id", how="left",
        select=lambda order, person: (order.id, "" if person is None else person.name),
    )  # fmt: skip
    assert_type(or_nobody, ef.Collection[tuple[int, str]])
    assert_type(numbers.cross(words, select=lambda n, word: word * n), ef.Collection[str])


def groups() -> None:
    total = ef.sum(lambda order: order.price)
    cities = orders.group_by("city").agg(
        total=total, best=ef.max(lambda order: order.price), n=ef.count(),
        dear=ef.count().where(lambda order: order.price > 9),
        latest=ef.last("id", order=lambda order: order.price),
    )  # fmt: skip
    assert_type(cities, ef.Collection[Any])
    assert_type(words.group_by(size=len).reduce(ef.sum(len)), ef.Collection[Any])
    ratio = ef.Reducer(
        (0, 0), lambda acc, x: (acc[0] + x, acc[1] + 1), lambda acc, x: (acc[0] - x, acc[1] - 1),
        result=lambda acc: acc[0] / acc[1],
    )  # fmt: skip
    lowest = ef.Reducer(
        None, lambda low, x: x if low is None else min(low, x),
        lambda low, x: ef.RECOMPUTE if x == low else low,
    )  # fmt: skip
    numbers.agg(ratio=ratio, lowest=lowest, both=ef.count() & ef.sum())
    numbers.agg(seen=ef.Reducer({}, lambda seen, n: {**seen, n: True}))
    cities.filter(lambda group: group.total > 3).map(lambda group: group.best)


def order_and_time() -> None:
    assert_type(
        orders.scan(lambda last, order: (last, [order.price]), 0, order="id"),
        ef.Collection[int],
    )
    orders.over(per="city", order="id").with_fields(
        before=ef.window.lag("price"), total=ef.sum(lambda order: order.price)
    )
    found = orders.match(
        cheap=lambda order: order.price < 3, dear=ef.many(lambda order: order.price > 9),
        order="id", per=lambda order: order.city,
    )  # fmt: skip
    assert_type(found, ef.Collection[Any])
    assert_type(orders.within("price", ef.clock("now"), 60), ef.Collection[Order])
    assert_type(numbers.iterate(lambda n: n.map(lambda n: n // 2), rounds=2), ef.Collection[int])
    documents = ef.Input("documents", Document, key="id")
    documents.with_fields(loud=text.upper("body"))


def views() -> None:
    view = orders.filter(lambda order: order.price > 1).run()
    assert_type(view, ef.View[Order])
    assert_type(view.step(orders=[Order(1, "Rome", 3)]), ef.ZSet[Order])
    assert_type(view.value, ef.ZSet[Order])
    assert_type([order.city for order in view.value], list[str])
    assert_type(view.get(1), Order | None)
    assert_type(view.get(1, Order(1, "Oslo", 2)), Order)
    assert_type(view.input("orders").delete(1), ef.ZSet[Order])
    view.on_change(lambda change: print(change.items()))
    with view.branch() as branch:
        assert_type(branch.compare(), ef.ZSet[Order])
    if TYPE_CHECKING:
        kept = orders.run(path="state/", memory="1GB", keep_for=timedelta(hours=1))
        assert_type(kept, ef.View[Order])
    both = ef.program(dear=orders, words=words).run()
    assert_type(both.value, dict[str, ef.ZSet[Any]])
    assert_type(both.step(words=["ebb"])["words"], ef.ZSet[Any])
    assert_type(both["dear"].value, ef.ZSet[Any])


def on_spark() -> None:
    engine = ef.spark(path="state/")
    if TYPE_CHECKING:
        view = orders.run(engine)
        assert_type(view, SparkView[DataFrame])
        assert_type(view.value, DataFrame)
        assert_type(ef.program(orders=orders, words=words).run(engine).value, Frames)


def in_hints(
    collection: ef.Collection, view: ef.View[Order], change: ef.ZSet
) -> ef.Collection[Order]:
    assert_type(collection, ef.Collection[Any])
    assert_type(view.value, ef.ZSet[Order])
    return collection.filter(lambda row: row.anything)
