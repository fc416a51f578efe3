"""Plans as graphs: who reads a node, and a plan built again with other nodes.

A *consumer* of a node is an edge to a node that reads it, or an output. A node with one consumer
can be moved, or become part of its consumer; one with several is computed once for all of them, and
must stay what it is.

Nothing here calls itself: a plan may be thousands of nodes deep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from ebbflow.flow.plan import Concat, Iterate, Node, Plan

Change = Callable[[Node, Node], Node]


def consumers(plan: Plan) -> Counter[int]:
    """How many edges and outputs read each node, by its id.

    >>> from ebbflow.flow.plan import Source
    >>> words = Source(name="words")
    >>> both = Concat(parts=(words, words), signs=(1, 1))
    >>> count = consumers(Plan({"both": both}))
    >>> count[id(words)], count[id(both)]
    (2, 1)
    """
    count: Counter[int] = Counter(id(node) for node in plan.outputs.values())
    for node in plan.nodes():
        count.update(id(parent) for parent in node.parents)
    return count


def with_parents(node: Node, *parents: Node) -> Node:
    """The same node reading other parents; the very same node when they are its own.

    >>> from ebbflow.flow.plan import Distinct, Source
    >>> words, names = Source(name="words"), Source(name="names")
    >>> with_parents(Distinct(parent=words), names).parents == (names,)
    True
    """
    if all(new is old for new, old in zip(parents, node.parents, strict=True)):
        return node
    if isinstance(node, Concat):
        return replace(node, parts=parents)
    if isinstance(node, Iterate):
        cut = len(node.starts)
        return replace(node, starts=parents[:cut], imports=parents[cut:])
    names = ("left", "right") if len(parents) == 2 else ("parent",)
    return replace(node, **dict(zip(names, parents, strict=True)))  # type: ignore[arg-type]


def rebuilt(plan: Plan, change: Change) -> Plan:
    """The plan with `change(new, old)` instead of each node, parents first.

    `old` is the node as it was, `new` the same node reading what became of its parents. When
    nothing changes, the same nodes are given back.

    >>> from ebbflow.flow.plan import Distinct, Source
    >>> words = Source(name="words")
    >>> plan = Plan({"all": Distinct(parent=words)})
    >>> rebuilt(plan, lambda new, old: new).outputs["all"] is plan.outputs["all"]
    True
    """
    become: dict[int, Node] = {}
    for node in plan.nodes():
        parents = [become[id(parent)] for parent in node.parents]
        become[id(node)] = change(with_parents(node, *parents), node)
    return Plan({name: become[id(node)] for name, node in plan.outputs.items()})
