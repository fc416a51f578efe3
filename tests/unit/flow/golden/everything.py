"""One of each node, with what is shared between several outputs."""

from typing import NamedTuple

import ebbflow as ef
from ebbflow.operator import count


class Order(NamedTuple):
    id: int
    user: str
    city: str
    price: int
    at: int


class User(NamedTuple):
    user: str
    country: str


orders = ef.Input("orders", Order)
returns = ef.Input("returns", Order)
users = ef.Input("users", User, key="user")
blocked = ef.Input("blocked", User)

kept = orders + returns.filter(lambda o: o.price > 0 and o.city != "Atlantis")
known = kept.join(blocked, on="user", how="anti").join(users, on="user")
large = orders.join(users, on="user").filter(lambda o: o.country == "Italy" and o.price > 100)
tags = large.flat_map(lambda o: [(o.city, o.price), (o.country, o.price)])

program = ef.program(
    by_city=known.group_by("city", "country").agg(
        revenue=ef.sum("price"), median=ef.median("price")
    ),
    best=known.top_k(3, order="price", per="city"),
    visits=orders.session("at", 600, per="user").distinct(),
    sizes=large.through(count(), per="city"),
    tags=tags,
    prices=tags.map(lambda tag: tag[1]).filter(lambda price: price > 3),
    pairs=users.cross(blocked, select=lambda a, b: (a.user, b.user)),
    slots=returns.tumbling("at", 60),
    lately=returns.sliding("at", 60, 15),
    negative=orders - returns,
)
