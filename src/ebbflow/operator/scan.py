"""The rows of each key in order, through a transition.

What goes out is what the transition says on the way (`scan_rows`), or the state behind the last row
(`fold_rows`). When rows come and go, only those are gone through again that are reached in another
state than before: see `ebbflow.operator.replay`.

Where only the last state is asked for and the steps of a transition can be composed, every node of
the tree holds the composition of all steps below it instead: the aggregate tree, with the State
monoid as its monoid.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.nan import one_nan
from ebbflow.operator.ordered import OrderedRows
from ebbflow.operator.relation import Bag
from ebbflow.operator.replay import LEAF, Replay, StatesOnly, last_state, replay
from ebbflow.state.node import Way
from ebbflow.state.tree import Tree
from ebbflow.stream.transition import Transition
from ebbflow.zset import ZSet


class ScanRows(OrderedRows):
    """What a transition says of the rows of each key, in order; see `scan_rows`."""

    def __init__(self, transition: Transition, order: Any, key: Any, owner: Any) -> None:
        super().__init__(order, key, owner, memos=True, leaf=LEAF)
        self.transition, self.certain = transition, transition.certain

    def f(self, x: Bag) -> Bag:
        return ZSet(self._said(map(self.in_order, self.by_key(x.items()).values())))

    def whole(self, state: Any) -> dict[Any, int]:
        """The whole output, from the state."""
        trees = state.everything().values()
        return self._said([row for row, n in tree for _ in range(n)] for tree in trees)

    def _said(self, keys: Iterable[list[Any]]) -> dict[Any, int]:
        """What is said of the rows of each key, in order."""
        out: dict[Any, int] = {}
        for rows in keys:
            state = self.transition.said(rows, self.transition.start, out, 1)
            last = [] if self.transition.last is None else self.transition.last(state)
            for each in (*self.transition.first, *map(one_nan, last)):
                out[each] = out.get(each, 0) + 1
        return out

    def changed(
        self, key: Any, old: Tree[Any], new: Tree[Any], pairs: Any, way: Way, out: dict[Any, int]
    ) -> None:
        transition = self.transition
        if transition.first:
            first = bool(new.distinct) - bool(old.distinct)
            for each in transition.first if first else ():
                out[each] = out.get(each, 0) + first
        if old.distinct:
            replay(transition, old, new, pairs, way, out)
        else:
            Replay(transition, old, new, (), out).first(*new.root, transition.start)
        if transition.last is not None:
            for tree, sign in ((old, -1), (new, 1)):
                for each in transition.last(last_state(transition, tree)):
                    out[one_nan(each)] = out.get(one_nan(each), 0) + sign

    def __repr__(self) -> str:
        key = "" if self.key is None else f", {function_name(self.key)}"
        return f"scan_rows({self.transition!r}, {function_name(self.order)}{key})"


class FoldRows(OrderedRows):
    """The state behind the last row of each key; see `fold_rows`."""

    def __init__(
        self, transition: Transition, order: Any, key: Any, merge: Any, owner: Any
    ) -> None:
        form: dict[str, Any] = {"memos": True, "leaf": LEAF}
        if transition.merge is not None:
            form = {"value": transition.of, "merge": transition.merge}
        super().__init__(order, key, owner, **form)
        self.transition, self.merge = transition, merge

    def f(self, x: Bag) -> Bag:
        out = []
        for key, pairs in self.by_key(x.items()).items():
            state = self.transition.through(self.in_order(pairs), self.transition.start)
            out.append(self.merge(key, one_nan(state)))
        return ZSet.of(out)

    def changed(
        self, key: Any, old: Tree[Any], new: Tree[Any], pairs: Any, way: Way, out: dict[Any, int]
    ) -> None:
        if self.transition.merge is None and old.distinct and new.distinct:
            replay(StatesOnly(self.transition), old, new, pairs, way, {})
        for tree, sign in ((old, -1), (new, 1)):
            if tree.distinct:
                row = self.merge(key, one_nan(self.last_state(tree)))
                out[row] = out.get(row, 0) + sign

    def last_state(self, tree: Tree[Any]) -> Any:
        """The state behind the last row of a tree."""
        if self.transition.merge is None:
            return last_state(self.transition, tree)
        return self.transition.act(self.transition.start, tree.total)

    def __repr__(self) -> str:
        key = "" if self.key is None else f", {function_name(self.key)}"
        return f"fold_rows({self.transition!r}, {function_name(self.order)}{key})"


def scan_rows(
    transition: Transition,
    order: Callable[[Any], Any],
    key: Callable[[Any], Hashable] | None = None,
    *,
    owner: Any = None,
) -> ScanRows:
    """What a transition says of the rows of each key, in the order of `order(row)`.

    >>> from ebbflow.stream.transition import transition
    >>> running = transition(lambda n, x: (n + x, [(x, n + x)]), 0)
    >>> live = scan_rows(running, lambda x: x).open(ZSet.of([1, 5]))
    >>> live.send(ZSet({3: 1}))
    ZSet({(3, 4): 1, (5, 6): -1, (5, 9): 1})
    """
    return ScanRows(transition, order, key, owner)


def fold_rows(
    transition: Transition,
    order: Callable[[Any], Any],
    key: Callable[[Any], Hashable] | None = None,
    *,
    merge: Callable[[Any, Any], Hashable] = lambda key, state: (key, state),
    owner: Any = None,
) -> FoldRows:
    """The state behind the last row of each key, as `merge(key, state)`.

    >>> from ebbflow.stream.transition import transition
    >>> digits = transition(lambda n, x: (10 * n + x, []), 0)
    >>> live = fold_rows(digits, lambda x: x).open(ZSet.of([1, 5]))
    >>> live.send(ZSet({3: 1}))
    ZSet({((), 15): -1, ((), 135): 1})
    """
    return FoldRows(transition, order, key, merge, owner)
