"""Windows of dates and of times without a zone, on columns.

A date is a word, the days since 1970, and a time its microseconds; so the windows of a calendar are
arithmetic, as those of a fixed size are. What Python refuses, None or a window beyond the year
9999, does not fit: rows say why. Times with a zone have no words.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

import numpy as np

from ebbflow.expression.node import Get
from ebbflow.flow.calendar import CalendarClock
from ebbflow.flow.windows import EPOCH, EPOCH_DAY, Tumbling, WindowClock
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arithmetic import Computed
from ebbflow.kernel.expressions import RowOnColumns, on_columns
from ebbflow.kernel.instructions import GIVEN, Sides
from ebbflow.kernel.words import NULL, Texts, WordForm, encoded, forms_of

MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1)
_LIMITS = {
    name: tuple(encoded(WordForm(name), [of.min, of.max], Texts()).tolist())
    for name, of in (("date", date), ("time", datetime))
}


def windows_on_columns(call: Any, row_type: Any, texts: Texts) -> RowOnColumns | None:
    """The rows of a type with their windows; None where the windows are not those of dates or of
    times without a zone, in a field."""
    forms = forms_of(row_type)
    if not isinstance(call, Tumbling) or forms is None or call.clock.row is None:
        return None
    of = call.clock.time.expression
    form = forms[of.index] if isinstance(of, Get) else None
    made = forms_of(call.clock.row)
    numbered = None if form is None else _numbered(call.clock, form.name)
    if form is None or made is None or numbered is None or form.name != made[-1].name:
        return None
    assert isinstance(of, Get)
    fields = [
        on_columns(Get(0, name, at), [row_type], texts)
        for at, name in enumerate(call.clock.row._fields[:-2])
    ]
    for later in (0, 1):
        computed = partial(_edges, of.index, form.name, *numbered, later)
        fields.append(Computed(WordForm(form.name), (GIVEN, computed)))
    return RowOnColumns(fields, made)


Words = Callable[[Any], Any]


def _numbered(clock: WindowClock, form: str) -> tuple[Words, Words] | None:
    """From the words of times to the numbers of their windows, and from numbers to where these
    windows start."""
    if form not in _LIMITS:
        return None
    if isinstance(clock, CalendarClock):
        return None if clock.zone is not None else _of_calendar(clock, form)
    every, origin = clock.every, clock.origin
    unit: Any = DAY if form == "date" else MICROSECOND
    if not isinstance(every, timedelta) or every % unit:
        return None
    epoch: Any = EPOCH_DAY if form == "date" else EPOCH
    origin = epoch if origin is None else origin
    if type(origin) is not type(epoch) or getattr(origin, "tzinfo", None) is not None:
        return None
    first, size = (origin - epoch) // unit, every // unit
    if size > _LIMITS[form][1]:
        return None
    return lambda words: (words - first) // size, lambda numbers: first + numbers * size


def _of_calendar(clock: CalendarClock, form: str) -> tuple[Words, Words] | None:
    """Months are counted by their first day, or by another day that every month has."""
    every, origin = clock.every, clock.origin
    if every > _LIMITS["date"][1]:
        return None
    in_a_day = 1 if form == "date" else DAY // MICROSECOND
    if not clock.months:
        first = (origin - EPOCH_DAY).days
        return (
            lambda words: (words // in_a_day - first) // every,
            lambda numbers: (first + numbers * every) * in_a_day,
        )
    month, days = 12 * (origin.year - 1970) + origin.month - 1, origin.day - 1

    def number(words: Any) -> Any:
        shifted = (words // in_a_day - days).view("datetime64[D]")
        return (shifted.astype("datetime64[M]").view(np.int64) - month) // every

    def start(numbers: Any) -> Any:
        months = (month + numbers * every).view("datetime64[M]")
        return (months.astype("datetime64[D]").view(np.int64) + days) * in_a_day

    return number, start


def _edges(at: int, form: str, number: Words, start: Words, later: int, sides: Sides) -> Any:
    """Where the windows of times start, or those that follow them."""
    words = np.ascontiguousarray(sides[0](at))
    if len(words) and words.min() == NULL:
        raise DoesNotFit("None as a time")
    found = np.ascontiguousarray(start(number(words) + later))
    low, high = _LIMITS[form]
    if len(found) and (found.min() < low or found.max() > high):
        raise DoesNotFit("a window beyond the years 1 to 9999")
    return found
