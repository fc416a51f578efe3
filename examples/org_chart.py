"""An org chart: the teams, what they cost, and who reports to nobody.

One table, joined with itself: an employee's `manager` is another employee's `id`. The input is
keyed by id, so a raise, a move and a new name are the same thing, an upsert, and the view finds
the old row itself. When a manager leaves, the team becomes a list of orphans until someone takes
it over; the anti join keeps that list. `span` is an aggregate of an aggregate, over all teams at
once.

    python examples/org_chart.py
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef


class Employee(NamedTuple):
    id: int
    name: str
    manager: int | None
    salary: int


class Report(NamedTuple):
    manager: str
    name: str
    salary: int


class Card(NamedTuple):
    name: str
    manager: str


def report(employee: Employee, manager: Employee) -> Report:
    return Report(manager.name, employee.name, employee.salary)


def card(employee: Employee, manager: Employee | None) -> Card:
    return Card(employee.name, manager.name if manager else "nobody")


staff = ef.Input("staff", Employee, key="id")
to_manager = {"left_on": "manager", "right_on": "id"}

teams = (
    staff.join(staff, **to_manager, select=report)
    .group_by("manager")
    .agg(
        headcount=ef.count(),
        budget=ef.sum("salary"),
        best_paid=ef.arg_max("salary", "name"),
    )
)
program = ef.program(
    teams=teams,
    orphans=staff.filter(lambda e: e.manager is not None).join(staff, **to_manager, how="anti"),
    span=teams.agg(teams=ef.count(), mean=ef.mean("headcount"), widest=ef.max("headcount")),
    cards=staff.join(staff, **to_manager, how="left", select=card),
)

start = {
    "staff": [
        Employee(1, "Ada", None, 300),
        Employee(2, "Bo", 1, 200),
        Employee(3, "Cyd", 1, 190),
        Employee(4, "Dee", 2, 120),
        Employee(5, "Eli", 2, 110),
        Employee(6, "Fay", 3, 130),
    ]
}


def main() -> None:
    view = program.run()

    def show(title: str) -> None:
        print(title)
        for team in sorted(view["teams"].value):
            size = f"{team.headcount} {'person' if team.headcount == 1 else 'people'}"
            print(f"  {team.manager}: {size}, {team.budget}, best paid {team.best_paid}")
        orphans = sorted(employee.name for employee in view["orphans"].value)
        if orphans:
            print(f"  without a manager: {', '.join(orphans)}")
        for span in view["span"].value:
            print(f"  {span.mean:.2f} reports a manager, {span.widest} at most")

    view.step(start)
    show("at first")
    view.input("staff").upsert(Employee(5, "Eli", 3, 140))
    show("Eli moves to Cyd's team, with a raise")
    view.input("staff").delete(2)
    show("Bo leaves")
    view.input("staff").upsert(Employee(3, "Cyd Ray", 1, 190), Employee(4, "Dee", 3, 125))
    show("Cyd takes a new name, and Dee into the team")
    print("cards:", ", ".join(f"{c.name} ({c.manager})" for c in sorted(view["cards"].value)))


if __name__ == "__main__":
    main()
