"""A view on Spark: a program that is running, its state in a folder, its outputs as DataFrames.

It has the epochs of a local view: `step` takes a change of some inputs and brings all outputs up to
date together, or it is refused and everything is as it was. When it returns, the epoch is safe.
What is small goes through one task, what is large through many, what is first through Spark's SQL;
see `epochs` and `bulk`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from time import perf_counter
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ebbflow.engine.batch import evaluate
from ebbflow.engine.local.durable import Disk
from ebbflow.engine.local.inputs import read as read_rows
from ebbflow.engine.local.report import Verified, compare
from ebbflow.engine.spark.bulk import load, size
from ebbflow.engine.spark.changes import frame_of
from ebbflow.engine.spark.epochs import BULK, HERE, STAGED, WHOLE, Done, Epochs, Given, TooMany
from ebbflow.engine.spark.frames import (
    Frames,
    changed,
    derived,
    once_each,
    repeated,
    weighted,
    zset_of,
)
from ebbflow.engine.spark.handles import Input, Output
from ebbflow.engine.spark.kinds import comparable
from ebbflow.engine.spark.native import is_overflow
from ebbflow.engine.spark.options import Options
from ebbflow.engine.spark.replica import APPLY, DELETE, Replica
from ebbflow.engine.spark.ship import Shipped, ship
from ebbflow.engine.spark.tables import table_of
from ebbflow.engine.spark.task import Job
from ebbflow.errors import CheckError, CompositionError, Text, ViewClosed
from ebbflow.flow.plan import Plan
from ebbflow.zset import ZSet

_ROWS = (ZSet, Mapping, list, tuple, set, frozenset)


class View:
    """A running program; made by `run(ef.spark(...))`."""

    def __init__(
        self, plan: Plan, session: SparkSession, options: Options, check_input: bool
    ) -> None:
        self.plan, self.session, self.options = plan, session, options
        self.path = str(Path(options.path).absolute())
        self._replica = Replica(
            plan, check_input=check_input, derived=_derived(session, plan, check_input)
        )
        self._disk = Disk(
            self.path, plan, self._replica.machine, self._replica.inlets, self._replica.outlets,
            memory=options.memory, keep_epochs=options.keep_epochs, strict=options.strict,
        )  # fmt: skip
        self._replica.close()
        program = ship(self._replica, check_input)
        self._epochs = Epochs(session, program, self._replica, self._disk.store, self.path)
        self._only = next(iter(plan.outputs)) if len(plan.outputs) == 1 else None
        self._lock = RLock()
        self._closed = False
        self.seconds = 0.0
        self.last: Done | None = None

    # ---- one epoch ----

    @property
    def epoch(self) -> int:
        """The number of epochs so far."""
        return self._disk.store.epoch

    def step(self, changes: Mapping[str, Any] | None = None, /, **named: Any) -> Any:
        """Change some inputs, all at once, and give what that changed: a DataFrame with the columns
        of a row and `__weight`; with several outputs one for each, by name.

        A change is a DataFrame, a pandas or Arrow table, or what a local view takes. Tables have
        the columns of a row, and may say what happens to it: `weight`, Debezium's `op`, or the
        `_change_type` of a Delta change feed.
        """
        given = {**(changes or {}), **named}
        return self._advance({name: (APPLY, change) for name, change in given.items()})

    def _advance(self, asked: Mapping[str, tuple[str, Any]]) -> Any:
        with self._lock:
            self._require_open()
            started = perf_counter()
            given = {name: self._given(name, *each) for name, each in asked.items()}
            given = {name: each for name, each in given.items() if each.rows is None or each.rows}
            done = self._run(given) if given else Done(HERE, 0, {}, ())
            self._commit(done)
            self.last = done
            self.seconds += perf_counter() - started
            return self._changes(self.epoch, done)

    def _given(self, name: str, verb: str, change: Any) -> Given:
        source = self.plan.sources.get(name)
        if source is None:
            raise CompositionError(
                f"there is no input {name!r}",
                inputs=Text(", ".join(self.plan.sources)),
                remedy="one of these",
            )
        if verb == DELETE:
            return Given(verb, dict.fromkeys(change, 1), size=len(change))
        if isinstance(change, DataFrame):
            return Given(verb, None, frame_of(source, change))
        if isinstance(change, _ROWS):
            rows = read_rows(source, change)
            return Given(verb, rows, size=len(rows))
        table = table_of(source, change)
        return Given(verb, None, self.session.createDataFrame(table), len(table))

    def _run(self, given: Mapping[str, Given]) -> Done:
        options, epochs = self.options, self._epochs
        tasks = options.tasks(self.session)
        mode = options.mode if options.mode != "auto" else self._mode(given)
        if any(each.verb == DELETE for each in given.values()) and mode == STAGED:
            mode = WHOLE
        if mode == BULK and self._empty and all(g.verb == APPLY for g in given.values()):
            try:
                return load(epochs, given, tasks)
            except Exception as error:
                if not is_overflow(error):
                    raise
        if mode == HERE:
            return epochs.here(self._collected(given))
        if mode == WHOLE:
            try:
                return epochs.whole(given, options.small)
            except TooMany:
                pass
        return epochs.staged(given, tasks)

    @property
    def _empty(self) -> bool:
        """Whether nothing is there yet."""
        return not any(listed.segments for listed in self._disk.store.manifest.spines)

    def _mode(self, given: Mapping[str, Given]) -> str:
        """The mode for a change, by its size. Where that is not known, one task looks first."""
        small = self.options.small
        sizes = [size(each) for each in given.values()]
        if None not in sizes and sum(each or 0 for each in sizes) <= small:
            return HERE if self.options.in_driver else WHOLE
        if self._empty:
            return BULK
        return WHOLE if None in sizes else STAGED

    def _collected(self, given: Mapping[str, Given]) -> dict[str, Given]:
        """Everything that is given, here."""
        found = {}
        for name, each in given.items():
            if each.frame is not None:
                kind = self.plan.sources[name].type
                each = Given(each.verb, dict(zset_of(each.frame, kind).items()))
            found[name] = each
        return found

    def _commit(self, done: Done) -> None:
        disk, store = self._disk, self._disk.store
        epoch = store.epoch + 1
        log: dict[str, Any] = dict(store.notes.get("changes", {}))
        log[str(epoch)] = {name: list(files) for name, files in done.changes.items()}
        log[str(epoch)] |= dict.fromkeys(done.derived)
        kept = sorted(log, key=int)[-self.options.keep_epochs :]
        gone = [each for each in log if each not in kept]
        disk.extra = {"changes": {each: log[each] for each in kept}}
        try:
            store.commit(epoch, disk.notes())
        except BaseException:
            if store.epoch < epoch:
                store.rollback()
            raise
        for each in gone:
            for files in log[each].values():
                for file, _ in files or ():
                    Path(self.path, "changes", file).unlink(missing_ok=True)

    def _changes(self, epoch: int, done: Done) -> Any:
        def frame(name: str) -> DataFrame:
            if name in done.derived:
                return self._weighted(name, epoch)
            files = [file for file, _ in done.changes.get(name, ())]
            return changed(self.session, self.path, files, self.plan.outputs[name].type)

        return self._shown(frame)

    def _shown(self, frame: Any) -> Any:
        return Frames(list(self.plan.outputs), frame) if self._only is None else frame(self._only)

    # ---- reading ----

    @property
    def value(self) -> Any:
        """The output as it is now: a DataFrame of rows, each as often as it is there; with several
        outputs one for each, by name, all of the same epoch."""
        self._require_open()
        return self._shown(lambda name: repeated(self._weighted(name), name))

    @property
    def weighted(self) -> Any:
        """The output as it is now, every row once, with how often it is there in `__weight`."""
        self._require_open()
        return self._shown(self._weighted)

    def _weighted(self, name: str, epoch: int | None = None) -> DataFrame:
        job = self._epochs.job(self.options.tasks(self.session))
        job = job if epoch is None else replace(job, base=epoch)
        if name in self._replica.derived:
            found = derived(self.session, job, self._replica, name)
            assert found is not None
            return once_each(found)
        return weighted(self.session, job, name, self.plan.outputs[name].type)

    def zset(self) -> Any:
        """The output as a ZSet, collected here; with several outputs a dict of them."""
        found = {
            name: zset_of(self._weighted(name), node.type)
            for name, node in self.plan.outputs.items()
        }
        return found if self._only is None else found[self._only]

    def __getitem__(self, name: str) -> Output:
        if name not in self.plan.outputs:
            raise CompositionError(
                f"there is no output {name!r}",
                outputs=Text(", ".join(self.plan.outputs)),
                remedy="one of these",
            )
        return Output(self, name)

    def __iter__(self) -> Any:
        return iter(self.plan.outputs)

    def __len__(self) -> int:
        return len(self.plan.outputs)

    def input(self, name: str) -> Input:
        """One input, to change it alone."""
        if name not in self.plan.sources:
            raise CompositionError(
                f"there is no input {name!r}",
                inputs=Text(", ".join(self.plan.sources)),
                remedy="one of these",
            )
        return Input(self, name)

    # ---- about itself ----

    def verify(self) -> Verified:
        """Compute everything again from the rows of the inputs, here in the driver, from scratch,
        and compare; an error where it differs."""
        with self._lock:
            self._require_open()
            replica = self._replica
            trusting = [name for name, inlet in replica.inlets.items() if not inlet.keeps]
            if trusting:
                raise CheckError(
                    "a view that keeps no input rows cannot be verified",
                    inputs=Text(", ".join(trusting)),
                    remedy="run() without check_input=False",
                )
            replica.open(self._disk.store)
            try:
                inputs = {name: inlet.snapshot() for name, inlet in replica.inlets.items()}
            finally:
                replica.close()
            found = self.zset()
            outputs = {self._only: found} if self._only is not None else found
            return compare(self.epoch, outputs, evaluate(self.plan, inputs))

    def close(self) -> None:
        """Stop, and let others open the state. A closed view can only be closed again."""
        with self._lock:
            if not self._closed:
                self._disk.close()
                self._closed = True

    def __enter__(self) -> View:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self._closed else f": epoch {self.epoch}"
        return f"<View on Spark of {', '.join(self.plan.outputs)}{state}>"

    def _require_open(self) -> None:
        if self._closed:
            raise ViewClosed("the view is closed", remedy="run() a new one on the same path")


def _derived(session: SparkSession, plan: Plan, check_input: bool) -> list[str]:
    """The outputs that are native queries on the rows of inputs, which the state has anyway."""
    replica = Replica(plan, check_input=check_input, names=None)
    if not all(inlet.keeps for inlet in replica.inlets.values()):
        return []
    job = Job(Shipped(b"", ""), "", 0, 1)
    return [
        name
        for name, node in plan.outputs.items()
        if name not in replica.machine.readers and comparable(node.type)
        and derived(session, job, replica, name, again=True) is not None
    ]  # fmt: skip
