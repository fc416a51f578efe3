"""What runs in the tasks of a bulk load: rows and totals to disk, as columns where they can be.

Each task writes one file of its own, and says so in its report. Rows become rows of Python only
where a key is a function that cannot be read, or an input has rows that are repeated or taken away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from ebbflow.engine.runtime.failure import explained
from ebbflow.engine.runtime.gc_paused import gc_paused
from ebbflow.engine.runtime.inputs import InputState, SharedInput, absent
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.runtime.parts import StatePart
from ebbflow.engine.runtime.table.arrow import from_arrow
from ebbflow.engine.runtime.table.column_types import WEIGHT, columns_of
from ebbflow.engine.spark.native.compare import BEYOND
from ebbflow.engine.spark.native.groups import is_simple
from ebbflow.engine.spark.tasks.report import TaskReport, task_failed
from ebbflow.engine.spark.tasks.task import EpochJob, batches
from ebbflow.engine.spark.tasks.transport import add, ranges, replica_of
from ebbflow.errors import EbbflowError, cause_of
from ebbflow.record import fields_of
from ebbflow.state.spine import Spine
from ebbflow.state.spine.columns import ColumnShape, narrowed
from ebbflow.state.spine.columns_hash import column_hashes, encoded_column
from ebbflow.state.spine.hashing import all_different, hashes
from ebbflow.state.spine.part import BAG
from ebbflow.state.spine.piece import Piece
from ebbflow.zset import trusted, without_zeros

LARGE = 4_000_000
"""So many rows of an index are one segment; a task that has more writes several."""
KEY = "__k"
"""What the names of columns with keys begin with."""
TASK = "__task"
FLAT = {"int", "float", "bool", "text", "bytes", "date", "time", "instant", "decimal"}


@dataclass(frozen=True)
class StoredRows:
    """Rows that a part keeps. `shape` is that of the columns of their key; without one, and without
    a key function, they are found by themselves."""

    job: EpochJob
    part: int
    slot: int
    shape: Any

    @property
    def row_type(self) -> Any:
        """The type of the rows."""
        return replica_of(self.job.program).row_type(self.slot)

    def keys(self, table: Any) -> tuple[ColumnShape, list[Any]] | None:
        """The keys as columns, where they are columns."""
        if self.shape is None:
            own = self.owner().source.key is None if self.is_input() else False
            return self.rows(table) if own and _flat(self.row_type) else None
        names = [name for name in table.schema.names if name.startswith(KEY)]
        how = "tuple" if isinstance(self.shape, tuple) else "one"
        return _columns(table, names, how) if is_simple(self.shape) else None

    def rows(self, table: Any) -> tuple[ColumnShape, list[Any]]:
        """The rows as columns."""
        names = [name for name, _ in columns_of(self.row_type)]
        return _columns(table, names, "one" if fields_of(self.row_type) is None else "record")

    def held(self) -> StatePart:
        return replica_of(self.job.program).parts[self.part]

    def is_input(self) -> bool:
        return any(self.held().owner is each.store for each in self._inputs())

    def owner(self) -> InputState:
        """The input that keeps these rows."""
        return next(each for each in self._inputs() if each.store is self.held().owner)

    def _inputs(self) -> list[InputState]:
        return list(replica_of(self.job.program).inputs.values())

    def keys_of(self, rows: list[Any]) -> list[Any]:
        """The keys of rows, by the function of the user's."""
        if self.is_input():
            state = self.owner()
            return state.keys(rows) if isinstance(state, KeyedInput) else rows
        try:
            return list(map(self.held().owner.key, rows))
        except Exception as error:
            machine = replica_of(self.job.program).machine
            stage = next(s for s in machine.stages if self.held().owner in s.containers)
            raise explained(error, stage) from cause_of(error)


class PartitionRows(StoredRows):
    """Every row with the task that has the hash of its key."""

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        for batch in given:
            table = pa.Table.from_batches([batch])
            keys = self.keys(table)
            if keys is not None:
                words = column_hashes(*keys)
            else:
                try:
                    words = hashes(self.keys_of(from_arrow(batch, self.row_type)[0]))
                except EbbflowError as error:
                    raise task_failed(error, self.job.secret) from cause_of(error)
            task = pa.array(ranges(words, self.job.tasks).astype(np.int32))
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, task], schema=batch.schema.append(pa.field(TASK, pa.int32()))
            )


class WriteRows(StoredRows):
    """The rows of one task into one segment."""

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        part = self.held()
        piece = Piece(self.job.files, self.job.epoch, uuid4().hex)
        some: list[Any] = []
        size = rows_in = 0
        try:
            for batch in given:
                some.append(batch)
                rows_in += batch.num_rows
                size += batch.num_rows
                if size >= LARGE and part.layout == BAG:
                    piece.add(part.name, self._spine(pa.Table.from_batches(some)))
                    some, size = [], 0
            if size:
                piece.add(part.name, self._spine(pa.Table.from_batches(some)))
        except EbbflowError as error:
            piece.abandon()
            yield from batches([TaskReport.failed(error, 1).line()])
            return
        given_rows = any(each.holder is part.owner for each in self._inputs())
        rows_in = rows_in if given_rows else 0
        yield from batches([TaskReport(1, segments=piece.finish(), rows_in=rows_in).line()])

    def _spine(self, table: Any) -> Spine:
        """Rows, staged in a spine of their own."""
        part = self.held()
        spine = Spine(part.layout, part.keys, part.rows)
        weights = table.column(WEIGHT).to_numpy()
        if np.abs(weights).max() > self.job.heaviest:
            raise EbbflowError(BEYOND)  # what is multiplied when outputs are read must fit
        keys = self.keys(table) if _flat(self.row_type) else None
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
        keys = narrowed(*keys)  # narrow numbers are hashed faster
        words = column_hashes(*keys)
        if not all_different(words) or weights.min() < 1:
            return False
        keyed = isinstance(self.owner(), KeyedInput)
        if keyed and weights.max() > 1:
            return False
        counts = ColumnShape("one", ("int",)), [pa.array(weights, pa.int64())]
        spine.append_columns(keys, self.rows(table) if keyed else counts, hash=words)
        return True

    def _require_there(self, table: Any, weights: Any) -> None:
        """An error where the index of an input would have a row that is negative."""
        owner = self.held().owner
        for state in self._inputs():
            if isinstance(state, SharedInput) and state.index is owner and weights.min() < 0:
                at = int((weights < 0).argmax())
                rows, _ = from_arrow(table.slice(at, 1), self.row_type)
                raise absent(state.source, rows[0], 0, -int(weights[at]))

    def _as_rows(self, spine: Spine, table: Any) -> None:
        delta: dict[Any, int] = {}
        for batch in table.to_batches():
            add(delta, *from_arrow(batch, self.row_type))
        delta = without_zeros(delta)
        if self.is_input():
            state = self.owner()
            store = state.store
            store.backing = None
            store.rows.clear()
            state.apply(trusted(delta))
            spine.append(store.changed())
            return
        found: dict[Any, list[Any]] = {}
        for key, pair in zip(self.keys_of(list(delta)), delta.items(), strict=True):
            found.setdefault(key, []).append(pair)
        spine.append(found)


@dataclass(frozen=True)
class WriteTotals:
    """Keys with their totals into the cells of a part; `how` the keys are laid out."""

    job: EpochJob
    part: int
    how: str

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        part = replica_of(self.job.program).parts[self.part]
        some = [batch for batch in given if batch.num_rows]
        piece = Piece(self.job.files, self.job.epoch, uuid4().hex)
        if some:
            table = pa.Table.from_batches(some)
            names = [name for name in table.schema.names if name != WEIGHT]
            spine = Spine(part.layout, part.keys, part.rows)
            spine.append_columns(_columns(table, names, self.how), _columns(table, [WEIGHT], "one"))
            piece.add(part.name, spine)
        yield from batches([TaskReport(1, segments=piece.finish()).line()])


def _columns(table: Any, names: list[str], how: str) -> tuple[ColumnShape, list[Any]]:
    made = [encoded_column(table.column(name)) for name in names]
    return ColumnShape(how, tuple(row_type for row_type, _ in made)), [column for _, column in made]


def _flat(row_type: Any) -> bool:
    return all(column.form in FLAT for _, column in columns_of(row_type))
