"""The tables of TPC-H: a wholesaler with customers and suppliers all over the world.

Money, quantities, discounts and taxes are decimals of 15 digits, two of them after the point.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

import ebbflow as ef

Amount = ef.decimal(15, 2)
"""Money, quantities, discounts and taxes."""


class Region(NamedTuple):
    r_regionkey: int
    r_name: str
    r_comment: str


class Nation(NamedTuple):
    n_nationkey: int
    n_name: str
    n_regionkey: int
    n_comment: str


class Supplier(NamedTuple):
    s_suppkey: int
    s_name: str
    s_address: str
    s_nationkey: int
    s_phone: str
    s_acctbal: Amount  # type: ignore[valid-type]
    s_comment: str


class Customer(NamedTuple):
    c_custkey: int
    c_name: str
    c_address: str
    c_nationkey: int
    c_phone: str
    c_acctbal: Amount  # type: ignore[valid-type]
    c_mktsegment: str
    c_comment: str


class Part(NamedTuple):
    p_partkey: int
    p_name: str
    p_mfgr: str
    p_brand: str
    p_type: str
    p_size: int
    p_container: str
    p_retailprice: Amount  # type: ignore[valid-type]
    p_comment: str


class PartSupp(NamedTuple):
    ps_partkey: int
    ps_suppkey: int
    ps_availqty: int
    ps_supplycost: Amount  # type: ignore[valid-type]
    ps_comment: str


class Order(NamedTuple):
    o_orderkey: int
    o_custkey: int
    o_orderstatus: str
    o_totalprice: Amount  # type: ignore[valid-type]
    o_orderdate: date
    o_orderpriority: str
    o_clerk: str
    o_shippriority: int
    o_comment: str


class LineItem(NamedTuple):
    l_orderkey: int
    l_partkey: int
    l_suppkey: int
    l_linenumber: int
    l_quantity: Amount  # type: ignore[valid-type]
    l_extendedprice: Amount  # type: ignore[valid-type]
    l_discount: Amount  # type: ignore[valid-type]
    l_tax: Amount  # type: ignore[valid-type]
    l_returnflag: str
    l_linestatus: str
    l_shipdate: date
    l_commitdate: date
    l_receiptdate: date
    l_shipinstruct: str
    l_shipmode: str
    l_comment: str


ROWS = {
    "region": Region,
    "nation": Nation,
    "supplier": Supplier,
    "customer": Customer,
    "part": Part,
    "partsupp": PartSupp,
    "orders": Order,
    "lineitem": LineItem,
}
KEYS = {
    "region": "r_regionkey",
    "nation": "n_nationkey",
    "supplier": "s_suppkey",
    "customer": "c_custkey",
    "part": "p_partkey",
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": "o_orderkey",
    "lineitem": ("l_orderkey", "l_linenumber"),
}
region = ef.Input("region", Region, key=KEYS["region"])
nation = ef.Input("nation", Nation, key=KEYS["nation"])
supplier = ef.Input("supplier", Supplier, key=KEYS["supplier"])
customer = ef.Input("customer", Customer, key=KEYS["customer"])
part = ef.Input("part", Part, key=KEYS["part"])
partsupp = ef.Input("partsupp", PartSupp, key=KEYS["partsupp"])
orders = ef.Input("orders", Order, key=KEYS["orders"])
lineitem = ef.Input("lineitem", LineItem, key=KEYS["lineitem"])
