"""When two functions surely mean the same, within one process.

An `essence` is a value to compare: where it is not certain that two things mean the same, it holds
the thing itself. For the same question between processes there is the `fingerprint`.
"""

from __future__ import annotations

import types
from typing import Any

from ebbflow.expression.bytecode import codes, enclosed, steps, used_globals
from ebbflow.expression.reached import code_shape
from ebbflow.expression.value import constant_key, is_simple

_WRITES_OUTSIDE = {"STORE_GLOBAL", "DELETE_GLOBAL"}
_WRITES_ENCLOSING = {"STORE_DEREF", "DELETE_DEREF"}


class Same:
    """A thing itself, equal to nothing else."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


class Alike:
    """A callable to compare: equal to itself, and to what says it is equal."""

    __slots__ = ("call",)

    def __init__(self, call: Any) -> None:
        self.call = call

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Alike) or type(self.call) is not type(other.call):
            return False
        try:
            return self.call is other.call or bool(self.call == other.call)
        except Exception:
            return False

    def __hash__(self) -> int:
        try:
            return hash(self.call)
        except Exception:
            return hash(type(self.call))


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
