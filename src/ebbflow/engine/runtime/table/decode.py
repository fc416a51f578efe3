"""Arrow arrays as values of Python, one column at a time: `encode`, backwards.

An array may be a slice of another. It may come from elsewhere, with narrower numbers, or with nulls
where the hint has none.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ebbflow.decimals import WIDE, plain
from ebbflow.engine.runtime.table.column_types import Column
from ebbflow.engine.runtime.table.mismatch import NONE, ColumnMismatch, in_list, shown
from ebbflow.nan import NAN, loads_each
from ebbflow.record import fields_of, maker


def decode(column: Column, array: Any) -> list[Any]:
    """The values of an array."""
    if not array.null_count:
        return _READ[column.form](column, array)
    there = array.is_valid().to_pylist()
    if not column.optional:
        raise ColumnMismatch(there.index(False), column, NONE)
    full = iter(_READ[column.form](column, array.drop_null()))
    return [next(full) if valid else None for valid in there]


def rows_of(row_type: Any, lists: list[list[Any]], count: int) -> list[Any]:
    """Rows of a type, of one list of values per field."""
    if fields_of(row_type) is None:
        return lists[0]
    if not lists:
        return [maker(row_type)(())] * count
    return list(map(maker(row_type), zip(*lists, strict=True)))


def _read_numbers(column: Column, array: Any) -> list[Any]:
    numbers = array.to_numpy(zero_copy_only=False)
    if column.form != "float":
        return numbers.tolist()  # type: ignore[no-any-return]
    found: list[Any] = (numbers + 0.0).tolist()  # there is one zero
    if (numbers != numbers).any():
        for i in (numbers != numbers).nonzero()[0].tolist():
            found[i] = NAN
    return found


def _read_decimals(column: Column, array: Any) -> list[Any]:
    found: list[Any] = array.to_pylist()
    return list(map(plain, found)) if column.digits == WIDE else found


def _read_plain(column: Column, array: Any) -> list[Any]:
    found = _values(column, array)
    return found if column.make is None else list(map(column.make, found))


def _values(column: Column, array: Any) -> list[Any]:
    """The values of Python; it has no dates and times outside the years 1 to 9999."""
    try:
        found: list[Any] = array.to_pylist()
    except (OverflowError, ValueError) as error:
        at = next(i for i in range(len(array)) if not _has_value(array[i]))
        why = f"{shown(array[at])} is outside the years 1 to 9999"
        raise ColumnMismatch(at, column, why) from error
    return found


def _has_value(scalar: Any) -> bool:
    try:
        scalar.as_py()
    except (OverflowError, ValueError):
        return False
    return True


def _read_instants(column: Column, array: Any) -> list[Any]:
    bare = array.cast(pa.timestamp("us", array.type.tz)).view(pa.int64()).view(pa.timestamp("us"))
    return [value.replace(tzinfo=UTC) for value in _values(column, bare)]


def _read_pickles(column: Column, array: Any) -> list[Any]:
    return loads_each(array.to_pylist())


def _read_lists(column: Column, array: Any) -> list[Any]:
    ends = np.cumsum(pc.list_value_length(array).to_numpy()).tolist()
    inside = _inside(column.parts[0][1], array.flatten(), ends)
    make = column.make or tuple
    return [make(inside[i:j]) for i, j in zip([0, *ends], ends, strict=False)]


def _read_sets(column: Column, array: Any) -> list[Any]:
    return list(map(frozenset, _read_lists(column, array)))


def _read_maps(column: Column, array: Any) -> list[Any]:
    (_, key), (_, item) = column.parts
    pairs = [pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)]
    lists = array.cast(pa.list_(pa.struct(pairs)))
    ends = np.cumsum(pc.list_value_length(lists).to_numpy()).tolist()
    keys, items = lists.flatten().flatten()
    names = _inside(key, keys, ends)
    values = _inside(item, items, ends)
    return [
        column.make(zip(names[i:j], values[i:j], strict=True))
        for i, j in zip([0, *ends], ends, strict=False)
    ]


def _inside(column: Column, array: Any, ends: list[int]) -> list[Any]:
    """The values inside lists, which end where `ends` says."""
    try:
        return decode(column, array)
    except ColumnMismatch as mismatch:
        raise in_list(mismatch, [0, *ends]) from mismatch.__cause__


def _read_records(column: Column, array: Any) -> list[Any]:
    arrays = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    lists = []
    for name, part in column.parts:
        try:
            lists.append(decode(part, arrays[name]))
        except ColumnMismatch as mismatch:
            raise mismatch.inside(mismatch.at, f".{name}") from mismatch.__cause__
    if column.make is tuple:
        return list(zip(*lists, strict=True))
    return rows_of(column.make, lists, len(array))


_READ: dict[str, Callable[[Column, Any], list[Any]]] = {
    **dict.fromkeys(("int", "float", "bool"), _read_numbers),
    **dict.fromkeys(("text", "bytes", "date", "time"), _read_plain),
    "decimal": _read_decimals,
    "instant": _read_instants,
    "any": _read_pickles,
    "list": _read_lists,
    "map": _read_maps,
    "set": _read_sets,
    "record": _read_records,
}
