"""Reducers in programs: as a differential operator over bags, and as a stream processor.

The operator keeps, for each key, how many rows there are and their accumulator; a group with no
rows is not there. It also keeps the rows themselves where they may be needed again: when `remove`
may ask to recompute, or is missing. Where there is no `remove` but a `merge`, it keeps the rows in
an aggregate tree, whose root is the accumulator. A step that raises leaves the state as it was.

The processor reads any Z-sets, in any pieces. A row whose weight is negative is owed: it does not
count until it has come as often as it was taken away. So a removal that overtakes its insertion
does no harm, and the output does not depend on how the stream was cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ebbflow.algebra import Monoid
from ebbflow.change import BAG, KEEP, REPLACE, Replace
from ebbflow.errors import ChangeError, place
from ebbflow.operator import Operator
from ebbflow.reducer.reducer import Recompute, Reducer
from ebbflow.reducer.row import Key, getter, key_text
from ebbflow.state.tree import Tree
from ebbflow.stream import Processor
from ebbflow.zset import ZSETS, ZSet

Rows = dict[Any, int]
Change = list[tuple[Any, int]]


class Group:
    """One group of rows: how many, their accumulator, and the rows where they may be needed.

    >>> Group(acc=0, rows=None)
    <0 rows at 0>
    """

    __slots__ = ("acc", "rows", "size")

    def __init__(self, acc: Any, rows: Any) -> None:
        self.size = 0
        self.acc = acc
        self.rows = rows

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Group):
            return NotImplemented
        return (self.size, self.acc, self.rows) == (other.size, other.acc, other.rows)

    def __repr__(self) -> str:
        return f"<{self.size} rows at {self.acc!r}>"


class Groups:
    """How a reducer follows the changes of one group.

    >>> from ebbflow.reducer import sum
    >>> groups = Groups(sum())
    >>> groups.next(groups.new(), [(5, 2)])[0]
    2
    """

    def __init__(self, reducer: Reducer[Any, Any, Any]) -> None:
        self.reducer = reducer
        self.tree = reducer.remove is None and reducer.merge is not None
        self.keeps_rows = not self.tree and (reducer.remove is None or reducer.partial is not False)

    def new(self) -> Group:
        return Group(self.reducer.start(), self._tree() if self.tree else {} if self.keeps_rows
                     else None)  # fmt: skip

    def _tree(self) -> Tree[Any]:
        return Tree(value=_Single(self.reducer), merge=self.reducer.merge)

    def takes(self, group: Group | None, change: Change) -> bool:
        """Whether the rows that a change takes away are there, as far as is known."""
        if group is None:
            return all(weight > 0 for _, weight in change)
        if group.rows is None:
            return group.size >= -sum(weight for _, weight in change if weight < 0)
        count = group.rows.count if self.tree else lambda row: group.rows.get(row, 0)
        return all(weight > 0 or count(row) + weight >= 0 for row, weight in change)

    def next(self, group: Group, change: Change) -> tuple[int, Any, Any]:
        """What a group becomes: size, accumulator and tree. The group itself stays as it is."""
        size = group.size + sum(weight for _, weight in change)
        if size < 0:
            raise ChangeError("more rows are taken away than there are", change=change)
        if not self.tree:
            return size, self._moved(group, change), None
        tree = group.rows.update(change)
        return size, tree.total if size else self.reducer.start(), tree

    def commit(self, group: Group, moved: tuple[int, Any, Any], change: Change) -> None:
        """Let a group become what `next` said."""
        group.size, group.acc, tree = moved
        if self.tree:
            group.rows = tree
        elif self.keeps_rows:
            _patch(group.rows, change)

    def _moved(self, group: Group, change: Change) -> Any:
        """Removals first, then additions."""
        reducer, acc = self.reducer, group.acc
        for row, weight in change:
            if weight < 0:
                acc = reducer.removed(acc, row, -weight)
                if isinstance(acc, Recompute):
                    return self._again(group, change)
        for row, weight in change:
            if weight > 0:
                acc = reducer.added(acc, row, weight)
        return acc

    def _again(self, group: Group, change: Change) -> Any:
        if group.rows is None:
            raise ChangeError(
                f"{self.reducer!r} asks to recompute, but is declared partial=False",
                remedy="leave partial= out: then the rows are kept for it",
            )
        rows = group.rows.copy()
        _patch(rows, change)
        acc = self.reducer.start()
        for row, weight in rows.items():
            acc = self.reducer.added(acc, row, weight)
        return acc


class _Single:
    """The accumulator of one row, as a value that can be pickled."""

    def __init__(self, reducer: Reducer[Any, Any, Any]) -> None:
        self.reducer = reducer

    def __call__(self, row: Any) -> Any:
        return self.reducer.add(self.reducer.start(), row)


def _patch(rows: Rows, change: Iterable[tuple[Any, int]]) -> None:
    for row, weight in change:
        weight += rows.get(row, 0)
        if weight:
            rows[row] = weight
        else:
            rows.pop(row, None)


# ---- differential operators ----


class Reduce(Operator[ZSet[Any], ZSet[Any], ZSet[Any], ZSet[Any]]):
    """The bag of `(key, result)` for a bag of rows; see `Reducer.operator`.

    >>> from ebbflow.reducer import sum
    >>> revenue = sum(lambda sale: sale[1]).operator(lambda sale: sale[0])
    >>> live = revenue.open(ZSet.of([("Rome", 10), ("Oslo", 7)]))
    >>> live.send(ZSet({("Rome", 5): 1, ("Oslo", 7): -1}))
    ZSet({('Rome', 10): -1, ('Rome', 15): 1, ('Oslo', 7): -1})
    """

    def __init__(self, reducer: Reducer[Any, Any, Any], key: tuple[Key, ...]) -> None:
        self.reducer = reducer
        self.given = key
        self.key = getter(*key)
        self.groups = Groups(reducer)
        self.input = BAG
        self.output = BAG
        self.created = place()

    def f(self, x: ZSet[Any]) -> ZSet[Any]:
        bags: dict[Any, Rows] = {}
        for row, weight in x.items():
            bags.setdefault(self.key(row), {})[row] = weight
        return ZSet.of((key, self.reducer(ZSet(bag))) for key, bag in bags.items())

    def init(self, x: ZSet[Any]) -> dict[Any, Group]:
        return self.step({}, x)[0]

    def keys(self, change: ZSet[Any]) -> set[Any]:
        """The keys whose groups a change touches."""
        return {self.key(row) for row in change}

    def accepts(self, state: dict[Any, Group], change: ZSet[Any]) -> bool:
        touched = self._by_key(change)
        return all(self.groups.takes(state.get(key), part) for key, part in touched.items())

    def step(
        self, state: dict[Any, Group], change: ZSet[Any]
    ) -> tuple[dict[Any, Group], ZSet[Any]]:
        finish, out, moves = self.reducer.finish, [], []
        for key, part in self._by_key(change).items():
            group = state.get(key)
            if group is None:
                group = self.groups.new()
            else:
                out.append(((key, finish(group.acc)), -1))
            moved = self.groups.next(group, part)
            if moved[0]:
                out.append(((key, finish(moved[1])), 1))
            moves.append((key, group, moved, part))
        output = ZSet(out)
        for key, group, moved, part in moves:
            self.groups.commit(group, moved, part)
            if group.size:
                state[key] = group
            else:
                state.pop(key, None)
        return state, output

    def _by_key(self, change: ZSet[Any]) -> dict[Any, Change]:
        parts: dict[Any, Change] = {}
        for row, weight in change.items():
            parts.setdefault(self.key(row), []).append((row, weight))
        return parts

    def __repr__(self) -> str:
        return f"({self.reducer!r}).operator({', '.join(map(key_text, self.given))})"


class ReduceAll(Operator[ZSet[Any], ZSet[Any], Any, Any]):
    """The result for all rows of a bag, replaced when it changes; see `Reducer.operator`.

    >>> from ebbflow.reducer import max
    >>> live = max().operator().open(ZSet.of([3, 5]))
    >>> live.send(ZSet({3: -1})), live.send(ZSet({5: -1, 4: 1}))
    (KEEP, Replace(value=4))
    """

    def __init__(self, reducer: Reducer[Any, Any, Any]) -> None:
        self.reducer = reducer
        self.groups = Groups(reducer)
        self.input = BAG
        self.output = REPLACE
        self.created = place()

    def f(self, x: ZSet[Any]) -> Any:
        return self.reducer(x)

    def init(self, x: ZSet[Any]) -> Group:
        return self.step(self.groups.new(), x)[0]

    def accepts(self, state: Group, change: ZSet[Any]) -> bool:
        return self.groups.takes(state, list(change.items()))

    def step(self, state: Group, change: ZSet[Any]) -> tuple[Group, Any]:
        part = list(change.items())
        moved = self.groups.next(state, part)
        old, new = self.reducer.finish(state.acc), self.reducer.finish(moved[1])
        self.groups.commit(state, moved, part)
        return state, KEEP if new is old or new == old else Replace(new)

    def __repr__(self) -> str:
        return f"({self.reducer!r}).operator()"


# ---- stream processors ----


class Reducing(Processor[ZSet[Any], ZSet[Any]]):
    """Changes of rows in, changes of results out, however the stream is cut; see
    `Reducer.processor`.

    >>> from ebbflow.reducer import count
    >>> live = count().processor(str.lower).open()
    >>> live.send(ZSet.of("aAb")), live.send(ZSet({"b": -1}))
    (ZSet({('a', 2): 1, ('b', 1): 1}), ZSet({('b', 1): -1}))
    """

    target = ZSETS

    def __init__(
        self, reducer: Reducer[Any, Any, Any], key: tuple[Key, ...], source: Monoid[ZSet[Any]]
    ) -> None:
        self.reducer = reducer
        self.given = key
        self.source = source
        self.operator = Reduce(reducer, key or (_all,))
        self.created = place()

    def start(self) -> tuple[Any, ZSet[Any]]:
        return ({}, {}), ZSet()

    def step(self, state: Any, change: ZSet[Any]) -> tuple[Any, ZSet[Any]]:
        weights, groups = state
        moved = []
        for row, weight in change.items():
            old = weights.get(row, 0)
            moved.append((row, max(old + weight, 0) - max(old, 0)))
        groups, out = self.operator.step(groups, ZSet(moved))
        _patch(weights, change.items())
        return (weights, groups), out if self.given else out.map(_result)

    def __repr__(self) -> str:
        return f"({self.reducer!r}).processor({', '.join(map(key_text, self.given))})"


def _all(row: Any) -> None:
    """The key of the one group of all rows."""


def _result(row: tuple[Any, Any]) -> Any:
    return row[1]
