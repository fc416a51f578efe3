"""An org chart: the chain of command, what everyone answers for, and who reports to nobody.

An employee's `manager` is another employee's `id`. Above an employee are the manager, and whoever
is above the manager: a loop over one table joined with itself, which also counts the levels. Turned
round, the same pairs say how many people and how much money somebody answers for, on all levels.

The input is keyed by id, so a raise, a move and a new name are the same thing, an upsert, and the
view finds the old row itself. A department that moves takes its people along, to a new chain. When
a manager leaves, the team is a list of orphans until someone takes it over; the anti join keeps
that list. `span` is an aggregate of an aggregate, over all teams at once.

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


class Above(NamedTuple):
    id: int
    boss: int | None
    levels: int


def one_higher(above: Above, boss: Employee) -> Above:
    return Above(above.id, boss.manager, above.levels + 1)


staff = ef.Input("staff", Employee, key="id")
managed = staff.filter(lambda employee: employee.manager is not None)

above = managed.map(lambda e: Above(e.id, e.manager, 1)).iterate(
    lambda above: (
        (above + above.join(managed, left_on="boss", right_on="id", select=one_higher))
        .group_by("id", "boss")
        .agg(levels=ef.min("levels"))
    )
)
pairs = above.join(staff, on="id").join(staff.select(boss="id", boss_name="name"), on="boss")
teams = pairs.filter(lambda pair: pair.levels == 1).group_by(manager="boss_name").agg(
    headcount=ef.count(), best_paid=ef.arg_max("salary", "name")
)  # fmt: skip
program = ef.program(
    chains=pairs.group_by("id", "name").agg(
        bosses=ef.collect(lambda pair: (pair.levels, pair.boss_name))
    ),
    answers_for=pairs.group_by(manager="boss_name").agg(people=ef.count(), pay=ef.sum("salary")),
    teams=teams,
    span=teams.agg(mean=ef.mean("headcount"), widest=ef.max("headcount")),
    orphans=managed.join(staff, left_on="manager", right_on="id", how="anti"),
)

start = {
    "staff": [
        Employee(1, "Ada", None, 300),
        Employee(2, "Bo", 1, 200),
        Employee(3, "Cyd", 1, 190),
        Employee(4, "Dee", 2, 120),
        Employee(5, "Eli", 4, 110),
        Employee(6, "Fay", 3, 130),
        Employee(7, "Gil", 5, 90),
    ]
}


def main() -> None:
    view = program.run()

    def show(title: str) -> None:
        print(title)
        best_paid = {team.manager: team.best_paid for team in view["teams"].value}
        for row in sorted(view["answers_for"].value):
            size = f"{row.people} {'person' if row.people == 1 else 'people'}"
            print(f"  {row.manager}: {size}, {row.pay}, best paid {best_paid[row.manager]}")
        for chain in sorted(view["chains"].value):
            if chain.name == "Gil":
                print("  above Gil:", ", ".join(name for _, name in chain.bosses))
        orphans = sorted(employee.name for employee in view["orphans"].value)
        if orphans:
            print(f"  without a manager: {', '.join(orphans)}")
        for span in view["span"].value:
            print(f"  {span.mean:.2f} reports a manager, {span.widest} at most")

    view.step(start)
    show("at first")
    view.input("staff").upsert(Employee(4, "Dee", 3, 140))
    show("Dee moves to Cyd with her people, and gets a raise")
    view.input("staff").delete(4)
    show("Dee leaves")
    view.input("staff").upsert(Employee(3, "Cyd Ray", 1, 190), Employee(5, "Eli", 3, 125))
    show("Cyd takes a new name, and Eli into the team")


if __name__ == "__main__":
    main()
