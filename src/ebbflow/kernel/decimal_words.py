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
from ebbflow.kernel.compiled import compiled

MOST_PLACES = 18
"""The largest scale of a Decimal in a word."""
POWERS = [10**at for at in range(19)]
"""The powers of ten that are words."""
_WORDS = 1 << 63
_NONE = np.empty(0, np.bool_)
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

    from ebbflow.state.spine.arrow_decimals import decimals_of

    if not pa.types.is_decimal128(array.type) or array.type.scale != digits[1]:
        array = decimals_of(array, pa.decimal128(MOST, digits[1]))
    if not len(array):
        return np.empty(0, np.int64)
    halves = np.frombuffer(array.buffers()[1], "<i8")
    halves = halves[2 * array.offset : 2 * (array.offset + len(array))]
    words = np.empty(len(array), np.int64)
    absent = np.asarray(array.is_null()) if array.null_count else _NONE
    most = min(10 ** digits[0], _WORDS) - 1
    if not _take_lower(halves, absent, most, words):
        raise DoesNotFit(_TOO_LARGE if most == _WORDS - 1 else _OTHER)
    return words


@compiled
def _take_lower(halves: Any, absent: Any, most: int, words: Any) -> bool:
    """Copy the lower halves of numbers. Return whether each number is at most `most`, or absent."""
    fits = True
    for i in range(len(words)):
        low = halves[2 * i]
        words[i] = low
        if halves[2 * i + 1] != low >> 63 or low > most or low < -most:
            fits = fits and len(absent) > 0 and absent[i]
    return fits


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

    from ebbflow.state.spine.arrow_decimals import decimals_of

    if pc.any(pc.match_substring(array, "E+")).as_py():  # Arrow loses digits of these
        raise DoesNotFit(_OTHER)
    try:
        return words_of_arrow(decimals_of(array, pa.decimal128(MOST, scale)), (MOST, scale))
    except pa.ArrowInvalid as error:
        raise DoesNotFit(_OTHER) from error


def texts_of_words(words: Any, scale: int, absent: Any = None) -> Any:
    """Return words as texts, which is how Decimals are stored; null where they are `absent`.

    >>> texts_of_words(np.array([150, 0]), 2).to_pylist()
    ['1.50', '0.00']
    """
    import pyarrow as pa

    return arrow_of_words(words, (WIDE[0], scale), absent).cast(pa.large_utf8())
