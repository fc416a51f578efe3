"""Targets: what an epoch changed on Spark as files for others, and as what a `MERGE` takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ebbflow.engine.runtime.reader.logged import parquet_file
from ebbflow.engine.runtime.sinks.formats import write_part
from ebbflow.engine.runtime.table.arrow import arrow_schema
from ebbflow.engine.runtime.table.column_types import WEIGHT
from ebbflow.engine.spark.output.frames import file_uri
from ebbflow.errors import CompositionError

if TYPE_CHECKING:
    from ebbflow.engine.spark.output.log import Entry
    from ebbflow.engine.spark.view import SparkView


def write_change(
    view: SparkView, name: str, epoch: int, entry: Entry, folder: Path, format: str
) -> None:
    """Write what an epoch changed in an output into a folder: the files that tasks have written."""
    files = entry.get(name, ())
    if not isinstance(files, (list, tuple)):
        frame = view._change(name, epoch, entry)
        if format == "parquet":
            frame.write.mode("append").parquet(file_uri(folder))
        else:
            write_part(frame.toArrow(), folder, 0, format)
        return
    for number, (file, _) in enumerate(files):
        if format == "parquet":
            written = view._log.files.map(file)
            (folder / f"part-{number:05d}.parquet").write_bytes(written)
        else:
            write_part(parquet_file(view._log.files, file).read(), folder, number, format)
    if not files:
        schema = arrow_schema(view.plan.outputs[name].type)
        write_part(schema.empty_table(), folder, 0, format)


# ---- by key ----


def upserts(change: DataFrame, *key: str) -> tuple[DataFrame, DataFrame]:
    """A change of a table with a key: the rows to put in by key, and the keys to delete.

    For `each_epoch`, to keep a table elsewhere up to date by its `MERGE`. The key must be one: with
    at most one row of each at any time. ::

        def merge(change, epoch):
            rows, gone = upserts(change, "city")
            ...

        view.each_epoch(merge, name="cities")
    """
    columns = [name for name in change.columns if name != WEIGHT]
    wrong = [name for name in key if name not in columns]
    if wrong or not key:
        raise CompositionError(
            f"upserts: the change has no column {wrong[0]!r}"
            if wrong
            else "upserts: without a key",
            columns=columns,
            remedy="upserts(change, 'id'), with one or more columns of the rows",
        )
    quoted = [f.col(f"`{name}`") for name in columns]
    keys = [f.col(f"`{name}`") for name in key]
    rows = change.filter(f.col(WEIGHT) > 0).select(*quoted)
    taken = change.filter(f.col(WEIGHT) < 0).select(*keys).distinct()
    put = rows.select(*[each.alias(f"__{i}") for i, each in enumerate(keys)])
    same = [each.eqNullSafe(f.col(f"__{i}")) for i, each in enumerate(keys)]
    gone: Any = taken.join(put, same, "left_anti")
    return rows, gone
