"""How far it is from the depot, and by which way, while roads open and close. (Shortest paths.)

`distances` keeps the number alone: of all ways to a place the least sum of lengths. No way gets
shorter by going on, since lengths are not negative, as the filter says; so the view may look at the
places nearest to the depot first, and an opened road that helps nobody costs next to nothing.

`ways` carries the path along, and of the ways to a place keeps the shortest, of equals the first in
the order of names: any ranking will do in a loop. A road that is closed takes all ways with it that
lead over it, and the second best come back.

    python examples/roads.py
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef


class Road(NamedTuple):
    a: str
    b: str
    km: int


class Distance(NamedTuple):
    place: str
    km: int


class Way(NamedTuple):
    place: str
    km: int
    path: tuple[str, ...]


def both_directions(road: Road) -> list[Road]:
    return [road, Road(road.b, road.a, road.km)]


def further(distance: Distance, road: Road) -> Distance:
    return Distance(road.b, distance.km + road.km)


def along(way: Way, road: Road) -> Way:
    return Way(road.b, way.km + road.km, (*way.path, road.b))


depots = ef.Input("depots", str)
roads = ef.Input("roads", Road)
open_roads = roads.flat_map(both_directions).filter(lambda road: road.km > 0)


def nearest(near: ef.Collection) -> ef.Collection:
    on = near.join(open_roads, left_on="place", right_on="a", select=further)
    return (near + on).group_by("place").agg(km=ef.min("km"))


def shortest(ways: ef.Collection) -> ef.Collection:
    on = ways.join(open_roads, left_on="place", right_on="a", select=along)
    return (ways + on).top_k(1, order=("km", "path"), per="place", smallest=True)


distances = depots.map(lambda name: Distance(name, 0)).iterate(nearest)
ways = depots.map(lambda name: Way(name, 0, (name,))).iterate(shortest)
program = ef.program(distances=distances, ways=ways)

start = {
    "depots": ["Aarau"],
    "roads": [
        Road("Aarau", "Bern", 80),
        Road("Aarau", "Chur", 150),
        Road("Bern", "Davos", 270),
        Road("Chur", "Davos", 60),
        Road("Davos", "Ems", 50),
        Road("Chur", "Ems", 110),
    ],
}


def main() -> None:
    view = program.run()

    def tell(change: ef.ZSet) -> None:
        found = {way.place: way for way in change.positive()}
        for place in sorted({way.place for way in change}):
            way = found.get(place)
            print(
                f"  {place}: {way.km} km, {'–'.join(way.path)}" if way else f"  no way to {place}"
            )

    view["ways"].on_change(tell)
    print("from Aarau")
    view.step(start)
    print("the road from Chur to Davos is closed by snow")
    view.input("roads").remove(Road("Chur", "Davos", 60))
    print("so is the one from Aarau to Chur")
    view.input("roads").remove(Road("Aarau", "Chur", 150))
    print("a new road from Bern to Chur, and the pass to Davos is open again")
    view.input("roads").add(Road("Bern", "Chur", 200), Road("Chur", "Davos", 60))
    print("Bern is cut off")
    view.input("roads").remove(Road("Aarau", "Bern", 80))
    print(", ".join(f"{row.place} {row.km} km" for row in sorted(view["distances"].value)))


if __name__ == "__main__":
    main()
