"""Exact sums of floats: whole numbers of 128 bits, counted in units of 2**-74.

A float is a whole number of 53 bits times a power of two. Those from 2**-22 up to 2**50, and all
smaller ones that have few enough bits, are whole numbers of units; so their sums are exact,
whatever comes and goes, and are rounded once, when the result is read: to the nearest float, as
`ebbflow.reducer.exact` rounds. What does not fit, an infinity or NaN among it, is told.

A number of 128 bits is two words: the upper one with the sign, and the lower one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel.compiled import compiled, inlined

HIGHEST = 1 << 60


@inlined
def negated(high: Any, low: Any) -> Any:
    """The number with the other sign."""
    low = np.int64(~np.uint64(low) + np.uint64(1))
    return ~high + (1 if low == 0 else 0), low


@inlined
def units_of(bits: Any) -> Any:
    """The units of a float, given as its bits: whether it fits, the upper and the lower word."""
    exponent = (bits >> 52) & 0x7FF
    part = bits & ((1 << 52) - 1)
    high, low = np.int64(0), np.int64(0)
    if exponent == 0:
        return part == 0, high, low
    shift = exponent - 1075 + 74
    whole = np.uint64(part | (1 << 52))
    if shift > 71 or shift <= -53:
        return False, high, low
    if shift < 0:
        if whole & ((np.uint64(1) << np.uint64(-shift)) - np.uint64(1)) != np.uint64(0):
            return False, high, low
        low = np.int64(whole >> np.uint64(-shift))
    elif shift == 0:
        low = np.int64(whole)
    elif shift < 64:
        low = np.int64(whole << np.uint64(shift))
        high = np.int64(whole >> np.uint64(64 - shift))
    else:
        high = np.int64(whole << np.uint64(shift - 64))
    if bits < 0:
        high, low = negated(high, low)
    return True, high, low


@inlined
def plus(high: Any, low: Any, more_high: Any, more_low: Any) -> Any:
    """The sum of two numbers."""
    total = np.uint64(low) + np.uint64(more_low)
    carry = 1 if total < np.uint64(more_low) else 0
    return high + more_high + carry, np.int64(total)


@inlined
def nearest(high: Any, low: Any) -> Any:
    """The float nearest to so many units, the even one of two."""
    negative = high < 0
    if negative:
        high, low = negated(high, low)
    top, bottom = np.uint64(high), np.uint64(low)
    one = np.uint64(1)
    length = 0
    rest = top if top != np.uint64(0) else bottom
    while rest != np.uint64(0):
        rest = rest >> one
        length += 1
    if top != np.uint64(0):
        length += 64
    shift = length - 53
    if shift <= 0:
        found = np.float64(bottom) * 2.0**-74
        return -found if negative else found
    if shift < 64:
        s = np.uint64(shift)
        whole = (top << (np.uint64(64) - s)) | (bottom >> s)
        half = (bottom >> (s - one)) & one
        below = bottom & ((one << (s - one)) - one)
    elif shift == 64:
        whole = top
        half = bottom >> np.uint64(63)
        below = bottom & ((one << np.uint64(63)) - one)
    else:
        s = np.uint64(shift - 64)
        whole = top >> s
        half = (top >> (s - one)) & one
        below = (top & ((one << (s - one)) - one)) | (one if bottom != np.uint64(0) else bottom)
    if half == one and (below != np.uint64(0) or (whole & one) == one):
        whole = whole + one
    found = np.float64(whole) * 2.0 ** (shift - 74)
    return -found if negative else found


@inlined
def product(a: Any, b: Any) -> Any:
    """The product of two numbers of 64 bits that are not negative, as upper and lower word."""
    half, low_half = np.uint64(32), np.uint64(0xFFFFFFFF)
    x, y = np.uint64(a), np.uint64(b)
    x_high, x_low, y_high, y_low = x >> half, x & low_half, y >> half, y & low_half
    middle = x_high * y_low + ((x_low * y_low) >> half)
    other = x_low * y_high + (middle & low_half)
    high = x_high * y_high + (middle >> half) + (other >> half)
    return np.int64(high), np.int64((other << half) | ((x_low * y_low) & low_half))


@inlined
def bits_of(number: Any) -> Any:
    """How many bits a number has that is not negative."""
    rest, length = np.uint64(number), np.int64(0)
    while rest != np.uint64(0):
        rest = rest >> np.uint64(1)
        length += 1
    return length


@inlined
def ratio(high: Any, low: Any, bottom: Any, unit: Any) -> Any:
    """The float nearest to a number divided by `bottom`, which is positive, and by 2**unit; the
    even one of two. The quotient is computed bit by bit, to 60 bits and whether more follow."""
    one, none = np.uint64(1), np.uint64(0)
    negative = high < 0
    if negative:
        high, low = negated(high, low)
    length = bits_of(high) + 64 if high != 0 else bits_of(low)
    if length == 0:
        return 0.0
    by = np.uint64(bottom)
    steps = bits_of(bottom) + 60
    quotient, rest = none, none
    for i in range(steps):
        at = length - 1 - i
        bit = none
        if at >= 64:
            bit = (np.uint64(high) >> np.uint64(at - 64)) & one
        elif at >= 0:
            bit = (np.uint64(low) >> np.uint64(at)) & one
        rest = (rest << one) | bit
        quotient = quotient << one
        if rest >= by:
            rest = rest - by
            quotient = quotient | one
    more = rest != none
    for at in range(length - steps):
        if at >= 64:
            more = more or (np.uint64(high) >> np.uint64(at - 64)) & one == one
        else:
            more = more or (np.uint64(low) >> np.uint64(at)) & one == one
    spare = np.uint64(bits_of(quotient) - 53)
    whole = quotient >> spare
    half = (quotient >> (spare - one)) & one
    below = quotient & ((one << (spare - one)) - one)
    if half == one and (more or below != none or (whole & one) == one):
        whole = whole + one
    found = np.float64(whole) * 2.0 ** (np.int64(spare) + length - steps - unit)
    return -found if negative else found


@inlined
def times_square(root: Any, bottom: Any) -> Any:
    """The product of a number with the square of another, as three words."""
    high, low = product(root, root)
    more, lowest = product(low, bottom)
    highest, middle = product(high, bottom)
    total = np.uint64(more) + np.uint64(middle)
    carry = np.uint64(1 if total < np.uint64(more) else 0)
    return np.uint64(highest) + carry, total, np.uint64(lowest)


@inlined
def shifted(a: Any, b: Any, c: Any, by: Any) -> Any:
    """A number of three words times 2**by."""
    whole = np.uint64(64)
    while by >= 64:
        a, b, c = b, c, np.uint64(0)
        by -= 64
    if by > 0:
        up, down = np.uint64(by), whole - np.uint64(by)
        a, b, c = (a << up) | (b >> down), (b << up) | (c >> down), c << up
    return a, b, c


@inlined
def compared(root: Any, bottom: Any, by: Any, a: Any, b: Any, c: Any) -> Any:
    """Whether `bottom` times the square of a number, times 2**by, is less than a number of three
    words (-1), that number (0), or more (1)."""
    x, y, z = times_square(root, bottom)
    x, y, z = shifted(x, y, z, by)
    if x != a:
        return -1 if x < a else 1
    if y != b:
        return -1 if y < b else 1
    return 0 if z == c else -1 if z < c else 1


@inlined
def root_of_ratio(high: Any, low: Any, bottom: Any) -> Any:
    """The float nearest to the root of a number that is not negative, divided by `bottom`, which is
    positive and has up to 62 bits.

    The root is found in whole units of a power of two, of which it has 55 bits or 56. That of the
    rounded quotient is at most 16 units away, and from there the largest root whose square is not
    too large is found by comparing squares exactly. Where something is left, the last bit says so,
    and what is rounded then is rounded once.
    """
    length = bits_of(high) + 64 if high != 0 else bits_of(low)
    if length == 0:
        return 0.0
    half = (length - bits_of(bottom) - 109) // 2
    a, b, c = shifted(np.uint64(0), np.uint64(high), np.uint64(low), max(0, -2 * half))
    by = max(0, 2 * half)
    found = np.int64(np.sqrt(ratio(high, low, bottom, 0)) * 2.0**-half) - 16
    step = 16
    while step > 0:
        if compared(found + step, bottom, by, a, b, c) <= 0:
            found += step
        step //= 2
    if compared(found, bottom, by, a, b, c) != 0:
        found |= 1
    return np.float64(found) * 2.0**half


@compiled
def root(high: int, low: int, bottom: int) -> float:
    """The float nearest to the root of a number of 128 bits divided by `bottom`.

    >>> root(0, 8, 1), root(0, 1, 4), root(1, 0, 2**62 - 1)
    (2.8284271247461903, 0.5, 2.0)
    """
    found: float = root_of_ratio(high, low, bottom)
    return found


@compiled
def quotient(high: int, low: int, bottom: int, unit: int) -> float:
    """The float nearest to a number of 128 bits divided by `bottom` and by 2**unit.

    >>> quotient(0, 10, 4, 0), quotient(-1, -10, 3, 1), quotient(1, 0, 2**63 - 1, 0)
    (2.5, -1.6666666666666667, 2.0)
    """
    found: float = ratio(high, low, bottom, unit)
    return found


def whole_units(high: int, low: int) -> int:
    """The number of units as one Python int.

    >>> whole_units(-1, -1)
    -1
    """
    return (high << 64) + (low & ((1 << 64) - 1))
