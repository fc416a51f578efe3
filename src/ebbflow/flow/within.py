"""Rows that are there for a span of time: the node of `within`, and what it is checked for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from ebbflow.errors import Text, place
from ebbflow.flow import types
from ebbflow.flow.parts import Part, part, part_type, refuse, rows_of
from ebbflow.flow.plan import Concat, Map, Node
from ebbflow.flow.plan.time import Within
from ebbflow.flow.windows import DAY, EPOCH, EPOCH_DAY, EPOCH_UTC, Time, check_times
from ebbflow.fn import Fn
from ebbflow.record import fields_of, name_of

PANES = 8192
"""How many panes a span has, about."""
TIME_CLASSES = (int, float, date, datetime)


def kept_within(
    node: Node, time: Part, clock: Node, span: Any, parts: dict[str, float | None]
) -> Within:
    """The node of `within`."""
    span = _span(span, {name: given for name, given in parts.items() if given is not None})
    time_type = check_times("within", node, time, {"span": span})
    of = part("within({})", node, time)
    now, now_type = _now(clock, span)
    classes = {_time_class(now_type), _time_class(time_type)}
    if len(classes) > 1 and None not in classes:
        refuse(
            f"within(...): the times of the rows are of type {name_of(time_type)}, and the "
            f"clock tells a {name_of(now_type)}",
            "a clock of the same kind: clock(name, datetime) for datetimes",
        )
    tagged = Concat(
        parts=(_tagged(node, Within.ROW, None), _tagged(clock, Within.NOW, now)),
        signs=(1, 1), type=tuple[int, Any], place=place(),
    )  # fmt: skip
    return Within(
        parent=tagged, time=Fn(Time("within", of, span), node.type, name=of.text), span=span,
        pane=Pane(_pane(span, time_type)), type=node.type, place=place(),
    )  # fmt: skip


def _span(span: Any, parts: dict[str, float]) -> Any:
    if (span is None) != bool(parts):
        refuse(
            "within(...): how long a row is within is given once",
            'within("at", clock, 600) in the unit of the times, or within("at", clock, days=7)',
            **({"span": span} if span is not None else {}),
            **parts,
        )
    return span if not parts else timedelta(**parts)


def _now(node: Node, span: Any) -> tuple[Fn, Any]:
    """What tells the time in a row of a clock, and its type."""
    fields = fields_of(node.type)
    if fields is not None and len(fields) != 1:
        refuse(
            f"within(...): a clock has one field, the time, and {rows_of(node)} have {len(fields)}",
            'select("at"), or ebbflow.clock(name)',
            fields=Text(", ".join(fields)),
        )
    given: Any = _itself if fields is None else next(iter(fields))
    of = part("within({})", node, given)
    return Fn(Time("within", of, span), node.type, name=of.text), part_type(node, given)


def _time_class(time_type: Any) -> Any:
    """The kind of time that a type is of: a number, a date or a datetime; None where unknown."""
    known = [each for each in types.classes(time_type) or () if each is not type(None)]
    if len(known) != 1 or known[0] not in TIME_CLASSES:
        return None
    return int if known[0] is float else known[0]


def _pane(span: Any, time_type: Any) -> Any:
    """How long a pane is."""
    if not isinstance(span, timedelta):
        return max(1, span // PANES) if isinstance(span, int) else span / PANES
    if span % DAY or _time_class(time_type) is datetime:
        return max(timedelta(microseconds=1), span // PANES)
    return DAY * max(1, span // DAY // PANES)


@dataclass(frozen=True)
class Pane:
    """The number of the pane that a time is in, where panes are of this size."""

    size: Any

    def __call__(self, time: Any) -> Any:
        if isinstance(time, datetime):
            return (time - (EPOCH if time.tzinfo is None else EPOCH_UTC)) // self.size
        return (time - EPOCH_DAY if isinstance(time, date) else time) // self.size


@dataclass(frozen=True)
class Tagged:
    """What is found in a row, behind a number that says what it is."""

    tag: int
    of: Fn | None

    def __call__(self, row: Any) -> Any:
        return self.tag, row if self.of is None else self.of(row)


def _tagged(node: Node, tag: int, of: Fn | None) -> Map:
    fn = Fn(Tagged(tag, of), node.type, name="the row" if of is None else "the time")
    return Map(parent=node, fn=fn, type=tuple[int, Any], place=place())


def _itself(value: Any) -> Any:
    return value
