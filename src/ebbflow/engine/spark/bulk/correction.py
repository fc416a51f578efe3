"""Correction: a large change of a state that is there, through Spark's SQL as far as that goes.

A change of millions of rows need not go key by key either. It is a load of the change, with three
differences:

    joins     what changes is the change of the left side joined with the right as it will be, and
              the left as it was joined with the change of the right; what was is read from indexes
    inputs    the rows of a change are looked up in the state, as columns, before they are written
    groups    Spark adds the change up; what it adds to a group goes to the task that has its cell

Steps on one row at a time are linear, so their change is what they make of the change, and indexes
only get more entries. All other operators run in waves, which begin with the changes that the
queries give.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from ebbflow.engine.runtime.gc_paused import gc_paused
from ebbflow.engine.runtime.inputs import SharedInput, absent
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.runtime.program import Kept
from ebbflow.engine.runtime.stage import Stage, by_row
from ebbflow.engine.runtime.table.arrow import arrow_schema, from_arrow
from ebbflow.engine.runtime.table.column_types import WEIGHT
from ebbflow.engine.runtime.table.entries import entries_to_arrow
from ebbflow.engine.spark.bulk.tasks import WriteRows
from ebbflow.engine.spark.native.groups import group_cells
from ebbflow.engine.spark.native.lowering import NATIVE, Lowered, Lowering
from ebbflow.engine.spark.native.values import NotNative
from ebbflow.engine.spark.output.frames import rows_of_part
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.report import TaskReport
from ebbflow.engine.spark.tasks.task import CHANGES, EpochJob, batches
from ebbflow.engine.spark.tasks.transport import add, replica_of, routed
from ebbflow.state.spine import Spine
from ebbflow.state.spine.columns import ColumnShape
from ebbflow.state.spine.columns_hash import column_hashes
from ebbflow.state.spine.hashing import all_different, row_words
from ebbflow.state.spine.segment import ChecksumWriter
from ebbflow.zset import without_zeros

LOOKED_UP = "it looks at what is there"


class ChangeLowering(Lowering):
    """How the changes of slots are computed; `leaf` gives those of inputs, of which some are
    `given`."""

    given: Mapping[str, Any]
    session: Any

    def touched(self, slot: int) -> bool:
        """Whether what is given can change a slot."""
        if slot in self.names:
            return self.names[slot] in self.given
        return any(map(self.touched, self._reads(slot)))

    def read_by(self, stage: Stage) -> list[Any]:
        """The indexes that a join reads, those of its sides of which the other has changed."""
        sides = [self.raw(slot) for slot in stage.reads]
        return [
            self.stages[stage.reads[1 - i]].index for i in (0, 1) if self.touched(sides[i])
        ]  # fmt: skip

    def _join(self, stage: Any) -> Lowered:
        left, right = (self.raw(slot) for slot in stage.reads)
        terms = []
        if self.touched(left):
            after = self._before(stage.reads[1])
            if self.touched(right):
                after = after.unionByName(self.rows(right))
            terms.append(self._joined(stage, self.rows(left), after))
        if self.touched(right):
            terms.append(self._joined(stage, self._before(stage.reads[0]), self.rows(right)))
        if not terms:
            terms.append(self._joined(stage, self.rows(left), self.rows(right)))
        return Lowered(NATIVE, rows=reduce(DataFrame.union, terms))

    def _before(self, slot: int) -> DataFrame:
        """The rows that an index has."""
        index = self.stages[slot].index if slot in self.stages else None
        if index is None or index.codec is not None:
            raise NotNative("the rows of a side are in no index")
        number = self.replica.parts.index(self.replica.part(index))
        return rows_of_part(self.session, self.job, number, self.row_type(self.raw(slot)))

    def _semijoin(self, stage: Any) -> Lowered:
        raise NotNative(LOOKED_UP)

    _distinct = _semijoin

    def _group(self, stage: Any) -> Lowered:
        if stage.partial is None:
            raise NotNative(LOOKED_UP)
        return replace(super()._group(stage), rows=None)


# ---- groups ----


@dataclass(frozen=True)
class EnterSums:
    """Wave 0 for a reduce, by its number: what a change adds to groups, as lines of
    `group_query`."""

    job: EpochJob
    stage: int
    plain: bool

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        replica = replica_of(self.job.program)
        slot = replica.machine.stages[self.stage].slot
        ports = self.job.waves(replica).ports
        numbers = [number for number, port in enumerate(ports) if port.adds == slot]
        for batch in given:
            found = dict(group_cells(batch, self.plain))
            for number in numbers:
                lines = routed(found, by_row, self.job.tasks, replica.token)
                yield from batches((task, number, blob) for task, blob in lines)


# ---- outputs ----


@dataclass(frozen=True)
class WriteChanges:
    """What changed in an output that is a query, as files of the change log."""

    job: EpochJob
    output: str

    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        replica = replica_of(self.job.program)
        some = [batch for batch in given if batch.num_rows]
        report = TaskReport(1)
        if some:
            schema = arrow_schema(replica.plan.outputs[self.output].type)
            table = pa.Table.from_batches(some).cast(schema)
            file = f"{self.job.epoch:012d}-{uuid4().hex}-0.parquet"
            _write_table(self.job.files.folder(CHANGES), file, table)
            report.changes = [(self.output, file, len(table))]
        yield from batches([report.line()])


def _write_table(files: Any, name: str, table: Any) -> None:
    writer = files.create(name)
    try:
        with pq.ParquetWriter(
            pa.PythonFile(ChecksumWriter(writer.write), mode="w"), table.schema
        ) as out:
            out.write_table(table)
        writer.sync()
        writer.close()
    except BaseException:
        writer.close()
        files.remove(name)
        raise


# ---- inputs ----


class ChangeRows(WriteRows):
    """The rows of a change into a segment, after a look at what the state has of them.

    It is done in columns where every hash is that of one row. Else, and where a row is not there
    that is taken away, rows of Python are looked up one by one, and say what is wrong.
    """

    def _as_columns(self, spine: Spine, keys: Any, table: Any, weights: Any) -> bool:
        if not self.is_input():
            if not self._all_there(keys, table, weights):
                return False
            spine.append_columns(keys, self.rows(table), weights)
            return True
        write = self._keyed if isinstance(self.owner(), KeyedInput) else self._counted
        return write(spine, keys, table, weights)

    def _keyed(self, spine: Spine, keys: Any, table: Any, weights: Any) -> bool:
        """Rows by key: each that goes must be there, each that comes must find its key free."""
        words = column_hashes(*keys)
        comes, goes = (np.flatnonzero(some) for some in (weights > 0, weights < 0))
        if np.abs(weights).max() > 1:
            return False
        if not (all_different(words[comes]) and all_different(words[goes])):
            return False
        found = self._found(words)
        if found is None or not found.same(table, goes):
            return False
        old = np.isin(words[comes], words[goes])
        if (found.there[comes] & ~old).any():
            return False
        order = goes[np.argsort(words[goes])]
        pairs = order[np.searchsorted(words[order], words[comes[old]])]
        if not all(_equal(c.take(comes[old]), c.take(pairs)) for c in keys[1]):
            return False
        gone = goes[~np.isin(words[goes], words[comes])]
        at = pa.array(np.concatenate([comes, gone]))
        live = np.concatenate([np.ones(len(comes), bool), np.zeros(len(gone), bool)])
        shape, columns = self.rows(table)
        spine.append_columns((keys[0], [c.take(at) for c in keys[1]]),
                             (shape, [c.take(at) for c in columns]), live=live)  # fmt: skip
        return True

    def _counted(self, spine: Spine, keys: Any, table: Any, weights: Any) -> bool:
        """Rows by themselves, with how often each is there."""
        words = column_hashes(*keys)
        found = self._found(words) if all_different(words) else None
        if found is None or not found.same(table, np.flatnonzero(found.there)):
            return False
        counts = weights + found.counts
        if counts.min() < 0 or max(weights.max(), found.counts.max()) >= 1 << 62:
            return False
        values = ColumnShape("one", ("int",)), [pa.array(counts, pa.int64())]
        spine.append_columns(keys, values, live=counts > 0)
        return True

    def _all_there(self, keys: Any, table: Any, weights: Any) -> bool:
        """Whether no row of an input that an index keeps would be there less than not at all."""
        goes = np.flatnonzero(weights < 0)
        if not len(goes) or self._sharing() is None:
            return True
        first = column_hashes(*keys)[goes]
        second = row_words(column_hashes(*self.rows(table)))[goes]
        order = np.lexsort((second, first))
        counts = np.zeros(len(goes), np.int64)
        for segment in self._stored().segments:
            for part, places, at in segment.find_rows(first[order], second[order]):
                at = goes[order[at]]
                stored = entries_to_arrow(part.pick(places), self.row_type, by_row=False)
                if not _same_rows(stored, pa.array(range(len(at))), table, at):
                    return False
                np.add.at(counts, np.searchsorted(goes, at), part.count[places])
        return bool((counts + weights[goes] >= 0).all())

    def _stored(self) -> Any:
        return self.held().spine(self.job.snapshot())

    def _sharing(self) -> SharedInput | None:
        """The input whose rows this index keeps."""
        owner = self.held().owner
        shared = [each for each in self._inputs() if isinstance(each, SharedInput)]
        return next((each for each in shared if each.index is owner), None)

    def _found(self, words: Any) -> Found | None:
        """What the state has of these hashes; None where one hash is that of several keys."""
        wanted, back = np.unique(words, return_inverse=True)
        owner = np.full(len(wanted), -1)
        place = np.zeros(len(wanted), np.int64)
        parts: list[Any] = []
        for segment in self._stored().segments:
            seen = []
            for owners, part, places in segment.find(wanted):
                right = part.hash_at(places) == wanted[owners]
                owners, places = owners[right], places[right]
                owner[owners], place[owners] = len(parts), places
                parts.append(part)
                seen.append(owners)
            if seen and not all_different(np.concatenate(seen)):
                return None
        keyed = isinstance(self.owner(), KeyedInput)
        tables, at = [], np.full(len(wanted), -1)
        size = 0
        for number, part in enumerate(parts):
            mine = np.flatnonzero(owner == number)
            mine = mine[part.count[place[mine]] > 0]
            if len(mine):
                picked = part.pick(place[mine])
                tables.append(entries_to_arrow(picked, self.row_type, by_row=not keyed))
                at[mine] = np.arange(size, size + len(mine))
                size += len(mine)
        schema = arrow_schema(self.row_type)
        return Found(at[back], pa.Table.from_batches(tables, schema))

    def _as_rows(self, spine: Spine, table: Any) -> None:
        delta: dict[Any, int] = {}
        for batch in table.to_batches():
            add(delta, *from_arrow(batch, self.row_type))
        delta = without_zeros(delta)
        if not self.is_input():
            sharing, rows = self._sharing(), list(delta)
            keys = self.keys_of(rows)
            if sharing is not None:
                weights = self._stored().weights(list(zip(keys, rows, strict=True)))
                for row, there in zip(rows, weights, strict=True):
                    if there + delta[row] < 0:
                        raise absent(sharing.source, row, there, -delta[row])
            found: dict[Any, list[Any]] = {}
            for key, row in zip(keys, rows, strict=True):
                found.setdefault(key, []).append((row, delta[row]))
            spine.append(found)
            return
        replica: Replica = replica_of(self.job.program)
        replica.open(self.job.snapshot())
        state = self.owner()
        keeping: list[Kept] = []
        replica.entered(state.source.name, delta, keeping)
        replica.pending = 0, keeping, {}
        for store, change in replica.staged():
            if store is state.store:
                spine.append(change)
        replica.detach()


@dataclass(frozen=True)
class Found:
    """What the state has: for every entry that was asked for, the place of its row in a table with
    how often it is there, or -1."""

    at: Any
    table: Any

    @property
    def there(self) -> Any:
        return self.at >= 0

    @property
    def counts(self) -> Any:
        known = np.append(self.table.column(WEIGHT).to_numpy(), 0)
        return known[self.at]

    def same(self, table: Any, which: Any) -> bool:
        """Whether what was found of these entries, each of them, are the rows of a table."""
        at = self.at[which]
        return bool((at >= 0).all()) and _same_rows(self.table, pa.array(at), table, which)


def _same_rows(left: Any, at: Any, right: Any, which: Any) -> bool:
    names = [name for name in left.schema.names if name != WEIGHT]
    picked = pa.array(which)
    return all(_equal(left.column(n).take(at), right.column(n).take(picked)) for n in names)


def _equal(left: Any, right: Any) -> bool:
    """Whether two columns are the same, nulls included."""
    if right.type != left.type:
        right = right.cast(left.type)
    same = pc.or_(pc.fill_null(pc.equal(left, right), False),
                  pc.and_(pc.is_null(left), pc.is_null(right)))  # fmt: skip
    return bool(pc.all(same, min_count=0).as_py())
