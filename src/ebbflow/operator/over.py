"""Rows with the values of window functions.

Functions whose value depends on the rows before alone are a scan: one state for all of them goes
from row to row, and what changes is what the scan says otherwise (`ebbflow.operator.along`).

Functions that look behind a row too, or at a frame of rows around it, are looked at in *stretches*.
A change at some places alters rows up to where the states are the old ones again, and rows near
these places. Stretches that touch are put together; the rows of each are computed as they were and
as they are, and what differs goes out. When a function looks at all rows of a key, and what it sees
there is another than before, the stretch is the whole key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import length_hint
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.nan import one_nan
from ebbflow.operator.along import PLAIN, AlongRows, WithValues
from ebbflow.operator.ordered import OrderedRows
from ebbflow.operator.relation import Bag
from ebbflow.operator.replay import LEAF, StatesOnly, last_state, replay, state_before
from ebbflow.operator.scan import ScanRows
from ebbflow.operator.window import Along, FrameReducer, Lead, WindowFunction
from ebbflow.state.node import Way
from ebbflow.state.search import rank_at
from ebbflow.state.tree import Tree
from ebbflow.stream.transition import Transition, same_state
from ebbflow.zset import ZSet


class OverRows(OrderedRows):
    """Every row with the values of window functions; see `over_rows`."""

    def __init__(
        self, functions: tuple[WindowFunction, ...], order: Any, key: Any, merge: WithValues,
        row_type: Any, owner: Any,
    ) -> None:  # fmt: skip
        self.functions, self.merge = functions, merge
        along = tuple(each for each in functions if isinstance(each, Along))
        self.transition = AlongRows(along, order, None, row_type)
        ahead = [each.looks_ahead for each in along for _ in each.starts()]
        self.ahead = [i for i, looks in enumerate(ahead) if looks]
        self.near = [each for each in functions if isinstance(each, (Lead, FrameReducer))]
        super().__init__(order, key, owner, memos=True, leaf=LEAF)

    def f(self, x: Bag) -> Bag:
        out: list[Any] = []
        for pairs in self.by_key(x.items()).values():
            tree = self.empty.update(pairs)
            out += self.rows(tree, 0, tree.size)
        return ZSet.of(out)

    def changed(
        self, key: Any, old: Tree[Any], new: Tree[Any], pairs: Any, way: Way, out: dict[Any, int]
    ) -> None:
        for first, last in self.stretches(old, new, pairs, way):
            for tree, sign in ((old, -1), (new, 1)):
                start, stop = tree.rank(first), tree.rank(last) + tree.count(last)
                for row in self.rows(tree, start, stop):
                    out[row] = out.get(row, 0) + sign

    # ---- what has to be looked at ----

    def stretches(
        self, old: Tree[Any], new: Tree[Any], pairs: Any, way: Way
    ) -> list[tuple[Any, Any]]:
        """The first and the last row of each part of the rows that may differ, in order."""
        wider = new if old.native else old
        found, both = [], old.distinct and new.distinct
        if both and self.transition.functions:
            stretches = Stretches(self.transition)
            replay(stretches, old, new, pairs, way, {})
            found += stretches.found
        if not both or self._sees_another_end(old, new):
            trees = [tree for tree in (old, new) if tree.distinct]
            token = wider.token
            first = min((tree.first for tree in trees), key=token)
            return [(first, max((tree.last for tree in trees), key=token))]
        for row, _ in pairs:
            found.append((row, row))
            for each in self.near:
                found += [self._around(each, tree, row) for tree in (old, new)]
        return _joined(found, wider.token)

    def _sees_another_end(self, old: Tree[Any], new: Tree[Any]) -> bool:
        """Whether functions that look at the state behind the last row see another one."""
        if not self.ahead:
            return False
        was, now = last_state(self.transition, old), last_state(self.transition, new)
        return not all(same_state(was[i], now[i]) for i in self.ahead)

    def _around(self, function: Any, tree: Tree[Any], row: Any) -> tuple[Any, Any]:
        """The first and the last row whose value may depend on a row that is in the tree, or not,
        itself included."""
        start, count = tree.rank(row), tree.count(row)
        if isinstance(function, Lead):
            low, high = start - function.k, start + count
        elif function.by_range:
            place = self.place(row)
            low = rank_at(tree, place - function.high)
            high = rank_at(tree, place - function.low, behind=True)
        else:
            low, high = start - function.high, start + count - function.low
        low, high = max(low, 0), min(high, tree.size)
        first = row if low >= start else tree.at(low)
        return first, row if high <= start + count else tree.at(high - 1)

    # ---- rows with their values ----

    def rows(self, tree: Tree[Any], start: int, stop: int) -> Iterator[Any]:
        """The rows from one place to before another, as they go out."""
        if start >= stop:
            return
        rows = [row for row, count in tree.between(start, stop) for _ in range(count)]
        columns = {id(each): self._near(each, tree, start, stop, rows) for each in self.near}
        state = state_before(self.transition, tree, start)
        last = last_state(self.transition, tree) if self.ahead else None
        after, shown, merge = self.transition.after, self.transition.shown, self.merge
        for i, row in enumerate(rows):
            state = after(state, row)
            along = iter(shown(state, state if last is None else last))
            yield merge(row, tuple([
                columns[id(each)][i] if id(each) in columns else next(along)
                for each in self.functions
            ]))  # fmt: skip

    def _near(
        self, function: Any, tree: Tree[Any], start: int, stop: int, rows: list[Any]
    ) -> list[Any]:
        """The values of a function that looks at rows near a row, for each of these."""
        if isinstance(function, Lead):
            behind = tree.between(start + function.k, stop + function.k)
            found = [one_nan(function.of(row)) for row, count in behind for _ in range(count)]
            return found + [function.default] * (stop - start - len(found))
        low, high = function.low, function.high
        if function.by_range:
            places = [self.place(row) for row in rows]
            frames = [
                (rank_at(tree, place + low), rank_at(tree, place + high, behind=True))
                for place in places
            ]
        else:
            size = tree.size
            frames = [(max(i + low, 0), min(i + high + 1, size)) for i in range(start, stop)]
        first, end = frames[0][0], frames[-1][1]
        around = [row for row, count in tree.between(first, end) for _ in range(count)]
        return of_frames(function.reducer, around, [(a - first, b - first) for a, b in frames])

    def __repr__(self) -> str:
        key = "" if self.key is None else f", {function_name(self.key)}"
        return f"over_rows({self.functions!r}, {function_name(self.order)}{key})"


class Stretches(StatesOnly):
    """A transition that notes where states are others than before."""

    __slots__ = ("found",)

    def __init__(self, transition: Transition) -> None:
        super().__init__(transition)
        self.found: list[tuple[Any, Any]] = []

    def apart(self, rows: Iterator[Any], old: Any, new: Any, out: Any) -> tuple[Any, Any]:
        here = list(rows)
        behind = iter(here)
        found = super().apart(behind, old, new, out)
        if here:
            self.found.append((here[0], here[len(here) - length_hint(behind) - 1]))
        return found


def _joined(found: list[tuple[Any, Any]], token: Any) -> list[tuple[Any, Any]]:
    """Stretches in order, those that touch put together."""
    ends = sorted([(token(first), token(last), first, last) for first, last in found], key=_two)
    joined: list[tuple[Any, Any]] = []
    end: Any = None
    for start, stop, first, last in ends:
        if joined and start <= end:
            if stop > end:
                joined[-1], end = (joined[-1][0], last), stop
        else:
            joined.append((first, last))
            end = stop
    return joined


def _two(stretch: Any) -> Any:
    return stretch[:2]


def of_frames(reducer: Any, rows: list[Any], frames: list[tuple[int, int]]) -> list[Any]:
    """A reducer of each of some frames of rows; neither their starts nor their ends ever go back.

    What has a `merge` is merged from two parts: what is behind a point, which grows, and what is
    before it, of which every end is known. So a row is merged a few times, however long the frames.

    >>> from ebbflow.reducer import max
    >>> of_frames(max(), [5, 1, 4, 2], [(0, 2), (1, 3), (2, 4)])
    [5, 4, 4]
    """
    if reducer.merge is None:
        return [one_nan(reducer(rows[a:b])) for a, b in frames]
    start, add, merge, finish = reducer.start, reducer.add, reducer.merge, reducer.finish
    found, ends, middle, stop, behind = [], [start()], 0, 0, start()
    for a, b in frames:
        while stop < b:
            behind = add(behind, rows[stop])
            stop += 1
        if a >= middle:  # all that was before the point is left: what is behind it comes before it
            middle, ends, acc = stop, [start()], start()
            for i in range(stop - 1, a - 1, -1):
                acc = merge(add(start(), rows[i]), acc)
                ends.append(acc)
            behind = start()
        before = ends[middle - a]
        found.append(one_nan(finish(merge(before, behind) if stop > middle else before)))
    return found


def over_rows(
    functions: tuple[WindowFunction, ...],
    order: Callable[[Any], Any],
    key: Callable[[Any], Any] | None = None,
    *,
    merge: WithValues = PLAIN,
    row_type: Any = Any,
    owner: Any = None,
) -> OrderedRows:
    """Every row with the values of window functions, over the rows of its key in an order.

    >>> from ebbflow.operator.window import Lag, Lead
    >>> near = Lag(lambda x: x), Lead(lambda x: x)
    >>> live = over_rows(near, lambda x: x).open(ZSet.of([1, 5, 9]))
    >>> live.send(ZSet({3: 1}))
    ZSet({(1, None, 5): -1, (1, None, 3): 1, (3, 1, 5): 1, (5, 1, 9): -1, (5, 3, 9): 1})
    """
    along = tuple(each for each in functions if isinstance(each, Along))
    if len(along) == len(functions) and not any(each.looks_ahead for each in along):
        return ScanRows(AlongRows(along, order, merge, row_type), order, key, owner)
    return OverRows(functions, order, key, merge, row_type, owner)
