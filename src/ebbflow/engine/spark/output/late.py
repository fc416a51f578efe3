"""A frame that Spark hears of when it is first used.

To make a frame of files, Spark looks for them and analyses a query, which takes about as long as
the state of a small epoch takes to be looked up and written. `step` gives such a frame every time,
and many never look at it. So its query is made by the first method that asks for it. A session of
Spark Connect does the same by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

from ebbflow.engine.spark.connect import is_connect


def late(session: SparkSession, make: Callable[[], DataFrame]) -> DataFrame:
    """The frame that `make` gives, made when it is used."""
    return make() if is_connect(session) else LateFrame(session, make)


class LateFrame(ClassicFrame):
    """A DataFrame of a classic session whose query is made when it is asked for."""

    _query: Any = None

    def __init__(self, session: SparkSession, make: Callable[[], DataFrame]) -> None:
        self._make = make
        super().__init__(None, session)

    @property
    def _jdf(self) -> Any:
        if self._query is None:
            self._query = self._make()._jdf
        return self._query

    @_jdf.setter
    def _jdf(self, query: Any) -> None:
        self._query = query
