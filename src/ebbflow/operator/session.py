"""Rows with the session they belong to; what is computed of them is in `ebbflow.reducer.sessions`.

A session is a longest run of rows of one key in which no two neighbours in time are further apart
than a gap. The rows of each key are kept in a tree, in the order of time, and every part of the
tree knows the *runs* at its two ends: a run is the first time and the last of rows that belong
together, and accumulators of these rows, where some are wanted. Two parts side by side have the
first run of the one and the last run of the other, and where the runs that meet in the middle are
near enough they are one. So the session around a time is found by one way down the tree: it is
the last run of all that is before, and the first run of all that is not.

A change at a time `t` can alter only the sessions that have a row no further than the gap from
`t`, before the change or after it; so only those are looked for. Sessions that begin and end as
they did keep their rows: a late row in the middle of a long session costs what finding it costs.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

from ebbflow.algebra.value import function_name
from ebbflow.errors import ChangeError
from ebbflow.operator.by_key import ByKey
from ebbflow.operator.relation import Bag
from ebbflow.ordering import total_order_key
from ebbflow.state.ordered import OrderedIndex
from ebbflow.state.search import rank_at, totals
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet, without_zeros

Pairs = Any
Timed = list[tuple[Any, Any, int]]


class Run(NamedTuple):
    """Rows that belong together: their first time, their last, and their accumulators."""

    first: Any
    last: Any
    accs: tuple[Any, ...] = ()


Ends = tuple[Run] | tuple[Run, Run]
"""Of rows in order: the one run that they are, or the first run and the last."""


class SessionMonoid:
    """How the ends of two parts of a tree become those of both: see `Run`. An accumulator has an
    `of` of one row and a `merge`."""

    def __init__(self, time: Any, gap: Any, parts: Sequence[Any] = ()) -> None:
        self.time, self.gap, self.parts = time, gap, parts

    def of(self, row: Any) -> Ends:
        """The ends of one row."""
        time = self.time(row)
        return (Run(time, time, tuple([part.of(row) for part in self.parts])),)

    def merge(self, a: Ends, b: Ends) -> Ends:
        """The ends of rows before others."""
        if b[0].first - a[-1].last > self.gap or len(a) + len(b) == 4:
            return a[0], b[-1]
        one = self.joined(a[-1], b[0])
        if len(a) == 1:
            return (one,) if len(b) == 1 else (one, b[1])
        return a[0], one

    def joined(self, a: Run, b: Run) -> Run:
        """Two runs as one."""
        merged = zip(self.parts, a.accs, b.accs, strict=True)
        return Run(a.first, b.last, tuple([part.merge(x, y) for part, x, y in merged]))


class SessionTrees(ByKey):
    """The rows of each key in the order of time, and the sessions that a change touches."""

    parts: Sequence[Any] = ()

    def __init__(self, time: Any, gap: Any, key: Any, owner: Any) -> None:
        super().__init__(key, owner)
        self.time, self.gap = time, gap

    @abstractmethod
    def shift(
        self, key: Any, was: Tree[Any], now: Tree[Any], pairs: Pairs
    ) -> Iterable[tuple[Any, int]]:
        """The change of the output of a key, when these rows came or went."""

    # ---- everything below is written with this ----

    @cached_property
    def monoid(self) -> SessionMonoid:
        """What every part of a tree knows."""
        return SessionMonoid(self.time, self.gap, self.parts)

    @cached_property
    def empty(self) -> Tree[Any]:
        """The tree of no rows."""
        return Tree(key=self.time, value=self.monoid.of, merge=self.monoid.merge)

    def sessions_of(self, x: Bag) -> Iterator[tuple[Any, Timed]]:
        """Every session from scratch: its key, and its rows with their times and counts."""
        for key, pairs in self.by_key(x.items()).items():
            rows = sorted(
                [(self.time(row), row, count) for row, count in pairs], key=total_order_key
            )
            start = 0
            for i in range(1, len(rows) + 1):
                if i == len(rows) or rows[i][0] - rows[i - 1][0] > self.gap:
                    yield key, rows[start:i]
                    start = i

    def init(self, x: Bag) -> OrderedIndex:
        state = OrderedIndex(self.empty, self.key, self.by_key)
        self.update(state, x)
        return state

    def update(self, state: Any, change: Any) -> dict[Any, int]:
        """Take a change in, and give what became of the sessions that it touches."""
        found, trees, empty = state.grouped(change), state.groups, self.empty
        for key, pairs in found.items():
            for row, weight in pairs:
                if weight < 0:
                    self._there(trees.get(key, empty), row, -weight)
        old = {key: trees.get(key, empty) for key in found}
        state.apply_groups(found)
        out: dict[Any, int] = {}
        get = out.get
        for key, pairs in found.items():
            for each, weight in self.shift(key, old[key], trees.get(key, empty), pairs):
                out[each] = get(each, 0) + weight
        return without_zeros(out)

    def _there(self, tree: Tree[Any], row: Any, count: int) -> None:
        if tree.count(row) < count:
            raise ChangeError(
                f"{self!r}: a row is taken away that is not there",
                row=row,
                remedy="a change that takes away rows that are there",
            )

    def touched(self, tree: Tree[Any], times: list[Any]) -> list[Run]:
        """The sessions that have a row near one of these times, which are in order; each once."""
        found: list[Run] = []
        for time in times:
            if found and time <= found[-1].last:
                continue
            before, behind = totals(tree, rank_at(tree, time), self.monoid.merge)
            near = [before[-1]] if before and time - before[-1].last <= self.gap else []
            if behind and behind[0].first - time <= self.gap:
                near.append(behind[0])
            if len(near) == 2 and near[1].first - near[0].last <= self.gap:
                near = [self.monoid.joined(*near)]
            if found and near and near[0].first == found[-1].first:
                del near[0]
            found += near
        return found

    def accepts(self, state: Any, change: Bag) -> bool:
        return self.input.is_change(change) and bool(state.holds(change))

    def invariant(self, x: Bag, state: Any) -> bool:
        return bool(state == self.init(x)) and all(
            tree.invariant() for tree in state.groups.values()
        )

    def _options(self) -> str:
        key = "" if self.key is None else f", {function_name(self.key)}"
        return f"{function_name(self.time)}, {self.gap!r}{key}"


_FIRST = itemgetter(0)


class SessionRows(SessionTrees):
    """Every row with its session; see `sessions`."""

    def __init__(self, time: Any, gap: Any, key: Any, merge: Any, owner: Any) -> None:
        super().__init__(time, gap, key, owner)
        self.merge = merge

    def f(self, x: Bag) -> Bag:
        out = []
        for _, rows in self.sessions_of(x):
            first, end = rows[0][0], rows[-1][0] + self.gap
            out += [(self.merge(row, first, end), count) for _, row, count in rows]
        return ZSet(out)

    def shift(
        self, key: Any, was: Tree[Any], now: Tree[Any], pairs: Pairs
    ) -> Iterator[tuple[Any, int]]:
        times, merge = [self.time(row) for row, _ in pairs], self.merge
        old, new = self.touched(was, sorted(times)), self.touched(now, sorted(times))
        spans = {run[:2] for run in old} & {run[:2] for run in new}
        for tree, runs, sign in ((was, old, -1), (now, new, 1)):
            for run in runs:
                if run[:2] not in spans:
                    end = run.last + self.gap
                    for row, count in self.rows_of(tree, run):
                        yield merge(row, run.first, end), sign * count
        same = sorted(spans)
        for time, (row, weight) in zip(times, pairs, strict=True) if same else ():
            at = bisect_right(same, time, key=_FIRST) - 1
            if at >= 0 and time <= same[at][1]:
                yield merge(row, same[at][0], same[at][1] + self.gap), weight

    def rows_of(self, tree: Tree[Any], run: Run) -> Iterator[tuple[Any, int]]:
        """The rows of a session, and how often each is there."""
        return tree.between(rank_at(tree, run.first), rank_at(tree, run.last, behind=True))

    def __repr__(self) -> str:
        return f"sessions({self._options()})"


def with_session(row: Any, start: Any, end: Any) -> tuple[Any, Any, Any]:
    """A row with the start and end of its session.

    >>> with_session("a", 3, 8)
    ('a', 3, 8)
    """
    return row, start, end


def sessions(
    time: Callable[[Any], Any],
    gap: Any,
    key: Callable[[Any], Hashable] | None = None,
    *,
    merge: Callable[[Any, Any, Any], Hashable] = with_session,
    owner: Any = None,
) -> SessionRows:
    """Every row with the start and end of its session: `merge(row, start, end)`.

    It ends `gap` after its last row. Two rows exactly `gap` apart belong together.

    >>> live = sessions(lambda t: t, 5).open(ZSet.of([1, 4]))
    >>> live.send(ZSet({9: 1, 20: 1}))
    ZSet({(1, 1, 9): -1, (4, 1, 9): -1, (1, 1, 14): 1, (4, 1, 14): 1, (9, 1, 14): 1, \
(20, 20, 25): 1})
    """
    return SessionRows(time, gap, key, merge, owner)
