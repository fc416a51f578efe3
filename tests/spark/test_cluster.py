"""A real cluster in trouble: executors and workers that are killed in the middle of an epoch, tasks
that run twice, executors that come and go. Whatever happens, a view equals batch after each epoch.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")
pytest.importorskip("grpc", reason="Spark Connect is not tested: pip install '.[connect]'")

from tests.spark.servers import (
    HOME,
    MODE,
    ROOT,
    Cluster,
    cluster,
    connect_server,
    connected,
    descendants,
    kill,
)

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.batch.difference import mismatch
from ebbflow.engine.spark.output.frames import zset_of
from ebbflow.flow.program import Program
from ebbflow.zset import ZSet

pytestmark = pytest.mark.slow


class Row(NamedTuple):
    k: int
    v: int


@dataclass(frozen=True)
class Marked:
    """A function that does something in its first call of all, in whatever process."""

    marker: str
    seconds: float

    def __call__(self, row: Row) -> Row:
        try:
            made = os.open(self.marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return row
        os.write(made, str(os.getpid()).encode())
        os.close(made)
        sleep(self.seconds)
        Path(f"{self.marker}.done").touch()
        return row


def program_of(marked: Marked) -> Program:
    """A map that is marked, and state before and behind it."""
    rows = ef.Input("rows", Row)
    seen = rows.distinct().map(marked, type=Row)
    return ef.program(
        totals=seen.group_by("k").agg(total=ef.sum("v"), n=ef.count()),
        best=seen.top_k(2, order="v", per="k"),
    )


@contextmanager
def on_cluster(folder: Path, **conf: str) -> Iterator[tuple[Cluster, Any]]:
    """A cluster with these settings, and a session on it."""
    named = {f"spark.{name.replace('_', '.')}": value for name, value in conf.items()}
    with (
        cluster(folder) as made,
        connect_server(folder, made.url, named) as address,
        connected(address) as session,
    ):
        yield made, session


CHANGES: list[dict[str, ZSet[Row]]] = [
    {"rows": ZSet.of([Row(i % 7, i) for i in range(60)])},
    {"rows": ZSet({Row(3, 3): -1, Row(3, 300): 1, Row(1, 1): -1, Row(9, 9): 2})},
]


def followed(
    session: Any, path: Path, mode: str, marker: Path, seconds: float, trouble: Callable[[], None]
) -> None:
    """The first epoch, then one with trouble, then it is opened again: always as batch has it."""
    marker.touch()  # so that nothing happens
    inputs: dict[str, ZSet[Row]] = {}
    program = program_of(Marked(str(marker), seconds))
    for number, change in enumerate(CHANGES):
        inputs = {name: inputs.get(name, ZSet()) + rows for name, rows in change.items()}
        in_trouble = number == (0 if mode == "bulk" else 1)
        with program.run(ef.spark(session, path=path, mode=mode, buckets=2)) as view:
            beside = threading.Thread(target=trouble) if in_trouble else None
            if beside is not None:
                marker.unlink()
                beside.start()
            view.step(change)
            if beside is not None:
                beside.join()
            expected = evaluate(program.plan, inputs)
            found = {n: zset_of(view.weighted[n], program.plan.outputs[n].type) for n in expected}
            assert mismatch(expected, found) is None
            view.verify()
            listed = {ref.file for spine in view._store.manifest.spines for ref in spine.segments}
    with program.run(ef.spark(session, path=path)) as view:
        assert view.epoch == len(CHANGES)
        pieces = {name for name in os.listdir(path) if name.startswith("part-")}
        assert pieces <= listed, "what attempts left behind is gone"


def waited(file: Path, seconds: float = 120) -> str:
    until = monotonic() + seconds
    while monotonic() < until:
        if file.exists() and file.read_text():
            return file.read_text()
        sleep(0.02)
    raise AssertionError(f"{file.name} never came")


@pytest.fixture(scope="module")
def in_trouble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Any]]:
    """One cluster, of which one process after the other is killed."""
    with on_cluster(tmp_path_factory.mktemp("cluster")) as both:
        os.environ.pop(MODE)  # other tests of this process have classic sessions
        yield both


@pytest.mark.xdist_group("cluster")
@pytest.mark.parametrize("mode", ["single_task", "staged", "bulk"])
@pytest.mark.parametrize("what", ["executor", "worker"])
def test_a_process_killed_in_the_middle_of_an_epoch(
    in_trouble: tuple[Cluster, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    what: str, mode: str,
) -> None:  # fmt: skip
    monkeypatch.setenv(MODE, "1")
    marker, (made, session) = tmp_path / "marker", in_trouble

    def trouble() -> None:
        worker = int(waited(marker))
        if what == "worker":
            kill(worker)
            return
        (executor,) = [each for each in made.executors() if worker in descendants(each)]
        kill(executor)
        kill(worker)

    followed(session, tmp_path / "state", mode, marker, 20, trouble)


def test_a_task_that_is_run_twice_at_the_same_time_counts_once(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    settings = {
        "speculation": "true", "speculation_interval": "100ms", "speculation_quantile": "0.1",
        "speculation_multiplier": "1.1", "speculation_minTaskRuntime": "100ms",
    }  # fmt: skip
    with on_cluster(tmp_path, **settings) as (_, session):
        followed(session, tmp_path / "state", "staged", marker, 120, lambda: None)
    assert not Path(f"{marker}.done").exists(), "the slow attempt was not waited for"


def test_executors_that_come_and_go(tmp_path: Path) -> None:
    settings = {
        "dynamicAllocation_enabled": "true", "dynamicAllocation_minExecutors": "0",
        "dynamicAllocation_initialExecutors": "0", "dynamicAllocation_maxExecutors": "2",
        "dynamicAllocation_shuffleTracking_enabled": "true",
        "dynamicAllocation_shuffleTracking_timeout": "1s",
        "dynamicAllocation_executorIdleTimeout": "1s",
        "dynamicAllocation_cachedExecutorIdleTimeout": "1s",
        "dynamicAllocation_schedulerBacklogTimeout": "1s",
    }  # fmt: skip
    with on_cluster(tmp_path, **settings) as (made, session):
        total = 0
        sums = ef.Input("rows", Row).group_by("k").agg(total=ef.sum("v"))
        with sums.run(ef.spark(session, path=tmp_path / "state", mode="staged")) as view:
            for value in (5, 7):
                until = monotonic() + 120
                while made.executors() and monotonic() < until:
                    sleep(0.2)
                assert not made.executors(), "they are let go of"
                view.step(rows=[Row(1, value)])
                total += value
                assert [tuple(row) for row in view.value.collect()] == [(1, total)]


# ---- the suites, on other sessions ----


@pytest.mark.parametrize("kind", ["cluster", "connect-cluster"])
def test_the_oracle_suite_runs_on_other_sessions(kind: str) -> None:
    suite = ROOT / "tests" / "spark" / "test_oracle_session.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-m", "not slow", suite],
        cwd=ROOT, env={**os.environ, "EBBFLOW_SPARK": kind}, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


SUBMITTED = """
from typing import NamedTuple
import ebbflow as ef

class Row(NamedTuple):
    k: int
    v: int

sums = ef.Input("rows", Row).group_by("k").agg(total=ef.sum("v"))
with sums.run(ef.spark(path="state", mode="staged", buckets=2)) as view:
    view.step(rows=[Row(1, 2), Row(1, 3)])
    print(view.session.conf.get("spark.master"), [tuple(row) for row in view.value.collect()])
"""


def test_a_program_that_is_submitted_runs_where_that_says(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SUBMITTED)
    environment = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PYTHONPATH"] = str(ROOT / "src")
    with cluster(tmp_path) as made:
        command = [HOME / "bin" / "spark-submit", "--master", made.url, "--driver-memory", "768m",
                   "--executor-memory", "512m", "app.py"]  # fmt: skip
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, **environment}, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        assert done.stdout.splitlines()[-1] == f"{made.url} [(1, 5)]"
