"""Values of Python as Arrow arrays, one column at a time.

What is inside lists, maps and records is put into one long list and becomes an array of its own, so
the work is done on whole columns at every depth. Types are checked for a whole column by the set of
classes in it; only when something is wrong are its values looked at one by one.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import accumulate, chain
from types import NoneType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ebbflow.change import List, Text
from ebbflow.engine.runtime.table.column_types import PLAIN, Column
from ebbflow.engine.runtime.table.mismatch import NONE, ColumnMismatch, in_list
from ebbflow.errors import EbbflowError, cause_of, type_name, value_text
from ebbflow.ordering import total_order_key
from ebbflow.record import taken_apart
from ebbflow.state.spine.columns import PICKLE

_CLASSES: dict[str, tuple[type, ...]] = {
    **{form: (cls,) for cls, form in PLAIN.items()},
    "int": (int, bool),
    "float": (float, int),
    "instant": (datetime,),
    "null": (),
}
_TOO_LARGE: dict[str, str] = {
    "int": "has more than 64 bits",
    "float": "is no float: it would lose digits",
    "text": "is no text: it holds half of a surrogate pair",
    "instant": "is out of range in UTC",
    "any": "cannot be pickled",
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
    "set": frozenset(),
}


def encode(column: Column, values: Sequence[Any], arrow_type: Any) -> Any:
    """Values as an Arrow array of this type."""
    types = set(map(type, values))
    holes = NoneType in types
    if holes and not column.optional:
        raise ColumnMismatch(_first(values, NoneType), column, NONE)
    if column.form not in _NESTED:
        return _flat(column, values, arrow_type, types - {NoneType})
    nested = _NESTED[column.form]
    if not holes:
        return nested(column, values, arrow_type, types, None)
    blank = _blank(replace(column, optional=False))
    full = [blank if value is None else value for value in values]
    holed = pa.array([value is None for value in values])
    return nested(column, full, arrow_type, types - {NoneType}, holed)


def _blank(column: Column) -> Any:
    """A value that lies under a null: what is in it may not be null."""
    if column.optional:
        return None
    if column.form == "record":
        return tuple(_blank(part) for _, part in column.parts)
    return _BLANKS[column.form]


def _first(values: Sequence[Any], cls: type) -> int:
    return next(i for i, value in enumerate(values) if type(value) is cls)


def _flat(column: Column, values: Sequence[Any], arrow_type: Any, types: set[type]) -> Any:
    form = column.form
    if form == "any":
        return _array(column, values, arrow_type, _pickled)
    if column.make is Text:
        _require(column, values, types, (Text, str))
        return _array(column, values, arrow_type, str)
    _require(column, values, types, _CLASSES[form], exactly=True)
    if form == "float" and int in types:
        return _array(column, values, arrow_type, _float)
    if form == "int" and bool in types:
        return _array(column, values, arrow_type, int)
    if form == "time":
        for at, value in enumerate(values):
            if value is not None and value.tzinfo is not None:
                raise ColumnMismatch(at, column, f"{value_text(value)} has a zone")
    if form == "instant":
        for at, value in enumerate(values):
            if value is not None and value.utcoffset() is None:
                raise ColumnMismatch(at, column, f"{value_text(value)} has no zone")
        return _array(column, values, pa.timestamp("us"), _in_utc).cast(arrow_type)
    return _array(column, values, arrow_type)


def _array(
    column: Column,
    values: Sequence[Any],
    arrow_type: Any,
    change: Callable[[Any], Any] | None = None,
) -> Any:
    """An array of `change(value)`; where it cannot be made, the value that stands in its way."""

    def made(some: Sequence[Any]) -> Any:
        if change is not None:
            some = [None if value is None else change(value) for value in some]
        return pa.array(some, arrow_type, from_pandas=False)

    try:
        return made(values)
    except Exception as error:
        for at, value in enumerate(values):
            try:
                made([value])
            except Exception as cause:
                why = _TOO_LARGE.get(column.form, f"does not fit {arrow_type}")
                raise ColumnMismatch(at, column, f"{value_text(value)} {why}") from cause_of(cause)
        raise EbbflowError(
            "one batch cannot hold this much", cause=error, remedy="fewer rows at a time"
        ) from cause_of(error)


def _pickled(value: Any) -> bytes:
    return pickle.dumps(value, PICKLE)


def _float(value: Any) -> float:
    made = float(value)
    if made == value or value != value:
        return made
    raise ValueError(value)


def _in_utc(value: datetime) -> datetime:
    return value.astimezone(UTC).replace(tzinfo=None)


def _lists(
    column: Column, values: Sequence[Any], arrow_type: Any, types: set[type], holes: Any
) -> Any:
    _require(column, values, types, (tuple, list, List))
    starts = [0, *accumulate(map(len, values))]
    try:
        inside = list(chain.from_iterable(values))
        array = encode(column.parts[0][1], inside, arrow_type.value_type)
    except ColumnMismatch as mismatch:
        raise in_list(mismatch, starts) from mismatch.__cause__
    offsets = pa.array(starts, pa.int32())
    return pa.ListArray.from_arrays(offsets, array, type=arrow_type, mask=holes)


def _sets(
    column: Column, values: Sequence[Any], arrow_type: Any, types: set[type], holes: Any
) -> Any:
    """Lists in an order of their own, so that a set is written in one way."""
    _require(column, values, types, (frozenset, set))
    return _lists(
        column, [sorted(value, key=total_order_key) for value in values], arrow_type, {list}, holes
    )


def _maps(
    column: Column, values: Sequence[Any], arrow_type: Any, types: set[type], holes: Any
) -> Any:
    _require(column, values, types, (Mapping,))
    starts = [0, *accumulate(map(len, values))]
    (_, key), (_, item) = column.parts
    try:
        keys = encode(key, list(chain.from_iterable(values)), arrow_type.key_type)
        found = [each for value in values for each in value.values()]
        items = encode(item, found, arrow_type.item_type)
    except ColumnMismatch as mismatch:
        raise in_list(mismatch, starts) from mismatch.__cause__
    offsets = pa.array(starts, pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, items, type=arrow_type, mask=holes)


def _records(
    column: Column, values: Sequence[Any], arrow_type: Any, types: set[type], holes: Any
) -> Any:
    if column.make is not tuple and not issubclass(column.make, tuple):
        _require(column, values, types, (column.make, tuple))  # a blank is a tuple
        apart = taken_apart(column.make)
        values = [value if type(value) is tuple else apart(value) for value in values]
    else:
        _require(column, values, types, (tuple,))
    width = len(column.parts)
    for at, value in enumerate(values):
        if len(value) != width:
            raise ColumnMismatch(
                at, column, f"{value_text(value)} has {len(value)} fields, not {width}"
            )
    lists = list(zip(*values, strict=True)) if values else [()] * width
    arrays = []
    for (name, part), some in zip(column.parts, lists, strict=True):
        try:
            arrays.append(encode(part, some, arrow_type.field(name).type))
        except ColumnMismatch as mismatch:
            raise mismatch.inside(mismatch.at, f".{name}") from mismatch.__cause__
    if not width:
        there = [True] * len(values) if holes is None else pc.invert(holes).to_pylist()
        return pa.array([{} if valid else None for valid in there], arrow_type)
    return pa.StructArray.from_arrays(arrays, fields=list(arrow_type), mask=holes)


def _require(
    column: Column,
    values: Sequence[Any],
    types: set[type],
    allowed: tuple[type, ...],
    *,
    exactly: bool = False,
) -> None:
    """A misfit, where a value is of none of these classes."""
    for cls in types.difference(allowed):
        if exactly or not issubclass(cls, allowed):
            at = _first(values, cls)
            raise ColumnMismatch(
                at, column, f"{value_text(values[at])} is {type_name(values[at])}, not {column}"
            )


_NESTED: dict[str, Callable[[Column, Sequence[Any], Any, set[type], Any], Any]] = {
    "list": _lists,
    "map": _maps,
    "set": _sets,
    "record": _records,
}
