"""A view on Spark: a program that is running, its state in a folder, its outputs as DataFrames.

It has the epochs of a local view: `step` takes a change of some inputs and brings all outputs up to
date together, or it is refused and everything is as it was. When it returns, the epoch is safe.
What is small goes through one task, what is large through many, what is first through Spark's SQL;
see `epochs` and `bulk`.

The state is on disk and nowhere else, so an epoch that is interrupted has happened or has not as
the store says, and there is little to put right (`_settle`): what was staged is forgotten, and of
an epoch that did happen those are told who listen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from logging import INFO
from pathlib import Path
from time import perf_counter
from typing import Any, Never

from pyspark.sql import DataFrame, SparkSession

from ebbflow.engine.runtime.batches import BatchName
from ebbflow.engine.runtime.changes import merged, one_mapping
from ebbflow.engine.runtime.inputs import InputState, not_kept
from ebbflow.engine.runtime.lookup import in_state, origin, required_key
from ebbflow.engine.runtime.reader.computed import former_cells
from ebbflow.engine.runtime.report import LOG, EpochStats, NodeWork
from ebbflow.engine.runtime.sinks.sink import needed
from ebbflow.engine.runtime.subscribe import Delivery
from ebbflow.engine.runtime.view import BaseView
from ebbflow.engine.spark.bulk.rebuild import Rebuilding
from ebbflow.engine.spark.handles import SparkInput, SparkOutput
from ebbflow.engine.spark.native.lowering import Lowering
from ebbflow.engine.spark.options import Options
from ebbflow.engine.spark.output.frames import (
    Frames,
    changed,
    derived,
    derived_outputs,
    difference,
    file_uri,
    having,
    repeated,
    require_same,
    stored,
    was,
    weighted,
    zset_of,
)
from ebbflow.engine.spark.output.log import Entry, Log, LoggedDisk, rows_in
from ebbflow.engine.spark.output.targets import write_change
from ebbflow.engine.spark.progress import Progress
from ebbflow.engine.spark.report import (
    Facts,
    History,
    SparkStats,
    explained,
    staged_entries,
)
from ebbflow.engine.spark.session import require_running
from ebbflow.engine.spark.streams.running import RunningStream
from ebbflow.engine.spark.streams.view import ViewWithStreams
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.engine.spark.tasks.asked import analysed, input_change, require_frames, with_tables
from ebbflow.engine.spark.tasks.epochs import BULK, EpochResult, Epochs, InputChange
from ebbflow.engine.spark.tasks.gated import let_in, stage_gates
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.route import Route
from ebbflow.engine.spark.tasks.task import EpochJob
from ebbflow.engine.spark.tasks.transport import pack_program
from ebbflow.errors import ViewClosed
from ebbflow.flow.plan import Plan, Source
from ebbflow.names import ON_SPARK
from ebbflow.notebook import Outputs
from ebbflow.paths import PRIVATE
from ebbflow.record import fields_of
from ebbflow.state.spine import Folder, files_at
from ebbflow.typevars import C
from ebbflow.zset import ZSet


class SparkView(ViewWithStreams, BaseView[C]):
    """A running program; made by `run(ef.spark(...))`."""

    _zsets, _instead = "zset()", ON_SPARK

    def __init__(
        self, plan: Plan, session: SparkSession, options: Options, check_input: bool
    ) -> None:
        super().__init__(plan)
        self.session, self.options = session, options
        files = files_at(options.path, options.permissions)
        self.path = files.address
        self._closed = False
        self._streams: dict[str, RunningStream] = {}
        self._replica = Replica(
            plan, check_input=check_input, readable=options.readable,
            derived=() if options.readable else derived_outputs(session, plan, check_input),
        )  # fmt: skip
        disk = LoggedDisk(
            files, self._replica, memory=options.memory,
            keep_epochs=options.keep_epochs, keep_for=options.keep_for, strict=options.strict,
            unpickle=options.unpickle, keep_batches=options.keep_batches, log=False,
            elsewhere=Rebuilding(session, options, self._replica, check_input),
        )  # fmt: skip
        try:
            self._replica.detach()
            program = pack_program(self._replica, check_input)
            self._store = disk.store
            self._epochs = Epochs(session, program, self._replica, self._store, options.small)
            self._route = Route(session, options, self._epochs)
            self._log = Log(disk, options.keep_epochs)
        except BaseException:
            disk.close()
            raise
        self._own(self._replica, disk)
        self._posted = self._began = self.epoch
        """The last epoch that is done with: sinks and callbacks may be told of it."""
        self._history = History(self._replica.machine.stages)
        self._lowering: Lowering | None = None
        self.last: EpochResult | None = None

    # ---- one epoch ----

    @property
    def epoch(self) -> int:
        """The number of epochs so far."""
        return self._store.epoch

    def step(
        self, changes: Mapping[str, Any] | None = None, /, *more: Never,
        batch: BatchName | None = None, **named: Any,
    ) -> C:  # fmt: skip
        """Change some inputs, all at once, and give what that changed: a DataFrame with the columns
        of a row and `__weight`; with several outputs one for each, by name.

        A change is a DataFrame, a pandas or Arrow table, or what a local view takes. Tables have
        the columns of a row, and may say what happens to it: `weight`, Debezium's `op`, or the
        `_change_type` of a Delta change feed. Requests, such as `ebbflow.upsert`, take tables too.

        With the name of a `batch`, or a source and a number that grows, it happens once: the same
        batch again changes nothing, and warns. See `batches`.
        """
        if more:
            raise one_mapping(more)
        return self._advance(merged(changes or {}, named), batch=batch)

    def _advance(self, given: Mapping[str, Any], batch: BatchName | None = None) -> C:
        with self._lock:
            self._require_ready()
            if batch is not None and self._replica.batches.repeated(batch):
                return self._changes(self.epoch, {})
            ran = self._run(given, batch)
            assert ran is not None
            entry, delivery = ran
            result = self._changes(self.epoch, entry)
        self._deliver(delivery)
        return result

    def _require_ready(self) -> None:
        """Be ready for an epoch, or say why there can be none."""
        self._require_open()
        self._storage.require()
        self._settle()

    def _run(
        self, given: Mapping[str, Any], batch: BatchName | None, *, empty: bool = True
    ) -> tuple[Entry, Delivery | None] | None:
        """Run an epoch, for one who holds the lock: what it changed, and who is to be told. Where
        it may not be `empty` and there are no rows, there is none."""
        batches, epoch, started = self._replica.batches, self.epoch + 1, perf_counter()
        try:
            read = self._read_changes(given)
            with Progress(self.session, f"epoch {epoch:,}", self.options.progress) as shown:
                running = perf_counter()
                gates = self._replica.forgetting.gates
                if not gates.keys().isdisjoint(read):
                    with self._opened():
                        read, noted, came = let_in(gates, read)
                done = self._route.run(read)
                if not empty and not done.rows_in and done.mode != BULK:
                    self._settle()
                    return None
                if not gates.keys().isdisjoint(read):
                    with self._opened() as replica:
                        stage_gates(replica, noted, came)
                ran = perf_counter()
                written = staged_entries(self._replica, self._store)
                batches.prepare(batch, epoch)
                if batch is not None:
                    batches.backing.append(batches.changed())
                entry = self._log.commit(done, self._needed())
                shown.rows = done.rows_in
            self.last, now = done, perf_counter()
            times = now - started, ran - running, now - ran
            ended = EpochStats(epoch, done.mode, done.rows_in, rows_in(entry), *times)
            self._history.add(ended, done, written)
            delivery = self._settle()
            if LOG.isEnabledFor(INFO):
                ended.log(INFO, self._named, self.path)
            return entry, delivery
        except BaseException:
            self._settle()
            raise

    def _settle(self) -> Delivery | None:
        """Forget what is staged of an epoch that did not happen, and tell of those that did. Doing
        it twice is doing it once."""
        self._store.rollback()
        delivery = None
        for epoch in range(self._posted + 1, self.epoch + 1):
            entry = self._log.of(epoch) or {}
            posted: Any = {
                name: (epoch, entry) for name, rows in rows_in(entry).items() if rows != 0
            }
            self._replica.batches.keep()
            if posted and self._subscribers.callbacks:
                delivery = self._subscribers.post(epoch, posted) or delivery
            self._posted = epoch
        return delivery

    def _needed(self) -> int | None:
        """The first epoch that somebody has not heard of."""
        deliveries = self._subscribers.undelivered
        first = needed(self._storage.done)
        return min(deliveries if first is None else [*deliveries, first], default=None)

    def _read_changes(self, given: Mapping[str, Any]) -> dict[str, InputChange]:
        sources = self.plan.sources
        for name, change in given.items():
            self._require("input", name, sources)
            require_frames(sources[name], change, self.session)
        with analysed(given):
            given = with_tables(sources, given, self.options)
        read = {}
        for name, change in given.items():
            with analysed([name]):
                read[name] = change if isinstance(change, InputChange) else input_change(
                    self._replica.inputs[name], change, self.options.small
                )  # fmt: skip
        return read

    def _changes(self, epoch: int, entry: Entry) -> C:
        return self._shown(lambda name: self._change(name, epoch, entry))

    def _change(self, name: str, epoch: int, entry: Entry) -> DataFrame:
        """What an epoch changed in an output."""
        found = entry.get(name, ())
        row_type = self.plan.outputs[name].type
        if found is None:
            return self._rows_at(name, epoch)
        if isinstance(found, int):  # the program was changed
            return difference(self._rows_at(name, epoch), self._rows_at(name, found), row_type)
        files = [file for file, _ in found]
        return changed(self.session, self._log.files, files, row_type)

    def _shown(self, frame: Callable[[str], DataFrame]) -> C:
        only = self._only
        found: Any = Frames(list(self.plan.outputs), frame) if only is None else frame(only)
        shown: C = found
        return shown

    # ---- reading ----

    @property
    def value(self) -> C:
        """The output as it is now: a DataFrame of rows, each as often as it is there; with several
        outputs one for each, by name, all of the same epoch."""
        return self._read(self.epoch)

    @property
    def weighted(self) -> C:
        """The output as it is now, every row once, with how often it is there in `__weight`."""
        with self._lock:
            self._require_open()
            epoch = self.epoch
            return self._shown(lambda name: self._weighted(name, epoch))

    def at(self, epoch: int) -> C:
        """The output at the end of an older epoch, as `value` gave it then; see `keep_epochs`."""
        with self._lock:
            self._require_open()
            if epoch != self.epoch:
                require_same(self._replica, self._store, epoch)
            return self._read(epoch)

    def _read(self, epoch: int) -> C:
        with self._lock:
            self._require_open()
            return self._shown(lambda name: repeated(self._weighted(name, epoch), name))

    def _weighted(self, name: str, epoch: int | None = None) -> DataFrame:
        job = self._job(epoch)
        if name in self._replica.derived:
            found = derived(self.session, job, self._replica, name)
            assert found is not None
            return found
        return weighted(self.session, job, name, self.plan.outputs[name].type)

    def _rows_at(self, name: str, epoch: int) -> DataFrame:
        """The rows of an output at an epoch, as the program left them that ran then."""
        if epoch < self._began:
            with self._store.at(epoch) as snapshot:
                changed = name in self._storage.changed_outputs(snapshot.notes)
                said = snapshot.notes.get("outputs", {}).get(name, {})
            if changed:
                job, row_type = self._job(epoch), self.plan.outputs[name].type
                if cells := former_cells(self._replica, name, said):
                    return weighted(self.session, job, name, row_type, cells)
                return was(self.session, job, name, row_type)
        return self._weighted(name, epoch)

    def _job(self, epoch: int | None) -> EpochJob:
        """What tasks need to read the state of an epoch."""
        job = self._epochs.job(self.options.tasks(self.session))
        return job if epoch is None else replace(job, base=epoch, manifest="")

    def zset(self) -> Any:
        """The output as a ZSet, collected here; with several outputs a dict of them."""
        with self._lock:
            self._require_open()
            found = {
                name: zset_of(self._weighted(name), node.type)
                for name, node in self.plan.outputs.items()
            }
        return Outputs(found) if self._only is None else found[self._only]

    def __getitem__(self, name: str) -> SparkOutput:
        self._require("output", name, self.plan.outputs)
        return SparkOutput(self, name)

    def input(self, name: str) -> SparkInput[C]:
        """One input, to read it and to change it alone."""
        self._require("input", name, self.plan.sources)
        return SparkInput(self, name)

    def _look_up(self, name: str, key: Any) -> Any:
        key_of = required_key(self._replica, name)
        with self._opened() as replica:
            read, row = in_state(replica, name, key)
        if read:
            return row
        node = self.plan.outputs[name]
        first = origin(node)
        columns = list(fields_of(node.type) or ())
        if isinstance(first, Source):
            with self._input_state(first.name) as state:
                row = state.get(key)
            if row is None or first is node:
                return row
            wanted = dict(zip(columns, row, strict=False))
        else:
            parts = key if getattr(first, "width", 1) > 1 else (key,)
            wanted = dict(zip(columns, parts, strict=False))
        rows = zset_of(having(self._weighted(name), wanted), node.type)
        return next((row for row in rows if key_of(row) == key), None)

    def _input_rows(self, name: str) -> DataFrame:
        with self._lock:
            self._require_open()
            if not self._replica.inputs[name].keeps:
                raise not_kept(self.plan.sources[name])
            job = self._epochs.job(self.options.tasks(self.session))
            schema = schema_of(self.plan.sources[name].type, weight=True)
            return repeated(stored(self.session, job, name, schema), name)

    @contextmanager
    def _input_state(self, name: str) -> Iterator[InputState]:
        with self._opened() as replica:
            yield replica.inputs[name]

    @contextmanager
    def _opened(self) -> Iterator[Replica]:
        """The program here, with its state at hand, for the time of a question."""
        self._require_open()
        try:
            self._replica.open(self._store)
            yield self._replica
        finally:
            self._replica.detach()

    # ---- for others ----

    def write_snapshot(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "parquet",
        mode: str = "overwrite",
        output: str | None = None,
        **options: Any,
    ) -> None:
        """Write the output as it is now as a table of this format, with the options of Spark's
        writer, and the permissions that it gives. Several outputs have a folder each,
        `path/<output>`. To write it elsewhere, there is `view.value.write`."""
        from ebbflow.engine.runtime.sinks.folder import places_of

        names = self._outputs(output)
        format = "json" if format == "jsonl" else format
        else_ = "view.value.write.save(...), which is Spark's own"
        places = places_of(path, names, len(names) > 1, "write_snapshot", else_)
        with self._lock:
            self._require_open()
            for name, place in places.items():
                frame = repeated(self._weighted(name), name)
                frame.write.format(format).mode(mode).options(**options).save(file_uri(place))

    def _safe(self) -> int:
        return self._posted

    def _logged(self) -> list[int]:
        return self._log.epochs

    def _entry(self, epoch: int) -> Entry | None:
        return self._log.of(epoch)

    def _everything(self) -> C:
        return self._shown(lambda name: self._weighted(name, self._posted))

    def _catch_up(self) -> Delivery | None:
        return self._settle()

    def _whole_entry(self) -> Entry:
        return dict.fromkeys(self.plan.outputs)

    def _write_change(self, name: str, epoch: int, entry: Entry, folder: Path, format: str) -> None:
        write_change(self, name, epoch, entry, folder, format)

    def _permissions(self) -> int:
        files = self._store.files
        return files.permissions if isinstance(files, Folder) else PRIVATE

    def _show(self, name: str | None) -> Callable[[Any], Any]:
        def show(posted: Any) -> Any:
            epoch, entry = next(iter(posted.values()))
            return self._changes(epoch, entry) if name is None else self._change(name, epoch, entry)

        return show

    # ---- about itself ----

    def stats(self) -> SparkStats:
        """What was done since the view was opened: its last epochs, and the work of every stage."""
        with self._lock:
            self._require_open()
            return self._history.stats(self.epoch)

    def _work(self) -> tuple[float, float, list[NodeWork]]:
        stats = self._history.stats(self.epoch)
        last = stats.epochs[-1].seconds if stats.epochs else 0.0
        nodes = [(each.label, each.place, each.total) for each in stats.nodes]
        return stats.seconds, last, [
            NodeWork(label, place, work.rows_in, work.rows_out, work.seconds)
            for label, place, work in nodes
        ]  # fmt: skip

    def explain(self, format: str = "text") -> str:
        """What runs here, how, and what it keeps, in the format text, mermaid, dot, json or
        python."""
        with self._lock:
            self._require_open()
            if self._lowering is None:
                self._lowering = Lowering(self._replica, self._epochs.job(1), self._epochs.empty)
            store = self._store
            facts = Facts(self._replica, store, self._lowering, self._history)
            about = {
                "engine": "Spark", "epoch": self.epoch,
                "last": None if self.last is None else self.last.mode,
                "why": "" if self.last is None else self.last.why,
                "tasks": self.options.tasks(self.session), "path": self.path,
                "bytes": store.info()["bytes"],
            }  # fmt: skip
            return explained(facts, format, about)

    def _contents(self) -> tuple[dict[str, ZSet[Any]], dict[str, ZSet[Any]]]:
        self._settle()
        self._replica.open(self._store)
        try:
            inputs = {name: state.snapshot() for name, state in self._replica.inputs.items()}
        finally:
            self._replica.detach()
        found = self.zset()
        return inputs, {self._only: found} if self._only is not None else found

    def close(self) -> None:
        self._stop_streams()
        with self._lock:
            if not self._closed:
                self._storage.close()
                self._closed = True
                if self._sinks is not None:
                    self._sinks.close()

    def __repr__(self) -> str:
        state = ", closed" if self._closed else f": epoch {self.epoch}"
        return f"<View on Spark of {', '.join(self.plan.outputs)}{state}>"

    def _require_not_closed(self) -> None:
        if self._closed:
            raise ViewClosed(
                "the view is closed", remedy="run() a new one; its state is where it was"
            )

    def _require_open(self) -> None:
        self._require_not_closed()
        require_running(self.session, "the Spark session of this view")
