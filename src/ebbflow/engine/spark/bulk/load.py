"""Bulk: a first load, through Spark's SQL as far as that goes.

A state that is empty has nothing to be looked up, so nothing needs to go key by key. Slots that are
queries (`native.lowering`) are computed by Spark. Rows of inputs and of indexes go to disk as
columns, sorted by hash, and never become rows of Python. What is left, the operators behind the
queries, runs in waves, which begin with the rows that the queries give.

It is one job. Everything is written by tasks, to files of their own, and committed once.

A large change of a state that is there goes the same way; see `correction`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ebbflow.engine.runtime.parts import StatePart
from ebbflow.engine.runtime.stage import Stage
from ebbflow.engine.runtime.table.column_types import columns_of
from ebbflow.engine.spark.borrowed import exact, persisted
from ebbflow.engine.spark.bulk.correction import (
    ChangeLowering,
    ChangeRows,
    EnterSums,
    WriteChanges,
)
from ebbflow.engine.spark.bulk.tasks import FLAT, KEY, TASK, PartitionRows, WriteRows, WriteTotals
from ebbflow.engine.spark.connect import estimated_bytes, steady
from ebbflow.engine.spark.native.functions import KeyColumns, native_key
from ebbflow.engine.spark.native.groups import WriteGroups
from ebbflow.engine.spark.native.lowering import Lowering, once_each, row_columns
from ebbflow.engine.spark.native.values import NotNative
from ebbflow.engine.spark.tasks.epochs import BULK, EpochResult, Epochs, InputChange, collected
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.task import SCHEMA, EnterTask, EpochJob
from ebbflow.flow.plan import Source
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
    with _running(epochs, given, tasks) as (lowering, lines):
        new = tuple(_all_new(epochs, lowering))
        done = epochs.stage_reports(BULK, collected(lines, lowering.job))
        return replace(done, rows_in=_loaded(epochs), derived=new)


def correct(epochs: Epochs, given: Mapping[str, InputChange], tasks: int) -> EpochResult:
    """Take in a large change of a state that is there."""
    with _running(epochs, given, tasks, lowered=ChangeLowering) as (lowering, lines):
        return epochs.stage_reports(BULK, collected(lines, lowering.job))


def compute_again(
    epochs: Epochs, given: Mapping[str, InputChange], tasks: int, new: Set[str]
) -> None:
    """Stage the state of some parts, by name, as a first load of the rows of all inputs gives it.
    Only what these parts need is computed."""
    with _running(epochs, given, tasks, new) as (lowering, lines):
        reports = collected(lines, lowering.job)
        epochs.stage_only(reports, new)


@contextmanager
def _running(
    epochs: Epochs,
    given: Mapping[str, InputChange],
    tasks: int,
    new: Set[str] | None = None,
    lowered: type[Lowering] = Lowering,
) -> Iterator[tuple[Lowering, DataFrame]]:
    """A load, or only what some parts need, as a query that gives reports. What is persisted for it
    is let go of in the end."""
    kept: list[DataFrame] = []
    try:
        with exact(epochs.session):
            found = _query(epochs, given, tasks, kept, new, lowered)
        yield found
    finally:
        for frame in kept:
            frame.unpersist()


def _query(
    epochs: Epochs, given: Mapping[str, InputChange], tasks: int, kept: list[DataFrame],
    new: Set[str] | None, lowered: type[Lowering],
) -> tuple[Lowering, DataFrame]:  # fmt: skip
    """The query that gives the reports of a load; what is persisted for it is put into `kept`."""
    frames = {name: epochs.frame(name, each) for name, each in given.items()}
    frames = {
        name: frame if given[name].added else once_each(frame) for name, frame in frames.items()
    }
    kept += [persisted(frame) for frame in frames.values() if not steady(frame)]
    tasks = max(tasks, sum(size(each) or 0 for each in given.values()) // ROWS)
    job = replace(epochs.job(tasks), bulk=True, anew=new is not None)

    def leaf(name: str) -> DataFrame:
        return frames[name] if name in frames else epochs.empty(name)

    lowering = lowered(epochs.replica, job, leaf)
    if isinstance(lowering, ChangeLowering):
        lowering.given, lowering.session = given, epochs.session
    machine = epochs.replica.machine
    factors = [lowering.factors(machine.outputs[name]) for name in epochs.replica.derived]
    lowering.job = replace(job, heaviest=2 ** (63 // max(factors, default=1)) - 1)
    parts = {part.name for part in epochs.replica.parts}
    return lowering, _lines(epochs, lowering, frames, kept, parts if new is None else new)


def _all_new(epochs: Epochs, lowering: Lowering) -> list[str]:
    """Outputs of which nobody wrote down what changed: the state tells, and it was empty."""
    machine = epochs.replica.machine
    read = [name for name in machine.readers if lowering.of(machine.outputs[name]).rows is not None]
    return [*epochs.replica.derived, *read]


def _loaded(epochs: Epochs) -> int:
    """How many rows of inputs are staged."""
    replica = epochs.replica
    owners = [state.holder for state in replica.inputs.values() if state.keeps]
    return sum(len(replica.part(owner).spine(epochs.store)) for owner in owners)


def size(given: InputChange) -> int | None:
    """About how many rows are given, where that is known."""
    if given.size is not None or given.frame is None:
        return given.size
    return estimated(given.frame)


def estimated(frame: DataFrame) -> int | None:
    """About how many rows a frame has, where Spark knows."""
    found = estimated_bytes(frame)
    return found // WIDTH if found < 1 << 50 else None


def _lines(
    epochs: Epochs, lowering: Lowering, frames: Mapping[str, DataFrame], kept: list[DataFrame],
    new: Set[str],
) -> DataFrame:  # fmt: skip
    """The reports of a load of these parts; what is persisted in between is put into `kept`."""
    replica = epochs.replica
    change = lowering if isinstance(lowering, ChangeLowering) else None
    slots = {each.slot for each in replica.machine.stages}
    needed = _needed(replica, new) if change is None else slots
    stages = [each for each in replica.machine.stages if not each.arranges and each.slot in needed]
    lowered = {stage.slot: lowering.of(stage.slot) for stage in stages}
    queries = {slot for slot, each in lowered.items() if each.rows is not None}
    groups = {slot for slot, each in lowered.items() if each.cells is not None} - queries
    there = queries | {slot for slot, name in lowering.names.items() if name in frames}
    provided, reported = queries | groups | (slots - needed), set(replica.derived)
    counted = [
        stage for stage in stages if lowered[stage.slot].cells is not None
        and (stage.slot in groups or replica.part(stage.containers[0]).name in new)
    ]  # fmt: skip
    if change is not None:
        there = {slot for slot in there if change.touched(slot)}
        groups = {slot for slot in groups if change.touched(slot)}
        reported = {name for name in reported if replica.machine.outputs[name] in queries}
        provided, counted = queries, []
    job = replace(lowering.job, provided=frozenset(provided), reported=frozenset(reported),
                  summed=frozenset(groups if change is not None else ()))  # fmt: skip
    writers = [(part, *found) for part in replica.parts if part.name in new
               and (found := _written(lowering, part, there)) is not None]  # fmt: skip
    owners = {id(stage.containers[0]) for stage in counted}
    written = [part.name for part in replica.parts if id(part.owner) in owners]
    known = {part.name for part in replica.parts} - new
    job = replace(job, done=frozenset([*known, *written, *(part.name for part, *_ in writers)]))
    entered = [slot for slot in job.waves(replica).entered if slot in there]
    read = [lowering.raw(slot) for each in queries | groups for slot in lowering.stages[each].reads]
    grouped = {stage.slot for stage in counted if stage.query == "group"}
    uses = Counter([*(slot for _, slot, _ in writers), *entered, *read])
    for slot, count in uses.items():
        cells = lowered[slot].cells if slot in grouped else None
        if cells is not None:
            kept.append(persisted(cells))
        elif count > 1 and slot in queries and not lowering.cheap(slot):
            kept.append(persisted(lowering.rows(slot)))
    writes = WriteRows if change is None else ChangeRows
    lines = [_store(writes, job, replica.parts.index(each[0]), *each) for each in writers]
    come = [lowering.rows(slot).mapInArrow(EnterTask(job, slot), SCHEMA) for slot in entered]
    for stage in counted:
        (come if stage.slot in groups else lines).append(_cells(job, lowering, stage))
    if change is not None:
        come += [_sums(job, lowering, stage) for stage in stages if stage.slot in groups]
        outputs = {name: replica.machine.outputs[name] for name in reported}
        lines += [_changes(job, lowering, name, slot)
                  for name, slot in outputs.items() if slot in there]  # fmt: skip
    if come:
        lines.append(epochs.through(job, reduce(DataFrame.union, come)))
    if not lines:
        return epochs.session.createDataFrame([], SCHEMA)
    return reduce(DataFrame.union, lines)


def _needed(replica: Replica, new: Set[str]) -> set[int]:
    """The slots whose rows it takes to fill these parts."""
    machine = replica.machine
    lacking = {id(part.owner) for part in replica.parts if part.name in new}
    first = [stage for stage in machine.stages if lacking & set(map(id, stage.containers))]
    arranged = {stage.slot for stage in first if stage.arranges}
    found = {stage.slot for stage in first}
    found |= {stage.slot for stage in machine.stages if arranged & set(stage.reads)}
    found |= {machine.outputs[name] for name, each in replica.outputs.items()
              if each.rows is not None and id(each.rows) in lacking}  # fmt: skip
    for stage in reversed(machine.stages):
        if stage.slot in found:
            found.update(stage.reads)
    return found


# ---- cells to disk ----


def _cells(job: EpochJob, lowering: Lowering, stage: Stage) -> DataFrame:
    """Write the cells of a stage; those of a reduce give rows for later waves too."""
    found = lowering.of(stage.slot)
    assert found.cells is not None
    if stage.query == "group":
        number = lowering.replica.machine.stages.index(stage)
        task = WriteGroups(job, number, isinstance(found.shape, str), found.rows is not None)
        return found.cells.mapInArrow(task, SCHEMA)
    how = "tuple" if isinstance(found.shape, tuple) else "one"
    if found.shape is None and fields_of(lowering.row_type(stage.reads[0])) is not None:
        how = "record"
    number = lowering.replica.parts.index(lowering.replica.part(stage.containers[0]))
    return found.cells.mapInArrow(WriteTotals(job, number, how), SCHEMA)


def _sums(job: EpochJob, lowering: Lowering, stage: Stage) -> DataFrame:
    """What a change adds to the cells of a reduce, for the tasks that have them."""
    found = lowering.of(stage.slot)
    assert found.cells is not None
    number = lowering.replica.machine.stages.index(stage)
    return found.cells.mapInArrow(EnterSums(job, number, isinstance(found.shape, str)), SCHEMA)


def _changes(job: EpochJob, lowering: Lowering, name: str, slot: int) -> DataFrame:
    """Write what changed in an output that is a query."""
    return once_each(lowering.rows(slot)).mapInArrow(WriteChanges(job, name), SCHEMA)


# ---- rows to disk, as columns ----


def _written(lowering: Lowering, part: StatePart, there: Set[int]) -> tuple[int, KeyColumns] | None:
    """The slot whose rows a part keeps, and these rows, where they can be written as columns: with
    the columns that tell which of them belong together, if there are any."""
    for name, state in lowering.replica.inputs.items():
        if state.store is part.owner:
            slot = lowering.replica.machine.inputs.get(name, -1)
            return (slot, _of_input(lowering, slot, state.source)) if slot in there else None
    for stage in lowering.stages.values():
        if stage.index is part.owner:
            slot = lowering.raw(stage.slot)
            if stage.reads != (slot,) or stage.key is None or slot not in there:
                return None
            with suppress(NotNative):
                rows, row_type = lowering.rows(slot), lowering.row_type(slot)
                return slot, native_key(stage.key, rows, row_type, KEY)
    return None


def _of_input(lowering: Lowering, slot: int, source: Source) -> KeyColumns:
    rows = lowering.rows(slot)
    if source.key is not None:
        with suppress(NotNative):
            return native_key(source.key, rows, source.type, KEY)
        return KeyColumns(rows, [], None)
    flat = all(column.form in FLAT - {"float"} for _, column in columns_of(source.type))
    return KeyColumns(rows, row_columns(rows) if flat else [], None)


def _store(
    writes: type[WriteRows], job: EpochJob, number: int, part: StatePart, slot: int,
    found: KeyColumns,
) -> DataFrame:  # fmt: skip
    """Write the rows of a slot into the part of this number."""
    frame, by, shape, _ = found
    keep = writes(job, number, slot, shape)
    if part.layout == BAG:  # rows of one key may be in several segments: their weights add up
        return frame.coalesce(max(SEGMENTS, job.tasks)).mapInArrow(keep, SCHEMA)
    if by:
        columns = [f.col(f"`{name}`") for name in by]
        return frame.repartition(job.tasks, *columns).mapInArrow(keep, SCHEMA)
    task = PartitionRows(job, number, slot, shape)
    schema = t.StructType([*frame.schema.fields, t.StructField(TASK, t.IntegerType())])
    placed = frame.mapInArrow(task, schema)
    return placed.repartitionById(job.tasks, f.col(TASK)).mapInArrow(keep, SCHEMA)
