"""A shop's revenue by city, kept up to date while orders come, are corrected and are taken back.

make demo
"""

from typing import NamedTuple

import ebbflow as ef
from ebbflow.change import Both, First, Second
from ebbflow.operator import join


class Order(NamedTuple):
    id: int
    customer: str
    price: int


class Customer(NamedTuple):
    name: str
    city: str


class Sale(NamedTuple):
    city: str
    price: int


def customer_of(order: Order) -> str:
    return order.customer


def name_of(customer: Customer) -> str:
    return customer.name


def sale(order: Order, customer: Customer) -> Sale:
    return Sale(customer.city, order.price)


by_city = join(customer_of, name_of, sale) >> (ef.sum("price") & ef.count()).operator("city")

ann, bob = Customer("ann", "Rome"), Customer("bob", "Oslo")
first, second, third = Order(1, "ann", 10), Order(2, "bob", 30), Order(3, "ann", 5)
rows = ef.ZSet.of

changes = [
    ("two customers, three orders", Both(rows([first, second, third]), rows([ann, bob]))),
    ("bob's order is taken back", First(-rows([second]))),
    ("order 3 is corrected: 5 → 8", First(rows([third._replace(price=8)]) - rows([third]))),
    ("ann moves to Lima", Second(rows([ann._replace(city="Lima")]) - rows([ann]))),
    ("bob orders twice", First(rows([Order(4, "bob", 12), Order(5, "bob", 9)]))),
]


def from_scratch() -> dict[str, tuple[int, int]]:
    """The same view the plain way: loops over all orders and customers there are at the end."""
    orders, customers = ef.ZSet(), ef.ZSet()
    for _, change in changes:
        orders, customers = by_city.input.patch((orders, customers), change)
    found: dict[str, tuple[int, int]] = {}
    for order in orders.rows():
        for customer in customers.rows():
            if order.customer == customer.name:
                total, count = found.get(customer.city, (0, 0))
                found[customer.city] = total + order.price, count + 1
    return found


if __name__ == "__main__":
    live, view = by_city.open((ef.ZSet(), ef.ZSet())), ef.ZSet()
    print(f"the view: {by_city!r}\n")
    print(f"{'what happens':<28} {'leaves the view':<21} {'enters it':<41} the view")
    for text, change in changes:
        moved = live.send(change)
        view += moved
        leave, enter = (sorted(part) for part in (moved.negative(), moved.positive()))
        print(f"{text:<28} {leave!s:<21} {enter!s:<41} {dict(sorted(view))}")

    scratch = from_scratch()
    print(f"\nrecomputed from scratch: {scratch}   equal: {scratch == dict(view)}")
    assert scratch == dict(view)
