"""Feeds and keys in DataFrames of Spark, as frames of events: the columns of a row, which are null
where a row is taken away, but for its key; `__weight`, 1 for a row that is put in and -1 for one
that is taken away; and `__at`, where no field says when it happened. Nothing runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ebbflow.change.requests import Feed
from ebbflow.engine.runtime.events import EventOrder, is_several, key_fields, part_fields
from ebbflow.engine.runtime.table.column_types import WEIGHT, columns_of
from ebbflow.engine.runtime.table.feed_tables import AT, require_key_columns
from ebbflow.engine.runtime.table.feeds import PUT, SKIP, TAKE, FeedLayout, feed_layout
from ebbflow.engine.runtime.table.layout import (
    AFTER,
    BEFORE,
    image_remedy,
    image_text,
    layout_of,
    refused,
    require_columns,
)
from ebbflow.engine.runtime.table.libraries import arrow_of
from ebbflow.engine.runtime.tables import holds_rows
from ebbflow.engine.spark.borrowed import frame_of_table
from ebbflow.engine.spark.table.canonical import FrameFields, constant, quoted
from ebbflow.engine.spark.table.frame import frame_of, no_change, refused_text, shown_type
from ebbflow.engine.spark.table.schema import open_type, schema_of
from ebbflow.flow.plan import Source


def feed_frame(source: Source, request: Feed, order: EventOrder) -> DataFrame:
    """A feed as a frame of events."""
    frame: DataFrame = request.rows
    layout = feed_layout(source, frame.columns, request, order.column)
    op = quoted(layout.column)
    sign = _sign(source, layout, frame.schema, op)
    if layout.images:
        images = {name: _image(source, frame.schema[name]) for name in (BEFORE, AFTER)}
        require_columns(source, images[AFTER].fieldNames(), f" in {AFTER!r}")
        needed = _needed(source, order)
        before = _row(source, images[BEFORE], f"{quoted(BEFORE)}.", needed)
        after = _row(source, images[AFTER], f"{quoted(AFTER)}.", None)
        row = [
            (name, f"CASE WHEN {sign} = {TAKE} THEN {old} ELSE {new} END")
            for (name, old), (_, new) in zip(before, after, strict=True)
        ]
        for name, which in ((BEFORE, TAKE), (AFTER, PUT)):
            shown = FrameFields(source, frame.schema).row()
            missing = refused_text(source, image_text(name), image_remedy(name), row=shown)
            sign = f"IF({sign} = {which} AND {name} IS NULL, {missing}, {sign})"
        frame = frame.filter(f"{op} IS NOT NULL OR {BEFORE} IS NOT NULL OR {AFTER} IS NOT NULL")
    else:
        require_columns(source, layout.row)
        row = list(_row(source, frame.schema, "", None))
    times = [f"{quoted(order.column)} AS {AT}"] if order.column else []
    made = frame.selectExpr(*_named(row), f"CAST({sign} AS BIGINT) AS {WEIGHT}", *times)
    return made.filter(f.col(WEIGHT) != SKIP)


def _sign(source: Source, layout: FeedLayout, schema: t.StructType, op: str) -> str:
    """What happens to a row, as SQL."""
    data_type = schema[layout.column].dataType
    cls: Any = str if isinstance(data_type, t.StringType) else int
    cls = bool if isinstance(data_type, t.BooleanType) else cls
    cases = ""
    for values, sign in ((layout.puts, PUT), (layout.takes, TAKE), (layout.skips, SKIP)):
        some = [constant(value) for value in values if type(value) is cls]
        if some:
            cases += f" WHEN {op} IN ({', '.join(some)}) THEN {sign}"
    known = ", ".join(repr(value) for value in (*layout.puts, *layout.takes))
    if not cases:
        raise refused(
            source,
            f"column {layout.column!r} is {shown_type(data_type)}, and what it should say is not",
            values=known,
            remedy="cast the column, or name its own values",
        )
    row = FrameFields(source, schema).row()
    wrong = no_change(source, layout.column, op, f"one of {known}", row)
    return f"CASE{cases} ELSE {wrong} END"


def upsert_frame(source: Source, rows: Any, keys: Any) -> tuple[bool, DataFrame]:
    """Rows to put in, if there are any, and keys to delete, as one frame of events; and whether the
    keys say when they were deleted."""
    if rows is not None and isinstance(rows, DataFrame):
        if layout_of(source, rows.columns).how != "rows":
            raise refused(
                source,
                "rows to upsert have a column that says what happens to them",
                remedy="rows alone with the keys to delete; or feed(...), or step() by weights",
            )
        rows = frame_of(source, rows)
    if not isinstance(keys, DataFrame):
        assert isinstance(rows, DataFrame)
        keys = _keys_frame(rows.sparkSession, source, keys)
    timed = require_key_columns(source, keys.columns)
    some = [name for name in keys.columns if name in _needed(source, EventOrder(source.sequence))]
    made = _named(_row(source, keys.schema, "", some))
    gone = keys.selectExpr(*made, f"CAST({TAKE} AS BIGINT) AS {WEIGHT}")
    if rows is None:
        return timed, gone
    if not isinstance(rows, DataFrame):
        rows = frame_of_table(gone.sparkSession, rows, schema_of(source.type, weight=True))
    return timed, rows.unionByName(gone)


def _keys_frame(session: SparkSession, source: Source, keys: Any) -> DataFrame:
    """Keys that are here, as a frame with the columns of the key."""
    if holds_rows(keys):
        return frame_of_table(session, arrow_of(source, keys, list)[0])
    fields = key_fields(source)
    if fields is None:
        raise refused(
            source,
            "keys to delete were given with a DataFrame, and the key is not made of fields",
            remedy="Input(..., key=) with a field, or several in a tuple; or delete them apart",
        )
    columns = dict(columns_of(source.type))
    schema = t.StructType([t.StructField(name, open_type(columns[name])) for name in fields])
    several = is_several(source.key)
    return session.createDataFrame([tuple(key) if several else (key,) for key in keys], schema)


def _needed(source: Source, order: EventOrder) -> set[str]:
    """The fields that a row which is taken away must have."""
    by = None if order.part is None else part_fields(order.part)
    fields = key_fields(source)
    if fields is None or (order.part is not None and by is None):
        return {name for name, _ in columns_of(source.type)}
    return {*fields, *(by or ())}


def _row(
    source: Source, schema: t.StructType, prefix: str, some: Iterable[str] | None
) -> Iterator[tuple[str, str]]:
    """The columns of a row as SQL, each with its name: those that are in the schema, or `some` of
    them; all others are null."""
    fields = FrameFields(source, schema, prefix, nulls=True)
    for name, column in columns_of(source.type):
        there = name in schema.fieldNames() if some is None or prefix else name in some
        if not there:
            if some is not None and name in some:
                raise refused(
                    source,
                    f"a row is deleted, and there is no column {name!r}",
                    remedy="the columns of the key and of the sequence, for deletes too",
                )
            yield name, f"CAST(NULL AS {open_type(column).simpleString()})"
        else:
            yield name, fields.field(name)


def _named(row: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{made} AS {quoted(name)}" for name, made in row]


def _image(source: Source, field: t.StructField) -> t.StructType:
    if not isinstance(field.dataType, t.StructType):
        what = f"column {field.name!r} is {shown_type(field.dataType)}, not a row"
        raise refused(source, what, remedy="a struct of the columns of a row")
    return field.dataType
