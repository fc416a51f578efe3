"""HDFS of our own: a name node and a data node, processes that are killed and started again.

They are the servers themselves, from the jars of `org.apache.hadoop:hadoop-client-minicluster`.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from tests.servers.ivy import free_port, jars

import ebbflow as ef

VERSION = "3.5.0"
_SERVER = "org.apache.hadoop.hdfs.server"
NAME, DATA = f"{_SERVER}.namenode.NameNode", f"{_SERVER}.datanode.DataNode"


class Hdfs:
    """A name node and a data node: `host` is where the first is asked by HTTP."""

    def __init__(self) -> None:
        self.jars = jars("org.apache.hadoop", "hadoop-client-minicluster", VERSION, "HDFS")
        self.folder = Path(tempfile.mkdtemp(prefix="ebbflow-hdfs-", dir="/tmp"))
        self.host = f"127.0.0.1:{free_port()}"
        data = f"127.0.0.1:{free_port()}"
        settings = {
            "fs.defaultFS": f"hdfs://127.0.0.1:{free_port()}",
            "dfs.namenode.name.dir": f"file://{self.folder}/name",
            "dfs.datanode.data.dir": f"file://{self.folder}/data",
            "dfs.namenode.http-address": self.host, "dfs.datanode.http.address": data,
            "dfs.datanode.address": "127.0.0.1:0", "dfs.datanode.ipc.address": "127.0.0.1:0",
            "dfs.datanode.hostname": "127.0.0.1", "dfs.replication": 1,
            "dfs.namenode.safemode.extension": 0, "dfs.heartbeat.interval": 1,
        }  # fmt: skip
        lines = [f"<property><name>{k}</name><value>{v}</value></property>"
                 for k, v in settings.items()]  # fmt: skip
        for name in ("core-site.xml", "hdfs-site.xml"):
            text = f"<configuration>{''.join(lines)}</configuration>"
            (self.folder / name).write_text(text)
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        assert self._java(NAME, "-format", "-nonInteractive").wait(120) == 0
        for each in (NAME, DATA):
            self.start(each)
        self.wait()

    def _java(self, *command: str) -> subprocess.Popen[bytes]:
        with open(self.folder / "said", "ab") as out:
            return subprocess.Popen(
                ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
                 "-cp", f"{self.folder}:{self.jars}/*", *command],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.folder,
            )  # fmt: skip

    def start(self, server: str) -> None:
        self._servers[server] = self._java(server)

    def kill(self, server: str) -> None:
        """Kill it at once, as a machine that fails."""
        self._servers[server].send_signal(signal.SIGKILL)
        self._servers[server].wait()

    def wait(self) -> None:
        """Wait until a file can be written and read."""
        made, end = self.place("ready").files().bucket, time.monotonic() + 240
        while time.monotonic() < end:
            with suppress(OSError):
                made.download("file", made.put("file", b"yes", 3), BytesIO())
                return
            assert all(each.poll() is None for each in self._servers.values())
        raise AssertionError((self.folder / "said").read_text()[-2000:])

    def place(self, folder: str, **options: Any) -> Any:
        return ef.object_store(f"webhdfs://{self.host}/{folder}", user="root", **options)

    def remove(self) -> None:
        for each in self._servers:
            self.kill(each)
        shutil.rmtree(self.folder, ignore_errors=True)
