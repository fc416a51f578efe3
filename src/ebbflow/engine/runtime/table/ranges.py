"""The values of Arrow columns that Python, or a row, has in another form or not at all: times out
of range, floats that are one value in several patterns of bits, integers that are no float.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from ebbflow.engine.runtime.table.column_types import Column
from ebbflow.nan import NAN

_FIRST = date(1970, 1, 1)
_DAYS = (date.min - _FIRST).days, (date.max - _FIRST).days
_MICROSECONDS = _DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1
_TIMES = {"date": _DAYS, "time": _MICROSECONDS, "instant": _MICROSECONDS}


def out_of_range(array: Any, column: Column) -> bool:
    """Whether a column has a time before year 1 or after year 9999, at any depth.

    >>> days = pa.array([0, 3_000_000], pa.int32()).cast(pa.date32())
    >>> out_of_range(days, Column("date")), out_of_range(days[:1], Column("date"))
    (True, False)
    """
    for part, times in _times(array, column):
        low, high = _TIMES[part.form]
        numbers = times.cast(pa.int32() if part.form == "date" else pa.int64())
        found = pc.min_max(numbers).as_py()
        if found["min"] is not None and not low <= found["min"] <= found["max"] <= high:
            return True
    return False


def has_times(column: Column) -> bool:
    """Whether there are dates or times in a column, at any depth."""
    return column.form in _TIMES or any(has_times(part) for _, part in column.parts)


def _times(array: Any, column: Column) -> Iterator[tuple[Column, Any]]:
    """The arrays of times that a column consists of."""
    if column.form in _TIMES:
        yield column, array
    elif has_times(column):
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        for chunk in chunks:
            for (_, part), inside in zip(column.parts, _parts(chunk), strict=True):
                yield from _times(inside, part)


def _parts(array: Any) -> list[Any]:
    """The arrays inside of lists, maps or structs."""
    if is_.is_map(array.type):
        pairs = [pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)]
        found: list[Any] = array.cast(pa.list_(pa.struct(pairs))).flatten().flatten()
        return found
    found = array.flatten()
    return found if is_.is_struct(array.type) else [found]


def exact_floats(array: Any) -> Any:
    """Integers as floats; an ArrowException if one of them is no float.

    >>> exact_floats(pa.array([2**60])).to_pylist()
    [1.152921504606847e+18]
    >>> exact_floats(pa.array([None], pa.int64())).to_pylist()
    [None]
    """
    made = array.cast(pa.float64(), safe=False)
    above = 2.0 ** (64 if is_.is_unsigned_integer(array.type) else 63)  # a cast to int takes it
    back = made.cast(array.type, safe=False)
    exact = pc.and_(pc.less(made, above), pc.equal(back, array))
    if not pc.all(exact, min_count=0).as_py():
        raise pa.ArrowInvalid("an integer is no float")
    return made


def one_form(array: Any) -> Any:
    """Floats with one zero and one NaN."""
    made = pc.add(array, 0.0)
    nans = pc.is_nan(made)
    return pc.if_else(nans, NAN, made) if pc.any(nans).as_py() else made
