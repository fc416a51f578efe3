"""What is read of a state: the rows of an output or an input, changes, or what operators keep.

Each of them has a schema, can be divided into partitions, and reads one partition as Arrow batches.
Where it is one partition and no epoch was asked for, its task reads the newest epoch there is when
it begins; so a temporary view, which Spark plans once, is live. Where there are more, the one who
plans looks at the state once, so all of them are of one epoch; the tasks find that epoch in the
folder again, without a lock and while the writer goes on. Should it not be kept any more by then,
they fail and say so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.datasource import InputPartition

from ebbflow.engine.runtime.convert.stand_in import TupleStandIn
from ebbflow.engine.runtime.program import unknown_name
from ebbflow.engine.runtime.reader.computed import entries_of, in_batches
from ebbflow.engine.runtime.reader.logged import CHANGES, logged_epochs, parquet_file
from ebbflow.engine.runtime.reader.reader import Reader
from ebbflow.engine.runtime.reader.reader import open as open_state
from ebbflow.engine.runtime.reader.scan import (
    RowScan,
    change_rows,
    input_rows,
    output_rows,
    output_type,
)
from ebbflow.engine.runtime.reader.stored import StoredOutput
from ebbflow.engine.runtime.sinks.log import operator_of
from ebbflow.engine.runtime.table.arrow import to_arrow
from ebbflow.engine.runtime.table.column_types import WEIGHT, columns_of
from ebbflow.engine.runtime.table.untyped import pickled
from ebbflow.engine.spark.source.options import SourceOptions
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.engine.spark.tasks.transport import limits
from ebbflow.errors import CompositionError, Damaged, StateError, Text
from ebbflow.record import record
from ebbflow.state.spine import Snapshot
from ebbflow.state.spine.columns import numbers_of

EPOCH = "__epoch"
"""The column of the epoch in which a change happened."""
SLICE = 1 << 16
ENTRIES = 1 << 20
"""About how many entries of state, or rows of changes, one task reads."""
MOST = 256
_ENTRY = record("StateEntry", node=str, key=str, value=str, weight=int)


@dataclass(frozen=True)
class HashRange(InputPartition):
    """One of some equal ranges of hashes, at an epoch; the newest without one."""

    epoch: int | None
    task: int
    tasks: int


@dataclass(frozen=True)
class LoggedEpochs(InputPartition):
    """What some epochs changed: each with the files it is in, where it is in files."""

    epochs: tuple[tuple[int, tuple[str, ...]], ...]


class Content:
    """What is read: a schema, partitions, and the batches of each."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def open(self) -> Reader:
        """The state at the path."""
        options = self.options
        program = None if options.program is None else program_named(options.program)
        return open_state(options.path, program, unpickle=options.unpickle)

    def schema(self) -> t.StructType:
        """The columns."""
        raise NotImplementedError

    def partitions(self) -> Sequence[InputPartition]:
        """The parts in which it is read."""
        raise NotImplementedError

    def batches(self, partition: Any) -> Iterator[Any]:
        """The rows of a part."""
        raise NotImplementedError


def content_of(options: SourceOptions) -> Content:
    """What was asked for."""
    if options.node is not None:
        return NodeContent(options)
    return ChangesContent(options) if options.changes else RowsContent(options)


# ---- rows, and what operators keep: in ranges of hashes ----


class RangedContent(Content):
    """What is in spines, at an epoch."""

    def entries(self, snapshot: Snapshot) -> int:
        """How many entries there are to read."""
        raise NotImplementedError

    def spines(self, snapshot: Snapshot) -> set[str]:
        """The names of the spines that are read."""
        raise NotImplementedError

    def read(self, snapshot: Snapshot, low: int, high: int) -> Iterator[Any]:
        """What is in a range."""
        raise NotImplementedError

    def whole(self, snapshot: Snapshot) -> bool:
        """Whether it cannot be divided."""
        return False

    def partitions(self, epoch: int | None = None) -> Sequence[HashRange]:
        asked = self.options.epoch if epoch is None else epoch
        found = self.open().glance(asked)
        tasks = self.options.partitions or min(MOST, -(-self.entries(found) // ENTRIES) or 1)
        tasks = 1 if self.whole(found) else tasks
        epoch = None if asked is None and tasks == 1 else found.epoch
        return [HashRange(epoch, task, tasks) for task in range(tasks)]

    def batches(self, partition: HashRange) -> Iterator[Any]:
        try:
            found = self.open().snapshot(partition.epoch, self.spines)
        except Damaged:
            raise
        except StateError as error:
            raise error if partition.epoch is None else _gone(partition.epoch, error) from error
        return self.read(found, *limits(partition.task, partition.tasks))


class RowsContent(RangedContent):
    """The rows of an output or of an input."""

    def stored(self, snapshot: Snapshot) -> Any:
        """Where they are, or how they are computed."""
        if self.options.input is not None:
            return input_rows(snapshot, self.options.input)
        if self.options.program is not None:
            return ProgramScan.of(self.open(), snapshot, self.options)
        return output_rows(snapshot, _output(snapshot, self.options.output))

    def schema(self) -> t.StructType:
        found = self.stored(self.open().glance(self.options.epoch))
        return checked(found.type, self.options, weight=self.options.weights)

    def entries(self, snapshot: Snapshot) -> int:
        return int(self.stored(snapshot).entries(snapshot))

    def spines(self, snapshot: Snapshot) -> set[str]:
        return set(self.stored(snapshot).spines)

    def whole(self, snapshot: Snapshot) -> bool:
        return bool(self.stored(snapshot).whole)

    def read(self, snapshot: Snapshot, low: int, high: int) -> Iterator[Any]:
        for batch in self.stored(snapshot).batches(snapshot, low, high):
            yield from [batch] if self.options.weights else repeated_rows(batch)


@dataclass(frozen=True)
class ProgramScan:
    """The rows of an output, read with the program."""

    type: Any
    output: StoredOutput
    whole: ClassVar[bool] = True

    @staticmethod
    def of(reader: Reader, snapshot: Snapshot, options: SourceOptions) -> ProgramScan:
        """That of the output that was asked for."""
        known = reader.known(snapshot)
        name = _named(options.output, known)
        return ProgramScan(known[name].type, known[name])

    @property
    def spines(self) -> tuple[str, ...]:
        """The names of the spines that are read."""
        return self.output.parts

    def entries(self, snapshot: Snapshot) -> int:
        """How many entries of state there are to read."""
        return sum(entries_of(snapshot, part) for part in self.output.parts)

    def batches(self, snapshot: Snapshot, low: int, high: int) -> Iterator[Any]:
        """The rows with their weights, as Arrow batches."""
        return in_batches([self.output.read(snapshot)], self.type)


def program_named(text: str) -> Any:
    """The program that is named as `module:name`, imported."""
    module, _, name = text.partition(":")
    try:
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise CompositionError(
            f"there is no program {text!r}",
            cause=error,
            remedy='"module:name", a module that Spark\'s Python can import and a program in it',
        ) from error


class NodeContent(RangedContent):
    """What operators keep, as text: the label of the node, a key, and a value or a row."""

    def labels(self, snapshot: Snapshot) -> dict[str, str]:
        """The spines that are read, each with its label."""
        known: dict[str, str] = snapshot.notes["parts"]
        asked = str(self.options.node)
        found = {part: label for part, label in known.items() if asked in label}
        if not found:
            raise unknown_name("node", asked, dict.fromkeys(known.values()))
        return found

    def schema(self) -> t.StructType:
        self.labels(self.open().glance(self.options.epoch))
        return schema_of(_ENTRY)

    def entries(self, snapshot: Snapshot) -> int:
        return sum(RowScan(Any, part).entries(snapshot) for part in self.labels(snapshot))

    def spines(self, snapshot: Snapshot) -> set[str]:
        return set(self.labels(snapshot))

    def read(self, snapshot: Snapshot, low: int, high: int) -> Iterator[Any]:
        there = set(snapshot.names())
        for part, label in self.labels(snapshot).items():
            if (part, 0) not in there:
                continue
            found = snapshot.reading(part, TupleStandIn).scan(low, high)
            while some := list(islice(found, SLICE)):
                rows = [_ENTRY(label, repr(key), repr(row), weight) for key, row, weight in some]
                yield to_arrow(rows, [1] * len(rows), _ENTRY)


# ---- changes ----


class ChangesContent(Content):
    """What epochs changed in an output."""

    def name(self, snapshot: Snapshot) -> str:
        """The output."""
        return _output(snapshot, self.options.output)

    def schema(self) -> t.StructType:
        found = self.open().glance()
        row_type = output_type(found, self.name(found))
        fields = checked(row_type, self.options, weight=True).fields
        return t.StructType([*fields, t.StructField(EPOCH, t.LongType(), False)])

    def partitions(self) -> Sequence[LoggedEpochs]:
        found, options = self.open().glance(), self.options
        last = found.epoch if options.ending is None else options.ending
        first = options.starting
        if first is None:
            kept = logged_epochs(found, {self.name(found): self._type(found)})
            first = last
            while first - 1 in kept:
                first -= 1
        return self.between(found, first, last)

    def between(self, snapshot: Snapshot, first: int, last: int) -> Sequence[LoggedEpochs]:
        """What the epochs from the first to the last changed, both included, in parts."""
        name, row_type = self.name(snapshot), self._type(snapshot)
        kept = logged_epochs(snapshot, {name: row_type})
        wanted = range(max(first, 1), last + 1)  # nothing is changed by epoch 0, which is empty
        if max(first - 1, last) > snapshot.epoch:
            raise StateError(
                f"epoch {max(first, last)} has not happened",
                newest=snapshot.epoch,
                remedy="an epoch up to the newest",
            )
        if not kept.issuperset(wanted):
            raise not_kept(name, wanted, kept, snapshot.epoch)
        found: list[list[tuple[int, tuple[str, ...]]]] = [[]]
        size = 0
        for epoch in wanted:
            files = _files(snapshot, name, epoch)
            rows = sum(count for _, count in files)
            rows = rows if files else change_rows(snapshot, name, epoch).entries(snapshot)
            if found[-1] and size + rows > ENTRIES:
                found.append([])
                size = 0
            found[-1].append((epoch, tuple(file for file, _ in files)))
            size += rows
        return [LoggedEpochs(tuple(some)) for some in found]

    def batches(self, partition: LoggedEpochs) -> Iterator[Any]:
        reader = self.open()
        found = reader.snapshot(None, self._spines)
        name, row_type = self.name(found), self._type(found)
        wanted = [epoch for epoch, _ in partition.epochs]
        kept = logged_epochs(found, {name: row_type})
        if not kept.issuperset(wanted):
            raise not_kept(name, wanted, kept, found.epoch)
        for epoch, files in partition.epochs:
            try:
                for batch in self._of(reader, found, name, epoch, files):
                    number = pa.array(np.full(len(batch), epoch, np.int64))
                    yield batch.append_column(pa.field(EPOCH, pa.int64(), False), number)
            except Damaged as error:  # a file of it is gone, or is damaged: then it is the newest
                now = self.open().glance()
                kept = logged_epochs(now, {name: row_type})
                if epoch in kept:
                    raise
                raise not_kept(name, wanted, kept, now.epoch) from error

    def _of(
        self, reader: Reader, snapshot: Snapshot, name: str, epoch: int, files: tuple[str, ...]
    ) -> Iterator[Any]:
        if str(epoch) not in snapshot.notes.get(CHANGES, {}):
            yield from change_rows(snapshot, name, epoch).batches(snapshot)
        for file in files:
            yield from parquet_file(reader.files.folder(CHANGES), file).iter_batches(SLICE)

    def _spines(self, snapshot: Snapshot) -> set[str]:
        return {operator_of(self.name(snapshot))}

    def _type(self, snapshot: Snapshot) -> Any:
        return output_type(snapshot, self.name(snapshot))


def _files(snapshot: Snapshot, name: str, epoch: int) -> list[tuple[str, int]]:
    """The files of an epoch with how many rows they have, where it is in files."""
    found = snapshot.notes.get(CHANGES, {}).get(str(epoch), {}).get(name) or ()
    return [(file, rows) for file, rows in found]


# ---- columns ----


def checked(row_type: Any, options: SourceOptions, *, weight: bool) -> t.StructType:
    """The columns of rows, if Spark has one for each of them."""
    for name, column in columns_of(row_type):
        path = pickled(column)
        if path is not None:
            what = f"input {options.input!r}" if options.input else "the output"
            raise CompositionError(
                f"{what}: field {name + path!r} is of no type that Spark has a column for",
                hint=Text(str(column)),
                remedy="a type for it where the view is written: a number, a text, a time, a "
                "tuple or a NamedTuple",
            )
    return schema_of(row_type, weight=weight)


def repeated_rows(batch: Any) -> Iterator[Any]:
    """Every row of a batch as often as it is there, without weights."""
    weights = numbers_of(batch.column(WEIGHT))
    rows = batch.drop_columns([WEIGHT])
    if (weights == 1).all():
        yield rows
        return
    if (weights < 0).any():
        raise StateError(
            "there are rows of negative weight, which cannot be there less than not at all",
            remedy='.option("weights", "true")',
        )
    ends = np.cumsum(weights)
    for start in range(0, int(ends[-1]), SLICE):
        places = np.arange(start, min(start + SLICE, int(ends[-1])))
        yield rows.take(pa.array(ends.searchsorted(places, "right")))


# ---- errors ----


def _output(snapshot: Snapshot, asked: str | None) -> str:
    """The name of an output: the one that is asked for, or the only one."""
    return _named(asked, snapshot.notes.get("outputs", {}))


def _named(asked: str | None, known: Mapping[str, Any]) -> str:
    """The name that is asked for, or the only one."""
    if asked is not None:
        if asked not in known:
            raise unknown_name("output", asked, known)
        return asked
    if len(known) != 1:
        raise CompositionError(
            "the view has several outputs",
            outputs=Text(", ".join(known)),
            remedy=f'.option("output", "{next(iter(known), "")}")',
        )
    return next(iter(known))


def not_kept(name: str, wanted: Sequence[int], kept: set[int], newest: int) -> StateError:
    """The error for changes of epochs that are not there, or not any more."""
    lost = [epoch for epoch in wanted if epoch not in kept]
    said = f"epoch {lost[0]}" if len(lost) == 1 else f"epochs {lost[0]} to {lost[-1]}"
    first = max((epoch for epoch in kept if epoch - 1 not in kept), default=None)
    return StateError(
        f"what {said} changed in output {name!r} is not kept",
        kept=Text("none" if first is None else f"epochs {first} to {max(kept)}"),
        newest=newest,
        remedy="a larger keep_epochs where the view is written; for a stream that is too far "
        "behind, then a new checkpoint, which begins with the value",
    )


def _gone(epoch: int, error: StateError) -> StateError:
    """The error of a task that does not find the epoch that was planned."""
    return StateError(
        f"epoch {epoch} could not be read to its end: the writer has gone on, and does not keep it",
        found=Text(error.what),
        **error.facts,
        remedy="a larger keep_epochs where the view is written, and to load it again: a temporary "
        'view is of the epoch of its first query; or .option("partitions", 1), always the newest',
    )
