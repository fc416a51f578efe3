"""One Spark session for the pages that show Spark: that of `tests/spark` where one is running."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The session; None where PySpark is not installed."""
    if find_spec("pyspark") is None:
        yield None
        return
    from pyspark.sql import SparkSession

    from ebbflow.engine.spark.session import session

    ours = SparkSession.getActiveSession() is None
    running = session("ebbflow-tests", cores=2, **{"spark.driver.memory": "1g"})
    yield running
    if ours and SparkSession.getActiveSession() is not None:
        running.stop()
