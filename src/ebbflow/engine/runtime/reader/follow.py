"""Following: what the epochs of a state changed, one after the other, as its writer goes on.

Where the writer keeps what epochs changed, that is read, and one epoch is given after the other.
Where it does not, the follower keeps the rows it has given, and gives how the newest differ from
them. When a writer stops keeping changes, or the follower is too far behind, the rows at the last
epoch it gave are read, if they are retained; else it says so.
"""

from __future__ import annotations

from collections import deque
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Self

from ebbflow.engine.runtime.reader.logged import Deltas, logged_changes, logged_epochs
from ebbflow.errors import Damaged, StateError, Text
from ebbflow.notebook import Outputs
from ebbflow.state.spine import Snapshot
from ebbflow.state.spine.live import newest_name
from ebbflow.zset import ZSet, from_view

if TYPE_CHECKING:
    from ebbflow.engine.runtime.reader.reader import Reader

Values = dict[str, ZSet[Any]]


class LiveChanges:
    """The changes of a state, from an epoch on; made by `Reader.changes`."""

    def __init__(self, reader: Reader, since: int | None, wait: float | None, every: float) -> None:
        self._reader, self._wait, self._every = reader, wait, every
        self._found: deque[tuple[int, Any]] = deque()
        self._seen = ""
        """The newest manifest that was looked at."""
        self._held: Values | None = None
        """The rows at the last epoch, where differences are all that can be had."""
        self._begin(since)

    def _begin(self, since: int | None) -> None:
        snapshot = self._reader.snapshot()
        if since is None:
            values = self._reader.values(snapshot)
            whole = {name: dict(rows.items()) for name, rows in values.items()}
            self._found.append((snapshot.epoch, _change(whole, self._types(snapshot))))
            self._epoch = snapshot.epoch
            self._hold(snapshot, values)
            return
        self._epoch = since
        if since == snapshot.epoch:
            self._hold(snapshot, None)
        elif since > snapshot.epoch:
            raise StateError(
                f"changes(since={since}): the newest epoch is {snapshot.epoch}",
                remedy="an epoch that has happened, or changes() to begin with all there is",
            )

    def _hold(self, snapshot: Snapshot, values: Values | None) -> None:
        """Keep the rows of an epoch, unless its writer keeps what epochs change."""
        self._held = None
        if snapshot.epoch not in logged_epochs(snapshot, self._types(snapshot)):
            self._held = self._reader.values(snapshot) if values is None else values

    def _types(self, snapshot: Snapshot) -> dict[str, Any]:
        return {name: each.type for name, each in self._reader.known(snapshot).items()}

    # ---- looking ----

    def _look(self) -> bool:
        """Look for epochs that are new; gives whether there is something to give."""
        if self._found:
            return True
        newest = newest_name(self._reader.files)
        if newest != self._seen:
            snapshot = self._reader.snapshot()
            try:
                self._advance(snapshot)
            except Damaged:  # the files of a change are gone: there is a newer epoch
                if self._reader.snapshot().epoch == snapshot.epoch:
                    raise
                return self._look()
            self._seen = snapshot.manifest.name
        return bool(self._found)

    def _advance(self, snapshot: Snapshot) -> None:
        last, types = snapshot.epoch, self._types(snapshot)
        if last < self._epoch:
            raise StateError(
                f"the state is at epoch {last}, and was at epoch {self._epoch}: it is another one",
                remedy="open(path) again",
            )
        new = range(self._epoch + 1, last + 1)
        if not new:
            return
        if logged_epochs(snapshot, types).issuperset(new):
            given = [
                (epoch, _change(logged_changes(snapshot, epoch, types), types)) for epoch in new
            ]
            self._held = None
        else:
            values = self._reader.values(snapshot)
            before = self._before()
            differ = {
                name: dict((rows - before.get(name, ZSet())).items())
                for name, rows in values.items()
            }
            given = [(last, _change(differ, types))]
            self._hold(snapshot, values)
        self._found += given
        self._epoch = last

    def _before(self) -> Values:
        """The rows at the last epoch that was given."""
        if self._held is not None:
            return self._held
        reader = self._reader
        try:
            return reader.values(reader.snapshot(self._epoch))
        except StateError as error:
            raise StateError(
                f"what changed since epoch {self._epoch} is not kept any more",
                kept=Text(error.what),
                remedy="changes() to begin with all there is; a larger keep_epochs where it is "
                "written",
            ) from error

    # ---- waiting ----

    def _until(self) -> float | None:
        return None if self._wait is None else monotonic() + self._wait

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[int, Any]:
        until = self._until()
        while not self._look():
            if until is not None and monotonic() >= until:
                raise StopIteration
            sleep(self._every)
        return self._found.popleft()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[int, Any]:
        import asyncio

        until = self._until()
        while not self._look():
            if until is not None and monotonic() >= until:
                raise StopAsyncIteration
            await asyncio.sleep(self._every)
        return self._found.popleft()


def _change(deltas: Deltas, types: dict[str, Any]) -> Any:
    """What changed in the outputs, as Z-sets that know their types."""
    return shown({name: from_view(delta, (types[name], True)) for name, delta in deltas.items()})


def shown(values: Values) -> Any:
    """What a reader gives: a Z-set where there is one output, else all by name."""
    return next(iter(values.values())) if len(values) == 1 else Outputs(values)
