"""Trips with at most one change, while flights are delayed and cancelled.

A connection is two flights that meet: the table joined with itself on the airport, kept when there
are 40 minutes to change planes and no more than four hours to wait. So a delay of one flight can
break connections, and make others. Of each pair of cities the two cheapest trips are shown.

    python examples/flights.py
    python examples/flights.py --stats
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import ebbflow as ef


class Flight(NamedTuple):
    number: str
    origin: str
    destination: str
    departs: int
    arrives: int
    price: int


class Cancelled(NamedTuple):
    number: str


class Trip(NamedTuple):
    origin: str
    destination: str
    flights: str
    wait: int
    hours: float
    price: int


def direct(flight: Flight) -> Trip:
    hours = (flight.arrives - flight.departs) / 60
    return Trip(flight.origin, flight.destination, flight.number, 0, hours, flight.price)


def connected(one: Flight, two: Flight) -> Trip:
    wait, hours = two.departs - one.arrives, (two.arrives - one.departs) / 60
    numbers = f"{one.number}+{two.number}"
    return Trip(one.origin, two.destination, numbers, wait, hours, one.price + two.price)


def possible(trip: Trip) -> bool:
    return 40 <= trip.wait <= 240 and trip.origin != trip.destination


flights = ef.Input("flights", Flight, key="number")
cancelled = ef.Input("cancelled", Cancelled)

flying = flights.join(cancelled, on="number", how="anti")
pairs = flying.join(flying, left_on="destination", right_on="origin", select=connected)
trips = flying.map(direct) + pairs.filter(possible)
program = ef.program(
    offers=trips.top_k(2, by="price", per=("origin", "destination"), smallest=True),
    fastest=trips.group_by("origin", "destination").agg(
        hours=ef.min("hours"), flights=ef.arg_min("hours", "flights")
    ),
)

start = {
    "flights": [
        Flight("A1", "Oslo", "Rome", 480, 660, 210),
        Flight("B1", "Oslo", "Bonn", 420, 540, 70),
        Flight("B2", "Bonn", "Rome", 600, 720, 60),
        Flight("B3", "Bonn", "Rome", 780, 900, 50),
        Flight("C1", "Rome", "Lima", 780, 1560, 500),
        Flight("C2", "Rome", "Lima", 800, 1500, 450),
    ],
    "cancelled": [Cancelled("C2")],
}


def main() -> None:
    view = program.run()

    def tell(change: ef.ZSet) -> None:
        for trip in sorted(change.negative()):
            print(f"  - {trip.origin}–{trip.destination} {trip.flights}")
        for trip in sorted(change.positive()):
            route = f"{trip.origin}–{trip.destination} {trip.flights}"
            print(f"  + {route}, {trip.hours:.1f} hours, {trip.price}")

    view["offers"].on_change(tell)
    print("the timetable")
    view.step(start)
    print("B1 is an hour late: too late for B2")
    view.input("flights").upsert(Flight("B1", "Oslo", "Bonn", 480, 600, 70))
    print("B3 is cancelled")
    view.input("cancelled").add(Cancelled("B3"))
    print("B1 is on time after all")
    view.input("flights").upsert(Flight("B1", "Oslo", "Bonn", 420, 540, 70))
    print("B3 flies again")
    view.input("cancelled").remove(Cancelled("B3"))
    fastest = {row[:2]: row.flights for row in view["fastest"].value}
    print(f"fastest from Oslo to Rome: {fastest['Oslo', 'Rome']}")
    if "--stats" in sys.argv:
        print(view.stats())


if __name__ == "__main__":
    main()
