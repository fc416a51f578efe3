"""One input of a view on Spark, to change it alone; one output, to read it alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ebbflow.engine.runtime.dict_rows import is_row
from ebbflow.engine.runtime.inputs import UPSERT
from ebbflow.engine.runtime.view import InputHandle, OutputHandle
from ebbflow.zset import ZSet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ebbflow.engine.spark.view import SparkView


class SparkOutput(OutputHandle):
    """One output of a view on Spark."""

    view: SparkView

    @property
    def value(self) -> DataFrame:
        """The rows of this output, each as often as it is there."""
        from ebbflow.engine.spark.output.frames import repeated

        return repeated(self.weighted, self.name)

    @property
    def weighted(self) -> DataFrame:
        """Every row once, with how often it is there in `__weight`."""
        view = self.view
        with view._lock:
            view._require_open()
            return view._weighted(self.name, view.epoch)

    def write_changes(
        self, path: str | os.PathLike[str], *, permissions: int | None = None
    ) -> Callable[[], None]:
        """Have the change of every epoch in a folder; see `SparkView.write_changes`."""
        return self.view.write_changes(path, self.name, permissions=permissions)

    def write_snapshot(
        self, path: str | os.PathLike[str], format: str = "parquet", mode: str = "overwrite"
    ) -> None:
        """Write this output as a table; see `SparkView.write_snapshot`."""
        self.view.write_snapshot(path, format, mode, self.name)


class SparkInput(InputHandle):
    """One input of a view on Spark. A change may also be a table or a DataFrame."""

    view: SparkView

    def upsert(self, *rows: Any) -> Any:
        """Put rows in, each in place of the row that has its key: rows, or a table of them."""
        state = self.view._program.inputs[self.name]
        if len(rows) == 1 and _is_table(rows[0]) and not is_row(state.source, rows[0]):
            (given,) = rows
        else:
            given = state.latest(rows)
        return self.view._advance({self.name: given}, {self.name: UPSERT})


def _is_table(given: Any) -> bool:
    """Whether something holds rows, and is none itself."""
    return isinstance(given, (list, Mapping, ZSet)) or hasattr(given, "columns")
