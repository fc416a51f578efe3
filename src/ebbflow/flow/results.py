"""What is known of a reducer before it has run: the fields it reads, the type of its result.

A reducer of the library remembers the call that made it: `sum("price")`. What that call was given
as a part of a row is checked against the rows, so a misspelt field is found when the program is
built and not when the first row arrives. Of a reducer written by hand nothing is known.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import date, time
from decimal import Decimal
from types import NoneType
from typing import Any

from ebbflow.errors import CompositionError, Text, place
from ebbflow.flow.attributes import check
from ebbflow.flow.inferred import inferred, type_of
from ebbflow.flow.parts import field, part_type, rows_of
from ebbflow.flow.plan import Node, Source
from ebbflow.flow.types import (
    DIGITS,
    classes,
    common,
    digits,
    either,
    name_of,
    notes,
    optional,
    returned,
    unhashable,
)
from ebbflow.record import fields_of, with_notes
from ebbflow.reducer import Map, Reducer
from ebbflow.reducer.combine import by, on, then, together, where

AnyReducer = Reducer[Any, Any, Any]

_SAME = {"sum", "naive_sum", "min", "max", "first", "last", "arg_min", "arg_max", "mode"}
_FIXED: dict[str, Any] = {
    "count": int, "count_distinct": int, "approx_count_distinct": int, "rank": int,
    "bool_and": bool, "bool_or": bool, "string_agg": str, "histogram": Map, "set_of": frozenset,
    "collect": tuple, "top_k": tuple,
}  # fmt: skip
_AVERAGES = {"mean", "median", "quantile", "variance", "stddev"}
_NEVER_NONE = set(_FIXED) - {"bool_and", "bool_or"}
_BUILTINS = {"sum": "sum", "min": "min", "max": "max", "len": "count", "set": "set_of"}


def given(call: str, node: Node, reducer: Any) -> AnyReducer:
    """The reducer, refused when it is none, or reads a field that the rows do not have.

    >>> given("agg(n=...)", Source(name="words"), len)
    Traceback (most recent call last):
    ebbflow.errors.CompositionError: agg(n=...): len is not a reducer
        created    <doctest ebbflow.flow.results.given[0]>:1
        try        ebbflow.count()
    """
    if not isinstance(reducer, Reducer):
        name = getattr(reducer, "__name__", None) or repr(reducer)
        raise CompositionError(
            f"{call}: {name} is not a reducer",
            created=place(),
            remedy=_instead(name, reducer, node),
        )
    for each, of in _read(reducer):
        if isinstance(of, str):
            field(_shape(call, each, of), node, of)
        else:
            check(_around(call, each), of, [(node.type, rows_of(node))])
        _numbers(_around(call, each), each, of, node)
    for step in () if reducer.made else (reducer.add, reducer.remove):
        check(call.replace("...", "Reducer({})"), step, [(Any, ""), (node.type, rows_of(node))])
    return reducer


def _instead(name: str, reducer: Any, node: Node) -> str:
    if not callable(reducer):
        return "a Reducer, such as ebbflow.count()"
    library = name if reducer.__module__.startswith("ebbflow.reducer") else _BUILTINS.get(name, "")
    if not library:
        return "ebbflow.Reducer(init, add, remove), or one of the library, such as ebbflow.count()"
    return f"ebbflow.{library}({'' if library == 'count' else _likely(node)})"


def _likely(node: Node, *, numbers_only: bool = False) -> str:
    """A field to take as an example: the last one that is a number."""
    fields = fields_of(node.type) or {}
    numbers = [name for name, kind in fields.items() if set(classes(kind) or ()) & {int, float}]
    some = numbers or ([] if numbers_only else [*fields])
    return f'"{some[-1]}"' if some else ""


def _is_library(make: Any) -> bool:
    return bool(make.__module__.startswith("ebbflow.reducer"))


def _shape(call: str, reducer: AnyReducer, name: str) -> str:
    """The call with the reducer as it was written, open at the field."""
    around, quoted = call.replace("{", "{{").replace("}", "}}"), repr(reducer)
    opened = quoted.replace("{", "{{").replace("}", "}}").replace(repr(name), "{}", 1)
    return around.replace("...", opened) if "{}" in opened else around


def _around(call: str, reducer: AnyReducer) -> str:
    """The call with the reducer as it was written, as a shape that is complete."""
    return call.replace("...", repr(reducer)).replace("{", "{{").replace("}", "}}")


def _read(reducer: AnyReducer) -> Iterator[tuple[AnyReducer, Any]]:
    """What a reducer, or a part of it, was given as parts of a row: names and functions, and None
    for the row itself."""
    if reducer.made is None:
        return
    make, arguments, _ = reducer.made
    if make is together:
        for each in arguments:
            yield from _read(each)
    elif make in (where, then, by):
        yield from _read(arguments[0])
    for of in _keys(reducer):
        yield reducer, of


def _keys(reducer: AnyReducer) -> list[Any]:
    """What a reducer was given where a part of a row is asked for; of its only part, None."""
    make, arguments, named = reducer.made or (None, (), {})
    if make is None:
        return []
    if make in (where, by, on):
        return list(arguments[1:])
    try:
        signature = inspect.signature(make)
        bound = signature.bind(*arguments, **named)
    except (TypeError, ValueError):
        return []
    bound.apply_defaults()
    hints = {name: str(each.annotation) for name, each in signature.parameters.items()}
    return [
        value for name, value in bound.arguments.items()
        if hints[name].startswith("Key") and (value is not None or name == "of")
    ]  # fmt: skip


_TEXTS = (str, bytes, time)
_NEVER_ADDED: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("median", "quantile", "approx_quantile"), _TEXTS),
    **dict.fromkeys(
        ("sum", "naive_sum", "mean", "product", "variance", "stddev", "covariance",
         "weighted_mean", "bit_xor"),
        (*_TEXTS, date, tuple, frozenset),
    ),
}  # fmt: skip
"""Reducers that compute with values, and classes with which they cannot."""


def _numbers(call: str, reducer: AnyReducer, of: Any, node: Node) -> None:
    """Refuse a reducer that adds up what is clearly no number."""
    make, _, named = reducer.made or (None, (), {})
    never = _NEVER_ADDED.get(getattr(make, "__name__", ""), ())
    if make is None or not never or not _is_library(make) or named.get("discrete"):
        return
    part = node.type if of is None else part_type(node, of)
    known = [each for each in classes(part) or () if each is not NoneType]
    if known and all(issubclass(each, never) for each in known):
        values = rows_of(node) if of is None else "its values"
        what = f"{of!r} is" if isinstance(of, str) else f"{values} are"
        likely = _likely(node, numbers_only=True)
        raise CompositionError(
            f"{call.format()}: {what} of type {name_of(part)}, and no numbers",
            created=place(),
            remedy=f"ebbflow.{make.__name__}({likely})"
            if likely
            else "a field or a function of the row that gives numbers",
        )


# ---- types ----


def result_type(reducer: AnyReducer, kind: Any) -> Any:
    """The type of what a reducer gives for rows of this type, as far as it can be told.

    >>> import ebbflow
    >>> result_type(ebbflow.count() & ebbflow.max(), str)
    tuple[int, str]
    """
    if reducer.made is None:
        return _written(reducer, kind)
    make, arguments, named = reducer.made
    if make is together:
        return tuple[tuple(result_type(each, kind) for each in arguments)]  # type: ignore[misc]
    if make is then:
        return inferred(arguments[1], result_type(arguments[0], kind))
    if make is where:
        inner = result_type(arguments[0], kind)
        return inner if _of_nothing(arguments[0]) else optional(inner)
    if make is on:
        of = arguments[1] if len(arguments) == 2 else arguments[1:]
        return result_type(arguments[0], part_type(Source(name="", type=kind), of))
    if make is by:
        return Map
    if _is_library(make) and make.__name__ in _SAME:
        return _same(make, arguments, named, kind)
    if _is_library(make) and make.__name__ in _AVERAGES:
        return _average(make, arguments, named, kind)
    return _FIXED.get(make.__name__, Any)


def _written(reducer: AnyReducer, kind: Any) -> Any:
    """The result of a reducer that was written by hand: what its functions say, or are seen, to
    return. There is always a row, so the accumulator is what `add` and `remove` give."""
    said = Any if reducer.result is None else returned(reducer.result)
    if said is not Any:
        return said
    first = Any if callable(reducer.init) else type_of(reducer.init)
    acc = inferred(reducer.add, first, kind)
    wide = common(first, acc)
    acc = acc if wide in (None, first) else inferred(reducer.add, wide, kind)
    less = Any if reducer.remove is None else inferred(reducer.remove, acc, kind)
    acc = acc if less is Any else common(acc, less) or Any
    found = acc if reducer.result is None else inferred(reducer.result, acc)
    return Any if unhashable(found) else found


def _of_nothing(reducer: AnyReducer) -> bool:
    """Whether it gives a number or a collection, and not None, when there are no rows."""
    return reducer.made is not None and reducer.made[0].__name__ in _NEVER_NONE


def _same(make: Any, arguments: tuple[Any, ...], named: dict[str, Any], kind: Any) -> Any:
    of = inspect.signature(make).bind(*arguments, **named).arguments.get("of")
    part = kind if of is None else part_type(Source(name="", type=kind), of)
    if make.__name__ in ("sum", "naive_sum"):
        return _total(part)
    by = inspect.signature(make).bind(*arguments, **named).arguments.get("by")
    if by is not None and NoneType in (classes(part_type(Source(name="", type=kind), by)) or ()):
        return optional(part)
    return part


def _total(part: Any) -> Any:
    """A sum of truth values is an int; one of Decimals has as many digits as there can be."""
    known = classes(part) or ()
    if bool in known:
        return either(*(int if each is bool else each for each in known))
    if Decimal in known and notes(part):
        total = with_notes(Decimal, ((DIGITS[0], digits(part)[1]),))
        return optional(total) if NoneType in known else total
    return part


def _average(make: Any, arguments: tuple[Any, ...], named: dict[str, Any], kind: Any) -> Any:
    """Averages of ints and floats are floats, those of decimals decimals. Of one row there is no
    variance."""
    of = inspect.signature(make).bind(*arguments, **named).arguments.get("of")
    known = classes(kind if of is None else part_type(Source(name="", type=kind), of)) or ()
    numbers = [each for each in known if each is not NoneType]
    if numbers and all(each in (int, float, bool) for each in numbers):
        found: Any = float
    elif numbers == [Decimal]:
        found = Decimal
    else:
        return Any
    may_be_none = len(numbers) < len(known) or make.__name__ in ("variance", "stddev")
    return optional(found) if may_be_none else found


def missing(call: str, example: str) -> CompositionError:
    """The error of a call that was given no reducer.

    >>> missing("agg()", 'agg(n=ebbflow.count())').what
    'agg(): no reducer is given'
    """
    return CompositionError(f"{call}: no reducer is given", created=place(), remedy=Text(example))
