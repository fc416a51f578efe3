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
from typing import Any

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class EbbflowError(Exception):
    """The base of every error here.

    >>> print(EbbflowError("no such row", row=("Rome", 3), remedy="add it first"))
    no such row
        row        ('Rome', 3)
        try        add it first
    """

    def __init__(self, what: str, *, remedy: str = "", **facts: object) -> None:
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


class AlgebraError(EbbflowError):
    """A structure was asked for something it does not have, such as an inverse."""


class CompositionError(EbbflowError):
    """Two things that do not fit were put together."""


class CheckError(EbbflowError):
    """A check could not be run, so it says nothing about the law."""


class LawBroken(EbbflowError, AssertionError):
    """A law does not hold; `case` is the smallest counter-example found, by variable name.

    `law.test(thing, **case)` shows the same failure again.
    """

    law: Any
    thing: Any
    case: dict[str, Any]
    left: Any
    right: Any


class Text(str):
    """A fact that is printed as it is, not as a repr."""


def place() -> Text:
    """Where the user's code is, as `file:line`: the nearest frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    file = frame.f_code.co_filename
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return Text(f"{file if relative.startswith('..') else relative}:{frame.f_lineno}")


def shown(value: object, *, width: int = 400) -> str:
    """A repr cut in the middle when it is long.

    >>> shown("ab" * 1000, width=20)
    "'ababab...bababab'"
    """
    text = repr(value)
    if len(text) <= width:
        return text
    keep = (width - 3) // 2
    return f"{text[: keep - 1]}...{text[-keep:]}"


def _rebuild(kind: type[EbbflowError], what: str, remedy: str, facts: dict[str, object]) -> Any:
    return kind(what, remedy=remedy, **facts)
