"""Delta tables as sinks: a table that is equal to an output, or one with all its changes.

Every epoch is one commit to the table, and the commit has the number of the epoch: so there are
both or neither, and a sink that is added again asks the table how far it is. An epoch that changed
nothing of the output makes no commit.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ebbflow.connectors.delta.tables import GONE, VersionedTable, table_of
from ebbflow.connectors.rows import OutputSink, required_key
from ebbflow.engine.runtime.lookup import key_columns
from ebbflow.engine.runtime.table.column_types import WEIGHT, columns_of
from ebbflow.errors import CompositionError, SinkError, Text
from ebbflow.zset import ZSet

EPOCH = "epoch"


class DeltaSink(OutputSink):
    """What both sinks have: a table, and a name under which it knows its epochs."""

    def __init__(
        self, table: str | os.PathLike[str], *, output: str | None = None, name: str | None = None,
        overwrite: bool = False, storage_options: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.place, self.output, self.overwrite = os.fspath(table), output, overwrite
        self.name = name or f"delta {self.place}" + (f" of {output}" if output else "")
        self.storage = dict(storage_options or {})
        self.table: VersionedTable | None = None

    def attach(self, view: Any) -> None:
        """Know the output and the table."""
        super().attach(view)
        self.columns = [name for name, _ in columns_of(self.node.type)]
        self.table = table_of(self.place, getattr(view, "session", None), self.storage)

    @property
    def _writer(self) -> str:
        return f"ebbflow {self.name}"

    def had(self, known: int | None, first: int, last: int) -> int | None:
        """What the table says; where it says nothing, it is new, and begins with the value."""
        assert self.table is not None
        there = self.table.exists()
        said = self.table.epoch(self._writer) if there else None
        found = max((each for each in (known, said) if each is not None), default=None)
        if not there:
            found = None
        if found is None and there and not self.overwrite:
            raise SinkError(
                f"the sink {self.name!r}: there is a table, and it has no epoch of this sink",
                table=Text(self.table.place),
                remedy="another table, or overwrite=True, which replaces it by the value",
            )
        return found

    def restart(self, epoch: int, value: Any) -> None:
        """Replace all rows and the columns in one commit."""
        assert self.table is not None
        said = self.table.epoch(self._writer) if self.table.exists() else None
        if said is not None and said > epoch:
            raise SinkError(
                f"the sink {self.name!r}: the table has epoch {said} of this sink, and the view is "
                f"at epoch {epoch}: Delta refuses the epochs in between",
                table=Text(self.table.place),
                remedy="another name=, with overwrite=True",
            )
        self.begin(epoch, value)

    def _mine(self, change: Any) -> Any:
        """The change of the output: a ZSet, or a DataFrame with weights."""
        return change if self._among is None else change[self._among]

    def _weighted(self, change: Any) -> Any:
        """The change as a table with a column of weights."""
        mine = self._mine(change)
        if isinstance(mine, ZSet):
            return mine.to_arrow(self.node.type, weights=True)
        return mine.select(*[f"`{name}`" for name in self.columns], WEIGHT)

    def _is_new(self, epoch: int) -> bool:
        """Whether the table has not had an epoch, as after an answer that was lost."""
        assert self.table is not None
        said = self.table.epoch(self._writer)
        return said is None or said < epoch


class LogSink(DeltaSink):
    """A Delta table with what every epoch changed: the columns of a row, `__weight` and `epoch`.

    It begins with the value, as the change of the epoch at which it was added; so the sum of the
    weights up to an epoch is the value at that epoch. Given to `view.add_sink`.

    >>> from ebbflow.connectors import delta
    >>> delta.LogSink("lake/totals_log").name
    'delta lake/totals_log'
    """

    def attach(self, view: Any) -> None:
        """Know the output; it must not have a column that the log has."""
        super().attach(view)
        if EPOCH in self.columns or WEIGHT in self.columns:
            raise CompositionError(
                f"LogSink({self.place!r}): the rows have a field that the log has",
                fields=Text(", ".join(self.columns)),
                created=self.node.place,
                remedy=f"another name than {EPOCH!r} for that field, as in .map",
            )

    def begin(self, epoch: int, value: Any) -> None:
        assert self.table is not None
        self.table.replace(self._at(epoch, value), self._writer, epoch)

    def publish(self, epoch: int, change: Any) -> None:
        assert self.table is not None
        if self._is_new(epoch) and (rows := _some(self._at(epoch, change))) is not None:
            self.table.append(rows, self._writer, epoch)

    def _at(self, epoch: int, change: Any) -> Any:
        found = self._weighted(change)
        if hasattr(found, "withColumn"):
            from pyspark.sql import functions as f

            return found.withColumn(EPOCH, f.lit(epoch).cast("long"))
        import pyarrow as pa

        return found.append_column(EPOCH, pa.array([epoch] * len(found), pa.int64()))


class TableSink(DeltaSink):
    """A Delta table that is equal to an output: every epoch is one MERGE by key.

    `key` is a column, or several, of which no two rows have the same; where the program shows one,
    as with groups, it need not be said. The table is made when it is not there, with the value;
    `overwrite` replaces one that is. Rows without a key cannot be merged: `LogSink` takes them.
    Given to `view.add_sink`.

    >>> from ebbflow.connectors import delta
    >>> delta.TableSink("lake/totals", key="city").name
    'delta lake/totals'
    """

    def __init__(
        self, table: str | os.PathLike[str], key: str | Sequence[str] | None = None, *,
        output: str | None = None, name: str | None = None, overwrite: bool = False,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            table, output=output, name=name, overwrite=overwrite, storage_options=storage_options
        )
        self.key = (key,) if isinstance(key, str) else None if key is None else tuple(key)

    def attach(self, view: Any) -> None:
        """Know the output, and find its key; an error where it has none."""
        super().attach(view)
        otherwise = "LogSink, which takes rows without a key"
        self.by = required_key(f"TableSink({self.place!r})", self.node, self.key, otherwise)
        known = key_columns(self.node)
        self._sure = known is not None and set(known) <= set(self.by)

    def begin(self, epoch: int, value: Any) -> None:
        assert self.table is not None
        rows, _ = self._apart(self._weighted(value))
        self.table.replace(rows, self._writer, epoch)

    def publish(self, epoch: int, change: Any) -> None:
        assert self.table is not None
        if not self._is_new(epoch):
            return
        rows, gone = self._apart(self._weighted(change))
        if (merged := _some(_marked(rows, gone, self.by))) is not None:
            self.table.merge(merged, self.by, self._writer, epoch)

    def _apart(self, change: Any) -> tuple[Any, Any]:
        """The rows to put in, and the rows whose keys are to be taken away; an error where two rows
        have one key."""
        if hasattr(change, "withColumn"):
            from ebbflow.engine.spark.output.targets import upserts

            rows, gone = upserts(change, *self.by)
            if not self._sure:
                self._require_once(change)
            return rows, gone
        weights = change.column(WEIGHT).to_pylist()
        keys = list(zip(*(change.column(name).to_pylist() for name in self.by), strict=True))
        added = Counter[Any]()
        for key, weight in zip(keys, weights, strict=True):
            added[key] += max(weight, 0)
        if twice := [key for key, count in added.items() if count > 1]:
            raise self._twice(dict(zip(self.by, twice[0], strict=True)))
        put = [weight > 0 for weight in weights]
        away = [weight < 0 and not added[key] for key, weight in zip(keys, weights, strict=True)]
        plain = change.drop_columns([WEIGHT])
        return _those(plain, put), _those(plain, away)

    def _require_once(self, change: Any) -> None:
        from pyspark.sql import functions as f

        keys = [f.col(f"`{name}`") for name in self.by]
        many = change.filter(f.col(WEIGHT) > 0).groupBy(*keys).agg(f.sum(WEIGHT).alias(WEIGHT))
        found = many.filter(f.col(WEIGHT) > 1).limit(1).collect()
        if found:
            raise self._twice({name: found[0][name] for name in self.by})

    def _twice(self, key: dict[str, Any]) -> SinkError:
        return SinkError(
            f"the sink {self.name!r}: two rows of the output have one key",
            key=key,
            created=self.node.place,
            remedy="key= columns of which no two rows have the same, or LogSink",
        )


def _those(table: Any, which: list[bool]) -> Any:
    import pyarrow as pa

    return table.filter(pa.array(which, pa.bool_()))


def _marked(rows: Any, gone: Any, key: Sequence[str]) -> Any:
    """What is put in and what is taken away as one table, with a column that says which."""
    if hasattr(rows, "withColumn"):
        from pyspark.sql import functions as f

        put = rows.withColumn(GONE, f.lit(False))
        return put.unionByName(gone.withColumn(GONE, f.lit(True)), allowMissingColumns=True)
    import pyarrow as pa

    def marked(table: Any, mark: bool) -> Any:
        return table.append_column(GONE, pa.array([mark] * len(table), pa.bool_()))

    return pa.concat_tables([marked(rows, False), marked(gone, True)])


def _some(rows: Any) -> Any:
    """Rows, or None where there are none."""
    empty = rows.isEmpty() if hasattr(rows, "isEmpty") else not len(rows)
    return None if empty else rows
