"""Windows: spans of time that rows belong to.

A window is `[start, end)`. A row gets the fields `window_start` and `window_end`, and grouping by
them is all the rest. Nothing waits for a watermark: a row that comes late simply revises the
window it belongs to.

    tumbling   windows of one size, side by side: every row is in exactly one
    sliding    windows of one size, a new one every so often: a row may be in several
    session    as long as rows come close enough after each other

Time is whatever the rows have: an int, a float, a date, or a datetime. Windows are counted from an
`origin`: 0, or 1970-01-01. Datetimes with a time zone are counted on the clock of the origin's
zone, which is UTC unless another is given. Windows of days, weeks, months, quarters and years
follow a calendar: `ebbflow.flow.calendar`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from datetime import UTC, date, datetime, timedelta
from types import NoneType
from typing import Any

from ebbflow.errors import CompositionError, place
from ebbflow.expression.node import Constant, Expression, Get, Operation, Record
from ebbflow.expression.parts import WritesItself
from ebbflow.flow import types
from ebbflow.flow.parts import Part, part, part_type, plain, refuse, row_with
from ebbflow.flow.plan import FlatMap, Map, Node, Sessions
from ebbflow.fn import Fn
from ebbflow.nan import one_nan
from ebbflow.record import taken_apart, with_notes

DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1)
EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = date(1970, 1, 1)


# ---- the nodes ----


def tumbled(node: Node, clock: WindowClock) -> Map:
    """The node of `tumbling`."""
    fn = Fn.of(Tumbling(clock, _row_of(node, clock.row)), node.type)
    return Map(parent=node, fn=fn, type=clock.row or _pair(node), place=place())


def slid(node: Node, clock: WindowClock) -> FlatMap:
    """The node of `sliding`."""
    fn = Fn.of(Sliding(clock, _row_of(node, clock.row)), node.type)
    return FlatMap(parent=node, fn=fn, type=clock.row or _pair(node), place=place())


def in_sessions(node: Node, time: Part, gap: Any, per: Part | None) -> Sessions:
    """The node of `session`."""
    time_type = check_times("session", node, time, {"gap": gap})
    row = with_window("session", node, time_type)
    of = part("session({})", node, time)
    return Sessions(
        parent=node,
        time=Fn(Time("session", of, gap), node.type, name=of.text),
        gap=gap,
        merge=Fn.of(_row_of(node, row), node.type, time_type, time_type, arity=3),
        key=None if per is None else part("session(per={})", node, per),
        type=row or _pair(node),
        place=place(),
    )


def _pair(node: Node) -> Any:
    return tuple[node.type, Any, Any]  # type: ignore[name-defined]


# ---- what runs ----


@dataclass(frozen=True)
class _Row:
    """The row with its window: more fields, or a tuple of three where fields are not known."""

    type: Any

    def __call__(self, row: Any, start: Any, end: Any) -> Any:
        if self.type is None:
            return (row, start, end)
        return tuple.__new__(self.type, (*row, start, end))


class _RowOfFields(_Row):
    """The same for a row that is no tuple."""

    def __call__(self, row: Any, start: Any, end: Any) -> Any:
        return super().__call__(taken_apart(type(row))(row), start, end)


def _row_of(node: Node, row: Any) -> _Row:
    return (_RowOfFields if is_dataclass(node.type) and row is not None else _Row)(row)


_SURE = {(int, int), (datetime, timedelta)}


@dataclass(frozen=True)
class Time:
    """The time of a row, refused when it is not one that windows of this size can be counted in."""

    verb: str
    of: Fn
    size: Any

    def __call__(self, row: Any) -> Any:
        time = self.of(row)
        if (type(time), type(self.size)) in _SURE:
            return time
        if wrong := time_mismatch(time, self.size):
            raise wrong_time(self.verb, time, *wrong)
        return time


@dataclass(frozen=True)
class WindowClock:
    """Windows of one `size`, one every `every` from `origin` on."""

    verb: str
    time: Fn
    size: Any
    every: Any
    origin: Any
    row: Any

    def at(self, row: Any) -> tuple[Any, Any, Any]:
        """The time of a row on this clock, the origin, and the number of the last window that has
        started by then."""
        time, every, origin = self.time(row), self.every, self.origin or 0
        if type(time) is int and type(every) is int and type(origin) is int:
            return time, origin, (time - origin) // every
        for span in (self.size, every):
            if wrong := time_mismatch(time, span):
                raise wrong_time(self.verb, time, *wrong)
        time, origin = self._from_origin(time)
        return time, origin, self._number(time, origin)

    def start(self, origin: Any, number: Any) -> Any:
        """Where the window of a number starts; `at` gives the origin and the number."""
        return origin + number * self.every

    def end(self, origin: Any, number: Any) -> Any:
        """Where it ends."""
        return origin + number * self.every + self.size

    @property
    def shown(self) -> str:
        """The size of the windows, in words."""
        return str(self.size)

    @property
    def longest(self) -> Any:
        """A span that no window is longer than; None where ends are not exact."""
        floats = isinstance(self.size, float) or isinstance(self.every, float)
        return None if floats else self.size

    def written(self, bind: Any, row: str, shown: str, otherwise: str) -> str:
        """Python text of `shown`, which names the `{origin}` and the `{number}` of the last window
        that has started, where times are whole numbers, and of what is to be done `otherwise`."""
        origin, every = self.origin or 0, self.every
        if type(origin) is not int or type(every) is not int:
            return otherwise
        number = f"(_t - {origin}) // {every}"
        found = shown.replace("{origin}", str(origin)).replace("{number}", number)
        return f"({found} if type(_t := {self.time.source(bind, row)}) is int else {otherwise})"

    def _from_origin(self, time: Any) -> tuple[Any, Any]:
        origin = self.origin
        if isinstance(time, datetime):
            if time.tzinfo is None:
                origin = EPOCH if origin is None else origin
            else:
                origin = EPOCH_UTC if origin is None else origin
                time = time if origin.tzinfo is None else time.astimezone(origin.tzinfo)
            if (time.tzinfo is None) != (origin.tzinfo is None):
                raise wrong_time(
                    self.verb, time, "the time and the origin have not both a time zone",
                    "an origin with a time zone for times with one, and without for times without",
                )  # fmt: skip
        elif isinstance(time, date):
            origin = EPOCH_DAY if origin is None else origin
        else:
            origin = 0 if origin is None else origin
        return time, origin

    def _number(self, time: Any, origin: Any) -> Any:
        """For floats the division is only nearly right, so the neighbours are tried."""
        guess = (time - origin) // self.every
        try:
            for number in (guess, guess - 1, guess + 1):
                if origin + number * self.every <= time < origin + (number + 1) * self.every:
                    return number
        except OverflowError as error:
            raise too_far(self.verb, time) from error
        raise wrong_time(
            self.verb, time, f"it is too large to tell windows of {_span(self.every)} apart",
            "ints, or datetimes, which are exact",
        )  # fmt: skip


@dataclass(frozen=True)
class Tumbling(WritesItself):
    """A row with the one window it is in."""

    clock: WindowClock
    merge: _Row

    def __call__(self, row: Any) -> Any:
        time, origin, number = self.clock.at(row)
        try:
            start = self.clock.start
            return self.merge(row, start(origin, number), start(origin, number + 1))
        except (OverflowError, ValueError) as error:
            raise too_far(self.clock.verb, time) from error

    def written(self, bind: Any, row: str) -> str:
        otherwise = f"{bind(one_nan)}({bind(self)}({row}))"
        if type(self.merge) is not _Row or self.merge.type is None:
            return otherwise
        made = bind(self.merge.type)
        start = f"(_s := {{origin}} + {{number}} * {self.clock.every})"
        return self.clock.written(
            bind, row, f"new({made}, (*{row}, {start}, _s + {self.clock.every}))", otherwise
        )

    @property
    def of_ints(self) -> Expression | None:
        """What it computes where times are whole numbers; None where they may be others, as far as
        it knows, or the row has no fields."""
        origin, every, time = self.clock.origin or 0, self.clock.every, self.clock.time.expression
        row = self.merge.type
        if time is None or row is None or type(self.merge) is not _Row:
            return None
        if type(origin) is not int or type(every) is not int:
            return None
        before = [Get(0, name, at) for at, name in enumerate(row._fields[:-2])]
        number = Operation("//", (Operation("-", (time, Constant(origin))), Constant(every)))
        start = Operation("+", (Constant(origin), Operation("*", (number, Constant(every)))))
        return Record(row, (*before, start, Operation("+", (start, Constant(every)))))


@dataclass(frozen=True)
class Sliding:
    """A row with each of the windows it is in, the earliest first."""

    clock: WindowClock
    merge: _Row

    def __call__(self, row: Any) -> list[Any]:
        return [self.merge(row, start, end) for start, end in reversed([*self._windows(row)])]

    def _windows(self, row: Any) -> Iterator[tuple[Any, Any]]:
        clock = self.clock
        time, origin, number = clock.at(row)
        try:
            while time < (end := clock.end(origin, number)):
                yield clock.start(origin, number), end
                number -= 1
        except (OverflowError, ValueError) as error:
            raise too_far(clock.verb, time) from error


def time_mismatch(time: Any, size: Any) -> tuple[str, str] | None:
    """Why windows of this size cannot be counted in this kind of time, and what to do; or None.

    >>> time_mismatch(None, 60)
    ('it is None', 'a time for every row, or filter() before the window')
    """
    if time is None:
        return "it is None", "a time for every row, or filter() before the window"
    span = isinstance(size, timedelta)
    if isinstance(time, date):
        if not span:
            return (
                f"it is a {type(time).__name__}, and {size!r} is a number",
                "a timedelta, such as timedelta(hours=1)",
            )
        if not isinstance(time, datetime) and size % DAY:
            return "it is a date, which has no hours", "a timedelta of whole days"
        return None
    if span:
        return (
            f"it is of type {type(time).__name__}, and {_span(size)} is a timedelta",
            "a number, in the unit of the times",
        )
    try:
        return None if time - time == size - size else ("it is not finite", "a finite time")
    except (TypeError, ArithmeticError):
        return (
            f"it is of type {type(time).__name__}, in which no time can be counted",
            "an int, a float, a date or a datetime",
        )


def _span(span: Any) -> str:
    return repr(span).removeprefix("datetime.")


def wrong_time(verb: str, time: Any, why: str, remedy: str) -> CompositionError:
    """The error for a row whose time will not do."""
    return CompositionError(
        f"{verb}: the time of a row will not do: {why}", time=time, remedy=remedy
    )


def too_far(verb: str, time: Any) -> CompositionError:
    """The error for a row whose window starts or ends where no datetime and no date can be."""
    return wrong_time(
        verb, time, "its window does not lie within the years 1 to 9999",
        "filter() before the window, if such a time stands for none",
    )  # fmt: skip


# ---- checks when built ----


def window_clock(
    verb: str, node: Node, time: Part, size: Any, every: Any, origin: Any
) -> WindowClock:
    """The clock of windows of one size, after a look at the time of the rows."""
    time_type = check_times(verb, node, time, {"size": size, "every": every})
    if isinstance(size, timedelta) != isinstance(every, timedelta):
        refuse(
            f"{verb}(size={_span(size)}, every={_span(every)}): one is a timedelta, the other not",
            "two numbers, or two timedeltas",
        )
    if origin is not None and (wrong := time_mismatch(origin, size)):
        refuse(
            f"{verb}(origin={_span(origin)}): {wrong[0]}", "an origin of the same kind as the times"
        )
    row = with_window(verb, node, time_type)
    return WindowClock(verb, part(f"{verb}({{}})", node, time), size, every, origin, row)


_EXAMPLES: dict[type, Any] = {
    int: 0,
    float: 0.0,
    bool: False,
    datetime: EPOCH,
    date: EPOCH_DAY,
    str: "",
}


def check_times(verb: str, node: Node, time: Part, spans: dict[str, Any]) -> Any:
    """The type of the windows' ends, after a look at the time and the size of the windows."""
    part(f"{verb}({{}})", node, time)
    plain(f"{verb}({{}})", time)
    time_type = part_type(node, time)
    known = classes_of(time_type)
    example = example_time(node, time)
    for name, span in spans.items():
        _positive(verb, name, span)
        if example is not None and (wrong := time_mismatch(example, span)):
            shown = f'"{time}"' if isinstance(time, str) else "..."
            what = wrong[0].replace("it is", "the time is", 1)
            refuse(f"{verb}({shown}, {name}={_span(span)}): {what}", wrong[1])
    if not known:
        return Any
    ends = with_notes(types.either(*known), types.notes(time_type))
    floats = any(isinstance(span, float) for span in spans.values())
    return float if ends is int and floats else ends


def example_time(node: Node, time: Part) -> Any:
    """A time of the kind that rows have; None where that is not known."""
    known = classes_of(part_type(node, time))
    return _EXAMPLES.get(known[0]) if len(known) == 1 else None


def classes_of(time_type: Any) -> list[Any]:
    """The classes of times of a type; none where they are not known."""
    return [each for each in types.classes(time_type) or () if each is not NoneType]


def _positive(verb: str, name: str, span: Any) -> None:
    zero = timedelta(0) if isinstance(span, timedelta) else 0
    try:
        fine = not isinstance(span, bool) and span > zero and span - span == zero
    except TypeError:
        fine = False
    if not fine:
        refuse(
            f"{verb}({name}={_span(span)}): {name} must be a positive span of time",
            "a number in the unit of the times, or a timedelta",
        )


def with_window(verb: str, node: Node, time_type: Any) -> Any:
    """The row type with two more fields; None where the fields are not known."""
    remedy = "select() it under another name before: select(..., first_start={!r})"
    ends = {"window_start": time_type, "window_end": time_type}
    return row_with(f"{verb}(...)", node, ends, remedy)
