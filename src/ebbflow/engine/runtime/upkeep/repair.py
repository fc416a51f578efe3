"""Repair: make a damaged state one that can be opened, and say exactly what that takes away.

What can be done depends on what is damaged:

    files of no epoch            they are set aside
    an older epoch               it is not retained any more; the newest one is as it was
    what an epoch changed        it is dropped, and sinks that have not had it are told of the gap
    what operators keep          it is dropped, and computed again from the rows of the inputs when
                                 the program is run on it the next time, as after a changed program
    anything else of the newest  only an older epoch can be gone back to, when that is asked for

To go back gives the state of an older epoch a *new* number, after that of the last one there was:
whoever has had epochs that are lost, as a sink has, then finds a gap and not other changes under
numbers that it knows. Batches of the epochs that are lost are unknown, and so can come again.

Every step is the publishing of one manifest, so a repair that is cut short has happened or has not.
What is taken away is moved to a folder beside the files, and nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from ebbflow.engine.runtime.batches import SPINE
from ebbflow.engine.runtime.reader.logged import CHANGES, DIFFERENCES
from ebbflow.engine.runtime.sinks.log import PREFIX
from ebbflow.engine.runtime.sinks.sink import forget_sink, note, noted, require_noted, spans
from ebbflow.engine.runtime.upkeep.copies import copy_file, require_state
from ebbflow.engine.runtime.upkeep.inspect import Inspection, inspect, label_of
from ebbflow.errors import StateError, Text
from ebbflow.state.spine import Files, live_snapshot
from ebbflow.state.spine.manifest import TEMPORARY, WITNESS, Manifest, epochs, own
from ebbflow.state.spine.snapshot import Name

_NOT_DERIVED = "deleted keys of input "
"""How the parts are called that cannot be computed from the rows of inputs, and are none."""


@dataclass(frozen=True)
class Repaired:
    """What a repair did: the epoch the state is at now, the epoch whose rows these are, what was
    done, what is lost, and where what was taken away is."""

    epoch: int
    content: int
    done: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    aside: str = ""


def repair(files: Files, *, back: bool = False) -> Repaired:
    """Repair a state that nobody has open. With `back`, go back to an older epoch where nothing
    else helps."""
    require_state(files)
    files.lock()
    try:
        return _repair(files, inspect(files), back)
    finally:
        files.unlock()


def _repair(files: Files, found: Inspection, back: bool) -> Repaired:
    newest = next((each for each in found.whole if each.epoch == found.epoch), None)
    partly = next((pair for pair in found.broken if pair[0].epoch == found.epoch), None)
    if newest is not None:
        return _tidied(files, found, newest)
    if partly is not None:
        manifest, damaged = partly
        damaged = _together(manifest, damaged)
        if _can_drop(manifest, damaged):
            return _dropped(files, found, manifest, damaged)
    return _gone_back(files, found, back)


def _tidied(files: Files, found: Inspection, newest: Manifest) -> Repaired:
    """The newest epoch is whole: let go of older ones that are not, and of files of no epoch."""
    whole = {each.name for each in found.whole}
    gone = sorted(epochs([name])[0][0] for name in newest.retained if name not in whole)
    done, lost = [], []
    if gone:
        retained = {name: kept for name, kept in newest.retained.items() if name in whole}
        newest = _publish(files, replace(newest, retained=retained))
        done.append(f"epoch {spans(gone)} is not retained any more")
        lost.append(f"the value at epoch {spans(gone)}")
    aside = _set_aside(files, newest)
    done += [f"{len(aside.files)} files of no epoch were set aside"] if aside.files else []
    return Repaired(newest.epoch, newest.epoch, tuple(done), tuple(lost), aside.place)


# ---- what can be computed again ----


def _together(manifest: Manifest, damaged: frozenset[Name]) -> frozenset[Name]:
    """What is damaged, with all that the same operators keep: they are filled as a whole."""
    labels = manifest.notes.get("parts", {})
    names = {labels[operator] for operator, _ in damaged if operator in labels}
    return damaged | {(operator, 0) for operator, label in labels.items() if label in names}


def _can_drop(manifest: Manifest, damaged: Iterable[Name]) -> bool:
    """Whether what is damaged of an epoch is what sinks are given, or can be computed again."""
    notes = manifest.notes
    labels, rows = notes.get("parts", {}), notes.get("rows", {})
    for operator, _ in damaged:
        if operator.startswith(PREFIX):
            continue
        derived = operator in labels and not labels[operator].startswith(_NOT_DERIVED)
        if operator == SPINE or not derived or operator in rows.values():
            return False
        if set(notes.get("inputs", ())) - set(rows):  # the rows of an input are not kept
            return False
    return True


def _dropped(
    files: Files, found: Inspection, manifest: Manifest, damaged: frozenset[Name]
) -> Repaired:
    """Go on without what is damaged."""
    log = {number for operator, number in damaged if operator.startswith(PREFIX)}
    parts = {operator for operator, _ in damaged if not operator.startswith(PREFIX)}
    notes: dict[str, Any] = dict(manifest.notes)
    labels = dict(notes.get("parts", {}))
    names = [label_of(s, labels) for s in manifest.spines if s.operator in parts]
    if parts:
        notes["parts"] = {name: label for name, label in labels.items() if name not in parts}
    if CHANGES in notes:
        notes[CHANGES] = {e: said for e, said in notes[CHANGES].items() if int(e) not in log}
    spines = tuple(
        each
        for each in manifest.spines
        if each.operator not in parts
        and not (each.operator.startswith(PREFIX) and each.bucket in log)
    )
    whole = {each.name for each in found.whole}
    retained = {name: kept for name, kept in manifest.retained.items() if name in whole}
    made = _publish(files, replace(manifest, spines=spines, notes=notes, retained=retained))
    done = [f"to be computed again when the program runs: {', '.join(dict.fromkeys(names))}"]
    lost = [f"what epoch {spans(sorted(log))} changed, for sinks that have not had it"]
    aside = _set_aside(files, made)
    return Repaired(
        made.epoch,
        made.epoch,
        tuple(done if parts else ()),
        tuple(lost if log else ()),
        aside.place,
    )


# ---- an older epoch ----


def _gone_back(files: Files, found: Inspection, back: bool) -> Repaired:
    if not found.whole:
        raise StateError(
            "no epoch of this state is whole, so it cannot be repaired",
            problems=Text("; ".join(map(str, found.problems))),
            remedy="the files from a copy, or another path and loading the rows again",
        )
    old = found.whole[-1]
    gone = spans(list(range(old.epoch + 1, found.epoch + 1)))
    if not back:
        raise StateError(
            f"epoch {found.epoch} is damaged, and what is damaged of it cannot be computed again",
            problems=Text("; ".join(map(str, found.problems))),
            whole=found.epochs,
            remedy="the files from a copy; or `ebbflow state repair DIR --back`, which goes back "
            f"to epoch {old.epoch} and loses what epoch {gone} did",
        )
    whole = {each.name for each in found.whole}
    kept = {name: said for name, said in old.retained.items() if name in whole}
    kept[old.name] = sorted(old.files())
    notes = dict(old.notes)
    if CHANGES in notes:
        retained = {epochs([name])[0][0] for name in kept}
        notes[CHANGES] = _there(files, notes, retained)
    made = _publish(files, replace(old, epoch=found.epoch, notes=notes, retained=kept), later=True)
    lost = [f"what epoch {gone} did, and the batches of it: they can come again"]
    lost += [
        f"the sink {name!r} has had epoch {had}: `ebbflow state restart-sink` begins it again"
        for name, had in noted(files).items()
    ]
    aside = _set_aside(files, made)
    done = (f"the state of epoch {old.epoch} is epoch {made.epoch} now",)
    return Repaired(made.epoch, old.epoch, done, tuple(lost), aside.place)


def _there(files: Files, notes: Mapping[str, Any], retained: set[int]) -> dict[str, Any]:
    """What a change log says of epochs that can be read."""
    there = set(files.folder(CHANGES).names())
    bases = notes.get(DIFFERENCES, {})
    return {
        epoch: entry
        for epoch, entry in notes[CHANGES].items()
        if retained.issuperset(bases.get(epoch, {}).values())
        and all(
            int(epoch) in retained if listed is None else all(file in there for file, _ in listed)
            for listed in entry.values()
        )
    }


# ---- files ----


def _publish(files: Files, manifest: Manifest, *, later: bool = False) -> Manifest:
    """Have this manifest be the state, under the next name there is: a revision of its epoch, or
    an epoch that is `later`."""
    last = max((each for each in epochs(files.names())), default=(-1, 0))
    epoch, revision = (max(manifest.epoch, last[0]) + 1, 0) if later else (last[0], last[1] + 1)
    used = {ref.file for spine in manifest.spines for ref in spine.segments}
    sizes = {file: files.size(file) or 0 for file in sorted(used)}
    made = replace(manifest, epoch=epoch, revision=revision, sizes=sizes)
    temporary = f"{made.name}-{uuid4().int % 10**12}{TEMPORARY}"
    writer = files.create(temporary)
    try:
        made.write(writer)
        writer.sync()
    finally:
        writer.close()
    files.publish(temporary, made.name)
    files.jot(WITNESS, made.name)
    return made


@dataclass(frozen=True)
class Aside:
    """Where files were moved to, and which."""

    place: str
    files: tuple[str, ...]


def _set_aside(files: Files, manifest: Manifest) -> Aside:
    """Move what no epoch needs to a folder beside it."""
    needed = manifest.files().union(manifest.retained, *manifest.retained.values())
    others = sorted(own(files.names()) - needed)
    if not others:
        return Aside("", ())
    other = files.folder(f"aside-{manifest.epoch}-{manifest.revision}")
    for name in others:
        copy_file(files, other, name)
    other.settle()
    files.remove_all(others)
    return Aside(other.address, tuple(others))


def end_sink(files: Files, name: str) -> None:
    """Keep nothing for a sink any more; nobody may have the state open."""
    require_state(files)
    files.lock()
    try:
        forget_sink(files, noted(files), name)
    finally:
        files.unlock()


def restart_sink(files: Files, name: str) -> int:
    """Note that a sink rewrites its target when it is added the next time, and return the epoch of
    the state. No view may have the state open."""
    require_state(files)
    files.lock()
    try:
        require_noted(noted(files), name)
        epoch = live_snapshot(files).epoch
        note(files, name, epoch, restart=True)
        return epoch
    finally:
        files.unlock()
