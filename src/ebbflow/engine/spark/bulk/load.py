"""Bulk: a first load, through Spark's SQL as far as that goes.

A state that is empty has nothing to be looked up, so nothing needs to go key by key. Slots that are
queries (`sql`) are computed by Spark. Rows of inputs and of indexes go to disk as columns, sorted
by hash, and never become rows of Python. What is left, the operators behind the queries, runs in
waves, which begin with the rows that the queries give.

It is one job. Everything is written by tasks, to files of their own, and committed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ebbflow.engine.runtime.inputs import InputState
from ebbflow.engine.runtime.parts import StatePart
from ebbflow.engine.runtime.stage import Indexing, Stage
from ebbflow.engine.spark.borrowed import exact
from ebbflow.engine.spark.bulk.tasks import FLAT, KEY, TASK, Keep, Place, Totals
from ebbflow.engine.spark.native.functions import native_key
from ebbflow.engine.spark.native.groups import Groups, grouped
from ebbflow.engine.spark.native.queries import Queries, added, arranges
from ebbflow.engine.spark.table.column_types import WEIGHT, columns_of
from ebbflow.engine.spark.tasks.epochs import BULK, EpochResult, Epochs, InputChange, collected
from ebbflow.engine.spark.tasks.task import SCHEMA, Job
from ebbflow.flow.plan import Distinct, Semi
from ebbflow.record import fields_of
from ebbflow.state.spine.part import BAG

ROWS = 1_000_000
"""About so many rows go to one task."""
SEGMENTS = 16
"""Not more segments than this, or than there are tasks, are written of an index."""
WIDTH = 40
"""About so many bytes a row takes in a file."""


def load(epochs: Epochs, given: Mapping[str, InputChange], tasks: int) -> EpochResult:
    """Load an empty state."""
    kept: list[DataFrame] = []
    try:
        with exact(epochs.session):
            sql, lines = _query(epochs, given, tasks, kept)
            new = tuple(_all_new(epochs, sql))
        done = epochs.staged_notes(BULK, collected(lines, sql.job))
        return replace(done, rows_in=_loaded(epochs), derived=new)
    finally:
        for frame in kept:
            frame.unpersist()


def _query(
    epochs: Epochs, given: Mapping[str, InputChange], tasks: int, kept: list[DataFrame]
) -> tuple[Queries, DataFrame]:
    """The query whose rows are the notes of a load; what is persisted for it is put into `kept`."""
    frames = {name: epochs.frame(name, each) for name, each in given.items()}
    frames = {
        name: frame if given[name].added else added(frame, columns_but_weight(frame))
        for name, frame in frames.items()
    }
    kept += [frame.persist(StorageLevel.MEMORY_AND_DISK) for frame in frames.values()
             if not steady(frame)]  # fmt: skip
    tasks = max(tasks, sum(size(each) or 0 for each in given.values()) // ROWS)
    job = replace(epochs.job(tasks), bulk=True)
    sql = Queries(epochs.replica, job, lambda name: _or_nothing(epochs, frames, name))
    machine = epochs.replica.machine
    factors = [sql.factors(machine.outputs[name]) for name in epochs.replica.derived]
    sql.job = replace(job, heaviest=2 ** (63 // max(factors, default=1)) - 1)
    return sql, _lines(epochs, sql, frames, kept)


def _all_new(epochs: Epochs, sql: Queries) -> list[str]:
    """Outputs of which nobody wrote down what changed: the state tells, and it was empty."""
    machine = epochs.replica.machine
    read = [name for name in machine.readers if sql.frame(machine.outputs[name]) is not None]
    return [*epochs.replica.derived, *read]


def _loaded(epochs: Epochs) -> int:
    """How many rows of inputs are staged."""
    replica = epochs.replica
    owners = [state.holder for state in replica.inputs.values() if state.keeps]
    return sum(len(replica.part(owner).spine(epochs.store)) for owner in owners)


def columns_but_weight(frame: DataFrame) -> list[str]:
    """The columns of a row."""
    return [name for name in frame.columns if name != WEIGHT]


def _or_nothing(epochs: Epochs, frames: Mapping[str, DataFrame], name: str) -> DataFrame:
    return frames[name] if name in frames else epochs.frame(name, InputChange("apply", {}))


def steady(frame: DataFrame) -> bool:
    """Whether a frame is cheap to read, and gives the same rows every time it is."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    text = plan.toString()
    heads = [line.lstrip(" +-:").split("[")[0].split(" ")[0] for line in text.splitlines()]
    cheap = {"Project", "Filter", "Relation", "LocalRelation", "InMemoryRelation", "LogicalRDD"}
    return bool(plan.deterministic()) and all(head in cheap for head in heads if head)


def size(given: InputChange) -> int | None:
    """About how many rows are given, where that is known."""
    if given.size is not None or given.frame is None:
        return given.size
    return estimated(given.frame)


def estimated(frame: DataFrame) -> int | None:
    """About how many rows a frame has, where Spark knows."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    found = int(str(plan.stats().sizeInBytes()))
    return found // WIDTH if found < 1 << 50 else None


def _lines(
    epochs: Epochs, sql: Queries, frames: Mapping[str, DataFrame], kept: list[DataFrame]
) -> DataFrame:
    """The notes of a load; what is persisted in between is put into `kept`."""
    replica = epochs.replica
    machine = replica.machine
    made = [stage.slot for stage in machine.stages if not arranges(stage)]
    provided = {slot for slot in made if sql.frame(slot) is not None}
    sums = {stage.slot: grouped(sql, stage) for stage in machine.stages}
    groups = {slot: found for slot, found in sums.items() if found is not None}
    provided |= set(groups)
    job = replace(sql.job, provided=frozenset(provided))
    uses: dict[int, int] = {}
    writers: list[tuple[StatePart, int, Any]] = []
    for part in replica.parts:
        found = _written(sql, replica.inputs, part)
        if found is not None and (found[0] in provided or sql.names.get(found[0]) in frames):
            writers.append((part, *found))
            uses[found[0]] = uses.get(found[0], 0) + 1
    counted = [
        stage
        for stage in machine.stages
        if stage.slot in provided and isinstance(stage.node, (Semi, Distinct))
    ]
    cells = {id(sql.stages[slot].containers[0]) for slot in groups}
    cells |= {id(stage.containers[0]) for stage in counted}
    written = [part.name for part in replica.parts if id(part.owner) in cells]
    job = replace(job, done=frozenset([*written, *(part.name for part, *_ in writers)]))
    waves = job.waves(replica)
    entered = [
        slot
        for slot in waves.entered
        if slot not in groups and (slot in provided or sql.names[slot] in frames)
    ]
    for slot in [*entered, *_read_by_queries(sql, provided)]:
        uses[slot] = uses.get(slot, 0) + 1
    for slot, count in uses.items():
        frame = sql.frame(slot)
        if count > 1 and slot not in sql.names and frame is not None and not sql.cheap(slot):
            kept.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
    lines = [
        _store(job, sql, part, slot, key, replica.parts.index(part)) for part, slot, key in writers
    ]
    lines += [_count(job, sql, stage) for stage in counted]
    come = [_frame(sql, slot).mapInArrow(epochs.enter(job, slot), SCHEMA) for slot in entered]
    for slot, (frame, plain) in groups.items():
        number = machine.stages.index(sql.stages[slot])
        come.append(frame.mapInArrow(Groups(job, number, plain), SCHEMA))
    if come:
        lines.append(epochs.through(job, reduce(DataFrame.union, come)))
    if not lines:
        return epochs.session.createDataFrame([], SCHEMA)
    return reduce(DataFrame.union, lines)


def _frame(sql: Queries, slot: int) -> DataFrame:
    found = sql.frame(slot)
    assert found is not None
    return found


def _read_by_queries(sql: Queries, provided: set[int]) -> list[int]:
    return [sql.raw(slot) for each in provided for slot in sql.stages[each].reads]


def _written(
    sql: Queries, inputs: Mapping[str, InputState], part: StatePart
) -> tuple[int, Any] | None:
    """The slot whose rows a part keeps, and their key, where they can be written as columns."""
    for name, state in inputs.items():
        if state.store is part.owner:
            slot = sql.replica.machine.inputs.get(name)
            return None if slot is None else (slot, state.source.key)
    for stage in sql.replica.machine.stages:
        if isinstance(stage.run, Indexing) and stage.run.index is part.owner:
            slot = sql.raw(stage.slot)
            guarded = sql.stages[stage.slot].reads[0] != slot
            if guarded or stage.key is None or sql.frame(slot) is None:
                return None
            found = native_key(stage.key, _frame(sql, slot), sql.row_type(slot), KEY)
            return None if found is None else (slot, stage.key)
    return None


# ---- totals to disk ----


def _count(job: Job, sql: Queries, stage: Stage) -> DataFrame:
    found = sql.totals(stage)
    assert found is not None
    frame, shape = found
    owner = stage.containers[0]
    number = next(i for i, part in enumerate(sql.replica.parts) if part.owner is owner)
    how = "record" if shape is None else "tuple" if isinstance(shape, tuple) else "one"
    if shape is None and fields_of(sql.row_type(stage.reads[0])) is None:
        how = "one"
    return frame.mapInArrow(Totals(job, number, how), SCHEMA)


# ---- rows to disk, as columns ----


def _store(job: Job, sql: Queries, part: StatePart, slot: int, key: Any, number: int) -> DataFrame:
    row_type = sql.row_type(slot)
    frame = _frame(sql, slot)
    shape: Any = None
    if key is not None:
        found = native_key(key, frame, row_type, KEY)
        if found is not None:
            frame, shape = found.frame, found.shape
    keep = Keep(job, number, slot, shape)
    if part.layout == BAG:  # rows of one key may be in several segments: their weights add up
        return frame.coalesce(max(SEGMENTS, job.tasks)).mapInArrow(keep, SCHEMA)
    by = [name for name in frame.columns if name.startswith(KEY)]
    if key is None and all(column.form in FLAT - {"float"} for _, column in columns_of(row_type)):
        by = [name for name in frame.columns if name != WEIGHT]
    if by:
        columns = [f.col(f"`{name}`") for name in by]
        return frame.repartition(job.tasks, *columns).mapInArrow(keep, SCHEMA)
    task = Place(job, number, slot, shape)
    schema = t.StructType([*frame.schema.fields, t.StructField(TASK, t.IntegerType())])
    placed = frame.mapInArrow(task, schema)
    return placed.repartitionById(job.tasks, f.col(TASK)).mapInArrow(keep, SCHEMA)
