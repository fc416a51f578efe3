"""The instructions of a function, as data.

The names of instructions and what they are shown with differ from one version of Python to the
next; what is read of them here is the same in all.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, NamedTuple

_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")


class Step(NamedTuple):
    """One instruction: where it is, its name, its number, and what that stands for."""

    offset: int
    opname: str
    arg: Any
    argval: Any
    argrepr: str


class Missing:
    """Stands for a name that has no value."""


@lru_cache(maxsize=1024)
def steps(code: CodeType) -> tuple[Step, ...]:
    """The instructions of a piece of code.

    >>> [step.argval for step in steps((lambda: price).__code__) if step.opname == "LOAD_GLOBAL"]
    ['price']
    """
    return tuple([_step(each, code) for each in dis.get_instructions(code)])


def _step(each: dis.Instruction, code: CodeType) -> Step:
    value = each.argval
    if each.opname == "KW_NAMES" and each.arg is not None:
        value = code.co_consts[each.arg]
    return Step(each.offset, each.opname, each.arg, value, each.argrepr)


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of the functions inside it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes(each)


def enclosed(f: FunctionType) -> Iterator[tuple[str, Any]]:
    """The names a function encloses, with their values."""
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            yield name, Missing


def used_globals(f: FunctionType) -> list[tuple[str, Any]]:
    """The module-level names a function uses, with their values, in order of their names.

    >>> used_globals(lambda rows: len(rows))
    [('len', <built-in function len>)]
    """
    names = {
        step.argval for code in codes(f.__code__) for step in steps(code) if step.opname in _GLOBAL
    }
    outside = f.__globals__
    return [
        (name, outside[name] if name in outside else getattr(builtins, name, Missing))
        for name in sorted(names)
    ]
