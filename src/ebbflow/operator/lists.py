"""Operators on edited lists: `LIST` in, kept up to date item by item.

    operator       gives                             cost of a change, for a list of n items
    length         how many items                    O(1)
    items          the items as rows, a bag          O(log n), and the items that change
    keep(f)        the items for which f is true     O(log n), and one call of f per new item
    each(f)        f(item) instead of every item     one call of f per new item

They stand behind what gives lists: `text.lines >> lists.keep(is_heading)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from ebbflow.algebra.value import function_name
from ebbflow.change import (
    BAG,
    LIST,
    NATURAL,
    DeleteItems,
    InsertItems,
    ItemChange,
    List,
    ReplaceItem,
)
from ebbflow.change.rope import ItemRope
from ebbflow.operator.operator import Operator
from ebbflow.record import hints_of
from ebbflow.zset import ZSet

__all__ = ["ListOperator", "each", "items", "keep", "length"]


def item_type(hint: Any) -> Any:
    """The type of the items of lists of a type.

    >>> item_type(List[int]), item_type(list[str]), item_type(Any)
    (<class 'int'>, <class 'str'>, typing.Any)
    """
    return next(iter(get_args(hint)), Any)


class ListOperator(Operator[Any, ItemChange, Any, Any]):
    """An operator whose input is an edited list.

    >>> length.accepts(length.init(["a"]), DeleteItems(0, 2))
    False
    """

    input = LIST

    def size(self, state: Any) -> int:
        """How long the list is: by default the state is a rope of it."""
        return int(state.size)

    def accepts(self, state: Any, change: object) -> bool:
        return LIST.is_change(change) and change.at + change.extent[0] <= self.size(state)  # type: ignore[attr-defined]


class _Length(ListOperator):
    """`len(items)`.

    >>> live = length.open(["a", "b"])
    >>> live.send(InsertItems(1, ("c", "d"))), live.send(DeleteItems(0, 1))
    (2, -1)
    """

    output = NATURAL

    def f(self, x: Any) -> int:
        return len(x)

    def init(self, x: Any) -> int:
        return len(x)

    def size(self, state: int) -> int:
        return state

    def step(self, state: int, change: ItemChange) -> tuple[int, int]:
        less, more = change.extent
        return state + len(more) - less, len(more) - less

    def __repr__(self) -> str:
        return "length"

    def __reduce__(self) -> str:
        return "length"


length = _Length()


class _Items(ListOperator):
    """The items as a bag, each as often as it is in the list. The state is a rope of the list.

    >>> live = items.open(["a", "b", "a"])
    >>> live.send(ReplaceItem(0, "b"))
    ZSet({'b': 1, 'a': -1})
    """

    output = BAG

    def type_of(self, hint: Any) -> Any:
        return item_type(hint)

    def f(self, x: Any) -> ZSet[Any]:
        return ZSet.of(x)

    def init(self, x: Any) -> ItemRope:
        return ItemRope(tuple(x))

    def step(self, state: ItemRope, change: ItemChange) -> tuple[ItemRope, ZSet[Any]]:
        less, more = change.extent
        old = state.slice(change.at, change.at + less)
        state.splice(change)
        return state, ZSet.of(more) - ZSet.of(old)

    def invariant(self, x: Any, state: ItemRope) -> bool:
        return bool(state.slice(0, state.size) == tuple(x))

    def __repr__(self) -> str:
        return "items"

    def __reduce__(self) -> str:
        return "items"


items = _Items()


class _OfItems(ListOperator):
    """An operator that calls a function with each item."""

    output = LIST
    name: str

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"{self.name}({function_name(self.function)})"

    def __eq__(self, other: object) -> bool:
        same = type(self) is type(other)
        return same and self.function == other.function  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.function))


class _Keep(_OfItems):
    name = "keep"

    def type_of(self, hint: Any) -> Any:
        return List[item_type(hint)]  # type: ignore[misc]

    def f(self, x: Any) -> list[Any]:
        return [item for item in x if self.function(item)]

    def init(self, x: Any) -> ItemRope:
        rope = ItemRope(self._flags(x), _kept)
        rope.total()
        return rope

    def _flags(self, items: Any) -> tuple[bool, ...]:
        return tuple([bool(self.function(item)) for item in items])

    def step(self, state: ItemRope, change: ItemChange) -> tuple[ItemRope, ItemChange]:
        at, (less, more) = change.at, change.extent
        flags = self._flags(more)
        place = state.upto(at)[1]
        gone = state.upto(at + less)[1] - place if less else 0
        put = tuple([item for item, flag in zip(more, flags, strict=True) if flag])
        state.delete(at, less)
        state.insert(at, flags)
        if gone and put:
            return state, ReplaceItem(place, put[0])
        return state, DeleteItems(place, gone) if gone else InsertItems(place, put)

    def invariant(self, x: Any, state: ItemRope) -> bool:
        return bool(state.slice(0, state.size) == self._flags(x))


def _kept(state: Any, flags: tuple[bool, ...]) -> tuple[Any, int]:
    """Reads how many items are kept."""
    return state, sum(flags)


def keep(f: Callable[[Any], Any]) -> ListOperator:
    """The items for which `f(item)` is true, in their order. The state is a rope that says which.

    >>> live = keep(str.isupper).open(["A", "b", "C"])
    >>> live.send(ReplaceItem(1, "B")), live.send(DeleteItems(0, 1)), live.send(ReplaceItem(1, "c"))
    (InsertItems(at=1, items=('B',)), DeleteItems(at=0, count=1), DeleteItems(at=1, count=1))
    """
    return _Keep(f)


class _Each(_OfItems):
    name = "each"

    def type_of(self, hint: Any) -> Any:
        return List[hints_of(self.function).get("return", Any)]  # type: ignore[misc]

    def f(self, x: Any) -> list[Any]:
        return [self.function(item) for item in x]

    def init(self, x: Any) -> int:
        return len(x)

    def size(self, state: int) -> int:
        return state

    def step(self, state: int, change: ItemChange) -> tuple[int, ItemChange]:
        less, more = change.extent
        size = state + len(more) - less
        if isinstance(change, InsertItems):
            return size, InsertItems(change.at, tuple(map(self.function, more)))
        if isinstance(change, ReplaceItem):
            return size, ReplaceItem(change.at, self.function(change.item))
        return size, change


def each(f: Callable[[Any], Any]) -> ListOperator:
    """`f(item)` instead of every item. The state is the length.

    >>> each(str.upper).open(["a", "b"]).send(InsertItems(2, ("c",)))
    InsertItems(at=2, items=('C',))
    """
    return _Each(f)
