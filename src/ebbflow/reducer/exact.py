"""Exact sums: nothing is rounded until the result is asked for, so taking a number out again leaves
no trace.

A float is a whole number divided by a power of two, so a sum of ints and floats is one too: `whole
/ 2**scale`, kept in lowest terms as Python ints, which never overflow. The result is rounded once:
it is the float nearest to the true sum, for any history of adds and removes. Infinities and NaNs
are counted, not added, so they come and go. Decimals are added digit by digit, and the result has
the digits of its type (`ebbflow.decimals`); Fractions and timedeltas are exact already.

The result has the type that Python's own sum has: int, unless there is a Fraction, unless there is
a float. Decimals mix with ints only, timedeltas with nothing.

How much of each type there is belongs to the state: when the last float leaves, the sum is an int
again. Equal states mean equal collections' sums, so accumulators can be compared with `==`. A sum
of ints alone, by far the most frequent, is just how many there are and their sum: `(3, 42)`.
"""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from numbers import Integral, Rational, Real
from typing import Any, NamedTuple

from ebbflow import decimals
from ebbflow.decimals import PLAIN, Digits
from ebbflow.errors import AlgebraError, cause_of
from ebbflow.nan import is_nan

MICROSECOND = timedelta(microseconds=1)


class Rest(NamedTuple):
    """What is rarer than ints and finite floats, each with how many there are."""

    highs: int = 0
    lows: int = 0
    nans: int = 0
    fractions: int = 0
    fraction: Fraction = Fraction(0)
    decimals: int = 0
    digits: tuple[tuple[int, int, int], ...] = ()
    spans: int = 0


class Total(NamedTuple):
    """A sum that forgets nothing and rounds nothing: `size` numbers, of which `floats` are floats.

    >>> total = plus(plus(plus(NOTHING, 1e16, 1), 0.1, 1), 1e16, -1)
    >>> total == plus(NOTHING, 0.1, 1), value(total)
    (True, 0.1)
    """

    size: int = 0
    whole: int = 0
    scale: int = 0
    floats: int = 0
    rest: Rest | None = None


Sum = tuple[int, int] | Total

NOTHING: Sum = (0, 0)
_NO_REST = Rest()
_ONE_TYPE = "numbers of one type, as for Python's own +"
_made = tuple.__new__
_SAME = {text: Decimal(text) for text in ("nan", "inf", "-inf")}


def full(total: Sum) -> Total:
    """A sum in its general form.

    >>> full((3, 42))
    Total(size=3, whole=42, scale=0, floats=0, rest=None)
    """
    return total if len(total) == 5 else _made(Total, (*total, 0, 0, None))


def _short(total: Total) -> Sum:
    """A sum in the form that it is kept in. What was taken out may outweigh what was put in: then
    there may be a fraction and, added up, no floats."""
    return total if total[2] or total[3] or total[4] is not None else (total[0], total[1])


def plus(total: Sum, x: Any, n: int) -> Sum:
    """The sum with `x` put in `n` times, or taken out -n times.

    >>> value(plus(plus(NOTHING, 1, 3), 0.5, 1))
    3.5
    """
    if len(total) == 2 and isinstance(x, int):
        return total[0] + n, total[1] + x * n
    return _short(_plus(full(total), x, n))


def spread(total: Sum) -> tuple[int, Any]:
    """A sum as two values: how many numbers, and their sum where they are ints, or all of it.

    >>> spread((3, 42)), spread(plus((3, 42), 0.5, 1))[0]
    ((3, 42), 4)
    """
    return (total[0], total[1]) if len(total) == 2 else (total[0], total)


def packed(size: int, total: Any) -> Sum:
    """The sum that was spread.

    >>> packed(3, 42)
    (3, 42)
    """
    return (size, total) if type(total) is int else total


def spread_plus(size: int, total: Any, x: Any, n: int) -> tuple[int, Any]:
    """`plus` on a sum that is spread.

    >>> spread_plus(3, 42, 8, 2)
    (5, 58)
    """
    if type(x) is Decimal and size:
        found = _decimal_plus(size, total, x, n)
        if found is not None:
            return found
    return spread(plus(packed(size, total), x, n))


def _decimal_plus(size: int, total: Any, x: Decimal, n: int) -> tuple[int, Any] | None:
    """`spread_plus` of a Decimal on Decimals of its scale alone; None on any other sum."""
    if type(total) is not Total:
        return None
    _, whole, scale, floats, rest = total
    if whole or scale or floats or rest is None or len(rest[6]) != 1 or not size + n:
        return None
    highs, lows, nans, fractions, fraction, count, ((exponent, units, same),), spans = rest
    if highs or lows or nans or fractions or fraction or spans or not count == same == size:
        return None
    if not x.same_quantum(_unit(exponent)):
        return None
    units += decimals.units(x, -exponent) * n
    size += n
    rest = _made(Rest, (0, 0, 0, 0, fraction, size, ((exponent, units, size),), 0))
    return size, _made(Total, (size, 0, 0, 0, rest))


@cache
def _unit(exponent: int) -> Decimal:
    return Decimal((0, (1,), exponent))


def spread_merged(size: int, total: Any, more: int, other: Any) -> tuple[int, Any]:
    """`merged` on two sums that are spread.

    >>> spread_merged(3, 42, 2, 8)
    (5, 50)
    """
    return spread(merged(packed(size, total), packed(more, other)))


UNIT = 74
"""Sums of floats are stored in units of 2**-UNIT, in 128 bits, where they are so many units."""
_MOST = 1 << 124


def stored(slots: tuple[Any, ...]) -> tuple[Any, ...]:
    """A sum that is spread, as values that have columns: how many numbers, and a whole number,
    bytes where it is a sum of floats, or a Decimal where it is one of Decimals of one scale; None
    of no numbers. What has no room stays as it is.

    >>> stored((3, 42)), stored((0, 0)), stored(spread(plus(NOTHING, 0.5, 1)))[1].hex()
    ((3, 42), (0, None), '00000000000000000002000000000000')
    >>> stored(spread(plus(NOTHING, Decimal("1.50"), 2)))
    (2, Decimal('3.00'))
    """
    size, total = slots
    if type(total) is int:
        return (size, total if size or total else None)
    _, whole, scale, floats, rest = total
    if rest is None and floats == size and scale <= UNIT:
        units = whole << UNIT - scale
        if -_MOST < units < _MOST:
            return size, units.to_bytes(16, "little", signed=True)
    if rest is not None and len(rest.digits) == 1:
        exponent, units, _ = rest.digits[0]
        if exponent <= 0 and slots == of_decimal_units(size, units, -exponent):
            return size, decimals.of_units(units, -exponent)
    return slots


def restored(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sum that was stored.

    >>> total = spread(plus(plus(NOTHING, 0.1, 1), 3.0, 1))
    >>> restored(stored(total)) == total
    True
    """
    size, total = values
    if total is None:
        return size, 0
    if type(total) is bytes:
        return of_units(size, int.from_bytes(total, "little", signed=True))
    if type(total) is Decimal:
        scale = -int(total.as_tuple().exponent)
        return of_decimal_units(size, decimals.units(total, scale), scale)
    return values


def of_units(size: int, units: int) -> tuple[int, Any]:
    """The sum of `size` floats, which is so many units, spread."""
    spare = min(UNIT, (units & -units).bit_length() - 1) if units else UNIT
    return spread(_short(Total(size, units >> spare, UNIT - spare, size)))


def of_decimal_units(size: int, units: int, scale: int) -> tuple[int, Any]:
    """The sum of `size` Decimals of this scale, given in `units`, spread.

    >>> total = plus(plus(NOTHING, Decimal("1.50"), 1), Decimal("0.25"), 1)
    >>> of_decimal_units(2, 175, 2) == spread(total)
    True
    """
    if not size:
        return 0, 0
    return size, Total(size, 0, 0, 0, Rest(decimals=size, digits=((-scale, units, size),)))


def _plus(total: Total, x: Any, n: int) -> Total:
    size, whole, scale, floats, rest = total
    if isinstance(x, int):
        new = _made(Total, (size + n, whole + (x * n << scale), scale, floats, rest))
    elif isinstance(x, float):
        try:
            top, bottom = x.as_integer_ratio()
        except (OverflowError, ValueError):
            return _special(total._replace(floats=floats + n), x, n)
        whole, scale = dyadic(whole, scale, top * n, bottom.bit_length() - 1)
        new = _made(Total, (size + n, whole, scale, floats + n, rest))
    else:
        return _rare(total, x, n)
    return new if rest is None else _unmixed(new, x)


def dyadic(a: int, i: int, b: int, j: int) -> tuple[int, int]:
    """`a / 2**i + b / 2**j` in lowest terms.

    >>> dyadic(1, 1, 1, 1), dyadic(3, 0, 1, 2)
    ((1, 0), (13, 2))
    """
    if i < j:
        a, i = a << j - i, j
    total = a + (b << i - j)
    if i and not total & 1:
        zeros = min(i, (total & -total).bit_length() - 1) if total else i
        return total >> zeros, i - zeros
    return total, i


def _special(total: Total, x: float | Decimal, n: int) -> Total:
    rest = total.rest or _NO_REST
    if is_nan(x):
        rest = rest._replace(nans=rest.nans + n)
    elif x > 0:
        rest = rest._replace(highs=rest.highs + n)
    else:
        rest = rest._replace(lows=rest.lows + n)
    return _with(total, rest, x, n)


def _rare(total: Total, x: Any, n: int) -> Total:
    rest = total.rest or _NO_REST
    if isinstance(x, Decimal):
        rest = rest._replace(decimals=rest.decimals + n)
        if not x.is_finite():
            return _special(total._replace(rest=rest), x, n)
        return _with(total, rest._replace(digits=_digits(rest.digits, x, n)), x, n)
    if isinstance(x, timedelta):
        whole = total.whole + x // MICROSECOND * n
        return _with(total._replace(whole=whole), rest._replace(spans=rest.spans + n), x, n)
    if isinstance(x, Integral):
        return _plus(total, int(x), n)
    if isinstance(x, Rational):
        part = Fraction(int(x.numerator), int(x.denominator)) * n
        rest = rest._replace(fractions=rest.fractions + n, fraction=rest.fraction + part)
        return _with(total, rest, x, n)
    if isinstance(x, Real):
        return _plus(total, float(x), n)
    raise AlgebraError(
        f"it is not known how to add up a {type(x).__name__} exactly",
        value=x,
        remedy="int, float, Fraction, Decimal or timedelta; for a type of your own: "
        "Reducer(zero, operator.add, operator.sub)",
    )


def _digits(
    digits: tuple[tuple[int, int, int], ...], x: Decimal, n: int
) -> tuple[tuple[int, int, int], ...]:
    """For each exponent of ten: the sum of the digits there, and of how many numbers."""
    exponent = int(x.as_tuple().exponent)
    coefficient = decimals.units(x, -exponent)
    if not digits or (len(digits) == 1 and digits[0][0] == exponent):
        _, total, count = digits[0] if digits else (exponent, 0, 0)
        total, count = total + coefficient * n, count + n
        return ((exponent, total, count),) if total or count else ()
    sums = {at: (total, count) for at, total, count in digits}
    total, count = sums.get(exponent, (0, 0))
    sums[exponent] = (total + coefficient * n, count + n)
    return _in_order(sums)


def _in_order(sums: dict[int, tuple[int, int]]) -> tuple[tuple[int, int, int], ...]:
    return tuple(sorted((at, *both) for at, both in sums.items() if any(both)))


def _with(total: Total, rest: Rest, x: Any, n: int) -> Total:
    return _unmixed(total._replace(size=total.size + n, rest=_kept(rest)), x)


def _kept(rest: Rest) -> Rest | None:
    return None if rest == _NO_REST else rest


def _unmixed(total: Total, x: Any) -> Total:
    alone = _mixed(total)
    if alone:
        raise AlgebraError(
            f"a {type(x).__name__} cannot be added to what is there already: "
            f"{alone} does not mix with it",
            value=x,
            remedy=_ONE_TYPE,
        )
    return total


def _mixed(total: Total) -> str:
    """The type that is there with others that it does not mix with."""
    rest = total.rest or _NO_REST
    if rest.spans and rest.spans != total.size:
        return "timedelta"
    return "Decimal" if rest.decimals and (total.floats or rest.fractions) else ""


def merged(a: Sum, b: Sum) -> Sum:
    """The sum of two sums.

    >>> value(merged(plus(NOTHING, 1, 1), plus(NOTHING, 0.5, 1)))
    1.5
    """
    if len(a) == 2 and len(b) == 2:
        return a[0] + b[0], a[1] + b[1]
    a, b = full(a), full(b)
    whole, scale = dyadic(a.whole, a.scale, b.whole, b.scale)
    new = Total(a.size + b.size, whole, scale, a.floats + b.floats, _merged_rest(a.rest, b.rest))
    alone = new.rest is not None and _mixed(new)
    if alone:
        raise AlgebraError(
            f"two sums cannot be added: {alone} does not mix with what is in the other",
            sums=(a, b),
            remedy=_ONE_TYPE,
        )
    return _short(new)


def _merged_rest(a: Rest | None, b: Rest | None) -> Rest | None:
    if a is None or b is None:
        return a or b
    sums: dict[int, tuple[int, int]] = {}
    for at, total, count in (*a.digits, *b.digits):
        there = sums.get(at, (0, 0))
        sums[at] = (there[0] + total, there[1] + count)
    added = Rest(*(x + y for x, y in zip(a, b, strict=True)))  # type: ignore[operator]
    return _kept(added._replace(digits=_in_order(sums)))


# ---- the result ----


def value(total: Sum) -> Any:
    """The sum, rounded once; None of no numbers.

    >>> value(plus(plus(NOTHING, Decimal("1.1"), 1), Decimal("2.9"), 1))
    Decimal('4')
    >>> value(NOTHING) is None
    True
    """
    if len(total) == 2:
        return total[1] if total[0] else None
    return _quotient(total, 1, PLAIN) if total.size else None


def decimal_value(digits: Digits, total: Sum) -> Any:
    """The same of Decimals, with these digits.

    >>> decimal_value((22, 2), plus(plus(NOTHING, Decimal("1.10"), 1), Decimal("2.90"), 1))
    Decimal('4.00')
    """
    return _decimal_quotient(digits, total, 1)


def decimal_average(digits: Digits, total: Sum) -> Any:
    """The mean of Decimals, with these digits.

    >>> decimal_average((16, 6), plus(plus(NOTHING, Decimal("1.10"), 1), Decimal("1.25"), 2))
    Decimal('1.200000')
    """
    return _decimal_quotient(digits, total, total[0])


def _decimal_quotient(digits: Digits, total: Sum, count: int) -> Any:
    if not total[0]:
        return None
    if len(total) == 2:
        return decimals.of_ratio(total[1], count, digits)
    return _quotient(total, count, digits)


def average(total: Sum) -> Any:
    """The mean: the exact sum divided by the count, rounded once; None of no numbers.

    >>> average(plus(plus(NOTHING, 1, 1), 2, 1))
    1.5
    """
    if len(total) == 2:
        return rounded(total[1], total[0]) if total[0] else None
    return _quotient(total, total.size, PLAIN) if total.size else None


def _quotient(total: Total, count: int, digits: Digits) -> Any:
    rest = total.rest
    if rest is None:
        if total.floats:
            return rounded(total.whole, count << total.scale)
        return total.whole
    if rest.spans:
        return span(Fraction(total.whole, count))
    if rest.highs or rest.lows or rest.nans:
        return _extreme(rest)
    if rest.decimals:
        top, scale = _units(rest.digits, total.whole)
        return decimals.of_ratio(top, count * 10**scale, digits)
    exact = (Fraction(total.whole, 1 << total.scale) + rest.fraction) / count
    return rounded(exact.numerator, exact.denominator) if total.floats else exact


def _extreme(rest: Rest) -> float | Decimal:
    if rest.nans or (rest.highs and rest.lows):
        found = math.nan
    else:
        found = math.inf if rest.highs else -math.inf
    return _SAME[str(found)] if rest.decimals else found


def _units(digits: tuple[tuple[int, int, int], ...], whole: int) -> tuple[int, int]:
    """The sum in units of the last digit after the point, and how many of these there are."""
    low = min(0, *[at for at, _, _ in digits]) if digits else 0
    total = sum(coefficient * 10 ** (at - low) for at, coefficient, _ in digits)
    return total + whole * 10**-low, -low


def span(microseconds: Fraction) -> timedelta:
    """A timedelta, rounded to whole microseconds.

    >>> span(Fraction(5, 2))
    datetime.timedelta(microseconds=2)
    """
    try:
        return MICROSECOND * round(microseconds)
    except OverflowError as error:
        raise AlgebraError(
            "a sum of timedeltas is longer than the longest timedelta",
            microseconds=microseconds,
            remedy="the mean, or the sum of their total_seconds()",
        ) from cause_of(error)


def rounded(top: int, bottom: int) -> float:
    """The float nearest to a fraction, infinite where it is out of range.

    >>> rounded(1, 10), rounded(-(10**400), 1)
    (0.1, -inf)
    """
    try:
        return top / bottom
    except OverflowError:
        return math.inf if (top > 0) == (bottom > 0) else -math.inf


def root(x: Fraction) -> float:
    """The float nearest to the square root, infinite where it is out of range.

    >>> root(Fraction(2)), root(Fraction(1, 10**400))
    (1.4142135623730951, 1e-200)
    """
    top, bottom = x.numerator, x.denominator
    half = (top.bit_length() - bottom.bit_length() - 109) // 2  # leaves at least 54 bits
    if half >= 0:
        return rounded(_odd_root(top, bottom << 2 * half) << half, 1)
    return rounded(_odd_root(top << -2 * half, bottom), 1 << -half)


def _odd_root(top: int, bottom: int) -> int:
    """The root rounded down, and to odd where it is not exact, so that it can be rounded again."""
    found = math.isqrt(top // bottom)
    return found | (found * found * bottom != top)


def decimal_root(x: Fraction) -> Decimal:
    """The square root as a plain Decimal.

    >>> decimal_root(Fraction(1, 4)), decimal_root(Fraction(2))
    (Decimal('0.5'), Decimal('1.414213562373095049'))
    """
    unit: int = 10 ** decimals.WIDE[1]
    found = (math.isqrt(4 * x.numerator * unit**2 // x.denominator) + 1) // 2
    return decimals.of_ratio(found, unit, PLAIN)
