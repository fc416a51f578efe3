"""Objects: the requests that are made to one folder of a store; `Bucket`: to an object store.

What a store answers becomes what a file system would say: `FileNotFoundError`, `FileExistsError`
where a put was to be the first or to replace a certain version and is not, `PermissionError`, and
`OSError` for all else. An error is *final* when the store has refused; of any other, nobody knows
whether the request was carried out.
"""

from __future__ import annotations

import errno
import os
import pickle
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from time import sleep
from typing import Any, BinaryIO, NamedTuple, TypeVar

from ebbflow.errors import CompositionError, install

T = TypeVar("T")
PART = 16 << 20
"""Objects of more bytes than this are uploaded in parts of so many, unless they are to be new."""
LARGEST = 5 << 30
"""How many bytes a store takes in one put."""
TRIES = 5
"""How often a download is begun before it has failed."""
_ENDPOINT = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: (\d{3})")


class Version(NamedTuple):
    """Which object it is that a name has: two of one name are never of one tag."""

    size: int
    tag: str
    number: str | None = None
    modified: datetime | None = None


class Failure(OSError):
    """A request that the store did not carry out, or of which it is not known whether it did."""

    final = False


class Objects:
    """A folder of a store, whatever its protocol is."""

    url: str
    settled: Mapping[str, Any] = {}
    """Options that were found here, and are the same wherever tasks run."""

    def listed(self) -> dict[str, Version]:
        """The objects of the folder, not those of folders in it."""
        raise NotImplementedError

    def head(self, name: str) -> Version | None:
        """The version of an object, or None."""
        raise NotImplementedError

    def get(self, name: str) -> tuple[bytes, Version] | None:
        """A short object."""
        raise NotImplementedError

    def tail(self, name: str, count: int) -> tuple[bytes, Version] | None:
        """The end of an object."""
        raise NotImplementedError

    def put(self, name: str, content: Any, size: int, over: Version | None = None) -> Version:
        """Write an object, whatever was there, or only `over` a version."""
        raise NotImplementedError

    def create(self, name: str, content: Any, size: int) -> Version:
        """Write an object that must not be there."""
        raise NotImplementedError

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; they need not be there."""
        raise NotImplementedError

    def part(self, name: str, known: Version, begin: int, end: int) -> bytes:
        """Some bytes of an object of this version; asked for again where they were cut short."""

        def read() -> bytes:
            found = self._part(name, known, begin, end)
            if len(found) != end - begin:
                raise Failure(errno.EIO, f"{name}: {len(found)} bytes came of {end - begin}")
            return found

        return tried(read)

    def download(self, name: str, known: Version, into: BinaryIO) -> None:
        """Write an object of this version into a file; begun again where it was cut short."""

        def copy() -> None:
            into.seek(0)
            into.truncate()
            self._download(name, known, into)

        tried(copy)

    def _part(self, name: str, known: Version, begin: int, end: int) -> bytes:
        raise NotImplementedError

    def _download(self, name: str, known: Version, into: BinaryIO) -> None:
        raise NotImplementedError


def tried(request: Callable[[], T], tries: int = TRIES, pause: float = 0.0) -> T:
    """Make a request that can be repeated, a few times where the store fails; with a pause before
    the next that doubles, up to two seconds."""
    for left in reversed(range(tries)):
        try:
            return request()
        except Failure as failure:
            if failure.final or not left:
                raise
        sleep(min(2.0, pause * 2 ** (tries - 1 - left)))
    raise AssertionError


class Bucket(Objects):
    """A folder of an object store. `options` are those of `obstore`."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        try:
            import obstore
            from obstore import exceptions
        except ModuleNotFoundError as error:
            raise CompositionError(f"{url} needs {error.name}", remedy=install("objects")) from None
        scheme, _, rest = url.partition("://")
        bucket, _, folder = rest.partition("/")
        self.url, self._api, self._prefix = url, obstore, f"{folder}/" if folder else ""
        self._refused = exceptions.AlreadyExistsError, exceptions.PreconditionError
        self._denied = exceptions.PermissionDeniedError, exceptions.UnauthenticatedError
        self._errors = exceptions.BaseError
        endpoint = options.get("endpoint") or next(filter(None, map(os.environ.get, _ENDPOINT)), "")
        client = {
            "timeout": timedelta(seconds=180),
            "connect_timeout": timedelta(seconds=10),
            "allow_http": endpoint.startswith("http:"),
        }
        retry = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}
        given = {"client_options": {}, "retry_config": {}, **options}
        given["client_options"] = client | given["client_options"]
        given["retry_config"] = retry | given["retry_config"]
        try:
            self.store = _store(f"{scheme}://{bucket}", given)
        except (self._errors, ValueError, TypeError) as error:
            raise CompositionError(
                f"{url} cannot be used: {said(error)}",
                remedy="the options that obstore has for such a store",
            ) from None

    def _do(self, what: str, request: Callable[..., T], *given: Any, **options: Any) -> T:
        """Make a request; what goes wrong becomes an OSError that says what it was about."""
        try:
            return request(self.store, *given, **options)
        except FileNotFoundError as error:
            missing = FileNotFoundError(errno.ENOENT, f"{what}: {said(error)}", self.url)
            raise missing from None
        except self._refused as error:
            raise FileExistsError(errno.EEXIST, f"{what}: {said(error)}", self.url) from None
        except self._denied as error:
            raise PermissionError(errno.EACCES, f"{what}: {said(error)}", self.url) from None
        except (self._errors, OSError, ValueError) as error:
            failure = Failure(errno.EIO, f"{what}: {said(error)}", self.url)
            status = _STATUS.search(str(error))
            failure.final = status is not None and status[1].startswith("4")
            raise failure from None

    # ---- reading ----

    def listed(self) -> dict[str, Version]:
        prefix = self._prefix
        found: Any = self._do("list", self._api.list_with_delimiter, prefix or None)
        return {each["path"][len(prefix) :]: version(each) for each in found["objects"]}

    def head(self, name: str) -> Version | None:
        try:
            return version(self._do(name, self._api.head, self._prefix + name))
        except FileNotFoundError:
            return None

    def get(self, name: str) -> tuple[bytes, Version] | None:
        try:
            found = self._do(name, self._whole, name)
        except FileNotFoundError:
            return None
        return found

    def tail(self, name: str, count: int) -> tuple[bytes, Version] | None:
        try:
            return self._do(name, self._whole, name, {"range": {"suffix": count}})
        except FileNotFoundError:
            return None

    def _whole(self, store: Any, name: str, options: Any = None) -> tuple[bytes, Version]:
        found = self._api.get(store, self._prefix + name, options=options)
        return bytes(found.bytes()), version(found.meta)

    def _part(self, name: str, known: Version, begin: int, end: int) -> bytes:
        options = {"if_match": known.tag, "range": (begin, end)}
        return self._do(name, self._whole, name, options)[0]

    def _download(self, name: str, known: Version, into: BinaryIO) -> None:
        self._do(name, self._copy, name, known, into)

    def _copy(self, store: Any, name: str, known: Version, into: BinaryIO) -> None:
        found = self._api.get(store, self._prefix + name, options={"if_match": known.tag})
        for chunk in found.stream(min_chunk_size=1 << 20):
            into.write(chunk)
        if into.tell() != known.size:
            raise ValueError(f"{into.tell()} bytes came, and {known.size} were said to")

    # ---- writing ----

    def put(self, name: str, content: Any, size: int, over: Version | None = None) -> Version:
        mode = {"mode": _update(over)} if over is not None else {"chunk_size": PART}
        return self._put(name, content, size, mode)

    def create(self, name: str, content: Any, size: int) -> Version:
        return self._put(name, content, size, {"mode": "create"})

    def _put(self, name: str, content: Any, size: int, mode: dict[str, Any]) -> Version:
        done = self._do(name, self._api.put, self._prefix + name, content, **mode)
        return Version(size, done["e_tag"] or "", done["version"])

    def delete(self, names: Iterable[str]) -> None:
        gone = sorted(self._prefix + name for name in names)
        if gone:
            self._do("delete", self._api.delete, gone)


_stores: dict[bytes, Any] = {}
"""The clients that this process has, by what they were made with."""


def _store(url: str, options: dict[str, Any]) -> Any:
    from obstore import store

    key = pickle.dumps((os.getpid(), url, options))
    if key not in _stores:
        _stores[key] = store.from_url(url, **options)
    return _stores[key]


def version(meta: Any) -> Version:
    """The version that a store says an object has."""
    return Version(meta["size"], meta["e_tag"] or "", meta["version"], meta["last_modified"])


def _update(over: Version) -> dict[str, str]:
    known = {"e_tag": over.tag, "version": over.number}
    return {key: value for key, value in known.items() if value}


def said(error: BaseException) -> str:
    """What a store said, in a line; what it wrote about the request is left out.

    >>> said(ValueError("status code: 403 Forbidden: <?xml ?><Code>AccessDenied</Code><Key/>"))
    'status code: 403 Forbidden (AccessDenied)'
    """
    text = str(error)
    code = _CODE.search(text)
    line = re.split(r"\s*:?\s*<\?xml|\n", text, maxsplit=1)[0]
    return line[:300] + (f" ({code[1]})" if code else "")
