"""Route: which way an epoch goes, by how large its change is.

A small change goes through one task, or through the driver where that is asked for; a large one
through waves of tasks; the first one, when it is large, through Spark's SQL. Where nobody knows how
large a change is, one task begins, and gives up when it is too large for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from ebbflow.engine.runtime.changes import addition, removal
from ebbflow.engine.runtime.changes import read as read_rows
from ebbflow.engine.runtime.clock import is_time
from ebbflow.engine.runtime.edits import edited_structure
from ebbflow.engine.runtime.inputs import (
    ADD,
    APPLY,
    DELETE,
    EDIT,
    REMOVE,
    UPSERT,
    deleted_twice,
    no_key,
)
from ebbflow.engine.runtime.table.column_types import WEIGHT, comparable
from ebbflow.engine.runtime.table.given import rows_of, table_of, total
from ebbflow.engine.runtime.table.layout import layout_of
from ebbflow.engine.runtime.tables import is_columns
from ebbflow.engine.spark.bulk.load import load, size
from ebbflow.engine.spark.native.functions import is_overflow
from ebbflow.engine.spark.options import Options
from ebbflow.engine.spark.output.frames import zset_of
from ebbflow.engine.spark.table.frame import frame_of
from ebbflow.engine.spark.tasks.epochs import (
    BULK,
    DRIVER,
    SINGLE_TASK,
    STAGED,
    EpochResult,
    Epochs,
    InputChange,
    TooMany,
)
from ebbflow.errors import ChangeError
from ebbflow.flow.plan import Source
from ebbflow.nan import one_nan
from ebbflow.zset import ZSet, trusted

_ROWS = (ZSet, Mapping, list, tuple, set, frozenset)


def input_change(source: Source, verb: str, change: Any, small: int = 0) -> InputChange:
    """The change of an input, from what a user hands in; a `small` table becomes rows."""
    if is_time(source, change):
        change, verb = [source.type(change)], UPSERT
    if verb in (ADD, REMOVE):
        change, verb = addition(source, change) if verb == ADD else removal(source, change), APPLY
    elif verb != APPLY and source.key is None:
        raise no_key(source, verb)
    if verb == DELETE:
        keys = _keys(source, change)
        return InputChange(verb, keys, size=len(keys))
    if verb == EDIT:
        for each in change:
            edited_structure(source, each.field)
        return InputChange(verb, change, size=len(change))
    if isinstance(change, DataFrame):
        if change.isStreaming:
            raise ChangeError(
                f"input {source.name!r}: a streaming DataFrame has no end, and a step needs one",
                created=source.place,
                remedy="stream.writeStream.foreachBatch("
                f"lambda batch, number: view.step({source.name}=batch)).start()",
            )
        added = layout_of(source, change.columns).how == "rows"
        return InputChange(verb, None, frame_of(source, change), added=added)
    if isinstance(change, _ROWS) and not is_columns(change):
        rows = read_rows(source, change)
        return _small(verb, rows, table_of(source, trusted(rows)))  # what does not fit is refused
    table = table_of(source, change)
    if len(table) <= small:
        rows = total(*rows_of(source, table))
        once = len(rows) == len(table)
        return _small(verb, rows, table if once else table_of(source, trusted(rows)))
    added = not len(table) or pc.min(table.column(WEIGHT)).as_py() > 0
    return InputChange(verb, None, None, len(table), table, added)


def _small(verb: str, rows: dict[Any, int], table: Any) -> InputChange:
    added = min(rows.values(), default=1) > 0
    return InputChange(verb, rows, size=len(rows), table=table, added=added)


def _keys(source: Source, given: Any) -> dict[Any, int]:
    """The keys to delete, each once."""
    for key in given:
        if isinstance(key, (list, set, dict)) or hasattr(key, "columns"):
            raise ChangeError(
                f"delete: a key of input {source.name!r} cannot be a {type(key).__name__}",
                key=key,
                created=source.place,
                remedy="delete(*keys) for many keys, and a tuple for one of several fields",
            )
    keys = dict.fromkeys(map(one_nan, given), 1)
    if len(keys) < len(given):
        raise deleted_twice(source)
    return keys


class Route:
    """Runs every epoch the way that suits the size of its change."""

    def __init__(self, session: SparkSession, options: Options, epochs: Epochs) -> None:
        self.session, self.options, self.epochs = session, options, epochs

    def run(self, given: Mapping[str, InputChange]) -> EpochResult:
        """Run an epoch, and stage its changes of the state."""
        given = {name: each for name, each in given.items() if each.rows is None or each.rows}
        if not given:
            return EpochResult(DRIVER, 0, {}, ())
        options, epochs = self.options, self.epochs
        tasks = options.tasks(self.session)
        mode = options.mode if options.mode != "auto" else self._mode(given)
        if mode == BULK and self._empty and self._can_load(given):
            return self._load(given, tasks)
        if mode == DRIVER:
            return epochs.here(self._collected(given))
        if mode == SINGLE_TASK:
            try:
                return epochs.whole(given, options.small)
            except TooMany:
                if options.mode == "auto" and self._empty and self._can_load(given):
                    return self._load(given, tasks)
        return epochs.staged(given, tasks)

    def _load(self, given: Mapping[str, InputChange], tasks: int) -> EpochResult:
        """A bulk load; where Spark's numbers are too small for it, in waves."""
        try:
            return load(self.epochs, given, tasks)
        except Exception as error:
            if not is_overflow(error):
                raise
        return self.epochs.staged(given, tasks)

    def _can_load(self, given: Mapping[str, InputChange]) -> bool:
        """Whether a bulk load can take these changes. Where some remove rows, Spark must be able to
        tell whether two rows are equal."""
        sources = self.epochs.replica.plan.sources
        return all(
            each.verb == APPLY and (each.added or comparable(sources[name].type))
            for name, each in given.items()
        )

    @property
    def _empty(self) -> bool:
        """Whether the state has no rows yet."""
        return not any(listed.segments for listed in self.epochs.store.manifest.spines)

    def _mode(self, given: Mapping[str, InputChange]) -> str:
        """The mode for a change, by its size. Where that is not known, one task looks first."""
        small = self.options.small
        sizes = [size(each) for each in given.values()]
        if None not in sizes and sum(each or 0 for each in sizes) <= small:
            return DRIVER if self.options.in_driver else SINGLE_TASK
        if self._empty:
            return BULK
        return SINGLE_TASK if None in sizes else STAGED

    def _collected(self, given: Mapping[str, InputChange]) -> dict[str, InputChange]:
        """All changes as rows, in this process."""
        found = {}
        for name, each in given.items():
            source = self.epochs.replica.plan.sources[name]
            if each.frame is not None:
                each = InputChange(each.verb, dict(zset_of(each.frame, source.type).items()))
            elif each.rows is None:
                each = InputChange(each.verb, total(*rows_of(source, each.table)))
            found[name] = each
        return found
