"""Spark's servers as processes of their own: a standalone cluster, and a Connect server.

All of it is in the package of PySpark. Ports are free ones, which the servers tell in their logs.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pyspark

from ebbflow.engine.spark.session import find_java

HOME = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[2]
SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""What makes a small Java start soon."""
FAST = {
    "spark.ui.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "ebbflow.engine.spark.tasks.daemon",
    "spark.driver.memory": "768m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": SMALL,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": SMALL,
    "spark.sql.shuffle.partitions": "2",
}


class Server:
    """A process, and what it says."""

    def __init__(self, command: list[str], log: Path, **environment: str) -> None:
        home = find_java()
        inherited = {
            name: value for name, value in os.environ.items()
            if not name.startswith(("SPARK_", "PYSPARK_", "COV_"))
        }  # fmt: skip
        self.log = log
        ours = {
            "SPARK_HOME": str(HOME), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "768m", "SPARK_DAEMON_JAVA_OPTS": SMALL,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "PYTHONHASHSEED": "0",
        }  # fmt: skip
        if home is not None:
            ours["JAVA_HOME"] = home
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True,
                env={**inherited, **ours, **environment}, preexec_fn=_end_with_the_test,
            )  # fmt: skip

    def said(self, pattern: str, seconds: float = 120) -> str:
        """The first group of the pattern, as soon as it is in the log."""
        until = monotonic() + seconds
        while monotonic() < until and self.process.poll() is None:
            found = re.search(pattern, self.log.read_text("utf-8", "replace"))
            if found:
                return found.group(1)
            sleep(0.05)
        raise RuntimeError(f"not said: {pattern}\n{self.log.read_text('utf-8', 'replace')[-4000:]}")

    def stop(self) -> None:
        """End it, and all that it has started."""
        for each in (*descendants(self.process.pid), self.process.pid):
            kill(each)
        self.process.wait()


def _end_with_the_test() -> None:
    """Have a process end when the one that started it does, whatever happened to that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def descendants(process: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    parents = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                fields = each.joinpath("stat").read_text().rpartition(")")[2].split()
                parents[int(each.name)] = int(fields[1])
            except OSError:
                continue
    found, new = list[int](), [process]
    while new:
        new = [child for child, parent in parents.items() if parent in new]
        found += new
    return found


def kill(process: int) -> None:
    """End a process, at once."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


class Cluster:
    """A standalone master and its workers."""

    def __init__(self, folder: Path, workers: int = 2, **environment: str) -> None:
        self.folder, self.environment = folder, environment
        self.servers: list[Server] = []
        self.workers: list[Server] = []
        try:
            master = self._start("Master", "--port", "0")
            self.url = master.said(r"Starting Spark master at (spark://\S+)")
            for _ in range(workers):
                self.add_worker()
        except BaseException:
            self.stop()
            raise

    def add_worker(self) -> Server:
        """One more worker, with one core."""
        place = self.folder / f"worker-{len(self.workers)}"
        made = self._start("Worker", "-c", "1", "-m", "1g", "-d", str(place), self.url)
        self.workers.append(made)
        return made

    def _start(self, name: str, *options: str) -> Server:
        cls = f"org.apache.spark.deploy.{name.lower()}.{name}"
        command = [_java(), *SMALL.split(), "-Xmx256m", "-cp", str(HOME / "jars" / "*"), cls]
        log = self.folder / f"{name.lower()}-{len(self.servers)}.log"
        host = f"127.0.0.{1 + len(self.servers)}"  # Spark runs a task again on another host only
        common = ["--host", host, "--webui-port", "0"]
        made = Server([*command, *common, *options], log, **self.environment)
        self.servers.append(made)
        return made

    def executors(self) -> list[int]:
        """The processes of executors."""
        found = [child for worker in self.workers for child in descendants(worker.process.pid)]
        return [each for each in found if b"CoarseGrainedExecutorBackend" in _command(each)]

    def python_workers(self) -> list[int]:
        """The processes that run Python's tasks, and those that they are forked from."""
        return [
            child for executor in self.executors() for child in descendants(executor)
            if b"daemon" in _command(child)
        ]  # fmt: skip

    def stop(self) -> None:
        for each in reversed(self.servers):
            each.stop()


def _java() -> str:
    home = find_java() or os.environ.get("JAVA_HOME")
    return "java" if home is None else str(Path(home, "bin", "java"))


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def cluster(folder: Path, workers: int = 2, **environment: str) -> Iterator[Cluster]:
    """A cluster, for as long as it is needed."""
    made = Cluster(folder, workers, **environment)
    try:
        yield made
    finally:
        made.stop()


@contextmanager
def connect_server(
    folder: Path, master: str, conf: Mapping[str, Any] = {}, **environment: str
) -> Iterator[str]:
    """A Connect server on a master, for as long as it is needed: its address."""
    settings = {**FAST, "spark.master": master, "spark.connect.grpc.binding.port": "0",
                "spark.connect.grpc.binding.address": "127.0.0.1", **conf}  # fmt: skip
    command = [str(HOME / "bin" / "spark-submit")]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    cls = "org.apache.spark.sql.connect.service.SparkConnectServer"
    made = Server(
        [*command, "--class", cls, "spark-internal"], folder / "connect.log", **environment
    )
    try:
        port = made.said(r"Spark Connect server started at: \S*?:(\d+)")
        yield f"sc://127.0.0.1:{port}"
    finally:
        made.stop()


MODE = "SPARK_CONNECT_MODE_ENABLED"
"""Where this is set, the functions of `pyspark.sql` make columns for Connect."""


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A new session of a Connect server. The functions of this process are for it meanwhile."""
    from pyspark.sql import SparkSession

    was = os.environ.get(MODE)
    made = SparkSession.builder.remote(address).create()
    try:
        yield made
    finally:
        made.stop()  # before the server: else it is asked for ten minutes
        os.environ.pop(MODE, None)
        if was is not None:
            os.environ[MODE] = was
