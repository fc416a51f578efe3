"""What a local view gives to others: streams of its changes, snapshots, and epochs for sinks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic

from ebbflow.engine.runtime.rows import OutputDeltas
from ebbflow.engine.runtime.subscribe import Changes
from ebbflow.engine.runtime.view import BaseView
from ebbflow.notebook import Outputs
from ebbflow.paths import PRIVATE
from ebbflow.typevars import T, W
from ebbflow.zset import ZSet, from_view


class PublishingView(BaseView[W], Generic[T, W]):
    """The part of a local view that others hear from. Its epochs are in `View`."""

    __slots__ = ("_epoch", "_origins")

    _epoch: int
    _origins: dict[str, tuple[Any, bool]]
    """Of each output the type of its rows, for Z-sets that a view gives."""

    # ---- listening ----

    def changes(self, *, limit: int = 16) -> Changes[W]:
        """Every change of the output from now on, for `async for`; it ends when the view is closed.

        At most `limit` changes wait for a slow reader. Later ones are added up into the last, so
        that none is lost, no writer is held up, and a reader who is far behind gets fewer and
        larger changes. A writer that would rather wait for room uses `astep`. A stream is a context
        manager: `with view.changes() as changes` ends it with its block.
        """
        return self._stream(limit, None)

    def _stream(self, limit: int, name: str | None) -> Changes[Any]:
        with self._lock:
            self._require_open()
            return self._subscribers.stream(limit, name, self._show(name))

    def _show(self, name: str | None) -> Callable[[OutputDeltas], Any]:
        return self._shown if name is None else lambda deltas: self._change(name, deltas)

    def _shown(self, deltas: OutputDeltas) -> W:
        if self._only is not None:
            return self._change(self._only, deltas)  # type: ignore[return-value]
        return Outputs({name: self._change(name, deltas) for name in self.plan.outputs})  # type: ignore[return-value]

    def _change(self, name: str, deltas: OutputDeltas) -> ZSet[Any]:
        return from_view(deltas.get(name, {}), self._origins[name])

    # ---- for others ----

    def write_snapshot(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "parquet",
        mode: str = "overwrite",
        output: str | None = None,
        permissions: int | None = None,
    ) -> None:
        """Write the output as it is now as a table, "parquet", "csv" or "jsonl": one file in the
        folder `path`, in place of what is there, or with `mode="error"` only where nothing is. The
        file is replaced at once: a reader finds the old one or the new one. Several outputs, which
        are of one epoch, have a folder each, `path/<output>`.
        """
        from ebbflow.engine.runtime.sinks.folder import write_values

        names = self._outputs(output)
        with self._lock:
            self._require_open()
            values = {name: self._program.outputs[name].value() for name in names}
            otherwise = self._permissions()
        write_values(values, path, format, mode, permissions, otherwise)

    def _safe(self) -> int:
        files = self._storage.files
        return self._epoch if files is None else min(self._epoch, self._storage.store.safe)

    def _logged(self) -> list[int]:
        found: list[int] = self._storage.logged()
        return found

    def _entry(self, epoch: int) -> OutputDeltas | None:
        self._require_open()
        found: OutputDeltas | None = self._storage.change_of(epoch)
        return found

    def _changes(self, epoch: int, entry: OutputDeltas) -> Any:
        return self._shown(entry)

    def _whole_entry(self) -> OutputDeltas:
        outputs = self._program.outputs
        return {name: dict(each.value().items()) for name, each in outputs.items()}

    def _write_change(
        self, name: str, epoch: int, entry: OutputDeltas, folder: Path, format: str
    ) -> None:
        from ebbflow.engine.runtime.sinks.formats import write_part

        write_part(self._change(name, entry).to_arrow(), folder, 0, format)

    def _permissions(self) -> int:
        return getattr(self._storage.files, "permissions", PRIVATE)

    def _flush(self) -> None:
        self._storage.flush()

    def _catch_up(self) -> None:
        self._flush()
