"""Targets: the changes of a view in folders, and its value as a table, for others to read.

`Folders` is a sink that keeps a *change log*: one folder for each epoch, `epoch=7`, in which are
the rows that changed, with their weights in `__weight`. To a reader it is one table with a column
`epoch`. The folder of an epoch is written under another name first, so that it is there as a whole
or not at all. What is there says how far the log is.

`Elsewhere` is the same where the path is no folder of this machine: Spark writes the folder of an
epoch, and writes over what an attempt before has left.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit
from uuid import uuid4

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ebbflow.engine.spark.arrow import arrow_schema
from ebbflow.engine.spark.frames import file_uri
from ebbflow.engine.spark.kinds import WEIGHT, columns_of
from ebbflow.engine.spark.sinks import Sink
from ebbflow.errors import CompositionError

if TYPE_CHECKING:
    from ebbflow.engine.spark.log import Entry
    from ebbflow.engine.spark.view import View

EPOCH = "epoch"
_FOLDER = re.compile(rf"{EPOCH}=(\d+)")


def target_of(view: View, path: str, outputs: Iterable[str], apart: bool) -> Sink:
    """The sink for a path; `apart` says that each output has a folder of its own."""
    names = list(outputs)
    for name in names:
        kind = view.plan.outputs[name].type
        if EPOCH in [column.lower() for column, _ in columns_of(kind)]:
            raise CompositionError(
                f"write_changes: rows of output {name!r} have a field {EPOCH!r}, as the log has",
                created=view.plan.outputs[name].place,
                remedy="another name for that field, as in .map; or each_epoch",
            )
    local = local_path(path)
    base = path.rstrip("/") if local is None else str(local)
    places = {name: f"{base}/{quote(name, safe='')}" if apart else base for name in names}
    kind = Elsewhere if local is None else Folders
    return kind(view, f"changes to {base}" + (f" of {names[0]}" if not apart else ""), places)


def local_path(path: str) -> Path | None:
    """A path as one of this machine, or None where it is another URI.

    >>> local_path("file:///data/log"), local_path("s3a://bucket/log")
    (PosixPath('/data/log'), None)
    """
    parts = urlsplit(path)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(path).absolute() if len(parts.scheme) < 2 else None


class Elsewhere(Sink):
    """The changes of each epoch in a folder that Spark writes; `places` has one per output."""

    remedy = "another path, with view.write_snapshot beside it; or view.end_sink(name)"

    def __init__(self, view: View, name: str, places: dict[str, str]) -> None:
        self.view, self.name, self.places = view, name, places

    def had(self, known: int | None, first: int, last: int) -> int:
        return first - 1 if known is None else known

    def give(self, epoch: int, entry: Entry) -> None:
        for name, place in self.places.items():
            frame = self.view._change(name, epoch, entry)
            frame.write.mode("overwrite").parquet(f"{place}/{EPOCH}={epoch}")


class Folders(Elsewhere):
    """The changes of each epoch in a folder of this machine."""

    def had(self, known: int | None, first: int, last: int) -> int:
        """What is there counts, whatever is noted."""
        there = [self._there(place) for place in self.places.values()]
        begun = [epoch for epochs in there for epoch in epochs]
        if not begun:
            return first - 1
        return min(max(epochs, default=min(begun) - 1) for epochs in there)

    def _there(self, place: str) -> list[int]:
        """The epochs that a place has. What an attempt before has left is removed."""
        found = []
        for each in os.listdir(place) if os.path.isdir(place) else ():
            match = _FOLDER.fullmatch(each)
            if match:
                found.append(int(match[1]))
            elif each.startswith(f".{EPOCH}="):
                shutil.rmtree(Path(place, each), ignore_errors=True)
        return found

    def give(self, epoch: int, entry: Entry) -> None:
        for name, place in self.places.items():
            final = Path(place, f"{EPOCH}={epoch}")
            if final.exists():
                continue
            temporary = Path(place, f".{EPOCH}={epoch}.{uuid4().hex}")
            os.makedirs(place, exist_ok=True)
            try:
                self._write(name, epoch, entry, temporary)
                os.rename(temporary, final)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
            _settle(Path(place))

    def _write(self, name: str, epoch: int, entry: Entry, folder: Path) -> None:
        files = entry.get(name, ())
        if files is None:
            self.view._change(name, epoch, entry).write.parquet(file_uri(folder))
            return
        folder.mkdir()
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
