"""Streams: a view that is fed by Structured Streaming, batch by batch, each exactly once.

`view.stream(orders=frame)` starts one query of Spark's. Each of its micro-batches is an epoch; with
several inputs, rows of all of them are in one query, side by side, and in one epoch. A batch of no
rows is no epoch, and a stream that brings nothing starts no job.

Exactly once. Spark gives batches numbers, and notes in its *checkpoint* which rows each of them has
before it is taken, and that it is over after. A kill in between has the same batch come again, with
the same number and the same rows. So the number is committed with the epoch, as the batch of a
source (`ebbflow.engine.runtime.batches`), and what comes again is left out. The source is the name
of the stream with the identity of its checkpoint, as another checkpoint counts from 0 again. Hence
two mistakes can be told from a kill, and are refused:

    another checkpoint   the stream of this name was fed from one that is not there any more: all
                         rows may come again
    a gap                the checkpoint has seen batches through that the state does not have, as
                         when the state is an older copy: rows would be left out

A batch that had no rows makes no epoch, so the last such number is noted beside the state.

A batch that fails leaves the view as it was and ends the stream; its error is raised by `wait`, and
is there as `error`. Started again, the stream begins with that batch.
"""

from __future__ import annotations

import atexit
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from threading import Event, RLock, Thread, current_thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ebbflow.engine.runtime.callers import under_way
from ebbflow.engine.runtime.sinks.sink import Sinks, spans
from ebbflow.engine.spark.borrowed import in_session, persisted, unprinted
from ebbflow.engine.spark.failure import raise_failure
from ebbflow.engine.spark.tasks.epochs import SINGLE_TASK, InputChange, in_struct, side_by_side
from ebbflow.engine.spark.tasks.single import struct_of
from ebbflow.errors import StateError, Text
from ebbflow.paths import file_name

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from ebbflow.engine.spark.view import SparkView

FOLDER = "streams"
"""The folder of the state with the checkpoints of streams that were given none."""
TRIGGERS = ("processingTime", "availableNow", "once")
_log = logging.getLogger("ebbflow")


_IN_A_TASK = "auto", SINGLE_TASK


class _Over(Exception):
    """A batch was not taken, as it failed, or came after the stream was stopped. It comes again."""


@dataclass(frozen=True)
class StreamProgress:
    """What a stream has done since it was started: epochs; rows that came in, those that are equal
    in a batch as one; the time its batches took; the number of the last batch that is over; and how
    many batches had happened before. Of what still waits, `backlog` has what the sources say, such
    as Kafka's `maxOffsetsBehindLatest`.
    """

    epochs: int = 0
    rows: int = 0
    seconds: float = 0.0
    batch: int | None = None
    repeated: int = 0
    backlog: Mapping[str, str] = field(default_factory=dict)


class RunningStream:
    """A stream that feeds a view; made by `view.stream`. As a context manager, it stops in the end.

    `query` is Spark's own handle of it.
    """

    query: StreamingQuery

    def __init__(self, view: SparkView[Any], name: str, changes: dict[str, InputChange]) -> None:
        self.view, self.name, self.changes = view, name, changes
        self.error: BaseException | None = None
        """Why the stream has ended, where it did by a failure of an epoch."""
        self._progress = StreamProgress()
        self._busy = RLock()
        self._worker: Thread | None = None
        self._ready, self._ending = Event(), False
        self._source, self._last = "", -1

    # ---- its life ----

    def start(self, checkpoint: str, trigger: Mapping[str, Any]) -> None:
        """Start Spark's query; `view.stream` does."""
        given: list[Any] = [each.frame for each in self.changes.values()]
        frames = [in_struct(number, frame) for number, frame in enumerate(given)]
        writer = reduce(side_by_side, frames).writeStream.foreachBatch(self._take)
        writer = writer.queryName(f"{self.name} into {self.view.path}").trigger(**trigger)
        try:
            self.query = writer.option("checkpointLocation", checkpoint).start()
        except Exception as error:
            what = f"the stream {self.name!r} could not be started"
            raise_failure(error, what)
        try:
            self._find_where_it_was()
        except BaseException:
            self._ending = True
            raise
        finally:
            self._ready.set()
            if self._ending:
                self.query.stop()
        atexit.register(self.stop)

    def _find_where_it_was(self) -> None:
        """Learn from the state which batches have happened."""
        view, query = self.view, self.query
        with view._lock:
            known = dict(_known(view, self.name))
        self._source = _source(self.name, query.id)
        if known and query.id not in known:
            (was, (number, epoch)), *_ = known.items()
            raise StateError(
                f"the stream {self.name!r} was fed from another checkpoint: with this one, rows "
                "that the view has may come again",
                last=Text(f"batch {number:,}, in epoch {epoch:,}"),
                its_id=Text(was),
                this_id=Text(query.id),
                remedy="the checkpoint it had; or, if all that comes now is new to the view or is "
                "upserted, another name=, for a new stream",
            )
        noted = json.loads(view._storage.files.read(_note(self.name)) or "{}")
        empty = noted.get("batch", -1) if noted.get("id") == query.id else -1
        self._last = max(known.get(query.id, (-1, 0))[0], empty)

    def stop(self) -> None:
        """Stop, after the batch that is under way, and wait for that. Stopped twice is stopped."""
        self._ending = True
        sinks = self.view._sinks
        delivering = sinks is not None and under_way(Sinks.deliver, sinks, skip=-1)
        if delivering or self._worker is current_thread():  # by a sink: it may hold the batch up
            Thread(target=self.stop, name="ebbflow stop", daemon=True).start()
            return
        with self._busy:
            pass  # the batch under way is over; Spark waits for one that comes now, and it raises
        with suppress(Exception):  # of a session that was stopped
            self.query.stop()
        atexit.unregister(self.stop)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the stream has ended, for so many seconds at most, and tell whether it has.
        If it failed, raise why. One with the trigger `availableNow` ends when it has caught up."""
        with self._explained():
            seconds: Any = timeout
            return bool(self.query.awaitTermination(seconds)) or timeout is None
        return True  # it was stopped

    def process_all(self) -> None:
        """Wait until all that is there now has been taken, or raise why that failed. For tests: a
        source that never rests has this wait for ever."""
        with self._explained():
            self.query.processAllAvailable()

    @property
    def active(self) -> bool:
        """Whether the stream is running."""
        return bool(self.query.isActive)

    @property
    def progress(self) -> StreamProgress:
        """What the stream has done since it was started."""
        last: Any = None
        with suppress(Exception):  # of a session that was stopped
            last = self.query.lastProgress
        sources = [] if last is None else last.sources
        metrics = [dict(each.metrics or {}) for each in sources]
        return replace(self._progress, backlog={k: v for each in metrics for k, v in each.items()})

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise what went wrong, as it was raised, and not as Spark has it."""
        try:
            with unprinted():
                yield
        except Exception as error:
            if self.error is None and not self._ending:
                what = f"the stream {self.name!r} failed in Spark"
                after = "; started again, it goes on where it was"
                raise_failure(error, what, after)
        if self.error is not None:
            raise self.error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "failed" if self.error is not None else "running" if self.active else "ended"
        return f"<stream {self.name!r} into {self.view!r}: {state}>"

    # ---- one batch ----

    def _take(self, batch: DataFrame, number: int) -> None:
        """Take a batch, in a thread of Spark's. Where this does not return, it comes again."""
        self._ready.wait()
        with self._busy:
            if self._ending:
                raise _Over
            self._worker = current_thread()
            try:
                with unprinted():
                    self._epoch(in_session(batch, self.view.session), number)
            except BaseException as error:
                if not self._ending:
                    self.error = error
                    _log.error("the stream %r has ended: %s", self.name, error)
                raise _Over(str(error)) from None
            finally:
                self._worker = None

    def _epoch(self, batch: DataFrame, number: int) -> None:
        view, so_far, started = self.view, self._progress, perf_counter()
        self._require_next(number)
        delivery = None
        with view._lock:
            view._require_ready()
            if view._program.batches.epoch_of((self._source, number)) is not None:
                so_far = replace(so_far, repeated=so_far.repeated + 1)
            else:
                with self._measured(batch) as size:
                    given = self._parts(batch, size) if size != 0 else {}
                    ran = view._run(given, (self._source, number), empty=False)
                if ran is not None:
                    (_, delivery), last = ran, view.last
                    rows = so_far.rows + (last.rows_in if last is not None else 0)
                    so_far = replace(so_far, epochs=so_far.epochs + 1, rows=rows)
                else:
                    note = {"stream": self.name, "id": self.query.id, "batch": number}
                    view._storage.files.replace(_note(self.name), json.dumps(note))
        self._last = max(self._last, number)
        seconds = so_far.seconds + perf_counter() - started
        self._progress = replace(so_far, batch=number, seconds=seconds)
        view._deliver(delivery)

    def _require_next(self, number: int) -> None:
        if number > self._last + 1:
            missing = list(range(self._last + 1, number))
            raise StateError(
                f"the stream {self.name!r} comes with batch {number:,}, and the state does not "
                "have all before it: the rows of some would be left out",
                missing=Text(spans(missing)),
                remedy="the state that belongs to this checkpoint; or a new checkpoint, and "
                "another name=, for a stream that begins with what this state does not have",
            )

    @contextmanager
    def _measured(self, batch: DataFrame) -> Iterator[int | None]:
        """About how many rows a batch has. What may be large is computed once, and kept for the
        time of the epoch; what is small goes through one task, so it is read once anyway."""
        options, route, progress = self.view.options, self.view._route, self._progress
        size, most = route.guessed(batch), route.most
        few = progress.epochs and progress.rows / progress.epochs <= most / 2
        apart = len(self.changes) > 1 and (options.in_driver or options.mode not in _IN_A_TASK)
        if not apart and (few if size is None else size <= most):
            yield None if size is None else max(size, 1)
            return
        persisted(batch)
        try:
            yield _counted(batch)
        finally:
            batch.unpersist()

    def _parts(self, batch: DataFrame, size: int | None) -> dict[str, InputChange]:
        """The changes of the inputs, taken apart."""
        count, found = len(self.changes), {}
        share = None if size is None else -(-size // count)
        for number, (name, change) in enumerate(self.changes.items()):
            column = struct_of(number)
            rows = batch if count == 1 else batch.filter(f.col(column).isNotNull())
            frame = rows.select(f"{column}.*")
            found[name] = change._replace(frame=frame, size=share, together=batch)
        return found


def _counted(batch: DataFrame) -> int:
    try:
        return batch.count()
    except Exception as error:
        raise_failure(error, "a batch could not be read, and the epoch changed nothing")


# ---- what is noted ----


def _source(name: str, identity: str) -> str:
    """The source of the batches of a stream; an identity has no colon."""
    return f"stream:{name}:{identity}"


def _known(view: Any, name: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The checkpoints that a stream has had, with the last batch of each and its epoch."""
    for batch, epoch in view._program.batches.listed():
        if isinstance(batch, tuple):
            begin, _, identity = batch[0].rpartition(":")
            if begin == f"stream:{name}":
                yield identity, (batch[1], epoch)


def _note(name: str) -> str:
    """The file with the last batch of a stream that had no rows."""
    return f"stream-{file_name(name)}.json"
