"""A table of PostgreSQL that is kept equal to an output of a view.

What an epoch changed and the number of the epoch are written in one transaction: the rows into the
table, the number into `ebbflow_epochs`, under the name of the sink. So the table is always the
output at the end of an epoch, and it says which. Whoever dies on the way, the transaction happened
or did not; the table is asked, and an epoch is never written twice.

A small change is a few statements. A large one is copied into a temporary table, added up there,
and merged from it. The first time, everything that is in the output is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from ebbflow.connectors.postgres.columns import fit_columns, require_no_rounding
from ebbflow.connectors.postgres.layout import TableLayout, table_layout
from ebbflow.connectors.postgres.link import WAIT, Link, quoted
from ebbflow.connectors.rows import Block, OutputSink
from ebbflow.errors import SinkError, Text

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

SMALL = 200
"""Up to so many rows a change is written by a statement for each."""


class TableSink(OutputSink):
    """Keep a table equal to an output: for `view.add_sink`. ::

        view.add_sink(TableSink("dbname=shop", "public.totals", key="city", create=True))

    `key` are fields of which no two rows have the same; where the program shows them, as after
    `group_by`, it can be left out. Rows without a key need `count`, the name of a column with how
    often each is there. `create` makes the table where there is none; one that is there needs a
    column for each field, and a unique index on the key. `overwrite` empties one that has rows,
    where the sink begins. `name` is what the sink is called in the view, and in the table `epochs`.
    A connection that is lost is made again for `wait` seconds.
    """

    def __init__(
        self,
        dsn: str,
        table: str,
        *,
        key: str | Sequence[str] | None = None,
        count: str | None = None,
        output: str | None = None,
        name: str | None = None,
        create: bool = False,
        overwrite: bool = False,
        epochs: str = "ebbflow_epochs",
        wait: float = WAIT,
    ) -> None:
        self.table, self.output, self.name = table, output, name or f"table {table}"
        self.create, self.overwrite, self.epochs = create, overwrite, epochs
        self._key, self._count = key, count
        self._link = Link(dsn, wait)
        self._layout: TableLayout

    def attach(self, view: Any) -> None:
        """Know the columns; an error where the output cannot be a table."""
        super().attach(view)
        self._layout = table_layout(self.node, self.table, self._key, self._count)

    def had(self, known: int | None, first: int, last: int) -> int | None:
        """The epoch that the table is at, as the database says; None where it never was."""
        found: int | None = self._do(self._epoch)
        return found

    def begin(self, epoch: int, value: Any) -> None:
        """Have exactly these rows in the table."""

        def write(cursor: Cursor[Any]) -> None:
            self._make_tables(cursor)
            require_no_rounding(cursor, self._layout, self.name)
            table = quoted(self.table)
            if self.overwrite:
                cursor.execute(f"DELETE FROM {table}")
            elif cursor.execute(f"SELECT EXISTS (SELECT FROM {table})").fetchone() == (True,):
                raise SinkError(
                    f"the table {self.table!r} has rows, and the sink {self.name!r} begins",
                    remedy="another table, or overwrite=True to have them replaced",
                )
            self._write(cursor, value)

        self._commit(epoch, write)

    def restart(self, epoch: int, value: Any) -> None:
        """Replace the rows of the table in one transaction. With `create` its columns become those
        of the output."""

        def write(cursor: Cursor[Any]) -> None:
            self._make_tables(cursor)
            cursor.execute(f"DELETE FROM {quoted(self.table)}")
            if self.create:
                fit_columns(cursor, self._layout)
            require_no_rounding(cursor, self._layout, self.name)
            self._write(cursor, value)

        self._commit(epoch, write, again=True)

    def _make_tables(self, cursor: Cursor[Any]) -> None:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('ebbflow', 0))")
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {quoted(self.epochs)} "
            "(sink text PRIMARY KEY, epoch bigint NOT NULL, written timestamptz NOT NULL)"
        )
        if self.create:
            cursor.execute(self._layout.create)

    def publish(self, epoch: int, change: Any) -> None:
        """Write what an epoch changed, and its number, unless it is there."""
        self._commit(epoch, lambda cursor: self._write(cursor, change))

    def close(self) -> None:
        """Let go of the connection."""
        self._link.close()

    # ---- one transaction ----

    def _do(self, work: Callable[[Connection[Any]], Any]) -> Any:
        return self._link.do(work, f"table {self.table!r}")

    def _commit(
        self, epoch: int, write: Callable[[Cursor[Any]], None], *, again: bool = False
    ) -> None:
        """Write an epoch, unless it is in the table already; with `again`, even then."""

        def work(connection: Connection[Any]) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                lock = f"ebbflow {self.name}"  # one that was cut off may still be committing
                cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (lock,))
                known = self._epoch(connection)
                if known is not None and known >= epoch and not again:
                    return
                write(cursor)
                cursor.execute(
                    f"INSERT INTO {quoted(self.epochs)} VALUES (%s, %s, now()) ON CONFLICT (sink) "
                    "DO UPDATE SET epoch = excluded.epoch, written = excluded.written",
                    (self.name, epoch),
                )

        self._do(work)

    def _epoch(self, connection: Connection[Any]) -> int | None:
        there = connection.execute("SELECT to_regclass(%s)", (quoted(self.epochs),)).fetchone()
        if there is None or there[0] is None:
            return None
        query = f"SELECT epoch FROM {quoted(self.epochs)} WHERE sink = %s"
        found = connection.execute(query, (self.name,)).fetchone()
        return None if found is None else int(found[0])

    def _write(self, cursor: Cursor[Any], change: Any) -> None:
        blocks = self.blocks(change)
        first = next(blocks, [])
        if len(first) > SMALL:
            self._write_many(cursor, chain([first], blocks))
        else:
            second = next(blocks, None)
            if second is None:
                self._write_few(cursor, first)
            else:
                self._write_many(cursor, chain([first, second], blocks))

    def _write_few(self, cursor: Cursor[Any], block: Block) -> None:
        layout, net = self._layout, dict[Any, int]()
        for row, weight in block:
            net[row] = net.get(row, 0) + weight
        if layout.count is not None:
            rows = [(layout.values(row), weight) for row, weight in net.items() if weight]
            if rows:
                cursor.executemany(layout.insert, [(*values, weight) for values, weight in rows])
                cursor.executemany(layout.delete_none, [values for values, _ in rows])
            return
        put: dict[Any, Any] = {}
        gone: dict[Any, Any] = {}
        for row, weight in net.items():
            key = layout.key_values(row)
            if weight < 0:
                gone[key] = row
            elif weight and (weight > 1 or put.setdefault(key, row) is not row):
                raise self._several(key)
        places = [layout.names.index(name) for name in layout.key]
        left = [layout.values(row) for key, row in gone.items() if key not in put]
        if left:
            cursor.executemany(layout.delete, [[row[place] for place in places] for row in left])
        if put:
            cursor.executemany(layout.insert, [layout.values(row) for row in put.values()])

    def _write_many(self, cursor: Cursor[Any], blocks: Any) -> None:
        layout = self._layout
        for statement in layout.stage:
            cursor.execute(statement)
        with cursor.copy(layout.copy) as copy:
            for block in blocks:
                for row, weight in block:
                    copy.write_row((*layout.values(row), weight))
        for statement in layout.add_up:
            cursor.execute(statement)
        if layout.count is None:
            found = cursor.execute(layout.several).fetchone()
            if found is not None:
                raise self._several(found)
        for statement in layout.merge:
            cursor.execute(statement)

    def _several(self, key: Sequence[Any]) -> SinkError:
        return SinkError(
            f"the sink {self.name!r}: there are several rows of one key, which a table cannot have",
            key=tuple(key),
            fields=Text(", ".join(self._layout.key)),
            created=self.node.place,
            remedy='more fields in key=..., or count="n" for rows that have no key',
        )
