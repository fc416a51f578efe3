"""Programs with loops of every kind, and random changes of small graphs for them."""

from __future__ import annotations

import warnings
from random import Random
from typing import Any, NamedTuple

from tests.oracle.loop_shapes import Edge, Far, Road

import ebbflow as ef
from ebbflow.errors import MayNotEnd
from ebbflow.testing.epochs import plan_of
from ebbflow.zset import ZSet


class Node(NamedTuple):
    n: int


roots, closed = ef.Input("roots", Node), ef.Input("closed", Node)
edges, roads = ef.Input("edges", Edge), ef.Input("roads", Road)


def moved(nodes: Any) -> Any:
    return nodes.join(edges, left_on="n", right_on="a", select=lambda n, e: Node(e.b))


def reachable() -> Any:
    """Facts with an input: lazy rounds."""
    return roots.iterate(lambda reached: reached.union(moved(reached)))


def distances() -> Any:
    """The least value of each key: lazy rounds."""
    sure = roads.filter(lambda road: road.d >= 0)

    def further(far: Any) -> Any:
        longer = far.join(sure, on="a", select=lambda f, r: Far(r.b, f.d + r.d))
        return (far + longer).group_by("a").agg(d=ef.min("d"))

    start = roots.map(lambda node: Far(node.n, 0), type=Far)
    return start.iterate(further)


def closure() -> Any:
    """Facts with facts: lazy rounds."""
    return edges.iterate(
        lambda paths: paths.union(
            paths.join(paths, left_on="b", right_on="a", select=lambda x, y: Edge(x.a, y.b))
        )
    )


def walks() -> Any:
    """So many rounds, with weights that grow."""
    return roots.iterate(lambda here: moved(here) + here, rounds=3)


def open_only() -> Any:
    """A semi and an anti join in the loop."""

    def body(reached: Any) -> Any:
        allowed = moved(reached).join(closed, on="n", how="anti")
        return reached.union(allowed.join(edges, left_on="n", right_on="b", how="semi"))

    return roots.iterate(body)


def by_twos() -> Any:
    """Two variables."""
    found = ef.fixpoint(
        lambda even, odd: {"even": even.union(moved(odd)), "odd": odd.union(moved(even))},
        even=roots,
        odd=ef.empty(Node),
    )
    return ef.program(**found)


def components() -> Any:
    """A loop in a loop: edges between nodes that reach each other, as in strong components."""

    def forward(kept: Any) -> Any:
        nodes = kept.map(lambda e: Edge(e.b, e.b), type=Edge).distinct()
        labels = nodes.iterate(
            lambda names: (
                (
                    names
                    + names.join(
                        kept, left_on="a", right_on="a", select=lambda n, e: Edge(e.b, n.b)
                    )
                )
                .group_by("a")
                .agg(b=ef.min("b"))
            )
        )
        named = kept.join(labels, on="a", select=lambda e, n: Road(e.a, e.b, n.b))
        both = named.join(labels, left_on="b", right_on="a", select=lambda e, n: (e, n.b))
        return both.filter(lambda pair: pair[0].d == pair[1]).map(
            lambda pair: Edge(pair[0].b, pair[0].a), type=Edge
        )

    return edges.distinct().iterate(forward, rounds=4)


def later() -> Any:
    """Rows that enter when it is their turn."""
    return roots.iterate(
        lambda reached: reached.union(moved(reached)), priority=lambda node: abs(node.n) % 4
    )


def smallest_names() -> Any:
    """The best row of each key, by another verb than min: exact rounds."""
    start = edges.map(lambda e: Edge(e.a, e.a), type=Edge)
    return start.iterate(
        lambda names: (
            names
            + names.join(edges, left_on="a", right_on="a", select=lambda n, e: Edge(e.b, n.b))
        ).top_k(1, order="b", per="a", smallest=True).distinct()
    )  # fmt: skip


PROGRAMS = [
    reachable, distances, closure, walks, open_only, by_twos, components, later, smallest_names,
]  # fmt: skip


def made(program: Any) -> Any:
    """The program; some of these may not come to an end for all that building them can tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MayNotEnd)
        return program()


def epochs_of(program: Any, dice: Random, count: int, nodes: int = 6, size: int = 3) -> list[Any]:
    """Changes of a graph of so many nodes: the first one with more, then some that take away as
    much as they add."""
    there: dict[str, dict[Any, int]] = {name: {} for name in plan_of(program).sources}
    row = {
        "roots": lambda: Node(dice.randrange(2)),
        "closed": lambda: Node(dice.randrange(nodes)),
        "edges": lambda: Edge(dice.randrange(nodes), dice.randrange(nodes)),
        "roads": lambda: Road(dice.randrange(nodes), dice.randrange(nodes), dice.randrange(5)),
    }
    found = []
    for number in range(count):
        epoch: dict[str, ZSet[Any]] = {}
        for name in there:
            some = there[name]
            change: dict[Any, int] = {}
            for _ in range(nodes if number == 0 else dice.randint(0, size)):
                if number and some and dice.random() < 0.6:
                    gone = dice.choice(sorted(some))
                    change[gone] = change.get(gone, 0) - 1
                    some[gone] -= 1
                    some = there[name] = {each: n for each, n in some.items() if n}
                else:
                    new = row[name]()
                    change[new] = change.get(new, 0) + 1
                    some[new] = some.get(new, 0) + 1
            epoch[name] = ZSet(change)
        found.append(epoch)
    return found
