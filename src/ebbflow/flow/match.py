"""Patterns of events: the node of `match`, the steps of a pattern, and what they are checked for.

A pattern is a sequence of steps with names. A step is a condition on a row; `once` and `many` say
more about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic

from ebbflow.errors import place
from ebbflow.flow import types
from ebbflow.flow.grouped import ONE_GROUP
from ebbflow.flow.parts import Part, field_names, key, part, plain, refuse, row_type
from ebbflow.flow.plan import Node
from ebbflow.flow.plan.order import Match, PatternStep
from ebbflow.flow.result_types import result_type
from ebbflow.flow.results import given
from ebbflow.flow.windows import Time, check_times
from ebbflow.fn import Fn
from ebbflow.keywords import checked
from ebbflow.reducer import Reducer, count
from ebbflow.typevars import V, V_contra

Condition = Callable[[V_contra], Any] | str


@dataclass(frozen=True)
class Awaited(Generic[V_contra]):
    """A step of a pattern, as `once` and `many` make it."""

    condition: Any
    reducer: Any = None
    unless: Any = None


@checked
def once(condition: Condition[V], *, unless: Condition[V] | None = None) -> Awaited[V]:
    """A step of a pattern that one row takes, as a condition alone is; with `unless`, a row for
    which that is true ends a match that waits for this step.

    >>> import ebbflow as ef
    >>> from ebbflow.record import record
    >>> Event = record("Event", at=int, kind=str)
    >>> events = ef.Input("events", Event)
    >>> paid = events.match({"order": lambda e: e.kind == "order",
    ...     "pay": ef.once(lambda e: e.kind == "pay", unless=lambda e: e.kind == "cancel")},
    ...     order="at")
    >>> _ = (view := paid.run()).step(events=[Event(1, "order"), Event(9, "pay")])
    >>> view.step(events=[Event(5, "cancel")])
    ZSet({Match(order=Event(at=1, kind='order'), pay=Event(at=9, kind='pay')): -1})
    """
    return Awaited(condition, None, unless)


@checked
def many(
    condition: Condition[V], reducer: Reducer[V] | None = None, *,
    unless: Condition[V] | None = None,
) -> Awaited[V]:  # fmt: skip
    """A step of a pattern that one or more rows take, as many as there are; what comes out is a
    reducer of these rows, `count()` if none is given.

    >>> import ebbflow as ef
    >>> from ebbflow.record import record
    >>> Day = record("Day", day=int, rain=int)
    >>> days = ef.Input("days", Day)
    >>> wet = days.match(rain=ef.many(lambda d: d.rain > 0, ef.sum("rain")), order="day",
    ...                  adjacent=True)
    >>> wet.run().step(days=[Day(1, 5), Day(2, 3), Day(3, 0), Day(4, 7)])
    ZSet({Match(rain=8): 1, Match(rain=7): 1})
    """
    return Awaited(condition, count() if reducer is None else reducer, unless)


def matched(
    node: Node, steps: Mapping[str, Any], per: Part | None, order: Part, within: Any,
    adjacent: bool,
) -> Match:  # fmt: skip
    """The node of `match`."""
    if not steps:
        refuse("match(): no step is given", "match(first=lambda row: ..., order=...)")
    field_names("match({}=...)", steps)
    found = ONE_GROUP if per is None else key("match(per={})", node, (per,), {})
    made = [_step(node, name, each) for name, each in steps.items()]
    for name in steps:
        if name in found.fields:
            refuse(
                f"match({name}=...): the key has a field {name!r} already",
                "another name for the step",
            )
    plain("match(order={})", order)
    places = part("match(order={})", node, order)
    if within is not None:
        check_times("match", node, order, {"within": within})
        places = Fn(Time("match", places, within), node.type, name=places.text)
    fields = {
        step.name: result_type(step.reducer, node.type) if step.many else node.type for step in made
    }
    return Match(
        parent=node, key=found.fn, order=places, steps=tuple(made), width=found.width,
        within=within, adjacent=bool(adjacent),
        type=row_type("match({})", types.row("Match", {**found.fields, **fields})), place=place(),
    )  # fmt: skip


def _step(node: Node, name: str, step: Any) -> PatternStep:
    shape = f"match({name}={{}})"
    whole = step if isinstance(step, Awaited) else Awaited(step)
    if isinstance(step, Reducer):
        refuse(f"match({name}={step!r}): a step is a condition", f"{name}=lambda row: ...")
    for each in (whole.condition, whole.unless):
        if each is not None:
            plain(shape, each)
    reducer = whole.reducer
    return PatternStep(
        name=name, fits=part(shape, node, whole.condition),
        unless=None if whole.unless is None else part(shape, node, whole.unless),
        reducer=None if reducer is None else given(f"match({name}=...)", node, reducer),
    )  # fmt: skip
