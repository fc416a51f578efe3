"""Rows of a key in an order: the nodes of `scan`, `fold` and `over`, and what they are checked for.

`over(per=..., order=...)` alone is not a collection yet; `with_fields` makes it one, of the same
rows with more fields: window functions (`ebbflow.window`), and reducers of a *frame* of rows around
each. A frame always holds its own row:

    nothing       all rows up to this one
    rows=7        this row and the six before it
    rows=(-3, 3)  from three rows before to three rows behind
    range=60      rows whose place is at most 60 less than this one's, and those at the same place
    rows=None     all rows of the key
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic

from ebbflow.algebra.value import function_name
from ebbflow.errors import CompositionError, place
from ebbflow.flow import attributes, types
from ebbflow.flow.grouped import ONE_GROUP
from ebbflow.flow.inferred import type_of
from ebbflow.flow.parts import (
    GroupKey,
    Part,
    at_once,
    field_names,
    key,
    part,
    part_type,
    plain,
    refuse,
    row_type,
    row_with,
    rows_of,
)
from ebbflow.flow.plan import Node
from ebbflow.flow.plan.order import Fold, Over, Scan
from ebbflow.flow.result_types import result_type
from ebbflow.flow.results import given
from ebbflow.flow.windows import Time, check_times
from ebbflow.fn import Fn
from ebbflow.operator import window
from ebbflow.operator.along import with_values
from ebbflow.operator.window import FrameReducer, RunningReducer, WindowFunction
from ebbflow.ordering import total_order_key
from ebbflow.public import PublicByName
from ebbflow.reducer import Reducer
from ebbflow.stream.transition import PartSteps, StepsOfParts, Transition, transition
from ebbflow.typevars import T_co

if TYPE_CHECKING:
    from ebbflow.flow.collection import Collection
    from ebbflow.flow.verbs.base import Verbs

UNBOUNDED = None
RUNNING: Any = (UNBOUNDED, 0)


def scanned(node: Node, step: Any, start: Any, per: Part | None, order: Part, type: Any) -> Scan:
    """The node of `scan`."""
    going = _transition("scan", node, step, start, {})
    said = _said(step) if type is None else type
    return Scan(
        parent=node, transition=going, order=_order("scan", node, order),
        key=None if per is None else part("scan(per={})", node, per),
        type=row_type("scan({})", said), place=place(),
    )  # fmt: skip


def folded(
    node: Node, step: Any, start: Any, per: Part | None, order: Part, composed: Mapping[str, Any],
    cuts: Sequence[Any], type: Any,
) -> Fold:  # fmt: skip
    """The node of `fold`; with `cuts`, of the parts between them."""
    going, by = _transition("fold", node, step, start, composed), _order("fold", node, order)
    value = Any if type is None else type
    if not len(cuts):
        found = ONE_GROUP if per is None else key("fold(per={})", node, (per,), {})
        return _fold(node, going, by, found, value)
    if going.merge is None:
        refuse(
            "fold(cuts=...): parts can be put together only where steps are composed",
            "states=..., or of=, merge= and act=",
        )
    named = {} if per is None else key("fold(per={})", node, (per,), {}).fields
    given = () if per is None else per if isinstance(per, tuple) else (per,)
    parts = dict(zip(named, given, strict=True))
    inner = key("fold(per={})", node, (), {**parts, "part": CutAt(by, tuple(cuts))})
    made = _fold(node, PartSteps(going), by, inner, Any)
    outer = key("fold(per={})", made, tuple(named), {}) if named else ONE_GROUP
    return _fold(made, StepsOfParts(going), part("fold(order={})", made, "part"), outer, value)


def _fold(node: Node, going: Transition, order: Fn, per: GroupKey, value: Any) -> Fold:
    made = types.row("Group", {**per.fields, "value": value})
    return Fold(
        parent=node, transition=going, order=order, key=per.fn, width=per.width,
        type=row_type("fold({})", made), place=place(),
    )  # fmt: skip


@dataclass(frozen=True)
class CutAt:
    """The number of the part that a row is in, of the parts between places.

    >>> CutAt(abs, (10, 20))(-15)
    1
    """

    order: Any
    cuts: tuple[Any, ...]

    def __call__(self, row: Any) -> int:
        at = total_order_key(self.order(row))
        return bisect_right(self.cuts, at, key=total_order_key)


def _transition(
    verb: str, node: Node, step: Any, start: Any, composed: Mapping[str, Any]
) -> Transition:
    if isinstance(step, Transition):
        return step
    if isinstance(step, Reducer):
        refuse(
            f"{verb}({step!r}): a reducer says one thing of many rows",
            f"over(per=..., order=...).with_fields(value={step!r})",
        )
    for each in (step, *composed.values()):
        if callable(each):
            at_once(f"{verb}({function_name(each)})", each)
    row = (node.type, rows_of(node))
    attributes.check(f"{verb}({{}})", step, [(Any, ""), row])
    attributes.check(f"{verb}(of={{}})", composed.get("of"), [row])
    return transition(step, start, **composed)


def _said(step: Any) -> Any:
    """The type of the rows that a step says it gives."""
    said = types.returned(step) if callable(step) else Any
    parts: tuple[Any, ...] = getattr(said, "__args__", ())
    return (types.iterated(parts[1]) or Any) if len(parts) == 2 else Any


def _order(verb: str, node: Node, order: Part) -> Fn:
    plain(f"{verb}(order={{}})", order)
    return part(f"{verb}(order={{}})", node, order)


# ---- over ----


class Ordering(PublicByName, Generic[T_co]):
    """The rows of a collection, those of each key in an order; see `Collection.over`.

    >>> import ebbflow as ef
    >>> ef.Input("words", str).over(order=len)
    <rows of "words" in order: .with_fields(name=...) makes them a collection>
    """

    __slots__ = ("_frame", "_key", "_of", "_order", "_part")

    def __init__(
        self, of: Verbs[T_co], per: Part[T_co] | None, order: Part[T_co], rows: Any = RUNNING,
        range: Any = None,
    ) -> None:  # fmt: skip
        node = of.node
        self._of, self._part = of, order
        self._order = _order("over", node, order)
        self._key = None if per is None else part("over(per={})", node, per)
        self._frame = _frame(rows, range)
        if range is not None:
            check_times("over", node, order, {"range": self._span()})

    def _span(self) -> Any:
        low, high, _ = self._frame
        return -low if low else high or 1

    def with_fields(self, /, **functions: Reducer[T_co] | WindowFunction) -> Collection[Any]:
        """Every row with more fields: window functions, and reducers of a frame of rows.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Sale = record("Sale", shop=str, day=int, price=int)
        >>> sales = ef.Input("sales", Sale)
        >>> view = sales.over(per="shop", order="day").with_fields(total=ef.sum("price")).run()
        >>> view.step(sales=[Sale("a", 1, 30), Sale("a", 3, 5)])
        ZSet({Sale(shop='a', day=1, price=30, total=30): 1, Sale(shop='a', day=3, price=5, \
total=35): 1})
        >>> view.step(sales=[Sale("a", 2, 10)])
        ZSet({Sale(shop='a', day=2, price=10, total=40): 1, Sale(shop='a', day=3, price=5, \
total=35): -1, Sale(shop='a', day=3, price=5, total=45): 1})
        """
        node = self._of.node
        if not functions:
            refuse("with_fields(): no field is given", "with_fields(n=ebbflow.window.row_number())")
        field_names("with_fields({}=...)", functions)
        row_with("with_fields({}=...)", node, functions)
        found = {name: self._function(name, each) for name, each in functions.items()}
        new = {name: self._type(each) for name, each in found.items()}
        row = row_with("with_fields({}=...)", node, new)
        made: Any = GenericAlias(tuple, (node.type, *new.values())) if row is None else row
        return self._of.with_node(Over(
            parent=node, key=self._key, order=self._timed(found), functions=tuple(found.values()),
            merge=with_values(node.type, row),
            type=row_type("with_fields({})", made), place=place(),
        ))  # fmt: skip

    def _function(self, name: str, each: Any) -> WindowFunction:
        """A window function, or a reducer of the frame, after a look at what it is given."""
        node, call = self._of.node, f"with_fields({name}=...)"
        if isinstance(each, Reducer):
            reducer = given(call, node, each)
            low, high, by_range = self._frame
            if low is None:
                return RunningReducer(reducer, whole=high is None)
            return FrameReducer(reducer, low, high, by_range)
        if not isinstance(each, WindowFunction):
            refuse(
                f"{call}: {getattr(each, '__name__', repr(each))} is neither a window function nor "
                "a reducer", "ebbflow.window.row_number(), or ebbflow.sum(...)",
            )  # fmt: skip
        if isinstance(each, window.NthValue) and self._frame[0] is not None:
            refuse(
                f"{call}: a frame, rows= or range=, is for reducers; the first, the last and the "
                "n-th value are of all rows of the key",
                "ebbflow.first(..., order=...) or last(..., order=...), or over() without a frame",
            )
        for what in ("k", "n"):
            number = getattr(each, what, 1)
            least = -(1 << 62) if isinstance(each, window.NthValue) else 1
            if type(number) is not int or number < least or not number:
                refuse(f"{call}: {number!r} is no number of rows", "a whole number, 1 or more")
        if isinstance(each, (window.Island, window.IslandNumber)):
            check_times("over", node, self._part, {"gap": each.gap})
        if isinstance(each, window.Decay):
            check_times("over", node, self._part, {"half_life": each.half_life})
        if "of" in [field.name for field in fields(each)]:
            shape = f"with_fields({name}={{}})"
            plain(shape, each.of)  # type: ignore[attr-defined]
            return replace(each, of=part(shape, node, each.of))  # type: ignore[call-arg, attr-defined]
        return each

    def _type(self, function: WindowFunction) -> Any:
        node = self._of.node
        match function:
            case window.PercentRank() | window.Decay():
                return float
            case RunningReducer(reducer=reducer) | FrameReducer(reducer=reducer):
                return result_type(reducer, node.type)
            case window.Lag(of=of, default=default) | window.Lead(of=of, default=default):
                found = part_type(node, _given(of))
                return types.optional(found) if default is None else types.common(
                    found, type_of(default)) or Any  # fmt: skip
            case window.NthValue(of=of, n=n):
                found = part_type(node, _given(of))
                return found if abs(n) == 1 else types.optional(found)
            case window.FillForward(of=of):
                return part_type(node, _given(of))
            case window.Island():
                return part_type(node, self._part)
        return int

    def _timed(self, functions: Mapping[str, WindowFunction]) -> Fn:
        """The order, which is time where something is counted in distances: then every row has
        one."""
        spans = [getattr(each, "gap", getattr(each, "half_life", None))
                 for each in functions.values()]  # fmt: skip
        spans += [self._span() for each in functions.values() if getattr(each, "by_range", False)]
        span = next((each for each in spans if each is not None), None)
        if span is None:
            return self._order
        return Fn(Time("over", self._order, span), self._of.node.type, name=self._order.text)

    def __repr__(self) -> str:
        return (
            f"<{rows_of(self._of.node)} in order: .with_fields(name=...) makes them a collection>"
        )

    def _unknown(self, name: str) -> CompositionError:
        return CompositionError(
            f"over(...) alone has no {name!r}: it is not a collection yet", created=place(),
            remedy="over(...).with_fields(name=...) first",
        )  # fmt: skip


def _given(of: Any) -> Any:
    return getattr(of, "_given", of) if isinstance(of, Fn) else of


def _frame(rows: Any, range: Any) -> tuple[Any, Any, bool]:
    """From where to where a frame reaches, both included, and whether that is a distance."""
    if range is not None:
        if rows is not RUNNING:
            refuse("over(rows=..., range=...): a frame is counted in one way", "one of the two")
        low, high = range if isinstance(range, tuple) and len(range) == 2 else (-range, 0 * range)
        return *_around(f"range={range!r}", low, high), True
    if rows is None:
        return None, None, False
    if isinstance(rows, int) and not isinstance(rows, bool):
        rows = (1 - rows, 0)
    if not isinstance(rows, tuple) or len(rows) != 2:
        refuse(f"over(rows={rows!r}): that is no frame", "rows=7, or rows=(-3, 3)")
    low, high = rows
    if low is not None and high is None:
        refuse(
            f"over(rows={rows!r}): a frame to the last row begins with the first",
            "the other order, order=ebbflow.desc(...), where it is rows=(None, 0)",
        )
    if low is None and high not in (0, None):
        refuse(f"over(rows={rows!r}): a frame from the first row ends here, or with the last",
               "rows=(None, 0), or rows=None")  # fmt: skip
    for each in (low, high):
        if each is not None and (type(each) is not int):
            refuse(f"over(rows={rows!r}): {each!r} is no number of rows", "rows=(-3, 3)")
    return (low, high, False) if low is None else (*_around(f"rows={rows!r}", low, high), False)


def _around(text: str, low: Any, high: Any) -> tuple[Any, Any]:
    """The ends of a frame, refused when its own row is not in it."""
    zero = timedelta(0) if isinstance(low, timedelta) else 0
    try:
        fine = low <= zero <= high
    except TypeError:
        fine = False
    if not fine:
        refuse(f"over({text}): a frame holds its own row", "ends such as (-3, 0) or (-3, 3)")
    return low, high
