"""Constants, and row types that do nothing of their own.

A function may be read as an expression when what it uses cannot change under it. A *simple* value
is such a thing: a number, a text, a date, or a tuple of these. A *plain* row type is a NamedTuple
class as it was generated: its field is an element of the tuple and nothing else, and making a row
runs no code of the user's. The fields of a frozen dataclass are read like that; rows of it are made
by its own code.
"""

from __future__ import annotations

import datetime
import math
from collections import namedtuple
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from re import Pattern
from types import MemberDescriptorType
from typing import Any

from ebbflow.record import fields_of

_SCALARS = (type(None), bool, int, float, complex, str, bytes, Decimal, type(Ellipsis))
_TIMES = (datetime.date, datetime.timedelta, datetime.timezone)
_SAMPLE: Any = namedtuple("_SAMPLE", ["field"])
_ACCESSOR: Any = type(vars(_SAMPLE)["field"])


def is_simple(value: Any) -> bool:
    """Whether a value is a constant that can be part of an expression.

    >>> is_simple((1, "a", None)), is_simple([1])
    (True, False)
    """
    cls = type(value)
    if cls in _SCALARS or cls in _TIMES:
        return True
    if cls is datetime.datetime or cls is datetime.time:
        return value.tzinfo is None or type(value.tzinfo) is datetime.timezone
    return cls in (tuple, frozenset) and all(map(is_simple, value))


def constant_key(value: Any) -> Any:
    """What two constants have in common exactly when one can stand for the other.

    >>> constant_key(1) == constant_key(1.0), constant_key((1,)) == constant_key((True,))
    (False, False)
    """
    cls = type(value)
    if cls is str or cls is int:
        return cls, value
    if cls is tuple:
        return cls, tuple(map(constant_key, value))
    if cls is frozenset:
        return cls, frozenset(map(constant_key, value))
    if cls is Pattern:
        return cls, value.pattern, value.flags
    return cls, repr(value)


def literal(value: Any) -> str | None:
    """The value as Python text, if it is short and says exactly this value.

    >>> literal((1, "a")), literal(float("inf"))
    ("(1, 'a')", None)
    """
    cls = type(value)
    if value is None or cls is bool:
        return repr(value)
    if cls is int:
        return repr(value) if -(2**63) <= value < 2**63 else None
    if cls is float:
        return repr(value) if math.isfinite(value) else None
    if cls is str or cls is bytes:
        return repr(value) if len(value) <= 60 else None
    if cls is tuple and len(value) <= 8:
        items = [literal(each) for each in value]
        return None if None in items else tuple_text([each or "" for each in items])
    return None


def tuple_text(items: Sequence[str]) -> str:
    """A tuple of these as Python text.

    >>> tuple_text(["1"]), tuple_text(["1", "a"])
    ('(1,)', '(1, a)')
    """
    inside = ", ".join(items)
    return f"({inside},)" if len(items) == 1 else f"({inside})"


@lru_cache(maxsize=1024)
def plain_fields(cls: Any) -> dict[str, int] | None:
    """The fields of a plain row type with their places, or None if it is none.

    >>> from ebbflow.record import record
    >>> plain_fields(record("City", city=str, n=int)), plain_fields(int)
    ({'city': 0, 'n': 1}, None)
    """
    if not isinstance(cls, type):
        return None
    if not issubclass(cls, tuple):
        return _plain_attributes(cls)
    names = getattr(cls, "_fields", None)
    if names is None:
        return None
    for name in ("__getattribute__", "__getitem__"):
        if getattr(cls, name) is not getattr(tuple, name):
            return None
    for index, name in enumerate(names):
        found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
        if type(found) is not _ACCESSOR or _index(found) != index:
            return None
    return {name: index for index, name in enumerate(names)}


def _plain_attributes(cls: type) -> dict[str, int] | None:
    """The same for a frozen dataclass whose fields are attributes and nothing else."""
    fields = fields_of(cls)
    if fields is None or hasattr(cls, "__getattr__"):
        return None
    if vars(object)["__getattribute__"] is not getattr(cls, "__getattribute__", None):
        return None
    for name in fields:
        found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
        if hasattr(type(found), "__get__") and not isinstance(found, MemberDescriptorType):
            return None
    return {name: index for index, name in enumerate(fields)}


def _index(accessor: Any) -> Any:
    try:
        return accessor.__reduce__()[1][0]
    except Exception:
        return None


@lru_cache(maxsize=1024)
def is_plain(cls: Any) -> bool:
    """Whether calling a row type does nothing but put its fields together.

    >>> from ebbflow.record import record
    >>> is_plain(record("City", city=str)), is_plain(int)
    (True, False)
    """
    if (
        not hasattr(cls, "_fields")
        or plain_fields(cls) is None
        or type(cls).__call__ is not type.__call__
    ):
        return False
    make = cls.__new__
    code, inside = getattr(make, "__code__", None), getattr(make, "__globals__", {})
    return bool(
        cls.__init__ is object.__init__
        and code is not None
        and code.co_names == _SAMPLE.__new__.__code__.co_names
        and code.co_varnames[1 : code.co_argcount] == cls._fields
        and [inside.get(name) for name in code.co_names] == [tuple.__new__]
        and len(code.co_code) == len(_alike(len(cls._fields)).co_code)
        and code.co_code == _alike(len(cls._fields)).co_code
    )


@lru_cache(maxsize=64)
def _alike(count: int) -> Any:
    cls: Any = namedtuple("_alike", [f"f{i}" for i in range(count)])  # type: ignore[misc]
    return cls.__new__.__code__
