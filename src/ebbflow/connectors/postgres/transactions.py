"""What transactions of PostgreSQL changed, as changes of the inputs of a view.

Messages come in the order of commits, each transaction as a whole. Values are read by the types
that the server says, as the rows of a query are, and then as the hints of the input say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ebbflow.connectors.postgres.pgoutput import (
    UNCHANGED,
    Commit,
    Relation,
    RowChange,
    Truncate,
    decode,
    lsn,
)
from ebbflow.connectors.source import InputEvents, SourceRow, refused_event
from ebbflow.errors import error_text
from ebbflow.flow.plan import Source


class Transactions:
    """What some transactions changed, as changes of inputs."""

    def __init__(
        self, tables: Mapping[str, str], inputs: Mapping[str, Source], view: Any, loads: Any
    ) -> None:
        self._loads = loads
        self._names: dict[str, list[str]] = {}
        for name, table in tables.items():
            self._names.setdefault(table, []).append(name)
        self._rows = {
            name: SourceRow(view, name, InputEvents(source)) for name, source in inputs.items()
        }
        self._relations: dict[int, Relation] = {}

    def read(self, messages: list[bytes], after: int) -> tuple[int | None, dict[str, Any]]:
        """The position after the last transaction, None where there is none after `after`, and what
        all of them change."""
        last = None
        waiting: list[RowChange | Truncate] = []
        for data in messages:
            match decode(data):
                case Relation() as relation:
                    self._relations[relation.number] = relation
                case Commit(end):
                    if end > after:
                        for each in waiting:
                            self._apply(each, end)
                        last = end
                    waiting = []
                case None:
                    pass
                case change:
                    waiting.append(change)
        found = {name: row.events.change() for name, row in self._rows.items()}
        return last, {name: change for name, change in found.items() if change is not None}

    def _apply(self, change: RowChange | Truncate, at: int) -> None:
        if isinstance(change, Truncate):
            for number in change.relations:
                for name in self._names.get(self._relations[number].name, ()):
                    self._rows[name].events.clear()
            return
        relation = self._relations[change.relation]
        for name in self._names.get(relation.name, ()):
            events = self._rows[name].events
            try:
                self._change_row(name, events, relation, change)
            except ValueError as error:
                where = f"table {relation.name!r}, log position {lsn(at)}"
                names = [each.name for each in relation.columns]
                given = dict(zip(names, change.new or change.old or (), strict=False))
                raise refused_event(where, given, error, events.source) from None

    def _change_row(
        self, name: str, events: InputEvents, relation: Relation, change: RowChange
    ) -> None:
        old = None
        if change.old is not None:
            old = self._row(relation, change.old, events, change.by_key)
        if change.new is None:
            events.take(old or {})
            return
        new = self._row(relation, change.new, events)
        if old is None and UNCHANGED not in new.values():
            events.put(new)
        else:
            self._rows[name].update(new, old, UNCHANGED)

    def _row(
        self, relation: Relation, values: Any, events: InputEvents, by_key: bool = False
    ) -> dict[str, Any]:
        """The values of the columns that are fields of the input; `by_key`, those of the identity
        alone."""
        from psycopg import DataError
        from psycopg.pq import Format

        found = {}
        for column, value in zip(relation.columns, values, strict=True):
            if column.name in events.columns and (column.identity or not by_key):
                if isinstance(value, bytes):
                    try:
                        value = self._loads.get_loader(column.oid, Format.TEXT).load(value)
                    except DataError as error:
                        raise ValueError(f"column {column.name!r}: {error_text(error)}") from None
                found[column.name] = value
        return found
