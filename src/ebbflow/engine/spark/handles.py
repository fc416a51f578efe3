"""One input of a view on Spark, to change it alone; one output, to read it alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ebbflow.engine.runtime.changes import counted
from ebbflow.engine.runtime.inputs import KeyedInput
from ebbflow.engine.spark.tasks.replica import APPLY, DELETE, UPSERT
from ebbflow.errors import ChangeError
from ebbflow.zset import ZSet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ebbflow.engine.spark.view import SparkView


class SparkOutput:
    """One output of a view."""

    def __init__(self, view: SparkView, name: str) -> None:
        self.view, self.name = view, name

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

    def on_change(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        """Call `callback` with every change of this output; see `SparkView.on_change`."""
        return self.view._subscribe(callback, self.name)

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

    def __repr__(self) -> str:
        return f"<output {self.name} of {self.view!r}>"


class SparkInput:
    """One input of a view. Every call is one epoch, and gives what it changed in the outputs."""

    def __init__(self, view: SparkView, name: str) -> None:
        self.view, self.name = view, name

    def apply(self, change: Any) -> Any:
        """Apply a change: a table, a DataFrame, a ZSet, rows with weights, or rows to add."""
        return self.view._advance({self.name: (APPLY, change)})

    def add(self, *rows: Any) -> Any:
        """Add these rows."""
        return self.apply(list(rows))

    def remove(self, *rows: Any) -> Any:
        """Remove these rows; each must be there."""
        weights = counted(self.view.plan.sources[self.name], rows)
        return self.apply({row: -weight for row, weight in weights.items()})

    def upsert(self, *rows: Any) -> Any:
        """Put rows in, each in place of the row that has its key: rows, or a table of them."""
        self._require_key(UPSERT)
        if len(rows) == 1 and _is_table(rows[0]):
            return self.view._advance({self.name: (UPSERT, rows[0])})
        state = self.view._replica.inputs[self.name]
        assert isinstance(state, KeyedInput)
        latest = dict(zip(state._keys(rows), rows, strict=True))
        return self.view._advance({self.name: (UPSERT, list(latest.values()))})

    def delete(self, *keys: Any) -> Any:
        """Take away the rows that have these keys; each must be there."""
        self._require_key(DELETE)
        return self.view._advance({self.name: (DELETE, keys)})

    def _require_key(self, verb: str) -> None:
        source = self.view.plan.sources[self.name]
        if source.key is None:
            raise ChangeError(
                f"{verb}: input {self.name!r} has no key",
                created=source.place,
                remedy=f"Input({self.name!r}, ..., key=...), or add and remove rows",
            )

    def __repr__(self) -> str:
        return f"<input {self.name} of {self.view!r}>"


def _is_table(given: Any) -> bool:
    """Whether something holds rows, and is none itself."""
    return isinstance(given, (list, Mapping, ZSet)) or hasattr(given, "columns")
