"""A transition through the rows of a tree, from where they have changed.

A change puts rows into a tree, or takes rows out, at some places. Up to the first of them every row
is reached in the state it was reached in before. From there on two states go from row to row side
by side, the old one and the new one, and what they say is compared. As soon as they are the same,
nothing changes until the next place, and all rows between are passed over.

To pass over rows one must know which state is behind them. So every node of the tree remembers in
which state it was entered, and which states were behind each of its parts: it is stepped through
again only when it is entered in another.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import Any

from ebbflow.state.node import Way
from ebbflow.state.tree import Tree
from ebbflow.stream.transition import Transition, same_state

_FIRST = itemgetter(0)
States = tuple[Any, ...]
LEAF = 16
"""Rows in a leaf where states are remembered: so many are stepped through to find a state."""


def last_state(transition: Transition, tree: Tree[Any]) -> Any:
    """The state behind the last row of a tree."""
    return state_after(transition, *tree.root, transition.start)


def state_before(transition: Transition, tree: Tree[Any], place: int) -> Any:
    """The state in which the row at a place of a tree is reached."""
    state = transition.start
    node, height = tree.root
    while height:
        i = 0
        for size in node[2]:
            if place < size:
                break
            place -= size
            i += 1
        state = states_to(transition, node, height, i, state)[i]
        if i == len(node[1]):
            return state
        node = node[1][i]
        height -= 1
    return transition.through(islice(rows_of(node, 0, len(node[1])), place), state)


def state_after(transition: Transition, node: Any, height: int, state: Any) -> Any:
    """The state behind all rows of a node that is entered in a state."""
    if height:
        last = len(node[1])
        return states_to(transition, node, height, last, state)[last]
    if not node[4]:
        return state
    known = node[5][0]
    if not known or not same_state(known[0], state):
        behind = transition.through(rows_of(node, 0, len(node[1])), state)
        node[5][0] = known = state, behind
    return known[1]


def states_to(transition: Transition, node: Any, height: int, i: int, state: Any) -> States:
    """The states before the children of a node that is entered in a state, up to the i-th and
    perhaps on. Nodes are shared, and so is what they remember: it is put in whole."""
    known: States = node[5][0]
    if not known or not same_state(known[0], state):
        known = (state,)
    if len(known) <= i:
        found = list(known)
        for child in node[1][len(known) - 1 : i]:
            found.append(state_after(transition, child, height - 1, found[-1]))
        node[5][0] = known = tuple(found)
    return known


def rows_of(leaf: Any, start: int, stop: int) -> Iterator[Any]:
    """Some rows of a leaf, each as often as it is there."""
    rows = leaf[1][start:stop]
    if leaf[4] == len(leaf[1]):
        return iter(rows)
    return chain.from_iterable(map(repeat, rows, leaf[2][start:stop]))


def counterpart(node: Any, was: Any, i: int) -> Any:
    """The node that was in the place of the i-th child of a node, when `was` was in the place of
    this; None where that is not plain to see."""
    if was is None or len(was[1]) != len(node[1]):
        return None
    new, old, last = node[1], was[1], len(node[1]) - 1
    alike = (i == 0 or new[i - 1] is old[i - 1]) and (i == last or new[i + 1] is old[i + 1])
    return old[i] if alike or new[i] is old[i] else None


def alike(node: Any, was: Any, i: int) -> Any:
    """Of a node and the one that was in its place, the latter where both have the same children up
    to the i-th: it remembers more."""
    same = was is not None and (not i or (i <= len(was[1]) and node[1][i - 1] is was[1][i - 1]))
    return was if same else node


def replay(
    transition: Any, old: Tree[Any], new: Tree[Any], pairs: Sequence[tuple[Any, int]], way: Way,
    out: dict[Any, int],
) -> None:  # fmt: skip
    """Go through all rows of a key that are reached in another state than before, after the rows of
    `pairs` came and went, by this way where they are one (see `Tree.edited`). What is said
    otherwise than before is added to `out`."""
    if not way or not in_leaf(transition, new.root[0], way, *pairs[0], out):
        Replay(transition, old, new, pairs, out).run()


def in_leaf(
    transition: Any, node: Any, way: Way, row: Any, weight: int, out: dict[Any, int]
) -> bool:
    """From the new root go to the one row that changed, and on to the end of its leaf, or of the
    next one. That is nearly always all there is to do; where it is not, nothing was done, and the
    answer is no."""
    state, over, last = transition.start, None, 0
    above: list[tuple[list[States], States]] = []
    for was, i in way:
        known = was[5][0]
        if was is way[-1][0]:
            break
        if i >= len(known) or (known[0] is not state and not same_state(known[0], state)):
            known = states_to(transition, was, len(way) - 1 - len(above), i, state)
        above.append((node[5], known))
        state, over, last, node = known[i], node, i, node[1][i]
    rows, entered = node[1], state
    now = node[2][i] if len(rows) >= len(was[1]) else 0
    if i:
        state = transition.through(rows_of(node, 0, i), state)
    said = {} if out else out
    then, say = state, transition.said
    if now != weight:
        then = say(repeat(row, now - weight), state, said, -1)
    if now:
        state = say(repeat(row, now), state, said, 1)
        i += 1
    then, state = both_through(transition, node, i, then, state, said)
    memo = node[5]
    if then is state:
        if known and (known[0] is entered or same_state(known[0], entered)):
            memo[0] = known
    elif over is None:
        memo[0] = entered, state
    else:
        last += 1
        if last == len(over[1]):
            said.clear()
            return False
        node, between = over[1][last], (then, state)
        then, state = both_through(transition, node, 0, then, state, said)
        if then is not state:
            said.clear()
            return False
        memo[0] = entered, between[1]
        memo, known = node[5], node[5][0]
        if known and same_state(known[0], between[0]):
            memo[0] = between[1], known[1]
        memo, known = above.pop()
        memo[0] = (*known[:last], between[1], *known[last + 1 :])
    for memo, known in above:
        memo[0] = known
    if said is not out:
        for each, count in said.items():
            out[each] = out.get(each, 0) + count
    return True


def both_through(
    transition: Any, leaf: Any, start: int, old: Any, new: Any, out: dict[Any, int]
) -> tuple[Any, Any]:
    """Two states after the rows of a leaf from one on; one object, where they are the same."""
    if same_state(old, new):
        return new, new
    found: tuple[Any, Any] = transition.apart(rows_of(leaf, start, len(leaf[1])), old, new, out)
    return found


class Replay:
    """One way through the rows of a key, from the first one that changed; see `replay`.

    Behind the last change, from where states are the old ones again, a node remembers what the node
    in its place did: so that nobody has to find it out once more.
    """

    __slots__ = ("at", "marks", "moves", "new", "old", "out", "settled", "transition")

    def __init__(
        self, transition: Any, old: Tree[Any], new: Tree[Any], pairs: Any, out: dict[Any, int]
    ) -> None:
        self.transition, self.old, self.new, self.out = transition, old, new, out
        moves: list[tuple[Any, Any, int]] = []
        marks: list[Any] = []
        self.moves, self.marks = moves, marks
        token = (new if new.distinct else old).token
        for row, weight in pairs:
            mark = token(row)
            marks.append(mark)
            moves.append((mark, row, weight))
        if len(moves) > 1:
            moves.sort(key=_FIRST)
            marks.sort()
        self.at = 0
        self.settled = False

    def run(self) -> None:
        """Go through all rows that are reached in another state than before."""
        start = self.transition.start
        (node, height), (was, levels) = self.new.root, self.old.root
        old, _ = self.node(node, height, start, start, None, was if height == levels else None)
        if not self.settled:  # rows that went, behind all that are there
            for _, row, weight in self.moves[self.at :]:
                old = self.say(row, -weight, old, -1)

    def first(self, node: Any, height: int, state: Any) -> Any:
        """Go through all rows for the first time, and give the state behind them."""
        known = [state]
        if height:
            for child in node[1]:
                known.append(self.first(child, height - 1, known[-1]))
        else:
            rows = rows_of(node, 0, len(node[1]))
            known.append(self.transition.said(rows, state, self.out, 1))
        node[5][0] = tuple(known)
        return known[-1]

    def node(
        self, node: Any, height: int, old: Any, new: Any, end: Any, was: Any
    ) -> tuple[Any, Any]:
        """The two states behind a node whose rows are all before `end`; `was` is the node that was
        in its place."""
        equal = old is new or same_state(old, new)
        if equal and not self.more(end):
            if self.at == len(self.marks):
                self.settled = True
                return old, new
            new = state_after(self.transition, node, height, new)
            return new, new
        if not height:
            return self.leaf(node, old, new, end, was)
        lows, children, entered = node[0], node[1], old
        i, last, known = 0, len(children) - 1, [new]
        if equal:
            i = bisect_right(lows, self.marks[self.at], 1) - 1
            known = [*states_to(self.transition, alike(node, was, i), height, i, new)[: i + 1]]
            old = new = known[i]
        while i <= last:
            stop, before = lows[i + 1] if i < last else end, counterpart(node, was, i)
            old, new = self.node(children[i], height - 1, old, new, stop, before)
            i += 1
            if self.settled:
                behind = () if was is None else was[5][0]
                if behind and same_state(behind[0], entered):
                    there = i - len(children) + len(was[1])
                    if i > last or (there >= 0 and children[i] is was[1][there]):
                        known += behind[there:]
                break
            known.append(new)
        node[5][0] = tuple(known)
        return old, new

    def more(self, end: Any) -> bool:
        """Whether a row before `end` has changed that was not reached yet."""
        marks = self.marks
        return self.at < len(marks) and (end is None or marks[self.at] < end)

    def leaf(self, node: Any, old: Any, new: Any, end: Any, was: Any) -> tuple[Any, Any]:
        tokens, rows, start = node[0], node[1], 0
        before, entered = old, new
        while True:
            more = self.more(end)
            stop = bisect_left(tokens, self.marks[self.at], start) if more else len(rows)
            if start < stop:
                old, new = self.same(rows_of(node, start, stop), old, new)
                if self.settled:
                    known = () if was is None else was[5][0]
                    if known and same_state(known[0], before):
                        node[5][0] = entered, known[1]
                    return old, new
            if not more:
                break
            token, row, weight = self.moves[self.at]
            there = stop < len(rows) and tokens[stop] == token
            now = node[2][stop] if there else 0
            self.at += 1
            old = self.say(row, now - weight, old, -1)
            new = self.say(row, now, new, 1)
            start = stop + there
        if rows:
            node[5][0] = entered, new
        return old, new

    def same(self, rows: Iterator[Any], old: Any, new: Any) -> tuple[Any, Any]:
        """Through rows that have not changed."""
        if old is not new and not same_state(old, new):
            old, new = self.transition.apart(rows, old, new, self.out)
            if old is not new:
                return old, new
        if self.at == len(self.marks):
            self.settled = True
            return old, new
        new = self.transition.through(rows, new)
        return new, new

    def say(self, row: Any, count: int, state: Any, sign: int) -> Any:
        """Through a row that came or went, as often as it is or was there."""
        if not count:
            return state
        return self.transition.said(repeat(row, count), state, self.out, sign)


class StatesOnly:
    """A transition of which only the states matter."""

    __slots__ = ("start", "through", "transition")

    def __init__(self, transition: Transition) -> None:
        self.transition = transition
        self.start, self.through = transition.start, transition.through

    def said(self, rows: Iterable[Any], state: Any, out: Any, sign: int) -> Any:
        """The state after rows."""
        return self.through(rows, state)

    def apart(self, rows: Iterator[Any], old: Any, new: Any, out: Any) -> tuple[Any, Any]:
        """Two states after rows, up to the one behind which they are the same."""
        return self.transition.apart(rows, old, new, {})
