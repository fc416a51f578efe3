"""Gates: inputs that put late rows aside, and what is forgotten behind them.

An input with a lateness has a *gate*. Before an epoch its *closing* is known: the latest time that
was let in so far, less the lateness. A change of a row whose time is before it is *late*: it is put
aside and counted, the others are let in. So what is late depends on when it came, and the view is a
function of what was *let in*, in whatever epochs that came: computed from scratch of all of it, it
is the same. The latest time, and what was put aside, become part of the state in the same commit as
the epoch.

Behind the gate, nothing before the closing changes any more. So the input forgets rows with such a
time, and stages the groups that are closed (`ebbflow.flow.closing`): their rows, accumulators and
trees. The results of closed groups are rows of the output and stay, and whatever is computed of
them stays as well. Nobody can tell when something was forgotten, so it is looked for now and then:
when as many rows have come as were left the last time. That costs each row a constant, and
what is kept is at most twice what is open, and a thousand rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ebbflow.change.requests import Request
from ebbflow.engine.runtime.closable import Closable, Forgotten, closed_keys
from ebbflow.engine.runtime.events import InputNotes
from ebbflow.engine.runtime.inputs import CheckedInput, absent
from ebbflow.engine.runtime.rows import Rows, Weights
from ebbflow.errors import ChangeError, CheckError, Text, cause_of, error_text
from ebbflow.flow.closing import UNKNOWN, Closings, bounds_of, instant
from ebbflow.flow.plan import Plan, Source
from ebbflow.record import fields_of
from ebbflow.zset import ZSet, trusted

if TYPE_CHECKING:
    from ebbflow.engine.runtime.machine import Machine

LEAST = 1000
"""From so many rows on it pays to look for what can be forgotten."""
LISTED = 100
"""So many of the changes that were put aside are kept."""
LATEST, LATE, LAST, FORGOTTEN = "latest", "late", "last", "forgotten"


@dataclass(frozen=True)
class LateRows:
    """What an input has put aside so far: how many changes of rows, and the last hundred of them,
    with their weights. What comes next with a time `before` this is late."""

    count: int
    last: tuple[tuple[Any, int], ...]
    before: Any


class Gate(InputNotes):
    """The latest time that was let in, how many changes were put aside, and the last of them.

    >>> import ebbflow as ef
    >>> from ebbflow.record import record
    >>> Hit = record("Hit", page=str, at=int)
    >>> gate = Gate(ef.Input("hits", Hit, time="at", lateness=10).node)
    >>> gate.let_in({Hit("a", 100): 1}); gate.keep(); gate.closing
    {Hit(page='a', at=100): 1}
    90
    >>> gate.let_in({Hit("a", 89): 1, Hit("b", 95): 1}); gate.keep(); gate.late()
    {Hit(page='b', at=95): 1}
    LateRows(count=1, last=((Hit(page='a', at=89), 1),), before=90)
    """

    __slots__ = ("source",)

    what = "gate"
    label = "gate of input"

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    @property
    def closing(self) -> Any:
        """Before which time rows are late; None while none are."""
        self.fetch((LATEST,))
        latest = self.rows.get(LATEST)
        if latest is None:
            return None
        try:
            return latest - self.source.lateness
        except OverflowError:  # so near to the beginning of time that nothing is before it
            return None

    def let_in(self, weights: Weights) -> Weights:
        """The part of a change that is not late; what `keep` will note is known then."""
        time, closing, latest = self.source.time, self.closing, self.rows.get(LATEST)
        assert time is not None
        late: Weights = {}
        row = at = None
        try:
            for row, weight in weights.items():
                at = instant(time(row))
                if closing is not None and at < closing:
                    late[row] = weight
                elif latest is None or at > latest:
                    if at is None or at != at:
                        raise TypeError(f"its time is {at}")
                    latest = at
        except TypeError as error:
            raise no_time(self.source, row, error_text(error)) from cause_of(error)
        self.note(latest, sum(map(abs, late.values())), late)
        return {row: n for row, n in weights.items() if row not in late} if late else weights

    def note(self, latest: Any, count: int, late: Mapping[Any, int]) -> None:
        """Be ready to have this latest time, and so many more changes put aside, with these the
        last of them."""
        self.fetch((LATE, LAST))
        self.waiting = {}
        if latest != self.rows.get(LATEST):
            self.waiting[LATEST] = latest
        if count:
            plain = [(_plain(row, self.source.type), weight) for row, weight in late.items()]
            last = (*self.rows.get(LAST, ()), *plain)[-LISTED:]
            self.waiting |= {LATE: self.rows.get(LATE, 0) + count, LAST: last}

    @property
    def forgotten(self) -> Any:
        """Before which time rows were forgotten; None where none were."""
        self.fetch((FORGOTTEN,))
        return self.rows.get(FORGOTTEN)

    def late(self) -> LateRows:
        """What was put aside so far."""
        self.fetch((LATE, LAST))
        last = [(self.source.type(*row), weight) for row, weight in self.rows.get(LAST, ())]
        return LateRows(self.rows.get(LATE, 0), tuple(last), self.closing)


def _plain(row: Any, row_type: Any) -> tuple[Any, ...]:
    """A row as a tuple, which can be stored without its class."""
    return tuple([getattr(row, name) for name in fields_of(row_type) or ()])


def no_time(source: Source, row: Any, why: str) -> ChangeError:
    """The error for a row of which nobody can tell whether it is late."""
    return ChangeError(
        f"input {source.name!r} has a lateness, and the time of a row cannot be compared",
        row=row,
        error=Text(why),
        created=source.place,
        remedy="a time of the declared type for every row",
    )


class GatedInput(CheckedInput):
    """An input with a gate. It keeps the rows that are not closed, to refuse what is taken away and
    not there, unless it is not to check that. Where it is `passive`, rows come in that somebody
    else has let in."""

    __slots__ = ("beside", "passive", "store")

    keeps = False
    beside: Gate

    def __init__(self, source: Source, check_input: bool) -> None:
        super().__init__(source)
        self.store = Rows(partial(absent, source)) if check_input else None
        self.beside = Gate(source)
        self.passive = False

    def apply(self, change: Any) -> Weights:
        weights = super().apply(change)
        if not self.passive:
            weights = self.beside.let_in(weights)
        if self.store is not None:
            self.store.prepare(weights)
        return weights

    def request(self, request: Request) -> Weights:
        raise ChangeError(
            f"{request.verb}: input {self.name!r} has a lateness, and forgets rows",
            created=self.source.place,
            remedy="rows that come, and rows that are withdrawn: step(name={row: -1})",
        )

    def keep(self) -> None:
        if self.store is not None:
            self.store.keep()

    def snapshot(self) -> ZSet[Any]:
        return trusted({}) if self.store is None else self.store.snapshot()

    @property
    def said(self) -> str:
        late = self.beside.late()
        until = "" if late.before is None else f", closed before {late.before}"
        return f"{len(self):,} rows{until}, {late.count:,} came late"

    def contents(self) -> ZSet[Any]:
        """The rows that are not forgotten."""
        return super().contents() if self.store is None else self.snapshot()

    def __len__(self) -> int:
        return 0 if self.store is None else len(self.store.rows)


# ---- what is forgotten ----


class Forgetting:
    """What can be forgotten of a program behind its gates, and when it was looked for last."""

    def __init__(self, machine: Machine, inputs: Mapping[str, Any]) -> None:
        self.gates = {n: state for n, state in inputs.items() if isinstance(state, GatedInput)}
        self.active = any(not state.passive for state in self.gates.values())
        """Whether it is here that rows are let in, and forgotten."""
        self.closable: Sequence[Closable] = machine.closable if self.gates else ()
        self.since = self.left = 0
        self.looked_at: Closings = {}
        self.paused = 0
        """How many others share the state, who may not have closed what is closed here."""

    def closings(self) -> Closings:
        """Before which time each gate is closed."""
        return {name: state.beside.closing for name, state in self.gates.items()}

    def due(self, came: int) -> list[Forgotten]:
        """What is forgotten with an epoch into which so many rows came. It is looked for before
        the epoch is kept: nothing that is closed by then is in a change of it."""
        self.since += came
        if self.paused or self.since < max(LEAST, self.left):
            return []
        closings = self.closings()
        if closings == self.looked_at:
            return []
        self.since, self.left, self.looked_at = 0, 0, closings
        found = []
        for name, state in self.gates.items():
            if state.store is not None:
                is_late = partial(_is_late, state.source.time, name)
                rows, left = closed_keys(is_late, state.store, closings)
                noted = {FORGOTTEN: closings[name]} if rows.after else {}
                found += [(rows, left), (Forgotten(state.beside, noted, noted), 0)]
        found += [each.closed(each.container, closings) for each in self.closable]
        self.left = sum(left for _, left in found)
        return [each for each, _ in found if each.after]


def _is_late(time: Any, name: str, row: Any, closings: Closings) -> bool:
    before = closings[name]
    return before is not None and bool(instant(time(row)) < before)


def late_rows(state: Any) -> LateRows:
    """What an input has put aside; an error for one that lets everything in."""
    if not isinstance(state, GatedInput):
        raise ChangeError(
            f"late: input {state.name!r} has no lateness, and nothing is late",
            created=state.source.place,
            remedy=f"Input({state.name!r}, ..., time=..., lateness=...)",
        )
    return state.beside.late()


# ---- what can be verified ----


def known_outputs(
    plan: Plan, known: Closings, *outputs: Mapping[str, ZSet[Any]]
) -> list[dict[str, ZSet[Any]]]:
    """Of outputs, the rows that depend on known rows of inputs alone: those of a time from which on
    they are all `known`. An error where that cannot be told of the rows of an output."""
    bounds, chosen = bounds_of(plan), {}
    for name, node in plan.outputs.items():
        gates = [each for each in Plan({name: node}).sources if known.get(each) is not None]
        fields = bounds[id(node)].items()
        chosen[name] = next(
            ((field, bound) for field, bound in fields if bound.before is not UNKNOWN), None
        )
        if gates and chosen[name] is None:
            raise CheckError(
                f"output {name!r} cannot be verified: rows that it was computed of are forgotten, "
                "and its own do not tell the time of theirs",
                inputs=Text(", ".join(gates)),
                remedy="window_start or window_end among the fields of the output",
            )

    def is_known(name: str, row: Any) -> bool:
        found = chosen[name]
        if found is None:
            return True
        field, bound = found
        first = bound.first(getattr(row, field))
        return all(first >= known[each] for each in bound.inputs if known[each] is not None)

    return [
        {name: rows.filter(partial(is_known, name)) for name, rows in each.items()}
        for each in outputs
    ]
