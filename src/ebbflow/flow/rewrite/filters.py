"""Filters early: a row that will be dropped is dropped before it costs anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import is_

from ebbflow.flow.plan import (
    Concat,
    Distinct,
    Filter,
    Join,
    Map,
    Node,
    Plan,
    Reduce,
    Semi,
    TopK,
)
from ebbflow.flow.plan.compare import CompareJoin, CompareSemi, ScalarFilter
from ebbflow.flow.rewrite.graph import consumers, with_parents
from ebbflow.flow.rewrite.reducers import reduces
from ebbflow.flow.rewrite.share import indices
from ebbflow.flow.rewrite.traced import (
    certain,
    condition,
    conjuncts,
    of_key,
    of_parts,
    of_rows,
    of_side,
    sortable,
    total,
)
from ebbflow.fn import Fn

Moves = list[tuple[int, Fn]]


def push_filters(plan: Plan) -> Plan:
    """Filters move towards the inputs, through everything that keeps a row, or a key, what it is.

    Law (003, Corollary 3.43, exchange of a homomorphism with the state before it):

        filter(p, a + b)                 ==  filter(p, a) + filter(p, b)         also for a - b
        filter(p, map(f, x))             ==  map(f, filter(q, x))      p(f(row)) == q(row)
        filter(p, distinct(x))           ==  distinct(filter(p, x))
        filter(p, join(a, b))            ==  join(filter(q, a), b)     p(merge(l, r)) == q(l)
        filter(p, semi(a, b))            ==  semi(filter(p, a), b)     also anti; never into b
        filter(p, reduce(R, by=k, x))    ==  reduce(R, by=k, filter(q, x))    p(k, value) == q(k)
        filter(p, top_k(per=k, x))       ==  top_k(per=k, filter(p, x))       p reads only k
        filter(p & q, x)                 ==  filter(q, filter(p, x))

    Nothing passes a flat_map, sessions or `through`. All but `+`, `-` and distinct need traced
    functions. What a filter passes must have no other reader. It does not pass a map that computes
    what it looks at, which would then be computed twice, nor go in front of an index that other
    nodes share, which would then be kept twice.

    A filter may fail: `1 / x` does when x is 0. Moved, it must see no row that it did not see
    before, such as one that meets nothing in the join. So one that can fail moves only where it
    sees the same rows; to where it sees more, only a *total* one moves, which never fails (see
    `ebbflow.flow.rewrite.total`). And what it passes must be total too: functions that get fewer
    rows then do not fail on those that they do not get. So a program fails exactly when it did.

    The first of several filters stays the first, unless a total one moves on where a total one
    cannot.

    >>> from ebbflow.flow.plan import Source
    >>> a, b = Source(name="a"), Source(name="b")
    >>> both = Concat(parts=(a, b), signs=(1, 1))
    >>> plan = Plan({"out": Filter(parent=both, fn=Fn(str.isalpha))})
    >>> [node.verb for node in push_filters(plan).nodes()]
    ['input', 'filter', 'input', 'filter', 'concat']
    """
    while True:
        pushed = _pushed(plan)
        if all(pushed.outputs[name] is node for name, node in plan.outputs.items()):
            return plan
        plan = pushed


def _pushed(plan: Plan) -> Plan:
    """All filters as far as they go, up to nodes that are read more than once.

    Where every reader of such a node wants the same filter, that is one filter now, which may move
    on the next time.
    """
    nodes, count = plan.nodes(), consumers(plan)
    shared = {
        (id(reader), id(of))
        for (of, _), by in indices(plan).items()
        if len(by) > 1
        for reader in by
    }
    at: dict[int, list[Wish]] = {}
    edges: dict[tuple[int, int], list[Wish]] = {}
    for node in reversed(nodes):
        below: list[list[Wish]] = [[] for _ in node.parents]
        if isinstance(node, Filter):
            parts = tuple(conjuncts(node.fn))
            below[0] = [Wish(fn, node, parts) for fn in parts] + at.pop(id(node), [])
        else:
            blocked = [
                i for i, parent in enumerate(node.parents) if (id(node), id(parent)) in shared
            ]
            at[id(node)] = _pushed_below(node, at.pop(id(node), []), below, blocked)
        for i, parent in enumerate(node.parents):
            if count[id(parent)] == 1:
                at[id(parent)] = below[i]
            else:
                edges[id(node), i] = below[i]
    return _placed(plan, nodes, at, edges)


@dataclass(frozen=True)
class Wish:
    """A filter on its way: one of the conditions of `origin`, as it reads here."""

    fn: Fn
    origin: Filter
    parts: tuple[Fn, ...]


def _pushed_below(
    node: Node, wishes: Sequence[Wish], below: list[list[Wish]], blocked: list[int]
) -> list[Wish]:
    """Moves wishes from above a node to below it; gives those that stay, in order."""
    if isinstance(node, Distinct) and not blocked and _sees_the_same(node):
        below[0] += wishes  # as they are, and at once: there may be many, on a long way
        return []
    stay: list[Wish] = []
    safe = True  # none of those that stay can fail
    for wish in wishes:
        moves = _passing(node, wish.fn)
        free = moves and not any(i in blocked for i, _ in moves)
        if free and _misses_nothing(node, moves):
            same = not stay and _sees_the_same(node)
            if same or (safe and all(total(fn) for _, fn in moves)):
                for i, fn in moves:
                    below[i].append(replace(wish, fn=fn))
                continue
        stay.append(wish)
        safe = safe and total(wish.fn)
    return stay


def _misses_nothing(node: Node, moves: Moves) -> bool:
    """Whether the node would not have failed on the rows that it does not get any more."""
    if isinstance(node, Map):
        return certain(node.fn)
    if isinstance(node, Join):
        keys = (node.left_key, node.right_key)
        return certain(node.merge) and all(certain(keys[i]) for i, _ in moves)
    if isinstance(node, CompareJoin):
        keys = (node.left_key, node.right_key)
        compared = [fn for i, _ in moves for fn in _compared(node, i)]
        return certain(node.merge) and all(map(certain, [*compared, *(keys[i] for i, _ in moves)]))
    if isinstance(node, Semi):
        return certain(node.left_key)
    if isinstance(node, CompareSemi):
        return all(map(certain, (node.left_key, *_compared(node, 0))))
    if isinstance(node, ScalarFilter):
        return certain(node.left_key) and total(node.fn)
    if isinstance(node, Reduce):
        never = certain(node.key) and reduces(node.reducer, node.parent.type)
        return never and node.parent.bag
    if isinstance(node, TopK):
        return certain(node.key) and sortable(node.by) and node.parent.bag
    return True


def _compared(node: CompareJoin | CompareSemi, side: int) -> list[Fn]:
    return [each.right if side else each.left for each in node.where]


def _sees_the_same(node: Node) -> bool:
    """Whether a condition in front of the node sees the same rows, or keys, as behind it."""
    if isinstance(node, Concat) and min(node.signs) < 0:
        return False
    return isinstance(node, (Map, Distinct, Concat, Reduce, TopK)) and all(
        parent.bag for parent in node.parents
    )


# ---- what a condition behind a node is in front of it ----


def _passing(node: Node, fn: Fn) -> Moves:
    """The condition for each parent that takes it; none where it cannot be said in front."""
    if isinstance(node, Concat):
        return [(i, of_rows(fn, part.type)) for i, part in enumerate(node.parts)]
    if isinstance(node, (Join, CompareJoin)):
        whole = condition(node.merge, fn)
        sides = [] if whole is None else [(side, of_side(whole, side)) for side in (0, 1)]
        return [(side, only) for side, only in sides if only is not None][:1]
    only = None
    if isinstance(node, Map):
        only = condition(node.fn, fn, plain=True)
    elif isinstance(node, (Distinct, Semi, CompareSemi, ScalarFilter)):
        only = fn
    elif isinstance(node, Reduce):
        only = of_parts(fn, node.key, node.width)
    elif isinstance(node, TopK):
        only = of_key(fn, node.key)
    return [] if only is None else [(0, only)]


# ---- the plan with the filters where they stopped ----


def _placed(
    plan: Plan,
    nodes: Iterable[Node],
    at: dict[int, list[Wish]],
    edges: dict[tuple[int, int], list[Wish]],
) -> Plan:
    become: dict[int, Node] = {}
    made: dict[tuple[int, Fn], Node] = {}
    for node in nodes:
        parents = [
            _filtered(become[id(parent)], edges.get((id(node), i), []), made)
            for i, parent in enumerate(node.parents)
        ]
        if isinstance(node, Filter):
            become[id(node)] = parents[0]
        else:
            become[id(node)] = _filtered(with_parents(node, *parents), at.get(id(node), []), made)
    return Plan({name: become[id(node)] for name, node in plan.outputs.items()})


def _filtered(node: Node, wishes: Sequence[Wish], made: dict[tuple[int, Fn], Node]) -> Node:
    """The node with filters behind it; conditions that were one filter, and stayed so, are one."""
    i = 0
    while i < len(wishes):
        origin, parts = wishes[i].origin, wishes[i].parts
        here = [wish.fn for wish in wishes[i : i + len(parts)]]
        whole = len(here) == len(parts) and all(map(is_, here, parts))
        fn = origin.fn if whole else wishes[i].fn
        i += len(parts) if whole else 1
        if (id(node), fn) not in made:
            new = with_parents(origin, node) if whole else None
            made[id(node), fn] = new or replace(origin, parent=node, fn=fn, type=node.type)
        node = made[id(node), fn]
    return node
