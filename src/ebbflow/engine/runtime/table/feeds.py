"""Feeds: what happened to the rows of a table elsewhere, as events of their keys.

A feed has the columns of a row, and one that says what happened: whether the row is put in, in the
place of the one that has its key, or taken away. A row that is taken away need not be there but for
its key, and for what events are ordered by. `FeedLayout` says which column that is, and what its
values mean; it is found by the names of the columns, or told by the request. Feeds of dicts are
read here; those in tables, in `feed_tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ebbflow.change.requests import Feed
from ebbflow.engine.runtime.changes import hashable
from ebbflow.engine.runtime.events import (
    EventOrder,
    KeyedEvent,
    is_several,
    key_fields,
    part_fields,
    require_time,
    time_in_column,
    time_of,
)
from ebbflow.engine.runtime.table.column_types import columns_of
from ebbflow.engine.runtime.table.layout import (
    ADDED,
    AFTER,
    BEFORE,
    CHANGED,
    REMOVED,
    image_remedy,
    image_text,
    is_extra,
    layout_by_names,
    refused,
    require_columns,
    require_event,
)
from ebbflow.engine.runtime.tables import holds_rows
from ebbflow.engine.runtime.values.check import canonical_part, canonical_row
from ebbflow.errors import ChangeError, Text, value_text
from ebbflow.flow.plan import Source
from ebbflow.record import fields_of
from ebbflow.state.cells import ABSENT

if TYPE_CHECKING:
    from ebbflow.engine.runtime.keyed_input import KeyedInput

PUT, TAKE, SKIP = 1, -1, 0
"""What happens to a row: it is put in, taken away, or nothing is said of it."""
DELETED = "__deleted"


class FeedLayout(NamedTuple):
    """The column that says what happened, and the values by which rows are put in, or taken away,
    or which say nothing; and the columns of the `row`. With `images` that is in a column before and
    one after, each of them a struct."""

    column: str
    puts: tuple[Any, ...]
    takes: tuple[Any, ...]
    skips: tuple[Any, ...] = ()
    images: bool = False
    row: tuple[str, ...] = ()

    def sign(self, source: Source, op: Any, row: Any) -> int:
        """What happens to a row."""
        if op in self.puts:
            return PUT
        if op in self.takes:
            return TAKE
        if op in self.skips:
            return SKIP
        known = ", ".join(str(each) for each in (*self.puts, *self.takes, *self.skips))
        what = f"{self.column} {value_text(op)} is no change of a row"
        raise refused(source, what, row=row, remedy=f"one of {known}")


def feed_layout(source: Source, names: Sequence[str], request: Feed, order: str) -> FeedLayout:
    """How a feed with these columns says what happened; an error when they do not. `order` is a
    column that is no field.

    >>> from ebbflow.record import record
    >>> orders = Source(name="orders", type=record("Order", id=int))
    >>> feed_layout(orders, ["id", "kind"], Feed([], "kind", ("I",), ("U",), ("D",)), "")
    FeedLayout(column='kind', puts=('I', 'U'), takes=('D',), skips=(), images=False, row=('id',))
    >>> feed_layout(orders, ["id", "__op", "__deleted"], Feed([]), "").puts
    ('c', 'r', 'u')
    """
    fields = {name for name, _ in columns_of(source.type)} | source.unread
    named = [request.op] if request.op is not None else []
    for name in (*named, order):
        if name and name not in names:
            raise refused(
                source, f"the feed has no column {name!r}", columns=Text(", ".join(names)),
                remedy="the name of one of its columns",
            )  # fmt: skip
    if request.op is None:
        require_event(source, names)
    if request.op is not None:
        found = FeedLayout(request.op, request.insert + request.update, request.delete)
        extra = {request.op} - fields
    else:
        by_names = layout_by_names(set(names) - fields)
        found = _known(source, by_names.how, by_names.by, names)
        extra = {name for name in names if name not in fields and is_extra(by_names, name)}
        if found.column == DELETED:
            extra = {name for name in names if name not in fields and name.startswith("__")}
    return found._replace(row=tuple(n for n in names if n not in extra and n != order))


def _known(source: Source, how: str, column: str, names: Sequence[str]) -> FeedLayout:
    if how == "feed":
        return FeedLayout(column, ADDED[how], ("delete",), ("update_preimage",))
    if how in ("op", "images"):
        return FeedLayout(column, (*ADDED["op"], CHANGED), REMOVED["op"], images=how == "images")
    if DELETED in names:
        return FeedLayout(DELETED, ("false", False), ("true", True))
    raise refused(
        source,
        "no column of the feed says what happens to a row",
        columns=Text(", ".join(names)),
        remedy='_change_type, op, __op or __deleted; or feed(rows, op="kind", insert="I", '
        'update="U", delete="D")',
    )


def events_in(state: KeyedInput, request: Feed, order: EventOrder) -> list[KeyedEvent]:
    """The events of a feed, in the order of its rows."""
    if holds_rows(request.rows):
        from ebbflow.engine.runtime.table.feed_tables import table_events

        return table_events(state, request, order)
    source = state.source
    if isinstance(request.rows, (Mapping, str)) or not isinstance(request.rows, Iterable):
        raise _no_feed(source, request.rows)
    layouts: dict[tuple[Any, ...], FeedLayout] = {}
    events = []
    for given in request.rows:
        if not isinstance(given, Mapping):
            raise _no_feed(source, given)
        names = tuple(given)
        layout = layouts.get(names)
        if layout is None:
            layout = layouts[names] = feed_layout(source, names, request, order.column)
        found = _image(source, layout, given)
        if found is not None:
            events.append(_event(state, *found, given, order, request.parse))
    return events


def _no_feed(source: Source, given: Any) -> ChangeError:
    return refused(
        source,
        "a feed is a table, or a list of dicts with the columns of a row and what happens to it",
        given=given,
        remedy='feed([{"op": "c", "id": 1, ...}]), or upsert(rows) for rows',
    )


def _image(
    source: Source, layout: FeedLayout, given: Mapping[str, Any]
) -> tuple[int, Mapping[str, Any]] | None:
    """What happens to which row; None for nothing."""
    op = given[layout.column]
    if layout.images and op is None and given[BEFORE] is None and given[AFTER] is None:
        return None
    sign = layout.sign(source, op, given)
    if sign == SKIP:
        return None
    if not layout.images:
        if sign == PUT:
            require_columns(source, layout.row)
        return sign, given
    name = BEFORE if sign == TAKE else AFTER
    image = given[name]
    if not isinstance(image, Mapping):
        what = image_text(name) if image is None else f"{name!r} is no row"
        raise refused(source, what, row=given, remedy=image_remedy(name))
    if sign == PUT:
        require_columns(source, tuple(image), f" in {name!r}")
    return sign, image


def _event(
    state: KeyedInput, sign: int, image: Mapping[str, Any], given: Mapping[str, Any],
    by: EventOrder, parse: bool,
) -> KeyedEvent:  # fmt: skip
    source = state.source
    at = time_in_column(source, given[by.column], given) if by.column else None
    fields = key_fields(source)
    if sign == PUT or fields is None:
        row = _row(source, image, parse)
        (key,) = state.keys([row])
        if by.part is not None:
            at = time_of(source, by.part, row)
        return KeyedEvent(key, row if sign == PUT else ABSENT, at)
    values = _values(source, image, fields)
    key = tuple(values) if is_several(source.key) else values[0]
    if by.part is not None:
        names = part_fields(by.part)
        if names is None:
            at = time_of(source, by.part, _row(source, image, parse))
        else:
            found = _values(source, image, names)
            at = tuple(found) if is_several(by.part) else found[0]
            at = canonical_part(source, by.part, "the order", at, parse=parse)
            require_time(source, at, given)
    return KeyedEvent(state.key_given(key, parse=parse), ABSENT, at)


def _row(source: Source, image: Mapping[str, Any], parse: bool) -> Any:
    values = _values(source, image, [name for name, _ in columns_of(source.type)])
    row = values[0] if fields_of(source.type) is None else source.type(*values)
    return canonical_row(source, hashable(source, row), parse=parse)


def _values(source: Source, image: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    """Fields of a row, which are there, and not null where their hints say so."""
    columns = dict(columns_of(source.type))
    for name in names:
        if image.get(name) is None and not (name in image and columns[name].optional):
            raise refused(
                source,
                f"field {name!r} is null, and its hint is {columns[name]}",
                row=dict(image),
                remedy="a value; a delete may have nulls, but not in its key and its sequence, "
                "which must be fields for that",
            )
    return [image[name] for name in names]
