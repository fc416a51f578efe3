"""Orders for values of any kind.

What is sorted is sorted by `natural`, Python's own order with NaN behind everything else; where a
tie must not depend on who came first, by `total_order_key`, which orders values of any type.
"""

from __future__ import annotations

import operator
from datetime import datetime, time
from decimal import Decimal
from numbers import Real
from typing import Any

from ebbflow.errors import AlgebraError
from ebbflow.nan import is_nan, one_nan


class _Top:
    """Greater than everything but itself."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not TOP

    def __le__(self, other: object) -> bool:
        return other is TOP

    def __ge__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "TOP"

    def __reduce__(self) -> str:
        return "TOP"


TOP = _Top()


def natural(x: Any) -> Any:
    """The value itself, to sort by; NaN becomes greater than everything else, in tuples too.

    >>> sorted([3.0, float("nan"), 1.0], key=natural)
    [1.0, 3.0, nan]
    """
    if isinstance(x, tuple):
        parts = [natural(part) for part in x]
        return x if all(map(operator.is_, parts, x)) else tuple.__new__(type(x), parts)
    if isinstance(x, frozenset):
        return one_nan(x)
    return TOP if is_nan(x) else x


def total_order_key(x: Any) -> tuple[Any, ...]:
    """A key that orders values of any mixture of types, equal ones together.

    >>> sorted(["b", 2, None, (1, None), (1, 0), "a", 1.5], key=total_order_key)
    [None, 1.5, 2, 'a', 'b', (1, None), (1, 0)]
    """
    cls = type(x)
    if cls is str:
        return (3, "str", x)
    if cls is int or cls is float or isinstance(x, (Real, Decimal)):
        return (2,) if is_nan(x) else (1, x)
    if x is None:
        return (0,)
    if isinstance(x, (str, bytes)):
        return (3, "str" if isinstance(x, str) else "bytes", x)
    if isinstance(x, tuple):
        return (4, *map(total_order_key, x))
    if isinstance(x, frozenset):
        return (5, *sorted(map(total_order_key, x)))
    if isinstance(x, (datetime, time)):
        return (6, cls.__name__, x.tzinfo is not None, x)
    orderable = any("__lt__" in vars(base) for base in cls.__mro__[:-1])
    return (6, cls.__name__, x) if orderable else (7, cls.__name__, printed(x))


def printed(x: Any) -> str:
    """The repr of a value that has no order, which must tell what the value is.

    >>> printed(3j)
    '3j'
    """
    cls: Any = type(x)
    if cls.__repr__ is object.__repr__ and cls.__eq__ is not object.__eq__:
        raise AlgebraError(
            f"a {cls.__name__} has no place in an order: equal ones print differently",
            value=x,
            remedy=f"give {cls.__name__} an __lt__ or a __repr__ (a dataclass has one), or reduce "
            "a part of it",
        )
    return repr(x)
