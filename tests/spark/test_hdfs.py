"""The Spark engine with its state on HDFS: tasks read and write it by themselves, without a jar."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.hdfs_server import HdfsServer, on, place, server
from tests.servers.hdfs import DATA, NAME, Hdfs
from tests.spark.simulated import View
from tests.spark.test_objects import PROGRAM, random_changes

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.zset import ZSet

__all__ = ["place", "server"]


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged"])
def test_oracle_tasks_on_hdfs_equal_batch(server: HdfsServer, place: Any, mode: str) -> None:
    """On the cluster that is not there: the code of the tasks, without Spark; answers get lost."""
    view = View(PROGRAM.plan, mode, path=place)
    total = {name: ZSet[Any]() for name in PROGRAM.plan.outputs}
    for number, (change, there) in enumerate(random_changes(4, 5)):
        with server.faulty(on("RENAME", "lost")):
            moved = view.step(change)
        total = {name: rows + moved[name] for name, rows in total.items()}
        assert total == evaluate(PROGRAM.plan, there)
        if number == 2:
            view.reopen()
    view.close()


@pytest.mark.slow
class TestHadoop:
    """A name node and a data node of Hadoop's own, each killed and started again between epochs."""

    @pytest.fixture(scope="class")
    def hdfs(self) -> Iterator[Hdfs]:
        found = Hdfs()
        yield found
        found.remove()

    @pytest.mark.parametrize("mode", ["single_task", "staged"])
    def test_oracle_a_session_with_state_on_hdfs_equals_batch(
        self, hdfs: Hdfs, spark: Any, tmp_path: Path, mode: str
    ) -> None:
        where = hdfs.place(f"tests/{uuid4().hex}", cache=tmp_path / "cache")
        engine = ef.spark(spark, path=where, mode=mode, buckets=2, readable=True)
        changes = list(random_changes(5, 4))
        for first, node in ((0, NAME), (2, DATA)):
            with PROGRAM.run(engine) as view:
                assert view.epoch == first
                for change, there in changes[first : first + 2]:
                    view.step(change)
                    assert view.zset() == evaluate(PROGRAM.plan, there)
                    assert view.last.mode == mode
                view.verify()
            hdfs.kill(node)
            hdfs.start(node)
            hdfs.wait()
        assert ef.open(where).value == evaluate(PROGRAM.plan, changes[-1][1])
