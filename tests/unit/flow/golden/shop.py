"""Revenue by city: a filter, a group, several results."""

from typing import NamedTuple

import ebbflow as ef


class Order(NamedTuple):
    id: int
    city: str
    price: int


orders = ef.Input("orders", Order)
paid = orders.filter(lambda o: o.price > 10)
by_city = paid.group_by("city").agg(total=ef.sum("price"), n=ef.count(), top=ef.max("price"))

program = ef.program(by_city=by_city)
