"""Decimals with digits as words, and back.

A value of `decimal(p, s)` is the number of its units of `10**-s`, an int of 64 bits. So values of
one scale compare, and are added, as ints are. A value of more units raises `DoesNotFit`.

Arrow has the same number of units in 128 bits, the lower word first: a value fits where its upper
word repeats the sign of the lower one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Inexact, InvalidOperation
from itertools import repeat
from typing import Any

import numpy as np

from ebbflow.decimals import MOST, WIDE
from ebbflow.kernel import DoesNotFit

MOST_PLACES = 18
"""The largest scale of a Decimal in a word."""
POWERS = [10**at for at in range(19)]
"""The powers of ten that are words."""
_WORDS = 1 << 63
_EXACT = Context(prec=MOST, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact])
_TOO_LARGE = "a Decimal of more than 64 bits"
_OTHER = "a Decimal of other digits"


def units_of(value: Any, scale: int) -> int:
    """The number of units of a Decimal.

    >>> from decimal import Decimal
    >>> units_of(Decimal("1.50"), 2)
    150
    """
    try:
        found = int(_EXACT.to_integral_exact(_EXACT.scaleb(value, scale)))
    except (InvalidOperation, Inexact, ValueError, OverflowError) as error:
        raise DoesNotFit(_OTHER) from error
    if not -_WORDS < found < _WORDS:
        raise DoesNotFit(_TOO_LARGE)
    return found


def words_of_decimals(values: Iterable[Any], scale: int) -> Any:
    """The words of Decimals.

    >>> from decimal import Decimal
    >>> words_of_decimals([Decimal("1.50"), Decimal("-0.01")], 2).tolist()
    [150, -1]
    """
    scaled, whole, by = _EXACT.scaleb, _EXACT.to_integral_exact, repeat(scale)
    try:
        found = list(map(int, map(whole, map(scaled, values, by))))
        words = np.array(found, np.int64)
    except (InvalidOperation, Inexact, ValueError) as error:
        raise DoesNotFit(_OTHER) from error
    except OverflowError as error:
        raise DoesNotFit(_TOO_LARGE) from error
    if len(words) and words.min() == -_WORDS:
        raise DoesNotFit(_TOO_LARGE)
    return words


def decimals_of_words(words: Sequence[int], scale: int) -> list[Any]:
    """The Decimals of words.

    >>> decimals_of_words([150, 0], 2)
    [Decimal('1.50'), Decimal('0.00')]
    """
    return list(map(_EXACT.scaleb, words, repeat(-scale)))


# ---- Arrow ----


def words_of_arrow(array: Any, digits: tuple[int, int]) -> Any:
    """The words of an Arrow array of decimals of this scale; those of nulls are undefined.

    >>> from decimal import Decimal
    >>> import pyarrow as pa
    >>> array = pa.array([Decimal("1.50"), Decimal("-0.01")], pa.decimal128(12, 2))
    >>> words_of_arrow(array, (12, 2)).tolist()
    [150, -1]
    """
    import pyarrow as pa

    if not pa.types.is_decimal128(array.type) or array.type.scale != digits[1]:
        array = array.cast(pa.decimal128(MOST, digits[1]))
    if not len(array):
        return np.empty(0, np.int64)
    halves = np.frombuffer(array.buffers()[1], "<i8")
    halves = halves[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)
    words = halves[:, 0].copy()
    there = ~np.asarray(array.is_null()) if array.null_count else np.ones(len(words), np.bool_)
    if ((halves[:, 1] != words >> 63) & there).any() or ((words == -_WORDS) & there).any():
        raise DoesNotFit(_TOO_LARGE)
    if digits[0] < len(POWERS) and ((abs(words) >= POWERS[digits[0]]) & there).any():
        raise DoesNotFit(_OTHER)
    return words


def arrow_of_words(words: Any, digits: tuple[int, int], absent: Any = None) -> Any:
    """Words as an Arrow array of decimals; null where they are `absent`.

    >>> arrow_of_words(np.array([150]), (12, 2)).to_pylist()
    [Decimal('1.50')]
    """
    import pyarrow as pa

    halves = np.empty((len(words), 2), "<i8")
    halves[:, 0] = words
    halves[:, 1] = words >> 63
    known = None if absent is None else pa.array(~absent).buffers()[1]
    return pa.Array.from_buffers(pa.decimal128(*digits), len(words), [known, pa.py_buffer(halves)])


def words_of_texts(array: Any, scale: int) -> Any:
    """Return the words of Decimals that are stored as texts; those of nulls are undefined.

    >>> import pyarrow as pa
    >>> words_of_texts(pa.array(["1.50", "-0.01"], pa.large_utf8()), 2).tolist()
    [150, -1]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.any(pc.match_substring(array, "E+")).as_py():  # Arrow loses digits of these
        raise DoesNotFit(_OTHER)
    try:
        return words_of_arrow(array.cast(pa.decimal128(MOST, scale)), (MOST, scale))
    except pa.ArrowInvalid as error:
        raise DoesNotFit(_OTHER) from error


def texts_of_words(words: Any, scale: int, absent: Any = None) -> Any:
    """Return words as texts, which is how Decimals are stored; null where they are `absent`.

    >>> texts_of_words(np.array([150, 0]), 2).to_pylist()
    ['1.50', '0.00']
    """
    import pyarrow as pa

    return arrow_of_words(words, (WIDE[0], scale), absent).cast(pa.large_utf8())
