"""The state of each output of a program: its rows.

An output that the machine can read from its own state is not kept a second time. One that it can
compute from its state is kept from when it is first asked for: until then nobody pays for it. Where
it has one row for each row of the state, and a change replaces many of them, it is let go again: to
compute it when somebody asks costs less than to keep so many changed rows. The rows of any other
output are kept here, and tell on a function that does not do the same twice: what was
made of a row is taken back when the row is, and must then be there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ebbflow.engine.runtime.rows import Rows, Weights
from ebbflow.errors import NotDeterministic
from ebbflow.flow.plan import Plan
from ebbflow.zset import ZSet, from_view

MANY = 1000
"""So many changed rows are kept, however few there are."""


class OutputState:
    """One output: its rows, kept here or read from the machine, and the last snapshot of them."""

    __slots__ = ("_read", "_row_by_row", "_when_negative", "_whole", "origin", "rows", "seen")

    def __init__(
        self,
        name: str,
        machine: Any,
        row_type: Any = Any,
        *,
        negative: bool,
        trusting: bool,
        whole: Callable[[], Weights] | None = None,
    ) -> None:
        self.origin = row_type, False
        self._read = _reader(machine, name)
        self._whole = whole
        self._when_negative = None if negative else partial(_when_negative, name, trusting)
        self.rows: Rows | None = None
        if self._read is None and whole is None:
            self.rows = Rows(self._when_negative)
        stage = None if whole is None else machine.by_slot.get(machine.outputs[name])
        self._row_by_row = stage is not None and stage.row_by_row
        self.seen: ZSet[Any] | None = None

    def prepare(self, delta: Any) -> Rows | None:
        """The rows that are kept, ready to `keep` a change; None where they are let go."""
        rows = self.rows
        assert rows is not None
        if self._row_by_row and len(delta) > MANY and len(rows.rows) < 2 * len(delta):
            self.rows = None
            return None
        rows.prepare(delta)
        return rows

    def value(self) -> ZSet[Any]:
        """All rows, as of the last epoch."""
        if self.seen is None:
            self.seen = self._now()
        return self.seen

    def _now(self) -> ZSet[Any]:
        if self._read is None and self.rows is None:
            rows = Rows(self._when_negative)
            rows.rows = self.whole()
            self.rows = rows
        return from_view(self.whole(), self.origin)

    def whole(self) -> Weights:
        """All rows with their weights, as of the last epoch."""
        if self._read is not None:
            return self._read()
        if self.rows is not None:
            return self.rows.whole()
        assert self._whole is not None
        return self._whole()


def _reader(machine: Any, name: str) -> Callable[[], Weights] | None:
    """How the machine gives all rows of an output; None where the view must keep them."""
    read = getattr(machine, "read", None)
    if read is None or read(name) is None:
        return None
    return partial(read, name)


def _when_negative(name: str, trusting: bool, row: Any, there: int, taken: int) -> NotDeterministic:
    return NotDeterministic(
        f"output {name!r}: a row is taken back that is not there, or not that often",
        row=row,
        there=there,
        taken=taken,
        remedy="let every function in the program give the same answer for the same row, and "
        "change no row"
        + ("; inputs are trusted here (check_input=False), and may be at fault" * trusting),
    )


def may_be_negative(plan: Plan) -> dict[str, bool]:
    """For each output whether its rows may have negative weights: there is a `-` before it, and
    nothing in between that gives bags only.

    >>> from ebbflow.flow.plan import Concat, Distinct, Source
    >>> a, b = Source(name="a"), Source(name="b")
    >>> minus = Concat(parts=(a, b), signs=(1, -1))
    >>> may_be_negative(Plan({"minus": minus, "set": Distinct(parent=minus)}))
    {'minus': True, 'set': False}
    """
    return {name: not node.bag for name, node in plan.outputs.items()}
