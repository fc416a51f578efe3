"""Feeds, and keys to delete, in Arrow tables and in what can become one: as events of keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as is_

from ebbflow.change.requests import DeleteKeys, Feed
from ebbflow.engine.runtime.events import (
    EventOrder,
    Events,
    KeyedEvent,
    is_several,
    key_fields,
    part_fields,
    require_time,
    time_in_column,
    time_of,
)
from ebbflow.engine.runtime.table.arrow import arrow_schema
from ebbflow.engine.runtime.table.column_types import WEIGHT, columns_of
from ebbflow.engine.runtime.table.decode import decode
from ebbflow.engine.runtime.table.feeds import PUT, SKIP, TAKE, feed_layout
from ebbflow.engine.runtime.table.fit import fitted
from ebbflow.engine.runtime.table.given import rows_of
from ebbflow.engine.runtime.table.layout import (
    AFTER,
    BEFORE,
    image_remedy,
    image_text,
    refused,
    require_columns,
)
from ebbflow.engine.runtime.table.libraries import Loose, arrow_of
from ebbflow.engine.runtime.table.mismatch import row_at
from ebbflow.engine.runtime.table.texts import parsed_table
from ebbflow.errors import Text, value_text
from ebbflow.flow.plan import Source
from ebbflow.state.cells import ABSENT

if TYPE_CHECKING:
    from ebbflow.engine.runtime.keyed_input import KeyedInput

AT = "__at"
"""The column of a table of events that says when each happened, where no field does."""


def table_events(state: KeyedInput, request: Feed, order: EventOrder) -> list[KeyedEvent]:
    """The events of a feed in a table, in the order of its rows."""
    source = state.source
    table, loose = _arrow(source, request)
    layout = feed_layout(source, table.column_names, request, order.column)
    if not layout.images:
        require_columns(source, layout.row)
    ops = [_mark(each) for each in table.column(layout.column).to_pylist()]
    empty = [False] * len(ops)
    if layout.images:
        nulls = [table.column(name).is_null().to_pylist() for name in (BEFORE, AFTER)]
        empty = [all(each) and op is None for *each, op in zip(*nulls, ops, strict=True)]
    meant: dict[Any, int] = {}
    for i, op in enumerate(ops):
        if op not in meant and not empty[i]:
            meant[op] = layout.sign(source, op, row_at(table, i))
    signs = [SKIP if none else meant[op] for op, none in zip(ops, empty, strict=True)]
    put, taken = (_those(table, signs, sign) for sign in (PUT, TAKE))
    if layout.images:
        put, taken = _image(source, put, AFTER), _image(source, taken, BEFORE)
    times = table.column(order.column).to_pylist() if order.column else None
    return _events(state, signs, put, taken, times, order.part, order.part, loose=loose)


def _mark(op: Any) -> Any:
    """What a row says happens to it, as a key of a dict."""
    return value_text(op) if isinstance(op, (list, dict)) else op


def _arrow(source: Source, request: Feed | DeleteKeys) -> tuple[Any, Loose]:
    read = parsed_table if request.parse else arrow_of
    return read(source, request.rows, list)


def marked_events(state: KeyedInput, table: Any, request: Events) -> list[KeyedEvent]:
    """The events of a table with the columns of a row and `__weight`: 1 for a row that is put in,
    -1 for one that is taken away, which may be null but for its key; and perhaps `__at`."""
    signs = table.column(WEIGHT).to_pylist()
    put, taken = (_those(table, signs, sign) for sign in (PUT, TAKE))
    times = table.column(AT).to_pylist() if AT in table.schema.names else None
    part = request.by
    timed = part if request.timed else None
    events = _events(state, signs, put, taken, times, part, timed, loose=frozenset())
    return events if request.at is None else _all_at(events, request.at)


def keys_in(state: KeyedInput, request: DeleteKeys) -> list[KeyedEvent]:
    """The keys to delete that are in a table, as events."""
    source = state.source
    table, loose = _arrow(source, request)
    times = require_key_columns(source, table.column_names)
    part = source.sequence if times and request.at is None else None
    signs = [TAKE] * len(table)
    events = _events(state, signs, None, table, None, None, part, loose=loose)
    return events if request.at is None else _all_at(events, request.at)


def _all_at(events: list[KeyedEvent], at: Any) -> list[KeyedEvent]:
    """Events of which the deletes happened at one time."""
    for event in events:
        if event.row is ABSENT:
            event.at = at
    return events


def require_key_columns(source: Source, names: Sequence[str]) -> bool:
    """Refuse a table of keys whose columns are not those of the key; whether it has the columns of
    the sequence too."""
    fields = key_fields(source)
    if fields is None:
        raise refused(
            source,
            "a table of keys was given, and the key is not made of fields",
            columns=Text(", ".join(names)),
            remedy="a list of keys, or Input(..., key=) with a field, or several in a tuple",
        )
    sequence = () if source.sequence is None else part_fields(source.sequence) or ()
    missing = [name for name in fields if name not in names]
    extra = [name for name in names if name not in (*fields, *sequence)]
    if missing or extra:
        what = f"there is no column {missing[0]!r}" if missing else f"column {extra[0]!r} is extra"
        raise refused(
            source,
            f"a table of keys has the columns of the key: {what}",
            columns=Text(", ".join(names)),
            key=Text(", ".join(fields)),
            remedy=f"select the columns of the key: {', '.join(map(repr, fields))}",
        )
    return bool(sequence) and all(name in names for name in sequence)


def _events(
    state: KeyedInput, signs: Sequence[int], put: Any, taken: Any, times: Any, part: Any,
    timed: Any, *, loose: Loose,
) -> list[KeyedEvent]:  # fmt: skip
    """Events of rows that are put in and of rows that are taken away, as the signs say. `part` says
    when the former happened and `timed` when the latter did, or else, `times` of all of them."""
    source = state.source
    rows = _whole(source, put, loose) if put is not None and len(put) else []
    found = iter(
        [
            KeyedEvent(key, row, None if part is None else time_of(source, part, row))
            for key, row in zip(state.keys(rows), rows, strict=True)
        ]
    )
    gone = iter(_taken(state, taken, timed, loose) if len(taken) else [])
    events = []
    for i, sign in enumerate(signs):
        if sign != SKIP:
            event = next(found if sign > 0 else gone)
            if times is not None:
                event.at = time_in_column(source, times[i], event.row)
            events.append(event)
    return events


def _taken(state: KeyedInput, table: Any, part: Any, loose: Loose) -> list[KeyedEvent]:
    source = state.source
    fields, by = key_fields(source), None if part is None else part_fields(part)
    rows = None
    if fields is None or (part is not None and by is None):
        rows = _whole(source, table, loose)
    if fields is None:
        keys = state.keys(rows or ())
    else:
        keys = [state.require_key(key) for key in _parts(source, source.key, fields, table, loose)]
    if part is None:
        times: Iterable[Any] = [None] * len(keys)
    elif by is None:
        times = [time_of(source, part, row) for row in rows or ()]
    else:
        found = _parts(source, part, by, table, loose)
        times = [require_time(source, at, key) for at, key in zip(found, keys, strict=True)]
    return [KeyedEvent(key, ABSENT, at) for key, at in zip(keys, times, strict=True)]


def _parts(source: Source, part: Any, fields: Sequence[str], table: Any, loose: Loose) -> list[Any]:
    """A part of rows of which only some columns are there."""
    columns = dict(columns_of(source.type))
    missing = [name for name in fields if name not in table.column_names]
    if missing:
        raise refused(
            source,
            f"a row is deleted, and there is no column {missing[0]!r}",
            columns=Text(", ".join(table.column_names)),
            remedy="the columns of the key and of the sequence, for deletes too",
        )
    arrays = fitted(source, table, loose, fields)
    lists = [decode(columns[name], each) for name, each in zip(fields, arrays, strict=True)]
    return list(zip(*lists, strict=True)) if is_several(part) else lists[0]


def _whole(source: Source, table: Any, loose: Loose) -> list[Any]:
    schema = arrow_schema(source.type, weight=False)
    made = pa.Table.from_arrays(fitted(source, table, loose), schema=schema)
    return rows_of(source, made)[0]


def _those(table: Any, signs: Sequence[int], sign: int) -> Any:
    return table.filter(pa.array([each == sign for each in signs], pa.bool_()))


def _image(source: Source, table: Any, name: str) -> Any:
    """The rows that are in a column of structs."""
    column = table.column(name)
    if not len(column):
        return column
    if column.null_count:
        raise refused(source, image_text(name), remedy=image_remedy(name))
    if not is_.is_struct(column.type):
        raise refused(source, f"column {name!r} is {column.type}, not a row", remedy="a struct")
    rows = pa.Table.from_batches(
        [pa.RecordBatch.from_struct_array(chunk) for chunk in column.chunks]
    )
    if name == AFTER:
        require_columns(source, rows.column_names, f" in {name!r}")
    return rows
