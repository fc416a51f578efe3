"""Nodes on two collections whose rows meet by key and by their places in an order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ebbflow.flow.plan import Node
from ebbflow.fn import Fn


@dataclass(frozen=True, eq=False, kw_only=True)
class Aligned(Node):
    """A node with two parents, whose rows meet where their keys are equal and their places near.

    The place of a row is `left_order(row)` or `right_order(row)`, in the order of
    `ebbflow.ordering.total_order_key`; a row whose place is None meets nothing. Rows of negative
    weight are refused.
    """

    left: Node
    right: Node
    left_key: Fn
    right_key: Fn
    left_order: Fn
    right_order: Fn

    @property
    def parents(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def _is_bag(self) -> bool:
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class AsOf(Aligned):
    """Every row of the left with one row of the right: `merge(left, right)`.

    `direction` "backward" is the last right row whose place is not behind that of the left row;
    "forward" the first whose place is not before it; "nearest" the nearer of the two, and the one
    before where both are as far. Rows at one place are ordered by themselves. With a `tolerance` it
    is at most so far away; unless `exact` its place is another. A left row that finds none is
    `alone(left)`, or left out.
    """

    verb = "asof_join"
    merge: Fn
    alone: Fn | None
    direction: str = "backward"
    tolerance: Any = None
    exact: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class Interval(Aligned):
    """`merge(left, right)` for every two rows with equal keys and `low <= right place - left place
    <= high`; weights multiply."""

    verb = "interval_join"
    merge: Fn
    low: Any
    high: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalSemi(Aligned):
    """The rows of the left for which there is a row of the right with an equal key and `low <=
    right place - left place <= high`; with `anti`, those for which there is none."""

    verb = "interval_semi"
    low: Any
    high: Any
    anti: bool = False
