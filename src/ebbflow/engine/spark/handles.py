"""One input of a view on Spark, to read it and to change it alone; one output, to read it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ebbflow.change.requests import require_bool
from ebbflow.engine.runtime.handles import InputHandle, OutputHandle
from ebbflow.engine.runtime.table.column_types import WEIGHT
from ebbflow.engine.runtime.tables import is_frame
from ebbflow.names import OUTPUT_ON_SPARK
from ebbflow.notebook import paragraph
from ebbflow.record import type_text
from ebbflow.typevars import C

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ebbflow.engine.spark.view import SparkView


class SparkOutput(OutputHandle):
    """One output of a view on Spark."""

    _instead = OUTPUT_ON_SPARK
    view: SparkView[Any]

    @property
    def value(self) -> DataFrame:
        """The rows of this output, each as often as it is there."""
        from ebbflow.engine.spark.output.frames import repeated

        return repeated(self.weighted, self.name)

    def show(self, n: int = 20) -> None:
        """Print the first `n` rows as a table, by `DataFrame.show`."""
        self.value.show(n)

    def _html(self) -> str:
        """No rows: a notebook would start a job for each cell. It tells the columns."""
        node = self.view.plan.outputs[self.name]
        return paragraph(f"{type_text(node.type)}; show() or value runs a job and gives its rows")

    @property
    def weighted(self) -> DataFrame:
        """Every row once, with how often it is there in `__weight`."""
        view = self.view
        with view._lock:
            view._require_open()
            return view._weighted(self.name, view.epoch)

    def __len__(self) -> int:
        return self.value.count()


class SparkInput(InputHandle[C]):
    """One input of a view on Spark. A change may also be a table or a DataFrame."""

    view: SparkView[C]

    @property
    def value(self) -> DataFrame:
        """The rows of this input as they are now, each as often as it is there."""
        return self.view._input_rows(self.name)

    def add(self, *rows: Any, parse: bool = False) -> C:
        """Add these rows, or those of a list, a table or a DataFrame."""
        if len(rows) != 1 or not is_frame(rows[0]):
            return super().add(*rows, parse=parse)
        self._require_rows("add", parse)
        return self._apply(rows[0])

    def remove(self, *rows: Any, parse: bool = False) -> C:
        """Remove these rows, or those of a list, a table or a DataFrame; each must be there."""
        if len(rows) != 1 or not is_frame(rows[0]):
            return super().remove(*rows, parse=parse)
        self._require_rows("remove", parse)
        from pyspark.sql import functions as f

        (frame,) = rows
        weight = f.col(WEIGHT) if WEIGHT in frame.columns else f.lit(1).cast("long")
        return self._apply(frame.withColumn(WEIGHT, -weight))

    def _require_rows(self, verb: str, parse: bool) -> None:
        """Refuse to read the texts of a DataFrame."""
        require_bool(verb, "parse", parse)
        if parse:
            from ebbflow.engine.spark.tasks.asked import texts_in_frame

            raise texts_in_frame(self._source(), verb)

    def __len__(self) -> int:
        return self.value.count()
