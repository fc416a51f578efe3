"""Windows: which ones a row is in, for every kind of time."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import CompositionError, UnknownField
from ebbflow.flow.plan import FlatMap, Map, Plan, Sessions
from ebbflow.zset import ZSet

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Rome(tzinfo):
    """One hour before Greenwich, and two in the summer of 2024."""

    def utcoffset(self, at: datetime | None) -> timedelta:
        return HOUR + self.dst(at)

    def dst(self, at: datetime | None) -> timedelta:
        clock = at and at.replace(tzinfo=None)
        summer = clock and datetime(2024, 3, 31, 2) <= clock < datetime(2024, 10, 27, 3)
        return HOUR if summer else timedelta(0)

    def tzname(self, at: datetime | None) -> str:
        return "Rome"


class Hit(NamedTuple):
    user: str
    at: int


class Stamped(NamedTuple):
    at: datetime


class Dated(NamedTuple):
    on: date


def moment(t: Any) -> Any:
    return t


def windows(t: Any, size: Any, every: Any = None, **options: Any) -> list[tuple[Any, Any]]:
    """The windows of a row that is a time itself."""
    times = ef.Input("times")
    if every is None:
        found = [times.tumbling(moment, size, **options).node.fn(t)]
    else:
        found = times.sliding(moment, size, every, **options).node.fn(t)
    assert all(row == t for row, _, _ in found)
    return [(start, end) for _, start, end in found]


# ---- tumbling ----


@pytest.mark.parametrize(
    ("t", "size", "window"),
    [
        (0, 60, (0, 60)),
        (59, 60, (0, 60)),
        (60, 60, (60, 120)),
        (-1, 60, (-60, 0)),
        (7.5, 5, (5.0, 10.0)),
        (7, 2.5, (5.0, 7.5)),
        (Decimal("-0.5"), 2, (Decimal(-2), Decimal(0))),
        (datetime(2024, 5, 1, 13, 59), HOUR, (datetime(2024, 5, 1, 13), datetime(2024, 5, 1, 14))),
        (datetime(1969, 12, 31, 23), DAY, (datetime(1969, 12, 31), datetime(1970, 1, 1))),
        (date(2024, 5, 1), DAY, (date(2024, 5, 1), date(2024, 5, 2))),
        (date(1969, 12, 31), 7 * DAY, (date(1969, 12, 25), date(1970, 1, 1))),
    ],
)
def test_a_row_is_in_the_one_window_around_its_time(t: Any, size: Any, window: Any) -> None:
    assert windows(t, size) == [window]


@pytest.mark.parametrize(
    ("t", "size", "origin", "window"),
    [
        (12, 10, 5, (5, 15)),
        (4, 10, 5, (-5, 5)),
        (12, 10, 2.5, (2.5, 12.5)),
        (date(2024, 5, 1), 7 * DAY, date(1970, 1, 5), (date(2024, 4, 29), date(2024, 5, 6))),
        (datetime(2024, 5, 1, 5), DAY, datetime(2000, 1, 1, 6),
         (datetime(2024, 4, 30, 6), datetime(2024, 5, 1, 6))),
    ],
)  # fmt: skip
def test_windows_are_counted_from_the_origin(t: Any, size: Any, origin: Any, window: Any) -> None:
    assert windows(t, size, origin=origin) == [window]


def test_times_with_a_zone_are_counted_in_utc() -> None:
    rome = datetime(2024, 5, 1, 1, 30, tzinfo=Rome())
    [(start, end)] = windows(rome, DAY)
    assert (start, end) == (datetime(2024, 4, 30, tzinfo=UTC), datetime(2024, 5, 1, tzinfo=UTC))
    assert start.tzinfo is UTC


def test_with_an_origin_in_a_zone_a_day_is_a_day_there_also_when_the_clocks_change() -> None:
    zone = Rome()
    origin = datetime(1970, 1, 1, tzinfo=zone)
    late = datetime(2024, 3, 31, 21, 59, tzinfo=UTC)
    [(start, end)] = windows(late, DAY, origin=origin)
    assert (start, end) == (datetime(2024, 3, 31, tzinfo=zone), datetime(2024, 4, 1, tzinfo=zone))
    assert end.astimezone(UTC) - start.astimezone(UTC) == timedelta(hours=23)
    after = datetime(2024, 3, 31, 22, 30, tzinfo=UTC)
    assert windows(after, DAY, origin=origin) == [(end, end + DAY)]


@given(
    st.floats(-1e9, 1e9) | st.floats(-2, 2),
    st.floats(1e-3, 1e6) | st.sampled_from([0.1, 0.3, 1 / 3, 1]),
    st.sampled_from([None, 0.1, -7.3, 5]),
)
@example(0.3, 0.1, None)
@example(0.7, 0.1, None)
@example(-1e-17, 0.1, None)
@example(4.35, 0.01, None)
def test_a_float_is_never_outside_its_window(t: float, size: float, origin: Any) -> None:
    [(start, end)] = windows(t, size, origin=origin)
    assert start <= t < end
    assert windows(start, size, origin=origin) == [(start, end)]


@given(st.integers(), st.integers(1, 100), st.integers(-50, 50))
def test_an_int_is_in_exactly_one_window_of_the_grid(t: int, size: int, origin: int) -> None:
    [(start, end)] = windows(t, size, origin=origin)
    assert start <= t < end == start + size
    assert (start - origin) % size == 0


# ---- sliding ----


@pytest.mark.parametrize(
    ("t", "size", "every", "found"),
    [
        (150, 60, 30, [(120, 180), (150, 210)]),
        (149, 60, 30, [(90, 150), (120, 180)]),
        (5, 10, 10, [(0, 10)]),
        (5, 2, 10, []),
        (1, 2, 10, [(0, 2)]),
        (date(1970, 1, 2), 2 * DAY, DAY,
         [(date(1970, 1, 1), date(1970, 1, 3)), (date(1970, 1, 2), date(1970, 1, 4))]),
    ],
)  # fmt: skip
def test_a_row_is_in_every_window_that_is_open_at_its_time(
    t: Any, size: Any, every: Any, found: Any
) -> None:
    assert windows(t, size, every) == found


@given(st.floats(-1e4, 1e4), st.floats(0.01, 50), st.sampled_from([0.1, 0.3, 1, 7.5]))
def test_sliding_floats_are_inside_and_miss_no_window(t: float, size: float, every: float) -> None:
    found = windows(t, size, every)
    assert all(start <= t < end for start, end in found)
    near = math.floor(t / every)
    for number in range(near - math.ceil(size / every) - 2, near + 3):
        start = number * every
        assert ((start, start + size) in found) == (start <= t < start + size)


# ---- the nodes and their rows ----


def test_rows_with_fields_get_two_more() -> None:
    hits = ef.Input("hits", Hit)
    for made, kind in [
        (hits.tumbling("at", 60), Map),
        (hits.sliding("at", 60, 30), FlatMap),
        (hits.session("at", 60, per="user"), Sessions),
    ]:
        assert type(made.node) is kind
        assert made.type.__name__ == "Hit"
        assert made.type._fields == ("user", "at", "window_start", "window_end")
        assert made.type.__annotations__["window_end"] is int
    assert hits.tumbling("at", 60).node.fn(Hit("ann", 61)) == ("ann", 61, 60, 120)


def test_rows_without_fields_become_triples() -> None:
    assert ef.Input("t", int).tumbling(moment, 10).node.fn(7) == (7, 0, 10)
    assert ef.Input("t", int).session(moment, 10).node.merge(7, 5, 17) == (7, 5, 17)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (ef.Input("r", Stamped).tumbling("at", HOUR), datetime),
        (ef.Input("r", Dated).tumbling("on", DAY), date),
        (ef.Input("r", Hit).tumbling("at", 0.5), float),
        (ef.Input("r", Hit).tumbling(lambda hit: hit.at // 2, 5), int),
        (ef.Input("r", Hit).tumbling(lambda hit: {}.get(hit.at), 5), Any),
    ],
)
def test_002_D7_the_ends_of_windows_have_the_type_of_the_times(made: Any, kind: Any) -> None:
    assert made.type.__annotations__["window_start"] == kind


def test_sessions_of_each_user() -> None:
    made = ef.Input("hits", Hit).session("at", 10, per="user")
    rows = [Hit("ann", 1), Hit("ann", 11), Hit("ann", 22), Hit("bob", 5), Hit("bob", 5)]
    found = evaluate(Plan({"out": made.node}), {"hits": ZSet.of(rows)})["out"]
    assert found == ZSet({
        ("ann", 1, 1, 21): 1, ("ann", 11, 1, 21): 1, ("ann", 22, 22, 32): 1, ("bob", 5, 5, 15): 2,
    })  # fmt: skip


@pytest.mark.parametrize("verb", ["tumbling", "sliding", "session"])
def test_windows_are_equal_values_that_can_be_sent(verb: str) -> None:
    spans = (60, 30) if verb == "sliding" else (60,)
    first, second = (getattr(ef.Input("hits", Hit), verb)("at", *spans) for _ in range(2))
    other = getattr(ef.Input("hits", Hit), verb)("at", *[span + 1 for span in spans])
    assert first == second
    assert hash(first) == hash(second)
    assert first != other
    assert pickle.loads(pickle.dumps(first)) == first


# ---- what is refused ----

ROWS = ef.Input("rows", Stamped)
HITS = ef.Input("hits", Hit)
DAYS = ef.Input("days", Dated)
UNTYPED = ef.Input("things")


def text(build: Any) -> str:
    with pytest.raises(CompositionError) as caught:
        build()
    lines = str(caught.value).splitlines()
    return "\n".join(line for line in lines if not line.startswith("    created"))


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: ROWS.tumbling("at", 60),
         'tumbling("at", size=60): the time is a datetime, and 60 is a number\n'
         "    try        a timedelta, such as timedelta(hours=1)"),
        (lambda: HITS.session("at", HOUR),
         'session("at", gap=timedelta(seconds=3600)): the time is of type int, and '
         "timedelta(seconds=3600) is a timedelta\n"
         "    try        a number, in the unit of the times"),
        (lambda: HITS.tumbling("user", 60),
         'tumbling("user", size=60): the time is of type str, in which no time can be counted\n'
         "    try        an int, a float, a date or a datetime"),
        (lambda: DAYS.tumbling("on", HOUR),
         'tumbling("on", size=timedelta(seconds=3600)): the time is a date, which has no hours\n'
         "    try        a timedelta of whole days"),
        (lambda: HITS.sliding("at", 60, 0),
         "sliding(every=0): every must be a positive span of time\n"
         "    try        a number in the unit of the times, or a timedelta"),
        (lambda: HITS.session("at", "1h"),
         "session(gap='1h'): gap must be a positive span of time\n"
         "    try        a number in the unit of the times, or a timedelta"),
        (lambda: UNTYPED.sliding(moment, HOUR, 60),
         "sliding(size=timedelta(seconds=3600), every=60): one is a timedelta, the other not\n"
         "    try        two numbers, or two timedeltas"),
        (lambda: HITS.tumbling("at", 60, origin=date(1970, 1, 1)),
         "tumbling(origin=date(1970, 1, 1)): it is a date, and 60 is a number\n"
         "    try        an origin of the same kind as the times"),
        (lambda: HITS.tumbling("at", 60).session("at", 60),
         "session(...): Hit rows have already a field 'window_start'\n"
         "    fields     user, at, window_start, window_end\n"
         "    try        select() it under another name before: "
         "select(..., first_start='window_start')"),
    ],
)  # fmt: skip
def test_a_window_that_cannot_be_is_refused_when_it_is_built(build: Any, said: str) -> None:
    assert text(build) == said


@pytest.mark.parametrize("span", [0, -1, True, math.inf, math.nan, None, timedelta(0), -HOUR])
def test_a_span_of_time_is_positive_and_finite(span: Any) -> None:
    for build in (
        lambda: UNTYPED.tumbling(moment, span),
        lambda: UNTYPED.sliding(moment, span, span),
        lambda: UNTYPED.session(moment, span),
    ):
        assert "must be a positive span of time" in text(build)


def test_an_unknown_time_field_is_refused() -> None:
    for build in (
        lambda: HITS.tumbling("att", 60),
        lambda: HITS.sliding("att", 60, 30),
        lambda: HITS.session("att", 60),
        lambda: HITS.session("at", 60, per="usr"),
    ):
        with pytest.raises(UnknownField):
            build()


@pytest.mark.parametrize(
    ("t", "size", "origin", "why"),
    [
        (None, 60, None, "it is None"),
        ("noon", 60, None, "it is of type str, in which no time can be counted"),
        (math.nan, 60, None, "it is not finite"),
        (math.inf, 60, None, "it is not finite"),
        (1e300, 60, None, "it is too large to tell windows of 60 apart"),
        (datetime(2024, 1, 1), 60, None, "it is a datetime, and 60 is a number"),
        (7, HOUR, None, "it is of type int, and timedelta(seconds=3600) is a timedelta"),
        (date(2024, 1, 1), HOUR, None, "it is a date, which has no hours"),
        (datetime(2024, 1, 1), HOUR, datetime(1970, 1, 1, tzinfo=UTC),
         "the time and the origin have not both a time zone"),
        (datetime(2024, 1, 1, tzinfo=UTC), HOUR, datetime(1970, 1, 1),
         "the time and the origin have not both a time zone"),
    ],
)  # fmt: skip
def test_a_time_that_will_not_do_is_refused_when_it_comes(
    t: Any, size: Any, origin: Any, why: str
) -> None:
    with pytest.raises(CompositionError) as caught:
        windows(t, size, origin=origin)
    assert caught.value.what == f"tumbling: the time of a row will not do: {why}"
    assert caught.value.facts == {"time": t}


def test_a_session_refuses_such_a_time_too() -> None:
    time = UNTYPED.session(moment, 60).node.time
    assert time(7) == 7
    assert time(7.5) == 7.5
    with pytest.raises(
        CompositionError, match="session: the time of a row will not do: it is None"
    ):
        time(None)
