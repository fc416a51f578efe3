"""Comparisons of values of two rows, and how to find the rows for which they hold.

A *comparison* is a sign and a value of each side: `l.at >= r.start`. Several hold together. With
the rows of one side in the order of their first value (`ebbflow.state.ordered`), those that a row
of the other side meets are between two cuts; the tree knows of each of its parts how small or great
the other values in it are, so parts without a match are left out. Two comparisons, as of a value
with both ends of an interval, are thus answered in the time of going down the tree, and of what is
found. (With the first value the start and the greatest end as total, that is an interval tree.)

Values are compared in the total order of `ebbflow.ordering`; but a value that is None compares with
nothing, as in SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ebbflow.nan import one_nan
from ebbflow.ordering import total_order_key
from ebbflow.state.ordered import Cut, Spot, Totals, between, cut
from ebbflow.state.tree import Tree

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
"""Each sign as it is read from the other side."""


def holds(sign: str, a: Any, b: Any) -> bool:
    """Whether a comparison holds.

    >>> holds("<", 1, 2), holds("!=", "a", "a"), holds("<", None, 1)
    (True, False, False)
    """
    if a is None or b is None:
        return False
    one, other = total_order_key(a), total_order_key(b)
    if sign == "!=":
        return one != other
    if sign in ("<", "<="):
        return one < other or (sign == "<=" and one == other)
    return one > other or (sign == ">=" and one == other)


@dataclass(frozen=True)
class Place:
    """The spot of a row: its values in the comparisons, one after the other; None where one is."""

    values: tuple[Callable[[Any], Any], ...]

    def __call__(self, row: Any) -> Spot | None:
        found = tuple([one_nan(value(row)) for value in self.values])
        return None if None in found else found


@dataclass(frozen=True)
class Finder:
    """Finds spots for which these comparisons hold with given values: `spot[i] sign[i] value[i]`.

    The first sign is one of order, if any is.
    """

    signs: tuple[str, ...]

    @property
    def totals(self) -> Totals | None:
        """What a tree of the spots has to know of its parts."""
        if len(self.signs) == 1:
            return None
        return Totals(_Outline(self.signs), _Together(self.signs))

    def range(self, tree: Tree[Spot], value: Any) -> tuple[Cut | None, Cut | None]:
        """Between which cuts the first comparison holds; for `!=`, it may."""
        sign = self.signs[0]
        if sign == "!=":
            return None, None
        edge = cut(tree, value, behind=sign in ("<=", ">"))
        return (None, edge) if sign in ("<", "<=") else (edge, None)

    def find(self, tree: Tree[Spot], values: Spot) -> Iterator[Spot]:
        """The spots that meet these values, in order."""
        signs = self.signs
        first, rest = signs[0], tuple(zip(signs, values, strict=True))[1:]
        after, before = self.range(tree, values[0])
        keep = _Keep(rest) if rest else None
        found = between(tree, after, before, keep)
        if first == "!=":
            found = (spot for spot in found if holds("!=", spot[0], values[0]))
        return found if keep is None else filter(keep.exactly, found)

    def meets(self, tree: Tree[Spot], values: Spot | None) -> bool:
        """Whether any spot meets these values."""
        if values is None or not tree.distinct:
            return False
        return next(self.find(tree, values), None) is not None

    def turned(self, tree: Tree[Spot], old: Tree[Spot], new: Tree[Spot]) -> Iterator[Spot] | None:
        """The spots of a tree that met some value of one tree and none of the other, where one
        comparison tells it without a look at any others; else None."""
        if len(self.signs) > 1:
            return None
        if self.signs[0] == "!=":
            return _turned_unequal(tree, old, new)
        was, now = self._strongest(old), self._strongest(new)
        if was == now:
            return iter(())
        if was is None or now is None:
            one = was or now
            assert one is not None
            return between(tree, *self.range(tree, one[0]))
        if total_order_key(was[0]) > total_order_key(now[0]):
            was, now = now, was
        low, high = (self.range(tree, each[0]) for each in (was, now))
        return between(tree, low[0] or low[1], high[0] or high[1])

    def _strongest(self, others: Tree[Spot]) -> Spot | None:
        """Of the values on the other side the one that all are met by whom any is met by."""
        if not others.distinct:
            return None
        return others.last if self.signs[0] in ("<", "<=") else others.first


def _turned_unequal(tree: Tree[Spot], old: Tree[Spot], new: Tree[Spot]) -> Iterator[Spot]:
    """A value differs from some other unless there is none, or it is the only one."""
    alone = [None if each.distinct != 1 else each.first for each in (old, new)]
    if not old.distinct or not new.distinct:
        there = new if new.distinct else old
        only = alone[0] or alone[1]
        if not there.distinct:
            return iter(())
        return (spot for spot, _ in tree if spot != only)
    if alone[0] == alone[1]:
        return iter(())
    return (each for each in dict.fromkeys(alone) if each is not None and each in tree)


@dataclass(frozen=True)
class _Outline:
    """What is known of a spot, for every comparison but the first: its value, which is the smallest
    or greatest so far, or for `!=` the values themselves."""

    signs: tuple[str, ...]

    def __call__(self, spot: Spot) -> tuple[Any, ...]:
        pairs = zip(self.signs[1:], spot[1:], strict=True)
        return tuple([(value,) if sign == "!=" else value for sign, value in pairs])


@dataclass(frozen=True)
class _Together:
    """What is known of two parts together: the smaller where something greater is asked for, the
    greater where something smaller is; for `!=` two different values, which are enough."""

    signs: tuple[str, ...]

    def __call__(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        found = []
        for sign, a, b in zip(self.signs[1:], one, other, strict=True):
            if sign == "!=":
                found.append(tuple(dict.fromkeys((*a, *b)))[:2])
            elif sign in ("<", "<="):
                found.append(min(a, b, key=total_order_key))
            else:
                found.append(max(a, b, key=total_order_key))
        return tuple(found)


class _Keep:
    """Whether a part of a tree may have a spot that meets values, and whether a spot does."""

    __slots__ = ("asked",)

    def __init__(self, asked: tuple[tuple[str, Any], ...]) -> None:
        self.asked = asked

    def __call__(self, outline: tuple[Any, ...]) -> bool:
        for (sign, value), known in zip(self.asked, outline, strict=True):
            if sign == "!=":
                if not any(holds(sign, each, value) for each in known):
                    return False
            elif not holds(sign, known, value):
                return False
        return True

    def exactly(self, spot: Spot) -> bool:
        """Whether all comparisons but the first hold for a spot."""
        return all(
            holds(sign, each, value)
            for (sign, value), each in zip(self.asked, spot[1:], strict=True)
        )
