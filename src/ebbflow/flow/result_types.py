"""The type of what a reducer gives, found before it has run.

A reducer of the library remembers the call that made it, and so what it computes on: `max("price")`
gives what the field `price` is. None is skipped, as in SQL; so where a value may be None, a whole
group may be, and then there is nothing to give but None. Only counts and collections are never
None. A reducer written by hand gives what its functions say, or are seen, to return.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from types import NoneType
from typing import Any

from ebbflow import decimals
from ebbflow.decimals import Digits
from ebbflow.flow import types
from ebbflow.flow.inferred import inferred, type_of
from ebbflow.flow.parts import part_type
from ebbflow.flow.plan import Source
from ebbflow.reducer import Map, Reducer
from ebbflow.reducer.combine import by, on, then, together, where

AnyReducer = Reducer[Any, Any, Any]


def result_type(reducer: AnyReducer, row_type: Any) -> Any:
    """The type of what a reducer gives for rows of this type, as far as it can be told.

    >>> import ebbflow
    >>> result_type(ebbflow.count() & ebbflow.max(), str)
    tuple[int, str]
    >>> result_type(ebbflow.bool_or(), bool | None), result_type(ebbflow.collect(), int | None)
    (bool | None, tuple[int, ...])
    """
    if reducer.type is not None:
        return reducer.type
    if reducer.made is None:
        return _written(reducer, row_type)
    make, arguments, named = reducer.made
    if make is together:
        return tuple[tuple(result_type(each, row_type) for each in arguments)]  # type: ignore[misc]
    if make is then:
        return inferred(arguments[1], result_type(arguments[0], row_type))
    if make is where:
        inner = result_type(arguments[0], row_type)
        return inner if _of_nothing(arguments[0]) else types.optional(inner)
    if make in (on, by):
        part = part_of(row_type, arguments[1] if len(arguments) == 2 else arguments[1:])
        if make is by:
            return _map(part, result_type(arguments[0], row_type))
        return result_type(arguments[0], part)
    if not make.__module__.startswith("ebbflow.reducer") or make.__name__ not in _RESULTS:
        return Any
    bound = inspect.signature(make).bind(*arguments, **named).arguments
    return _of_library(make.__name__, {name: bound[name] for name in bound}, row_type)


def _of_library(name: str, bound: dict[str, Any], row_type: Any) -> Any:
    part = part_of(row_type, bound.get("of", bound.get("x")))
    found = types.without_none(part) if bound.get("discrete") else _RESULTS[name](part)
    if name in _NEVER_NONE or found is Any:
        return found
    skips = [part, *([part_of(row_type, bound["order"])] if name in _PLACED else [])]
    return types.optional(found) if name in _OFTEN_NONE or any(map(_may_be_none, skips)) else found


def part_of(row_type: Any, of: Any) -> Any:
    """The type of a part of rows of this type; of the rows themselves, if it is None."""
    return row_type if of is None else part_type(Source(name="", type=row_type), of)


def _may_be_none(row_type: Any) -> bool:
    known = types.classes(row_type)
    return known is None or NoneType in known


def _of_nothing(reducer: AnyReducer) -> bool:
    """Whether a reducer gives a number or a collection, and not None, for no rows."""
    return reducer.made is not None and reducer.made[0].__name__ in _NEVER_NONE


def _written(reducer: AnyReducer, row_type: Any) -> Any:
    """The result of a reducer that was written by hand. There is always a row, so the accumulator
    is what `add` and `remove` give."""
    said = Any if reducer.result is None else types.returned(reducer.result)
    if said is not Any:
        return said
    first = Any if callable(reducer.init) else type_of(reducer.init)
    acc = inferred(reducer.add, first, row_type)
    wide = types.common(first, acc)
    acc = acc if wide in (None, first) else inferred(reducer.add, wide, row_type)
    less = Any if reducer.remove is None else inferred(reducer.remove, acc, row_type)
    acc = acc if less is Any else types.common(acc, less) or Any
    found = acc if reducer.result is None else inferred(reducer.result, acc)
    return Any if types.unhashable(found) else found


# ---- by what is computed on, without the None that may be in it ----


def _total(part: Any) -> Any:
    """A sum of truth values is an int; one of Decimals has ten digits more."""
    known = [each for each in types.classes(part) or () if each is not NoneType]
    if bool in known:
        return types.either(*(int if each is bool else each for each in known))
    if known == [Decimal]:
        return decimals.hint_of(decimals.summed(_digits(part)))
    return types.without_none(part)


def _average(part: Any) -> Any:
    """Averages of ints and floats are floats, those of Decimals have four digits more."""
    known = [each for each in types.classes(part) or () if each is not NoneType]
    if known and all(each in (int, float, bool) for each in known):
        return float
    return decimals.hint_of(decimals.averaged(_digits(part))) if known == [Decimal] else Any


def _spread(part: Any) -> Any:
    """What squares are part of: a float, or a plain Decimal."""
    found = _average(part)
    return found if found in (float, Any) else Decimal


def _digits(part: Any) -> Digits:
    return decimals.digits_of(types.without_none(part))


def _middle(part: Any) -> Any:
    """What lies between two times is a time."""
    return (
        types.without_none(part)
        if types.classes(types.without_none(part)) in ((date,), (datetime,))
        else _average(part)
    )


def _product(part: Any) -> Any:
    row_type = _total(part)
    return row_type if row_type in (int, float) else Any


def _several(part: Any) -> Any:
    return tuple.__class_getitem__((types.without_none(part), ...))


def _set(part: Any) -> Any:
    return frozenset.__class_getitem__(types.without_none(part))


def _map(key: Any, value: Any) -> Any:
    made: Any = Map
    return made[key, value]


_RESULTS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("count", "count_distinct", "approx_count_distinct", "rank"), lambda _: int),
    **dict.fromkeys(
        ("min", "max", "first", "last", "arg_min", "arg_max", "mode"), types.without_none
    ),
    **dict.fromkeys(("sum", "naive_sum"), _total),
    "mean": _average,
    **dict.fromkeys(("variance", "stddev", "covariance", "weighted_mean"), _spread),
    **dict.fromkeys(("median", "quantile"), _middle),
    **dict.fromkeys(("bool_and", "bool_or"), lambda _: bool),
    **dict.fromkeys(("collect", "top_k"), _several),
    "approx_quantile": lambda part: float if _average(part) is float else Any,
    "product": _product,
    "bit_xor": lambda _: int,
    "string_agg": lambda _: str,
    "set_of": _set,
    "histogram": lambda part: _map(types.without_none(part), int),
}
_NEVER_NONE = {
    "count", "count_distinct", "approx_count_distinct", "rank", "collect", "top_k", "set_of",
    "histogram",
}  # fmt: skip
_OFTEN_NONE = {"variance", "stddev", "covariance", "weighted_mean"}
_PLACED = {"first", "last", "arg_min", "arg_max"}
