"""Values that know how they were made.

A structure made by a constructor, such as `product(ADD, LIST)`, is shown, compared and pickled as
that call. A constant, such as `ADD`, is shown and pickled as its name, so it is the same object
everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

Recipe = tuple[Callable[..., Any], tuple[Any, ...]]


class Built:
    """Made by `built = (make, arguments)`, or the constant `name` of the module `home`."""

    name: str = ""
    home: str = ""
    built: Recipe | None = None

    def _described(self) -> str:
        """The repr of a structure that has neither a recipe nor a name."""
        return f"{type(self).__name__}()"

    def _essence(self) -> Any:
        """What makes two of them equal when they have no recipe; by default only being the same."""
        return id(self)

    # ---- everything below is written with these ----

    def __repr__(self) -> str:
        if self.built is not None:
            make, arguments = self.built
            return f"{make.__name__}({', '.join(map(repr, arguments))})"
        return self.name or self._described()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Built):
            return NotImplemented
        if self is other or self.built is not None or other.built is not None:
            return self is other or self.built == other.built
        return type(self) is type(other) and bool(self._essence() == other._essence())

    def __hash__(self) -> int:
        return hash((self.name, self.built and self.built[0]))

    def __reduce__(self) -> Any:
        if self.built is not None:
            return self.built
        if self.home:
            return _constant, (self.home, self.name)
        return blank, (type(self),), self.__getstate__()


def is_async(f: Any) -> bool:
    """Whether a call of `f` gives a coroutine or an async generator in place of a value.

    >>> async def fetch(row): ...
    >>> is_async(fetch), is_async(len)
    (True, False)
    """
    called = (f, type(f).__call__) if callable(f) else (f,)
    return any(iscoroutinefunction(each) or isasyncgenfunction(each) for each in called)


def function_name(f: Any) -> str:
    """How a function is called in a repr: by the name it could be pasted back with, if any."""
    return getattr(f, "__qualname__", None) or repr(f)


def same(x: Any) -> Any:
    """The value itself: the identity function, which can be pickled.

    >>> same(3)
    3
    """
    return x


def in_brackets(part: object, *looser: type) -> str:
    """A part of an expression, in brackets where its own sign binds more loosely."""
    return f"({part!r})" if isinstance(part, looser) else repr(part)


def _constant(home: str, name: str) -> Any:
    return getattr(import_module(home), name)


def blank(cls: Any) -> Any:
    """An object of this type that nothing has been put into yet: what unpickling fills."""
    return cls.__new__(cls)
