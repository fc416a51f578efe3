"""An edit inside a row: which field of which row changes from inside, and how.

A field that is declared as `Text` or `List` has a value that is edited in the cost of the edit. One
declared as a list or a dict holds a tuple or a `Frozen` dict, and an edit copies that.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, get_args, get_origin

from ebbflow.change import (
    LIST,
    NUMBER,
    REPLACE,
    TEXT,
    ChangeStructure,
    InsertItems,
    Replace,
    ReplaceItem,
    Text,
    mapping,
)
from ebbflow.change.fields import edited_class, follower
from ebbflow.change.remember import Remembering
from ebbflow.engine.runtime.changes import hashable
from ebbflow.engine.runtime.values.check import canonical_row
from ebbflow.errors import ChangeError, UnknownField, value_text
from ebbflow.errors import Text as Words
from ebbflow.flow.plan import Source
from ebbflow.flow.types import without_none
from ebbflow.frozen import Frozen, frozen
from ebbflow.nan import one_nan
from ebbflow.record import fields_of, maker, taken_apart


class KeyedEdit:
    """Changes of a field of the row that has a key. It is equal to itself alone, so that many are
    the keys of a dict, in their order, as rows are."""

    __slots__ = ("changes", "field", "key")

    def __init__(self, key: Any, field: Any, changes: tuple[Any, ...]) -> None:
        self.key, self.field, self.changes = key, field, changes

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyedEdit, (self.key, self.field, self.changes)


def key_of(edit: Any) -> Any:
    """The key of the row that an edit, or an event, is about."""
    return edit.key


def edited_row(source: Source, row: Any, field: Any, changes: tuple[Any, ...]) -> Any:
    """The row after changes of one of its fields, one after the other.

    >>> from ebbflow.change import Insert
    >>> from ebbflow.record import record
    >>> Doc = record("Doc", id=int, body=Text)
    >>> edited_row(Source(name="docs", type=Doc), Doc(1, Text("held")), "body", (Insert(3, "l"),))
    Doc(id=1, body=Text('helld'))
    """
    structure = edited_structure(source, field)
    changes = tuple(map(_held, changes))
    old = getattr(row, field)
    value = old
    try:
        for change in changes:
            value = change.value if isinstance(change, Replace) else structure.patch(value, change)
    except ChangeError as trouble:
        raise ChangeError(
            f"input {source.name!r}: the field {field!r} cannot be edited like this: "
            f"{trouble.what}",
            **trouble.facts,
            created=source.place,
            remedy=f"{trouble.remedy}; nothing was changed",
        ) from trouble
    new = canonical_row(source, hashable(source, _with(row, field, frozen(value))))
    value = getattr(new, field)
    whole = any(isinstance(change, Replace) for change in changes)
    if isinstance(old, Remembering) and value is not old and not whole:
        value.remembering(old, structure, changes)
    return follower(source.type)(new, row)


def _with(row: Any, field: str, value: Any) -> Any:
    """The row with another value in one field."""
    if isinstance(row, tuple):
        return row._replace(**{field: value})  # type: ignore[attr-defined]
    values = dict(zip(fields_of(type(row)) or (), taken_apart(type(row))(row), strict=True))
    return maker(type(row))({**values, field: value}.values())


def _held(change: Any) -> Any:
    """The change with items as a row holds them: hashable, and with one NaN."""
    if isinstance(change, InsertItems) and isinstance(change.items, (list, tuple)):
        return InsertItems(change.at, one_nan(frozen(tuple(change.items))))
    if isinstance(change, ReplaceItem):
        return ReplaceItem(change.at, one_nan(frozen(change.item)))
    return change


def edited_structure(source: Source, field: Any) -> ChangeStructure[Any, Any]:
    """How a field of an input changes from inside; an error where it does not."""
    fields = fields_of(source.type)
    if fields is None:
        raise ChangeError(
            f"edit: rows of input {source.name!r} have no known fields",
            created=source.place,
            remedy=f"Input({source.name!r}, Doc, key=...), where Doc is a NamedTuple class",
        )
    if field not in fields:
        near = get_close_matches(str(field), fields, n=1, cutoff=0.5)
        raise UnknownField(
            f"edit: rows of {value_text(source.name)} have no field {field!r}",
            fields=Words(", ".join(fields)),
            created=source.place,
            remedy=repr(near[0]) if near else "one of its fields",
        )
    found = structure_of(fields[field])
    if found is REPLACE or found is NUMBER or without_none(fields[field]) is str:
        raise ChangeError(
            f"edit: the field {field!r} of input {source.name!r} is not declared to be edited",
            type=Words(getattr(fields[field], "__name__", str(fields[field]))),
            created=source.place,
            remedy=f"declare it as Text, List, list or dict in {source.type.__name__}, or upsert "
            "whole rows",
        )
    return found


def structure_of(hint: Any) -> ChangeStructure[Any, Any]:
    """How values of a type change: texts by edits, lists by items, dicts by keys, numbers by what
    is added, and all others by being replaced.

    >>> structure_of(Text), structure_of(list[int]), structure_of(dict[str, int])
    (TEXT, LIST, mapping(NUMBER))
    """
    hint = without_none(hint)
    origin = get_origin(hint) or hint
    if edited_class(hint) is Text or origin is str:
        return TEXT
    if edited_class(hint) is not None or origin in (list, tuple):
        return LIST
    if origin in (dict, Frozen):
        inside = get_args(hint)
        return mapping(structure_of(inside[1]) if len(inside) == 2 else REPLACE)
    return NUMBER if origin in (int, float) else REPLACE


def other_key(source: Source, field: Any, at: Any) -> ChangeError:
    """The error for an edit that gives a row another key."""
    return ChangeError(
        f"input {source.name!r}: an edit of {field!r} would give its row another key",
        key=at,
        created=source.place,
        remedy="upsert the new row and delete the old one",
    )
