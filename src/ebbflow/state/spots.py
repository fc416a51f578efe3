"""An index whose groups can be walked in order: the rows of a key between two places.

A row has a *spot*: a tuple of values, which says where it is in the order of its key. Rows with the
same spot are together, and the different spots of a key are in a tree. A row whose spot is None has
no place, and is *aside*.

What is stored of it are rows by key, as of any index. The order of a group is made from its rows
when it is first asked for, and from then on follows every change of them. A small group has no
tree, and what is made for it is not kept: to look at all of its spots costs less.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

from ebbflow.errors import NotDeterministic
from ebbflow.ordering import Reversed, comparable, total_order_key
from ebbflow.state.index import Grouped, Index
from ebbflow.state.tree import Tree
from ebbflow.state.walk import Cut

KEPT = 32
"""A group of so many rows has a tree, which is kept."""

Spot = tuple[Any, ...]
Spots = Tree[Spot] | dict[Spot, Any]
"""The different spots of a group: in a tree, or where they are few, in no order."""


class Totals(NamedTuple):
    """What a tree of spots knows of its parts: the value of a spot, and how two are merged."""

    value: Callable[[Spot], Any]
    merge: Callable[[Any, Any], Any]


class GroupOrder:
    """The rows of one key in order: their spots, the rows at each, and those aside."""

    __slots__ = ("aside", "group", "rows", "spots")

    def __init__(
        self, group: dict[Any, int], spot: Callable[[Any], Spot | None], totals: Totals | None
    ) -> None:
        self.group = group
        self.rows: dict[Spot, dict[Any, int]] = {}
        self.aside: dict[Any, int] = {}
        for row, weight in group.items():
            at = spot(row)
            (self.aside if at is None else self.rows.setdefault(at, {}))[row] = weight
        self.spots: Spots = self.rows
        if len(group) >= KEPT:
            form = {} if totals is None else totals._asdict()
            self.spots = Tree.of(self.rows, **form)

    def follow(self, changed: Any, spot: Callable[[Any], Spot | None]) -> None:
        """Be in step with the group after these of its rows have changed."""
        group, rows, edits = self.group, self.rows, []
        for row, _ in changed:
            at, weight = spot(row), group.get(row, 0)
            here = self.aside if at is None else rows.get(at)
            if here is None:
                assert at is not None
                if not weight:
                    raise _elsewhere(row)
                here = rows[at] = {}
                edits.append((at, 1))
            if weight:
                here[row] = weight
            elif row not in here:
                raise _elsewhere(row)
            else:
                del here[row]
                if not here and at is not None:
                    del rows[at]
                    edits.append((at, -1))
        assert isinstance(self.spots, Tree)
        self.spots = self.spots.update(edits)

    def agrees(self, spot: Callable[[Any], Spot | None]) -> bool:
        """Whether it is right for its group."""
        fresh, tree = GroupOrder(self.group, spot, None), self.spots
        same = (self.rows, self.aside) == (fresh.rows, fresh.aside)
        known = dict.fromkeys(self.rows, 1)
        return same and isinstance(tree, Tree) and tree.invariant() and dict(tree) == known


def _elsewhere(row: Any) -> NotDeterministic:
    return NotDeterministic(
        "a row is taken back, and its place in the order is another than when it came",
        row=row,
        remedy="an order that is the same for the same row every time",
    )


class SpotIndex(Index[Any, Any]):
    """Rows by key, each group in the order of `spot(row)` where that is asked for.

    >>> from ebbflow.zset import ZSet
    >>> index = SpotIndex(len, lambda word: (word,), ZSet.of(["pear", "kiwi", "fig"]))
    >>> index.order(4).rows
    {('pear',): {'pear': 1}, ('kiwi',): {'kiwi': 1}}
    """

    __slots__ = ("orders", "spot", "totals")

    def __init__(
        self,
        key: Any,
        spot: Callable[[Any], Spot | None],
        rows: Any = None,
        by_key: Any = None,
        *,
        totals: Totals | None = None,
        bag: bool = False,
    ) -> None:
        self.spot, self.totals = spot, totals
        self.orders: dict[Any, GroupOrder] = {}
        super().__init__(key, rows, by_key, bag=bag)

    def order(self, key: Any) -> GroupOrder:
        """The rows of a key in order, as they are now. Its spots stay as they are when rows change:
        then it has others."""
        group = self.groups.get(key)
        found = self.orders.get(key)
        if found is not None and found.group is group:
            return found
        if found is not None:
            del self.orders[key]
        made = GroupOrder({} if group is None else group, self.spot, self.totals)
        if group is not None and len(group) >= KEPT:
            self.orders[key] = made
        return made

    def put(self, found: Grouped) -> list[Any]:
        orders, self.orders = self.orders, {}  # an interrupt leaves none
        negative = super().put(found)
        for key in found if len(found) < len(orders) else list(orders):
            order = orders.get(key)
            if order is not None and order.group is not self.groups.get(key):
                del orders[key]
            elif order is not None and key in found:
                order.follow(found[key], self.spot)
        self.orders = orders
        return negative

    def commit(self) -> list[Grouped]:
        backing = self.backing
        if self.orders and backing is not None and backing.resident is not None:
            here = self.groups.get
            self.orders = {at: each for at, each in self.orders.items() if each.group is here(at)}
        return super().commit()

    def in_order(self) -> bool:
        """Whether every order that is kept is right."""
        return all(
            order.agrees(self.spot)
            for key, order in self.orders.items()
            if order.group is self.groups.get(key)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.key, self.spot, self.totals, self.groups, self.bag)


def _rebuilt(key: Any, spot: Any, totals: Any, groups: Any, bag: bool) -> SpotIndex:
    index = SpotIndex(key, spot, totals=totals, bag=bag)
    index.groups = groups
    return index


def cut(tree: Tree[Spot], value: Any, *, behind: bool, exact: bool = False) -> Cut | None:
    """Where spots that begin with `value` begin in a tree, or end with `behind`.

    With `exact`, None where Python's own `<` does not answer for all of them.

    >>> from ebbflow.state.walk import between_cuts
    >>> tree = Tree.of([(1, "a"), (2, "b"), (2, "c"), (3, "d")])
    >>> list(between_cuts(*tree.root, cut(tree, 2, behind=False), cut(tree, 2, behind=True)))
    [(2, 'b'), (2, 'c')]
    """
    bisect = bisect_right if behind else bisect_left
    if tree.native and _compares(tree, value):
        return lambda tokens: bisect(tokens, value, key=_FIRST)
    if exact:
        return None
    wanted = total_order_key(value)
    if tree.native:
        return lambda tokens: bisect(tokens, wanted, key=_first_key)
    return lambda tokens: bisect(tokens, wanted, key=_SECOND)


_FIRST, _SECOND = itemgetter(0), itemgetter(1)


def _first_key(token: Any) -> Any:
    return total_order_key(token[0])


def _compares(tree: Tree[Spot], value: Any) -> bool:
    """Whether `<` of Python's answers between a value and the first values of a native tree."""
    if value is None or isinstance(value, (tuple, Reversed)) or not comparable(value):
        return False
    try:
        return not tree.distinct or (value < tree.first[0]) in (True, False)
    except TypeError:
        return False
