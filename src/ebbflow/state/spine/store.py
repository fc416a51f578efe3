"""Store: all spines of a program in one folder, under one manifest per epoch.

An epoch is all or nothing: what was staged in any spine becomes part of the state when `commit`
returns, and is gone when the process dies before that. What `commit` does:

1. merge what is small, write one file with the new segments and the manifest, flush it;
2. give it its name: from here on the epoch has happened, and nothing is taken back;
3. become what was written: a *turn*, worked out before, so that nothing is left that could fail;
4. remove files that no retained epoch needs, and go on with large merges for as many entries as
   this epoch has paid for.

When something fails in 1, the epoch fails, nothing has changed, and what was staged is still
staged: `commit` again, or `rollback`. What fails in 4 is put right by a later epoch. An interrupt
may come anywhere. It leaves the turn, and the next call first asks the disk whether the file has
its name: if so the turn is done, again if need be, and else forgotten. So `epoch` is right at every
moment.

With `group=n` only every n-th epoch is written, together with those before it. After a crash the
state is that of the last epoch that was written, `store.safe`; `flush` writes now.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ebbflow.state.spine.files import Files, FileWriter, Folder, Lost, StateError
from ebbflow.state.spine.jobs import MergeJobs
from ebbflow.state.spine.manifest import (
    TEMPORARY,
    WITNESS,
    Listed,
    Manifest,
    missing,
    own,
    piece_epoch,
)
from ebbflow.state.spine.plan import SpinePlan, planned, relocated
from ebbflow.state.spine.segment import CHUNK, Ref, Segment
from ebbflow.state.spine.snapshot import Name, Pinned, Snapshot
from ebbflow.state.spine.spine import Spine


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


class Store(Snapshot):
    """A folder of state, open for writing; nobody else can open it meanwhile.

    >>> import tempfile
    >>> path = tempfile.mkdtemp()
    >>> with Store(path) as store:
    ...     store.spine("total", layout="value").append({"Rome": 3})
    ...     store.commit(0)
    >>> with Store(path) as store:
    ...     store.epoch, store.spine("total", layout="value").probe(["Rome"])
    (0, {'Rome': 3})

    `keep_epochs` is how many epochs can be read, `group` how many are written together, `verify`
    checks every byte at the start, `memory` is how many bytes of mapped files may stay in memory
    from one epoch to the next. With `unpickle=False` only pickles of plain values are loaded.
    """

    def __init__(
        self,
        place: str | os.PathLike[str] | Files,
        *,
        keep_epochs: int = 1,
        group: int = 1,
        verify: bool = False,
        memory: int | None = None,
        unpickle: bool = True,
        chunk: int = CHUNK,
    ) -> None:
        pa.array([0])  # with its first array pyarrow imports pandas: now, not while an epoch runs
        files = place if isinstance(place, Files) else Folder(place)
        files.lock()
        try:
            super().__init__(files, unpickle=unpickle, chunk=chunk)
            if verify:
                self.verify()
            if self.manifest.epoch >= 0:
                files.settle()  # what is seen from now on must not go away again
        except BaseException as error:
            files.unlock()
            if isinstance(error, OSError):
                raise StateError("this state cannot be read", cause=error) from error
            raise
        self.keep_epochs = max(1, keep_epochs)
        self.group = max(1, group)
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
        self._closed = False
        self._process = os.getpid()
        self._token = int.from_bytes(os.urandom(5))
        self._written = 0
        self.trouble: Exception | None = None
        """Why what comes after an epoch was left to a later one, the last time."""
        self._sizes: dict[str, int] = {}
        self._on_disk = own(files.names())
        self._adopted: set[str] = set()
        self._jobs = MergeJobs(
            files, f"{self._epoch + 1:012d}-{self.manifest.revision:04d}", self._open
        )
        with suppress(OSError):
            self._remove_others()

    # ---- epochs ----

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
    def forked(self) -> bool:
        """Whether this process was forked from the one that opened it, and so cannot write."""
        return self._process != os.getpid()

    @property
    def written(self) -> int:
        """How many bytes were written since it was opened, by epochs and by merges."""
        return self._written + self._jobs.written

    def commit(self, epoch: int, notes: Mapping[str, Any] | None = None) -> None:
        """Make what is staged the state at the end of `epoch`. With `notes`, these are kept with
        it, and it is written at once.

        When it raises, `epoch` tells whether this one has happened: after an error it has not,
        after an interrupt it may have.
        """
        self.catch_up()
        self.files.require()
        if epoch <= self._epoch:
            raise StateError(
                f"epoch {epoch} is over",
                last=self._epoch,
                remedy=f"an epoch from {self._epoch + 1} on",
            )
        if self._waiting + 1 < self.group and notes is None and not self._dropped:
            held = {name: spine.held() for name, spine in self._spines.items()}
            self._turn = Turn(epoch, held, staged=True, waiting=self._waiting + 1)
            self.catch_up()
        else:
            self._publish(epoch, self.notes if notes is None else notes, staged=True)

    def flush(self) -> None:
        """Write the epochs that are not on disk yet."""
        self.catch_up()
        if self._dropped:
            raise StateError("an epoch is open", remedy="commit() or rollback() first")
        if self._waiting:
            self._publish(self._epoch, self.notes, staged=False)

    def rollback(self) -> None:
        """Forget what is staged."""
        self.catch_up()
        for name, (listed, spine) in self._dropped.items():
            self._listed[name] = listed
            self._spines.pop(name, None)
            if spine is not None:
                self._spines[name] = spine
        self._dropped = {}
        for spine in self._spines.values():
            spine.rollback()

    def drop(self, operator: str, bucket: int | None = None) -> None:
        """Stage that the state of an operator is to be forgotten; a new one may begin at once."""
        for name in [n for n in self._listed if n[0] == operator and bucket in (None, n[1])]:
            self._dropped.setdefault(name, (self._listed.pop(name), self._spines.pop(name, None)))
            self._listed.pop(name, None)
            self._spines.pop(name, None)

    def at(self, epoch: int) -> Pinned:
        """The state at the end of an epoch that is retained; close it after use."""
        return Pinned(self.files, epoch, self._pins, unpickle=self.unpickle)

    # ---- what others have written ----

    def adopt(
        self,
        operator: str,
        ref: Ref,
        *,
        layout: str,
        bucket: int = 0,
        key_type: Any = Any,
        row_type: Any = Any,
    ) -> None:
        """Stage a segment that a `Piece` has written, as if it had been appended to the spine of
        this operator here. Pieces of one epoch that have no hash in common may come in any order.
        """
        epoch = piece_epoch(ref.file)
        if epoch is None or epoch <= self._epoch:
            raise StateError(
                f"{ref.file} is no piece of an epoch that is open",
                last=self._epoch,
                remedy=f"Piece(place, {self._epoch + 1}, token)",
            )
        if self.files.size(ref.file) is None:
            raise missing(ref.file)
        spine = self.spine(operator, bucket, layout=layout, key_type=key_type, row_type=row_type)
        segment = self._open(ref)
        if segment.form.layout != layout or any(ref == known.ref for known in spine.staged):
            raise StateError(
                f"{ref.file} cannot be adopted for {operator!r}",
                stored=segment.form.layout,
                wanted=layout,
                remedy="each ref once, for a spine of its layout",
            )
        self._adopted.add(ref.file)
        self._on_disk.add(ref.file)
        spine.stage(segment)

    def discard(self, files: Iterable[str]) -> None:
        """Remove pieces of an epoch that failed; what is staged of them must be rolled back."""
        names = set(files)
        needed = self._needed()
        for name in names:
            if name in needed or piece_epoch(name) is None:
                raise StateError(
                    f"{name} cannot be discarded",
                    remedy="pieces that no epoch has, after rollback()",
                )
        for name in names:
            self._on_disk.add(name)
            with suppress(OSError):
                self._remove(name)

    # ---- merging without a new epoch ----

    def work(self, entries: int = 1 << 20) -> bool:
        """Go on with the merges that are due, for about so many entries; gives whether there is
        more to do.
        """
        self.files.require()
        self.flush()
        self._jobs.begin(self._spines.values(), small=True)
        self._jobs.work(entries)
        self._use_merged()
        self._jobs.begin(self._spines.values(), small=True)
        return bool(self._jobs)

    def compact(self) -> None:
        """Merge each spine that is open into one segment, in as much memory as a chunk takes."""
        self.files.require()
        self.flush()
        self._jobs.give_up()
        for spine in self._spines.values():
            if len(spine.segments) > 1:
                self._jobs.start(spine, 0)
                while self._jobs:
                    self._jobs.work(CHUNK)
                if len(spine.segments) > 1:
                    raise _failed("the merge", self._jobs.error)
        self._use_merged()

    def _use_merged(self) -> None:
        """Publish what merging gave, if it gave something."""
        if any(
            self._listed[name].segments != tuple(segment.ref for segment in spine.segments)
            for name, spine in self._spines.items()
        ):
            self._publish(self._epoch, self.notes, staged=False)

    # ---- the rest of its life ----

    def close(self) -> None:
        """Write what is committed, and let others in. What is staged is lost. In a process that
        was forked from the one that opened it, nothing is written.
        """
        if self._closed:
            return
        mine = False
        try:
            try:
                self.files.require()
                mine = True
            except Lost:
                if self._waiting and not self.forked:
                    raise
            if mine:
                self.rollback()
                self.flush()
        finally:
            if mine:
                self._jobs.give_up()
                with suppress(OSError):
                    self._clean()
            self.files.unlock()
            self._closed = True

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- how an epoch is written ----

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
            return _failed(what, error)
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
            retained=self.manifest.kept(epoch, self.keep_epochs - 1),
        )

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
        """Remove the files that nothing needs."""
        if self._adopted:
            self._on_disk |= {name for name in own(self.files.names()) if self._is_over(name)}
            self._adopted -= self.manifest.files()
        for name in self._on_disk - self._needed():
            self._remove(name)

    def _needed(self) -> set[str]:
        """The files of the state and of what is staged."""
        spines = self._spines.values()
        refs = [s.ref for spine in spines for s in (*spine.segments, *spine.staged)]
        here = {ref.file for ref in refs if ref is not None}
        return here.union(self.manifest.files(), *self.manifest.retained.values(), *self._pins)

    def _remove(self, name: str) -> None:
        self._maps.pop(name, None)
        self._sizes.pop(name, None)
        self.files.remove(name)
        self._on_disk.discard(name)
        self._adopted.discard(name)

    def _is_over(self, name: str) -> bool:
        """Whether it is a piece of an epoch that is over, so that no task can still need it."""
        epoch = piece_epoch(name)
        return epoch is not None and epoch <= self.manifest.epoch

    def _size(self, file: str) -> int:
        if file not in self._sizes:
            self._sizes[file] = self.files.size(file) or 0
        return self._sizes[file]


def _failed(what: str, error: Exception | None) -> StateError:
    return StateError(
        f"{what} could not be written; the state is what it was before",
        cause=error,
        remedy="make room and try again, or rollback()",
    )
