"""Saying what a function gives, where its code does not tell."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ebbflow.flow.parts import refuse
from ebbflow.flow.types import classes
from ebbflow.keywords import checked
from ebbflow.record import name_of
from ebbflow.reducer import Reducer
from ebbflow.reducer.row import getter, itself


@checked
def typed(hint: Any, f: Any) -> Any:
    """The same function, field or reducer, with the type of what it gives.

    A function with a hint, `def size(word: str) -> int`, needs none of this; nor does a short one
    whose code tells. For the others, wherever a program asks for a part of a row or a reducer:

    >>> import ebbflow as ef
    >>> lines = ef.Input("lines", str)
    >>> lines.group_by(day=ef.typed(str, lambda line: parse(line).day)).agg(n=ef.count()).type
    <class 'ebbflow.record.Group(day: str, n: int)'>

    It is believed here, and checked where values become columns of a table.
    """
    if classes(hint) is None and hint is not Any:
        refuse(
            f"typed({hint!r}, ...): the first is a type, and this is none",
            "typed(str, lambda row: ...)",
        )
    if isinstance(f, Reducer):
        return f.then(typed(hint, itself))
    if not callable(f) and not isinstance(f, str):
        refuse(
            f"typed({name_of(hint)}, {f!r}): there is nothing that gives a {name_of(hint)}",
            f"typed({name_of(hint)}, lambda row: ...), a field name, or a reducer",
        )
    if type(f) is not FunctionType:
        return _called(hint, getter(f))
    same = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    same.__kwdefaults__, same.__module__ = f.__kwdefaults__, f.__module__
    same.__qualname__, same.__annotations__ = f.__qualname__, {"return": hint}
    return same


def _called(hint: Any, f: Any) -> Any:
    def call(row: Any) -> Any:
        return f(row)

    call.__name__ = call.__qualname__ = getattr(f, "__name__", type(f).__name__)
    call.__annotations__ = {"return": hint}
    return call
