"""What a function uses from outside: names it encloses, names of its module, and what it asks of
modules by these names, however far down: `helpers.rates.VAT`. Nothing is imported or run for it.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

from ebbflow.expression.bytecode import Missing, enclosed, used_globals, used_imports, used_names
from ebbflow.expression.library import library

_UNSEEN = {"eval", "exec", "globals", "__import__"}


class Unseen:
    """Stands for something that a function does and that cannot be followed."""

    def __init__(self, why: str) -> None:
        self.why = why


def outside(f: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function uses from outside, by the names it uses for it."""
    known = {**dict(used_globals(f)), **dict(enclosed(f))}
    for chain in used_names(f):
        value = known.get(chain[0], Missing)
        name, *rest = chain
        while rest and _is_own_module(value):
            name = f"{name}.{rest[0]}"
            value = _attribute(value, rest.pop(0))
        yield name, value
        if chain[0] in _UNSEEN and type(value) is types.BuiltinFunctionType:
            yield name, Unseen(f"it calls {chain[0]}")
    package = f.__globals__.get("__package__") or ""
    for module, up, names in used_imports(f):
        above = package.rsplit(".", up - 1)[0] if up else ""
        yield from _imported(".".join(filter(None, (above, module))), names)


def _is_own_module(value: Any) -> bool:
    return issubclass(type(value), types.ModuleType) and library(value.__name__) is None


def _attribute(module: types.ModuleType, name: str) -> Any:
    """An attribute of a module, without asking the module."""
    inside = vars(module)
    if name in inside:
        return inside[name]
    return inside.get("__getattr__", sys.modules.get(f"{module.__name__}.{name}", Missing))


def _imported(module: str, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    found = sys.modules.get(module)
    known = library(module)
    if known is not None:
        yield module, known
    elif found is None:
        yield module, Unseen(f"it imports {module} when it runs")
    elif not names or "*" in names:
        yield module, found
    else:
        for name in names:
            yield f"{module}.{name}", _attribute(found, name)
