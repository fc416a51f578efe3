"""What a view gives: DataFrames of the rows of outputs, and of what changed in them.

Both are lazy: nothing is read until Spark runs a job on them. They are of one epoch, and can be
read for as long as that epoch is kept (`keep_epochs`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, DateType, LongType, StringType

from ebbflow.engine.runtime.gc_paused import gc_paused
from ebbflow.engine.runtime.parts import StatePart
from ebbflow.engine.runtime.reader.logged import parquet_file
from ebbflow.engine.runtime.reader.scan import output_rows
from ebbflow.engine.runtime.table.arrow import from_arrow, to_arrow
from ebbflow.engine.runtime.table.column_types import WEIGHT, comparable
from ebbflow.engine.runtime.table.entries import entries_to_arrow
from ebbflow.engine.spark.borrowed import exact, unprinted
from ebbflow.engine.spark.failure import raise_failure
from ebbflow.engine.spark.native.lowering import Lowering, once_each
from ebbflow.engine.spark.output.late import late
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.task import EpochJob
from ebbflow.engine.spark.tasks.transport import PackedProgram, add, limits, replica_of
from ebbflow.errors import StateError
from ebbflow.flow.plan import Plan
from ebbflow.notebook import page, paragraph
from ebbflow.state.backing import Backing
from ebbflow.state.spine import Files, Folder, Store
from ebbflow.zset import trusted, without_zeros

_CHUNK = 1 << 16
_COMPARED: dict[type, Any] = {
    bool: BooleanType(), int: LongType(), str: StringType(), date: DateType(),
}  # fmt: skip
"""The types of values that Spark compares as Python does, and those of their columns."""


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

    def _repr_html_(self) -> str:
        """The columns of each output. Its rows would need a job."""
        return page(self, {name: partial(self._columns, name) for name in self._names})

    def _columns(self, name: str) -> str:
        return paragraph(str(self[name]))


def changed(session: SparkSession, files: Files, names: list[str], row_type: Any) -> DataFrame:
    """The changes in these files of a log. Spark itself reads those of a folder; others are read by
    tasks, so that it needs no jar for where they are."""
    schema = schema_of(row_type, weight=True)
    if not names:
        return late(session, lambda: session.createDataFrame([], schema))
    if isinstance(files, Folder):
        places = [file_uri(files.path / name, glob=True) for name in names]
        return late(session, lambda: session.read.schema(schema).parquet(*places))
    count, read = len(names), ReadChanges(files, tuple(names))
    return late(session, lambda: session.range(0, count, 1, count).mapInArrow(read, schema))


def file_uri(path: Path, *, glob: bool = False) -> str:
    """A path of this machine as Spark has it: whatever is in it stays. Where Spark looks for files
    by a pattern, `glob`, what would be one is marked as none.

    >>> file_uri(Path("/a b/epoch=1")), file_uri(Path("/a[1]"), glob=True)
    ('file:///a b/epoch=1', 'file:///a\\\\[1\\\\]')
    """
    text = str(path.absolute())
    return "file://" + (re.sub(r"([\\{}\[\]*?])", r"\\\1", text) if glob else text)


def weighted(
    session: SparkSession, job: EpochJob, name: str, row_type: Any, cells: str = ""
) -> DataFrame:
    """The rows of an output with their weights, read from the state; from `cells` of that name,
    where a former program has left them."""
    schema, task = schema_of(row_type, weight=True), ReadOutput(job, name, cells)
    return session.range(0, job.tasks, 1, job.tasks).mapInArrow(task, schema)


def was(session: SparkSession, job: EpochJob, name: str, row_type: Any) -> DataFrame:
    """The rows of an output with their weights, as another program left them in the state."""
    schema = schema_of(row_type, weight=True)
    return session.range(0, job.tasks, 1, job.tasks).mapInArrow(ReadFormer(job, name), schema)


def difference(now: DataFrame, before: DataFrame, row_type: Any) -> DataFrame:
    """What makes the rows of one frame those of another, with their weights. Rows that Spark cannot
    compare are compared here."""
    session = now.sparkSession
    schema = schema_of(row_type, weight=True)

    def made() -> DataFrame:
        with exact(session):
            both = now.unionByName(before.withColumn(WEIGHT, -f.col(WEIGHT)))
            if comparable(row_type):
                return once_each(both)
            rows = zset_of(both, row_type)
            batch = to_arrow(list(rows), [weight for _, weight in rows.items()], row_type)
            return session.createDataFrame(pa.Table.from_batches([batch]), schema)

    return late(session, made)


def having(frame: DataFrame, wanted: Mapping[str, Any]) -> DataFrame:
    """The rows of a frame with these values in these columns, as far as Spark can compare them: a
    few others may be among them."""
    for name, value in wanted.items():
        column = f.col(f"`{name}`")
        if value is None:
            frame = frame.filter(column.isNull())
        elif _COMPARED.get(type(value)) == frame.schema[name].dataType:
            frame = frame.filter(column == f.lit(value))
    return frame


def repeated(frame: DataFrame, name: str) -> DataFrame:
    """Every row as often as it is there."""
    negative = f.raise_error(
        f.lit(f"output {name!r} has rows of negative weight, behind `-`: read view.weighted")
    )
    often = f.raise_error(
        f.lit(f"output {name!r} has a row more than 2**31 times: read view.weighted")
    )
    with exact(frame.sparkSession):
        count = f.when(f.col(WEIGHT) >= 2**31, often.cast("long"))
        count = count.when(f.col(WEIGHT) > 0, f.col(WEIGHT)).otherwise(negative.cast("long"))
        once = f.explode(f.array_repeat(f.lit(1), count.cast("int")))
        return frame.withColumn(WEIGHT, once).drop(WEIGHT)


def derived(
    session: SparkSession, job: EpochJob, replica: Replica, name: str, *, again: bool = False
) -> DataFrame | None:
    """An output, every row once, as a query on the rows of inputs, where all of it is native. The
    inputs are read from the state; with `again`, they are empty, to see whether it is one."""

    def rows(each: str) -> DataFrame:
        schema = schema_of(replica.plan.sources[each].type, weight=True)
        return session.createDataFrame([], schema) if again else stored(session, job, each, schema)

    lowering = Lowering(replica, job, rows)
    slot = replica.machine.outputs[name]
    with exact(session):
        if not (lowering.native(slot) and lowering.sure(slot)):
            return None
        return once_each(lowering.rows(slot))


def stored(session: SparkSession, job: EpochJob, name: str, schema: Any) -> DataFrame:
    """The rows of an input that are in the state, with their weights."""
    return session.range(0, job.tasks, 1, job.tasks).mapInArrow(ReadInput(job, name), schema)


def rows_of_part(session: SparkSession, job: EpochJob, number: int, row_type: Any) -> DataFrame:
    """The rows that an index has in the state, by the number of its part, with their weights."""
    schema = schema_of(row_type, weight=True)
    task = ReadIndex(job, number, row_type)
    return session.range(0, job.tasks, 1, job.tasks).mapInArrow(task, schema)


def derived_outputs(session: SparkSession, plan: Plan, check_input: bool) -> list[str]:
    """The outputs that are native queries on the rows of inputs, which the state has anyway."""
    replica = Replica(plan, check_input=check_input, names=None)
    if not all(state.keeps for state in replica.inputs.values()):
        return []
    job = EpochJob(PackedProgram(b"", ""), Folder("."), 0, 1)
    return [
        name
        for name, node in plan.outputs.items()
        if name not in replica.machine.readers and comparable(node.type)
        and derived(session, job, replica, name, again=True) is not None
    ]  # fmt: skip


def require_same(replica: Replica, store: Store, epoch: int) -> None:
    """An error unless all outputs can be read as they were at an epoch: it is kept, and the program
    was the same."""
    with store.at(epoch) as snapshot:
        known = snapshot.notes.get("parts", {})
        for name in replica.plan.outputs:
            if not all(part.name in known for part in _read_for(replica, name)):
                raise StateError(
                    f"output {name!r} was another one at epoch {epoch}: the program has changed "
                    "since",
                    epoch=epoch,
                    remedy="the program as it was then, or a later epoch",
                )


def _read_for(replica: Replica, name: str) -> list[StatePart]:
    """The parts of the state that an output is read from."""
    if name in replica.derived:
        slots = _inputs_of(replica, replica.machine.outputs[name])
        inputs = [replica.inputs[each] for each, slot in replica.machine.inputs.items()
                  if slot in slots]  # fmt: skip
        owners = [each.holder for each in inputs]
    else:
        reader = replica.machine.readers.get(name)
        owners = [replica.outputs[name].rows if reader is None else reader.cells]
    return [part for part in replica.parts if any(part.owner is owner for owner in owners)]


def _inputs_of(replica: Replica, slot: int) -> set[int]:
    """The slots of inputs that a slot is made of."""
    stage = replica.machine.by_slot.get(slot)
    if stage is None:
        return {slot}
    return {each for read in stage.reads for each in _inputs_of(replica, read)}


@dataclass(frozen=True)
class ReadChanges:
    """The rows in files of a log, by their numbers."""

    files: Files
    names: tuple[str, ...]

    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        for batch in given:
            for number in batch.column(0).to_pylist():
                yield from parquet_file(self.files, self.names[number]).iter_batches()


@dataclass(frozen=True)
class ReadInput:
    """The rows of an input that are in the state, of one range of hashes, as columns."""

    job: EpochJob
    name: str

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        replica = replica_of(self.job.program)
        state = replica.inputs[self.name]
        part = replica.part(state.holder)
        by_row = part.layout == "value" and state.source.key is None
        yield from _stored_rows(self.job, part, given, state.source.type, by_row=by_row)


@dataclass(frozen=True)
class ReadIndex:
    """The rows of an index whose keys have hashes in one range, as columns."""

    job: EpochJob
    part: int
    row_type: Any

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        part = replica_of(self.job.program).parts[self.part]
        yield from _stored_rows(self.job, part, given, self.row_type, by_row=False)


@dataclass(frozen=True)
class ReadOutput:
    """The rows of an output whose hashes are in one range; those in the cells of this name."""

    job: EpochJob
    name: str
    cells: str = ""

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        replica = replica_of(self.job.program)
        row_type = replica.plan.outputs[self.name].type
        reader = replica.machine.readers.get(self.name)
        if reader is None:
            part = replica.part(replica.outputs[self.name].rows)
            yield from _stored_rows(self.job, part, given, row_type, by_row=True)
            return
        part = replica.part(reader.cells)
        part = part._replace(name=self.cells or part.name)
        spine = part.spine(self.job.snapshot())
        for low, high in _ranges(self.job, given):
            found = iter(spine.scan(low, high))
            while some := list(islice(found, _CHUNK)):
                held = Backing({}, spine, limited=True, codec=part.codec)
                values = reader.output_of(held._loaded({key: value for key, value, _ in some}))
                yield to_arrow(list(values), list(values.values()), row_type)


@dataclass(frozen=True)
class ReadFormer:
    """The rows that another program has left in an output, of one range of hashes. If they must be
    computed at once, one task does that."""

    job: EpochJob
    name: str

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        snapshot = self.job.snapshot()
        scan = output_rows(snapshot, self.name)
        for low, high in _ranges(self.job, given):
            if not scan.whole:
                yield from scan.batches(snapshot, low, high)
            elif not low:
                yield from scan.batches(snapshot)


def _stored_rows(
    job: EpochJob, part: StatePart, given: Iterator[Any], row_type: Any, *, by_row: bool
) -> Iterator[Any]:
    """The rows that a part of the state holds, of the ranges of hashes that a task is given."""
    spine = part.spine(job.snapshot())
    for low, high in _ranges(job, given):
        for chunk in spine.chunks(low, high):
            yield entries_to_arrow(chunk, row_type, by_row=by_row)


def _ranges(job: EpochJob, given: Iterator[Any]) -> Iterator[tuple[int, int]]:
    for batch in given:
        for task in batch.column(0).to_pylist():
            yield limits(task, job.tasks)


def zset_of(frame: DataFrame, row_type: Any) -> Any:
    """A DataFrame of rows with weights as a ZSet, collected here."""
    total: dict[Any, int] = {}
    for batch in arrow_of(frame).to_batches():
        add(total, *from_arrow(batch, row_type))
    return trusted(without_zeros(total))


def arrow_of(frame: DataFrame) -> Any:
    """A DataFrame as a table of Arrow, collected here."""
    try:
        with unprinted():
            return frame.toArrow()
    except Exception as error:
        raise_failure(error, "Spark could not read these rows")
