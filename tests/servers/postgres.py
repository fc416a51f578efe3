"""A PostgreSQL server of our own, in a temporary folder, on a socket there and on no port.

`initdb` and `pg_ctl` are looked for on the PATH and where Debian has them. The server refuses to
run as root, so root runs it as another user.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from pwd import getpwnam
from typing import Any

import pytest


def _program(name: str) -> str | None:
    found = shutil.which(name)
    if found:
        return found
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=_version)
    return str(places[-1]) if places else None


def _version(place: Path) -> float:
    return float(place.parts[-3])


def _as_other() -> list[str]:
    """What runs a command as somebody who is not root."""
    if os.getuid():
        return []
    for user in ("postgres", "nobody"):
        try:
            uid = getpwnam(user).pw_uid
        except KeyError:
            continue
        if shutil.which("setpriv"):
            gid = getpwnam(user).pw_gid
            return ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    pytest.skip("PostgreSQL tests were not run: a root needs setpriv and a user postgres or nobody")


class Postgres:
    """A server, to be stopped and started, also as after a crash."""

    def __init__(self) -> None:
        self.initdb, self.pg_ctl = _program("initdb"), _program("pg_ctl")
        if self.initdb is None or self.pg_ctl is None:
            pytest.skip("PostgreSQL tests were not run: there is no initdb and pg_ctl here")
        pytest.importorskip("psycopg", reason="PostgreSQL tests were not run: no psycopg here")
        self.other = _as_other()
        self.folder = Path(tempfile.mkdtemp(prefix="ebbflow-pg-", dir="/tmp"))
        os.chmod(self.folder, 0o777)
        self._run(self.initdb, "-D", self.data, "-U", "ebbflow", "-A", "trust", "--no-sync",
                  "-E", "UTF8", "--locale=C")  # fmt: skip
        self.start()

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = (
            f"-k {self.folder} -c listen_addresses= -c wal_level=logical -c shared_buffers=16MB "
            "-c max_wal_senders=8 -c max_replication_slots=16 -c wal_sender_timeout=0"
        )
        assert self.pg_ctl is not None
        self._run(self.pg_ctl, "-D", self.data, "-l", str(self.folder / "log"), "-w", "-o", options,
                  "start")  # fmt: skip

    def stop(self, mode: str = "immediate") -> None:
        """Stop it: `immediate` is a crash, which has to recover when it is started again."""
        assert self.pg_ctl is not None
        self._run(self.pg_ctl, "-D", self.data, "-m", mode, "-w", "stop")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, *command: str) -> None:
        said = self.folder / "said"  # no pipe: a server that was started would keep it open
        with open(said, "w") as out:
            done = subprocess.run(
                [*self.other, *command], cwd=self.folder, check=False, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out,
            )  # fmt: skip
        assert done.returncode == 0, (command, said.read_text())

    # ---- asking it ----

    def database(self, name: str) -> Database:
        """A database of the server."""
        return Database(self, name)

    def query(self, text: str, *given: Any) -> list[tuple[Any, ...]]:
        """The rows of a query on its first database."""
        return self.database("postgres").query(text, *given)


class Database:
    """A database of a server: `dsn` is where it is."""

    def __init__(self, server: Postgres, name: str) -> None:
        self.server, self.name = server, name

    @property
    def dsn(self) -> str:
        return f"host={self.server.folder} dbname={self.name} user=ebbflow"

    def query(self, text: str, *given: Any) -> list[tuple[Any, ...]]:
        """The rows of a query, or none of a command; on a connection of its own."""
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True) as connection:
            found = connection.execute(text, given or None)
            return found.fetchall() if found.description else []
