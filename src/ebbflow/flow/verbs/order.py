"""Verbs on the rows of a key in an order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from ebbflow.flow import order as ordered
from ebbflow.flow.match import Awaited, Condition, matched
from ebbflow.flow.parts import Part, refuse
from ebbflow.flow.verbs.base import Verbs
from ebbflow.stream import Processor
from ebbflow.typevars import T_co, U

if TYPE_CHECKING:
    from ebbflow.flow.collection import Collection


class OrderVerbs(Verbs[T_co]):
    """What is made of the rows of each key in an order. A row that comes late, is corrected or is
    withdrawn in the middle changes exactly what it would have changed had it been there in time."""

    @overload
    def scan(
        self, step: Callable[[Any, T_co], tuple[Any, Iterable[U]]] | Processor[Any, Any],
        start: Any = None, *, order: Part[T_co], per: Part[T_co] | None = None,
    ) -> Collection[U]: ...  # fmt: skip
    @overload
    def scan(
        self, step: Callable[[Any, T_co], Any] | Processor[Any, Any], start: Any = None, *,
        order: Part[T_co], per: Part[T_co] | None = None, type: type[U],
    ) -> Collection[U]: ...  # fmt: skip
    @overload
    def scan(
        self, step: Callable[[Any, T_co], Any] | Processor[Any, Any], start: Any = None, *,
        order: Part[T_co], per: Part[T_co] | None = None, type: object,
    ) -> Collection[Any]: ...  # fmt: skip
    def scan(
        self, step: Any, start: Any = None, *, order: Any, per: Any = None, type: Any = None
    ) -> Collection[Any]:
        """The rows of each key in order through `step(state, row)`, which gives the next state and
        a list of rows; or through a stream processor of lists. What comes out are those rows.

        The first state is `start`. Steps leave the state that they are given as it is. A late row
        costs what is said otherwise: rows are stepped through until the state is the old one again.
        `type` is the type of the rows that come out.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Door = record("Door", at=int, event=str)
        >>> doors = ef.Input("doors", Door)
        >>> def opened(before, row):
        ...     return row.event, [row.at] if (before, row.event) == ("shut", "open") else []
        >>> view = doors.scan(opened, "shut", order="at", type=int).run()
        >>> view.step(doors=[Door(1, "open"), Door(4, "open"), Door(9, "shut")])
        ZSet({1: 1})
        >>> view.step(doors=[Door(2, "shut")])
        ZSet({4: 1})
        """
        return self.with_node(ordered.scanned(self.node, step, start, per, order, type))

    def fold(
        self, step: Callable[[Any, T_co], Any] | Processor[Any, Any], start: Any = None, *,
        order: Part[T_co], per: Part[T_co] | None = None,
        states: Iterable[Hashable] | None = None, of: Callable[[T_co], Any] | None = None,
        merge: Any = None, act: Callable[[Any, Any], Any] | None = None,
        cuts: Sequence[Any] = (), type: Any = None,
    ) -> Collection[Any]:  # fmt: skip
        """The state that `scan` would end in, for each key: rows `(key…, value)`. What steps say is
        not asked for.

        With all `states` that there are, or with a monoid that composes steps (`of`, `merge` and
        `act`; see `ebbflow.stream.transition`), a late row costs O(log n), wherever it comes. Then
        a long key can be cut at places in the order, `cuts`: the parts are composed for themselves,
        on Spark in tasks of their own, and then put together.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Door = record("Door", at=int, event=str)
        >>> doors = ef.Input("doors", Door)
        >>> view = doors.fold(lambda state, row: (row.event, []), order="at", type=str).run()
        >>> view.step(doors=[Door(4, "open"), Door(1, "shut")])
        ZSet({Group(value='open'): 1})
        """
        composed = {"states": states, "of": of, "merge": merge, "act": act}
        return self.with_node(
            ordered.folded(self.node, step, start, per, order, composed, cuts, type)
        )

    def over(
        self, *, order: Part[T_co], per: Part[T_co] | None = None, rows: Any = ordered.RUNNING,
        range: Any = None,
    ) -> ordered.Ordering[T_co]:  # fmt: skip
        """The rows of each key in an order, for window functions and reducers of a frame of rows:
        `over(per="user", order="at").with_fields(n=ebbflow.window.row_number())`.

        Reducers are of all rows up to this one; with `rows=7` of this one and the six before it,
        with `rows=(-3, 3)` of the rows around it, with `rows=None` of all rows of the key; with
        `range=60` of those whose place is at most 60 before this one's.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Day = record("Day", day=int, rain=int)
        >>> days = ef.Input("days", Day)
        >>> week = days.over(order="day", range=6).with_fields(week=ef.sum("rain"))
        >>> week.run().step(days=[Day(1, 5), Day(5, 3), Day(9, 2)])
        ZSet({Day(day=1, rain=5, week=5): 1, Day(day=5, rain=3, week=8): 1, \
Day(day=9, rain=2, week=5): 1})
        """
        return ordered.Ordering(self, per, order, rows, range)

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
