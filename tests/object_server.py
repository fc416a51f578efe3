"""An object store for tests: moto's S3 over HTTP, which can be told to misbehave.

Requests are carried out one at a time, so that a put that must be the first is one. `fault` is
asked about every request, and says what goes wrong with it, if anything:

    "drop"      the request is not carried out, and there is no answer
    "lost"      it is carried out, and the answer is lost
    "late"      there is no answer, and it is carried out a little later
    "cut"       half of the answer comes
    500, 503    it is not carried out, and that is the answer
    -500        it is carried out, and the answer says that it was not
    "stale"     a list is as it was when a list was asked for first
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from threading import Lock, Thread, Timer
from typing import Any
from uuid import uuid4

import pytest
from tests.faulty_server import Fault, FaultyServer, first, place

import ebbflow as ef
from ebbflow.state.spine.bucket import Bucket

_WHY = "state on an object store was not tested: {} is not installed"
for each in ("obstore", "flask"):
    pytest.importorskip(each, reason=_WHY.format(each))
moto = pytest.importorskip("moto.moto_server.werkzeug_app", reason=_WHY.format("moto"))
serving = pytest.importorskip("werkzeug.serving", reason=_WHY.format("werkzeug"))

__all__ = ["Crash", "ObjectServer", "Request", "Stopped", "on", "place", "server"]
SECRET = "do-not-write-this-down"


@dataclass(frozen=True)
class Request:
    """One request that was made."""

    number: int
    method: str
    path: str
    """Within the bucket; for a list, what it is a list of."""
    query: str

    @property
    def what(self) -> str:
        """What it does: GET, PUT, HEAD, DELETE or LIST."""
        if self.method == "POST" and "delete" in self.query:
            return "DELETE"
        return "LIST" if "list-type" in self.query else self.method

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


class _Quiet(serving.WSGIRequestHandler):  # type: ignore[misc]
    protocol_version = "HTTP/1.1"

    def log(self, *args: Any) -> None:
        pass


class ObjectServer(FaultyServer):
    """A server in this process."""

    def __init__(self) -> None:
        os.environ.setdefault("MOTO_S3_CUSTOM_ENDPOINTS", "")
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._app = moto.DomainDispatcherApplication(moto.create_backend_app)
        self._lock = Lock()
        self.lists: dict[str, Any] = {}
        self.requests: list[Request] = []
        self._server = serving.make_server(
            "127.0.0.1", 0, self, threaded=True, request_handler=_Quiet
        )
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # ---- what a client asks ----

    def __call__(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        size = int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = BytesIO(environ["wsgi.input"].read(size) if size else b"")
        _, _, path = environ["PATH_INFO"].lstrip("/").partition("/")
        with self._lock:
            method, query = environ["REQUEST_METHOD"], environ.get("QUERY_STRING", "")
            request = Request(len(self.requests), method, path, query)
            self.requests.append(request)
            fault = self.fault(request)
        if fault == "late":
            Timer(0.2, lambda: self._carry_out(dict(environ))).start()
        if fault in ("drop", "late"):
            return self._hang_up(environ, start)
        if fault in (500, 503):
            start(f"{fault} Injected", [("Content-Length", "0")])
            return []
        status, headers, body = self._carry_out(environ)
        if request.what == "LIST":
            asked = environ["PATH_INFO"] + query
            first = self.lists.setdefault(asked, (status, headers, body))
            status, headers, body = first if fault == "stale" else (status, headers, body)
        if fault == "lost":
            return self._hang_up(environ, start)
        if fault == "cut":
            start(status, headers)
            return self._cut(environ, body)
        if fault == -500:
            start("500 Injected", [("Content-Length", "0")])
            return []
        start(status, headers)
        return [] if method == "HEAD" else [body]

    def _carry_out(self, environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
        found: list[Any] = []
        with self._lock:
            body = b"".join(self._app(environ, lambda *answer: found.extend(answer[:2])))
        return found[0], found[1], body

    def _hang_up(self, environ: dict[str, Any], start: Any) -> list[bytes]:
        with suppress(OSError):
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        start("200 OK", [("Content-Length", "0")])
        return []

    def _cut(self, environ: dict[str, Any], body: bytes) -> Iterator[bytes]:
        yield body[: len(body) // 2]
        with suppress(OSError):
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)

    # ---- for tests ----

    def place(self, folder: str = "", **options: Any) -> Any:
        """A new folder in a bucket of its own, or one that is there."""
        from urllib.request import Request as Url
        from urllib.request import urlopen

        if not folder:
            folder = f"b-{uuid4().hex}/state"
            urlopen(Url(f"{self.url}/{folder.partition('/')[0]}", method="PUT")).close()
            self.requests.clear()
        given = {
            "endpoint": self.url, "region": "us-east-1", "access_key_id": "test",
            "secret_access_key": SECRET, "retry_config": {"max_retries": 0},
        }  # fmt: skip
        return ef.object_store(f"s3://{folder}", **(given | options))

    def again(self, place: Any, **options: Any) -> Any:
        """The same folder, opened otherwise."""
        return self.place(place.url.removeprefix("s3://"), **(place.options | options))

    def made(self) -> list[Request]:
        """The requests since this was asked last."""
        found, self.requests[:] = list(self.requests), []
        return found

    def names(self, place: Any) -> list[str]:
        """The names of all objects of a place, without asking by HTTP."""
        from moto.s3.models import s3_backends

        bucket, _, folder = place.url.removeprefix("s3://").partition("/")
        keys = s3_backends["123456789012"]["aws"].buckets[bucket].keys
        return sorted(key.removeprefix(f"{folder}/") for key in keys)


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    found = ObjectServer()
    yield found
    found.stop()


def on(what: str, fault: Any, times: int = 1, name: str = "") -> Fault:
    """A fault for the first requests of a sort: `on("PUT", "lost", name="epoch-")`."""
    return first(times, fault, lambda asked: asked.what == what and asked.name.startswith(name))


# ---- a process that stops ----


class Crash(BaseException):
    """The process stopped."""


class Stopped:
    """Requests up to one: it is carried out, or not, and then there are no more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.last, self.carried_out = 0, -1, False
        whole = Bucket._do

        def do(bucket: Bucket, *given: Any, **options: Any) -> Any:
            at, self.count = self.count, self.count + 1
            if self.last < 0 or at < self.last:
                return whole(bucket, *given, **options)
            if at == self.last and self.carried_out:
                whole(bucket, *given, **options)
            raise Crash(at)

        monkeypatch.setattr(Bucket, "_do", do)

    def within(self, last: int, carried_out: bool) -> None:
        self.count, self.last, self.carried_out = 0, last, carried_out

    def over(self) -> None:
        self.last = -1


if __name__ == "__main__":  # as a process of its own, until its input ends
    served = ObjectServer()
    print(served.place().url, served.url, flush=True)
    sys.stdin.read()
