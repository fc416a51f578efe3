"""Operators on the rows of each key in an order: what all of them share.

Of each key the rows are kept in a tree, in order. Trees are values: what a change does is found out
from the tree before it and the tree behind it.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from ebbflow.fn import Fn
from ebbflow.nan import one_nan
from ebbflow.operator.by_key import ByKey
from ebbflow.operator.relation import Bag
from ebbflow.ordering import in_order
from ebbflow.state.node import Way
from ebbflow.state.ordered import OrderedIndex
from ebbflow.state.tree import Tree
from ebbflow.zset import without_zeros


class PlaceOf:
    """The place of a row in an order, with one NaN."""

    __slots__ = ("order",)

    def __init__(self, order: Any) -> None:
        self.order = order

    def __call__(self, row: Any) -> Any:
        return one_nan(self.order(row))


def place_of(order: Any) -> Any:
    """The place of a row in an order: where that is a field of the row, its NaN is the one NaN
    already."""
    field = isinstance(order, Fn) and isinstance(order.call, itemgetter)
    return order.call if field else PlaceOf(order)


class OrderedRows(ByKey):
    """An operator on the rows of each key in order.

    `order(row)` is the place of a row; rows at the same place are ordered by themselves. `form` is
    what the trees are made with besides.
    """

    def __init__(self, order: Any, key: Any, owner: Any, **form: Any) -> None:
        super().__init__(key, owner)
        self.order = order
        self.place = place_of(order)
        self.empty: Tree[Any] = Tree(key=self.place, **form)

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
        state.put(found)
        out: dict[Any, int] = {}
        for key, (old, way) in state.replaced[1].items():
            self.changed(key, old, groups.get(key, empty), found[key], way, out)
        return without_zeros(out)

    def changed(
        self, key: Any, old: Tree[Any], new: Tree[Any], pairs: Any, way: Way, out: dict[Any, int]
    ) -> None:
        """Add to `out` what changes when the rows of a key do; `way` is that of `Tree.edited`."""
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
