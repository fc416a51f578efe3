"""What is asked of an input by key, as events.

An upsert, a delete or a feed that is here is read into `KeyedEvent`s, in the order in which it was
given: rows as their type declares them, with their keys, and when they happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ebbflow.change.fields import as_declared
from ebbflow.change.requests import IGNORE, LAST, DeleteKeys, Feed, Request, Upsert
from ebbflow.engine.runtime.changes import hashable
from ebbflow.engine.runtime.dict_rows import row_of
from ebbflow.engine.runtime.events import (
    Events,
    KeyedEvent,
    deleted_twice,
    newest,
    ordering,
    part_of,
    require_time,
    time_of,
)
from ebbflow.engine.runtime.table.feeds import events_in
from ebbflow.engine.runtime.tables import holds_rows, refuse_table
from ebbflow.engine.runtime.values.check import canonical_part, canonical_row, tester
from ebbflow.errors import ChangeError, Text
from ebbflow.flow.plan import Source
from ebbflow.nan import one_nan
from ebbflow.state.cells import ABSENT
from ebbflow.zset import ZSet

if TYPE_CHECKING:
    from ebbflow.engine.runtime.keyed_input import KeyedInput


class RowsToPut(NamedTuple):
    """Rows to put in, their keys, and whether they are in order."""

    rows: list[Any]
    keys: list[Any]
    ordered: bool


def rows_given(state: KeyedInput, rows: Any, *, parse: bool = False) -> RowsToPut:
    """The rows to upsert, as their type declares them, with their keys."""
    source, ordered = state.source, True
    if holds_rows(rows):
        from ebbflow.engine.runtime.table.given import rows_of, table_of

        new, weights = rows_of(source, table_of(source, rows, parse=parse))
        if min(weights, default=1) < 1:
            require_added(source, dict(zip(new, weights, strict=True)))
        return RowsToPut(new, state.keys(new), ordered)
    if is_request(rows):
        raise nested(source, rows)
    if isinstance(rows, (ZSet, Mapping)):
        ordered = False
        require_added(source, rows)
    elif type(rows) not in (list, tuple):
        refuse_table(source, rows)
    new = [hashable(source, row_of(source, row)) for row in rows]
    checks = state.checks or parse
    if checks and not tester(source.type)(new):
        new = [canonical_row(source, row, parse=parse) for row in new]
    elif not checks:
        new = [one_nan(as_declared(source.type)(row)) for row in new]
    return RowsToPut(new, state.keys(new), ordered)


def require_added(source: Source, rows: Any) -> None:
    """Refuse rows with weights of which some are taken away, where rows are put in."""
    for row, weight in rows.items():
        if weight < 1:
            raise ChangeError(
                f"upsert: input {source.name!r} is given a row to take away",
                row=row,
                created=source.place,
                remedy="rows alone, each to be put in; changes, with weights or kinds, by step()",
            )


def are_none(keys: Any) -> bool:
    """Whether there are plainly no keys to delete."""
    return isinstance(keys, (tuple, list, set, frozenset)) and not keys


def is_request(given: Any) -> bool:
    """Whether something is a request, or was made to be one."""
    return isinstance(given, Request)


def nested(source: Source, given: Any) -> ChangeError:
    """The error for a request where rows are asked."""
    return ChangeError(
        f"input {source.name!r}: a request was given where rows are asked",
        given=Text(repr(given)),
        created=source.place,
        remedy=f"step({source.name}={given!r})",
    )


def upserted(state: KeyedInput, request: Upsert, found_rows: RowsToPut | None = None) -> Events:
    """The events of an upsert, in order: rows that come, and then keys that go."""
    source = state.source
    part = part_of(source, ordering(source, request.order), "upsert")
    rows, keys, ordered = found_rows or rows_given(state, request.rows, parse=request.parse)
    events = [
        KeyedEvent(key, row, None if part is None else time_of(source, part, row))
        for key, row in zip(keys, rows, strict=True)
    ]
    last = ordered and (part is not None or request.duplicates == LAST)
    if request.duplicates == LAST and not ordered and part is None:
        raise no_order(source)
    found = newest(source, events, last)
    gone = DeleteKeys(request.delete, None, request.missing, request.parse)
    for event in deleted(state, gone).rows:
        if event.key in found:
            raise ChangeError(
                f"upsert: input {source.name!r} is given a key both to upsert and to delete",
                key=event.key,
                row=found[event.key].row,
                created=source.place,
                remedy="one or the other for each key",
            )
        found[event.key] = event
    return Events(list(found.values()), request.missing, True, part)


def no_order(source: Source) -> ChangeError:
    """The error for asking for the last of rows that have no order."""
    return ChangeError(
        f'input {source.name!r}: there is no last row: what is given for duplicates="last" has no '
        "order",
        created=source.place,
        remedy="order=, a field or a function that says which row of a key is the newest",
    )


def deleted(state: KeyedInput, request: DeleteKeys) -> Events:
    """The events of a delete."""
    source = state.source
    part = ordering(source, None).part
    request = replace(request, at=deleted_at(source, request))
    if holds_rows(request.rows):
        from ebbflow.engine.runtime.table.feed_tables import keys_in

        events = keys_in(state, request)
    else:
        keys = [state.key_given(key, parse=request.parse) for key in _keys(source, request.rows)]
        events = [KeyedEvent(key, ABSENT, request.at) for key in keys]
    if request.missing != IGNORE:
        seen = set()
        for event in events:
            if event.key in seen:
                raise deleted_twice(source, key=event.key)
            seen.add(event.key)
    return Events(events, request.missing, True, part)


def deleted_at(source: Source, request: DeleteKeys) -> Any:
    """The time of a delete, as rows hold it; None if it says none."""
    if request.at is None:
        return None
    part = ordering(source, None).part
    if part is None:
        raise ChangeError(
            f"delete: input {source.name!r} has no sequence, and at= says nothing",
            at=request.at,
            created=source.place,
            remedy="Input(..., sequence=...), or leave out at=",
        )
    at = canonical_part(source, part, "at", request.at, parse=request.parse)
    return require_time(source, at, Text("the keys of delete"))


def _keys(source: Source, given: Any) -> list[Any]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ChangeError(
            f"delete: one key of input {source.name!r} was given where several are asked",
            key=given,
            created=source.place,
            remedy="a list of keys: delete([key])",
        )
    keys = list(given)
    for key in keys:
        if isinstance(key, (list, set, dict)) or hasattr(key, "columns"):
            raise ChangeError(
                f"delete: a key of input {source.name!r} cannot be a {type(key).__name__}",
                key=key,
                created=source.place,
                remedy="delete(*keys) of an input, or ebbflow.delete(keys), for many keys, and a "
                "tuple for one of several fields",
            )
    return keys


def fed(state: KeyedInput, request: Feed) -> Events:
    """The events of a feed."""
    found = ordering(state.source, request.order)
    return Events(events_in(state, request, found), request.missing, True, found.part)
