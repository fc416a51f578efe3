"""Exact sums of products: what variance, covariance and weighted means are made of.

A few sums over the rows are enough for each of them, and the textbook formulas that use them lose
all digits when they are computed in floats. Here every sum is an exact rational, so the formula is
computed exactly and rounded once. As for sums, how many of each type there are belongs to the
state, and numbers that are not finite are counted: while there is one, the result is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from struct import Struct
from typing import Any, NamedTuple

from ebbflow.decimals import PLAIN, of_fraction
from ebbflow.errors import AlgebraError
from ebbflow.nan import is_nan
from ebbflow.reducer.exact import dyadic, rounded


class Dyadic(NamedTuple):
    """`top / 2**scale`, exactly."""

    top: int
    scale: int

    def times(self, other: Dyadic) -> Dyadic:
        return Dyadic(self.top * other.top, self.scale + other.scale)


class Exact(NamedTuple):
    """A sum of dyadic numbers, and beside it a sum of other fractions.

    >>> Exact().plus(Dyadic(1, 1), 3).plus(Fraction(1, 3), 1).value
    Fraction(11, 6)
    """

    top: int = 0
    scale: int = 0
    other: Fraction = Fraction(0)

    def plus(self, x: Dyadic | Fraction, n: int) -> Exact:
        if isinstance(x, Dyadic):
            return Exact(*dyadic(self.top, self.scale, x.top * n, x.scale), self.other)
        return self._replace(other=self.other + x * n)

    def merged(self, more: Exact) -> Exact:
        return Exact(*dyadic(self.top, self.scale, more.top, more.scale), self.other + more.other)

    @property
    def value(self) -> Fraction:
        return Fraction(self.top, 1 << self.scale) + self.other


class Moments(NamedTuple):
    """How many rows, how many of which type, how many that are not finite, and the sums."""

    size: int
    floats: int
    fractions: int
    decimals: int
    odd: int
    sums: tuple[Exact, ...]


Terms = Callable[..., tuple[Any, ...]]


def nothing(size: int) -> Moments:
    """No rows, `size` sums.

    >>> nothing(2).size, len(nothing(2).sums)
    (0, 2)
    """
    return Moments(0, 0, 0, 0, 0, (Exact(),) * size)


def plus(acc: Moments, row: tuple[Any, ...], n: int, terms: Terms) -> Moments:
    """With the terms of a row of numbers put in `n` times, or taken out.

    >>> square = lambda x: (x, times(x, x))
    >>> plus(nothing(2), (3,), 2, square).sums[1].value
    Fraction(18, 1)
    """
    numbers, families, odd = [], [0, 0, 0, 0], False
    for x in row:
        if isinstance(x, (float, Decimal)) and (is_nan(x) or x in (math.inf, -math.inf)):
            odd = True
        elif not isinstance(x, int):
            x, family = _known(x)
            families[family] = n
        numbers.append(x)
    size, floats, fractions, decimals, strange, sums = acc
    if odd:
        return acc._replace(size=size + n, odd=strange + n)
    exact = (
        tuple(map(_exact, numbers)) if families[1:3] == [0, 0] else tuple(map(Fraction, numbers))
    )
    totals = tuple([s.plus(t, n) for s, t in zip(sums, terms(*exact), strict=True)])
    return Moments(
        size + n,
        floats + families[0],
        fractions + families[1],
        decimals + families[2],
        strange,
        totals,
    )


def _known(x: Any) -> tuple[Any, int]:
    if isinstance(x, Real) and not isinstance(x, Rational):
        return float(x), 0
    if isinstance(x, Decimal):
        return x, 2
    if isinstance(x, Rational):
        return (int(x), 3) if isinstance(x, Integral) else (x, 1)
    raise AlgebraError(
        f"a {type(x).__name__} has no square", value=x,
        remedy="int, float, Fraction or Decimal",
    )  # fmt: skip


def _exact(x: float) -> Dyadic:
    top, bottom = x.as_integer_ratio()
    return Dyadic(top, bottom.bit_length() - 1)


def times(a: Any, b: Any) -> Any:
    """The product of two exact numbers of one kind.

    >>> times(Dyadic(3, 1), Dyadic(1, 2)), times(Fraction(1, 3), Fraction(3))
    (Dyadic(top=3, scale=3), Fraction(1, 1))
    """
    return a.times(b) if isinstance(a, Dyadic) else a * b


def merged(a: Moments, b: Moments) -> Moments:
    """All rows of both.

    >>> merged(nothing(1), nothing(1)) == nothing(1)
    True
    """
    return Moments(
        a.size + b.size,
        a.floats + b.floats,
        a.fractions + b.fractions,
        a.decimals + b.decimals,
        a.odd + b.odd,
        tuple([x.merged(y) for x, y in zip(a.sums, b.sums, strict=True)]),
    )


_WHOLE = Struct("<qq")


def stored(slots: tuple[Any, ...]) -> tuple[Any, ...]:
    """Moments of whole numbers as bytes, where they have room: how many, their sum, and the sum of
    their squares in 128 bits. Others as they are.

    >>> restored(stored((nothing(2),))) == (nothing(2),)
    True
    """
    (acc,) = slots
    first, second = acc.sums
    if any((*acc[1:5], *first[1:], *second[1:])):
        return slots
    if not 0 <= second.top < 1 << 126 or abs(first.top) >= 1 << 63:
        return slots
    return (_WHOLE.pack(acc.size, first.top) + second.top.to_bytes(16, "little"),)


def restored(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The moments that were stored."""
    (found,) = values
    if type(found) is not bytes:
        return values
    size, total = _WHOLE.unpack_from(found)
    squares = int.from_bytes(found[_WHOLE.size :], "little")
    return (Moments(size, 0, 0, 0, 0, (Exact(total), Exact(squares))),)


def shown(acc: Moments, exact: Fraction | None) -> Any:
    """An exact result as the type that the rows ask for: float, Fraction, or Decimal.

    >>> shown(nothing(1), Fraction(1, 2))
    0.5
    """
    if acc.odd:
        return Decimal("nan") if acc.decimals and not acc.floats else math.nan
    if exact is None or acc.floats or not (acc.fractions or acc.decimals):
        return exact if exact is None else rounded(exact.numerator, exact.denominator)
    return of_fraction(exact, PLAIN) if acc.decimals else exact
