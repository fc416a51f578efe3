"""Events: what happened to the row of a key, at some time.

Whatever is asked of an input by key comes to *events*, each of which puts a row in the place of the
one that has its key, or takes that away. Of several events of one key only the newest counts. What
says which is newer is one of these, in the order in which they are looked at:

    the sequence of the input    a part of its rows that never gets less for a key; a delete says it
    the order of the change      `order=`, a part of the row, or a column of the table
    the order of the rows        where they have one: a list does, a table of Spark does not

By a part of the row an event is also compared with the row that is there, and left out when it is
older. An input with a sequence remembers it when a row goes (`Deleted`), so that an older event
which comes late does not bring the row back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from ebbflow.change.requests import IGNORE, Request
from ebbflow.engine.runtime.edits import KeyedEdit
from ebbflow.errors import (
    AbsentRow,
    ChangeError,
    FunctionFailed,
    Text,
    UnknownField,
    cause_of,
    error_text,
)
from ebbflow.expression.node import Get, Tuple
from ebbflow.flow.plan import Source
from ebbflow.fn import Fn
from ebbflow.record import fields_of
from ebbflow.state.backing import Backing
from ebbflow.state.cells import ABSENT

if TYPE_CHECKING:
    pass

DELETE_ONCE = 'delete each key once, and only keys that are there, or missing="ignore"'


class KeyedEvent:
    """The row that a key has from now on, ABSENT for none, and when that happened, if it is known;
    and whether another event of the same change had put a row there. It is equal to itself alone,
    so that many are the keys of a dict, in their order, as rows are."""

    __slots__ = ("at", "follows", "key", "row")

    def __init__(self, key: Any, row: Any, at: Any = None, follows: bool = False) -> None:
        self.key, self.row, self.at, self.follows = key, row, at, follows

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyedEvent, (self.key, self.row, self.at, self.follows)

    def __repr__(self) -> str:
        return f"KeyedEvent({self.key!r}, {self.row!r}, {self.at!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Events(Request):
    """Events of keys, in their order where they are `ordered`. By `by`, a part of the row, they are
    compared with the rows that are there. While they are in a table, deletes that are `timed` have
    this part too; the others happened `at` one time, if that is known."""

    verb = "events"
    rows: Any
    missing: str = IGNORE
    ordered: bool = False
    by: Callable[[Any], Any] | None = None
    timed: bool = True
    at: Any = None


@dataclass(frozen=True, eq=False, repr=False)
class Edits(Request):
    """Changes of fields from inside, one after the other."""

    verb = "edit"
    rows: Iterable[KeyedEdit]


class InputNotes:
    """What an input keeps beside its rows: a value for each key. It is a container, kept and stored
    as the rows are."""

    __slots__ = ("backing", "rows", "waiting")

    what: str
    """What it is, in its name where it is stored."""
    label: str

    def __init__(self) -> None:
        self.rows: dict[Any, Any] = {}
        self.backing: Backing | None = None
        self.waiting: dict[Any, Any] = {}
        """What `keep` will write; ABSENT for keys that go."""

    @property
    def store(self) -> InputNotes:
        """The container that is stored, as with an input."""
        return self

    def fetch(self, keys: Iterable[Any]) -> None:
        """Have what is known of these keys here."""
        if self.backing is not None:
            self.backing.fetch(keys)

    def keep(self) -> None:
        """Make what was prepared so. Doing it twice is doing it once."""
        for key, at in self.waiting.items():
            if at is ABSENT:
                self.rows.pop(key, None)
            else:
                self.rows[key] = at
        self.waiting = {}

    def changed(self) -> dict[Any, Any]:
        """What `keep` will write."""
        return self.waiting


class Deleted(InputNotes):
    """The keys that have no row any more, each with the sequence it had when it went; those of
    which a row comes are forgotten."""

    __slots__ = ()

    what = "deleted"
    label = "deleted keys of input"

    def before(self, source: Source, at: Any) -> None:
        """Be ready to forget all that is less."""
        backing = self.backing
        if backing is None or backing.resident is None:
            everything = self.rows
        else:
            everything = backing.everything()
        self.waiting = {
            key: ABSENT for key, known in everything.items() if is_older(source, known, at)
        }
        self.fetch(self.waiting)


# ---- which is newer ----


class EventOrder(NamedTuple):
    """The `part` of a row that says when it happened; or the `column` of a table that does."""

    part: Callable[[Any], Any] | None = None
    column: str = ""


def ordering(source: Source, order: Any) -> EventOrder:
    """What the events of a request are ordered by."""
    if source.sequence is not None:
        if order is not None:
            raise ChangeError(
                f"input {source.name!r} has a sequence, and a change cannot have another order",
                order=order,
                sequence=Text(source.sequence.text),
                created=source.place,
                remedy="leave out order=, or Input(...) without a sequence",
            )
        return EventOrder(source.sequence)
    if order is None:
        return EventOrder()
    fields = fields_of(source.type)
    if isinstance(order, str) and fields is not None and order not in fields:
        return EventOrder(column=order)
    return EventOrder(Fn.of(order, source.type))


def part_of(source: Source, found: EventOrder, verb: str) -> Callable[[Any], Any] | None:
    """The part of a row that events are ordered by, where there are no other columns."""
    if found.column:
        fields = fields_of(source.type) or ()
        raise UnknownField(
            f"{verb}: rows of input {source.name!r} have no field {found.column!r}, to order by",
            fields=Text(", ".join(fields)),
            created=source.place,
            remedy="one of its fields, or a function of the row",
        )
    return found.part


def time_of(source: Source, part: Callable[[Any], Any], row: Any) -> Any:
    """When a row happened."""
    return require_time(source, _time(source, part, row), row)


def known_time(source: Source, part: Callable[[Any], Any], row: Any) -> Any:
    """When a row happened that is there; ABSENT where it does not say."""
    at = _time(source, part, row)
    return ABSENT if at is None or at != at else at


def _time(source: Source, part: Callable[[Any], Any], row: Any) -> Any:
    try:
        return part(row)
    except Exception as error:
        raise FunctionFailed(
            f"input {source.name!r}: the order of its events failed on a row",
            row=row,
            error=Text(error_text(error)),
            created=source.place,
            remedy="make it work for every row of this input",
        ) from cause_of(error)


def require_time(source: Source, at: Any, row: Any) -> Any:
    """Refuse what cannot say when something happened: nothing, and NaN."""
    if at is None or at != at:
        raise ChangeError(
            f"input {source.name!r}: what events are ordered by is {at} in one of them",
            row=row,
            created=source.place,
            remedy="a value for every event, deletes as well",
        )
    return at


_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def time_in_column(source: Source, at: Any, row: Any) -> Any:
    """The time of an event, from a column that is no field. A CSV file writes numbers as texts:
    such a text counts as its number, so 9 comes before 10."""
    number = isinstance(at, str) and _NUMBER.fullmatch(at)
    return Decimal(at) if number else require_time(source, at, row)


def is_older(source: Source, at: Any, known: Any) -> bool:
    """Whether the one is before the other."""
    try:
        return bool(at < known)
    except TypeError as error:
        raise ChangeError(
            f"input {source.name!r}: two events cannot be ordered, by a {type(at).__name__} and a "
            f"{type(known).__name__}",
            one=at,
            other=known,
            created=source.place,
            remedy="values that can be compared, all of one type",
        ) from cause_of(error)


def newest(source: Source, events: Iterable[KeyedEvent], ordered: bool) -> dict[Any, KeyedEvent]:
    """Of each key the newest event; where they are `ordered`, of equally new ones the last."""
    found: dict[Any, KeyedEvent] = {}
    for event in events:
        other = found.setdefault(event.key, event)
        if other is event:
            continue
        timed = event.at is not None and other.at is not None
        if timed and is_older(source, event.at, other.at):
            other.follows |= event.row is not ABSENT
            continue
        if not ordered and not (timed and is_older(source, other.at, event.at)):
            if event.row is other.row or (event.row is not ABSENT and event.row == other.row):
                continue
            raise _several(source, other, event)
        event.follows |= other.follows or other.row is not ABSENT
        found[event.key] = event
    return found


def _several(source: Source, one: KeyedEvent, other: KeyedEvent) -> ChangeError:
    rows = [Text("deleted") if each.row is ABSENT else each.row for each in (one, other)]
    same = "" if one.at is None else ", equally new"
    return ChangeError(
        f"input {source.name!r} is given several rows of one key{same}, and no order",
        key=one.key,
        row=rows[0],
        also=rows[1],
        created=source.place,
        remedy="the last row of each key alone; order=, what says which is the newest; or "
        'duplicates="last" for rows that are in order',
    )


# ---- parts of rows, and errors ----


def key_fields(source: Source) -> tuple[str, ...] | None:
    """The fields that a key is made of; None where it is made otherwise.

    >>> from ebbflow.record import record
    >>> Order = record("Order", id=int, line=int)
    >>> key_fields(Source(name="orders", type=Order, key=Fn.of(("id", "line"), Order)))
    ('id', 'line')
    """
    return None if source.key is None else part_fields(source.key)


def part_fields(part: Any) -> tuple[str, ...] | None:
    """The fields of a row that a part of it is: one, or a tuple of several."""
    found = getattr(part, "expression", None)
    if isinstance(found, Get):
        return (found.name,)
    if isinstance(found, Tuple) and all(isinstance(each, Get) for each in found.items):
        return tuple(each.name for each in found.items if isinstance(each, Get))
    return None


def is_several(part: Any) -> bool:
    """Whether a part of a row is a tuple of fields."""
    return isinstance(getattr(part, "expression", None), Tuple)


def no_key(source: Source, verb: str) -> ChangeError:
    """The error for what can be done only to an input with a key."""
    return ChangeError(
        f"{verb}: input {source.name!r} has no key",
        created=source.place,
        remedy=f"Input({source.name!r}, ..., key=...), or add and remove rows",
    )


def no_row(source: Source, at: Any, remedy: str) -> AbsentRow:
    """The error for a key that no row has."""
    return AbsentRow(
        f"input {source.name!r}: there is no row of this key",
        key=at,
        created=source.place,
        remedy=remedy,
    )


def deleted_twice(source: Source, **facts: Any) -> AbsentRow:
    """The error for a key that is given twice to be deleted."""
    return AbsentRow(
        f"input {source.name!r}: a key was deleted twice",
        **facts,
        created=source.place,
        remedy=DELETE_ONCE,
    )
