"""Do columns keep up with differential dataflow on the queries of paper 004?

The queries, the numbers and the changes are those of `paper_004.py`, at 64,000 numbers:

    pairs       Q1: select(x % 10 == 0) ⋈ select(y % 5 == 0)   on x % 500 == y % 1000
    greatest    Q2: the greatest pair of Q1, in lexicographic order

A contestant is named as in `columns.py`. Rows have one field, and every contestant gives the change
of its result as it is asked for it: rows, or arrays. All take the same changes in turns; their last
changes and their results must be the same, and are compared with pairs computed by hand as well.

    python benchmarks/paper_004_columns.py [--quick] [--json] [--rounds 4]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import local_data as data
import numpy as np
from harness import Row, publish
from local import clock, figures, send
from local_targets import Figures
from paper_004 import recompute
from rust import RustProgram, is_built

import ebbflow as ef

QUERIES = {"pairs": 1.0, "greatest": 5.0}
"""The works, and how many times faster than differential dataflow columns are to be."""
RUST, HELD = "differential", "columns trusting, arrays"
Pairs = dict[tuple[int, ...], int]


class Left(NamedTuple):
    x: int


class Right(NamedTuple):
    y: int


TYPES: dict[str, Any] = {"left": Left, "right": Right}


def program(query: str) -> Any:
    tens = ef.Input("left", Left).filter(lambda row: row.x % 10 == 0)
    fives = ef.Input("right", Right).filter(lambda row: row.y % 5 == 0)
    pairs = tens.join(fives, left_on=lambda row: row.x % 500, right_on=lambda row: row.y % 1000)
    return pairs if query == "pairs" else pairs.top_k(1, order=lambda pair: (pair.x, pair.y))


class InRows:
    """The engine, given rows."""

    def __init__(self, query: str, **options: Any) -> None:
        self.view = program(query).run(**options)

    def prepare(self, change: data.Change) -> Any:
        return {
            name: ef.ZSet({TYPES[name](number): weight for number, weight in bag.items()})
            for name, bag in change.items()
        }

    def step(self, change: Any) -> Any:
        return dict(self.view.step(change).items())

    def bag(self, given: Any) -> Pairs:
        return {tuple(row): weight for row, weight in given.items()}

    def value(self) -> Pairs:
        return self.bag(self.view.value)

    def close(self) -> None:
        self.view.close()


class InArrays(InRows):
    """The engine, given arrays and asked for them."""

    def prepare(self, change: data.Change) -> Any:
        return {
            name: {
                TYPES[name]._fields[0]: np.fromiter(bag, np.int64, len(bag)),
                "__weight": np.fromiter(bag.values(), np.int64, len(bag)),
            }
            for name, bag in change.items()
        }

    def step(self, change: Any) -> Any:
        return self.view.step(change).to_numpy()

    def bag(self, given: Any) -> Pairs:
        *fields, weights = (array.tolist() for array in given.values())
        return dict(zip(zip(*fields, strict=True), weights, strict=True))

    def value(self) -> Pairs:
        return InRows.bag(self, self.view.value)


class Differential(RustProgram):
    """The program in Rust, which tells its result and not its changes."""

    def prepare(self, change: data.Change) -> str:
        return "".join(
            f"{side} {number} 0 0 {weight}\n"
            for side, bag in enumerate(change.values())
            for number, weight in bag.items()
        )

    def value(self) -> Pairs:
        return {(x, y): weight for x, y, weight in self.rows()}


def contestants(query: str, build: bool) -> dict[str, Callable[[], Any]]:
    made: dict[str, Callable[[], Any]] = {
        "rows trusting": lambda: InRows(query, columns=False, check_input=False),
        "rows": lambda: InRows(query, columns=False),
        HELD: lambda: InArrays(query, columns=True, check_input=False),
        "columns, arrays": lambda: InArrays(query, columns=True),
    }
    if is_built(build):
        made[RUST] = lambda: Differential(query)
    return made


def measured(query: str, size: int, rounds: int, build: bool) -> list[Row]:
    """Everyone takes the same changes in turns."""
    source = data.Numbers(size)
    lives = {name: make() for name, make in contestants(query, build).items()}
    for live in lives.values():
        live.step(live.prepare(source.load))
    times: dict[str, Any] = {name: [] for name in lives}
    order = list(lives)
    for _ in range(rounds):
        changes = [source.change(size // 100) for _ in range(25)]
        given = {name: send(lives[name], changes, 25, times[name], clock(name)) for name in order}
        bags = [lives[name].bag(out) for name, out in given.items() if name != RUST]
        assert all(bag == bags[0] for bag in bags), "the last changes differ"
        order = order[1:] + order[:1]
    wanted: Pairs = dict(recompute(source.data.left, source.data.right))
    if query == "greatest":
        wanted = {max(wanted): 1}
    for name, live in lives.items():
        assert live.value() == wanted, f"the result of {name} is not what it should be"
        live.close()
    found = [figures(query, name, times[name]) for name in lives]
    held = next(row["µs"] for row in found if row["contestant"] == HELD)
    return [row | {f"/ {HELD}": row["µs"] / held} for row in found]


def main() -> None:
    question = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--quick", action="store_true", help="small sizes, for a first look")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--rounds", type=int, help="turns of 25 changes for each contestant")
    asked = parser.parse_args()
    size, rounds = (4_000, 1) if asked.quick else (64_000, 4)
    rows = [
        row
        for query in QUERIES
        for row in measured(query, size, asked.rounds or rounds, not asked.quick)
    ]
    found = Figures(rows, asked.quick)
    for query, least in QUERIES.items():
        found.check(f"{query}: {RUST} / {HELD}", found.ratio(query, RUST, HELD, "µs"), ">=", least)
    missing = [] if is_built(False) else [RUST]
    publish(asked, question, rows, found.judged, {"not installed": missing}, missing)


if __name__ == "__main__":
    main()
