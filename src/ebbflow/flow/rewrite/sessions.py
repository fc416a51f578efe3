"""Sessions with what is computed of them in one node."""

from __future__ import annotations

from typing import Any

from ebbflow.expression import Get, Tuple
from ebbflow.flow.plan import Node, Plan, Reduce, Sessions
from ebbflow.flow.plan.time import SessionReduce
from ebbflow.flow.rewrite.graph import consumers, rebuilt
from ebbflow.flow.rewrite.reducers import Names, reducer_reads
from ebbflow.fn import Fn
from ebbflow.record import fields_of
from ebbflow.reducer.library import naive_sum
from ebbflow.reducer.merging import merged_parts
from ebbflow.reducer.sessions import END, KEY, START
from ebbflow.reducer.strategy import strategies_of

WINDOW = {"window_start": START, "window_end": END}


def reduce_sessions(plan: Plan) -> Plan:
    """A reduce of sessions whose groups are the sessions is one node with them.

    Law: the accumulator of a session is those of its parts, merged in the order of time, so

        reduce(R, by=(k, start, end), session(per=k, x))  ==  session_reduce(R, per=k, x)

    for any order of the parts of the key, with one of start and end or both. Valid when only the
    reduce reads the sessions; when R is of the library, has a `merge`, small accumulators, and is
    seen not to read the window; and not for `naive_sum`, whose result depends on the order.

    >>> import ebbflow as ef
    >>> from ebbflow.record import record
    >>> hits = ef.Input("hits", record("Hit", user=str, at=int)).session("at", 600, per="user")
    >>> visits = hits.group_by("user", "window_start").agg(n=ef.count())
    >>> [node.verb for node in reduce_sessions(visits.plan).nodes()]
    ['input', 'session reduce']
    """
    count = consumers(plan)

    def change(new: Node, old: Node) -> Node:
        if not isinstance(new, Reduce) or not isinstance(new.parent, Sessions):
            return new
        assert isinstance(old, Reduce)
        return new if count[id(old.parent)] > 1 else _one(new, new.parent)

    return rebuilt(plan, change)


def _one(node: Reduce, sessions: Sessions) -> Node:
    rows = sessions.parent
    front = _front(node.key, sessions)
    reads = reducer_reads(node.reducer, sessions.type, read_by)
    if front is None or reads is None or not reads <= {*(fields_of(rows.type) or ())}:
        return node
    if not _merges(node.reducer, rows.type):
        return node
    return SessionReduce(
        parent=rows, key=sessions.key, time=sessions.time, gap=sessions.gap, reducer=node.reducer,
        front=front, width=len(items_of(sessions.key)), spread=node.spread, type=node.type,
        place=node.place,
    )  # fmt: skip


def _merges(reducer: Any, row_type: Any) -> bool:
    if merged_parts(reducer, row_type) is None:
        return False
    made = [part.reducer.made for part in strategies_of(reducer, row_type)]
    return not any(each is not None and each[0] is naive_sum for each in made)


def _front(key: Fn | None, sessions: Sessions) -> tuple[int, ...] | None:
    """Which parts of a session the parts of a group's key are; None where groups are no sessions.
    Fields of the rows are the first of those with their session, so what reads them is equal."""
    if key is None or fields_of(sessions.type) is None:
        return None
    per = items_of(sessions.key)
    if sessions.key is not None and not all(per):
        return None
    known: dict[Any, int] = {each: KEY + i for i, each in enumerate(per)}
    front: list[int] = []
    for item in items_of(key):
        window = WINDOW.get(item.name) if isinstance(item, Get) else None
        part = known.get(item) if window is None else window
        if part is None:
            return None
        front.append(part)
    whole = {START, END} & {*front} and {*known.values()} <= {*front}
    return tuple(front) if whole else None


def items_of(key: Fn | None) -> tuple[Any, ...]:
    """The expressions of the parts of a key; None for one that is not traced."""
    if key is None:
        return ()
    made = key.expression
    return made.items if isinstance(made, Tuple) else (made,)


def read_by(part: Any, row_type: Any) -> Names:
    """The fields that a part of a row reads, also a function that is traced."""
    fn = None if part is None else Fn.of(part, row_type)
    return None if fn is None or fn.expression is None else fn.reads[0]
