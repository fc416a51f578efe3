"""How an epoch runs on Spark, and how it becomes the state.

    driver       in the driver's own process, where that is asked for
    single_task  in one task: how many operators there are does not matter
    staged       in waves of tasks, each with a range of the keys

All three run the same stages on the same state. Tasks write what they did to files of their own and
tell the driver; only when all is well does the driver commit, by one manifest. Until then nothing
has happened, whatever was written; so an epoch that failed can simply be stepped again. Between
waves, the driver leads loops through their rounds (`leader`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple, NoReturn
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ebbflow.change.requests import Forget, Request
from ebbflow.engine.runtime.edits import key_of
from ebbflow.engine.runtime.events import Edits, Events
from ebbflow.engine.runtime.table.given import table_of
from ebbflow.engine.spark.borrowed import frame_of_table, plan, unprinted
from ebbflow.engine.spark.failure import raise_failure
from ebbflow.engine.spark.options import SMALL
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.engine.spark.tasks.alone import WITH_TASK, LoneTasks
from ebbflow.engine.spark.tasks.leader import Leader
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.report import REPORT, Line, TaskReport, error_in
from ebbflow.engine.spark.tasks.rounds import RoundTask
from ebbflow.engine.spark.tasks.sending import Arrived, routes
from ebbflow.engine.spark.tasks.single import SingleTask, struct_of
from ebbflow.engine.spark.tasks.task import (
    SCHEMA,
    EnterTables,
    EnterTask,
    EpochJob,
    Requests,
    WaveTask,
    batches,
    in_slices,
    remove_changes,
    taken,
    write_changes,
)
from ebbflow.engine.spark.tasks.transport import PackedProgram, in_stream, packed, routed
from ebbflow.errors import EbbflowError
from ebbflow.state.spine import Store
from ebbflow.state.spine.texts import TEXTS
from ebbflow.zset import trusted

DRIVER, SINGLE_TASK, STAGED, BULK = "driver", "single_task", "staged", "bulk"
TRAVELS, SENT = 1 << 19, 1 << 26
"""Where a task reads frames, blobs of up to so many bytes travel with it, and larger ones in a
frame of their own, a row for each: what a task has with it, Spark stores in a file when it is
large, and keeps. A table that is larger than that becomes a frame of its rows, of which Spark makes
columns again."""


class InputChange(NamedTuple):
    """What is done to one input: rows with weights that are here, or an Arrow table of them, or
    both, or a frame. They are added up, unless a `request` says what to do with them."""

    request: Request | None
    rows: dict[Any, int] | None
    frame: DataFrame | None = None
    size: int | None = None
    table: Any = None
    added: bool = False
    """Whether all rows are known to be added, and none taken away."""
    together: DataFrame | None = None
    """Where the frames of all inputs are taken from one, as the batches of a stream: that one, with
    a column for each input."""


@dataclass(frozen=True)
class EpochResult:
    """What an epoch did: rows in, changes by output as (file, rows), time and rows by stage."""

    mode: str
    rows_in: int
    changes: Mapping[str, list[tuple[str, int]]]
    stats: Sequence[tuple[int, int, int, float]]
    derived: tuple[str, ...] = ()
    """Outputs of which everything is new, so that nobody wrote down what changed."""
    jobs: Mapping[int, int] = field(default_factory=dict)
    """How many jobs the rounds of the loops have had that the driver led, by number of stage."""
    rounds: Mapping[int, str] = field(default_factory=dict)
    """What the rounds of the loops did, by number of stage."""
    why: str = ""
    """Why it had this mode, where nobody asked for it, and ran in rows, where it need not have."""


class TooMany(Exception):
    """There are more rows than one task should have."""


class Epochs:
    """Runs epochs of one program on one state."""

    def __init__(
        self,
        session: SparkSession,
        program: PackedProgram,
        replica: Replica,
        store: Store,
        small: int = SMALL,
    ) -> None:
        self.session, self.program, self.replica = session, program, replica
        self.store, self.files, self.small = store, store.files, small
        self.lone = LoneTasks(session)
        replica.token = program.token
        self.parts = {part.name: part for part in replica.parts}

    def job(self, tasks: int, given: Mapping[str, InputChange] | None = None) -> EpochJob:
        """What the tasks of the next epoch have to know."""
        by_key = frozenset(name for name, each in (given or {}).items() if each.request is not None)
        store = self.store
        return EpochJob(
            self.program, self.files, store.epoch, tasks, by_key,
            unpickle=store.unpickle, manifest=store.manifest.name,
        )  # fmt: skip

    # ---- in one place ----

    def here(self, given: Mapping[str, InputChange]) -> EpochResult:
        """In this process. The state is changed in the store, and not yet committed."""
        replica, epoch = self.replica, self.store.epoch + 1
        try:
            replica.open(self.store)
            found = {n: taken(each.request, each.rows or {}) for n, each in given.items()}
            deltas = replica.all_at_once(found)
            changes = write_changes(replica, deltas, self.files, epoch, uuid4().hex)
            rows = sum(len(each.rows or ()) for each in given.values())
            rounds = dict(replica.rounds())
            return EpochResult(DRIVER, rows, by_output(changes), replica.stats(), rounds=rounds)
        except BaseException:
            self.store.rollback()
            raise
        finally:
            replica.detach()

    def whole(self, given: Mapping[str, InputChange], most: int) -> EpochResult:
        """In one task; `TooMany` when there are more than so many rows."""
        if sum(each.size or 0 for each in given.values()) > most:
            raise TooMany
        made = {name: self.blob(each) for name, each in given.items()}
        here = {name: blob for name, blob in made.items() if blob is not None}
        waits = [name for name in given if name not in here]
        requests = tuple((name, each.request) for name, each in given.items())
        job = self.job(1)
        task = SingleTask(job, requests, most, tuple(here.items()), tuple(waits))
        together = next((each.together for each in given.values()), None)
        alone = not waits and self.lone.possible
        large = sum(map(len, here.values())) > (WITH_TASK if alone else TRAVELS)
        sent = here if large else {}
        task = replace(task, here=()) if large else task
        if alone:
            lines = ran(lambda: self.lone.run(task.alone, sent), job)
            return self.stage_reports(SINGLE_TASK, reports_of(lines))
        if together is not None:
            frames = [together]
        else:
            frames = [in_struct(at, self.frame(name, given[name])) for at, name in enumerate(waits)]
            if sent:
                table = pa.table({"input": [*sent], "blob": pa.array(sent.values(), pa.binary())})
                frames.append(frame_of_table(self.session, table))
        if frames:
            rows = reduce(side_by_side, frames).coalesce(1)
        else:
            rows = self.session.range(0, 1, 1, 1)
        return self._done(SINGLE_TASK, job, rows.mapInArrow(task, SCHEMA))

    def blob(self, given: InputChange) -> bytes | None:
        """What is done to an input as a blob: rows, or a table that is not too large for that; None
        where it is neither."""
        if given.rows is not None:
            return packed(given.rows, given.rows.values(), self.program.token)
        if given.table is not None and given.table.nbytes <= SENT:
            return in_stream(given.table)
        return None

    # ---- in waves ----

    def staged(self, given: Mapping[str, InputChange], tasks: int) -> EpochResult:
        """In waves of so many tasks."""
        job = self.job(tasks, given)
        frames, here = [], []
        for name, each in given.items():
            if is_sent(each):
                keys = pa.Table.from_batches(batches(self.sent(job, name, each)))
                frames.append(frame_of_table(self.session, keys))
                continue
            slot = self.replica.machine.inputs[name]
            task = EnterTask(job, slot, name if name in job.by_key else "", each.request)
            if each.frame is not None:
                frames.append(each.frame.mapInArrow(task, SCHEMA))
            else:
                here.append((task, self.table(name, each)))
        if here:
            tables = self.session.createDataFrame(in_slices([t for _, t in here], tasks))
            task_of_each = EnterTables(tuple(task for task, _ in here))
            frames.append(tables.mapInArrow(task_of_each, SCHEMA))
        requests = tuple((name, each.request) for name, each in given.items())
        return self._done(STAGED, job, self.through(job, reduce(DataFrame.union, frames), requests))

    def sent(self, job: EpochJob, name: str, given: InputChange) -> Iterator[Line]:
        """Lines with events or edits of rows that are here, for the tasks that have their keys.
        What is to be forgotten, the first task looks for."""
        number, rows = job.waves(self.replica).looked_up[name], given.rows or {}
        token = self.program.token
        if isinstance(given.request, Forget):
            yield 0, number, packed(rows, rows.values(), token)
        else:
            for task, blob in routed(rows, key_of, job.tasks, token):
                yield task, number, blob
        yield TaskReport(rows_in=len(rows)).line()

    def through(self, job: EpochJob, lines: DataFrame, requests: Requests = ()) -> DataFrame:
        """Lines through all waves; reports come out. Where a wave has loops, all that was before is
        one job, and what comes after another."""
        for number, wave in enumerate(job.waves(self.replica).waves):
            if wave.loops:
                arrived = gathered(lines, job, once=not job.bulk)
                lines = self._frame(self.led(job, number, arrived))
            if number and wave.in_tasks:
                lines = self._in_tasks(job, lines, WaveTask(job, number, requests))
        return lines

    def _in_tasks(self, job: EpochJob, lines: DataFrame, task: Any) -> DataFrame:
        return lines.repartitionById(job.tasks, f.col("task")).mapInArrow(task, SCHEMA)

    def _frame(self, lines: Sequence[Line]) -> DataFrame:
        return self.session.createDataFrame(pa.Table.from_batches(batches(lines)))

    # ---- loops ----

    def led(self, job: EpochJob, number: int, lines: Sequence[Line]) -> list[Line]:
        """Lines through the loops of a wave: those for them are replaced by what they give."""
        waves, replica = job.waves(self.replica), self.replica
        reports = [TaskReport.read(blob) for _, port, blob in lines if port == REPORT]
        self._raise_first(reports)
        reads = {each.at for act in waves.waves[number].loops for each in act.reads}
        arrived: dict[int, Arrived] = {}
        for _, port, blob in lines:
            if port in reads:
                arrived.setdefault(port, Arrived(replica, waves, port)).add(blob)
        if not arrived:
            return list(lines)
        leader = Leader(job, replica, waves, number, self.small, self.run_round)
        try:
            made, report = leader.lead({port: each.in_rows() for port, each in arrived.items()})
            sent = [*routes(replica, made, waves, job.tasks)]
        except BaseException:
            self._discard([*reports, TaskReport(segments=leader.segments)])
            raise
        rest = [line for line in lines if line[1] not in reads]
        return [*rest, *sent, report.line()]

    def run_round(self, job: EpochJob, task: RoundTask, lines: list[Line]) -> list[Line]:
        """Run some of the work of a round in tasks."""
        return gathered(self._in_tasks(job, self._frame(lines), task), job, once=True)

    def frame(self, name: str, given: InputChange) -> DataFrame:
        """What is done to an input, as a frame of rows with weights. Without the schema, Spark
        would take times without a zone for instants in the session's."""
        if given.frame is not None:
            return given.frame
        schema = schema_of(self.replica.plan.sources[name].type, weight=True)
        return frame_of_table(self.session, self.table(name, given), schema)

    def empty(self, name: str) -> DataFrame:
        """A frame without rows of an input."""
        return self.frame(name, InputChange(None, {}))

    def table(self, name: str, given: InputChange) -> Any:
        """What is done to an input, as a table of rows with weights."""
        if given.table is not None:
            return given.table
        return table_of(self.replica.plan.sources[name], trusted(given.rows or {}))

    def _done(self, mode: str, job: EpochJob, lines: DataFrame) -> EpochResult:
        """Run the job, and stage the segments that its tasks have written."""
        return self.stage_reports(mode, collected(lines, job, once=True))

    def stage_reports(self, mode: str, reports: Sequence[TaskReport]) -> EpochResult:
        """Stage what tasks have written, or raise what went wrong first."""
        self._raise_first(reports)
        self.files.fetch({ref.file for report in reports for _, _, ref in report.segments})
        try:
            for report in reports:
                for name, layout, ref in report.segments:
                    types = {}
                    if name != TEXTS:
                        part = self.parts[name]
                        types, layout = {"key_type": part.keys, "row_type": part.rows}, part.layout
                    self.store.adopt(name, ref, layout=layout, **types)
        except BaseException:
            self.store.rollback()
            raise
        changes = by_output([change for report in reports for change in report.changes])
        stats = [line for report in reports for line in report.stats]
        rows_in = sum(report.rows_in for report in reports)
        jobs = dict(each for report in reports for each in report.jobs)
        rounds = dict(each for report in reports for each in report.rounds)
        why = next((report.why for report in reports if report.why), "")
        return EpochResult(mode, rows_in, changes, stats, jobs=jobs, rounds=rounds, why=why)

    def stage_only(self, reports: Sequence[TaskReport], names: Set[str]) -> None:
        """Stage the segments of some parts, by name, and remove what else was written."""
        self._raise_first(reports)
        others = []
        for report in reports:
            segments = report.segments
            report.segments = [each for each in segments if each[0] in names]
            kept = {ref.file for _, _, ref in report.segments}
            rest = [each for each in segments if each[2].file not in kept]
            others.append(TaskReport(segments=rest, changes=report.changes))
            report.changes = []
        self.stage_reports(BULK, reports)
        self._discard(others)

    def _raise_first(self, reports: Sequence[TaskReport]) -> None:
        """Raise what went wrong first, if something did; what was written is discarded then."""
        failed = [report for report in reports if report.error is not None]
        if not failed and not any(report.too_many for report in reports):
            return
        self._discard(reports)
        if not failed:
            raise TooMany
        min(failed, key=lambda report: (report.wave, not _at_input(report.error))).raise_error()

    def _discard(self, reports: Sequence[TaskReport]) -> None:
        files = {ref.file for report in reports for _, _, ref in report.segments}
        with suppress(OSError):
            self.store.discard(files)
            remove_changes(self.files, [change for report in reports for change in report.changes])


def is_sent(given: InputChange) -> bool:
    """Whether what is done to an input is no table, and is sent from here to those who have the
    keys."""
    here = isinstance(given.request, (Events, Edits, Forget))
    return here and given.frame is None


def in_struct(number: int, frame: DataFrame) -> DataFrame:
    """A frame with one column, that of the input of this number: its rows are structs."""
    return frame.selectExpr(f"struct(*) AS {struct_of(number)}")


def side_by_side(left: DataFrame, right: DataFrame) -> DataFrame:
    """The rows of both, each in the columns it has, and null in those of the other."""
    return left.unionByName(right, allowMissingColumns=True)


def _at_input(error: EbbflowError | None) -> bool:
    return error is not None and error.what.startswith("input ")


def by_output(changes: Sequence[tuple[str, str, int]]) -> dict[str, list[tuple[str, int]]]:
    """Files of changes by output."""
    found: dict[str, list[tuple[str, int]]] = {}
    for name, file, rows in changes:
        found.setdefault(name, []).append((file, rows))
    return found


def collected(lines: DataFrame, job: EpochJob, *, once: bool = False) -> list[TaskReport]:
    """The reports of the tasks of a job."""
    return reports_of(gathered(lines, job, once=once))


def gathered(lines: DataFrame, job: EpochJob, *, once: bool = False) -> list[Line]:
    """The lines that the query of a job gives."""

    def run() -> list[Any]:
        plan(lines, once=once)
        return lines.collect()

    return ran(run, job)


def ran(run: Callable[[], Iterable[Any]], job: EpochJob) -> list[Line]:
    """The lines that a job gives; an error in one sentence when it fails otherwise."""
    try:
        with unprinted():
            found = run()
    except Exception as error:
        reported = error_in(str(error), job.secret)
        if reported is not None:
            return [TaskReport(error=reported).line()]
        raise_epoch_failure(error)
    return [(task, port, bytes(blob)) for task, port, blob in found]


def raise_epoch_failure(error: Exception) -> NoReturn:
    """Raise what a job of an epoch has failed with."""
    what = "the epoch failed in Spark, and changed nothing"
    raise_failure(error, what, "; the epoch can be stepped again")


def reports_of(lines: Iterable[Line]) -> list[TaskReport]:
    """Lines that are all reports."""
    return [TaskReport.read(blob) for _, _, blob in lines]
