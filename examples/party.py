"""Who comes to the party: those of whom at least two friends come. (The k-core of a graph.)

Everybody would like to come, but nobody wants to stand alone. So invite all, strike those with
fewer than two friends among the guests, then those who lost a friend by that, and so on until
nobody leaves. The loop starts with all friendships and keeps, round by round, those between two
guests who still have enough of them.

Here rows are not found but lost from round to round, and a new friendship may bring back many at
once: each of them comes because the others do.

    python examples/party.py
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef

FRIENDS = 2


class Friends(NamedTuple):
    a: str
    b: str


def both_ways(pair: Friends) -> list[Friends]:
    return [pair, Friends(pair.b, pair.a)] if pair.a != pair.b else []


def among_guests(friendships: ef.Collection) -> ef.Collection:
    """The friendships between those who have enough of these."""
    enough = friendships.group_by("a").agg(n=ef.count()).filter(lambda row: row.n >= FRIENDS)
    return friendships.join(enough, on="a", how="semi").join(
        enough, left_on="b", right_on="a", how="semi"
    )


friends = ef.Input("friends", Friends)
friendships = friends.flat_map(both_ways).distinct()

core = friendships.iterate(among_guests)
guests = core.group_by(name="a").agg(friends=ef.collect("b"))
program = ef.program(
    guests=guests,
    at_home=friendships.map("a").except_(core.map("a")),
    size=guests.agg(n=ef.count()),
)

start = {
    "friends": [
        Friends("Ann", "Bob"),
        Friends("Bob", "Cat"),
        Friends("Cat", "Ann"),
        Friends("Cat", "Dan"),
        Friends("Dan", "Eve"),
        Friends("Eve", "Fay"),
        Friends("Fay", "Gus"),
    ]
}


def main() -> None:
    view = program.run()

    def tell(title: str) -> None:
        print(title)
        for guest in sorted(view["guests"].value):
            print(f"  {guest.name} comes, and meets {', '.join(guest.friends)}")
        print("  at home:", *sorted(view["at_home"].value))

    view.step(start)
    tell("who comes")
    view.input("friends").add(Friends("Gus", "Dan"))
    tell("Gus and Dan make friends: a chain of four becomes a ring, and all of it comes")
    view.input("friends").remove(Friends("Eve", "Fay"))
    tell("Eve and Fay fall out: again nobody of them has two friends there")
    view.input("friends").remove(Friends("Ann", "Bob"))
    tell("so do Ann and Bob, and the party is off")


if __name__ == "__main__":
    main()
