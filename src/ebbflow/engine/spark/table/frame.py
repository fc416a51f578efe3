"""What a user gives as the change of an input, in one form.

The form is a table with the columns of a row and `__weight`: how often the row is added, or, when
negative, removed. What is here already becomes an Arrow table, see `tables`; what is in Spark stays
there: a lazy DataFrame becomes another one, in native columns, and nothing is computed. Either may
have any `layout`.

Wrong columns are refused at once. A wrong value, such as a null in a field that is not optional,
fails the job that reads the rows; see `canonical`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ebbflow.engine.runtime.table.column_types import PICKLED, WEIGHT, Column, columns_of
from ebbflow.engine.runtime.table.given import table_of, unknown_remedy, unknown_text
from ebbflow.engine.runtime.table.layout import (
    ADDED,
    AFTER,
    BEFORE,
    CHANGED,
    REMOVED,
    Layout,
    image_remedy,
    image_text,
    layout_of,
    refused,
    require_columns,
    wrong_type,
)
from ebbflow.engine.spark.table.canonical import (
    FrameFields,
    SqlText,
    fits,
    quoted,
    refusing,
    sql_text,
)
from ebbflow.errors import is_redacted
from ebbflow.flow.plan import Source

_INTEGERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
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
    fields = FrameFields(source, frame.schema)
    rows = layout.how == "rows"
    weight = "1L" if rows else _weight(fields, layout)
    made = frame.selectExpr(*_texts(fields), f"{weight} AS {WEIGHT}")
    if any(column.form == "any" for _, column in columns_of(source.type)):
        made = _marked(source, made)
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
        and all(fits(schema[name].dataType, column) for name, column in columns.items())
    )


def _weight(fields: FrameFields, layout: Layout) -> str:
    """How often a row is added, as SQL."""
    source, found = fields.source, fields.schema[layout.by]
    given = quoted(layout.by)
    if layout.how == "weight":
        if not isinstance(found.dataType, _INTEGERS):
            raise wrong_type(source, layout.by, shown_type(found.dataType), Column("int"))
        remedy = "1 to add a row, -1 to remove it"
        null = refused_text(source, "a weight is null", remedy, row=fields.row())
        return f"coalesce(CAST({given} AS BIGINT), {null})"
    _require_text(source, found)
    cases = [(listed(ADDED[layout.how]), "1L"), (listed(REMOVED[layout.how]), "-1L")]
    return _otherwise(fields, layout, given, cases)


def _otherwise(
    fields: FrameFields, layout: Layout, given: str, cases: list[tuple[str, str]]
) -> str:
    """What a column means, by its values. Everything else fails, and an update alone says why."""
    source, row = fields.source, fields.row()
    if layout.how == "op":
        alone, remedy = unknown_text(layout, CHANGED), unknown_remedy(layout, CHANGED)
        cases = [*cases, (listed([CHANGED]), refused_text(source, alone, remedy, row=row))]
    whens = " ".join(f"WHEN {given} IN ({values}) THEN {made}" for values, made in cases)
    wrong = no_change(source, layout.by, given, unknown_remedy(layout, ""), row)
    return f"CASE {whens} ELSE {wrong} END"


def no_change(source: Source, column: str, given: str, remedy: str, row: str) -> str:
    """SQL that fails the job: a text should say what happens to a row, and says nothing."""
    said = "'<str>'" if is_redacted() else f"left(coalesce(CAST({given} AS STRING), 'null'), 400)"
    what = [f"input {source.name!r}: {column} ", SqlText(said), " is no change of a row"]
    return refusing(source, what, remedy, row=row)


def refused_text(source: Source, what: str, remedy: str, **facts: str) -> str:
    """SQL that fails the job with a text that is known before it runs."""
    return refusing(source, [f"input {source.name!r}: {what}"], remedy, **facts)


def listed(values: Iterable[str]) -> str:
    """Texts as a list of SQL."""
    return ", ".join(map(sql_text, values))


def _images(source: Source, frame: DataFrame, layout: Layout) -> DataFrame:
    """One entry for the row before, one for the row after, of those changes that have them."""
    op = quoted(layout.by)
    _require_text(source, frame.schema[layout.by])
    before = _image(source, frame.schema[BEFORE], -1)
    after = _image(source, frame.schema[AFTER], 1)
    cases = [
        (listed(ADDED["op"]), f"array({after})"),
        (listed(REMOVED["op"]), f"array({before})"),
        (listed([CHANGED]), f"array({before}, {after})"),
    ]
    entries = _otherwise(FrameFields(source, frame.schema), layout, op, cases)
    there = f"{op} IS NOT NULL OR {BEFORE} IS NOT NULL OR {AFTER} IS NOT NULL"
    return frame.filter(there).selectExpr(f"explode({entries}) AS entry").selectExpr("entry.*")


def _image(source: Source, field: t.StructField, weight: int) -> str:
    """The row in a struct, with its weight, as one struct."""
    data_type = field.dataType
    if not isinstance(data_type, t.StructType):
        what = f"column {field.name!r} is {shown_type(data_type)}, not a row"
        raise refused(source, what, remedy="a struct of the columns of a row")
    require_columns(source, data_type.fieldNames(), f" in {field.name!r}")
    row = ", ".join(_texts(FrameFields(source, data_type, f"{quoted(field.name)}.")))
    missing = refused_text(source, image_text(field.name), image_remedy(field.name))
    made = f"struct({row}, {weight}L AS {WEIGHT})"
    return f"IF({field.name} IS NULL, {missing}, {made})"


# ---- columns ----


def _texts(fields: FrameFields) -> list[str]:
    """The fields of a row as SQL."""
    return [f"{made} AS {quoted(name)}" for name, made in fields.fields()]


def _marked(source: Source, frame: DataFrame) -> DataFrame:
    """A frame whose columns of pickles say that they are; all of them are null."""
    marked = [
        f.col(quoted(name)).alias(name, metadata=dict(PICKLED)) if column.form == "any"
        else f.col(quoted(name))
        for name, column in columns_of(source.type)
    ]  # fmt: skip
    return frame.select(*marked, WEIGHT)


def shown_type(data_type: t.DataType) -> str:
    """A type as Spark writes it."""
    return str(data_type.simpleString())


def _require_text(source: Source, field: t.StructField) -> None:
    if not isinstance(field.dataType, t.StringType):
        raise wrong_type(source, field.name, shown_type(field.dataType), Column("text"))
