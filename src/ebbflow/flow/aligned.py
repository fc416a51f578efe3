"""Rows of two collections that meet by key and by their places in an order: `asof_join` and
`interval_join`.

A merged row is made as `join` makes it. An as-of join by `order="at"` has one field `at`, that of
the left, as has `merge_asof` in pandas; an interval join has the places of both rows, so fields of
the same name are refused there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from difflib import get_close_matches
from typing import Any

from ebbflow.errors import place
from ebbflow.flow import joins
from ebbflow.flow.joins import KeySide
from ebbflow.flow.merging import Merging, merging
from ebbflow.flow.parts import refuse
from ebbflow.flow.plan import Concat, Map, Node
from ebbflow.flow.plan.aligned import AsOf, Interval, IntervalSemi
from ebbflow.flow.windows import Time, check_times, example_time, time_mismatch, wrong_time
from ebbflow.fn import Fn
from ebbflow.operator.asof import DIRECTIONS


@dataclass(frozen=True)
class PlaceInTime(Time):
    """The place of a row, refused when no distance can be counted in it; `size` is one, if known.
    A row that has none has no place."""

    def __call__(self, row: Any) -> Any:
        time = self.of(row)
        if time is None or (type(time) is int and type(self.size) in (int, type(None))):
            return time
        size = self.size
        if size is None:
            size = timedelta(0) if isinstance(time, date) else 0
        if wrong := time_mismatch(time, size):
            raise wrong_time(self.verb, time, *wrong)
        return time


def asof_joined(
    left: Node, right: Node, keys: tuple[Any, Any, Any], orders: tuple[Any, Any, Any],
    direction: str, tolerance: Any, allow_exact: bool, how: str, select: Any, type: Any,
    suffixes: Any = None,
) -> AsOf:  # fmt: skip
    """The node of `asof_join`."""
    call = "asof_join"
    _one_of(call, "direction", direction, DIRECTIONS)
    _one_of(call, "how", how, ("left", "inner"))
    right = joins.present(right)
    ours, theirs, shared = _keys(call, left, right, keys)
    places = _orders(call, left, right, orders)
    shared |= joins.shared_fields(places[0].given, places[1].given)
    made = merging(call, left, right, how, shared, select, type, suffixes)
    functions = [each.fn for each in places]
    if tolerance is not None or direction == "nearest":
        spans = {} if tolerance is None else {"tolerance": tolerance}
        functions = [
            _in_time(call, node, side, tolerance, spans)
            for node, side in zip((left, right), places, strict=True)
        ]
    return AsOf(
        left=left, right=right, left_key=ours, right_key=theirs, left_order=functions[0],
        right_order=functions[1], merge=made.both,
        alone=made.left_alone if how == "left" else None, direction=direction,
        tolerance=tolerance, exact=bool(allow_exact), type=made.type, place=place(),
    )  # fmt: skip


def interval_joined(
    left: Node, right: Node, keys: tuple[Any, Any, Any], orders: tuple[Any, Any, Any], low: Any,
    high: Any, how: str, select: Any, type: Any,
    suffixes: Any = None,
) -> Node:  # fmt: skip
    """The node of `interval_join`: as with `join`, left rows that meet nothing are padded."""
    call = "interval_join"
    _one_of(call, "how", how, ("inner", "left", "semi", "anti"))
    _interval(call, low, high)
    ours, theirs, shared = _keys(call, left, right, keys)
    places = _orders(call, left, right, orders)
    first = _in_time(call, left, places[0], high, {})
    second = _in_time(call, right, places[1], high, {})
    common: dict[str, Any] = {
        "left": left, "left_key": ours, "right_key": theirs, "left_order": first,
        "right_order": second, "low": low, "high": high, "place": place(),
    }  # fmt: skip
    lonely = IntervalSemi(
        **common, right=joins.present(right), anti=how in ("anti", "left"), type=left.type
    )
    if how in ("semi", "anti"):
        if select is not None:
            refuse(
                f"{call}(how={how!r}, select=...): the rows are those of the left; nothing is "
                "merged", f"{call}(..., how={how!r}).map(...)",
            )  # fmt: skip
        return lonely
    made: Merging = merging(call, left, right, how, shared, select, type, suffixes)
    both = Interval(**common, right=right, merge=made.both, type=made.type)
    if how == "inner":
        return both
    padded = Map(parent=lonely, fn=made.left_alone, type=made.type, place=place())
    return Concat(parts=(both, padded), signs=(1, 1), type=made.type, place=place())


def _one_of(call: str, name: str, given: Any, known: tuple[str, ...]) -> None:
    if given not in known:
        near = get_close_matches(str(given), known, n=1)
        refuse(
            f"{call}({name}={given!r}): there is no such {name}",
            f"{name}={near[0]!r}" if near else ", ".join(known),
        )


def _keys(
    call: str, left: Node, right: Node, keys: tuple[Any, Any, Any]
) -> tuple[Fn, Fn, set[str]]:
    """The keys of both sides, and the fields that they share; without keys, all rows meet."""
    if keys == (None, None, None):
        return Fn.constant(None, left.type), Fn.constant(None, right.type), set()
    ours, theirs = joins.both_sides(call, left, right, *keys)
    return ours.fn, theirs.fn, joins.shared_fields(ours.given, theirs.given)


def _orders(
    call: str, left: Node, right: Node, orders: tuple[Any, Any, Any]
) -> tuple[KeySide, KeySide]:
    if orders == (None, None, None):
        refuse(
            f"{call}(...): no order is given", 'order="field", or left_order= and right_order='
        )  # fmt: skip
    return joins.both_sides(call, left, right, *orders, word="order", what="order")


def _in_time(call: str, node: Node, side: KeySide, size: Any, spans: dict[str, Any]) -> Fn:
    """The order of one side, in which distances are counted."""
    check_times(call, node, side.given, spans)
    example = example_time(node, side.given)
    if example is not None:
        span = size
        if span is None:
            span = timedelta(0) if isinstance(example, date) else 0
        if wrong := time_mismatch(example, span):
            refuse(f"{call}(order=...): {wrong[0]}", wrong[1])
    return Fn(PlaceInTime(call, side.fn, size), node.type, name=side.fn.text)


def _interval(call: str, low: Any, high: Any) -> None:
    text = f"{call}(low={low!r}, high={high!r})"
    for each in (low, high):
        zero = timedelta(0) if isinstance(each, timedelta) else 0
        try:
            fine = not isinstance(each, bool) and each - each == zero
        except TypeError:
            fine = False
        if not fine:
            refuse(f"{text}: {each!r} is no distance", "two numbers, or two timedeltas")
    if isinstance(low, timedelta) != isinstance(high, timedelta):
        refuse(f"{text}: one is a timedelta, the other not", "two numbers, or two timedeltas")
    if low > high:
        refuse(f"{text}: nothing is between them", "low <= right place - left place <= high")
