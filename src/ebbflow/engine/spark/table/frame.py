"""What a user gives as the change of an input, in one form.

The form is a table with the columns of a row and `__weight`: how often the row is added, or, when
negative, removed. What is here already becomes an Arrow table, see `tables`; what is in Spark stays
there: a lazy DataFrame becomes another one, in native columns, and nothing is computed. Either may
have any `layout`.

What can be seen from the columns is refused at once. What can only be seen in the rows, such as a
null where the hint has none, fails the job that reads them, with the same words; a null inside a
list, a map or a record is found when Python first sees it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ebbflow.engine.runtime.table.column_types import PICKLED, WEIGHT, Column, columns_of
from ebbflow.engine.runtime.table.given import table_of, unknown_text
from ebbflow.engine.runtime.table.layout import (
    ADDED,
    AFTER,
    BEFORE,
    CHANGED,
    REMOVED,
    Layout,
    image_text,
    layout_of,
    refused,
    require_columns,
    wrong_type,
)
from ebbflow.engine.spark.table.schema import open_type
from ebbflow.errors import is_redacted
from ebbflow.flow.plan import Source

_INTEGERS: dict[type[t.DataType], int] = {
    t.ByteType: 3,
    t.ShortType: 5,
    t.IntegerType: 10,
    t.LongType: 19,
}
_FLOATS = (t.FloatType, t.DoubleType, t.ByteType, t.ShortType, t.IntegerType)
_SAME: dict[str, tuple[type[t.DataType], ...]] = {
    "int": tuple(_INTEGERS),
    "float": _FLOATS,
    "bool": (t.BooleanType,),
    "text": (t.StringType, t.CharType, t.VarcharType),
    "bytes": (t.BinaryType,),
    "date": (t.DateType,),
    "time": (t.TimestampNTZType,),
    "instant": (t.TimestampType,),
}
_PLAIN = (t.LongType, t.DoubleType, t.BooleanType, t.StringType, t.DateType)


def read(source: Source, given: Any) -> Any:
    """The change of an input: a DataFrame of Spark's for one, an Arrow table for all else.

    >>> from ebbflow.record import record
    >>> Order = record("Order", id=int)
    >>> read(Source(name="orders", type=Order), [Order(1), Order(1)]).to_pydict()
    {'id': [1], '__weight': [2]}
    """
    return frame_of(source, given) if isinstance(given, DataFrame) else table_of(source, given)


def frame_of(source: Source, frame: DataFrame) -> DataFrame:
    """A DataFrame of changes, in whatever layout, as one of rows with weights. Nothing runs."""
    layout = layout_of(source, frame.columns)
    if layout.how == "images":
        return _images(source, frame, layout)
    schema = frame.schema
    texts = _texts(source, schema)
    rows = layout.how == "rows"
    if rows and texts is not None:
        return frame.selectExpr(*texts, f"1L AS {WEIGHT}")
    weight = _long(1) if rows else _weight(source, schema[layout.by], layout)
    if texts is None:
        made = frame.select(*_row(source, schema, f.col), weight.alias(WEIGHT))
    else:
        made = frame.withColumn(WEIGHT, weight).selectExpr(*texts, WEIGHT)
    return made if rows else made.filter(f"{WEIGHT} != 0")


def same_as_table(source: Source, frame: DataFrame) -> bool:
    """Whether a table with the rows of a frame is read as the frame is: every column is read, and
    has a type that is one type of Arrow's."""
    columns = dict(columns_of(source.type))
    layout = layout_of(source, frame.columns)
    schema = {field.name: field for field in frame.schema}
    return (
        layout.how != "images"
        and {*schema} == {*columns, *([layout.by] if layout.how != "rows" else [])}
        and len(schema) == len(frame.columns)
        and all(isinstance(field.dataType, _PLAIN) for field in schema.values())
        and all(_fits(schema[name], column) for name, column in columns.items())
    )


def _weight(source: Source, field: t.StructField, layout: Layout) -> Expression:
    given = f.col(_quoted(layout.by))
    if layout.how == "weight":
        if not isinstance(field.dataType, tuple(_INTEGERS)):
            raise wrong_type(source, layout.by, shown_type(field.dataType), Column("int"))
        return f.coalesce(given.cast("long"), fail(source, f.lit("a weight is null"), "long"))
    _require_text(source, field)
    weight = f.when(given.isin(*ADDED[layout.how]), _long(1))
    weight = weight.when(given.isin(*REMOVED[layout.how]), _long(-1))
    return _otherwise(source, layout, weight, given, "long")


def _otherwise(
    source: Source, layout: Layout, cases: Expression, given: Expression, data_type: Any
) -> Expression:
    """Everything else fails, and an update alone says why."""
    if layout.how == "op":
        alone = f.lit(unknown_text(layout, CHANGED))
        cases = cases.when(given == CHANGED, fail(source, alone, data_type))
    return cases.otherwise(fail(source, has_no_change(layout.by, given), data_type))


def has_no_change(column: str, given: Expression) -> Expression:
    """What is wrong with a text that should say what happens to a row."""
    said = (
        f.lit("<str>") if is_redacted() else f.substring(f.coalesce(given, f.lit("null")), 1, 400)
    )
    return f.concat(f.lit(f"{column} "), said, f.lit(" is no change of a row"))


def _images(source: Source, frame: DataFrame, layout: Layout) -> DataFrame:
    """One entry for the row before, one for the row after, of those changes that have them."""
    op = f.col(layout.by)
    _require_text(source, frame.schema[layout.by])
    before = _image(source, frame.schema[BEFORE], -1)
    after = _image(source, frame.schema[AFTER], 1)
    entries = t.ArrayType(_entry(source))
    cases = f.when(op.isin(*ADDED["op"]), f.array(after))
    cases = cases.when(op.isin(*REMOVED["op"]), f.array(before))
    cases = cases.when(op == CHANGED, f.array(before, after))
    there = op.isNotNull() | f.col(BEFORE).isNotNull() | f.col(AFTER).isNotNull()
    each = f.explode(_otherwise(source, layout, cases, op, entries)).alias("entry")
    return frame.filter(there).select(each).select("entry.*")


def _image(source: Source, field: t.StructField, weight: int) -> Expression:
    """The row in a struct, with its weight, as one struct."""
    data_type = field.dataType
    if not isinstance(data_type, t.StructType):
        what = f"column {field.name!r} is {shown_type(data_type)}, not a row"
        raise refused(source, what, remedy="a struct of the columns of a row")
    require_columns(source, data_type.fieldNames(), f" in {field.name!r}")
    row = list(_row(source, data_type, lambda name: f.col(f"{field.name}.{name}")))
    made = f.struct(*row, _long(weight).alias(WEIGHT))
    missing = fail(source, f.lit(image_text(field.name)), _entry(source))
    return f.when(f.col(field.name).isNull(), missing).otherwise(made)


def _entry(source: Source) -> t.StructType:
    row = [t.StructField(name, open_type(column)) for name, column in columns_of(source.type)]
    return t.StructType([*row, t.StructField(WEIGHT, t.LongType())])


# ---- columns ----


def _row(source: Source, schema: t.StructType, column_at: Any) -> Iterator[Expression]:
    for name, column in columns_of(source.type):
        made = open_column(source, schema[name], column, column_at(_quoted(name)))
        if schema[name].nullable and not column.optional:
            words = f.lit(_null_text(name, column))
            made = f.coalesce(made, fail(source, words, open_type(column)))
        yield made.alias(name, metadata=dict(PICKLED)) if column.form == "any" else made.alias(name)


def _texts(source: Source, schema: t.StructType) -> list[str] | None:
    """The columns of `_row` as SQL, which is one call to Java where columns are many for each; None
    where some of them cannot be written so."""
    found = []
    for name, column in columns_of(source.type):
        field, wanted = schema[name], open_type(column)
        if not _fits(field, column):
            raise wrong_type(source, field.name, shown_type(field.dataType), column)
        text = _quoted(name)
        if field.dataType.simpleString() != wanted.simpleString():
            text = f"CAST({text} AS {wanted.simpleString()})"
        if field.nullable and not column.optional:
            words = f"{_named(source)}{_null_text(name, column)}".replace("'", "''")
            text = f"coalesce({text}, raise_error('{words}'))"
        if column.form in ("any", "record", "list", "set", "map") or "\\" in text:
            return None
        found.append(f"{text} AS {_quoted(name)}")
    return found


def _null_text(name: str, column: Column) -> str:
    return f"field {name!r} is null, and its hint is {column}"


def open_column(
    source: Source, field: t.StructField, column: Column, made: Expression
) -> Expression:
    """A column of a frame as the field of a row, with nulls where it has them."""
    data_type, wanted = field.dataType, open_type(column)
    if not _fits(field, column):
        raise wrong_type(source, field.name, shown_type(data_type), column)
    return made if data_type.simpleString() == wanted.simpleString() else made.cast(wanted)


def _fits(field: t.StructField, column: Column) -> bool:
    """Whether every value of the one is a value of the other."""
    data_type = field.dataType
    if isinstance(data_type, t.NullType):
        return column.optional
    if column.form == "any":
        return False  # ours hold pickles, and what comes from elsewhere is never unpickled
    if column.form == "decimal":
        precision, scale = column.digits
        if isinstance(data_type, t.DecimalType):
            whole: int = data_type.precision - data_type.scale
            return bool(data_type.scale <= scale and whole <= precision - scale)
        return _INTEGERS.get(type(data_type), 99) <= precision - scale
    parts = [part for _, part in column.parts]
    if column.form in ("list", "set"):
        return isinstance(data_type, t.ArrayType) and _fits(_part(data_type.elementType), parts[0])
    if column.form == "map":
        return (
            isinstance(data_type, t.MapType)
            and _fits(_part(data_type.keyType), parts[0])
            and _fits(_part(data_type.valueType), parts[1])
        )
    if column.form == "record":
        return (
            isinstance(data_type, t.StructType)
            and data_type.fieldNames() == [name for name, _ in column.parts]
            and all(map(_fits, data_type.fields, parts))
        )
    return isinstance(data_type, _SAME[column.form])


def _part(data_type: t.DataType) -> t.StructField:
    return t.StructField("part", data_type)


def shown_type(data_type: t.DataType) -> str:
    """A type as Spark writes it."""
    return str(data_type.simpleString())


def _require_text(source: Source, field: t.StructField) -> None:
    if not isinstance(field.dataType, t.StringType):
        raise wrong_type(source, field.name, shown_type(field.dataType), Column("text"))


def fail(source: Source, words: Expression, data_type: Any) -> Expression:
    """An expression that fails the job, where it is evaluated."""
    said = f.concat(f.lit(_named(source)), words)
    return f.raise_error(said).cast(data_type)


def _named(source: Source) -> str:
    return f"input {source.name!r}: "


def _long(number: int) -> Expression:
    return f.lit(number).cast("long")


def _quoted(name: str) -> str:
    return f"`{name}`"
