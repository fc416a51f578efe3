"""Mapped files: files of this machine in memory, which know whether they are what they were."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any, BinaryIO

from ebbflow.state.spine.files import Files


class Mapped(mmap.mmap):
    """A file in memory that knows which file it was, and how it was, when it was mapped."""

    path: str
    identity: tuple[int, ...]

    def need(self, begin: int, end: int) -> None:
        """Have these bytes at hand; where a file is here as a whole, they are."""

    def now(self) -> tuple[int, ...]:
        """What its identity is now."""
        return _identity(self.path)


class MappedCopy(Mapped):
    """A copy that nobody writes to: it is what it was for as long as it is the same file."""

    def now(self) -> tuple[int, ...]:
        return _identity(self.path)[:3]


def map_file(
    path: str | Path, opened: BinaryIO | None = None, cls: type[Mapped] = Mapped
) -> memoryview:
    """The content of a file of this machine, which may be open already."""
    if opened is None:
        with open(path, "rb") as file:
            return map_file(path, file, cls)
    number = opened.fileno()
    if not os.fstat(number).st_size:
        return memoryview(b"")
    mapped, identity = cls(number, 0, access=mmap.ACCESS_READ), _identity(number)
    mapped.path = str(path)
    mapped.identity = identity if cls is Mapped else identity[:3]
    return memoryview(mapped)


def unchanged(view: memoryview) -> tuple[Any, ...] | None:
    """Which file a view is of, if that is still there and was not written to since it was mapped;
    None where that is not known."""
    mapped = view.obj
    if not isinstance(mapped, Mapped):
        return None
    try:
        same = mapped.now() == mapped.identity
    except OSError:
        return None
    return (mapped.path, *mapped.identity) if same else None


def _identity(file: str | int) -> tuple[int, ...]:
    """What changes when a file is another one or is written to; nobody can set the last part."""
    found = os.stat(file)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def need(view: memoryview, begin: int, end: int) -> None:
    """Have these bytes of a file, of which a view is a part, at hand before they are read."""
    if isinstance(view.obj, Mapped):
        view.obj.need(begin, end)


class MappedFiles(Files):
    """Files that are mapped from this machine."""

    def forget(self, view: memoryview) -> None:
        if isinstance(view.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            view.obj.madvise(mmap.MADV_DONTNEED)

    def resident(self) -> int:
        try:
            return int(Path("/proc/self/statm").read_text().split()[2]) * mmap.PAGESIZE
        except OSError:
            return 0
