"""Bulk: a first load, through Spark's SQL as far as that goes.

A state that is empty has nothing to be looked up, so nothing needs to go key by key. Slots that are
queries (`sql`) are computed by Spark. Rows of inputs and of indexes go to disk as columns, sorted
by hash, and never become rows of Python. What is left, the operators behind the queries, runs in
waves, which begin with the rows that the queries give.

It is one job. Everything is written by tasks, to files of their own, and committed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ebbflow.engine.local.failure import explained
from ebbflow.engine.local.held import Held
from ebbflow.engine.local.inputs import Elsewhere, Inlet, Keyed, absent
from ebbflow.engine.local.stage import Indexing, Stage
from ebbflow.engine.spark.arrow import from_arrow
from ebbflow.engine.spark.calm import calmly
from ebbflow.engine.spark.epochs import BULK, Done, Epochs, Given, collected
from ebbflow.engine.spark.groups import Groups, grouped
from ebbflow.engine.spark.kinds import WEIGHT, columns_of
from ebbflow.engine.spark.native import native_key
from ebbflow.engine.spark.ship import add, ranges, replica_of, settled, told
from ebbflow.engine.spark.sql import Sql, added, arranges
from ebbflow.engine.spark.task import SCHEMA, Job, Note, batches
from ebbflow.errors import EbbflowError
from ebbflow.flow.plan import Distinct, Semi
from ebbflow.record import fields_of
from ebbflow.state.spine import Spine
from ebbflow.state.spine.columns import Shape
from ebbflow.state.spine.columns_hash import column_hashes, kind_columns
from ebbflow.state.spine.hashing import hashes
from ebbflow.state.spine.piece import Piece
from ebbflow.state.spine.segment import BAG
from ebbflow.zset import trusted

ROWS = 1_000_000
"""About so many rows go to one task."""
SEGMENTS = 16
"""Not more segments than this, or than there are tasks, are written of an index."""
LARGE = 4_000_000
"""So many rows of an index are one segment; a task that has more writes several."""
WIDTH = 40
"""About so many bytes a row takes in a file."""
_KEY = "__k"
_TASK = "__task"
_FLAT = {"int", "float", "bool", "text", "bytes", "date", "time", "instant", "decimal"}


def load(epochs: Epochs, given: Mapping[str, Given], tasks: int) -> Done:
    """Load an empty state."""
    frames = {name: epochs.frame(name, each) for name, each in given.items()}
    frames = {
        name: frame if given[name].added else added(frame, columns_but_weight(frame))
        for name, frame in frames.items()
    }
    kept = [frame.persist(StorageLevel.MEMORY_AND_DISK) for frame in frames.values()
            if not steady(frame)]  # fmt: skip
    tasks = max(tasks, sum(size(each) or 0 for each in given.values()) // ROWS)
    sql = Sql(epochs.replica, epochs.program, lambda name: _or_nothing(epochs, frames, name))
    try:
        lines, persisted = _lines(epochs, sql, frames, tasks)
        kept += persisted
        done = epochs.staged_notes(BULK, list(collected(lines)))
        return replace(done, rows_in=_loaded(epochs), derived=tuple(_all_new(epochs, sql)))
    finally:
        for frame in kept:
            frame.unpersist()


def _all_new(epochs: Epochs, sql: Sql) -> list[str]:
    """Outputs of which nobody wrote down what changed: the state tells, and it was empty."""
    machine = epochs.replica.machine
    read = [name for name in machine.readers if sql.frame(machine.outputs[name]) is not None]
    return [*epochs.replica.derived, *read]


def _loaded(epochs: Epochs) -> int:
    """How many rows of inputs are staged."""
    replica = epochs.replica
    owners = [inlet.holder for inlet in replica.inlets.values() if inlet.keeps]
    return sum(len(replica.part(owner).spine(epochs.store)) for owner in owners)


def columns_but_weight(frame: DataFrame) -> list[str]:
    """The columns of a row."""
    return [name for name in frame.columns if name != WEIGHT]


def _or_nothing(epochs: Epochs, frames: Mapping[str, DataFrame], name: str) -> DataFrame:
    return frames[name] if name in frames else epochs.frame(name, Given("apply", {}))


def steady(frame: DataFrame) -> bool:
    """Whether a frame is cheap to read, and gives the same rows every time it is."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    text = plan.toString()
    heads = [line.lstrip(" +-:").split("[")[0].split(" ")[0] for line in text.splitlines()]
    cheap = {"Project", "Filter", "Relation", "LocalRelation", "InMemoryRelation", "LogicalRDD"}
    return bool(plan.deterministic()) and all(head in cheap for head in heads if head)


def size(given: Given) -> int | None:
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
    epochs: Epochs, sql: Sql, frames: Mapping[str, DataFrame], tasks: int
) -> tuple[DataFrame, list[DataFrame]]:
    """The notes of a load, and what was kept in between."""
    replica = epochs.replica
    machine = replica.machine
    made = [stage.slot for stage in machine.stages if not arranges(stage)]
    provided = {slot for slot in made if sql.frame(slot) is not None}
    sums = {stage.slot: grouped(sql, stage) for stage in machine.stages}
    groups = {slot: found for slot, found in sums.items() if found is not None}
    provided |= set(groups)
    job = replace(epochs.job(tasks), provided=frozenset(provided), bulk=True)
    uses: dict[int, int] = {}
    writers: list[tuple[Held, int, Any]] = []
    for part in replica.parts:
        found = _written(sql, replica.inlets, part)
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
    kept = []
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
        return epochs.session.createDataFrame([], SCHEMA), kept
    return reduce(DataFrame.union, lines), kept


def _frame(sql: Sql, slot: int) -> DataFrame:
    found = sql.frame(slot)
    assert found is not None
    return found


def _read_by_queries(sql: Sql, provided: set[int]) -> list[int]:
    return [sql.raw(slot) for each in provided for slot in sql.stages[each].reads]


def _written(sql: Sql, inlets: Mapping[str, Inlet], part: Held) -> tuple[int, Any] | None:
    """The slot whose rows a part keeps, and their key, where they can be written as columns."""
    for name, inlet in inlets.items():
        if inlet.store is part.owner:
            slot = sql.replica.machine.inputs.get(name)
            return None if slot is None else (slot, inlet.source.key)
    for stage in sql.replica.machine.stages:
        if isinstance(stage.run, Indexing) and stage.run.index is part.owner:
            slot = sql.raw(stage.slot)
            guarded = sql.stages[stage.slot].reads[0] != slot
            if guarded or stage.key is None or sql.frame(slot) is None:
                return None
            found = native_key(stage.key, _frame(sql, slot), sql.kind(slot), _KEY)
            return None if found is None else (slot, stage.key)
    return None


# ---- totals to disk ----


def _count(job: Job, sql: Sql, stage: Stage) -> DataFrame:
    found = sql.totals(stage)
    assert found is not None
    frame, shape = found
    owner = stage.containers[0]
    number = next(i for i, part in enumerate(sql.replica.parts) if part.owner is owner)
    how = "record" if shape is None else "tuple" if isinstance(shape, tuple) else "one"
    if shape is None and fields_of(sql.kind(stage.reads[0])) is None:
        how = "one"
    return frame.mapInArrow(Totals(job, number, how), SCHEMA)


@dataclass(frozen=True)
class Totals:
    """Keys with their totals into the cells of a part; `how` the keys are laid out."""

    job: Job
    part: int
    how: str

    @calmly
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        part = replica_of(self.job.program).parts[self.part]
        some = [batch for batch in given if batch.num_rows]
        piece = Piece(self.job.path, self.job.epoch, uuid4().hex)
        if some:
            table = pa.Table.from_batches(some)
            names = [name for name in table.schema.names if name != WEIGHT]
            spine = Spine(part.layout, part.keys, part.rows)
            spine.append_columns(_columns(table, names, self.how), _columns(table, [WEIGHT], "one"))
            piece.add(part.name, spine)
        yield from batches([Note(1, segments=piece.finish()).line()])


# ---- rows to disk, as columns ----


def _store(job: Job, sql: Sql, part: Held, slot: int, key: Any, number: int) -> DataFrame:
    kind = sql.kind(slot)
    frame = _frame(sql, slot)
    shape: Any = None
    if key is not None:
        found = native_key(key, frame, kind, _KEY)
        if found is not None:
            frame, shape = found.frame, found.shape
    keep = Keep(job, number, slot, shape)
    if part.layout == BAG:  # rows of one key may be in several segments: their weights add up
        return frame.coalesce(max(SEGMENTS, job.tasks)).mapInArrow(keep, SCHEMA)
    by = [name for name in frame.columns if name.startswith(_KEY)]
    if key is None and all(column.form in _FLAT - {"float"} for _, column in columns_of(kind)):
        by = [name for name in frame.columns if name != WEIGHT]
    if by:
        columns = [f.col(f"`{name}`") for name in by]
        return frame.repartition(job.tasks, *columns).mapInArrow(keep, SCHEMA)
    task = Place(job, number, slot, shape)
    schema = t.StructType([*frame.schema.fields, t.StructField(_TASK, t.IntegerType())])
    placed = frame.mapInArrow(task, schema)
    return placed.repartitionById(job.tasks, f.col(_TASK)).mapInArrow(keep, SCHEMA)


def _columns(table: Any, names: list[str], how: str) -> tuple[Shape, list[Any]]:
    made = [kind_columns(table.column(name)) for name in names]
    return Shape(how, tuple(kind for kind, _ in made)), [column for _, column in made]


def _flat(kind: Any) -> bool:
    return all(column.form in _FLAT for _, column in columns_of(kind))


@dataclass(frozen=True)
class Rows:
    """Rows that a part keeps. `shape` is that of the columns of their key; without one, and without
    a key function, they are found by themselves."""

    job: Job
    part: int
    slot: int
    shape: Any

    @property
    def kind(self) -> Any:
        """The type of the rows."""
        return replica_of(self.job.program).kind(self.slot)

    def keys(self, table: Any) -> tuple[Shape, list[Any]] | None:
        """The keys as columns, where they are columns."""
        if self.shape is None:
            own = self.owner().source.key is None if self.is_input() else False
            return self.rows(table) if own and _flat(self.kind) else None
        names = [name for name in table.schema.names if name.startswith(_KEY)]
        if isinstance(self.shape, tuple):
            simple = all(isinstance(each, str) and each != "none" for each in self.shape)
            return _columns(table, names, "tuple") if names and simple else None
        return None if self.shape == "none" else _columns(table, names, "one")

    def rows(self, table: Any) -> tuple[Shape, list[Any]]:
        """The rows as columns."""
        names = [name for name, _ in columns_of(self.kind)]
        return _columns(table, names, "one" if fields_of(self.kind) is None else "record")

    def held(self) -> Held:
        return replica_of(self.job.program).parts[self.part]

    def is_input(self) -> bool:
        return any(self.held().owner is each.store for each in self._inlets())

    def owner(self) -> Inlet:
        """The input that keeps these rows."""
        return next(each for each in self._inlets() if each.store is self.held().owner)

    def _inlets(self) -> list[Inlet]:
        return list(replica_of(self.job.program).inlets.values())

    def keys_of(self, rows: list[Any]) -> list[Any]:
        """The keys of rows, by the function of the user's."""
        if self.is_input():
            inlet = self.owner()
            return inlet._keys(rows) if isinstance(inlet, Keyed) else rows
        try:
            return list(map(self.held().owner.key, rows))
        except Exception as error:
            machine = replica_of(self.job.program).machine
            stage = next(s for s in machine.stages if self.held().owner in s.containers)
            raise explained(error, stage) from error


class Place(Rows):
    """Every row with the task that has the hash of its key."""

    @calmly
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        for batch in given:
            table = pa.Table.from_batches([batch])
            keys = self.keys(table)
            if keys is not None:
                words = column_hashes(*keys)
            else:
                try:
                    words = hashes(self.keys_of(from_arrow(batch, self.kind)[0]))
                except EbbflowError as error:
                    raise told(error) from error
            task = pa.array(ranges(words, self.job.tasks).astype(np.int32))
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, task], schema=batch.schema.append(pa.field(_TASK, pa.int32()))
            )


class Keep(Rows):
    """The rows of one task into one segment."""

    @calmly
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        part = self.held()
        piece = Piece(self.job.path, self.job.epoch, uuid4().hex)
        some: list[Any] = []
        size = 0
        try:
            for batch in given:
                some.append(batch)
                size += batch.num_rows
                if size >= LARGE and part.layout == BAG:
                    piece.add(part.name, self._spine(pa.Table.from_batches(some)))
                    some, size = [], 0
            if size:
                piece.add(part.name, self._spine(pa.Table.from_batches(some)))
        except EbbflowError as error:
            raise told(error) from error
        yield from batches([Note(1, segments=piece.finish()).line()])

    def _spine(self, table: Any) -> Spine:
        """Rows, staged in a spine of their own."""
        part = self.held()
        spine = Spine(part.layout, part.keys, part.rows)
        weights = table.column(WEIGHT).to_numpy()
        keys = self.keys(table) if _flat(self.kind) else None
        if keys is None or not self._as_columns(spine, keys, table, weights):
            self._as_rows(spine, table)
        return spine

    def _as_columns(self, spine: Spine, keys: Any, table: Any, weights: Any) -> bool:
        """Whether the rows went in as columns. Inputs with rows that are repeated or taken away
        need a closer look."""
        if not self.is_input():
            self._require_there(table, weights)
            spine.append_columns(keys, self.rows(table), weights)
            return True
        words = column_hashes(*keys)
        if len(np.unique(words)) < len(words) or weights.min() < 1:
            return False
        keyed = isinstance(self.owner(), Keyed)
        if keyed and weights.max() > 1:
            return False
        counts = Shape("one", ("int",)), [pa.array(weights, pa.int64())]
        spine.append_columns(keys, self.rows(table) if keyed else counts)
        return True

    def _require_there(self, table: Any, weights: Any) -> None:
        """An error where the index of an input would have a row that is owed."""
        owner = self.held().owner
        for inlet in self._inlets():
            if isinstance(inlet, Elsewhere) and inlet.index is owner and weights.min() < 0:
                at = int((weights < 0).argmax())
                rows, _ = from_arrow(table.slice(at, 1), self.kind)
                raise absent(inlet.source, rows[0], 0, -int(weights[at]))

    def _as_rows(self, spine: Spine, table: Any) -> None:
        delta: dict[Any, int] = {}
        for batch in table.to_batches():
            add(delta, *from_arrow(batch, self.kind))
        delta = settled(delta)
        if self.is_input():
            inlet = self.owner()
            store = inlet.store
            store.backing = None
            store.rows.clear()
            inlet.prepare(trusted(delta))
            spine.append(store.changed())
            return
        found: dict[Any, list[Any]] = {}
        for key, pair in zip(self.keys_of(list(delta)), delta.items(), strict=True):
            found.setdefault(key, []).append(pair)
        spine.append(found)
