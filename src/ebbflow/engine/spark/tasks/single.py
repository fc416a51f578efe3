"""A whole epoch in one task.

How many operators there are does not matter then, and nothing is shuffled. From
`ebbflow.engine.spark.tasks.sending.COLUMNS_FROM` rows on the task runs in columns, where it can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ebbflow.change.requests import Request
from ebbflow.engine.runtime.events import Events
from ebbflow.engine.runtime.gc_paused import gc_paused
from ebbflow.engine.runtime.table.feed_tables import marked_events
from ebbflow.engine.runtime.table.given import rows_of, total
from ebbflow.engine.spark.tasks.replica import Delta, Replica
from ebbflow.engine.spark.tasks.report import Line, TaskReport
from ebbflow.engine.spark.tasks.sending import tried_in_columns
from ebbflow.engine.spark.tasks.task import (
    EpochJob,
    Requests,
    StatefulTask,
    batches,
    taken,
)
from ebbflow.engine.spark.tasks.transport import add, of_stream, replica_of, unpacked
from ebbflow.errors import EbbflowError
from ebbflow.zset import without_zeros


@dataclass(frozen=True)
class SingleTask:
    """A whole epoch in one task, unless there are more than `most` rows. `requests` say what is
    done to which input. What the driver has is `here`, as blobs, or comes as blobs with the names
    of their inputs; for what is in frames it `waits`: tables with a column for each input, in which
    the rows of that input are structs."""

    job: EpochJob
    requests: Requests
    most: int
    here: tuple[tuple[str, bytes], ...] = ()
    waits: tuple[str, ...] = ()

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        arrived, count, blobs = [], 0, dict(self.here)
        for batch in given:  # all of it: a worker that leaves something unread is not used again
            sent = _blobs(batch)
            blobs |= sent
            count += batch.num_rows - len(sent) if self.waits else 0
            if self.waits and count <= self.most:
                arrived.append(batch)
        if count > self.most:
            yield from batches([TaskReport(too_many=True).line()])
            return
        yield from batches(self._lines(blobs, arrived, count))

    @gc_paused
    def alone(self, given: Iterator[tuple[str, bytes]]) -> Iterator[bytes]:
        """The same as a job of its own, where all is here or comes as blobs; gives reports."""
        for _, _, blob in self._lines(dict([*self.here, *given]), [], 0):
            yield blob

    def _lines(self, blobs: dict[str, bytes], arrived: list[Any], count: int) -> list[Line]:
        replica = replica_of(self.job.program)
        tables = {name: of_stream(blob) for name, blob in blobs.items()}
        here = {
            n: unpacked([blob]) if tables[n] is None else tables[n] for n, blob in blobs.items()
        }
        count += sum(map(len, here.values()))
        lines, why = tried_in_columns(
            replica, count, lambda columns: self._in_columns(replica, columns, here, arrived, count)
        )
        return self._in_rows(replica, here, arrived, why) if lines is None else lines

    def _in_columns(
        self, replica: Replica, columns: Any, here: dict[str, Any], arrived: list[Any], rows_in: int
    ) -> list[Line]:
        """The lines that the epoch gives in columns."""
        given: dict[str, Any] = {}
        for name, request in self.requests:
            if columns.takes(name, request):
                rows = here.get(name)
                table = _table(arrived, self.waits.index(name)) if rows is None else rows
                made = columns.columns(name, table)
                given[name] = made if request is None else request.taking(made)
            else:
                given[name] = taken(request, self._rows(replica, name, here, arrived))
        task = StatefulTask(self.job, replica, 1)
        return task.run(lambda: ([], columns.all_at_once(given)), rows_in, raising=True)

    def _in_rows(
        self, replica: Replica, here: dict[str, Any], arrived: list[Any], why: str
    ) -> list[Line]:
        try:
            rows = {n: self._rows(replica, n, here, arrived) for n, _ in self.requests}
        except EbbflowError as error:
            return [TaskReport.failed(error, 0).line()]
        found = {name: taken(request, rows[name]) for name, request in self.requests}
        task = StatefulTask(self.job, replica, 1)
        rows_in = sum(map(len, rows.values()))
        return task.run(lambda: ([], replica.all_at_once(found)), rows_in, why=why)

    def _rows(self, replica: Replica, name: str, here: dict[str, Any], arrived: list[Any]) -> Delta:
        """The rows of one input, or their events."""
        found = here.get(name)
        if isinstance(found, dict):
            return found
        if found is not None:
            return total(*rows_of(replica.inputs[name].source, found))
        request = dict(self.requests)[name]
        return _in_structs(arrived, self.waits.index(name), replica.inputs[name], request)


def _blobs(batch: Any) -> dict[str, bytes]:
    """The blobs of a batch by their inputs; none where it is only there to have a task begin."""
    if "blob" not in batch.schema.names:
        return {}
    sent = batch.filter(batch["blob"].is_valid())
    return dict(zip(sent["input"].to_pylist(), sent["blob"].to_pylist(), strict=True))


def struct_of(number: int) -> str:
    """The column with the rows of an input; Spark would not tell the inputs `a` and `A` apart."""
    return f"input{number}"


def _in_structs(tables: Iterable[Any], number: int, state: Any, request: Request | None) -> Delta:
    """The rows of one input, or their events; where a row is one of another input, there is no
    struct."""
    found: Delta = {}
    for table in _of_input(tables, number):
        if isinstance(request, Events):
            found.update(dict.fromkeys(marked_events(state, table, request), 1))
        else:
            add(found, *rows_of(state.source, table))
    return without_zeros(found)


def _of_input(tables: Iterable[Any], number: int) -> Iterator[Any]:
    for batch in tables:
        structs = batch.column(struct_of(number)).drop_null()
        if len(structs):
            yield pa.RecordBatch.from_struct_array(structs)


def _table(tables: Iterable[Any], number: int) -> Any:
    """The rows of one input, as a table; none where there are none."""
    found = list(_of_input(tables, number))
    return pa.Table.from_batches(found) if found else {}
