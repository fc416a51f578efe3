"""The Spark engine without Spark: its tasks, called one after the other in this process.

What runs in a task is a function from Arrow batches to Arrow batches. Here the lines it gives are
handed to the next tasks by hand, so that thousands of programs can be tried in the time of a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from tempfile import mkdtemp
from typing import Any

from ebbflow.change.requests import ReplaceRows
from ebbflow.engine.runtime.durable import Disk
from ebbflow.engine.runtime.reader.logged import parquet_file
from ebbflow.engine.runtime.table.arrow import from_arrow
from ebbflow.engine.runtime.table.given import rows_of, total
from ebbflow.engine.spark import view as spark_view
from ebbflow.engine.spark.options import Options
from ebbflow.engine.spark.output.frames import ReadOutput
from ebbflow.engine.spark.tasks.asked import input_change
from ebbflow.engine.spark.tasks.epochs import EpochResult, Epochs, InputChange, is_sent
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.report import REPORT, Line, TaskReport
from ebbflow.engine.spark.tasks.single import SingleTask
from ebbflow.engine.spark.tasks.task import (
    EnterTables,
    EnterTask,
    EpochJob,
    WaveTask,
    in_slices,
    lines_of,
)
from ebbflow.engine.spark.tasks.transport import add, in_stream, pack_program
from ebbflow.flow.plan import Plan
from ebbflow.zset import ZSet, trusted, without_zeros


class Cluster(Epochs):
    """Epochs whose tasks run here, each after the other; the last of a wave first."""

    calls = 0

    def whole(self, given: Mapping[str, InputChange], most: int) -> EpochResult:
        requests = tuple((name, each.request) for name, each in given.items())
        here = [(name, self.blob(each) or in_stream(each.table)) for name, each in given.items()]
        task = SingleTask(self.job(1), requests, most, tuple(here))
        return self.stage_reports("single_task", notes(lines_of(task(iter(())))))

    def staged(self, given: Mapping[str, InputChange], tasks: int) -> EpochResult:
        if any(isinstance(each.request, ReplaceRows) for each in given.values()):
            some = {name: self.in_rows(name, each) for name, each in given.items()}
            return self.whole(some, 10**9)  # else Spark would find the difference
        job = self.job(tasks, given)
        inputs = self.replica.machine.inputs
        rows = {name: each for name, each in given.items() if not is_sent(each)}
        by_key = {name: name if name in job.by_key else "" for name in rows}
        enter = EnterTables(
            tuple(EnterTask(job, inputs[n], by_key[n], each.request) for n, each in rows.items())
        )
        tables = [self.table(name, each) for name, each in rows.items()]
        lines = list(lines_of(enter(iter(in_slices(tables, 2).to_batches()))))
        for name in set(given) - set(rows):
            lines += self.sent(job, name, given[name])
        requests = tuple((name, each.request) for name, each in given.items())
        for number, wave in enumerate(self.replica.waves(job.by_key).waves):
            if wave.loops:
                lines = self.led(job, number, lines)
            if number and wave.in_tasks:
                lines = self.run_round(job, WaveTask(job, number, requests), lines)
        return self.stage_reports("staged", notes(lines))

    def in_rows(self, name: str, each: InputChange) -> InputChange:
        source = self.replica.plan.sources[name]
        if each.rows is not None:
            return each
        return each._replace(rows=total(*rows_of(source, each.table)))

    def run_round(self, job: EpochJob, task: Any, lines: list[Line]) -> list[Line]:
        found: list[Line] = []
        for number in reversed(range(job.tasks)):
            mine = [line for line in lines if line[0] == number]
            self.calls += 1
            found += lines_of(task(_batches(mine)))
        return found


def _batches(lines: Iterable[Any]) -> Any:
    from ebbflow.engine.spark.tasks.task import batches

    return batches(lines)


def notes(lines: Iterable[Any]) -> list[Any]:
    found = list(lines)
    assert all(port == REPORT for _, port, _ in found)
    return [TaskReport.read(blob) for _, _, blob in found]


class View:
    """A view whose epochs run on the cluster that is not there."""

    def __init__(
        self, plan: Plan, mode: str, tasks: int = 3, check_input: bool = True, path: Any = ""
    ) -> None:
        self.plan, self.mode, self.tasks, self.check_input = plan, mode, tasks, check_input
        self.path = path or mkdtemp()
        self.small = 20_000
        self._open()

    def _open(self) -> None:
        self.replica = Replica(self.plan, check_input=self.check_input)
        self.disk = Disk(self.path, self.replica, memory="64MB")
        self.replica.detach()
        try:
            self.program = pack_program(self.replica, self.check_input)
        except BaseException:
            self.disk.close()
            raise
        args = (None, self.program, self.replica, self.disk.store, self.small)
        self.cluster = Cluster(*args)  # type: ignore[arg-type]

    @property
    def epoch(self) -> int:
        return self.disk.store.epoch

    def step(self, changes: Mapping[str, Any]) -> Any:
        """One epoch: the change of the output, or of each by name."""
        return self.advance({n: change for n, change in changes.items() if n in self.plan.sources})

    def advance(self, asked: Mapping[str, Any]) -> Any:
        """One epoch, in which something else may be done to every input."""
        given = {name: self._given(name, each) for name, each in asked.items()}
        given = {
            name: each for name, each in given.items()
            if each.rows is None or each.rows or isinstance(each.request, ReplaceRows)
        }  # fmt: skip
        done = self._run(given) if given else EpochResult(self.mode, 0, {}, ())
        self.commit()
        moved = {name: self._change(name, done) for name in self.plan.outputs}
        return moved if len(moved) > 1 else next(iter(moved.values()))

    def _given(self, name: str, change: Any) -> InputChange:
        small = 0 if self.mode == "staged" else 10**9  # only waves begin with tables
        return input_change(self.replica.inputs[name], change, small)

    def _run(self, given: Mapping[str, InputChange]) -> EpochResult:
        if self.mode == "driver":
            return self.cluster.here(given)
        if self.mode == "single_task":
            return self.cluster.whole(given, 10**9)
        return self.cluster.staged(given, self.tasks)

    def commit(self) -> None:
        """Make the epoch so."""
        self.disk.store.commit(self.disk.store.epoch + 1)

    def reopen(self) -> None:
        """Close, and open again what is on disk."""
        self.close()
        self._open()

    def _change(self, name: str, done: EpochResult) -> ZSet[Any]:
        total: dict[Any, int] = {}
        for file, rows in done.changes.get(name, ()):
            table = parquet_file(self.disk.files.folder("changes"), file).read()
            assert len(table) == rows
            found, weights = from_arrow(table, self.plan.outputs[name].type)
            assert not (set(found) & set(total)), "a row is in two files of one change"
            add(total, found, weights)
        assert 0 not in total.values()
        return trusted(without_zeros(total))

    @property
    def value(self) -> Any:
        found = {name: self._value(name) for name in self.plan.outputs}
        return found if len(found) > 1 else next(iter(found.values()))

    def _value(self, name: str) -> ZSet[Any]:
        return read(self.cluster, self.tasks, name)

    def close(self) -> None:
        self.disk.close()


class Driver(spark_view.SparkView):
    """The view of the Spark engine itself, with a cluster that is not there. It has several
    outputs, so that nobody makes frames of them."""

    def __init__(self, plan: Plan, mode: str, path: str, **options: Any) -> None:
        found, spark_view.derived_outputs = spark_view.derived_outputs, lambda *_: []
        try:
            settings = Options(path, mode=mode, buckets=3, progress=False, **options)
            super().__init__(plan, None, settings, True)  # type: ignore[arg-type]
        finally:
            spark_view.derived_outputs = found
        args = (None, self._epochs.program, self._replica, self._store)
        self._epochs = self._route.epochs = Cluster(*args)  # type: ignore[arg-type]

    def _require_open(self) -> None:
        pass

    def zset(self) -> Any:
        return {name: read(self._epochs, 3, name) for name in self.plan.outputs}


def read(epochs: Epochs, tasks: int, name: str) -> ZSet[Any]:
    """An output, read by so many tasks."""
    import pyarrow as pa

    total: dict[Any, int] = {}
    task_of_each = ReadOutput(epochs.job(tasks), name)
    for task in range(tasks):
        batch = pa.RecordBatch.from_pydict({"id": [task]})
        for found in task_of_each(iter([batch])):
            add(total, *from_arrow(found, epochs.replica.plan.outputs[name].type))
    return trusted(without_zeros(total))
