"""Callables that a program hands in: how many rows they take, and how they are kept."""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from ebbflow.expression.bytecode import used_globals


def arity_of(call: Any) -> int:
    """How many rows a plain function must be given; 0 where that is not known."""
    code = getattr(call, "__code__", None)
    if type(call) is FunctionType and code is not None:
        return int(code.co_argcount) - len(call.__defaults__ or ())
    return 0


def takes(f: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments; True when it does not tell.

    >>> takes(lambda a, b: a, 2), takes(lambda a, b: a, 1), takes(lambda a, b=0: a, 1)
    (True, False, True)
    """
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def accepts(call: Any, arity: int) -> bool:
    """Whether a callable can be given so many rows; of a plain function its own code is asked, not
    the signature of what it wraps.

    >>> accepts(lambda a, *more: a, 3), accepts(lambda a, *, key: a, 1), accepts(dict, 1)
    (True, False, True)
    """
    if type(call) is not FunctionType:
        return takes(call, arity)
    code, defaults = call.__code__, len(call.__defaults__ or ())
    many = bool(code.co_flags & inspect.CO_VARARGS)
    missing = code.co_kwonlyargcount > len(call.__kwdefaults__ or ())
    fits = code.co_argcount - defaults <= arity and (many or arity <= code.co_argcount)
    return fits and not missing


def parameters(call: Any, arity: int) -> tuple[str, ...]:
    """What the arguments are called in text."""
    if type(call) is FunctionType:
        return call.__code__.co_varnames[:arity]
    return {1: ("row",), 2: ("l", "r")}.get(arity, tuple(f"row{i}" for i in range(arity)))


def frozen(call: Any) -> Any:
    """A traced function that keeps the values its outside names have now."""
    if type(call) is not FunctionType:
        return call
    scope = call.__globals__
    outside = {name: value for name, value in used_globals(call) if name in scope}
    cells = call.__closure__
    if not outside and not cells:
        return call
    if outside:
        outside["__builtins__"] = scope.get("__builtins__", builtins)
        outside["__name__"] = call.__module__
    held = cells and tuple([CellType(cell.cell_contents) for cell in cells])
    kept = FunctionType(call.__code__, outside or scope, call.__name__, call.__defaults__, held)
    kept.__kwdefaults__, kept.__qualname__ = call.__kwdefaults__, call.__qualname__
    return kept


def importable(call: Any) -> bool:
    """Whether pickle would find this very function by its name."""
    found: Any = sys.modules.get(getattr(call, "__module__", None) or "")
    for part in getattr(call, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is call
