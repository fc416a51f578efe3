"""Interval joins: rows of two sides that are near each other in an order.

A row of the left meets the rows of the right with `low <= right place - left place <= high`. They
stand next to each other in the tree of the right, and so do, in that of the left, the rows that a
row of the right meets. So whatever changes looks at the rows within its interval, and at no others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.nan import one_nan
from ebbflow.operator.aligned import AlignedRows, Pairs, Side, is_bulk
from ebbflow.state.search import rank_where
from ebbflow.state.tree import Tree


class PlacesInOrder:
    """The rows of a tree, to be found by the distance of their places from others. With `bulk` many
    are wanted, and the places are put into a list first."""

    def __init__(self, tree: Tree[Any], place_of: Callable[[Any], Any], bulk: bool) -> None:
        self.tree, self.place_of, self.bulk = tree, place_of, bulk
        if bulk:
            placed = [(place, row, n) for row, n in tree if (place := place_of(row)) is not None]
            self.places = [place for place, _, _ in placed]
            self.pairs = [(row, count) for _, row, count in placed]

    def between(self, place: Any, low: Any, high: Any) -> tuple[int, int]:
        """From where to where rows are that are at least `low` and at most `high` behind a
        place."""
        if place is None or not self.tree.distinct:
            return 0, 0
        if self.bulk:
            start = bisect_left(self.places, low, key=lambda other: other - place)
            return start, bisect_right(self.places, high, start, key=lambda other: other - place)
        place_of = self.place_of

        def begins(row: Any) -> bool:
            other = place_of(row)
            return other is not None and other - place >= low

        def ends(row: Any) -> bool:
            other = place_of(row)
            return other is not None and other - place > high

        return rank_where(self.tree, begins), rank_where(self.tree, ends)

    def rows(self, start: int, stop: int) -> Iterable[tuple[Any, int]]:
        """The rows between, each with how often it is there."""
        return self.pairs[start:stop] if self.bulk else self.tree.between(start, stop)


class Near(AlignedRows):
    """An operator on rows that are near each other: what all of them share."""

    def __init__(
        self, left_key: Any, right_key: Any, left_order: Any, right_order: Any, low: Any,
        high: Any, *, owner: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(left_key, right_key, left_order, right_order, owner)
        self.low, self.high = low, high

    def meets(self, place: Any, other: Any) -> bool:
        """Whether a place on the left meets one on the right."""
        if place is None or other is None:
            return False
        return bool(self.low <= other - place <= self.high)

    def met_by(self, right: PlacesInOrder, place: Any) -> tuple[int, int]:
        """From where to where rows of the right are that a place on the left meets."""
        return right.between(place, self.low, self.high)

    def meeting(self, left: PlacesInOrder, other: Any) -> tuple[int, int]:
        """From where to where rows of the left are that meet a place on the right."""
        return left.between(other, -self.high, -self.low)

    def __repr__(self) -> str:
        orders = ", ".join(map(function_name, self.orders))
        return f"interval_join({orders}, {self.low!r}, {self.high!r})"


class IntervalRows(Near):
    """Pairs of rows that are near each other; see `interval_join`. Counts multiply, so with `l` and
    `r` for the changes, and `L` and `R` for the rows after them, it is `l ⋈ R + (L - l) ⋈ r`."""

    def __init__(self, *given: Any, merge: Any, owner: Any = None) -> None:
        super().__init__(*given, owner=owner)
        self.merge = merge

    def of_key(self, left: Pairs, right: Pairs) -> Iterator[tuple[Any, int]]:
        for row, count in left:
            for other, more in right:
                if self.meets(self.left_place(row), self.right_place(other)):
                    yield one_nan(self.merge(row, other)), count * more

    def changed(self, left: Side, right: Side, out: dict[Any, int]) -> None:
        merge, get = self.merge, out.get
        bulk = is_bulk(left, right)
        rights = PlacesInOrder(right.now, self.right_place, bulk)
        lefts = PlacesInOrder(left.old, self.left_place, bulk)
        for row, weight in left.change:
            for other, count in rights.rows(*self.met_by(rights, self.left_place(row))):
                made = one_nan(merge(row, other))
                out[made] = get(made, 0) + weight * count
        for other, weight in right.change:
            for row, count in lefts.rows(*self.meeting(lefts, self.right_place(other))):
                made = one_nan(merge(row, other))
                out[made] = get(made, 0) + weight * count


class NearSemi(Near):
    """Rows of the left that something, or with `anti` nothing, of the right is near; see
    `interval_semi`."""

    def __init__(self, *given: Any, anti: bool, owner: Any = None) -> None:
        super().__init__(*given, owner=owner)
        self.anti = anti

    def of_key(self, left: Pairs, right: Pairs) -> Iterator[tuple[Any, int]]:
        there = [self.right_place(row) for row, _ in right]
        for row, count in left:
            place = self.left_place(row)
            if any(self.meets(place, other) for other in there) is not self.anti:
                yield row, count

    def stays(self, right: PlacesInOrder, place: Any) -> bool:
        """Whether a row of the left at a place is among those that come out."""
        start, stop = self.met_by(right, place)
        return (start < stop) is not self.anti

    def changed(self, left: Side, right: Side, out: dict[Any, int]) -> None:
        bulk = is_bulk(left, right)
        old, now = (PlacesInOrder(tree, self.right_place, bulk) for tree in (right.old, right.now))
        for row, tree, count in self.now_and_before(left, right):
            if self.stays(now if tree is right.now else old, self.left_place(row)):
                out[row] = out.get(row, 0) + count
        lefts, last = PlacesInOrder(left.now, self.left_place, bulk), 0
        touched = {row for row, _ in left.change}
        for start, stop in sorted(
            [self.meeting(lefts, self.right_place(row)) for row, _ in right.change]
        ):
            for row, count in lefts.rows(max(start, last), stop):
                if row not in touched:
                    place = self.left_place(row)
                    sign = self.stays(now, place) - self.stays(old, place)
                    if sign:
                        out[row] = out.get(row, 0) + sign * count
            last = max(last, stop)


def interval_join(
    left_order: Callable[[Any], Any],
    right_order: Callable[[Any], Any],
    low: Any,
    high: Any,
    left_key: Callable[[Any], Any] | None = None,
    right_key: Callable[[Any], Any] | None = None,
    *,
    merge: Callable[[Any, Any], Any] = lambda left, right: (left, right),
    owner: Any = None,
) -> IntervalRows:
    """Every row of the first with every row of the second that has the same key and is at least
    `low` and at most `high` behind it in the order. Counts multiply.

    >>> from ebbflow import ZSet
    >>> from ebbflow.change import Second
    >>> near = interval_join(lambda x: x, lambda x: x, 0, 5)
    >>> near.open((ZSet.of([10, 20, 30]), ZSet())).send(Second(ZSet({24: 1})))
    ZSet({(20, 24): 1})
    """
    keys = left_key, left_key if right_key is None else right_key
    return IntervalRows(*keys, left_order, right_order, low, high, merge=merge, owner=owner)


def interval_semi(
    left_order: Callable[[Any], Any],
    right_order: Callable[[Any], Any],
    low: Any,
    high: Any,
    left_key: Callable[[Any], Any] | None = None,
    right_key: Callable[[Any], Any] | None = None,
    *,
    anti: bool = False,
    owner: Any = None,
) -> NearSemi:
    """The rows of the first that `interval_join` would give something, or with `anti` nothing.

    >>> from ebbflow import ZSet
    >>> from ebbflow.change import Second
    >>> lonely = interval_semi(lambda x: x, lambda x: x, 0, 5, anti=True)
    >>> lonely.open((ZSet.of([10, 20, 30]), ZSet())).send(Second(ZSet({24: 1})))
    ZSet({20: -1})
    """
    keys = left_key, left_key if right_key is None else right_key
    return NearSemi(*keys, left_order, right_order, low, high, anti=anti, owner=owner)
