"""Columns of texts in batches of Arrow's, whose words are made when they are asked for.

The words of texts are their numbers, which Python's dict of all texts gives. Most fields have few
different texts, again and again: the bytes of these are kept beside their numbers, in a hash table
that a loop looks up (`SeenTexts`), and Python is asked for new texts alone. A field that has had
too many is looked up by Python each time; what is computed of its texts need not number them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ebbflow.kernel.addresses import bytes_at, halves_at
from ebbflow.kernel.arrow_words import arrow_words
from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.hashing import EMPTY, Words
from ebbflow.kernel.pending import Pending, TextMemory
from ebbflow.kernel.words import NULL, NumberedTexts, WordForm

MOST = 1 << 10
"""How many texts of a field are kept, at most."""
MOST_BYTES = 1 << 16
FEW = 8
"""So many texts are taken one by one."""
_ALL = np.empty(0, np.int64)


class SeenTexts:
    """The texts of a field that were seen, with their numbers: few, or `many`, and then none."""

    __slots__ = ("kept", "many", "places", "spans", "state")

    def __init__(self) -> None:
        self.many = False
        self.places = np.full((2 * MOST, 2), EMPTY, np.int64)
        """The slot of a text, or EMPTY, and its hash."""
        self.spans = np.empty((MOST, 3), np.int64)
        """Of each slot: where its bytes begin and end, and its number."""
        self.kept = np.empty(MOST_BYTES, np.uint8)
        self.state = np.zeros(2, np.int64)
        """How many slots and how many bytes there are."""

    def be_many(self) -> None:
        """Keep none of them any more."""
        self.many = True
        self.places, self.spans, self.kept = self.places[:0], self.spans[:0], self.kept[:0]


class TextColumn(Pending):
    """A column of texts of a batch, whose memory is at `where`: the address of the bits that say
    which texts are there, or 0; of the places where texts begin; and of their bytes.

    It is called for the words of all its rows, which are made once.
    """

    __slots__ = ("at", "batch", "form", "seen", "texts", "where")

    def __init__(
        self, form: WordForm, batch: Any, at: int, where: Words, texts: NumberedTexts, name: Any
    ) -> None:
        self.form, self.batch, self.at, self.where, self.texts = form, batch, at, where, texts
        self.made = None
        seen = texts.seen.get(name)
        if seen is None:
            seen = texts.seen[name] = SeenTexts()
        self.seen: SeenTexts = seen

    def __call__(self) -> Words:
        if self.made is None:
            self.made = self._words(_ALL, self.batch.num_rows)
        return self.made

    def chosen(self, rows: Any) -> Words:
        """The words of some rows."""
        if self.made is not None or getattr(rows, "dtype", None) != np.int64:
            return self()[rows]
        return self._words(rows, len(rows)) if len(rows) else np.empty(0, np.int64)

    def unnumbered(self) -> tuple[list[str], Any] | None:
        if self.made is not None or not self.seen.many or self.where[0]:
            return None
        return self.batch.column(self.at).to_pylist(), None

    def in_memory(self) -> list[TextMemory] | None:
        if self.made is not None or self.where[0]:
            return None
        _, starts, texts, _ = self.where.tolist()
        batch, at = self.batch, self.at
        return [TextMemory(starts, texts, batch.num_rows, None, lambda: batch.column(at))]

    def _words(self, rows: Words, count: int) -> Words:
        seen = self.seen
        if seen.many:
            return self._numbered(rows)
        out, missed = np.empty(count, np.int64), np.empty(count, np.int64)
        some = _look_up(self.where, rows, seen.places, seen.spans, seen.kept, out, missed)
        if some:
            at = missed[:some]
            new = rows[at] if len(rows) else at
            out[at] = numbers = self._numbered(rows if some == count else new)
            if not _remember(
                self.where, new, numbers, seen.places, seen.spans, seen.kept, seen.state
            ):
                seen.be_many()
        return out

    def _numbered(self, rows: Words) -> Words:
        """The words of some rows, or of all, by Python's dict."""
        column = self.batch.column(self.at)
        if 0 < len(rows) <= FEW:
            texts = [column[at].as_py() for at in rows.tolist()]
            if None not in texts:
                return np.array(self.texts.words(texts), np.int64)
        if len(rows):
            column = column.take(pa.array(rows))
        if self.where[0]:
            return arrow_words(self.form, column, self.texts)
        return np.array(self.texts.words(column.to_pylist()), np.int64)


@inlined
def _eight(texts: Words, at: Any) -> Any:
    """Eight bytes as a word."""
    h = np.uint64(0)
    for j in range(8):
        h |= np.uint64(texts[at + j]) << np.uint64(8 * j)
    return h


@inlined
def _hashed(texts: Words, begin: Any, end: Any) -> Any:
    h = np.uint64(end - begin) * np.uint64(0x9E3779B97F4A7C15)
    at = begin
    while at + 8 <= end:
        h = (h ^ _eight(texts, at)) * np.uint64(0xFF51AFD7ED558CCD)
        h = h ^ (h >> np.uint64(32))
        at += 8
    rest = np.uint64(0)
    while at < end:
        rest = (rest << np.uint64(8)) | np.uint64(texts[at])
        at += 1
    h = (h ^ rest) * np.uint64(0xFF51AFD7ED558CCD)
    return np.int64(h ^ (h >> np.uint64(32)))


@inlined
def _same(texts: Words, begin: Any, end: Any, kept: Words, start: Any, stop: Any) -> bool:
    if end - begin != stop - start:
        return False
    at = begin
    while at + 8 <= end:
        if _eight(texts, at) != _eight(kept, start + at - begin):
            return False
        at += 8
    while at < end:
        if texts[at] != kept[start + at - begin]:
            return False
        at += 1
    return True


@inlined
def _place(
    texts: Words, begin: Any, end: Any, h: Any, places: Words, spans: Words, kept: Words
) -> Any:
    """The place of a text with this hash, or the empty one where it would be."""
    mask = len(places) - 1
    p = h & mask
    while places[p, 0] != -1:
        slot = places[p, 0]
        if places[p, 1] == h and _same(texts, begin, end, kept, spans[slot, 0], spans[slot, 1]):
            break
        p = (p + 1) & mask
    return p


@compiled
def _look_up(
    where: Words, rows: Words, places: Words, spans: Words, kept: Words, out: Words, missed: Words
) -> int:
    """Find the numbers of the texts of some rows, or of all; gives how many were missed, which are
    neither None nor known."""
    count = 0
    every = len(rows) == 0
    last = 0
    for i in range(len(out)):
        last = max(last, i if every else rows[i])
    starts = halves_at(where[1], last + 2)
    texts = bytes_at(where[2], np.int64(starts[last + 1]))
    present = bytes_at(where[0], (where[3] + last + 8) >> 3)
    for i in range(len(out)):
        row = i if every else rows[i]
        if where[0] != 0:
            bit = where[3] + row
            if not (present[bit >> 3] >> (bit & 7)) & 1:
                out[i] = NULL
                continue
        begin, end = np.int64(starts[row]), np.int64(starts[row + 1])
        h = _hashed(texts, begin, end)
        slot = places[_place(texts, begin, end, h, places, spans, kept), 0]
        if slot == -1:
            missed[count] = i
            count += 1
        else:
            out[i] = spans[slot, 2]
    return count


@compiled
def _remember(
    where: Words, rows: Words, numbers: Words, places: Words, spans: Words, kept: Words,
    state: Words,
) -> bool:  # fmt: skip
    """Keep the texts of some rows with their numbers; says whether there is room for all."""
    for i in range(len(rows)):
        starts = halves_at(where[1], rows[i] + 2)
        begin, end = np.int64(starts[rows[i]]), np.int64(starts[rows[i] + 1])
        texts = bytes_at(where[2], end)
        h = _hashed(texts, begin, end)
        p = _place(texts, begin, end, h, places, spans, kept)
        if places[p, 0] != -1:
            continue
        slot, start = state[0], state[1]
        if slot == len(spans) or start + end - begin > len(kept):
            return False
        for j in range(end - begin):
            kept[start + j] = texts[begin + j]
        spans[slot, 0], spans[slot, 1], spans[slot, 2] = start, start + end - begin, numbers[i]
        places[p, 0], places[p, 1] = slot, h
        state[0], state[1] = slot + 1, start + end - begin
    return True
