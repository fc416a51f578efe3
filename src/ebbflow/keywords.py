"""Arguments that a function does not take, answered with those that it takes.

Python's own error names the class in which a method happens to be written, and no remedy. A
function that is `checked` raises an `UnknownArgument` instead, at the user's line. Each parameter
of this package has one meaning, `order` for the order of rows and `per` for groups, so the words
that other libraries use for it are known.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypeVar

from ebbflow.errors import Text, UnknownArgument, place

F = TypeVar("F", bound=Callable[..., Any])

_VAR_KEYWORDS = 8
_OURS: dict[str, tuple[str, ...]] = {
    "by": ("order", "per", "on"),
    "key": ("on", "order", "per"),
    "keys": ("on", "per"),
    **dict.fromkeys(("order_by", "orderBy", "sort", "sort_by", "sort_key"), ("order",)),
    **dict.fromkeys(("time", "timestamp", "at", "version"), ("order",)),
    **dict.fromkeys(("partition_by", "partitionBy", "partition", "group_by", "groupBy"), ("per",)),
    **dict.fromkeys(("groupby", "group", "groups", "over"), ("per",)),
    **dict.fromkeys(("ascending", "asc"), ("smallest", "descending")),
    **dict.fromkeys(("desc", "reverse"), ("descending", "smallest")),
    **dict.fromkeys(("k", "count", "limit", "size"), ("n",)),
    "frac": ("fraction",),
    "random_state": ("seed",),
    "strategy": ("direction",),
    **dict.fromkeys(("return_type", "returns", "returnType", "dtype", "schema"), ("type",)),
    **dict.fromkeys(("ignore_missing", "errors", "if_missing"), ("missing",)),
    **dict.fromkeys(("field", "column", "col", "value"), ("of",)),
}
"""Words that stand for a parameter elsewhere, each with the parameters here that may be meant."""


def checked(f: F) -> F:
    """The same function; a call with other arguments than it takes is an `UnknownArgument`.

    >>> @checked
    ... def last(rows, n=1, *, order):
    ...     return sorted(rows, key=order)[-n:]
    >>> last(["ebbing", "flow"], order=len)
    ['ebbing']
    >>> last(["ebbing", "flow"], by=len)
    Traceback (most recent call last):
    ebbflow.errors.UnknownArgument: last() has no argument 'by'
        known      rows, n, order
        created    <doctest ebbflow.keywords.checked[2]>:1
        try        order=...
    """
    code = f.__code__
    if code.co_flags & _VAR_KEYWORDS:
        return f
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known = [each for each in names if each != "self"]

    refused = wrong_arguments

    def call(*args: Any, **named: Any) -> Any:
        try:
            return f(*args, **named)
        except TypeError as error:
            if error.__traceback__.tb_next is not None:  # type: ignore[union-attr]
                raise
            raise refused(f, known, named, error) from None

    # doctest takes a function for one of the module whose globals it has
    there = FunctionType(call.__code__, f.__globals__, closure=call.__closure__)
    return update_wrapper(there, f)  # type: ignore[return-value]


def wrong_arguments(
    f: Any, known: list[str], named: dict[str, Any], error: TypeError
) -> UnknownArgument:
    """The error for a call with arguments that a function does not take."""
    name = next((each for each in named if each not in known), None)
    if name is None:
        first, only = f.__code__.co_argcount, set(f.__kwdefaults__ or ())
        ours = [each for each in known if each not in f.__code__.co_varnames[:first]]
        words = [f"{each}=..." if each in ours else each for each in known]
        what = str(error).removeprefix(f.__qualname__.removesuffix(f.__name__))
        needed = [word for word, each in zip(words, known, strict=True) if each not in only]
        return UnknownArgument(
            what, known=Text(", ".join(known)), created=place(),
            remedy=f"{f.__name__}({', '.join(needed)})",
        )  # fmt: skip
    near = [each for each in _OURS.get(name, ()) if each in known]
    near = near or get_close_matches(name, known, n=1, cutoff=0.6)
    value = repr(named[name]) if isinstance(named[name], str) else "..."
    return UnknownArgument(
        f"{f.__name__}() has no argument {name!r}", known=Text(", ".join(known)), created=place(),
        remedy=f"{near[0]}={value}" if near else "one of these",
    )  # fmt: skip
