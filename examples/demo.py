"""A shop's revenue by city, kept up to date while orders come, are corrected and are taken back.

    make demo
"""

from typing import NamedTuple

from ebbflow import ZSet, linear
from ebbflow.algebra import ADD, dict_of
from ebbflow.stream import join, pure
from ebbflow.zset import ZSETS


class Order(NamedTuple):
    id: int
    customer: str
    price: int


class Customer(NamedTuple):
    name: str
    city: str


def same_customer(order: Order, customer: Customer) -> bool:
    return order.customer == customer.name


def revenue_of(row: tuple[Order, Customer]) -> dict[str, int]:
    order, customer = row
    return {customer.city: order.price}


totals = dict_of(ADD)
matched = join(same_customer, ZSETS, ZSETS)
revenue = matched >> pure(linear(revenue_of, totals))

ann, bob = Customer("ann", "Rome"), Customer("bob", "Oslo")
first, second, third = Order(1, "ann", 10), Order(2, "bob", 30), Order(3, "ann", 5)

changes = [
    ("two customers, three orders", ZSet.of([first, second, third]), ZSet.of([ann, bob])),
    ("bob's order is taken back", -ZSet.of([second]), ZSet()),
    ("order 3 is corrected: 5 → 8", ZSet.of([third._replace(price=8)]) - ZSet.of([third]), ZSet()),
    ("ann moves to Lima", ZSet(), ZSet.of([ann._replace(city="Lima")]) - ZSet.of([ann])),
    ("bob orders again", ZSet.of([Order(4, "bob", 12)]), ZSet()),
]


def from_scratch() -> dict[str, int]:
    """The same view the plain way: loops over all orders and customers there are at the end."""
    orders = ZSETS.fold(change for _, change, _ in changes)
    customers = ZSETS.fold(change for _, _, change in changes)
    found: dict[str, int] = {}
    for order in orders.rows():
        for customer in customers.rows():
            if order.customer == customer.name:
                found[customer.city] = found.get(customer.city, 0) + order.price
    return found


if __name__ == "__main__":
    live, view = revenue.open(), totals.zero
    print(f"view: {revenue!r}\n")
    print(f"{'what happens':<30} {'change of the view':<30} the view")
    for text, orders, customers in changes:
        change = live.send((orders, customers))
        view = totals.combine(view, change)
        print(f"{text:<30} {change!s:<30} {view}")

    scratch = from_scratch()
    print(f"\nrecomputed from scratch: {scratch}   equal: {scratch == view}")
    assert scratch == view
