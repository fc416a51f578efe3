"""An order for elements of any kind: Python's own where it has one, and an answer where not."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence, Set
from decimal import Decimal
from functools import cmp_to_key
from itertools import chain
from numbers import Real
from typing import Any

from ebbflow.errors import AlgebraError


def needs_care(elements: Iterable[Any]) -> bool:
    """Whether some elements are, or hold, what `<` alone does not put in order: sets and NaN.

    >>> needs_care([(1, "a"), (2, "b")]), needs_care([(1, frozenset())])
    (False, True)
    """
    kept = list(elements)
    types = set(map(type, kept))
    if any(issubclass(cls, tuple) for cls in types):
        inside = chain.from_iterable(x for x in kept if isinstance(x, tuple))
        inner = set(map(type, inside))
        if any(issubclass(cls, (float, Decimal, Set, tuple)) for cls in inner):
            return True
    return any(issubclass(cls, (float, Decimal, Set)) for cls in types)


def orderly(x: Any) -> Any:
    """What stands for `x` in comparisons: itself, unless it is a set or holds one."""
    if isinstance(x, tuple):
        return tuple(map(orderly, x))
    if isinstance(x, Set):
        return len(x), sorted(map(repr, x))
    if x != x:
        raise AlgebraError("NaN has no place in an order", value=x, remedy="leave it out")
    return x


def before(a: Any, b: Any) -> bool:
    """Whether `a` comes before `b`: `a < b`, and an answer also where Python has none.

    >>> before(("x", 3), ("x", None)), before("ten", 9)
    (True, False)
    """
    try:
        return bool(a < b)
    except TypeError:
        pass
    if isinstance(a, tuple) and isinstance(b, tuple):
        parting = next(((p, q) for p, q in zip(a, b, strict=False) if p is not q and p != q), None)
        return len(a) < len(b) if parting is None else before(*parting)
    one, two = _rank(a), _rank(b)
    if one == two and a != b:
        raise alike(a, b)
    return one < two


def _rank(x: Any) -> tuple[Any, ...]:
    """Numbers first, then by type; of times, those without a zone come before those with one."""
    number = isinstance(x, (Real, Decimal))
    return not number, type(x).__qualname__, getattr(x, "tzinfo", None) is not None, repr(x)


CAREFULLY = cmp_to_key(lambda a, b: before(b, a) - before(a, b))


def carefully_left(tokens: Sequence[Any], token: Any, lo: int = 0, hi: int | None = None) -> int:
    return bisect_left(tokens, CAREFULLY(token), lo, hi, key=CAREFULLY)


def carefully_right(tokens: Sequence[Any], token: Any, lo: int = 0, hi: int | None = None) -> int:
    return bisect_right(tokens, CAREFULLY(token), lo, hi, key=CAREFULLY)


def alike(a: Any, b: Any) -> AlgebraError:
    return AlgebraError(
        "two different elements have the same place in the order",
        one=a,
        other=b,
        remedy="a key= that tells them apart",
    )
