"""Watching a function run on symbols: nothing that it does may escape them.

A symbol sees what is done with it, and not what is done behind its back: `type(x)`, `x is y`, a
clock, a random number, a list that remembers. So all Python code that runs is looked through for
such things, and every call into C must be one of those known to be harmless. What is suspicious is
noted in the run, which then proves nothing.
"""

from __future__ import annotations

import dis
import inspect
import os
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_OWN = (
    os.path.join(_PACKAGE, "laws", "symbolic.py"),
    os.path.join(_PACKAGE, "laws", "shapes.py"),
    os.path.join(_PACKAGE, "laws", "watch.py"),
)
_CALLS = {
    "builtins": {"abs", "all", "any", "divmod", "isinstance", "len", "max", "min", "pow", "sorted",
                 "sum", "__new__"},
    "_operator": {"add", "sub", "mul", "neg", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt",
                  "ge", "eq", "ne", "abs", "pos", "and_", "or_", "xor"},
}  # fmt: skip
_NAMES = {"type", "id", "globals", "locals", "vars", "eval", "exec", "open", "input"}
_STRANGE = {"id", "is_", "is_not", "input", "open", "next", "print", "vars", "globals", "locals"}
_STORES = {"STORE_GLOBAL", "STORE_ATTR", "STORE_SUBSCR", "STORE_DEREF", "DELETE_SUBSCR",
           "DELETE_ATTR", "IMPORT_NAME", "MATCH_CLASS"}  # fmt: skip


def watcher(run: Any, symbol: type, solver: str) -> Callable[[FrameType, str, Any], None]:
    """Look through all code that runs; a call into C must be one of those known to be harmless.

    What symbols and z3 do themselves is not looked at: `quiet` counts how deep inside it we are.
    """
    seen: set[CodeType] = set()
    quiet = 0

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal quiet
        code = frame.f_code
        if event == "call" and (quiet or code.co_filename.startswith((*_OWN, solver))):
            quiet += 1
        elif event == "return" and quiet:
            quiet -= 1
        elif quiet or code.co_filename.startswith(_OWN) or _from_library(code):
            return
        elif event == "c_call":
            ours = code.co_filename.startswith(_PACKAGE)
            if not (_harmless(argument, symbol) or (ours and _ordinary(argument))):
                run.failed = run.failed or f"it calls {argument.__qualname__}"
        elif event == "call" and code not in seen and not code.co_filename.startswith(_PACKAGE):
            seen.add(code)
            run.failed = run.failed or _hidden(code)

    return watch


def _from_library(code: CodeType) -> bool:
    """The methods that NamedTuple makes, and isinstance for abstract classes."""
    if code.co_filename == "<string>":
        return code.co_varnames[:1] == ("_cls",)
    made = code.co_filename.startswith("<frozen ")
    return made or code.co_filename.endswith(os.path.join("collections", "__init__.py"))


def _harmless(f: Any, symbol: type) -> bool:
    owner = getattr(f, "__self__", None)
    if isinstance(owner, (symbol, tuple)) or (isinstance(owner, type) and issubclass(owner, tuple)):
        return True
    return f.__name__ in _CALLS.get(getattr(f, "__module__", None) or "", ())


def _ordinary(f: Any) -> bool:
    """What ebbflow's own reducers may call besides; a function of the user's may be among it."""
    owner = getattr(f, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        module = getattr(f, "__module__", None)
        return module in ("builtins", "math", "_operator") and f.__name__ not in _STRANGE
    kind = owner if isinstance(owner, type) else type(owner)
    return kind.__module__ == "builtins"


def _hidden(code: CodeType) -> str:
    """What in some code could leave no trace, in words; empty where there is nothing."""
    if code.co_exceptiontable or code.co_flags & inspect.CO_GENERATOR:
        return "it has a try, a with or a generator"
    before: Any = None
    for step in dis.get_instructions(code):
        if step.opname == "IS_OP" and not (before.opname == "LOAD_CONST" and before.argval is None):
            return "it compares with `is`"
        if step.opname in _STORES:
            return f"it stores or imports something ({step.opname})"
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in _NAMES:
            return f"it calls {step.argval}"
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and str(step.argval) == "__class__":
            return "it looks at a class"
        before = step
    return ""
