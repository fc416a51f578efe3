"""What the bodies of monotone loops are made of: terms, and how the rows of a key are chosen."""

from __future__ import annotations

from typing import NamedTuple

from ebbflow.flow.plan import (
    Filter,
    FlatMap,
    Fused,
    FusedStep,
    Join,
    LoopInput,
    Map,
    Node,
    Reduce,
    Semi,
    row_steps,
)

Steps = tuple[FusedStep, ...]


class Term(NamedTuple):
    """One way to derive rows: rows of an input through `before`; where there is a `join`, on its
    side `side`, with the rows of `other`; then through `after`."""

    input: LoopInput
    before: Steps
    join: Join | None = None
    side: int = 0
    other: LoopInput | None = None
    after: Steps = ()


class Choice(NamedTuple):
    """Of the rows of each key, the least `value`, or the greatest."""

    reduce: Reduce
    value: str
    greatest: bool
    is_float: bool


class NotMonotone(NamedTuple):
    """A loop of another form, and why: a clause that goes on after "not monotone: "."""

    why: str


def named(node: Node) -> str:
    """A node as a reason speaks of it: what it is, and where."""
    if isinstance(node, LoopInput):
        return f"{node.name!r} as it is"
    joins = {False: "a semijoin", True: "an anti join"}
    what = joins[node.anti] if isinstance(node, Semi) else f"a {node.verb}"
    return f"{what}{where(node)}"


def where(part: Node | Term) -> str:
    """Where a part of a body was written, where that is known."""
    if isinstance(part, Term):
        steps = part.after or part.before
        found = part.join.place if part.join is not None else steps[-1].place if steps else ""
    else:
        found = part.place
    return f", at {found}" if found else ""


def stripped(node: Node) -> tuple[Steps, Node]:
    """The steps on one row at a time that end in a node, and what they begin with."""
    steps: Steps = ()
    while isinstance(node, (Map, Filter, FlatMap, Fused)):
        steps = (*row_steps(node), *steps)
        node = node.parent
    return steps, node
