"""Rows with weights to Arrow batches and back, without losing anything.

`from_arrow(to_arrow(rows, weights, kind), kind)` gives equal rows and the same weights, for every
row type; `kinds` says which hint becomes which column. A row that does not fit the columns of its
type is an error that names the row and the field, never a value that is a little different:
integers have 64 bits, decimals their digits, and None is only where the hint allows it.

Values that are equal are one value in a row, so they may change their type where the hint says so:
`True` in a field of ints comes back as 1, and 3 in a field of floats as 3.0.
"""

from __future__ import annotations

import pickle
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import accumulate, chain
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ebbflow.engine.spark.kinds import PICKLED, PLAIN, WEIGHT, Column, Frozen, columns_of
from ebbflow.errors import EbbflowError, Text
from ebbflow.record import fields_of, type_text
from ebbflow.state.spine.columns import PICKLE, _one_nan
from ebbflow.state.spine.hashing import NAN

_INSTANT = pa.timestamp("us", "UTC")
_BARE = pa.timestamp("us")
_TYPES: dict[str, Any] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.utf8(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "time": _BARE,
    "instant": _INSTANT,
    "any": pa.binary(),
}
_CLASSES: dict[str, tuple[type, ...]] = {
    **{form: (kind,) for kind, form in PLAIN.items()},
    "int": (int, bool),
    "float": (float, int),
    "instant": (datetime,),
}
_TOO_LARGE: dict[str, str] = {
    "int": "has more than 64 bits",
    "float": "is no float: it would lose digits",
    "text": "is no text: it holds half of a surrogate pair",
    "instant": "is out of range in UTC",
    "any": "cannot be pickled",
}
_REMEDIES: dict[str, str] = {
    "int": "the hint Any for integers without bounds, or Decimal",
    "float": "the hint int or Decimal for this field",
    "any": "values made of plain values, or of classes that pickle",
    "time": "Annotated[datetime, UTC] as the hint for times with a zone",
    "instant": "a time with a zone, or datetime as the hint",
    "decimal": "other digits, Annotated[Decimal, (precision, scale)], or round the value",
}


_BLANKS: dict[str, Any] = {
    "int": 0,
    "float": 0.0,
    "bool": False,
    "text": "",
    "bytes": b"",
    "date": date(1970, 1, 1),
    "time": datetime(1970, 1, 1),
    "instant": datetime(1970, 1, 1, tzinfo=UTC),
    "decimal": Decimal(0),
    "list": (),
    "map": {},
}


class Unfit(EbbflowError):
    """A row does not fit the columns of its type."""


# ---- types ----


def arrow_type(column: Column, *, loose: bool = False) -> Any:
    """The Arrow type of a column: the one that Spark uses as well."""
    if column.form == "decimal":
        return pa.decimal128(*column.digits)
    if column.form == "list":
        return pa.list_(_field(*column.parts[0]))
    if column.form == "map":
        return pa.map_(pa.utf8(), _field(*column.parts[1]))
    if column.form == "record":
        return pa.struct([_field(*field) for field in column.inside(loose)])
    return _TYPES[column.form]


def _field(name: str, column: Column, nullable: bool | None = None) -> Any:
    marked = PICKLED if column.form == "any" else None
    null = column.optional if nullable is None else nullable
    return pa.field(name, arrow_type(column, loose=null), null, marked)


def arrow_schema(kind: Any, *, weight: bool = True) -> Any:
    """The Arrow schema of rows of this type; with `weight`, and of their weights.

    >>> arrow_schema(int)
    value: int64 not null
    __weight: int64 not null
    """
    weights = [pa.field(WEIGHT, pa.int64(), False)] if weight else []
    return pa.schema([*(_field(name, column) for name, column in columns_of(kind)), *weights])


# ---- there ----


def to_arrow(rows: Iterable[Any], weights: Iterable[int], kind: Any) -> Any:
    """Rows and their weights as one Arrow batch.

    >>> from ebbflow.record import record
    >>> City = record("City", name=str, size=int)
    >>> batch = to_arrow([City("Rome", 3), City("Oslo", 1)], [1, -1], City)
    >>> batch.to_pydict()
    {'name': ['Rome', 'Oslo'], 'size': [3, 1], '__weight': [1, -1]}
    >>> to_arrow([City("Rome", 2**64)], [1], City)
    Traceback (most recent call last):
    ebbflow.engine.spark.arrow.Unfit: field 'size': 18446744073709551616 has more than 64 bits
        row        City(name='Rome', size=18446744073709551616)
        type       int
        try        the hint Any for integers without bounds, or Decimal
    """
    rows = rows if isinstance(rows, (list, tuple)) else list(rows)
    columns = columns_of(kind)
    lists = [rows] if fields_of(kind) is None else _turned(rows, kind, len(columns))
    schema = arrow_schema(kind)
    arrays = []
    for (name, column), values in zip(columns, lists, strict=True):
        try:
            arrays.append(_encode(column, values, schema.field(name).type))
        except _Misfit as misfit:
            raise misfit.error(name, rows[misfit.at]) from misfit.__cause__
    counts = list(weights)
    try:
        arrays.append(_encode(_COUNT, counts, pa.int64()))
    except _Misfit as misfit:
        raise misfit.error("weight", rows[misfit.at]) from misfit.__cause__
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


_COUNT = Column("int")


def _turned(rows: Sequence[Any], kind: Any, width: int) -> list[Any]:
    """Rows as one list of values per field."""
    for each in set(map(type, rows)):
        if not issubclass(each, tuple):
            wrong = next(row for row in rows if type(row) is each)
            raise Unfit(
                f"a row is {_a(wrong)}, not {type_text(kind)}",
                row=wrong,
                remedy=f"{kind.__name__}(...)",
            )
    if set(map(len, rows)) - {width}:
        wrong = next(row for row in rows if len(row) != width)
        raise Unfit(
            f"a row has {len(wrong)} fields, and {type_text(kind)} has {width}",
            row=wrong,
            remedy=f"{kind.__name__}(...)",
        )
    return list(zip(*rows, strict=True)) if rows else [()] * width


class _Misfit(Exception):
    """The value at a place does not fit; `path` leads from the field into it."""

    def __init__(self, at: int, column: Column, why: str, path: str = "") -> None:
        self.at, self.column, self.why, self.path = at, column, why, path

    def inside(self, at: int, path: str) -> _Misfit:
        moved = _Misfit(at, self.column, self.why, path + self.path)
        moved.__cause__ = self.__cause__
        return moved

    def error(self, name: str, row: Any) -> Unfit:
        where = Text(str(self.column))
        remedy = _REMEDIES.get(self.column.form, "")
        if self.why == _NONE:
            remedy = f"{self.column} | None as the hint, where None may be"
        return Unfit(f"field {name + self.path!r}: {self.why}", row=row, type=where, remedy=remedy)


_NONE = "None is not allowed here"


def _a(value: Any) -> str:
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def _encode(column: Column, values: Sequence[Any], kind: Any) -> Any:
    """Values as an Arrow array of this type."""
    kinds = set(map(type, values))
    holes = NoneType in kinds
    if holes and not column.optional:
        raise _Misfit(_first(values, NoneType), column, _NONE)
    if column.form not in _NESTED:
        return _flat(column, values, kinds - {NoneType})
    nested = _NESTED[column.form]
    if not holes:
        return nested(column, values, kind, kinds, None)
    blank = _blank(replace(column, optional=False))
    full = [blank if value is None else value for value in values]
    holed = pa.array([value is None for value in values])
    return nested(column, full, kind, kinds - {NoneType}, holed)


def _blank(column: Column) -> Any:
    """A value that lies under a null: what is in it may not be null."""
    if column.optional:
        return None
    if column.form == "record":
        return tuple(_blank(part) for _, part in column.parts)
    return _BLANKS[column.form]


def _first(values: Sequence[Any], kind: type) -> int:
    return next(i for i, value in enumerate(values) if type(value) is kind)


def _flat(column: Column, values: Sequence[Any], kinds: set[type]) -> Any:
    form = column.form
    if form == "any":
        return _array(column, values, _pickled)
    for kind in kinds.difference(_CLASSES[form]):
        at = _first(values, kind)
        raise _Misfit(at, column, f"{values[at]!r} is {_a(values[at])}, not {column}")
    if form == "float" and int in kinds:
        return _array(column, values, _float)
    if form == "int" and bool in kinds:
        return _array(column, values, int)
    if form == "time":
        for at, value in enumerate(values):
            if value is not None and value.tzinfo is not None:
                raise _Misfit(at, column, f"{value!r} has a zone")
    if form == "instant":
        for at, value in enumerate(values):
            if value is not None and value.utcoffset() is None:
                raise _Misfit(at, column, f"{value!r} has no zone")
        return _array(column, values, _in_utc, _BARE).cast(_INSTANT)
    return _array(column, values, None)


def _array(
    column: Column,
    values: Sequence[Any],
    change: Callable[[Any], Any] | None,
    kind: Any = None,
) -> Any:
    """An array of `change(value)`; where it cannot be made, the value that stands in its way."""
    kind = kind or arrow_type(column)

    def made(some: Sequence[Any]) -> Any:
        if change is not None:
            some = [None if value is None else change(value) for value in some]
        return pa.array(some, kind, from_pandas=False)

    try:
        return made(values)
    except Exception as error:
        for at, value in enumerate(values):
            try:
                made([value])
            except Exception as cause:
                why = _TOO_LARGE.get(column.form, f"does not fit {kind}")
                raise _Misfit(at, column, f"{value!r} {why}") from cause
        raise EbbflowError(
            "one batch cannot hold this much", cause=error, remedy="fewer rows at a time"
        ) from error


def _pickled(value: Any) -> bytes:
    return pickle.dumps(value, PICKLE)


def _float(value: Any) -> float:
    made = float(value)
    if made == value or value != value:
        return made
    raise ValueError(value)


def _in_utc(value: datetime) -> datetime:
    return value.astimezone(UTC).replace(tzinfo=None)


def _lists(column: Column, values: Sequence[Any], kind: Any, kinds: set[type], holes: Any) -> Any:
    _require(column, values, kinds, (tuple, list))
    starts = [0, *accumulate(map(len, values))]
    try:
        inside = list(chain.from_iterable(values))
        array = _encode(column.parts[0][1], inside, kind.value_type)
    except _Misfit as misfit:
        raise _in_list(misfit, starts) from misfit.__cause__
    offsets = pa.array(starts, pa.int32())
    return pa.ListArray.from_arrays(offsets, array, type=kind, mask=holes)


def _maps(column: Column, values: Sequence[Any], kind: Any, kinds: set[type], holes: Any) -> Any:
    _require(column, values, kinds, (Mapping,))
    starts = [0, *accumulate(map(len, values))]
    (_, key), (_, item) = column.parts
    try:
        keys = _encode(key, list(chain.from_iterable(values)), kind.key_type)
        found = [each for value in values for each in value.values()]
        items = _encode(item, found, kind.item_type)
    except _Misfit as misfit:
        raise _in_list(misfit, starts) from misfit.__cause__
    offsets = pa.array(starts, pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=holes)


def _in_list(misfit: _Misfit, starts: list[int]) -> _Misfit:
    at = bisect_right(starts, misfit.at) - 1
    return misfit.inside(at, f"[{misfit.at - starts[at]}]")


def _records(column: Column, values: Sequence[Any], kind: Any, kinds: set[type], holes: Any) -> Any:
    _require(column, values, kinds, (tuple,))
    width = len(column.parts)
    for at, value in enumerate(values):
        if len(value) != width:
            raise _Misfit(at, column, f"{value!r} has {len(value)} fields, not {width}")
    lists = list(zip(*values, strict=True)) if values else [()] * width
    arrays = []
    for (name, part), some in zip(column.parts, lists, strict=True):
        try:
            arrays.append(_encode(part, some, kind.field(name).type))
        except _Misfit as misfit:
            raise misfit.inside(misfit.at, f".{name}") from misfit.__cause__
    if not width:
        there = [True] * len(values) if holes is None else pc.invert(holes).to_pylist()
        return pa.array([{} if valid else None for valid in there], kind)
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=holes)


def _require(
    column: Column, values: Sequence[Any], kinds: set[type], allowed: tuple[type, ...]
) -> None:
    for kind in kinds:
        if not issubclass(kind, allowed):
            at = _first(values, kind)
            raise _Misfit(at, column, f"{values[at]!r} is {_a(values[at])}, not {column}")


_NESTED: dict[str, Callable[[Column, Sequence[Any], Any, set[type], Any], Any]] = {
    "list": _lists,
    "map": _maps,
    "record": _records,
}


# ---- and back ----


def from_arrow(batch: Any, kind: Any) -> tuple[list[Any], list[int]]:
    """The rows of an Arrow batch or table, and their weights: 1 each, when it has none.

    >>> from ebbflow.record import record
    >>> City = record("City", name=str, size=int)
    >>> from_arrow(pa.table({"name": ["Rome"], "size": [3], "__weight": [-1]}), City)
    ([City(name='Rome', size=3)], [-1])
    """
    if isinstance(batch, pa.Table):
        parts = [from_arrow(part, kind) for part in batch.to_batches()]
        if len(parts) == 1:
            return parts[0]
        return [row for rows, _ in parts for row in rows], [w for _, some in parts for w in some]
    lists = []
    for name, column in columns_of(kind):
        try:
            lists.append(_decode(column, batch.column(name)))
        except _Misfit as misfit:
            found = {each: batch.column(each)[misfit.at].as_py() for each in batch.schema.names}
            raise misfit.error(name, found) from misfit.__cause__
    count = batch.num_rows
    names = batch.schema.names
    weights = _decode(_COUNT, batch.column(WEIGHT)) if WEIGHT in names else [1] * count
    return _rows(kind, lists, count), weights


def _rows(kind: Any, lists: list[list[Any]], count: int) -> list[Any]:
    if fields_of(kind) is None:
        return lists[0]
    if not lists:
        return [tuple.__new__(kind)] * count
    return list(map(partial(tuple.__new__, kind), zip(*lists, strict=True)))


def _decode(column: Column, array: Any) -> list[Any]:
    if not array.null_count:
        return _READ[column.form](column, array)
    there = array.is_valid().to_pylist()
    if not column.optional:
        raise _Misfit(there.index(False), column, _NONE)
    full = iter(_READ[column.form](column, array.drop_null()))
    return [next(full) if valid else None for valid in there]


def _read_numbers(column: Column, array: Any) -> list[Any]:
    numbers = array.to_numpy(zero_copy_only=False)
    found: list[Any] = numbers.tolist()
    if column.form == "float":
        for i in (numbers != numbers).nonzero()[0].tolist():
            found[i] = NAN
    return found


def _read_plain(column: Column, array: Any) -> list[Any]:
    found: list[Any] = array.to_pylist()
    return found


def _read_instants(column: Column, array: Any) -> list[Any]:
    bare = array.cast(pa.timestamp("us", array.type.tz)).view(pa.int64()).view(_BARE)
    return [value.replace(tzinfo=UTC) for value in bare.to_pylist()]


def _read_pickles(column: Column, array: Any) -> list[Any]:
    loads = pickle.loads
    return [_one_nan(loads(value)) for value in array.to_pylist()]


def _read_lists(column: Column, array: Any) -> list[Any]:
    ends = np.cumsum(pc.list_value_length(array).to_numpy()).tolist()
    inside = _inside(_decode, column.parts[0][1], array.flatten(), ends)
    return [tuple(inside[i:j]) for i, j in zip([0, *ends], ends, strict=False)]


def _read_maps(column: Column, array: Any) -> list[Any]:
    (_, key), (_, item) = column.parts
    pairs = [pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)]
    lists = array.cast(pa.list_(pa.struct(pairs)))
    ends = np.cumsum(pc.list_value_length(lists).to_numpy()).tolist()
    keys, items = lists.flatten().flatten()
    names = _inside(_decode, key, keys, ends)
    values = _inside(_decode, item, items, ends)
    return [
        Frozen(zip(names[i:j], values[i:j], strict=True))
        for i, j in zip([0, *ends], ends, strict=False)
    ]


def _inside(
    decode: Callable[[Column, Any], list[Any]], column: Column, array: Any, ends: list[int]
) -> list[Any]:
    try:
        return decode(column, array)
    except _Misfit as misfit:
        raise _in_list(misfit, [0, *ends]) from misfit.__cause__


def _read_records(column: Column, array: Any) -> list[Any]:
    arrays = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    lists = []
    for name, part in column.parts:
        try:
            lists.append(_decode(part, arrays[name]))
        except _Misfit as misfit:
            raise misfit.inside(misfit.at, f".{name}") from misfit.__cause__
    if column.make is tuple:
        return list(zip(*lists, strict=True))
    return _rows(column.make, lists, len(array))


_READ: dict[str, Callable[[Column, Any], list[Any]]] = {
    **dict.fromkeys(("int", "float", "bool"), _read_numbers),
    **dict.fromkeys(("text", "bytes", "date", "time", "decimal"), _read_plain),
    "instant": _read_instants,
    "any": _read_pickles,
    "list": _read_lists,
    "map": _read_maps,
    "record": _read_records,
}
