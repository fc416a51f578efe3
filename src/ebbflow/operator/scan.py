"""The rows of each key in order, through a transition.

Of each key the rows are kept in a tree, in order. A change puts rows into it, or takes rows out, at
some places. Up to the first of them every row is reached in the state it was reached in before.
From there on two states go from row to row side by side, the old one and the new one, and what they
say is compared. As soon as they are equal, nothing changes until the next place, and all rows
between are passed over.

To pass over rows one must know which state is behind them. So every node of the tree remembers in
which state it was entered, and which states were behind each of its parts: it is stepped through
again only when it is entered in another.

Where only the last state is asked for (`fold_rows`) and the steps of a transition can be composed,
every node holds the composition of all steps below it instead: the aggregate tree, with the State
monoid as its monoid.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable
from decimal import Decimal
from operator import itemgetter
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.nan import one_nan
from ebbflow.operator.by_key import ByKey
from ebbflow.operator.relation import Bag
from ebbflow.state.ordered import OrderedIndex
from ebbflow.state.tree import Tree, in_order
from ebbflow.stream.transition import Transition
from ebbflow.zset import ZSet, without_zeros

_FIRST = itemgetter(0)
WIDTH = 16
"""Rows in a leaf where states are remembered: so many are stepped through to find a state."""


class OrderedRows(ByKey):
    """An operator on the rows of each key in order: what all of them share.

    `order(row)` is the place of a row; rows at the same place are ordered by themselves. `form` is
    what the trees are made with besides.
    """

    def __init__(self, order: Any, key: Any, owner: Any, **form: Any) -> None:
        super().__init__(key, owner)
        self.order = order
        self.empty: Tree[Any] = Tree(key=self.place, **form)

    def place(self, row: Any) -> Any:
        """The place of a row in the order."""
        return one_nan(self.order(row))

    def in_order(self, pairs: Any) -> list[Any]:
        """The rows of one key in order, each as often as it is there."""
        counts = dict(pairs)
        return [row for row in in_order(counts, self.place) for _ in range(counts[row])]

    def init(self, x: Bag) -> OrderedIndex:
        state = OrderedIndex(self.empty, self.key, self.by_key)
        self.update(state, x)
        return state

    def update(self, state: Any, change: Any) -> dict[Any, int]:
        """Take a change in, and give what changes behind it."""
        groups, empty = state.groups, self.empty
        found = state.grouped(change)
        old = {key: groups.get(key, empty) for key in found}
        state.put(found)
        out: dict[Any, int] = {}
        for key, pairs in found.items():
            self.changed(key, old[key], groups.get(key, empty), pairs, out)
        return without_zeros(out)

    def changed(
        self, key: Any, old: Tree[Any], new: Tree[Any], pairs: Any, out: dict[Any, int]
    ) -> None:
        """Add to `out` what changes when the rows of a key do."""
        raise NotImplementedError

    def accepts(self, state: Any, change: Bag) -> bool:
        return self.input.is_change(change) and bool(state.holds(change))

    def invariant(self, x: Bag, state: Any) -> bool:
        trees = self.by_key(x.items())
        return (
            state.groups.keys() == trees.keys()
            and all(dict(state.groups[at]) == dict(pairs) for at, pairs in trees.items())
            and all(tree.invariant() for tree in state.groups.values())
        )


class ScanRows(OrderedRows):
    """What a transition says of the rows of each key, in order; see `scan_rows`."""

    def __init__(self, transition: Transition, order: Any, key: Any, owner: Any) -> None:
        super().__init__(order, key, owner, memos=True, width=WIDTH)
        self.transition = transition

    def f(self, x: Bag) -> Bag:
        said: list[Any] = []
        for pairs in self.by_key(x.items()).values():
            state = self.transition.start
            said += self.transition.first
            for row in self.in_order(pairs):
                state, more = self.transition.step(state, row)
                said += more
            if self.transition.last is not None:
                said += self.transition.last(state)
        return ZSet.of(map(one_nan, said))

    def changed(
        self, key: Any, old: Tree[Any], new: Tree[Any], pairs: Any, out: dict[Any, int]
    ) -> None:
        first = bool(new.distinct) - bool(old.distinct)
        if first:
            for each in self.transition.first:
                out[each] = out.get(each, 0) + first
        if old.distinct:
            Replay(self.transition, new, pairs, out, new if new.distinct else old).run()
        else:
            Replay(self.transition, new, (), out).first(*new.root, self.transition.start)
        if self.transition.last is not None:
            for tree, sign in ((old, -1), (new, 1)):
                for each in self.transition.last(last_state(self.transition, tree)):
                    out[one_nan(each)] = out.get(one_nan(each), 0) + sign

    def __repr__(self) -> str:
        key = "" if self.key is None else f", {function_name(self.key)}"
        return f"scan_rows({self.transition!r}, {function_name(self.order)}{key})"


class FoldRows(OrderedRows):
    """The state behind the last row of each key; see `fold_rows`."""

    def __init__(
        self, transition: Transition, order: Any, key: Any, merge: Any, owner: Any
    ) -> None:
        form: dict[str, Any] = {"memos": True, "width": WIDTH}
        if transition.merge is not None:
            form = {"value": transition.of, "merge": transition.merge}
        super().__init__(order, key, owner, **form)
        self.transition, self.merge = transition, merge

    def f(self, x: Bag) -> Bag:
        out = []
        for key, pairs in self.by_key(x.items()).items():
            state = self.transition.start
            for row in self.in_order(pairs):
                state = self.transition.after(state, row)
            out.append(self.merge(key, one_nan(state)))
        return ZSet.of(out)

    def changed(
        self, key: Any, old: Tree[Any], new: Tree[Any], pairs: Any, out: dict[Any, int]
    ) -> None:
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


# ---- through a tree ----


def last_state(transition: Transition, tree: Tree[Any]) -> Any:
    """The state behind the last row of a tree."""
    return state_after(transition, *tree.root, transition.start)


def state_before(transition: Transition, tree: Tree[Any], place: int) -> Any:
    """The state in which the row at a place of a tree is reached."""
    state = transition.start
    node, height = tree.root
    while height:
        height -= 1
        i = 0
        for size in node[2]:
            if place < size:
                break
            place -= size
            i += 1
        state = state_at(transition, node, height + 1, i, state)
        if i == len(node[1]):
            return state
        node = node[1][i]
    for row, count in zip(node[1], node[2], strict=True):
        for _ in range(min(count, place)):
            state = transition.after(state, row)
        place -= min(count, place)
    return state


def state_after(transition: Transition, node: Any, height: int, state: Any) -> Any:
    """The state behind all rows of a node that is entered in a state."""
    if height:
        return state_at(transition, node, height, len(node[1]), state)
    if not node[4]:
        return state
    known = node[5][:]
    if not known or not same_state(known[0], state):
        node[5][:] = known = [state, through(transition, node, state)]
    return known[1]


def state_at(transition: Transition, node: Any, height: int, i: int, state: Any) -> Any:
    """The state before the i-th child of a node that is entered in a state."""
    return states_to(transition, node, height, i, state)[i]


def states_to(transition: Transition, node: Any, height: int, i: int, state: Any) -> list[Any]:
    """The states before the children of a node that is entered in a state: up to the i-th, and
    perhaps further. Nodes are shared, and so is what they remember: it is put in whole."""
    known = node[5][:]
    if not known or not same_state(known[0], state):
        known = [state]
    if len(known) <= i:
        for child in node[1][len(known) - 1 : i]:
            known.append(state_after(transition, child, height - 1, known[-1]))
        node[5][:] = known
    return list(known)


def same_state(a: Any, b: Any) -> bool:
    """Whether steps cannot tell two states apart: equal, of the same types, with the same zeros.

    >>> same_state((1, 2.0), (1, 2.0)), same_state((1, 2), (1, 2.0)), same_state(0.0, -0.0)
    (True, False, False)
    """
    return a is b or (bool(a == b) and _alike(a, b))


def _alike(a: Any, b: Any) -> bool:
    cls = type(a)
    if a is b or cls is not type(b):
        return a is b
    if isinstance(a, tuple):
        return all(map(_alike, a, b))
    if cls is float:
        return math.copysign(1.0, a) == math.copysign(1.0, b)
    return cls is not Decimal or str(a) == str(b)


def through(transition: Transition, leaf: Any, state: Any) -> Any:
    """The state behind the rows of a leaf."""
    after = transition.after
    for row, count in zip(leaf[1], leaf[2], strict=True):
        state = after(state, row)
        for _ in range(count - 1):
            state = after(state, row)
    return state


class Replay:
    """One way through the rows of a key, from the first one that changed.

    `pairs` are the rows that came and went, with their weights; they are in `tree`, or no longer,
    and in the order of `ordering`, which knows all of them where `tree` is empty.
    What is said otherwise than before is added to `out`.
    """

    __slots__ = (
        "at",
        "clean",
        "marks",
        "moves",
        "out",
        "root",
        "settled",
        "transition",
    )

    def __init__(
        self, transition: Transition, tree: Tree[Any], pairs: Any, out: dict[Any, int],
        ordering: Tree[Any] | None = None,
    ) -> None:  # fmt: skip
        self.transition, self.out, self.root = transition, out, tree.root
        token = (tree if ordering is None else ordering).token
        moves = [(token(row), row, weight) for row, weight in pairs]
        if len(moves) > 1:
            moves.sort(key=_FIRST)
        self.marks, self.moves = [move[0] for move in moves], moves
        self.clean = transition.clean
        self.at = 0
        self.settled = False

    def run(self) -> None:
        """Go through all rows that are reached in another state than before."""
        start = self.transition.start
        old, _ = self.node(*self.root, start, start, None)
        if not self.settled:  # rows that went, behind all that are there
            for _, row, weight in self.moves[self.at :]:
                old = self.say(old, row, -weight, -1)

    def first(self, node: Any, height: int, state: Any) -> Any:
        """Go through all rows for the first time, and give the state behind them."""
        node[5][:] = (state,)
        if height:
            for child in node[1]:
                state = self.first(child, height - 1, state)
                node[5].append(state)
            return state
        for row, count in zip(node[1], node[2], strict=True):
            state = self.say(state, row, count, 1)
        node[5].append(state)
        return state

    def node(self, node: Any, height: int, old: Any, new: Any, end: Any) -> tuple[Any, Any]:
        """The two states behind a node whose rows are all before `end`."""
        equal = same_state(old, new)
        if equal and not self.more(end):
            if self.at == len(self.marks):
                self.settled = True
                return old, new
            new = state_after(self.transition, node, height, new)
            return new, new
        if not height:
            entered = new
            old, new = self.leaf(node, old, new, end)
            if not self.settled and node[4]:
                node[5][:] = entered, new
            return old, new
        lows, children = node[0], node[1]
        start, last, known = 0, len(children) - 1, [new]
        if equal:
            start = max(bisect_right(lows, self.marks[self.at]) - 1, 0)
            known = states_to(self.transition, node, height, start, new)[: start + 1]
            old = new = known[start]
        for i in range(start, last + 1):
            stop = lows[i + 1] if i < last else end
            old, new = self.node(children[i], height - 1, old, new, stop)
            if self.settled:
                break
            known.append(new)
        node[5][:] = known
        return old, new

    def more(self, end: Any) -> bool:
        """Whether a row before `end` has changed that was not reached yet."""
        marks = self.marks
        return self.at < len(marks) and (end is None or marks[self.at] < end)

    def leaf(self, node: Any, old: Any, new: Any, end: Any) -> tuple[Any, Any]:
        tokens, rows, counts = node[0], node[1], node[2]
        start = 0
        while True:
            more = self.more(end)
            stop = bisect_left(tokens, self.marks[self.at], start) if more else len(rows)
            old, new = self.same(rows[start:stop], counts[start:stop], old, new)
            if not more or self.settled:
                return old, new
            token, row, weight = self.moves[self.at]
            there = stop < len(rows) and tokens[stop] == token
            now = counts[stop] if there else 0
            self.at += 1
            old, new = self.say(old, row, now - weight, -1), self.say(new, row, now, 1)
            start = stop + there

    def same(self, rows: Any, counts: Any, old: Any, new: Any) -> tuple[Any, Any]:
        """Through rows that have not changed."""
        step, out, clean = self.transition.step, self.out, self.clean
        for row, count in zip(rows, counts, strict=True):
            for _ in range(count):
                if old == new and same_state(old, new):
                    if self.at == len(self.marks):
                        self.settled = True
                        return old, new
                    old = new = self.transition.after(new, row)
                    continue
                old, before = step(old, row)
                new, after = step(new, row)
                if before != after:
                    for each in before if clean else map(one_nan, before):
                        out[each] = out.get(each, 0) - 1
                    for each in after if clean else map(one_nan, after):
                        out[each] = out.get(each, 0) + 1
        return old, new

    def say(self, state: Any, row: Any, count: int, sign: int) -> Any:
        """Through a row that came or went, as often as it is or was there."""
        step, out = self.transition.step, self.out
        for _ in range(count):
            state, said = step(state, row)
            for each in said if self.clean else map(one_nan, said):
                out[each] = out.get(each, 0) + sign
        return state


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
