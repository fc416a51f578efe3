"""What does a change of a loop cost, beside a program by hand, recomputing, and its rivals?

    reachability   the nodes that are reached from a root, over 200k edges between 100k nodes
    components     for every node the least node that it is connected with, over the same edges

In steps of 1, 10, 100 and 1,000 changes, of which half are edges that go and half edges that come;
and the load, one change that brings the whole graph. Contestants take the same changes in turns, as
in `local.py`, and must end with the same result; times are told as there. Those that recompute take
only the first few changes of a round one by one, and the rest at once.

A rival that has not loaded the graph after `--patience` seconds takes no further part, and the
table says so; by default 120, and 20 with `--quick`.

`by hand` believes its input; the engine checks it, `engine trusting` does not. The rivals are in
`loops_rivals.py`. With `--quick`, the program in Rust takes part only if it is built already.

    python benchmarks/loops.py [--quick] [--json] [--work reachability] [--rounds 5]
                               [--without Pathway] [--sizes 1,100] [--patience 120]
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from time import process_time, thread_time
from typing import Any, NamedTuple

import loops_rivals as rivals
from harness import Row, publish
from local import Clock, Engine, Made, Times, figures, same, send, settle
from loops_data import COMPONENTS, REACHABILITY, SMALL, Edge, Graph, Sizes
from loops_floors import by_hand
from loops_targets import targets

import ebbflow as ef

WORKS = (REACHABILITY, COMPONENTS)


class Label(NamedTuple):
    node: int
    label: int


# ---- contestants ----


def reachability() -> ef.Collection:
    """The nodes that are reached from the given ones."""
    roots, edges = ef.Input("nodes", int), ef.Input("edges", Edge)
    return roots.iterate(
        lambda reached: reached.union(
            reached.join(
                edges,
                left_on=lambda node: node,
                right_on="source",
                select=lambda node, edge: edge.target,
            )
        )
    )


def components() -> ef.Collection:
    """Every node with the least node that it is connected with."""
    nodes, edges = ef.Input("nodes", int), ef.Input("edges", Edge)
    both = edges + edges.map(lambda edge: Edge(edge.target, edge.source))
    own = nodes.map(lambda node: Label(node, node))

    def step(labels: ef.Collection) -> ef.Collection:
        sent = labels.join(
            both,
            left_on="node",
            right_on="source",
            select=lambda label, edge: Label(edge.target, label.label),
        )
        return (own + sent).group_by("node").agg(label=ef.min("label"))

    return own.iterate(step)


PROGRAMS: dict[str, Callable[[], ef.Collection]] = {
    REACHABILITY: reachability,
    COMPONENTS: components,
}


def contestants(query: str, sizes: Sizes, there: dict[str, Any], without: list[str]) -> Made:
    """How each is made, by name."""
    made: Made = {
        "by hand": lambda: by_hand(query),
        "engine trusting": lambda: Engine(PROGRAMS[query](), check_input=False),
        "engine": lambda: Engine(PROGRAMS[query]()),
    }
    made |= {name: lambda rival=rival: rival(query, sizes) for name, rival in there.items()}
    return {name: make for name, make in made.items() if not name.startswith(tuple(without))}


def clock(name: str) -> Clock:
    """What tells how long a contestant was at work."""
    return process_time if name in rivals.RIVALS else thread_time


# ---- changes ----


def updates(query: str, made: Made, graph: Graph, sizes: Sizes, rounds: int) -> list[Row]:
    """Load everyone, then let everyone take the same changes in turns, ever more at a time."""
    lives = {name: make() for name, make in made.items()}
    found: list[Row] = []
    rows = sum(map(len, graph.load.values()))
    for name, live in list(lives.items()):
        times: Times = []
        row: Row = {"work": f"{query} load", "contestant": name}
        try:
            send(live, [graph.load], 1, times, clock(name))
            row |= {"rows/s": rows / min(times[0]), "s": min(times[0])}
        except TimeoutError:
            row["remark"] = f"not done after {live.patience} s"
            lives.pop(name).close()
        found.append(row)
    settle()
    order = list(lives)
    for size, many, few in sizes.steps:
        taken: dict[str, Times] = {name: [] for name in lives}
        for _ in range(rounds):
            changes = [graph.change(size) for _ in range(many)]
            given = {}
            for name in order:
                count = few if name in rivals.RECOMPUTING else many
                given[name] = send(lives[name], changes, count, taken[name], clock(name))
            same("the last change", {n: got for n, got in given.items() if n not in rivals.RIVALS})
            order = order[1:] + order[:1]
        same("the result", {name: live.value() for name, live in lives.items()})
        found += [figures(f"{query} {size}", name, taken[name]) for name in made if name in lives]
    for live in lives.values():
        live.close()
    return found


# ---- the command ----


def measure(works: list[str], sizes: Sizes, rounds: int, there: Any, without: Any) -> list[Row]:
    found: list[Row] = []
    for query in works:
        graph = Graph(query, sizes)
        made = contestants(query, sizes, there, without)
        found += updates(query, made, graph, sizes, rounds)
        gc.unfreeze()
    return ratios(found)


def ratios(rows: list[Row]) -> list[Row]:
    """Beside each time, how it stands to that of the engine in the same work."""
    for row in rows:
        unit = next((each for each in ("s", "µs") if each in row), "")
        if not unit:
            continue
        base = next((r[unit] for r in rows if (r["work"], r["contestant"])
                     == (row["work"], "engine")), None)  # fmt: skip
        if base:
            row["/ engine"] = row[unit] / base
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for a first look")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--work", default=",".join(WORKS), help="which, e.g. reachability")
    parser.add_argument("--rounds", type=int, help="turns for each contestant")
    parser.add_argument("--without", nargs="*", default=[], help="contestants to leave out")
    parser.add_argument("--sizes", help="changes in a step, e.g. 1,100")
    parser.add_argument("--patience", type=int, help="seconds that a rival may take to load")
    asked = parser.parse_args()
    rivals.Apart.patience = asked.patience or (20 if asked.quick else 120)
    works = asked.work.split(",")
    if unknown := set(works) - set(WORKS):
        parser.error(f"no such work: {', '.join(sorted(unknown))}; there are {', '.join(WORKS)}")
    sizes = SMALL if asked.quick else Sizes()
    if asked.sizes:
        wanted = set(map(int, asked.sizes.split(",")))
        sizes.steps = tuple(each for each in sizes.steps if each[0] in wanted)
    there = rivals.installed(build=not asked.quick)
    rows = measure(works, sizes, asked.rounds or (1 if asked.quick else 5), there, asked.without)
    judged = targets(rows, asked.quick)
    missing = rivals.missing(there)
    remarks = [f"left out, not installed: {', '.join(missing)}"] if missing else []
    question = (__doc__ or "").splitlines()[0]
    publish(asked, question, rows, judged, {"not installed": missing}, remarks)


if __name__ == "__main__":
    main()
