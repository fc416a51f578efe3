"""Publisher: how an epoch of a store is written, and which files there are.

Writing an epoch merges what is small, writes one file with the new segments and the manifest,
flushes it, and gives it its name. What the store is then is worked out before, as a *turn*, so that
nothing is left that could fail; the turn is there until it is done, and whoever finds one asks the
disk whether the file has its name. After an epoch the files that no retained epoch needs are
removed, and large merges go on for as many entries as the epoch has paid for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ebbflow.errors import Damaged, StateError, Text
from ebbflow.state.spine.files import Files, FileWriter, taken
from ebbflow.state.spine.jobs import MergeJobs
from ebbflow.state.spine.manifest import (
    TEMPORARY,
    WITNESS,
    Listed,
    Manifest,
    epoch_of,
    epochs,
    own,
    piece_epoch,
)
from ebbflow.state.spine.plan import SpinePlan, planned, relocated
from ebbflow.state.spine.segment import Ref, Segment
from ebbflow.state.spine.snapshot import Name, Snapshot
from ebbflow.state.spine.spine import Spine

SWEEP = 16
"""How many epochs there are between two looks for files of no use, where a look is a request."""


@dataclass(frozen=True)
class Turn:
    """What a store is about to become: the segments of its spines at the end of an epoch. Without
    a manifest it is kept in memory, with `waiting` others, until it is written."""

    epoch: int
    segments: Mapping[Name, list[Segment]]
    staged: bool
    """Whether what is staged is in it."""
    waiting: int = 0
    manifest: Manifest | None = None
    temporary: str = ""
    content: memoryview | None = None
    """The file of the manifest."""


class Publisher(Snapshot):
    """The state of a folder, and how it becomes that of the next epoch."""

    def __init__(
        self, files: Files, *, unpickle: bool, chunk: int, keep_epochs: int, memory: int | None
    ) -> None:
        super().__init__(files, unpickle=unpickle, chunk=chunk)
        self.keep_epochs = max(1, keep_epochs)
        self.keep_also: Set[int] = frozenset()
        """Epochs that are retained for longer, as what they changed is their value."""
        self.memory = memory
        self._epoch = self.manifest.epoch
        self._waiting = 0
        self._dropped: dict[Name, tuple[Listed, Spine | None]] = {}
        self._pins: list[set[str]] = []
        self._turn: Turn | None = None
        self._leftover = ""
        """A temporary file of an epoch that failed."""
        self._unsettled = False
        """Whether nobody knows which names a crash would leave."""
        self._token = int.from_bytes(os.urandom(5))
        self._written = 0
        self.trouble: Exception | None = None
        """Why what comes after an epoch was left to a later one, the last time."""
        self._sizes: dict[str, int] = {}
        self._on_disk = own(files.names()) if files.exclusive else self.manifest.files()
        self._sweeps = 0
        """How often it was looked for files that are of no use."""
        self._adopted: set[str] = set()
        self._jobs = MergeJobs(
            files,
            f"{self._epoch + 1:012d}-{self.manifest.revision:04d}-{self._token}",
            self._open,
        )

    @property
    def epoch(self) -> int:
        """The last epoch that was committed; -1 before the first one. Any thread may ask."""
        turn = self._turn
        return turn.epoch if turn is not None and self._has_come(turn) else self._epoch

    @property
    def safe(self) -> int:
        """The last epoch that is on disk."""
        return self.manifest.epoch

    @property
    def written(self) -> int:
        """How many bytes were written since it was opened, by epochs and by merges."""
        return self._written + self._jobs.written

    # ---- writing an epoch ----

    def _publish(self, epoch: int, notes: Mapping[str, Any], *, staged: bool) -> None:
        """Write the file of an epoch and make it the state."""
        revision = self.manifest.revision + 1 if epoch == self.manifest.epoch else 0
        name = Manifest(epoch, revision).name
        writer: FileWriter | None = None
        try:
            self.files.require()
            self._clean()
            self._leftover = f"{name}-{self._token}{TEMPORARY}"
            writer = self.files.create(self._leftover)
            plans = {
                known: planned(
                    writer,
                    name,
                    spine,
                    segments=[*spine.segments, *(spine.staged if staged else ())],
                    free=self._jobs.free(spine),
                    adopted=self._adopted,
                )
                for known, spine in self._spines.items()
            }
            manifest = self._manifest(epoch, revision, notes, plans, writer)
            manifest.write(writer)
            writer.sync()
            writer.close()
            turn = self._turn_to(manifest, plans, staged)
            if self._adopted & manifest.files():
                self.files.settle()  # a manifest only ever names what is safe
            self.files.require()
            self._turn, self._unsettled = turn, True
            self.files.publish(turn.temporary, name)
            self._unsettled = False
        except BaseException as error:
            if writer is not None:
                writer.close()
            refusal = self._cut_short(f"epoch {epoch}", error)
            if refusal is None:
                raise
            raise refusal from error
        self._become(turn)
        self._written += writer.at
        self._tidy(sum(plan.entries for plan in plans.values()))

    def _turn_to(self, manifest: Manifest, plans: Mapping[Name, SpinePlan], staged: bool) -> Turn:
        """What the store becomes with a manifest, which has a temporary name yet."""
        content = self.files.map(self._leftover)

        def opened(ref: Ref) -> Segment:
            return self._opened(ref, content) if ref.file == manifest.name else self._open(ref)

        refs = {(each.operator, each.bucket): each.segments for each in manifest.spines}
        segments = {
            name: [plan.kept.get(ref) or opened(ref) for ref in refs[name]]
            for name, plan in plans.items()
        }
        return Turn(manifest.epoch, segments, staged, 0, manifest, self._leftover, content)

    def _cut_short(self, what: str, error: BaseException) -> StateError | None:
        """Find out whether an epoch has happened whose writing was cut short, and what to say when
        that was for want of room or the like. One that could not be made safe is taken back, where
        that is possible."""
        turn = self._turn
        if turn is not None and isinstance(error, OSError):
            with suppress(OSError):
                assert turn.manifest is not None
                if self.files.published(turn.temporary, turn.manifest.name):
                    self.files.remove(turn.manifest.name)
        self.catch_up()
        happened = turn is not None and turn.manifest is self.manifest
        with suppress(OSError):
            self._clean()
        if not isinstance(error, OSError):
            return None
        if not happened:
            return not_written(what, error, self.files.address)
        return StateError(
            f"{what} is written, and a crash of the machine may still take it back",
            cause=error,
            remedy="do not repeat it; the next epoch that is written makes it safe",
        )

    def catch_up(self) -> int:
        """Be what is on disk, where an interrupt has cut short becoming it; gives the epoch. As all
        that changes something, for one thread at a time."""
        turn = self._turn
        if turn is not None and self._has_come(turn):
            self._become(turn)
        self._turn = None
        return self._epoch

    def _has_come(self, turn: Turn) -> bool:
        """Whether a turn is the state, also where that is not written down here yet."""
        manifest = turn.manifest
        return manifest is None or self.files.published(turn.temporary, manifest.name)

    def _become(self, turn: Turn) -> None:
        """Make a turn the state. Doing it twice is doing it once."""
        if turn.manifest is not None:
            assert turn.content is not None
            self.manifest = turn.manifest
            self._listed = {(s.operator, s.bucket): s for s in turn.manifest.spines}
            self._maps[turn.manifest.name] = turn.content
            self._dropped = {}
            self._on_disk |= turn.manifest.files()
            self._leftover = ""
        for name, segments in turn.segments.items():
            spine = self._spines[name]
            spine.segments = segments
            if turn.staged:
                spine.staged = []
        self._waiting = turn.waiting
        self._epoch = turn.epoch
        self._turn = None

    def _tidy(self, entries: int) -> None:
        """What an epoch of so many entries leaves to be done. A later one does what fails here."""
        try:
            self._jobs.only(self._spines.values())
            self._on_disk |= self._jobs.made
            self._jobs.made = set()
            with suppress(OSError):
                self.files.jot(WITNESS, self.manifest.name)
                self._remove_others()
            self._jobs.pay(entries, self._spines.values())
            if self.memory is not None and self.files.resident() > self.memory:
                self.let_go()
        except Exception as error:
            self.trouble = error

    def let_go(self) -> None:
        """Give back the memory that mapped files take; it comes back as they are read."""
        for view in self._maps.values():
            self.files.forget(view)

    def _manifest(
        self,
        epoch: int,
        revision: int,
        notes: Mapping[str, Any],
        plans: Mapping[Name, SpinePlan],
        writer: FileWriter,
    ) -> Manifest:
        refs = {
            name: plans[name].refs if name in plans else list(listed.segments)
            for name, listed in self._listed.items()
        }
        found = Manifest(epoch, revision, notes=notes)
        there = relocated(
            writer,
            found.name,
            [ref for known in refs.values() for ref in known],
            busy=self._jobs.files(),
            size=self._size,
            content=self._map,
        )
        spines = tuple(
            replace(listed, segments=tuple(there.get(ref, ref) for ref in refs[name]))
            for name, listed in self._listed.items()
        )
        others = {ref.file for spine in spines for ref in spine.segments} - {found.name}
        return replace(
            found,
            spines=spines,
            sizes={file: self._size(file) for file in sorted(others)},
            retained=self.manifest.kept(epoch, self.keep_epochs - 1, self.keep_also),
        )

    # ---- the files ----

    def _map(self, file: str) -> memoryview:
        try:
            return super()._map(file)
        except Damaged:
            known = [] if self.files.exclusive else epochs(self.files.names())
            if known and known[-1] > (self.manifest.epoch, self.manifest.revision):
                raise taken(self.files.address, Manifest(*known[-1]).name) from None
            raise

    def _clean(self) -> None:
        """Remove what a failed epoch has left, and have the names safe. Until that is done nobody
        knows what a crash would leave, so nothing else is written before.
        """
        if self._leftover:
            self.files.remove(self._leftover)
            self._leftover = ""
        if self._unsettled:
            self.files.settle()
            self._unsettled = False

    def _remove_others(self) -> None:
        """Remove the files that nothing needs. Those of others who write, or of tasks that failed,
        are looked for when tasks have written, and where the lock is not one at first."""
        exclusive = self.files.exclusive
        if self._adopted if exclusive else self._sweeps % SWEEP == 0:
            self._on_disk |= {name for name in own(self.files.names()) if self._is_over(name)}
        self._sweeps += 1
        self._adopted -= self.manifest.files()
        gone = self._on_disk - self._needed()
        self.files.remove_all(sorted(gone))
        for name in gone:
            self._forget(name)

    def _needed(self) -> set[str]:
        """The files of the state and of what is staged."""
        spines = self._spines.values()
        refs = [s.ref for spine in spines for s in (*spine.segments, *spine.staged)]
        here = {ref.file for ref in refs if ref is not None}
        return here.union(self.manifest.files(), *self.manifest.retained.values(), *self._pins)

    def _remove(self, name: str) -> None:
        self.files.remove(name)
        self._forget(name)

    def _forget(self, name: str) -> None:
        self._maps.pop(name, None)
        self._sizes.pop(name, None)
        self._on_disk.discard(name)
        self._adopted.discard(name)

    def _is_over(self, name: str) -> bool:
        """Whether it was written for an epoch that is over, so that nobody can still need it: a
        piece, or whatever another process has left. In a folder, merges under way are files."""
        epoch = piece_epoch(name) if self.files.exclusive else epoch_of(name)
        return epoch is not None and epoch <= self.manifest.epoch

    def _size(self, file: str) -> int:
        if file not in self._sizes:
            self._sizes[file] = self.files.size(file) or 0
        return self._sizes[file]


def not_written(what: str, error: Exception | None, address: str) -> StateError:
    file = getattr(error, "filename", None)
    return StateError(
        f"{what} could not be written; the state is what it was before",
        path=Text(str(file or address)),
        cause=error,
        remedy="free space there, or check that the store answers, and try again",
    )
