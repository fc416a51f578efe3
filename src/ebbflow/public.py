"""Objects that users hold: a wrong name or argument gets an error with the right one.

People who come from SQL, pandas or Spark try the names they know: `ef.avg`, `view.subscribe`,
`input.insert`. Python's own error names the class in which a method happens to be written, and no
remedy. A class below `Public` answers a name that it does not have with an `UnknownVerb`, and a
call with other arguments than a method takes with an `UnknownArgument`. Each kind of object has a
table of the names that others use for what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from ebbflow.errors import CompositionError, UnknownVerb, place
from ebbflow.keywords import checked
from ebbflow.names import MODULE

_MANY = 40


def unknown(what: str, name: str, instead: Mapping[str, str], known: Iterable[str]) -> UnknownVerb:
    """Return the error for a name that `what` does not have.

    >>> print(unknown("a view", "subscribe", {"subscribe": "view.on_change(print)"}, []))
    a view has no 'subscribe'
        created    <doctest ebbflow.public.unknown[0]>:1
        try        view.on_change(print)
    """
    known = list(known)
    remedy = instead.get(name, "")
    if not remedy:
        near = get_close_matches(name, known, n=1, cutoff=0.7)
        theirs = [] if near else get_close_matches(name, instead, n=1, cutoff=0.8)
        listed = f"one of {', '.join(known)}" if len(known) <= _MANY else f"a name in dir({what})"
        remedy = near[0] if near else listed
        remedy = instead[theirs[0]] if theirs else remedy
    return UnknownVerb(f"{what} has no {name!r}", created=place(), remedy=remedy)


def unknown_of_module(name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a name that the module `ebbflow` does not have.

    >>> print(unknown_of_module("avg", ["mean"]))
    ebbflow has no 'avg'
        created    <doctest ebbflow.public.unknown_of_module[0]>:1
        try        ebbflow.mean(...)
    """
    if name.startswith("_"):
        return AttributeError(f"module 'ebbflow' has no attribute {name!r}")
    if name not in MODULE and find_spec(f"ebbflow.{name}") is not None:
        return UnknownVerb(
            f"ebbflow.{name} is a module that is not imported yet", created=place(),
            remedy=f"import ebbflow.{name}",
        )  # fmt: skip
    return unknown("ebbflow", name, MODULE, known)


def answered(what: str, instead: Mapping[str, str]) -> Callable[[Any, str], Any]:
    """Return a `__getattr__` that answers names which a class does not have. For classes whose
    methods are too small to be checked one by one."""

    def __getattr__(self: Any, name: str) -> Any:
        cls = type(self)
        if hasattr(cls, name):  # a property raised an AttributeError, or a slot is empty
            return object.__getattribute__(self, name)
        if name.startswith("_"):
            raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")
        raise unknown(what, name, instead, [each for each in dir(cls) if each[0] != "_"])

    return __getattr__


class Public:
    """The base of what users hold; see the module."""

    __slots__ = ()

    _spoken: ClassVar[str] = "this"
    """How an error speaks of the object: "a view"."""
    _instead: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Names that others use, each with what does the same here."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                setattr(cls, name, checked(method))

    def _unknown(self, name: str) -> CompositionError:
        """Return the error for a name that this object does not have."""
        return unknown(self._spoken, name, self._instead, self._names())

    def _names(self) -> list[str]:
        """Return the public names of this object."""
        return [each for each in dir(type(self)) if not each.startswith("_")]

    if not TYPE_CHECKING:  # for a type checker, a wrong name is simply one

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property raised an AttributeError: raise it again
                return object.__getattribute__(self, name)
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise self._unknown(name)
