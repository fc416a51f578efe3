"""Export: a Z-set as a table of Arrow, pandas or Polars, with the columns of its row type.

`ZSet.to_arrow`, `to_pandas` and `to_polars` are these functions. The row type is what the view knew
that gave the Z-set, so an empty one has the same columns as any other. Where a field has no known
type, its values say what it is; a value of which nobody could make a column is an error, and never
a pickle.

A *value* of a view has every row as often as it is there; a *change* has every row once, and its
weight in the column `__weight`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, reduce
from operator import or_
from types import NoneType
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from ebbflow.engine.runtime.table.arrow import arrow_schema, columns_schema, to_arrow
from ebbflow.engine.runtime.table.column_types import PLAIN, Column, Columns, column_of, columns_of
from ebbflow.engine.runtime.table.untyped import pickled
from ebbflow.errors import AlgebraError, CompositionError, SchemaMismatch, type_name
from ebbflow.frozen import Frozen
from ebbflow.record import fields_of
from ebbflow.zset import OfColumns, ZSet, weights_of

CHUNK = 1 << 16
UNKNOWN = Column("null", optional=True)
"""The column of a field that has no type, and no values to tell."""


def arrow_table(rows: ZSet[Any], row_type: Any, *, weights: bool) -> Any:
    """A Z-set as a `pyarrow.Table`.

    >>> arrow_table(ZSet({3: 2, 5: 1}), int, weights=False).to_pydict()
    {'value': [3, 3, 5]}
    >>> arrow_table(ZSet(), int, weights=True).schema
    value: int64 not null
    __weight: int64 not null
    """
    if isinstance(rows, OfColumns) and row_type is rows.columns.type:
        table = rows.columns.table(_schema(row_type))
        counts = rows.columns.weights.tolist() if not weights else []
        return table if weights else _repeated(table, rows, counts)
    there, counts = list(rows), list(weights_of(rows).values())
    row_type = _row_type(there) if row_type is Any else row_type
    columns = known_columns(there, row_type)
    made = [
        to_arrow(there[i : i + CHUNK], counts[i : i + CHUNK], row_type, columns)
        for i in range(0, len(there), CHUNK)
    ]
    table = pa.Table.from_batches(made, columns_schema(columns))
    return table if weights else _repeated(table, rows, counts)


_schema = cache(arrow_schema)


def numpy_arrays(rows: ZSet[Any], row_type: Any, *, weights: bool) -> dict[str, Any]:
    """A Z-set as a dict of NumPy arrays, one for each field, and one of weights.

    >>> numpy_arrays(ZSet({3: 2, 5: 1}), int, weights=False)["value"].tolist()
    [3, 3, 5]
    """
    if isinstance(rows, OfColumns) and row_type is rows.columns.type and weights:
        found: dict[str, Any] = rows.columns.arrays()
        return found
    table = arrow_table(rows, row_type, weights=weights)
    return {
        field.name: _numpy(column, field.nullable)
        for field, column in zip(table.schema, table.columns, strict=True)
    }


def _numpy(column: Any, nullable: bool) -> Any:
    """An array of NumPy's own ints, floats, truth values or times; of anything else, and where
    there may be None, of Python's objects."""
    held = column.type
    plain = pa.types.is_integer(held) or pa.types.is_floating(held) or pa.types.is_boolean(held)
    if not nullable and (plain or held in (pa.date32(), pa.timestamp("us"))):
        found = column.to_numpy()
    else:
        found = np.empty(len(column), object)
        found[:] = column.to_pylist()
    found.flags.writeable = False
    return found


def _repeated(table: Any, rows: ZSet[Any], counts: list[int]) -> Any:
    """Every row as often as it is there, without the weights."""
    if counts and min(counts) < 0:
        wrong = next(row for row, weight in rows.items() if weight < 0)
        raise AlgebraError(
            "a row of negative weight cannot be listed",
            row=wrong,
            weight=rows.weight(wrong),
            remedy="weights=True, which gives every row once with its weight",
        )
    bare = table.remove_column(table.num_columns - 1)
    if not counts or max(counts) == 1:
        return bare
    if not bare.num_columns:
        raise SchemaMismatch("rows without fields cannot be repeated", remedy="weights=True")
    return bare.take(pa.array(np.repeat(np.arange(len(counts)), counts)))


def pandas_frame(table: Any) -> Any:
    """An Arrow table as a pandas DataFrame: where a column may be null, numbers and truth values
    have the dtypes that know nulls, so that an int stays one.

    >>> from ebbflow.record import record
    >>> Row = record("Row", a=int, b=int | None)
    >>> pandas_frame(arrow_table(ZSet.of([Row(1, None)]), Row, weights=False)).dtypes.to_dict()
    {'a': dtype('int64'), 'b': Int64Dtype()}
    """
    pandas = _library("pandas")
    nullable = {
        pa.int64(): pandas.Int64Dtype(),
        pa.float64(): pandas.Float64Dtype(),
        pa.bool_(): pandas.BooleanDtype(),
    }
    columns = {
        field.name: column.to_pandas(types_mapper=nullable.get if field.nullable else None)
        for field, column in zip(table.schema, table.columns, strict=True)
    }
    return pandas.DataFrame(columns, index=pandas.RangeIndex(table.num_rows))


def polars_frame(table: Any) -> Any:
    """An Arrow table as a Polars DataFrame."""
    return _library("polars").from_arrow(table)


def _library(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise CompositionError(f"to_{name}() needs {name}", remedy=f"pip install {name}") from error


# ---- fields of no known type ----


def known_columns(rows: Sequence[Any], row_type: Any) -> Columns:
    """The columns of a row type; where one would be pickled, what the values in these rows say.

    >>> from ebbflow.record import record
    >>> Row = record("Row", a=Any)
    >>> [str(column) for _, column in known_columns([Row(1), Row(None)], Row)]
    ['int | None']
    """
    found = []
    for at, (name, column) in enumerate(columns_of(row_type)):
        if pickled(column) is not None:
            whole = fields_of(row_type) is None
            values = rows if whole else [row[at] for row in rows]
            column = _seen(name, values, rows)
        found.append((name, column))
    return tuple(found)


def _row_type(rows: Sequence[Any]) -> Any:
    """The row type of rows of which nothing is known: their class, where that has fields."""
    classes = set(map(type, rows))
    (cls,) = classes if len(classes) == 1 else (Any,)
    return Any if fields_of(cls) is None else cls


def _seen(name: str, values: Sequence[Any], rows: Sequence[Any]) -> Column:
    """The column that these values need."""
    hint = _hint(values)
    if hint is None:
        return UNKNOWN
    column = column_of(hint)
    if pickled(column) is None:
        return replace(column, optional=True) if None in values else column
    wrong = next((row for row, x in zip(rows, values, strict=True) if x is not None), rows[0])
    classes = sorted({type_name(x) for x in values if x is not None})
    raise SchemaMismatch(
        f"field {name!r}: its type is not known, and no column holds {' and '.join(classes[:3])}",
        row=wrong,
        remedy=f"a hint for {name!r} in the program, as ebbflow.typed gives one; or a table of "
        "what .map makes of the rows",
    )


def _hint(values: Iterable[Any]) -> Any:
    """What these values have in common, as a hint; None where there is nothing to tell by."""
    there = [value for value in values if value is not None]
    classes = set(map(type, there))
    if not classes:
        return None
    if len(classes) > 1:
        if classes <= {int, bool}:
            return int
        return float if classes <= {int, float} else Any
    (cls,) = classes
    if cls is datetime and all(value.tzinfo is not None for value in there):
        return Annotated[datetime, UTC]
    if cls in PLAIN or fields_of(cls) is not None:
        return cls
    return next((made(there) for base, made in _INSIDE.items() if issubclass(cls, base)), cls)


def _tuple_hint(there: list[Any]) -> Any:
    if len(set(map(len, there))) == 1 and there[0]:
        parts = tuple(_optional(some) for some in zip(*there, strict=True))
        return tuple[parts]  # type: ignore[valid-type]
    return tuple[_optional(x for each in there for x in each), ...]  # type: ignore[misc]


def _optional(values: Iterable[Any]) -> Any:
    """The hint of values inside others; of none, that of texts which are all null."""
    there = list(values)
    hint = _hint(there)
    known = str if hint is None else hint
    return reduce(or_, [known, NoneType]) if None in there or hint is None else known


_INSIDE: dict[type, Callable[[list[Any]], Any]] = {
    tuple: _tuple_hint,
    frozenset: lambda there: frozenset[_optional(x for each in there for x in each)],  # type: ignore[misc]
    Mapping: lambda there: Frozen.__class_getitem__(
        (
            _hint(x for each in there for x in each) or str,
            _optional(x for each in there for x in each.values()),
        )
    ),
}
