"""One Spark session for everything in this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--dist loadgroup`, tests that need a session run in one process, which starts one. (Not
    with pytest 9.1 or later: pytest-xdist 3.8 then leaves the groups out, and says nothing.)"""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if "spark" in item.path.parts[-2:] and _needs_session(item):
                item.add_marker(pytest.mark.xdist_group("spark"))


def _needs_session(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ()) or item.path.name == "test_session.py"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from ebbflow.engine.spark.session import session

    running = session("ebbflow-tests", cores=2, **{"spark.driver.memory": "1g"})
    yield running
    running.stop()


@pytest.fixture(scope="module")
def nasty(spark: Any, tmp_path_factory: Any) -> tuple[list[Any], Any, Any]:
    """Rows, and frames of them: one that Spark compiles code for, and one that it interprets."""
    from tests.spark.expressions import Nasty, frame_of, rows_of

    rows = rows_of(7, 150)
    here = frame_of(spark, rows, Nasty)
    path = str(tmp_path_factory.mktemp("nasty") / "rows")
    here.coalesce(1).write.parquet(path)
    return rows, spark.read.parquet(path), here
