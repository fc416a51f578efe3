"""A shop that is kept up to date: revenue by city, the best orders, customers without orders.

First a few orders, with every row that enters or leaves a view; then a hundred thousand, to see
what a change costs when there is more to be left alone.

    make demo
"""

from __future__ import annotations

from random import Random
from time import perf_counter
from typing import NamedTuple

import ebbflow as ef
from ebbflow.engine import batch

CITIES = ("Lima", "Oslo", "Rome", "Turin")


class Customer(NamedTuple):
    name: str
    city: str


class Order(NamedTuple):
    id: int
    customer: str
    price: int


customers = ef.Input("customers", Customer, key="name")
orders = ef.Input("orders", Order, key="id")
sales = orders.join(customers, left_on="customer", right_on="name")
shop = ef.program(
    revenue=sales.group_by("city").agg(total=ef.sum("price"), n=ef.count(), top=ef.max("price")),
    best=sales.top_k(1, by="price", per="city").select("city", "customer", "price"),
    idle=customers.join(orders, left_on="name", right_on="customer", how="anti").select("name"),
)


def story(view: ef.View) -> None:
    """A few epochs, and what each does to the views."""

    def tell(what: str, change: dict[str, ef.ZSet]) -> None:
        print(what)
        for name, rows in change.items():
            for row, weight in sorted(rows.items(), key=lambda pair: (pair[1], pair[0])):
                print(f"    {name:<8} {'+' if weight > 0 else '-'} {', '.join(map(str, row))}")

    ann, bob = Customer("ann", "Rome"), Customer("bob", "Oslo")
    first = [Order(1, "ann", 10), Order(2, "bob", 30), Order(3, "ann", 25)]
    tell("two customers, three orders", view.step(customers=[ann, bob], orders=first))
    tell("order 2 is taken back", view.input("orders").delete(2))
    tell("order 3 is corrected: 25 → 5", view.input("orders").upsert(Order(3, "ann", 5)))
    tell("ann moves to Lima", view.input("customers").upsert(Customer("ann", "Lima")))


def at_size(view: ef.View, size: int, changes: int = 1_000) -> None:
    """Load many orders, change some one by one, and compute everything again once."""
    dice = Random(1)
    names = [f"c{i}" for i in range(size // 20)]
    people = [Customer(name, dice.choice(CITIES)) for name in names]
    rows = [Order(10 + i, dice.choice(names), dice.randrange(1, 500)) for i in range(size)]
    started = perf_counter()
    view.step(customers=people, orders=rows)
    loaded = perf_counter()
    till = view.input("orders")
    for order in dice.sample(rows, changes):
        till.upsert(order._replace(price=order.price + 1))
    changed = perf_counter()
    print(f"{size:,} orders loaded in {loaded - started:.1f} s")
    print(f"{changes:,} corrections, one by one: {(changed - loaded) / changes * 1e6:.0f} µs each")
    rows_by_name = {name: inlet.snapshot() for name, inlet in view._inlets.items()}
    started = perf_counter()
    batch.evaluate(view.plan, rows_by_name)
    again = perf_counter() - started
    print(f"computing everything again, as the oracle does: {again * 1e3:.0f} ms")
    print(f"verified: {view.verify()}")


if __name__ == "__main__":
    with shop.run() as view:
        story(view)
        print()
        at_size(view, 100_000)
        print()
        print(view.explain())
