"""Entries of state as Arrow batches: what is in columns there stays so.

State holds rows in columns, each in the least width that holds its values; a table has the columns
of the row type. Where the two differ in width only, no value becomes a Python object. Where they do
not, as for pickled values and decimals, or a value that its hint does not allow, the rows are made
and go the way of all others, which says what is wrong with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ebbflow.engine.runtime.table.arrow import arrow_schema, to_arrow
from ebbflow.engine.runtime.table.column_types import Column, columns_of
from ebbflow.state.spine.arrow_decimals import decimals_of
from ebbflow.state.spine.columns import days_of, decode
from ebbflow.state.spine.part import EntryBatch

_INTEGERS = {"int8", "int16", "int32", "int"}
_SAME: dict[str, set[str]] = {
    "int": _INTEGERS,
    "float": {"float"},
    "bool": {"bool"},
    "text": {"text", "text64"},
    "bytes": {"bytes", "bytes64"},
    "date": {"date16", "date"},
    "time": {"time"},
    "instant": {"utc"},
}
"""For forms of columns, the encodings of exactly the same values."""


def entries_to_arrow(entries: EntryBatch, row_type: Any, *, by_row: bool) -> Any:
    """The rows of some entries, with their weights, as a batch in the columns of their type. Where
    entries are kept `by_row`, a row is the key of its weight."""
    form = entries.form
    shape, columns = (form.key, entries.keys) if by_row else (form.row, entries.rows)
    weights = _weights(entries) if by_row else pa.array(np.asarray(entries.count), pa.int64())
    fields = columns_of(row_type)
    same = shape.how == "record" or (shape.how == "one" and len(fields) == 1)
    if same and all(map(_fits, [each for _, each in fields], shape.encodings, columns)):
        schema = arrow_schema(row_type)
        arrays = [_as(column, field.type) for column, field in zip(columns, schema, strict=False)]
        return pa.RecordBatch.from_arrays([*arrays, weights], schema=schema)
    rows = decode(shape, columns, row_type if shape.how == "record" else None)
    return to_arrow(rows, weights.to_pylist(), row_type)


def _weights(entries: EntryBatch) -> Any:
    (encoding,), (column,) = entries.form.row.encodings, entries.rows
    if encoding in _INTEGERS:
        return column.cast(pa.int64())
    return pa.array(decode(entries.form.row, entries.rows), pa.int64())


def _fits(column: Column, encoding: str, array: Any) -> bool:
    """Whether the values of a column of state are those of a column of a table."""
    known = encoding in _SAME.get(column.form, ()) or encoding == "none"
    return known and (column.optional or not array.null_count)


def _as(array: Any, wanted: Any) -> Any:
    """A column of state as one of a table; times with a zone are stored without it, in UTC."""
    if pa.types.is_date32(wanted) and not pa.types.is_null(array.type):
        return days_of(array).view(wanted)
    if pa.types.is_timestamp(wanted) and wanted.tz is not None and array.type == pa.timestamp("us"):
        return array.view(pa.int64()).view(wanted)
    if array.type == wanted:
        return array
    return decimals_of(array, wanted) if pa.types.is_decimal(wanted) else array.cast(wanted)
