"""Top buffers: enough of the greatest elements of a multiset, or of the smallest, in order.

To know the greatest element no whole tree is needed: elements far from that end can wait unsorted
until those before them are gone. A *top buffer* holds a tree of the elements at one end, how much
*room* it has, and whether it holds all elements. The element of it that is furthest from the end is
its *floor*: one comparison with the floor tells that an element is not in the buffer. When too few
are left they are picked anew from all elements, with more room each time, so that all elements are
looked through about log n times at most before all are in the tree.

Like a tree, a top buffer is never altered: every edit gives a new one. Which elements are first is
told by a `Ranking`: by the total order of `ebbflow.ordering` here, by a user's merge in
`ebbflow.operator.selective`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest, nsmallest
from math import isqrt
from typing import Any, NamedTuple

from ebbflow.ordering import all_comparable, total_order_key
from ebbflow.state.tree import Tree

ROOM = 16

Pairs = Iterable[tuple[Any, int]]


class TopBuffer(NamedTuple):
    """The elements at one end, the room, and whether these are all elements there are."""

    tree: Tree[Any] = Tree()
    room: int = ROOM
    all: bool = True


class Ranking:
    """How a top buffer follows changes, so that it has at least `least` elements from the upper end
    of the total order, or from the lower.

    >>> ranking = Ranking(up=True, least=2)
    >>> three = ranking.update(ranking.empty, {5: 1, 9: 1, 7: 1}.items(), dict)
    >>> ranking.best(three)
    [9, 7]
    >>> ranking.best(ranking.update(three, {9: -1, 6: 2}.items(), dict))
    [7, 6]
    """

    __slots__ = ("empty", "least", "up")

    def __init__(self, up: bool, least: int = 1, empty: Tree[Any] | None = None) -> None:
        self.up = up
        self.least = least
        self.empty = TopBuffer(Tree() if empty is None else empty)

    # ---- the order ----

    def near(self, pairs: list[tuple[Any, int]], tree: Tree[Any]) -> list[tuple[Any, int]]:
        """The pairs of a change whose elements are not behind the floor of a tree."""
        floor = tree.first if self.up else tree.last
        try:
            if tree.native and all_comparable([x for x, _ in pairs]):
                if self.up:
                    return [pair for pair in pairs if pair[0] >= floor]
                return [pair for pair in pairs if pair[0] <= floor]
        except TypeError:
            pass
        key, bound = total_order_key, total_order_key(floor)
        if self.up:
            return [pair for pair in pairs if key(pair[0]) >= bound]
        return [pair for pair in pairs if key(pair[0]) <= bound]

    def first(self, n: int, elements: Iterable[Any]) -> list[Any]:
        """The first `n` of some elements, in order."""
        pick = nlargest if self.up else nsmallest
        given = list(elements)
        try:
            if all_comparable(given):
                return pick(n, given)
        except TypeError:
            pass
        return pick(n, given, key=total_order_key)

    # ---- everything below is written with this ----

    def update(
        self, buffer: TopBuffer, pairs: Pairs, everything: Callable[[], Mapping[Any, int]]
    ) -> TopBuffer:
        """The buffer after elements came or went; each element once, no weight zero.

        `everything()` is asked for all elements with their counts, after the change, when too few
        are left.
        """
        tree, room, complete = buffer
        pairs = list(pairs)
        if not complete:
            pairs = self.near(pairs, tree)
            if not pairs:
                return buffer
        elif not tree.distinct and len(pairs) > 4 * room:
            elements = dict(pairs)
            if min(elements.values()) > 0:
                return self.picked(elements, room)
        tree = tree.update(pairs)
        if not complete and tree.size < self.least:
            return self.picked(everything(), 2 * room)
        if tree.distinct > 4 * room:
            return self.picked(dict(tree), room, complete)
        return TopBuffer(tree, room, complete)

    def picked(self, elements: Mapping[Any, int], room: int, complete: bool = True) -> TopBuffer:
        """The first of these elements; `complete` says that there are no others."""
        room = max(room, self.least, isqrt(len(elements)))
        pairs: Pairs = elements.items()
        if complete and 2 * room >= len(elements):
            return TopBuffer(self.empty.tree.update(pairs), room)
        pairs = [(each, elements[each]) for each in self.first(2 * room, elements)]
        return TopBuffer(self.empty.tree.update(pairs), room, False)

    def best(self, buffer: TopBuffer) -> list[Any]:
        """The first `least` elements in order, each as often as it is there."""
        tree = buffer.tree
        if self.least == 1 and tree.distinct:
            return [tree.last if self.up else tree.first]
        return tree.largest(self.least) if self.up else tree.smallest(self.least)

    def shift(
        self, was: TopBuffer, now: TopBuffer, changed: Iterable[Any]
    ) -> list[tuple[Any, int]]:
        """How the first `least` of `now` differ from those of `was`; only `changed` have come or
        gone in between, each named once.

        Of all the others as many more, or fewer, are among the first as is left by those that
        changed, and they are the last there; so nothing else is looked at.

        >>> ranking = Ranking(up=True, least=2)
        >>> was = TopBuffer(Tree.of([5, 7, 9]))
        >>> ranking.shift(was, TopBuffer(was.tree.remove(9)), [9])
        [(9, -1), (5, 1)]
        """
        found = []
        more = min(now.tree.size, self.least) - min(was.tree.size, self.least)
        skipped = dict.fromkeys(changed)
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
        """How often an element is among the first."""
        count = tree.count(each)
        before = tree.rank(each)
        before = tree.size - before - count if self.up else before
        return max(min(count, self.least - before), 0)

    def agrees(self, buffer: TopBuffer, everything: Mapping[Any, int]) -> bool:
        """Whether a buffer is right for these elements."""
        tree, room, complete = buffer
        if not tree.invariant() or tree.distinct > 4 * room:
            return False
        kept = dict(tree)
        if list(kept) != self.first(len(kept), kept)[:: -1 if self.up else 1]:
            return False
        if complete or not kept:
            return complete and kept == everything
        near = dict(self.near(list(everything.items()), tree))
        return kept == near and tree.size >= self.least
