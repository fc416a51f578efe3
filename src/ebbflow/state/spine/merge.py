"""Merging: several segments become one, a chunk at a time.

Merging adds up the weights of a row and drops it at zero (bag), or keeps the newest entry of a key
(value); an entry that says "taken away" goes when nothing older is left that it could hide. What
comes out answers as what went in did.

It is done a *step* at a time. A step looks at the next piece of each segment, takes from all of
them what comes before the end of the first that ends, sorts that, and settles it. So a step holds
a piece of each segment in memory, however large the segments are, and an engine may do other things
between steps. Segments that are a chunk together, of no more texts than one may have, are one step.

Columns of different widths meet in the widest. Texts get room for any size where those of one step
could be too much for 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ebbflow.state.spine.columns import ColumnShape, common, decode, heavy, recast, widened
from ebbflow.state.spine.hashing import Words, places_in_order, same
from ebbflow.state.spine.part import BAG, EntryBatch, SegmentForm
from ebbflow.state.spine.runs import runs
from ebbflow.state.spine.segment import CHUNK, END, Segment

Types = tuple[Any, Any]
"""The class of the keys and that of the rows; see `columns.encode`."""


def merged(
    segments: Sequence[Segment],
    *,
    last: bool,
    types: Types = (None, None),
    chunk: int = CHUNK,
    low: int = 0,
    high: int = END,
) -> Iterator[tuple[int, EntryBatch | None]]:
    """Merge segments, the oldest first. After each step: how many entries it read, and a chunk if
    one is complete. `last` says that there is no older segment. Only entries with `low <= hash <
    high` are read.
    """
    form = common_form([segment.form for segment in segments])
    texts = sum(segment.heaviest * len(segment.chunks) for segment in segments)
    if sum(map(len, segments)) <= chunk and not heavy(2 * texts):
        found = [part for segment in segments for part in segment.parts(low, high)]
        if found:
            part = settled(joined([recast_part(p, form, types) for p in found]), last, types)
            yield sum(map(len, found)), part if len(part) else None
        return
    together = runs(segments)
    if heavy(2 * sum(max(segment.heaviest for segment in run) for run in together)):
        form = replace(form, key=widened(form.key), row=widened(form.row))
    cursors = [
        _Cursor((part for segment in run for part in segment.parts(low, high)), form, types, chunk)
        for run in together
    ]
    waiting: list[EntryBatch] = []
    size = weight = 0
    while cursors := [cursor for cursor in cursors if cursor.window is not None]:
        end = min(cursor.end() for cursor in cursors)
        taken = [cursor.take(end) for cursor in cursors]
        read = sum(map(len, taken))
        part = settled(joined([piece for piece in taken if len(piece)]), last, types)
        if len(part):
            waiting.append(part)
            size += len(part)
            weight += part.texts
        if size < chunk and not heavy(2 * weight):
            yield read, None
            continue
        pieces = cut(joined(waiting), chunk)
        waiting, size, weight = [], 0, 0
        for piece in pieces:
            yield read, piece
            read = 0
    if waiting:
        yield 0, joined(waiting)


def common_form(forms: Sequence[SegmentForm]) -> SegmentForm:
    """A form that holds the entries of all."""
    key, row = common(form.key for form in forms), common(form.row for form in forms)
    found = SegmentForm(forms[0].layout, key, row)
    alike = {(f.key.how, len(f.key.encodings), f.row.how, len(f.row.encodings)) for f in forms}
    if len(alike) > 1 or not all(form.within for form in forms):
        return found
    each = zip(*(form.within for form in forms), strict=True)
    within = [tuple(sorted(set(columns[0]).intersection(*columns))) for columns in each]
    return replace(found, within=tuple(within)) if all(within) else found


def joined(parts: list[EntryBatch]) -> EntryBatch:
    """Parts of one form, one after the other."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    second = None
    if first.second is not None:
        second = np.concatenate([part.second for part in parts])
    rows = [pa.concat_arrays(columns) for columns in zip(*(p.rows for p in parts), strict=True)]
    keys = first.form.keys(rows) or [
        pa.concat_arrays(columns) for columns in zip(*(p.keys for p in parts), strict=True)
    ]
    return EntryBatch(
        first.form,
        np.concatenate([part.words for part in parts]),
        second,
        np.concatenate([part.count for part in parts]),
        keys,
        rows,
    )


def settled(part: EntryBatch, last: bool, types: Types = (None, None)) -> EntryBatch:
    """Sorted, with one entry for what is the same. Older entries come first in `part`."""
    order = _order(part.hash, part.second)
    hash = part.hash[order]
    alike = hash[1:] == hash[:-1]
    if part.second is not None:
        second = part.second[order]
        alike &= second[1:] == second[:-1]
    if not alike.any():
        drops = part.form.layout == BAG or last
        return part.pick(order[part.count[order] != 0] if drops else order)
    first = _firsts(part, order, alike, types)
    if part.form.layout == BAG:
        totals = np.zeros(len(order), np.int64)
        np.add.at(totals, first, part.count[order])
        keep = np.flatnonzero(totals)
        return replace(part.pick(order[keep]), count=totals[keep])
    places = np.arange(len(order))
    newest = np.zeros(len(order), np.int64)
    np.maximum.at(newest, first, places)
    keep = order[newest[first == places]]
    return part.pick(keep[part.count[keep] != 0] if last else keep)


def cut(part: EntryBatch, size: int = CHUNK) -> list[EntryBatch]:
    """Pieces of about `size`; what has one hash stays together."""
    if len(part) < 2 * size:
        return [part] if len(part) else []
    change = part.hash[1:] != part.hash[:-1]
    if part.second is not None:
        change |= part.second[1:] != part.second[:-1]
    allowed = np.flatnonzero(change) + 1
    found, begin = [], 0
    while len(part) - begin >= 2 * size:
        at = allowed.searchsorted(begin + size)
        if at == len(allowed):
            break
        end = int(allowed[at])
        found.append(part.pick(slice(begin, end)))
        begin = end
    return [*found, part.pick(slice(begin, len(part)))]


class _Cursor:
    """How far one run of segments has been merged."""

    def __init__(
        self, parts: Iterator[EntryBatch], form: SegmentForm, types: Types, chunk: int
    ) -> None:
        self._parts = (piece for part in parts for piece in cut(part, max(1, chunk // 4)))
        self._form, self._types = form, types
        self.window: EntryBatch | None = None
        self._next()

    def end(self) -> tuple[int, int]:
        window = self.window
        assert window is not None
        return int(window.hash[-1]), 0 if window.second is None else int(window.second[-1])

    def take(self, end: tuple[int, int]) -> EntryBatch:
        """What comes before `end`, and what is at it."""
        window = self.window
        assert window is not None
        if window.second is None:
            count = int(window.hash.searchsorted(np.uint64(end[0]), "right"))
        else:
            low, high = (int(window.hash.searchsorted(np.uint64(end[0]), s)) for s in _SIDES)
            count = low + int(window.second[low:high].searchsorted(np.uint32(end[1]), "right"))
        found = window.pick(slice(0, count))
        if count == len(window):
            self._next()
        else:
            self.window = window.pick(slice(count, len(window)))
        return found

    def _next(self) -> None:
        part = next(self._parts, None)
        self.window = None if part is None else recast_part(part, self._form, self._types)


_SIDES = ("left", "right")


def recast_part(part: EntryBatch, form: SegmentForm, types: Types) -> EntryBatch:
    """The same entries in another form."""
    if part.form == form:
        return part
    part = part.whole()
    rows = recast(part.form.row, form.row, part.rows, types[1])
    keys = form.keys(rows) or recast(part.form.key, form.key, part.keys, types[0])
    return replace(part, form=form, keys=keys, rows=rows)


def _order(hash: Words, second: Words | None) -> Any:
    """The places of the entries in order. The row hash only has to be looked at where hashes are
    equal.
    """
    order = places_in_order(hash)
    if second is None:
        return order
    found, rows = hash[order], second[order]
    equal = found[1:] == found[:-1]
    if not (equal & (rows[1:] < rows[:-1])).any():
        return order
    among = np.zeros(len(order), bool)
    among[1:] |= equal
    among[:-1] |= equal
    places = np.flatnonzero(among)
    group = np.concatenate([[0], np.cumsum(~equal)])[places]
    order[places] = order[places][_by_row(group, rows[places])]
    return order


def _by_row(group: Any, rows: Words) -> Any:
    """The places in order of their group, and in it of their row hash."""
    words = (group.astype(np.uint64) << np.uint64(32)) | rows
    spare = 32 - int(group[-1]).bit_length()
    return places_in_order(words << np.uint64(spare))


def _firsts(part: EntryBatch, order: Any, alike: Any, types: Types) -> Any:
    """For each entry in order, the place of the first one that is the same: same key and, in a
    bag, same row. `alike` are the neighbours with the same hash.
    """
    before = np.flatnonzero(alike)
    equal = _equal(part, order[before], order[before + 1], types)
    starts = np.concatenate([[True], ~alike])
    begins = np.flatnonzero(starts)
    run = np.cumsum(starts) - 1
    first = begins[run]
    ends = np.append(begins[1:], len(order))
    for i in np.unique(run[before[~equal]]).tolist():  # different ones with one hash: hardly ever
        known: list[int] = []
        for place in range(begins[i], ends[i]):
            for other in known:
                if _equal(part, order[[other]], order[[place]], types)[0]:
                    first[place] = other
                    break
            else:
                known.append(place)
                first[place] = place
    return first


def _equal(part: EntryBatch, left: Any, right: Any, types: Types) -> Any:
    """Which entries at `left` are the same as those at `right`."""
    sides = [(part.form.key, part.keys, types[0])]
    if part.form.layout == BAG:
        sides.append((part.form.row, part.rows, types[1]))
    found = np.ones(len(left), bool)
    for shape, columns, row_type in sides:
        equal = np.ones(len(left), bool)
        for column in columns:
            equal &= _equal_column(column.take(pa.array(left)), column.take(pa.array(right)))
        unsure = np.flatnonzero(~equal)
        if len(unsure):
            one, other = (_objects(shape, columns, at[unsure], row_type) for at in (left, right))
            equal[unsure] = list(map(same, one, other))
        found &= equal
    return found


def _equal_column(left: Any, right: Any) -> Any:
    """Where the columns are the same for certain."""
    if pa.types.is_null(left.type):
        return np.ones(len(left), bool)
    equal = pc.fill_null(pc.equal(left, right), False)
    if left.null_count:
        equal = pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))
    return equal.to_numpy(zero_copy_only=False)


def _objects(shape: ColumnShape, columns: list[Any], at: Any, row_type: Any) -> list[Any]:
    places = pa.array(at)
    return decode(shape, [column.take(places) for column in columns], row_type)
