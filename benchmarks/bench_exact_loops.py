"""What does a loop in exact rounds cost to load, to follow one change, and to have replaced?

Three examples with loops that are not monotone, each with random rows:

    import_cycles    strongly connected components, by loops in a loop
    points_to        two collections that need each other, with a lattice
    page_rank        ten rounds; one link changes the rank of nearly every page

A share of the rows is replaced by others in one step: once followed through the rounds, once with
the loops computed again, as the engine does by itself from a fourth on. Processor time; the least
of three.

    python benchmarks/bench_exact_loops.py [--quick] [--json]
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

from harness import Row, main

import ebbflow as ef
from ebbflow.engine.runtime import loop_again

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
NEVER = 10**9
TIMES = 3
SHARES = (0.1, 0.25, 0.5, 1.0)
KINDS = ("address", "copy", "copy", "load", "store")


def imports(module: Any, dice: Random, rows: int) -> Iterator[Any]:
    while True:
        yield module.Import(*[f"m{dice.randrange(rows // 2)}" for _ in range(2)])


def statements(module: Any, dice: Random, rows: int) -> Iterator[Any]:
    line = 0
    while True:
        line += 1
        target, source = [f"v{dice.randrange(rows // 3)}" for _ in range(2)]
        yield module.Statement(line, target, dice.choice(KINDS), source)


def links(module: Any, dice: Random, rows: int) -> Iterator[Any]:
    while True:
        yield module.Link(*[f"p{dice.randrange(rows // 4)}" for _ in range(2)])


WORKS: dict[str, tuple[str, Callable[..., Iterator[Any]], int]] = {
    "import_cycles": ("imports", imports, 1_500),
    "points_to": ("statements", statements, 600),
    "page_rank": ("links", links, 2_000),
}


def measure(quick: bool) -> list[Row]:
    found: list[Row] = []
    for name, (given, rows_of, rows) in WORKS.items():
        module = importlib.import_module(name)
        rows, times = (rows // 10, 1) if quick else (rows, TIMES)
        made = rows_of(module, Random(1), rows)
        some = {next(made): None for _ in range(rows)}
        others = [row for row, _ in zip(made, range(3 * rows), strict=False) if row not in some]
        old, new = list(some), list(dict.fromkeys(others))[:rows]
        steps: dict[str, tuple[int, Any]] = {"one row comes": (NEVER, {new[0]: 1})}
        for share in SHARES:
            n = int(rows * share)
            change = {**dict.fromkeys(old[:n], -1), **dict.fromkeys(new[:n], 1)}
            steps[f"{share:.0%} replaced, followed"] = NEVER, change
            steps[f"{share:.0%} replaced, computed again"] = 0, change
        least: dict[str, float] = {}
        for _ in range(times):
            for step, (few, change) in steps.items():
                view = module.program.run()
                taken = {"load": timed(view, {given: ef.ZSet.of(old)})}
                loop_again.FEW, loop_again.PART = few, NEVER
                taken[step] = timed(view, {given: ef.ZSet(change)})
                for each, seconds in taken.items():
                    least[each] = min(seconds, least.get(each, seconds))
        found += [
            {"work": name, "step": step, "ms": seconds * 1e3, "/ load": seconds / least["load"]}
            for step, seconds in least.items()
        ]
    return found


def timed(view: Any, change: Any) -> float:
    gc.collect()
    begin = process_time()
    view.step(change)
    return process_time() - begin


if __name__ == "__main__":
    main((__doc__ or "").splitlines()[0], measure)
