"""The verb that finds patterns of events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ebbflow.flow.match import Awaited, Condition, matched
from ebbflow.flow.parts import Part, refuse
from ebbflow.flow.verbs.base import Verbs
from ebbflow.typevars import T_co

if TYPE_CHECKING:
    from ebbflow.flow.collection import Collection


class MatchVerbs(Verbs[T_co]):
    """Patterns in the rows of each key in an order."""

    def match(
        self, steps: Mapping[str, Condition[T_co] | Awaited[T_co]] | None = None, /, *,
        order: Part[T_co], per: Part[T_co] | None = None, within: Any = None,
        adjacent: bool = False, **named: Condition[T_co] | Awaited[T_co],
    ) -> Collection[Any]:  # fmt: skip
        """One row for each time that the rows of a key, in order, go through some steps: the key,
        and for each step the row that took it.

        A step is a condition on a row: `view=lambda row: row.kind == "view"`; `ebbflow.many(...)`
        takes one row or more, and `ebbflow.once(..., unless=...)` also says what ends the wait. A
        step whose name is that of an option, such as `order`, is given in a dict, which comes
        first. Rows that fit no step that is waited for are passed over; with `adjacent`, the rows
        of a match stand next to each other. All are at most `within` behind the first one.

        Matches do not overlap: the earliest row from which there is one begins it, each step takes
        the first row that it can, and the next match begins behind the last row. (MATCH_RECOGNIZE
        with AFTER MATCH SKIP PAST LAST ROW.)

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Event = record("Event", user=str, at=int, kind=str)
        >>> events = ef.Input("events", Event)
        >>> bought = events.match(view=lambda e: e.kind == "view", buy=lambda e: e.kind == "buy",
        ...                       per="user", order="at", within=60)
        >>> view = bought.select("user", seconds=lambda m: m.buy.at - m.view.at).run()
        >>> view.step(events=[Event("ann", 10, "view"), Event("ann", 90, "buy")])
        ZSet({})
        >>> view.step(events=[Event("ann", 50, "view")])
        ZSet({Row(user='ann', seconds=40): 1})
        """
        given: dict[str, Any] = dict(steps or {})
        for name, step in named.items():
            if name in given:
                refuse(f"match({name}=...): the step {name!r} is given twice", "each step once")
            given[name] = step
        return self.with_node(matched(self.node, given, per, order, within, adjacent))
