"""Verbs on rows that happen at some time."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from ebbflow.flow import windows
from ebbflow.flow.calendar import any_clock
from ebbflow.flow.parts import Part
from ebbflow.flow.verbs.base import Verbs, no_collection
from ebbflow.flow.within import kept_within
from ebbflow.typevars import T_co

if TYPE_CHECKING:
    from ebbflow.flow.collection import Collection

Zone = str | tzinfo | None


class TimeVerbs(Verbs[T_co]):
    """What is made of rows with a time."""

    def tumbling(
        self, time: Part[T_co], size: Any = None, *, days: int | None = None,
        weeks: int | None = None, months: int | None = None, quarters: int | None = None,
        years: int | None = None, zone: Zone = None, origin: Any = None,
    ) -> Collection[Any]:  # fmt: skip
        """Every row with the window of this size that its time is in: `window_start`, `window_end`.

        The size is in the unit of the times, or a timedelta. Windows of so many `days`, `weeks`,
        `months`, `quarters` or `years` follow the calendar, for aware times that of `zone`.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> ef.Input("hits", record("Hit", page=str, at=int)).tumbling("at", 60).type._fields
        ('page', 'at', 'window_start', 'window_end')
        >>> from datetime import UTC, datetime
        >>> from typing import Annotated
        >>> sales = ef.Input("sales", record("Sale", at=Annotated[datetime, UTC]))
        >>> sales.tumbling("at", months=1, zone="Europe/Rome")
        <Sale(at, window_start, window_end): sales → map>
        """
        periods = {
            "days": days, "weeks": weeks, "months": months, "quarters": quarters, "years": years
        }  # fmt: skip
        clock = any_clock("tumbling", self.node, time, size, size, origin, periods, zone)
        return self.with_node(windows.tumbled(self.node, clock))

    def sliding(
        self, time: Part[T_co], size: Any = None, every: Any = None, *, days: int | None = None,
        weeks: int | None = None, months: int | None = None, quarters: int | None = None,
        years: int | None = None, zone: Zone = None, origin: Any = None,
    ) -> Collection[Any]:  # fmt: skip
        """Every row once for each window that its time is in; a new window starts every `every`.

        With `days`, `weeks`, `months`, `quarters` or `years`, `every` is a number of the same:
        `days=7, every=1` are the last seven days, day by day.

        >>> import ebbflow as ef
        >>> ef.Input("hits", int).sliding(lambda hit: hit, 60, 30)
        <tuple[int, Any, Any]: hits → flat_map>
        """
        periods = {
            "days": days, "weeks": weeks, "months": months, "quarters": quarters, "years": years
        }  # fmt: skip
        clock = any_clock("sliding", self.node, time, size, every, origin, periods, zone)
        return self.with_node(windows.slid(self.node, clock))

    def session(
        self, time: Part[T_co], gap: Any, *, per: Part[T_co] | None = None
    ) -> Collection[Any]:
        """Every row with its session: rows of one `per` that follow each other within `gap`.

        The session starts with its first row and ends `gap` after its last.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> hits = ef.Input("hits", record("Hit", user=str, at=int))
        >>> hits.session("at", 600, per="user")
        <Hit(user, at, window_start, window_end): hits → session>
        """
        return self.with_node(windows.in_sessions(self.node, time, gap, per))

    def within(
        self, time: Part[T_co], clock: Collection[Any], span: Any = None, *,
        days: float | None = None, hours: float | None = None, minutes: float | None = None,
        seconds: float | None = None,
    ) -> Collection[T_co]:  # fmt: skip
        """The rows whose time has come, and was less than a span ago: `now - span < time <= now`.

        `clock` tells the time: `ebbflow.clock(name)`, or any collection of one row with one field.
        As it moves on, rows come in and are withdrawn; as long as it tells no time there are none.
        Rows that are over are forgotten, so what is kept is bounded. The span is in the unit of the
        times, or a timedelta, which can also be said in days and hours.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> hits = ef.Input("hits", record("Hit", page=str, at=int))
        >>> view = hits.within("at", ef.clock("now"), 60).agg(n=ef.count()).run()
        >>> view.step(hits=[hits.type("a", 100), hits.type("a", 130)], now=140)
        ZSet({Group(n=2): 1})
        >>> view.input("now").set(175)
        ZSet({Group(n=2): -1, Group(n=1): 1})
        """
        if not isinstance(clock, Verbs):
            no_collection("within(...)", clock, "the clock")
        parts = {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
        return self.with_node(kept_within(self.node, time, clock.node, span, parts))
