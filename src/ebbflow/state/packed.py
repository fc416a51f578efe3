"""The values of a group as one value: what columns store of a group that has many.

A program in columns keeps how often each value of a group is there, or the first rows of a key, and
stores these as bytes, all of one group together (`ebbflow.engine.runtime.columnar.packed`). Rows
read them here. The bytes are numbers of 64 bits, the lowest byte first:

    n, k                    how many values there are, and of how many parts each is
    k numbers               the form of each part, its place in FORMS; of a Decimal its scale behind
                            them: `DECIMAL` for 0, and one more for each digit after the point
    n numbers               how often each value is there
    n numbers, k times      the first part of every value, then the second, and so on
    texts                   those of the first part that is text, one after the other, then of the
                            next, as UTF-8, and zeros up to a whole number of 64 bits

A part that is None is `NONE`, whatever its form. A text is the number of its bytes here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from struct import Struct, unpack_from
from typing import Any

from ebbflow import decimals
from ebbflow.nan import one_nan

FORMS = ("int", "float", "bool", "text", "date", "time")
DECIMAL = len(FORMS)
NONE = -(1 << 63)
_FLOAT, _INT = Struct("<d"), Struct("<q")
_FIRST_DAY, _FIRST_TIME = date(1970, 1, 1).toordinal(), datetime(1970, 1, 1)


def unpacked(packed: bytes) -> list[tuple[tuple[Any, ...], int]]:
    """The values, each a tuple of its parts, and how often it is there.

    >>> from struct import pack
    >>> forms, times = (FORMS.index("int"), FORMS.index("text")), (1, 4)
    >>> ints, texts = (7, 8), (3, NONE)
    >>> unpacked(pack("<10q", 2, 2, *forms, *times, *ints, *texts) + b"ebb" + bytes(5))
    [((7, 'ebb'), 1), ((8, None), 4)]
    """
    size, width = unpack_from("<2q", packed)
    forms = unpack_from(f"<{width}q", packed, 16)
    begin = 16 + 8 * width
    times, *parts = (
        unpack_from(f"<{size}q", packed, begin + 8 * size * at) for at in range(width + 1)
    )
    begin += 8 * size * (width + 1)
    columns = []
    for form, numbers in zip(forms, parts, strict=True):
        if form >= DECIMAL or FORMS[form] != "text":
            value = _decimal(form - DECIMAL) if form >= DECIMAL else _VALUE[FORMS[form]]
            columns.append([None if number == NONE else value(number) for number in numbers])
            continue
        texts: list[str | None] = []
        for number in numbers:
            end = begin + max(number, 0)
            text = packed[begin:end].decode("utf-8", "surrogatepass")
            texts.append(None if number == NONE else text)
            begin = end
        columns.append(texts)
    return list(zip(zip(*columns, strict=True), times, strict=True))


def _decimal(scale: int) -> Callable[[int], Any]:
    return lambda number: decimals.of_units(number, scale)


def _float(number: int) -> float:
    value: float = one_nan(_FLOAT.unpack(_INT.pack(number))[0])
    return value


_VALUE: dict[str, Callable[[int], Any]] = {
    "int": int,
    "float": _float,
    "bool": bool,
    "date": lambda number: date.fromordinal(number + _FIRST_DAY),
    "time": lambda number: _FIRST_TIME + timedelta(microseconds=number),
}
