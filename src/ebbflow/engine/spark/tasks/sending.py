"""What goes from task to task, and how a task begins: in columns where it can be, else in rows.

What a stage gives goes to the ports of later waves (`routes`): rows as pickles, columns as Arrow
tables, each for the task that has the hash of their key. So a task may get both, from tasks that
ran in rows and in columns (`Arrived`), and chooses anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ebbflow.engine.runtime.stage import by_row
from ebbflow.engine.runtime.stages import Partial
from ebbflow.engine.runtime.table.arrow import from_arrow
from ebbflow.engine.spark.tasks.replica import Delta, Replica
from ebbflow.engine.spark.tasks.report import Line
from ebbflow.engine.spark.tasks.transport import add, of_stream, opened, pairs, routed
from ebbflow.engine.spark.tasks.waves import Waves
from ebbflow.errors import EbbflowError, StateError, cause_of
from ebbflow.kernel import missing
from ebbflow.zset import without_zeros

COLUMNS_FROM = 1_000
"""From so many rows on a task runs in columns, where it can: for fewer, looking things up takes
longer than going through rows."""


def routes(replica: Replica, pieces: dict[int, Any], waves: Waves, tasks: int) -> Iterator[Line]:
    """Lines with the rows, or columns, of these slots, to every port that they go to."""
    for slot, delta in pieces.items():
        for number in waves.routes.get(slot, ()):
            yield from sent(replica, waves, number, delta, tasks)


def sent(replica: Replica, waves: Waves, number: int, delta: Any, tasks: int) -> Iterator[Line]:
    """Lines with the rows, or columns, of a port."""
    port = waves.ports[number]
    lines: Any = None
    if not isinstance(delta, dict):
        lines = replica.columns.sent(port, delta, tasks)
        delta = delta.rows if lines is None else delta
    if lines is not None:
        pass
    elif port.adds is not None:
        lines = list(routed(replica.added(port.adds, delta), by_row, tasks, replica.token))
    else:
        try:
            lines = list(routed(delta, port.key, tasks, replica.token))
        except Exception as error:
            raise replica.key_failed(waves, number, delta, error) from cause_of(error)
    for task, blob in lines:
        yield task, number, blob


class Arrived:
    """What has arrived at a port, in blobs."""

    def __init__(self, replica: Replica, waves: Waves, port: int) -> None:
        self.replica, self.port = replica, waves.ports[port]
        self.tables: list[Any] = []
        self.blobs: list[bytes] = []

    def add(self, blob: bytes) -> None:
        """Take a blob in."""
        table = of_stream(blob)
        if table is None:
            self.blobs.append(blob)
        else:
            self.tables.append(table)

    @property
    def size(self) -> int:
        """How many rows have arrived in tables."""
        return sum(map(len, self.tables))

    @property
    def row_type(self) -> Any:
        return self.replica.row_type(self.port.slot)

    def in_columns(self, columns: Any) -> Any:
        """As columns; what rows add up to is none."""
        if self.port.adds is not None and self.blobs:
            raise RowsWanted
        rows = self._unpacked()
        return columns.received(self.row_type, self.tables, rows) if self.tables else rows

    def in_rows(self) -> Any:
        """As rows with weights, or what they add up to."""
        if self.port.adds is None:
            return self._unpacked(self.tables)
        rows = self._unpacked(self.tables, ())
        added = self.replica.added(self.port.adds, rows) if rows else {}
        return Partial([*pairs(self.blobs), *added.items()])

    def _unpacked(self, tables: Sequence[Any] = (), blobs: Sequence[bytes] | None = None) -> Delta:
        """The rows of tables and of blobs, all where they are not said, added up."""
        total: Delta = {}
        for blob in self.blobs if blobs is None else blobs:
            add(total, *opened(blob))
        for table in tables:
            add(total, *from_arrow(table, self.row_type))
        return without_zeros(total)


class RowsWanted(EbbflowError):
    """What a task was given is not for columns, which is nothing to be told."""

    def __init__(self) -> None:
        super().__init__("rows are wanted")


def tried_in_columns(
    replica: Replica, size: int, run: Callable[[Any], list[Line]]
) -> tuple[list[Line] | None, str]:
    """The lines that a task gives in columns, where it has many rows; None where rows have to do
    it, and why, where that was not known before."""
    if not size or size < COLUMNS_FROM:
        return None, ""
    columns = replica.columns_for_task()
    if columns is None:
        absent = missing()
        return None, f"in rows: {absent[0]} is not installed where tasks run" if absent else ""
    if not columns.tries():
        return None, "in rows, as the epochs before"
    try:
        lines = run(columns)
    except StateError:
        raise
    except EbbflowError as error:
        return None, columns.miss(error)
    columns.missed = 0
    return lines, ""
