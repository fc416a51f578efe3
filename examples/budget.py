"""A budget as a spreadsheet has it: lines, months, and totals at both edges.

Each cell of the sheet is one row, keyed by category and month, and the right join puts beside
every planned cell what was really spent. Totals by month and over everything are groupings of that
table, so they agree with it at every moment: all outputs of a program change in one step.

What was paid from an account is a linear function of its entries: what a change adds does not
depend on what was there before. `stateless` says so, and `through` puts it into the program.

    python examples/budget.py
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ebbflow as ef
from ebbflow.change import BAG, NUMBER
from ebbflow.operator import stateless


class Line(NamedTuple):
    category: str
    month: int
    planned: int


class Entry(NamedTuple):
    account: str
    category: str
    month: int
    amount: int


class Cell(NamedTuple):
    category: str
    month: int
    planned: int
    spent: int


def cell(row: Any) -> Cell:
    return Cell(row.category, row.month, row.planned, row.spent or 0)


def total(entries: ef.ZSet) -> int:
    return sum(weight * entry.amount for entry, weight in entries.items())


lines = ef.Input("lines", Line, key=("category", "month"))
entries = ef.Input("entries", Entry)

spent = entries.group_by("category", "month").agg(spent=ef.sum("amount"))
table = spent.join(lines, on=("category", "month"), how="right").map(cell)
edge = {"planned": ef.sum("planned"), "spent": ef.sum("spent")}
cash = stateless(total, total, input=BAG, output=NUMBER, name="cash")
program = ef.program(
    table=table,
    by_month=table.group_by("month").agg(**edge),
    overall=table.agg(**edge, over=ef.count().where(lambda cell: cell.spent > cell.planned)),
    paid_from=entries.through(cash, per="account", type=int),
    largest=entries.reduce(ef.arg_max("amount")),
)

start = {
    "lines": [
        *[Line("rent", month, 900) for month in (1, 2)],
        *[Line("food", month, 300) for month in (1, 2)],
        Line("fun", 1, 100),
    ],
    "entries": [
        Entry("bank", "rent", 1, 900),
        Entry("bank", "food", 1, 180),
        Entry("purse", "food", 1, 95),
        Entry("bank", "rent", 2, 900),
        Entry("purse", "gifts", 2, 40),
    ],
}


def main() -> None:
    view = program.run()

    def show(what: str) -> None:
        print(what)
        cells = {row[:2]: row for row in view["table"].value}
        for category in sorted({row.category for row in cells.values()}):
            found = [cells.get((category, month)) for month in (1, 2)]
            shown = [f"{row.spent:>5} of {row.planned:>4}" if row else " " * 13 for row in found]
            print(f"  {category:<6} {' '.join(shown)}".rstrip())
        edges = [f"{row.spent:>5} of {row.planned:>4}" for row in sorted(view["by_month"].value)]
        print(f"  {'all':<6}", *edges)

    view.step(start)
    show("January and February")
    view.step(entries=[Entry("bank", "fun", 1, 130)], lines=[Line("gifts", 2, 50)])
    show("fun was dear in January; a line for gifts is put in")
    view.input("lines").upsert(Line("food", 2, 350))
    view.input("entries").remove(Entry("bank", "rent", 2, 900))
    show("more for food; February's rent bounced")
    (overall,) = view["overall"].value
    print(f"over all: {overall.spent} of {overall.planned}, cells over their plan: {overall.over}")
    for account, amount in sorted(view["paid_from"].value):
        print(f"paid from the {account}: {amount}")
    ((largest,),) = view["largest"].value
    print(f"largest entry: {largest.amount} for {largest.category}")


if __name__ == "__main__":
    main()
