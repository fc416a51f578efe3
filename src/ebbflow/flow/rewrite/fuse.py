"""Fusion: neighbouring steps on one row at a time become one step."""

from __future__ import annotations

from ebbflow.flow.plan import (
    Filter,
    FlatMap,
    Fused,
    FusedStep,
    Map,
    Node,
    Plan,
    Unary,
    row_steps,
)
from ebbflow.flow.rewrite.graph import consumers, rebuilt
from ebbflow.flow.rewrite.traced import composed

STATELESS = (Map, Filter, FlatMap, Fused)
_NODES: dict[str, type[Map] | type[Filter] | type[FlatMap]] = {
    "map": Map,
    "filter": Filter,
    "flat_map": FlatMap,
}


def fuse(plan: Plan) -> Plan:
    """A run of maps, filters and flat_maps becomes one `Fused` node, and maps that are traced one.

    Law (003, Corollary 3.37, for the homomorphisms that act row by row):

        map(g, map(f, x))  ==  map(f then g, x)
        g(f(x))            ==  fused([f, g], x)         for any map, filter or flat_map f and g

    Valid when only the next step reads the one before: a node that is read twice, or is an output,
    is computed once as it is, and not again inside each of its readers. Two traced maps become one
    where nothing that can fail is left out or done twice, and the result is not large.

    The node has the place of the last step, and every step keeps its own.

    >>> from ebbflow.flow.plan import Source
    >>> from ebbflow.fn import Fn
    >>> words = Source(name="words")
    >>> long = Filter(parent=words, fn=Fn(str.isalpha))
    >>> plan = fuse(Plan({"out": Map(parent=long, fn=Fn(str.upper))}))
    >>> [step.verb for step in plan.outputs["out"].steps]
    ['filter', 'map']
    """
    count = consumers(plan)
    swallowed: set[int] = set()
    for node in plan.nodes():
        if isinstance(node, STATELESS):
            before = node.parent
            if isinstance(before, STATELESS) and count[id(before)] == 1:
                swallowed.add(id(before))

    def change(new: Node, old: Node) -> Node:
        if id(old) in swallowed or not isinstance(old, STATELESS):
            return new
        run = [new]
        while id(old.parent) in swallowed:  # type: ignore[attr-defined]
            old = old.parent  # type: ignore[attr-defined]
            run.append(run[-1].parent)  # type: ignore[attr-defined]
        return _one(run[::-1])

    return rebuilt(plan, change)


def _one(run: list[Node]) -> Node:
    """One node in place of a run of stateless nodes, given in the order in which they run."""
    first, last = run[0], run[-1]
    steps: list[FusedStep] = []
    for node in run:
        for step in row_steps(node):
            two_maps = steps and steps[-1].verb == step.verb == "map"
            both = composed(steps[-1].fn, step.fn) if two_maps else None
            if both is None:
                steps.append(step)
            else:
                steps[-1] = FusedStep(verb="map", fn=both, place=step.place)
    if len(steps) == len(row_steps(last)) and first is last:
        return last
    assert isinstance(first, Unary)
    if len(steps) == 1:
        node_type = _NODES[steps[0].verb]
        return node_type(parent=first.parent, fn=steps[0].fn, type=last.type, place=last.place)
    return Fused(parent=first.parent, steps=tuple(steps), type=last.type, place=last.place)
