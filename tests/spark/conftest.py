"""One Spark session in each process for everything in this folder.

It is a local one, unless `EBBFLOW_SPARK` says otherwise: `connect` is a session of a Spark Connect
server, `cluster` one on a standalone cluster whose executors are processes of their own, and
`connect-cluster` is both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

KIND = os.environ.get("EBBFLOW_SPARK", "local")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--dist loadgroup`, the tests of a file that need a session run in one process. Which
    one that is, is found when it is free, so that none is left alone with Spark at the end; each
    starts a session of its own when it gets the first such file. (Not with pytest 9.1 or later:
    pytest-xdist 3.8 then leaves the groups out, and says nothing.)"""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if "spark" in item.path.parts[-2:] and _needs_session(item):
                item.add_marker(pytest.mark.xdist_group(f"spark {item.path.stem}"))
            if "connect_session" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group("connect"))
    items[:] = [item for item in items if not _is_slow_and_alone(item)]


def _needs_session(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ()) or item.path.name == "test_session.py"


def _is_slow_and_alone(item: pytest.Item) -> bool:
    """Whether a test is of the slow suite, where a cluster is behind the server of Connect, and is
    not to have one."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    alone = params.get("connect_session") == "connect"
    return alone and item.get_closest_marker("slow") is not None


def pytest_runtest_setup(item: pytest.Item) -> None:
    if KIND != "local" and item.get_closest_marker("classic"):
        pytest.skip("it needs a classic session on this machine")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: Any) -> Iterator[Any]:
    with ExitStack() as stack:
        yield session_of(KIND, stack, tmp_path_factory.mktemp("servers"))


def session_of(kind: str, stack: ExitStack, folder: Path) -> Any:
    """A session of a kind, for as long as the stack is."""
    from tests.spark import servers

    from ebbflow.engine.spark.session import session

    master = "local[2]"
    if kind.endswith("cluster"):
        master = stack.enter_context(servers.cluster(folder)).url
    if kind.startswith("connect"):
        address = stack.enter_context(servers.connect_server(folder, master))
        return stack.enter_context(servers.connected(address))
    conf = {"spark.driver.memory": "1g", "spark.master": master}
    if kind == "cluster":
        conf = {**servers.FAST, **conf, "spark.sql.shuffle.partitions": "2"}
    running = session("ebbflow-tests", cores=2, **conf)
    stack.callback(running.stop)
    return running


@pytest.fixture(
    scope="session", params=["connect", pytest.param("connect-cluster", marks=pytest.mark.slow)]
)
def connect_session(request: Any, tmp_path_factory: Any) -> Iterator[Any]:
    from tests.spark.servers import MODE

    with ExitStack() as stack:
        made = session_of(request.param, stack, tmp_path_factory.mktemp("servers"))
        os.environ.pop(MODE)  # other tests of this process have classic sessions
        yield made


@pytest.fixture
def connect(connect_session: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session of a Connect server: what drives the view, and Spark's driver with the tasks, are
    processes of their own. In the slow suite the server is before a master and two workers, which
    are five more of them to start."""
    from tests.spark.servers import MODE

    monkeypatch.setenv(MODE, "1")
    return connect_session


@pytest.fixture(scope="module")
def nasty(spark: Any, tmp_path_factory: Any) -> tuple[list[Any], Any, Any]:
    """Rows, and frames of them: one that Spark compiles code for, and one that it interprets."""
    from tests.spark.expressions import Nasty, frame_of, rows_of

    rows = rows_of(7, 150)
    here = frame_of(spark, rows, Nasty)
    path = str(tmp_path_factory.mktemp("nasty") / "rows")
    here.coalesce(1).write.parquet(path)
    return rows, spark.read.parquet(path), here
