"""Python values as Arrow columns and back, without losing anything.

A list of values becomes one column when they are of one simple type: `int` to 64 bits, `float`,
`bool`, `str`, `bytes`, `date`, `datetime` (without a zone, or in UTC), `Decimal`, each with `None`
here and there. Any other list, such as one of `1`, `1.0` and `True`, or with an integer of 65 bits,
becomes a column of pickles. Which it was is the *kind* of the column, and is written down beside
it, so what comes out is what went in, with its exact type.

Tuples of one length become one column per item, and so do the rows of a NamedTuple class; a list of
anything else is one column. That is the *shape* of a list: how, and the kinds of its columns.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from operator import is_, itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ebbflow.errors import EbbflowError
from ebbflow.record import fields_of
from ebbflow.state.spine.hashing import NAN

PICKLE = 5
_TYPES: dict[str, Any] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.large_utf8(),
    "bytes": pa.large_binary(),
    "date": pa.date32(),
    "time": pa.timestamp("us"),
    "utc": pa.timestamp("us"),
    "decimal": pa.large_utf8(),
    "none": pa.null(),
    "any": pa.large_binary(),
}
_KINDS: dict[type, str] = {
    int: "int",
    float: "float",
    bool: "bool",
    str: "text",
    bytes: "bytes",
    date: "date",
    datetime: "time",
    Decimal: "decimal",
}
_WIDEST = 64


@dataclass(frozen=True)
class Shape:
    """How a list of values is laid out: as "one" column, or one per item of a "tuple" or "record".

    >>> shape, columns = encode([(1, "a"), (2, None)])
    >>> shape
    Shape(how='tuple', kinds=('int', 'text'))
    >>> decode(shape, columns)
    [(1, 'a'), (2, None)]
    """

    how: str
    kinds: tuple[str, ...]

    def types(self) -> list[Any]:
        """The Arrow types of the columns."""
        return [_TYPES[kind] for kind in self.kinds]


ANYTHING = Shape("one", ("any",))


def encode(values: Sequence[Any], row_type: Any = None) -> tuple[Shape, list[Any]]:
    """The shape of a list, and its columns. `row_type` is the class whose rows are records.

    >>> encode([1, 2**70])[0], encode([1, True])[0], encode([1, None])[0].kinds
    (Shape(how='one', kinds=('any',)), Shape(how='one', kinds=('any',)), ('int',))
    """
    kinds = set(map(type, values))
    if len(kinds) == 1:
        kind = kinds.pop()
        record = kind is row_type and fields_of(kind) is not None
        if (record or kind is tuple) and len(lengths := set(map(len, values))) == 1:
            width = lengths.pop()
            if 0 < width <= _WIDEST:
                made = [_column(list(map(itemgetter(i), values))) for i in range(width)]
                how = "record" if record else "tuple"
                return Shape(how, tuple(kind for kind, _ in made)), [array for _, array in made]
    kind_name, array = _column(values)
    return Shape("one", (kind_name,)), [array]


def decode(
    shape: Shape, columns: Sequence[Any], row_type: Any = None, at: list[Any] | None = None
) -> list[Any]:
    """The values again. A column may be in several pieces; with `at`, arrays of places in each
    piece, the values are those there.
    """
    lists = [_values(kind, column, at) for kind, column in zip(shape.kinds, columns, strict=True)]
    if shape.how == "one":
        return lists[0]
    rows: Iterator[Any] = zip(*lists, strict=True)
    if shape.how == "record":
        rows = map(partial(tuple.__new__, row_type), rows)
    return list(rows)


def numbers_of(array: Any) -> Any:
    """A column of numbers without nulls as NumPy has it; nothing is copied. (Arrow's own way would
    load pandas, where that is installed.)

    >>> numbers_of(pa.array([1, 2, 3]).slice(1))
    array([2, 3])
    """
    kind = np.dtype(array.type.to_pandas_dtype())
    data = array.buffers()[1]
    if data is None:
        return np.empty(0, kind)
    return np.frombuffer(data, kind)[array.offset : array.offset + len(array)]


def common(shapes: Iterable[Shape]) -> Shape:
    """A shape that can hold what any of these shapes holds.

    >>> common([Shape("tuple", ("int", "none")), Shape("tuple", ("int", "text"))])
    Shape(how='tuple', kinds=('int', 'text'))
    """
    different = set(shapes)
    if len(different) == 1:
        return different.pop()
    forms = {(shape.how, len(shape.kinds)) for shape in different}
    if len(forms) > 1:
        return ANYTHING
    kinds = zip(*(shape.kinds for shape in different), strict=True)
    return Shape(forms.pop()[0], tuple(_common(set(column)) for column in kinds))


def recast(shape: Shape, into: Shape, columns: Sequence[Any], row_type: Any = None) -> list[Any]:
    """Columns of one shape as columns of another, which `common` gave."""
    if shape == into:
        return list(columns)
    if shape.how != into.how or len(shape.kinds) != len(into.kinds):
        return [_pickled(decode(shape, columns, row_type))]
    return [
        array
        if kind == wanted
        else pa.nulls(len(array), _TYPES[wanted])
        if kind == "none" and wanted != "any"
        else _pickled(_values(kind, array))
        for kind, wanted, array in zip(shape.kinds, into.kinds, columns, strict=True)
    ]


def nothing(shape: Shape, count: int) -> list[Any]:
    """Columns of this shape that hold no values, for rows that have none."""
    return [pa.nulls(count, kind) for kind in shape.types()]


# ---- one column ----


def _common(kinds: set[str]) -> str:
    known = kinds - {"none"}
    return "none" if not known else known.pop() if len(known) == 1 else "any"


def _column(values: Sequence[Any]) -> tuple[str, Any]:
    types = set(map(type, values))
    holes = type(None) in types
    types.discard(type(None))
    if not types:
        return "none", pa.nulls(len(values))
    kind = _KINDS.get(types.pop(), "any") if len(types) == 1 else "any"
    if kind == "time":
        kind = _time(values)
    try:
        if kind == "decimal":
            return kind, pa.array([None if v is None else str(v) for v in values], _TYPES[kind])
        if kind == "utc":
            bare = [None if v is None else v.replace(tzinfo=None) for v in values]
            return kind, pa.array(bare, _TYPES[kind])
        if kind == "int" and not holes:
            return kind, pa.array(np.fromiter(values, np.int64, len(values)))
        if kind != "any":
            return kind, pa.array(values, _TYPES[kind], from_pandas=False)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
        pass
    return "any", _pickled(values)


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
        ) from error


def _one_nan(value: Any) -> Any:
    if isinstance(value, tuple):
        items = [_one_nan(item) for item in value]
        same = all(map(is_, items, value))
        return value if same else tuple.__new__(type(value), items)
    return NAN if type(value) is float and value != value else value


def _can_pickle(value: Any) -> bool:
    try:
        pickle.dumps(value, PICKLE)
    except Exception:
        return False
    return True


def _values(kind: str, column: Any, at: list[Any] | None = None) -> list[Any]:
    pieces = column if isinstance(column, tuple) else (column,)
    found: list[Any]
    if kind in ("int", "float") and not any(piece.null_count for piece in pieces):
        arrays = [numbers_of(piece) for piece in pieces]
        if at is not None:
            arrays = [array.take(places) for array, places in zip(arrays, at, strict=True)]
        numbers = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        found = numbers.tolist()
        if kind == "float":
            for i in (numbers != numbers).nonzero()[0].tolist():
                found[i] = NAN
        return found
    if at is not None:
        pairs = zip(pieces, at, strict=True)
        pieces = tuple(pc.take(piece, pa.array(a), boundscheck=False) for piece, a in pairs)
    found = (pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)).to_pylist()
    if kind == "float":
        return [value if value == value else NAN for value in found]
    if kind == "any":
        loads = pickle.loads
        return [None if value is None else _one_nan(loads(value)) for value in found]
    if kind == "decimal":
        return [None if value is None else Decimal(value) for value in found]
    if kind == "utc":
        return [None if value is None else value.replace(tzinfo=UTC) for value in found]
    return found
