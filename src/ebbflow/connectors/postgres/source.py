"""Tables of PostgreSQL as inputs of a view: what is in them, then what every transaction changes.

A *replication slot* on the server keeps the log from a position on, until it is told that a part is
not needed any more. `pgoutput` reads the changes of tables off the log, transaction by transaction,
in the order of their commits. So the view gets

    1. a claim: an epoch without rows, by which the view knows that the slot is its own
    2. the snapshot: all rows as they were at the position where the slot was made. PostgreSQL
       gives out just that: the slot is made, and the snapshot is that of its position. What was
       committed before is in the snapshot, what comes after is in the log, and nothing in both
    3. transactions, each as a whole, one or several in an epoch, with the position in the log after
       the last one as the number of the batch

The view commits that number with the epoch. Only then the slot is told (`done`), so what the server
keeps is always enough. Killed before the slot is told, the same transactions come again, and are
left out by their positions. Killed before 2 is committed, the slot is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any

from ebbflow.connectors.postgres.link import WAIT, Link, keep_texts, quoted
from ebbflow.connectors.postgres.pgoutput import lsn, position
from ebbflow.connectors.postgres.transactions import Transactions
from ebbflow.connectors.source import (
    ChangeSource,
    InputEvents,
    SourceBatch,
    inputs_of,
    position_of,
    refused_event,
    rest,
)
from ebbflow.engine.runtime.table.column_types import VALUE
from ebbflow.errors import CompositionError, DatabaseError, Text
from ebbflow.flow.plan import Source
from ebbflow.record import defaults_of, fields_of

if TYPE_CHECKING:
    from psycopg import Connection

LIMIT = 10_000
"""So many changed rows are taken into one epoch, and what else their last transaction changed."""
SEGMENT = 1 << 24
"""A slot whose tables rest lets the server drop the log of others whenever there is so much."""


def changes(
    dsn: str,
    tables: Mapping[str, str],
    *,
    slot: str,
    publication: str | None = None,
    limit: int = LIMIT,
    begin_again: bool = False,
    wait: float = WAIT,
) -> PostgresSource:
    """The changes of tables, as `{input: "schema.table"}`, for `run(view)`; see the module. ::

        source = changes("dbname=shop", {"orders": "public.orders"}, slot="totals")
        source.run(view)                  # follows until it is stopped
        source.run(view, follow=False)    # what is there now, then it ends

    `slot` is the name of the replication slot, one for each view; `publication` is that of what
    says which tables are meant, `slot` unless told; both are made where they are not there. At most
    `limit` changed rows come in one epoch, rounded up to whole transactions; 1 is one transaction
    each. `begin_again`: when the slot is gone, or was not made for this view, make a new one and
    load what is in the tables then; what differs from the view flows. A connection that is lost is
    made again for `wait` seconds.
    """
    return PostgresSource(dsn, tables, slot, publication or slot, limit, begin_again, wait)


class PostgresSource(ChangeSource):
    """The changes of some tables; see `changes`."""

    def __init__(
        self,
        dsn: str,
        tables: Mapping[str, str],
        slot: str,
        publication: str,
        limit: int,
        begin_again: bool,
        wait: float,
    ) -> None:
        if not tables:
            raise CompositionError("changes: no tables", remedy='{"orders": "public.orders"}')
        self.dsn, self.slot, self.publication = dsn, slot, publication
        self.tables = {
            name: each if "." in each else f"public.{each}" for name, each in tables.items()
        }
        self.limit, self.begin_again = limit, begin_again
        self._link = Link(dsn, wait)

    def batches(
        self, view: Any, *, follow: bool = True, stop: Event | None = None
    ) -> Iterator[SourceBatch]:
        """The claim, the snapshot, and then transactions, as far as the view has not had them."""
        inputs = inputs_of(view, self.tables)
        try:
            self._do(lambda connection: self._prepare(connection, inputs))
            at = position_of(view, self.slot)
            begins = self._do(lambda connection: self._begins(connection, at))
            if begins and at is None:
                yield SourceBatch({}, (self.slot, 0), _nothing)
            if begins:
                was = at or 0
                at, changes = self._do(lambda connection: self._snapshot(connection, inputs))
                if at <= was:
                    raise DatabaseError(
                        f"slot {self.slot!r}: the log of this server is at {lsn(at)}, and this "
                        f"view has had it up to {lsn(was)}: it is another server",
                        remedy="a slot of another name",
                    )
                yield SourceBatch(changes, (self.slot, at), _nothing)
            yield from self._stream(view, inputs, at, follow, stop)
        finally:
            self._link.close()

    def drop(self) -> None:
        """Drop the slot and the publication: the server keeps nothing for this source any more."""

        def work(connection: Connection[Any]) -> None:
            self._drop_slot(connection)
            connection.execute(f"DROP PUBLICATION IF EXISTS {quoted(self.publication)}")

        self._do(work)
        self._link.close()

    def _do(self, work: Callable[[Connection[Any]], Any]) -> Any:
        return self._link.do(work, f"slot {self.slot!r}")

    # ---- what there is ----

    def _prepare(self, connection: Connection[Any], inputs: Mapping[str, Source]) -> None:
        """Have a publication of the tables, which fit the inputs."""
        for name, table in self.tables.items():
            self._require_table(connection, table, inputs[name])
        tables = sorted(set(self.tables.values()))
        there = "SELECT FROM pg_publication WHERE pubname = %s"
        if connection.execute(there, (self.publication,)).fetchone() is None:
            listed = ", ".join(map(quoted, tables))
            connection.execute(
                f"CREATE PUBLICATION {quoted(self.publication)} FOR TABLE {listed} "
                "WITH (publish_via_partition_root = true)"
            )
        published = "SELECT schemaname || '.' || tablename FROM pg_publication_tables"
        found = connection.execute(f"{published} WHERE pubname = %s", (self.publication,))
        known = {each for (each,) in found}
        for table in tables:
            if table not in known:
                raise DatabaseError(
                    f"publication {self.publication!r} does not have the table {table!r}",
                    tables=Text(", ".join(sorted(known)) or "none"),
                    remedy=f"ALTER PUBLICATION {quoted(self.publication)} ADD TABLE "
                    f"{quoted(table)}, and begin_again=True; or another slot",
                )

    def _require_table(self, connection: Connection[Any], table: str, source: Source) -> None:
        query = """SELECT a.attname, coalesce(a.attnum = ANY(i.indkey), false), c.relreplident
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
            LEFT JOIN pg_index i ON i.indrelid = c.oid AND (c.relreplident = 'd' AND i.indisprimary
            OR c.relreplident = 'i' AND i.indisreplident)
            WHERE c.oid = to_regclass(%s) AND NOT a.attisdropped"""
        found = connection.execute(query, (quoted(table),)).fetchall()
        columns = [name for name, _, _ in found]
        if not found:
            raise DatabaseError(f"there is no table {table!r}", remedy="CREATE TABLE, or its name")
        fields = fields_of(source.type) or {VALUE: source.type}
        defaults = defaults_of(source.type) if fields_of(source.type) is not None else {}
        if missing := [name for name in fields if name not in columns and name not in defaults]:
            raise DatabaseError(
                f"the table {table!r} has no column {missing[0]!r}, and rows of input "
                f"{source.name!r} do",
                columns=Text(", ".join(columns)),
                created=source.place,
                remedy="a row type with the columns of the table, or some of them",
            )
        if found[0][2] == "f":
            return
        identity = {name for name, part, _ in found if part}
        key = set(InputEvents(source).fields or ())
        if not key or key != identity:
            what = f"the key {', '.join(sorted(key))}" if key else "no key of its fields"
            raise DatabaseError(
                f"input {source.name!r} has {what}, and the table {table!r} says of a row that is "
                f"deleted only {', '.join(sorted(identity)) or 'nothing'}",
                created=source.place,
                remedy=f"Input(..., key=...) as the table has it; or ALTER TABLE {quoted(table)} "
                "REPLICA IDENTITY FULL",
            )

    def _begins(self, connection: Connection[Any], at: int | None) -> bool:
        """Whether there is to be a new slot, and a snapshot; an error where the slot is not as the
        view left it."""
        query = "SELECT confirmed_flush_lsn::text, wal_status FROM pg_replication_slots"
        found = connection.execute(f"{query} WHERE slot_name = %s", (self.slot,)).fetchone()
        if at == 0 or (at is None and found is None) or (at is None and self.begin_again):
            return True
        if at is None:
            wrong = "there is such a slot, and this view has had nothing of it"
        elif found is None:
            wrong = "there is no such slot any more"
        elif found[1] == "lost":
            wrong = "the server has dropped the log before it was read (max_slot_wal_keep_size)"
        elif position(found[0]) > at:
            wrong = f"it is at {found[0]}, and this view at {lsn(at)}: somebody else has read it"
        else:
            return False
        if self.begin_again:
            return True
        raise DatabaseError(
            f"slot {self.slot!r}: {wrong}, so changes would be missing",
            remedy="begin_again=True, which makes the slot anew and loads what is in the tables; "
            "or a slot of another name for each view",
        )

    # ---- the snapshot ----

    def _drop_slot(self, connection: Connection[Any]) -> None:
        query = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        connection.execute(f"{query} WHERE slot_name = %s", (self.slot,))

    def _snapshot(
        self, connection: Connection[Any], inputs: Mapping[str, Source]
    ) -> tuple[int, dict[str, Any]]:
        """Make the slot, and read the tables as they are at its position, which is given too."""
        import psycopg

        self._drop_slot(connection)
        with psycopg.connect(self.dsn, replication="database", autocommit=True) as log:
            command = f"CREATE_REPLICATION_SLOT {quoted(self.slot)} LOGICAL pgoutput"
            made = log.pgconn.exec_(f"{command} (SNAPSHOT 'export')".encode())
            if made.status != psycopg.pq.ExecStatus.TUPLES_OK:
                said = made.error_message.decode(errors="replace").strip()
                if log.pgconn.status != psycopg.pq.ConnStatus.OK:
                    raise psycopg.OperationalError(said)
                raise DatabaseError(
                    f"slot {self.slot!r} cannot be made: {said}",
                    remedy="wal_level = logical in postgresql.conf, and a user that may: ALTER "
                    "ROLE ... REPLICATION",
                )
            at, snapshot = (made.get_value(0, i).decode() for i in (1, 2))  # type: ignore[union-attr]
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
                found = {name: self._all(connection, name, inputs[name]) for name in self.tables}
            return position(at), found

    def _all(self, connection: Connection[Any], name: str, source: Source) -> Any:
        events, table = InputEvents(source), self.tables[name]
        events.clear()
        there = connection.execute(f"SELECT * FROM {quoted(table)} LIMIT 0").description or ()
        names = [each.name for each in there if each.name in events.columns]
        listed = ", ".join(map(quoted, names))
        with connection.cursor(f"ebbflow_{name}") as cursor:
            cursor.itersize = LIMIT
            keep_texts(cursor)
            for row in cursor.execute(f"SELECT {listed} FROM {quoted(table)}"):
                given = dict(zip(names, row, strict=True))
                try:
                    events.put(given)
                except ValueError as error:
                    raise refused_event(f"table {table!r}", given, error, source) from None
        return events.change()

    # ---- the log ----

    def _stream(
        self, view: Any, inputs: Mapping[str, Source], at: int, follow: bool, stop: Event | None
    ) -> Iterator[SourceBatch]:
        end = resting = None
        while stop is None or not stop.is_set():
            flushed, messages, loads = self._do(partial(self._peek, resting))
            if end is None:
                end = flushed
            reader = Transactions(self.tables, inputs, view, loads)
            last, found = reader.read(messages, at)
            if last is None and messages:  # the view has had them, and the slot was not told
                self._do(partial(self._advance, at))
                continue
            if not found:  # servers before 15 tell of transactions that changed nothing of ours
                to = flushed if last is None else last
                last = to if to - at >= SEGMENT or len(messages) >= self.limit else None
            resting = flushed if last is None else None
            if last is not None:
                done = False

                def confirm(last: int = last) -> None:
                    nonlocal at, done
                    self._do(partial(self._advance, last))
                    at, done = last, True

                yield SourceBatch(found, (self.slot, last), confirm)
                if done and (follow or at < end):
                    continue
                if done:
                    return
            if not follow and last is None:
                return
            if not rest(stop):
                return

    def _peek(
        self, resting: int | None, connection: Connection[Any]
    ) -> tuple[int, list[bytes], Any]:
        """How far the log is, the next messages of the slot, and what reads values by type. While
        the log is `resting` where it was, nothing is asked of the slot."""
        from psycopg.adapt import Transformer

        now = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        assert now is not None
        if position(now[0]) == resting:
            return resting, [], None
        query = """SELECT data FROM pg_logical_slot_peek_binary_changes(
            %s, NULL, %s, 'proto_version', '1', 'publication_names', %s)"""
        given = self.slot, self.limit, quoted(self.publication)
        found = connection.execute(query, given, binary=True).fetchall()
        return position(now[0]), [data for (data,) in found], Transformer(connection)

    def _advance(self, to: int, connection: Connection[Any]) -> None:
        connection.execute("SELECT pg_replication_slot_advance(%s, %s)", (self.slot, lsn(to)))


def _nothing() -> None:
    """What is left to do for a batch after which the slot is where it was."""
