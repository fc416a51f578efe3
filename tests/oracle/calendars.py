"""Windows of calendars a second time: by looking at the clock of a zone minute by minute.

`edges` walks through every minute of some months and notes when the clock first shows a later date.
Nothing here knows of folds, gaps or offsets. Programs over windows are computed of these edges by
plain loops.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from functools import cache
from random import Random
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

import ebbflow as ef
from ebbflow.zset import ZSet


class Sale(NamedTuple):
    """Something sold: when, on the clock of the shop, and on its calendar."""

    who: str
    at: Annotated[datetime, UTC]
    local: datetime
    day: date
    price: int


PLACES = {
    "Europe/Rome": datetime(2026, 3, 29, 1),
    "America/New_York": datetime(2026, 11, 1, 6),
    "Australia/Lord_Howe": datetime(2026, 4, 4, 15),
    "Asia/Kathmandu": datetime(1985, 12, 31, 18),
    "Pacific/Apia": datetime(2011, 12, 30, 10),
    "America/Sao_Paulo": datetime(2018, 11, 4, 3),
    "America/Havana": datetime(2025, 11, 2, 5),
    "America/St_Johns": datetime(1987, 10, 25, 3),
    "UTC": datetime(2024, 2, 29, 0),
}
"""Zones, and near which time in UTC their clocks change, or skip a day; or nothing happens."""
LATENESS = timedelta(hours=30)


def input_of(late: bool = False) -> Any:
    return (
        ef.Input("sales", Sale, time="at", lateness=LATENESS) if late else ef.Input("sales", Sale)
    )


def program(zone: str, late: bool = False) -> Any:
    """Windows of every size, before every kind of reduce."""
    sales, in_zone = input_of(late), {"zone": zone}
    days = sales.tumbling("at", days=1, **in_zone)
    return ef.program(
        days=days.group_by("window_start", "window_end").agg(n=ef.count(), total=ef.sum("price")),
        best=days.group_by("who", "window_start").agg(best=ef.max("price")),
        weeks=sales.tumbling("at", weeks=1, **in_zone).group_by("window_end").agg(n=ef.count()),
        months=sales.tumbling("at", months=1, **in_zone).group_by("window_end").agg(n=ef.count()),
        sliding=sales.sliding("at", days=7, every=2, **in_zone)
        .group_by("who", "window_start", "window_end").agg(n=ef.count(), total=ef.sum("price")),
        greatest=sales.sliding("at", days=3, every=1, **in_zone)
        .group_by("window_start", "window_end").agg(best=ef.max("price")),
        local=sales.tumbling("local", days=1).group_by("window_start").agg(n=ef.count()),
        calendar=sales.tumbling("day", quarters=1).group_by("window_start").agg(n=ef.count()),
    )  # fmt: skip


# ---- the same by looking at clocks ----


@cache
def edges(zone: str) -> dict[date, datetime]:
    """For each date of some months, the first minute at which a clock shows it or a later one."""
    clock, found, latest = ZoneInfo(zone), dict[date, datetime](), date.min
    minute = (PLACES[zone] - timedelta(days=60)).replace(tzinfo=UTC)
    for _ in range(120 * 24 * 60):
        shown = minute.astimezone(clock).date()
        if shown > latest:
            each = shown if latest == date.min else latest + timedelta(days=1)
            while each <= shown:
                found[each] = minute
                each += timedelta(days=1)
            latest = shown
        minute += timedelta(minutes=1)
    return found


@cache
def _ordered(zone: str) -> tuple[list[date], list[datetime]]:
    found = sorted(edges(zone).items())[1:]  # the first day may have begun before
    return [day for day, _ in found], [start for _, start in found]


def day_of(time: datetime, zone: str) -> date:
    days, starts = _ordered(zone)
    return days[bisect_right(starts, time) - 1]


def witness(zone: str, rows: ZSet[Sale]) -> dict[str, ZSet[Any]]:
    """What the program gives of these rows."""
    start = edges(zone)
    found: dict[str, Any] = {name: defaultdict(list) for name in program(zone).plan.outputs}
    one = timedelta(days=1)
    for row, weight in rows.items():
        day = day_of(row.at, zone)
        for _ in range(weight):
            found["days"][start[day], start[day + one]].append(row.price)
            found["best"][row.who, start[day]].append(row.price)
            monday = day - day.weekday() * one
            found["weeks"][start[monday + 7 * one],].append(1)
            following = (day.replace(day=1) + 31 * one).replace(day=1)
            found["months"][start[following],].append(1)
            found["local"][row.local.replace(hour=0, minute=0, second=0, microsecond=0),].append(1)
            found["calendar"][date(row.day.year, (row.day.month - 1) // 3 * 3 + 1, 1),].append(1)
            for first, last in starting(day, 7, 2):
                found["sliding"][row.who, start[first], start[last]].append(row.price)
            for first, last in starting(day, 3, 1):
                found["greatest"][start[first], start[last]].append(row.price)
    shown: dict[str, Any] = {
        "best": lambda of: (max(of),), "greatest": lambda of: (max(of),),
        "days": lambda of: (len(of), sum(of)), "sliding": lambda of: (len(of), sum(of)),
    }  # fmt: skip
    return {
        name: ZSet(
            Counter(
                (*key, *shown.get(name, lambda of: (len(of),))(of)) for key, of in groups.items()
            )
        )
        for name, groups in found.items()
    }


def starting(day: date, size: int, every: int) -> list[tuple[date, date]]:
    """The windows of so many days around a day, which start every so often since 1970."""
    days = [day - timedelta(days=back) for back in range(size)]
    return [
        (each, each + timedelta(days=size))
        for each in days
        if (each - date(1970, 1, 1)).days % every == 0
    ]


# ---- rows near a change of clocks ----


def sale(dice: Random, zone: str, near: datetime | None = None) -> Sale:
    """A sale near the change of clocks, often right at it, now and then days away."""
    change = near or PLACES[zone].replace(tzinfo=UTC)
    off = dice.choice([
        timedelta(minutes=dice.choice([-61, -60, -31, -30, -1, 0, 1, 15, 29, 30, 59, 60, 61])),
        timedelta(minutes=dice.randrange(-1500, 1500)),
        timedelta(hours=dice.randrange(-24 * 9, 24 * 9)),
    ])  # fmt: skip
    at = change + off
    local = at.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
    return Sale(dice.choice("ab"), at, local, local.date(), dice.randrange(5))


class Shop:
    """Changes of rows that are there, and what is let in where some are late."""

    def __init__(self, zone: str, seed: int, late: bool = False) -> None:
        self.dice, self.zone, self.late = Random(f"{zone} {seed}"), zone, late
        self.there: ZSet[Sale] = ZSet()
        self.latest: datetime | None = None
        self.put_aside = 0

    def change(self, most: int = 8) -> ZSet[Sale]:
        dice, change = self.dice, ZSet[Sale]()
        closing = None if self.latest is None else self.latest - LATENESS
        for _ in range(dice.randint(1, most)):
            old = [row for row in self.there + change if closing is None or row.at >= closing]
            if old and dice.random() < 0.35:
                change -= ZSet.of([dice.choice(sorted(old))])
            else:
                change += ZSet.of([sale(dice, self.zone)])
        total = self.there + change
        change += ZSet({row: -n for row, n in total.items() if n < 0})
        inside = change
        if self.late and closing is not None:
            inside = ZSet({row: n for row, n in change.items() if row.at >= closing})
            self.put_aside += sum(abs(n) for row, n in change.items() if row.at < closing)
        self.there += inside
        if self.late:
            times = [row.at for row in inside]
            self.latest = max([*times, *([self.latest] if self.latest else [])], default=None)
        return change

    @property
    def right(self) -> dict[str, ZSet[Any]]:
        return witness(self.zone, self.there)
