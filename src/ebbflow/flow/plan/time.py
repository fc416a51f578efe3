"""Nodes on rows with a time, beside `Sessions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ebbflow.flow.plan import Keyed, Source
from ebbflow.fn import Fn


@dataclass(frozen=True, eq=False, kw_only=True)
class SessionReduce(Keyed):
    """One row for each session: some parts of it, then the reducer's result. (Made by a rewrite.)

    It is a `Reduce` of `Sessions` whose groups are the sessions. `front` says which parts: 0 is the
    start of the session, 1 its end, 2 and so on the parts of its key, of which there are `width`;
    0 where there is no key. With `spread` the result is a tuple and is spread.
    """

    verb = "session reduce"
    time: Fn
    gap: Any
    reducer: Any
    front: tuple[int, ...]
    width: int
    spread: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class ClockSource(Source):
    """An input of one row, the time; it does not go back."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Within(Keyed):
    """The rows whose time has come, and was less than `span` ago.

    Its parent gives pairs: `(ROW, row)` for the rows, and `(NOW, time)` for the one time it is, if
    it is told. A row is within while `now - span < time(row) <= now`. `pane` numbers pieces
    of time: it says how rows are kept, and nothing about what they are.
    """

    verb = "within"
    ROW: ClassVar[int] = 0
    NOW: ClassVar[int] = 1
    time: Fn
    span: Any
    pane: Any
