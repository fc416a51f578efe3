"""Parts: entries of state in columns, which is what segments are made of and what merging works on.

There are two *layouts*:

    bag      key, row, weight     the entries of a row add up over all segments; 0 means not there
    value    key, value or none   the newest entry of a key counts; none means it was taken away

The columns are `hash`, then `row_hash` and `weight` (bag) or `live` (value), then those of the
keys, `k0`, `k1`, … and those of the rows or values, `r0`, `r1`, …; `SegmentForm` says
how each of them is encoded.

Three things are not written in full. Weights are nearly always 1, so they are written as how many
entries in a row have which weight (an Arrow run-end encoded column). Keys are often fields of their
rows; where every column of the keys is one of the rows as well, only the rows are written, and the
form says which of their columns the keys are *within*. And a hash can be computed again from its
key: of a large segment only so much of it is written as it takes to find an entry in its chunk, 32
bits (a *short* form).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ebbflow.errors import StateError
from ebbflow.record import taken_apart
from ebbflow.state.spine.columns import PICKLED, PLAIN, ColumnShape, decode, numbers_of
from ebbflow.state.spine.columns_hash import column_hashes, made_from_columns
from ebbflow.state.spine.hashing import Words

BAG, VALUE = "bag", "value"
WEIGHT = pa.run_end_encoded(pa.int32(), pa.int64())
LIVE = pa.bool_()
MANY = 1_024
"""From so many entries on it is worth while to write less of their hashes."""
_INEXACT = ("float", PICKLED, PLAIN)
"""Kinds of which equal columns may hold different values: 0.0 and -0.0."""


@dataclass(frozen=True)
class SegmentForm:
    """The columns of a segment."""

    layout: str
    key: ColumnShape
    row: ColumnShape
    within: tuple[tuple[int, ...], ...] = ()
    """For each column of the keys, the columns of the rows that are the same, if all have some."""
    short: bool = False
    """Whether only 32 bits of a hash are written."""

    def stored(self, entries: int) -> SegmentForm:
        """The form in which a segment is written that begins with so many entries: short, where
        there are many, and hashes of such keys are made from columns."""
        short = entries >= MANY and made_from_columns(self.key)
        return self if short == self.short else replace(self, short=short)

    def distrusted(self) -> SegmentForm:
        """The same for a reader who loads pickles of plain values only."""
        key, row = (shape.but(PICKLED, PLAIN) for shape in (self.key, self.row))
        return replace(self, key=key, row=row)

    def schema(self) -> Any:
        """As Arrow says it."""
        words = [("hash", pa.uint32() if self.short else pa.uint64())]
        if self.layout == BAG:
            words += [("row_hash", pa.uint32()), ("weight", WEIGHT)]
        else:
            words += [("live", LIVE)]
        types = [] if self.within else self.key.types()
        keys = [(f"k{i}", encoding) for i, encoding in enumerate(types)]
        rows = [(f"r{i}", encoding) for i, encoding in enumerate(self.row.types())]
        return pa.schema([*words, *keys, *rows])

    def text(self) -> dict[str, Any]:
        """As the directory says it; `SegmentForm.read` is the way back."""
        key, row = (shape.but(PLAIN, PICKLED) for shape in (self.key, self.row))
        return {
            "layout": self.layout,
            "key": [key.how, *key.encodings],
            "row": [row.how, *row.encodings],
            "within": self.within,
            "short": self.short,
        }

    @staticmethod
    def read(text: Mapping[str, Any]) -> SegmentForm:
        """The form of which this is the text.

        >>> key, row = ColumnShape("one", ("int",)), ColumnShape("tuple", ("text", "float"))
        >>> form = SegmentForm("bag", key, row)
        >>> SegmentForm.read(form.text()) == form
        True
        """
        (key, *keys), (row, *rows) = text["key"], text["row"]
        within = tuple(map(tuple, text["within"]))
        key, row = ColumnShape(key, tuple(keys)), ColumnShape(row, tuple(rows))
        return SegmentForm(text["layout"], key, row, within, text.get("short", False))

    def keys(self, rows: Sequence[Any]) -> list[Any]:
        """The columns of the keys, when they are within those of the rows."""
        return [rows[columns[0]] for columns in self.within]


@dataclass(frozen=True)
class EntryBatch:
    """Some entries in columns: what segments are made of, and what merging works on.

    `words` are the hashes, in a short form those 32 bits that are written of them; `second` is the
    row hash in a bag, of 32 bits, and None otherwise; `count` is the weight in a bag, and 1 or 0
    for whether there is a value otherwise.
    """

    form: SegmentForm
    words: Words
    second: Words | None
    count: Any
    keys: list[Any]
    rows: list[Any]

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def hash(self) -> Words:
        """The hashes of the keys, of 64 bits."""
        return column_hashes(self.form.key, self.keys) if self.form.short else self.words

    def hash_at(self, places: Any) -> Words:
        """The same of some entries."""
        if not self.form.short:
            return self.words[places]
        return column_hashes(self.form.key, taken(self.keys, pa.array(places)))

    def numbers(self, column: int, *, of_rows: bool) -> Any:
        """A column of numbers of the rows, or of the keys, as NumPy has it; None where some are
        not there. It is looked at once: chunks of large segments are asked again in every epoch."""
        found = self._numbers.get((column, of_rows))
        if found is None:
            array = (self.rows if of_rows else self.keys)[column]
            found = self._numbers[column, of_rows] = [
                None if array.null_count else numbers_of(array)
            ]
        return found[0]

    @cached_property
    def _numbers(self) -> dict[tuple[int, bool], list[Any]]:
        return {}

    def whole(self) -> EntryBatch:
        """The same with hashes of 64 bits."""
        if not self.form.short:
            return self
        return replace(self, form=replace(self.form, short=False), words=self.hash)

    @property
    def texts(self) -> int:
        """How many bytes its texts are, where they begin among them; only those of 32 bits."""
        return sum(column.nbytes for column in self._encoded("text", "bytes"))

    def check_plain(self) -> None:
        """Refuse pickles that are not made of plain values."""
        for column in self._encoded(PICKLED):
            try:
                decode(ColumnShape("one", (PLAIN,)), [column])
            except StateError as error:
                raise StateError(
                    "a value is not plain, and state that is opened with unpickle=False holds no "
                    "others",
                    cause=error,
                    remedy="keys, rows and results made of plain values, or unpickle=True",
                ) from error

    def _encoded(self, *encodings: str) -> list[Any]:
        """The columns that are encoded in one of these ways."""
        known = (*self.form.key.encodings, *self.form.row.encodings)
        pairs = zip(known, (*self.keys, *self.rows), strict=True)
        return [column for encoding, column in pairs if encoding in encodings]

    def pick(self, at: Any) -> EntryBatch:
        """The entries at these places: an array of places, or a slice."""
        if self.form.short:
            return self.whole().pick(at)
        second = None if self.second is None else self.second[at]
        if isinstance(at, slice):
            start, stop, _ = at.indices(len(self))
            rows = [column.slice(start, stop - start) for column in self.rows]
            keys = self.form.keys(rows) or [c.slice(start, stop - start) for c in self.keys]
        else:
            places = pa.array(at)
            rows = taken(self.rows, places)
            keys = self.form.keys(rows) or taken(self.keys, places)
        return replace(
            self, words=self.words[at], second=second, count=self.count[at], keys=keys, rows=rows
        )

    def batch(self) -> Any:
        """As an Arrow record batch."""
        keys = [] if self.form.within else self.keys
        if self.second is None:
            words = [pa.array(self.words), pa.array(self.count != 0).cast(LIVE)]
        else:
            words = [pa.array(self.words), pa.array(self.second), _in_runs(self.count)]
        columns = [*words, *keys, *self.rows]
        return pa.RecordBatch.from_arrays(columns, schema=self.form.schema())

    @staticmethod
    def of(form: SegmentForm, batch: Any) -> EntryBatch:
        """The way back; hardly anything is copied."""
        columns = batch.columns
        hash = numbers_of(columns[0])
        second = None
        if form.layout == BAG:
            second, count = numbers_of(columns[1]), _weights(columns[2])
            columns = columns[3:]
        else:
            count, columns = _lives(columns[1]), columns[2:]
        width = 0 if form.within else len(form.key.encodings)
        keys, rows = columns[:width], columns[width:]
        return EntryBatch(form, hash, second, count, form.keys(rows) or keys, rows)


def _in_runs(weights: Any) -> Any:
    """Weights as an Arrow column."""
    ends = np.append(np.flatnonzero(weights[1:] != weights[:-1]) + 1, len(weights))
    each = pa.array(np.ascontiguousarray(weights[ends - 1]))
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends.astype(np.int32)), each)


def _weights(column: Any) -> Any:
    """The way back; where all are the same, they take no room."""
    ends, each = numbers_of(column.run_ends), numbers_of(column.values)
    if len(ends) == 1:
        return np.broadcast_to(each[0], len(column))
    return np.repeat(each, np.diff(ends, prepend=0))


def _lives(column: Any) -> Any:
    """Which entries have a value, as ones and zeros. (Up to format 3 they were written so.)"""
    if pa.types.is_uint8(column.type):
        return numbers_of(column)
    if column.true_count == len(column):
        return np.broadcast_to(np.uint8(1), len(column))
    return column.to_numpy(zero_copy_only=False).view(np.uint8)


def within(part: EntryBatch) -> EntryBatch:
    """The same part, its form saying which columns of the rows the keys are."""
    form, found = part.form, []
    encodings = list(enumerate(form.row.encodings))
    for encoding, key in zip(form.key.encodings, part.keys, strict=True):
        alike = [i for i, other in encodings if encoding == other and encoding not in _INEXACT]
        found.append(tuple(i for i in alike if key is part.rows[i] or key.equals(part.rows[i])))
        if not found[-1]:
            return part
    return replace(part, form=replace(form, within=tuple(found)))


def taken(columns: list[Any], places: Any) -> list[Any]:
    """The values of columns at these places, which are known to be there."""
    return [pc.take(column, places, boundscheck=False) for column in columns]


def values(
    parts: list[EntryBatch], types: tuple[Any, Any], at: list[Any] | None = None
) -> tuple[list[Any], list[Any]]:
    """The keys and the rows of some entries as Python objects: of all entries of these parts, which
    have one form, or of those `at` some places in each.
    """
    form = parts[0].form
    rows = decode(form.row, list(zip(*(p.rows for p in parts), strict=True)), types[1], at)
    if not form.within or form.key.how == "record":
        keys = decode(form.key, list(zip(*(p.keys for p in parts), strict=True)), types[0], at)
        return keys, rows
    if form.row.how == "one":
        lists = [rows] * len(form.within)
    else:
        apart = (
            rows
            if not rows or isinstance(rows[0], tuple)
            else [*map(taken_apart(type(rows[0])), rows)]
        )
        lists = [list(map(itemgetter(columns[0]), apart)) for columns in form.within]
    return lists[0] if form.key.how == "one" else list(zip(*lists, strict=True)), rows
