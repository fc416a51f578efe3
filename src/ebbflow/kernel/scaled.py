"""Loops over scaled numbers: products, quotients and their rounding, exact in 128 bits.

A Decimal of scale s is the number of its units of 10**-s. So to multiply and to divide Decimals is
to compute `a * b / c` in whole numbers, rounded half up to a whole number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.fixed import bits_of, product
from ebbflow.kernel.hashing import Words
from ebbflow.kernel.words import LARGEST

SCALE, EXACT_QUOTIENT, TRUNCATE, REST, WITHIN = range(25, 30)
"""Instructions (see `ebbflow.kernel.instructions`): `a * b / c` rounded half up; `a / b`, wrong
if there is a rest; `a / b` without its rest; the rest; and `a`, wrong unless `-b < a < b`."""


@inlined
def divided_by(high: Any, low: Any, by: Any) -> Any:
    """A number of 128 bits divided by one of 63 that is larger than its upper word: the quotient
    and the rest."""
    half, lows = np.uint64(32), np.uint64(0xFFFFFFFF)
    spare = np.uint64(64 - bits_of(by))
    v = np.uint64(by) << spare
    v1, v0 = v >> half, v & lows
    top = (np.uint64(high) << spare) | ((np.uint64(low) >> np.uint64(1)) >> (np.uint64(63) - spare))
    rest = np.uint64(low) << spare
    for _ in range(2):
        digit = top // v1
        left = top - digit * v1
        while digit > lows or digit * v0 > ((left << half) | (rest >> half)):
            digit = digit - np.uint64(1)
            left = left + v1
            if left > lows:
                break
        top = ((top << half) | (rest >> half)) - digit * v
        rest = (rest << half) | digit
    return rest, top >> spare


@inlined
def scaled(a: Any, b: Any, c: Any) -> Any:
    """Whether `a * b / c` has 64 bits, and that, rounded half up."""
    if c == 0:
        return False, np.int64(0)
    negative = (a < 0) != (b < 0)
    negative = negative != (c < 0)
    by = np.uint64(abs(c))
    high, low = product(abs(a), abs(b))
    if high == 0:
        whole = np.uint64(low) // by
        rest = np.uint64(low) - whole * by
    elif np.uint64(high) >= by:
        return False, np.int64(0)
    else:
        whole, rest = divided_by(high, low, by)
    if whole > np.uint64(LARGEST):
        return False, np.int64(0)
    if rest >= by - rest:
        whole = whole + np.uint64(1)
        if whole > np.uint64(LARGEST):
            return False, np.int64(0)
    found = np.int64(whole)
    return True, -found if negative else found


@inlined
def on_scaled(op: int, a: Words, b: Words, c: Words, out: Words, wrong: Any, size: int) -> None:
    """Carry out an instruction for the rows of a block."""
    if op == SCALE:
        for i in range(size):
            fits, found = scaled(a[i], b[i], c[i])
            out[i] = found
            wrong[i] |= not fits
    elif op == WITHIN:
        for i in range(size):
            out[i] = a[i]
            wrong[i] |= a[i] >= b[i] or a[i] <= -b[i]
    else:
        for i in range(size):
            x, y = a[i], b[i]
            if y == 0:
                wrong[i] = True
                out[i] = 0
                continue
            rest = abs(x) % abs(y)
            if x < 0:
                rest = -rest
            if op == REST:
                out[i] = rest
                continue
            out[i] = (x - rest) // y
            if op == EXACT_QUOTIENT:
                wrong[i] |= rest != 0


@compiled
def quotient_half_up(a: int, b: int, c: int) -> tuple[bool, int]:
    """Whether `a * b / c` has 64 bits, and that, rounded half up.

    >>> quotient_half_up(10**17, -10**6, 3 * 10**15), quotient_half_up(5, 1, -10)
    ((True, -33333333), (True, -1))
    >>> quotient_half_up(10**18, 10**18, 1)
    (False, 0)
    """
    fits, found = scaled(a, b, c)
    return fits, found
