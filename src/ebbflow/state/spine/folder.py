"""Folder: files in a directory of this machine, or one it shares."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any
from weakref import WeakSet

from ebbflow.errors import InUse, Lost, StateError, Text
from ebbflow.paths import (
    PRIVATE,
    checked_permissions,
    local_path,
    make_folder,
    of_folders,
    open_file,
    settle,
)
from ebbflow.state.spine.files import FileWriter, taken
from ebbflow.state.spine.mapped import MappedFiles, map_file


class Folder(MappedFiles):
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
    def address(self) -> str:
        return str(self.path)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self._permissions)

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
        return map_file(self.path / name)

    def create(self, name: str) -> FileWriter:
        return _LocalWriter(self.path / name, self.permissions)

    def publish(self, name: str, final: str) -> None:
        try:
            os.link(self.path / name, self.path / final)
            with suppress(OSError):
                os.unlink(self.path / name)
        except FileExistsError:
            raise taken(str(self.path), final) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if (self.path / final).exists():
                raise taken(str(self.path), final) from None
            os.rename(self.path / name, self.path / final)
        self.settle()

    def published(self, name: str, final: str) -> bool:
        there = _inode(self.path / final)
        return there is not None and _inode(self.path / name) in (None, there)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self.path / name)

    def settle(self) -> None:
        settle(self.path)

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

    def folder(self, name: str) -> Folder:
        return _InnerFolder(self.path / name, self.permissions)

    def lock(self) -> None:
        try:
            for folder in [p for p in (*reversed(self.path.parents), self.path) if not p.is_dir()]:
                make_folder(folder, self.permissions)
                settle(folder.parent)
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


class _InnerFolder(Folder):
    """A folder that is made when its first file is."""

    def create(self, name: str) -> FileWriter:
        try:
            return super().create(name)
        except FileNotFoundError:
            make_folder(self.path, self.permissions)
            return super().create(name)


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


class _LocalWriter(FileWriter):
    def __init__(self, path: Path, permissions: int) -> None:
        self.name = path.name
        self.at = 0
        file = open_file(path, os.O_WRONLY | os.O_TRUNC, permissions)
        self._file = open(file, "wb", buffering=1 << 18)  # noqa: SIM115

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self.at += len(data)

    def ease(self) -> None:
        self.sync()

    def sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()
