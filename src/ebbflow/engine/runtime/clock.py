"""Clocks: inputs that tell the time."""

from __future__ import annotations

import time
from datetime import date, datetime, tzinfo
from typing import Any

from ebbflow.change.requests import DeleteKeys, Request, Upsert
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.runtime.rows import Weights
from ebbflow.errors import ChangeError
from ebbflow.flow.plan import Source
from ebbflow.flow.plan.time import ClockSource
from ebbflow.flow.types import classes, notes
from ebbflow.record import fields_of, name_of


class ClockInput(KeyedInput):
    """A clock: an input of one row, which does not go back and is not taken away."""

    __slots__ = ()

    def apply(self, change: Any) -> Weights:
        """Be ready to apply a change: a time, or what any input takes."""
        if is_time(self.source, change):
            return self.request(Upsert([self.source.type(change)]))
        return self._ahead(super().apply(change))

    def request(self, request: Request) -> Weights:
        if isinstance(request, DeleteKeys):
            raise self._stays()
        return self._ahead(super().request(request))

    def _ahead(self, weights: Weights) -> Weights:
        was = [row.now for row, weight in weights.items() if weight < 0]
        now = [row.now for row, weight in weights.items() if weight > 0]
        if was and not now:
            raise self._stays()
        if was and now[0] < was[0]:
            raise ChangeError(
                f"input {self.name!r}: a clock cannot go back",
                was=was[0],
                now=now[0],
                created=self.source.place,
                remedy="a time that is not before the last one; nothing was changed",
            )
        return weights

    def _stays(self) -> ChangeError:
        return ChangeError(
            f"input {self.name!r}: a clock cannot be taken away",
            created=self.source.place,
            remedy=f"view.input({self.name!r}).set(time)",
        )


def is_time(source: Source, given: Any) -> bool:
    """Whether what is given as a change of an input is the time that a clock is set to."""
    return isinstance(source, ClockSource) and isinstance(given, (int, float, date))


def _hint(source: Source) -> Any:
    return (fields_of(source.type) or {}).get("now", Any)


def no_time(source: Source, given: Any) -> ChangeError:
    """The error for what no clock can be set to, or for an input that is no clock."""
    if not isinstance(source, ClockSource):
        what = f"set: input {source.name!r} is no clock"
        remedy = f"ebbflow.clock({source.name!r}) for the time; rows by add, remove and upsert"
    else:
        what = f"input {source.name!r}: a clock is set to a time"
        remedy = f"a time of type {name_of(_hint(source))}"
    return ChangeError(what, given=given, created=source.place, remedy=remedy)


def wall_time(source: ClockSource) -> Any:
    """The time of this machine, of the type of a clock."""
    hint = _hint(source)
    (cls,) = classes(hint) or (int,)
    if cls is datetime:
        zones = [each for each in notes(hint) if isinstance(each, tzinfo)]
        return datetime.now(*zones)
    if cls is date:
        return date.today()
    return cls(time.time())
