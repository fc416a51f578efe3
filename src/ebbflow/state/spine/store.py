"""Store: all spines of a program in one folder, under one manifest per epoch.

An epoch is all or nothing: what was staged in any spine becomes part of the state when `commit`
returns, and is gone when the process dies before that. What `commit` does:

1. merge what is small, write one file with the new segments and the manifest, flush it, rename it;
2. from here on the epoch is safe; forget what is staged, remove files that no retained epoch needs;
3. go on with large merges for as many entries as this epoch has paid for.

When something fails in 1, the epoch fails, nothing has changed, and what was staged is still
staged: `commit` again, or `rollback`. What fails in 2 or 3 is put right by a later epoch.

With `group=n` only every n-th epoch is written, together with those before it. After a crash the
state is that of the last epoch that was written, `store.safe`; `flush` writes now.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any

from ebbflow.state.spine.files import Files, Folder, StateError, Writer
from ebbflow.state.spine.jobs import Jobs
from ebbflow.state.spine.manifest import TEMPORARY, WITNESS, Listed, Manifest, epochs, pad
from ebbflow.state.spine.segment import CHUNK, Ref, Segment, SegmentWriter
from ebbflow.state.spine.snapshot import Name, Snapshot
from ebbflow.state.spine.spine import Spine, due

MOVED = 1 << 20
"""How many bytes of old segments an epoch copies, at most, to give back the space around them."""


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
    """

    def __init__(
        self,
        place: str | os.PathLike[str] | Files,
        *,
        keep_epochs: int = 1,
        group: int = 1,
        verify: bool = False,
    ) -> None:
        files = place if isinstance(place, Files) else Folder(place)
        files.lock()
        try:
            super().__init__(files)
            if verify:
                self.verify()
        except BaseException:
            files.unlock()
            raise
        self.keep_epochs = max(1, keep_epochs)
        self.group = max(1, group)
        self._epoch = self.manifest.epoch
        self._waiting = 0
        self._dropped: dict[Name, tuple[Listed, Spine | None]] = {}
        self._pins: list[set[str]] = []
        self._broken = False
        self._written = 0
        self._tries = self.manifest.revision
        self._jobs = Jobs(files, self.manifest.name.removeprefix("epoch-"))
        self._remove_others(files.names())

    # ---- epochs ----

    @property
    def epoch(self) -> int:
        """The last epoch that was committed; -1 before the first one."""
        return self._epoch

    @property
    def safe(self) -> int:
        """The last epoch that is on disk."""
        return self.manifest.epoch

    @property
    def written(self) -> int:
        """How many bytes were written since it was opened, by epochs and by merges."""
        return self._written + self._jobs.written

    def commit(self, epoch: int, notes: Mapping[str, Any] | None = None) -> None:
        """Make what is staged the state at the end of `epoch`. With `notes`, these are kept with
        it, and it is written at once.
        """
        if epoch <= self._epoch:
            raise StateError(
                f"epoch {epoch} is over",
                last=self._epoch,
                remedy=f"an epoch from {self._epoch + 1} on",
            )
        if self._waiting + 1 < self.group and notes is None and not self._dropped:
            for spine in self._spines.values():
                spine.segments += spine.staged
                spine.staged = []
            self._waiting += 1
        else:
            self._publish(epoch, self.notes if notes is None else notes, staged=True)
        self._epoch = epoch

    def flush(self) -> None:
        """Write the epochs that are not on disk yet."""
        if self._waiting:
            self._publish(self._epoch, self.notes, staged=False)

    def rollback(self) -> None:
        """Forget what is staged."""
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
        return Pinned(self.files, epoch, self._pins)

    # ---- merging without a new epoch ----

    def work(self, entries: int = 1 << 20) -> bool:
        """Go on with the merges that are due, for about so many entries; gives whether there is
        more to do.
        """
        self.flush()
        self._jobs.begin(self._spines.values())
        self._jobs.work(entries)
        self._publish(self._epoch, self.notes, staged=False)
        return bool(self._jobs)

    def compact(self) -> None:
        """Merge each spine that is open into one segment, in as much memory as a chunk takes."""
        self.flush()
        self._jobs.give_up()
        for spine in self._spines.values():
            if len(spine.segments) > 1:
                self._jobs.start(spine, 0)
                while self._jobs:
                    self._jobs.work(CHUNK)
        self._publish(self._epoch, self.notes, staged=False)

    # ---- the rest of its life ----

    def close(self) -> None:
        """Write what is committed, and let others in. What is staged is lost."""
        try:
            if not self._broken:
                self.flush()
        finally:
            self._jobs.give_up()
            self.files.unlock()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    # ---- how an epoch is written ----

    def _publish(self, epoch: int, notes: Mapping[str, Any], *, staged: bool) -> None:
        """Write the file of an epoch and make it the state."""
        if self._broken:
            raise StateError("this store has failed", remedy="close it, and open it again")
        self._tries = self._tries + 1 if epoch == self.manifest.epoch else 0
        name = Manifest(epoch, self._tries).name
        temporary = name + TEMPORARY
        writer: Writer | None = None
        renaming = False
        try:
            writer = self.files.create(temporary)
            plan = {n: self._write(writer, name, s, staged) for n, s in self._spines.items()}
            manifest = self._manifest(epoch, notes, plan, writer)
            manifest.write(writer)
            writer.sync()
            writer.close()
            renaming = True
            self.files.publish(temporary, name)
        except Exception as error:
            self._take_back(writer, name if renaming else temporary)
            raise _failed(epoch, error) from error
        self._adopt(manifest, plan, staged)
        self._written += writer.at
        with suppress(OSError):
            self._remove_others(self.files.names())
            self.files.jot(WITNESS, name)
        self._jobs.pay(sum(len(plan[n].new) for n in plan), self._spines.values())
