"""The data of `loops.py`: a random graph, and changes of its edges.

Half of the edges of a change go and half come; what goes is there, what comes is not. The root is
the first node from which more than half of all nodes are reached, where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from local_data import Bag, Change, Table

REACHABILITY, COMPONENTS = "reachability", "components"


class Edge(NamedTuple):
    source: int
    target: int


@dataclass
class Sizes:
    """How large the graph is, and for each number of changes in a step how many steps are timed in
    a round: of the incremental contestants, and of those that recompute."""

    nodes: int = 100_000
    edges: int = 200_000
    steps: tuple[tuple[int, int, int], ...] = (
        (1, 300, 2),
        (10, 100, 2),
        (100, 40, 2),
        (1_000, 8, 2),
    )


SMALL = Sizes(nodes=1_000, edges=2_000, steps=((1, 20, 2), (10, 5, 2)))


class Edges(Table):
    """The edges of a graph without loops and without two equal ones."""

    def __init__(self, nodes: int, edges: int, dice: Random) -> None:
        self.there: set[Edge] = set()
        super().__init__([], Edge, nodes, dice)
        for _ in range(edges):
            self.rows.append(self.new())

    def new(self) -> Edge:
        roll = self.dice.randrange
        while True:
            edge = Edge(roll(self.keys), roll(self.keys))
            if edge.source != edge.target and edge not in self.there:
                self.there.add(edge)
                return edge

    def change(self, size: int) -> Bag:
        change = super().change(size)
        self.there.difference_update([edge for edge, weight in change.items() if weight < 0])
        return change


class Graph:
    """A graph, the change that loads it, and changes of it. Of the nodes, reachability is given
    its root, and the components are given all."""

    def __init__(self, query: str, sizes: Sizes) -> None:
        self.edges = Edges(sizes.nodes, sizes.edges, Random(4))
        nodes = range(sizes.nodes) if query == COMPONENTS else [self._root()]
        self.load: Change = {
            "nodes": dict.fromkeys(nodes, 1),
            "edges": dict.fromkeys(self.edges.rows, 1),
        }

    def change(self, size: int) -> Change:
        return {"edges": self.edges.change(size)}

    def _root(self) -> int:
        after: dict[int, list[int]] = {}
        for source, target in self.edges.rows:
            after.setdefault(source, []).append(target)
        half = self.edges.keys // 2
        return next((root for root in range(100) if len(reached(root, after)) > half), 0)


def reached(root: int, after: dict[int, list[int]]) -> set[int]:
    """The nodes that are reached from a root."""
    seen, waiting = {root}, [root]
    while waiting:
        for node in after.get(waiting.pop(), ()):
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return seen
