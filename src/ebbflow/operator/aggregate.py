"""Aggregation: all rows, or all rows of each group, merged into one value by a user's function.

`merge` puts two values together and must be associative. Nothing else is asked of it: there need be
no way to take a value out again, so when a row goes, what is left has to be merged anew. A `Tree`
makes that cheap by keeping the totals of its parts: a change costs about `log n` merges per row.

`max` and `min` need no totals, because in a sorted tree the answer is at the end, and not even a
whole tree: for these two an `Index` holds all rows, and a top buffer the first few of each group
(see `ebbflow.state.top_buffer`). The same goes for every merge that is seen to give one of its
arguments (see `ebbflow.operator.selective`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial, reduce
from itertools import chain, repeat
from operator import ne
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.change import BAG, REPLACE, ChangeStructure
from ebbflow.errors import AlgebraError, place
from ebbflow.nan import is_nan
from ebbflow.operator.operator import Operator
from ebbflow.operator.selective import MergeRanking, selective
from ebbflow.ordering import in_order
from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import Index
from ebbflow.state.top_buffer import ROOM, Ranking
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet, trusted, weights_of

Bag = ZSet[Any]
Merge = Callable[[Any, Any], Any]
Results = dict[Any, tuple[Any, Any]]

SIMPLE = {int, float, bool, str, bytes}


class Trees:
    """A tree of rows per key: for every merge."""

    def __init__(self, key: Any, merge: Merge, order: Any, value: Any) -> None:
        self.rows = Index(key)
        self.empty: Tree[Any] = Tree(key=order, value=value, merge=merge)

    def init(self, x: Bag) -> Cells[Any, Tree[Any]]:
        grouped = self.rows.grouped(x)
        return Cells({key: self.empty.update(pairs) for key, pairs in grouped.items()})

    def step(self, state: Any, change: Bag) -> Results:
        """Take a change in, and give the old and the new result of each touched key."""
        get, empty = state.values.get, self.empty
        grouped = self.rows.grouped(change)
        new = {key: get(key, empty).update(pairs) for key, pairs in grouped.items()}
        old = state.swap({key: tree if tree.distinct else ABSENT for key, tree in new.items()})
        return {key: (_total(old[key]), _total(new[key])) for key in new}

    def result(self, state: Any, key: Any) -> Any:
        return _total(state.values.get(key, ABSENT))

    def holds(self, state: Any, change: Bag) -> bool:
        at, there = self.rows.key or _everything, state.values.get
        return all(
            weight > 0 or there(at(row), self.empty).count(row) + weight >= 0
            for row, weight in change.items()
        )

    def invariant(self, x: Bag, state: Any) -> bool:
        trees, groups = state.values, Index(self.rows.key, x).groups
        return trees.keys() == groups.keys() and all(
            tree.invariant() and dict(tree) == groups[key] for key, tree in trees.items()
        )


class Ends:
    """All rows in an index, and per key a top buffer of them: for max, min and other merges that
    give one of their arguments."""

    def __init__(self, key: Any, ranking: Ranking) -> None:
        self.key = key
        self.ranking = ranking

    def init(self, x: Bag) -> tuple[Index[Any, Any], Cells[Any, Any]]:
        _without_nan(x)
        index: Index[Any, Any] = Index(self.key, x)
        picked = self.ranking.picked
        return index, Cells({key: picked(rows, ROOM) for key, rows in index.groups.items()})

    def step(self, state: Any, change: Bag) -> Results:
        index, cells = state
        groups, there = index.groups, cells.values
        update, empty = self.ranking.update, self.ranking.empty
        _without_nan(change)
        new = {}
        for key, pairs in index.apply(change).items():
            rows = groups.get(key)
            new[key] = ABSENT if rows is None else (
                update(there.get(key, empty), pairs, partial(_same, rows))
            )  # fmt: skip
        old = cells.swap(new)
        return {key: (self.end(old[key]), self.end(new[key])) for key in new}

    def end(self, buffer: Any) -> Any:
        best = () if buffer is ABSENT else self.ranking.best(buffer)
        return best[0] if best else ABSENT

    def result(self, state: Any, key: Any) -> Any:
        return self.end(state[1].values.get(key, ABSENT))

    def holds(self, state: Any, change: Bag) -> bool:
        return bool(state[0].holds(change))

    def invariant(self, x: Bag, state: Any) -> bool:
        index, cells = state[0], state[1].values
        return (
            index == Index(self.key, x)
            and cells.keys() == index.groups.keys()
            and all(self.ranking.agrees(cells[key], rows) for key, rows in index.groups.items())
        )


class Leaning:
    """An aggregate right behind an operator that can `read` its whole output from its state.

    That output need not be kept twice: a top buffer is all of the state, and what is behind it is
    read when it runs out.
    """

    def __init__(
        self, ends: Ends, output: ChangeStructure[Any, Any], empty: Any, read: Any
    ) -> None:
        self.ends, self.output, self.empty, self.read = ends, output, empty, read

    def init(self, x: Bag) -> tuple[None, Cells[Any, Any]]:
        _without_nan(x)
        return None, Cells({(): self.ends.ranking.picked(weights_of(x), ROOM)} if x else {})

    def step(self, state: Any, change: Bag, before: Any) -> tuple[Any, Any]:
        """As the step of an aggregate; `before` is the state of the operator before it, now."""
        _without_nan(change)
        ends, cells = self.ends, state[1]
        buffer = cells.values.get((), ends.ranking.empty)
        new = ends.ranking.update(buffer, change.items(), partial(self.read, before))
        found, old = ends.end(new), ends.end(buffer)
        if new is not buffer:
            cells.swap({(): ABSENT if found is ABSENT else new})
        values = [self.empty if one is ABSENT else one for one in (found, old)]
        return state, self.output.diff(*values)

    def invariant(self, x: Bag, state: Any) -> bool:
        cells, rows = state[1].values, weights_of(x)
        return cells.keys() == ({()} if rows else set()) and all(
            self.ends.ranking.agrees(buffer, rows) for buffer in cells.values()
        )


def _total(tree: Any) -> Any:
    return tree.total if tree is not ABSENT and tree.distinct else ABSENT


def _same(rows: Any) -> Any:
    return rows


def _without_nan(rows: Bag) -> None:
    """Refuse a NaN: a merge that compares has no answer for it. For rows of simple types this is
    one look at their types."""
    types = set(map(type, rows))
    flat: Any = rows
    if types == {tuple}:
        flat = list(chain.from_iterable(rows))
        types = set(map(type, flat))
    simple = types <= SIMPLE and (float not in types or not any(map(ne, flat, flat)))
    if not simple and any(map(_holds_nan, rows)):
        raise AlgebraError("NaN has no place in an order", remedy="leave it out")


def _holds_nan(x: Any) -> bool:
    return any(map(_holds_nan, x)) if isinstance(x, tuple) else is_nan(x)


def _everything(row: Any) -> tuple[()]:
    return ()


class _Merging(Operator[Bag, Bag, Any, Any]):
    """What both aggregates do with their groups."""

    input = BAG
    groups: Trees | Ends

    def init(self, x: Bag) -> Any:
        return self.groups.init(x)

    def invariant(self, x: Bag, state: Any) -> bool:
        return self.groups.invariant(x, state)

    def accepts(self, state: Any, change: Bag) -> bool:
        return self.input.is_change(change) and self.groups.holds(state, change)


class Aggregate(_Merging):
    """All rows merged into one value; see `aggregate`."""

    def __init__(
        self, merge: Merge, order: Any, value: Any, empty: Any, output: ChangeStructure[Any, Any]
    ) -> None:
        self.merge, self.order, self.value, self.empty = merge, order, value, empty
        self.output = output
        self.groups = _groups(None, merge, order, value)
        self.created = place()

    def f(self, x: Bag) -> Any:
        return _folded(x, self.merge, self.order, self.value, self.empty)

    def step(self, state: Any, change: Bag) -> tuple[Any, Any]:
        old = self.now(state)
        self.groups.step(state, change)
        return state, self.output.diff(self.now(state), old)

    def leaning(self, before: Operator[Any, Any, Any, Any]) -> Leaning | None:
        """This behind another operator, if it need not keep what that one can `read`."""
        read = getattr(before, "read", None)
        if read is None or not isinstance(self.groups, Ends):
            return None
        return Leaning(self.groups, self.output, self.empty, read)

    def keys(self, change: Bag) -> set[Any]:
        """All of the state is under one key."""
        return {()}

    def now(self, state: Any) -> Any:
        """The value as it is."""
        found = self.groups.result(state, ())
        return self.empty if found is ABSENT else found

    def __repr__(self) -> str:
        options = _options(order=self.order, value=self.value)
        options += f", empty={self.empty!r}" * (self.empty is not None)
        options += f", output={self.output!r}" * (self.output is not REPLACE)
        return f"aggregate({function_name(self.merge)}{options})"


def aggregate(
    merge: Merge,
    *,
    order: Callable[[Any], Any] | None = None,
    value: Callable[[Any], Any] | None = None,
    empty: Any = None,
    output: ChangeStructure[Any, Any] = REPLACE,
) -> Operator[Bag, Bag, Any, Any]:
    """All rows merged into one value.

    Equals `functools.reduce(merge, map(value, rows))` over the rows sorted by `order`, each as
    often as it is there, and `empty` where there are none. `merge` must be associative; where it is
    also commutative the order does not matter, but there has to be one: see `Tree`.

    >>> longest = aggregate(lambda a, b: a if len(a) >= len(b) else b, order=lambda s: (-len(s), s))
    >>> live = longest.open(ZSet.of(["fig", "apple", "pear"]))
    >>> live.send(ZSet({"apple": -1})), live.send(ZSet({"kiwi": 1}))
    (Replace(value='pear'), Replace(value='kiwi'))

    `output` is a change structure with a `diff`: NUMBER gives how far a number moved.

    >>> from ebbflow.change import NUMBER
    >>> total = aggregate(lambda a, b: a + b, value=len, empty=0, output=NUMBER)
    >>> total.open(ZSet.of(["fig", "apple"])).send(ZSet({"fig": -1, "kiwi": 2}))
    5
    """
    return Aggregate(merge, order, value, empty, output)


class GroupAggregate(_Merging):
    """The rows of each key merged into one value; see `group_aggregate`."""

    output = BAG

    def __init__(
        self, key: Callable[[Any], Hashable], merge: Merge, order: Any, value: Any
    ) -> None:
        self.key, self.merge, self.order, self.value = key, merge, order, value
        self.groups = _groups(key, merge, order, value)
        self.created = place()

    def f(self, x: Bag) -> Bag:
        parts: dict[Hashable, list[tuple[Any, int]]] = {}
        for row, count in x.items():
            parts.setdefault(self.key(row), []).append((row, count))
        return ZSet.of(
            (key, _folded(ZSet(pairs), self.merge, self.order, self.value, None))
            for key, pairs in parts.items()
        )

    def step(self, state: Any, change: Bag) -> tuple[Any, Bag]:
        out: dict[Any, int] = {}
        for key, (old, new) in self.groups.step(state, change).items():
            if old is new or old == new:
                continue
            if old is not ABSENT:
                out[key, old] = -1
            if new is not ABSENT:
                out[key, new] = 1
        return state, trusted(out)

    def keys(self, change: Bag) -> set[Any]:
        """The keys whose state a step with this change touches."""
        return {self.key(row) for row in change}

    def __repr__(self) -> str:
        functions = f"{function_name(self.key)}, {function_name(self.merge)}"
        return f"group_aggregate({functions}{_options(order=self.order, value=self.value)})"


def group_aggregate(
    key: Callable[[Any], Hashable],
    merge: Merge,
    *,
    order: Callable[[Any], Any] | None = None,
    value: Callable[[Any], Any] | None = None,
) -> Operator[Bag, Bag, Bag, Bag]:
    """One row `(key, aggregate)` per key: the values of that key's rows merged, as in `aggregate`.

    Only the keys of the changed rows are looked at. A key without rows has no row.

    >>> sales = ZSet.of([("Rome", 3), ("Rome", 5), ("Oslo", 4)])
    >>> best = group_aggregate(lambda row: row[0], max, value=lambda row: row[1])
    >>> live = best.open(sales)
    >>> live.send(ZSet({("Rome", 5): -1, ("Oslo", 4): -1}))
    ZSet({('Rome', 5): -1, ('Rome', 3): 1, ('Oslo', 4): -1})
    """
    return GroupAggregate(key, merge, order, value)


def _groups(key: Any, merge: Merge, order: Any, value: Any) -> Trees | Ends:
    if (merge is max or merge is min) and order is None and value is None:
        return Ends(key, Ranking(merge is max))
    fn = selective(merge) if value is None else None
    return Trees(key, merge, order, value) if fn is None else Ends(key, MergeRanking(fn, order))


def _folded(x: Bag, merge: Merge, order: Any, value: Any, empty: Any) -> Any:
    """The meaning of an aggregate, without a tree."""
    if (merge is max or merge is min) and order is None and value is None:
        rows = in_order(x, None)
        return rows[-1 if merge is max else 0] if rows else empty
    values = [
        one
        for row in in_order(x, order)
        for one in repeat(row if value is None else value(row), x.weight(row))
    ]
    return reduce(merge, values) if values else empty


def _options(**functions: Any) -> str:
    given = ((name, f) for name, f in functions.items() if f is not None)
    return "".join(f", {name}={function_name(f)}" for name, f in given)
