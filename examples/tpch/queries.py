"""The 22 queries of TPC-H as programs, with the parameters of its validation run.

A query of TPC-H is asked once; these stay answered while orders come, are corrected and are taken
away.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Any

import ebbflow as ef
from examples.tpch.tables import (
    customer,
    lineitem,
    nation,
    orders,
    part,
    partsupp,
    region,
    supplier,
)


def revenue(line: Any) -> Any:
    """The price of a line less its discount."""
    return line.l_extendedprice * (1 - line.l_discount)


def between(field: str, first: date, end: date) -> Any:
    """Whether a date is from the first day on, and before the end."""
    return lambda row: (getattr(row, field) >= first) & (getattr(row, field) < end)


def q1() -> Any:
    """What was shipped until September 1998, by state."""
    last = date(1998, 9, 2)
    return (
        lineitem.filter(lambda line: line.l_shipdate <= last)
        .group_by("l_returnflag", "l_linestatus")
        .agg(
            sum_qty=ef.sum("l_quantity"),
            sum_base_price=ef.sum("l_extendedprice"),
            sum_disc_price=ef.sum(revenue),
            sum_charge=ef.sum(lambda line: revenue(line) * (1 + line.l_tax)),
            avg_qty=ef.mean("l_quantity"),
            avg_price=ef.mean("l_extendedprice"),
            avg_disc=ef.mean("l_discount"),
            count_order=ef.count(),
        )
    )


def _nations(of: str) -> Any:
    """The nations of a region."""
    there = region.filter(lambda row: row.r_name == of)
    return nation.join(there, left_on="n_regionkey", right_on="r_regionkey", how="semi").select(
        "n_nationkey", "n_name"
    )


def q2() -> Any:
    """The cheapest suppliers in Europe of brass parts of size 15."""
    wanted = part.filter(lambda row: (row.p_size == 15) & row.p_type.endswith("BRASS"))
    suppliers = supplier.join(_nations("EUROPE"), left_on="s_nationkey", right_on="n_nationkey")
    offers = (
        partsupp.select("ps_partkey", "ps_suppkey", "ps_supplycost")
        .join(wanted.select("p_partkey", "p_mfgr"), left_on="ps_partkey", right_on="p_partkey")
        .join(suppliers, left_on="ps_suppkey", right_on="s_suppkey")
    )
    least = offers.group_by("p_partkey").agg(least=ef.min("ps_supplycost"))
    return (
        offers.join(
            least,
            left_on=("p_partkey", "ps_supplycost"),
            right_on=("p_partkey", "least"),
            how="semi",
        )
        .select(
            "s_acctbal", "s_name", "n_name", "p_partkey", "p_mfgr", "s_address", "s_phone",
            "s_comment",
        )
        .limit(100, order=(ef.desc("s_acctbal"), "n_name", "s_name", "p_partkey"))
    )  # fmt: skip


def q3() -> Any:
    """The ten open orders that would bring most, of one segment."""
    day = date(1995, 3, 15)
    buyers = customer.filter(lambda row: row.c_mktsegment == "BUILDING").select("c_custkey")
    opened = (
        orders.filter(lambda row: row.o_orderdate < day)
        .select("o_orderkey", "o_custkey", "o_orderdate", "o_shippriority")
        .join(buyers, left_on="o_custkey", right_on="c_custkey", how="semi")
    )
    return (
        lineitem.filter(lambda row: row.l_shipdate > day)
        .select("l_orderkey", "l_extendedprice", "l_discount")
        .join(opened, left_on="l_orderkey", right_on="o_orderkey")
        .group_by("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(revenue=ef.sum(revenue))
        .limit(10, order=(ef.desc("revenue"), "o_orderdate", "l_orderkey"))
    )


def q4() -> Any:
    """Orders of a quarter of which a line came late, by priority."""
    late = lineitem.filter(lambda row: row.l_commitdate < row.l_receiptdate)
    return (
        orders.filter(between("o_orderdate", date(1993, 7, 1), date(1993, 10, 1)))
        .select("o_orderkey", "o_orderpriority")
        .join(late.select("l_orderkey"), left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .group_by("o_orderpriority")
        .agg(order_count=ef.count())
    )


def q5() -> Any:
    """What suppliers in Asia sold to customers of their own nation in 1994."""
    sold = orders.filter(between("o_orderdate", date(1994, 1, 1), date(1995, 1, 1)))
    buyers = sold.select("o_orderkey", "o_custkey").join(
        customer.select("c_custkey", "c_nationkey"), left_on="o_custkey", right_on="c_custkey"
    )
    sellers = supplier.select("s_suppkey", "s_nationkey").join(
        _nations("ASIA"), left_on="s_nationkey", right_on="n_nationkey"
    )
    return (
        lineitem.select("l_orderkey", "l_suppkey", "l_extendedprice", "l_discount")
        .join(sellers, left_on="l_suppkey", right_on="s_suppkey")
        .join(
            buyers,
            left_on=("l_orderkey", "s_nationkey"),
            right_on=("o_orderkey", "c_nationkey"),
        )
        .group_by("n_name")
        .agg(revenue=ef.sum(revenue))
    )


LEAST, MOST = Decimal("0.05"), Decimal("0.07")


def q6() -> Any:
    """What smaller discounts would have brought in 1994."""
    in_1994 = between("l_shipdate", date(1994, 1, 1), date(1995, 1, 1))
    return (
        lineitem.filter(in_1994)
        .filter(lambda row: (row.l_discount >= LEAST) & (row.l_discount <= MOST))
        .filter(lambda row: row.l_quantity < 24)
        .agg(revenue=ef.sum(lambda row: row.l_extendedprice * row.l_discount))
    )


def q7() -> Any:
    """What France and Germany shipped to each other, by year."""
    two = nation.filter(lambda row: (row.n_name == "FRANCE") | (row.n_name == "GERMANY"))
    sellers = supplier.select("s_suppkey", "s_nationkey").join(
        two.select("n_nationkey", supp_nation="n_name"),
        left_on="s_nationkey", right_on="n_nationkey",
    )  # fmt: skip
    buyers = (
        orders.select("o_orderkey", "o_custkey")
        .join(
            customer.select("c_custkey", "c_nationkey"), left_on="o_custkey", right_on="c_custkey"
        )
        .join(
            two.select("n_nationkey", cust_nation="n_name"),
            left_on="c_nationkey", right_on="n_nationkey",
        )
        .select("o_orderkey", "cust_nation")
    )  # fmt: skip
    return (
        lineitem.filter(between("l_shipdate", date(1995, 1, 1), date(1997, 1, 1)))
        .select("l_orderkey", "l_suppkey", "l_extendedprice", "l_discount", "l_shipdate")
        .join(sellers.select("s_suppkey", "supp_nation"), left_on="l_suppkey", right_on="s_suppkey")
        .join(buyers, left_on="l_orderkey", right_on="o_orderkey")
        .filter(lambda row: row.supp_nation != row.cust_nation)
        .group_by("supp_nation", "cust_nation", l_year=lambda row: row.l_shipdate.year)
        .agg(revenue=ef.sum(revenue))
    )


def q8() -> Any:
    """The share of Brazil among who sold a kind of steel to America, by year."""
    steel = part.filter(lambda row: row.p_type == "ECONOMY ANODIZED STEEL").select("p_partkey")
    american = customer.select("c_custkey", "c_nationkey").join(
        _nations("AMERICA"), left_on="c_nationkey", right_on="n_nationkey", how="semi"
    )
    bought = (
        orders.filter(between("o_orderdate", date(1995, 1, 1), date(1997, 1, 1)))
        .select("o_orderkey", "o_custkey", "o_orderdate")
        .join(american, left_on="o_custkey", right_on="c_custkey", how="semi")
    )
    sellers = supplier.select("s_suppkey", "s_nationkey").join(
        nation.select("n_nationkey", "n_name"), left_on="s_nationkey", right_on="n_nationkey"
    )
    return (
        lineitem.select("l_orderkey", "l_partkey", "l_suppkey", "l_extendedprice", "l_discount")
        .join(steel, left_on="l_partkey", right_on="p_partkey", how="semi")
        .join(bought, left_on="l_orderkey", right_on="o_orderkey")
        .join(sellers, left_on="l_suppkey", right_on="s_suppkey")
        .group_by(o_year=lambda row: row.o_orderdate.year)
        .agg(
            of_brazil=ef.sum(revenue).where(lambda row: row.n_name == "BRAZIL"),
            of_all=ef.sum(revenue),
        )
        .fill_null(of_brazil=0)
        .select("o_year", mkt_share=lambda row: row.of_brazil / row.of_all)
    )


def q9() -> Any:
    """What green parts have gained, by nation and year."""
    green = part.filter(lambda row: "green" in row.p_name).select("p_partkey")
    sellers = supplier.select("s_suppkey", "s_nationkey").join(
        nation.select("n_nationkey", "n_name"), left_on="s_nationkey", right_on="n_nationkey"
    )
    return (
        lineitem.select(
            "l_orderkey", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount"
        )
        .join(green, left_on="l_partkey", right_on="p_partkey", how="semi")
        .join(
            partsupp.select("ps_partkey", "ps_suppkey", "ps_supplycost"),
            left_on=("l_partkey", "l_suppkey"), right_on=("ps_partkey", "ps_suppkey"),
        )
        .join(sellers, left_on="l_suppkey", right_on="s_suppkey")
        .join(
            orders.select("o_orderkey", "o_orderdate"), left_on="l_orderkey", right_on="o_orderkey"
        )
        .group_by("n_name", o_year=lambda row: row.o_orderdate.year)
        .agg(sum_profit=ef.sum(lambda row: revenue(row) - row.ps_supplycost * row.l_quantity))
    )  # fmt: skip


def q10() -> Any:
    """The twenty customers who sent most back, of a quarter."""
    bought = orders.filter(between("o_orderdate", date(1993, 10, 1), date(1994, 1, 1)))
    lost = (
        lineitem.filter(lambda row: row.l_returnflag == "R")
        .select("l_orderkey", "l_extendedprice", "l_discount")
        .join(bought.select("o_orderkey", "o_custkey"), left_on="l_orderkey", right_on="o_orderkey")
        .group_by("o_custkey")
        .agg(revenue=ef.sum(revenue))
    )
    buyers = customer.join(
        nation.select("n_nationkey", "n_name"), left_on="c_nationkey", right_on="n_nationkey"
    )
    return (
        lost.join(buyers, left_on="o_custkey", right_on="c_custkey")
        .select(
            "c_custkey", "c_name", "revenue", "c_acctbal", "n_name", "c_address", "c_phone",
            "c_comment",
        )
        .limit(20, order=(ef.desc("revenue"), "c_custkey"))
    )  # fmt: skip


def q11() -> Any:
    """Parts in Germany that are worth more than a ten-thousandth of all."""
    german = supplier.select("s_suppkey", "s_nationkey").join(
        nation.filter(lambda row: row.n_name == "GERMANY"),
        left_on="s_nationkey", right_on="n_nationkey", how="semi",
    )  # fmt: skip
    stock = partsupp.select("ps_partkey", "ps_suppkey", "ps_availqty", "ps_supplycost").join(
        german, left_on="ps_suppkey", right_on="s_suppkey", how="semi"
    )

    def worth(row: Any) -> Any:
        return row.ps_supplycost * row.ps_availqty

    whole = stock.agg(value=ef.sum(worth))
    return (
        stock.group_by("ps_partkey")
        .agg(value=ef.sum(worth))
        .filter(lambda row, all: row.value * FRACTION > all.value, whole)
    )


FRACTION = 10_000
"""Of which fraction of the whole Q11 asks: one in so many, at scale 1."""


def q12() -> Any:
    """Lines that came late by mail and by ship, of urgent orders and others."""
    late = (
        lineitem.filter(lambda row: (row.l_shipmode == "MAIL") | (row.l_shipmode == "SHIP"))
        .filter(between("l_receiptdate", date(1994, 1, 1), date(1995, 1, 1)))
        .filter(
            lambda row: (row.l_commitdate < row.l_receiptdate) & (row.l_shipdate < row.l_commitdate)
        )
        .select("l_orderkey", "l_shipmode")
    )

    def urgent(row: Any) -> Any:
        return (row.o_orderpriority == "1-URGENT") | (row.o_orderpriority == "2-HIGH")

    return (
        late.join(
            orders.select("o_orderkey", "o_orderpriority"),
            left_on="l_orderkey", right_on="o_orderkey",
        )
        .group_by("l_shipmode")
        .agg(high=ef.count().where(urgent), all=ef.count())
        .select("l_shipmode", high_line_count="high", low_line_count=lambda row: row.all - row.high)
    )  # fmt: skip


_SPECIAL = re.compile("special.*requests", re.DOTALL)


def _unspecial(row: Any) -> bool:
    return _SPECIAL.search(row.o_comment) is None


def q13() -> Any:
    """How many customers have so many orders."""
    bought = orders.filter(_unspecial).group_by("o_custkey").agg(n=ef.count())
    return (
        customer.select("c_custkey")
        .join(bought, left_on="c_custkey", right_on="o_custkey", how="left")
        .select("c_custkey", c_count=lambda row: 0 if row.n is None else row.n)
        .group_by("c_count")
        .agg(custdist=ef.count())
    )


def q14() -> Any:
    """The share of promotions in the revenue of September 1995, in percent."""
    shipped = lineitem.filter(between("l_shipdate", date(1995, 9, 1), date(1995, 10, 1)))
    return (
        shipped.select("l_partkey", "l_extendedprice", "l_discount")
        .join(part.select("p_partkey", "p_type"), left_on="l_partkey", right_on="p_partkey")
        .agg(
            promoted=ef.sum(revenue).where(lambda row: row.p_type.startswith("PROMO")),
            all=ef.sum(revenue),
        )
        .fill_null(promoted=0)
        .select(promo_revenue=lambda row: 100 * row.promoted / row.all)
    )


def q15() -> Any:
    """The suppliers with the largest revenue of a quarter."""
    earned = (
        lineitem.filter(between("l_shipdate", date(1996, 1, 1), date(1996, 4, 1)))
        .group_by("l_suppkey")
        .agg(total_revenue=ef.sum(revenue))
    )
    most = earned.agg(most=ef.max("total_revenue"))
    return (
        earned.join(most, left_on="total_revenue", right_on="most", how="semi")
        .join(supplier, left_on="l_suppkey", right_on="s_suppkey")
        .select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")
    )


_SIZES = frozenset({49, 14, 23, 45, 19, 3, 36, 9})
_COMPLAINTS = re.compile("Customer.*Complaints", re.DOTALL)


def _wanted(row: Any) -> bool:
    return (
        row.p_brand != "Brand#45"
        and not row.p_type.startswith("MEDIUM POLISHED")
        and row.p_size in _SIZES
    )


def _complained_of(row: Any) -> bool:
    return _COMPLAINTS.search(row.s_comment) is not None


def q16() -> Any:
    """How many suppliers nobody has complained of have parts of a kind."""
    bad = supplier.filter(_complained_of).select("s_suppkey")
    wanted = part.filter(_wanted).select("p_partkey", "p_brand", "p_type", "p_size")
    return (
        partsupp.select("ps_partkey", "ps_suppkey")
        .join(wanted, left_on="ps_partkey", right_on="p_partkey")
        .join(bad, left_on="ps_suppkey", right_on="s_suppkey", how="anti")
        .group_by("p_brand", "p_type", "p_size")
        .agg(supplier_cnt=ef.count_distinct("ps_suppkey"))
    )


def q17() -> Any:
    """What small orders of a part bring in a year."""
    wanted = part.filter(lambda row: (row.p_brand == "Brand#23") & (row.p_container == "MED BOX"))
    lines = lineitem.select("l_partkey", "l_quantity", "l_extendedprice").join(
        wanted.select("p_partkey"), left_on="l_partkey", right_on="p_partkey", how="semi"
    )
    usual = lines.group_by("l_partkey").agg(quantity=ef.sum("l_quantity"), lines=ef.count())
    return (
        lines.filter(
            lambda row, part: 5 * row.l_quantity * part.lines < part.quantity, usual, on="l_partkey"
        )
        .agg(total=ef.sum("l_extendedprice"))
        .select(avg_yearly=lambda row: row.total / 7)
    )


def q18() -> Any:
    """The hundred largest orders of more than 300 pieces."""
    large = (
        lineitem.group_by("l_orderkey")
        .agg(quantity=ef.sum("l_quantity"))
        .filter(lambda row: row.quantity > 300)
    )
    return (
        orders.select("o_orderkey", "o_custkey", "o_orderdate", "o_totalprice")
        .join(large, left_on="o_orderkey", right_on="l_orderkey")
        .join(customer.select("c_custkey", "c_name"), left_on="o_custkey", right_on="c_custkey")
        .select("c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice", "quantity")
        .limit(100, order=(ef.desc("o_totalprice"), "o_orderdate", "o_orderkey"))
    )


def _fits(row: Any) -> bool:
    """One of three kinds of parts in small boxes, in fitting numbers."""
    for brand, size, boxes, least in _KINDS:
        if row.p_brand == brand and row.p_container in boxes:
            return bool(least <= row.l_quantity <= least + 10 and 1 <= row.p_size <= size)
    return False


_KINDS = [
    ("Brand#12", 5, {"SM CASE", "SM BOX", "SM PACK", "SM PKG"}, 1),
    ("Brand#23", 10, {"MED BAG", "MED BOX", "MED PKG", "MED PACK"}, 10),
    ("Brand#34", 15, {"LG CASE", "LG BOX", "LG PACK", "LG PKG"}, 20),
]


def q19() -> Any:
    """What three kinds of parts brought that were brought by air, in person."""
    by_air = lineitem.filter(
        lambda row: (
            (row.l_shipinstruct == "DELIVER IN PERSON")
            & ((row.l_shipmode == "AIR") | (row.l_shipmode == "AIR REG"))
        )
    )
    return (
        by_air.select("l_partkey", "l_quantity", "l_extendedprice", "l_discount")
        .join(
            part.select("p_partkey", "p_brand", "p_container", "p_size"),
            left_on="l_partkey", right_on="p_partkey",
        )
        .filter(_fits)
        .agg(revenue=ef.sum(revenue))
    )  # fmt: skip


def q20() -> Any:
    """Suppliers in Canada who have more of a forest part than they sold half of in 1994."""
    forest = part.filter(lambda row: row.p_name.startswith("forest")).select("p_partkey")
    sold = (
        lineitem.filter(between("l_shipdate", date(1994, 1, 1), date(1995, 1, 1)))
        .group_by("l_partkey", "l_suppkey")
        .agg(quantity=ef.sum("l_quantity"))
    )
    plenty = (
        partsupp.select("ps_partkey", "ps_suppkey", "ps_availqty")
        .join(forest, left_on="ps_partkey", right_on="p_partkey", how="semi")
        .join(sold, left_on=("ps_partkey", "ps_suppkey"), right_on=("l_partkey", "l_suppkey"))
        .filter(lambda row: 2 * row.ps_availqty > row.quantity)
    )
    canadian = supplier.join(
        nation.filter(lambda row: row.n_name == "CANADA"),
        left_on="s_nationkey", right_on="n_nationkey", how="semi",
    )  # fmt: skip
    return canadian.join(plenty, left_on="s_suppkey", right_on="ps_suppkey", how="semi").select(
        "s_name", "s_address"
    )


def q21() -> Any:
    """Suppliers in Saudi Arabia who alone kept an order of several suppliers waiting."""
    lines = lineitem.select("l_orderkey", "l_suppkey")
    late = lineitem.filter(lambda row: row.l_receiptdate > row.l_commitdate).select(
        "l_orderkey", "l_suppkey"
    )
    arabian = supplier.select("s_suppkey", "s_name", "s_nationkey").join(
        nation.filter(lambda row: row.n_name == "SAUDI ARABIA"),
        left_on="s_nationkey", right_on="n_nationkey", how="semi",
    )  # fmt: skip
    failed = orders.filter(lambda row: row.o_orderstatus == "F").select("o_orderkey")
    another = ef.ne("l_suppkey", "l_suppkey")
    return (
        late.join(failed, left_on="l_orderkey", right_on="o_orderkey", how="semi")
        .join(arabian.select("s_suppkey", "s_name"), left_on="l_suppkey", right_on="s_suppkey")
        .join(lines, on="l_orderkey", where=another, how="semi")
        .join(late, on="l_orderkey", where=another, how="anti")
        .group_by("s_name")
        .agg(numwait=ef.count())
        .limit(100, order=(ef.desc("numwait"), "s_name"))
    )


_CODES = frozenset({"13", "31", "23", "29", "30", "18", "17"})


def _code(row: Any) -> str:
    return str(row.c_phone[:2])


def q22() -> Any:
    """Customers with money who have never ordered, by country."""
    some = customer.select("c_custkey", "c_acctbal", code=_code).filter(
        lambda row: row.code in _CODES
    )
    rich = some.filter(lambda row: row.c_acctbal > 0).agg(all=ef.sum("c_acctbal"), n=ef.count())
    return (
        some.join(orders.select("o_custkey"), left_on="c_custkey", right_on="o_custkey", how="anti")
        .filter(lambda row, usual: row.c_acctbal * usual.n > usual.all, rich)
        .group_by("code")
        .agg(numcust=ef.count(), totacctbal=ef.sum("c_acctbal"))
    )


QUERIES = {name: made for name, made in globals().items() if re.fullmatch(r"q\d+", name)}
"""All queries, by name: each makes its program."""
