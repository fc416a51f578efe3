"""Where Spark finds the data source `ebbflow`: it looks for packages named `pyspark_*`.

    spark.read.format("ebbflow").load("state/").show()

needs no configuration and no registration where ebbflow is installed. Spark imports this package
before the first query that reads any data source of Python's, so it loads nothing until then.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ebbflow.engine.spark.source.options import SourceOptions
    from ebbflow.engine.spark.source.readers import StateReader, StateStreamReader

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """The state that a view keeps at a path. See `ebbflow.engine.spark.source.options`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "ebbflow"

    def schema(self) -> StructType:
        """The columns of what was asked for."""
        readers = _readers()
        with readers.in_short():
            schema: StructType = readers.content_of(self._asked()).schema()
        return schema

    def reader(self, schema: StructType) -> StateReader:
        """Reads it at once."""
        readers = _readers()
        with readers.in_short():
            return readers.StateReader(self._asked(), schema)  # type: ignore[no-any-return]

    def streamReader(self, schema: StructType) -> StateStreamReader:
        """Reads what every epoch changes."""
        readers = _readers()
        with readers.in_short():
            return readers.stream_reader(self._asked(), schema)  # type: ignore[no-any-return]

    def _asked(self) -> SourceOptions:
        from ebbflow.engine.spark.source.options import SourceOptions

        given: Any = self.options
        return SourceOptions.of(dict(given))


def _readers() -> Any:
    """The module that reads, which needs more than Spark does."""
    try:
        return import_module("ebbflow.engine.spark.source.readers")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"the Python of Spark's workers, {sys.executable}, cannot import {error.name}: set "
            "PYSPARK_PYTHON to one that can, before Spark starts"
        ) from error
