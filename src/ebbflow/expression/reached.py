"""What a value is made of, as far as it can be looked into without running code of the program.

`parts_of(value)` gives a *form*, then texts, and values in tuples of one: of a function its code,
its constants, defaults, attributes, the values it encloses and the outside names it uses, through
modules too (`helpers.rates.VAT`); of a class its bases and everything in it; of an object its class
and its attributes. Files, lines, and the names of functions are no part of anything.

What nothing can be said of is `Opaque`, with the reason.
"""

from __future__ import annotations

import abc
import contextvars
import enum
import functools
import re
import struct
import sys
import threading
import types
import typing
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from ebbflow.expression.bytecode import content_of
from ebbflow.expression.library import home_of, library, named
from ebbflow.expression.outside import Unseen, outside

Parts = Iterator[Any]

_PICKLING = (
    "__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs__", "__getnewargs_ex__",
    "__getattribute__", "__getattr__", "__iter__", "items",
)  # fmt: skip
_NO_CONTENT = {
    "__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__firstlineno__",
    "__static_attributes__", "__annotations_cache__", "_abc_impl", "__slotnames__",
    "_member_map_", "_value2member_map_", "_unhashable_values_", "_unhashable_values_map_",
    "_hashable_values_",
}  # fmt: skip
_WORDS = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class Opaque(Exception):
    """A value that cannot be looked into, and why."""


def parts_of(value: Any) -> Parts:
    """A form, then texts, and values in tuples of one."""
    cls = type(value)
    own = getattr(cls, "__identity__", None)
    said = NotImplemented if own is None else own(value)
    if said is not NotImplemented:
        return iter(("own", (cls,), (said,)))
    exact = _EXACT.get(cls)
    if exact is not None:
        return exact(value)
    for each, parts in _FORMS:
        if issubclass(cls, each):
            return parts(value)
    return _object(value)


# ---- functions ----


def code_shape(code: types.CodeType) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """What code does, as texts, and its constants."""
    shape = (
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags & 0x2AF,
        code.co_names,
        code.co_varnames[: code.co_argcount + code.co_kwonlyargcount],
        code.co_freevars,
        code.co_cellvars,
    )
    table = getattr(code, "co_exceptiontable", b"")
    return (repr(shape), code.co_code.hex(), table.hex()), code.co_consts


def _code(code: types.CodeType) -> Parts:
    yield from ("code", *code_shape(code)[0])
    for each in code_shape(code)[1]:
        yield (each,)


def _function(f: Any) -> Parts:
    known = named(f)
    if known is not None:
        yield from ("named", known)
        return
    if f.__code__ is _DISPATCH:
        yield from ("dispatch", (dict(vars(f)["registry"]),))
        return
    yield "function"
    yield (f.__code__,)
    yield (f.__defaults__,)
    yield from _sorted(f.__kwdefaults__ or {})
    yield from _sorted(vars(f))
    for name, value in outside(f):
        yield from (name, (value,))


def _unseen(value: Unseen) -> Parts:
    raise Opaque(value.why)


def _builtin(f: Any) -> Parts:
    """A function that is no Python code: by its name, and the object it is a method of."""
    holder = getattr(f, "__self__", None)
    if not (holder is None or isinstance(holder, types.ModuleType)):
        yield from ("method", f.__name__, (holder,))
        return
    whose = library(home_of(f))
    if whose is None:
        raise Opaque(f"{home_of(f)}.{f.__name__} is not Python code")
    yield from ("named", f"{whose} {home_of(f)}.{f.__qualname__}")


def _module(module: types.ModuleType) -> Parts:
    """A module as a value: any name in it may be asked for."""
    whose = library(module.__name__)
    if whose is not None:
        yield from ("named", f"{whose} {module.__name__}")
        return
    yield from ("module", module.__name__)
    for name, value in sorted(vars(module).items()):
        if not (name.startswith("__") and name.endswith("__")):
            yield from (name, (value,))


# ---- classes ----


def _class(cls: Any) -> Parts:
    known = named(cls)
    if known is None and not _is_python(cls):
        known = f"{library(cls.__module__)} {cls.__module__}.{cls.__qualname__}"
    if known is not None:
        yield from ("named", known)
        return
    inside = {name: each for name, each in vars(cls).items() if name not in _NO_CONTENT}
    yield from ("class", cls.__name__, (type(cls),), (cls.__bases__,))
    if isinstance(cls, enum.EnumMeta):
        members = vars(cls)["_member_map_"]
        inside = {k: v for k, v in inside.items() if k not in members}
        for name, member in members.items():
            own = {k: v for k, v in vars(member).items() if k not in ("__objclass__", "_name_")}
            yield from (name, member.name, *_sorted(own))
    yield from _sorted(inside)
    if isinstance(cls, abc.ABCMeta):
        registered = {ref() for ref in abc._get_dump(cls)[0]}  # type: ignore[attr-defined]
        yield (registered - {None},)
    hints = inside.get("__annotations__")
    for hint in hints.values() if type(hints) is dict else ():
        if type(hint) is str:
            scope = vars(sys.modules.get(cls.__module__, types))
            yield from ((scope[word],) for word in _WORDS.findall(hint) if word in scope)


def _typing(cls: Any) -> Parts:
    """A type such as `int | None` or `list[int]`: its origin and its arguments."""
    origin, given = typing.get_origin(cls), typing.get_args(cls)
    if origin in (typing.Union, types.UnionType):
        yield from ("unordered", "union", *((each,) for each in given))
    elif origin is not None:
        yield from ("typing", (origin,), (given,))
    elif isinstance(cls, typing.NewType):
        yield from ("new type", cls.__name__, (cls.__supertype__,))
    else:
        yield from ("typing", repr(cls))


def _member(member: enum.Enum) -> Parts:
    if isinstance(member, enum.Flag):
        yield from ("flags", (type(member),), (member._value_,))
    else:
        yield from ("member", (type(member),), member._name_)


# ---- values ----


def _partial(value: functools.partial[Any]) -> Parts:
    yield from ("partial", (type(value),), (value.func,), (value.args,), (value.keywords,))
    yield from _sorted(vars(value))


def _sequence(values: Any, form: str = "sequence") -> Parts:
    yield from (form, (type(values),))
    for each in values:
        yield (each,)


def _unordered(values: Any) -> Parts:
    return _sequence(values, "unordered")


def _mapping(values: Any) -> Parts:
    """A mapping in its order, which can be seen."""
    yield from ("mapping", (type(values),))
    for key, value in values.items():
        yield from ((key,), (value,))


def _memory(view: memoryview) -> Parts:
    try:
        yield from ("memoryview", view.format, repr(view.shape), (view.tobytes(),))
    except ValueError as error:
        raise Opaque("a memoryview that was released") from error


def _context(var: contextvars.ContextVar[Any]) -> Parts:
    """The default of a context variable, and its current value."""
    yield from ("context", var.name)
    gets: list[Callable[[], Any]] = [lambda: contextvars.Context().run(var.get), var.get]
    for get in gets:
        try:
            yield (get(),)
        except LookupError:
            yield "none"


def _object(value: Any) -> Parts:
    """An object by its pickle, unless code of the program decides how it is pickled; then by its
    attributes."""
    cls = type(value)
    if cls.__module__ == "typing":
        yield from _typing(value)
        return
    recipe = None if _says_how(cls) else _recipe(value)
    if recipe is not None:
        yield from ("recipe", (cls,), (recipe,))
        return
    content = _CONTENT.get(_built_in(cls))
    if content is None or library(cls.__module__) is not None:
        raise Opaque(f"a {cls.__module__}.{cls.__qualname__}".replace("builtins.", ""))
    yield from ("object", (cls,), (content(value),), *_sorted(state_of(value)))


def _built_in(cls: Any) -> type:
    """The nearest class before it that is not written in Python."""
    while _is_python(cls):
        cls = cls.__base__
    return cls  # type: ignore[no-any-return]


def _is_python(cls: type) -> bool:
    """Whether a class is written in Python: made while running, and open to changes."""
    return bool(cls.__flags__ & 1 << 9) and not cls.__flags__ & 1 << 8


def _says_how(cls: type) -> bool:
    """Whether code of the program decides how an object is pickled or which attributes it shows."""
    own = [each for each in cls.__mro__ if library(each.__module__) is None]
    return any(name in vars(each) for each in own for name in _PICKLING)


def _recipe(value: Any) -> Any:
    try:
        recipe = value.__reduce_ex__(4)
    except Exception:
        return None
    if isinstance(recipe, str):
        return recipe
    make, given, *rest = recipe
    state, *items = [*rest, None, None, None][:3]
    if isinstance(state, dict):
        state = dict(_by_name(_lasting(type(value), state))) or None
    return [make, given, state, *(None if part is None else list(part) for part in items)]


def held_by(value: Any) -> dict[str, Any]:
    """The attributes that an object would be pickled with, by name.

    >>> held_by(types.SimpleNamespace(b=1, a=2))
    {'a': 2, 'b': 1}
    """
    state = None if _says_how(type(value)) else value.__getstate__()
    if state is None:
        return dict(_by_name(state_of(value)))
    found: dict[str, Any] = {}
    for part in state if isinstance(state, tuple) else (state,):
        found.update(part or {})
    return dict(_by_name(found))


def state_of(value: Any) -> dict[str, Any]:
    """The attributes of an object, in its `__dict__` and its slots, without asking the object.

    >>> state_of(functools.partial(len)), state_of(3)
    ({}, {})
    """
    cls = type(value)
    found: dict[str, Any] = {}
    for each in cls.__mro__:
        for name, slot in vars(each).items():
            if type(slot) is types.MemberDescriptorType and library(each.__module__) is None:
                try:
                    found[name] = slot.__get__(value)
                except AttributeError:
                    continue
    try:
        inside = object.__getattribute__(value, "__dict__")
    except AttributeError:
        inside = {}
    return {**found, **_lasting(cls, inside)} if type(inside) is dict else found


def _lasting(cls: type, inside: dict[str, Any]) -> dict[str, Any]:
    """Attributes without those that are computed when they are first asked for."""
    computed = {
        name
        for each in cls.__mro__
        for name, held in vars(each).items()
        if isinstance(held, functools.cached_property)
    }
    return {name: held for name, held in inside.items() if name not in computed}


def _by_name(inside: Any) -> Iterator[tuple[str, Any]]:
    return iter(sorted(inside.items(), key=lambda item: str(item[0])))


def _sorted(inside: Any) -> Parts:
    for name, value in _by_name(inside):
        yield from (str(name), (value,))


_DISPATCH = functools.singledispatch(len).__code__  # type: ignore[attr-defined]
_CONTENT: dict[type, Callable[[Any], Any]] = {
    object: lambda value: None,
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
    bytes: bytes.__bytes__,
}
"""What the built-in part of an object is, whatever its class makes of it."""

_FORMS: list[tuple[Any, Callable[[Any], Parts]]] = [
    (types.FunctionType, _function),
    (types.ModuleType, _module),
    (type, _class),
    (enum.Enum, _member),
    (functools.partial, _partial),
    (property, lambda each: iter(("property", (each.fget,), (each.fset,), (each.fdel,)))),
]
_EXACT: dict[type, Callable[[Any], Parts]] = {
    tuple: _sequence,
    list: _sequence,
    set: _unordered,
    frozenset: _unordered,
    dict: _mapping,
    types.MappingProxyType: _mapping,
    types.FunctionType: _function,
    types.CodeType: _code,
    types.MethodType: lambda f: iter(("method", (f.__func__,), (f.__self__,))),
    types.BuiltinFunctionType: _builtin,
    types.MethodDescriptorType: _builtin,
    types.WrapperDescriptorType: _builtin,
    types.MethodWrapperType: _builtin,
    types.ClassMethodDescriptorType: _builtin,
    types.GetSetDescriptorType: lambda each: iter(("slot", each.__name__)),
    types.MemberDescriptorType: lambda each: iter(("slot", each.__name__)),
    types.CellType: lambda cell: iter(("cell", (content_of(cell),))),
    types.GenericAlias: _typing,
    types.UnionType: _typing,
    staticmethod: lambda each: iter(("staticmethod", (each.__func__,), *_sorted(vars(each)))),
    classmethod: lambda each: iter(("classmethod", (each.__func__,), *_sorted(vars(each)))),
    functools.cached_property: lambda each: iter(("computed", (each.func,))),
    functools.partialmethod: lambda each: iter(("object", *_sorted(vars(each)))),
    type(functools.cache(len)): lambda each: iter(("cached", *_sorted(vars(each)))),
    re.Pattern: lambda each: iter(("pattern", (each.pattern,), str(each.flags))),
    struct.Struct: lambda each: iter(("struct", each.format)),
    memoryview: _memory,
    contextvars.ContextVar: _context,
    weakref.ref: lambda ref: iter(("weak", (ref(),))),
    Unseen: _unseen,
    type(threading.Lock()): lambda each: iter(("lock",)),
    type(threading.RLock()): lambda each: iter(("lock",)),
}
