"""Inspect: read all of a state, and say what is not as it was written.

Every retained epoch is a *manifest*, which names segments in files. All of them are read: the
checksums of manifests, directories and chunks are compared, the order of entries is looked at, and
the files of a Spark view's change log are read to the end. Nothing is changed and no lock is taken,
so a view may be writing meanwhile; where it has gone on and taken files away, it is begun again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ebbflow.engine.runtime.batches import SPINE
from ebbflow.engine.runtime.reader.logged import CHANGES, parquet_file
from ebbflow.engine.runtime.sinks.log import PREFIX
from ebbflow.engine.runtime.sinks.sink import noted
from ebbflow.errors import EbbflowError, StateError
from ebbflow.state.spine import Files, Ref
from ebbflow.state.spine.live import newest_name
from ebbflow.state.spine.manifest import Listed, Manifest, epochs, newest, own, read
from ebbflow.state.spine.segment import Segment
from ebbflow.state.spine.snapshot import Name

TRIES = 20
Unreadable = (StateError, OSError, pa.ArrowException, ValueError, KeyError, IndexError)


@dataclass(frozen=True)
class Problem:
    """Something that is not as it was written: in which file, what it is, what of the state that
    concerns, and which epochs need it."""

    file: str
    what: str
    part: str = ""
    epochs: tuple[int, ...] = ()

    def __str__(self) -> str:
        concerns = f" ({self.part})" if self.part else ""
        needed = f"; of epoch {', '.join(map(str, self.epochs))}" if self.epochs else ""
        return f"{self.what}{concerns}{needed}"


@dataclass(frozen=True)
class Inspection:
    """What is there: the epoch that the newest manifest is of, -1 where there is no state; the
    manifests of all epochs that are whole; those that are not, each with the parts of it, by name,
    that are damaged; what is wrong; files that belong to no epoch; and how much was read."""

    epoch: int
    whole: tuple[Manifest, ...] = ()
    broken: tuple[tuple[Manifest, frozenset[Name]], ...] = ()
    problems: tuple[Problem, ...] = ()
    leftovers: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0

    @property
    def epochs(self) -> list[int]:
        """The epochs that can be read."""
        return sorted({each.epoch for each in self.whole})


def inspect(files: Files) -> Inspection:
    """Read everything that the retained epochs of a state need."""
    for _ in range(TRIES):
        before = newest_name(files)
        found = _inspect(files)
        if not found.problems or newest_name(files) == before:
            break
    return found


def _inspect(files: Files) -> Inspection:
    look = _Look(files)
    names = files.names()
    known = [Manifest(*each).name for each in epochs(names)]
    try:
        last = newest(files)
        wanted = [] if last is None else sorted({last.name, *last.retained})
    except Unreadable as error:  # an older epoch may be whole, though nobody says so
        look.problem(known[-1] if known else "newest", error)
        last, wanted = None, known[:-1] if known else []
    for name in wanted:
        look.at(name, tolerant=last is None)
    needed = {*wanted, *known} if last is None else last.files().union(*last.retained.values())
    look.sinks(epochs([known[-1]])[0][0] if known else -1)
    leftovers = sorted(own(names) - needed) if last is not None else []
    return Inspection(
        epochs([known[-1]])[0][0] if known else -1,
        tuple(look.whole), tuple(look.broken), tuple(look.problems), tuple(leftovers),
        len(look.read), look.bytes,
    )  # fmt: skip


class _Look:
    """What one look at a state has found."""

    def __init__(self, files: Files) -> None:
        self.files, self.changes = files, files.folder(CHANGES)
        self.whole: list[Manifest] = []
        self.broken: list[tuple[Manifest, frozenset[Name]]] = []
        self.problems: list[Problem] = []
        self.read: set[str] = set()
        self.bytes = 0
        self._known: dict[Any, str] = {}

    def problem(self, file: str, error: Exception, part: str = "", *needed: int) -> None:
        """Note what is wrong, once, and every epoch that needs it."""
        what = error.what if isinstance(error, EbbflowError) else f"{file} cannot be read: {error}"
        for i, each in enumerate(self.problems):
            if (each.file, each.what, each.part) == (file, what, part):
                self.problems[i] = Problem(file, what, part, (*each.epochs, *needed))
                return
        self.problems.append(Problem(file, what, part, needed))

    def at(self, name: str, *, tolerant: bool) -> None:
        """Look at one epoch. A manifest of which files are gone may be one that is not retained any
        more; where nobody can say which ones are, that is no problem."""
        epoch = epochs([name])[0][0]
        try:
            manifest = read(self.files, name)
        except Unreadable as error:
            if not (tolerant and isinstance(error, StateError)):
                self.problem(name, error, "", epoch)
            return
        self.read.add(name)
        labels = manifest.notes.get("parts", {})
        damaged = set()
        for spine in manifest.spines:
            for ref in spine.segments:
                error_text = self._check(ref)
                if error_text:
                    damaged.add((spine.operator, spine.bucket))
                    label = label_of(spine, labels)
                    self.problem(ref.file, StateError(error_text), label, epoch)
        for number, file, rows in _logged(manifest):
            error_text = self._check_change(file, rows)
            if error_text:
                label = f"what epoch {number} changed"
                damaged.add((PREFIX, number))
                self.problem(f"{CHANGES}/{file}", StateError(error_text), label, epoch)
        if damaged:
            self.broken.append((manifest, frozenset(damaged)))
        else:
            self.whole.append(manifest)

    def _check(self, ref: Ref) -> str:
        """What is wrong with a segment; empty when nothing is."""
        if ref not in self._known:
            try:
                self._known[ref] = _out_of_order(Segment.opened(ref, self.files.map(ref.file)), ref)
                self.bytes += ref.length
                self.read.add(ref.file)
            except Unreadable as error:
                self._known[ref] = (
                    error.what if isinstance(error, StateError) else f"{ref.file}: {error}"
                )
        return self._known[ref]

    def _check_change(self, file: str, rows: int) -> str:
        if file not in self._known:
            self._known[file] = ""
            try:
                found = parquet_file(self.changes, file).read()
                self.bytes += self.changes.size(file) or 0
                self.read.add(f"{CHANGES}/{file}")
                if len(found) != rows:
                    self._known[file] = f"{file} has {len(found)} rows and should have {rows}"
            except Unreadable as error:
                self._known[file] = f"{file} is damaged: {error}"
        return self._known[file]

    def sinks(self, epoch: int) -> None:
        """Look at what is noted of sinks."""
        readable = noted(self.files)
        for name, had in readable.items():
            if had > epoch:
                what = f"the sink {name!r} has had epoch {had}, which is not there"
                self.problem("sinks", StateError(what))
        count = sum(_is_note(name) for name in self.files.names())
        if count > len(readable):
            what = f"{count - len(readable)} of the notes of sinks cannot be read"
            self.problem("sinks", StateError(what))


def _is_note(name: str) -> bool:
    return name.startswith("sink-") and name.endswith(".json")


def _out_of_order(segment: Segment, ref: Ref) -> str:
    """Read a segment to its end; what is wrong with its order, if something is."""
    last = np.uint64(0)
    for part in segment.parts():
        if len(part) and (part.hash[0] < last or (part.hash[1:] < part.hash[:-1]).any()):
            return f"{ref.file} is not in order"
        last = part.hash[-1] if len(part) else last
    return ""


def _logged(manifest: Manifest) -> Iterator[tuple[int, str, int]]:
    """The files of a change log that a manifest names: epoch, file, rows."""
    for epoch, entry in manifest.notes.get(CHANGES, {}).items():
        for listed in entry.values():
            for file, rows in listed or ():
                yield int(epoch), file, rows


def label_of(spine: Listed, labels: Mapping[str, str]) -> str:
    """What a spine is called."""
    if spine.operator.startswith(PREFIX):
        return f"{spine.operator}, epoch {spine.bucket}"
    if spine.operator == SPINE:
        return "the names of batches"
    return labels.get(spine.operator, spine.operator)
