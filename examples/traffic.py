"""Traffic on roads: speeds, the mean direction, and the gaps between cars.

Three ways to say what you mean when the library has no word for it:

- *A reducer of your own.* `speeds` counts cars by steps of 10 km/h, and counts down what is taken
  back: `ebbflow check examples.traffic:speeds`.
- *A reducer made of others.* The mean of 350° and 10° is 0°, not 180°. `heading` adds up the
  directions as vectors, with sums that are exact: what leaves leaves no trace.
- *An operator of your own.* `Gaps` keeps the times of the cars in order. A car that comes between
  two others replaces one gap by two, and no other gap is touched.

    python examples/traffic.py
"""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from itertools import pairwise
from math import atan2, cos, degrees, radians, sin
from typing import Any, NamedTuple

import ebbflow as ef
from ebbflow.change import BAG
from ebbflow.operator import Operator


class Car(NamedTuple):
    road: str
    second: int
    speed: int
    heading: int


def count(bins: tuple[int, ...], speed: int, by: int = 1) -> tuple[int, ...]:
    at = max(0, min(speed // 10, len(bins) - 1))
    return (*bins[:at], bins[at] + by, *bins[at + 1 :])


uncount = partial(count, by=-1)
speeds = ef.Reducer((0,) * 15, count, uncount, partial=False, elements=range(0, 200, 7))
east = ef.sum(lambda car: cos(radians(car.heading)))
north = ef.sum(lambda car: sin(radians(car.heading)))
heading = (east & north).then(lambda sums: round(degrees(atan2(sums[1], sums[0])), 6) % 360)


class Gaps(Operator[Any, Any, Any, Any]):
    """The seconds between one car and the next, of the cars on one road."""

    input, output = BAG, BAG

    def f(self, cars: Any) -> Any:
        return ef.ZSet.of(b - a for a, b in pairwise(self.init(cars)))

    def init(self, cars: Any) -> tuple[int, ...]:
        return tuple(sorted(car.second for car in cars.rows()))

    def step(self, times: tuple[int, ...], change: Any) -> tuple[tuple[int, ...], Any]:
        gaps: list[tuple[int, int]] = []
        for car, weight in change.items():
            comes, second = weight > 0, car.second
            for _ in range(abs(weight)):
                at = bisect_left(times, second)
                front, back = times[:at], times[at if comes else at + 1 :]
                old, new = (*front[-1:], *back[:1]), (*front[-1:], second, *back[:1])
                closed, opened = (old, new) if comes else (new, old)
                gaps += [(b - a, -1) for a, b in pairwise(closed)]
                gaps += [(b - a, 1) for a, b in pairwise(opened)]
                times = (*front, second, *back) if comes else (*front, *back)
        return times, ef.ZSet(gaps)


gaps = Gaps()
cars = ef.Input("cars", Car)
program = ef.program(
    roads=cars.group_by("road").agg(speeds=speeds.on("speed"), heading=heading, cars=ef.count()),
    gaps=cars.through(gaps, per="road", type=int),
)

start = {
    "cars": [
        *[Car("A1", 0, 98, 350), Car("A1", 4, 104, 10), Car("A1", 9, 121, 5)],
        *[Car("B7", 2, 47, 90), Car("B7", 30, 52, 90)],
    ]
}


def main() -> None:
    view = program.run()

    def show(what: str) -> None:
        print(what)
        for road in sorted(view["roads"].value):
            slow = next(10 * i for i, n in enumerate(road.speeds) if n)
            seconds = sorted(gap for name, gap in view["gaps"].value.rows() if name == road.road)
            figures = f"slowest from {slow} km/h, towards {road.heading:.0f}°, gaps {seconds}"
            print(f"  {road.road} ({road.cars}): {figures}")

    view.step(start)
    show("five cars")
    view.input("cars").add(Car("A1", 5, 99, 0))
    show("a sixth, found late in another camera's log")
    view.input("cars").remove(Car("A1", 4, 104, 10), Car("B7", 2, 47, 90))
    show("two were counted by mistake")
    view.verify()


if __name__ == "__main__":
    main()
