"""Log: what the last epochs changed in the outputs, as files.

Tasks write the changes of outputs to files of their own. Which of them belong to an epoch is noted
with its manifest, so an epoch and its changes become so together:

    {epoch: {output: [[file, rows], ...]}}    or None for an output of which everything is new and
                                              nobody wrote it down: it is its value at that epoch

The epoch that opens a changed program changes an output by the difference between its new rows and
the rows that the old program left. Both epochs are kept, and tasks read
them when a sink is given the change. The manifest notes the epoch before:

    {epoch: {output: epoch before}}           beside None in the log

The last `keep` epochs are kept, those that are not old yet where epochs are kept for a time, and
for as long as somebody still `needs` them, those before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ebbflow.engine.runtime.durable import Disk
from ebbflow.engine.runtime.reader.logged import DIFFERENCES
from ebbflow.engine.runtime.sinks.changed import unknown_differences
from ebbflow.engine.runtime.sinks.sink import needed, warn_of_late
from ebbflow.engine.spark.tasks.epochs import EpochResult
from ebbflow.engine.spark.tasks.task import CHANGES
from ebbflow.state.spine.manifest import torn

_FILE = re.compile(r"(\d+)-[0-9a-f-]+\.(parquet|tmp)")
Entry = Mapping[str, Any]
"""For each output that may have changed the files with their rows, or None, or the epoch that it
differs from."""


class LoggedDisk(Disk):
    """The state of a view on Spark, whose log is a `Log`."""

    def _stage_change_of_program(self, epoch: int, changed: list[str], young: range) -> None:
        if needed(self.done) is None:
            return
        log = dict(self.store.notes.get(CHANGES, {}))
        differences = dict(self.store.notes.get(DIFFERENCES, {}))
        with self.store.at(self.store.epoch) as old:
            unknown = unknown_differences(old, self.program, changed)
            before = old.notes.get("outputs", {}).keys()
        known = [name for name in changed if name not in unknown]
        log[str(epoch)] = dict.fromkeys(known)
        if since := {name: self.store.epoch for name in known if name in before}:
            differences[str(epoch)] = since
        self._note_gap(epoch, unknown)
        self.extra |= {CHANGES: log, DIFFERENCES: differences}
        self.store.keep_also = read_whole(self.extra).union(young)

    def logged(self) -> list[int]:
        return sorted(map(int, self.store.notes.get(CHANGES, {})))


def read_whole(notes: Mapping[str, Any]) -> set[int]:
    """The epochs that must stay readable for the log."""
    log, differences = notes.get(CHANGES, {}), notes.get(DIFFERENCES, {})
    found = {int(each) for each, said in log.items() if None in said.values()}
    return found.union(*(said.values() for each, said in differences.items() if each in log))


class Log:
    """The changes of the last epochs of one state."""

    def __init__(self, disk: Disk, keep: int) -> None:
        self.disk, self.files, self.keep = disk, disk.files.folder(CHANGES), max(1, keep)
        for file in self._files():
            if not _FILE.fullmatch(file):
                raise torn("the log of changes", f"it names {file!r}, which is no file of a log")
        self._swept = False
        if disk.files.exclusive:
            self._remove_strays()

    @property
    def entries(self) -> dict[str, Entry]:
        """What each epoch changed, by its number."""
        return dict(self.disk.store.notes.get(CHANGES, {}))

    @property
    def epochs(self) -> list[int]:
        """The epochs whose changes are there, in order."""
        return sorted(map(int, self.entries))

    def of(self, epoch: int) -> Entry | None:
        """What an epoch changed; None when that is not known any more."""
        entry = self.entries.get(str(epoch))
        differences = self.disk.store.notes.get(DIFFERENCES, {}).get(str(epoch), {})
        return entry if entry is None else {**entry, **differences}

    def commit(self, done: EpochResult, needed: int | None) -> Entry:
        """Make what an epoch did the state, with what it changed. Epochs from `needed` on stay."""
        disk, store = self.disk, self.disk.store
        epoch = store.epoch + 1
        log = self.entries
        entry: dict[str, Any] = {
            name: [list(each) for each in files] for name, files in done.changes.items()
        }
        log[str(epoch)] = entry | dict.fromkeys(done.derived)
        young = disk.ages.young(epoch)
        first = min([epoch + 1 - self.keep, *young[:1], *([] if needed is None else [needed])])
        gone = [each for each in log if int(each) < first]
        kept = {each: log[each] for each in log if int(each) >= first}
        differences = disk.extra.pop(DIFFERENCES, {})
        disk.extra[CHANGES] = kept
        if differences := {each: said for each, said in differences.items() if each in kept}:
            disk.extra[DIFFERENCES] = differences
        store.keep_also = read_whole(disk.extra).union(young)
        if any(entry.values()):
            self.files.settle()  # a manifest only ever names what is safe
        warn_of_late(disk.done, epoch, disk.place)
        store.commit(epoch, disk.notes())
        with suppress(OSError):
            files = [file for each in gone for file in _files_in(log[each])]
            self.files.remove_all(files)
            if not self._swept:
                self._remove_strays()
        return log[str(epoch)]

    def _files(self) -> set[str]:
        """The files of all epochs."""
        return {file for entry in self.entries.values() for file in _files_in(entry)}

    def _remove_strays(self) -> None:
        """Remove what was written for epochs that never came to be. Where others may still write,
        these are the epochs that are over."""
        known, all_of_them = self._files(), self.disk.files.exclusive
        self.files.remove_all(
            name
            for name in self.files.names()
            if name not in known and (match := _FILE.fullmatch(name))
            and (all_of_them or int(match[1]) <= self.disk.store.epoch)
        )  # fmt: skip
        self._swept = True


def _files_in(entry: Entry) -> list[str]:
    return [file for files in entry.values() for file, _ in files or ()]


def rows_in(entry: Entry) -> dict[str, int | None]:
    """How many rows changed in each output; None if nobody counted.

    >>> rows_in({"a": [["x", 2], ["y", 3]], "b": None})
    {'a': 5, 'b': None}
    """
    return {
        name: sum(rows for _, rows in files) if isinstance(files, (list, tuple)) else None
        for name, files in entry.items()
    }


__all__ = ["Entry", "Log", "LoggedDisk", "rows_in"]
