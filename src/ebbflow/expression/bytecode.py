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

_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_DEREF = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
"""The instructions that ask a value for an attribute."""
_LOCAL = ("LOAD_FAST", "LOAD_FAST_BORROW")
_BETWEEN = ("CACHE", "EXTENDED_ARG", "NOP")


class Instruction(NamedTuple):
    """One instruction: its offset, name and argument, and the value the argument stands for."""

    offset: int
    opname: str
    arg: Any
    argval: Any
    argrepr: str


class Missing:
    """Stands for a name that has no value."""


@lru_cache(maxsize=1024)
def steps(code: CodeType) -> tuple[Instruction, ...]:
    """The instructions of a piece of code.

    >>> [step.argval for step in steps((lambda: price).__code__) if step.opname == "LOAD_GLOBAL"]
    ['price']
    """
    return tuple([_step(each, code) for each in dis.get_instructions(code)])


def _step(each: dis.Instruction, code: CodeType) -> Instruction:
    value = each.argval
    if each.opname == "KW_NAMES" and each.arg is not None:
        value = code.co_consts[each.arg]
    return Instruction(each.offset, each.opname, each.arg, value, each.argrepr)


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of the functions inside it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes(each)


def enclosed(f: FunctionType) -> Iterator[tuple[str, Any]]:
    """The names a function encloses, with their values."""
    return zip(f.__code__.co_freevars, map(content_of, f.__closure__ or ()), strict=True)


def content_of(cell: Any) -> Any:
    """The value in a cell of a closure; `Missing` where there is none yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return Missing


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


def used_names(f: FunctionType) -> list[tuple[str, ...]]:
    """The outside names a function uses, enclosed ones too, each with the attributes asked of it.

    >>> import math
    >>> used_names(lambda x: math.floor(x) + len(str(x).upper()))
    [('len',), ('math', 'floor'), ('str',)]
    """
    inside = set(f.__code__.co_freevars)
    found: set[tuple[str, ...]] = set()
    for code in codes(f.__code__):
        chain: tuple[str, ...] = ()
        for step in steps(code):
            if step.opname in ATTRIBUTE and chain:
                chain = (*chain, step.argval)
            elif step.opname not in _BETWEEN:
                found.add(chain)
                enters = step.opname in _GLOBAL or (step.opname in _DEREF and step.argval in inside)
                chain = (step.argval,) if enters else ()
        found.add(chain)
    return sorted(found - {()})


def attributes_read(f: Any) -> frozenset[str] | None:
    """The attributes that a function of one argument asks it for, where it does nothing else with
    it; None where it may do something else, or that is not known.

    >>> sorted(attributes_read(lambda row: row.price > 3 and len(row.city) > 1))
    ['city', 'price']
    >>> print(attributes_read(lambda row: max(row)))
    None
    """
    code = getattr(f, "__code__", None)
    if not isinstance(f, FunctionType) or code is None or code.co_argcount < 1:
        return None
    name = code.co_varnames[0]
    if name in code.co_cellvars or any(isinstance(each, CodeType) for each in code.co_consts):
        return None
    found: set[str] = set()
    seen = [step for step in steps(code) if step.opname not in _BETWEEN]
    for at, step in enumerate(seen):
        local = "_FAST" in step.opname and step.argval is not None
        if local and (step.argval == name or (type(step.argval) is tuple and name in step.argval)):
            after = seen[at + 1]
            if step.opname not in _LOCAL or after.opname != "LOAD_ATTR":
                return None
            found.add(after.argval)
        elif step.opname in _GLOBAL and step.argval in ("locals", "eval", "exec", "vars"):
            return None
    return frozenset(found)


def used_imports(f: FunctionType) -> list[tuple[str, int, tuple[str, ...]]]:
    """The imports inside a function: a module, how many packages up, and the names taken from it.

    >>> def f():
    ...     from os.path import join
    >>> used_imports(f)
    [('os.path', 0, ('join',))]
    """
    found = []
    for code in codes(f.__code__):
        seen = steps(code)
        for i, step in enumerate(seen):
            if step.opname == "IMPORT_NAME":
                level, names = seen[i - 2].argval, seen[i - 1].argval
                found.append((step.argval, level if type(level) is int else 0, tuple(names or ())))
    return found
