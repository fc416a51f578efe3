"""Delta tables as inputs: first what is there, then what every version changes.

A table has a *version*, which grows with every commit to it, and its change feed says what each
version has changed: rows that were added, and rows that were taken away, an update being both. That
is a change of the input as it stands, so rows need no key, and several versions add up to one
change. The versions that are in the view are its batch, `("delta", {"orders <id>": 17})`, in the
same commit as the rows; so a source that is started again goes on after them. The id of a table is
part of it: one that was made anew under the same name is not taken for the one before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from threading import Event
from typing import Any

from ebbflow.change.requests import replace_rows
from ebbflow.connectors.delta.tables import Unavailable, VersionedTable, table_of
from ebbflow.connectors.source import ChangeSource, SourceBatch, inputs_of, position_of, rest
from ebbflow.engine.runtime.table.column_types import columns_of
from ebbflow.errors import ChangeError, CompositionError, Text, place
from ebbflow.flow.plan import Source

SECONDS = 1.0
"""How often a source that follows looks for a new version."""
ERROR, REPLACE = "error", "replace"


def changes(
    tables: Mapping[str, str | os.PathLike[str]],
    *,
    name: str = "delta",
    gap: str = ERROR,
    versions: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DeltaSource:
    """The tables that some inputs follow, by the name of the input: a path, a URL, or on Spark the
    name of a table. `run(view)` brings a view up to date.

    Of a table only the columns that the rows of the input have are read. What comes first is all
    that is in it, then its change feed, which must be on: the table property
    `delta.enableChangeDataFeed`. Where versions that are needed are not in it any more, or the
    table was made anew, that is an error; with `gap="replace"` the input is then made equal to the
    table, and what differs is the change. All waiting versions of all tables are one epoch, or
    `versions` of each at most.

    >>> from ebbflow.connectors import delta
    >>> delta.changes({"orders": "lake/orders"})
    changes({'orders': 'lake/orders'})
    """
    if gap not in (ERROR, REPLACE):
        raise CompositionError(
            f"changes(gap={gap!r}): there is no such choice", remedy="'error' or 'replace'"
        )
    places = {each: os.fspath(where) for each, where in tables.items()}
    return DeltaSource(places, name, gap, versions, dict(storage_options or {}), place())


class DeltaSource(ChangeSource):
    """Some Delta tables, each for an input; made by `changes`."""

    def __init__(
        self, tables: dict[str, str], name: str, gap: str, versions: int | None,
        storage: dict[str, str], created: str,
    ) -> None:  # fmt: skip
        self.tables, self.name, self.gap = tables, name, gap
        self.versions, self.storage, self.created = versions, storage, created

    def __repr__(self) -> str:
        return f"changes({self.tables!r})"

    def batches(
        self, view: Any, *, follow: bool = True, stop: Event | None = None
    ) -> Iterator[SourceBatch]:
        """What a view has not had. With `follow` it waits for new versions, until `stop` is set."""
        inputs = inputs_of(view, self.tables)
        session = getattr(view, "session", None)
        tables = {
            name: _Followed(self, table_of(where, session, self.storage), inputs[name])
            for name, where in self.tables.items()
        }
        while stop is None or not stop.is_set():
            at = position_of(view, self.name) or {}
            found = {name: each.waiting(view, at) for name, each in tables.items()}
            given = {name: each[0] for name, each in found.items() if each is not None}
            if given:
                parts = {each[1]: each[2] for each in found.values() if each is not None}
                yield SourceBatch(given, (self.name, parts), _nothing)
            elif not follow or not rest(stop, SECONDS):
                return


def _nothing() -> None:
    """There is nothing for a table to forget."""


class _Followed:
    """One table, for one input."""

    def __init__(self, origin: DeltaSource, table: VersionedTable, source: Source) -> None:
        self.origin, self.table, self.source = origin, table, source
        self.columns = [name for name, _ in columns_of(source.type)]
        self._empty = -1
        """Up to which version nothing is to be done, though that is not noted."""

    def waiting(self, view: Any, at: Mapping[str, int]) -> tuple[Any, str, int] | None:
        """What the view has not had of the table, the part of the source that is, and up to which
        version; None where that is nothing."""
        newest = self.table.newest()
        self._require_columns(newest.columns)
        part = f"{self.source.name} {newest.id}"
        had = at.get(part)
        if had is None:
            return self._first(view, at, part, newest.version)
        if max(had, self._empty) >= newest.version:
            if had > newest.version:
                return self._gap(newest.version, part, f"it is at version {newest.version} again")
            return None
        last = newest.version
        if self.origin.versions is not None:
            last = min(last, had + self.origin.versions)
        try:
            found = self.table.changed(had + 1, last, self.columns)
        except Unavailable as error:
            return self._gap(newest.version, part, str(error))
        if found is None:
            self._empty = last
            return None if last == newest.version else self.waiting(view, {**at, part: last})
        return found, part, last

    def _first(
        self, view: Any, at: Mapping[str, int], part: str, version: int
    ) -> tuple[Any, str, int]:
        """All that is in the table, for a view that has had nothing of it."""
        other = [each for each in at if each.startswith(f"{self.source.name} ")]
        if other:
            return self._gap(version, part, "another table was followed before, and this is new")
        rows = self.table.rows(version, self.columns)
        if view.epoch and self.table.any_rows(view, self.source.name):
            return self._gap(version, part, "the input has rows that did not come from this table")
        return rows, part, version

    def _gap(self, version: int, part: str, why: str) -> tuple[Any, str, int]:
        """Make the input equal to the table, where that was chosen, or say that it cannot go on."""
        if self.origin.gap == REPLACE:
            rows = self.table.rows(version, self.columns)
            return replace_rows(rows), part, version
        raise ChangeError(
            f"input {self.source.name!r} cannot follow the table: {why}",
            table=Text(self.table.place),
            created=Text(self.origin.created),
            remedy="delta.enableChangeDataFeed on the table, from before it is followed; or "
            'changes(..., gap="replace"), which makes the input equal to the table again',
        )

    def _require_columns(self, there: list[str]) -> None:
        missing = [name for name in self.columns if name not in there]
        if missing:
            raise ChangeError(
                f"input {self.source.name!r}: the table has no column {missing[0]!r}",
                table=Text(self.table.place),
                columns=Text(", ".join(there)),
                created=self.source.place,
                remedy="the columns of the table as fields of the row type",
            )
