"""One Spark session for everything in this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--dist loadgroup`, these tests run in one process, which starts one session. (Not with
    pytest 9.1 or later: pytest-xdist 3.8 then leaves the groups out, and says nothing.)"""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if "spark" in item.path.parts[-2:]:
                item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from ebbflow.engine.spark.session import session

    running = session("ebbflow-tests", cores=2, **{"spark.driver.memory": "1g"})
    yield running
    running.stop()
