"""Manifests: what the state of an epoch consists of.

An epoch is one file: the segments it adds, then its *manifest*, then a *trailer* of 24 bytes.

    segments     each starts at a multiple of 64 bytes
    manifest     JSON: the epoch, and for each spine the list of its segments, wherever they are
    trailer      checksum, format version and length of the manifest, then the word `EBBFLOW\\n`

The file is written under a temporary name, flushed, and given its own; so it is complete or it is
not there, and the newest one says what the state is. Its name is the epoch and a *revision*: when
the state of an epoch is merged without a new epoch, there is one more manifest for it.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from secrets import token_hex
from typing import Any

from ebbflow.errors import Damaged, StateError
from ebbflow.state.spine.files import Files, FileWriter
from ebbflow.state.spine.mapped import need
from ebbflow.state.spine.segment import Ref

FORMAT, READ = 4, (3, 4)
"""The version of the format on disk that is written, and those that are read."""
TEMPORARY = ".tmp"
WITNESS = "newest"
_TRAILER = struct.Struct("<IIQ8s")
_MAGIC = b"EBBFLOW\n"
_NAME = re.compile(r"epoch-(\d{12,})-(\d{4,})")
_PIECE = re.compile(r"part-(\d{12,})-[0-9a-f-]+")
_OWN = re.compile(rf"(epoch|merge)-[\d-]+(\.tmp)?|{_PIECE.pattern}")
_EPOCH = re.compile(r"(?:epoch|merge|part)-(\d{12,})-")
_ALIGN = 64


@dataclass(frozen=True)
class Listed:
    """One spine as a manifest has it."""

    operator: str
    bucket: int
    layout: str
    key: str
    row: str
    segments: tuple[Ref, ...]


@dataclass(frozen=True)
class Manifest:
    """The state at the end of an epoch.

    `sizes` are the lengths of the other files that hold its segments. `retained` are the manifests
    of older epochs that can still be opened, each with the files it needs.
    """

    epoch: int
    revision: int
    spines: tuple[Listed, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    retained: Mapping[str, list[str]] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its file.

        >>> Manifest(7, 0).name
        'epoch-000000000007-0000'
        """
        return f"epoch-{self.epoch:012d}-{self.revision:04d}"

    def files(self) -> set[str]:
        """Every file it needs."""
        return {self.name, *(ref.file for spine in self.spines for ref in spine.segments)}

    def kept(self, epoch: int, count: int, also: Set[int] = frozenset()) -> dict[str, list[str]]:
        """What the manifest of `epoch`, which comes after this one, retains: `count` older ones,
        and of those before the ones of some epochs."""
        known = {**self.retained, self.name: sorted(self.files())} if self.epoch >= 0 else {}
        numbers = {name: epochs([name])[0][0] for name in sorted(known)}
        older = [name for name, number in numbers.items() if number != epoch]
        last = set(older[len(older) - min(count, len(older)) :])
        return {name: known[name] for name in older if name in last or numbers[name] in also}

    def write(self, writer: FileWriter) -> None:
        """Put it at the end of its file."""
        text = json.dumps(
            {
                "epoch": self.epoch,
                "revision": self.revision,
                "spines": [_row(spine) for spine in self.spines],
                "sizes": self.sizes,
                "retained": self.retained,
                "notes": self.notes,
                "by": token_hex(8),
            },
            separators=(",", ":"),
        ).encode()
        writer.write(text)
        writer.write(_TRAILER.pack(zlib.crc32(text), FORMAT, len(text), _MAGIC))


def _row(spine: Listed) -> list[Any]:
    *rest, segments = vars(spine).values()
    return [*rest, [[*vars(ref).values()] for ref in segments]]


def _listed(
    operator: str, bucket: int, layout: str, key: str, row: str, refs: list[list[Any]]
) -> Listed:
    return Listed(operator, bucket, layout, key, row, tuple(Ref(*ref) for ref in refs))


def read(files: Files, name: str) -> Manifest:
    """The manifest in a file, if it is whole and every file it needs has its length."""
    if files.size(name) is None:
        raise missing(name)
    whole = files.map_parts(name)
    if len(whole) < _TRAILER.size:
        raise torn(name, "it is too short")
    need(whole, len(whole) - _TRAILER.size, len(whole))
    crc, version, length, magic = _TRAILER.unpack(whole[-_TRAILER.size :])
    if magic != _MAGIC:
        raise torn(name, "it does not end as it should")
    if version not in READ:
        raise StateError(
            f"{name} was written in another format",
            format=version,
            known=FORMAT,
            remedy="the version of ebbflow that wrote it",
        )
    end = len(whole) - _TRAILER.size
    need(whole, max(0, end - length), end)
    text = whole[-_TRAILER.size - length : -_TRAILER.size]
    if length > end or zlib.crc32(text) != crc:
        raise torn(name, "its manifest is not what was written")
    said = json.loads(bytes(text))
    spines = tuple(_listed(*row) for row in said["spines"])
    found = Manifest(
        said["epoch"], said["revision"], spines, said["sizes"], said["retained"], said["notes"]
    )
    if found.name != name:
        raise torn(name, f"it is a copy of {found.name}")
    named = found.files().union(found.sizes, found.retained, *found.retained.values())
    for other in named - own(named):
        raise torn(name, f"it names {other!r}, which is no file of a state")
    for other, size in found.sizes.items():
        there = files.size(other)
        if there is None:
            raise missing(other)
        if there != size:
            raise torn(other, f"it has {there} bytes and should have {size}")
    return found


def epochs(names: Iterable[str]) -> list[tuple[int, int]]:
    """The epochs and revisions that have a file, in order.

    >>> epochs(["epoch-000000000007-0000", "merge-000000000007-0000"])
    [(7, 0)]
    """
    matches = map(_NAME.fullmatch, names)
    return sorted((int(match[1]), int(match[2])) for match in matches if match)


def piece_name(epoch: int, token: str) -> str:
    """The name of the file that one task adds to an epoch.

    >>> piece_name(7, "1f"), piece_epoch("part-000000000007-1f"), piece_epoch("newest")
    ('part-000000000007-1f', 7, None)
    """
    return f"part-{epoch:012d}-{token}"


@lru_cache(1 << 12)
def piece_epoch(name: str) -> int | None:
    """The epoch such a file was written for; None when it is another file."""
    match = _PIECE.fullmatch(name)
    return int(match[1]) if match else None


def epoch_of(name: str) -> int:
    """The epoch that a file was begun for; that of a merge is the first of who has written it.

    >>> epoch_of("merge-000000000007-0000-5-0001"), epoch_of("part-000000000012-1f")
    (7, 12)
    """
    match = _EPOCH.match(name)
    assert match is not None
    return int(match[1])


def own(names: Iterable[str]) -> set[str]:
    """The names that only this package gives; other files are left alone."""
    return {name for name in names if _OWN.fullmatch(name)}


def newest(files: Files) -> Manifest | None:
    """The manifest that says what the state is, or None where there is no state."""
    names = files.names()
    known = epochs(names)
    last = Manifest(*known[-1]).name if known else ""
    witness = files.read(WITNESS) or "" if WITNESS in names else ""
    if _NAME.fullmatch(witness) and epochs([witness])[0] > (known[-1] if known else (-1, 0)):
        raise missing(witness)
    if not known:
        stray = [name for name in names if name.startswith("merge-")]
        if witness or stray:
            raise missing(witness or "the newest epoch")
        return None
    if not files.exclusive:  # a list may be older than what is in it
        while (later := _after(files, last)) is not None:
            last = later
    try:
        return read(files, last)
    except (Damaged, FileNotFoundError):
        if files.exclusive or epochs(files.names())[-1:] <= epochs([last]):
            raise
    return newest(files)  # there is a newer one by now, and what only the older needed is gone


def _after(files: Files, name: str) -> str | None:
    """The manifest that follows one, if it is there."""
    ((epoch, revision),) = epochs([name])
    following = Manifest(epoch + 1, 0).name, Manifest(epoch, revision + 1).name
    return next((each for each in following if files.size(each) is not None), None)


def pad(writer: FileWriter) -> None:
    """Fill up to where a segment may begin."""
    writer.write(bytes(-writer.at % _ALIGN))


def missing(name: str) -> Damaged:
    """The error for a file that is not there."""
    return Damaged(f"{name} is missing", remedy="restore it from a copy")


def torn(name: str, what: str) -> Damaged:
    """The error for a file that is not what was written."""
    return Damaged(
        f"{name} is damaged: {what}",
        remedy="restore it from a copy, or open an older epoch that is retained",
    )
