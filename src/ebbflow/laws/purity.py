"""Watching a function run on symbols: nothing that it does may escape them.

A symbol sees what is done with it, and not what is done behind its back: `type(x)`, `x is y`, a
clock, a random number, a list that remembers. So all Python code that runs is looked through for
such things; every object that it reaches by a name, an argument, a default or a closure must be one
of those known to keep nothing; and every call into C must be one of those known to be harmless.
What is suspicious is noted in the run, which then proves nothing.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import numbers
import operator
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any

from ebbflow.expression.bytecode import steps
from ebbflow.fn import Field
from ebbflow.reducer import RECOMPUTE, Reducer

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_OWN = (
    os.path.join(_PACKAGE, "laws", "symbolic.py"),
    os.path.join(_PACKAGE, "laws", "shapes.py"),
    os.path.join(_PACKAGE, "laws", "purity.py"),
)
MARKED: set[type] = set()
"""The types of unknowns, which see for themselves what is done with them."""

_CALLS = {
    "builtins": {"abs", "all", "any", "divmod", "isinstance", "len", "max", "min", "pow", "sorted",
                 "sum", "__new__"},
    "_operator": {"add", "sub", "mul", "neg", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt",
                  "ge", "eq", "ne", "abs", "pos", "and_", "or_", "xor"},
}  # fmt: skip
_STRANGE = {"id", "is_", "is_not", "input", "open", "next", "print", "vars", "globals", "locals"}
_STORES = {"STORE_GLOBAL", "STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "STORE_DEREF", "STORE_NAME",
           "DELETE_SUBSCR", "DELETE_ATTR", "DELETE_GLOBAL", "DELETE_DEREF", "DELETE_NAME",
           "IMPORT_NAME", "LOAD_BUILD_CLASS"}  # fmt: skip
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_CONSTANTS = (bool, int, float, complex, str, bytes, NoneType, Fraction, range)
_CLASSES = (bool, int, float, str, bytes, tuple, list, dict, set, frozenset, range, enumerate, zip,
            map, filter, reversed, NoneType, numbers.Number, numbers.Complex, numbers.Real,
            numbers.Rational, numbers.Integral)  # fmt: skip
_RECORD = {"__module__", "__doc__", "__slots__", "__annotations__", "__new__", "__repr__",
           "__getnewargs__", "__match_args__", "__orig_bases__", "__replace__", "__qualname__",
           "__firstlineno__", "__static_attributes__", "__annotate__", "__annotate_func__",
           "__annotations_cache__", "__slotnames__", "_field_defaults", "_fields"}  # fmt: skip


def watcher(run: Any, solver: str) -> Callable[[FrameType, str, Any], None]:
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
        elif quiet or code.co_filename.startswith(_OWN) or _from_library(frame):
            return
        elif event == "c_call":
            ours = code.co_filename.startswith(_PACKAGE)
            if not (_harmless(argument) or (ours and _ordinary(argument))):
                run.failed = run.failed or _called(argument)
        elif event == "call" and not code.co_filename.startswith(_PACKAGE):
            run.failed = run.failed or _reached(frame)
            if code not in seen:
                seen.add(code)
                run.failed = run.failed or _hidden(code)

    return watch


def _from_library(frame: FrameType) -> bool:
    """The methods that NamedTuple makes, and isinstance for abstract classes."""
    code = frame.f_code
    if code.co_filename == "<string>":
        named = str(frame.f_globals.get("__name__")).startswith("namedtuple_")
        return named and code.co_varnames[:1] == ("_cls",)
    if code.co_filename == "<frozen abc>":
        return True
    if code.co_filename == "<frozen _collections_abc>":
        return code.co_name in ("__subclasshook__", "_check_methods")
    ours = code.co_filename.endswith(os.path.join("collections", "__init__.py"))
    return ours and code.co_name in ("_make", "_replace", "_asdict", "__repr__", "__getnewargs__")


def _harmless(f: Any) -> bool:
    owner: Any = getattr(f, "__self__", None)
    if type(owner) in MARKED or issubclass(type(owner), tuple):
        return True
    if issubclass(type(owner), type) and issubclass(owner, tuple):
        return True
    return f.__name__ in _CALLS.get(getattr(f, "__module__", None) or "", ())


def _ordinary(f: Any) -> bool:
    """What ebbflow's own reducers may call besides; a function of the user's may be among it."""
    owner = getattr(f, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        module = getattr(f, "__module__", None)
        return module in ("builtins", "math", "_operator") and f.__name__ not in _STRANGE
    cls = owner if isinstance(owner, type) else type(owner)
    return cls.__module__ == "builtins"


def _called(f: Any) -> str:
    name = getattr(f, "__qualname__", None) or type(f).__qualname__
    return f"it calls {name}, which may convert, look at or remember what it is given"


# ---- code ----


def _hidden(code: CodeType) -> str:
    """What in some code could leave no trace, in words; empty where there is nothing."""
    if code.co_exceptiontable or code.co_flags & _GENERATORS:
        return "it has a try, a with or a generator"
    before: Any = None
    for step in steps(code):
        if step.opname == "IS_OP" and not (before.opname == "LOAD_CONST" and before.argval is None):
            return "it compares with `is`"
        if step.opname in _STORES:
            return f"it stores or imports something ({step.opname})"
        if step.opname.startswith("MATCH_"):
            return "it matches patterns"
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            name = str(step.argval)
            if name == "__class__":
                return "it looks at a class"
            if name.startswith("__") or name in ("_field_defaults", "keywords"):
                return f"it looks at .{name}"
        before = step
    return ""


def _reached(frame: FrameType) -> str:
    """What a call reaches by its arguments and names, where something may be wrong with it."""
    code, here = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    several = bool(code.co_flags & inspect.CO_VARARGS)
    names = list(code.co_varnames[: count + several])
    if code.co_flags & inspect.CO_VARKEYWORDS:
        names.append(code.co_varnames[count + several])
    for name in names:
        value = here.get(name)
        if name == ".0":  # what a comprehension goes through: its function was asked about it
            continue
        for part in value.values() if type(value) is dict and name == names[-1] else (value,):
            if why := _unusable(part):
                return why
    return _named(code, (frame.f_globals, frame.f_builtins), here)


def _named(
    code: CodeType, known: tuple[Any, Any], cells: dict[str, Any], seen: set[int] | None = None
) -> str:
    """Why one of the objects that some code refers to by name may break a proof, in words."""
    found: Any = None
    for step in steps(code):
        if type(found) not in MARKED and isinstance(found, ModuleType):
            if step.opname not in ("LOAD_ATTR", "LOAD_METHOD") or type(found) is not ModuleType:
                return f"it passes the module {found.__name__} around"
            if step.argval not in vars(found):
                return f"it asks a module for .{step.argval}"
            found = vars(found)[step.argval]
        elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            found = known[0].get(step.argval, known[1].get(step.argval))
        elif "DEREF" in step.opname:
            found = cells.get(step.argval)
        else:
            found = None
        if not issubclass(type(found), ModuleType) and (why := _unusable(found, seen)):
            return why
    return ""


def _unusable(value: Any, seen: set[int] | None = None) -> str:
    """Why an object must not be used by a function of the user's, in words; empty if it may."""
    cls = value if issubclass(type(value), type) else type(value)
    ours = str(cls.__module__).startswith("ebbflow.") and cls not in MARKED
    if ours and value is not RECOMPUTE:
        return f"it uses a {cls.__name__}, which may keep what earlier calls did"
    return strange(value, seen)


# ---- objects ----


def strange(value: Any, seen: set[int] | None = None) -> str:
    """Why an object that a function uses may break a proof, in words; empty if it cannot.

    >>> strange(max), strange((1, "a"))
    ('', '')
    >>> strange([])
    'it uses a list, which may keep what earlier calls did'
    """
    cls, seen = type(value), set() if seen is None else seen
    if cls in MARKED or cls in _CONSTANTS or value is RECOMPUTE or id(value) in seen:
        return ""
    seen.add(id(value))
    if cls in (tuple, frozenset) or (issubclass(cls, tuple) and not no_record(cls)):
        return _first(value, seen)
    if issubclass(cls, type):
        return "" if _harmless_class(value) else _called(value)
    if cls is BuiltinFunctionType:
        return "" if _harmless(value) else _called(value)
    if cls is FunctionType:
        if not value.__code__.co_filename.startswith(_PACKAGE):
            return _function(value, seen)
        inside = [cell for cell in map(_content, value.__closure__ or ()) if callable(cell)]
        return _first([*inside, *filter(callable, value.__defaults__ or ())], seen)
    if cls is MethodType:
        return _first([value.__func__, value.__self__], seen)
    if cls is functools.partial:
        return _first([value.func, *value.args, *value.keywords.values()], seen)
    if cls is Reducer:
        return _first([value.init, value.add, value.remove, value.merge], seen)
    if cls is Field or cls.__module__.startswith("ebbflow.reducer."):
        return _first(_inside(value), seen)
    return f"it uses a {cls.__name__}, which may keep what earlier calls did"


def _first(values: Any, seen: set[int]) -> str:
    return next((why for value in values if (why := strange(value, seen))), "")


def _function(f: Any, seen: set[int]) -> str:
    """Why a function of the user's may break a proof: its defaults, closure, names and code."""
    cells = dict(zip(f.__code__.co_freevars, map(_content, f.__closure__ or ()), strict=True))
    kept = [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
    known = (f.__globals__, vars(builtins))
    if vars(f):
        return f"it uses {f.__name__}, a function with attributes, which may keep things"
    return _first(kept, seen) or _named(f.__code__, known, cells, seen) or _hidden(f.__code__)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _inside(value: Any) -> Iterator[Any]:
    """The functions and reducers that one of ebbflow's own objects holds."""
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
    for name in [*slots, *getattr(value, "__dict__", ())]:
        part: Any = getattr(value, name, None)
        if type(part) in (operator.attrgetter, operator.itemgetter):
            continue
        if type(part) in (tuple, list):
            yield from (each for each in part if callable(each) or type(each) is Reducer)
        elif callable(part) or type(part) is Reducer:
            yield part


def _harmless_class(cls: type) -> bool:
    if any(cls is each for each in _CLASSES) or cls.__module__.startswith("ebbflow.reducer."):
        return True
    return cls is not tuple and issubclass(cls, tuple) and not no_record(cls)


def no_record(cls: type) -> str:
    """Why a class is not a NamedTuple like any other, whose == and parts are those of a tuple."""
    own = vars(cls)
    plain = cls.__mro__ == (cls, tuple, object) and "_make" in own and "_fields" in own
    made = getattr(own.get("__new__"), "__func__", None) if plain else None
    if getattr(getattr(made, "__code__", None), "co_filename", "") != "<string>":
        return f"a {cls.__name__} is no tuple or NamedTuple"
    for name, value in own.items():
        if name in _RECORD:
            continue
        if name.startswith("__"):
            return f"the NamedTuple {cls.__name__} has a {name} of its own"
        if type(value) in (property, classmethod, staticmethod, FunctionType):
            continue
        if type(value).__name__ != "_tuplegetter" and type(value) not in _CONSTANTS:
            return f"the NamedTuple {cls.__name__} keeps a {type(value).__name__}"
    return ""
