"""Rows with weights to Arrow batches and back, without losing anything.

`from_arrow(to_arrow(rows, weights, row_type), row_type)` gives equal rows and the same weights, for
every row type; `column_types` says which hint becomes which column. A row that does not fit its
columns is an error that names the row and the field, never a value that is a little different:
integers have 64 bits, decimals their digits, and None is only where the hint allows it.

Values that are equal are one value in a row, so they may change their type where the hint says so:
`True` in a field of ints comes back as 1, and 3 in a field of floats as 3.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from ebbflow.engine.runtime.table.column_types import (
    PICKLED,
    WEIGHT,
    Column,
    Columns,
    columns_of,
)
from ebbflow.engine.runtime.table.decode import decode, rows_of
from ebbflow.engine.runtime.table.encode import encode
from ebbflow.engine.runtime.table.mismatch import ColumnMismatch, row_at
from ebbflow.errors import SchemaMismatch, type_name
from ebbflow.record import fields_of, taken_apart, type_text

__all__ = ["SchemaMismatch", "arrow_schema", "arrow_type", "from_arrow", "to_arrow"]

_TYPES: dict[str, Any] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.utf8(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "time": pa.timestamp("us"),
    "instant": pa.timestamp("us", "UTC"),
    "any": pa.binary(),
    "null": pa.null(),
}
_COUNT = Column("int")


def arrow_type(column: Column, *, loose: bool = False) -> Any:
    """The Arrow type of a column: the one that Spark uses as well."""
    if column.form == "decimal":
        return pa.decimal128(*column.digits)
    if column.form in ("list", "set"):
        return pa.list_(_field(*column.parts[0]))
    if column.form == "map":
        (_, key), value = column.parts
        return pa.map_(arrow_type(key), _field(*value))
    if column.form == "record":
        return pa.struct([_field(*field) for field in column.inside(loose)])
    return _TYPES[column.form]


def _field(name: str, column: Column, nullable: bool | None = None) -> Any:
    marked = PICKLED if column.form == "any" else None
    null = column.optional if nullable is None else nullable
    return pa.field(name, arrow_type(column, loose=null), null, marked)


def arrow_schema(row_type: Any, *, weight: bool = True) -> Any:
    """The Arrow schema of rows of this type; with `weight`, and of their weights.

    >>> arrow_schema(int)
    value: int64 not null
    __weight: int64 not null
    """
    return columns_schema(columns_of(row_type), weight=weight)


def columns_schema(columns: Columns, *, weight: bool = True) -> Any:
    """The Arrow schema of these columns; with `weight`, and of the weights of rows."""
    weights = [pa.field(WEIGHT, pa.int64(), False)] if weight else []
    return pa.schema([*(_field(name, column) for name, column in columns), *weights])


def to_arrow(
    rows: Iterable[Any], weights: Iterable[int], row_type: Any, columns: Columns | None = None
) -> Any:
    """Rows and their weights as one Arrow batch; in other `columns` than those of their type, where
    these are given.

    >>> from ebbflow.record import record
    >>> City = record("City", name=str, size=int)
    >>> batch = to_arrow([City("Rome", 3), City("Oslo", 1)], [1, -1], City)
    >>> batch.to_pydict()
    {'name': ['Rome', 'Oslo'], 'size': [3, 1], '__weight': [1, -1]}
    >>> to_arrow([City("Rome", 2**64)], [1], City)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ebbflow...SchemaMismatch: field 'size': 18446744073709551616 has more than 64 bits
        row        City(name='Rome', size=18446744073709551616)
        type       int
        try        Decimals of the hint Annotated[Decimal, (38, 0)], or texts
    """
    rows = rows if isinstance(rows, (list, tuple)) else list(rows)
    columns = columns_of(row_type) if columns is None else columns
    lists = [rows] if fields_of(row_type) is None else _turned(rows, row_type, len(columns))
    schema = columns_schema(columns)
    arrays = []
    for (name, column), values in zip(columns, lists, strict=True):
        try:
            arrays.append(encode(column, values, schema.field(name).type))
        except ColumnMismatch as mismatch:
            raise mismatch.error(name, rows[mismatch.at]) from mismatch.__cause__
    counts = list(weights)
    try:
        arrays.append(encode(_COUNT, counts, pa.int64()))
    except ColumnMismatch as mismatch:
        raise mismatch.error("", rows[mismatch.at]) from mismatch.__cause__
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def from_arrow(batch: Any, row_type: Any) -> tuple[list[Any], list[int]]:
    """The rows of an Arrow batch or table, and their weights: 1 each, when it has none.

    >>> from ebbflow.record import record
    >>> City = record("City", name=str, size=int)
    >>> from_arrow(pa.table({"name": ["Rome"], "size": [3], "__weight": [-1]}), City)
    ([City(name='Rome', size=3)], [-1])
    """
    if isinstance(batch, pa.Table):
        parts = [from_arrow(part, row_type) for part in batch.to_batches()]
        if len(parts) == 1:
            return parts[0]
        return [row for rows, _ in parts for row in rows], [w for _, some in parts for w in some]
    columns = columns_of(row_type)
    if WEIGHT in batch.schema.names:
        columns = (*columns, (WEIGHT, _COUNT))
    lists = []
    for name, column in columns:
        try:
            lists.append(decode(column, batch.column(name)))
        except ColumnMismatch as mismatch:
            found = row_at(batch, mismatch.at)
            raise mismatch.error(name, found) from mismatch.__cause__
    count = batch.num_rows
    weights = lists.pop() if columns[-1:] == ((WEIGHT, _COUNT),) else [1] * count
    return rows_of(row_type, lists, count), weights


def _turned(rows: Sequence[Any], row_type: Any, width: int) -> list[Any]:
    """Rows as one list of values per field."""
    for each in set(map(type, rows)):
        if each is not row_type and not issubclass(each, tuple):
            wrong = next(row for row in rows if type(row) is each)
            raise SchemaMismatch(
                f"a row is {type_name(wrong)}, not {type_text(row_type)}",
                row=wrong,
                remedy=f"{row_type.__name__}(...)",
            )
    if not issubclass(row_type, tuple):
        rows = list(map(taken_apart(row_type), rows))
    if set(map(len, rows)) - {width}:
        wrong = next(row for row in rows if len(row) != width)
        raise SchemaMismatch(
            f"a row has {len(wrong)} fields, and {type_text(row_type)} has {width}",
            row=wrong,
            remedy=f"{row_type.__name__}(...)",
        )
    return list(zip(*rows, strict=True)) if rows else [()] * width
