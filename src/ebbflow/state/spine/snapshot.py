"""Snapshot: the state at the end of one epoch, read from its manifest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from ebbflow.change.fields import edited_fields
from ebbflow.errors import Damaged, StateError
from ebbflow.record import type_text
from ebbflow.state.spine.files import Files
from ebbflow.state.spine.manifest import Listed, Manifest, epochs, missing, newest, read
from ebbflow.state.spine.part import VALUE
from ebbflow.state.spine.place import Place, files_at
from ebbflow.state.spine.segment import CHUNK, Ref, Segment
from ebbflow.state.spine.spine import Spine
from ebbflow.state.spine.texts import LEAVES, TEXTS, TextPieces

Name = tuple[str, int]
"""The name of a spine, and its number where one name has several, as the changes of epochs have."""


class Snapshot:
    """The state at the end of one epoch, to be read.

    Without `epoch` it is the newest one; before the first, -1, there is nothing. It needs no lock:
    should the files be removed meanwhile, by the one who writes, reading fails. Loading a pickle
    can run any code, so without `unpickle=True` only those of plain values are loaded; what has
    typed fields is not pickled. Who knows the `name` of the manifest of an epoch saves looking for
    it.
    """

    in_pieces = False
    """Whether long texts in rows are written in pieces."""

    def __init__(
        self,
        place: Place,
        epoch: int | None = None,
        *,
        unpickle: bool = False,
        chunk: int = CHUNK,
        name: str = "",
    ) -> None:
        self.files = files_at(place)
        self.unpickle = unpickle
        found = newest(self.files) if epoch is None else self._at(epoch, name)
        self.manifest = found or Manifest(-1, 0)
        self._listed: dict[Name, Listed] = {(s.operator, s.bucket): s for s in self.manifest.spines}
        self._spines: dict[Name, Spine] = {}
        self._chunk = chunk
        self._maps: dict[str, memoryview] = {}

    def _at(self, epoch: int, name: str) -> Manifest:
        if type(epoch) is not int:
            raise StateError(
                "the number of an epoch is an int", given=epoch, remedy="at(epoch), of view.epoch"
            )
        if epoch < 0:
            return Manifest(-1, 0)
        if name:
            with suppress(Damaged, FileNotFoundError):  # it may have become another revision
                return read(self.files, name)
        known = epochs(self.files.names())
        last = Manifest(*known[-1]).name if known else ""
        retained = [last, *read(self.files, last).retained] if known else []
        names = [name for name in retained if epochs([name])[0][0] == epoch]
        if not names:
            raise StateError(
                f"epoch {epoch} is not there",
                epochs=sorted(epochs([name])[0][0] for name in retained),
                remedy="one of these epochs, or a larger keep_epochs from now on",
            )
        return read(self.files, max(names))

    @property
    def epoch(self) -> int:
        """The number of the epoch; -1 before the first one."""
        return self.manifest.epoch

    @property
    def notes(self) -> Mapping[str, Any]:
        """What was noted down with the epoch."""
        return self.manifest.notes

    def spine(
        self,
        operator: str,
        bucket: int = 0,
        *,
        layout: str,
        key_type: Any = Any,
        row_type: Any = Any,
    ) -> Spine:
        """The spine of this name and number. `row_type` is the class of its rows or values."""
        name = operator, bucket
        key, row = type_text(key_type), type_text(row_type)
        listed = self._listed.setdefault(name, Listed(operator, bucket, layout, key, row, ()))
        if (listed.layout, listed.key, listed.row) != (layout, key, row):
            raise StateError(
                f"the state of {operator!r} is of another kind",
                stored=(listed.layout, listed.key, listed.row),
                wanted=(layout, key, row),
                remedy="the program that wrote it, or store.drop(operator) to begin again",
            )
        if name not in self._spines:
            segments = map(self._open, listed.segments)
            chunk = self._chunk if operator != TEXTS else LEAVES
            spine = self._spines[name] = Spine(
                layout, key_type, row_type, segments, chunk=chunk, plain=not self.unpickle
            )
            spine.texts = self._texts(layout, row_type)
        return self._spines[name]

    def _texts(self, layout: str, row_type: Any) -> TextPieces | None:
        """How rows with fields to be edited are stored, where they are values."""
        if layout != VALUE or not edited_fields(row_type):
            return None
        leaves = partial(self.spine, TEXTS, layout=VALUE)
        return TextPieces(row_type, leaves, writes=self.in_pieces)

    def reading(self, operator: str, row_type: Any) -> Spine:
        """The spine of an operator that there is state for, of whatever kind it is, to be read as
        rows of another class than those that were written. `row_type.load` reads its pickles."""
        listed = self._listed[operator, 0]
        segments = map(self._open, listed.segments)
        plain = not self.unpickle
        found = Spine(listed.layout, row_type, row_type, segments, chunk=self._chunk, plain=plain)
        if listed.layout == VALUE and (TEXTS, 0) in self._listed and operator != TEXTS:
            found.texts = TextPieces(row_type, partial(self.spine, TEXTS, layout=VALUE))
        return found

    def piece(self, ref: Ref) -> Segment:
        """A segment of a piece for the next epoch, which this one knows nothing of."""
        return self._open(ref)

    def content(self, ref: Ref) -> bytes:
        """The bytes of a segment, when they are what was written."""
        self._open(ref).check()
        return bytes(self._map(ref.file)[ref.offset : ref.offset + ref.length])

    def open_all(self) -> None:
        """Have every spine at hand, of whatever type its rows are: to be merged, not to be read."""
        for name, listed in self._listed.items():
            if name not in self._spines:
                segments = map(self._open, listed.segments)
                self._spines[name] = Spine(
                    listed.layout, Any, Any, segments, chunk=self._chunk, plain=not self.unpickle
                )

    def _open(self, ref: Ref) -> Segment:
        return self._opened(ref, self._map(ref.file))

    def _opened(self, ref: Ref, content: memoryview) -> Segment:
        """A segment of a file with this content, which is trusted as far as this is."""
        segment = Segment.opened(ref, content)
        if not self.unpickle:
            segment.form = segment.form.distrusted()
        return segment

    def _map(self, file: str) -> memoryview:
        if file not in self._maps:
            try:
                self._maps[file] = self.files.map_parts(file)
            except FileNotFoundError:
                raise missing(file) from None
        return self._maps[file]

    def hold(self, operators: Collection[str]) -> None:
        """Have the files of these spines at hand: they can be read after they were removed."""
        for (operator, _), listed in self._listed.items():
            if operator in operators:
                for ref in listed.segments:
                    self._map(ref.file)

    def names(self) -> list[Name]:
        """The names and numbers of the spines."""
        return sorted(self._listed)

    def numbers(self, operator: str, layout: str, key_type: Any = Any) -> list[int]:
        """The numbers of the spines of this name whose keys are of this type, in order."""
        kept = layout, type_text(key_type)
        return sorted(
            number
            for (name, number), listed in self._listed.items()
            if name == operator and (listed.layout, listed.key) == kept
        )

    def layout(self, operator: str, bucket: int = 0) -> str:
        """The layout of the spine of an operator that there is state for."""
        return self._listed[operator, bucket].layout

    def info(self) -> dict[str, Any]:
        """What is there: the epoch, and of each spine the entries, bytes and segments."""
        spines = [
            {
                "operator": spine.operator,
                "bucket": spine.bucket,
                "layout": spine.layout,
                "key": spine.key,
                "row": spine.row,
                "entries": sum(ref.entries for ref in spine.segments),
                "bytes": sum(ref.length for ref in spine.segments),
                "segments": len(spine.segments),
            }
            for spine in self.manifest.spines
        ]
        own = self.files.size(self.manifest.name) or 0
        return {
            "epoch": self.epoch,
            "epochs": sorted({self.epoch, *(epochs([n])[0][0] for n in self.manifest.retained)}),
            "files": len(self.manifest.sizes) + 1,
            "bytes": sum(self.manifest.sizes.values()) + own,
            "spines": spines,
        }

    def verify(self) -> None:
        """Read everything and compare the checksums."""
        for spine in self.manifest.spines:
            for ref in spine.segments:
                Segment.opened(ref, self.files.map_parts(ref.file)).check()


class Pinned(Snapshot):
    """A snapshot whose files stay until it is closed."""

    def __init__(self, files: Files, epoch: int, pins: list[set[str]], unpickle: bool) -> None:
        super().__init__(files, epoch, unpickle=unpickle)
        self._pins = pins
        self._pin = self.manifest.files()
        pins.append(self._pin)

    def close(self) -> None:
        """Let go of the files."""
        self._pins[:] = [pin for pin in self._pins if pin is not self._pin]

    def __enter__(self) -> Pinned:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
