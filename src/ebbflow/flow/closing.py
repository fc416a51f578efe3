"""Which times the rows of a group can have, for groups that are over one day.

An input with a *lateness* lets no change in of rows whose time is before its *closing*: the latest
time it has seen, less the lateness. A field that has been made of that time tells, of all rows that
have the same value there, from when to when their times can be: its *bounds*. Once the last of them
is before the closing, no such row comes any more, and none goes: a group that has the field in its
key is *closed*. What it gave stays, and nothing else of it is needed.

    at               of the input itself         the time, from that on until that
    window_start     of tumbling and sliding     from that on, until the window ends
    window_end       of the same                 since the window started, before that
    window_end       of a session                until that

Bounds pass what leaves a field as it is: filters, projections, unions, distinct. What looks at rows
of one key together gives rows when any of them changes, so only fields of that key are left behind
it. A function that cannot be looked into leaves none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timezone
from typing import Any

from ebbflow.expression import Get, Record
from ebbflow.flow.plan import (
    Concat,
    Distinct,
    Node,
    Plan,
    Reduce,
    Sessions,
    Source,
    TopK,
    row_steps,
)
from ebbflow.flow.plan.time import SessionReduce
from ebbflow.flow.rewrite.sessions import items_of
from ebbflow.flow.windows import DAY, Sliding, Time, Tumbling, WindowClock
from ebbflow.fn import Fn
from ebbflow.record import fields_of
from ebbflow.reducer.sessions import END, START

UNKNOWN: Any = object()
Closings = Mapping[str, Any]
"""Before which time each input is closed; None for one that is not yet."""


@dataclass(frozen=True)
class TimeBounds:
    """Of all rows with some value in a field: their times are not before `value - before`, and not
    after `value + after`; unless they can be `at_end`, before it. None adds nothing."""

    inputs: frozenset[str]
    before: Any = None
    after: Any = None
    at_end: bool = True

    def first(self, value: Any) -> Any:
        """The earliest time that a row can have; UNKNOWN where that cannot be told."""
        if value is None or self.before is UNKNOWN:
            return UNKNOWN
        try:
            return instant(value if self.before is None else value - self.before, -1)
        except OverflowError:  # before the year 1
            return UNKNOWN

    def is_closed(self, value: Any, closings: Closings) -> bool:
        """Whether no row with this value can come or go."""
        before = closing(self.inputs, closings)
        if value is None or before is None or self.after is UNKNOWN:
            return False
        try:
            last = instant(value if self.after is None else value + self.after, 1)
        except OverflowError:  # after the year 9999
            return False
        return bool(last < before if self.at_end else last <= before)

    @property
    def is_time(self) -> bool:
        """Whether the value is the time itself."""
        return self.before is None and self.after is None and self.at_end


Bounds = Mapping[str, TimeBounds]
NONE: Bounds = {}


def instant(time: Any, margin: int = 0) -> Any:
    """A time that compares with any other as they come: two of one zone would be compared by what
    its clocks show. Where those may be put back, and something was computed by them, it is not
    known to a day, which is the `margin`."""
    if not isinstance(time, datetime) or time.tzinfo is None:
        return time
    fixed = not margin or isinstance(time.tzinfo, timezone)
    return time.astimezone(UTC) + (0 if fixed else margin) * DAY


def closing(inputs: Iterable[str], closings: Closings) -> Any:
    """Before which time all of these inputs are closed; None where one is not."""
    times: list[Any] = [closings.get(name) for name in inputs]
    return None if None in times else min(times)


def bounds_of(plan: Plan) -> dict[int, Bounds]:
    """For every node of a plan, by its id, the bounds of the fields of its rows.

    >>> import ebbflow as ef
    >>> from ebbflow.record import record
    >>> hits = ef.Input("hits", record("Hit", page=str, at=int), time="at", lateness=10)
    >>> per_minute = hits.tumbling("at", 60).group_by("page", "window_end").agg(n=ef.count())
    >>> found = bounds_of(per_minute.plan)[id(per_minute.node)]
    >>> found["window_end"].is_closed(120, {"hits": 119}), [*found]
    (False, ['window_end'])
    """
    found: dict[int, Bounds] = {}
    if any(source.lateness is not None for source in plan.sources.values()):
        for node in plan.nodes():
            found[id(node)] = _bounds(node, [found[id(parent)] for parent in node.parents])
    return found


def key_bounds(key: Fn | None, bounds: Bounds) -> Callable[[Any, Closings], bool] | None:
    """Whether a key is closed, given the bounds of the rows it is made of; None where that can
    never be said."""
    items = items_of(key)
    for i, item in enumerate(items):
        bound = bounds.get(item.name) if isinstance(item, Get) else None
        if bound is not None and bound.after is not UNKNOWN:
            is_closed, at = bound.is_closed, i
            if len(items) == 1 and item is key.expression:  # type: ignore[union-attr]
                return is_closed
            return lambda key, closings: is_closed(key[at], closings)
    return None


def row_bounds(bounds: Bounds) -> Callable[[Any, Closings], bool] | None:
    """Whether a row is closed, by any of its fields; None where that can never be said."""
    known = {name: bound for name, bound in bounds.items() if bound.after is not UNKNOWN}
    if not known:
        return None
    return lambda row, closings: any(
        bound.is_closed(getattr(row, name), closings) for name, bound in known.items()
    )


def session_time(node: Node, bounds: Bounds) -> TimeBounds | None:
    """The bounds of the time of sessions, where it is the time of an input with a lateness."""
    assert isinstance(node, (Sessions, SessionReduce))
    return _time_in(node.time, bounds)


def _bounds(node: Node, before: list[Bounds]) -> Bounds:
    if isinstance(node, Source):
        if node.lateness is None or node.time is None:
            return NONE
        return {node.time.expression.name: TimeBounds(frozenset([node.name]))}  # type: ignore[union-attr]
    if not before or not any(before):
        return NONE
    if isinstance(node, Concat):
        return _of_all(before)
    rows = before[0]
    if steps := row_steps(node):
        for step in steps:
            rows = rows if step.verb == "filter" else _through(step.fn, rows)
        return rows
    match node:
        case Distinct():
            return rows
        case TopK():
            names = {item.name for item in items_of(node.key) if isinstance(item, Get)}
            return {name: bound for name, bound in rows.items() if name in names}
        case Reduce():
            names_out = list(fields_of(node.type) or ())[: node.width]
            return _of_items(names_out, items_of(node.key), rows)
        case Sessions():
            time = session_time(node, rows)
            return NONE if time is None else _of_session(time.inputs, node.gap, WINDOW_FIELDS)
        case SessionReduce():
            time = session_time(node, rows)
            names_out = list(fields_of(node.type) or ())
            parts = dict(zip(node.front, names_out, strict=False))
            return NONE if time is None else _of_session(time.inputs, node.gap, parts)
    return NONE


WINDOW_FIELDS = {START: "window_start", END: "window_end"}


def _of_session(inputs: frozenset[str], gap: Any, parts: Mapping[int, str]) -> Bounds:
    """Of sessions: a row that is no further from the end than it is may still come. One that is
    not all known has no row before its start, nor so near to it that it would be of it."""
    found = {
        END: TimeBounds(inputs, before=UNKNOWN),
        START: TimeBounds(inputs, before=gap, after=UNKNOWN),
    }
    return {name: found[part] for part, name in parts.items() if part in found}


def _of_all(parts: list[Bounds]) -> Bounds:
    """The bounds that all parts of a union have, of all of their inputs."""
    first, *others = parts
    found = {}
    for name, bound in first.items():
        same = [other.get(name) for other in others]
        if all(each is not None and replace(each, inputs=bound.inputs) == bound for each in same):
            inputs = frozenset[str]().union(bound.inputs, *[each.inputs for each in same if each])
            found[name] = replace(bound, inputs=inputs)
    return found


def _of_items(names: Iterable[str], items: Iterable[Any], rows: Bounds) -> Bounds:
    """The bounds of fields that are made of these."""
    pairs = zip(names, items, strict=False)
    read = {name: item.name for name, item in pairs if isinstance(item, Get)}
    return {name: rows[of] for name, of in read.items() if of in rows}


def _through(fn: Fn, rows: Bounds) -> Bounds:
    """The bounds behind a function of one row."""
    call: Any = fn.call
    if isinstance(call, (Tumbling, Sliding)):
        return {**rows, **_of_windows(call.clock, rows)} if call.clock.row is not None else NONE
    made = fn.expression
    if isinstance(made, Record):
        return _of_items(fields_of(made.type) or (), made.items, rows)
    return NONE


def _of_windows(clock: WindowClock, rows: Bounds) -> Bounds:
    time, longest = _time_in(clock.time, rows), clock.longest
    if time is None or longest is None:
        return NONE
    return {
        "window_start": TimeBounds(time.inputs, None, longest, at_end=False),
        "window_end": TimeBounds(time.inputs, longest, None, at_end=False),
    }


def _time_in(fn: Fn, rows: Bounds) -> TimeBounds | None:
    """The bounds of what a function gives, where it gives the time itself."""
    of = fn.call.of if isinstance(fn.call, Time) else fn
    made = of.expression
    bound = rows.get(made.name) if isinstance(made, Get) else None
    return bound if bound is not None and bound.is_time else None
