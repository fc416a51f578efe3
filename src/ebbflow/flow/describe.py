"""Nodes in words: what one does, and how its reducer follows a change; what is kept for it is said
in `kept`.

These are the words of `explain`, without any layout. A reducer's *verdict* is what it declares of
itself:

    invertible               remove undoes add, always (`partial=False`)
    partial                  remove undoes add, or asks for the rows again (`partial=True`)
    invertible or partial    there is a remove, and nothing is declared: the rows are kept for it
    tree                     no remove, but a merge: a tree of accumulators answers
    refold                   neither: when a row goes, its group is folded again
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.errors import shown
from ebbflow.expression import Constant
from ebbflow.flow.plan import (
    Binary,
    Concat,
    Filter,
    FlatMap,
    Fused,
    Iterate,
    Keyed,
    Map,
    Node,
    Reduce,
    Semi,
    Sessions,
    Source,
    Through,
    TopK,
)
from ebbflow.flow.plan.aligned import Aligned, AsOf, Interval, IntervalSemi
from ebbflow.flow.plan.compare import CompareJoin, CompareSemi, ScalarFilter
from ebbflow.flow.plan.order import Fold, Match, Ordered, Over, Scan
from ebbflow.flow.plan.time import ClockSource, SessionReduce, Within
from ebbflow.flow.rewrite.tighten import Leaving
from ebbflow.flow.windows import Sliding, Time, Tumbling
from ebbflow.fn import Fn
from ebbflow.record import fields_of


def verdict(reducer: Any) -> str:
    """How a reducer follows a removal, as far as it declares it.

    >>> from ebbflow.reducer import Reducer, sum
    >>> verdict(sum()), verdict(Reducer(0, max)), verdict(Reducer(0, max, merge=max))
    ('invertible', 'refold', 'tree')
    """
    if reducer.remove is None:
        return "refold" if reducer.merge is None else "tree"
    if reducer.partial is None:
        return "invertible or partial"
    return "partial" if reducer.partial else "invertible"


def follows(node: Node, judge: Callable[[Any], str]) -> str | None:
    """How a node follows its input, where that is not the same for all: the verdict on a reducer,
    and of a user's operator that it computes everything again.

    >>> from ebbflow.operator import of
    >>> again = Through(parent=Source(name="words"), key=Fn(len), operator=of(len), width=1)
    >>> follows(again, verdict)
    'computed again from all rows of one len, when they change'
    """
    if isinstance(node, Reduce):
        return str(judge(node.reducer))
    if isinstance(node, Through) and node.operator.recomputes:
        rows = "all rows" if node.key is None else f"all rows of one {fn_text(node.key)}"
        return f"computed again from {rows}, when they change"
    return None


def fn_text(fn: Fn | None) -> str:
    """A function as it is shown, on one line: an expression where it is traced, or its name.

    >>> fn_text(Fn(len)), fn_text(None)
    ('len', 'nothing')
    """
    if fn is None:
        return "nothing"
    if isinstance(fn.call, Time):
        return fn_text(fn.call.of)
    if isinstance(fn.call, Leaving):
        return f"the rows of {fn.call.variable}"
    if isinstance(fn.call, (Tumbling, Sliding)):
        clock = fn.call.clock
        every = f" every {clock.every}" if isinstance(fn.call, Sliding) else ""
        return f"windows of {clock.shown}{every} by {fn_text(clock.time)}"
    return " ".join(fn.text.split())


# ---- what a node does ----


def verb(node: Node) -> str:
    """The verb of a node, as a program would have it.

    >>> from ebbflow.flow.plan import Distinct
    >>> verb(Distinct(parent=Source(name="words")))
    'distinct'
    """
    if isinstance(node, IntervalSemi) and node.anti:
        return "interval_anti"
    return "anti" if isinstance(node, (Semi, CompareSemi)) and node.anti else node.verb


def details(node: Node) -> str:
    """What a node does, after its verb.

    >>> details(Filter(parent=Source(name="words"), fn=Fn(str.isupper)))
    'str.isupper'
    """
    match node:
        case ClockSource():
            return f"{node.name}, a clock"
        case Source(time=Fn() as time):
            return f"{node.name}, late from {node.lateness!r} before the latest {time.text}"
        case Source():
            return node.name if node.key is None else f"{node.name}, key {fn_text(node.key)}"
        case Map() | Filter() | FlatMap():
            return fn_text(node.fn)
        case Fused():
            return f"{len(node.steps)} steps"
        case Concat():
            return " ".join("+" if sign > 0 else "-" for sign in node.signs) or "of nothing"
        case Binary():
            return _two_sides(node)
        case AsOf():
            limits = "" if node.tolerance is None else f" within {_value(node.tolerance)}"
            limits += "" if node.exact else ", at another place"
            by = _alike(node.left_order, node.right_order)
            return f"{node.direction} by {by}{limits}{_of_sides(node)}"
        case Interval() | IntervalSemi():
            left, right = fn_text(node.left_order), fn_text(node.right_order)
            apart = f"right {right} - left {left}"
            return f"{_value(node.low)} <= {apart} <= {_value(node.high)}{_of_sides(node)}"
        case Reduce():
            by = "" if node.key is None else f"by {fn_text(node.key)}: "
            return by + _reducer_text(node, node.width)
        case TopK():
            after = f" after {node.offset:,}" if node.offset else ""
            which = "smallest" if node.smallest else "greatest"
            return f"{node.n} {which} {fn_text(node.by)}{after}{_per(node)}"
        case Sessions():
            return f"{fn_text(node.time)}, gap {_value(node.gap)}{_per(node)}"
        case SessionReduce():
            of = _reducer_text(node, len(node.front))
            return f"{fn_text(node.time)}, gap {_value(node.gap)}{_per(node)}: {of}"
        case Within():
            return f"{fn_text(node.time)}, {_value(node.span)}"
        case Ordered():
            return f"{_steps_text(node)} in the order of {fn_text(node.order)}{_per(node)}"
        case Through():
            return f"{shown(node.operator, width=60)}{_per(node)}"
        case Iterate(rounds=None):
            return f"to the fixed point, limit {node.limit:,}"
        case Iterate():
            return f"{node.rounds:,} round{'' if node.rounds == 1 else 's'}"
    return ""


def steps(node: Node) -> list[str]:
    """The steps inside a fused node, the first first; nothing for other nodes."""
    if not isinstance(node, Fused):
        return []
    return [f"{step.verb} {fn_text(step.fn)}" for step in node.steps]


def crosses(node: Binary | Aligned) -> bool:
    """Whether every row of the left meets every row of the right."""
    left, right = node.left_key.expression, node.right_key.expression
    return isinstance(left, Constant) and left == right


def _value(given: Any) -> str:
    return shown(given, width=40)


def _per(node: Keyed) -> str:
    return "" if node.key is None else f" per {fn_text(node.key)}"


def _alike(left: Fn, right: Fn) -> str:
    ours, theirs = fn_text(left), fn_text(right)
    return ours if ours == theirs else f"{ours} = {theirs}"


def _of_sides(node: Aligned) -> str:
    return "" if crosses(node) else f" per {_alike(node.left_key, node.right_key)}"


def _two_sides(node: Binary) -> str:
    keys = "" if crosses(node) else _alike(node.left_key, node.right_key)
    if isinstance(node, ScalarFilter):
        return f"{fn_text(node.fn)}, with one row{keys and f' by {keys}'}"
    if isinstance(node, (CompareJoin, CompareSemi)):
        return f"{keys and f'{keys} where '}{' and '.join(map(str, node.where))}"
    return keys or "every row with every row"


def _steps_text(node: Ordered) -> str:
    if isinstance(node, Match):
        names = [f"{step.name} (many)" if step.many else step.name for step in node.steps]
        limits = "" if node.within is None else f" within {_value(node.within)}"
        return f"{' → '.join(names)}{limits}{', adjacent' if node.adjacent else ''}"
    if isinstance(node, Over):
        names = list(fields_of(node.type) or ())[-len(node.functions) :]
        parts = [repr(each) for each in node.functions]
        named = zip(names, parts, strict=True) if names else ()
        return ", ".join([f"{name} = {part}" for name, part in named] or parts)
    assert isinstance(node, (Scan, Fold))
    return shown(node.transition, width=60)


def _reducer_text(node: Reduce | SessionReduce, width: int) -> str:
    """`total = sum('price'), n = count()`, where the parts and their names are known."""
    made: Any = getattr(node.reducer, "made", None) or (None, (), {})
    together = getattr(made[0], "__name__", "") == "together" and node.spread
    parts = made[1] if together else (node.reducer,)
    names = list(fields_of(node.type) or ())[width:]
    if len(names) != len(parts) or names == ["value"]:
        return repr(node.reducer)
    return ", ".join(f"{name} = {part!r}" for name, part in zip(names, parts, strict=True))
