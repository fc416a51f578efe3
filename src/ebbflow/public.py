"""Objects that users hold: a wrong name or argument gets an error with the right one.

People who come from SQL, pandas or Spark try the names they know: `ef.avg`, `view.subscribe`,
`input.insert`. Python's own error names an internal class and no
remedy. A class below `Public` answers a name that it does not have with an `UnknownVerb`, and a
call with other arguments than a method takes with an `UnknownArgument`. Each kind of object has a
table of names from other libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from inspect import getattr_static
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


def unknown_of_module(
    name: str, known: Iterable[str], verbs: Mapping[str, str] = MappingProxyType({})
) -> AttributeError:
    """Return the error for a name that the module `ebbflow` does not have. `verbs` are names of
    other libraries for verbs of a collection `c`.

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
    of_collections = {each: f"for a collection c: {ours}" for each, ours in verbs.items()}
    return unknown("ebbflow", name, {**of_collections, **MODULE}, known)


class Theirs:
    """A name of another library, as an attribute of a class that has an equivalent.

    A class with `__getattr__` could answer every name, but then Python looks up all attributes of
    its objects more slowly, and a step of a view is short.
    """

    def __init__(self, name: str, error: Callable[[Any, str], Exception]) -> None:
        self.name, self.error = name, error

    def __get__(self, thing: Any, cls: type) -> Any:
        if thing is None:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {self.name!r}")
        raise self.error(thing, self.name)


def answer(cls: type, names: Iterable[str], error: Callable[[Any, str], Exception]) -> None:
    """Answer these names with an error, on objects of a class that lacks them."""
    for name in names:
        if not any(name in vars(each) for each in cls.__mro__):
            setattr(cls, name, Theirs(name, error))


def names_of(cls: type) -> list[str]:
    """Return the public names that objects of a class have."""
    every = {name: each for base in reversed(cls.__mro__) for name, each in vars(base).items()}
    return sorted(
        name for name, each in every.items()
        if not name.startswith("_") and not isinstance(each, Theirs)
    )  # fmt: skip


def dir_of(thing: object) -> list[str]:
    """Return the names that `dir` shows of an object: all but those of others."""
    cls = type(thing)
    every = object.__dir__(thing)
    return [name for name in every if not isinstance(getattr_static(cls, name, None), Theirs)]


class Public:
    """The base of what users hold; see the module."""

    __slots__ = ()

    _spoken: ClassVar[str] = "this"
    """How an error speaks of the object: "a view"."""
    _instead: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Names of other libraries, each with the equivalent here."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                setattr(cls, name, checked(method))
        if "_instead" in vars(cls):
            answer(cls, cls._instead, lambda thing, name: thing._unknown(name))

    def _unknown(self, name: str) -> CompositionError:
        """Return the error for a name that this object does not have."""
        return unknown(self._spoken, name, self._instead, names_of(type(self)))

    def __dir__(self) -> list[str]:
        return dir_of(self)


class PublicByName(Public):
    """The base of what users hold while they write a program: any wrong name gets an error of ours,
    also a misspelt one."""

    __slots__ = ()

    if not TYPE_CHECKING:  # for a type checker, a wrong name is simply one

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property raised an AttributeError: raise it again
                return object.__getattribute__(self, name)
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise self._unknown(name)
