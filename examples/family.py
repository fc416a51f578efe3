"""Who is of the same generation of a family, while its tree is corrected. (Same generation.)

Two people are of one generation when they have a parent in common, or when a parent of the one and
a parent of the other are of one generation: siblings, cousins, second cousins. The rule mentions
itself in the middle, between two joins. People have two parents, and these may be of different
generations, or cousins: the loop does not mind.

A corrected entry may take a whole branch to another place, and cousins with it.

    python examples/family.py
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef


class Parent(NamedTuple):
    child: str
    parent: str


class Pair(NamedTuple):
    one: str
    other: str


parents = ef.Input("parents", Parent)

siblings = parents.join(parents, on="parent", select=lambda a, b: Pair(a.child, b.child)).distinct()


def children(pairs: ef.Collection) -> ef.Collection:
    """The pairs of a child of the one and a child of the other."""
    return pairs.join(
        parents, left_on="one", right_on="parent", select=lambda pair, p: Pair(p.child, pair.other)
    ).join(
        parents, left_on="other", right_on="parent", select=lambda pair, p: Pair(pair.one, p.child)
    )


same_generation = siblings.iterate(lambda pairs: pairs.union(children(pairs)))
program = ef.program(
    same_generation=same_generation.filter(lambda pair: pair.one < pair.other),
    of_age_with=same_generation.filter(lambda pair: pair.one != pair.other)
    .group_by("one")
    .agg(n=ef.count()),
)

start = {
    "parents": [
        Parent("Bea", "Abe"),
        Parent("Carl", "Abe"),
        Parent("Dora", "Bea"),
        Parent("Emil", "Carl"),
        Parent("Fritz", "Dora"),
        Parent("Gerda", "Emil"),
        Parent("Hanna", "Zoe"),
        Parent("Ida", "Hanna"),
    ]
}


def main() -> None:
    view = program.run()

    def tell(change: ef.ZSet) -> None:
        for pair, weight in sorted(change.items()):
            print(f"  {'+' if weight > 0 else '-'} {pair.one} and {pair.other}")

    view["same_generation"].on_change(tell)
    print("of one generation")
    view.step(start)
    print("a register shows: Hanna was Abe's daughter too")
    view.input("parents").add(Parent("Hanna", "Abe"))
    print("and Carl was not his son")
    view.input("parents").remove(Parent("Carl", "Abe"))
    most = max(view["of_age_with"].value, key=lambda row: (row.n, row.one))
    print(f"{most.one} has {most.n} of the same generation")


if __name__ == "__main__":
    main()
