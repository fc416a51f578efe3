"""As-of joins: every row of the left with the one row of the right that is nearest in an order.

A row of the left looks up its answer in the tree of the right. A row of the right that comes or
goes alters the answers of the left rows between it and its neighbours in the right order, and of no
others. These are cut into *pieces*: the rows at its place, those between the place before and it,
and those between it and the place behind. All left rows of a piece have the same two neighbours, so
a piece is cut again where the answer goes from one neighbour to the other, as it was and as it is;
and the rows of a part go out where these two answers differ. Other rows are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.nan import one_nan
from ebbflow.operator.aligned import AlignedRows, Pairs, is_bulk, undone
from ebbflow.ordering import total_order_key
from ebbflow.state.search import rank_where
from ebbflow.state.tree import Around, Tree

Answer = tuple[Any, ...]
"""The row that was found, alone in a tuple, or nothing."""
Neighbour = tuple[Any, Any] | None
"""A row of the right and its place."""
DIRECTIONS = ("backward", "forward", "nearest")


class AsOfRows(AlignedRows):
    """Rows of the left with the nearest of the right; see `asof_join`."""

    def __init__(
        self, left_key: Any, right_key: Any, left_order: Any, right_order: Any, merge: Any,
        alone: Any, direction: str, tolerance: Any, exact: bool, owner: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(left_key, right_key, left_order, right_order, owner)
        self.merge, self.alone = merge, alone
        self.direction, self.tolerance, self.exact = direction, tolerance, exact

    # ---- from scratch ----

    def of_key(self, left: Pairs, right: Pairs) -> Iterator[tuple[Any, int]]:
        tokens = {row: total_order_key(self.right_place(row)) for row, _ in right}
        there = sorted(tokens, key=lambda row: (tokens[row], total_order_key(row)))
        there = [row for row in there if self.right_place(row) is not None]
        for row, count in left:
            place, token = self.left_place(row), total_order_key(self.left_place(row))
            before = [r for r in there if tokens[r] < token or (self.exact and tokens[r] == token)]
            after = [r for r in there if tokens[r] > token or (self.exact and tokens[r] == token)]
            answer: Answer = ()
            if place is not None:
                ends = [self._placed(end[0]) if end else None for end in (before[-1:], after[:1])]
                answer = self.chosen(place, *ends)
            if answer or self.alone is not None:
                yield self.made(row, answer), count

    # ---- what changes ----

    def changed(
        self, left: Tree[Any], right: Tree[Any], from_left: Pairs, from_right: Pairs,
        out: dict[Any, int],
    ) -> None:  # fmt: skip
        old = undone(right, from_right)
        if is_bulk(left, right, from_left, from_right):
            self.swept(left, right, undone(left, from_left), old, out)
            return
        touched = {row for row, _ in from_left}
        for row, tree, count in self.now_and_before(left, right, old, from_left):
            self.give(row, self.answer(tree, self.left_place(row)), count, out)
        if not from_right or not left.distinct:
            return
        for start, stop, was, now in self.pieces(left, old, right, from_right):
            for row, count in left.between(start, stop):
                if row not in touched:
                    self.give(row, was, -count, out)
                    self.give(row, now, count, out)

    def swept(
        self, left: Tree[Any], right: Tree[Any], old_left: Tree[Any], old_right: Tree[Any],
        out: dict[Any, int],
    ) -> None:  # fmt: skip
        """The same, by going through all rows, as they were and as they are."""
        was = {row: (count, answer) for row, count, answer in self.answers(old_left, old_right)}
        for row, count, answer in self.answers(left, right):
            before = was.pop(row, None)
            if before != (count, answer):
                if before is not None:
                    self.give(row, before[1], -before[0], out)
                self.give(row, answer, count, out)
        for row, (count, answer) in was.items():
            self.give(row, answer, -count, out)

    def answers(self, left: Tree[Any], right: Tree[Any]) -> Iterator[tuple[Any, int, Answer]]:
        """All rows of the left in order, with how often they are there, and their answers."""
        placed = [(row, place) for row, _ in right if (place := self.right_place(row)) is not None]
        tokens = [total_order_key(place) for _, place in placed]
        low = high = 0
        for row, count in left:
            place = self.left_place(row)
            if place is None:
                yield row, count, ()
                continue
            token = total_order_key(place)
            while low < len(tokens) and tokens[low] < token:
                low += 1
            high = max(high, low)
            while high < len(tokens) and tokens[high] == token:
                high += 1
            after, before = (low, high) if self.exact else (high, low)
            yield row, count, self.chosen(
                place, placed[before - 1] if before else None,
                placed[after] if after < len(placed) else None,
            )  # fmt: skip

    def give(self, row: Any, answer: Answer, count: int, out: dict[Any, int]) -> None:
        """Add a row with its answer to what goes out."""
        if answer or self.alone is not None:
            made = self.made(row, answer)
            out[made] = out.get(made, 0) + count

    def made(self, row: Any, answer: Answer) -> Any:
        """The new row."""
        return one_nan(self.merge(row, *answer) if answer else self.alone(row))

    # ---- one row ----

    def answer(self, right: Tree[Any], place: Any) -> Answer:
        """The row of the right for a place on the left."""
        if place is None or not right.distinct:
            return ()
        return self.chosen(place, *self.seen(right.around(place)))

    def seen(self, near: Around) -> tuple[Neighbour, Neighbour]:
        """The neighbours of a row that is at a place itself."""
        if self.exact:
            return self.placed(near.last, near.first)
        return self.placed(near.before, near.after)

    def placed(self, before: Answer, after: Answer) -> tuple[Neighbour, Neighbour]:
        """Two neighbours with their places, where they matter."""
        one: Neighbour = None
        other: Neighbour = None
        if before and self.direction != "forward":
            one = self._placed(before[0])
            one = None if one[1] is None else one
        if after and self.direction != "backward":
            other = self._placed(after[0])
        return one, other

    def _placed(self, row: Any) -> tuple[Any, Any]:
        return row, self.right_place(row)

    def chosen(self, place: Any, before: Neighbour, after: Neighbour) -> Answer:
        """One of two neighbours; of two that are as far, the one before."""
        if before is not None and self.direction != "forward":
            far = self.leaves(before, after)
            if far is None or not far(place):
                return (before[0],)
        if after is not None and self.direction != "backward":
            near = self.reaches(after)
            if near is None or near(place):
                return (after[0],)
        return ()

    def leaves(self, before: Any, after: Neighbour) -> Callable[[Any], bool] | None:
        """From where on a place has another answer than the row before; None for nowhere."""
        start, tolerance = before[1], self.tolerance
        if self.direction == "backward":
            return None if tolerance is None else lambda place: place - start > tolerance
        if after is None:
            return None if tolerance is None else lambda place: place - start > tolerance
        end = after[1]
        if tolerance is None:
            return lambda place: place - start > end - place
        return lambda place: place - start > tolerance or place - start > end - place

    def reaches(self, after: Any) -> Callable[[Any], bool] | None:
        """From where on a place is near enough to the row behind; None for everywhere."""
        end, tolerance = after[1], self.tolerance
        return None if tolerance is None else lambda place: end - place <= tolerance

    # ---- pieces ----

    def pieces(
        self, left: Tree[Any], old: Tree[Any], new: Tree[Any], changes: Pairs
    ) -> Iterator[tuple[int, int, Answer, Answer]]:
        """Parts of the left rows whose answer is another now: from where to where, the answer that
        they had, and the one that they have."""
        for (start, stop), (was, now) in self.gaps(left, old, new, changes).items():
            cuts = self.parts(left, start, stop, *was), self.parts(left, start, stop, *now)
            for end in sorted({end for part in cuts for end, _ in part}):
                if start < end:
                    before, after = (
                        next(each for last, each in part if end <= last) for part in cuts
                    )
                    if before != after:
                        yield start, end, before, after
                    start = end

    def gaps(
        self, left: Tree[Any], old: Tree[Any], new: Tree[Any], changes: Pairs
    ) -> dict[tuple[int, int], list[Any]]:
        """The pieces around changed rows of the right: from where to where, and their neighbours as
        they were and as they are, where these are others."""
        found: dict[tuple[int, int], list[Any]] = {}

        def add(start: int, stop: int, sides: list[Any]) -> None:
            if start < stop:
                found[start, stop] = sides

        for place in self.places(changes):
            nears, here = [tree.around(place) for tree in (old, new)], left.around(place)
            sides = [self.placed(near.before, near.first) for near in nears]
            if sides[0] != sides[1]:
                add(self._start(left, nears), here.low, sides)
            sides = [self.placed(near.last, near.after) for near in nears]
            if sides[0] != sides[1]:
                add(here.high, self._stop(left, nears), sides)
            sides = [self.seen(near) for near in nears]
            if sides[0] != sides[1]:
                add(here.low, here.high, sides)
            for point in () if self.exact else self._points(nears):
                here = left.around(point)
                sides = [self.seen(tree.around(point)) for tree in (old, new)]
                if sides[0] != sides[1]:
                    add(here.low, here.high, sides)
        return found

    def _start(self, left: Tree[Any], nears: list[Around]) -> int:
        """Where left rows begin that are behind all rows before a place. Rows of the left without a
        place come before all others."""
        befores = [self.right_place(near.before[0]) for near in nears if near.before]
        return max([left.rank_at(place, behind=True) for place in befores or [None]])

    def _stop(self, left: Tree[Any], nears: list[Around]) -> int:
        """Where left rows end that are before all rows behind a place."""
        afters = [self.right_place(near.after[0]) for near in nears if near.after]
        return min([left.rank_at(place) for place in afters], default=left.size)

    def _points(self, nears: list[Around]) -> list[Any]:
        """The places of the rows before and behind a place, where they have one."""
        rows = [row for near in nears for row in (*near.before, *near.after)]
        return [place for place in map(self.right_place, rows) if place is not None]

    def places(self, changes: Pairs) -> Iterable[Any]:
        """The different places of rows, where they have one."""
        every = [self.right_place(row) for row, _ in changes]
        return {total_order_key(place): place for place in every if place is not None}.values()

    def parts(
        self, left: Tree[Any], start: int, stop: int, before: Neighbour, after: Neighbour
    ) -> list[tuple[int, Answer]]:
        """The answers of left rows with the same neighbours, each with where it ends."""
        cut, reach = start, stop
        if before is not None:
            cut = self._cut(left, self.leaves(before, after), start, stop, stop)
        if after is not None:
            reach = self._cut(left, self.reaches(after), cut, stop, cut)
        front: Answer = () if before is None else (before[0],)
        back: Answer = () if after is None else (after[0],)
        return [(cut, front), (reach, ()), (stop, back)]

    def _cut(
        self, left: Tree[Any], holds: Callable[[Any], bool] | None, start: int, stop: int,
        otherwise: int,
    ) -> int:  # fmt: skip
        """Where something begins to hold, between two ends."""
        if holds is None:
            return otherwise
        place_of = self.left_place

        def of_row(row: Any) -> bool:
            place = place_of(row)
            return place is not None and holds(place)

        return min(max(rank_where(left, of_row), start), stop)

    def __repr__(self) -> str:
        orders = ", ".join(map(function_name, self.orders))
        return f"asof_join({orders}, direction={self.direction!r})"


def asof_join(
    left_order: Callable[[Any], Any],
    right_order: Callable[[Any], Any] | None = None,
    left_key: Callable[[Any], Any] | None = None,
    right_key: Callable[[Any], Any] | None = None,
    *,
    merge: Callable[[Any, Any], Any] = lambda left, right: (left, right),
    alone: Callable[[Any], Any] | None = lambda left: (left, None),
    direction: str = "backward",
    tolerance: Any = None,
    exact: bool = True,
    owner: Any = None,
) -> AsOfRows:
    """Every row of the first with the last row of the second that is not behind it in the order.

    `direction` may be "forward", for the first that is not before it, or "nearest"; `tolerance` is
    how far away it may be, and without `exact` it is at another place. Rows that find none become
    `alone(row)`, or nothing where that is None.

    >>> from ebbflow import ZSet
    >>> from ebbflow.change import Second
    >>> live = asof_join(lambda x: x).open((ZSet.of([10, 20, 30]), ZSet.of([5, 12])))
    >>> live.send(Second(ZSet({15: 1})))
    ZSet({(20, 12): -1, (20, 15): 1, (30, 12): -1, (30, 15): 1})
    """
    theirs = left_order if right_order is None else right_order
    keys = left_key, left_key if right_key is None else right_key
    return AsOfRows(
        *keys, left_order, theirs, merge, alone, direction, tolerance, exact, owner
    )  # fmt: skip
