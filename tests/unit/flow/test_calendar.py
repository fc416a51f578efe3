"""Windows of a calendar: days of 23, 24 and 25 hours, months, and what is refused."""

from __future__ import annotations

import pickle
import zoneinfo
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

import ebbflow as ef
from ebbflow.errors import CompositionError
from ebbflow.flow import calendar
from ebbflow.flow.calendar import day_start
from ebbflow.flow.describe import fn_text
from ebbflow.record import record


class Sale(NamedTuple):
    """Something sold, at every kind of time."""

    who: str
    at: Annotated[datetime, UTC]
    local: datetime
    day: date
    number: int


SALES = ef.Input("sales", Sale)


def moment(time: Any) -> Any:
    return time


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def windows(verb: str, time: Any, **options: Any) -> list[tuple[Any, Any]]:
    """The windows of a row that is a time itself."""
    fn = getattr(ef.Input("times"), verb)(moment, **options).node.fn
    found = fn(time) if verb == "sliding" else [fn(time)]
    assert all(row == time for row, _, _ in found)
    return [(start, end) for _, start, end in found]


def window(time: Any, **options: Any) -> tuple[Any, Any]:
    (found,) = windows("tumbling", time, **options)
    return found


# ---- days of a zone ----


@pytest.mark.parametrize(
    ("zone", "time", "start", "end"),
    [
        ("Europe/Rome", "2026-05-09 22:30", "2026-05-09 22:00", "2026-05-10 22:00"),
        ("Europe/Rome", "2026-03-29 12:00", "2026-03-28 23:00", "2026-03-29 22:00"),
        ("Europe/Rome", "2026-10-25 00:30", "2026-10-24 22:00", "2026-10-25 23:00"),
        ("Europe/Rome", "2026-10-25 01:30", "2026-10-24 22:00", "2026-10-25 23:00"),
        ("America/New_York", "2026-03-08 12:00", "2026-03-08 05:00", "2026-03-09 04:00"),
        ("Asia/Kathmandu", "2026-01-01 18:14", "2025-12-31 18:15", "2026-01-01 18:15"),
        ("Australia/Lord_Howe", "2026-04-04 20:00", "2026-04-04 13:00", "2026-04-05 13:30"),
        ("UTC", "2026-03-29 23:59", "2026-03-29 00:00", "2026-03-30 00:00"),
        # midnight is left out: the clock goes from 00:00 to 01:00, or from 00:00 to 00:15
        ("America/Sao_Paulo", "2018-11-04 03:00", "2018-11-04 03:00", "2018-11-05 02:00"),
        ("America/Sao_Paulo", "2018-11-04 02:59", "2018-11-03 03:00", "2018-11-04 03:00"),
        ("Asia/Kathmandu", "1985-12-31 18:30", "1985-12-31 18:30", "1986-01-01 18:15"),
        # the clock goes from 23:30 to 00:30: no midnight, and not at midnight
        ("America/Toronto", "1919-03-31 04:45", "1919-03-31 04:30", "1919-04-01 04:00"),
        # from 00:00 back to 23:00: the day before has 25 hours
        ("America/Sao_Paulo", "2018-02-18 02:30", "2018-02-17 02:00", "2018-02-18 03:00"),
        # from 01:00 back to 00:00: midnight comes twice
        ("America/Havana", "2025-11-02 04:30", "2025-11-02 04:00", "2025-11-03 05:00"),
        ("America/Havana", "2025-11-02 05:30", "2025-11-02 04:00", "2025-11-03 05:00"),
        # from 00:01 back to 23:01: the new day has begun, and goes on
        ("America/St_Johns", "1987-10-25 02:45", "1987-10-25 02:30", "1987-10-26 03:30"),
        ("America/St_Johns", "1987-10-25 02:29", "1987-10-24 02:30", "1987-10-25 02:30"),
        # 2011-12-30 is left out
        ("Pacific/Apia", "2011-12-30 09:59", "2011-12-29 10:00", "2011-12-30 10:00"),
        ("Pacific/Apia", "2011-12-30 10:00", "2011-12-30 10:00", "2011-12-31 10:00"),
    ],
)
def test_a_day_starts_when_the_clock_of_its_zone_first_shows_it(
    zone: str, time: str, start: str, end: str
) -> None:
    found = window(utc(time), days=1, zone=zone)
    assert found == (utc(start), utc(end))
    assert all(edge.tzinfo is UTC for edge in found)


def test_days_follow_each_other_through_every_change_of_clocks() -> None:
    for name in ("Europe/Rome", "America/Havana", "Pacific/Apia", "Africa/Casablanca"):
        zone, day = ZoneInfo(name), date(2009, 1, 1)
        starts = [day_start(day + timedelta(n), zone) for n in range(1500)]
        assert starts == sorted(starts)
        for start in starts:
            before = (start - timedelta(seconds=1)).astimezone(zone).date()
            assert before < start.astimezone(zone).date()


@pytest.mark.parametrize(
    ("options", "start", "end"),
    [
        ({"weeks": 1}, "2026-03-22 23:00", "2026-03-29 22:00"),
        ({"weeks": 1, "origin": date(2026, 1, 4)}, "2026-03-28 23:00", "2026-04-04 22:00"),
        ({"days": 7, "origin": date(2026, 1, 4)}, "2026-03-28 23:00", "2026-04-04 22:00"),
        ({"months": 1}, "2026-02-28 23:00", "2026-03-31 22:00"),
        ({"months": 1, "origin": date(2020, 1, 15)}, "2026-03-14 23:00", "2026-04-14 22:00"),
        ({"quarters": 1}, "2025-12-31 23:00", "2026-03-31 22:00"),
        ({"years": 1}, "2025-12-31 23:00", "2026-12-31 23:00"),
        ({"years": 1, "origin": date(2000, 4, 1)}, "2025-03-31 22:00", "2026-03-31 22:00"),
        ({"years": 10}, "2019-12-31 23:00", "2029-12-31 23:00"),
        ({"months": 18, "origin": date(2026, 3, 1)}, "2026-02-28 23:00", "2027-08-31 22:00"),
    ],
)
def test_longer_windows_begin_and_end_with_days(
    options: dict[str, Any], start: str, end: str
) -> None:
    time = utc("2026-03-29 00:30")
    assert window(time, zone="Europe/Rome", **options) == (utc(start), utc(end))


def test_a_zone_is_given_by_name_or_as_a_value() -> None:
    time = utc("2026-05-09 22:30")
    rome = window(time, days=1, zone="Europe/Rome")
    assert window(time, days=1, zone=ZoneInfo("Europe/Rome")) == rome
    assert window(time, days=1, zone=timezone(timedelta(hours=2))) == rome
    assert (
        window(time, days=1) == window(time, days=1, zone=UTC) == window(time, days=1, zone="UTC")
    )
    assert window(time.astimezone(ZoneInfo("Asia/Tokyo")), days=1, zone="Europe/Rome") == rome


# ---- times without a zone ----


@pytest.mark.parametrize(
    ("time", "options", "start", "end"),
    [
        (datetime(2026, 3, 29, 2, 30), {"days": 1}, datetime(2026, 3, 29), datetime(2026, 3, 30)),
        (datetime(1969, 12, 31), {"weeks": 1}, datetime(1969, 12, 29), datetime(1970, 1, 5)),
        (datetime(2024, 2, 29), {"months": 1}, datetime(2024, 2, 1), datetime(2024, 3, 1)),
        (date(2024, 2, 29), {"years": 1}, date(2024, 1, 1), date(2025, 1, 1)),
        (date(2024, 2, 29), {"weeks": 2}, date(2024, 2, 19), date(2024, 3, 4)),
        (date(1969, 2, 1), {"quarters": 1}, date(1969, 1, 1), date(1969, 4, 1)),
        (date(9998, 12, 31), {"years": 1}, date(9998, 1, 1), date(9999, 1, 1)),
    ],
)  # fmt: skip
def test_naive_times_and_dates_are_in_one_calendar(
    time: Any, options: dict[str, Any], start: Any, end: Any
) -> None:
    found = window(time, **options)
    assert found == (start, end)
    assert {type(edge) for edge in found} == {type(time)}


def test_sliding_windows_count_in_the_unit_of_their_size() -> None:
    assert windows("sliding", date(2026, 3, 1), days=3, every=1) == [
        (date(2026, 2, 27), date(2026, 3, 2)),
        (date(2026, 2, 28), date(2026, 3, 3)),
        (date(2026, 3, 1), date(2026, 3, 4)),
    ]
    assert windows("sliding", date(2026, 3, 31), quarters=2, every=1) == [
        (date(2025, 10, 1), date(2026, 4, 1)),
        (date(2026, 1, 1), date(2026, 7, 1)),
    ]
    assert windows("sliding", date(1970, 1, 3), days=1, every=7) == []
    in_rome = windows("sliding", utc("2026-03-29 12:00"), days=2, every=1, zone="Europe/Rome")
    assert in_rome == [
        (utc("2026-03-27 23:00"), utc("2026-03-29 22:00")),
        (utc("2026-03-28 23:00"), utc("2026-03-30 22:00")),
    ]


# ---- types, values, closing ----


@pytest.mark.parametrize(
    ("time", "hint"),
    [("at", Annotated[datetime, UTC]), ("local", datetime), ("day", date), (lambda s: {}, Any)],
)
def test_the_ends_have_the_type_of_the_times_and_are_in_utc(time: Any, hint: Any) -> None:
    fields = SALES.tumbling(time, days=1).type.__annotations__
    assert (fields["window_start"], fields["window_end"]) == (hint, hint)
    in_rome = ef.Input("r", record("R", at=Annotated[datetime, ZoneInfo("Europe/Rome")]))
    assert (
        in_rome.tumbling("at", days=1).type.__annotations__["window_end"]
        == (Annotated[datetime, UTC])
    )


def test_equal_windows_are_equal_values_that_can_be_sent() -> None:
    def made(**options: Any) -> Any:
        return SALES.tumbling("at", **options)

    assert made(quarters=1, zone="Europe/Rome") == made(months=3, zone=ZoneInfo("Europe/Rome"))
    assert hash(made(quarters=1)) == hash(made(months=3))
    assert made(days=7) != made(weeks=1)
    assert made(days=1) != made(days=1, zone="Europe/Rome")
    sent = pickle.loads(pickle.dumps(made(days=1, zone="Europe/Rome")))
    assert sent == made(days=1, zone="Europe/Rome")
    assert sent.node.fn.fingerprint == made(days=1, zone="Europe/Rome").node.fn.fingerprint
    prints = {
        made(**options).node.fn.fingerprint
        for options in (
            {"days": 1}, {"days": 1, "zone": "Europe/Rome"}, {"days": 1, "zone": "Asia/Tokyo"},
            {"days": 7}, {"weeks": 1}, {"months": 1}, {"size": timedelta(days=1)},
        )
    }  # fmt: skip
    assert len(prints) == 7


def test_a_window_of_a_fixed_size_is_what_it_was() -> None:
    day = SALES.tumbling("at", timedelta(days=1))
    assert type(day.node.fn.call.clock).__name__ == "WindowClock"
    assert window(utc("2026-05-09 22:30"), size=timedelta(days=1)) == (
        utc("2026-05-09 00:00"), utc("2026-05-10 00:00"),
    )  # fmt: skip


def test_explain_names_the_calendar() -> None:
    for rows, said in (
        (SALES.tumbling("at", months=1, zone="Europe/Rome"), "1 month in Europe/Rome by at"),
        (SALES.tumbling("day", weeks=1), "7 days by day"),
        (SALES.sliding("local", quarters=2, every=1), "6 months every 3 by local"),
    ):
        assert fn_text(rows.node.fn) == f"windows of {said}"


# ---- what is refused ----


def text(build: Any) -> str:
    with pytest.raises(CompositionError) as caught:
        build()
    lines = str(caught.value).splitlines()
    return "\n".join(line for line in lines if not line.startswith("    created"))


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: SALES.tumbling("number", days=1),
         'tumbling("number", days=1): the time is of type int, and days are those of a calendar\n'
         "    try        a field of dates or datetimes, or a size in the unit of the times: "
         "86_400 seconds"),
        (lambda: SALES.sliding("who", months=2, every=1),
         'sliding("who", months=2): the time is of type str, and months are those of a calendar\n'
         "    try        a field of dates or datetimes, or a size in the unit of the times: "
         "86_400 seconds"),
        (lambda: SALES.tumbling("local", days=1, zone="Europe/Rome"),
         'tumbling("local", days=1): zone=\'Europe/Rome\' is for times with a zone, and the time '
         "is a datetime without one\n"
         "    try        Annotated[datetime, UTC] as the type of the field; or no zone=, for its "
         "own calendar"),
        (lambda: SALES.tumbling("day", days=1, zone="Europe/Rome"),
         'tumbling("day", days=1): zone=\'Europe/Rome\' is for times with a zone, and the time is '
         "a date without one\n"
         "    try        Annotated[datetime, UTC] as the type of the field; or no zone=, for its "
         "own calendar"),
        (lambda: SALES.tumbling("at", days=1, zone="europe/rom"),
         "tumbling(days=1, zone='europe/rom'): there is no time zone 'europe/rom' on this machine\n"
         "    try        'Europe/Rome' or 'Europe/Kirov' or 'Europe/Riga'"),
        (lambda: SALES.tumbling("at", days=1, zone="../etc/passwd"),
         "tumbling(days=1, zone='../etc/passwd'): there is no time zone '../etc/passwd' on this "
         "machine\n    try        'Europe/Rome'"),
        (lambda: SALES.tumbling("at", days=1, zone=1),
         "tumbling(days=1, zone=1): this is no zone that has a name\n"
         '    try        zone="Europe/Rome"'),
        (lambda: SALES.tumbling("at", timedelta(days=1), zone="Europe/Rome"),
         "tumbling(size=datetime.timedelta(days=1), zone='Europe/Rome'): only days, weeks, months, "
         "quarters and years follow the calendar of a zone\n"
         "    try        tumbling(..., days=1, zone=...), or no zone="),
        (lambda: SALES.tumbling("at", 60, days=1),
         "tumbling(days=1): the size of a window is given once\n"
         "    size       60\n"
         '    try        tumbling("at", months=1), or tumbling("at", 60) in the unit of the times'),
        (lambda: SALES.tumbling("at", weeks=1, days=1),
         "tumbling(days=1, weeks=1): the size of a window is given once\n"
         '    try        tumbling("at", months=1), or tumbling("at", 60) in the unit of the times'),
        (lambda: SALES.tumbling("at", days=0.5),
         "tumbling(days=0.5): days must be a whole number, at least 1\n"
         "    try        1, or another whole number; timedelta(hours=12)"),
        (lambda: SALES.sliding("at", days=7),
         "sliding(days=7, every=None): every must be a whole number, at least 1\n"
         "    try        every=1, in days as well"),
        (lambda: SALES.sliding("at", days=7, every=timedelta(days=1)),
         "sliding(days=7, every=datetime.timedelta(days=1)): every must be a whole number, "
         "at least 1\n    try        every=1, in days as well"),
        (lambda: SALES.tumbling("at", days=1, origin=datetime(2024, 1, 1)),
         "tumbling(days=1, origin=datetime.datetime(2024, 1, 1, 0, 0)): these windows start with a "
         "date\n    try        origin=date(2024, 1, 1)"),
        (lambda: SALES.tumbling("at", months=1, origin=date(2024, 1, 31)),
         "tumbling(months=1, origin=datetime.date(2024, 1, 31)): not every month has a day 31\n"
         "    try        a day of the month up to 28"),
    ],
)  # fmt: skip
def test_a_window_that_cannot_be_is_refused_when_it_is_built(build: Any, said: str) -> None:
    assert text(build) == said


@pytest.mark.parametrize("count", [0, -1, True, 1.0, "1"])
def test_a_number_of_days_is_whole_and_positive(count: Any) -> None:
    assert "days must be a whole number" in text(lambda: SALES.tumbling("at", days=count))


@pytest.mark.parametrize(
    ("time", "zone", "why"),
    [
        (7, None, "it is of type int, and days are those of a calendar"),
        (7.5, "Europe/Rome", "it is of type float, and days are those of a calendar"),
        (None, None, "it is None"),
        (datetime(2026, 1, 1), "Europe/Rome",
         "it has no time zone, and windows are those of Europe/Rome"),
        (date(2026, 1, 1), "Europe/Rome", "it is a date, and windows are those of Europe/Rome"),
        (date.max, None, "its window does not lie within the years 1 to 9999"),
        (datetime.max, None, "its window does not lie within the years 1 to 9999"),
        (utc("9999-12-31 23:59"), "Europe/Rome",
         "its window does not lie within the years 1 to 9999"),
        (utc("0001-01-01 00:00"), "America/New_York",
         "its window does not lie within the years 1 to 9999"),
    ],
)  # fmt: skip
def test_a_time_that_will_not_do_is_refused_when_it_comes(time: Any, zone: Any, why: str) -> None:
    with pytest.raises(CompositionError) as caught:
        window(time, days=1, zone=zone)
    assert caught.value.what == f"tumbling: the time of a row will not do: {why}"


def test_a_window_of_a_fixed_size_after_the_year_9999_is_refused_as_well() -> None:
    day = timedelta(days=1)
    for verb, spans in (("tumbling", (day,)), ("sliding", (2 * day, day))):
        fn = getattr(ef.Input("times"), verb)(moment, *spans).node.fn
        with pytest.raises(CompositionError, match="does not lie within the years 1 to 9999"):
            fn(datetime.max)


def test_a_refused_row_leaves_the_view_as_it_was() -> None:
    view = SALES.tumbling("at", days=1, zone="Europe/Rome").group_by("window_end").agg(
        n=ef.count()
    ).run()  # fmt: skip
    good = Sale("ann", utc("2026-05-09 22:30"), datetime(2026, 5, 9), date(2026, 5, 9), 1)
    view.step(sales=[good])
    before = view.value
    with pytest.raises(CompositionError, match="years 1 to 9999"):
        view.step(sales=[good, good._replace(at=datetime.max.replace(tzinfo=UTC))])
    assert view.value == before
    assert view.verify()


def test_without_zones_on_the_machine_only_utc_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    calendar.zone_of.cache_clear()
    ZoneInfo.clear_cache()

    def not_there(name: str) -> Any:
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", not_there)
    monkeypatch.setattr(zoneinfo, "available_timezones", set)
    assert window(utc("2026-05-09 22:30"), days=1, zone="UTC")[0] == utc("2026-05-09 00:00")
    assert "pip install tzdata" in text(lambda: SALES.tumbling("at", days=1, zone="Europe/Rome"))
