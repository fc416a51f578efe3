"""What do windows and clocks cost, beside computing them without what is special about them?

late row      one row into a session of n rows of which a count, a sum and a maximum are kept,
              and out again; `rows` is the same program with every row given again with its
              session, and reduced behind that, as it is done where a reducer cannot be merged
sliding       rows into windows of an hour, a new one every five minutes: counts and sums by
              panes; `rows` is with one row for each window
tick          a clock that moves on by ten seconds over rows of a week; `again` is the filter
              over all rows from scratch

python benchmarks/windows.py [--quick] [--json]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

from harness import Row, in_turns, main

import ebbflow as ef
from ebbflow.engine.runtime import compile as compiler

WEEK = 7 * 24 * 3600


class Hit(NamedTuple):
    """A visit to a page."""

    page: str
    at: int
    price: int


HITS = ef.Input("hits", Hit)


@contextmanager
def without(**names: Any) -> Iterator[None]:
    """The compiler with other values for some of its names."""
    kept = {name: getattr(compiler, name) for name in names}
    try:
        for name, value in names.items():
            setattr(compiler, name, value)
        yield
    finally:
        for name, value in kept.items():
            setattr(compiler, name, value)


def measure(quick: bool) -> list[Row]:
    """All works, at a small size or at that of the questions."""
    rounds = 3 if quick else 7
    sizes = (1_000, 4_000) if quick else (1_000, 16_000, 64_000)
    return [
        *[_late_row(n, rounds) for n in sizes],
        _sliding(10_000 if quick else 100_000, rounds),
        *[_tick(n, rounds) for n in ((20_000,) if quick else (100_000, 1_000_000))],
    ]


def _row(work: str, n: int, found: dict[str, float]) -> Row:
    ours, other = found.values()
    return {"work": work, "rows": n, "ms": ours * 1e3, "beside ms": other * 1e3,
            "beside": list(found)[1], "times": other / ours}  # fmt: skip


def _late_row(n: int, rounds: int) -> Row:
    visits = HITS.session("at", 10, per="page").group_by("page", "window_start", "window_end")
    made = visits.agg(n=ef.count(), total=ef.sum("price"), best=ef.max("price"))
    plain = [each for each in compiler.LOCAL if each.__name__ != "reduce_sessions"]
    rows, late = [Hit("a", 5 * i, i % 90) for i in range(n)], Hit("a", 5 * n + 3, 7)

    def view() -> Callable[[], object]:
        running = made.run(check_input=False)
        running.step(hits=rows)

        def in_and_out() -> None:
            running.step(hits={late: 1})
            running.step(hits={late: -1})

        return in_and_out

    ours = view()
    with without(LOCAL=plain):
        other = view()
    found = in_turns({"late row": ours, "rows": other}, rounds=rounds)
    return _row("late row, in and out", n, found)


def _sliding(n: int, rounds: int) -> Row:
    dice = Random(1)
    rows = [Hit(f"p{dice.randrange(50)}", dice.randrange(24 * 3600), i) for i in range(n)]
    by_window = HITS.sliding("at", 3600, 300).group_by("page", "window_start", "window_end")
    counts = by_window.agg(n=ef.count(), total=ef.sum("price"))

    def load() -> None:
        counts.run(check_input=False).step(hits=rows)

    def load_plain() -> None:
        with without(by_panes=lambda node, chain: None):
            load()

    found = in_turns({"sliding": load, "rows": load_plain}, rounds=min(rounds, 3))
    return _row("sliding, load", n, found)


def _tick(n: int, rounds: int) -> Row:
    recent = HITS.within("at", ef.clock("now"), WEEK).group_by("page").agg(n=ef.count())
    view = recent.run(check_input=False)
    span = 2 * WEEK
    rows = [Hit(f"p{i % 50}", i * span // n, i) for i in range(n)]
    view.step(hits=rows, now=WEEK)
    time = WEEK

    def tick() -> None:
        nonlocal time
        time += 10
        view.input("now").set(time)

    def again() -> object:
        counts: dict[str, int] = {}
        for page, at, _ in rows:
            if time - WEEK < at <= time:
                counts[page] = counts.get(page, 0) + 1
        return counts

    found = in_turns({"tick": tick, "again": again}, rounds=rounds)
    return _row("tick", n, found)


if __name__ == "__main__":
    main("What do windows and clocks cost?", measure)
