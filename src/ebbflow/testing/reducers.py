"""Reducers for generated programs: the library's, and a user's of every verdict.

All of them are well-formed: `ebbflow.laws.check` finds nothing. A user's reducer is *invertible*
(it has an inverse), *partial* (its `remove` sometimes declines), a *tree* (it has `merge` and no
`remove`), or a *refold* (neither): the four ways in which an engine has to follow it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ebbflow as ef
from ebbflow.reducer import Reducer
from ebbflow.testing.functions import ORDERED, Choices, RowShape, function

AnyReducer = Reducer[Any, Any, Any]
Made = tuple[AnyReducer, str]

SORTS = ("library", "invertible", "partial", "tree", "refold")
_LOWER = "{p} if a is None else {p} if {p} < a else a"
_HIGHER = "{p} if a is None else {p} if {p} > a else a"


def reducer(shape: RowShape, choices: Choices, sorts: tuple[str, ...] = SORTS) -> Made:
    """A reducer of rows of this shape, and the dtype of its results.

    >>> made, dtype = reducer(RowShape(("int",), whole=True), Choices(5))
    >>> made([3, 4]), dtype
    (7, 'int')
    """
    return MAKERS[choices.pick(sorts)](shape, choices)


def library(shape: RowShape, choices: Choices) -> Made:
    """One of the reducers of the library.

    >>> library(RowShape(("int",), whole=True), Choices(0))
    (count(), 'int')
    """
    makers: list[Callable[[], Made]] = [lambda: (ef.count(), "int")]
    numbers, whats = shape.paths("int", "maybe"), shape.paths("int", "maybe", "str")
    if numbers:
        of, dtype = _part(shape, choices.pick(numbers))
        makers += [
            lambda: (ef.sum(of), dtype),
            lambda: (ef.min(of), dtype),
            lambda: (ef.max(of), dtype),
            lambda: (ef.mean(of), "any"),
            lambda: (ef.median(of), "any"),
            lambda: (ef.variance(of), "any"),
            lambda: (ef.stddev(of, ddof=0), "any"),
            lambda: (ef.top_k(2, of), "any"),
            lambda: (ef.top_k(3, of, smallest=True), "any"),
            lambda: (ef.quantile(0.25, of), "any"),
            lambda: (ef.rank(1, of), "int"),
            lambda: (ef.bit_xor(of), dtype if dtype == "int" else "maybe"),
            lambda: (ef.arg_max(of), "any"),
            lambda: (ef.sum(of).where(function(shape.condition(choices))), "maybe"),
            lambda: (ef.sum(of) & ef.count() & ef.max(of), "any"),
        ]
    if whats:
        of2, dtype2 = _part(shape, choices.pick(whats))
        makers += [
            lambda: (ef.count(of2), "int"),
            lambda: (ef.count_distinct(of2), "int"),
            lambda: (ef.collect(of2), "any"),
            lambda: (ef.set_of(of2), "any"),
            lambda: (ef.histogram(of2), "any"),
            lambda: (ef.mode(of2), dtype2),
            lambda: (ef.count().by(of2), "any"),
            lambda: (ef.first(of2, order=function(shape.number(choices))), dtype2),
            lambda: (ef.last(of2, order=function(shape.number(choices))), dtype2),
        ]
    if shape.paths(*ORDERED):
        of3, dtype3 = _part(shape, choices.pick(shape.paths(*ORDERED)))
        makers += [
            lambda: (ef.min(of3), dtype3),
            lambda: (ef.max(of3), dtype3),
            lambda: (ef.count_distinct(of3), "int"),
            lambda: (ef.set_of(of3), "any"),
            lambda: (ef.collect(of3), "any"),
            lambda: (ef.mode(of3), dtype3),
            lambda: (ef.top_k(2, of3), "any"),
            lambda: (ef.count().by(of3), "any"),
            lambda: (ef.last(of3, order=function(shape.number(choices))), dtype3),
            lambda: (ef.arg_max(of3), "any"),
        ]
        if dtype3 in ("float", "decimal"):
            makers += [
                lambda: (ef.sum(of3), dtype3),
                lambda: (ef.mean(of3), "any"),
                lambda: (ef.median(of3), "any"),
            ]
    if shape.paths("str"):
        word, _ = _part(shape, shape.paths("str")[0])
        makers += [lambda: (ef.string_agg(word, separator="+"), "str")]
    makers += [
        lambda: (ef.product(function(f"({shape.number(choices)}) % 3 - 1")), "int"),
        lambda: (ef.bool_or(function(shape.condition(choices))), "any"),
        lambda: (ef.count().then(function("r % 2")), "int"),
    ]
    return choices.pick(makers)()


def _part(shape: RowShape, path: str) -> tuple[Any, str]:
    dtype = next(k for at, k in enumerate(shape.dtypes) if shape.path(at) == path)
    name = path.removeprefix("r.")
    return (name if name in shape.names else function(path)), dtype


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
