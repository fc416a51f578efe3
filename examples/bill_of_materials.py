"""What a bicycle costs, from the prices of its parts. (Bill of materials, with cost roll-up.)

An assembly costs its own work and, for each of its components, so many times what that costs. The
loop adds that up level by level: after one round assemblies of bought parts are right, after two
those made of these, and it ends after as many rounds as there are levels. One changed price is
multiplied through the assemblies that contain it, and through no other.

Nothing may contain itself: its cost would grow round by round, without end. So the program first
asks what contains what, in any depth, and leaves out of the sums what contains itself. It is shown
as an error in the data, and comes back when that is corrected. ebbflow cannot know that sums end
for this reason; `limit=` says after how many levels they surely have.

    python examples/bill_of_materials.py
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef

LEVELS = 100


class Price(NamedTuple):
    part: str
    cents: int


class Use(NamedTuple):
    assembly: str
    part: str
    quantity: int


class Contains(NamedTuple):
    assembly: str
    part: str


def inside(outer: Contains, inner: Contains) -> Contains:
    return Contains(outer.assembly, inner.part)


def as_often(cost: Price, use: Use) -> Price:
    return Price(use.assembly, use.quantity * cost.cents)


prices = ef.Input("prices", Price, key="part")
uses = ef.Input("uses", Use, key=("assembly", "part"))

direct = uses.map(lambda use: Contains(use.assembly, use.part))


def deeper(known: ef.Collection) -> ef.Collection:
    return known.union(known.join(direct, left_on="part", right_on="assembly", select=inside))


contains = direct.iterate(deeper)
circular = contains.filter(lambda row: row.assembly == row.part).map("assembly")
sound = uses.join(circular, left_on="assembly", right_on=lambda name: name, how="anti")


def rolled_up(costs: ef.Collection) -> ef.Collection:
    used = costs.join(sound, on="part", select=as_often)
    return (prices + used).group_by("part").agg(cents=ef.sum("cents"))


costs = prices.iterate(rolled_up, limit=LEVELS)
unpriced = uses.map("part").except_(prices.map("part")).except_(uses.map("assembly"))
program = ef.program(costs=costs, circular=circular, unpriced=unpriced)

start = {
    "prices": [
        Price("bicycle", 9_000),
        Price("wheel", 1_500),
        Price("spoke", 20),
        Price("hub", 900),
        Price("frame", 20_000),
        Price("bolt", 5),
    ],
    "uses": [
        Use("pair", "bicycle", 2),
        Use("bicycle", "wheel", 2),
        Use("bicycle", "frame", 1),
        Use("wheel", "spoke", 32),
        Use("wheel", "hub", 1),
        Use("hub", "bolt", 2),
        Use("frame", "bolt", 4),
    ],
}


def main() -> None:
    view = program.run()

    def tell(what: str, changes: dict[str, ef.ZSet]) -> None:
        print(what)
        before = {row.part: row.cents for row in changes["costs"].negative()}
        for row in sorted(changes["costs"].positive()):
            was = f", not {before[row.part] / 100:.2f}" if row.part in before else ""
            print(f"  the {row.part} costs {row.cents / 100:.2f}{was}")
        for name, weight in sorted(changes["circular"].items()):
            print(f"  the {name} {'contains itself' if weight > 0 else 'is all right again'}")

    tell("a bicycle, and two of them", view.step(start))
    tell("bolts get dearer", view.input("prices").upsert(Price("bolt", 8)))
    tell("four spokes fewer", view.input("uses").upsert(Use("wheel", "spoke", 28)))
    tell("a slip: the frame uses a bicycle", view.input("uses").upsert(Use("frame", "bicycle", 1)))
    tell("corrected", view.input("uses").delete(("frame", "bicycle")))
    tell("hubs come with their bolts", view.input("uses").delete(("hub", "bolt")))


if __name__ == "__main__":
    main()
