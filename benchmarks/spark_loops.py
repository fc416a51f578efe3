"""The work `loops` of `spark.py`: what can be reached in a graph whose edges change.

A graph of N edges has N / 4 nodes; both ends of an edge are drawn at random, so that from the three
roots nearly all of them can be reached, in a dozen rounds or so. A change of so many edges is half
of edges that come, and half of edges that go.

The rival computes it again with plain Spark, round after round: the nodes that were found last are
joined with the edges, and those among the results that are new are found next. The edges as they
are now are cached for it in memory, by where they begin, and this is not timed; so it is what a
query would take if its input were up to date for nothing. What is found in a round is checkpointed,
in memory: with `persist` alone, the plan of each round would have the last one in it twice, and a
dozen rounds take minutes. It is asked with joins as Spark chooses them, and with what was found
last broadcast to all tasks, and the faster counts.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import Row
from spark_clock import Taken, middle, timed

import ebbflow as ef

JOINS = ("chosen", "broadcast")
PARTITIONS = 2
ROOTS = 3
WEIGHT = "__weight"


class Place(NamedTuple):
    node: int


class Link(NamedTuple):
    begin: int
    end: int


def reachable() -> Any:
    """The program."""
    roots, links = ef.Input("roots", Place), ef.Input("links", Link)
    return roots.iterate(
        lambda found: found.union(
            found.join(links, left_on="node", right_on="begin", select=lambda p, e: Place(e.end))
        )
    )


class Graph:
    """The edges as they are now."""

    def __init__(self, edges: int, seed: int = 7) -> None:
        self.dice = np.random.default_rng(seed)
        self.nodes = max(edges // 4, ROOTS)
        self.edges = self.drawn(edges)

    def drawn(self, count: int) -> Any:
        return self.dice.integers(0, self.nodes, (count, 2))

    def change(self, count: int) -> Any:
        """So many edges that come or go, with a weight each; what came and went is not there."""
        gone = self.dice.choice(len(self.edges), count - count // 2, replace=False)
        new = self.drawn(count // 2)
        rows = np.concatenate([new, self.edges[gone]])
        weights = np.repeat([1, -1], [len(new), len(gone)])
        self.edges = np.concatenate([np.delete(self.edges, gone, axis=0), new])
        return as_table(rows).append_column(WEIGHT, pa.array(weights, pa.int64()))

    def table(self) -> Any:
        return as_table(self.edges)


def as_table(edges: Any) -> Any:
    return pa.table({"begin": edges[:, 0], "end": edges[:, 1]})


class Again:
    """The rival."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.edges: Any = None

    def take(self, table: Any) -> None:
        """Have the edges of a graph in memory."""
        self.close()
        pq.write_table(table, self.folder / "now.parquet")
        found = self.spark.read.parquet(str(self.folder / "now.parquet"))
        self.edges = found.repartition(PARTITIONS, "begin").cache()
        self.edges.count()

    def run(self, join: str) -> Any:
        """All that can be reached, computed round after round."""
        from pyspark.sql import functions as f

        held = [self.spark.range(0, ROOTS).toDF("node")]
        new = seen = held[0]
        while True:
            new = f.broadcast(new) if join == "broadcast" else new
            begins = new.withColumnRenamed("node", "begin")
            found = begins.join(self.edges, "begin").select("end")
            found = found.withColumnRenamed("end", "node")
            new = found.distinct().join(seen, "node", "left_anti").localCheckpoint()
            held.append(new)
            if not new.count():
                break
            seen = seen.union(new)
        nodes = {row.node for row in seen.collect()}
        for frame in held:
            frame.unpersist()
        return nodes

    def close(self) -> None:
        if self.edges is not None:
            self.edges.unpersist()


def loops(bench: Any, engine: Any) -> list[Row]:
    """At the smallest size, epochs of each size; `engine` runs a program in a folder."""
    edges = bench.sizes[0]
    folder = bench.folder / f"loops-{edges}"
    folder.mkdir(parents=True)
    graph, rival = Graph(edges), Again(bench.spark, folder)
    row: Row = {"work": "loops", "rows": edges, "nodes": graph.nodes}
    view = engine(bench.spark, reachable(), folder / "state").view if bench.engine else None
    if view is not None:
        roots = [Place(node) for node in range(ROOTS)]
        _, load = timed(partial(view.step, roots=roots, links=graph.table()))
        row |= {"load s": load.wall, "load used s": load.used}
        view.step(links=graph.change(100))
    found = []
    for count in bench.changes:
        if count <= edges // 2:
            found.append(row | epochs(bench, graph, rival, view, count))
    rival.close()
    if view is not None:
        view.close()
    return found


def epochs(bench: Any, graph: Graph, rival: Again, view: Any, count: int) -> Row:
    """Epochs of one size; in the last turns, the rival has the same change."""
    steps: list[Taken] = []
    again: dict[str, list[Taken]] = {join: [] for join in JOINS}
    nodes = None
    for turn in range(bench.rounds):
        change = graph.change(count)
        if view is not None:
            steps.append(timed(partial(view.step, links=change))[1])
        if bench.recompute and turn >= bench.rounds - (2 if bench.rounds > 3 else 1):
            rival.take(graph.table())
            for join in JOINS:
                nodes, taken = timed(rival.run, join)
                again[join].append(taken)
    if view is not None and nodes not in (None, {row.node for row in view.value.collect()}):
        raise AssertionError("loops: the view is not what Spark computes")
    row: Row = {"changes": count}
    if steps:
        step = middle(steps)
        row |= {"step s": step.wall, "used s": step.used, "mode": view.last.mode}
        row["jobs"] = sum(view.last.jobs.values())
    if nodes is not None:
        best = min(JOINS, key=lambda join: middle(again[join]).wall)
        taken = middle(again[best])
        row |= {"recompute s": taken.wall, "by": best, "its used s": taken.used}
        row["reached"] = len(nodes)
        if steps:
            row |= {"ratio": taken.wall / step.wall, "used": taken.used / max(step.used, 0.01)}
    return row
