"""Hashes of columns, without making Python values of them, and columns made of Arrow arrays.

`column_hashes(shape, columns)` equals `hashes(decode(shape, columns))`, to the bit. Every column is
hashed by arithmetic on whole columns but `any`, whose values are made first, Decimals of more than
38 digits or 18 after the point likewise, and texts and bytes of more than 64 bytes, which are
summed one by one.

A Python number `n` has the hash `n mod P`, with `P = 2**61 - 1` and the sign of `n`. For a float
`m * 2**e` this is `m` with its 61 bits rotated by `e`, as `2**61 mod P` is 1. For a Decimal of
`m * 10**-18` it is `m` times the inverse of `10**18`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ebbflow.errors import AlgebraError
from ebbflow.state.spine.arrow_decimals import decimals_of
from ebbflow.state.spine.columns import ColumnShape, days_of, decode, heavy, widened
from ebbflow.state.spine.hashing import (
    NAN_HASH,
    SHORT,
    Words,
    hashes,
    mixed,
    seed,
)

BLOCK = 1 << 15
"""So many values are hashed at a time: what is computed on the way stays in the processor's cache,
which takes half as long."""
_P = (1 << 61) - 1
_BITS = np.uint64(_P)
_UNITS = pa.decimal128(38, 18)
_TINY = pow(10**18, _P - 2, _P)
"""The inverse of 10**18 modulo P."""
_INFINITE = 314159
_FIRST_DAY = 719163
"""The ordinal of 1970-01-01."""


def column_hashes(shape: ColumnShape, columns: Sequence[Any]) -> Words:
    """The hash of each value that these columns hold.

    >>> shape = ColumnShape("tuple", ("int", "text"))
    >>> columns = [pa.array([1, None]), pa.array(["a", "b"])]
    >>> bool((column_hashes(shape, columns) == hashes([(1, "a"), (None, "b")])).all())
    True
    """
    count = len(columns[0])
    if count > BLOCK:
        whole = np.empty(count, np.uint64)
        for at in range(0, count, BLOCK):
            part = [column.slice(at, BLOCK) for column in columns]
            whole[at : at + BLOCK] = column_hashes(shape, part)
        return whole
    each = [
        _hashed(encoding, column) for encoding, column in zip(shape.encodings, columns, strict=True)
    ]
    if shape.how == "one":
        return each[0]
    found = mixed(np.full(len(each[0]), len(each), np.uint64) + seed(4))
    for column in each:
        found = mixed(found ^ column) + seed(4)
    return found


def made_from_columns(shape: ColumnShape) -> bool:
    """Whether these hashes are made by arithmetic on columns alone.

    >>> [made_from_columns(ColumnShape("one", (each,))) for each in ("int16", "text", "decimal")]
    [True, True, False]
    """
    return not {*shape.encodings}.intersection(_FALLBACK)


def encoded_column(array: Any) -> tuple[str, Any]:
    """The encoding of an Arrow array, and the array so encoded, for a `ColumnShape`.

    >>> encoded_column(pa.array([1, 2], pa.int32()))[0]
    'int'
    >>> encoding, column = encoded_column(pa.array(["1.50"]).cast(pa.decimal128(5, 2)))
    >>> decode(ColumnShape("one", (encoding,)), [column])
    [Decimal('1.50')]
    """
    arrow_type = array.type
    name, into = next(((name, into) for name, fits, into in _ARROW if fits(arrow_type)), ("", None))
    if name in ("text", "bytes") and heavy(array.nbytes):
        (name,), (into,) = (wide := widened(ColumnShape("one", (name,)))).encodings, wide.types()
        array = array.cast(into)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not name:
        raise AlgebraError(
            "a column of this type cannot be stored as it is",
            type=str(arrow_type),
            remedy="rows of Python values, with append()",
        )
    if name == "time" and arrow_type.tz is not None:
        bare = array.cast(pa.timestamp("us", arrow_type.tz)).view(pa.int64())
        return "utc", bare.view(pa.timestamp("us"))
    return name, array if array.type == into else array.cast(into)


# ---- one column ----


def _hashed(encoding: str, column: Any) -> Words:
    if encoding == "decimal" and len(column):
        found = _decimals(column)
        if found is not None:
            return found
    if encoding in _FALLBACK:
        return hashes(decode(ColumnShape("one", (encoding,)), [column])) if len(column) else _EMPTY
    if not column.null_count:
        return _FAMILIES[encoding](column) if len(column) else _EMPTY
    found = np.full(len(column), mixed(np.array([seed(9)]))[0])
    there = pc.is_valid(column).to_numpy(zero_copy_only=False)
    if there.any():
        found[there] = _FAMILIES[encoding](column.drop_null())
    return found


def _numbers(found: Any, minus_one: Any) -> Words:
    """Of Python's hashes; -1 is its own, and what else has the hash -1 has -2."""
    found = np.where((found == -1) & ~minus_one, -2, found)
    return mixed(found.view(np.uint64) + seed(1))


def _ints(column: Any) -> Words:
    values = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    if column.type != pa.int64():
        return mixed(values.view(np.uint64) + seed(1))
    large = (values >= _P) | (values <= -_P)
    found = np.fmod(values, _P) if large.any() else values
    return _numbers(found, values == -1)


def _floats(column: Any) -> Words:
    values = column.to_numpy(zero_copy_only=False)
    finite = np.isfinite(values)
    parts, power = np.frexp(np.where(finite, values, 0.0))
    bits = np.abs(parts * 2.0**53).astype(np.uint64)
    turn = ((power - 53) % 61).astype(np.uint64)
    turned = ((bits << turn) & np.uint64(_P)) | (bits >> (np.uint64(61) - turn))
    found = turned.astype(np.int64) * np.where(values < 0, -1, 1)
    if not finite.all():
        found[np.isnan(values)] = NAN_HASH
        found[values == np.inf] = _INFINITE
        found[values == -np.inf] = -_INFINITE
    return _numbers(found, values == -1)


def _decimals(column: Any) -> Words | None:
    """Of Decimals as texts; None where some have too many digits."""
    if pc.any(pc.match_substring(column, "E+")).as_py():  # Arrow loses digits of these
        return None
    try:
        units = decimals_of(column, _UNITS)
    except pa.ArrowInvalid:
        return None
    halves = np.frombuffer(units.buffers()[1], "<i8")
    low, high = halves[2 * units.offset : 2 * (units.offset + len(units))].reshape(-1, 2).T
    negative = high < 0
    top = _mod(np.where(negative, ~high + (low == 0), high).view(np.uint64))
    bottom = np.where(negative, -low, low).view(np.uint64)
    turned = ((top << np.uint64(3)) & _BITS) | (top >> np.uint64(58))  # 2**64 mod P is 8
    found = _times_mod(_mod(turned + (bottom & _BITS) + (bottom >> np.uint64(61))), _TINY)
    found = np.where(negative, -found.view(np.int64), found.view(np.int64))
    hashed = _numbers(found, (high == -1) & (low == -(10**18)))
    if column.null_count:
        hashed[~column.is_valid().to_numpy(zero_copy_only=False)] = mixed(np.array([seed(9)]))[0]
    return hashed


def _mod(numbers: Any) -> Any:
    """Numbers of 64 bits modulo P."""
    numbers = (numbers & _BITS) + (numbers >> np.uint64(61))
    return np.where(numbers >= _BITS, numbers - _BITS, numbers)


def _times_mod(numbers: Any, by: int) -> Any:
    """The product of numbers below P with another, modulo P: in parts of 31 bits."""
    half, lows = np.uint64(31), np.uint64((1 << 31) - 1)
    b1, b0 = np.uint64(by >> 31), np.uint64(by & ((1 << 31) - 1))
    a1, a0 = numbers >> half, numbers & lows
    middle = a1 * b0 + a0 * b1
    carried = ((middle & np.uint64((1 << 30) - 1)) << half) + (middle >> np.uint64(30))
    return _mod(_mod(a1 * b1 * np.uint64(2) + carried) + a0 * b0)


def _blobs(family: int, column: Any) -> Words:
    """Of texts and bytes: eight bytes at a time, for all that are as long."""
    count = len(column)
    _, offsets, data = column.buffers()
    large = pa.types.is_large_unicode(column.type) or pa.types.is_large_binary(column.type)
    ends = np.frombuffer(offsets, np.int64 if large else np.int32)
    ends = ends[column.offset : column.offset + count + 1].astype(np.int64, copy=False)
    base = int(ends[0])
    used = np.zeros((int(ends[-1]) - base + 7) // 8 + 1, np.uint64)
    if data is not None:
        used.view(np.uint8)[: int(ends[-1]) - base] = np.frombuffer(
            data, np.uint8, int(ends[-1]) - base, base
        )
    begins, lengths = ends[:-1] - base, np.diff(ends)
    found = mixed((lengths.astype(np.uint64) << np.uint64(8)) + seed(family))
    for i in range(-(-min(int(lengths.max()), SHORT) // 8)):
        at = np.flatnonzero((lengths > 8 * i) & (lengths <= SHORT))
        every = len(at) == count
        begin, left = (begins, lengths) if every else (begins[at], lengths[at])
        words = _eight(used, begin + 8 * i, left - 8 * i)
        more = mixed((found if every else found[at]) ^ mixed(words + np.uint64(i)))
        if every:
            found = more
        else:
            found[at] = more
    long = np.flatnonzero(lengths > SHORT)
    if len(long):
        whole: Any = used.view(np.uint8)
        pairs = zip(begins[long].tolist(), lengths[long].tolist(), strict=True)
        sums = b"".join(blake2b(whole[b : b + n], digest_size=8).digest() for b, n in pairs)
        found[long] = mixed(found[long] ^ mixed(np.frombuffer(sums, "<u8")))
    return found


def _eight(used: Any, at: Any, left: Any) -> Words:
    """The eight bytes from each place on; of fewer that are `left`, as many, then zeros."""
    place, off = at >> 3, ((at & 7) << 3).astype(np.uint64)
    words = used[place] >> off
    words |= (used[place + 1] << np.uint64(1)) << (np.uint64(63) - off)
    short = np.flatnonzero(left < 8)
    spare = ((8 - left[short]) << 3).astype(np.uint64)
    words[short] = (words[short] << spare) >> spare
    return words


def _days(column: Any) -> Words:
    days = days_of(column).to_numpy().astype(np.int64) + _FIRST_DAY
    return mixed(mixed(days.view(np.uint64)) + seed(8))


def _times(family: int, column: Any) -> Words:
    return mixed(mixed(column.view(pa.int64()).to_numpy().view(np.uint64)) + seed(family))


_FALLBACK = ("decimal", "any", "plain")
_EMPTY = np.empty(0, np.uint64)
_FAMILIES: dict[str, Callable[[Any], Words]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int"), _ints),
    "bool": _ints,
    "float": _floats,
    **dict.fromkeys(("text", "text64"), partial(_blobs, 2)),
    **dict.fromkeys(("bytes", "bytes64"), partial(_blobs, 3)),
    **dict.fromkeys(("date16", "date"), _days),
    "time": partial(_times, 6),
    "utc": partial(_times, 7),
    "none": lambda column: np.full(len(column), mixed(np.array([seed(9)]))[0]),
}


def _is_int(arrow_type: Any) -> bool:
    return bool(pa.types.is_integer(arrow_type) and arrow_type != pa.uint64())


def _is_text(arrow_type: Any) -> bool:
    return bool(pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type))


def _is_bytes(arrow_type: Any) -> bool:
    return bool(pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type))


_ARROW: list[tuple[str, Callable[[Any], bool], Any]] = [
    ("int", _is_int, pa.int64()),
    ("text", _is_text, pa.utf8()),
    ("float", pa.types.is_floating, pa.float64()),
    ("bool", pa.types.is_boolean, pa.bool_()),
    ("date", pa.types.is_date32, pa.date32()),
    ("time", pa.types.is_timestamp, pa.timestamp("us")),
    ("decimal", pa.types.is_decimal128, pa.large_utf8()),
    ("bytes", _is_bytes, pa.binary()),
    ("none", pa.types.is_null, pa.null()),
]
