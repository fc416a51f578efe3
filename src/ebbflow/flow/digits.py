"""The digits of what reducers give for Decimals, set when the type of their rows is known.

`sum("price")` does not know what a price is. In a program it does: then the sum of `decimal(12, 2)`
has the digits (22, 2). A part of a row that computes Decimals becomes a traced function, so it
means the same in every engine.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

from ebbflow import decimals
from ebbflow.decimals import Digits
from ebbflow.expression.decimals import computes_decimals, number_of
from ebbflow.flow.result_types import AnyReducer, part_of, result_type
from ebbflow.fn import Fn
from ebbflow.record import fields_of
from ebbflow.reducer import mean, median, quantile, sum
from ebbflow.reducer.combine import by, on, then, together, where

_DIGITS = {
    sum: decimals.summed,
    mean: decimals.averaged,
    median: decimals.averaged,
    quantile: decimals.averaged,
}


def with_digits(reducer: AnyReducer, row_type: Any) -> AnyReducer:
    """The reducer of rows of this type, with the digits of its result.

    >>> from ebbflow.record import record
    >>> Order = record("Order", price=decimals.decimal(12, 2))
    >>> with_digits(sum("price"), Order).made[2]
    {'digits': (22, 2)}
    """
    made = reducer.made
    if made is None or not _holds_decimals(row_type):
        return reducer
    make, given, named = made
    again: tuple[Any, ...] = given
    if make is together:
        again = tuple([with_digits(each, row_type) for each in given])
    elif make is then:
        inner = with_digits(given[0], row_type)
        again = inner, _of_decimals(given[1], result_type(inner, row_type))
    elif make in (where, by):
        parts = [_of_decimals(each, row_type) for each in given[1:]]
        again = with_digits(given[0], row_type), *parts
    elif make is on:
        parts = [_of_decimals(each, row_type) for each in given[1:]]
        part = part_of(row_type, parts[0] if len(parts) == 1 else tuple(parts))
        again = with_digits(given[0], part), *parts
    elif make.__module__.startswith("ebbflow.reducer"):
        again, named = _of_library(make, given, named, row_type)
    if all(a is b for a, b in zip(again, given, strict=True)) and named == made[2]:
        return reducer
    found: AnyReducer = make(*again, **named)
    found.name, found.created = reducer.name, reducer.created
    return found


def _of_library(
    make: Any, given: tuple[Any, ...], named: dict[str, Any], row_type: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    keys = _keys(make)
    parts = [_of_decimals(each, row_type) if at in keys else each for at, each in enumerate(given)]
    if make in _DIGITS and "digits" not in named and not named.get("discrete"):
        at = min(keys)
        number = number_of(part_of(row_type, parts[at] if at < len(parts) else None))
        digits: Digits = _DIGITS[make](number.digits) if number and number.is_decimal else None
        named = named if digits is None else {**named, "digits": digits}
    return tuple(parts), named


@cache
def _keys(make: Any) -> frozenset[int]:
    """Which arguments of a reducer of the library are parts of a row."""
    parameters = inspect.signature(make).parameters.values()
    return frozenset(
        at for at, each in enumerate(parameters) if str(each.annotation).startswith("Key")
    )


def _of_decimals(part: Any, row_type: Any) -> Any:
    """A function of a row, traced if it computes Decimals."""
    if not callable(part) or isinstance(part, Fn):
        return part
    found = Fn(part, row_type)
    if not computes_decimals(found.expression):
        return part
    return found


def _holds_decimals(row_type: Any) -> bool:
    hints = [row_type, *(fields_of(row_type) or {}).values()]
    return any(number is not None and number.is_decimal for number in map(number_of, hints))
