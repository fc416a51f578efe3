"""A hash of keys and rows that is the same in every process, computed for many at a time.

Python's own `hash` is equal for equal keys, but for texts it is another one in every process. This
one is the same everywhere and agrees with `==` just as well: `1`, `1.0`, `True` and `Decimal(1)`
have one hash, a NamedTuple has that of the plain tuple, two times have one hash when they are the
same instant. Equal hashes do not mean equal keys; whoever finds a hash compares the keys as well,
with `same`.

How a value is hashed is part of the format on disk. By kind:

    numbers      Python's numeric hash, which is defined by the number alone, mixed (-1 is its own)
    text, bytes  eight bytes at a time, mixed; longer than 64 bytes: BLAKE2b; a `Text` as its str
    tuples       the hashes of the items, in order; a `List` and a frozen dataclass as the tuple
    sets         the hashes of the elements, added up
    dates, times days, or microseconds (with a zone: of the instant)
    NumPy's      as the value of Python's that it equals
    the rest     by what `pickle` would be told to rebuild it from: class, arguments, attributes

The last line has a limit: values that are equal must be rebuilt from equal parts. Of ranges, UUIDs
and times of the day that are equal, one stands for all (`_ALIKE`). A class of one's own whose `==`
overlooks some of its attributes does not do for keys.

NaN is one key, as it is one value everywhere (`ebbflow.nan`).
"""

from __future__ import annotations

from collections import UserString
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from hashlib import blake2b
from numbers import Number
from operator import itemgetter
from types import BuiltinFunctionType, FunctionType
from typing import Any
from uuid import UUID

import numpy as np

from ebbflow.change import List, Text
from ebbflow.nan import one_nan
from ebbflow.record import fields_of, taken_apart

Words = Any
"""A NumPy array of unsigned 64-bit integers."""

SHORT = 64
WIDE = 16
"""A tuple that has so many items more than there are tuples is hashed by itself."""
NAN_HASH = 0x7FF8
_FEW = 500
"""Up to so many words any way to sort them is as good."""
_START = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def hashes(values: Sequence[Any]) -> Words:
    """The hash of each value.

    >>> one, other = hashes([1, "Rome"]), hashes([True, "Oslo"])
    >>> bool(one[0] == other[0]), bool(one[1] == other[1])
    (True, False)
    >>> hex(hashes(["Rome"])[0])
    '0x11e4b9c786f48d19'
    """
    classes = set(map(type, values))
    if len(classes) == 1:
        return _family(classes.pop())(values)
    places: dict[type, list[int]] = {}
    for i, value in enumerate(values):
        places.setdefault(type(value), []).append(i)
    found = np.empty(len(values), np.uint64)
    for cls, at in places.items():
        found[at] = _family(cls)([values[i] for i in at])
    return found


def same(a: Any, b: Any) -> bool:
    """Whether `a` and `b` are one key: equal, or NaN in the same places.

    >>> same((1, float("nan")), (1.0, float("nan"))), same("1", 1)
    (True, False)
    """
    if a is b or a == b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return isinstance(a, Number) and one_nan(a) is one_nan(b)


def row_words(words: Words) -> Words:
    """Of hashes of rows, the half that is stored. It only tells rows of one key apart; those that
    it does not are compared.
    """
    return words.astype(np.uint32)


def all_different(words: Words) -> bool:
    """Whether none of these hashes is there twice. (They are sorted: `np.unique` looks them up in a
    table since NumPy 2.3, which takes 16 times as long for 600,000 of them.)

    >>> all_different(np.array([3, 1, 2])), all_different(np.array([3, 1, 3]))
    (True, False)
    """
    found = np.sort(words)
    return not bool((found[1:] == found[:-1]).any())


def places_in_order(words: Words) -> Any:
    """Equals `np.argsort(words, kind="stable")`, for words whose high bits tell most of them apart.

    NumPy sorts numbers ten times as fast as places of numbers. So the place is put into the low
    bits of its word; the few that the high bits do not tell apart are put in order one by one.

    >>> places_in_order(np.array([7, 3, 7, 1], np.uint64)).tolist()
    [3, 1, 0, 2]
    """
    if len(words) < _FEW:
        return np.argsort(words, kind="stable")
    low = np.uint64((1 << (len(words) - 1).bit_length()) - 1)
    packed = (words & ~low) | np.arange(len(words), dtype=np.uint64)
    packed.sort()
    order = (packed & low).view(np.int64)
    found = words[order]
    wrong = np.flatnonzero(found[1:] < found[:-1]).tolist()
    if len(wrong) > _FEW:
        return np.argsort(words, kind="stable")
    for i in wrong:
        begin = packed.searchsorted(packed[i] & ~low)
        end = packed.searchsorted(packed[i] | low, "right")
        some = order[begin:end]
        order[begin:end] = some[np.argsort(words[some], kind="stable")]
    return order


def mixed(words: Words) -> Words:
    """Each word with its bits spread over all others. (The finisher of SplitMix64.)"""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def seed(family: int) -> Any:
    """What keeps the families apart: 1 and "" and None must not meet."""
    return np.uint64(family * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)


# ---- one function per family of types ----


@lru_cache(maxsize=1024)
def _family(cls: type) -> Callable[[Sequence[Any]], Words]:
    if not issubclass(cls, tuple) and fields_of(cls) is not None:
        return _records
    for classes, function in _FAMILIES:
        if issubclass(cls, classes):
            return function
    return _others


def _numbers(values: Sequence[Any]) -> Words:
    simple = isinstance(values[0], (int, float))
    known = map(hash, values) if simple else map(_number, values)
    found = np.fromiter(known, np.int64, len(values))
    if isinstance(values[0], float):
        found[np.isnan(np.fromiter(values, np.float64, len(values)))] = NAN_HASH
    for i in np.flatnonzero(found == -2).tolist():  # Python gives -1 and -2 the same hash
        found[i] = -1 if values[i] == -1 else -2
    return mixed(found.view(np.uint64) + seed(1))


def _number(value: Any) -> int:
    return hash(value) if value == value else NAN_HASH


def _texts(values: Sequence[str]) -> Words:
    return _blobs([value.encode("utf-8", "surrogatepass") for value in values], 2)


def _bytes(values: Sequence[bytes]) -> Words:
    return _blobs([bytes(value) for value in values], 3)


def _blobs(values: list[bytes], family: int) -> Words:
    lengths = np.fromiter(map(len, values), np.uint64, len(values))
    long = np.flatnonzero(lengths > SHORT)
    if len(long):
        values = list(values)
        for i in long.tolist():
            values[i] = blake2b(values[i], digest_size=8).digest()
    found = mixed((lengths << np.uint64(8)) + seed(family))
    lengths[long] = 8
    count = -(-int(lengths.max()) // 8)
    if not count:
        return found
    table = np.array(values, dtype=f"S{8 * count}").view("<u8").reshape(len(values), count)
    for i in range(count):
        more = mixed(found ^ mixed(table[:, i] + np.uint64(i)))
        found = np.where(lengths > 8 * i, more, found)
    return found


def _tuples(values: Sequence[tuple[Any, ...]]) -> Words:
    lengths = set(map(len, values))
    if len(lengths) > 1:
        found = np.empty(len(values), np.uint64)
        for length in lengths:
            at = [i for i, value in enumerate(values) if len(value) == length]
            found[at] = _tuples([values[i] for i in at])
        return found
    width = lengths.pop()
    if width > WIDE * len(values):
        return np.array([_wide(value) for value in values], np.uint64)
    found = mixed(np.full(len(values), width, np.uint64) + seed(4))
    for i in range(width):
        found = mixed(found ^ hashes(list(map(itemgetter(i), values)))) + seed(4)
    return found


def _records(values: Sequence[Any]) -> Words:
    """Frozen dataclasses, as the tuples of their fields."""
    return _tuples([*map(taken_apart(type(values[0])), values)])


def _wide(value: tuple[Any, ...]) -> int:
    """The hash of one long tuple: that of the items is computed at once, and mixed in by Python,
    as NumPy takes longer for one number than Python does."""
    most, more = 0xFFFFFFFFFFFFFFFF, int(seed(4))
    found = int(mixed(np.full(1, len(value), np.uint64) + seed(4))[0])
    for word in hashes(value).tolist():
        word ^= found
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & most
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB & most
        found = ((word ^ (word >> 31)) + more) & most
    return found


def _edited_lists(values: Sequence[List[Any]]) -> Words:
    return _tuples(list(map(tuple, values)))


def _sets(values: Sequence[frozenset[Any]]) -> Words:
    totals = [hashes(list(value)).sum(dtype=np.uint64) if value else 0 for value in values]
    return mixed(np.array(totals, np.uint64) ^ seed(5))


def _times(values: Sequence[datetime]) -> Words:
    counts, seeds = [], []
    for value in values:
        ahead = value.replace(fold=0).utcoffset()
        naive = value.replace(tzinfo=None) - _START
        counts.append((naive if ahead is None else naive - ahead) // _MICROSECOND)
        seeds.append(seed(6 if ahead is None else 7))
    return mixed(mixed(np.array(counts, np.int64).view(np.uint64)) + np.array(seeds))


def _dates(values: Sequence[date]) -> Words:
    days = np.fromiter((value.toordinal() for value in values), np.int64, len(values))
    return mixed(mixed(days.view(np.uint64)) + seed(8))


def _nones(values: Sequence[None]) -> Words:
    return mixed(np.full(len(values), seed(9)))


def _strings(values: Sequence[UserString | Text]) -> Words:
    return _texts(list(map(str, values)))


def _numpys(values: Sequence[Any]) -> Words:
    return hashes(list(map(_plain, values)))


def _plain(value: Any) -> Any:
    """The value of Python's that equals one of NumPy's; where there is none, what equal ones share.
    An instant or a span is told in microseconds, or in months."""
    if isinstance(value, np.bool_):
        return bool(value)
    if np.isnat(value):
        return "NaT"
    if isinstance(value, np.timedelta64) and np.datetime_data(value)[0] in ("Y", "M"):
        return "months", int(value.astype("timedelta64[M]").astype(np.int64))
    return value.astype(f"{type(value).__name__}[us]").item()


def _others(values: Sequence[Any]) -> Words:
    return mixed(hashes([_parts(value) for value in values]) + seed(10))


def _parts(value: Any) -> Any:
    """What a value is rebuilt from, made of tuples, sets and texts."""
    value = next((alike(value) for cls, alike in _ALIKE if isinstance(value, cls)), value)
    if isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, dict):
        return frozenset((_inside(key), _inside(item)) for key, item in value.items())
    if isinstance(value, (list, set)):
        return tuple(map(_inside, value)) if isinstance(value, list) else frozenset(value)
    made = value.__reduce_ex__(4)
    if isinstance(made, str):
        return (type(value).__module__, made)
    make, given, *more = made
    return (_inside(make), *map(_inside, (given, *(list(m) if _runs(m) else m for m in more))))


def _range(value: range) -> range:
    count = len(value)
    step = value.step if count > 1 else 1
    start = value.start if count else 0
    return range(start, start + count * step, step)


def _uuid(value: UUID) -> UUID:
    return UUID(int=value.int)


def _time(value: time) -> Any:
    """A time of the day as it is in UTC; where that is on another day, its seconds."""
    ahead = value.utcoffset()
    if ahead is None:
        return value.replace(fold=0, tzinfo=None)
    seconds = value.hour * 3600 + value.minute * 60 + value.second - ahead // timedelta(seconds=1)
    if not 0 <= seconds < 86400:
        return "time", seconds, value.microsecond
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, value.microsecond, UTC)


_ALIKE: list[tuple[type, Callable[[Any], Any]]] = [(range, _range), (UUID, _uuid), (time, _time)]
"""For values that are equal and rebuilt from different parts, one that stands for all of them."""


def _runs(value: Any) -> bool:
    return hasattr(value, "__next__")


def _inside(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_inside, value))
    cls: Any = type(value)
    return value if _family(cls) is not _others else _parts(value)


_FAMILIES: list[tuple[type | tuple[type, ...], Callable[[Any], Words]]] = [
    ((np.bool_, np.datetime64, np.timedelta64), _numpys),
    (Number, _numbers),
    (str, _texts),
    (tuple, _tuples),
    ((bytes, memoryview), _bytes),
    (frozenset, _sets),
    (datetime, _times),
    (date, _dates),
    (type(None), _nones),
    ((UserString, Text), _strings),
    (List, _edited_lists),
]
