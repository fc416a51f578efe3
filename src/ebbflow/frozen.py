"""Values that never change: what a row holds instead of a list, a dict or a set.

Rows are hashable, and so is what is in them. States of steps may be altered, all the way down:
`apart` copies those.
"""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Mapping
from copy import deepcopy
from decimal import Decimal
from enum import Enum
from operator import is_
from typing import Any, NoReturn, TypeVar

from ebbflow.record import fields_of, maker, taken_apart

K = TypeVar("K")
V = TypeVar("V")


class Frozen(dict[K, V]):
    """A dict that never changes, and so can be in a row.

    >>> Frozen(a=1) == {"a": 1}, hash(Frozen(a=1, b=2)) == hash(Frozen(b=2, a=1))
    (True, True)
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return f"Frozen({dict(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Frozen, (dict(self),)

    def __or__(self, other: Mapping[Any, Any]) -> Frozen[Any, Any]:
        return Frozen({**self, **other})

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a Frozen dict is part of a row and never changes; use frozen | {...}")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


def frozen(value: Any) -> Any:
    """A value with tuples for the lists in it, `Frozen` dicts for dicts and frozensets for sets.

    >>> frozen((1, ["a", {"b": [2]}, {3}]))
    (1, ('a', Frozen({'b': (2,)}), frozenset({3})))
    """
    if isinstance(value, (list, tuple)):
        inside, cls = tuple(map(frozen, value)), type(value)
        return inside if cls in (list, tuple) else tuple.__new__(cls, inside)  # type: ignore[type-var]
    if isinstance(value, dict):
        return Frozen({key: frozen(each) for key, each in value.items()})
    if isinstance(value, set):
        return frozenset(value)
    return _frozen_fields(value) if hasattr(value, "__dataclass_fields__") else value


def _frozen_fields(row: Any) -> Any:
    cls = type(row)
    if fields_of(cls) is None:
        return row
    values = taken_apart(cls)(row)
    held = tuple(map(frozen, values))
    return row if all(map(is_, held, values)) else maker(cls)(held)


ATOMS = frozenset({
    type(None), object, bool, int, float, complex, str, bytes, Decimal, datetime.date,
    datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone,
})  # fmt: skip
"""Types whose values hold nothing that could be altered."""
COPIED = frozenset({list, dict, set, bytearray})
"""Types whose values can be altered."""
_OF_MARKERS = frozenset({
    "__repr__", "__str__", "__bool__", "__hash__", "__reduce__", "__copy__", "__deepcopy__",
})  # fmt: skip
"""The class of a marker may have these methods, since they give it no attributes."""
_LEAVES = ATOMS - {object}


def apart(state: Any, others: tuple[type, ...] = ()) -> Any:
    """A state that a step may alter while the given one stays as it is: a copy, unless nothing in
    it can be altered. The copy holds the same markers, since steps may know them by identity.
    Values of the types `others` never change.

    >>> given = (1, ["a"])
    >>> copied = apart(given)
    >>> copied == given, copied[1] is given[1], apart((1, "a"))
    (True, False, (1, 'a'))
    """
    cls = type(state)
    if cls in ATOMS or (cls is tuple and ATOMS.issuperset(map(type, state))):
        return state
    if cls not in COPIED and never_changes(state, others):
        return state
    memo: dict[int, Any] = {}
    _share(state, memo, set(), others)
    return deepcopy(state, memo)


def _share(value: Any, memo: dict[int, Any], seen: set[int], others: tuple[type, ...]) -> None:
    """Enter the parts of a value that never change into the memo of a deep copy, which then shares
    them."""
    cls = type(value)
    if cls in _LEAVES or id(value) in seen:
        return
    if cls not in COPIED and never_changes(value, others):
        memo[id(value)] = value
        return
    seen.add(id(value))
    parts: list[Any] = []
    if isinstance(value, dict):
        parts = [value.keys(), value.values()]
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        parts = [value]
    if cls not in COPIED and not isinstance(value, type):
        held = object.__getstate__(value)
        parts += [each.values() for each in (held if type(held) is tuple else (held,)) if each]
    for part in parts:
        if not _LEAVES.issuperset(map(type, part)):
            for each in part:
                _share(each, memo, seen, others)


def never_changes(value: Any, others: tuple[type, ...] = ()) -> bool:
    """Whether nothing in a value can be altered, as far as its types tell. An object of a class of
    the user's may be altered even if it is hashable, unless it is a frozen dataclass, or a marker:
    an object without attributes, of a class without methods that could give it some.

    >>> never_changes((1, frozenset({"a"}))), never_changes((1, ["a"])), never_changes([])
    (True, False, False)
    """
    cls = type(value)
    if cls in ATOMS:
        return True
    if isinstance(value, (tuple, frozenset)):
        inside: Any = value
    elif cls is Frozen:
        inside = (*value, *value.values())
    elif hasattr(cls, "__dataclass_fields__") and cls.__dataclass_params__.frozen:
        inside = tuple([getattr(value, name, None) for name in cls.__dataclass_fields__])
    else:
        return isinstance(value, (Enum, *others)) or _is_marker(value, cls)
    held = getattr(value, "__dict__", None)
    if held and not never_changes(tuple(held.values()), others):
        return False
    return all(type(each) in ATOMS or never_changes(each, others) for each in inside)


def _is_marker(value: Any, cls: type) -> bool:
    """Whether an object has no attributes, and a class that declares none and sets none later."""
    if cls.__bases__ != (object,) or getattr(value, "__dict__", None):
        return False
    declared = vars(cls)
    if declared.get("__slots__") or declared.get("__annotations__"):
        return False
    return all(
        name in _OF_MARKERS or (name[:2] == name[-2:] == "__" and not callable(each))
        for name, each in declared.items()
    )
