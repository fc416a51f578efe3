"""Is one long stream with one key reduced faster in several tasks than in one?

A machine of four states goes over all rows in their order; what is asked for is its state at the
end. Its steps can be tabulated, so parts of the stream are composed for themselves, each in a task
of its own, and then with each other (`fold(states=..., cuts=...)`). Without cuts one task has all
rows. `speed-up` is the time of one task, divided by that of as many tasks as there are parts; the
time is that of a first load, and of an epoch that changes a hundredth of all rows, on Spark.

    python benchmarks/cuts.py [--quick] [--json]
"""

from __future__ import annotations

import random
import tempfile
from time import perf_counter
from typing import Any, NamedTuple

from harness import Row, main

import ebbflow as ef
from ebbflow.engine.spark.session import session

QUESTION = "Is one long stream with one key reduced faster in several tasks than in one?"
PARTS = 4


class Event(NamedTuple):
    at: int
    value: int


def machine(state: int, row: Event) -> tuple[int, list[int]]:
    """Four states: rows that go on, and rows that begin again."""
    return (0 if row.value % 5 == 0 else min(state + 1, 3)), []


def rows_of(size: int, seed: int) -> list[Event]:
    dice = random.Random(seed)
    return [Event(2 * at + seed, dice.randrange(100)) for at in range(size)]


def spans_of(spark: Any, size: int, parts: int) -> list[float]:
    """The seconds of a first load and of an epoch of late rows, in so many parts."""
    rows, late, spans = rows_of(size, 0), rows_of(size, 1)[::100], []
    cuts = [2 * size * i // parts for i in range(1, parts)]
    events = ef.Input("events", Event)
    end = events.fold(machine, 0, order="at", states=range(4), cuts=cuts, type=int)
    with tempfile.TemporaryDirectory() as folder:
        made = ef.spark(spark, path=folder, mode="staged", buckets=PARTS)
        with end.run(made, check_input=False) as view:
            for change in (rows, late):
                table = spark.createDataFrame(change)
                begin = perf_counter()
                view.step(events=table)
                spans.append(perf_counter() - begin)
            state = 0
            for row in sorted([*rows, *late]):
                state, _ = machine(state, row)
            assert [tuple(each)[-1] for each in view.zset()] == [state]
    return spans


def measure(quick: bool) -> list[Row]:
    spark, found = session(), []
    spans_of(spark, 1000, PARTS)  # Spark and its workers are slow at first
    for size in (20_000,) if quick else (200_000, 1_000_000):
        times = {parts: spans_of(spark, size, parts) for parts in (1, PARTS)}
        for number, what in enumerate(("first load", "late rows")):
            one, many = times[1][number], times[PARTS][number]
            found.append({
                "rows": size, "work": what, "one task s": one, f"{PARTS} parts s": many,
                "speed-up": one / many,
            })  # fmt: skip
    return found


if __name__ == "__main__":
    main(QUESTION, measure)
