"""What runs in Spark's tasks.

Tasks take and give tables of three columns: the *task* that a line is for, the *port* that it goes
to, and a *blob*. A blob has packed rows, or, at the port `REPORT`, a report for the driver:
which segments were written, what changed in the outputs, what it took, and what went wrong. Reports
travel along to the end of the chain; so those arrive that belong to the attempts whose rows were
used.

What goes wrong in a user's function is in the report. Anything else fails the task, and Spark runs
it again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from ebbflow.change.requests import Request
from ebbflow.engine.runtime.edits import key_of
from ebbflow.engine.runtime.events import Events
from ebbflow.engine.runtime.gc_paused import gc_paused
from ebbflow.engine.runtime.table.arrow import arrow_schema, from_arrow, to_arrow
from ebbflow.engine.runtime.table.feed_tables import marked_events
from ebbflow.engine.spark.tasks.replica import Delta, Replica
from ebbflow.engine.spark.tasks.report import REPORT, Line, TaskReport
from ebbflow.engine.spark.tasks.running import WaveRunner
from ebbflow.engine.spark.tasks.sending import (
    Arrived,
    RowsWanted,
    routes,
    sent,
    tried_in_columns,
)
from ebbflow.engine.spark.tasks.transport import (
    PackedProgram,
    add,
    in_stream,
    replica_of,
    routed,
)
from ebbflow.engine.spark.tasks.waves import Waves
from ebbflow.errors import EbbflowError, StateError, cause_of
from ebbflow.state.spine import Files, Snapshot
from ebbflow.state.spine.piece import Piece
from ebbflow.state.spine.segment import ChecksumWriter, Ref
from ebbflow.zset import trusted, without_zeros

Segment = tuple[str, str, Ref]
"""Of a segment in a piece: the name of the part, its layout, and where it is."""
Requests = tuple[tuple[str, Request | None], ...]
"""What is asked of each input, without its rows; None where they are added up."""
Worked = tuple[list[Line], Mapping[str, Delta]]
SCHEMA = StructType(
    [
        StructField("task", IntegerType()),
        StructField("port", IntegerType()),
        StructField("blob", BinaryType()),
    ]
)
"""That of lines; a text would be parsed by Java each time."""
CHANGES = "changes"
_ARROW = pa.schema([("task", pa.int32()), ("port", pa.int32()), ("blob", pa.binary())])
_CHUNK = 1 << 16
_BATCH = 200_000


@dataclass(frozen=True)
class EpochJob:
    """What all tasks of an epoch know: the program, where its state is, and how many tasks."""

    program: PackedProgram
    files: Files
    base: int
    tasks: int
    by_key: frozenset[str] = frozenset()
    provided: frozenset[int] = frozenset()
    done: frozenset[str] = frozenset()
    bulk: bool = False
    reported: frozenset[str] = frozenset()
    summed: frozenset[int] = frozenset()
    anew: bool = False
    """Whether it begins without state, though there is some: to compute it again."""
    heaviest: int = 2**63 - 1
    """A row that is there more often than this is not for a bulk load."""
    unpickle: bool = True
    manifest: str = ""
    """The name of that of the base, where it is known."""
    secret: str = field(default_factory=partial(secrets.token_hex, 16), repr=False)
    """What an error in a message of Spark's must be behind, to be one of this job's."""

    def waves(self, replica: Replica) -> Waves:
        """The waves of the epoch."""
        return replica.waves(self.by_key, self.provided, self.done, self.reported, self.summed)

    @property
    def epoch(self) -> int:
        return self.base + 1

    def snapshot(self) -> Snapshot:
        """The state that the epoch begins with. Where it may be that some of what tasks write is
        not used, long texts are written whole."""
        if self.anew:
            return _snapshot(self.files, -1, self.unpickle, "")
        found = _snapshot(self.files, self.base, self.unpickle, self.manifest)
        found.in_pieces = not self.bulk
        return found


_snapshots: dict[tuple[str, bool], Snapshot] = {}
"""The last snapshot at each of a few paths, the one that was not used for longest first."""
_KEPT = 8


def _snapshot(files: Files, epoch: int, unpickle: bool, name: str) -> Snapshot:
    """The state at the end of an epoch, with the segments that this process has open already and
    whose files are what they were."""
    old = _snapshots.pop((files.address, unpickle), None)
    spines = () if old is None else old._spines.values()
    opened = [segment for spine in spines for segment in spine.segments]
    known = {segment.ref: segment for segment in opened if segment.unchanged}
    while len(_snapshots) >= _KEPT:
        _snapshots.pop(next(iter(_snapshots)))
    made = CachedSnapshot(files, epoch, unpickle=unpickle, name=name)
    made.known = known
    files.fetch(made.manifest.files())
    _snapshots[files.address, unpickle] = made
    return made


class CachedSnapshot(Snapshot):
    """A snapshot that does not open again what is open."""

    known: Mapping[Any, Any]

    def _open(self, ref: Any) -> Any:
        return self.known.get(ref) or super()._open(ref)


# ---- lines ----


def batches(lines: Iterable[Line]) -> Iterator[Any]:
    """Lines as Arrow batches."""
    columns = list(zip(*lines, strict=True)) or [(), (), ()]
    yield pa.RecordBatch.from_arrays(
        [
            pa.array(column, field.type)
            for column, field in zip(columns, _ARROW, strict=True)
        ],
        schema=_ARROW,
    )  # fmt: skip


def lines_of(given: Iterable[Any]) -> Iterator[Line]:
    """The lines of Arrow batches."""
    for batch in given:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


# ---- tasks ----


def taken(request: Request | None, rows: Delta) -> Any:
    """The change of an input: rows to add up, or a request with its rows."""
    return trusted(rows) if request is None else request.taking(trusted(rows))


@dataclass(frozen=True)
class EnterTask:
    """Wave 0: rows of a slot come in, as columns. What is done to an input by key, as a `request`,
    goes to the input itself: rows, or the events that a table of them is."""

    job: EpochJob
    slot: int
    by_key: str = ""
    request: Request | None = None

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        replica = replica_of(self.job.program)
        replica.machine.count_anew()
        some: list[Any] = []
        size = rows_in = 0
        try:
            for batch in given:
                some.append(batch)
                size += batch.num_rows
                if size > _BATCH:
                    yield from batches(self._lines(replica, some, size))
                    rows_in, size, some = rows_in + size, 0, []
            rows_in += size
            yield from batches(self._lines(replica, some, size))
        except EbbflowError as error:
            yield from batches([TaskReport.failed(error, 0).line()])
        known = self.slot in replica.machine.inputs.values() and not self.job.bulk
        report = TaskReport(rows_in=rows_in if known else 0, stats=replica.stats())
        yield from batches([report.line()])

    def _lines(self, replica: Replica, some: list[Any], size: int) -> list[Line]:
        lines, _ = tried_in_columns(
            replica, size,
            lambda columns: self._routed(replica, columns, self._columns(columns, some)),
        )  # fmt: skip
        if lines is None:
            lines = self._routed(replica, replica, self._rows(replica, some))
        return lines

    def _columns(self, columns: Any, some: list[Any]) -> Any:
        """The batches of an input as columns."""
        inputs = columns.machine.inputs
        name = next((name for name, slot in inputs.items() if slot == self.slot), None)
        if name is None or not columns.has_columns(name):
            raise RowsWanted
        if self.by_key and not columns.takes(name, self.request):
            raise RowsWanted
        return columns.columns(name, pa.Table.from_batches(some))

    def _rows(self, replica: Replica, some: list[Any]) -> Delta:
        """The batches as rows with weights, or as events."""
        total: Delta = {}
        for batch in some:
            if isinstance(self.request, Events):
                state: Any = replica.inputs[self.by_key]
                rows: list[Any] = marked_events(state, batch, self.request)
                add(total, rows, [1] * len(rows))
            else:
                add(total, *from_arrow(batch, replica.row_type(self.slot)))
        return without_zeros(total)

    def _routed(self, replica: Replica, runner: WaveRunner, delta: Any) -> list[Line]:
        """What comes in, through steps on one row at a time, to where it goes."""
        waves, tasks = self.job.waves(replica), self.job.tasks
        if not self.by_key:
            return list(routes(replica, runner.enter(waves, self.slot, delta), waves, tasks))
        number = waves.looked_up[self.by_key]
        if isinstance(self.request, Events):
            found = routed(delta, key_of, tasks, replica.token)
            return [(task, number, blob) for task, blob in found]
        return list(sent(replica, waves, number, delta, tasks))


@dataclass(frozen=True)
class EnterTables:
    """Wave 0 for tables that the driver has, in `in_slices`: a slice goes to the task of its
    table."""

    tasks: tuple[EnterTask, ...]

    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        for batch in given:
            for number, blob in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                with pa.ipc.open_stream(blob) as slices:
                    yield from self.tasks[number](slices)


def in_slices(tables: Sequence[Any], count: int) -> Any:
    """Tables as one table of two columns: the number of a table, and some of its rows. The first of
    `count` slices of each come first."""
    numbers, blobs = [], []
    for i in range(count):
        for number, table in enumerate(tables):
            begin, end = (len(table) * at // count for at in (i, i + 1))
            numbers.append(number)
            blobs.append(in_stream(table.slice(begin, end - begin)))
    return pa.table({"table": pa.array(numbers, pa.int32()), "slice": pa.array(blobs, pa.binary())})


@dataclass(frozen=True)
class WaveTask:
    """One wave: what has arrived for this task goes through its stages."""

    job: EpochJob
    wave: int
    requests: Requests = ()

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        replica = replica_of(self.job.program)
        waves = self.job.waves(replica)
        arrived: dict[int, Arrived] = {}
        out: list[Line] = []
        for line in lines_of(given):
            _, port, blob = line
            if port == REPORT or waves.ports[port].wave > self.wave:
                out.append(line)
            else:
                arrived.setdefault(port, Arrived(replica, waves, port)).add(blob)
        if arrived:
            size = sum(each.size for each in arrived.values())
            lines, why = tried_in_columns(
                replica,
                size,
                lambda columns: self._run(
                    replica, waves, columns, {p: a.in_columns(columns) for p, a in arrived.items()}
                ),
            )
            if lines is None:
                rows = {port: each.in_rows() for port, each in arrived.items()}
                lines = self._run(replica, waves, replica, rows, why)
            out += lines
        yield from batches(out)

    def _run(
        self, replica: Replica, waves: Waves, runner: WaveRunner, arrived: dict[int, Any],
        why: str = "",
    ) -> list[Line]:  # fmt: skip
        """The stages of the wave, in rows or in columns, on what has arrived."""
        for port, name in waves.waves[self.wave].lookups.items():
            if port in arrived:
                arrived[port] = runner.asked(name, dict(self.requests)[name], arrived[port])

        def work() -> Worked:
            made, deltas = runner.wave(waves, self.wave, arrived)
            return list(routes(replica, made, waves, self.job.tasks)), deltas

        return StatefulTask(self.job, replica, self.wave).run(
            work, raising=runner is not replica, why=why
        )


class StatefulTask:
    """One task that has state: runs, and writes what was done to a file of its own. It begins with
    the state of the last epoch, and the segments that earlier tasks of this one have `added`."""

    def __init__(
        self, job: EpochJob, replica: Replica, wave: int, added: Iterable[Segment] = ()
    ) -> None:
        self.job, self.replica, self.wave, self.added = job, replica, wave, added
        self.token = uuid4().hex

    def run(
        self, work: Callable[[], Worked], rows_in: int = 0, *, raising: bool = False, why: str = ""
    ) -> list[Line]:
        """The lines that the work gives, and a report. The work also gives what changes in outputs
        that are whole. What goes wrong is in the report, unless it is to be raised; `why` it runs
        in rows is, where columns might have done it."""
        report = TaskReport(self.wave, rows_in=rows_in, why=why)
        replica, job = self.replica, self.job
        piece = Piece(job.files, job.epoch, self.token)
        try:
            replica.open(job.snapshot(), self.added)
            lines, deltas = work()
            report.changes = write_changes(replica, deltas, job.files, job.epoch, self.token)
            for name, spine in replica.changed_spines():
                piece.add(name, spine)
            report.segments = piece.finish()
            report.stats, report.rounds = replica.stats(), replica.rounds()
        except BaseException as error:
            piece.abandon()
            remove_changes(job.files, report.changes)
            if raising or not isinstance(error, EbbflowError) or isinstance(error, StateError):
                raise
            return [TaskReport.failed(error, self.wave).line()]
        finally:
            replica.detach()
        return [*lines, report.line()]


def write_changes(
    replica: Replica, deltas: Mapping[str, Delta], state: Files, epoch: int, token: str
) -> list[tuple[str, str, int]]:
    """Write what changed in the outputs, one Parquet file each: the output, the file, its rows."""
    found, files = [], state.folder(CHANGES)
    for number, (name, delta) in enumerate(deltas.items()):
        row_type = replica.plan.outputs[name].type
        file = f"{epoch:012d}-{token}-{number}.parquet"
        try:
            write_parquet(files, file, delta, row_type)
        except EbbflowError as error:
            what = f"output {name!r}: {error.what}"
            place = replica.plan.outputs[name].place
            raise type(error)(
                what, **error.facts, created=place, remedy=error.remedy
            ) from cause_of(error)
        found.append((name, file, len(delta)))
    return found


def remove_changes(state: Files, changes: Iterable[tuple[str, str, int]]) -> None:
    """Remove files of changes that did not come to be."""
    files = state.folder(CHANGES)
    for _, file, _ in changes:
        files.remove(file)


def write_parquet(files: Files, name: str, delta: Delta, row_type: Any) -> None:
    """Rows with their weights as a Parquet file, which is safe when this returns. Nobody looks at
    it before its name is reported."""
    schema = arrow_schema(row_type)
    writer = files.create(name)
    try:
        raw = pa.PythonFile(ChecksumWriter(writer.write), mode="w")
        with pq.ParquetWriter(raw, schema) as out:
            for batch in _batches_of(delta, row_type, schema):
                out.write_batch(batch)
        writer.sync()
        writer.close()
    except BaseException:
        writer.close()
        files.remove(name)
        raise


def _batches_of(delta: Any, row_type: Any, schema: Any) -> Iterator[Any]:
    """Rows with their weights, or columns of them, as Arrow batches."""
    if isinstance(delta, dict):
        rows, weights = list(delta), list(delta.values())
        for i in range(0, len(rows), _CHUNK):
            yield to_arrow(rows[i : i + _CHUNK], weights[i : i + _CHUNK], row_type)
    else:
        yield from delta.table(schema).to_batches(_CHUNK)
