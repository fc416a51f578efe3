"""Groups by Spark's SQL: the accumulators of counts, sums and means of whole numbers.

In a bulk load, a reduce whose reducers are all of this kind is a native aggregation: Spark groups
and adds up, and one line for each group comes to Python, where it becomes the cell that the
operator would have made of the rows, and the row that it would have given. From then on the
operator goes on with these cells, change by change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ebbflow.engine.runtime.stage import Stage, Swapping
from ebbflow.engine.spark.native.functions import native, native_key, quoted
from ebbflow.engine.spark.native.queries import Queries, arranges
from ebbflow.engine.spark.table.column_types import WEIGHT, Column, columns_of
from ebbflow.engine.spark.tasks.gc_paused import gc_paused
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.report import Line, TaskReport
from ebbflow.engine.spark.tasks.task import Job, batches, routes, write_changes
from ebbflow.engine.spark.tasks.transport import replica_of
from ebbflow.errors import EbbflowError
from ebbflow.flow.plan import Reduce
from ebbflow.reducer.strategy import part_of_row, refuse_negative_size
from ebbflow.state.spine import Spine
from ebbflow.state.spine.piece import Piece

_KEY, _SIZE, _SLOT = "__key", "__rows", "__slot"
_WIDE = "decimal(19,0)"


def grouped(sql: Queries, stage: Stage) -> tuple[DataFrame, bool] | None:
    """For each group its key, how many rows it has, and the slots of its accumulators, and whether
    keys are plain values; None where that is no native query."""
    node, run = stage.node, stage.run
    if not isinstance(node, Reduce) or not isinstance(run, Swapping) or node.key is None:
        return None
    (slot,) = stage.reads
    if slot in sql.stages and arranges(sql.stages[slot]):
        return None
    frame, row_type = sql.frame(slot), sql.row_type(slot)
    shown = columns_of(stage.type)[: node.width]
    if frame is None or any(_inexact(column) for _, column in shown):
        return None
    found = native_key(node.key, frame, row_type, _KEY)
    if found is None or not _simple(found.shape):
        return None
    slots: list[Expression] = []
    for inline in run.operator.inlines:
        made = _slots(inline, row_type)
        if made is None:
            return None
        slots += made
    size = f.sum(WEIGHT).alias(_SIZE)
    named = [each.alias(f"{_SLOT}{i}") for i, each in enumerate(slots)]
    return found.frame.groupBy(*found.names).agg(size, *named), isinstance(found.shape, str)


def _inexact(column: Column) -> bool:
    """Whether a part of a key may come back as another value, if an equal one."""
    return column.form in ("bool", "any") or any(_inexact(part) for _, part in column.parts)


def _simple(shape: Any) -> bool:
    parts = shape if isinstance(shape, tuple) else (shape,)
    return bool(parts) and all(isinstance(part, str) and part != "none" for part in parts)


def _slots(inline: Any, row_type: Any) -> list[Expression] | None:
    """The slots of one reducer as sums over the rows of a group."""
    if not inline.sql:
        return None
    if inline.of is None:
        return [] if inline.sql == "count" else None
    expression = part_of_row(inline.of, row_type).expression
    value = None if expression is None else native(expression, (row_type,), (quoted,))
    if value is None or (inline.sql == "sum" and value.form != "int"):
        return None
    there = f.when(value.sql.isNotNull(), f.col(WEIGHT)).otherwise(f.lit(0))
    count = f.sum(there)
    if inline.sql == "count":
        return [count]
    total = f.sum(value.sql.cast(_WIDE) * f.col(WEIGHT).cast(_WIDE))
    return [count, f.coalesce(total, f.lit(0).cast("decimal(38,0)"))]


@dataclass(frozen=True)
class Groups:
    """Cells made of lines of `grouped`, for the stage of this number."""

    job: Job
    stage: int
    plain: bool
    """Whether keys are single values, and not tuples."""

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
        operator = stage.run.operator  # type: ignore[attr-defined]
        stored: dict[Any, Any] = {}
        rows: dict[Any, int] = {}
        for batch in given:
            names = batch.schema.names
            columns = dict(
                zip(names, (column.to_pylist() for column in batch.columns), strict=True)
            )
            parts = [columns[name] for name in names if name.startswith(_KEY)]
            slots = [list(map(int, columns[name])) for name in names if name.startswith(_SLOT)]
            keys = parts[0] if self.plain else list(zip(*parts, strict=True))
            every = zip(*slots, strict=True) if slots else [()] * len(keys)
            for key, size, values in zip(keys, columns[_SIZE], every, strict=True):
                if size < 0:
                    refuse_negative_size(key, size)
                if size:
                    cell = (size, *values)
                    stored[key] = operator.dump(key, cell)
                    rows[operator.row(key, operator.accs(cell))] = 1
        part = replica.part(stage.containers[0])
        spine = Spine(part.layout, part.keys, part.rows)
        spine.append(stored)
        token = uuid4().hex
        piece = Piece(self.job.path, self.job.epoch, token)
        piece.add(part.name, spine)
        outputs = [name for name in replica.machine.readers
                   if replica.machine.outputs[name] == stage.slot and rows]  # fmt: skip
        changes = write_changes(
            replica, dict.fromkeys(outputs, rows), self.job.path, self.job.epoch, token
        )
        waves = self.job.waves(replica)
        yield from routes(replica, replica.enter(waves, stage.slot, rows), waves, self.job.tasks)
        stats = [(self.stage, 0, len(rows), 0.0)]
        yield TaskReport(1, segments=piece.finish(), changes=changes, stats=stats).line()
