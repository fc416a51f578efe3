"""Files: the few things that state on disk asks of a place where files are kept.

Everything the rest of this package does to files it does through `Files`, so that a folder can be
replaced by something else, and so that a test can stop the world at any of these calls. A *name* is
that of a file in one flat folder. What is promised:

- a file is written once, from its beginning to its end, and never changed after;
- what was written before `sync` returned is there after a crash; what was written later may be
  there, in part, or not at all;
- `publish` gives a complete file its final name, all at once, and never takes a name that is there:
  after a crash it has the old name or the new one, and when `publish` has returned, the new one;
- `published` tells, when `publish` was cut short, whether it has happened.

On an object store, writing would fill an upload, `publish` would be a put that fails when the name
is taken, and `map` a download into a local cache.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
from abc import ABC, abstractmethod
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any
from weakref import WeakSet

from ebbflow.errors import EbbflowError, Text
from ebbflow.paths import (
    PRIVATE,
    checked_permissions,
    local_path,
    make_folder,
    of_folders,
    open_file,
)


class StateError(EbbflowError):
    """State on disk could not be read or written."""


class Damaged(StateError):
    """A file of the state is not what was written, or is not there."""


class InUse(StateError):
    """The state is open in another place."""


class Lost(StateError):
    """The state is not that of this process any more: it cannot write to it."""


class FileWriter(ABC):
    """A file that is being written."""

    name: str
    at: int
    """How many bytes were written so far."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Add to the end: all of it, or raise OSError."""

    @abstractmethod
    def sync(self) -> None:
        """Return when everything written is safe."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""


class Files(ABC):
    """A flat folder of files."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of all files."""

    @abstractmethod
    def size(self, name: str) -> int | None:
        """The length of a file, or None when there is none of that name."""

    @abstractmethod
    def map(self, name: str) -> memoryview:
        """The content of a file that will not change; read when it is touched."""

    @abstractmethod
    def create(self, name: str) -> FileWriter:
        """Begin a file; if there is one of that name, it is lost."""

    @abstractmethod
    def publish(self, name: str, final: str) -> None:
        """Give a synced file its final name, and return when that is safe; InUse when there is
        such a file already."""

    def published(self, name: str, final: str) -> bool:
        """Whether `publish(name, final)`, which was cut short or failed, has given the file its
        final name."""
        return self.size(name) is None and self.size(final) is not None

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file; it need not be there. After a crash it may be back."""

    @abstractmethod
    def settle(self) -> None:
        """Return when names of files that were created are safe."""

    @abstractmethod
    def jot(self, name: str, text: str) -> None:
        """Replace a short file. It need not survive a crash."""

    @abstractmethod
    def replace(self, name: str, text: str) -> None:
        """Replace a short file: after a crash it is the old one or the new one, as a whole. When
        there was none, it is there from when this has returned."""

    @abstractmethod
    def read(self, name: str) -> str | None:
        """What is in a short file, or None."""

    @abstractmethod
    def forget(self, view: memoryview) -> None:
        """Let go of the memory a mapped file takes, where that is possible."""

    def resident(self) -> int:
        """How many bytes of mapped files are in memory, where that is known."""
        return 0

    @abstractmethod
    def lock(self) -> None:
        """Keep others out until `unlock`, or raise InUse."""

    @abstractmethod
    def unlock(self) -> None:
        """Let others in."""

    @abstractmethod
    def require(self) -> None:
        """Raise Lost unless what was locked is still here, and this is who has locked it."""


class Mapped(mmap.mmap):
    """A file in memory that knows which file it was, and how it was, when it was mapped."""

    path: str
    identity: tuple[int, ...]


def unchanged(view: memoryview) -> tuple[Any, ...] | None:
    """Which file a view is of, if that is still there and was not written to since it was mapped;
    None where that is not known."""
    mapped = view.obj
    if not isinstance(mapped, Mapped):
        return None
    try:
        same = _identity(mapped.path) == mapped.identity
    except OSError:
        return None
    return (mapped.path, *mapped.identity) if same else None


def _identity(file: str | int) -> tuple[int, ...]:
    """What changes when a file is another one or is written to; nobody can set the last part."""
    found = os.stat(file)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class Folder(Files):
    """Files in a directory of this machine, or one it shares.

    `permissions` are those of folders that are made, and without x of files. Where none are given,
    they are what the lock has: what was given when the folder was last opened with some.

    >>> import tempfile
    >>> folder = Folder(tempfile.mkdtemp())
    >>> writer = folder.create("a.tmp")
    >>> writer.write(b"hello"); writer.sync(); writer.close()
    >>> folder.publish("a.tmp", "a")
    >>> folder.names(), bytes(folder.map("a"))
    (['a'], b'hello')
    """

    LOCK = "lock"

    def __init__(self, path: str | os.PathLike[str], permissions: int | None = None) -> None:
        self.path = local_path(path)
        self._permissions = checked_permissions(permissions)
        self._held: FileIO | None = None
        self._process = 0
        self._folder: tuple[int, int] | None = None

    @property
    def permissions(self) -> int:
        """The permissions of folders that are made here, and without x of files."""
        if self._permissions is None:
            try:
                self._permissions = of_folders(stat.S_IMODE(os.stat(self.path / self.LOCK).st_mode))
            except FileNotFoundError:
                return PRIVATE
        return self._permissions

    def names(self) -> list[str]:
        if not self.path.is_dir():
            return []
        return sorted(e.name for e in os.scandir(self.path) if e.is_file() and e.name != self.LOCK)

    def size(self, name: str) -> int | None:
        try:
            return os.stat(self.path / name).st_size
        except FileNotFoundError:
            return None

    def map(self, name: str) -> memoryview:
        with open(self.path / name, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                return memoryview(b"")
            mapped = Mapped(file.fileno(), 0, access=mmap.ACCESS_READ)
            mapped.path, mapped.identity = str(self.path / name), _identity(file.fileno())
            return memoryview(mapped)

    def create(self, name: str) -> FileWriter:
        return _LocalWriter(self.path / name, self.permissions)

    def publish(self, name: str, final: str) -> None:
        try:
            os.link(self.path / name, self.path / final)
            with suppress(OSError):
                os.unlink(self.path / name)
        except FileExistsError:
            raise _taken(self.path, final) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if (self.path / final).exists():
                raise _taken(self.path, final) from None
            os.rename(self.path / name, self.path / final)
        self.settle()

    def published(self, name: str, final: str) -> bool:
        there = _inode(self.path / final)
        return there is not None and _inode(self.path / name) in (None, there)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self.path / name)

    def settle(self) -> None:
        _sync(self.path)

    def jot(self, name: str, text: str) -> None:
        file = open_file(self.path / name, os.O_WRONLY, self.permissions)
        try:
            os.pwrite(file, text.encode(), 0)
            os.ftruncate(file, len(text.encode()))
        finally:
            os.close(file)

    def replace(self, name: str, text: str) -> None:
        temporary, final = self.path / f"{name}.tmp", self.path / name
        new = not final.exists()
        opened = open_file(temporary, os.O_WRONLY | os.O_TRUNC, self.permissions)
        with open(opened, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, final)
        if new:
            self.settle()

    def read(self, name: str) -> str | None:
        try:
            return (self.path / name).read_text("utf-8", "replace")
        except FileNotFoundError:
            return None

    def forget(self, view: memoryview) -> None:
        if isinstance(view.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            view.obj.madvise(mmap.MADV_DONTNEED)

    def resident(self) -> int:
        try:
            return int(Path("/proc/self/statm").read_text().split()[2]) * mmap.PAGESIZE
        except OSError:
            return 0

    def lock(self) -> None:
        try:
            for folder in [p for p in (*reversed(self.path.parents), self.path) if not p.is_dir()]:
                make_folder(folder, self.permissions)
                _sync(folder.parent)
            held = self._locked()
        except OSError as error:
            raise StateError(
                "state cannot be kept here",
                path=Text(self.path),
                cause=error,
                remedy="a folder that can be written, or one that can be made",
            ) from error
        self._process, self._held = os.getpid(), held
        self._folder = _inode(self.path, follow=True)
        _HOLDING.add(self)

    def _locked(self) -> FileIO:
        """The file of the lock, open and locked. It is made where there is none; a link, or a file
        that is something else, is left as it is. Who loses it, by an interrupt, has let go."""
        while True:
            held = FileIO(self.path / self.LOCK, "r+", opener=_open_lock)
            try:
                found = os.fstat(held.fileno())
                said = held.read(64).strip() if stat.S_ISREG(found.st_mode) else b"?"
                if found.st_nlink > 1 or (said and not said.isdigit()):
                    raise OSError(errno.EEXIST, f"its file {self.LOCK!r} is something else")
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _inode(self.path / self.LOCK) == (found.st_dev, found.st_ino):
                    if self._permissions is not None:
                        with suppress(PermissionError):  # it is another's, who let us in
                            os.fchmod(held.fileno(), self._permissions & 0o666)
                    os.pwrite(held.fileno(), f"{os.getpid():<{_PID}}\n".encode(), 0)
                    return held
            except BaseException as error:
                held.close()
                if not isinstance(error, BlockingIOError):
                    raise
                raise InUse(
                    "this state is open already",
                    path=str(self.path),
                    process=said.decode("ascii") or "unknown",
                    remedy="close the other view, or read a snapshot of it from there",
                ) from None
            held.close()  # it was removed meanwhile: there is another one now, or none

    def unlock(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def require(self) -> None:
        if self._process != os.getpid():
            raise Lost(
                "this state was opened by another process, from which this one was forked",
                path=str(self.path),
                opened=self._process,
                this=os.getpid(),
                remedy="step it in the process that opened it; open it here after closing it there",
            )
        if self._held is None:
            raise Lost("this state is closed", path=str(self.path), remedy="open it again")
        held = os.fstat(self._held.fileno())
        here = _inode(self.path / self.LOCK) == (held.st_dev, held.st_ino)
        if not here or _inode(self.path, follow=True) != self._folder:
            raise Lost(
                "the folder of this state was removed or replaced, or its lock was, while it was "
                "open; another process may be writing to it",
                path=str(self.path),
                remedy="close this, see that the folder is in its place, and open it again",
            )

    def __repr__(self) -> str:
        return f"Folder({str(self.path)!r})"


_PID = 20
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS}
"""What a file system says that has no hard links. There `publish` looks whether the name is free
and then renames, which is as good as long as the lock keeps others out."""
_HOLDING: WeakSet[Folder] = WeakSet()


def _open_lock(path: str, flags: int) -> int:
    return open_file(Path(path), os.O_RDWR, None)


def _let_go_of_locks() -> None:
    """In a forked process: a lock is that of the process that took it, and goes with it."""
    for folder in tuple(_HOLDING):
        folder.unlock()


os.register_at_fork(after_in_child=_let_go_of_locks)


def _inode(path: Path, *, follow: bool = False) -> tuple[int, int] | None:
    try:
        found = os.stat(path, follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _taken(path: Path, name: str) -> InUse:
    return InUse(
        f"{name} is there already: somebody else has written this epoch",
        path=str(path),
        remedy="close this and open it again; one process at a time may have it open",
    )


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class _LocalWriter(FileWriter):
    def __init__(self, path: Path, permissions: int) -> None:
        self.name = path.name
        self.at = 0
        file = open_file(path, os.O_WRONLY | os.O_TRUNC, permissions)
        self._file = open(file, "wb", buffering=1 << 18)  # noqa: SIM115

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self.at += len(data)

    def sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()
