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

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ebbflow.nan import one_nan
from ebbflow.ordering import total_order_key
from ebbflow.state.spots import Spot, Spots, Totals, cut
from ebbflow.state.tree import Tree
from ebbflow.state.walk import Cut, between_cuts

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
"""Each sign as it is read from the other side."""


def holds(sign: str, a: Any, b: Any) -> bool:
    """Whether a comparison holds.

    >>> holds("<", 1, 2), holds("!=", "a", "a"), holds("<", None, 1)
    (True, False, False)
    """
    if a is None or b is None:
        return False
    if type(a) is type(b) and type(a) in _PLAIN:
        return bool(_SIGNS[sign](a, b))
    return bool(_SIGNS[sign](total_order_key(a), total_order_key(b)))


_PLAIN = {int, str, bytes}
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne,
}  # fmt: skip


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

    def find(self, spots: Spots, values: Spot) -> Iterator[Spot]:
        """The spots that meet these values."""
        pairs = tuple(zip(self.signs, values, strict=True))
        if not isinstance(spots, Tree):
            return (spot for spot in spots if _all_hold(pairs, spot))
        after, before = self.range(spots, values[0])
        if len(pairs) == 1:
            found = between_cuts(*spots.root, after, before)
        else:
            found = between_cuts(*spots.root, after, before, _Keep(pairs[1:]))
        if self.signs[0] != "!=" and len(pairs) == 1:
            return found
        return (spot for spot in found if _all_hold(pairs, spot))

    def meets(self, spots: Spots, values: Spot | None) -> bool:
        """Whether any spot meets these values."""
        if values is None or not spots:
            return False
        return next(self.find(spots, values), None) is not None

    def turned(self, spots: Spots, old: Spots, new: Spots) -> Iterator[Spot] | None:
        """The spots that met some of the old values and none of the new, or the other way, where
        one comparison tells it without a look at any others; else None."""
        if len(self.signs) > 1 or not isinstance(spots, Tree):
            return None
        if self.signs[0] == "!=":
            return _turned_unequal(spots, old, new)
        was, now = self._strongest(old), self._strongest(new)
        if was == now:
            return iter(())
        if was is None or now is None:
            one = was or now
            assert one is not None
            return between_cuts(*spots.root, *self.range(spots, one[0]))
        if total_order_key(was[0]) > total_order_key(now[0]):
            was, now = now, was
        low, high = (self.range(spots, each[0]) for each in (was, now))
        return between_cuts(*spots.root, low[0] or low[1], high[0] or high[1])

    def _strongest(self, others: Spots) -> Spot | None:
        """Of the values on the other side the one that all are met by whom any is met by."""
        if not others:
            return None
        greatest = self.signs[0] in ("<", "<=")
        if isinstance(others, Tree):
            return others.last if greatest else others.first
        return (max if greatest else min)(others, key=total_order_key)


def _all_hold(pairs: tuple[tuple[str, Any], ...], spot: Spot) -> bool:
    return all(holds(sign, each, value) for (sign, value), each in zip(pairs, spot, strict=True))


def _turned_unequal(spots: Tree[Spot], old: Spots, new: Spots) -> Iterator[Spot]:
    """A value differs from some other unless there is none, or it is the only one."""
    alone = [_only(each) for each in (old, new)]
    if not old and not new:
        return iter(())
    if not old or not new:
        only = alone[0] or alone[1]
        return (spot for spot, _ in spots if spot != only)
    if alone[0] == alone[1]:
        return iter(())
    return (each for each in dict.fromkeys(alone) if each is not None and each in spots)


def _only(spots: Spots) -> Spot | None:
    if len(spots) != 1:
        return None
    return spots.first if isinstance(spots, Tree) else next(iter(spots))


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
    """Whether a part of a tree may have a spot that meets values."""

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
