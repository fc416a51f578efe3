"""What a row holds instead of a list, a dict or a set.

Rows are hashable, and so is what is in them.
"""

from __future__ import annotations

from collections.abc import Mapping
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
