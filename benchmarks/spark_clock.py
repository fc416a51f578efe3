"""The clocks of `spark.py`: time on the wall, and processor time of all that is at work.

Spark works in a Java process and in Python workers below it. What they and this process use
together is told by the system, in steps of 10 ms; where it does not tell, it is nan. On a busy
machine it is the steadier figure, but it is not the time one waits: a query that keeps two cores
busy takes half of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Taken(NamedTuple):
    """Seconds."""

    wall: float
    used: float


def used() -> float:
    """Seconds of processor time of this process and all below it, those that ended too."""
    ticks: dict[int, int] = {}
    below: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(place.name)
        below.setdefault(int(fields[1]), []).append(number)
        ticks[number] = sum(map(int, fields[11:15]))
    if os.getpid() not in ticks:
        return float("nan")
    total, left = 0, [os.getpid()]
    while left:
        number = left.pop()
        total += ticks[number]
        left += below.get(number, [])
    return total / TICKS


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[Any, Taken]:
    """What a call gives, and what it took."""
    before, begin = used(), perf_counter()
    given = call(*arguments)
    wall = perf_counter() - begin
    return given, Taken(wall, used() - before)


def middle(times: list[Taken]) -> Taken:
    """The medians."""
    return Taken(median(each.wall for each in times), median(each.used for each in times))
