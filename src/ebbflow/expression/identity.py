"""What makes a function itself, in this process and in any other.

A *fingerprint* is a digest that is the same in every process as long as a value means the same. Of
a function it takes the bytecode and the constants, the defaults, the values it encloses and the
module-level names it uses, the functions among them taken in the same way; never its file, its
lines or its own name. Bytecode differs between versions of Python, and then so does the
fingerprint; that of a traced function is the one of its expression, which does not.

Classes, modules, and the functions of Python's library and of this package are known by their
names. Other values are known by what they would be pickled as. What can be known in no other way
is known by the name of its type, and `known_by_name` tells which parts those are: a change inside
them goes unseen.

Within one process, `essence` is the same thing as a value to compare: where it is not certain that
two things mean the same, it holds the thing itself.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from ebbflow.expression.bytecode import codes, enclosed, steps, used_globals
from ebbflow.expression.value import constant_key, is_simple

_BY_NAME = sys.stdlib_module_names | {"ebbflow"}
_TYPING = (types.GenericAlias, types.UnionType)
_WRITES_OUTSIDE = {"STORE_GLOBAL", "DELETE_GLOBAL"}
_WRITES_ENCLOSING = {"STORE_DEREF", "DELETE_DEREF"}


def fingerprint(value: Any) -> str:
    """A digest of what a value is: of a function, a reducer, a row type, a constant.

    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    return _Digest().of(value).hex()


def known_by_name(value: Any) -> tuple[str, ...]:
    """The parts of a value that its fingerprint knows by name only.

    >>> known_by_name(lambda x: x + 1), known_by_name((x for x in "ab").send)
    ((), ('builtins.generator',))
    """
    digest = _Digest()
    digest.of(value)
    return tuple(dict.fromkeys(digest.opaque))


class _Digest:
    """One fingerprint being taken. A value inside itself is known by how far out it is."""

    def __init__(self) -> None:
        self.opaque: list[str] = []
        self.open: list[Any] = []
        self.done: dict[int, tuple[Any, bytes]] = {}

    def of(self, value: Any) -> bytes:
        if is_simple(value):
            return _hashed("constant", _constant_text(value))
        for out, each in enumerate(reversed(self.open)):
            if each is value:
                return _hashed("inside", str(out))
        known = self.done.get(id(value))
        if known is not None:
            return known[1]
        self.open.append(value)
        try:
            kind, *parts = self.split(value)
            found = _hashed(kind, *[p if isinstance(p, str) else self.of(p[0]) for p in parts])
        finally:
            self.open.pop()
        self.done[id(value)] = value, found
        return found

    def split(self, value: Any) -> Iterator[Any]:
        """A kind, then texts, and values in tuples of one."""
        own = getattr(type(value), "__identity__", None)
        if own is not None:
            return iter(("own", type(value).__name__, (own(value),)))
        exact = _EXACT.get(type(value))
        if exact is not None:
            return exact(self, value)
        for kind, parts in _KINDS:
            if isinstance(value, kind):
                return parts(self, value)
        return self.other(value)

    def function(self, f: Any) -> Iterator[Any]:
        if _is_named(f):
            yield from ("named", _name(f))
            return
        yield "function"
        yield from self.code(f.__code__)
        yield (f.__defaults__,)
        yield (f.__kwdefaults__ and dict(f.__kwdefaults__),)
        for name, held in enclosed(f):
            yield from (name, (held,))
        for name, used in used_globals(f):
            yield from (name, (used,))

    def code(self, code: types.CodeType) -> Iterator[Any]:
        yield from ("code", *code_shape(code)[0])
        for each in code_shape(code)[1]:
            yield (each,)

    def method(self, f: Any) -> Iterator[Any]:
        yield from ("method", (f.__func__,), (f.__self__,))

    def builtin(self, f: Any) -> Iterator[Any]:
        holder = getattr(f, "__self__", None)
        if holder is None or isinstance(holder, (types.ModuleType, type)):
            yield from ("named", _name(f))
        else:
            yield from ("method", _name(f), (holder,))

    def module(self, module: types.ModuleType) -> Iterator[Any]:
        yield from ("module", module.__name__)

    def type(self, kind: type) -> Iterator[Any]:
        yield from ("type", f"{kind.__module__}.{kind.__qualname__}")
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            hints = getattr(kind, "__annotations__", {})
            for field in kind._fields:
                yield from (field, (hints.get(field),))

    def member(self, member: enum.Enum) -> Iterator[Any]:
        yield from ("member", (type(member),), member.name)

    def partial(self, partial: functools.partial[Any]) -> Iterator[Any]:
        yield from ("partial", (partial.func,), (partial.args,), (partial.keywords,))

    def sequence(self, values: Any) -> Iterator[Any]:
        yield from ("sequence", (type(values),))
        for each in values:
            yield (each,)

    def unordered(self, values: Any) -> Iterator[Any]:
        yield from ("set", (type(values),))
        yield from sorted(self.of(each).hex() for each in values)

    def mapping(self, values: Mapping[Any, Any]) -> Iterator[Any]:
        yield from ("mapping", (type(values),))
        yield from sorted(self.of(k).hex() + self.of(v).hex() for k, v in values.items())

    def other(self, value: Any) -> Iterator[Any]:
        """By what it would be pickled as; if that fails, by what it holds, or by name."""
        if type(value).__module__ == "typing" or isinstance(value, _TYPING):
            yield from ("typing", repr(value))
            return
        recipe = _recipe(value)
        if recipe is not None:
            yield from ("recipe", (type(value),), (recipe,))
        elif type(value).__module__ != "builtins" and getattr(value, "__dict__", None):
            yield from ("object", (type(value),), (vars(value),))
        else:
            self.opaque.append(_name(type(value)))
            yield from ("name only", _name(type(value)))


_KINDS: list[tuple[Any, Callable[[_Digest, Any], Iterator[Any]]]] = [
    (types.FunctionType, _Digest.function),
    (types.CodeType, _Digest.code),
    (types.MethodType, _Digest.method),
    ((types.BuiltinFunctionType, types.MethodDescriptorType), _Digest.builtin),
    ((types.WrapperDescriptorType, types.MethodWrapperType), _Digest.builtin),
    (types.ModuleType, _Digest.module),
    (_TYPING, _Digest.other),
    (type, _Digest.type),
    (enum.Enum, _Digest.member),
    (functools.partial, _Digest.partial),
]
_EXACT: dict[type, Callable[[_Digest, Any], Iterator[Any]]] = {
    tuple: _Digest.sequence,
    list: _Digest.sequence,
    set: _Digest.unordered,
    frozenset: _Digest.unordered,
    dict: _Digest.mapping,
    types.MappingProxyType: _Digest.mapping,
}


def _recipe(value: Any) -> Any:
    try:
        recipe = value.__reduce_ex__(4)
    except Exception:
        return None
    if isinstance(recipe, str):
        return recipe
    return [list(part) if isinstance(part, Iterator) else part for part in recipe]


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


# ---- in one process ----


class Same:
    """A thing itself, equal to nothing else."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def essence(value: Any, within: tuple[Any, ...] = ()) -> Any:
    """What two values have in common when they surely mean the same.

    >>> essence(lambda x: x + 1) == essence(lambda x: x + 1)
    True
    >>> essence(lambda x: x + 1) == essence(lambda x: x + 1.0)
    False
    """
    if is_simple(value):
        return constant_key(value)
    if type(value) is tuple:
        return tuple, tuple([essence(each, within) for each in value])
    if isinstance(value, types.CodeType):
        shape, constants = code_shape(value)
        return shape, essence(constants, within)
    if type(value) is not types.FunctionType or any(each is value for each in within):
        return Same(value)
    if vars(value) or _writes(value):
        return Same(value)
    inner = (*within, value)
    return (
        types.FunctionType,
        essence(value.__code__),
        essence(value.__defaults__, inner),
        tuple([(k, essence(v, inner)) for k, v in sorted((value.__kwdefaults__ or {}).items())]),
        tuple([essence(held, inner) for _, held in enclosed(value)]),
        tuple([(k, constant_key(v) if is_simple(v) else Same(v)) for k, v in used_globals(value)]),
    )


def _writes(f: types.FunctionType) -> bool:
    """Whether a function changes names outside it: it is not the same as another like it."""
    outer = set(f.__code__.co_freevars)
    for code in codes(f.__code__):
        for step in steps(code):
            if step.opname in _WRITES_OUTSIDE:
                return True
            if step.opname in _WRITES_ENCLOSING and step.argval in outer:
                return True
    return False


# ---- names and bytes ----


def _is_named(f: Any) -> bool:
    """Whether a function of a library can be found by its name."""
    module = getattr(f, "__module__", None) or ""
    if module.split(".")[0] not in _BY_NAME or module == "__main__":
        return False
    try:
        found: Any = import_module(module)
        for part in f.__qualname__.split("."):
            found = getattr(found, part)
    except Exception:
        return False
    return found is f


def _name(thing: Any) -> str:
    module = getattr(thing, "__module__", None) or "builtins"
    return f"{module}.{getattr(thing, '__qualname__', None) or type(thing).__qualname__}"


def _constant_text(value: Any) -> str:
    if type(value) is frozenset:
        return f"frozenset({sorted(map(_constant_text, value))})"
    if type(value) is tuple:
        return f"({', '.join(map(_constant_text, value))})"
    return f"{type(value).__name__} {value!r}"


def _hashed(kind: str, *parts: str | bytes) -> bytes:
    digest = hashlib.sha256(kind.encode())
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        mark = b"t" if isinstance(part, str) else b"d"
        digest.update(mark + str(len(data)).encode() + b":" + data)
    return digest.digest()
