"""The tables of Nexmark: people who sell things by auction, and those who bid for them.

Prices are in cents, and times in milliseconds, as whole numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef


class Person(NamedTuple):
    id: int
    name: str
    email_address: str
    credit_card: str
    city: str
    state: str
    date_time: int
    extra: str


class Auction(NamedTuple):
    id: int
    item_name: str
    description: str
    initial_bid: int
    reserve: int
    date_time: int
    expires: int
    seller: int
    category: int
    extra: str


class Bid(NamedTuple):
    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    date_time: int
    extra: str


class Side(NamedTuple):
    """A table that is looked up, of `SIDE` keys."""

    key: int
    value: str


SIDE = 1_000
ROWS = {"person": Person, "auction": Auction, "bid": Bid, "side": Side}
KEYS = {"person": "id", "auction": "id", "bid": "date_time", "side": "key"}
"""No two bids are of the same millisecond; but to the programs bids are a bag."""

person = ef.Input("person", Person, key="id")
auction = ef.Input("auction", Auction, key="id")
bid = ef.Input("bid", Bid)
side = ef.Input("side", Side, key="key")
now = ef.clock("now")
