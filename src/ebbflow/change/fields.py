"""Fields of rows that are edited: which they are, and how rows come to hold what they are declared
to hold.

A field that is declared as `Text` or `List` holds one, though a row may be given with a `str` or a
list in it. Where a row takes the place of another, and nobody has said what was edited, the two
texts are compared, so that what depends on the text follows all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

from ebbflow.change.edited import EditedSequence, List, Text
from ebbflow.frozen import frozen
from ebbflow.nan import mapped, one_nan
from ebbflow.record import fields_of, maker, taken_apart

Change = Callable[[Any], Any]
_EDITED = (Text, List)


def edited_class(hint: Any) -> Any:
    """`Text` or `List`, where a hint is that, or that and None; else None.

    >>> edited_class(Text | None), edited_class(List[int]), edited_class(str)
    (<class 'ebbflow.change.edited.Text'>, <class 'ebbflow.change.edited.List'>, None)
    """
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        found = [edited_class(each) for each in inside if each is not type(None)]
        return found[0] if len(found) == 1 else None
    cls = hint if origin is None else origin
    return cls if cls in _EDITED else None


@lru_cache(maxsize=1024)
def edited_fields(hint: Any) -> tuple[tuple[int, Any], ...]:
    """The places and the classes of the fields of a row type that are declared as Text or List.

    >>> from ebbflow.record import record
    >>> edited_fields(record("Doc", id=int, body=Text))
    ((1, <class 'ebbflow.change.edited.Text'>),)
    """
    fields = (fields_of(hint) or {}).values()
    found = [(i, edited_class(each)) for i, each in enumerate(fields)]
    return tuple((i, cls) for i, cls in found if cls is not None)


def unchanged(row: Any) -> Any:
    """The row: what `as_declared` gives where no field is a Text or a List."""
    return row


@lru_cache(maxsize=1024)
def as_declared(hint: Any) -> Change:
    """A function that gives a row of a type the values that its fields are declared to hold.

    >>> from ebbflow.record import record
    >>> Doc = record("Doc", id=int, body=Text)
    >>> as_declared(Doc)(Doc(1, "ebb"))
    Doc(id=1, body=Text('ebb'))
    """
    if edited_class(hint) is not None:
        return lambda row: _declared(edited_class(hint), row)
    places = edited_fields(hint)
    if not places:
        return unchanged

    apart, make = taken_apart(hint), maker(hint)

    def declared(row: Any) -> Any:
        if type(row) is not hint:
            return row
        values = list(apart(row))
        if all(type(values[i]) is cls for i, cls in places):
            return row
        for i, cls in places:
            values[i] = _declared(cls, values[i])
        return make(values)

    return declared


def _declared(cls: Any, value: Any) -> Any:
    """The value as a Text or List, where it can be one."""
    if cls is List:
        return List(one_nan(frozen(tuple(value)))) if isinstance(value, (list, tuple)) else value
    return Text(value) if isinstance(value, str) else value


@lru_cache(maxsize=1024)
def follower(hint: Any) -> Callable[[Any, Any], Any]:
    """A function that gives a row that takes the place of an old one the memory of what changed in
    its texts and lists: `follow(row, old)`. What did not change is the old value itself.

    >>> from ebbflow.record import record
    >>> Doc = record("Doc", id=int, body=Text)
    >>> old = Doc(1, Text("ebb flow"))
    >>> follower(Doc)(Doc(1, Text("ebb and flow")), old).body.made_from(Text.structure)
    (Text('ebb flow'), (Insert(at=4, text='and '),))
    """
    places = edited_fields(hint)
    if not places:
        return _first

    apart, make = taken_apart(hint), maker(hint)

    def follow(row: Any, old: Any) -> Any:
        values, there = list(apart(row)), apart(old)
        for i, cls in places:
            before = there[i]
            if type(values[i]) is cls is type(before):
                values[i] = before if values[i] == before else before.following(values[i])
        return make(values)

    return follow


def _first(row: Any, old: Any) -> Any:
    return row


def remembering_nothing(weights: dict[Any, int], hint: Any) -> dict[Any, int]:
    """Rows with weights that are declared as their type says and remember nothing, so that whatever
    is computed from them is computed from scratch."""
    declared, places = as_declared(hint), edited_fields(hint)
    if declared is unchanged:
        return weights

    def forgetting(row: Any) -> Any:
        row = declared(row)
        if not places:
            return _forgotten(row)
        values = list(taken_apart(type(row))(row))
        for i, _ in places:
            values[i] = _forgotten(values[i])
        return maker(type(row))(values)

    return mapped(forgetting, weights)


def _forgotten(value: Any) -> Any:
    return value.forgetting() if isinstance(value, EditedSequence) else value
