"""Every exception ebbflow raises: what happened, the value, the place, the remedy.

An error is read by someone who did not write the code that failed. So its first line says what
happened in terms of what they wrote, the lines below give the values and where the thing was
created, and the last line says what to do about it:

    ebbflow.errors.ChangeError: Delete(at=3, count=4) is not a valid change of this text
        value      'abcd'
        try        a Delete that ends at or before position 4
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_DEMO = os.path.join(_PACKAGE, "demo") + os.sep


class EbbflowError(Exception):
    """The base of every error here.

    >>> print(EbbflowError("no such row", row=("Rome", 3), remedy="add it first"))
    no such row
        row        ('Rome', 3)
        try        add it first
    """

    def __init__(self, what: str, /, *, remedy: str = "", **facts: object) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy
        self.facts = facts

    def __str__(self) -> str:
        rows = [*self._shown().items(), *([("try", self.remedy)] if self.remedy else [])]
        return "\n".join([self.what, *(f"    {name:<10} {value}" for name, value in rows)])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as text: the values it shows may be anything, also what cannot be sent."""
        return _rebuild, (type(self), self.what, self.remedy, self._shown())

    def _shown(self) -> dict[str, Text]:
        return {
            name: value if isinstance(value, Text) else Text(shown(value))
            for name, value in self.facts.items()
        }


class ChangeError(EbbflowError):
    """A change was applied to a value that it is not valid for."""


class AbsentRow(EbbflowError):
    """A row was taken away that is not there, or not that often."""


class AlgebraError(EbbflowError):
    """A structure was asked for something it does not have, such as an inverse."""


class CompositionError(EbbflowError):
    """Two things that do not fit were put together."""


class UnknownField(CompositionError):
    """A field was asked for that the rows do not have."""


class UnknownVerb(CompositionError, AttributeError):
    """A collection was asked for something it does not have."""


class FunctionFailed(EbbflowError):
    """A function of the user's raised on a row; the epoch changed nothing. Its cause is chained."""


class NotDeterministic(EbbflowError):
    """A row was taken back and what had been made of it could not be found: a function gave
    another answer than before, or changed a row."""


class ViewClosed(EbbflowError):
    """A view was used after it was closed."""


class CheckError(EbbflowError):
    """A check could not be run, so it says nothing about the law."""


class LawBroken(EbbflowError, AssertionError):
    """A law does not hold; `case` is the smallest counter-example found, by variable name.

    `law.test(thing, **case)` shows the same failure again. One that was pickled has its text only.
    """

    law: Any = None
    thing: Any = None
    case: Mapping[str, Any] = MappingProxyType({})
    left: Any = None
    right: Any = None


class Text(str):
    """A fact that is printed as it is, not as a repr."""


def place() -> Text:
    """Where the user's code is, as `file:line`: the nearest frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    file = frame.f_code.co_filename
    try:
        relative = os.path.relpath(file) if os.path.isabs(file) else file
    except OSError:
        relative = file
    return Text(f"{file if relative.startswith('..') else relative}:{frame.f_lineno}")


def _is_ours(file: str) -> bool:
    """Whether code is of this package; its demo is a program as a user writes one."""
    return file.startswith(_PACKAGE) and not file.startswith(_DEMO)


def install(*extras: str) -> str:
    """What to do where a package is missing, as a remedy: it works from a clone.

    >>> install("laws", "durable")
    "pip install '.[laws,durable]' in a clone of ebbflow"
    """
    return f"pip install '.[{','.join(extras)}]' in a clone of ebbflow"


def shown(value: object, *, width: int = 400) -> str:
    """A repr cut in the middle when it is long.

    >>> shown("ab" * 1000, width=20)
    "'ababab...bababab'"
    """
    text = canonical(value)
    if len(text) <= width:
        return text
    keep = (width - 3) // 2
    return f"{text[: keep - 1]}...{text[-keep:]}"


def canonical(value: object) -> str:
    """A repr that is the same in every run: sets are shown in order. It never raises.

    >>> canonical(({"b", "a"}, [frozenset({"d", "c"})]))
    "({'a', 'b'}, [frozenset({'c', 'd'})])"
    """
    kind = type(value)
    if kind in (set, frozenset) and value:
        inside = "{" + ", ".join(sorted(map(canonical, value))) + "}"  # type: ignore[call-overload]
        return inside if kind is set else f"frozenset({inside})"
    if kind is list:
        return "[" + ", ".join(map(canonical, value)) + "]"  # type: ignore[call-overload]
    if kind is tuple:
        inside = ", ".join(map(canonical, value))  # type: ignore[call-overload]
        return f"({inside},)" if len(value) == 1 else f"({inside})"  # type: ignore[arg-type]
    if kind is dict:
        entries = [f"{canonical(k)}: {canonical(v)}" for k, v in value.items()]  # type: ignore[attr-defined]
        return "{" + ", ".join(entries) + "}"
    try:
        return repr(value)
    except Exception as error:
        return f"<{kind.__name__} that cannot be shown: {error}>"


def _rebuild(kind: type[EbbflowError], what: str, remedy: str, facts: dict[str, object]) -> Any:
    return kind(what, remedy=remedy, **facts)
