"""Spine: what an operator keeps in one container, as a list of segments.

What an epoch does is a new segment at the end of the list; nothing before it changes. To look up
keys, every segment is asked, so there must not be many: segments of about one size are merged into
one of the next size, `FANOUT` at a time. The sizes grow geometrically, so there are at most
`FANOUT` segments for each of `log n` sizes, and an entry is written again `log n` times in all.
When the newer segments together are as large as the oldest, everything is merged: state that was
taken back goes away.

One epoch may bring several segments that follow each other in the order of hashes, written by as
many tasks (`Store.adopt`). Such a *run* is asked and counted as if it were one segment: only one of
its segments can know a key. A run that is small for its many segments becomes one at once.

    small merges    up to a chunk; done at once and written with the epoch
    large merges    a *job*, written to a file of its own, some steps with every epoch

Segments *staged* in this epoch are seen by `probe` and `scan` as if they had been committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ebbflow.errors import AlgebraError
from ebbflow.record import fields_of
from ebbflow.state.cells import ABSENT
from ebbflow.state.spine.columns import ColumnShape, encode, narrowed, nothing, repeated
from ebbflow.state.spine.columns_hash import column_hashes
from ebbflow.state.spine.hashing import hashes, row_words, same
from ebbflow.state.spine.lookup import hits_of
from ebbflow.state.spine.merge import cut, merged, settled
from ebbflow.state.spine.part import BAG, VALUE, EntryBatch, SegmentForm, values, within
from ebbflow.state.spine.runs import broods, follows
from ebbflow.state.spine.segment import CHUNK, END, Segment
from ebbflow.state.spine.texts import TextPieces

FANOUT = 4
Columns = tuple[ColumnShape, Sequence[Any]]
"""Values in columns: as `columns.encode` gives them."""


class Spine:
    """Segments, the oldest first: those that were committed, then those that are staged.

    >>> spine = Spine("bag")
    >>> spine.append({"Rome": [(("Rome", 3), 1), (("Rome", 5), 2)]})
    >>> spine.append({"Rome": [(("Rome", 3), -1)]})
    >>> spine.probe(["Rome", "Oslo"])
    {'Rome': {('Rome', 5): 2}}
    >>> cells = Spine("value")
    >>> cells.append({"Rome": 7, "Oslo": 2})
    >>> cells.append({"Oslo": ABSENT})
    >>> cells.probe(["Rome", "Oslo"])
    {'Rome': 7}
    """

    def __init__(
        self,
        layout: str,
        key_type: Any = None,
        row_type: Any = None,
        segments: Iterable[Segment] = (),
        *,
        chunk: int = CHUNK,
        plain: bool = False,
    ) -> None:
        if layout not in (BAG, VALUE):
            raise AlgebraError("a spine is a bag or holds values", layout=layout, remedy='"bag"')
        self.layout = layout
        self.key_type = key_type
        self.row_type = row_type
        self._types = key_type, row_type
        self.segments: list[Segment] = list(segments)
        self.staged: list[Segment] = []
        self.chunk = chunk
        self.fanout = FANOUT
        """How many segments of about one size there may be; a power of two. Where nobody looks keys
        up, more of them cost less to write, and nothing to read."""
        self.plain = plain
        """Whether what is pickled must be made of plain values, as its reader asks for."""
        self.texts: TextPieces | None = None
        """How long texts in rows are stored apart, where they are."""

    # ---- writing ----

    def append(self, change: Mapping[Any, Any]) -> None:
        """Stage what an epoch did: `{key: [(row, weight), …]}` or `{key: value or ABSENT}`."""
        if change and self.texts is not None and self.texts.writes:
            change = self.texts.apart(change, self._probe(change))
        if change:
            self._stage((self._bag if self.layout == BAG else self._values)(change))

    def append_columns(
        self, keys: Columns, rows: Columns, weights: Any = None, *, live: Any = None,
        hash: Any = None,
    ) -> None:  # fmt: skip
        """Stage entries that are columns, each key with the row or value at the same place. In a
        bag `weights` are 64-bit integers; without them, and for values, each is there once. Of
        values, those that are not `live` are taken away. `hash` are the hashes of the keys, where
        they are known.

        >>> spine = Spine("bag")
        >>> numbers = pa.array([1, 2, 1])
        >>> texts = pa.array(["a", "b", "a"])
        >>> rows = ColumnShape("tuple", ("int", "text")), [numbers, texts]
        >>> spine.append_columns((ColumnShape("one", ("int",)), [numbers]), rows)
        >>> spine.probe([1])
        {1: {(1, 'a'): 2}}
        """
        for (shape, columns), row_type in zip((keys, rows), self._types, strict=True):
            types = [column.type for column in columns]
            if types != shape.types() or (shape.how == "record" and fields_of(row_type) is None):
                raise AlgebraError(
                    "these columns are not of this shape",
                    shape=shape,
                    types=[*map(str, types)],
                    rows=row_type,
                    remedy="encodings and columns as encoded_column(array) gives them",
                )
        bag = self.layout == BAG
        size = len(keys[1][0])
        count = np.ones(size, np.int64 if bag else np.uint8)
        if weights is not None:
            count = np.asarray(weights, np.int64)
        lengths = {len(count), *(len(column) for column in (*keys[1], *rows[1]))}
        if len(lengths) > 1 or not (bag or weights is None):
            raise AlgebraError(
                "these columns do not belong together",
                layout=self.layout,
                lengths=sorted(lengths),
                remedy="columns of one length, and weights only in a bag",
            )
        if not size:
            return
        if live is not None and not live.all():
            gone = pa.array(live)
            count = np.asarray(live, np.uint8)
            rows = rows[0], [pc.if_else(gone, column, None) for column in rows[1]]
        (key, key_columns), (row, row_columns) = narrowed(*keys), narrowed(*rows)
        second = row_words(column_hashes(row, row_columns)) if bag else None
        form = SegmentForm(self.layout, key, row)
        hash = column_hashes(key, key_columns) if hash is None else hash
        part = EntryBatch(form, hash, second, count, key_columns, row_columns)
        self._stage(settled(within(part), False, self._types))

    def _stage(self, part: EntryBatch) -> None:
        if self.plain:
            part.check_plain()
        parts = cut(part, self.chunk)
        if parts:
            self.staged.append(Segment.held(parts))

    def _bag(self, change: Mapping[Any, Iterable[tuple[Any, int]]]) -> EntryBatch:
        groups = [list(pairs) for pairs in change.values()]
        rows = [row for pairs in groups for row, _ in pairs]
        weights = [weight for pairs in groups for _, weight in pairs]
        counts = np.fromiter(map(len, groups), np.int64, len(groups))
        owner = np.repeat(np.arange(len(groups)), counts)
        keys = list(change)
        if not rows:
            return EntryBatch(_EMPTY, *(np.empty(0),) * 3, [], [])
        key, key_columns = encode(keys, self.key_type)
        row, row_columns = encode(rows, self.row_type)
        try:
            count = np.fromiter(weights, np.int64, len(weights))
        except OverflowError as error:
            raise AlgebraError("a weight has more than 64 bits", remedy="fewer copies") from error
        if (counts != 1).any():
            key, key_columns = repeated(key, key_columns, counts)
        form, second = SegmentForm(BAG, key, row), row_words(hashes(rows))
        part = EntryBatch(form, hashes(keys)[owner], second, count, key_columns, row_columns)
        return settled(within(part), False, self._types)

    def _values(self, change: Mapping[Any, Any]) -> EntryBatch:
        keys, found = list(change), list(change.values())
        there = np.array([value is not ABSENT for value in found])
        live = there.astype(np.uint8)
        key, key_columns = encode(keys, self.key_type)
        if there.all():
            row, columns = encode(found, self.row_type)
        elif there.any():
            row, columns = encode([value for value in found if value is not ABSENT], self.row_type)
            places = pa.array(np.cumsum(there) - 1, mask=~there)
            columns = [column.take(places) for column in columns]
        else:
            fields = fields_of(self.row_type)  # as rows have, so that merged with rows they stay so
            row = ColumnShape("record" if fields else "one", ("none",) * len(fields or (None,)))
            columns = nothing(row, len(found))
        part = EntryBatch(
            SegmentForm(VALUE, key, row), hashes(keys), None, live, key_columns, columns
        )
        return settled(within(part), False, self._types)

    def stage(self, segment: Segment) -> None:
        """Stage a segment. Pieces of one epoch are put in the order of their hashes."""
        at = len(self.staged)
        while at and follows(segment, self.staged[at - 1]):
            at -= 1
        self.staged.insert(at, segment)

    def held(self) -> list[Segment]:
        """The segments there are when what is staged is part of the state, in memory for now."""
        segments = [*self.segments, *self.staged]
        begin = max((i for i, s in enumerate(segments, 1) if s.ref is not None), default=0)
        at = self.due(segments[begin:], first=False)
        if at is not None:
            parts = [*self.merged(segments[begin + at :], last=begin + at == 0)]
            segments[begin + at :] = [Segment.held(parts)] if parts else []
        return segments

    def hold(self) -> None:
        """Make what is staged part of the state, in memory for now."""
        self.segments, self.staged = self.held(), []

    def rollback(self) -> None:
        """Forget what is staged."""
        self.staged = []

    # ---- reading ----

    def probe(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """What is known of these keys: `{key: {row: weight}}` or `{key: value}`, for each key that
        is there.
        """
        found = self._probe(keys)
        if self.texts is not None:
            found = dict(zip(found, self.texts.together([*found.values()]), strict=True))
        return found

    def _probe(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """The same, as it is stored."""
        asked = list(dict.fromkeys(keys))
        segments = [*self.segments, *self.staged]
        if not asked or not segments:
            return {}
        wanted, order = np.unique(hashes(asked), return_index=True)
        sought = [asked[i] for i in order.tolist()]
        found: dict[Any, Any] = {}
        if len(sought) < len(asked):  # different keys with one hash: ask for the others after
            found = self._probe(set(asked) - set(sought))
        gather = _gather_rows if self.layout == BAG else _gather_values
        for hits in hits_of(segments, wanted):
            owners, parts, places = map(list, zip(*hits, strict=True))
            owned = [sought[i] for i in np.concatenate(owners).tolist()]
            counts = [part.count[at] for part, at in zip(parts, places, strict=True)]
            stored, rows = values(parts, self._types, places)
            gather(found, owned, stored, rows, np.concatenate(counts).tolist())
        if self.layout == BAG:
            return {key: rows for key, rows in found.items() if rows}
        return {key: value for key, value in found.items() if value is not ABSENT}

    def weights(self, asked: Sequence[tuple[Any, Any]]) -> list[int]:
        """How often each of these rows is there, each given with its key. However many rows a key
        has, only those that are asked for become Python objects.

        >>> spine = Spine("bag")
        >>> spine.append({"Rome": [(("Rome", i), i) for i in range(1000)]})
        >>> spine.weights([("Rome", ("Rome", 7)), ("Oslo", ("Oslo", 7))])
        [7, 0]
        """
        totals = [0] * len(asked)
        if not asked:
            return totals
        keys, rows = (hashes(list(some)) for some in zip(*asked, strict=True))
        rows = row_words(rows)
        order = np.lexsort((rows, keys))
        keys, rows = keys[order], rows[order]
        for segment in (*self.segments, *self.staged):
            hits = list(segment.find_rows(keys, rows))
            if not hits:
                continue
            parts, places, at = map(list, zip(*hits, strict=True))
            stored, there = values(parts, self._types, places)
            counts = [part.count[some] for part, some in zip(parts, places, strict=True)]
            for i, key, row, count in zip(
                order[np.concatenate(at)].tolist(), stored, there,
                np.concatenate(counts).tolist(), strict=True,
            ):  # fmt: skip
                wanted, this = asked[i]
                if (wanted == key and this == row) or (same(wanted, key) and same(this, row)):
                    totals[i] += count
        return totals

    def scan(self, low: int = 0, high: int = END) -> Iterator[tuple[Any, Any, int]]:
        """Everything there is: `(key, row, weight)`, or `(key, value, 1)`, by and by; of keys whose
        hash is from `low` on and below `high`.
        """
        for part in self._stored(low, high):
            keys, rows = values([part], self._types)
            whole = rows if self.texts is None else self.texts.together(rows)
            yield from zip(keys, whole, map(int, part.count.tolist()), strict=True)

    def chunks(self, low: int = 0, high: int = END) -> Iterator[EntryBatch]:
        """The same in columns. Only chunks that have such hashes are read."""
        parts = self._stored(low, high)
        return parts if self.texts is None else map(self._together, parts)

    def changes(self) -> Iterator[EntryBatch]:
        """All entries in columns as they were written, the oldest first: whoever adds up weights
        needs no merging."""
        for segment in (*self.segments, *self.staged):
            yield from segment.parts()

    def _stored(self, low: int, high: int) -> Iterator[EntryBatch]:
        """The same with long texts in pieces, as they are stored."""
        segments = [*self.segments, *self.staged]
        there = [s for s in segments if s.lasts[-1] >= low and s.firsts[0] < high]
        return self.merged(there, last=True, low=low, high=high)

    def _together(self, part: EntryBatch) -> EntryBatch:
        """Entries with their texts whole."""
        assert self.texts is not None
        keys, rows = values([part], self._types)
        whole = self.texts.together(rows)
        return part if whole is rows else self._values(dict(zip(keys, whole, strict=True)))

    # ---- merging ----

    def due(self, segments: Sequence[Segment], *, first: bool) -> int | None:
        """From which of these segments on to merge; see `due`."""
        found = broods(segments)
        sizes = [sum(map(len, run)) for run in found]
        at = due(sizes, first=first, least=max(1, self.chunk >> 8), fanout=self.fanout)
        if at is None and found and len(found[-1]) > self.fanout and sizes[-1] <= self.chunk:
            at = len(found) - 1
        return None if at is None else sum(map(len, found[:at]))

    def merge(
        self, segments: Sequence[Segment], *, last: bool, low: int = 0, high: int = END
    ) -> Iterator[tuple[int, EntryBatch | None]]:
        """Merge some of the segments, step by step."""
        types, chunk = self._types, self.chunk
        return merged(segments, last=last, types=types, chunk=chunk, low=low, high=high)

    def merged(
        self, segments: Sequence[Segment], *, last: bool, low: int = 0, high: int = END
    ) -> Iterator[EntryBatch]:
        """The chunks that merging gives."""
        if len(segments) == 1 and not (last and self.layout == VALUE):
            return segments[0].parts(low, high)
        steps = self.merge(segments, last=last, low=low, high=high) if segments else ()
        return (part for _, part in steps if part is not None)

    def __len__(self) -> int:
        """How many entries there are; rows that were taken back count until they are merged."""
        return sum(map(len, self.segments)) + sum(map(len, self.staged))

    def __repr__(self) -> str:
        return f"<Spine: {self.layout}, {len(self)} entries, {len(self.segments)} segments>"


def _gather_rows(
    found: dict[Any, Any], keys: list[Any], stored: list[Any], rows: list[Any], weights: list[int]
) -> None:
    """Add rows to what was found in older segments, where the stored key is the one asked for."""
    for key, known, row, weight in zip(keys, stored, rows, weights, strict=True):
        if key == known or same(key, known):
            group = found.get(key)
            if group is None:
                found[key] = {row: weight}
            elif total := group.get(row, 0) + weight:
                group[row] = total
            else:
                del group[row]


def _gather_values(
    found: dict[Any, Any], keys: list[Any], stored: list[Any], rows: list[Any], lives: list[int]
) -> None:
    """Put values over what was found in older segments."""
    for key, known, value, live in zip(keys, stored, rows, lives, strict=True):
        if key == known or same(key, known):
            found[key] = value if live else ABSENT


def due(
    sizes: Sequence[int], *, first: bool = True, least: int = 256, fanout: int = FANOUT
) -> int | None:
    """Of segments with these sizes, the oldest first: from which one on to merge, or None. `first`
    says that there are no older ones; all sizes below `least` are the same.

    >>> due([1000, 30, 20, 10]), due([1000, 30, 20, 10, 40]), due([100, 60, 50])
    (None, 1, 0)
    >>> due([1000, 30, 20, 10, 40], fanout=8)
    """
    if first and len(sizes) > 1 and sum(sizes[1:]) >= sizes[0]:
        return 0
    counts: dict[int, int] = {}
    begin: int | None = None
    top, bits = 0, fanout.bit_length() - 1
    for i in range(len(sizes) - 1, -1, -1):
        level = max(0, (sizes[i] // least).bit_length() // bits)
        if level < top:
            continue
        top = level
        counts[level] = counts.get(level, 0) + 1
        if counts[level] >= fanout:
            begin = i
            break
    return begin


_EMPTY = SegmentForm(BAG, ColumnShape("one", ("none",)), ColumnShape("one", ("none",)))
__all__ = ["ABSENT", "CHUNK", "FANOUT", "Spine", "due"]
