"""A type as text that says what its values hold: the same on every version of Python.

Of a class of the program whose attributes are declared (a NamedTuple, a dataclass, any class with
hints or slots) the text has these with their types, as deep as they go; any other class is known
by its name. Rows that are tuples have round brackets, those that are objects curly ones.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Iterator
from typing import Any

from ebbflow.expression.library import library
from ebbflow.record import fields_of

_OPERATORS = {
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__bool__", "__neg__",
    "__abs__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__",
}  # fmt: skip


def schema(kind: Any, within: tuple[Any, ...] = ()) -> str:
    """A type with what its values hold.

    >>> from ebbflow.record import record
    >>> schema(record("City", city=str, n=None | int)), schema(dict[str, list[int]])
    ('City(city: str, n: int | None)', 'dict[str, list[int]]')
    """
    origin, given = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(sorted([schema(each, within) for each in given], key=_none_last))
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, given))}]"
    if origin is not None:
        inside = ", ".join([_argument(each, within) for each in given])
        return f"{_name(origin)}[{inside}]" if given else _name(origin)
    held = None if kind in within else declared(kind)
    if held is None:
        return _name(kind)
    parts = [f"{name}: {schema(each, (*within, kind))}" for name, each in held.items()]
    begin, end = "()" if issubclass(kind, tuple) else "{}"
    return f"{_name(kind)}{begin}{', '.join(parts)}{end}"


def _argument(given: Any, within: tuple[Any, ...]) -> str:
    if isinstance(given, (list, tuple)):
        return f"[{', '.join([_argument(each, within) for each in given])}]"
    known = isinstance(given, type) or typing.get_origin(given) is not None
    text = schema(given, within) if known or given is None else repr(given)
    return text.partition(" at 0x")[0]


def _none_last(text: str) -> tuple[bool, str]:
    return text == "None", text


def _name(kind: Any) -> str:
    if kind is None or kind is types.NoneType:
        return "None"
    name = getattr(kind, "__name__", None) or repr(kind)
    return str(name).removeprefix("typing.")


def declared(kind: Any) -> dict[str, Any] | None:
    """The attributes that a class of the program says its values have, with their types; None where
    it says nothing.

    >>> @dataclasses.dataclass
    ... class City:
    ...     name: str
    ...     people: int = 0
    >>> declared(City), declared(int)
    ({'name': <class 'str'>, 'people': <class 'int'>}, None)
    """
    fields = fields_of(kind)
    if fields is not None:
        return fields
    if not isinstance(kind, type) or issubclass(kind, enum.Enum):
        return None
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        return {each.name: hints.get(each.name, Any) for each in dataclasses.fields(kind)}
    if library(kind.__module__):
        return None
    slots = [vars(each).get("__slots__", ()) for each in reversed(kind.__mro__)]
    names = [name for each in slots for name in ([each] if isinstance(each, str) else each)]
    found = {**dict.fromkeys(names, Any), **_hints(kind)}
    return {n: t for n, t in found.items() if typing.get_origin(t) is not typing.ClassVar} or None


def _hints(kind: Any) -> dict[str, Any]:
    """The hints of a class; where one cannot be made out, all of them as they are written."""
    try:
        return typing.get_type_hints(kind)
    except Exception:
        return dict(getattr(kind, "__annotations__", {}))


def undeclared(kind: Any, within: tuple[Any, ...] = ()) -> Iterator[str]:
    """The classes of the program in a type that do not say what their values hold."""
    for each in typing.get_args(kind):
        yield from undeclared(each, within)
    if not isinstance(kind, type) or kind in within or issubclass(kind, enum.Enum):
        return
    held = declared(kind)
    if held is None and not library(kind.__module__):
        yield kind.__name__
    for each in (held or {}).values():
        yield from undeclared(each, (*within, kind))


def with_operators(kind: Any, within: tuple[Any, ...] = ()) -> Iterator[type]:
    """The classes of the program in a type that say themselves how their values are compared or
    added, or are true; those of dataclasses that are made of their fields do not count.

    >>> list(with_operators(dict[str, int]))
    []
    """
    for each in typing.get_args(kind):
        yield from with_operators(each, within)
    if not isinstance(kind, type) or kind in within:
        return
    if any(map(_writes_operators, kind.__mro__)):
        yield kind
    for each in (declared(kind) or {}).values():
        yield from with_operators(each, (*within, kind))


def _writes_operators(kind: type) -> bool:
    written = [vars(kind)[name] for name in _OPERATORS & vars(kind).keys()]
    return not library(kind.__module__) and any(
        type(each) is types.FunctionType and each.__code__.co_filename != "<string>"
        for each in written
    )
