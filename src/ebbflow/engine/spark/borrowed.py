"""A session that belongs to somebody else: what is set for a moment, and put back.

Spark reads some settings when a query is made (ANSI arithmetic), some when it is planned (adaptive
execution), and neither when it runs. So they are set for just that long, by one thread at a time,
and put back whatever happens. And what a job of ours raises is not printed as well.

A session of Spark Connect reads them when a query runs, for all of it, those parts that somebody
else has made included. So there nothing is set: without ANSI arithmetic there are no bulk loads
(`is_exact`), and adaptive execution makes some jobs more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock, local
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from ebbflow.engine.spark.connect import is_connect

_ANSI = "spark.sql.ansi.enabled"
_SIMPLE = "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled"
_SIMPLER = "SPARK_SIMPLIFIED_TRACEBACK"
"""What queries have in the environment of their workers, where that is set."""
_COMPRESSED = "spark.sql.inMemoryColumnarStorage.compressed"
_setting = RLock()


@contextmanager
def _set(session: SparkSession, name: str, value: str) -> Iterator[None]:
    with _setting:
        was: Any = session.conf.get(name)
        if was == value:
            yield
            return
        session.conf.set(name, value)
        try:
            yield
        finally:
            with suppress(Exception):  # of a session that was stopped meanwhile
                session.conf.set(name, was)


@contextmanager
def exact(session: SparkSession) -> Iterator[None]:
    """Make queries here in which a number that is too large is an error, and not another one."""
    if is_connect(session):
        yield
        return
    with _set(session, _ANSI, "true"):
        yield


def persisted(frame: DataFrame) -> DataFrame:
    """Keep the rows of a frame for the length of an epoch. They are read once or twice, so they are
    not compressed: to find out how, for every column, took a quarter of a load."""
    if is_connect(frame):
        return frame.persist(StorageLevel.MEMORY_AND_DISK)
    with _set(frame.sparkSession, _COMPRESSED, "false"):
        return frame.persist(StorageLevel.MEMORY_AND_DISK)


def is_exact(session: SparkSession) -> bool:
    """Whether a number that is too large is an error in the queries made in `exact`."""
    return not is_connect(session) or str(session.conf.get(_ANSI)).lower() == "true"


def plan(frame: DataFrame, *, once: bool) -> None:
    """Plan a query; `once`: as one job, where adaptive execution would make one of every shuffle.
    It runs as it is planned now."""
    if is_connect(frame):
        return
    with exact(frame.sparkSession):
        if not once:
            frame._jdf.queryExecution().executedPlan()
            return
        with _set(frame.sparkSession, "spark.sql.adaptive.enabled", "false"):
            frame._jdf.queryExecution().executedPlan()


@contextmanager
def environment_of_queries(session: SparkSession) -> Iterator[None]:
    """Have a job that is no query, and is made here, run in the Python workers that queries have:
    Spark starts others for every environment."""
    context: Any = session.sparkContext
    there = context.environment
    wanted = str(session.conf.get(_SIMPLE)).lower() == "true" and _SIMPLER not in there
    with _setting:
        if wanted:
            there[_SIMPLER] = "1"
        try:
            yield
        finally:
            if wanted:
                there.pop(_SIMPLER, None)


def in_session(frame: DataFrame, session: SparkSession) -> DataFrame:
    """The same query in another session: the batches of a stream are in one of their own, which
    knows nothing of what is set here."""
    jvm: Any = session._jvm
    plan = frame._jdf.queryExecution().logical()
    made = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
    return DataFrame(made, session)


# ---- tables ----


def frame_of_table(session: SparkSession, table: Any, schema: Any = None) -> DataFrame:
    """An Arrow table as a DataFrame. Spark would leave out all rows behind a batch without rows."""
    full = [batch for batch in table.to_batches() if batch.num_rows]
    whole = pa.Table.from_batches(full, table.schema)
    return (
        session.createDataFrame(whole) if schema is None else session.createDataFrame(whole, schema)
    )


# ---- what PySpark prints ----


class _Unprinted(logging.Filter, local):
    """Leaves out what threads log while they are in `unprinted`."""

    on = False

    def filter(self, record: logging.LogRecord) -> bool:
        return not self.on


_unprinted = _Unprinted()
for _name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
    PySparkLogger.getLogger(_name).addFilter(_unprinted)


@contextmanager
def unprinted() -> Iterator[None]:
    """Raise what Spark's jobs raise without a page of Java on the console beside it."""
    was, _unprinted.on = _unprinted.on, True
    try:
        yield
    finally:
        _unprinted.on = was
