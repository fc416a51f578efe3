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
from typing import Any

import pyarrow as pa

from ebbflow.errors import Lost, StateError
from ebbflow.state.backing import ABSENT
from ebbflow.state.spine.manifest import piece_epoch
from ebbflow.state.spine.part import VALUE
from ebbflow.state.spine.place import Place, files_at
from ebbflow.state.spine.publisher import Publisher, Turn, not_written
from ebbflow.state.spine.segment import CHUNK, Ref
from ebbflow.state.spine.snapshot import Pinned
from ebbflow.state.spine.texts import TEXTS, AnyRow, pieces_in


class Store(Publisher):
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
        place: Place,
        *,
        keep_epochs: int = 1,
        group: int = 1,
        verify: bool = False,
        memory: int | None = None,
        unpickle: bool = True,
        chunk: int = CHUNK,
    ) -> None:
        pa.array([0])  # with its first array pyarrow imports pandas: now, not while an epoch runs
        files = files_at(place)
        files.lock()
        try:
            super().__init__(
                files, unpickle=unpickle, chunk=chunk, keep_epochs=keep_epochs, memory=memory
            )
            files.fetch(self.manifest.files())
            if verify:
                self.verify()
            if self.manifest.epoch >= 0:
                files.settle()  # what is seen from now on must not go away again
        except BaseException as error:
            files.unlock()
            if isinstance(error, OSError):
                raise StateError("this state cannot be read", cause=error) from error
            raise
        self.group = max(1, group)
        self._closed = False
        self._process = os.getpid()
        if files.exclusive:
            with suppress(OSError):
                self._remove_others()

    # ---- epochs ----

    @property
    def forked(self) -> bool:
        """Whether this process was forked from the one that opened it, and so cannot write."""
        return self._process != os.getpid()

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
        """Stage that the state of an operator is to be forgotten, with the texts in its rows; a new
        one may begin at once."""
        if (TEXTS, 0) in self._listed and (operator, 0) in self._listed:
            found = self.reading(operator, AnyRow)
            if found.texts is not None:
                found.texts = None
                rows = [row for _, row, _ in found.scan() if isinstance(row, AnyRow)]
                gone = {
                    number: ABSENT for row in rows for part in pieces_in(row) for number in part
                }
                self.spine(TEXTS, layout=VALUE).append(gone)
        for name in [n for n in self._listed if n[0] == operator and bucket in (None, n[1])]:
            self._dropped.setdefault(name, (self._listed.pop(name), self._spines.pop(name, None)))
            self._listed.pop(name, None)
            self._spines.pop(name, None)

    def release(self, operator: str, bucket: int = 0) -> None:
        """Let go of a spine that is written as it is; whoever asks for it reads it again."""
        spine = self._spines.get((operator, bucket))
        if spine is not None and not self._waiting and not spine.staged:
            del self._spines[operator, bucket]

    @property
    def writes_next(self) -> bool:
        """Whether the next commit is written, and does not wait for others to be written with."""
        return self._waiting + 1 >= self.group

    def at(self, epoch: int) -> Pinned:
        """The state at the end of an epoch that is retained; close it after use."""
        if type(epoch) is int and epoch < 0:
            raise StateError(f"epoch {epoch} is not there", remedy="an epoch from 0 on")
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
                    raise not_written("the merge", self._jobs.error, self.files.address)
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
