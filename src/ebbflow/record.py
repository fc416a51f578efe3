"""Row types: what the rows of a collection are, and types made for the rows of derived ones.

A row is any hashable value. Rows that are `NamedTuple`s have named, typed fields, which can be
asked for by name and become the columns of a table elsewhere. A program makes such types itself:
the rows of `orders.group_by("city").agg(n=count())` have the fields `city` and `n`. Two types made
with the same name and fields are the same type, in every process, so their rows can be pickled.

A row type is a NamedTuple class, any other class (`int`, `str`), or `Any` where nothing is known.
"""

from __future__ import annotations

from collections import namedtuple
from functools import lru_cache
from typing import Any, get_type_hints


def record(name: str, **fields: Any) -> type[Any]:
    """A NamedTuple type with these fields.

    >>> City = record("City", city=str, n=int)
    >>> City("Rome", 3)
    City(city='Rome', n=3)
    >>> City is record("City", city=str, n=int)
    True
    """
    return _made(name, tuple(fields.items()))


@lru_cache(maxsize=None)
def _made(name: str, fields: tuple[tuple[str, Any], ...]) -> type[Any]:
    base: Any = namedtuple(name, [field for field, _ in fields])
    base.__annotations__ = dict(fields)
    base.__reduce__ = _reduce
    base.__module__ = __name__
    return base  # type: ignore[no-any-return]


def _reduce(row: Any) -> tuple[Any, ...]:
    return _row, (type(row).__name__, tuple(type(row).__annotations__.items()), tuple(row))


def _row(name: str, fields: tuple[tuple[str, Any], ...], values: tuple[Any, ...]) -> Any:
    return tuple.__new__(_made(name, fields), values)


def fields_of(kind: Any) -> dict[str, Any] | None:
    """The fields of a row type with their types, or None when its rows have no known fields.

    >>> fields_of(record("City", city=str, n=int))
    {'city': <class 'str'>, 'n': <class 'int'>}
    >>> fields_of(int) is None
    True
    """
    names = getattr(kind, "_fields", None)
    if not (isinstance(kind, type) and issubclass(kind, tuple) and names is not None):
        return None
    try:
        hints = get_type_hints(kind)
    except Exception:  # a forward reference that cannot be found: the field is there, its type not
        hints = {}
    return {name: hints.get(name, Any) for name in names}


def type_text(kind: Any) -> str:
    """A row type as it is shown: with its fields, if it has any.

    >>> type_text(record("City", city=str, n=int)), type_text(int), type_text(Any)
    ('City(city, n)', 'int', 'Any')
    """
    fields = fields_of(kind)
    name = getattr(kind, "__name__", None) or str(kind)
    return name if fields is None else f"{name}({', '.join(fields)})"
