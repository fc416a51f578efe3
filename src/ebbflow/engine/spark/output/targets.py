"""Targets: the changes of a view in folders, and its value as a table, for others to read.

`FolderSink` is a sink that keeps a *change log*: one folder for each epoch, `epoch=7`, in which are
the rows that changed, with their weights in `__weight`. To a reader it is one table with a column
`epoch`. The folder of an epoch is written under another name first, so that it is there as a whole
or not at all. What is there says how far the log is.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ebbflow.engine.runtime.table.arrow import arrow_schema
from ebbflow.engine.runtime.table.column_types import WEIGHT, columns_of
from ebbflow.engine.spark.output.frames import file_uri
from ebbflow.engine.spark.output.sinks import ChangeSink
from ebbflow.errors import CompositionError
from ebbflow.paths import (
    allow_all,
    checked_permissions,
    file_names,
    local_path,
    make_folder,
    make_folders,
)
from ebbflow.state.spine import Folder

if TYPE_CHECKING:
    from ebbflow.engine.spark.output.log import Entry
    from ebbflow.engine.spark.view import SparkView

EPOCH = "epoch"
_FOLDER = re.compile(rf"{EPOCH}=(\d+)")


def places_of(
    path: str | os.PathLike[str], outputs: Iterable[str], apart: bool, what: str, else_: str
) -> dict[str, Path]:
    """Where outputs are written to: the path; where they are to be `apart`, a folder in it each."""
    base = local_path(path, f"{what}: path", else_)
    if not apart:
        return dict.fromkeys(outputs, base)
    names = file_names(outputs, what, f"{what}(path, output=...), with a path for each")
    return {name: base / made for name, made in names.items()}


def target_of(
    view: SparkView,
    path: str | os.PathLike[str],
    outputs: Iterable[str],
    apart: bool,
    permissions: int | None,
) -> ChangeSink:
    """The sink for a path; `apart` says that each output has a folder of its own."""
    names = list(outputs)
    for name in names:
        row_type = view.plan.outputs[name].type
        if EPOCH in [column.lower() for column, _ in columns_of(row_type)]:
            raise CompositionError(
                f"write_changes: rows of output {name!r} have a field {EPOCH!r}, as the log has",
                created=view.plan.outputs[name].place,
                remedy="another name for that field, as in .map; or each_epoch",
            )
    places = places_of(path, names, apart, "write_changes", "each_epoch, to write it by Spark")
    base = local_path(path)
    title = f"changes to {base}" + (f" of {names[0]}" if not apart else "")
    return FolderSink(view, title, places, checked_permissions(permissions))


class FolderSink(ChangeSink):
    """The changes of each epoch in a folder; `places` has one per output."""

    remedy = "another path, with view.write_snapshot beside it; or view.end_sink(name)"

    def __init__(
        self, view: SparkView, name: str, places: dict[str, Path], permissions: int | None
    ) -> None:
        self.view, self.name, self.places = view, name, places
        self.permissions = Folder(view.path).permissions if permissions is None else permissions

    def had(self, known: int | None, first: int, last: int) -> int:
        """What is there counts, whatever is noted."""
        there = [self._there(place) for place in self.places.values()]
        begun = [epoch for epochs in there for epoch in epochs]
        if not begun:
            return first - 1
        return min(max(epochs, default=min(begun) - 1) for epochs in there)

    def _there(self, place: Path) -> list[int]:
        """The epochs that a place has. What an attempt before has left is removed."""
        found = []
        for each in os.listdir(place) if place.is_dir() else ():
            match = _FOLDER.fullmatch(each)
            if match:
                found.append(int(match[1]))
            elif each.startswith(f".{EPOCH}="):
                shutil.rmtree(place / each, ignore_errors=True)
        return found

    def give(self, epoch: int, entry: Entry) -> None:
        for name, place in self.places.items():
            final = place / f"{EPOCH}={epoch}"
            if final.exists():
                continue
            temporary = place / f".{EPOCH}={epoch}.{uuid4().hex}"
            make_folders(place, self.permissions)
            make_folder(temporary)
            try:
                self._write(name, epoch, entry, temporary)
                allow_all(temporary, self.permissions)
                os.rename(temporary, final)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
            _settle(place)

    def _write(self, name: str, epoch: int, entry: Entry, folder: Path) -> None:
        files = entry.get(name, ())
        if files is None:
            frame = self.view._change(name, epoch, entry)
            frame.write.mode("append").parquet(file_uri(folder))
            return
        for number, (file, _) in enumerate(files):
            made = folder / f"part-{number:05d}.parquet"
            shutil.copyfile(self.view._log.folder / file, made)
            _settle(made)
        if not files:
            schema = arrow_schema(self.view.plan.outputs[name].type)
            pq.write_table(schema.empty_table(), folder / "part-00000.parquet")
        _settle(folder)


def _settle(path: Path) -> None:
    """Have what was written on the disk itself."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
