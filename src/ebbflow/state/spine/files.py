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

There are two such places: a folder (`folder`), and an object store (`objects`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from ebbflow.errors import InUse


class FileWriter(ABC):
    """A file that is being written."""

    name: str
    at: int
    """How many bytes were written so far."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Add to the end: all of it, or raise OSError."""

    def ease(self) -> None:  # noqa: B027
        """Have `sync` wait for less later on, where that is possible."""

    @abstractmethod
    def sync(self) -> None:
        """Return when everything is safe; nothing is written after that."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""


class Files(ABC):
    """A flat folder of files."""

    exclusive = True
    """Whether `lock` keeps everyone out who could write. Where it does not, another may write until
    this one has published: only then it is known which files are of no use."""
    every = 0.05
    """How many seconds to wait before looking again for what is new."""

    @property
    def address(self) -> str:
        """Where this is, as a person would say it."""
        return repr(self)

    @abstractmethod
    def names(self) -> list[str]:
        """The names of all files."""

    @abstractmethod
    def size(self, name: str) -> int | None:
        """The length of a file, or None when there is none of that name."""

    @abstractmethod
    def map(self, name: str) -> memoryview:
        """The content of a file that will not change; read when it is touched."""

    def map_parts(self, name: str) -> memoryview:
        """The same for those who say, by `mapped.need`, which bytes they will touch."""
        return self.map(name)

    def fetch(self, names: Iterable[str]) -> None:  # noqa: B027
        """Have files at hand that will be mapped, all at once, where that takes time."""

    @abstractmethod
    def create(self, name: str) -> FileWriter:
        """Begin a file; if there is one of that name, it is lost."""

    @abstractmethod
    def publish(self, name: str, final: str) -> None:
        """Give a synced file its final name, and return when that is safe; InUse when there is
        such a file already, Lost when this is not the one who may write any more, Unsure when it
        may have been done or not."""

    def published(self, name: str, final: str) -> bool:
        """Whether `publish(name, final)`, which was cut short or failed, has given the file its
        final name."""
        return self.size(name) is None and self.size(final) is not None

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file; it need not be there. After a crash it may be back."""

    def remove_all(self, names: Iterable[str]) -> None:
        """Remove files, now or with some others later."""
        for name in names:
            self.remove(name)

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

    def folder(self, name: str) -> Files:
        """A folder in this one, which is made when its first file is."""
        raise NotImplementedError

    @abstractmethod
    def lock(self) -> None:
        """Keep others out until `unlock`, or raise InUse."""

    @abstractmethod
    def unlock(self) -> None:
        """Let others in."""

    @abstractmethod
    def require(self) -> None:
        """Raise Lost unless what was locked is still here, and this is who has locked it, as far
        as that is known without asking others."""


def taken(address: str, name: str) -> InUse:
    """The error for a final name that another file has."""
    return InUse(
        f"{name} is there already: somebody else has written this epoch",
        path=address,
        remedy="close this and open it again; one process at a time may have it open",
    )
