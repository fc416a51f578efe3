"""Loops: one that is monotone, one with a least value, two variables, and one inside another."""

from typing import NamedTuple

import ebbflow as ef


class Edge(NamedTuple):
    source: int
    target: int
    length: int


class Stop(NamedTuple):
    node: int


class Distance(NamedTuple):
    node: int
    distance: int


edges = ef.Input("edges", Edge)
roots = ef.Input("roots", Stop)
here = ef.Input("here", Distance)
roads = edges.filter(lambda edge: edge.length >= 0)


def onward(stops: ef.Collection) -> ef.Collection:
    return stops.join(edges, left_on="node", right_on="source").select(node="target")


def further(near: ef.Collection) -> ef.Collection:
    longer = near.join(
        roads,
        left_on="node",
        right_on="source",
        select=lambda near, road: Distance(road.target, near.distance + road.length),
    )
    return (near + longer).group_by("node").agg(distance=ef.min("distance"))


reached = roots.iterate(lambda reached: reached.union(onward(reached)))
near = here.iterate(further)
sides = ef.fixpoint(
    lambda even, odd: {"even": even.union(onward(odd)), "odd": odd.union(onward(even))},
    even=roots,
    odd=ef.empty(Stop),
    priority={"even": "node"},
)
twice = roots.iterate(
    lambda outer: outer.iterate(lambda inner: inner.union(onward(outer))), rounds=2
)

program = ef.program(reached=reached, near=near, odd=sides["odd"], twice=twice)
