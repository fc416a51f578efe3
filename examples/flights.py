"""Trips with at most two changes, while flights are delayed and cancelled.

A trip is a flight, or a trip and a flight that meets it: from the same airport, with 40 minutes to
change planes and no more than four hours to wait. That rule is a loop, and as nobody likes to
change three times it runs two `rounds` and leaves: after each, trips have one change more. A delay
of one flight can break trips, and make others. Of each pair of cities the two cheapest are shown.

    python examples/flights.py
    python examples/flights.py --stats
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import ebbflow as ef

CHANGES = 2


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
    flights: str
    origin: str
    destination: str
    departs: int
    arrives: int
    wait: int
    price: int


def direct(flight: Flight) -> Trip:
    return Trip(
        flight.number, flight.origin, flight.destination, flight.departs, flight.arrives, 0,
        flight.price,
    )  # fmt: skip


def connected(trip: Trip, flight: Flight) -> Trip:
    return Trip(
        f"{trip.flights}+{flight.number}", trip.origin, flight.destination, trip.departs,
        flight.arrives, flight.departs - trip.arrives, trip.price + flight.price,
    )  # fmt: skip


def possible(trip: Trip) -> bool:
    return 40 <= trip.wait <= 240 and trip.origin != trip.destination


flights = ef.Input("flights", Flight, key="number")
cancelled = ef.Input("cancelled", Cancelled)

flying = flights.join(cancelled, on="number", how="anti")
nonstop = flying.map(direct)


def one_change_more(trips: ef.Collection) -> ef.Collection:
    longer = trips.join(flying, left_on="destination", right_on="origin", select=connected)
    return nonstop + longer.filter(possible)


trips = nonstop.iterate(one_change_more, rounds=CHANGES)
timed = trips.select(
    "origin", "destination", "flights", "price", hours=lambda t: (t.arrives - t.departs) / 60
)
program = ef.program(
    offers=timed.top_k(2, order="price", per=("origin", "destination"), smallest=True),
    fastest=timed.group_by("origin", "destination").agg(
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
    print(f"fastest from Oslo to Lima: {fastest['Oslo', 'Lima']}")
    if "--stats" in sys.argv:
        print(view.stats())


if __name__ == "__main__":
    main()
