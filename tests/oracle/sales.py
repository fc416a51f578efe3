"""Sales: orders with the city of their customer, for tests that change or damage a stored state."""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef


class Order(NamedTuple):
    id: int
    customer: int
    price: int


class Customer(NamedTuple):
    customer: int
    city: str


orders = ef.Input("orders", Order, key="id")
customers = ef.Input("customers", Customer)
sales = orders.join(customers, on="customer")
