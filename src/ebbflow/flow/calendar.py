"""Windows of days, weeks, months, quarters and years: they follow a calendar, and a zone.

Windows are counted in whole days or whole months from a date, the `origin`: 1970-01-01, and for
weeks Monday, 1970-01-05. A week is seven days, a quarter three months, a year twelve.

Dates, and datetimes without a zone, are in one calendar already. An aware time is placed in the
calendar of a zone, UTC unless another is given. A day of that zone starts at the first instant at
which its clock shows that date, or a later one:

    midnight comes once         at midnight; the day has 23, 24 or 25 hours
    midnight is left out        when the clock is put forward: 00:00 becomes 01:00
    midnight comes twice        at the first of the two
    a whole date is left out    when the next day starts: that window has no rows

So windows follow each other without a gap, and each instant is in exactly one day. The ends of
windows of aware times are in UTC.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NamedTuple

from ebbflow.errors import CompositionError
from ebbflow.flow import types
from ebbflow.flow.parts import Part, part, part_type, plain, refuse
from ebbflow.flow.plan import Node
from ebbflow.flow.windows import (
    DAY,
    EPOCH_DAY,
    WindowClock,
    classes_of,
    too_far,
    window_clock,
    with_window,
    wrong_time,
)
from ebbflow.record import with_notes

MONDAY = date(1970, 1, 5)


class Unit(NamedTuple):
    """Days or months, so many, counted from a date unless another is given."""

    months: bool
    number: int
    origin: date


UNITS = {
    "days": Unit(False, 1, EPOCH_DAY),
    "weeks": Unit(False, 7, MONDAY),
    "months": Unit(True, 1, EPOCH_DAY),
    "quarters": Unit(True, 3, EPOCH_DAY),
    "years": Unit(True, 12, EPOCH_DAY),
}
NAIVE = "naive"
DATES = "dates"
"""Calendars beside those of zones."""


# ---- days and months ----


def units_to(day: date, origin: date, months: bool) -> int:
    """How many whole days or months lie between two dates.

    >>> units_to(date(2024, 3, 14), date(2024, 1, 15), True)
    1
    """
    if not months:
        return day.toordinal() - origin.toordinal()
    return 12 * (day.year - origin.year) + day.month - origin.month - (day.day < origin.day)


def date_after(origin: date, units: int, months: bool) -> date:
    """The date so many days or months after another.

    >>> date_after(date(2024, 1, 15), -1, True), date_after(date(2024, 1, 15), 31, False)
    (datetime.date(2023, 12, 15), datetime.date(2024, 2, 15))
    """
    if not months:
        return origin + timedelta(units)
    year, month = divmod(12 * origin.year + origin.month - 1 + units, 12)
    return date(year, month + 1, origin.day)


def day_start(day: date, zone: tzinfo) -> datetime:
    """The first instant at which a clock of the zone shows this date, or a later one; in UTC.

    >>> from zoneinfo import ZoneInfo
    >>> day_start(date(2024, 5, 1), ZoneInfo("Europe/Rome"))
    datetime.datetime(2024, 4, 30, 22, 0, tzinfo=datetime.timezone.utc)
    >>> day_start(date(2018, 11, 4), ZoneInfo("America/Sao_Paulo"))  # midnight is left out
    datetime.datetime(2018, 11, 4, 3, 0, tzinfo=datetime.timezone.utc)
    """
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    first, last = sorted(midnight.replace(fold=fold).astimezone(UTC) for fold in (0, 1))

    def has_started(second: int) -> bool:
        return (first + timedelta(seconds=second)).astimezone(zone).date() >= day

    if first == last or has_started(0):
        return first
    seconds = range((last - first) // timedelta(seconds=1) + 1)
    return first + timedelta(seconds=bisect_left(seconds, True, key=has_started))


@lru_cache(maxsize=1 << 14)
def _edge(origin: date, months: bool, units: int, calendar: Any) -> Any:
    """Where the day starts that is so many days or months after the origin."""
    day = date_after(origin, units, months)
    if calendar == DATES:
        return day
    if calendar == NAIVE:
        return datetime(day.year, day.month, day.day)
    return day_start(day, zone_of(calendar))


@lru_cache(maxsize=256)
def zone_of(zone: str | timezone) -> tzinfo:
    """The zone of a name; UTC is one also where no zones are installed.

    >>> zone_of("UTC"), zone_of("Asia/Kathmandu")
    (datetime.timezone.utc, zoneinfo.ZoneInfo(key='Asia/Kathmandu'))
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if isinstance(zone, timezone):
        return zone
    try:
        return UTC if zone == "UTC" else ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise CompositionError(
            f"there is no time zone {zone!r} on this machine", remedy=_near(zone)
        ) from error


def _near(zone: str) -> str:
    from zoneinfo import available_timezones

    known = {name.lower(): name for name in sorted(available_timezones())}
    if not known:
        return "pip install tzdata: no time zones are installed"
    near = get_close_matches(zone.lower(), known, n=3) or ["europe/rome"]
    return " or ".join([repr(known.get(each, each)) for each in near])


# ---- the clock ----


@dataclass(frozen=True)
class CalendarClock(WindowClock):
    """Windows of `size` days, or months, one every `every` from the date `origin` on."""

    months: bool
    zone: str | timezone | None
    """The zone of aware times; None for UTC, or where times have none."""

    def at(self, row: Any) -> tuple[Any, Any, Any]:
        """The time of a row, its calendar, and the number of the last window that has started."""
        time = self.time(row)
        calendar = self._calendar(time)
        try:
            day = time
            if calendar == NAIVE:
                day = time.date()
            elif calendar != DATES:
                day = time.astimezone(zone_of(calendar)).date()
            number = units_to(day, self.origin, self.months) // self.every
            if calendar not in (NAIVE, DATES):
                while self.start(calendar, number + 1) <= time:  # midnight comes twice
                    number += 1
        except (OverflowError, ValueError) as error:
            raise too_far(self.verb, time) from error
        return time, calendar, number

    def start(self, origin: Any, number: Any) -> Any:
        return _edge(self.origin, self.months, number * self.every, origin)

    def end(self, origin: Any, number: Any) -> Any:
        return _edge(self.origin, self.months, number * self.every + self.size, origin)

    def written(self, bind: Any, row: str, shown: str, otherwise: str) -> str:
        return otherwise

    @property
    def longest(self) -> Any:
        """A zone whose clocks are put back, or that has a date twice, has longer windows."""
        return (self.size * (31 if self.months else 1) + (0 if self.zone is None else 2)) * DAY

    @property
    def shown(self) -> str:
        unit = "month" if self.months else "day"
        where = "" if self.zone is None else f" in {self.zone}"
        return f"{self.size} {unit}{'' if self.size == 1 else 's'}{where}"

    def _calendar(self, time: Any) -> Any:
        """Whether a time is a date, naive, or in which zone it is placed."""
        if isinstance(time, datetime):
            if time.tzinfo is not None:
                return self.zone or "UTC"
            if self.zone is None:
                return NAIVE
            raise wrong_time(
                self.verb, time, f"it has no time zone, and windows are those of {self.zone}",
                "times with a zone, such as those of a field Annotated[datetime, UTC]",
            )  # fmt: skip
        if isinstance(time, date):
            if self.zone is None:
                return DATES
            raise wrong_time(
                self.verb, time, f"it is a date, and windows are those of {self.zone}",
                "no zone=: a date is in its own calendar",
            )  # fmt: skip
        if time is None:
            raise wrong_time(
                self.verb, time, "it is None",
                "a time for every row, or filter() before the window",
            )  # fmt: skip
        raise wrong_time(
            self.verb, time,
            f"it is of type {type(time).__name__}, and {_counted(self.months)} are those of a "
            "calendar", _NO_NUMBERS,
        )  # fmt: skip


_NO_NUMBERS = "a field of dates or datetimes, or a size in the unit of the times: 86_400 seconds"


def _counted(months: bool) -> str:
    return "months" if months else "days"


# ---- checks when built ----


def any_clock(
    verb: str, node: Node, time: Part, size: Any, every: Any, origin: Any,
    periods: dict[str, int | None], zone: Any,
) -> WindowClock:  # fmt: skip
    """The clock of windows of a size, or of a number of days, weeks, months, quarters or years."""
    given = {name: count for name, count in periods.items() if count is not None}
    if not given:
        if zone is not None:
            refuse(
                f"{verb}(size={size!r}, zone={zone!r}): only days, weeks, months, quarters and "
                "years follow the calendar of a zone",
                f"{verb}(..., days=1, zone=...), or no zone=",
            )
        return window_clock(verb, node, time, size, every, origin)
    named = ", ".join([f"{name}={count!r}" for name, count in given.items()])
    if size is not None or len(given) > 1:
        refuse(
            f"{verb}({named}): the size of a window is given once",
            f'{verb}("at", months=1), or {verb}("at", 60) in the unit of the times',
            **({} if size is None else {"size": size}),
        )
    ((name, count),) = given.items()
    _whole(f"{verb}({named})", name, count, "1, or another whole number; timedelta(hours=12)")
    if verb == "sliding":
        _whole(f"{verb}({named}, every={every!r})", "every", every, f"every=1, in {name} as well")
    else:
        every = count
    unit = UNITS[name]
    start = _origin(f"{verb}({named}, origin={origin!r})", unit, origin)
    where = None if zone is None else _named_zone(f"{verb}({named}, zone={zone!r})", zone)
    row = with_window(verb, node, _ends(f"{verb}({{}}, {named})", node, time, name, where))
    of = part(f"{verb}({{}})", node, time)
    return CalendarClock(
        verb, of, unit.number * count, unit.number * every, start, row, unit.months, where
    )  # fmt: skip


def _whole(call: str, name: str, count: Any, remedy: str) -> None:
    if type(count) is not int or count < 1:
        refuse(f"{call}: {name} must be a whole number, at least 1", remedy)


def _origin(call: str, unit: Unit, origin: Any) -> date:
    if origin is None:
        return unit.origin
    if type(origin) is not date:
        refuse(f"{call}: these windows start with a date", "origin=date(2024, 1, 1)")
    if unit.months and origin.day > 28:
        refuse(f"{call}: not every month has a day {origin.day}", "a day of the month up to 28")
    return origin


def _named_zone(call: str, zone: Any) -> str | timezone:
    """A zone as a value: its name, or its distance from UTC."""
    name = getattr(zone, "key", zone) if isinstance(zone, tzinfo) else zone
    if name == UTC:
        return "UTC"
    if not isinstance(name, str | timezone):
        refuse(f"{call}: this is no zone that has a name", 'zone="Europe/Rome"')
    try:
        zone_of(name)
    except CompositionError as error:
        refuse(f"{call}: {error.what}", error.remedy)
    return name


def _ends(call: str, node: Node, time: Part, name: str, zone: Any) -> Any:
    """The type of the ends of windows, after a look at the type of the times."""
    plain(call, time)
    time_type = part_type(node, time)
    classes = classes_of(time_type)
    if not classes:
        return Any
    zoned = any(isinstance(note, tzinfo) for note in types.notes(time_type))
    shown = call.format(f'"{time}"' if isinstance(time, str) else "...")
    for each in classes:
        if not (isinstance(each, type) and issubclass(each, date)):
            refuse(
                f"{shown}: the time is of type {each.__name__}, and {name} are those of a calendar",
                _NO_NUMBERS,
            )
        if zone is not None and not (issubclass(each, datetime) and zoned):
            refuse(
                f"{shown}: zone={zone!r} is for times with a zone, and the time is a "
                f"{each.__name__} without one",
                "Annotated[datetime, UTC] as the type of the field; or no zone=, for its own "
                "calendar",
            )  # fmt: skip
    return with_notes(types.either(*classes), (UTC,) if zoned else ())
