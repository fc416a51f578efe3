"""What is asked of an input, in the form that tasks take it.

A change becomes rows with weights; so do the rows of an upsert, of which a task finds the old ones.
All else that is asked by key becomes events (`ebbflow.engine.runtime.events`). What is here already
is read here, in its order, so that one event of each key is left; what is in Spark stays there, has
no order, and is read by the tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ebbflow.change.requests import LAST, DeleteKeys, Feed, Forget, ReplaceRows, Request, Upsert
from ebbflow.engine.runtime.changes import read as read_rows
from ebbflow.engine.runtime.clock import is_time
from ebbflow.engine.runtime.edits import edited_structure
from ebbflow.engine.runtime.events import (
    Edits,
    Events,
    newest,
    no_key,
    ordering,
    part_of,
)
from ebbflow.engine.runtime.inputs import InputState
from ebbflow.engine.runtime.replaced import chooser, require_rows, takes_away
from ebbflow.engine.runtime.requested import (
    are_none,
    deleted,
    deleted_at,
    fed,
    is_request,
    nested,
    no_order,
    upserted,
)
from ebbflow.engine.runtime.table.column_types import WEIGHT
from ebbflow.engine.runtime.table.given import rows_of, table_of, total
from ebbflow.engine.runtime.table.layout import layout_of
from ebbflow.engine.runtime.tables import holds_rows
from ebbflow.engine.spark.borrowed import unprinted
from ebbflow.engine.spark.bulk.load import estimated
from ebbflow.engine.spark.connect import is_connect, steady
from ebbflow.engine.spark.failure import raise_failure
from ebbflow.engine.spark.options import Options
from ebbflow.engine.spark.session import is_stopped
from ebbflow.engine.spark.table.event_frame import feed_frame, upsert_frame
from ebbflow.engine.spark.table.frame import frame_of, same_as_table
from ebbflow.engine.spark.tasks.epochs import BULK, STAGED, InputChange, raise_epoch_failure
from ebbflow.engine.spark.tasks.sending import COLUMNS_FROM
from ebbflow.errors import ChangeError
from ebbflow.flow.plan import Source
from ebbflow.zset import ZSet, trusted

_IN_MANY_TASKS = STAGED, BULK
_ROWS = (ZSet, Mapping, list, tuple, set, frozenset)


def input_change(
    state: InputState, change: Any, small: int = 0, *, streaming: bool = False
) -> InputChange:
    """The change of an input, from what a user hands in; a `small` table becomes rows. A DataFrame
    without an end is refused, unless it is to be one that is `streaming`."""
    source = state.source
    if not streaming:
        _require_end(source, change)
    if is_time(source, change):
        change = Upsert([source.type(change)])
    if isinstance(change, Request) and getattr(change, "parse", False):
        _require_here(source, change)
    if not isinstance(change, Request):
        return _rows(source, None, change, small)
    if isinstance(change, ReplaceRows):
        return _replaced(state, change, small)
    if source.key is None:
        raise no_key(source, change.verb)
    return _by_key(state, change, small)


def with_tables(
    sources: Mapping[str, Source], given: Mapping[str, Any], options: Options
) -> Mapping[str, Any]:
    """The same changes, with tables instead of DataFrames, where all of these are small and only
    read rows: for Spark it is less work to collect each than to check and plan all as one query.
    How many rows there are is a guess of Spark's; so no more are collected than small changes have,
    and if there are more, the frames stay what they are."""
    frames = {name: each for name, each in given.items() if isinstance(each, DataFrame)}
    if not frames or not frames.keys() <= sources.keys() or options.mode in _IN_MANY_TASKS:
        return given
    if any(map(_in_spark, given.values())):
        return given
    rows = 0
    for name, frame in frames.items():
        if frame.isStreaming or not same_as_table(sources[name], frame):
            return given
        size = estimated(frame)
        if size is None or (rows := rows + size) > options.small or not steady(frame):
            return given
    tables: dict[str, Any] = {}
    left = options.small
    for name, frame in frames.items():
        tables[name] = table = _collected(frame.limit(left + 1))
        left -= table.num_rows
        if left < 0:
            return given
    return {**given, **tables}


def require_frames(source: Source, change: Any, session: Any) -> None:
    """Refuse the DataFrames of a change that this session cannot read."""
    for frame in _parts(change):
        theirs = frame.sparkSession if isinstance(frame, DataFrame) else session
        if theirs is session:
            continue
        what = "which was stopped" if is_stopped(theirs) else ""
        if is_connect(theirs) != is_connect(session):
            what = "of another kind than that of the view"
        if what:
            raise ChangeError(
                f"input {source.name!r}: the DataFrame is of a Spark session {what}",
                created=source.place,
                remedy="make the DataFrame with the session of the view, view.session",
            )


@contextmanager
def analysed(names: Iterable[str]) -> Iterator[None]:
    """Raise an error of Spark's about the query of a DataFrame as one about these inputs."""
    try:
        with unprinted():
            yield
    except PySparkException as error:
        shown = ", ".join(map(repr, names))
        raise_failure(error, f"input {shown}: Spark cannot read the DataFrame, and nothing changed")


def _in_spark(change: Any) -> bool:
    """Whether rows that are asked for by a request are in Spark."""
    asked = isinstance(change, Request)
    return asked and any(isinstance(each, DataFrame) for each in _parts(change))


def _collected(frame: DataFrame) -> Any:
    try:
        with unprinted():
            return frame.toArrow()
    except Exception as error:
        raise_epoch_failure(error)


def _by_key(state: Any, request: Request, small: int) -> InputChange:
    source = state.source
    if isinstance(request, Upsert):
        return _upserted(state, request, small)
    if isinstance(request, DeleteKeys):
        if isinstance(request.rows, DataFrame):
            at = deleted_at(source, request)
            timed, frame = upsert_frame(source, None, request.rows)
            events = Events((), request.missing, False, source.sequence, timed, at)
            return InputChange(events, None, frame)
        return _here(state, deleted(state, request))
    if isinstance(request, Feed):
        if isinstance(request.rows, DataFrame):
            order = ordering(source, request.order)
            frame = feed_frame(source, request, order)
            return InputChange(Events((), request.missing, False, order.part), None, frame)
        return _here(state, fed(state, request))
    if isinstance(request, Edits):
        edits = dict.fromkeys(request.rows, 1)
        for each in edits:
            edited_structure(source, each.field)
        return InputChange(Edits(()), edits, size=len(edits))
    assert isinstance(request, Forget)
    return InputChange(request, {state.forgotten_before(request): 1}, size=1)


def _here(state: Any, events: Events) -> InputChange:
    """Events that are here: the newest of each key."""
    rows = dict.fromkeys(newest(state.source, events.rows, events.ordered).values(), 1)
    return InputChange(events.taking(()), rows, size=len(rows))


def _upserted(state: Any, request: Upsert, small: int) -> InputChange:
    source, given, keys = state.source, request.rows, request.delete
    part = part_of(source, ordering(source, request.order), "upsert")
    if is_request(given):
        raise nested(source, given)
    alone = are_none(keys)
    in_spark = isinstance(given, DataFrame) or isinstance(keys, DataFrame)
    if in_spark and request.duplicates == LAST and part is None:
        raise no_order(source)
    if in_spark and not alone:
        rows = given
        if not isinstance(given, DataFrame):
            rows = table_of(source, given if holds_rows(given) else list(given))
        _, frame = upsert_frame(source, rows, keys)
        return InputChange(Events((), request.missing, False, part, False), None, frame)
    if not alone:
        return _here(state, upserted(state, request))
    sent = Upsert((), order=request.order)
    unordered = part is None and request.duplicates != LAST
    if isinstance(given, DataFrame) or (holds_rows(given) and unordered):
        return _rows(source, sent, given, small, request.parse)
    if isinstance(given, (ZSet, Mapping)) and not holds_rows(given):
        return _rows(source, sent, given, small, request.parse)
    latest = [event.row for event in upserted(state, request).rows]
    return _rows(source, sent, latest, small)


def _replaced(state: InputState, request: ReplaceRows, small: int) -> InputChange:
    require_rows(state)
    source = state.source
    chosen = chooser(source, request.where, parse=request.parse)
    if is_request(request.rows):
        raise nested(source, request.rows)
    where = getattr(chosen, "wanted", request.where)  # fields with their canonical values
    sent = replace(request, rows=(), where=where)
    found = _rows(source, sent, request.rows, small, request.parse)
    if not found.added:
        raise takes_away(source)
    return found


def _rows(
    source: Source, request: Request | None, change: Any, small: int, parse: bool = False
) -> InputChange:
    """Rows with weights."""
    if isinstance(change, DataFrame):
        added = layout_of(source, change.columns).how == "rows"
        return InputChange(request, None, frame_of(source, change), added=added)
    if isinstance(change, _ROWS) and not holds_rows(change):
        rows = read_rows(source, change, parse=parse)
        return _small(
            request, rows, table_of(source, trusted(rows))
        )  # what does not fit is refused
    table = table_of(source, change, parse=parse)
    few = small if request is not None else min(small, COLUMNS_FROM - 1)
    if len(table) <= few:
        rows = total(*rows_of(source, table))
        once = len(rows) == len(table)
        return _small(request, rows, table if once else table_of(source, trusted(rows)))
    added = not len(table) or pc.min(table.column(WEIGHT)).as_py() > 0
    return InputChange(request, None, None, len(table), table, added)


def _small(request: Request | None, rows: dict[Any, int], table: Any) -> InputChange:
    added = min(rows.values(), default=1) > 0
    return InputChange(request, rows, size=len(rows), table=table, added=added)


def _require_here(source: Source, request: Request) -> None:
    """Refuse to read the texts of a DataFrame: Spark casts them."""
    if any(isinstance(each, DataFrame) for each in _parts(request)):
        raise texts_in_frame(source, request.verb)


def texts_in_frame(source: Source, verb: str) -> ChangeError:
    """The error for asking to read the texts of a DataFrame."""
    return ChangeError(
        f"{verb}: input {source.name!r}: parse=True reads rows and tables, and a DataFrame was "
        "given",
        created=source.place,
        remedy='frame.withColumn("id", frame.id.cast("bigint")) for each column of texts',
    )


def _require_end(source: Source, change: Any) -> None:
    """Refuse a streaming DataFrame, also in a request."""
    if any(isinstance(each, DataFrame) and each.isStreaming for each in _parts(change)):
        raise ChangeError(
            f"input {source.name!r}: a streaming DataFrame has no end, and a step needs one",
            created=source.place,
            remedy=f"view.stream({source.name}=...), which steps with every batch of it",
        )


def _parts(change: Any) -> tuple[Any, ...]:
    """What a change has rows in."""
    if isinstance(change, Request):
        return getattr(change, "rows", None), getattr(change, "delete", None)
    return (change,)
