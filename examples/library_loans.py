"""A lending library: what is on the shelf, what is out, and what is overdue today.

Today is an input like any other, with one row. Its key is the same for every day, so an upsert
takes yesterday away: books become overdue because a row changed, not because anybody looked at a
clock. Loans are compared with that one row: they are kept in the order of their day, so a new day
looks at those that became late, and not at the others.

`copies - loans` is a difference of Z-sets: the weight of a title is how many copies are free. A
weight below zero is worth seeing too, as more were lent than the library has. The full join puts
both counts side by side, with None where a title is on one side only.

    python examples/library_loans.py
"""

from __future__ import annotations

from datetime import date
from typing import Any, NamedTuple

import ebbflow as ef


class Copy(NamedTuple):
    barcode: int
    title: str


class Loan(NamedTuple):
    reader: str
    title: str
    due: date


class Overdue(NamedTuple):
    reader: str
    title: str
    days: int


def overdue(loan: Loan, today: date) -> Overdue:
    return Overdue(loan.reader, loan.title, (today - loan.due).days)


copies = ef.Input("copies", Copy, key="barcode")
loans = ef.Input("loans", Loan)
today = ef.Input("today", date, key=lambda day: "today")

owned = copies.group_by("title").agg(owned=ef.count())
lent = loans.group_by("title").agg(lent=ef.count(), back=ef.min("due"))
late = loans.filter(lambda loan, day: loan.due < day, today)
program = ef.program(
    free=copies.map("title") - loans.map("title"),
    overdue=late.cross(today, select=overdue),
    titles=owned.join(lent, on="title", how="full"),
)

start = {
    "copies": [Copy(1, "Dune"), Copy(2, "Dune"), Copy(3, "Emma"), Copy(4, "Ulysses")],
    "loans": [
        Loan("ann", "Dune", date(2024, 3, 1)),
        Loan("bob", "Dune", date(2024, 3, 4)),
        Loan("bob", "Emma", date(2024, 3, 2)),
    ],
    "today": [date(2024, 3, 1)],
}


def tell(change: ef.ZSet) -> None:
    for loan in sorted(change.negative()):
        print(f"  no longer: {loan.reader} owes {loan.title}, {loan.days} days late")
    for loan in sorted(change.positive()):
        print(f"  {loan.reader} owes {loan.title}, {loan.days} days late")


def line(row: Any) -> str:
    back = f"{row.lent} out until {row.back:%d %B}" if row.lent else "none out"
    return f"{row.title}: {row.owned or 0} in the catalogue, {back}"


def main() -> None:
    view = program.run()
    view["overdue"].on_change(tell)
    view.step(start)
    free = view["free"].value
    print(f"free on 1 March: {free.weight('Dune')} of Dune, {free.weight('Ulysses')} of Ulysses")

    print("the fourth of March")
    view.input("today").upsert(date(2024, 3, 4))
    print("bob brings Emma back")
    view.input("loans").remove(Loan("bob", "Emma", date(2024, 3, 2)))
    print("ann's Dune is extended to the tenth")
    extended = ef.ZSet.of([Loan("ann", "Dune", date(2024, 3, 10))])
    view.input("loans").apply(extended - ef.ZSet.of([Loan("ann", "Dune", date(2024, 3, 1))]))
    print("copy 2 of Dune is struck off the catalogue")
    view.input("copies").delete(2)
    print(f"free copies of Dune: {view['free'].value.weight('Dune')}")
    for row in sorted(view["titles"].value, key=lambda row: row.title):
        print(line(row))


if __name__ == "__main__":
    main()
