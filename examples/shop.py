"""A shop's revenue by country and month, while orders come, are corrected, and are refunded.

A refund does not undo its order: it is money that leaves later, perhaps in another month. So
orders and refunds both become *bookings*, one with a plus and one with a minus, and `+` puts them
into one collection. From there on, revenue is a sum like any other. Nothing says what to do when a
customer moves: the join says it already.

    python examples/shop.py
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef


class Customer(NamedTuple):
    name: str
    country: str


class Order(NamedTuple):
    id: int
    customer: str
    day: str
    price: int


class Refund(NamedTuple):
    order: int
    day: str
    amount: int


class Booking(NamedTuple):
    customer: str
    day: str
    amount: int


def sold(order: Order) -> Booking:
    return Booking(order.customer, order.day, order.price)


def paid_back(refund: Refund, order: Order) -> Booking:
    return Booking(order.customer, refund.day, -refund.amount)


def month(booking: Booking) -> str:
    return booking.day[:7]


customers = ef.Input("customers", Customer, key="name")
orders = ef.Input("orders", Order, key="id")
refunds = ef.Input("refunds", Refund)

refunded = refunds.join(orders, left_on="order", right_on="id", select=paid_back)
bookings = orders.map(sold) + refunded
program = (
    bookings.join(customers, left_on="customer", right_on="name")
    .group_by("country", month=month)
    .agg(revenue=ef.sum("amount"), bookings=ef.count())
)

start = {
    "customers": [Customer("ann", "Italy"), Customer("bob", "Norway"), Customer("eve", "Italy")],
    "orders": [
        Order(1, "ann", "2024-01-10", 100),
        Order(2, "bob", "2024-01-21", 250),
        Order(3, "eve", "2024-02-02", 80),
        Order(4, "ann", "2024-02-28", 40),
    ],
    "refunds": [Refund(1, "2024-02-05", 30)],
}


def tell(change: ef.ZSet) -> None:
    for row, weight in sorted(change.items(), key=lambda each: (each[0][:2], each[1])):
        sign = "+" if weight > 0 else "-"
        print(f"  {sign} {row.country:<7}{row.month}{row.revenue:>6} ({row.bookings})")


def main() -> None:
    view = program.run()
    view.on_change(tell)
    print("the first orders: revenue, and how many bookings")
    view.step(start)

    print("order 3 is corrected: 80 → 95")
    view.input("orders").upsert(Order(3, "eve", "2024-02-02", 95))
    print("bob gets half of his money back, in March")
    view.input("refunds").add(Refund(2, "2024-03-01", 125))
    print("ann moves to Norway, and order 4 is cancelled in the same moment")
    ann, moved = Customer("ann", "Italy"), Customer("ann", "Norway")
    view.step(
        customers=ef.ZSet({ann: -1, moved: 1}),
        orders=ef.ZSet({Order(4, "ann", "2024-02-28", 40): -1}),
    )
    print(f"the shop's revenue: {sum(row.revenue for row in view.value.rows())}")


if __name__ == "__main__":
    main()
