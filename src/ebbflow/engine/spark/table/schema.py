"""Row types to Spark schemas and back.

Which hint becomes which column is said in `column_types`; here columns become Spark's types, and
Spark's types become hints again. `schema_of(row_type_of(schema, name)) == schema`, up to two
things. Rows of Python know one kind of integer and one of float, so every integer is a long and
every float a double. And in a struct that may be null, all fields may be.

Columns that cannot be fields of a row are refused by name.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any

from pyspark.sql import types as t

from ebbflow.engine.runtime.table.column_types import (
    KEYS,
    PICKLED,
    PLAIN,
    WEIGHT,
    Column,
    columns_of,
)
from ebbflow.errors import CompositionError, Text
from ebbflow.flow.types import DIGITS
from ebbflow.record import record

_TYPES: dict[str, t.DataType] = {
    "int": t.LongType(),
    "float": t.DoubleType(),
    "bool": t.BooleanType(),
    "text": t.StringType(),
    "bytes": t.BinaryType(),
    "date": t.DateType(),
    "time": t.TimestampNTZType(),
    "instant": t.TimestampType(),
    "any": t.BinaryType(),
}
_HINTS: dict[type[t.DataType], Any] = {
    t.ByteType: int,
    t.ShortType: int,
    t.IntegerType: int,
    t.LongType: int,
    t.FloatType: float,
    t.DoubleType: float,
    t.BooleanType: bool,
    t.StringType: str,
    t.CharType: str,
    t.VarcharType: str,
    t.BinaryType: bytes,
    t.DateType: date,
    t.TimestampNTZType: datetime,
    t.TimestampType: Annotated[datetime, UTC],
}
_KEYS = [cls for cls, form in PLAIN.items() if form in KEYS]


def schema_of(row_type: Any, *, weight: bool = False) -> t.StructType:
    """The Spark schema of rows of this type; with `weight`, and of their weights.

    >>> from ebbflow.record import record
    >>> schema_of(record("City", name=str, size=int | None)).simpleString()
    'struct<name:string,size:bigint>'
    """
    fields = [_field(name, column) for name, column in columns_of(row_type)]
    return t.StructType(
        [*fields, *([t.StructField(WEIGHT, t.LongType(), False)] if weight else [])]
    )


def spark_type(column: Column, *, loose: bool = False) -> t.DataType:
    """The Spark type of a column."""
    if column.form == "decimal":
        return t.DecimalType(*column.digits)
    if column.form in ("list", "set"):
        ((_, inside),) = column.parts
        return t.ArrayType(spark_type(inside), inside.optional)
    if column.form == "map":
        (_, key), (_, value) = column.parts
        return t.MapType(spark_type(key), spark_type(value), value.optional)
    if column.form == "record":
        return t.StructType([_field(*field) for field in column.inside(loose)])
    return _TYPES[column.form]


def open_type(column: Column) -> t.DataType:
    """The type of a column with nulls everywhere: Spark refuses to cast to one without."""

    def opened(column: Column) -> Column:
        parts = tuple((name, opened(part)) for name, part in column.parts)
        return replace(column, optional=True, parts=parts)

    return spark_type(opened(column))


def _field(name: str, column: Column, nullable: bool | None = None) -> t.StructField:
    marked = dict(PICKLED) if column.form == "any" else None
    null = column.optional if nullable is None else nullable
    return t.StructField(name, spark_type(column, loose=null), null, marked)


def row_type_of(schema: t.StructType, name: str) -> type[Any]:
    """A row type for the rows of a DataFrame; a column of weights is left out.

    >>> fields = [t.StructField("city", t.StringType(), False), t.StructField("n", t.IntegerType())]
    >>> Row = row_type_of(t.StructType(fields), "Row")
    >>> Row("Rome", None)
    Row(city='Rome', n=None)
    """
    fields = [field for field in schema.fields if field.name != WEIGHT]
    return record(name, **{field.name: _hint(field, name, field.name) for field in fields})


def _hint(field: t.StructField, name: str, path: str) -> Any:
    if (field.metadata or {}).get("ebbflow") == PICKLED["ebbflow"]:
        return Any
    return _either(_inside(field.dataType, name, path), field.nullable)


def _either(hint: Any, nullable: bool) -> Any:
    return hint | None if nullable else hint


def _inside(data_type: t.DataType, name: str, path: str) -> Any:
    if isinstance(data_type, t.DecimalType):
        digits = data_type.precision, data_type.scale
        return Decimal if digits == DIGITS else Annotated[Decimal, digits]
    if isinstance(data_type, t.ArrayType):
        inside: Any = _either(
            _inside(data_type.elementType, name, f"{path}[]"), data_type.containsNull
        )
        return tuple.__class_getitem__((inside, ...))
    if isinstance(data_type, t.MapType) and _HINTS.get(type(data_type.keyType)) in _KEYS:
        value = _either(
            _inside(data_type.valueType, name, f"{path}[]"), data_type.valueContainsNull
        )
        return dict.__class_getitem__((_HINTS[type(data_type.keyType)], value))
    if isinstance(data_type, t.StructType):
        return _struct(data_type, name, path)
    hint = _HINTS.get(type(data_type))
    if hint is None:
        raise CompositionError(
            f"a row of {name} cannot have a field {path!r} of type {data_type.simpleString()}",
            types=Text("numbers, text, bytes, dates, times, decimals, arrays, maps, structs"),
            remedy=f'cast it: df.withColumn({path.partition("[")[0]!r}, ...cast("string"))',
        )
    return hint


def _struct(data_type: t.StructType, name: str, path: str) -> Any:
    """A tuple where the fields are named as those of one, else a record named after its path."""
    names = data_type.fieldNames()
    if names and names == [f"_{i}" for i in range(len(names))]:
        return tuple.__class_getitem__(
            tuple(_hint(field, name, f"{path}.{field.name}") for field in data_type.fields)
        )
    made = "_".join([name, *(p for p in path.replace("[]", "").split(".") if p)])
    return record(made, **{f.name: _hint(f, name, f"{path}.{f.name}") for f in data_type.fields})
