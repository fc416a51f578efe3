"""Scans: the rows in a state as Arrow batches, some of them at a time, for whoever reads in parts.

The kept rows of an output or of an input are in one spine, by the hash of their key, and so is what
an epoch of a local view changed in an output. A spine can be read in ranges of hashes, by as many
readers as there are ranges: together they have every row once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ebbflow.engine.runtime.parts import typed
from ebbflow.engine.runtime.program import unknown_name
from ebbflow.engine.runtime.reader.computed import computed_rows, entries_of
from ebbflow.engine.runtime.reader.stored import needs_program
from ebbflow.engine.runtime.sinks.log import operator_of
from ebbflow.engine.runtime.table.entries import entries_to_arrow
from ebbflow.engine.runtime.table.stored import row_type_of
from ebbflow.errors import StateError
from ebbflow.state.spine import Snapshot
from ebbflow.state.spine.segment import END


@dataclass(frozen=True)
class RowScan:
    """Rows in a state: their type, the name and number of their spine, and whether they are its
    keys, each with its weight, or what is kept under other keys."""

    type: Any
    spine: str
    number: int = 0
    by_row: bool = True
    whole: ClassVar[bool] = False

    @property
    def spines(self) -> tuple[str, ...]:
        """The names of the spines that are read."""
        return (self.spine,)

    def entries(self, snapshot: Snapshot) -> int:
        """How many entries of state there are to read."""
        return entries_of(snapshot, self.spine, self.number)

    def batches(self, snapshot: Snapshot, low: int = 0, high: int = END) -> Iterator[Any]:
        """The rows with their weights, as Arrow batches; those whose key has a hash in a range."""
        name, number = at = self.spine, self.number
        layout = snapshot.layout(name, number) if at in snapshot.names() else "value"
        row_type = typed(self.type)
        types = (row_type, Any) if self.by_row else (Any, row_type)
        found = snapshot.spine(name, number, layout=layout, key_type=types[0], row_type=types[1])
        for chunk in found.chunks(low, high):
            yield entries_to_arrow(chunk, self.type, by_row=self.by_row)


def output_type(snapshot: Snapshot, name: str) -> Any:
    """The type of the rows of an output."""
    return row_type_of(_noted(snapshot, "output", name)["type"])


def output_rows(snapshot: Snapshot, name: str) -> Any:
    """How the rows of an output are read: where it keeps them, or where it is computed from. The
    `spines` of it are read, all at once where it is a `whole`, in `batches`."""
    said, row_type = _noted(snapshot, "output", name), output_type(snapshot, name)
    if said["part"] is not None:
        return RowScan(row_type, said["part"])
    found = computed_rows(snapshot, name, said, row_type)
    if found is None:
        raise needs_program(name, said, '.option("program", "module:name")')
    return found


def input_rows(snapshot: Snapshot, name: str) -> RowScan:
    """The rows of an input that keeps them."""
    said, kept = _noted(snapshot, "schema", name), snapshot.notes.get("rows", {})
    if name not in kept:
        raise StateError(
            f"the rows of input {name!r} are not kept",
            remedy="run() without check_input=False where it is written",
        )
    if "row" not in said:
        raise StateError(
            f"input {name!r} was stored by a version that did not note its columns",
            remedy="an epoch more: whoever opens the view and steps it notes them",
        )
    part = kept[name]
    layout = snapshot.layout(part) if (part, 0) in snapshot.names() else "value"
    by_row = layout == "value" and said["key"] is None
    return RowScan(row_type_of(said["row"]), part, by_row=by_row)


def change_rows(snapshot: Snapshot, name: str, epoch: int) -> RowScan:
    """What an epoch of a local view changed in an output."""
    return RowScan(output_type(snapshot, name), operator_of(name), epoch)


def _noted(snapshot: Snapshot, what: str, name: str) -> Mapping[str, Any]:
    known: Mapping[str, Any] = snapshot.notes.get(f"{what}s", {})
    if name not in known:
        raise unknown_name("input" if what == "schema" else what, name, known)
    found: Mapping[str, Any] = known[name]
    return found
