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
from functools import singledispatch
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
    Join,
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
        return f"windows of {clock.size}{every} by {fn_text(clock.time)}"
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


@singledispatch
def details(node: Node) -> str:
    """What a node does, after its verb.

    >>> details(Filter(parent=Source(name="words"), fn=Fn(str.isupper)))
    'str.isupper'
    """
    return ""


@details.register
def _clock(node: ClockSource) -> str:
    return f"{node.name}, a clock"


@details.register
def _source(node: Source) -> str:
    if node.time is not None:
        return f"{node.name}, late from {node.lateness!r} before the latest {node.time.text}"
    return node.name if node.key is None else f"{node.name}, key {fn_text(node.key)}"


@details.register(Map)
@details.register(Filter)
@details.register(FlatMap)
def _one_row(node: Map | Filter | FlatMap) -> str:
    return fn_text(node.fn)


@details.register
def _fused(node: Fused) -> str:
    return f"{len(node.steps)} steps"


def steps(node: Node) -> list[str]:
    """The steps inside a fused node, the first first; nothing for other nodes."""
    if not isinstance(node, Fused):
        return []
    return [f"{step.verb} {fn_text(step.fn)}" for step in node.steps]


@details.register
def _concat(node: Concat) -> str:
    return " ".join("+" if sign > 0 else "-" for sign in node.signs) or "of nothing"


@details.register(Join)
@details.register(Semi)
def _two_sides(node: Binary) -> str:
    if _crosses(node):
        return "every row with every row"
    return _alike(node.left_key, node.right_key)


@details.register(CompareJoin)
@details.register(CompareSemi)
def _comparisons(node: CompareJoin | CompareSemi) -> str:
    where = " and ".join(map(str, node.where))
    return where if _crosses(node) else f"{_two_sides(node)} where {where}"


@details.register
def _scalar(node: ScalarFilter) -> str:
    key = "" if _crosses(node) else f" by {_two_sides(node)}"
    return f"{fn_text(node.fn)}, with one row{key}"


def _alike(left: Fn, right: Fn) -> str:
    ours, theirs = fn_text(left), fn_text(right)
    return ours if ours == theirs else f"{ours} = {theirs}"


@details.register
def _as_of(node: AsOf) -> str:
    limits = "" if node.tolerance is None else f" within {shown(node.tolerance, width=40)}"
    limits += "" if node.exact else ", at another place"
    return f"{node.direction} by {_alike(node.left_order, node.right_order)}{limits}{_per(node)}"


@details.register(Interval)
@details.register(IntervalSemi)
def _interval(node: Interval | IntervalSemi) -> str:
    low, high = shown(node.low, width=40), shown(node.high, width=40)
    left, right = fn_text(node.left_order), fn_text(node.right_order)
    return f"{low} <= right {right} - left {left} <= {high}{_per(node)}"


def _per(node: Aligned) -> str:
    return "" if _crosses(node) else f" per {_alike(node.left_key, node.right_key)}"


def _crosses(node: Binary | Aligned) -> bool:
    left, right = node.left_key.expression, node.right_key.expression
    return isinstance(left, Constant) and left == right


@details.register
def _reduce(node: Reduce) -> str:
    by = "" if node.key is None else f"by {fn_text(node.key)}: "
    return by + _reducer_text(node, node.width)


def _reducer_text(node: Reduce | SessionReduce, width: int) -> str:
    """`total = sum('price'), n = count()`, where the parts and their names are known."""
    made: Any = getattr(node.reducer, "made", None) or (None, (), {})
    together = getattr(made[0], "__name__", "") == "together" and node.spread
    parts = made[1] if together else (node.reducer,)
    names = list(fields_of(node.type) or ())[width:]
    if len(names) != len(parts) or names == ["value"]:
        return repr(node.reducer)
    return ", ".join(f"{name} = {part!r}" for name, part in zip(names, parts, strict=True))


@details.register
def _top_k(node: TopK) -> str:
    per = "" if node.key is None else f" per {fn_text(node.key)}"
    after = f" after {node.offset:,}" if node.offset else ""
    which = "smallest" if node.smallest else "greatest"
    return f"{node.n} {which} {fn_text(node.by)}{after}{per}"


@details.register
def _sessions(node: Sessions) -> str:
    per = "" if node.key is None else f" per {fn_text(node.key)}"
    return f"{fn_text(node.time)}, gap {shown(node.gap, width=40)}{per}"


@details.register
def _session_reduce(node: SessionReduce) -> str:
    per = "" if node.key is None else f" per {fn_text(node.key)}"
    of = _reducer_text(node, len(node.front))
    return f"{fn_text(node.time)}, gap {shown(node.gap, width=40)}{per}: {of}"


@details.register
def _within(node: Within) -> str:
    return f"{fn_text(node.time)}, {shown(node.span, width=40)}"


@details.register(Scan)
@details.register(Fold)
def _stepped(node: Scan | Fold) -> str:
    return f"{shown(node.transition, width=60)} {_in_order(node)}"


@details.register
def _match(node: Match) -> str:
    names = [f"{step.name} (many)" if step.many else step.name for step in node.steps]
    limits = "" if node.within is None else f" within {shown(node.within, width=40)}"
    limits += ", adjacent" if node.adjacent else ""
    return f"{' → '.join(names)}{limits} {_in_order(node)}"


@details.register
def _over(node: Over) -> str:
    names = list(fields_of(node.type) or ())[-len(node.functions) :]
    parts = [repr(each) for each in node.functions]
    named = zip(names, parts, strict=True) if names else ()
    return f"{', '.join([f'{name} = {part}' for name, part in named] or parts)} {_in_order(node)}"


def _in_order(node: Ordered) -> str:
    per = "" if node.key is None else f" per {fn_text(node.key)}"
    return f"in the order of {fn_text(node.order)}{per}"


@details.register
def _through(node: Through) -> str:
    per = "" if node.key is None else f" per {fn_text(node.key)}"
    return f"{shown(node.operator, width=60)}{per}"


@details.register
def _iterate(node: Iterate) -> str:
    if node.rounds is None:
        return f"to the fixed point, limit {node.limit:,}"
    return f"{node.rounds:,} round{'' if node.rounds == 1 else 's'}"
