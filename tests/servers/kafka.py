"""A Kafka broker of our own, alone, with its log in a temporary folder.

It is run from the jars of `org.apache.kafka:kafka_2.13`, which are fetched by these coordinates.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from tests.servers.ivy import free_port, jars

VERSION = "4.3.1"
NOT_RUN = "Kafka tests were not run: "


class Kafka:
    """A broker: `servers` is where it is; to be killed and started again."""

    def __init__(self) -> None:
        pytest.importorskip("confluent_kafka", reason=f"{NOT_RUN}no confluent-kafka here")
        self.jars = jars("org.apache.kafka", "kafka_2.13", VERSION, "Kafka")
        self.folder = Path(tempfile.mkdtemp(prefix="ebbflow-kafka-", dir="/tmp"))
        self.port, controller = free_port(), free_port()
        settings = {
            "process.roles": "broker,controller", "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self.folder / "log", "num.partitions": 3,
            "offsets.topic.replication.factor": 1, "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1, "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false", "broker.session.timeout.ms": 3000,
        }  # fmt: skip
        self.settings = self.folder / "server.properties"
        self.settings.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
        self._java("kafka.tools.StorageTool", "format", "-t", "ebbflow-tests-of-kafka",
                   "-c", str(self.settings)).wait(60)  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _java(self, *command: str) -> subprocess.Popen[bytes]:
        with open(self.folder / "said", "ab") as out:
            return subprocess.Popen(
                ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto",
                 "-cp", str(self.jars / "*"), *command],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.folder,
            )  # fmt: skip

    def start(self) -> None:
        """Start it, and wait until it answers."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        self._process = self._java("kafka.Kafka", str(self.settings))
        asked = {"bootstrap.servers": self.servers, "log_level": 0}
        end = time.monotonic() + 120
        while True:
            assert self._process.poll() is None, (self.folder / "said").read_text()[-2000:]
            try:
                AdminClient(asked).list_topics(timeout=1)
                return
            except KafkaException:
                assert time.monotonic() < end, "the broker does not answer"

    def kill(self) -> None:
        """Kill it at once, as a machine that fails."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
