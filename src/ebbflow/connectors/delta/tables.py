"""A Delta table as either engine reads and writes it: with `deltalake` in this process, or through
a Spark session, with Delta's jar.

Both have the same few verbs: the newest version and what it is; its rows; what versions changed;
and, to write, everything anew, a merge by key, or rows at the end, each one commit with the number
of an epoch, by which the table itself can say which epochs it has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ebbflow.errors import CheckError, error_text, install

GONE = "__gone"
"""The column of a merge that says of a row that it is taken away."""
FEED = "_change_type"


class Unavailable(Exception):
    """What a version changed cannot be read."""


class Newest(NamedTuple):
    """The newest version of a table: its number, the id of the table, and its columns."""

    version: int
    id: str
    columns: list[str]


class VersionedTable(ABC):
    """A Delta table."""

    place: str

    # ---- reading ----

    @abstractmethod
    def newest(self) -> Newest:
        """The newest version."""

    @abstractmethod
    def rows(self, version: int, columns: list[str]) -> Any:
        """What is in the table at a version."""

    @abstractmethod
    def changed(self, first: int, last: int, columns: list[str]) -> Any:
        """What these versions changed, with `_change_type`; None where that is nothing."""

    @abstractmethod
    def any_rows(self, view: Any, name: str) -> bool:
        """Whether an input of a view has rows."""

    # ---- writing ----

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is such a table."""

    @abstractmethod
    def epoch(self, writer: str) -> int | None:
        """The last epoch that a writer of this name has committed; None where that is not known."""

    @abstractmethod
    def replace(self, rows: Any, writer: str, epoch: int) -> None:
        """Have just these rows."""

    @abstractmethod
    def append(self, rows: Any, writer: str, epoch: int) -> None:
        """Add these rows."""

    @abstractmethod
    def merge(self, rows: Any, key: Sequence[str], writer: str, epoch: int) -> None:
        """Put rows in by key, and take those away that are marked as gone."""


def table_of(where: str, session: Any, storage: Mapping[str, str]) -> VersionedTable:
    """The table at a path, a URL, or on Spark of a name."""
    if session is not None:
        from ebbflow.connectors.delta.frames import SparkTable

        return SparkTable(where, session)
    try:
        import deltalake  # noqa: F401
    except ModuleNotFoundError as error:
        raise CheckError("Delta tables need deltalake", remedy=install("delta")) from error
    return LocalTable(where, storage)


class LocalTable(VersionedTable):
    """A table as `deltalake` has it, with Arrow tables of rows."""

    def __init__(self, place: str, storage: Mapping[str, str]) -> None:
        self.place = place if "://" in place else str(Path(place).absolute())
        self.storage = dict(storage) or None

    def _at(self, version: int | None = None) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(self.place, version=version, storage_options=self.storage)

    def newest(self) -> Newest:
        table = self._at()
        columns = [each.name for each in table.schema().fields]
        return Newest(table.version(), str(table.metadata().id), columns)

    def rows(self, version: int, columns: list[str]) -> Any:
        return self._at(version).to_pyarrow_table(columns=columns)

    def changed(self, first: int, last: int, columns: list[str]) -> Any:
        import pyarrow as pa

        table = self._at(last)
        if table.metadata().configuration.get("delta.enableChangeDataFeed") != "true":
            raise Unavailable("its change feed is off")
        try:
            feed = pa.table(table.load_cdf(first, last, columns=[*columns, FEED]))
        except Exception as error:
            said = error_text(error)
            raise Unavailable(f"version {first} to {last} cannot be read: {said}") from error
        return _plain(feed) if len(feed) else None

    def any_rows(self, view: Any, name: str) -> bool:
        return bool(len(view.input(name)))

    def exists(self) -> bool:
        from deltalake import DeltaTable

        return bool(DeltaTable.is_deltatable(self.place, self.storage))

    def epoch(self, writer: str) -> int | None:
        found = self._at().transaction_version(writer)
        return None if found is None else int(found)

    def replace(self, rows: Any, writer: str, epoch: int) -> None:
        self._write(rows, writer, epoch, mode="overwrite", schema_mode="overwrite")

    def append(self, rows: Any, writer: str, epoch: int) -> None:
        self._write(rows, writer, epoch, mode="append")

    def _write(self, rows: Any, writer: str, epoch: int, **how: Any) -> None:
        from deltalake import write_deltalake

        write_deltalake(
            self.place, rows, storage_options=self.storage,
            commit_properties=_said(writer, epoch), **how,
        )  # fmt: skip

    def merge(self, rows: Any, key: Sequence[str], writer: str, epoch: int) -> None:
        names = [name for name in rows.column_names if name != GONE]
        same = " and ".join(
            f"t.{_quoted(name)} "
            f"{'is not distinct from' if rows.column(name).null_count else '='} s.{_quoted(name)}"
            for name in key
        )
        values = {_quoted(name): f"s.{_quoted(name)}" for name in names}
        merging = self._at().merge(
            rows, same, source_alias="s", target_alias="t",
            commit_properties=_said(writer, epoch),
        )  # fmt: skip
        merging = merging.when_matched_delete(predicate=f"s.{GONE} = true")
        if set(names) - set(key):
            merging = merging.when_matched_update(values, predicate=f"s.{GONE} = false")
        merging.when_not_matched_insert(values, predicate=f"s.{GONE} = false").execute()


def _said(writer: str, epoch: int) -> Any:
    """What a commit says of who made it."""
    from deltalake import CommitProperties, Transaction

    return CommitProperties(
        custom_metadata={"ebbflow": writer, "epoch": str(epoch)},
        app_transactions=[Transaction(writer, epoch)],
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _plain(table: Any) -> Any:
    """A table without the view types that the library gives, which not everybody reads."""
    import pyarrow as pa

    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    fields = [pa.field(each.name, plain.get(each.type, each.type)) for each in table.schema]
    return table.cast(pa.schema(fields))
