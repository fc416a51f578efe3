"""One task as a job that is no query.

Spark analyses and optimizes a query, plans it, and makes Java code of the plan, each time anew. For
one task that reads no frame this takes longer than the task. So it is a job on an RDD, which runs
as it is: a partition with the blobs that are sent to the task, if any, and the task on it. What the
task gives are bytes, and nothing of them is unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from ebbflow.engine.spark.borrowed import environment_of_queries
from ebbflow.engine.spark.connect import is_connect
from ebbflow.engine.spark.tasks.report import REPORT, Line

Alone = Callable[[Iterator[tuple[str, bytes]]], Iterator[bytes]]
"""A task that takes blobs with the names of their inputs, and gives reports."""
WITH_TASK = 1 << 15
"""Blobs of up to so many bytes travel with the task, which Python hands to Java as text; larger
ones go by a file, to the partition that the task reads."""


class LoneTasks:
    """Jobs of one task each, in one session."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    @property
    def possible(self) -> bool:
        """Whether the session has jobs that are no queries."""
        return not is_connect(self.session)

    def run(self, task: Alone, sent: Mapping[str, bytes]) -> list[Line]:
        """The reports that a task gives, on the blobs that are sent to it."""
        given = self._partition([*sent.items()]) if sent else self._nothing
        job = given.mapPartitions(task)
        job._bypass_serializer = True  # else what it gives is pickled, and unpickled here
        with environment_of_queries(self.session):
            assert job._jrdd is not None
        return [(0, REPORT, blob) for blob in job.collect()]

    @cached_property
    def _nothing(self) -> Any:
        return self._partition([])

    def _partition(self, rows: list[Any]) -> Any:
        return self.session.sparkContext.parallelize(rows, 1)
