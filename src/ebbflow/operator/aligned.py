"""Operators on two bags whose rows meet by key and by their places in an order.

Of each key the rows of both sides are kept in a tree, in order. Both are brought up to date first,
so one index can serve several operators. Trees are values: the one before the change is still
there, or is found by undoing the change.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ebbflow.operator.joins import OnKeys
from ebbflow.operator.ordered import place_of
from ebbflow.operator.relation import Bag, sides
from ebbflow.state.node import Way
from ebbflow.state.ordered import OrderedIndex
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet, trusted, without_zeros

Pairs = Sequence[tuple[Any, int]]
Changes = dict[Any, Any]
"""Lists of such pairs by key."""
NONE: Changes = {}
UNKNOWN: tuple[Tree[Any] | None, Way] = None, ()
FEW = 32
"""So many changed rows are looked up one by one, however few rows there are."""


class Side:
    """The rows of a key on one side: as they are `now`, and the `change` that made them so. `way`
    is that of `Tree.edited`."""

    __slots__ = ("_old", "change", "now", "way")

    def __init__(
        self, now: Tree[Any], change: Pairs, before: tuple[Tree[Any] | None, Way] = UNKNOWN
    ) -> None:
        self.now, self.change = now, change
        self._old, self.way = before

    @property
    def old(self) -> Tree[Any]:
        """The rows before the change."""
        if self._old is None:
            back = [(row, -weight) for row, weight in self.change]
            self._old = self.now.update(back) if back else self.now
        return self._old


class AlignedRows(OnKeys):
    """An operator on the rows of each key of two sides, both in an order: what all of them share.

    A row without a place, where the order is None, meets nothing.
    """

    def __init__(
        self, left_key: Any, right_key: Any, left_order: Any, right_order: Any, owner: Any = None
    ) -> None:
        super().__init__(left_key, right_key)
        self.orders = left_order, right_order
        self.left_place, self.right_place = map(place_of, self.orders)
        self.left_empty: Tree[Any] = Tree(key=self.left_place)
        self.right_empty: Tree[Any] = Tree(key=self.right_place)
        self.owner = owner

    @abstractmethod
    def changed(self, left: Side, right: Side, out: dict[Any, int]) -> None:
        """Add to `out` what changes for a key."""

    @abstractmethod
    def of_key(self, left: Pairs, right: Pairs) -> Iterable[tuple[Any, int]]:
        """What comes of the rows of one key, from scratch, one left row after another."""

    # ---- everything below is written with these ----

    def f(self, x: tuple[Bag, Bag]) -> Bag:
        lefts: Changes = self.by_left(x[0].items())
        rights: Changes = self.by_right(x[1].items())
        return ZSet([
            pair for key, left in lefts.items() for pair in self.of_key(left, rights.get(key, ()))
        ])  # fmt: skip

    def init(self, x: tuple[Bag, Bag]) -> tuple[OrderedIndex, OrderedIndex]:
        state = (
            OrderedIndex(self.left_empty, self.left_key, self.by_left),
            OrderedIndex(self.right_empty, self.right_key, self.by_right),
        )
        for index, rows in zip(state, x, strict=True):
            index.apply(rows)
        return state

    def step(self, state: Any, change: Any) -> tuple[Any, Bag]:
        left, right = state
        from_left, from_right = sides(change)
        found = left.apply(from_left), right.apply(from_right)
        before = left.trees_before(found[0]), right.trees_before(found[1])
        return state, trusted(self.join_delta(*found, left.groups, right.groups, *before))

    def join_delta(
        self, from_left: Changes, from_right: Changes, lefts: Any, rights: Any,
        old_lefts: Changes = NONE, old_rights: Changes = NONE,
    ) -> dict[Any, int]:  # fmt: skip
        """From the changes of both sides by key, and all rows by key after them, to the change of
        the output. The rows before them are used where they are given."""
        out: dict[Any, int] = {}
        for key, pairs in ({**from_left, **from_right} if from_left else from_right).items():
            left, right = lefts.get(key, self.left_empty), rights.get(key, self.right_empty)
            before = old_rights.get(key, UNKNOWN)
            if before[1] and not from_left and self.one_row(left, right, pairs[0][0], before, out):
                continue
            ours = from_left.get(key, ()), old_lefts.get(key, UNKNOWN)
            self.changed(Side(left, *ours), Side(right, from_right.get(key, ()), before), out)
        return without_zeros(out)

    def one_row(
        self, left: Tree[Any], right: Tree[Any], row: Any, before: tuple[Any, Way],
        out: dict[Any, int],
    ) -> bool:  # fmt: skip
        """The same as `changed` does for a key of which one row of the right has changed, and
        nothing else, by the way to it; nothing is done where the answer is no."""
        return False

    def now_and_before(self, left: Side, right: Side) -> Iterator[tuple[Any, Tree[Any], int]]:
        """Each changed row of the left with the rows of the right that it looks at now, and how
        often it is there; and with those that it looked at before, and how often it goes."""
        for row, weight in left.change:
            count = left.now.count(row) if right.change else weight
            if count:
                yield row, right.now, count
            if weight != count:
                yield row, right.old, weight - count

    def from_scratch(self, left: dict[Any, int], right: dict[Any, int]) -> dict[Any, int]:
        """What comes of the rows of one key."""
        out: dict[Any, int] = {}
        trees = self.left_empty.update(left.items()), self.right_empty.update(right.items())
        first = Side(trees[0], list(left.items()), (self.left_empty, ()))
        self.changed(first, Side(trees[1], ()), out)
        return without_zeros(out)

    def accepts(self, state: Any, change: Any) -> bool:
        if not self.input.is_change(change):
            return False
        left, right = sides(change)
        return bool(state[0].holds(left) and state[1].holds(right))

    def invariant(self, x: tuple[Bag, Bag], state: Any) -> bool:
        found = self.by_left(x[0].items()), self.by_right(x[1].items())
        return all(
            index.groups.keys() == rows.keys()
            and all(dict(index.groups[at]) == dict(pairs) for at, pairs in rows.items())
            and all(tree.invariant() for tree in index.groups.values())
            for index, rows in zip(state, found, strict=True)
        )


def is_bulk(left: Side, right: Side) -> bool:
    """Whether so much of a key has changed that going through all of its rows costs less than a
    search for each."""
    changes = len(left.change) + len(right.change)
    return changes > FEW and 4 * changes > left.now.distinct + right.now.distinct
