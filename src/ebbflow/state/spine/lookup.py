"""Lookup: what the segments of a spine have of some hashes, as columns.

`Spine.probe` makes Python objects of what is found; this does not. A hash is not a key: who asks
compares the keys that are found with those that were meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ebbflow.state.spine.hashing import Words
from ebbflow.state.spine.part import EntryBatch, SegmentForm
from ebbflow.state.spine.runs import runs
from ebbflow.state.spine.segment import Segment

Hit = tuple[Any, EntryBatch, Any]
"""Entries in a chunk: which of the hashes each has, the chunk, and the places in it."""
_PLAIN = {"int8", "int16", "int32", "int", "float", "date16"}


def hits_of(segments: Sequence[Segment], wanted: Words) -> Iterator[list[Hit]]:
    """What segments have of some hashes, which are sorted and different, the oldest first; hits of
    one run and form together."""
    lows = wanted.searchsorted(np.array([s.firsts[0] for s in segments]), "left").tolist()
    highs = wanted.searchsorted(np.array([s.lasts[-1] for s in segments]), "right").tolist()
    spans = iter(zip(lows, highs, strict=True))
    for run in runs(segments):
        hits: dict[SegmentForm, list[Hit]] = {}
        for segment, (low, high) in zip(run, spans, strict=False):
            if low < high:
                found = segment.find(wanted[low:high])
                more = [(owners + low, part, places) for owners, part, places in found]
                hits.setdefault(segment.form, []).extend(more)
        yield from filter(None, hits.values())


class FoundEntries:
    """Entries of one form that were found: `owners` say which of the hashes each has, `counts` are
    their weights, or whether there is a value. Columns are taken out when they are asked for."""

    __slots__ = ("counts", "form", "owners", "parts", "places")

    def __init__(self, owners: Any, parts: list[EntryBatch], places: list[Any]) -> None:
        self.owners, self.parts, self.places = owners, parts, places
        self.form = parts[0].form
        counts = [part.count[at] for part, at in zip(parts, places, strict=True)]
        self.counts = counts[0] if len(counts) == 1 else np.concatenate(counts)

    def __len__(self) -> int:
        return len(self.owners)

    def chosen(self, mask: Any) -> FoundEntries:
        """Those where a mask is true."""
        if mask.all():
            return self
        ends = np.cumsum([len(at) for at in self.places])[:-1]
        places = [at[some] for at, some in zip(self.places, np.split(mask, ends), strict=True)]
        return FoundEntries(self.owners[mask], self.parts, places)

    def key(self, at: int) -> tuple[str, Any]:
        """A column of the keys: its encoding, and the values."""
        return self._taken(self.form.key.encodings[at], at, of_rows=False)

    def row(self, at: int) -> tuple[str, Any]:
        """A column of the rows or values."""
        return self._taken(self.form.row.encodings[at], at, of_rows=True)

    def _taken(self, encoding: str, column: int, *, of_rows: bool) -> tuple[str, Any]:
        if encoding in _PLAIN:
            numbers = [part.numbers(column, of_rows=of_rows) for part in self.parts]
            if not any(each is None for each in numbers):
                found = [each.take(at) for each, at in zip(numbers, self.places, strict=True)]
                return encoding, pa.array(found[0] if len(found) == 1 else np.concatenate(found))
        columns = [(part.rows if of_rows else part.keys)[column] for part in self.parts]
        pairs = zip(columns, self.places, strict=True)
        taken = [pc.take(column, pa.array(at), boundscheck=False) for column, at in pairs]
        return encoding, taken[0] if len(taken) == 1 else pa.concat_arrays(taken)


def entries_of(segments: Sequence[Segment], wanted: Words) -> Iterator[FoundEntries]:
    """The same in columns."""
    if len(wanted) and segments:
        for hits in hits_of(segments, wanted):
            owners, parts, places = map(list, zip(*hits, strict=True))
            yield FoundEntries(np.concatenate(owners), parts, places)


def pairs_of(segments: Sequence[Segment], keys: Words, rows: Words) -> Iterator[FoundEntries]:
    """What segments have of some pairs of a key's hash and a row's, which are sorted."""
    for segment in segments:
        hits = list(segment.find_rows(keys, rows))
        if hits:
            parts, places, owners = map(list, zip(*hits, strict=True))
            yield FoundEntries(np.concatenate(owners), parts, places)
