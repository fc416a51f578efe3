"""Route: which way an epoch goes, by how large its change is.

A small change goes through one task, or through the driver where that is asked for. A larger one
goes through one task, through waves of tasks or through Spark's SQL, whichever should be fastest
(`costs`); what an epoch took is remembered for the next. How many rows a query has, Spark guesses;
by how much too few that was is remembered, too. Where nobody knows how large a change is, one task
begins, and gives up when it is too large for it. With `small` set, whatever is larger is not for
one task, and the first of these is for Spark's SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ebbflow.change.fields import edited_fields
from ebbflow.change.requests import ReplaceRows
from ebbflow.engine.runtime.batches import SPINE
from ebbflow.engine.runtime.events import Events
from ebbflow.engine.runtime.table.column_types import comparable
from ebbflow.engine.runtime.table.feed_tables import marked_events
from ebbflow.engine.runtime.table.given import rows_of, total
from ebbflow.engine.spark.borrowed import exact, is_exact
from ebbflow.engine.spark.bulk.load import correct, estimated, load
from ebbflow.engine.spark.connect import cores_of
from ebbflow.engine.spark.native.functions import is_overflow
from ebbflow.engine.spark.native.lowering import Lowering
from ebbflow.engine.spark.options import Options
from ebbflow.engine.spark.output.frames import arrow_of, zset_of
from ebbflow.engine.spark.session import failed, is_gone, said_by
from ebbflow.engine.spark.tasks.costs import LEARNED, Costs
from ebbflow.engine.spark.tasks.epochs import (
    BULK,
    DRIVER,
    SINGLE_TASK,
    STAGED,
    EpochResult,
    Epochs,
    InputChange,
    TooMany,
)
from ebbflow.engine.spark.tasks.replacing import Replacing
from ebbflow.errors import EbbflowError
from ebbflow.state.spine.part import BAG

ONE_TASK, IN_COLUMNS, CORRECTION = 25, 100, 25
"""Up to so many times `small` rows one task takes; where all of its stages are in columns, which
take less memory; and from so many on a change of a state that is there may take the bulk path."""


class Route:
    """Runs every epoch the way that suits the size of its change."""

    def __init__(self, session: SparkSession, options: Options, epochs: Epochs) -> None:
        self.session, self.options, self.epochs = session, options, epochs
        self._why = ""
        self._most: int | None = None
        """How many rows one task may have in this epoch, where its mode was chosen."""
        self._costs: Costs | None = None
        self._guess, self._ratio = 0, 1.0
        """How many rows Spark says the epoch has; how many times as many there were lately."""

    def run(self, given: Mapping[str, InputChange]) -> EpochResult:
        """Run an epoch, and stage its changes of the state."""
        given = {
            name: each for name, each in given.items()
            if each.rows is None or each.rows or isinstance(each.request, ReplaceRows)
        }  # fmt: skip
        if not given:
            return EpochResult(DRIVER, 0, {}, ())
        try:
            with Replacing(self.epochs, self.options, self.session) as replacing:
                self._why, self._most, started = "", None, perf_counter()
                done = self._run({name: replacing.of(name, each) for name, each in given.items()})
            if self._costs is not None:
                self._costs.learn(done.mode, done.rows_in, perf_counter() - started)
            if self._guess and done.rows_in >= LEARNED:
                self._ratio = max(1.0, 0.9 * self._ratio, done.rows_in / self._guess)
            return replace(done, why="; ".join(filter(None, [self._why, done.why])))
        except Exception as error:
            if isinstance(error, EbbflowError) or not is_gone(error):
                raise
            what = "the epoch failed in Spark, and changed nothing"
            raise failed(error, what) from said_by(error)
        finally:
            self._guess = 0

    @property
    def most(self) -> int:
        """How many rows go through one task at most, as far as that is known. To see whether a
        task runs in columns takes half a second at first, so a small change does not ask."""
        small = self.options.small
        if not self.options.measures:
            return small
        if self._costs is not None:
            return self._costs.most_in_one_task(small, self._limit)
        return ONE_TASK * small if self.epochs.replica.columns is not None else small

    @property
    def _limit(self) -> int:
        """How many rows one task takes at most, whatever they cost."""
        costs = self.costs
        return (IN_COLUMNS if costs.columns >= costs.stages else ONE_TASK) * self.options.small

    def guessed(self, frame: DataFrame) -> int | None:
        """About how many rows a query of the next epoch has, where Spark knows."""
        found = estimated(frame)
        if found is None:
            return None
        self._guess += found
        return round(found * self._ratio)

    def _size(self, given: InputChange) -> int | None:
        if given.size is not None or given.frame is None:
            return given.size
        return self.guessed(given.frame)

    def _run(self, given: Mapping[str, InputChange]) -> EpochResult:
        options, epochs = self.options, self.epochs
        tasks = options.tasks(self.session)
        mode = options.mode if options.mode != "auto" else self._mode(given)
        if mode == BULK and self._can_load(given) and (self._empty or self._can_correct(given)):
            return self._load(given, tasks)
        if mode == DRIVER:
            return epochs.here(self._collected(given))
        if mode == SINGLE_TASK:
            most = self.most if self._most is None else self._most
            try:
                return epochs.whole(given, most)
            except TooMany:
                self._why = f"more than {most:,} rows"
                if options.mode == "auto" and self._empty and self._can_load(given):
                    return self._load(given, tasks)
        return epochs.staged(given, tasks)

    def _load(self, given: Mapping[str, InputChange], tasks: int) -> EpochResult:
        """A bulk load; where Spark's numbers are too small for it, in waves."""
        try:
            return (load if self._empty else correct)(self.epochs, given, tasks)
        except Exception as error:
            if not is_overflow(error):
                raise
        return self.epochs.staged(given, tasks)

    def _can_load(self, given: Mapping[str, InputChange]) -> bool:
        """Whether a bulk load can take these changes. Where some remove rows, Spark must be able to
        tell whether two rows are equal."""
        sources = self.epochs.replica.plan.sources
        return is_exact(self.session) and all(
            each.request is None and (each.added or comparable(sources[name].type))
            for name, each in given.items()
        )

    def _can_correct(self, given: Mapping[str, InputChange]) -> bool:
        """Whether a bulk load can take these changes where there is state: rows must be what they
        are, and no more be known of those that are gone."""
        inputs = [self.epochs.replica.inputs[name] for name in given]
        return all(each.beside is None and not edited_fields(each.source.type) for each in inputs)

    @property
    def _empty(self) -> bool:
        """Whether the state has no rows yet."""
        spines = self.epochs.store.manifest.spines
        return not any(each.segments for each in spines if each.operator != SPINE)

    def _mode(self, given: Mapping[str, InputChange]) -> str:
        """The mode for a change, by its size. Where that is not known, one task looks first."""
        small = self.options.small
        sizes = [self._size(each) for each in given.values()]
        rows = sum(each or 0 for each in sizes)
        if None not in sizes and rows <= small:
            self._most = small
            return DRIVER if self.options.in_driver else SINGLE_TASK
        if not self.options.measures or None in sizes:
            self._why = f"more than {small:,} rows"
            if self._empty:
                return BULK
            if None not in sizes:
                return STAGED
            self._most = self.most
            self._why = f"at most {self._most:,} rows"
            return SINGLE_TASK
        self._most = self._limit
        modes = [SINGLE_TASK] if rows <= self._most else []
        modes.append(STAGED)
        large = self._empty or (rows >= CORRECTION * small and self._can_correct(given))
        if large and self._can_load(given):
            modes.append(BULK)
        mode, self._why = self.costs.best(rows, modes, 0 if self._empty else self._indexed)
        return mode

    @property
    def costs(self) -> Costs:
        """What epochs of this program should take; to find out what of it are queries takes some
        time, so it is done when it is first asked for."""
        if self._costs is None:
            epochs = self.epochs
            replica = epochs.replica
            lowering = Lowering(replica, epochs.job(1), epochs.empty)
            stages = [each for each in replica.machine.stages if not each.arranges]
            with exact(self.session):
                found = [lowering.of(each.slot) for each in stages]
            queries = sum(each.rows is not None or each.cells is not None for each in found)
            kept = sum(state.keeps for state in replica.inputs.values())
            tasks = self.options.tasks(self.session)
            columns = 0 if replica.columns is None else replica.columns.count(stages)
            self._costs = Costs(
                stages=len(stages) + kept, waves=len(replica.waves()), queries=queries + kept,
                cores=max(1, min(tasks, cores_of(self.session) or tasks)), columns=columns,
            )  # fmt: skip
        return self._costs

    @property
    def _indexed(self) -> int:
        """How many rows there are in indexes, which joins may read."""
        parts = self.epochs.replica.parts
        return sum(len(each.spine(self.epochs.store)) for each in parts if each.layout == BAG)

    def _collected(self, given: Mapping[str, InputChange]) -> dict[str, InputChange]:
        """All changes as rows, in this process."""
        found = {}
        for name, each in given.items():
            source = self.epochs.replica.plan.sources[name]
            if isinstance(each.request, Events) and each.frame is not None:
                state: Any = self.epochs.replica.inputs[name]
                events = marked_events(state, arrow_of(each.frame), each.request)
                each = InputChange(each.request, dict.fromkeys(events, 1))
            elif each.frame is not None:
                each = InputChange(each.request, dict(zset_of(each.frame, source.type).items()))
            elif each.rows is None:
                each = InputChange(each.request, total(*rows_of(source, each.table)))
            found[name] = each
        return found
