"""Looking at a Spark session before anything runs on it.

Somebody else has started it, on a cluster perhaps, or it is a client of a Spark Connect server.
What would fail in the middle of a job, in a hundred lines, is said here in one sentence: a server
that does not answer, another version, workers whose Python is another one or lacks a package, a
folder that they do not see.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ebbflow.engine.spark.connect import functions_are_connect, is_connect
from ebbflow.engine.spark.session import PARTITIONS, SOCKETS, VERSIONS, reason, require_running
from ebbflow.errors import SparkError, Text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWER = 20.0
"""So many seconds a server has to answer."""
WAIT = 60.0
"""So many seconds a cluster has for a small job, before it is said that it waits."""
_checked: WeakSet[Any] = WeakSet()


def check_session(session: SparkSession) -> SparkSession:
    """The session, when it can be used; else an error. What only costs time is a warning.

    It runs one small job, the first time, to see what the workers have.
    """
    require_running(session)
    if session in _checked:
        return session
    if is_connect(session):
        _check_server(session)
    elif functions_are_connect():
        raise _mixed("a session of Spark Connect is in use in this process, and this is none")
    version = tuple(map(int, re.findall(r"\d+", session.version)[:2]))
    if not VERSIONS[0] <= version <= VERSIONS[1]:
        what = "the Spark Connect server is" if is_connect(session) else "this is"
        raise SparkError(
            f"{what} Spark {session.version}",
            remedy="Spark 4.1 to 4.3, as in: pip install 'pyspark==4.2.0'",
        )
    remarks = list(_remarks(session))
    _check_workers(session)
    if remarks:
        warnings.warn("this Spark session: " + "; ".join(remarks), RuntimeWarning, stacklevel=2)
    _checked.add(session)
    return session


def _remarks(session: SparkSession) -> Iterator[str]:
    """What could be better."""

    def setting(name: str, default: str) -> str:
        return str(session.conf.get(name, default)).lower()

    connect = is_connect(session)
    who = "of the server" if connect else "before it starts"
    if setting(SOCKETS, "false") != "true":
        yield f"{SOCKETS} is off, which costs 40 ms per Python stage; set it {who}"
    if setting("spark.python.worker.reuse", "true") != "true":
        yield "spark.python.worker.reuse is off, so every task starts a Python"
    local = re.fullmatch(r"local\[(\d+)\]", setting("spark.master", ""))
    partitions = int(setting(PARTITIONS, "200"))
    if local and partitions > 8 * int(local.group(1)):
        yield f"{PARTITIONS} is {partitions} for {local.group(1)} cores; set it to their number"
    if connect and setting("spark.sql.ansi.enabled", "true") != "true":
        yield "spark.sql.ansi.enabled is off, so there are no bulk loads"


# ---- Connect ----


def _check_server(session: Any) -> None:
    """An error where the server does not answer, or this process has other functions."""
    if not functions_are_connect():
        raise _mixed("this is a session of Spark Connect, and the functions of pyspark.sql are not")
    from grpc import FutureTimeoutError, channel_ready_future

    client = session.client
    channel = getattr(client, "_channel", None)
    try:
        if channel is not None:  # what it asks for later, it would wait for by the minute
            channel_ready_future(channel).result(timeout=ANSWER)
        session.version  # noqa: B018
    except Exception as error:
        silent = isinstance(error, FutureTimeoutError)
        raise SparkError(
            "the Spark Connect server does not answer",
            address=Text(getattr(client, "host", "?")),
            cause=Text(f"no connection in {ANSWER:.0f} s" if silent else reason(str(error))),
            remedy="start the server, or correct the address in SparkSession.builder.remote(...)",
        ) from (None if silent else error)


def _mixed(what: str) -> SparkError:
    return SparkError(
        what,
        remedy="one kind of session in a process, from pyspark.sql: SparkSession.builder"
        ".remote('sc://...') for Spark Connect",
    )


# ---- workers ----


def _check_workers(session: SparkSession) -> None:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"

    def look(batches: Any) -> Any:
        import importlib
        import sys

        import pyarrow

        missing = []
        for name in ("numpy", "ebbflow"):
            try:
                importlib.import_module(name)
            except ImportError:
                missing.append(name)
        for batch in batches:
            count = batch.num_rows
            python = f"{sys.version_info.major}.{sys.version_info.minor}"
            said = {"python": python, "missing": " and ".join(missing), "which": sys.executable}
            yield pyarrow.RecordBatch.from_pydict({n: [text] * count for n, text in said.items()})

    which = os.environ.get("PYSPARK_PYTHON", "python3, as PYSPARK_PYTHON is not set")
    if is_connect(session):
        which = "that of the server, by its PYSPARK_PYTHON"
    try:
        with _waiting(session):
            one = session.range(0, 1, 1, 1)
            schema = "python string, missing string, which string"
            (found,) = one.mapInArrow(look, schema).collect()
        python, missing, which = found.python, found.missing, found.which
    except Exception as error:
        python, missing = _from_failure(str(error), here)
        if not python and not missing:
            raise SparkError(
                "a small job on this Spark session failed",
                cause=Text(reason(str(error))),
                remedy="is the session running, and can its workers start Python?",
            ) from error
    where = "of the server " if is_connect(session) else ""
    if python and python != here:
        raise SparkError(
            f"the workers run Python {python}, and this is Python {here}",
            python=Text(which),
            remedy=f"set PYSPARK_PYTHON {where}to the same Python for both, before Spark starts",
        )
    if missing:
        raise SparkError(
            f"the workers cannot import {missing}",
            python=Text(which),
            remedy=f"set PYSPARK_PYTHON {where}to a Python that has it, before Spark starts; or "
            f"send the environment along ({'addArtifacts' if where else 'spark.archives'})",
        )


def _from_failure(text: str, here: str) -> tuple[str, str]:
    """What a failed job says about the workers: their Python, and what they lack."""
    mismatch = "PYTHON_VERSION_MISMATCH" in text
    versions = [v for v in re.findall(r"\b3\.\d+\b", text) if v != here]
    missing = re.search(r"No module named '(\w+)", text)
    return versions[0] if mismatch and versions else "", missing.group(1) if missing else ""


@contextmanager
def _waiting(session: SparkSession) -> Iterator[None]:
    """Says so when a job does not begin on a cluster: Spark would wait for ever."""
    if is_local(session):
        yield
        return
    said = (
        f"this Spark session has not ended a small job in {WAIT:.0f} s: does its cluster have "
        "workers, with as many free cores and as much memory as its executors ask for?"
    )
    timer = Timer(WAIT, logging.getLogger("ebbflow").warning, [said])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def is_local(session: Any) -> bool:
    """Whether the workers of a session are where its driver is."""
    conf = getattr(session, "conf", None)
    return conf is None or str(conf.get("spark.master", "local")).startswith("local[")


# ---- the folder of the state ----


def require_shared(session: SparkSession, path: str) -> None:
    """An error when a worker on another machine does not see the folder in which state is open."""
    if (is_local(session) and not is_connect(session)) or "://" in path:
        return  # tasks run here; and an object store is where it is
    lock = os.path.join(path, "lock")

    def look(batches: Any) -> Any:
        import pyarrow

        try:
            with open(lock, encoding="utf-8") as file:
                said = file.read()
        except OSError as error:
            said = f"no: {error.strerror}"
        for batch in batches:
            yield pyarrow.RecordBatch.from_pydict({"said": [said] * batch.num_rows})

    with open(lock, encoding="utf-8") as file:
        wanted = file.read()
    (found,) = session.range(0, 1, 1, 1).mapInArrow(look, "said string").collect()
    if found.said != wanted:
        raise SparkError(
            "the workers do not see the folder of the state",
            path=Text(path),
            cause=Text(found.said[4:] if found.said.startswith("no: ") else "it is another folder"),
            remedy="a folder that this process and all workers see under the same name, and write",
        )
