"""Rows with the session they belong to.

A session is a longest run of rows of one key in which no two neighbours in time are further apart
than a gap. The rows of each key are kept in a tree, in the order of time. A change at a time `t`
can alter only the sessions that have a row no further than the gap from `t`, before the change or
after it; so only those are looked at, and what a step costs follows their size.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.errors import ChangeError
from ebbflow.operator.by_key import ByKey
from ebbflow.operator.relation import Bag
from ebbflow.ordering import total_order_key
from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet, without_zeros

EMPTY: Tree[Any] = Tree()


class SessionRows(ByKey):
    """Every row with its session; see `sessions`."""

    def __init__(self, time: Any, gap: Any, key: Any, merge: Any, owner: Any) -> None:
        super().__init__(key, owner)
        self.time, self.gap, self.merge = time, gap, merge

    def f(self, x: Bag) -> Bag:
        out = []
        for pairs in self.by_key(x.items()).values():
            elements = sorted(
                [(self.element(row), count) for row, count in pairs], key=total_order_key
            )
            start = 0
            for i in range(1, len(elements) + 1):
                if i == len(elements) or elements[i][0][0] - elements[i - 1][0][0] > self.gap:
                    out += self.session(elements[start:i])
                    start = i
        return ZSet(out)

    def element(self, row: Any) -> tuple[Any, Any]:
        """A row with its place in time."""
        return self.time(row), row

    def session(self, elements: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
        """The rows of one session as they go out, and how often each."""
        start, end, merge = elements[0][0][0], elements[-1][0][0] + self.gap, self.merge
        return [(merge(row, start, end), count) for (_, row), count in elements]

    def init(self, x: Bag) -> Cells[Any, Tree[Any]]:
        state: Cells[Any, Tree[Any]] = Cells()
        self.moved(state, x)
        return state

    def moved(self, state: Any, change: Any) -> dict[Any, int]:
        """Take a change in, and give what became of the sessions that it touches."""
        values, new, times = state.values, {}, {}
        for key, pairs in self.by_key(change.items()).items():
            elements = [(self.element(row), weight) for row, weight in pairs]
            for element, weight in elements:
                if weight < 0:
                    self._there(values.get(key, EMPTY), element, -weight)
            new[key] = values.get(key, EMPTY).update(elements)
            times[key] = sorted([element[0] for element, _ in elements])
        old = state.swap({key: tree if tree.distinct else ABSENT for key, tree in new.items()})
        out: dict[Any, int] = {}
        get = out.get
        for key, tree in new.items():
            was = EMPTY if old[key] is ABSENT else old[key]
            for now, sign in ((was, -1), (tree, 1)):
                for start, stop in self.touched(now, times[key]):
                    for each, count in self.session(_between(now, start, stop)):
                        out[each] = get(each, 0) + sign * count
        return without_zeros(out)

    def _there(self, tree: Tree[Any], element: Any, count: int) -> None:
        if tree.count(element) < count:
            raise ChangeError(
                f"{self!r}: a row is taken away that is not there",
                row=element[1],
                remedy="a change that takes away rows that are there",
            )

    def touched(self, tree: Tree[Any], times: list[Any]) -> list[tuple[int, int]]:
        """Where the sessions lie that have a row near one of these times, which are in order.

        So the sessions are found in order too, and each is walked through once.
        """
        found: list[tuple[int, int]] = []
        known = 0
        for time in times:
            i = tree.rank((time,))
            if known < i and time - tree.at(i - 1)[0] <= self.gap:
                found.append(self.around(tree, i - 1))
                known = found[-1][1]
            if known <= i < tree.size and tree.at(i)[0] - time <= self.gap:
                found.append(self.around(tree, i))
                known = found[-1][1]
        return found

    def around(self, tree: Tree[Any], i: int) -> tuple[int, int]:
        """Where the session of the i-th row begins and ends."""
        each, start, count = tree.spot(i)
        stop, first, last = start + count, each[0], each[0]
        while start:
            each, at, _ = tree.spot(start - 1)
            if first - each[0] > self.gap:
                break
            first, start = each[0], at
        while stop < tree.size:
            each, at, count = tree.spot(stop)
            if each[0] - last > self.gap:
                break
            last, stop = each[0], at + count
        return start, stop

    def accepts(self, state: Any, change: Bag) -> bool:
        return self.input.is_change(change) and all(
            weight > 0 or state.values.get(key, EMPTY).count(self.element(row)) + weight >= 0
            for key, pairs in self.by_key(change.items()).items()
            for row, weight in pairs
        )

    def invariant(self, x: Bag, state: Any) -> bool:
        return bool(state == self.init(x)) and all(
            tree.invariant() for tree in state.values.values()
        )

    def __repr__(self) -> str:
        key = "" if self.key is None else f", {function_name(self.key)}"
        return f"sessions({function_name(self.time)}, {self.gap!r}{key})"


def _between(tree: Tree[Any], start: int, stop: int) -> list[tuple[Any, int]]:
    """The elements from one place to another, and how often each is there."""
    found = []
    while start < stop:
        each, start, count = tree.spot(start)
        found.append((each, count))
        start += count
    return found


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
