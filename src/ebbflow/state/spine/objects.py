"""ObjectFiles: files in a folder of an object store, such as S3.

What is written fills a file of this machine first. `sync` uploads it, and for a file that is yet to
be published, `publish` does, by a put that fails when there is such an object. A retried put may
find its own object there, as an answer can be lost on its way; so a file that is published has at
its end what no other has (a manifest says by whom it was written), and is recognised by that. What
is mapped is downloaded first, into a cache (`cache`). Who may write is said by `owner`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from ebbflow.errors import InUse, StateError, Text, Unsure
from ebbflow.paths import open_file
from ebbflow.state.spine.bucket import LARGEST, Bucket, Failure, Objects, Version
from ebbflow.state.spine.cache import Cache
from ebbflow.state.spine.files import FileWriter, taken
from ebbflow.state.spine.hdfs import HDFS, Hdfs
from ebbflow.state.spine.mapped import MappedFiles, map_file, need
from ebbflow.state.spine.owner import CLOCK, OWNER, Owner

TEMPORARY = ".tmp"
END = 4096
"""How many bytes at its end tell a published file from all others."""
WHOLE = 16 << 20
"""Of objects of more bytes than this, only the blocks that are needed are downloaded."""
FEW = 4
"""For more objects than this, one list says what many requests would."""
AT_ONCE = 16
"""How many objects are downloaded at the same time."""
TOGETHER = 32
"""How many objects that are of no use are removed by one request."""


@dataclass(frozen=True)
class ObjectStore:
    """A folder of an object store, and how it is reached; made by `ebbflow.object_store`."""

    url: str
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    take_over: bool = False
    lease: float = 60.0
    patience: float = 60.0
    cache: str | None = None
    cache_size: int = 10 << 30

    def files(self) -> ObjectFiles:
        """The files in it."""
        return ObjectFiles(self)

    def __hash__(self) -> int:
        return hash(self.url)


@dataclass
class _Attempt:
    """A file that was to be published: what its object ends in, and whether it is there; None for
    as long as nobody knows."""

    name: str
    final: str
    size: int
    end: bytes
    done: bool | None = None


class ObjectFiles(MappedFiles):
    """Files in a folder of an object store. `seen` are the versions of objects that are known."""

    exclusive = False
    every = 1.0

    def __init__(self, place: ObjectStore, seen: dict[str, Version] | None = None) -> None:
        self.bucket = _objects(place)
        self.place = replace(place, options={**place.options, **self.bucket.settled})
        self.owner = Owner(self.bucket, place.lease)
        self._cache: Cache | None = None
        self._seen = dict(seen or {})
        self._writing: dict[str, Path] = {}
        """Files that are written here and not uploaded yet."""
        self._noted: dict[str, Version | None] = {}
        """The versions of short files that are replaced."""
        self._attempt: _Attempt | None = None
        self._useless: set[str] = set()
        self._folders: dict[str, ObjectFiles] = {}

    @property
    def address(self) -> str:
        return self.place.url

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectFiles, (self.place, self._seen)

    def __repr__(self) -> str:
        return f"ObjectFiles({self.place.url!r})"

    @property
    def cache(self) -> Cache:
        """Where what is downloaded is kept."""
        if self._cache is None:
            self._cache = Cache(self.place.cache, self.place.cache_size)
        return self._cache

    def folder(self, name: str) -> ObjectFiles:
        if name not in self._folders:
            inner = replace(self.place, url=f"{self.place.url}/{name}")
            self._folders[name] = ObjectFiles(inner)
        return self._folders[name]

    # ---- reading ----

    def names(self) -> list[str]:
        self._seen = self.bucket.listed()
        return sorted(
            name for name in self._seen if name != OWNER and not name.startswith(CLOCK)
        )  # fmt: skip

    def size(self, name: str) -> int | None:
        if name in self._writing:
            return os.stat(self._writing[name]).st_size
        known = self._seen.get(name) or self.bucket.head(name)
        if known is not None:
            self._seen[name] = known
        return None if known is None else known.size

    def map(self, name: str) -> memoryview:
        found = self.map_parts(name)
        need(found, 0, len(found))
        return found

    def map_parts(self, name: str) -> memoryview:
        if name in self._writing:
            return map_file(self._writing[name])
        known = self._seen.get(name)
        try:
            return self._mapped(name, known or self._found(name))
        except (FileNotFoundError, FileExistsError):
            self._seen.pop(name, None)
            if known is None:
                raise
        return self._mapped(name, self._found(name))

    def fetch(self, names: Iterable[str]) -> None:
        wanted = [name for name in names if name not in self._writing]
        if sum(name not in self._seen for name in wanted) > FEW:
            with suppress(OSError):
                self.names()
        gone = [name for name in wanted if not self._is_here(name)]
        if len(gone) > 1:
            with ThreadPoolExecutor(min(len(gone), AT_ONCE)) as threads:
                for _ in threads.map(self._try, gone):
                    pass

    def _is_here(self, name: str) -> bool:
        """Whether there is nothing to download before it is mapped."""
        known = self._seen.get(name)
        return known is not None and (known.size > WHOLE or self._copy_of(name, known).exists())

    def _try(self, name: str) -> None:
        with suppress(OSError):  # who needs it will say so
            self.map_parts(name)

    def _found(self, name: str) -> Version:
        found = self.bucket.head(name)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", f"{self}/{name}")
        self._seen[name] = found
        return found

    def _mapped(self, name: str, known: Version) -> memoryview:
        def download(into: Any) -> None:
            self.bucket.download(name, known, into)

        def part(begin: int, end: int) -> bytes:
            return self.bucket.part(name, known, begin, end)

        copy = self._copy_of(name, known)
        if known.size > WHOLE and not copy.exists():
            return self.cache.partly(copy, known.size, part)
        return self.cache.mapped(copy, known.size, download)

    def _copy_of(self, name: str, known: Version) -> Path:
        place = self.place
        where = place.url, place.options.get("endpoint"), name
        return self.cache.place(*where, known.tag, known.number, known.size)

    def read(self, name: str) -> str | None:
        found = self.bucket.get(name)
        self._noted[name] = None if found is None else found[1]
        return None if found is None else found[0].decode("utf-8", "replace")

    # ---- writing ----

    def create(self, name: str) -> FileWriter:
        self._writing[name] = self.cache.private()
        return _Upload(self, name, self._writing[name])

    def upload(self, name: str, path: Path, file: Any, size: int) -> None:
        """Have a complete file in the store, from when this returns."""
        self._keep(name, path, self.bucket.put(name, file, size))

    def _keep(self, name: str, path: Path, version: Version) -> None:
        """Have a file that was uploaded at hand."""
        self._writing.pop(name, None)
        self._seen[name] = version
        with suppress(OSError):
            self.cache.add(path, self._copy_of(name, version))

    def publish(self, name: str, final: str) -> None:
        path = self._writing[name]
        content = map_file(path)
        if len(content) > LARGEST:
            raise OSError(errno.EFBIG, "an epoch of more than 5 GB: step with less at once")
        self._attempt = attempt = _Attempt(name, final, len(content), bytes(content[-END:]), False)
        self.owner.confirm()
        version = self._created(attempt, content)
        attempt.done = True
        self._keep(final, path, version)
        self._writing.pop(name, None)

    def _created(self, attempt: _Attempt, content: memoryview) -> Version:
        """Put an object that is new; whatever becomes of answers on their way."""
        until, pause = monotonic() + self.place.patience, 0.05
        while True:
            first = attempt.done is False
            attempt.done = None
            try:
                return self.bucket.create(attempt.final, content, attempt.size)
            except OSError as error:
                failure = error
            found = None
            refused = isinstance(failure, PermissionError | FileNotFoundError)
            final = first and (refused or (isinstance(failure, Failure) and failure.final))
            try:
                found = self.bucket.tail(attempt.final, END)
            except OSError as error:
                failure = failure if final else error
            if found is not None and _is(found, attempt):
                return found[1]
            if found is not None or final:
                attempt.done = False
                raise failure if found is None else taken(self.address, attempt.final) from None
            if monotonic() > until:
                raise self._unsure(attempt, failure)
            sleep(pause)
            pause = min(2 * pause, 2.0)

    def published(self, name: str, final: str) -> bool:
        attempt = self._attempt
        if attempt is None or (attempt.name, attempt.final) != (name, final):
            return False
        if attempt.done is None:
            try:
                found = self.bucket.tail(final, END)
            except OSError as error:
                raise self._unsure(attempt, error) from error
            attempt.done = found is not None and _is(found, attempt)
        return attempt.done

    def _unsure(self, attempt: _Attempt, error: OSError) -> Unsure:
        return Unsure(
            f"nobody can tell whether {attempt.final} was written: the store does not answer",
            path=self.address,
            cause=error,
            remedy="view.epoch tells, when the store answers again; until then do not repeat the "
            "step, unless it is one with batch=",
        )

    def replace(self, name: str, text: str) -> None:
        self.owner.require()
        content = text.encode()
        if name not in self._noted:
            self.read(name)
        over = self._noted[name]
        try:
            if over is None:
                self._noted[name] = self.bucket.create(name, content, len(content))
            else:
                self._noted[name] = self.bucket.put(name, content, len(content), over=over)
        except OSError as error:
            if self.read(name) == text:
                return
            if not isinstance(error, FileExistsError):
                raise
            self.owner.confirm()
            raise InUse(
                f"{name} was written by somebody else",
                path=self.address,
                remedy="close this and open it again",
            ) from None

    def jot(self, name: str, text: str) -> None:
        """Nothing: a store loses no name that it has acknowledged."""

    def settle(self) -> None:
        """Nothing: what a store has acknowledged is safe."""

    def remove(self, name: str) -> None:
        path = self._writing.pop(name, None)
        if path is not None:
            path.unlink(missing_ok=True)
        elif not name.endswith(TEMPORARY):
            self._seen.pop(name, None)
            self._noted.pop(name, None)
            self.bucket.delete([name])

    def remove_all(self, names: Iterable[str]) -> None:
        self._useless.update(names)
        if len(self._useless) >= TOGETHER:
            self._remove_useless()

    def _remove_useless(self) -> None:
        gone, self._useless = self._useless, set()
        for name in gone:
            self._seen.pop(name, None)
        self.bucket.delete(gone)

    # ---- one who writes ----

    def lock(self) -> None:
        try:
            self.owner.acquire(take_over=self.place.take_over)
        except OSError as error:
            raise StateError(
                "state cannot be kept here",
                path=Text(self.address),
                cause=error,
                remedy="a bucket that is there, with the right to read, write and remove; "
                "credentials and endpoint come from the environment or from object_store(...)",
            ) from error

    def unlock(self) -> None:
        with suppress(OSError, StateError):
            useless = [each for each in (self, *self._folders.values()) if each._useless]
            if useless:
                self.owner.confirm()
            for each in useless:
                each._remove_useless()
        self.owner.release()

    def require(self) -> None:
        self.owner.require()


def _objects(place: ObjectStore) -> Objects:
    made = Hdfs if place.url.startswith(HDFS) else Bucket
    return made(place.url, place.options)


def _is(found: tuple[bytes, Version], attempt: _Attempt) -> bool:
    end, version = found
    return version.size == attempt.size and end == attempt.end


class _Upload(FileWriter):
    def __init__(self, files: ObjectFiles, name: str, path: Path) -> None:
        self.name, self.at = name, 0
        self._files, self._path = files, path
        self._file = open(open_file(path, os.O_RDWR), "w+b", buffering=1 << 18)  # noqa: SIM115

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self.at += len(data)

    def sync(self) -> None:
        self._file.flush()
        if not self.name.endswith(TEMPORARY):
            self._file.seek(0)
            self._files.upload(self.name, self._path, self._file, self.at)

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()
