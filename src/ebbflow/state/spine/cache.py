"""Cache: objects that were downloaded, or are about to be uploaded, as files of this machine.

All processes of a user share one folder, so that what a task has downloaded the next one finds. A
file is named after the object it is a copy of: its address and its version. It appears when it is
complete. When all files take more than the limit, those that were not used for longest are removed;
who has mapped one can go on reading. Nothing here is flushed: what a crash of the machine leaves is
not used, as the folder is that of one start of the machine.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import re
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4
from weakref import finalize

from ebbflow.paths import file_name, make_folders, open_file, own_cache
from ebbflow.state.spine.mapped import MappedCopy, map_file

BLOCK = 4 << 20
"""How many bytes of a large file are downloaded at once."""
_KEY = re.compile(r"[0-9a-f]{64}")
_PRIVATE = re.compile(r"(\d+)-[0-9a-f]{32}")
Download = Callable[[BinaryIO], None]
Part = Callable[[int, int], bytes]
"""Gives the bytes from one place to another."""


class PartlyHere(MappedCopy):
    """A file of which some blocks are here. Which ones is said by a byte for each, behind the
    content; whoever finds one missing fetches it, and others who have it mapped see it."""

    length: int
    fetch: Part
    number: int
    """The open file: it may be removed, and can be written for as long as it is mapped."""

    @classmethod
    def opened(cls, path: Path, number: int, size: int, fetch: Part) -> PartlyHere:
        """The file at a path, which is open."""
        found = cls(number, _aligned(size), access=mmap.ACCESS_READ)
        found.path, found.number, found.length, found.fetch = str(path), number, size, fetch
        found.identity = found.now()
        finalize(found, os.close, number)
        return found

    def need(self, begin: int, end: int) -> None:
        first, last = begin // BLOCK, -(-min(end, self.length) // BLOCK)
        if first >= last:
            return
        here = os.pread(self.number, last - first, _aligned(self.length) + first)
        gone = [first + i for i, byte in enumerate(here) if not byte]
        if gone:
            low, high = gone[0] * BLOCK, min((gone[-1] + 1) * BLOCK, self.length)
            os.pwrite(self.number, self.fetch(low, high), low)
            marks = bytes([1]) * (gone[-1] + 1 - gone[0])
            os.pwrite(self.number, marks, _aligned(self.length) + gone[0])


def _aligned(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


class Cache:
    """Files of at most about `most` bytes in a folder, a common one unless another is given."""

    def __init__(self, folder: str | os.PathLike[str] | None, most: int) -> None:
        base = Path(own_cache() if folder is None else folder)
        machine = f"objects-{file_name(socket.gethostname())}-"
        self.path, self.most = base / f"{machine}{boot_of_machine()}", most
        make_folders(self.path)
        for other in base.glob(f"{machine}*"):
            if other != self.path:
                shutil.rmtree(other, ignore_errors=True)

    def place(self, *identity: object) -> Path:
        """The file for what is identified by these."""
        return self.path / sha256(repr(identity).encode()).hexdigest()

    def private(self) -> Path:
        """A new file of this process."""
        return self.path / f"{os.getpid()}-{uuid4().hex}"

    def mapped(self, place: Path, size: int, download: Download) -> memoryview:
        """The content of a file, which is downloaded unless it is there. Of several who ask at
        once, one downloads."""
        found = self._found(place, size)
        if found is not None:
            return found
        waiting = place.with_suffix(".lock")
        with open(open_file(waiting, os.O_RDWR), "rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = self._found(place, size)
            if found is None:
                temporary = self.private()
                try:
                    with open(open_file(temporary, os.O_RDWR), "rb+") as out:
                        download(out)
                        out.flush()
                    with open(temporary, "rb") as complete:
                        self.add(temporary, place)
                        found = map_file(place, complete, MappedCopy)
                except BaseException:
                    temporary.unlink(missing_ok=True)
                    raise
            waiting.unlink(missing_ok=True)
        return found

    def partly(self, place: Path, size: int, part: Part) -> memoryview:
        """The content of a large file, of which blocks are downloaded when they are needed."""
        sparse = place.with_suffix(".blocks")
        number = open_file(sparse, os.O_RDWR)
        try:
            os.utime(sparse)
            os.ftruncate(number, _aligned(size) + -(-size // BLOCK))
            return memoryview(PartlyHere.opened(sparse, number, size, self._fetched(part)))[:size]
        except BaseException:
            os.close(number)
            raise

    def _fetched(self, part: Part) -> Part:
        def fetch(begin: int, end: int) -> bytes:
            found = part(begin, end)
            self._trim(len(found))
            return found

        return fetch

    def _found(self, place: Path, size: int) -> memoryview | None:
        try:
            os.utime(place)
            found = map_file(place, None, MappedCopy)
        except FileNotFoundError:
            return None
        return found if len(found) == size else None

    def add(self, temporary: Path, place: Path) -> None:
        """Let others have a file that is complete, and remove what is too much then."""
        os.rename(temporary, place)
        self._trim(0, str(place))

    def _trim(self, more: int, but: str = "") -> None:
        """Remove what is too much, when there will be so many bytes more."""
        sizes = []
        for each in os.scandir(self.path):
            with suppress(OSError):
                private = _PRIVATE.fullmatch(each.name)
                if private and not is_alive(int(private[1])):
                    os.unlink(each.path)
                elif _KEY.match(each.name) and not each.name.endswith(".lock"):
                    found = each.stat()
                    sizes.append((found.st_mtime_ns, found.st_blocks * 512, each.path))
        over = sum(size for _, size, _ in sizes) + more - self.most
        for _, size, path in sorted(sizes):
            if over <= 0:
                break
            if path != but:
                Path(path).unlink(missing_ok=True)
                over -= size


def is_alive(process: int) -> bool:
    """Whether there is a process of this number on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def boot_of_machine() -> str:
    """What is another after every start of the machine, where it says."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "0"
