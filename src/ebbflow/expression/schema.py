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


def schema(hint: Any, within: tuple[Any, ...] = ()) -> str:
    """A type with what its values hold.

    >>> from ebbflow.record import record
    >>> schema(record("City", city=str, n=None | int)), schema(dict[str, list[int]])
    ('City(city: str, n: int | None)', 'dict[str, list[int]]')
    """
    origin, given = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        texts = [schema(each, within) for each in given]
        return " | ".join(sorted(texts, key=lambda text: (text == "None", text)))
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, given))}]"
    if origin is not None:
        inside = ", ".join([_argument(each, within) for each in given])
        return f"{class_name(origin)}[{inside}]" if given else class_name(origin)
    held = None if hint in within else declared(hint)
    if held is None:
        return class_name(hint)
    parts = [f"{name}: {schema(each, (*within, hint))}" for name, each in held.items()]
    begin, end = "()" if issubclass(hint, tuple) else "{}"
    return f"{class_name(hint)}{begin}{', '.join(parts)}{end}"


def _argument(given: Any, within: tuple[Any, ...]) -> str:
    if isinstance(given, (list, tuple)):
        return f"[{', '.join([_argument(each, within) for each in given])}]"
    known = isinstance(given, type) or typing.get_origin(given) is not None
    text = schema(given, within) if known or given is None else repr(given)
    return text.partition(" at 0x")[0]


def class_name(hint: Any) -> str:
    """The name of a class, or how what is none is written."""
    if hint is None or hint is types.NoneType:
        return "None"
    name = getattr(hint, "__name__", None) or repr(hint)
    return str(name).removeprefix("typing.")


def declared(hint: Any) -> dict[str, Any] | None:
    """The attributes that a class of the program says its values have, with their types; None where
    it says nothing.

    >>> @dataclasses.dataclass
    ... class City:
    ...     name: str
    ...     people: int = 0
    >>> declared(City), declared(int)
    ({'name': <class 'str'>, 'people': <class 'int'>}, None)
    """
    fields = fields_of(hint)
    if fields is not None:
        return fields
    if not isinstance(hint, type) or issubclass(hint, enum.Enum):
        return None
    if dataclasses.is_dataclass(hint):
        hints = _hints(hint)
        return {each.name: hints.get(each.name, Any) for each in dataclasses.fields(hint)}
    if library(hint.__module__):
        return None
    slots = [vars(each).get("__slots__", ()) for each in reversed(hint.__mro__)]
    names = [name for each in slots for name in ([each] if isinstance(each, str) else each)]
    found = {**dict.fromkeys(names, Any), **_hints(hint)}
    return {n: t for n, t in found.items() if typing.get_origin(t) is not typing.ClassVar} or None


def _hints(hint: Any) -> dict[str, Any]:
    """The hints of a class; where one cannot be made out, all of them as they are written."""
    try:
        return typing.get_type_hints(hint)
    except Exception:
        return dict(getattr(hint, "__annotations__", {}))


def undeclared(hint: Any) -> Iterator[str]:
    """The classes of the program in a type that do not say what their values hold."""
    for each in _classes_in(hint):
        known = declared(each) is not None or issubclass(each, enum.Enum)
        if not known and not library(each.__module__):
            yield each.__name__


def with_operators(hint: Any) -> Iterator[type]:
    """The classes of the program in a type that say themselves how their values are compared or
    added, or are true; those of dataclasses that are made of their fields do not count.

    >>> list(with_operators(dict[str, int]))
    []
    """
    return (each for each in _classes_in(hint) if any(map(_writes_operators, each.__mro__)))


def _classes_in(hint: Any, within: tuple[Any, ...] = ()) -> Iterator[type]:
    """The classes that values of a type are of, or hold, as deep as they go."""
    for each in typing.get_args(hint):
        yield from _classes_in(each, within)
    if isinstance(hint, type) and hint not in within:
        yield hint
        for each in (declared(hint) or {}).values():
            yield from _classes_in(each, (*within, hint))


def _writes_operators(hint: type) -> bool:
    written = [vars(hint)[name] for name in _OPERATORS & vars(hint).keys()]
    return not library(hint.__module__) and any(
        type(each) is types.FunctionType and each.__code__.co_filename != "<string>"
        for each in written
    )
