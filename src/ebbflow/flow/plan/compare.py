"""Nodes that compare rows of two collections: joins on inequalities, and scalar sub-queries."""

from __future__ import annotations

from dataclasses import dataclass

from ebbflow.flow.plan import Binary
from ebbflow.fn import Fn


@dataclass(frozen=True)
class Comparison:
    """`left(l) sign right(r)`, in the total order of `ebbflow.ordering`; not where one is None.

    The sign is `<`, `<=`, `>`, `>=` or `!=`.
    """

    left: Fn
    sign: str
    right: Fn

    def __str__(self) -> str:
        return f"{self.left.text} {self.sign} {self.right.text}"


@dataclass(frozen=True, eq=False, kw_only=True)
class CompareJoin(Binary):
    """`merge(l, r)` for every two rows with equal keys for which all comparisons hold; weights
    multiply."""

    verb = "join"
    where: tuple[Comparison, ...]
    merge: Fn


@dataclass(frozen=True, eq=False, kw_only=True)
class CompareSemi(Binary):
    """The rows of the left for which there is a row of the right with the same key for which all
    comparisons hold; with `anti`, for which there is none. The right is a bag."""

    verb = "semi"
    where: tuple[Comparison, ...]
    anti: bool = False

    def _is_bag(self) -> bool:
        return self.left.bag


@dataclass(frozen=True, eq=False, kw_only=True)
class ScalarFilter(Binary):
    """The rows of the left for which `fn(row, one)` is true, where `one` is the one row of the
    right that has the same key; none where there is no such row. That there are more is an error.

    A `threshold` says that the condition is that comparison, as Python means it.
    """

    verb = "filter"
    fn: Fn
    threshold: Comparison | None = None

    def _is_bag(self) -> bool:
        return self.left.bag
