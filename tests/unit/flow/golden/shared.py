"""Equal parts written twice, and two joins that need the same index."""

from typing import NamedTuple

import ebbflow as ef


class Edge(NamedTuple):
    start: int
    end: int


def edges() -> ef.Collection:
    return ef.Input("edges", Edge).distinct()


def step(left: Edge, right: Edge) -> Edge:
    return Edge(left.start, right.end)


two = edges().join(edges(), left_on="end", right_on="start", select=step)
three = two.join(edges(), left_on="end", right_on="start", select=step)

program = ef.program(two=two, three=three)
