"""What is known of a reducer before it has run: the fields it reads, and whether it can.

A reducer of the library remembers the call that made it: `sum("price")`. What that call was given
as a part of a row is checked against the rows, so a misspelt field, or a sum of texts, is found
when the program is built and not when the first row arrives. The functions of a reducer written by
hand are looked at as those of a program are. What reducers give is in `result_types`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from types import NoneType
from typing import Any

from ebbflow.change.edited import List, Text
from ebbflow.flow.attributes import check
from ebbflow.flow.digits import with_digits
from ebbflow.flow.parts import ROW, at_once, field, function, part_type, refuse, rows_of
from ebbflow.flow.plan import Node
from ebbflow.flow.types import classes
from ebbflow.flow.written import aggregate, instead
from ebbflow.frozen import Frozen
from ebbflow.record import fields_of, name_of
from ebbflow.reducer import Reducer
from ebbflow.reducer.combine import by, on, then, together, where

AnyReducer = Reducer[Any, Any, Any]

_BUILTINS = {"sum": "sum", "min": "min", "max": "max", "len": "count", "set": "set_of"}


def given(call: str, node: Node, reducer: Any) -> AnyReducer:
    """The reducer for rows of a node, refused when it is none, or reads a field that the rows do
    not have.

    >>> from ebbflow.flow.plan import Source
    >>> given("agg(n=...)", Source(name="words"), len)
    Traceback (most recent call last):
    ebbflow.errors.CompositionError: agg(n=...): len is not a reducer
        created    <doctest ebbflow.flow.results.given[1]>:1
        try        ebbflow.count()
    """
    if not isinstance(reducer, Reducer):
        name = getattr(reducer, "__name__", None) or repr(reducer)
        refuse(f"{call}: {name} is not a reducer", _instead(call, name, reducer, node))
    for each, of in _read(reducer):
        if isinstance(of, str):
            field(_shape(call, each, of), node, of, instead=instead)
        else:
            if isinstance(of, Reducer):
                function(_around(call, each), of, ROW)
            if of is not None:
                at_once(_around(call, each).format(), of)
            check(_around(call, each), of, [(node.type, rows_of(node))])
        _numbers(_around(call, each), each, of, node)
    for step in () if reducer.made else (reducer.add, reducer.remove, reducer.repeat):
        of = [(Any, ""), (node.type, rows_of(node)), (Any, "")]
        check(call.replace("...", "Reducer({})"), step, of)
    return with_digits(reducer, node.type)


def named_results(unnamed: Any, node: Node) -> str:
    """The call of `agg` that a text such as "sum(price)", or a dict of pandas or Spark such as
    `{"price": "sum"}`, stands for; "" if there is none.

    >>> from ebbflow.flow.plan import Source
    >>> from ebbflow.record import record
    >>> named_results({"price": "sum"}, Source(name="orders", type=record("Order", price=int)))
    'agg(price=ebbflow.sum("price"))'
    """
    pairs = unnamed.items() if isinstance(unnamed, Mapping) else [("name", unnamed)]
    fields = fields_of(node.type) or {}
    found = {
        str(name): aggregate(text, [str(name)], fields) if isinstance(text, str) else ""
        for name, text in pairs
    }
    if not found or not all(each and name.isidentifier() for name, each in found.items()):
        return ""
    return f"agg({', '.join(f'{name}={each}' for name, each in found.items())})"


def _instead(call: str, name: str, reducer: Any, node: Node) -> str:
    if isinstance(reducer, str) and (fields := fields_of(node.type)):
        as_field = re.findall(r"\((\w+)=", call)
        if found := aggregate(reducer, [*as_field], fields):
            return call.replace("...", found)
    if not callable(reducer):
        return "a Reducer, such as ebbflow.count()"
    library = name if reducer.__module__.startswith("ebbflow.reducer") else _BUILTINS.get(name, "")
    if not library:
        return "ebbflow.Reducer(init, add, remove), or one of the library, such as ebbflow.count()"
    return f"ebbflow.{library}({'' if library == 'count' else likely(node)})"


def likely(node: Node, never: tuple[type, ...] = ()) -> str:
    """A field to take as an example: the last one that is a number, of none of the classes `never`.

    >>> from ebbflow.flow.plan import Source
    >>> likely(Source(name="words", type=str))
    ''
    """
    fields = fields_of(node.type) or {}
    wanted = {int, float} - {*never}
    numbers = [name for name, hint in fields.items() if set(classes(hint) or ()) & wanted]
    some = numbers or ([] if never else [*fields])
    return f'"{some[-1]}"' if some else ""


def _shape(call: str, reducer: AnyReducer, name: str) -> str:
    """The call with the reducer as it was written, open at the field."""
    around, quoted = call.replace("{", "{{").replace("}", "}}"), _text(reducer)
    opened = quoted.replace("{", "{{").replace("}", "}}").replace(repr(name), "{}", 1)
    return around.replace("...", opened) if "{}" in opened else around


def _around(call: str, reducer: AnyReducer) -> str:
    """The call with the reducer as it was written, as a shape that is complete."""
    return call.replace("...", _text(reducer)).replace("{", "{{").replace("}", "}}")


def _text(reducer: AnyReducer) -> str:
    """A reducer as it was written; of a function in a function, its own name."""
    return re.sub(r"[\w.<>]+\.<locals>\.", "", repr(reducer))


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
    for of in keys_given(reducer):
        yield reducer, of


def keys_given(reducer: AnyReducer) -> list[Any]:
    """The parts of a row that the call which made a reducer was given; None for the row itself.

    >>> from ebbflow.reducer import arg_max, max
    >>> keys_given(max()), keys_given(arg_max("price", "name"))
    ([None], ['price', 'name'])
    """
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


_NO_AMOUNTS = (str, bytes, time, Text, List, tuple, frozenset, dict, Frozen)
_NOT_ADDED = (*_NO_AMOUNTS, date)
_NOT_MULTIPLIED = (*_NOT_ADDED, timedelta, complex)
_NEVER: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("median", "quantile"), _NO_AMOUNTS),
    **dict.fromkeys(("sum", "mean"), (*_NOT_ADDED, complex)),
    "naive_sum": (*_NOT_ADDED, timedelta),
    **dict.fromkeys(
        ("product", "variance", "stddev", "covariance", "weighted_mean", "approx_quantile"),
        _NOT_MULTIPLIED,
    ),
    "bit_xor": (*_NOT_MULTIPLIED, float, Decimal, Fraction),
}
"""Reducers that compute with values, and classes with which they cannot."""


def _numbers(call: str, reducer: AnyReducer, of: Any, node: Node) -> None:
    """Refuse a reducer that adds up what is clearly no number."""
    make, _, named = reducer.made or (None, (), {})
    never = _NEVER.get(getattr(make, "__name__", ""), ())
    if make is None or not never or named.get("discrete"):
        return
    if not make.__module__.startswith("ebbflow.reducer"):
        return
    part = node.type if of is None else part_type(node, of)
    known = [each for each in classes(part) or () if each is not NoneType]
    if known and all(issubclass(each, never) for each in known):
        values = rows_of(node) if of is None else "its values"
        what = f"{of!r} is" if isinstance(of, str) else f"{values} are"
        want = "whole numbers" if float in never else "numbers"
        other = likely(node, never)
        refuse(
            f"{call.format()}: {what} of type {name_of(part)}, and no {want}",
            f"ebbflow.{make.__name__}({other})"
            if other
            else f"a field or a function of the row that gives {want}",
        )
