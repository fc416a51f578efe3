"""Lists and their changes: insert items anywhere, delete them anywhere, replace one.

A position is the number of items before it, from 0 to `len(items)`. The value is a list, a tuple,
or a `List` (`ebbflow.change.edited`), and stays what it is; patching copies a list or tuple, and of
a `List` one path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ebbflow.change.remember import Remembering
from ebbflow.change.structure import ChangeStructure, ConstantStructure, Why
from ebbflow.errors import type_name

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InsertItems(Generic[T]):
    """Put `items`, a tuple, in front of what is at position `at`.

    >>> LIST.patch(["a", "c"], InsertItems(1, ("b",)))
    ['a', 'b', 'c']
    """

    at: int
    items: tuple[T, ...]

    @property
    def extent(self) -> tuple[int, tuple[T, ...]]:
        return 0, self.items


@dataclass(frozen=True, slots=True)
class DeleteItems:
    """Take out `count` items from position `at` on.

    >>> LIST.patch(("a", "b", "c"), DeleteItems(0, 2))
    ('c',)
    """

    at: int
    count: int

    @property
    def extent(self) -> tuple[int, tuple[Any, ...]]:
        return self.count, ()


@dataclass(frozen=True, slots=True)
class ReplaceItem(Generic[T]):
    """Put `item` in the place of the one at position `at`.

    >>> LIST.patch(["a", "b"], ReplaceItem(1, "c"))
    ['a', 'c']
    """

    at: int
    item: T

    @property
    def extent(self) -> tuple[int, tuple[T, ...]]:
        return 1, (self.item,)


ItemChange = InsertItems[Any] | DeleteItems | ReplaceItem[Any]
_CHANGES = (InsertItems, DeleteItems, ReplaceItem)


class _List(ConstantStructure[Any, ItemChange]):
    """Lists, changed by InsertItems, DeleteItems and ReplaceItem.

    >>> LIST.edits(["a", "x", "c"], ["a", "b", "c"])
    (ReplaceItem(at=1, item='x'),)
    >>> LIST.compress([InsertItems(0, ("a",)), InsertItems(1, ("b",)), ReplaceItem(0, "c")])
    (InsertItems(at=0, items=('c', 'b')),)
    >>> LIST.patch(["a"], ReplaceItem(1, "b"))
    Traceback (most recent call last):
    ebbflow.errors.ChangeError: ReplaceItem(at=1, item='b') is not a valid change of this list
        because    it reaches to position 2, and the list ends at 1
        value      ['a']
        try        positions from 0 to 1
    """

    noun, takes = "list", "InsertItems(at, items), DeleteItems(at, count) or ReplaceItem(at, item)"

    def valid(self, change: object, value: Any) -> bool:
        if not (is_list(value) and isinstance(change, _CHANGES) and self.is_change(change)):
            return False
        return change.at + change.extent[0] <= len(value)

    def is_change(self, change: object) -> bool:
        if not isinstance(change, _CHANGES) or not within(change.at):
            return False
        if isinstance(change, InsertItems):
            return isinstance(change.items, tuple)
        return not isinstance(change, DeleteItems) or within(change.count)

    def apply(self, value: Any, change: ItemChange) -> Any:
        if isinstance(value, Remembering):
            return value.changed(change)
        less, more = change.extent
        at = change.at
        put = list(more) if isinstance(value, list) else more
        return value[:at] + put + value[at + less :]

    def edits(self, new: Any, old: Any) -> tuple[ItemChange, ...]:
        start, end = common_ends(new, old)
        gone, put = len(old) - start - end, tuple(new[start : len(new) - end])
        both = min(gone, len(put))
        found: list[ItemChange] = [ReplaceItem(start + i, put[i]) for i in range(both)]
        if gone > both:
            found.append(DeleteItems(start + both, gone - both))
        if len(put) > both:
            found.append(InsertItems(start + both, put[both:]))
        return tuple(found)

    @property
    def nothing(self) -> ItemChange:
        return InsertItems(0, ())

    def is_nothing(self, change: object) -> bool:
        if isinstance(change, InsertItems):
            return not change.items
        return isinstance(change, DeleteItems) and not change.count

    def merge(self, first: ItemChange, second: ItemChange) -> ItemChange | None:
        self.require(first, second)
        match first, second:
            case InsertItems(at, items), InsertItems(to, more) if 0 <= to - at <= len(items):
                return InsertItems(at, items[: to - at] + more + items[to - at :])
            case InsertItems(at, items), ReplaceItem(to, item) if 0 <= to - at < len(items):
                return InsertItems(at, (*items[: to - at], item, *items[to - at + 1 :]))
            case DeleteItems(at, count), DeleteItems(to, more) if to <= at <= to + more:
                return DeleteItems(to, count + more)
            case ReplaceItem(at), ReplaceItem(to) if at == to:
                return second
            case ReplaceItem(at), DeleteItems(to, count) if to <= at < to + count:
                return second
        return None

    def why(self, change: object, value: Any) -> Why:
        if not is_list(value):
            return Why("the value is not a list", "a list, a tuple or a List", {"value": value})
        if not isinstance(change, _CHANGES) or not self.is_change(change):
            reason = f"{type_name(change)} like this does not say which items change"
            return Why(reason, self.takes, {"value": value})
        end, size = change.at + change.extent[0], len(value)
        reason = f"it reaches to position {end}, and the list ends at {size}"
        return Why(reason, f"positions from 0 to {size}", {"value": value})


LIST: ChangeStructure[Any, ItemChange] = _List(name="LIST")


def is_list(value: object) -> bool:
    """Whether a value is a list, a tuple, or a `List`.

    >>> is_list(["a"]), is_list("a")
    (True, False)
    """
    if isinstance(value, Remembering):
        return getattr(value, "structure", None) is LIST
    return isinstance(value, (list, tuple))


def within(x: object, limit: int | None = None) -> bool:
    """Whether a value is a position or a count, of at most `limit`.

    >>> within(3, 3), within(-1), within(True)
    (True, False, False)
    """
    plain = isinstance(x, int) and not isinstance(x, bool) and x >= 0
    return plain and (limit is None or x <= limit)  # type: ignore[operator]


def common_ends(new: Sequence[Any], old: Sequence[Any]) -> tuple[int, int]:
    """How many items both have in common at the start, and of the others at the end.

    >>> common_ends("abcd", "axd")
    (1, 1)
    """
    limit = min(len(new), len(old))
    start = next((i for i in range(limit) if new[i] != old[i]), limit)
    limit -= start
    end = next((i for i in range(limit) if new[-1 - i] != old[-1 - i]), limit)
    return start, end
