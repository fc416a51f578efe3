"""Inputs: where rows come into a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import UnionType
from typing import Any, overload

from ebbflow.errors import Text, place
from ebbflow.flow.collection import Collection
from ebbflow.flow.parts import Part, part, plain, refuse, row_type
from ebbflow.flow.plan import Source
from ebbflow.flow.types import classes, fields_held
from ebbflow.flow.windows import check_times
from ebbflow.keywords import checked
from ebbflow.record import attributes_of, fields_of, name_of, no_row_type, record_of
from ebbflow.reducer.row import key_text
from ebbflow.typevars import T_co


class Input(Collection[T_co]):
    """Rows from outside, by name.

    `type` says what the rows are: a NamedTuple class, a frozen dataclass, a TypedDict (which makes
    a record of its name), `int`, `str`, any class of hashable values, or nothing. Rows with fields
    may be given as dicts, too. Where a field is hinted as a list, a dict or a set, the row holds a
    tuple, a `Frozen` dict or a frozenset, since rows must be hashable. With a `key`, a field,
    several in a tuple, or a function, there is at most one row of each key: then rows can be
    upserted, and deleted by key. `renamed` says what fields were called before, `{"old": "new"}`,
    for state that was stored then; it may stay when that is done.

    A `sequence`, a part of the row as well, says which of two rows of one key is the newer one: a
    version, or the time of a change. Upserts, deletes and feeds that are older than what is known
    of their key are left out, also after its row was deleted; so they may come in any order, and
    again. For that the input remembers deleted keys, each with its sequence, until a row of it
    comes or `forget` is asked for. Changes with weights and `replace` are done as they are given.

    With a `lateness`, rows have a `time`, a field, and may come so long after the latest time that
    was seen. What comes later, or is withdrawn later, is put aside and counted: see `late` of
    `view.input(name)`. So windows are over one day: their results stay, and their rows are
    forgotten. Such an input has no key.

    >>> from typing import NamedTuple
    >>> class Order(NamedTuple):
    ...     id: int
    ...     city: str
    ...     price: int
    >>> orders = Input("orders", Order, key="id")
    >>> orders
    Input('orders', Order, key='id')
    >>> orders.filter(lambda order: order.price > 10)
    <Order(id, city, price): orders → filter>
    >>> orders.group_by("ctiy")
    Traceback (most recent call last):
    ebbflow.errors.UnknownField: group_by("ctiy"): rows of "orders" have no field 'ctiy'
        fields     id, city, price
        created    <doctest ebbflow.flow.source.Input[5]>:1
        try        group_by("city")
    """

    _key: Part[Any] | None
    _sequence: Part[Any] | None

    @overload
    def __init__(
        self, name: str, type: type[T_co], key: Part[T_co] | None = None,
        sequence: Part[T_co] | None = None, *, renamed: Mapping[str, str] | None = None,
        time: str | None = None, lateness: Any = None,
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: Input[Any], name: str, type: object = ..., key: str | tuple[Any, ...] | None = None,
        sequence: str | tuple[Any, ...] | None = None, *, renamed: Mapping[str, str] | None = None,
        time: str | None = None, lateness: Any = None,
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: Input[Any], name: str, type: UnionType | None = ..., key: Part[Any] | None = None,
        sequence: Part[Any] | None = None, *, renamed: Mapping[str, str] | None = None,
        time: str | None = None, lateness: Any = None,
    ) -> None: ...  # fmt: skip
    @checked
    def __init__(
        self, name: str, type: Any = Any, key: Any = None, sequence: Any = None, *,
        renamed: Mapping[str, str] | None = None, time: str | None = None, lateness: Any = None,
    ) -> None:  # fmt: skip
        type = record_of(type)
        if not isinstance(name, str) or not name:
            refuse(
                f"Input({name!r}): an input has a name, by which rows are given to it",
                'Input("orders", Order)',
            )
        if classes(type) is None and type is not Any and _is_a_row(type):
            refuse(
                f"Input({name!r}, ...): the type of the rows is asked for, not a row",
                f"Input({name!r}, {_class_of(type)})",
                given=type,
            )
        why = no_row_type(type)
        if why and "of its own" not in why and "InitVar" not in why:
            refuse(
                f"Input({name!r}, {name_of(type)}): a dataclass of rows is frozen and compares all "
                f"of its fields, and of {name_of(type)}, {why}",
                f"@dataclass(frozen=True) class {name_of(type)}: ..., without compare=False",
            )
        checked = row_type(f"Input({name!r}, {{}})", type, fields_held)
        names = checked_names(name, checked, renamed or {})
        source = Source(name=name, type=checked, renamed=names, place=place())
        if key is not None:
            plain(f"Input({name!r}, key={{}})", key)
            fn = part(f"Input({name!r}, key={{}})", source, key)
            source = Source(name=name, type=checked, key=fn, renamed=names, place=place())
        if sequence is not None:
            if key is None:
                refuse(
                    f"Input({name!r}, sequence=...): a sequence orders the rows of one key, and "
                    "there is no key",
                    f"Input({name!r}, ..., key=..., sequence=...)",
                )
            plain(f"Input({name!r}, sequence={{}})", sequence)
            order = part(f"Input({name!r}, sequence={{}})", source, sequence)
            source = replace(source, sequence=order)
        if time is not None or lateness is not None:
            source = with_lateness(source, time, lateness)
        super().__init__(source)
        object.__setattr__(self, "_key", key)
        object.__setattr__(self, "_sequence", sequence)

    def __repr__(self) -> str:
        node = self.node
        assert isinstance(node, Source)
        checked = "" if node.type is Any else f", {name_of(node.type)}"
        key = "" if self._key is None else f", key={key_text(self._key)}"
        sequence = "" if self._sequence is None else f", sequence={key_text(self._sequence)}"
        late = "" if node.time is None else f", time={node.time.text!r}, lateness={node.lateness!r}"
        return f"Input({node.name!r}{checked}{key}{sequence}{late})"


def with_lateness(source: Source, time: Any, lateness: Any) -> Source:
    """An input that puts late rows aside, when that can be."""
    what = f"Input({source.name!r}, time={time!r}, lateness={lateness!r})"
    if time is None or lateness is None:
        refuse(
            f"{what}: rows are late by their time, so both are needed",
            'time="at", lateness=timedelta(hours=1)',
        )
    if source.key is not None:
        refuse(
            f"{what}: an input with a key replaces rows that it may have forgotten by then",
            "an input without a key, of events that are added; or one without a lateness",
        )
    if not isinstance(time, str) or fields_of(source.type) is None:
        refuse(f"{what}: the time is a field of the rows", 'time="at"')
    of = part(f"Input({source.name!r}, time={{}})", source, time)
    check_times("Input", source, time, {"lateness": lateness})
    return replace(source, time=of, lateness=lateness)


def checked_names(
    name: str, row_type: Any, renamed: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """The old and new names of fields, which must lead to fields that there are."""
    fields = attributes_of(row_type) or {}
    if not isinstance(renamed, Mapping):
        refuse(
            f"Input({name!r}, renamed={renamed!r}): that is no mapping of names",
            'renamed={"old": "new"}',
        )
    for old, now in renamed.items():
        seen = {old}
        while now in renamed and now not in seen:
            seen.add(now)
            now = renamed[now]
        if now in seen or now not in fields:
            refuse(
                f"Input({name!r}, renamed={dict(renamed)!r}): {old!r} becomes {now!r}, "
                + ("which became it" if now in seen else "which is no field"),
                "the old name of each field that has another now, with its new one",
                fields=Text(", ".join(fields)),
            )
    return tuple(renamed.items())


def _is_a_row(given: Any) -> bool:
    """Whether a value is plainly no type: a number, a text, a tuple, a list."""
    return isinstance(given, (int, float, str, bytes, tuple, list, dict, set, frozenset))


def _class_of(row: Any) -> str:
    return type(row).__name__
