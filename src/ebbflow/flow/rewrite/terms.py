"""What the bodies of monotone loops are made of: terms, and how the rows of a key are chosen."""

from __future__ import annotations

from typing import NamedTuple

from ebbflow.expression import Get, Row, Tuple
from ebbflow.expression.value import is_plain
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
from ebbflow.flow.rewrite.traced import written
from ebbflow.flow.types import classes
from ebbflow.fn import Fn
from ebbflow.record import fields_of

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


PLAIN = {(int,), (str,), (bytes,)}
"""Classes of values that are equal where rows which have them are."""


def rest_of_row(term: Term) -> Fn | None:
    """The field that the rows a term is joined with have besides their key, where it is the only
    one, and the only one that is read behind the join: then no more than that need be kept."""
    join, other = term.join, term.other
    if join is None or other is None or not is_plain(other.type):
        return None
    side, fields = 1 - term.side, fields_of(other.type) or {}
    key = (join.left_key, join.right_key)[side].expression
    known = set(key.items) if isinstance(key, Tuple) else {key}
    rest = [each for i, name in enumerate(fields) if (each := Get(0, name, i)) not in known]
    if len(rest) != 1 or len(known) != len(fields) - 1 or join.merge.expression is None:
        return None
    name = rest[0].name
    if join.merge.reads[side] != frozenset([name]) or classes(fields[name]) not in PLAIN:
        return None
    return written(rest[0], other.type)


def of_rest(fn: Fn, side: int, rest: Fn) -> Fn:
    """A function of two joined rows, where of the one on this side there is only the `rest`."""
    assert fn.expression is not None
    assert isinstance(rest.expression, Get)
    hint = (fields_of(rest.types[0]) or {})[rest.expression.name]
    types = [hint if i == side else each for i, each in enumerate(fn.types)]
    return written(
        fn.expression.substitute(lambda leaf: Row(side) if leaf.arg == side else leaf), *types
    )
