"""Programs whose generated loops are golden files: `loop_NAME.txt`."""

from typing import NamedTuple

import ebbflow as ef


class Order(NamedTuple):
    id: int
    city: str
    price: int


class City(NamedTuple):
    city: str
    country: str


def price_of(order: Order) -> int:
    return int(f"{order.price}")


orders = ef.Input("orders", Order)
cities = ef.Input("cities", City)

LOOPS = {
    "join": orders.join(cities, on="city"),
    "join_map": orders.join(cities, on="city").map(lambda row: (row.country, row.price / 2)),
    "semi": orders.join(cities, on="city", how="semi"),
    "anti": orders.join(cities, on="city", how="anti"),
    "reduce": orders.group_by("city").agg(total=ef.sum(price_of), n=ef.count("id")),
    "filter_map_reduce": orders.filter(lambda order: order.price > 10)
    .map(lambda order: (order.city, order.price * 2))
    .group_by(lambda pair: pair[0])
    .agg(total=ef.sum(lambda pair: pair[1]), mean=ef.mean(lambda pair: pair[1])),
}
