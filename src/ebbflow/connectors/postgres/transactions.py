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
from ebbflow.connectors.source import InputEvents, refused_event
from ebbflow.engine.runtime.table.column_types import VALUE
from ebbflow.flow.plan import Source
from ebbflow.record import fields_of
from ebbflow.state.cells import ABSENT


class Transactions:
    """What some transactions changed, as changes of inputs."""

    def __init__(
        self, tables: Mapping[str, str], inputs: Mapping[str, Source], view: Any, loads: Any
    ) -> None:
        self._view, self._loads = view, loads
        self._names: dict[str, list[str]] = {}
        for name, table in tables.items():
            self._names.setdefault(table, []).append(name)
        self._events = {name: InputEvents(source) for name, source in inputs.items()}
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
        found = {name: events.change() for name, events in self._events.items()}
        return last, {name: change for name, change in found.items() if change is not None}

    def _apply(self, change: RowChange | Truncate, at: int) -> None:
        if isinstance(change, Truncate):
            for number in change.relations:
                for name in self._names.get(self._relations[number].name, ()):
                    self._events[name].clear()
            return
        relation = self._relations[change.relation]
        for name in self._names.get(relation.name, ()):
            events = self._events[name]
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
        if left := [each for each, value in new.items() if value is UNCHANGED]:
            new |= self._left(name, events, old or new, left)
        if old is not None:
            events.take(old)
        events.put(new)

    def _left(
        self, name: str, events: InputEvents, old: dict[str, Any], left: list[str]
    ) -> dict[str, Any]:
        """The values of columns that an update left as they were: of the row before, which the
        message has, or an earlier one of this batch, or the view."""
        if all(old.get(each, UNCHANGED) is not UNCHANGED for each in left):
            return {each: old[each] for each in left}
        key = events.key(old)
        row = events.known(key)
        if row is None:
            row = self._view.input(name).get(key)
        if row is None or row is ABSENT:
            raise ValueError(f"an update leaves {', '.join(left)} as it was, and there is no row")
        if fields_of(events.source.type) is None:
            return {VALUE: row}
        return {each: getattr(row, each) for each in left}

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
                        raise ValueError(f"column {column.name!r}: {error}") from None
                found[column.name] = value
        return found
