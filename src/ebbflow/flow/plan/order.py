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
