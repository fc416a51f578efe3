"""An outer join: an inner join, and the rows that met nothing; an input with a key."""

from typing import NamedTuple

import ebbflow as ef


class Order(NamedTuple):
    id: int
    customer: int
    price: int


class Person(NamedTuple):
    customer: int
    name: str


orders = ef.Input("orders", Order)
people = ef.Input("people", Person, key="customer")

program = ef.program(named=orders.join(people, on="customer", how="left"))
