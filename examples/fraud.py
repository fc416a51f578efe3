"""Bursts of card payments that look like fraud: too many, too much, or in two countries at once.

Payments of one card, each within ten minutes of the last, are one *session*. Sessions have no
fixed borders: a payment that is booked late can join two of them into one, and a chargeback in the
middle can split one in two. Whatever a session turns into, its figures are those of its payments,
and an alert that no longer holds is withdrawn.

    python examples/fraud.py
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ebbflow as ef


class Payment(NamedTuple):
    id: int
    card: str
    minute: int
    country: str
    amount: int


class Limit(NamedTuple):
    card: str
    amount: int


def listed(countries: frozenset[str]) -> str:
    return ", ".join(sorted(countries))


payments = ef.Input("payments", Payment)
limits = ef.Input("limits", Limit, key="card")

bursts = (
    payments.session("minute", 10, per="card")
    .group_by("card", "window_start", "window_end")
    .agg(
        n=ef.count(),
        total=ef.sum("amount"),
        countries=ef.count_distinct("country"),
        where=ef.set_of("country").then(listed),
    )
)


def verdict(row: Any) -> str:
    reasons = {
        f"{row.countries} countries": row.countries > 1,
        f"{row.n} payments": row.n > 3,
        f"{row.total} over a limit of {row.amount}": row.total > row.amount,
    }
    return ", ".join(reason for reason, holds in reasons.items() if holds)


alerts = (
    bursts.join(limits, on="card")
    .select("card", "window_start", "where", why=verdict)
    .filter(lambda alert: alert.why)
)
spent = payments.tumbling("minute", 24 * 60).group_by("card", "window_start")
program = ef.program(
    alerts=alerts, daily=spent.agg(total=ef.sum("amount"), largest=ef.max("amount"))
)

start = {
    "payments": [
        Payment(1, "1234", 0, "IT", 20),
        Payment(2, "1234", 6, "IT", 35),
        Payment(3, "1234", 30, "IT", 60),
        Payment(4, "1234", 36, "IT", 10),
        Payment(5, "9876", 3, "NO", 400),
        Payment(6, "9876", 9, "PE", 15),
    ],
    "limits": [Limit("1234", 150), Limit("9876", 500)],
}


def tell(change: ef.ZSet) -> None:
    for alert, weight in sorted(change.items(), key=lambda each: (each[0][:2], each[1])):
        sign = "alert" if weight > 0 else "withdrawn"
        print(f"  {sign}: {alert.why} by card {alert.card} ({alert.where})")


def main() -> None:
    view = program.run()
    view["alerts"].on_change(tell)
    print("the day's payments")
    view.step(start)
    print("two payments are booked late: they join two quiet sessions into one")
    late = Payment(7, "1234", 15, "IT", 5), Payment(8, "1234", 22, "IT", 8)
    view.input("payments").add(*late)
    print("the limit of card 1234 is lowered to 100")
    view.input("limits").upsert(Limit("1234", 100))
    print("payment 8 is charged back: the session falls apart")
    view.input("payments").remove(late[1])
    print("the payment in Peru was fraud: charged back")
    view.input("payments").remove(Payment(6, "9876", 9, "PE", 15))
    for row in sorted(view["daily"].value):
        print(f"card {row.card} spent {row.total} that day, {row.largest} at most")


if __name__ == "__main__":
    main()
