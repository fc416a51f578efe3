"""As-of joins: every row of the left with the one row of the right that is nearest in an order.

A row of the left looks up its answer in the tree of the right. A row of the right that comes or
goes alters the answers of the left rows between it and its neighbours in the right order, and of no
others. These are cut into *pieces*: the rows at its place, those between the place before and it,
and those between it and the place behind. All left rows of a piece have the same two neighbours, so
a piece is cut again where the answer goes from one neighbour to the other, as it was and as it is;
and the rows of a part go out where these two answers differ. Other rows are not looked at.

Nearly always one row of the right changes, and answers are looked for in one direction, however far
away. Then the row is the answer of the left rows between it and the next row of the right, or the
last one, and there is one piece: found by the way that the edit of the right took, and by one way
down the tree of the left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.codegen import GeneratedLoop
from ebbflow.fn import Fn
from ebbflow.operator.aligned import AlignedRows, Pairs, Side, is_bulk
from ebbflow.ordering import comparable, plainly, total_order_key
from ebbflow.state.node import Way
from ebbflow.state.search import (
    LAST,
    Around,
    around,
    beside,
    between,
    neighbours,
    rank_at,
    rank_where,
)
from ebbflow.state.tree import Tree

Answer = tuple[Any, ...]
"""The row that was found, alone in a tuple, or nothing."""
Neighbour = tuple[Any, Any] | None
"""A row of the right and its place."""
Answers = tuple[Answer, Answer]
"""The neighbours of some left rows: the row of the right before them, and the one behind."""
Ends = tuple[Answers, Answers]
"""These as they were, and as they are."""
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
        self.one_way = tolerance is None and direction != "nearest"
        """Whether answers are looked for in one direction, however far away."""
        self.ends = () if exact == (direction == "backward") else (LAST,)
        """What is behind a place of the right in the token from which on left rows see that it is
        passed: nothing, or what puts left rows at this place before it."""

    # ---- from scratch ----

    def of_key(self, left: Pairs, right: Pairs) -> Iterable[tuple[Any, int]]:
        tokens = {row: total_order_key(self.right_place(row)) for row, _ in right}
        there = sorted(tokens, key=lambda row: (tokens[row], total_order_key(row)))
        there = [row for row in there if self.right_place(row) is not None]
        out: dict[Any, int] = {}
        for row, count in left:
            place, token = self.left_place(row), total_order_key(self.left_place(row))
            before = [r for r in there if tokens[r] < token or (self.exact and tokens[r] == token)]
            after = [r for r in there if tokens[r] > token or (self.exact and tokens[r] == token)]
            answer: Answer = ()
            if place is not None:
                ends = [self._placed(end[0]) if end else None for end in (before[-1:], after[:1])]
                answer = self.chosen(place, *ends)
            self.give(((row, count),), answer, 1, out)
        return out.items()

    # ---- what changes ----

    def changed(self, left: Side, right: Side, out: dict[Any, int]) -> None:
        if is_bulk(left, right):
            self.swept(left, right, out)
            return
        for row, tree, count in self.now_and_before(left, right) if left.change else ():
            self.give(((row, count),), self.answer(tree, self.left_place(row)), 1, out)
        if not right.change or not left.now.distinct:
            return
        touched = {row for row, _ in left.change}
        for start, stop, was, now in self.pieces(left.now, right):
            pairs = [pair for pair in left.now.between(start, stop) if pair[0] not in touched]
            self.give(pairs, was, -1, out)
            self.give(pairs, now, 1, out)

    def one_row(
        self, left: Tree[Any], right: Tree[Any], row: Any, before: tuple[Any, Way],
        out: dict[Any, int],
    ) -> bool:  # fmt: skip
        (was, way), native = before, left.native and right.native
        more = right.distinct - was.distinct
        if not self.one_way or not native:
            return False
        if not more or not left.distinct:
            return True
        i, ends, place = way[-1][1], self.ends, self.right_place(row)
        last, behind = beside(way, i - 1), beside(way, i + 1 if more < 0 else i)
        try:
            if self.direction == "backward":
                other, stop = last, (LAST,) if behind is None else (behind[0], *ends)
                pairs = between(left, (place, *ends), stop)
            else:
                other, start = behind, () if last is None else (last[0], *ends)
                pairs = between(left, start, (place, *ends))
        except TypeError:  # from `<`: places on the left have an order with others of their own
            return False
        if pairs and place is not None:
            found = () if other is None else other[1:]
            self.give(pairs, found if more > 0 else (row,), -1, out)
            self.give(pairs, (row,) if more > 0 else found, 1, out)
        return True

    def swept(self, left: Side, right: Side, out: dict[Any, int]) -> None:
        """The same, by going through all rows, as they were and as they are."""
        was = {row: (count, answer) for row, count, answer in self.answers(left.old, right.old)}
        for row, count, answer in self.answers(left.now, right.now):
            before = was.pop(row, None)
            if before != (count, answer):
                if before is not None:
                    self.give(((row, before[0]),), before[1], -1, out)
                self.give(((row, count),), answer, 1, out)
        for row, (count, answer) in was.items():
            self.give(((row, count),), answer, -1, out)

    def answers(self, left: Tree[Any], right: Tree[Any]) -> Iterator[tuple[Any, int, Answer]]:
        """All rows of the left in order, with how often they are there, and their answers."""
        if not left.distinct:
            return
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

    @cached_property
    def give(self) -> Callable[[Iterable[tuple[Any, int]], Answer, int, dict[Any, int]], None]:
        """The generated loop that adds rows of the left, each so often, to what goes out: with the
        answer that they have in common. A sign of -1 takes them back."""
        hint, blamed = getattr(self.owner, "type", Any), self.owner or self
        loop = GeneratedLoop("give", "pairs, answer, sign, out")
        loop.write("get = out.get")
        both = _fn(self.merge).kept(loop.bind, "row", "found", hint=hint)
        with loop.inside("if answer:"):
            loop.write("found = answer[0]")
            with loop.inside("for row, count in pairs:"):
                loop.write(f"made = {both}", blamed, "row", "found")
                loop.write("out[made] = get(made, 0) + sign * count", blamed, "row", "found")
        if self.alone is not None:
            alone = _fn(self.alone).kept(loop.bind, "row", hint=hint)
            with loop.inside("else:"), loop.inside("for row, count in pairs:"):
                loop.write(f"made = {alone}", blamed, "row")
                loop.write("out[made] = get(made, 0) + sign * count", blamed, "row")
        return loop.function()

    # ---- one row ----

    def answer(self, right: Tree[Any], place: Any) -> Answer:
        """The row of the right for a place on the left."""
        if place is None or not right.distinct:
            return ()
        if self.one_way and right.native and comparable(place):
            try:
                last, behind = neighbours(right, (place,) if self.ends else (place, LAST))
            except TypeError:  # from `<`
                pass
            else:
                found = last if self.direction == "backward" else behind
                return () if found is None else tuple(found[1:])
        return self.chosen(place, *self.placed(*self.seen(around(right, place))))

    def seen(self, near: Around) -> Answers:
        """The neighbours of a row that is at a place itself."""
        return (near.last, near.first) if self.exact else (near.before, near.after)

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

    def pieces(self, left: Tree[Any], right: Side) -> Iterator[tuple[int, int, Answer, Answer]]:
        """Parts of the left rows whose answer is another now: from where to where, the answer that
        they had, and the one that they have."""
        for (start, stop), (was, now) in self.gaps(left, right).items():
            if self.one_way:
                yield start, stop, self.only(*was), self.only(*now)
                continue
            cuts = self.parts(left, start, stop, *was), self.parts(left, start, stop, *now)
            for end in sorted({end for part in cuts for end, _ in part}):
                if start < end:
                    before, after = (
                        next(each for last, each in part if end <= last) for part in cuts
                    )
                    if before != after:
                        yield start, end, before, after
                    start = end

    def only(self, before: Answer, after: Answer) -> Answer:
        """The answer between two neighbours, where it is the same everywhere."""
        if self.direction == "forward":
            return after
        return before if before and self.right_place(before[0]) is not None else ()

    def gaps(self, left: Tree[Any], right: Side) -> dict[tuple[int, int], Ends]:
        """The pieces around changed rows of the right: from where to where, and their neighbours as
        they were and as they are, where these are others."""
        found: dict[tuple[int, int], Ends] = {}
        back, ahead = self.direction != "forward", self.direction != "backward"

        def differ(was: Answers, now: Answers) -> bool:
            return (back and was[0] != now[0]) or (ahead and was[1] != now[1])

        def add(start: int, stop: int, ends: Ends) -> None:
            if start < stop:
                found[start, stop] = ends

        old, new = right.old, right.now
        for place in self.places(right.change):
            was, now, here = around(old, place), around(new, place), around(left, place)
            low, high = here.low, here.high
            ends = (was.before, was.first), (now.before, now.first)
            if here.before and differ(*ends):
                add(self._start(left, low, here.before[0], was.before, now.before), low, ends)
            ends = (was.last, was.after), (now.last, now.after)
            if here.after and differ(*ends):
                add(high, self._stop(left, high, here.after[0], was.after, now.after), ends)
            ends = self.seen(was), self.seen(now)
            if low < high and differ(*ends):
                add(low, high, ends)
            for point in () if self.exact else self._points(was, now):
                ends = self.seen(around(old, point)), self.seen(around(new, point))
                if differ(*ends):
                    here = around(left, point)
                    add(here.low, here.high, ends)
        return found

    def _start(self, left: Tree[Any], end: int, last: Any, was: Answer, now: Answer) -> int:
        """Where left rows begin that are behind the row before a place, as it was and as it is;
        `last` is the last of them. Rows without a place come before all others."""
        places = [self.right_place(row) for row in (now if was == now else was + now)]
        place = self.left_place(last)
        if any(plainly(each, place) > 0 for each in places):
            return end
        return max([rank_at(left, each, behind=True) for each in places or [None]])

    def _stop(self, left: Tree[Any], start: int, first: Any, was: Answer, now: Answer) -> int:
        """Where left rows end that are before the row behind a place, as it was and as it is;
        `first` is the first of them."""
        places = [self.right_place(row) for row in (now if was == now else was + now)]
        place = self.left_place(first)
        if any(plainly(each, place) < 0 for each in places):
            return start
        return min([rank_at(left, each) for each in places], default=left.size)

    def _points(self, *nears: Around) -> list[Any]:
        """The places of the rows before and behind a place, where they have one."""
        rows = [row for near in nears for row in (*near.before, *near.after)]
        return [place for place in map(self.right_place, rows) if place is not None]

    def places(self, changes: Pairs) -> Iterable[Any]:
        """The different places of rows, where they have one."""
        every = [self.right_place(row) for row, _ in changes]
        if len(every) == 1:
            return every if every[0] is not None else ()
        return {total_order_key(place): place for place in every if place is not None}.values()

    def parts(
        self, left: Tree[Any], start: int, stop: int, *ends: Answer
    ) -> list[tuple[int, Answer]]:
        """The answers of left rows with the same neighbours, each with where it ends."""
        before, after = self.placed(*ends)
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


def _fn(function: Any) -> Fn:
    return function if isinstance(function, Fn) else Fn(function)


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
    ZSet({(20, 12): -1, (30, 12): -1, (20, 15): 1, (30, 15): 1})
    """
    theirs = left_order if right_order is None else right_order
    keys = left_key, left_key if right_key is None else right_key
    return AsOfRows(
        *keys, left_order, theirs, merge, alone, direction, tolerance, exact, owner
    )  # fmt: skip
