"""Hourly figures and heat alarms from sensors whose readings come late and are corrected.

A window is nothing but two more fields, `window_start` and `window_end`, and a late reading is
nothing but a row. It goes into the hour it belongs to, and that hour's figures are revised; no
watermark decides that it is too late. Readings are keyed by sensor and minute, so a correction is
an upsert. Sliding windows overlap: one reading is in three of them here, and can raise and
withdraw several alarms at once.

    python examples/sensors.py
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import ebbflow as ef


class Reading(NamedTuple):
    sensor: str
    minute: int
    celsius: float


readings = ef.Input("readings", Reading, key=("sensor", "minute"))

hourly = (
    readings.tumbling("minute", 60)
    .group_by("sensor", "window_start")
    .agg(n=ef.count(), low=ef.min("celsius"), mean=ef.mean("celsius"), high=ef.max("celsius"))
)
alarms = (
    readings.sliding("minute", 30, 10)
    .group_by("sensor", "window_start", "window_end")
    .agg(n=ef.count(), mean=ef.mean("celsius"))
    .filter(lambda window: window.n >= 2 and window.mean > 30)
)
program = ef.program(hourly=hourly, alarms=alarms)

start = {
    "readings": [
        Reading("roof", 5, 21.5),
        Reading("roof", 25, 23.0),
        Reading("roof", 50, 29.5),
        Reading("roof", 65, 31.0),
        Reading("cellar", 10, 11.0),
        Reading("cellar", 40, 11.5),
        Reading("cellar", 70, 12.0),
    ]
}


def clock(minute: int) -> str:
    return f"{8 + minute // 60}:{minute % 60:02}"


def hour(row: Any) -> str:
    figures = f"{row.low} to {row.high}, mean {row.mean:.2f} of {row.n}"
    return f"{row.sensor} from {clock(row.window_start)}: {figures}"


def alarm(row: Any) -> str:
    span = f"{clock(row.window_start)}–{clock(row.window_end)}"
    return f"ALARM {row.sensor} {span}: {row.mean:.2f} degrees"


def tell(show: Any, change: ef.ZSet) -> None:
    for row, weight in sorted(change.items(), key=lambda each: (each[0][:2], each[1])):
        print("  " + ("now " if weight > 0 else "not ") + show(row))


def main() -> None:
    with program.run() as view:
        view.step(start)
        for row in sorted(view["hourly"].value):
            print(hour(row))
        view["hourly"].on_change(partial(tell, hour))
        view["alarms"].on_change(partial(tell, alarm))

        log = view.input("readings")
        print("8:58 on the roof comes in, an hour late")
        log.add(Reading("roof", 58, 33.0))
        print("it was a wrong reading: the sensor sends 30.1 for the same minute")
        log.upsert(Reading("roof", 58, 30.1))
        print("the reading of 8:50 is withdrawn")
        log.delete(("roof", 50))
        print(f"epochs so far: {view.epoch}")


if __name__ == "__main__":
    main()
