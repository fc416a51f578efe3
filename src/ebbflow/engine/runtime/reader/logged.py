"""Logged changes: what the writer has kept of what the last epochs changed.

A local view keeps the change of an epoch as spines in its state; a view on Spark as Parquet files
in the folder `changes`, which are noted in its manifest. A reader finds either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ebbflow.engine.runtime.sinks.gaps import last_gap
from ebbflow.engine.runtime.sinks.log import PREFIX, logged, logged_change
from ebbflow.engine.runtime.table.arrow import from_arrow
from ebbflow.state.spine import Files, Snapshot
from ebbflow.state.spine.manifest import missing
from ebbflow.zset import add_into

CHANGES, DIFFERENCES = "changes", "differences"
Deltas = dict[str, dict[Any, int]]


def change_spines(snapshot: Snapshot) -> Iterable[str]:
    """The names of the spines that hold changes."""
    return {operator for operator, _ in snapshot.names() if operator.startswith(PREFIX)}


def logged_epochs(snapshot: Snapshot, types: Mapping[str, Any]) -> set[int]:
    """The epochs of which a state has what they changed in outputs of these types."""
    entries: Mapping[str, Any] = snapshot.notes.get(CHANGES, {})
    whole = {
        int(epoch)
        for epoch, entry in entries.items()
        if all(entry.get(name, ()) is not None for name in types)
    }
    gap = last_gap(snapshot.notes, types)
    return {epoch for epoch in whole.union(logged(snapshot, types)) if epoch > gap}


def logged_changes(snapshot: Snapshot, epoch: int, types: Mapping[str, Any]) -> Deltas:
    """What an epoch that is logged changed in each output."""
    entry = snapshot.notes.get(CHANGES, {}).get(str(epoch))
    if entry is None:
        return {name: logged_change(snapshot, epoch, name, each) for name, each in types.items()}
    files = snapshot.files.folder(CHANGES)
    return {
        name: _added_up(files, [file for file, _ in entry.get(name, ())], row_type)
        for name, row_type in types.items()
    }


def parquet_file(files: Files, name: str) -> Any:
    """A file of a log, to be read; the one who writes may have removed it."""
    try:
        return pq.ParquetFile(pa.BufferReader(pa.py_buffer(files.map(name))))
    except FileNotFoundError:
        raise missing(name) from None


def _added_up(files: Files, names: Iterable[str], row_type: Any) -> dict[Any, int]:
    total: dict[Any, int] = {}
    for name in names:
        table = parquet_file(files, name).read()
        for row, weight in zip(*from_arrow(table, row_type), strict=True):
            add_into(total, {row: weight})
    return total
