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
from inspect import CO_VARARGS, CO_VARKEYWORDS, Parameter, iscoroutinefunction, signature
from types import FunctionType
from typing import Any, TypeVar

from ebbflow.errors import Text, UnknownArgument, place, value_text

F = TypeVar("F", bound=Callable[..., Any])

_ANY = CO_VARARGS | CO_VARKEYWORDS
_SEVERAL, _NAMED = Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD
_OURS: dict[str, tuple[str, ...]] = {
    "by": ("order", "per", "on", "of"),
    "order": ("of",),
    "key": ("on", "order", "per"),
    "keys": ("on", "per", "key"),
    **dict.fromkeys(("primary_key", "pk", "index"), ("key",)),
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
    **dict.fromkeys(
        ("return_type", "returns", "returnType", "dtype", "schema", "row_type"), ("type",)
    ),
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
    if f.__code__.co_flags & _ANY == _ANY:  # it takes whatever it is given
        return f
    refused = wrong_arguments

    def call(*args: Any, **named: Any) -> Any:
        try:
            return f(*args, **named)
        except TypeError as error:
            if error.__traceback__.tb_next is not None:  # type: ignore[union-attr]
                raise
            raise refused(f, len(args), named, error) from None

    async def awaited(*args: Any, **named: Any) -> Any:
        try:
            begun = f(*args, **named)
        except TypeError as error:
            raise refused(f, len(args), named, error) from None
        return await begun

    called: Any = awaited if iscoroutinefunction(f) else call
    # doctest takes a function for one of the module whose globals it has
    there = FunctionType(called.__code__, f.__globals__, closure=called.__closure__)
    return update_wrapper(there, f)  # type: ignore[return-value]


def wrong_arguments(f: Any, count: int, named: dict[str, Any], error: TypeError) -> UnknownArgument:
    """The error for a call with other arguments than a function takes: `count` of them by their
    position, and the `named` ones."""
    every = list(signature(f).parameters.values())
    given = [each for each in every if each.name != "self"]
    known = [each.name for each in given if each.kind not in (_SEVERAL, _NAMED)]
    shown = Text(", ".join(_written(each) for each in given))
    call = f.__name__ if f.__name__ != "__init__" else f.__qualname__.split(".")[-2]
    name = next((each for each in named if each not in known), None)
    if name is None or any(each.kind is _NAMED for each in given):
        what = str(error).replace(f"{f.__qualname__}(", f"{call}(", 1)
        more = count - sum([each.kind <= Parameter.POSITIONAL_OR_KEYWORD for each in every])
        apart = [each for each in given if each.kind is each.KEYWORD_ONLY]
        inputs = any(each.kind is Parameter.POSITIONAL_ONLY for each in given)
        free = [] if inputs else [each.name for each in apart if each.name not in named]
        meant = free[: max(more, 0)]
        needed = [
            _written(each, needed=True) for each in given
            if each.default is each.empty
            or each.name in meant
            or (more > 0 and each.kind <= each.POSITIONAL_OR_KEYWORD)
        ]  # fmt: skip
        return UnknownArgument(
            what, known=shown, created=place(), remedy=f"{call}({', '.join(needed)})"
        )
    near = [each for each in _OURS.get(name, ()) if each in known]
    near = near or get_close_matches(name, known, n=1, cutoff=0.6)
    value = value_text(named[name]) if isinstance(named[name], str) else "..."
    return UnknownArgument(
        f"{call}() has no argument {name!r}", known=shown, created=place(),
        remedy=f"{near[0]}={value}" if near else _positional(call, every, known, named, count),
    )  # fmt: skip


def _written(each: Parameter, needed: bool = False) -> str:
    """A parameter as text: in a list of the known ones, or in a call."""
    if each.kind is _SEVERAL:
        return each.name if needed else f"*{each.name}"
    if each.kind is _NAMED:
        return "name=..."
    return f"{each.name}=..." if needed and each.kind is each.KEYWORD_ONLY else each.name


def _positional(
    call: str, every: list[Parameter], known: list[str], named: dict[str, Any], count: int
) -> str:
    """The remedy where a name is like no parameter: pass values for the first parameter,
    such as the key of `get(id=3)`, by position."""
    values = [value for name, value in named.items() if name not in known]
    given = [each for each in every if each.name != "self"]
    first = given[0] if given else None
    filled = first is not None and (first.name in named or count > len(every) - len(given))
    if first is None or filled or first.default is not first.empty:
        return "one of these" if known else f"{call}()"
    if first.kind is _SEVERAL:
        return f"{call}({first.name})"
    return f"{call}({value_text(values[0] if len(values) == 1 else tuple(values))})"
