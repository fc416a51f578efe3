"""Folders: the changes of a view, and its value, in files for others to read.

`FolderSink` is a sink that keeps a *change log*: one folder for each epoch, `epoch=7`, in which are
the rows that changed, with their weights in `__weight`. To a reader it is one table with a column
`epoch`. The folder of an epoch is written under another name first, so that it is there as a whole
or not at all. What is there says how far the log is.

A log that begins again starts with all rows, in a folder `epoch=9` that also holds an empty file
`_snapshot`. The earlier epochs move out of the table, to `_before_epoch_9`. So the weights in the
table still add up to the output.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from ebbflow.engine.runtime.sinks.formats import FORMATS
from ebbflow.engine.runtime.sinks.sink import Entry, Sink
from ebbflow.engine.runtime.table.column_types import columns_of
from ebbflow.errors import CompositionError, SinkError, Text
from ebbflow.flow.plan import Plan
from ebbflow.paths import (
    PRIVATE,
    allow_all,
    checked_permissions,
    file_names,
    local_path,
    make_folder,
    make_folders,
    settle,
)
from ebbflow.zset import ZSet

EPOCH = "epoch"
SNAPSHOT = "_snapshot"
"""The name of an empty file in the folder that begins a log with all rows."""
_FOLDER = re.compile(rf"{EPOCH}=(\d+)")
PathLike = str | os.PathLike[str]


def places_of(
    path: PathLike, outputs: Iterable[str], apart: bool, what: str, else_: str
) -> dict[str, Path]:
    """Where outputs are written to: the path; where they are to be `apart`, a folder in it each."""
    base = local_path(path, f"{what}: path", else_)
    if not apart:
        return dict.fromkeys(outputs, base)
    names = file_names(outputs, what, f"{what}(path, output=...), with a path for each")
    return {name: base / made for name, made in names.items()}


def require_format(what: str, format: str) -> None:
    """Refuse a format that nobody writes."""
    if not isinstance(format, str) or format not in FORMATS:
        raise CompositionError(
            f"{what}(format={format!r}): there is no such format",
            remedy="one of " + ", ".join(map(repr, FORMATS)),
        )


def folder_sink(
    plan: Plan, path: PathLike, outputs: Iterable[str], apart: bool, format: str, permissions: int
) -> FolderSink:
    """The sink for a path; `apart` says that each output has a folder of its own."""
    names = list(outputs)
    require_format("write_changes", format)
    for name in names:
        row_type = plan.outputs[name].type
        if EPOCH in [column.lower() for column, _ in columns_of(row_type)]:
            raise CompositionError(
                f"write_changes: rows of output {name!r} have a field {EPOCH!r}, as the log has",
                created=plan.outputs[name].place,
                remedy="another name for that field, as in .map; or each_epoch",
            )
    places = places_of(path, names, apart, "write_changes", "each_epoch, to write it elsewhere")
    title = f"changes to {local_path(path)}" + (f" of {names[0]}" if not apart else "")
    return FolderSink(title, places, format, permissions)


class FolderSink(Sink):
    """The changes of each epoch in a folder; `places` has one per output."""

    def __init__(
        self, name: str, places: dict[str, Path], format: str, permissions: int = PRIVATE
    ) -> None:
        self.name, self.places, self.format, self.permissions = name, places, format, permissions
        self.outputs = list(places)

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

    def give(self, view: Any, epoch: int, entry: Entry) -> None:
        for name, place in self.places.items():
            final = place / f"{EPOCH}={epoch}"
            if final.exists():
                continue
            with (
                writing(f"write_changes: epoch {epoch}", final, "the next step writes it too"),
                self._written(view, name, epoch, entry) as folder,
            ):
                os.rename(folder, final)
                settle(place)

    def give_all(self, view: Any, epoch: int) -> None:
        """Begin the log again; what an attempt before has moved out of it stays there."""
        entry = view._whole_entry()
        for name, place in self.places.items():
            there, before = self._there(place), place / f"_before_epoch_{epoch}"
            with (
                writing("write_changes: a restart", place, "restart the sink again"),
                self._written(view, name, epoch, entry, SNAPSHOT) as folder,
            ):
                for old in there:
                    make_folders(before, self.permissions)
                    os.rename(place / f"{EPOCH}={old}", _free(before / f"{EPOCH}={old}"))
                if there:
                    settle(before)
                os.rename(folder, place / f"{EPOCH}={epoch}")
                settle(place)

    @contextmanager
    def _written(
        self, view: Any, name: str, epoch: int, entry: Entry, *marks: str
    ) -> Iterator[Path]:
        """A folder with what an entry has of an output, and with empty files as marks; it is to be
        given the name of its epoch."""
        place = self.places[name]
        temporary = place / f".{EPOCH}={epoch}.{uuid4().hex}"
        make_folders(place, self.permissions)
        make_folder(temporary)
        try:
            view._write_change(name, epoch, entry, temporary, self.format)
            for mark in marks:
                (temporary / mark).touch()
            allow_all(temporary, self.permissions)
            for each in temporary.iterdir():
                settle(each)
            settle(temporary)
            yield temporary
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


@contextmanager
def writing(what: str, place: Path, then: str) -> Iterator[None]:
    """Raise a `SinkError` that names the place where the system refuses to write."""
    try:
        yield
    except OSError as error:
        raise SinkError(
            f"{what} could not be written: {error.strerror or error}",
            path=Text(str(place)),
            remedy=f"free space there, or make it writable; {then}",
        ) from error


def _free(path: Path) -> Path:
    """The path, or one like it where there is something: after a restart of the same epoch."""
    return path if not path.exists() else path.with_name(f"{path.name}.{uuid4().hex}")


def write_values(
    values: dict[str, ZSet[Any]],
    path: PathLike,
    format: str,
    mode: str,
    permissions: int | None,
    otherwise: int,
) -> None:
    """Write the values of some outputs, each into a folder; see `View.write_snapshot`."""
    require_format("write_snapshot", format)
    if mode not in ("overwrite", "error"):
        raise CompositionError(
            f"write_snapshot(mode={mode!r}): there is no such mode", remedy='"overwrite" or "error"'
        )
    mine = allowed(permissions, otherwise)
    places = places_of(path, values, len(values) > 1, "write_snapshot", "view.value.to_arrow()")
    taken = []
    for place in places.values():
        with writing("write_snapshot: the table", place, "or give the path of a folder"):
            taken += [place] if place.exists() and any(place.iterdir()) else []
    if mode == "error" and taken:
        raise CompositionError(
            f"write_snapshot: there is something in {str(taken[0])!r} already",
            remedy='another path, or mode="overwrite"',
        )
    for name, place in places.items():
        with writing("write_snapshot: the table", place, "the old table stays until then"):
            _replace_table(place, values[name].to_arrow(), format, mine)


def _replace_table(folder: Path, table: Any, format: str, permissions: int) -> None:
    """Have one file with a table in a folder, in place of what was written there before."""
    make_folders(folder, permissions)
    file = folder / f"part-00000.{format}"
    temporary = folder / f".{file.name}.{uuid4().hex}"
    try:
        FORMATS[format](table, temporary)
        os.chmod(temporary, permissions & 0o666)
        settle(temporary)
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
    for other in folder.iterdir():
        if other != file and (other.name.startswith("part-") or other.name == "_SUCCESS"):
            other.unlink()
    settle(folder)


def allowed(permissions: int | None, otherwise: int) -> int:
    """The permissions that were given, if they can be used, or those that the state has."""
    checked = checked_permissions(permissions)
    return otherwise if checked is None else checked
