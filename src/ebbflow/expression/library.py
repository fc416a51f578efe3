"""Who wrote a piece of code: the program, or a library that has a name and a version.

The code of a *library* is known by its name, and with its version where it is an installed package.
Python's own library is known by name alone, so that a newer Python does not make every function
another one; so is this package, whose state has a format of its own. All other code belongs to the
program and is known by what it does. An installed package of Python files only is known by these as
well, since a program that is itself installed may keep its version while it changes.
"""

from __future__ import annotations

import hashlib
import os
import sys
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_OURS = "ebbflow"
_PYTHON = (os.path.dirname(os.__file__), *[p for p in sys.path if p.endswith("lib-dynload")])
_INSTALLED = ("site-packages", "dist-packages")


def library(module: str) -> str | None:
    """The library that a module belongs to, with its version; None if it is the program's own.

    >>> library("functools"), library("ebbflow.fn"), library("__main__")
    ('functools', 'ebbflow', None)
    """
    top = module.partition(".")[0]
    if top == _OURS:
        return top
    file = _file(module)
    if top in sys.stdlib_module_names:
        return top if file is None or file.startswith(_PYTHON) else None
    if file is None or not any(f"{os.sep}{each}{os.sep}" in file for each in _INSTALLED):
        return None
    return _version(top)


def _file(module: str) -> str | None:
    """The file of a module, also if it is not imported yet; no code of it runs."""
    found = sys.modules.get(module)
    if found is not None:
        file = vars(found).get("__file__")
        return file if isinstance(file, str) else None
    try:
        spec = find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        return None
    return None if spec is None or not spec.has_location else spec.origin


@lru_cache(maxsize=1024)
def _version(top: str) -> str | None:
    """The installed package with a module of this name, or None where none says it has it."""
    from importlib.metadata import PackageNotFoundError, distribution, packages_distributions

    try:
        found = distribution(top)
    except PackageNotFoundError:
        names = packages_distributions().get(top)
        if not names:
            return None
        found = distribution(names[0])
    return f"{top} {found.version} {_files(found)}".strip()


def _files(package: Distribution) -> str:
    """A digest of the files of a package that is made of Python files only."""
    if "Root-Is-Purelib: true" not in (package.read_text("WHEEL") or ""):
        return ""
    lines = (package.read_text("RECORD") or "").splitlines()
    code = sorted(line for line in lines if ".py,sha256=" in line)
    return hashlib.sha256("\n".join(code).encode()).hexdigest()


def named(thing: Any) -> str | None:
    """The name of a function or class of a library that can be found by it, else None.

    >>> named(len), named(str.upper), named(lambda: 1)
    ('builtins builtins.len', 'builtins builtins.str.upper', None)
    """
    home, name = home_of(thing), getattr(thing, "__qualname__", None)
    if not isinstance(name, str):
        return None
    whose = library(home)
    if whose is None or home == "__main__":
        return None
    found: Any = sys.modules.get(home)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{whose} {home}.{name}" if found is thing or _same_method(found, thing) else None


def home_of(thing: Any) -> str:
    """The module of a function or a class."""
    home = getattr(thing, "__module__", None)
    if home is None:
        owner = getattr(thing, "__objclass__", None) or getattr(thing, "__self__", None)
        owner = owner if isinstance(owner, type) or owner is None else type(owner)
        home = getattr(owner, "__module__", None)
    return home if isinstance(home, str) else "builtins"


def _same_method(found: Any, thing: Any) -> bool:
    """Methods of built-in classes are made anew whenever they are asked for."""
    return not hasattr(thing, "__code__") and type(found) is type(thing) and found == thing
