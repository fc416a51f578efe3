"""Copies: a state, or one of its epochs, in another folder; and a state with fewer segments.

A copy is taken without a lock, of a state that somebody may be writing. All files of the epoch are
mapped first, so that they can be read whatever the writer removes. It is written as one file, with
the segments one after the other and the manifest at its end, and gets its name last; so there is a
whole copy or none. With it go the names of batches, and the changes of epochs that are kept. How
far sinks are goes with it when that is asked for: a copy that is to take over needs it, and with
two states that both feed a sink it would have everything twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ebbflow.engine.runtime.reader.logged import CHANGES, DIFFERENCES
from ebbflow.engine.runtime.sinks.sink import note, noted, restarting
from ebbflow.engine.runtime.upkeep.inspect import TRIES
from ebbflow.errors import Damaged, StateError, Text
from ebbflow.state.spine import Files, Ref, Snapshot, Store, live_snapshot
from ebbflow.state.spine.live import newest_name
from ebbflow.state.spine.manifest import TEMPORARY, Manifest, pad


def require_state(files: Files) -> None:
    """Refuse a place where there is no state."""
    if not newest_name(files):
        raise StateError(
            "there is no state here",
            path=Text(files.address),
            remedy="the path given to run(path=...)",
        )


def copy(files: Files, other: Files, epoch: int | None = None, *, sinks: bool = False) -> Manifest:
    """Copy the newest epoch of a state, or one that is retained, to an empty place."""
    require_state(files)
    other.lock()
    try:
        if other.names():
            raise StateError(
                "there is something in the place to copy to",
                path=Text(other.address),
                files=len(other.names()),
                remedy="an empty folder, or one that is not there yet",
            )
        return _copy(files, other, epoch, sinks)
    finally:
        other.unlock()


def _copy(files: Files, other: Files, epoch: int | None, sinks: bool) -> Manifest:
    for tries in range(TRIES):
        had = noted(files) if sinks else {}  # before the epoch: a sink has never had a later one
        again = restarting(files)
        found = live_snapshot(
            files, epoch, wanted=lambda it: {operator for operator, _ in it.names()}
        )
        try:
            kept = _copy_changes(files, other, found)
            break
        except FileNotFoundError as error:  # the writer has gone on
            if tries + 1 == TRIES:
                raise Damaged(
                    f"{error.filename} is missing", remedy="ebbflow state verify"
                ) from None
    notes = {**found.notes, CHANGES: kept} if CHANGES in found.notes else dict(found.notes)
    notes.pop(DIFFERENCES, None)
    made = _write(found, other, notes)
    for name, last in had.items():
        if last <= made.epoch:
            note(other, name, last, restart=name in again)
    other.settle()
    return made


def _copy_changes(files: Files, other: Files, snapshot: Snapshot) -> dict[str, Any]:
    """Copy the files of a Spark view's change log; what it says of epochs that can be read."""
    source, target = files.folder(CHANGES), other.folder(CHANGES)
    entries: Mapping[str, Any] = snapshot.notes.get(CHANGES, {})
    older = snapshot.notes.get(DIFFERENCES, {})
    kept = {
        epoch: entry
        for epoch, entry in entries.items()
        if None not in entry.values() or (int(epoch) == snapshot.epoch and epoch not in older)
    }
    for entry in kept.values():
        for listed in entry.values():
            for file, _ in listed or ():
                copy_file(source, target, file)
    return kept


def copy_file(files: Files, other: Files, name: str) -> None:
    """Have a file in another place too."""
    writer = other.create(name)
    try:
        writer.write(bytes(files.map(name)))
        writer.sync()
    finally:
        writer.close()


def _write(snapshot: Snapshot, other: Files, notes: Mapping[str, Any]) -> Manifest:
    """Write all that an epoch needs as one file."""
    name = Manifest(snapshot.epoch, 0).name
    writer = other.create(name + TEMPORARY)
    try:
        spines = []
        for spine in snapshot.manifest.spines:
            refs: list[Ref] = []
            for ref in spine.segments:
                pad(writer)
                refs.append(replace(ref, file=name, offset=writer.at))
                writer.write(snapshot.content(ref))
            spines.append(replace(spine, segments=tuple(refs)))
        made = Manifest(snapshot.epoch, 0, tuple(spines), notes=notes)
        made.write(writer)
        writer.sync()
    finally:
        writer.close()
    other.publish(name + TEMPORARY, name)
    return made


def compact(files: Files) -> tuple[int, int]:
    """Merge the segments of every part into one; gives how many there were and are. Nobody else may
    have the state open. What retained epochs need stays until they are no longer retained."""
    require_state(files)
    with Store(files, unpickle=False) as store:
        store.keep_epochs = 1 + len(store.manifest.retained)
        before = sum(len(spine.segments) for spine in store.manifest.spines)
        store.open_all()
        store.compact()
        return before, sum(len(spine.segments) for spine in store.manifest.spines)
