"""Rows that are given as dicts, made into rows of the type of their input.

A dict has the fields of the row type as keys, in any order. A field that it lacks has the default
of the type; a key that is no field, or a field without a value, is refused by name. Where a field
is a record itself, or a list of records, dicts are taken for those too. An input that does not keep
all fields takes whole rows, and drops the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import Any, get_args, get_origin

from ebbflow.engine.runtime.rows import Weights
from ebbflow.errors import ChangeError, Text
from ebbflow.flow.plan import Source
from ebbflow.flow.types import without_none
from ebbflow.nan import mapped
from ebbflow.record import defaults_of, fields_of, maker, type_text


def row_of(source: Source, given: Any) -> Any:
    """A row of an input from a dict of its fields, or from a row with fields that it does not
    keep; anything else as it is.

    >>> from ebbflow.record import record
    >>> orders = Source(name="orders", type=record("Order", id=int, city=str))
    >>> row_of(orders, {"city": "Rome", "id": 1})
    Order(id=1, city='Rome')
    """
    if isinstance(given, Mapping) and fields_of(source.type) is not None:
        given = _made(source, source.given, given, given)
    if source.narrow is not None and isinstance(given, source.given):
        return source.narrow(given)
    return given


def kept_rows(source: Source, weights: Weights) -> Weights:
    """Rows with weights, without the fields that an input does not keep; the weights of rows that
    become equal are added up."""
    fn, classes = source.narrow, {*map(type, weights)}
    if classes <= {source.type}:
        return weights
    if fn is not None and classes == {source.given}:
        found = dict(zip(fn.of_all()(weights), weights.values(), strict=True))
        if len(found) == len(weights):
            return found
    return mapped(partial(row_of, source), weights)


def is_row(source: Source, given: Any) -> bool:
    """Whether a mapping is a row of an input, and no rows with weights: its keys are fields."""
    fields = fields_of(source.given)
    return bool(fields and isinstance(given, Mapping) and given and {*given} <= {*fields})


@lru_cache(maxsize=256)
def _recipe(row_type: Any) -> tuple[dict[str, Any], dict[str, Any], Any]:
    return fields_of(row_type) or {}, defaults_of(row_type), maker(row_type)


def _made(source: Source, row_type: Any, given: Mapping[Any, Any], whole: Any) -> Any:
    fields, defaults, make = _recipe(row_type)
    for key in given:
        if key not in fields:
            near = get_close_matches(str(key), fields, n=1, cutoff=0.5)
            remedy = repr(near[0]) if near else "the fields of the row type alone"
            if key in ("op", "__op", "before", "after"):
                remedy = f"{source.name}=ebbflow.feed([...]), for events"
            what = f"a dict has the key {key!r}, which is no field"
            raise _not_a_row(source, what, row_type, whole, remedy)
    values = []
    for name, hint in fields.items():
        if name in given:
            values.append(_value(source, hint, given[name], whole))
        elif name in defaults:
            values.append(defaults[name]())
        else:
            remedy = f"a value for {name!r}, or a default for it in {row_type.__name__}"
            raise _not_a_row(source, f"a dict lacks the field {name!r}", row_type, whole, remedy)
    return make(values)


def _value(source: Source, hint: Any, value: Any, whole: Any) -> Any:
    """The value of a field, with rows for the dicts in it where its type says so."""
    if isinstance(value, Mapping):
        record = without_none(hint)
        return _made(source, record, value, whole) if fields_of(record) is not None else value
    if isinstance(value, (list, tuple)) and get_origin(without_none(hint)) in (list, tuple):
        inside = get_args(without_none(hint))
        hints = inside[:1] * len(value) if inside[1:] in ((), (...,)) else inside
        if len(hints) == len(value) and any(isinstance(each, Mapping) for each in value):
            pairs = zip(hints, value, strict=True)
            return tuple([_value(source, each, part, whole) for each, part in pairs])
    return value


def _not_a_row(source: Source, what: str, row_type: Any, row: Any, remedy: str) -> ChangeError:
    return ChangeError(
        f"input {source.name!r}: {what}",
        row=dict(row),
        fields=Text(type_text(row_type)),
        created=source.place,
        remedy=remedy,
    )
