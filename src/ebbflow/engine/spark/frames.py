"""What a view gives: DataFrames of the rows of outputs, and of what changed in them.

Both are lazy: nothing is read until Spark runs a job on them. They are of one epoch, and can be
read for as long as that epoch is kept (`keep_epochs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ebbflow.engine.local.inputs import Elsewhere
from ebbflow.engine.spark.arrow import arrow_schema, from_arrow, to_arrow
from ebbflow.engine.spark.kinds import WEIGHT
from ebbflow.engine.spark.replica import Replica
from ebbflow.engine.spark.schema import schema_of
from ebbflow.engine.spark.ship import add, limits, replica_of, settled
from ebbflow.engine.spark.sql import Sql
from ebbflow.engine.spark.task import CHANGES, Job
from ebbflow.state.backing import Backing
from ebbflow.state.spine.columns import decode
from ebbflow.state.spine.segment import Part
from ebbflow.zset import trusted

_CHUNK = 1 << 16


class Frames(Mapping[str, DataFrame]):
    """A DataFrame for each output, made when it is asked for.

    >>> frames = Frames(["a", "b"], lambda name: print("made", name))
    >>> frames["a"]; list(frames)
    made a
    ['a', 'b']
    """

    def __init__(self, names: list[str], make: Callable[[str], DataFrame]) -> None:
        self._names, self._make = names, make
        self._made: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<DataFrames of {', '.join(self._names)}>"


def changed(session: SparkSession, path: str, files: list[str], kind: Any) -> DataFrame:
    """The changes in these files."""
    schema = schema_of(kind, weight=True)
    if not files:
        return session.createDataFrame([], schema)
    places = [(Path(path) / CHANGES / file).as_uri() for file in files]
    return session.read.schema(schema).parquet(*places)


def weighted(session: SparkSession, job: Job, name: str, kind: Any) -> DataFrame:
    """The rows of an output with their weights, read from the state."""
    schema = schema_of(kind, weight=True)
    return session.range(0, job.tasks, 1, job.tasks).mapInArrow(Read(job, name), schema)


def repeated(frame: DataFrame, name: str) -> DataFrame:
    """Every row as often as it is there."""
    owed = f.raise_error(
        f.lit(f"output {name!r} has rows of negative weight, behind `-`: read view.weighted")
    )
    count = f.when(f.col(WEIGHT) > 0, f.col(WEIGHT)).otherwise(owed.cast("long"))
    once = f.explode(f.array_repeat(f.lit(1), count.cast("int")))
    return frame.withColumn(WEIGHT, once).drop(WEIGHT)


def derived(
    session: SparkSession, job: Job, replica: Replica, name: str, *, again: bool = False
) -> DataFrame | None:
    """An output as a query on the rows of the inputs, where it is one and all of it is native. The
    inputs are read from the state; with `again`, they are empty, to see whether it is one."""

    def rows(each: str) -> DataFrame:
        schema = schema_of(replica.plan.sources[each].type, weight=True)
        if again:
            return session.createDataFrame([], schema)
        return session.range(0, job.tasks, 1, job.tasks).mapInArrow(Stored(job, each), schema)

    sql = Sql(replica, job.program, rows)
    slot = replica.machine.outputs[name]
    found = sql.frame(slot)
    return found if found is not None and sql.native(slot) else None


def once_each(frame: DataFrame) -> DataFrame:
    """Equal rows as one, with their weights added up."""
    columns = [f.col(f"`{name}`") for name in frame.columns if name != WEIGHT]
    added = frame.groupBy(*columns).agg(f.sum(WEIGHT).alias(WEIGHT))
    return added.filter(f.col(WEIGHT) != 0)


@dataclass(frozen=True)
class Stored:
    """The rows of an input that are in the state, of one range of hashes, as columns."""

    job: Job
    name: str

    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        replica = replica_of(self.job.program)
        inlet = replica.inlets[self.name]
        kind = inlet.source.type
        owner = inlet.index if isinstance(inlet, Elsewhere) else inlet.store
        part = next(part for part in replica.parts if part.owner is owner)
        spine = part.spine(self.job.snapshot())
        by_row = part.layout == "value" and inlet.source.key is None
        for batch in given:
            for task in batch.column(0).to_pylist():
                for chunk in spine.chunks(*limits(task, self.job.tasks)):
                    yield _as_arrow(chunk, kind, by_row, part.layout)


def _as_arrow(chunk: Part, kind: Any, by_row: bool, layout: str) -> Any:
    """The rows of a piece of state, with their weights, in the columns of their type."""
    shape, columns = (chunk.form.key, chunk.keys) if by_row else (chunk.form.row, chunk.rows)
    schema = arrow_schema(kind)
    weights = pa.array(np.asarray(chunk.count), pa.int64())
    if by_row:
        counts = decode(chunk.form.row, chunk.rows)
        weights = pa.array(counts, pa.int64())
    whole = shape.how == "record" or (shape.how == "one" and len(schema) == 2)
    if whole and not {"any", "decimal"} & set(shape.kinds):
        arrays = [_fit(column, field.type) for column, field in zip(columns, schema, strict=False)]
        return pa.RecordBatch.from_arrays([*arrays, weights], schema=schema)
    rows = decode(shape, columns, kind if shape.how == "record" else None)
    return to_arrow(rows, weights.to_pylist(), kind)


def _fit(column: Any, kind: Any) -> Any:
    """A column of state as one of a table; times with a zone are stored without it, in UTC."""
    if pa.types.is_timestamp(kind) and kind.tz is not None and column.type.tz is None:
        return column.view(pa.int64()).view(kind) if column.type.unit == "us" else column.cast(kind)
    return column if column.type == kind else column.cast(kind)


@dataclass(frozen=True)
class Read:
    """The rows of an output whose hashes are in one range."""

    job: Job
    name: str

    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        replica = replica_of(self.job.program)
        kind = replica.plan.outputs[self.name].type
        snapshot = self.job.snapshot()
        rows = replica.outlets[self.name].rows
        reader = replica.machine.readers.get(self.name)
        owner = rows if reader is None else reader.cells
        part = next(part for part in replica.parts if part.owner is owner)
        spine = part.spine(snapshot)
        for batch in given:
            for task in batch.column(0).to_pylist():
                low, high = limits(task, self.job.tasks)
                found = iter(spine.scan(low, high))
                while some := list(islice(found, _CHUNK)):
                    values = {key: value for key, value, _ in some}
                    if reader is not None:
                        held = Backing({}, spine, limited=True, codec=part.codec)
                        values = reader.of(held._loaded(values))
                    yield to_arrow(list(values), list(values.values()), kind)


def zset_of(frame: DataFrame, kind: Any) -> Any:
    """A DataFrame of rows with weights as a ZSet, collected here."""
    total: dict[Any, int] = {}
    for batch in frame.toArrow().to_batches():
        add(total, *from_arrow(batch, kind))
    return trusted(settled(total))
