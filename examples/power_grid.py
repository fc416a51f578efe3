"""Which towns have power, while lines are built and cut. (Reachability.)

A town has power when it is a plant, or when a line comes from a town that has power. The loop says
just that: the towns so far, and those that their lines lead to, until a round adds none.

The hard part is a line that is cut. Each town of a ring has a neighbour that feeds it, so whoever
counts neighbours finds that nobody lost anything: the ring feeds itself. But power comes from a
plant. The view knows for each town in which round it was found, and that it needs a neighbour
found earlier; where none is left the town goes dark, and after it the whole ring.

    python examples/power_grid.py
    python examples/power_grid.py --explain
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import ebbflow as ef


class Town(NamedTuple):
    name: str


class Line(NamedTuple):
    source: str
    target: str


def at_the_end(town: Town, line: Line) -> Town:
    return Town(line.target)


def both_ends(line: Line) -> list[Town]:
    return [Town(line.source), Town(line.target)]


plants = ef.Input("plants", Town)
lines = ef.Input("lines", Line)


def one_line_more(powered: ef.Collection) -> ef.Collection:
    return powered.union(powered.join(lines, left_on="name", right_on="source", select=at_the_end))


powered = plants.iterate(one_line_more)
towns = plants + lines.flat_map(both_ends)
program = ef.program(powered=powered, dark=towns.except_(powered))

start = {
    "plants": [Town("dam")],
    "lines": [
        Line("dam", "Aa"),
        Line("Aa", "Ber"),
        Line("Ber", "Cham"),
        Line("Cham", "Dole"),
        Line("Dole", "Ber"),
        Line("Dole", "Elm"),
        Line("Aa", "Fry"),
    ],
}


def main() -> None:
    if "--explain" in sys.argv:
        print(program.explain())
        return
    view = program.run()

    def tell(change: ef.ZSet) -> None:
        for words, rows in (("has power", change.positive()), ("goes dark", change.negative())):
            for town in sorted(rows):
                print(f"  {town.name} {words}")

    view["powered"].on_change(tell)
    lines = view.input("lines")
    print("the first lines; Ber, Cham and Dole feed each other in a ring")
    view.step(start)
    print("a second line to the ring")
    lines.add(Line("Fry", "Cham"))
    print("the first one is cut: the ring has the other")
    lines.remove(Line("Aa", "Ber"))
    print("so is the second: nothing in the ring was touched, and all of it falls")
    lines.remove(Line("Fry", "Cham"))
    print("dark:", *(town.name for town in sorted(view["dark"].value)))
    print("one line of the ring is cut, where all is dark: nothing to say")
    lines.remove(Line("Dole", "Ber"))
    print("Dole builds a plant of its own")
    view.input("plants").add(Town("Dole"))


if __name__ == "__main__":
    main()
