"""Inputs: where rows come into a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ebbflow.errors import Text, place
from ebbflow.flow.collection import Collection
from ebbflow.flow.parts import Part, part, plain, refuse, row_type
from ebbflow.flow.plan import Source
from ebbflow.flow.types import classes, fields_held, name_of
from ebbflow.record import attributes_of, no_row_type, record_of
from ebbflow.reducer.row import key_text


class Input(Collection):
    """Rows from outside, by name.

    `type` says what the rows are: a NamedTuple class, a frozen dataclass, a TypedDict (which makes
    a record of its name), `int`, `str`, any class of hashable values, or nothing. Rows with fields
    may be given as dicts, too. Where a field is hinted as a list, a dict or a set, the row holds a
    tuple, a `Frozen` dict or a frozenset, since rows must be hashable. With a `key`, a field,
    several in a tuple, or a function, there is at most one row of each key: then rows can be
    upserted, and deleted by key. `renamed` says what fields were called before, `{"old": "new"}`,
    for state that was stored then; it may stay when that is done.

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

    _key: Part | None

    def __init__(
        self, name: str, type: Any = Any, key: Part | None = None, *,
        renamed: Mapping[str, str] | None = None,
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
        super().__init__(source)
        object.__setattr__(self, "_key", key)

    def __repr__(self) -> str:
        node = self.node
        assert isinstance(node, Source)
        checked = "" if node.type is Any else f", {name_of(node.type)}"
        key = "" if self._key is None else f", key={key_text(self._key)}"
        return f"Input({node.name!r}{checked}{key})"


def checked_names(
    name: str, row_type: Any, renamed: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """The old and new names of fields, which must lead to fields that there are."""
    fields = attributes_of(row_type) or {}
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
