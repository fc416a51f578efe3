"""Readers of Spark's for what is read of a state: at once, or as a stream of changes.

An offset of a stream is an epoch: `{"epoch": 7}` means that everything up to the end of epoch 7 has
been read. Without `startingEpoch` a stream begins before everything, at -1, and its first batch is
the value at the newest epoch; every later batch is what the epochs since then changed. Spark notes
the offsets of a batch before it runs, and a batch that is run again has the same rows: so whoever
adds up has each epoch exactly once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ebbflow.engine.spark.source.content import (
    EPOCH,
    ChangesContent,
    Content,
    HashRange,
    LoggedEpochs,
    RowsContent,
    content_of,
)
from ebbflow.engine.spark.source.options import SourceOptions
from ebbflow.errors import CompositionError, EbbflowError, StateError, Text

Offset = dict[str, int]
_OF_WORKERS = "PYTHON_WORKER_FACTORY_", "PYTHON_UNIX_DOMAIN_"
"""How the names of variables begin that Spark gives to its Python workers alone."""
_LIMITS: Any = None
_BASES: tuple[Any, ...] = (DataSourceStreamReader,)
if find_spec("pyspark.sql.streaming.datasource"):  # before Spark 4.2 a stream takes all there is
    _LIMITS = import_module("pyspark.sql.streaming.datasource")
    _BASES = (DataSourceStreamReader, _LIMITS.SupportsTriggerAvailableNow)


@contextmanager
def in_short() -> Iterator[None]:
    """Have Spark show an error of ours as it is, without the frames of the worker that raised it.
    Such a worker ends with its error, so no other error is shown in short."""
    try:
        yield
    except EbbflowError:
        if any(name.startswith(_OF_WORKERS) for name in os.environ):
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


class StateReader(DataSourceReader):
    """Reads what was asked for, at once."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.content: Content = content_of(options)
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        with in_short():
            return list(self.content.partitions())

    def read(self, partition: InputPartition) -> Iterator[Any]:
        with in_short():
            yield from in_columns(self.content.batches(partition), self.schema)


class StateStreamReader(*_BASES):  # type: ignore[misc]
    """Reads the value, then what every epoch changes."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options, self.schema = options, schema
        self.changes, self.value = ChangesContent(options), RowsContent(options)
        self.target: int | None = None
        """The last epoch to be read, where the stream ends by itself."""

    # ---- offsets ----

    def initialOffset(self) -> Offset:
        starting = self.options.starting
        return {"epoch": -1 if starting is None else max(starting, 1) - 1}

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:
        newest = self.newest()
        begin = self.initialOffset() if start is None else start
        if newest < begin["epoch"] and self.target is None:
            raise StateError(
                f"the state is at epoch {newest}, and this stream has read up to epoch "
                f"{begin['epoch']}: it is another one",
                remedy="a new checkpoint for another state",
            )
        last = newest if self.target is None else min(newest, self.target)
        if _LIMITS and isinstance(limit, _LIMITS.ReadMaxFiles) and begin["epoch"] >= 0:
            last = min(last, begin["epoch"] + limit.max_files)
        return {"epoch": max(last, begin["epoch"])}

    def reportLatestOffset(self) -> Offset:
        return {"epoch": self.newest()}

    def newest(self) -> int:
        """The newest epoch that is safe."""
        return self.changes.open().epoch

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self.newest()

    def getDefaultReadLimit(self) -> Any:
        """An epoch counts as a file does elsewhere."""
        if self.options.per_trigger is None:
            return super().getDefaultReadLimit()
        return _LIMITS.ReadMaxFiles(self.options.per_trigger)

    # ---- reading ----

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        with in_short():
            return self._partitions(start, end)

    def _partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        if start == end:
            return []
        if start["epoch"] < 0:
            return self.value.partitions(end["epoch"])
        snapshot = self.changes.open().glance()
        return self.changes.between(snapshot, start["epoch"] + 1, end["epoch"])

    def read(self, partition: InputPartition) -> Iterator[Any]:
        with in_short():
            if isinstance(partition, HashRange):
                found = self._value(partition)
            else:
                assert isinstance(partition, LoggedEpochs)
                found = self.changes.batches(partition)
            yield from in_columns(found, self.schema)

    def _value(self, partition: HashRange) -> Iterator[Any]:
        for batch in self.value.batches(partition):
            number = pa.array(np.full(len(batch), partition.epoch, np.int64))
            yield batch.append_column(pa.field(EPOCH, pa.int64(), False), number)


def stream_reader(options: SourceOptions, schema: StructType) -> StateStreamReader:
    """A reader of a stream, of which only what a stream can give was asked for. (Spark asks for the
    columns before it says that it wants a stream.)"""
    if not options.changes:
        raise CompositionError(
            "a stream of a view gives changes, each with its weight",
            remedy='spark.readStream.format("ebbflow").option("changes", True)',
        )
    for name in ("input", "node", "epoch", "ending"):
        if getattr(options, name) is not None:
            said = "endingEpoch" if name == "ending" else name
            raise CompositionError(
                f"a stream has no option {said!r}: it gives what every epoch changes in an output",
                remedy='spark.read.format("ebbflow"), without a stream',
            )
    return StateStreamReader(replace(options, weights=True), schema)


def in_columns(batches: Iterator[Any], schema: StructType) -> Iterator[Any]:
    """Batches in the columns of a schema: all of them, or those that the user wants."""
    wanted = to_arrow_schema(schema, timezone="UTC")
    for batch in batches:
        lost = [name for name in wanted.names if name not in batch.schema.names]
        if lost:
            raise CompositionError(
                f"there is no column {lost[0]!r}",
                columns=Text(", ".join(batch.schema.names)),
                remedy="these columns; where the program has changed meanwhile, read again",
            )
        found = batch.select(wanted.names)
        for given, asked in zip(found.schema, wanted, strict=True):
            if not alike(given.type, asked.type):
                raise CompositionError(
                    f"column {given.name!r} is {given.type}, and was asked for as {asked.type}",
                    remedy="the type it has; where the program has changed meanwhile, read again",
                )
        yield found if found.schema.equals(wanted) else found.cast(wanted)


def alike(one: Any, other: Any) -> bool:
    """Whether two types have the same values: inside, names and what may be null can differ.

    >>> alike(pa.list_(pa.int64()), pa.list_(pa.field("x", pa.int64(), False)))
    True
    >>> alike(pa.int64(), pa.utf8())
    False
    """
    if one == other or one.num_fields == 0:
        return bool(one == other)
    inside = [[each.field(i).type for i in range(each.num_fields)] for each in (one, other)]
    return one.id == other.id and len(inside[0]) == len(inside[1]) and all(map(alike, *inside))
