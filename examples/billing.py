"""Invoices from usage, contracts and price plans, until the month is closed.

Prices live in an input of their own, keyed by plan. Changing one is a single upsert, and it
revises the invoices of that plan's customers and no others. Two left joins keep the customers who
used nothing and those without credit. Money has two digits after the point, and sums of it are
exact, so a usage record that is added and taken back leaves no cent behind.

    python examples/billing.py
    python examples/billing.py --explain
"""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import ebbflow as ef

Money = Annotated[Decimal, (12, 2)]


class Plan(NamedTuple):
    plan: str
    fee: Money
    included: int
    per_gb: Money


class Contract(NamedTuple):
    customer: str
    plan: str


class Usage(NamedTuple):
    customer: str
    hour: int
    gb: int


class Credit(NamedTuple):
    customer: str
    amount: Money


class Invoice(NamedTuple):
    customer: str
    plan: str
    gb: int
    credit: Money
    total: Money


def invoice(row: Any) -> Invoice:
    gb, credit = row.gb or 0, row.credit or Decimal("0.00")
    price = row.fee + max(gb - row.included, 0) * row.per_gb
    return Invoice(row.customer, row.plan, gb, credit, max(price - credit, Decimal("0.00")))


plans = ef.Input("plans", Plan, key="plan")
contracts = ef.Input("contracts", Contract, key="customer")
usage = ef.Input("usage", Usage)
credits = ef.Input("credits", Credit)

invoices = (
    contracts.join(plans, on="plan")
    .join(usage.group_by("customer").agg(gb=ef.sum("gb")), on="customer", how="left")
    .join(credits.group_by("customer").agg(credit=ef.sum("amount")), on="customer", how="left")
    .map(invoice)
)
program = ef.program(
    invoices=invoices,
    revenue=invoices.group_by("plan").agg(total=ef.sum("total"), customers=ef.count()),
)

start = {
    "plans": [
        Plan("basic", Decimal("5.00"), 10, Decimal("0.80")),
        Plan("pro", Decimal("20.00"), 100, Decimal("0.25")),
    ],
    "contracts": [Contract("ann", "basic"), Contract("bob", "pro"), Contract("cat", "basic")],
    "usage": [Usage("ann", 1, 8), Usage("ann", 2, 7), Usage("bob", 1, 90), Usage("bob", 3, 30)],
    "credits": [Credit("ann", Decimal("1.50"))],
}


def tell(change: ef.ZSet) -> None:
    for row in sorted(change.positive()):
        discount = f" after a credit of {row.credit}" if row.credit else ""
        print(f"  {row.customer} ({row.plan}, {row.gb} GB) pays {row.total}{discount}")


def main() -> None:
    if "--explain" in sys.argv:
        print(program.explain())
        return
    view = program.run()
    view["invoices"].on_change(tell)
    print("the month so far")
    view.step(start)
    print("bob's 30 GB at 3 o'clock were measured twice: the record is taken back")
    view.input("usage").remove(Usage("bob", 3, 30))
    print("a gigabyte over the basic plan's ten now costs 0.60")
    view.input("plans").upsert(Plan("basic", Decimal("5.00"), 10, Decimal("0.60")))
    print("ann moves to the pro plan")
    view.input("contracts").upsert(Contract("ann", "pro"))
    for row in sorted(view["revenue"].value):
        print(f"{row.plan}: {row.total} from {row.customers} customers")


if __name__ == "__main__":
    main()
