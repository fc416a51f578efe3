"""Decimals: their types, the types of results, and arithmetic that no context of a thread changes.

A field of `decimal(p, s)` holds numbers of at most `p` digits with exactly `s` of them after the
point. A plain `Decimal` is one wide type: an exact number with at most 18 digits after the point,
written without trailing zeros. So equal values of one type are the same value.

Results follow the ANSI rules of Spark SQL (`RESULTS`). A result is rounded half up to its digits,
once; one that has more digits than its type is an error. If one operand is a plain `Decimal`, so is
the result. `PLAIN` stands for the digits of a plain `Decimal`, which are (38, 18) in a table: so
both are one type.

Every function here computes in a context of its own. A function of the user that cannot be traced
computes in Python's usual one, `usual_context`, whatever that of the thread is.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import (
    MAX_EMAX,
    MAX_PREC,
    MIN_EMIN,
    ROUND_05UP,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    Context,
    Decimal,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
    localcontext,
)
from fractions import Fraction
from functools import cache, partial
from typing import Annotated, Any, get_args, get_origin

from ebbflow.errors import AlgebraError, CompositionError
from ebbflow.keywords import checked

Digits = tuple[int, int] | None
PLAIN: Digits = None
MOST = 38
"""No Decimal of a type with digits has more of them."""
LONGEST = 4_300
"""No plain Decimal has more digits before the point, as no text that Python reads as an int."""
WIDE = (MOST, 18)
"""The digits of a plain Decimal in a table."""
_AFTER = 6
"""So many digits after the point a product or a quotient keeps at least, where it has them."""
_INT = (20, 0)
"""The digits of an int field beside a Decimal, as those of a bigint in Spark SQL."""
_DIVIDED = 160
"""So many digits of a quotient are computed, of which the last tells whether there are more."""

_EXACTLY = Context(prec=MAX_PREC, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_POWER = Context(prec=MOST, rounding=ROUND_HALF_UP, Emin=-9999, Emax=9999, traps=[InvalidOperation])
USUAL = Context(
    prec=28, rounding=ROUND_HALF_EVEN, Emin=-999_999, Emax=999_999, capitals=1, clamp=0,
    traps=[InvalidOperation, DivisionByZero, Overflow],
)  # fmt: skip
"""Python's usual context. In it a function gives the same in every thread and process."""
usual_context = partial(localcontext, USUAL)
"""The usual context in a `with`."""
_ZERO, _ONE, _TINY = Decimal(0), Decimal(1), Decimal((0, (1,), -18))


@checked
def decimal(precision: int, scale: int = 0) -> Any:
    """The type of Decimals with at most `precision` digits, exactly `scale` of them after the
    point.

    >>> decimal(12, 2)
    typing.Annotated[decimal.Decimal, (12, 2)]
    >>> decimal(2, 12)
    Traceback (most recent call last):
    ebbflow.errors.CompositionError: decimal(2, 12): no such number of digits
        try        decimal(12, 2): 1 to 38 digits, and how many of them come after the point
    """
    if not is_digits((precision, scale)):
        raise CompositionError(
            f"decimal({precision!r}, {scale!r}): no such number of digits",
            remedy="decimal(12, 2): 1 to 38 digits, and how many of them come after the point",
        )
    return Annotated[Decimal, (precision, scale)]


def is_digits(note: Any) -> bool:
    """Whether a note of a Decimal is its digits.

    >>> is_digits((12, 2)), is_digits((2, 12)), is_digits("price")
    (True, False, False)
    """
    if not isinstance(note, tuple) or len(note) != 2:
        return False
    precision, scale = note
    whole = type(precision) is int and type(scale) is int
    return whole and 0 < precision <= MOST and 0 <= scale <= precision


def hint_of(digits: Digits) -> Any:
    """The type of Decimals with these digits.

    >>> hint_of((12, 2)), hint_of(PLAIN)
    (typing.Annotated[decimal.Decimal, (12, 2)], <class 'decimal.Decimal'>)
    """
    return Decimal if digits is None else Annotated[Decimal, digits]


def digits_of(hint: Any) -> Digits:
    """The digits of a type that is known to be of Decimals.

    >>> digits_of(decimal(12, 2)), digits_of(Decimal), digits_of(decimal(38, 18))
    ((12, 2), None, None)
    """
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return _known(next((note for note in notes if is_digits(note)), PLAIN))


def literal_digits(value: Decimal | int) -> Digits:
    """The digits of a number that is written down.

    >>> literal_digits(Decimal("1.50")), literal_digits(Decimal("0.05")), literal_digits(100)
    ((3, 2), (2, 2), (3, 0))
    """
    if isinstance(value, int):
        return _known((min(len(str(abs(value))), MOST), 0))
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return PLAIN
    after = max(-exponent, 0)
    found = max(len(digits) + max(exponent, 0), after)
    return _known((found, after)) if found <= MOST else PLAIN


def _known(digits: Digits) -> Digits:
    return PLAIN if digits == WIDE else digits


# ---- the digits of results ----


def _adjusted(precision: int, scale: int) -> Digits:
    """Digits that fit: those before the point are kept, and of those after it six, or all."""
    if precision > MOST:
        before, least = precision - scale, min(scale, _AFTER)
        precision, scale = MOST, max(MOST - before, least)
    return _known((precision, scale))


def _sum(one: tuple[int, int], other: tuple[int, int]) -> Digits:
    after = max(one[1], other[1])
    return _adjusted(max(one[0] - one[1], other[0] - other[1]) + after + 1, after)


def _product(one: tuple[int, int], other: tuple[int, int]) -> Digits:
    return _adjusted(one[0] + other[0] + 1, one[1] + other[1])


def _quotient(one: tuple[int, int], other: tuple[int, int]) -> Digits:
    after = max(_AFTER, one[1] + other[0] + 1)
    return _adjusted(one[0] - one[1] + other[1] + after, after)


def _whole(one: tuple[int, int], other: tuple[int, int]) -> Digits:
    return min(max(one[0] - one[1] + other[1], 1), MOST), 0


def _rest(one: tuple[int, int], other: tuple[int, int]) -> Digits:
    after = max(one[1], other[1])
    return _adjusted(max(min(one[0] - one[1], other[0] - other[1]) + after, 1), after)


def wider(one: Digits, other: Digits) -> Digits:
    """The digits that hold the values of both; a plain Decimal where that is too many.

    >>> wider((10, 2), (6, 4)), wider((38, 0), (2, 2))
    ((12, 4), None)
    """
    if one is None or other is None:
        return PLAIN
    after = max(one[1], other[1])
    before = max(one[0] - one[1], other[0] - other[1])
    return _known((before + after, after)) if before + after <= MOST else PLAIN


RESULTS: dict[str, Callable[[tuple[int, int], tuple[int, int]], Digits]] = {
    "+": _sum, "-": _sum, "*": _product, "/": _quotient, "//": _whole, "%": _rest,
}  # fmt: skip


def result(op: str, one: Digits, other: Digits) -> Digits:
    """The digits of what an operator gives.

    >>> result("*", (12, 2), (12, 2)), result("/", (12, 2), (3, 0)), result("+", (12, 2), PLAIN)
    ((25, 4), (16, 6), None)
    """
    if one is None or other is None or op not in RESULTS:
        return PLAIN
    return RESULTS[op](one, other)


def summed(digits: Digits) -> Digits:
    """The digits of a sum.

    >>> summed((12, 2)), summed((38, 2))
    ((22, 2), (38, 2))
    """
    return PLAIN if digits is None else _known((min(digits[0] + 10, MOST), digits[1]))


def averaged(digits: Digits) -> Digits:
    """The digits of a mean, and of a value between two others.

    >>> averaged((12, 2)), averaged(PLAIN)
    ((16, 6), None)
    """
    if digits is None:
        return PLAIN
    return _known((min(digits[0] + 4, MOST), min(digits[1] + 4, MOST)))


def rounded(digits: Digits, places: int) -> Digits:
    """The digits of a number rounded to so many places.

    >>> rounded((12, 2), 1), rounded((12, 2), -2), rounded((12, 2), 5)
    ((12, 1), (11, 0), (13, 2))
    """
    if digits is None:
        return PLAIN
    before = digits[0] - digits[1] + 1
    if places < 0:
        return min(max(before, 1 - places), MOST), 0
    after = min(digits[1], places)
    return _known((min(before + after, MOST), after))


def int_digits() -> Digits:
    """The digits of an int field beside a Decimal."""
    return _INT


# ---- values ----


def fitting(digits: Digits, *, exact: bool = False) -> Callable[[Any], Any]:
    """A function from a number to the Decimal of these digits, rounded half up; with `exact`,
    digits that would be lost are refused.

    >>> fitting((5, 2))(Decimal("1.005")), fitting(PLAIN)(Decimal("1.500"))
    (Decimal('1.01'), Decimal('1.5'))
    """
    return plain if digits is None else _fitting(digits, exact)


@cache
def _fitting(digits: tuple[int, int], exact: bool) -> Callable[[Any], Any]:
    precision, scale = digits
    traps: list[Any] = [InvalidOperation, Inexact] if exact else [InvalidOperation]
    context = Context(
        prec=precision, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=traps
    )
    quantize, quantum = context.quantize, Decimal((0, (1,), -scale))
    zero = quantize(_ZERO, quantum)

    def fit(value: Any) -> Any:
        try:
            return quantize(value, quantum) or zero
        except (InvalidOperation, Inexact) as error:
            raise _refused(value, digits, isinstance(error, Inexact)) from None

    return fit


def _refused(value: Any, digits: tuple[int, int], inexact: bool) -> AlgebraError:
    precision, scale = digits
    if inexact:
        return AlgebraError(
            f"decimal({precision}, {scale}) would lose digits of this number",
            value=value,
            remedy=f"round(value, {scale}), or a type with more digits after the point",
        )
    return AlgebraError(
        f"the result has more digits than decimal({precision}, {scale})",
        value=value,
        remedy="smaller numbers, or fields of a type with fewer digits after the point",
    )


def plain(value: Any) -> Any:
    """A number as a plain Decimal: rounded half up to 18 digits after the point, without trailing
    zeros.

    >>> plain(Decimal("100.50")), plain(Decimal("1E+2")), plain(7)
    (Decimal('100.5'), Decimal('100'), Decimal('7'))
    """
    found = _EXACTLY.normalize(value)
    exponent = found.as_tuple()[2]
    if not isinstance(exponent, int):
        return found
    if exponent < -18:
        found = _EXACTLY.normalize(_EXACTLY.quantize(found, _TINY))
        exponent = found.as_tuple()[2]
    if exponent > 0:  # type: ignore[operator]
        found = _EXACTLY.quantize(found, _ONE)
    return found or _ZERO


def without_zeros(value: Decimal) -> Decimal:
    """The shortest of equal Decimals.

    >>> without_zeros(Decimal("100.50")), without_zeros(Decimal("100")), without_zeros(Decimal("-0.0"))
    (Decimal('100.5'), Decimal('1E+2'), Decimal('0'))
    """  # noqa: E501
    return _EXACTLY.normalize(value) or _ZERO


def of_fraction(value: Fraction, digits: Digits) -> Decimal:
    """An exact number as the Decimal of these digits.

    >>> of_fraction(Fraction(4, 3), (16, 6)), of_fraction(Fraction(-1, 2), PLAIN)
    (Decimal('1.333333'), Decimal('-0.5'))
    """
    return of_ratio(value.numerator, value.denominator, digits)


def of_ratio(top: int, bottom: int, digits: Digits) -> Decimal:
    """The same of a numerator and a positive denominator.

    >>> of_ratio(200, 3, (16, 6))
    Decimal('66.666667')
    """
    scale = WIDE[1] if digits is None else digits[1]
    units = (2 * abs(top) * 10**scale + bottom) // (2 * bottom)
    return fitting(digits)(of_units(-units if top < 0 else units, scale))  # type: ignore[no-any-return]


def units(value: Any, scale: int) -> int:
    """How many units of its last digit a Decimal of this scale is.

    >>> units(Decimal("1.50"), 2)
    150
    """
    return int(_EXACTLY.scaleb(value, scale))


def of_units(units: int, scale: int) -> Decimal:
    """The Decimal of a number of units of its last digit; the inverse of `units`.

    >>> of_units(150, 2)
    Decimal('1.50')
    """
    return _EXACTLY.scaleb(units, -scale)


def plus_times(total: Decimal, value: Decimal, times: int) -> Decimal:
    """A number with another one added so often, exactly.

    >>> plus_times(Decimal("1.50"), Decimal("0.25"), -2)
    Decimal('1.00')
    """
    return _EXACTLY.add(total, value if times == 1 else _EXACTLY.multiply(value, times))


# ---- operators ----


def _divided(one: Any, other: Any) -> Any:
    if not other:
        raise ZeroDivisionError("a Decimal is divided by zero")
    spread = Decimal(one).adjusted() - Decimal(other).adjusted() if one else 0
    digits = _DIVIDED + max(spread, 0)
    context = Context(prec=digits, rounding=ROUND_05UP, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    return context.divide(one, other)


def _floored(one: Any, other: Any) -> Any:
    if not other:
        raise ZeroDivisionError("a Decimal is divided by zero")
    return _EXACTLY.divide_int(one, other)


def _remaining(one: Any, other: Any) -> Any:
    if not other:
        raise ZeroDivisionError("a Decimal is divided by zero")
    return _EXACTLY.remainder(one, other)


def _raised(one: Any, other: Any) -> Any:
    return _POWER.power(one, other)


def half_up(value: Any) -> int:
    """The whole number nearest to a Decimal; of two, the one farther from zero.

    >>> half_up(Decimal("2.5")), half_up(Decimal("-2.5"))
    (3, -3)
    """
    return int(_EXACTLY.quantize(value, _ONE))


def _rounded(places: int, value: Any) -> Any:
    return _EXACTLY.quantize(value, Decimal((0, (1,), -places)))


_EXACT: dict[str, Callable[..., Any]] = {
    "+": _EXACTLY.add, "-": _EXACTLY.subtract, "*": _EXACTLY.multiply, "/": _divided,
    "//": _floored, "%": _remaining, "**": _raised,
}  # fmt: skip
_OF_ONE: dict[str, Callable[..., Any]] = {
    "-": _EXACTLY.minus, "+": _EXACTLY.plus, "abs": _EXACTLY.abs,
}  # fmt: skip


@cache
def operator(op: str, digits: Digits, arity: int = 2, places: int | None = None) -> Any:
    """The function that computes an operator, with a result of these digits. `decimal` brings a
    number to the digits without loss; `round` with `places` rounds half up.

    >>> operator("*", (25, 4))(Decimal("1.50"), Decimal("0.25"))
    Decimal('0.3750')
    """
    if op == "decimal":
        return _bringing(digits)
    if op == "round":
        if places is None:
            return half_up
        return _named("round", partial(_rounded, places), fitting(digits))
    exact = _OF_ONE[op] if arity == 1 else _EXACT[op]
    return _named(_NAMES.get(op, op) if arity == 2 else _SIGNS[op], exact, fitting(digits))


def _bringing(digits: Digits) -> Any:
    fit = fitting(digits, exact=True)

    def decimal_of(value: Any) -> Any:
        return None if value is None else fit(value)

    return decimal_of


_NAMES = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide",
          "%": "remainder", "**": "power"}  # fmt: skip
_SIGNS = {"-": "negative", "+": "positive", "abs": "absolute"}


def _named(name: str, exact: Callable[..., Any], fit: Callable[[Any], Any]) -> Any:
    """A function with a name for the text of generated loops."""

    def one(value: Any) -> Any:
        return fit(exact(value))

    def two(value: Any, other: Any) -> Any:
        return fit(exact(value, other))

    found = one if name in ("round", *_SIGNS.values()) else two
    found.__name__ = f"decimal_{name}"
    return found
