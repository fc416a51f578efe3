"""Traced functions as native columns: exactly what Python would compute, or not at all.

A function that was traced says what it computes; where each part of that has an equal in Spark, for
the types of the rows at hand, Spark can compute it and no row becomes one of Python's. What every
operator becomes is said in `native.operators`. What is not understood, or could differ for a single
value, is refused: `NotNative` says why.

Two things make the promise good. Only functions that never raise, for rows of these types, are
translated: Spark leaves out what nobody reads and moves what it likes, so an error of Python's
would come sometimes. And integers have no bounds in Python: where 64 bits are not enough the job
fails, never wraps, `is_overflow` knows the failure, and the rows are computed in Python instead.

    fn(row) == native(fn)(row)    with the same type, or the job fails with an overflow
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ebbflow.engine.runtime.table.column_types import WEIGHT, Column, columns_of
from ebbflow.engine.spark.native.compare import BEYOND
from ebbflow.engine.spark.native.values import (
    NOTHING,
    NotNative,
    Value,
    fitted,
    named,
    shown,
)
from ebbflow.engine.spark.native.walk import Columns, Walk
from ebbflow.engine.spark.table.schema import spark_type
from ebbflow.expression.node import Expression
from ebbflow.fn import Fn
from ebbflow.record import fields_of

UNTRACED = "it is not traced"
_KEYS = ("int", "bool", "text", "bytes", "date", "time", "instant", "decimal")
_OVERFLOWS = ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", BEYOND)


def native_map(fn: Fn, frame: DataFrame, source_type: Any, result_type: Any) -> DataFrame:
    """`fn(row)` instead of every row, with the same weights."""
    return native_merge(fn, frame, (source_type,), (quoted,), result_type)


def native_merge(
    fn: Fn,
    frame: DataFrame,
    row_types: Sequence[Any],
    columns: Sequence[Columns],
    result_type: Any,
    weight: SparkColumn | None = None,
) -> DataFrame:
    """`fn(left, right)` for every row of a frame that holds the columns of both.

    `columns[0](name)` is a column of the left row, `columns[1](name)` one of the right. The weight
    is the column `__weight` unless another is given.
    """
    value = Walk(row_types, columns).value(_expression(fn))
    wanted = columns_of(result_type)
    if fields_of(result_type) is None:
        ((name, column),) = wanted
        made = [named(fitted(value, column), name)]
    else:
        whole = fitted(value, Column("record", parts=wanted, make=result_type))
        made = [named(part, name) for (name, _), part in zip(wanted, whole.parts, strict=True)]
    return frame.select(*made, f.col(WEIGHT) if weight is None else weight.alias(WEIGHT))


def native_filter(fn: Fn, frame: DataFrame, row_type: Any) -> DataFrame:
    """The rows for which `fn(row)` is true."""
    return frame.filter(native_truth(fn, row_type))


def native_truth(fn: Fn, row_type: Any) -> SparkColumn:
    """Whether `fn(row)` is true, as a column."""
    return Walk((row_type,), (quoted,)).truth(_expression(fn)).sql


def native_value(fn: Fn, row_type: Any) -> Value:
    """`fn(row)`, as a column."""
    return Walk((row_type,), (quoted,)).value(_expression(fn))


class KeyColumns(NamedTuple):
    """A frame with the columns of a key. Keys are equal in Python where all columns are equal, null
    and null included, and the shapes are; keys of different shapes cannot be compared here."""

    frame: DataFrame
    names: list[str]
    shape: Any
    optional: tuple[bool, ...] = ()
    """Which columns may have nulls."""

    def equal(self, left: DataFrame, other: KeyColumns, right: DataFrame) -> list[SparkColumn]:
        """That keys are equal, in two frames that have their columns. Where only one side may have
        nulls, `=` says it too, and Spark is faster with that."""
        found = []
        for i, (a, b) in enumerate(zip(self.names, other.names, strict=True)):
            nulls = self.optional[i] and other.optional[i]
            found.append(left[a].eqNullSafe(right[b]) if nulls else left[a] == right[b])
        return found


def native_key(fn: Fn, frame: DataFrame, row_type: Any, prefix: str) -> KeyColumns:
    """The frame with `fn(row)` in columns of its own, named after the prefix and a number.

    A tuple becomes several columns, None none at all, and a bool is an int.
    """
    parts, shape = _flat(native_value(fn, row_type))
    names = [f"{prefix}{i}" for i in range(len(parts))]
    added = [part.alias(name) for name, (part, _) in zip(names, parts, strict=True)]
    nulls = tuple(optional for _, optional in parts)
    return KeyColumns(frame.select("*", *added), names, shape, nulls)


def is_overflow(error: BaseException) -> bool:
    """Whether a job failed as a number was too large for a column: Python can compute it.

    >>> is_overflow(ValueError("[ARITHMETIC_OVERFLOW] long overflow")), is_overflow(ValueError())
    (True, False)
    """
    seen: BaseException | None = error
    while seen is not None:
        text = str(seen)
        if any(sign in text for sign in _OVERFLOWS):
            return True
        seen = seen.__cause__
    return False


def quoted(name: str) -> SparkColumn:
    """A column of a frame by its name, whatever is in the name."""
    return f.col(f"`{name}`")


def _expression(fn: Fn) -> Expression:
    if fn.expression is None:
        raise NotNative(UNTRACED)
    return fn.expression


def _flat(value: Value) -> tuple[list[tuple[SparkColumn, bool]], Any]:
    """The columns of a key, each with whether it may have nulls, and what must be the same of two
    keys for them to be compared."""
    if value.column == NOTHING:
        return [], "none"
    if value.form == "record" and not value.optional and value.column.make.__eq__ is tuple.__eq__:
        inside = [_flat(part) for part in value.parts]
        found = [column for columns, _ in inside for column in columns]
        return found, tuple(shape for _, shape in inside)
    if value.form not in _KEYS:
        raise NotNative(f"a key of {shown(value.column)}")
    if value.form == "bool":
        return [(value.sql.cast("long"), value.optional)], "bigint"
    return [(value.sql, value.optional)], str(spark_type(value.column).simpleString())
