"""Rewrites: the same program, written another way. Each is a law, and each is tested as one.

A rewrite is a function from a plan to a plan that changes no output, at no epoch. It is pure: the
plan it was given stays as it is, and what it leaves alone is the same object in the new one. Nodes
keep the place in the user's file where they were made, so that errors and `explain` speak of it.

    tighten             what does not touch the feedback of a loop leaves it
    share               equal parts are one part
    reduce_sessions     what is computed of sessions is computed with them
    push_filters        rows that will be dropped are dropped early
    push_projections    fields that nobody reads are dropped early
    narrow_joins        joins make rows of the fields that are read, where these are few
    narrow_inputs       inputs keep rows of the fields that are read, where that is asked for
    fuse                steps on one row at a time become one step

A function is taken to give equal answers for equal rows, as everywhere in a program. It may fail:
then the rewritten program fails in the same epochs as the plain one, in neither fewer nor more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ebbflow.flow.plan import Plan
from ebbflow.flow.rewrite.filters import push_filters
from ebbflow.flow.rewrite.fuse import fuse
from ebbflow.flow.rewrite.projections import narrow_inputs, narrow_joins, push_projections
from ebbflow.flow.rewrite.sessions import reduce_sessions
from ebbflow.flow.rewrite.share import indices, share
from ebbflow.flow.rewrite.tighten import tighten

Rewrite = Callable[[Plan], Plan]

FIRST: tuple[Rewrite, ...] = (tighten, share, reduce_sessions, push_filters)
LOCAL: tuple[Rewrite, ...] = (*FIRST, narrow_joins, fuse)
ALL: tuple[Rewrite, ...] = (*FIRST, push_projections, share, fuse)


def optimise(plan: Plan, rewrites: Iterable[Rewrite] = LOCAL) -> Plan:
    """The plan after these rewrites, in order.

    `LOCAL` is what pays in memory; `ALL` has all projections, for state that is written down, or
    is in columns. Doing it again changes nothing.

    >>> from ebbflow.flow.plan import Filter, Map, Source
    >>> from ebbflow.fn import Fn
    >>> words = Source(name="words")
    >>> loud = Map(parent=Filter(parent=words, fn=Fn(str.isalpha)), fn=Fn(str.upper))
    >>> [node.verb for node in optimise(Plan({"loud": loud})).nodes()]
    ['input', 'fused']
    """
    for rewrite in rewrites:
        plan = rewrite(plan)
    return plan


__all__ = [
    "ALL", "FIRST", "LOCAL", "Rewrite", "fuse", "indices", "narrow_inputs", "narrow_joins",
    "optimise", "push_filters", "push_projections", "reduce_sessions", "share", "tighten",
]  # fmt: skip
