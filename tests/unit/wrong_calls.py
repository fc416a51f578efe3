"""Calls of public methods with wrong arguments: each is accepted, or refused by an error of ours.

`hunt` gives the calls whose error a user could not follow: an error of Python, a name of an
internal class or function, or no remedy.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import ebbflow as ef

NOT_PUBLIC = re.compile(
    r"(?<![\w.\"'])_[a-z]\w*|\bBase[A-Z]\w*|\w+Mixin\b|\w+Verbs\b|\w+Handle\b|ViewWith\w+|"
    r"PublishingView|(?:Local|Spark)(?:Input|Output|View)\b|<locals>"
)
"""Names that a user knows nothing of."""
WRONG: list[Any] = [
    None, 3, -1, 2.5, float("nan"), "x", "price > 3", b"x", [], [3], ["x"], {}, {"x": 3}, (), True,
    ..., object, len, lambda: 3, lambda row: row.nope, lambda a, b: a, ef.ZSet(), object(),
]  # fmt: skip
"""Values that are wrong for most methods."""
ENDS = {"close", "end_sink"}
"""Methods after which there is nothing to call."""


def methods(of: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods of an object, or the public functions of a module."""
    if inspect.ismodule(of):
        names = [each for each in of.__all__ if inspect.isfunction(getattr(of, each))]
    else:
        names = [
            each for each in dir(type(of))
            if each[0] != "_" and inspect.isfunction(inspect.getattr_static(type(of), each))
        ]  # fmt: skip
    for name in names:
        method = getattr(of, name)
        if name not in ENDS and not inspect.iscoroutinefunction(method):
            yield name, method


def calls(name: str, method: Callable[..., Any], values: list[Any]) -> Iterator[Any]:
    """Calls of a method with wrong arguments, each with its text."""
    yield f"{name}(zzz=1)", (), {"zzz": 1}
    yield f"{name}()", (), {}
    yield f"{name}(*range(8))", tuple(range(8)), {}
    given = inspect.signature(method).parameters.values()
    needed = [
        each for each in given
        if each.default is each.empty and each.kind <= each.POSITIONAL_OR_KEYWORD
    ]  # fmt: skip
    for value in values:
        yield f"{name}({value!r})", (value,), {}
        for each in given:
            if each.default is not each.empty and each.kind is not each.POSITIONAL_ONLY:
                first = ("price",) * len(needed)
                yield f"{name}({each.name}={value!r})", first, {each.name: value}


def hunt(
    make: Callable[[], Any], values: list[Any], skip: Callable[[str, Any], bool]
) -> Iterator[str]:
    """The calls of the methods of `make()` whose error a user could not follow."""
    for name in [name for name, _ in methods(make())]:
        method = getattr(make(), name)
        for text, arguments, named in calls(name, method, values):
            if skip(name, (*arguments, *named.values())):
                continue
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    method(*arguments, **named)
            except ef.EbbflowError as error:
                found = NOT_PUBLIC.search(str(error))
                if found:
                    yield f"{text}: names {found[0]}: {error}"
                elif not error.remedy:
                    yield f"{text}: has no remedy: {error}"
            except Exception as error:
                yield f"{text}: {type(error).__name__}: {error}"
