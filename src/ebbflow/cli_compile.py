"""`ebbflow compile`: every kernel is compiled now, and not by the first program that needs it.

A kernel is compiled for the words that it is given when it is first called, which takes seconds,
and is kept beside its source. So a few small programs are run that call all of them; whoever
builds an image, or is about to start many processes, has it done once for all of them.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from datetime import date
from decimal import Decimal
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import ebbflow as ef
from ebbflow.errors import CheckError, EbbflowError, install
from ebbflow.flow.running import planned
from ebbflow.kernel import missing
from ebbflow.zset import ZSet

MANY = 1200
"""So many rows that the heaps of those that are gone are made anew."""
REFUSED = -1
"""The id of a sale that a program refuses."""


class _Sale(NamedTuple):
    id: int
    city: str
    price: int
    tax: int | None
    rate: float
    day: date
    paid: bool


class _Shop(NamedTuple):
    city: str
    size: int


class _Reading(NamedTuple):
    id: int
    value: float


class _Message(NamedTuple):
    id: int
    text: str


class _Payment(NamedTuple):
    id: int
    amount: Annotated[Decimal, (9, 2)]


def run_compile(asked: argparse.Namespace) -> int:
    """Compile all kernels, and say so."""
    if missing():
        raise CheckError(
            f"there are no kernels to compile: {', '.join(missing())} is not installed",
            remedy=install("fast"),
        )
    compile_kernels()
    print("all kernels are compiled")
    return 0


def compile_kernels() -> None:
    """Run programs that call all kernels."""
    from ebbflow.engine.local import run

    plan = planned({f"output{i}": each.node for i, each in enumerate(_programs())})
    for check in (True, False):
        for count in (MANY, 3):
            _run(run(plan, columns=True, check_input=check), count)
        with TemporaryDirectory() as folder:
            with run(plan, columns=True, check_input=check, path=folder) as view:
                _run(view, MANY)
            with run(plan, columns=True, check_input=check, path=folder) as view:
                _run(view, 3)


def _sales(count: int) -> list[_Sale]:
    return [
        _Sale(i, f"city {i % 7}", i % 5, i % 3 or None, i / 4, date(2024, 1, 1 + i % 9), i % 2 == 0)
        for i in range(count)
    ]


def _run(view: Any, count: int) -> None:
    """Rows come, as they are and as tables, and most go, then the others; one is refused."""
    sales, shops = _sales(count), [_Shop(f"city {i}", i) for i in range(5)]
    for name, type, rows in (("sales", _Sale, sales), ("shops", _Shop, shops)):
        table = ZSet.of(rows).to_arrow(type, weights=False)
        for given in (rows, table):
            view.step(**{name: given})
    readings = ZSet.of(_Reading(i, i / 2) for i in range(count)).to_arrow(_Reading, weights=False)
    notes = ZSet.of(_Message(i, f"note {i}") for i in range(count)).to_arrow(
        _Message, weights=False
    )
    payments = ZSet.of(_Payment(i, Decimal(i)) for i in range(count)).to_arrow(_Payment)
    view.step(readings=readings, notes=notes, payments=payments.select(["amount", "id"]))
    view.step(readings={name: readings[name].to_numpy() for name in readings.column_names})
    for given in (shops, ZSet.of(shops[1:]).to_arrow(_Shop, weights=False)):
        view.step(keyed=ef.upsert(given))
    view.step(sales=dict.fromkeys(sales[count // 4 :], -2), shops=dict.fromkeys(shops, -1))
    with suppress(EbbflowError, ZeroDivisionError):
        view.step(shops=shops, sales=[*sales, sales[0]._replace(id=REFUSED)])
    view.step(sales=dict.fromkeys(sales[: count // 4], -2))
    view.step(keyed=ef.delete([shop.city for shop in shops]))
    view.step(sales=[*sales, sales[0]._replace(price=2**70)])


def _programs() -> list[Any]:
    sales, shops = ef.Input("sales", _Sale), ef.Input("shops", _Shop)
    keyed = ef.Input("keyed", _Shop, key="city")
    groups = sales.group_by("city")
    return [
        ef.Input("readings", _Reading).filter(lambda row: row.value > 1),
        ef.Input("payments", _Payment).filter(lambda row: row.amount > 1),
        ef.Input("notes", _Message).filter(lambda row: "7" in row.text),
        sales.filter(lambda row: row.price > 2),
        groups.agg(n=ef.count(), sum=ef.sum("price"), mean=ef.mean("rate")),
        groups.agg(least=ef.min("price"), most=ef.max("rate"), cities=ef.count_distinct("city")),
        groups.agg(first=ef.min("city"), last=ef.max("day")),
        sales.join(shops, on="city"),
        sales.join(keyed, on="city", how="semi"),
        sales.join(shops, on="city", how="semi", where=ef.ne("price", "size")),
        sales.filter(
            lambda row, one: row.price * one.n > one.sum,
            groups.agg(n=ef.count(), sum=ef.sum("price")),
            on="city",
        ),
        sales.select("city", "price").distinct(),
        groups.agg(cheapest=ef.first("city", order="price"), last=ef.last("price", order="city")),
        groups.agg(spread=ef.stddev("price"), middle=ef.variance("rate")),
        sales.top_k(2, order="price", per="city"),
        sales.top_k(2, order=("city", ef.desc("rate"))),
        sales.join(shops, on="city").filter(lambda row: 1 // (row.id - REFUSED) <= 0).distinct(),
    ]
