"""Sharing: equal parts of a program become one, and are computed once.

There are two things to share. Equal *subplans* are one node, by the rewrite `share`. Equal
*indices* are found by `indices`: two nodes that look up the rows of one parent by the same key can
have one index between them. That is no rewrite, because a plan says nothing about indices; an
engine that compiles a plan asks for them, and `explain` shows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ebbflow.flow.plan import Join, Node, Plan, Reduce, Semi
from ebbflow.flow.rewrite.graph import rebuilt
from ebbflow.fn import Fn
from ebbflow.reducer import Reducer
from ebbflow.reducer.strategy import strategies_of

Arrangement = tuple[Node, Fn]


def share(plan: Plan) -> Plan:
    """Equal subplans become one node object.

    Law: `f(x)` and `g(x)` are the same collection when `f == g`, so

        {a: f(x), b: g(f(x))}  ==  let y = f(x) in {a: y, b: g(y)}

    Valid always: nodes are equal when they mean the same. Of equal nodes the one that comes first
    in the plan is kept, with its place. Each node is looked at once, and compared with others by
    its own fields and by which objects its parents are, so a graph with many paths costs no more
    than one with few.

    >>> from ebbflow.flow.plan import Concat, Distinct, Source
    >>> def once():
    ...     return Distinct(parent=Source(name="words"))
    >>> plan = Plan({"twice": Concat(parts=(once(), once()), signs=(1, 1))})
    >>> len(plan.nodes()), len(share(plan).nodes())
    (5, 3)
    """
    known: dict[int, list[Node]] = {}

    def first(new: Node, old: Node) -> Node:
        same = known.setdefault(hash(new), [])
        for node in same:
            if _equal(node, new):
                return node
        same.append(new)
        return new

    return rebuilt(plan, first)


def _equal(one: Node, other: Node) -> bool:
    """Whether two nodes mean the same, when equal parents are already the same object."""
    if type(one) is not type(other) or len(one.parents) != len(other.parents):
        return False
    if any(a is not b for a, b in zip(one.parents, other.parents, strict=True)):
        return False
    own = [each.name for each in fields(one) if each.name not in _NOT_OWN]
    return all(getattr(one, name) == getattr(other, name) for name in own)


_NOT_OWN = {"place", "parent", "parts", "left", "right", "starts", "imports"}


def wanted(node: Node) -> Iterator[Arrangement]:
    """The indices a node needs: of which parent, by which key.

    A join looks up the rows of both sides, a semijoin those of its left. A reducer needs the rows
    of a key only when it cannot do without: when `remove` is missing or may ask to recompute, and
    no tree of accumulators stands in; and when it is a max or min, which keeps a few values only.
    """
    if isinstance(node, (Join, Semi)):
        yield node.left, node.left_key
    if isinstance(node, Join):
        yield node.right, node.right_key
    if isinstance(node, Reduce) and node.key is not None and keeps_rows(node.reducer):
        yield node.parent, node.key


def keeps_rows(reducer: object) -> bool:
    """Whether the rows of each key are kept for a reducer that may need them again.

    >>> from ebbflow.reducer import Reducer, max, sum
    >>> keeps_rows(sum()), keeps_rows(sum() & max()), keeps_rows(Reducer(0, int.__add__))
    (False, True, True)
    """
    return isinstance(reducer, Reducer) and any(part.keeps_rows for part in strategies_of(reducer))


def indices(plan: Plan) -> dict[Arrangement, list[Node]]:
    """The indices that a plan needs, each with the nodes that read it, in the order of the plan.

    Equal parents count as one where they are one object, as after `share`; keys where they are
    equal. An index with several readers is kept once; a join of a collection with itself may be two
    of them.

    >>> from ebbflow.flow.plan import Semi, Source
    >>> from ebbflow.reducer.row import itself
    >>> words, names, key = Source(name="words"), Source(name="names"), Fn(itself)
    >>> keys = {"left_key": key, "right_key": key}
    >>> known = Semi(left=words, right=names, **keys)
    >>> unknown = Semi(left=words, right=names, anti=True, **keys)
    >>> found = indices(Plan({"known": known, "unknown": unknown}))
    >>> [len(readers) for readers in found.values()]
    [2]
    """
    found: dict[Arrangement, list[Node]] = {}
    for node in plan.nodes():
        for arrangement in wanted(node):
            found.setdefault(arrangement, []).append(node)
    return found
