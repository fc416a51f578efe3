"""Hdfs: the requests that are made to one folder of HDFS, by its own HTTP protocol, WebHDFS.

HDFS has what an object store has, by other means. A file that must be *new* is written under a name
that nobody looks for and renamed, which fails where the name is taken. A file keeps its number when
it is renamed, and no other ever has it: so the number is the tag of a version, a retried rename
finds out whether it was carried out, and what is read is read by its number.

A file that *replaces* a version is a new file of the next generation, in a folder with the
generations of its name; the one with the highest is what the name stands for. Generations before it
are removed after it is there. So whoever makes a generation and finds a higher one beside it was
late, whether or not others of its generation were removed meanwhile.
"""

from __future__ import annotations

import errno
import getpass
import json
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode, urlsplit
from uuid import uuid4

from ebbflow.errors import CompositionError
from ebbflow.state.spine.bucket import Failure, Objects, Version, tried

HDFS = ("webhdfs://", "swebhdfs://")
"""How addresses begin that are reached by this: by HTTP, and by HTTPS."""
PORTS = {"webhdfs": 9870, "swebhdfs": 9871}
TIMEOUT = 120.0
TRIES, PAUSE = 14, 0.1
"""How often a request that may be repeated is made before it has failed: for some 20 seconds, in
which a server can be started again."""
OLD = timedelta(days=1)
"""After so long, a file that was to be renamed is one of a process that is gone."""
_WRITING, _REPLACED = ".writing", ".replaced"
_OPTIONS = {"user", "delegation", "timeout", "verify"}
_MISSING = {"FileNotFoundException"}
_TAKEN = {"FileAlreadyExistsException"}
_DENIED = {"AccessControlException", "SecurityException", "InvalidToken", "AuthenticationException"}
_LATER = {"RetriableException", "StandbyException", "SafeModeException"}


class Hdfs(Objects):
    """A folder of HDFS. `options`: `user`, whose name is told; `delegation`, a token that says who
    asks instead; `timeout` in seconds; `verify=False` for a server whose certificate nobody
    knows."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        unknown = sorted(options.keys() - _OPTIONS)
        if unknown:
            raise CompositionError(
                f"{url} has no option {unknown[0]!r}",
                remedy="one of " + ", ".join(sorted(_OPTIONS)),
            )
        parts = urlsplit(url)
        self.url, self._folder = url, parts.path.rstrip("/")
        self._secure = parts.scheme == "swebhdfs"
        self._namenode = f"{parts.hostname}:{parts.port or PORTS[parts.scheme]}"
        token = options.get("delegation")
        if token:
            self._who = {"delegation": token}
        else:
            user = options.get("user") or getpass.getuser()
            self._who, self.settled = {"user.name": user}, {"user": user}
        self._timeout = float(options.get("timeout", TIMEOUT))
        self._verify = bool(options.get("verify", True))

    # ---- requests ----

    @contextmanager
    def _asked(
        self, method: str, url: str, content: Any = None, size: int | None = None
    ) -> Iterator[HTTPResponse]:
        """Make a request; what goes wrong becomes an OSError that says what it was about."""
        parts = urlsplit(url)
        made: HTTPConnection
        if parts.scheme == "https":
            context = None if self._verify else ssl._create_unverified_context()
            made = HTTPSConnection(parts.netloc, timeout=self._timeout, context=context)
        else:
            made = HTTPConnection(parts.netloc, timeout=self._timeout)
        what = f"{method} {parts.path}"
        headers = {} if size is None else {"Content-Length": str(size)}
        try:
            made.request(method, f"{parts.path}?{parts.query}", content, headers)
            answer = made.getresponse()
            if answer.status >= 300:
                raise self._error(what, answer)
            yield answer
        except (HTTPException, OSError) as error:
            if isinstance(error, Failure | FileNotFoundError | FileExistsError | PermissionError):
                raise
            raise Failure(errno.EIO, f"{what}: {error or type(error).__name__}", self.url) from None
        finally:
            made.close()

    def _error(self, what: str, answer: HTTPResponse) -> OSError:
        """What a server refused."""
        said: Any = {}
        with suppress(ValueError):
            said = json.loads(answer.read()).get("RemoteException", {})
        raised = str(said.get("exception", ""))
        line = str(said.get("message", answer.reason)).partition("\n")[0][:300]
        text = f"{what}: {line}" + (f" ({raised})" if raised else f" ({answer.status})")
        if raised in _MISSING:
            return FileNotFoundError(errno.ENOENT, text, self.url)
        if raised in _TAKEN:
            return FileExistsError(errno.EEXIST, text, self.url)
        if raised in _DENIED or answer.status == 401:
            return PermissionError(errno.EACCES, text, self.url)
        failure = Failure(errno.EIO, text, self.url)
        failure.final = 400 <= answer.status < 500 and raised not in _LATER
        return failure

    def _url(self, path: str, operation: str, **more: Any) -> str:
        given = {"op": operation, **self._who, **more}
        scheme = "https" if self._secure else "http"
        return f"{scheme}://{self._namenode}/webhdfs/v1{quote(path)}?{urlencode(given)}"

    def _ask(self, method: str, path: str, operation: str, **more: Any) -> Any:
        """What the name node says; a request that it could not carry out now is repeated."""

        def ask() -> Any:
            try:
                with self._asked(method, self._url(path, operation, **more)) as answer:
                    return json.loads(answer.read() or b"{}")
            except ValueError as error:
                raise Failure(errno.EIO, f"{operation} {path}: {error}", self.url) from None

        return tried(ask, TRIES, PAUSE)

    # ---- reading ----

    def listed(self) -> dict[str, Version]:
        return {name: _version(each) for name, each in self._list(self._folder)
                if each["type"] == "FILE" and not name.startswith(".")}  # fmt: skip

    def _list(self, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        try:
            found = self._ask("GET", path, "LISTSTATUS")
        except FileNotFoundError:
            return
        for each in found["FileStatuses"]["FileStatus"]:
            yield each["pathSuffix"], each

    def head(self, name: str) -> Version | None:
        return self._status(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def _status(self, path: str) -> Version | None:
        try:
            return _version(self._ask("GET", path, "GETFILESTATUS")["FileStatus"])
        except FileNotFoundError:
            return None

    def get(self, name: str) -> tuple[bytes, Version] | None:
        for _ in range(TRIES):
            found = self._newest(name)
            if found is None:
                return None
            with suppress(FileNotFoundError):  # replaced meanwhile
                return self.part(name, found, 0, found.size), found
        raise Failure(errno.EIO, f"{name}: it was replaced each time it was read", self.url)

    def _generations(self, name: str) -> dict[int, Version]:
        listed = self._list(self._path(f"{_REPLACED}/{name}"))
        return {int(number): _version(each, number) for number, each in listed if number.isdigit()}

    def _newest(self, name: str) -> Version | None:
        generations = self._generations(name)
        return generations[max(generations)] if generations else self.head(name)

    def tail(self, name: str, count: int) -> tuple[bytes, Version] | None:
        known = self.head(name)
        if known is None:
            return None
        with suppress(FileNotFoundError):
            return self.part(name, known, max(0, known.size - count), known.size), known
        return None

    def _part(self, name: str, known: Version, begin: int, end: int) -> bytes:
        if begin == end:
            return b""

        def read() -> bytes:
            with self._opened(known, offset=begin, length=end - begin) as answer:
                return answer.read()

        return tried(read, TRIES, PAUSE)

    def _download(self, name: str, known: Version, into: BinaryIO) -> None:
        if known.size:
            with self._opened(known) as answer:
                while chunk := answer.read(1 << 20):
                    into.write(chunk)
        if into.tell() != known.size:
            came = f"{name}: {into.tell()} bytes came of {known.size}"
            raise Failure(errno.EIO, came, self.url)

    @contextmanager
    def _opened(self, known: Version, **more: Any) -> Iterator[HTTPResponse]:
        """The file of this version, whatever its name is now."""
        path = f"/.reserved/.inodes/{known.tag}"
        found = self._ask("GET", path, "OPEN", noredirect="true", **more)
        with self._asked("GET", found["Location"]) as answer:
            yield answer

    # ---- writing ----

    def put(self, name: str, content: Any, size: int, over: Version | None = None) -> Version:
        if over is None:
            return self._written(self._path(name), content, size)
        generation = int(over.number or 0) + 1
        made = self._created(self._path(f"{_REPLACED}/{name}/{generation}"), content, size)
        others = self._generations(name)
        if max(others, default=generation) > generation:
            with suppress(OSError):
                self._delete(self._path(f"{_REPLACED}/{name}/{generation}"))
            raise FileExistsError(errno.EEXIST, f"{name}: it was replaced", self.url)
        with suppress(OSError):
            for each in others:
                if each < generation:
                    self._delete(self._path(f"{_REPLACED}/{name}/{each}"))
        return made._replace(number=str(generation))

    def create(self, name: str, content: Any, size: int) -> Version:
        return self._created(self._path(name), content, size)

    def _created(self, path: str, content: Any, size: int) -> Version:
        """A file that must be new, and is there whole or not at all."""
        hidden = self._path(f"{_WRITING}/{uuid4().hex}")
        made = self._written(hidden, content, size)
        parent = path.rpartition("/")[0]
        if parent != self._folder:
            self._ask("PUT", parent, "MKDIRS")
        try:
            self._ask("PUT", hidden, "RENAME", destination=path, renameoptions="NONE")
        except (FileNotFoundError, FileExistsError):
            found = self._status(path)  # the answer to the first rename may have been lost
            if found is None or found.tag != made.tag:
                with suppress(OSError):
                    self._delete(hidden)
                raise FileExistsError(errno.EEXIST, f"{path} is there", self.url) from None
        return made

    def _written(self, path: str, content: Any, size: int) -> Version:
        def write() -> Version:
            if hasattr(content, "seek"):
                content.seek(0)
            asked = self._ask("PUT", path, "CREATE", overwrite="true", noredirect="true")
            sent = content if hasattr(content, "read") else bytes(content)
            with self._asked("PUT", asked["Location"], sent, size):
                pass
            found = self._status(path)
            if found is None or found.size != size:
                raise Failure(errno.EIO, f"{path}: it is not there whole", self.url)
            return found

        return tried(write, TRIES, PAUSE)

    def delete(self, names: Iterable[str]) -> None:
        replaced = {name for name, _ in self._list(self._path(_REPLACED))}
        for name in names:
            if name in replaced:
                self._delete(self._path(f"{_REPLACED}/{name}"))
            self._delete(self._path(name))
        before = datetime.now(UTC) - OLD
        for name, each in self._list(self._path(_WRITING)):
            modified = _version(each).modified
            if modified is not None and modified < before:
                self._delete(self._path(f"{_WRITING}/{name}"))

    def _delete(self, path: str) -> None:
        self._ask("DELETE", path, "DELETE", recursive="true")


def _version(status: dict[str, Any], number: str | None = None) -> Version:
    modified = datetime.fromtimestamp(status["modificationTime"] / 1000, UTC)
    return Version(status["length"], str(status["fileId"]), number, modified)
