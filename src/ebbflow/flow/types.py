"""What is known of a type: when two fit, what a function returns, what can be a row.

Every collection has exactly one row type, found when it is built. Types come from the user's hints
and are believed as far as they go; where there is no hint the type is `Any`, which fits everything.
Two types are refused only where they are *clearly* different: `int` and `str`, but not `int` and
`float`, nor `int` and `int | None`, nor a class and its subclass.

*Notes* are what `Annotated` adds to say how values are stored: `Annotated[datetime, UTC]` is a time
with a zone, `Annotated[Decimal, (10, 2)]` has 10 digits, 2 of them after the point. A field keeps
its notes wherever it is carried to. A time with a zone never equals one without, so those two are
clearly different; Decimals of different digits have in common the digits that hold both.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, tzinfo
from decimal import Decimal
from numbers import Number
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ebbflow import decimals
from ebbflow.frozen import Frozen
from ebbflow.record import fields_of, hints_of, name_of, record, with_notes

DIGITS = decimals.WIDE
"""How many digits a Decimal has in a table, and how many of them after the point, without notes."""


def common(first: Any, second: Any) -> Any:
    """The type of values of either type; None when the two are clearly different.

    >>> common(int, int), common(int, Any), common(int, float), common(bool, int)
    (<class 'int'>, typing.Any, <class 'float'>, <class 'int'>)
    >>> common(int, int | None)
    int | None
    >>> common(tuple[int, str], tuple[float, None])
    tuple[float, str | None]
    >>> common(int, str) is None
    True
    >>> from datetime import UTC
    >>> common(datetime, Annotated[datetime, UTC]) is None
    True
    >>> common(Annotated[Decimal, (10, 2)], Annotated[Decimal, (6, 4)])
    typing.Annotated[decimal.Decimal, (12, 4)]
    """
    if first is second or first == second:
        return first
    if Any in (first, second):
        return Any
    if fields_of(first) is not None and fields_of(second) is not None:
        return _common_record(first, second)
    ours, theirs = classes(first), classes(second)
    if ours is None or theirs is None:
        return Any
    if not _meet(ours, theirs):
        return None
    one, other = without_none(first), without_none(second)
    hint = one if one == other else _common_value(one, other)
    return optional(hint) if hint is not None and NoneType in (*ours, *theirs) else hint


def common_or_any(first: Any, second: Any) -> Any:
    """The `common` type of two, and `Any` where they are clearly different.

    >>> common_or_any(int, str), common_or_any(bool, int)
    (typing.Any, <class 'int'>)
    """
    hint = common(first, second)
    return Any if hint is None else hint


def _common_value(first: Any, second: Any) -> Any:
    """The `common` type of two types without None. NoneType itself adds nothing."""
    if NoneType in (first, second):
        return second if first is NoneType else first
    if get_origin(first) is tuple is get_origin(second):
        return _common_tuple(get_args(first), get_args(second))
    hint = either(*(classes(first) or ()), *(classes(second) or ()))
    ours, theirs = notes(first), notes(second)
    if hint is datetime and _zoned(ours) != _zoned(theirs):
        return None
    if hint is Decimal and ours + theirs:
        return decimals.hint_of(decimals.wider(*map(decimals.digits_of, (first, second))))
    return with_notes(hint, ours if _zoned(ours) or ours == theirs else ())


def _common_tuple(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> Any:
    if len(ours) != len(theirs) or (... in ours) != (... in theirs):
        return tuple
    pairs = zip(ours, theirs, strict=True)
    both = [one if one is ... else common(one, other) for one, other in pairs]
    return None if None in both else tuple.__class_getitem__(tuple(both))


def _common_record(first: Any, second: Any) -> Any:
    ours, theirs = fields_of(first) or {}, fields_of(second) or {}
    if not (issubclass(first, tuple) and issubclass(second, tuple)):
        return Any
    if list(ours) != list(theirs):
        return None
    both = {name: common(hint, theirs[name]) for name, hint in ours.items()}
    if None in both.values():
        return None
    return first if both == ours else row(first.__name__, both)


def _meet(ours: tuple[type, ...], theirs: tuple[type, ...]) -> bool:
    """Whether a value of the one can be equal to a value of the other; None alone meets all."""
    some, others = set(ours) - {NoneType}, set(theirs) - {NoneType}
    return not some or not others or any(_alike(a, b) for a in some for b in others)


def _alike(a: type, b: type) -> bool:
    try:
        return (
            issubclass(a, b)
            or issubclass(b, a)
            or (issubclass(a, Number) and issubclass(b, Number))
        )
    except TypeError:
        return True


def either(*hints: Any) -> Any:
    """The union of classes, without those that another one covers.

    >>> either(int, str, bool, NoneType)
    int | str | None
    """
    different = list(dict.fromkeys(hints))
    wide = [a for a in different if not any(_covers(b, a) for b in different if b is not a)]
    return functools.reduce(operator.or_, wide)


def _covers(wide: Any, narrow: Any) -> bool:
    try:
        return issubclass(narrow, wide) or (wide is float and issubclass(narrow, int))
    except TypeError:
        return False


def optional(hint: Any) -> Any:
    """The type, or None.

    >>> optional(int), optional(Any), optional(int | None)
    (int | None, typing.Any, int | None)
    """
    if hint is Any:
        return Any
    try:
        return hint | None
    except TypeError:
        return Any


def without_none(hint: Any) -> Any:
    """The type of the values that are not None.

    >>> without_none(int | None), without_none(int), without_none(int | str | None)
    (<class 'int'>, <class 'int'>, int | str)
    """
    if get_origin(hint) not in (Union, UnionType):
        return NoneType if hint is None else hint
    return functools.reduce(operator.or_, [each for each in get_args(hint) if each is not NoneType])


def held(hint: Any) -> Any:
    """What a row holds for a hint, as rows are hashable: tuples for lists, `Frozen` dicts for
    dicts, frozensets for sets.

    >>> held(list[int]), held(dict[str, list[int]] | None)
    (tuple[int, ...], ebbflow.frozen.Frozen[str, tuple[int, ...]] | None)
    """
    origin, inside = get_origin(hint), get_args(hint)
    if hint in _HELD:
        return _HELD[hint]
    if origin in (Union, UnionType):
        return functools.reduce(operator.or_, map(held, inside))
    if origin not in (*_HELD, tuple):
        return hint
    parts = tuple(each if each is ... else held(each) for each in inside)
    if origin is list:
        parts = (*parts, ...)
    made: Any = _HELD.get(origin, tuple)
    return hint if parts == inside and made is tuple is origin else made[parts]


_HELD: dict[Any, Any] = {list: tuple, dict: Frozen, set: frozenset}


def fields_held(hint: Any) -> dict[str, Any] | None:
    """The fields of a row type, with the types of what rows hold.

    >>> fields_held(row("Post", {"id": int, "tags": list[str]}))
    {'id': <class 'int'>, 'tags': tuple[str, ...]}
    """
    fields = fields_of(hint)
    return fields and {name: held(each) for name, each in fields.items()}


# ---- notes ----


def notes(hint: Any) -> tuple[Any, ...]:
    """What `Annotated` adds to a type, or to the one that is there beside None.

    >>> notes(Annotated[Decimal, (10, 2)] | None), notes(int)
    (((10, 2),), ())
    """
    hint = without_none(hint)
    if hasattr(hint, "__supertype__"):
        return notes(hint.__supertype__)
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _zoned(notes: tuple[Any, ...]) -> bool:
    return any(isinstance(note, tzinfo) for note in notes)


def digits(hint: Any) -> tuple[int, int]:
    """How many digits the Decimals of this type have in a table, and how many after the point.

    >>> digits(Annotated[Decimal, (10, 2)]), digits(Decimal)
    ((10, 2), (38, 18))
    """
    return next((note for note in notes(hint) if isinstance(note, tuple)), DIGITS)


# ---- classes ----


def classes(hint: Any) -> tuple[type, ...] | None:
    """The classes a value of this type may have; None when nothing is known.

    >>> classes(int | None), classes(list[int]), classes(Any)
    ((<class 'int'>, <class 'NoneType'>), (<class 'list'>,), None)
    """
    origin = get_origin(hint)
    if hint is Any or hint is None:
        return None if hint is Any else (NoneType,)
    if origin is Literal:
        return tuple(dict.fromkeys(type(value) for value in get_args(hint)))
    if origin in (Union, UnionType):
        parts = [classes(part) for part in get_args(hint)]
        return None if None in parts else tuple(each for part in parts for each in part or ())
    if origin is Annotated or hasattr(hint, "__supertype__"):
        return classes(get_args(hint)[0] if origin is Annotated else hint.__supertype__)
    if origin is not None:
        return classes(origin)
    return (hint,) if isinstance(hint, type) else None


# ---- functions ----


def returned(f: Any) -> Any:
    """What a function says it returns; a class returns itself.

    >>> def double(n: int) -> int: return 2 * n
    >>> returned(double), returned(str), returned(lambda n: n)
    (<class 'int'>, <class 'str'>, typing.Any)
    """
    while isinstance(f, functools.partial):
        f = f.func
    if isinstance(f, type):
        return f
    hinted = f if inspect.isroutine(f) else type(f).__call__
    return hints_of(hinted).get("return", Any)


def iterated(hint: Any) -> Any:
    """The type of what a value of this type gives when iterated; None when it cannot be.

    >>> iterated(list[int]), iterated(str), iterated(tuple[int, ...]), iterated(int), iterated(Any)
    (<class 'int'>, <class 'str'>, <class 'int'>, None, typing.Any)
    """
    known = classes(hint)
    if known is None:
        return Any
    if not all(issubclass(each, Iterable) for each in known):
        return None
    inside = get_args(hint)
    if hint is str:
        return str
    if len(known) > 1 or not inside:
        return Any
    if known[0] is tuple:
        return functools.reduce(common_or_any, [each for each in inside if each is not ...])
    return inside[0]


# ---- rows ----


def row(name: str, fields: Mapping[str, Any]) -> Any:
    """`record(name, **fields)` for fields of any name, `name` too.

    >>> row("City", {"name": str})("Rome")
    City(name='Rome')
    """
    return record(name, **fields)


def unhashable(hint: Any, fields: Callable[[Any], dict[str, Any] | None] = fields_of) -> str:
    """What of a type cannot be hashed, in words; nothing when all can.

    >>> unhashable(list[int]), unhashable(row("Post", {"tags": list})), unhashable(int)
    ('a list', "a list in the field 'tags'", '')
    """
    for each in classes(hint) or ():
        if each.__hash__ is None:
            return f"a {each.__name__}"
    for name, part in (fields(hint) or {}).items():
        if inside := unhashable(part, fields):
            return inside if "in the field" in inside else f"{inside} in the field {name!r}"
    return ""


def text(hint: Any) -> str:
    """A type as it is shown in an error: a record with the types of its fields.

    >>> text(row("City", {"city": str, "n": int})), text(int | None), text(list[int])
    ('City(city: str, n: int)', 'int | None', 'list[int]')
    """
    fields = fields_of(hint)
    if fields is not None:
        return (
            f"{hint.__name__}({', '.join(f'{name}: {name_of(t)}' for name, t in fields.items())})"
        )
    return name_of(hint)
