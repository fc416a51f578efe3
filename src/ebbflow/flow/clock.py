"""Time as an input, and rows that are there for a span of it.

A program has no time of its own: what it gives depends on its inputs and on nothing else. So the
time comes in as an input, a *clock*: a collection of one row, `Clock(now)`, which the user sets, or
`view.tick()` by the wall clock. What depends on it moves when it does, by exactly the difference.
Any collection of one row with one field will do as a clock, such as the latest time among the rows
themselves, `events.agg(now=ebbflow.max("at"))`; but no clock may go back.
"""

from __future__ import annotations

from typing import Any

from ebbflow.errors import place
from ebbflow.flow import types
from ebbflow.flow.parts import refuse
from ebbflow.flow.plan import Source
from ebbflow.flow.plan.time import ClockSource
from ebbflow.flow.source import Input
from ebbflow.flow.within import TIME_CLASSES
from ebbflow.keywords import checked
from ebbflow.record import fields_of, name_of, record


class Clock(Input[Any]):
    """The time, as an input; see `clock`."""

    def __init__(self, name: str, type: Any) -> None:
        plain = types.classes(type)
        if plain is None or len(plain) != 1 or plain[0] not in TIME_CLASSES:
            refuse(
                f"clock({name!r}, ...): the time is an int, a float, a date or a datetime",
                f"clock({name!r}, datetime), of the same hint as the times of the rows",
                given=type,
            )
        super().__init__(name, record("Clock", now=type), key=_only)
        node = self.node
        assert isinstance(node, Source)
        made = ClockSource(name=name, type=node.type, key=node.key, place=place())
        object.__setattr__(self, "node", made)

    def __repr__(self) -> str:
        assert isinstance(self.node, Source)
        hint = name_of((fields_of(self.node.type) or {})["now"])
        return f"clock({self.node.name!r}{'' if hint == 'int' else f', {hint}'})"


def _only(row: Any) -> int:
    """The key of a clock's row: there is one."""
    return 0


@checked
def clock(name: str, type: Any = int) -> Clock:
    """The time, as an input of one row `Clock(now)`: an int, a float, a date or a datetime.

    It is set by `view.input(name).set(time)`, in a step with other changes by `name=time`, or to
    the time of this machine's clock by `view.tick()`. It does not go back.

    >>> import ebbflow as ef
    >>> from ebbflow.record import record
    >>> hits = ef.Input("hits", record("Hit", page=str, at=int))
    >>> view = hits.within("at", ef.clock("now"), 60).run()
    >>> view.step(hits=[hits.type("a", 100), hits.type("b", 130)], now=120)
    ZSet({Hit(page='a', at=100): 1})
    >>> view.input("now").set(160)
    ZSet({Hit(page='a', at=100): -1, Hit(page='b', at=130): 1})
    >>> view.input("now").set(150)
    Traceback (most recent call last):
    ebbflow.errors.ChangeError: input 'now': a clock cannot go back
        was        160
        now        150
        created    <doctest ebbflow.flow.clock.clock[3]>:1
        try        a time that is not before the last one; nothing was changed
    """
    return Clock(name, type)
