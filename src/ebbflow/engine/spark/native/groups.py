"""Groups by Spark's SQL: the accumulators of counts, sums and means of whole numbers.

In a bulk load, a reduce whose reducers are all of this kind is a native aggregation: Spark groups
and adds up, and one line for each group comes to Python, where it becomes the cell that the
operator would have made of the rows. From then on the operator goes on with these cells, change by
change. A sum of more than 64 bits fails the job, as `native.functions` says, and Python adds up
instead.

The rows of counts and sums are a query too, so what reads them may be one. A mean is rounded in
another way by Spark: there Python makes the rows, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ebbflow.engine.runtime.gc_paused import gc_paused
from ebbflow.engine.runtime.stage import Stage
from ebbflow.engine.runtime.table.column_types import WEIGHT, Column, columns_of
from ebbflow.engine.spark.native.functions import KeyColumns, native_key, native_value
from ebbflow.engine.spark.native.values import NotNative, Value, fitted, named, shown
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.report import Line, TaskReport
from ebbflow.engine.spark.tasks.sending import routes
from ebbflow.engine.spark.tasks.task import EpochJob, batches, write_changes
from ebbflow.engine.spark.tasks.transport import replica_of
from ebbflow.errors import EbbflowError
from ebbflow.record import fields_of
from ebbflow.reducer.library import TOTAL
from ebbflow.reducer.strategy import part_of_row, refuse_negative_size
from ebbflow.state.spine import Spine
from ebbflow.state.spine.columns import ColumnShape
from ebbflow.state.spine.columns_hash import encoded_column
from ebbflow.state.spine.piece import Piece

_KEY, _SIZE, _SLOT = "__key", "__rows", "__slot"
_PLAIN = {"int", "text", "date"}
"""Encodings of keys that are the same whether they are made of columns or of values."""


def group_query(stage: Stage, frame: DataFrame, row_type: Any) -> KeyColumns:
    """For each group of the rows of a frame its key, how many rows it has, and the slots of its
    accumulators; `NotNative` where Spark has none that are the same."""
    node: Any = stage.node
    if node.key is None:
        raise NotNative("all rows are one group")
    for _, column in columns_of(stage.type)[: node.width]:
        _require_exact(column)
    found = native_key(node.key, frame, row_type, _KEY)
    if not is_simple(found.shape):
        raise NotNative("a key in a key")
    slots = [each for inline in stage.operator.inlines for each in _slots(inline, row_type)]
    size = f.sum(WEIGHT).alias(_SIZE)
    named = [each.alias(f"{_SLOT}{i}") for i, each in enumerate(slots)]
    return found._replace(frame=found.frame.groupBy(*found.names).agg(size, *named))


def group_rows(stage: Stage, lines: KeyColumns, row_type: Any) -> DataFrame | None:
    """The rows that a reduce gives, from the lines of `group_query`; None where Spark would give
    others."""
    node: Any = stage.node
    key = native_value(node.key, row_type)
    parts = [key] if isinstance(lines.shape, str) else key.parts
    values = [
        Value(part.column, f.col(name)) for part, name in zip(parts, lines.names, strict=True)
    ]
    at = 0
    for inline in stage.operator.inlines:
        slots = [f.col(f"{_SLOT}{at + i}") for i in range(len(inline.slots))]
        at += len(slots)
        if inline.result == "{size}":
            values.append(Value(Column("int"), f.col(_SIZE)))
        elif inline.result == "{0}":
            values.append(Value(Column("int"), slots[0]))
        elif inline.result == TOTAL:
            some = native_value(part_of_row(inline.of, row_type), row_type).optional
            total = f.when(slots[0] != 0, slots[1]) if some else slots[1]
            values.append(Value(Column("int", optional=some), total))
        else:
            return None
    wanted = columns_of(stage.type)
    if fields_of(stage.type) is None or len(wanted) != len(values):
        return None
    try:
        made = [named(fitted(value, column), name)
                for value, (name, column) in zip(values, wanted, strict=True)]  # fmt: skip
    except NotNative:
        return None
    there = lines.frame.filter(f.col(_SIZE) > 0)
    return there.select(*made, f.lit(1).cast("long").alias(WEIGHT))


def _require_exact(column: Column) -> None:
    """No part of a key may come back as another value, if an equal one."""
    if column.form in ("bool", "any"):
        raise NotNative(f"a key of {shown(column)}")
    for _, part in column.parts:
        _require_exact(part)


def is_simple(shape: Any) -> bool:
    """Whether a key of this shape is a value, or a tuple of values, and none of them always None.

    >>> is_simple("bigint"), is_simple(("bigint", "string")), is_simple(("bigint", "none"))
    (True, True, False)
    """
    parts = shape if isinstance(shape, tuple) else (shape,)
    return bool(parts) and all(isinstance(part, str) and part != "none" for part in parts)


def _slots(inline: Any, row_type: Any) -> list[Expression]:
    """The slots of one reducer as sums over the rows of a group."""
    if inline.of is None and inline.sql == "count" and not inline.when:
        return []
    if not inline.sql or inline.of is None or inline.when:
        raise NotNative("a reducer that is no count, sum or mean")
    value = native_value(part_of_row(inline.of, row_type), row_type)
    if inline.sql == "sum" and value.form != "int":
        raise NotNative(f"a sum of {shown(value.column)}")
    count, none = f.sum(WEIGHT), f.lit(0).cast("long")
    if value.optional:
        count = f.sum(f.when(value.sql.isNotNull(), f.col(WEIGHT)).otherwise(none))
    if inline.sql == "count":
        return [count]
    return [count, f.coalesce(f.sum(value.sql * f.col(WEIGHT)), none)]


def group_cells(lines: Any, plain: bool) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """The keys of lines of `group_query`, each with the cell of its rows; `plain` keys are single
    values, and not tuples."""
    names = lines.schema.names
    columns = dict(zip(names, (column.to_pylist() for column in lines.columns), strict=True))
    parts = [columns[name] for name in names if name.startswith(_KEY)]
    slots = [columns[name] for name in names if name.startswith(_SLOT)]
    keys = parts[0] if plain else zip(*parts, strict=True)
    yield from zip(keys, zip(columns[_SIZE], *slots, strict=True), strict=True)


def _refuse_negative(lines: Any, plain: bool) -> None:
    """An error where a group would have fewer rows than none."""
    for key, cell in group_cells(lines.filter(pc.field(_SIZE) < 0), plain):
        refuse_negative_size(key, cell[0])


@dataclass(frozen=True)
class WriteGroups:
    """Cells made of lines of `group_query`, for the stage of this number."""

    job: EpochJob
    stage: int
    plain: bool
    """Whether keys are single values, and not tuples."""
    alone: bool
    """Whether nobody asks for the rows, as they are a query."""

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        replica = replica_of(self.job.program)
        try:
            lines = list(self._lines(replica, given))
        except EbbflowError as error:
            lines = [TaskReport.failed(error, 1).line()]
        yield from batches(lines)

    def _lines(self, replica: Replica, given: Iterator[Any]) -> Iterator[Line]:
        stage = replica.machine.stages[self.stage]
        operator = stage.operator
        part = replica.part(stage.containers[0])
        spine = Spine(part.layout, part.keys, part.rows)
        rows: dict[Any, int] = {}
        some = [batch for batch in given if batch.num_rows]
        count = 0
        if some:
            lines = pa.Table.from_batches(some).filter(pc.field(_SIZE) != 0)
            count = len(lines)
            _refuse_negative(lines, self.plain)
            if not self.alone:
                for key, cell in group_cells(lines, self.plain):
                    rows[operator.row(key, operator.accs(cell))] = 1
            if operator.loop is None or not self._as_columns(spine, lines):
                cells = group_cells(lines, self.plain)
                spine.append({key: operator.dump(key, cell) for key, cell in cells})
        token = uuid4().hex
        piece = Piece(self.job.files, self.job.epoch, token)
        piece.add(part.name, spine)
        outputs = [name for name in replica.machine.readers
                   if replica.machine.outputs[name] == stage.slot and rows]  # fmt: skip
        changes = write_changes(
            replica, dict.fromkeys(outputs, rows), self.job.files, self.job.epoch, token
        )
        waves = self.job.waves(replica)
        yield from routes(replica, replica.enter(waves, stage.slot, rows), waves, self.job.tasks)
        stats = [(self.stage, 0, count, 0.0)]
        yield TaskReport(1, segments=piece.finish(), changes=changes, stats=stats).line()

    def _as_columns(self, spine: Spine, lines: Any) -> bool:
        """Whether the cells went in as columns, as `ReduceGroups.dump` has those of whole
        numbers."""
        keys = [encoded_column(lines.column(n)) for n in lines.schema.names if n.startswith(_KEY)]
        encodings = tuple(encoding for encoding, _ in keys)
        if not _PLAIN.issuperset(encodings):
            return False
        slots = [lines.column(n) for n in lines.schema.names if n == _SIZE or n.startswith(_SLOT)]
        cells = [pa.nulls(len(lines)), *(encoded_column(slot)[1] for slot in slots)]
        spine.append_columns(
            (ColumnShape("one" if self.plain else "tuple", encodings), [key for _, key in keys]),
            (ColumnShape("tuple", ("none", *["int"] * len(slots))), cells),
        )
        return True
