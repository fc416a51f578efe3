"""NaN is one value here: equal to itself, one row, one key, greater than every other number.

Python's NaN is not equal to itself, so two of them are two rows, and neither is found again. Yet
what Python compares first is whether both are the same object. So every value that enters a program
(a row that is given, what a function gives, what is read from state) has the NaN in it replaced by
one object, `NAN`, and then rows, keys and sets that hold it are equal, and are found.

Numbers that are no floats have a NaN of their own, one object per type, as `Decimal` has: it does
not mix with floats. NaN is found inside tuples, frozensets, mappings and dataclasses, and by
`loads` in whatever was pickled.

Whether a value may hold NaN is known by its class, and is found out once per class: `WAYS`. Where
fields have types that cannot hold one, such as `int` and `str`, nothing is looked at.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import fields as dataclass_fields
from datetime import date, time, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from io import BytesIO
from itertools import chain
from numbers import Number, Real
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin
from uuid import UUID

from ebbflow.codegen import GeneratedLoop
from ebbflow.errors import AlgebraError
from ebbflow.record import attributes_of

NAN = math.nan
"""The NaN that stands for every other."""

Way = Callable[[Any], Any]

_NEVER = (int, str, bytes, date, time, timedelta, NoneType, Enum, Fraction, UUID, range, type)
_ONE: dict[type, Any] = {Decimal: Decimal("NaN"), complex: complex(NAN, NAN)}
_CONTAINERS = (tuple, list, set, frozenset, dict)


def one_nan(value: Any) -> Any:
    """The value with `NAN` instead of any other, inside of it too.

    >>> one_nan((1, float("nan"))) == one_nan((1, float("nan")))
    True
    >>> one_nan(frozenset([float("nan"), float("nan")]))
    frozenset({nan})
    """
    way = WAYS[type(value)]
    return value if way is None else way(value)


def is_nan(x: Any) -> bool:
    """Whether a value is not equal to itself, as NaN is not.

    >>> is_nan(math.nan), is_nan(3)
    (True, False)
    """
    try:
        return bool(x != x)
    except InvalidOperation as error:
        raise AlgebraError(
            "a signaling NaN cannot be compared or computed with",
            value=x,
            remedy="Decimal('NaN'), or a row without it",
        ) from error


def with_one_nan(weights: dict[Any, int], hint: Any = Any) -> dict[Any, int]:
    """Rows with weights, with one NaN; the weights of rows that become equal are added up. `hint`
    is the type of the rows.

    >>> with_one_nan({float("nan"): 1, float("nan"): 2, 3.0: 1})
    {nan: 3, 3.0: 1}
    """
    found = finder(hint)
    if found is None or not found(weights):
        return weights
    return mapped(one_nan, weights)


def mapped(change: Callable[[Any], Any], weights: dict[Any, int]) -> dict[Any, int]:
    """Rows with weights, each changed; the weights of rows that become equal are added up.

    >>> mapped(abs, {1: 2, -1: -2, 3: 1})
    {3: 1}
    """
    total: dict[Any, int] = {}
    for row, weight in weights.items():
        row = change(row)
        total[row] = total.get(row, 0) + weight
    return {row: weight for row, weight in total.items() if weight}


@lru_cache(maxsize=1024)
def finder(hint: Any) -> Callable[[Collection[Any]], bool] | None:
    """A function that tells whether some rows of a type are or hold a NaN other than `NAN`; None
    where none can.

    >>> finder(int) is None, finder(float)([1.0, float("nan")]), finder(Any)([(1, "a"), (NAN, "b")])
    (True, True, False)
    """
    if not may_hold(hint):
        return None
    fields = attributes_of(hint)
    if fields is None:
        return _found_in_any
    loop = GeneratedLoop("found", "rows")
    with loop.inside("for row in rows:"):
        loop.write(f"if {_found(loop, hint, fields)}: return True")
    loop.write("return False")
    return loop.function()


def may_hold(hint: Any, inside: tuple[Any, ...] = ()) -> bool:
    """Whether a value of this type may be NaN, or hold one, as far as its hint tells.

    >>> may_hold(int | None), may_hold(float), may_hold(tuple[int, str]), may_hold(Any)
    (False, True, False, True)
    """
    if hint is None or hint is Ellipsis or any(hint is each for each in inside):
        return False
    origin, given = get_origin(hint), get_args(hint)
    if origin is Literal:
        return any(may_hold(type(value)) for value in given)
    if origin is Annotated or hasattr(hint, "__supertype__"):
        return may_hold(given[0] if given else hint.__supertype__, inside)
    if origin in (Union, UnionType) or (origin in _CONTAINERS and given):
        return any(may_hold(each, inside) for each in given)
    if not isinstance(hint, type):
        return True
    if issubclass(hint, _NEVER):
        return False
    fields = attributes_of(hint)
    return fields is None or any(may_hold(each, (*inside, hint)) for each in fields.values())


def is_number(hint: Any) -> bool:
    """Whether a value of this type is NaN as a whole, or has none.

    >>> is_number(float | None), is_number(tuple[float]), is_number(Any)
    (True, False, False)
    """
    if get_origin(hint) in (Union, UnionType):
        return all(map(is_number, get_args(hint)))
    if get_origin(hint) is Annotated:
        return is_number(get_args(hint)[0])
    return isinstance(hint, type) and issubclass(hint, (float, Decimal, complex, *_NEVER))


# ---- one way for each class ----


class _WaysByClass(dict[type, "Way | None"]):
    """For each class how its values get `NAN`; None where they hold no NaN, or none is found."""

    def __missing__(self, hint: type) -> Way | None:
        way = self[hint] = _way(hint)
        return way

    def __reduce__(self) -> str:
        return "WAYS"

    def __identity__(self) -> str:
        """The identity in fingerprints of code that uses the table: not the classes met so far."""
        return "WAYS"


WAYS = _WaysByClass()


def _way(hint: type) -> Way | None:
    if issubclass(hint, _NEVER):
        return None
    if issubclass(hint, Number) or any(base.__name__ == "generic" for base in hint.__mro__):
        return _number
    fields = attributes_of(hint)
    if fields is not None:
        return _record(hint, fields) if may_hold(hint) else None
    if issubclass(hint, tuple):
        return _items
    if issubclass(hint, frozenset):
        return _elements
    return _entries if issubclass(hint, Mapping) else None


def _number(value: Any) -> Any:
    if not is_nan(value):
        return value
    return NAN if isinstance(value, Real) else _ONE.setdefault(type(value), value)


def _items(value: Any) -> Any:
    return tuple.__new__(type(value), map(one_nan, value)) if _inside(value) else value


def _elements(value: Any) -> Any:
    return frozenset.__new__(type(value), map(one_nan, value)) if _inside(value) else value


def _entries(value: Any) -> Any:
    if not _inside(chain.from_iterable(value.items())):
        return value
    return type(value)([(one_nan(key), one_nan(item)) for key, item in value.items()])


def _inside(values: Iterable[Any]) -> bool:
    """Whether there is a NaN to replace, however deep tuples and sets are nested."""
    waiting = [values]
    while waiting:
        for value in waiting.pop():
            way = WAYS[type(value)]
            if way is _items or way is _elements:
                waiting.append(value)
            elif way is not None and way(value) is not value:
                return True
    return False


# ---- records: only the fields that may hold one ----


def _record(hint: type, fields: dict[str, Any]) -> Way:
    loop = GeneratedLoop("one", "row")
    make = _items if issubclass(hint, tuple) else _copied
    loop.write(f"return {loop.bind(make)}(row) if {_found(loop, hint, fields)} else row")
    return loop.function()


def _copied(value: Any) -> Any:
    new = copy(value)
    for each in dataclass_fields(value):
        if hasattr(value, each.name):
            object.__setattr__(new, each.name, one_nan(getattr(value, each.name)))
    return new


def _found(loop: GeneratedLoop, row_type: Any, fields: dict[str, Any]) -> str:
    """Text that tells whether `row` holds a NaN that has to be replaced. A field of a dataclass
    that is not compared may hold what it likes, or nothing yet."""
    tests = []
    for i, (name, hint) in enumerate(fields.items()):
        plain = issubclass(row_type, tuple)
        if may_hold(hint) and (plain or row_type.__dataclass_fields__[name].compare):
            x = f"row[{i}]" if plain else f"row.{name}"
            nan = f"{x} != {x} and {x} is not {loop.bind(NAN)}"
            tests.append(nan if is_number(hint) else f"{loop.bind(_inside)}(({x},))")
    return " or ".join(tests) or "False"


def _found_in_any(rows: Collection[Any]) -> bool:
    for cls in set(map(type, rows)):
        way = WAYS[cls]
        if way is None:
            continue
        mine: list[Any] = [row for row in rows if type(row) is cls]
        if cls is tuple and all(WAYS[k] is None for k in set(map(type, chain.from_iterable(mine)))):
            continue
        if any(way(row) is not row for row in mine):
            return True
    return False


# ---- pickles ----

_LONG = 1 << 12
"""A pickle that is longer has a mark in it by chance, and it pays to look at the value instead."""
_DEEP = 20
_PLAIN = {int, str, bytes, bool, NoneType, type}
_MARKS = (b"G\x7f", b"G\xff", b"NaN", b"numpy")
"""What is in every pickle of a NaN, and in few others: how a float begins, the text of a Decimal,
and that of NumPy's numbers."""


def loads(blob: bytes) -> Any:
    """The value of a pickle, with one NaN, wherever it is in the value.

    >>> found = loads(pickle.dumps({"a": [float("nan")], "b": {float("nan"): 1}}))
    >>> found["a"][0] is NAN, found["b"][NAN]
    (True, 1)
    """
    if not marked(blob):
        return pickle.loads(blob)
    if len(blob) > _LONG:
        value = pickle.loads(blob)
        if _has_none(value):
            return value
    return Unpickler(BytesIO(blob)).load()


def loads_each(blobs: Iterable[bytes | None]) -> list[Any]:
    """The values of many pickles; a missing one stays None.

    >>> loads_each([pickle.dumps(1), None])
    [1, None]
    """
    given = list(blobs)
    read = loads if marked(b"".join(filter(None, given))) else pickle.loads
    return [None if blob is None else read(blob) for blob in given]


def _has_none(value: Any) -> bool:
    """Whether there is surely no NaN in a value: all of it is plain, and no float is one.

    >>> _has_none([(1, "a"), {2: 0.5}]), _has_none([(1, math.nan)]), _has_none([object()])
    (True, False, False)
    """
    level: list[Any] = [value]
    for _ in range(_DEEP):
        inner: list[Any] = []
        for cls in set(map(type, level)):
            if cls in _PLAIN:
                continue
            some: list[Any] = [each for each in level if type(each) is cls]
            if cls is dict:
                inner += chain.from_iterable(chain(each, each.values()) for each in some)
            elif cls in (tuple, list) or (issubclass(cls, tuple) and hasattr(cls, "_fields")):
                inner += chain.from_iterable(some)
            elif cls is not float or any(each != each for each in some):
                return False
        level = inner
    return not level


def marked(blob: bytes) -> bool:
    """Whether a pickle may hold a NaN.

    >>> marked(pickle.dumps((1, "a"))), marked(pickle.dumps([float("nan")]))
    (False, True)
    """
    return any(mark in blob for mark in _MARKS)


_Python: Any = pickle._Unpickler


def _with_one(op: int) -> Callable[[Any], None]:
    def read(unpickler: Any) -> None:
        _Python.dispatch[op](unpickler)
        top = unpickler.stack[-1]
        if WAYS[type(top)] is _number:
            unpickler.stack[-1] = _number(top)

    return read


_NUMBERS = (pickle.BINFLOAT[0], pickle.FLOAT[0], pickle.REDUCE[0])


class Unpickler(_Python):  # type: ignore[misc]
    """Every number that was read is given `NAN` before anything is made of it."""

    dispatch: ClassVar[dict[int, Any]] = {
        **_Python.dispatch,
        **{op: _with_one(op) for op in _NUMBERS},
    }
