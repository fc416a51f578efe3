"""Reducers for generated programs: the library's, and a user's of every verdict.

All of them are well-formed: `ebbflow.laws.check` finds nothing. A user's reducer is *invertible*
(it has an inverse), *partial* (its `remove` sometimes declines), a *tree* (it has `merge` and no
`remove`), or a *refold* (neither): the four ways in which an engine has to follow it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.reducer import (
    Reducer,
    arg_max,
    bit_xor,
    bool_or,
    collect,
    count,
    count_distinct,
    first,
    histogram,
    last,
    max,
    mean,
    median,
    min,
    mode,
    product,
    quantile,
    rank,
    set_of,
    stddev,
    string_agg,
    sum,
    top_k,
    variance,
)
from ebbflow.testing.functions import ORDERED, Choices, RowShape, function

AnyReducer = Reducer[Any, Any, Any]
Made = tuple[AnyReducer, str]

SORTS = ("library", "invertible", "partial", "tree", "refold")
_LOWER = "{p} if a is None else {p} if {p} < a else a"
_HIGHER = "{p} if a is None else {p} if {p} > a else a"


def reducer(shape: RowShape, choices: Choices, sorts: tuple[str, ...] = SORTS) -> Made:
    """A reducer of rows of this shape, and the kind of its results.

    >>> made, kind = reducer(RowShape(("int",), whole=True), Choices(5))
    >>> made([3, 4]), kind
    (7, 'int')
    """
    return MAKERS[choices.pick(sorts)](shape, choices)


def library(shape: RowShape, choices: Choices) -> Made:
    """One of the reducers of the library.

    >>> library(RowShape(("int",), whole=True), Choices(0))
    (count(), 'int')
    """
    makers: list[Callable[[], Made]] = [lambda: (count(), "int")]
    numbers, whats = shape.paths("int", "maybe"), shape.paths("int", "maybe", "str")
    if numbers:
        of, kind = _part(shape, choices.pick(numbers))
        makers += [
            lambda: (sum(of), kind),
            lambda: (min(of), kind),
            lambda: (max(of), kind),
            lambda: (mean(of), "any"),
            lambda: (median(of), "any"),
            lambda: (variance(of), "any"),
            lambda: (stddev(of, ddof=0), "any"),
            lambda: (top_k(2, of), "any"),
            lambda: (top_k(3, of, smallest=True), "any"),
            lambda: (quantile(0.25, of), "any"),
            lambda: (rank(1, of), "int"),
            lambda: (bit_xor(of), kind if kind == "int" else "maybe"),
            lambda: (arg_max(of), "any"),
            lambda: (sum(of).where(function(shape.condition(choices))), "maybe"),
            lambda: (sum(of) & count() & max(of), "any"),
        ]
    if whats:
        of2, kind2 = _part(shape, choices.pick(whats))
        makers += [
            lambda: (count(of2), "int"),
            lambda: (count_distinct(of2), "int"),
            lambda: (collect(of2), "any"),
            lambda: (set_of(of2), "any"),
            lambda: (histogram(of2), "any"),
            lambda: (mode(of2), kind2),
            lambda: (count().by(of2), "any"),
            lambda: (first(of2, by=function(shape.number(choices))), kind2),
            lambda: (last(of2, by=function(shape.number(choices))), kind2),
        ]
    if shape.paths(*ORDERED):
        of3, kind3 = _part(shape, choices.pick(shape.paths(*ORDERED)))
        makers += [
            lambda: (min(of3), kind3),
            lambda: (max(of3), kind3),
            lambda: (count_distinct(of3), "int"),
            lambda: (set_of(of3), "any"),
            lambda: (collect(of3), "any"),
            lambda: (mode(of3), kind3),
            lambda: (top_k(2, of3), "any"),
            lambda: (count().by(of3), "any"),
            lambda: (last(of3, by=function(shape.number(choices))), kind3),
            lambda: (arg_max(of3), "any"),
        ]
        if kind3 in ("float", "decimal"):
            makers += [
                lambda: (sum(of3), kind3),
                lambda: (mean(of3), "any"),
                lambda: (median(of3), "any"),
            ]
    if shape.paths("str"):
        word, _ = _part(shape, shape.paths("str")[0])
        makers += [lambda: (string_agg(word, separator="+"), "str")]
    makers += [
        lambda: (product(function(f"({shape.number(choices)}) % 3 - 1")), "int"),
        lambda: (bool_or(function(shape.condition(choices))), "any"),
        lambda: (count().then(function("r % 2")), "int"),
    ]
    return choices.pick(makers)()


def _part(shape: RowShape, path: str) -> tuple[Any, str]:
    kind = next(k for at, k in enumerate(shape.kinds) if shape.path(at) == path)
    name = path.removeprefix("r.")
    return (name if name in shape.names else function(path)), kind


def invertible(shape: RowShape, choices: Choices) -> Made:
    """A fold with an inverse: a sum in some group.

    >>> made, _ = invertible(RowShape(("int",), whole=True), Choices(0))
    >>> made.remove(made.fold([3, 4]), 4)
    3
    """
    p, c, m = shape.number(choices), choices.pick((1, 2, 3)), choices.pick((7, 3, 64))
    add, less = f"a + {c} * ({p})", f"a - {c} * ({p})"
    pair = "(a[0] {s} {c} * ({p}), a[1] {s} 1)"
    options: list[Callable[[], AnyReducer]] = [
        lambda: _user(0, add, less),
        lambda: _user(0, f"({add}) % {m}", f"({less}) % {m}"),
        lambda: _user(0, f"a ^ {p}", f"a ^ {p}"),
        lambda: _user(
            (0, 0), pair.format(s="+", c=c, p=p), pair.format(s="-", c=c, p=p), show="a[0] - a[1]"
        ),
        lambda: _user(0, add, less, merge="a + b"),
        lambda: _user(0, add, less, repeat=f"a + n * {c} * ({p})", partial=False),
    ]
    return choices.pick(options)(), "int"


def partial(shape: RowShape, choices: Choices) -> Made:
    """A fold whose `remove` sometimes asks for the rows.

    >>> made, _ = partial(RowShape(("int",), whole=True), Choices(0))
    >>> made.remove(3, 5), made.remove(3, 3)
    (3, RECOMPUTE)
    """
    p, m = shape.number(choices), choices.pick((2, 3, 1))
    options: list[Callable[[], Made]] = [
        lambda: (_user(None, _LOWER.format(p=p), f"RECOMPUTE if {p} == a else a"), "int"),
        lambda: (_user(0, f"a + {p}", f"RECOMPUTE if (a + {p}) % {m} == 0 else a - {p}"), "int"),
        lambda: (
            _user(None, _HIGHER.format(p=p), f"RECOMPUTE if {p} == a else a", partial=True),
            "int",
        ),
        lambda: (
            _user((), f"tuple(sorted((*a, {p}))[:2])", f"RECOMPUTE if {p} in a else a"),
            "any",
        ),
    ]
    return choices.pick(options)()


def tree(shape: RowShape, choices: Choices) -> Made:
    """A fold that cannot take rows out, whose accumulators can be merged.

    >>> made, _ = tree(RowShape(("int",), whole=True), Choices(0))
    >>> made.remove, made.merge(3, 5)
    (None, 5)
    """
    p = shape.number(choices)
    either = "b if a is None else a if b is None else a if a {s} b else b"
    options: list[Callable[[], AnyReducer]] = [
        lambda: _user(None, _HIGHER.format(p=p), merge=either.format(s=">")),
        lambda: _user(None, _LOWER.format(p=p), merge=either.format(s="<")),
        lambda: _user(0, f"a + {p}", merge="a + b"),
        lambda: _user(frozenset(), f"a | {{{p}}}", merge="a | b", show="len(a)"),
    ]
    return choices.pick(options)(), "int"


def refold(shape: RowShape, choices: Choices) -> Made:
    """A fold with neither: every removal folds the group again.

    >>> made, _ = refold(RowShape(("int",), whole=True), Choices(0))
    >>> made.remove, made.merge, made([3, 5])
    (None, None, 5)
    """
    p = shape.number(choices)
    options: list[Callable[[], AnyReducer]] = [
        lambda: _user(None, _HIGHER.format(p=p)),
        lambda: _user(0, f"a + ({p}) * ({p})"),
        lambda: _user(frozenset(), f"a | {{{p}}}", show="len(a)"),
    ]
    return choices.pick(options)(), "int"


MAKERS: dict[str, Callable[[RowShape, Choices], Made]] = {
    "library": library,
    "invertible": invertible,
    "partial": partial,
    "tree": tree,
    "refold": refold,
}


def _user(
    init: Any,
    add: str,
    remove: str = "",
    *,
    merge: str = "",
    show: str = "",
    repeat: str = "",
    partial: bool | None = None,
) -> AnyReducer:
    """A reducer from expressions over the accumulator `a` and the row `r`."""
    return Reducer(
        init,
        function(add, "a, r"),
        function(remove, "a, r") if remove else None,
        function(merge, "a, b") if merge else None,
        function(show, "a") if show else None,
        repeat=function(repeat, "a, r, n") if repeat else None,
        partial=partial,
    )
