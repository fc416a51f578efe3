"""Replacing the rows of an input on Spark.

Where few rows are there, the task that runs the epoch looks at them all (`runtime.replaced`). Else
Spark finds the difference: the new rows, and those of the state with negative weights, read by as
many tasks as there are, are added up; what is left is a change like any other. Rows of the state
become rows of Python only where a `where` has to be asked that is no query. The driver sees none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from ebbflow.change.requests import ReplaceRows
from ebbflow.engine.runtime.gc_paused import gc_paused
from ebbflow.engine.runtime.replaced import chooser, outside
from ebbflow.engine.runtime.table.arrow import from_arrow, to_arrow
from ebbflow.engine.runtime.table.column_types import WEIGHT, columns_of, comparable
from ebbflow.engine.spark.borrowed import exact, persisted, unprinted
from ebbflow.engine.spark.failure import raise_failure
from ebbflow.engine.spark.native.functions import native_truth, quoted
from ebbflow.engine.spark.native.lowering import once_each
from ebbflow.engine.spark.native.values import NotNative
from ebbflow.engine.spark.options import Options
from ebbflow.engine.spark.output.frames import stored
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.engine.spark.tasks.epochs import DRIVER, SINGLE_TASK, Epochs, InputChange
from ebbflow.engine.spark.tasks.report import error_in, task_failed
from ebbflow.engine.spark.tasks.task import EpochJob
from ebbflow.errors import EbbflowError, cause_of
from ebbflow.flow.plan import Source
from ebbflow.fn import Fn
from ebbflow.record import fields_of

_EXACT: dict[str, type] = {"int": int, "text": str, "bool": bool, "date": date}


class Replacing:
    """Finds what differs, for the requests of one epoch; what it has Spark keep for that is let go
    of in the end."""

    def __init__(self, epochs: Epochs, options: Options, session: SparkSession) -> None:
        self.epochs, self.options, self.session = epochs, options, session
        self.kept: list[DataFrame] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for frame in self.kept:
            frame.unpersist()

    def of(self, name: str, given: InputChange) -> InputChange:
        """What is done to an input, as a change with weights where one task should not look for
        the difference."""
        request = given.request
        if not isinstance(request, ReplaceRows):
            return given
        replica, store = self.epochs.replica, self.epochs.store
        there = len(replica.part(replica.inputs[name].holder).spine(store))
        mode, small = self.options.mode, self.options.small
        few = given.rows is not None and there + len(given.rows) <= small
        if mode in (DRIVER, SINGLE_TASK) or (mode == "auto" and few):
            return given
        source = replica.plan.sources[name]
        tasks = self.options.tasks(self.session)
        job = self.epochs.job(max(tasks, there // small if small else tasks))
        with exact(self.session):
            frame, stray = self._difference(job, source, given, request.where)
        for row in () if stray is None else _ran(stray.limit(1).toArrow, job).to_batches():
            for each in from_arrow(row, source.type)[0]:
                raise outside(source, each)
        self.kept.append(persisted(frame))
        return InputChange(None, None, frame, size=_ran(frame.count, job))

    def _difference(
        self, job: EpochJob, source: Source, given: InputChange, where: Any
    ) -> tuple[DataFrame, DataFrame | None]:
        """What differs, and new rows of which `where` is not true."""
        row_type = source.type
        schema = schema_of(row_type, weight=True)
        new = self.epochs.frame(source.name, given)
        old = stored(self.session, job, source.name, schema)
        stray = None
        if where is not None:
            native = _condition(source, where)
            if native is not None:
                old, stray = old.filter(native), new.filter(~native)
            else:
                chosen: Any = chooser(source, where)
                old = old.mapInArrow(ChosenRows(job, row_type, chosen, True), schema)
                stray = new.mapInArrow(ChosenRows(job, row_type, chosen, False), schema)
        both = new.unionByName(old.withColumn(WEIGHT, -f.col(WEIGHT)))
        return (once_each(both) if comparable(row_type) else both), stray


def _condition(source: Source, where: Any) -> Column | None:
    """Whether `where` is true of a row, as a column; None where only Python can tell."""
    if callable(where):
        try:
            return f.coalesce(native_truth(Fn.of(where, source.type), source.type), f.lit(False))
        except (NotNative, EbbflowError):
            return None
    columns = dict(columns_of(source.type))
    found = f.lit(True)
    for name, value in where.items():
        if fields_of(source.type) is None or type(value) is not _EXACT.get(columns[name].form):
            return None
        found = found & quoted(name).eqNullSafe(f.lit(value))
    return found


def _ran(action: Callable[[], Any], job: EpochJob) -> Any:
    """What a job gives; an error in one sentence when it fails."""
    try:
        with unprinted():
            return action()
    except Exception as error:
        reported = error_in(str(error), job.secret)
        if reported is not None:
            raise reported from None
        what = "the difference could not be found in Spark, and nothing was changed"
        raise_failure(error, what, "; the epoch can be stepped again")


@dataclass(frozen=True)
class ChosenRows:
    """The rows of batches of which `chosen` is true, or is not."""

    job: EpochJob
    row_type: Any
    chosen: Callable[[Any], bool]
    wanted: bool

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        for batch in given:
            rows, weights = from_arrow(batch, self.row_type)
            try:
                which = [self.chosen(row) is self.wanted for row in rows]
            except EbbflowError as error:
                raise task_failed(error, self.job.secret) from cause_of(error)
            kept = [(row, n) for row, n, yes in zip(rows, weights, which, strict=True) if yes]
            yield to_arrow([row for row, _ in kept], [n for _, n in kept], self.row_type)
