"""Nodes that look at the rows of a key in an order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ebbflow.flow.plan import Keyed
from ebbflow.fn import Fn


@dataclass(frozen=True, eq=False, kw_only=True)
class Ordered(Keyed):
    """A node on the rows of each key in the order of `order(row)`.

    The order is `ebbflow.ordering.total_order_key`. Rows at the same place are ordered by
    themselves, and a row that is there several times is there several times in a row.
    """

    order: Fn


@dataclass(frozen=True, eq=False, kw_only=True)
class Scan(Ordered):
    """What a transition says of the rows of each key, in order."""

    verb = "scan"
    transition: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class Fold(Ordered):
    """One row for each key that has rows: the key's parts, then the state of a transition behind
    the last of the rows, in order."""

    verb = "fold"
    transition: Any
    width: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Over(Ordered):
    """Every row with the values of window functions: `merge(row, values)`."""

    verb = "over"
    functions: tuple[Any, ...]
    merge: Any


@dataclass(frozen=True, kw_only=True)
class PatternStep:
    """One step of a pattern: a row that fits, or with a `reducer` one or more, of which that is
    taken. A row for which `unless` is true ends what waits for this step."""

    name: str
    fits: Fn
    unless: Fn | None = None
    reducer: Any = None

    @property
    def many(self) -> bool:
        """Whether it takes more than one row."""
        return self.reducer is not None


@dataclass(frozen=True, eq=False, kw_only=True)
class Match(Ordered):
    """One row for each match of a pattern in the rows of a key: the key's parts, then what each of
    the `steps` took.

    A match is tried from each row that fits the first step. From there on, a row goes to the step
    that takes many, if one is taking and it fits; otherwise to the next step, if it fits; otherwise
    it is passed over, or with `adjacent` ends the try. A row that is more than `within` behind the
    first one ends it too, and so does one for which `unless` is true of a step that would take it.
    A try that ended, or came to the end of the rows, matches if every step has its rows. After a
    match the next one is tried behind its last row, otherwise from the next row that fits.
    """

    verb = "match"
    steps: tuple[PatternStep, ...]
    width: int
    within: Any = None
    adjacent: bool = False
