"""The outermost elements of a multiset: enough of the greatest, or of the smallest, in order.

To know the greatest element no whole tree is needed: elements far from that end can wait unsorted
until those before them are gone. An *outer* holds a tree of the outermost elements, how much *room*
it has, and whether it holds all elements. What is not among the outermost costs one comparison.
When too few are left they are picked anew from all elements, with more room each time, so that all
elements are looked through about log n times at most before all are in the tree.

Like a tree, an outer is never altered: every edit gives a new one.

All this is for elements that `<` puts in order. A tree puts any elements in order; so where there
are others, such as sets, or numbers among words, the outer is a tree of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from heapq import nlargest, nsmallest
from math import isqrt
from typing import Any, NamedTuple

from ebbflow.ordering import TOP
from ebbflow.state.tree import Tree

EMPTY: Tree[Any] = Tree()
ROOM, ENDLESS = 16, 1 << 60
PLAIN = {
    int, float, bool, str, bytes, Decimal, Fraction, date, datetime, time, timedelta, type(TOP),
}  # fmt: skip


def plain(x: Any) -> bool:
    """Whether `<` is a total order among values of this type.

    >>> plain(3), plain((3, "a")), plain(frozenset())
    (True, True, False)
    """
    return type(x) in PLAIN or (isinstance(x, tuple) and all(map(plain, x)))


class Outer(NamedTuple):
    """The outermost elements, the room, and whether these are all elements there are."""

    tree: Tree[Any] = EMPTY
    room: int = ROOM
    all: bool = True


NONE = Outer()


class Outermost:
    """How an outer follows changes: at least `least` elements from the upper end, or the lower.

    >>> ends = Outermost(up=True, least=2)
    >>> three = ends.moved(NONE, {5: 1, 9: 1, 7: 1}.items(), dict)
    >>> ends.best(three)
    [9, 7]
    >>> ends.best(ends.moved(three, {9: -1, 6: 2}.items(), dict))
    [7, 6]
    """

    __slots__ = ("least", "plain", "up")

    def __init__(self, up: bool, least: int = 1, plain: Callable[[Any], bool] = plain) -> None:
        self.up = up
        self.least = least
        self.plain = plain

    def moved(
        self,
        outer: Outer,
        pairs: Iterable[tuple[Any, int]],
        everything: Callable[[], Mapping[Any, int]],
    ) -> Outer:
        """The outer after elements came or went; each element once, no weight zero.

        `everything()` is asked for all elements with their counts, after the change, when too few
        are left.
        """
        tree, room, complete = outer
        if complete and not tree.distinct:
            elements = dict(pairs)
            if len(elements) > 4 * room and min(elements.values()) > 0:
                return self.picked(elements, room)
            pairs = elements.items()
        if not complete:
            try:
                if self.up:
                    floor = tree.first
                    pairs = [pair for pair in pairs if pair[0] >= floor]
                else:
                    floor = tree.last
                    pairs = [pair for pair in pairs if pair[0] <= floor]
                orderly = all(weight < 0 or self.plain(each) for each, weight in pairs)
            except TypeError:
                orderly = False
            if not orderly:
                return Outer(Tree.counted(everything().items()), ENDLESS)
            if not pairs:
                return outer
        tree = tree.update(pairs)
        if not complete and tree.size < self.least:
            return self.picked(everything(), 2 * room)
        if tree.distinct > 4 * room:
            return self.picked(dict(tree), room, complete)
        return Outer(tree, room, complete)

    def picked(self, elements: Mapping[Any, int], room: int, complete: bool = True) -> Outer:
        """The outermost of these elements; `complete` says that there are no others."""
        room = max(room, self.least, isqrt(len(elements)))
        if complete and 2 * room >= len(elements):
            return Outer(Tree.counted(elements.items()), room)
        try:
            outer = (nlargest if self.up else nsmallest)(2 * room, elements)
            if not complete or all(map(self.plain, outer)):
                return Outer(Tree.counted((each, elements[each]) for each in outer), room, False)
        except TypeError:
            pass
        return Outer(Tree.counted(elements.items()), ENDLESS)

    def best(self, outer: Outer) -> list[Any]:
        """The outermost `least` elements, the outermost first, each as often as it is there."""
        tree = outer.tree
        return list(tree.largest(self.least) if self.up else tree.smallest(self.least))

    def shift(self, was: Outer, now: Outer, moved: Iterable[Any]) -> list[tuple[Any, int]]:
        """How the outermost `least` of `now` differ from those of `was`; only `moved` have come or
        gone in between, each named once.

        Of all the others as many more, or fewer, are among the outermost as is left by those that
        moved, and they are the innermost there; so nothing else is looked at.

        >>> ends = Outermost(up=True, least=2)
        >>> was = Outer(Tree.of([5, 7, 9]))
        >>> ends.shift(was, Outer(was.tree.remove(9)), [9])
        [(9, -1), (5, 1)]
        """
        found = []
        more = min(now.tree.size, self.least) - min(was.tree.size, self.least)
        skipped = dict.fromkeys(moved)
        for each in skipped:
            change = self._among(now.tree, each) - self._among(was.tree, each)
            more -= change
            if change:
                found.append((each, change))
        tree, sign = (now.tree, 1) if more > 0 else (was.tree, -1)
        end, more = min(tree.size, self.least), abs(more)
        while more:
            each, first, count = tree.spot(tree.size - end if self.up else end - 1)
            there = end - (tree.size - first - count if self.up else first)
            if each not in skipped:
                taken = min(there, more)
                more -= taken
                found.append((each, sign * taken))
            end -= there
        return found

    def _among(self, tree: Tree[Any], each: Any) -> int:
        """How often an element is among the outermost."""
        count = tree.count(each)
        before = tree.rank(each)
        before = tree.size - before - count if self.up else before
        return max(min(count, self.least - before), 0)

    def agrees(self, outer: Outer, everything: Mapping[Any, int]) -> bool:
        """Whether an outer is right for these elements."""
        tree, room, complete = outer
        if not tree.invariant() or tree.distinct > 4 * room:
            return False
        if complete or not tree.distinct:
            return complete and dict(tree) == everything
        floor = tree.first if self.up else tree.last
        near = {
            each: count
            for each, count in everything.items()
            if (each >= floor if self.up else each <= floor)
        }
        return dict(tree) == near and tree.size >= self.least
