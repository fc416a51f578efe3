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

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ebbflow.engine.spark.arrow import to_arrow
from ebbflow.engine.spark.kinds import WEIGHT
from ebbflow.engine.spark.schema import schema_of
from ebbflow.engine.spark.ship import limits, replica_of
from ebbflow.engine.spark.task import CHANGES, Job
from ebbflow.errors import shown
from ebbflow.state.backing import Backing

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
    from ebbflow.engine.spark.arrow import from_arrow
    from ebbflow.engine.spark.ship import add, settled
    from ebbflow.zset import trusted

    total: dict[Any, int] = {}
    for batch in frame.toArrow().to_batches():
        add(total, *from_arrow(batch, kind))
    return trusted(settled(total))


__all__ = ["Frames", "Read", "changed", "repeated", "shown", "weighted", "zset_of"]
