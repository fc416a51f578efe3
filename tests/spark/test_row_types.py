"""Frozen dataclasses, TypedDicts and types that have changed, on Spark."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypedDict

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")

from tests.oracle.dataclass_rows import DATACLASSES
from tests.spark.test_oracle import MODES, followed

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.spark.output.frames import zset_of
from ebbflow.testing import random_program
from ebbflow.zset import ZSet


@pytest.mark.parametrize("mode", MODES)
def test_oracle_tasks_over_dataclasses_give_what_batch_gives(mode: str) -> None:
    for seed in range(1):
        followed(mode, random_program(seed, types=DATACLASSES), Random(f"{mode} {seed}"))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_oracle_many_tasks_over_dataclasses_give_what_batch_gives(mode: str) -> None:
    for seed in range(100, 116):
        followed(mode, random_program(seed, types=DATACLASSES), Random(f"{mode} {seed}"))


@dataclass(frozen=True, slots=True)
class Item:
    sku: str
    n: int | None = None


@dataclass(frozen=True)
class Order:
    id: int
    city: str
    price: int | None
    items: list[Item]
    first: Item | None = None


class Later(NamedTuple):
    town: str
    id: float
    price: float | None
    items: list[Item]
    first: Item | None = None
    note: str | None = None


class Place(TypedDict):
    city: str
    land: str | None


ORDERS = [
    Order(1, "Rome", 3, (Item("a"), Item("b", 2)), Item("a")),  # type: ignore[arg-type]
    Order(2, "Oslo", None, ()),  # type: ignore[arg-type]
    Order(3, "Rome", 4, (Item("c", 1),)),  # type: ignore[arg-type]
]


def program(of: Any, city: str, **options: Any) -> Any:
    orders, places = ef.Input("orders", of, key="id", **options), ef.Input("places", Place)
    return ef.program(
        orders=orders,
        cities=orders.group_by(city).agg(n=ef.count(), most=ef.max("price")),
        lands=orders.rename(city=city).join(places, on="city", how="left") if city != "city"
        else orders.join(places, on="city", how="left"),
        dear=orders.filter(lambda order: order.price is not None and order.price > 3),
    )  # fmt: skip


def right(view: Any, now: Any, orders: list[Any], places: list[Any]) -> None:
    expected = evaluate(now.plan, {"orders": ZSet.of(orders), "places": ZSet.of(places)})
    for name, rows in expected.items():
        assert zset_of(view[name].weighted, now.plan.outputs[name].type) == rows, name
    view.verify()


@pytest.mark.parametrize(
    "mode", ["driver", *[pytest.param(m, marks=pytest.mark.slow) for m in ("staged", "bulk")]]
)
def test_a_dataclass_has_columns_and_its_type_may_grow(
    spark: Any, tmp_path: Path, mode: str
) -> None:
    old = program(Order, "city")
    Row = old.plan.sources["places"].type
    italy = Row("Rome", None)
    with old.run(ef.spark(spark, path=tmp_path, mode=mode)) as view:
        view.step(orders=ORDERS, places=[{"city": "Rome"}])
        view.input("orders").upsert({"id": 3, "city": "Bonn", "price": 9, "items": [{"sku": "x"}]})
        orders = [*ORDERS[:2], Order(3, "Bonn", 9, (Item("x"),))]  # type: ignore[arg-type]
        right(view, old, orders, [italy])
        shown = view["orders"].value.orderBy("id").collect()
        assert shown[1].asDict(recursive=True) == {
            "id": 2, "city": "Oslo", "price": None, "items": [], "first": None
        }  # fmt: skip
        assert shown[0].first.asDict() == {"sku": "a", "n": None}
    new = program(Later, "town", renamed={"city": "town"})
    later = [Later(o.city, float(o.id), o.price and float(o.price), *_rest(o)) for o in orders]
    for again in (False, True):
        with new.run(ef.spark(spark, path=tmp_path, mode=mode)) as view:
            assert len(view.converted) == (not again)
            right(view, new, later, [italy])
            if again:
                view.step(orders={later[0]: -1})
                right(view, new, later[1:], [italy])


def _rest(order: Order) -> list[Any]:
    return [getattr(order, each.name) for each in fields(order)[3:]]
