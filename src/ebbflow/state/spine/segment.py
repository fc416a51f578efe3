"""Segments: sorted, immutable pieces of state.

A segment holds what some epochs did to the state of one operator. It is sorted by the hash of the
key, so that many keys are looked up together by one binary search per chunk, and only the rows that
match become Python objects.

An *entry* is one line of a segment. A segment is an Arrow IPC file of one or more *chunks* (record
batches; `part` says which columns they have), followed by a *directory*: where each chunk is, its
first and last hash, its checksum. Entries with one hash (in a bag: with one hash and row hash) are
never in two chunks.

Where the form is short, a chunk has of each hash how far it is from the first, without as many low
bits as it takes for the last to fit in 32. Chunks are small beside that, so entries with different
hashes hardly ever have the same; where they do, it is as where hashes are equal and keys are not.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ebbflow.errors import Damaged
from ebbflow.state.spine.checked import Checked
from ebbflow.state.spine.columns_hash import column_hashes
from ebbflow.state.spine.files import FileWriter
from ebbflow.state.spine.hashing import Words
from ebbflow.state.spine.mapped import need, unchanged
from ebbflow.state.spine.part import EntryBatch, SegmentForm

CHUNK = 1 << 16
"""Entries per chunk, more or less: what is read, checked and merged in one piece."""

SHORT = 32
"""Entries of one key, up to how many they are looked at one by one."""
SHARED: list[Checked] = []
"""What other processes have checked, in a process that shares that."""
END = 1 << 64
"""Where hashes end."""


@dataclass(frozen=True)
class Ref:
    """Where a segment is: the manifest has one for each. `crc` is that of the directory."""

    file: str
    offset: int
    length: int
    directory: int
    crc: int
    entries: int


@dataclass(frozen=True)
class Entry:
    """What the directory says of one chunk."""

    offset: int
    length: int
    crc: int
    entries: int
    first: int
    last: int

    def short(self, hashes: Words) -> Words:
        """What a chunk in a short form has of hashes, none of which is outside of it."""
        spare = max(0, (self.last - self.first).bit_length() - 32)
        return ((hashes - np.uint64(self.first)) >> np.uint64(spare)).astype(np.uint32)


class Segment:
    """A segment in memory or on disk; on disk, chunks are checked when they are first touched."""

    __slots__ = ("_blob", "_loaded", "_reader", "chunks", "firsts", "form", "lasts",
                 "length", "ref")  # fmt: skip

    def __init__(
        self, form: SegmentForm, chunks: list[Entry], length: int, ref: Ref | None
    ) -> None:
        self.form = form
        self.chunks = chunks
        self.length = length
        self.ref = ref
        self.firsts = np.array([chunk.first for chunk in chunks], np.uint64)
        self.lasts = np.array([chunk.last for chunk in chunks], np.uint64)
        self._loaded: dict[int, EntryBatch] = {}
        self._blob: Any = None
        self._reader: Any = None

    @classmethod
    def held(cls, parts: list[EntryBatch]) -> Segment:
        """A segment in memory."""
        chunks = [
            Entry(0, 0, 0, len(part), int(part.hash[0]), int(part.hash[-1])) for part in parts
        ]
        segment = cls(parts[0].form, chunks, sum(map(len, parts)), None)
        segment._loaded = dict(enumerate(parts))
        return segment

    @classmethod
    def opened(cls, ref: Ref, file: memoryview) -> Segment:
        """A segment on disk. Its directory and the ends of its Arrow file are checked here."""
        blob = file[ref.offset : ref.offset + ref.length]
        need(file, ref.offset + ref.length - ref.directory, ref.offset + ref.length)
        words = blob[ref.length - ref.directory :]
        if len(blob) != ref.length or zlib.crc32(words) != ref.crc:
            raise damaged(ref, "its directory")
        said = json.loads(bytes(words))
        chunks = [Entry(*entry) for entry in said["chunks"]]
        segment = cls(SegmentForm.read(said["form"]), chunks, ref.entries, ref)
        arrow = ref.length - ref.directory
        need(file, ref.offset + chunks[-1].offset + chunks[-1].length, ref.offset + arrow)
        if zlib.crc32(blob[chunks[-1].offset + chunks[-1].length : arrow]) != said["footer"]:
            raise damaged(ref, "the footer of its Arrow file")
        segment._blob = blob
        segment._reader = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(blob[:arrow])))
        return segment

    def __len__(self) -> int:
        return self.length

    @property
    def unchanged(self) -> bool:
        """Whether its file is known to be what it was when the segment was opened."""
        return self._blob is not None and unchanged(self._blob) is not None

    @property
    def heaviest(self) -> int:
        """About how many bytes the largest chunk is, and not fewer than its texts are."""
        if self.ref is None:
            return max(part.texts for part in self._loaded.values())
        return max(chunk.length for chunk in self.chunks)

    def part(self, i: int) -> EntryBatch:
        """The `i`-th chunk."""
        found = self._loaded.get(i)
        if found is None:
            self._check(i)
            found = self._loaded[i] = EntryBatch.of(self.form, self._reader.get_batch(i))
        return found

    def _check(self, i: int) -> None:
        """An error unless the `i`-th chunk is what was written."""
        chunk, mark = self.chunks[i], None
        if self.ref is not None:
            begin = self.ref.offset + chunk.offset
            need(self._blob, begin, begin + chunk.length)
        file = unchanged(self._blob) if SHARED else None
        if file is not None:
            assert self.ref is not None
            mark = SHARED[0].at((file, self.ref.offset, self.ref.crc, i, chunk.crc))
            if mark in SHARED[0]:
                return
        if zlib.crc32(self._blob[chunk.offset : chunk.offset + chunk.length]) != chunk.crc:
            raise damaged(self.ref, f"chunk {i}")
        if mark is not None:
            SHARED[0].add(mark)

    def parts(self, low: int = 0, high: int = END) -> Iterator[EntryBatch]:
        """Every chunk in order, none of them kept in memory; of chunks that have entries outside
        of `low <= hash < high`, the part inside. Other chunks are not read.
        """
        for i, chunk in enumerate(self.chunks):
            if chunk.last < low or chunk.first >= high:
                continue
            known = i in self._loaded
            part = self.part(i)
            begin, end = 0, len(part)
            if chunk.first < low:
                begin = int(part.hash.searchsorted(np.uint64(low)))
            if chunk.last >= high:
                end = int(part.hash.searchsorted(np.uint64(high)))
            if begin < end:
                yield part if end - begin == len(part) else part.pick(slice(begin, end))
            if not known:
                self._loaded.pop(i, None)

    def find(self, wanted: Words) -> Iterator[tuple[Any, EntryBatch, Any]]:
        """The entries that have one of the hashes `wanted`, which are sorted: for each chunk that
        has some, the places in `wanted`, the chunk, and the places in it.
        """
        lows = wanted.searchsorted(self.firsts, "left").tolist()
        highs = wanted.searchsorted(self.lasts, "right").tolist()
        for i, (low, high) in enumerate(zip(lows, highs, strict=True)):
            if low >= high:
                continue
            part, asked = self.part(i), wanted[low:high]
            hash = part.words
            if part.form.short:
                asked = self.chunks[i].short(asked)
            begin = hash.searchsorted(asked)
            there = (hash.take(begin, mode="clip") == asked).nonzero()[0]
            if not len(there):
                continue
            if len(there) < len(asked):
                begin, asked = begin[there], asked[there]
            owners = there + low
            if (hash.take(begin + 1, mode="clip") == asked).any():  # perhaps more than one
                count = hash.searchsorted(asked, "right") - begin
                owners = np.repeat(owners, count)
                ends = np.cumsum(count)
                begin = np.arange(ends[-1]) + np.repeat(begin - ends + count, count)
            yield owners, part, begin

    def find_rows(self, keys: Words, rows: Words) -> Iterator[tuple[EntryBatch, Any, Any]]:
        """The entries that have one of these pairs of hashes, which are sorted: for each chunk that
        has some, the chunk, the places in it, and the places among the pairs.
        """
        lows = keys.searchsorted(self.firsts, "left").tolist()
        highs = keys.searchsorted(self.lasts, "right").tolist()
        for i, (low, high) in enumerate(zip(lows, highs, strict=True)):
            if low >= high:
                continue
            part = self.part(i)
            assert part.second is not None
            asked = keys[low:high]
            near = self.chunks[i].short(asked) if part.form.short else asked
            begin = part.words.searchsorted(near, "left")
            end = part.words.searchsorted(near, "right")
            long = np.flatnonzero(end - begin > SHORT)
            if part.form.short and len(long):
                _apart(part, begin, end, asked, long)
            places, owners = _matching(part.second, begin, end, rows[low:high])
            if len(places):
                yield part, places, owners + low

    def check(self) -> None:
        """Read everything and compare the checksums."""
        for _ in self.parts():
            pass


def _apart(part: EntryBatch, begin: Any, end: Any, asked: Words, long: Any) -> None:
    """Of the `long` stretches from `begin` to before `end` of a short form, leave what has the hash
    that is asked for: row hashes are in order only there."""
    ends = (pc.take(key, pa.array(np.append(begin[long], end[long] - 1))) for key in part.keys)
    found = column_hashes(part.form.key, [*ends]).reshape(2, -1) != asked[long]
    for i in long[found.any(axis=0)].tolist():
        keys = [key.slice(begin[i], end[i] - begin[i]) for key in part.keys]
        hash = column_hashes(part.form.key, keys)
        end[i] = begin[i] + hash.searchsorted(asked[i], "right")
        begin[i] += hash.searchsorted(asked[i], "left")


def _matching(second: Words, begin: Any, end: Any, rows: Words) -> tuple[Any, Any]:
    """The places from `begin` to before `end` that have one of the row hashes, each its own, and
    which one that is. Short stretches are gone through all at once, long ones are searched."""
    length = end - begin
    long = np.flatnonzero(length > SHORT)
    if len(long):
        length = np.where(length > SHORT, 0, length)
    owners = np.repeat(np.arange(len(length)), length)
    places = np.arange(len(owners)) + np.repeat(begin - length.cumsum() + length, length)
    hit = second[places] == rows[owners]
    places, owners = places[hit], owners[hit]
    if not len(long):
        return places, owners
    found = [places], [owners]
    for i in long.tolist():
        inside = second[begin[i] : end[i]]
        first, last = (int(inside.searchsorted(rows[i], side)) for side in ("left", "right"))
        found[0].append(np.arange(begin[i] + first, begin[i] + last))
        found[1].append(np.full(last - first, i))
    return np.concatenate(found[0]), np.concatenate(found[1])


def damaged(ref: Ref | None, what: str) -> Damaged:
    """The error for a segment that is not what was written."""
    assert ref is not None
    return Damaged(
        f"{ref.file} is damaged: {what} is not what was written",
        segment=f"{ref.length} bytes at {ref.offset}",
        remedy="restore the file from a copy, or open an older epoch that is retained",
    )


class ChecksumWriter:
    """A file being written, seen from a segment: counts bytes and sums what passes."""

    closed = False

    def __init__(self, write: Callable[[Any], None], at: int = 0) -> None:
        self._write = write
        self.at = at
        self.crc = 0

    def write(self, data: Any) -> int:
        self._write(data)
        self.crc = zlib.crc32(data, self.crc)
        self.at += len(data)
        return len(data)

    def mark(self) -> int:
        """The checksum of what was written since the last mark."""
        found, self.crc = self.crc, 0
        return found

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


class SegmentWriter:
    """Writes a segment, chunk by chunk, at the end of a file that may hold others; its first chunk,
    which says what it is like, is `add`ed as all others are."""

    def __init__(self, part: EntryBatch, writer: FileWriter) -> None:
        self.form = form = part.form.stored(len(part))
        self._start = writer.at
        self._sink = ChecksumWriter(writer.write)
        self._out = pa.PythonFile(self._sink, mode="w")
        self._arrow = pa.ipc.new_file(self._out, form.schema())
        self._chunks: list[Entry] = []
        self._file = writer.name

    def add(self, part: EntryBatch) -> None:
        """Write one chunk."""
        hash, at = part.hash, self._sink.at
        entry = Entry(at, 0, 0, len(part), int(hash[0]), int(hash[-1]))
        words = entry.short(hash) if self.form.short else hash
        self._arrow.write_batch(replace(part, form=self.form, words=words).batch())
        size = self._sink.at - at
        self._chunks.append(replace(entry, length=size, crc=self._sink.mark()))

    def finish(self) -> Ref:
        """Write the rest, and say where the segment is."""
        self._arrow.close()
        footer = self._sink.mark()
        arrow = self._sink.at
        chunks = [list(vars(chunk).values()) for chunk in self._chunks]
        said = {"form": self.form.text(), "chunks": chunks, "footer": footer}
        self._sink.write(json.dumps(said, separators=(",", ":")).encode())
        entries = sum(chunk.entries for chunk in self._chunks)
        length = self._sink.at
        return Ref(self._file, self._start, length, length - arrow, self._sink.mark(), entries)
