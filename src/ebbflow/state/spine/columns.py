"""Python values as Arrow columns and back, without losing anything.

A list of values becomes one column when they are of one simple type: `int` to 64 bits, `float`,
`bool`, `str`, `bytes`, `date`, `datetime` (without a zone, or in UTC), `Decimal`, each with `None`
here and there. Any other list, such as one of `1`, `1.0` and `True`, or with an integer of 65 bits,
becomes a column of pickles. Which it was is the *encoding* of the column, written down beside
it, so what comes out is what went in, with its exact type.

Tuples of one length become one column per item, and so do the rows of a NamedTuple class; a list of
anything else is one column. That is the *shape* of a list: how, and the encodings of its columns.

Integers, dates, texts and bytes have encodings of several *widths*, which differ in the room they
take and in nothing else: `int8`, `int16`, `int32` and `int` are integers of 8 to 64 bits, `date16`
are dates as days from 1970 that fit in 16 bits, and in `text64` and `bytes64` it takes 64 bits to
say where a value begins, in `text` and `bytes` 32. A column that is made of Python values has the
least width that holds them; `narrowed` does this to other columns.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ebbflow.errors import EbbflowError, cause_of
from ebbflow.nan import NAN, loads_each, one_nan
from ebbflow.record import fields_of, maker, taken_apart
from ebbflow.state.spine import plain

PICKLE = 5
PICKLED = "any"
"""The encoding of a column of pickles."""
PLAIN = "plain"
"""The same column to a reader who loads pickles of plain values only; never written."""
LIMIT = (1 << 31) - 1
"""How many bytes of texts a column has room for where 32 bits say where they begin."""

_TYPES: dict[str, Any] = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.utf8(),
    "text64": pa.large_utf8(),
    "bytes": pa.binary(),
    "bytes64": pa.large_binary(),
    "date16": pa.int16(),
    "date": pa.date32(),
    "time": pa.timestamp("us"),
    "utc": pa.timestamp("us"),
    "decimal": pa.large_utf8(),
    "none": pa.null(),
    "any": pa.large_binary(),
    "plain": pa.large_binary(),
}
_ENCODINGS: dict[type, str] = {
    int: "int",
    float: "float",
    bool: "bool",
    str: "text",
    bytes: "bytes",
    date: "date",
    datetime: "time",
    Decimal: "decimal",
}
_WIDTHS = [("int8", "int16", "int32", "int"), ("text", "text64"), ("bytes", "bytes64"),
           ("date16", "date")]  # fmt: skip
"""Kinds that differ in width only, the least first."""

_WIDER = {encoding: encodings for encodings in _WIDTHS for encoding in encodings}
_LEAST = {"text64": "text", "bytes64": "bytes"}
_NUMBERS = {*_WIDTHS[0], "float"}
_BOUNDS = [(f"int{bits}", -(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32)]
_FEW = 64
"""Up to how many integers Python is faster than NumPy."""

_WIDEST = 64


@dataclass(frozen=True)
class ColumnShape:
    """How a list of values is laid out: as "one" column, or one per item of a "tuple" or "record".

    >>> shape, columns = encode([(1, "a"), (2, None)])
    >>> shape
    ColumnShape(how='tuple', encodings=('int8', 'text'))
    >>> decode(shape, columns)
    [(1, 'a'), (2, None)]
    """

    how: str
    encodings: tuple[str, ...]

    def but(self, encoding: str, other: str) -> ColumnShape:
        """The same shape with another encoding for one."""
        return ColumnShape(
            self.how, tuple(other if each == encoding else each for each in self.encodings)
        )

    def types(self) -> list[Any]:
        """The Arrow types of the columns."""
        return [_TYPES[encoding] for encoding in self.encodings]


ANYTHING = ColumnShape("one", ("any",))


def encode(values: Sequence[Any], row_type: Any = None) -> tuple[ColumnShape, list[Any]]:
    """The shape of a list, and its columns. `row_type` is the class whose rows are records.

    >>> [encode(values)[0].encodings for values in ([1, 2**70], [1, True], [300, None])]
    [('any',), ('any',), ('int16',)]
    """
    classes = set(map(type, values))
    if len(classes) == 1:
        cls = classes.pop()
        record = cls is row_type and fields_of(cls) is not None
        if record and not issubclass(cls, tuple):
            values = list(map(taken_apart(cls), values))
        if (record or cls is tuple) and len(lengths := set(map(len, values))) == 1:
            width = lengths.pop()
            if 0 < width <= _WIDEST:
                made = [_column(list(map(itemgetter(i), values))) for i in range(width)]
                how = "record" if record else "tuple"
                return ColumnShape(how, tuple(encoding for encoding, _ in made)), [
                    array for _, array in made
                ]
    encoding, array = _column(values)
    return ColumnShape("one", (encoding,)), [array]


def decode(
    shape: ColumnShape, columns: Sequence[Any], row_type: Any = None, at: list[Any] | None = None
) -> list[Any]:
    """The values again. A column may be in several pieces; with `at`, arrays of places in each
    piece, the values are those there.
    """
    load = getattr(row_type, "load", loads_each)
    lists = [
        _values(encoding, column, at, load)
        for encoding, column in zip(shape.encodings, columns, strict=True)
    ]
    if shape.how == "one":
        return lists[0]
    rows: Iterator[Any] = zip(*lists, strict=True)
    if shape.how == "record":
        rows = map(maker(row_type), rows)
    return list(rows)


def numbers_of(array: Any) -> Any:
    """A column of numbers without nulls as NumPy has it; nothing is copied. (Arrow's own way would
    load pandas, where that is installed.)

    >>> numbers_of(pa.array([1, 2, 3]).slice(1))
    array([2, 3])
    """
    dtype = np.dtype(array.type.to_pandas_dtype())
    data = array.buffers()[1]
    if data is None:
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype)[array.offset : array.offset + len(array)]


def common(shapes: Iterable[ColumnShape]) -> ColumnShape:
    """A shape that can hold what any of these shapes holds.

    >>> common([ColumnShape("tuple", ("int8", "none")), ColumnShape("tuple", ("int32", "text"))])
    ColumnShape(how='tuple', encodings=('int32', 'text'))
    """
    different = set(shapes)
    if len(different) == 1:
        return different.pop()
    forms = {(shape.how, len(shape.encodings)) for shape in different}
    if len(forms) > 1:
        return ANYTHING
    encodings = zip(*(shape.encodings for shape in different), strict=True)
    return ColumnShape(forms.pop()[0], tuple(_common(set(column)) for column in encodings))


def recast(
    shape: ColumnShape, into: ColumnShape, columns: Sequence[Any], row_type: Any = None
) -> list[Any]:
    """Columns of one shape as columns of another, which `common` gave."""
    if shape == into:
        return list(columns)
    if shape.how != into.how or len(shape.encodings) != len(into.encodings):
        return [_pickled(decode(shape, columns, row_type))]
    return [
        array
        if encoding == wanted
        else (days_of(array) if wanted == "date" else array).cast(_TYPES[wanted])
        if wanted in _WIDER.get(encoding, ())
        else pa.nulls(len(array), _TYPES[wanted])
        if encoding == "none" and wanted != "any"
        else _pickled(_values(encoding, array))
        for encoding, wanted, array in zip(shape.encodings, into.encodings, columns, strict=True)
    ]


def days_of(array: Any) -> Any:
    """Dates of either width as days from 1970, of 32 bits."""
    return array.cast(pa.int32()) if array.type == _TYPES["date16"] else array.view(pa.int32())


def nothing(shape: ColumnShape, count: int) -> list[Any]:
    """Columns of this shape that hold no values, for rows that have none."""
    return [pa.nulls(count, encoding) for encoding in shape.types()]


# ---- widths ----


def narrowed(shape: ColumnShape, columns: Sequence[Any]) -> tuple[ColumnShape, list[Any]]:
    """The same values, each column in the least width that holds them.

    >>> shape = ColumnShape("tuple", ("int", "int"))
    >>> shape, columns = narrowed(shape, [pa.array([1, -128]), pa.array([300, None])])
    >>> shape.encodings, decode(shape, columns)
    (('int8', 'int16'), [(1, 300), (-128, None)])
    """
    encodings = tuple(map(_least, shape.encodings, columns))
    if encodings == shape.encodings:
        return shape, list(columns)
    return ColumnShape(shape.how, encodings), [
        column if encoding == known else _narrow(encoding, column)
        for encoding, known, column in zip(encodings, shape.encodings, columns, strict=True)
    ]


def widened(shape: ColumnShape) -> ColumnShape:
    """The same shape with room for texts and bytes of any size.

    >>> widened(ColumnShape("tuple", ("int8", "text")))
    ColumnShape(how='tuple', encodings=('int8', 'text64'))
    """
    wider = {least: encoding for encoding, least in _LEAST.items()}
    return ColumnShape(
        shape.how, tuple(wider.get(encoding, encoding) for encoding in shape.encodings)
    )


def repeated(
    shape: ColumnShape, columns: Sequence[Any], counts: Any
) -> tuple[ColumnShape, list[Any]]:
    """The same values, each as often as `counts` says, which may be not at all.

    >>> shape, columns = repeated(*encode(["a", "b", "c"]), np.array([1, 0, 2]))
    >>> decode(shape, columns)
    ['a', 'c', 'c']
    """
    into = shape
    if heavy(int(counts.max()) * sum(column.nbytes for column in columns)):
        into = widened(shape)
        columns = recast(shape, into, columns)
    places = pa.array(np.repeat(np.arange(len(counts)), counts))
    return narrowed(into, [column.take(places) for column in columns])


def heavy(size: int) -> bool:
    """Whether texts of this many bytes in all may be too much for 32 bits."""
    return size > LIMIT


def _narrow(encoding: str, column: Any) -> Any:
    if encoding == "date16":
        column = days_of(column)
    if encoding not in _LEAST.values() and not column.null_count:
        return pa.array(numbers_of(column).astype(_TYPES[encoding].to_pandas_dtype()))
    return column.cast(_TYPES[encoding], safe=False)


def _least(encoding: str, column: Any) -> str:
    if encoding in _LEAST:
        return encoding if heavy(column.nbytes) else _LEAST[encoding]
    widths = _WIDER.get(encoding, (encoding,))
    if encoding == widths[0]:
        return encoding
    if not len(column) or column.null_count == len(column):
        return widths[0]
    if encoding == "date":
        column = days_of(column)
    if column.null_count:
        found = pc.min_max(column)
        low, high = found["min"].as_py(), found["max"].as_py()
    else:
        numbers = numbers_of(column)
        low, high = int(numbers.min()), int(numbers.max())
    if encoding == "date":
        return encoding if _width(low, high) == "int32" else "date16"
    return _width(low, high)


def _width(low: int, high: int) -> str:
    for encoding, least, most in _BOUNDS:
        if least <= low and high <= most:
            return encoding
    return "int"


# ---- one column ----


def _common(encodings: set[str]) -> str:
    known = encodings - {"none"}
    if len(known) < 2:
        return known.pop() if known else "none"
    widths = _WIDER.get(next(iter(known)), ())
    return max(known, key=widths.index) if known <= {*widths} else "any"


def _column(values: Sequence[Any]) -> tuple[str, Any]:
    types = set(map(type, values))
    holes = type(None) in types
    types.discard(type(None))
    if not types:
        return "none", pa.nulls(len(values))
    encoding = _ENCODINGS.get(types.pop(), "any") if len(types) == 1 else "any"
    if encoding == "time":
        encoding = _time(values)
    try:
        if encoding == "decimal":
            return encoding, pa.array(
                [None if v is None else str(v) for v in values], _TYPES[encoding]
            )
        if encoding == "utc":
            bare = [None if v is None else v.replace(tzinfo=None) for v in values]
            return encoding, pa.array(bare, _TYPES[encoding])
        if encoding == "int":
            return _ints(values, holes)
        if encoding in ("text", "bytes"):
            return _texts(encoding, values)
        if encoding != "any":
            column = pa.array(values, _TYPES[encoding], from_pandas=False)
            least = _least(encoding, column)
            return least, column if least == encoding else _narrow(least, column)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
        pass
    return "any", _pickled(values)


def _ints(values: Sequence[Any], holes: bool) -> tuple[str, Any]:
    if len(values) <= _FEW:
        there = [v for v in values if v is not None] if holes else values
        encoding = _width(min(there), max(there))
        return encoding, pa.array(values, _TYPES[encoding], from_pandas=False)
    if holes:
        column = pa.array(values, _TYPES["int"], from_pandas=False)
    else:
        column = pa.array(np.fromiter(values, np.int64, len(values)))
    encoding = _least("int", column)
    return encoding, column if encoding == "int" else _narrow(encoding, column)


def _texts(encoding: str, values: Sequence[Any]) -> tuple[str, Any]:
    try:
        array = pa.array(values, _TYPES[encoding], from_pandas=False)
        if isinstance(array, pa.Array) and not heavy(array.nbytes):
            return encoding, array
    except pa.ArrowCapacityError:
        pass
    return f"{encoding}64", pa.array(values, _TYPES[f"{encoding}64"], from_pandas=False)


def _time(values: Sequence[datetime | None]) -> str:
    zones = {None if v is None else v.tzinfo for v in values}
    if any(v is not None and v.fold for v in values):
        return "any"
    if zones == {None}:
        return "time"
    there = {v.tzinfo for v in values if v is not None}
    return "utc" if len(there) == 1 and there.pop() is UTC else "any"


def _pickled(values: Sequence[Any]) -> Any:
    dumps = pickle.dumps
    try:
        return pa.array([dumps(value, PICKLE) for value in values], pa.large_binary())
    except Exception as error:
        raise EbbflowError(
            "a value cannot be stored, as it cannot be pickled",
            cause=error,
            value=next((v for v in values if not _can_pickle(v)), None),
            remedy="keys, rows and states made of plain values, or of classes that pickle",
        ) from cause_of(error)


def _can_pickle(value: Any) -> bool:
    try:
        pickle.dumps(value, PICKLE)
    except Exception:
        return False
    return True


def _values(
    encoding: str, column: Any, at: list[Any] | None = None, load: Any = loads_each
) -> list[Any]:
    pieces = column if isinstance(column, tuple) else (column,)
    found: list[Any]
    if encoding in _NUMBERS and not any(piece.null_count for piece in pieces):
        arrays = [numbers_of(piece) for piece in pieces]
        if at is not None:
            arrays = [array.take(places) for array, places in zip(arrays, at, strict=True)]
        numbers = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        found = numbers.tolist()
        if encoding == "float":
            for i in (numbers != numbers).nonzero()[0].tolist():
                found[i] = NAN
        return found
    if at is not None:
        pairs = zip(pieces, at, strict=True)
        pieces = tuple(pc.take(piece, pa.array(a), boundscheck=False) for piece, a in pairs)
    if encoding == "date16":
        pieces = tuple(days_of(piece).view(_TYPES["date"]) for piece in pieces)
    found = (pieces[0] if len(pieces) == 1 else pa.chunked_array(pieces)).to_pylist()
    if encoding == "float":
        return [value if value == value else NAN for value in found]
    if encoding == PICKLED:
        loaded: list[Any] = load(found)
        return loaded
    if encoding == PLAIN:
        return [None if value is None else plain.loads(value) for value in found]
    if encoding == "decimal":
        return [None if value is None else _decimal(value) for value in found]
    if encoding == "utc":
        return [None if value is None else value.replace(tzinfo=UTC) for value in found]
    return found


def _decimal(text: str) -> Any:
    return one_nan(Decimal(text)) if "N" in text else Decimal(text)
