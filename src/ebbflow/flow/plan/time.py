"""Nodes on rows with a time, beside `Sessions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ebbflow.flow.plan import Keyed
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
