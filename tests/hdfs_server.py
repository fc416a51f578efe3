"""WebHDFS for tests: what a name node and its data nodes answer, from memory, and with faults.

It has what `ebbflow.state.spine.hdfs` asks for, as Hadoop 3.5 answers it; `tests/oracle/test_hdfs`
asks the real one. Requests are carried out one at a time. `fault` is asked about every request:

    "drop"      it is not carried out, and there is no answer
    "lost"      it is carried out, and the answer is lost
    "cut"       half of the answer comes
    "standby"   it is not carried out, as another name node is the one to ask
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from time import time
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

import pytest
from tests.faulty_server import Fault, FaultyServer, first, place

import ebbflow as ef

__all__ = ["HdfsServer", "on", "place", "server"]
INODES = "/.reserved/.inodes/"


@dataclass
class File:
    number: int
    content: bytes
    modified: int


class Refused(Exception):
    """An exception of Hadoop's, with the status of its answer."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


class HdfsServer(FaultyServer):
    """A server in this process."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.requests: list[tuple[str, str]] = []
        self.lock, self.next = Lock(), 16_385
        self.allowed = {"me"}

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *given: Any) -> None:
                pass

            def do_GET(handler) -> None:
                self.answer(handler)

            do_PUT = do_DELETE = do_GET

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # ---- what a client asks ----

    def answer(self, handler: Any) -> None:
        size = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(size) if size else b""
        parts = urlsplit(handler.path)
        given = {name: each[0] for name, each in parse_qs(parts.query).items()}
        path = unquote(parts.path).removeprefix("/webhdfs/v1")
        operation = given["op"] if "data" not in given else f"{given['op']} data"
        with self.lock:
            self.requests.append((operation, path))
            fault = self.fault(operation, path)
            status, answer = 200, b""
            if fault != "drop":
                try:
                    if fault == "standby":
                        raise Refused(403, "StandbyException", "not active")
                    if given.get("user.name") not in self.allowed:
                        raise Refused(403, "AccessControlException", "Permission denied")
                    answer = self.done(operation, path, given, body)
                except Refused as error:
                    said = {"exception": error.kind, "message": str(error)}
                    status, answer = error.status, json.dumps({"RemoteException": said}).encode()
        handler.close_connection = True
        if fault in ("drop", "lost"):
            return
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer[: len(answer) // 2] if fault == "cut" else answer)

    def done(self, operation: str, path: str, given: dict[str, str], body: bytes) -> bytes:
        """Carry a request out."""
        if operation in ("CREATE", "OPEN"):
            if operation == "OPEN":
                self.found(path)
            query = "&".join(f"{name}={value}" for name, value in given.items())
            return _json({"Location": f"http://{self.host}/webhdfs/v1{path}?{query}&data=1"})
        if operation == "CREATE data":
            self.files[path] = File(self.next, body, int(time() * 1000))
            self.next += 1
        elif operation == "OPEN data":
            begin = int(given.get("offset", 0))
            return self.found(path).content[begin:][: int(given.get("length", 1 << 60))]
        elif operation == "GETFILESTATUS":
            return _json({"FileStatus": _status("", self.found(path))})
        elif operation == "LISTSTATUS":
            return self.listed(path)
        elif operation == "RENAME":
            self.rename(path, given["destination"])
        elif operation == "DELETE":
            gone = [each for each in self.files if each == path or each.startswith(f"{path}/")]
            for each in gone:
                del self.files[each]
            return _json({"boolean": bool(gone)})
        else:
            assert operation == "MKDIRS", operation
        return b""

    def found(self, path: str) -> File:
        if path.startswith(INODES):
            number = int(path.removeprefix(INODES))
            known = {each.number: each for each in self.files.values()}.get(number)
        else:
            known = self.files.get(path)
        if known is None:
            raise Refused(404, "FileNotFoundException", f"File does not exist: {path}")
        return known

    def rename(self, path: str, to: str) -> None:
        if to in self.files:
            raise Refused(403, "FileAlreadyExistsException", f"destination {to} already exists")
        self.found(path)
        self.files[to] = self.files.pop(path)

    def listed(self, path: str) -> bytes:
        inside = [
            each.removeprefix(f"{path}/") for each in self.files if each.startswith(f"{path}/")
        ]
        if not inside:
            raise Refused(404, "FileNotFoundException", f"File {path} does not exist.")
        files = [_status(each, self.files[f"{path}/{each}"]) for each in inside if "/" not in each]
        folders = {each.partition("/")[0] for each in inside if "/" in each}
        nothing = File(1, b"", 0)
        files += [_status(each, nothing) | {"type": "DIRECTORY"} for each in folders]
        return _json({"FileStatuses": {"FileStatus": files}})

    # ---- for tests ----

    def place(self, folder: str = "", **options: Any) -> Any:
        folder = folder or f"{uuid4().hex}/state"
        return ef.object_store(f"webhdfs://{self.host}/{folder}", user="me", **options)


def _json(said: Any) -> bytes:
    return json.dumps(said).encode()


def _status(name: str, file: File) -> dict[str, Any]:
    return {"pathSuffix": name, "type": "FILE", "length": len(file.content),
            "fileId": file.number, "modificationTime": file.modified}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[HdfsServer]:
    found = HdfsServer()
    yield found
    found.stop()


def on(operation: str, fault: Any, times: int = 1) -> Fault:
    """A fault for the first requests of a sort."""
    return first(times, fault, lambda asked, path: asked == operation)
