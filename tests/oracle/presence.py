"""What every verb makes of rows with negative weights, as one table of plain arithmetic.

The two sides are `plus - minus` of two inputs each, so that any weight can be had. `TABLE` has for
every verb a program of them, and the weights that it must give, computed from the weights of the
sides as dicts: a row is *present* when its weight is positive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NamedTuple

import ebbflow as ef
from ebbflow.zset import ZSet

Weights = dict[Any, int]


class Part(NamedTuple):
    k: int
    v: int


A = ef.Input("a_plus", Part) - ef.Input("a_minus", Part)
B = ef.Input("b_plus", Part) - ef.Input("b_minus", Part)
C = B.select("k", u="v")
"""The rows of B under other names, for joins."""


def _set(keep: Callable[[int, int], bool]) -> Callable[[Weights, Weights], Weights]:
    def rows(a: Weights, b: Weights) -> Weights:
        return {row: 1 for row in {**a, **b} if keep(a.get(row, 0), b.get(row, 0))}

    return rows


def _sum(sign: int) -> Callable[[Weights, Weights], Weights]:
    return lambda a, b: {row: a.get(row, 0) + sign * b.get(row, 0) for row in {**a, **b}}


def _has(rows: Weights, key: int) -> bool:
    return any(row.k == key and weight > 0 for row, weight in rows.items())


def _inner(a: Weights, b: Weights) -> Weights:
    return {
        (left.k, left.v, right.v): n * m
        for left, n in a.items()
        for right, m in b.items()
        if left.k == right.k
    }


def _left(a: Weights, b: Weights) -> Weights:
    return {(row.k, row.v, None): n for row, n in a.items() if not _has(b, row.k)}


def _right(a: Weights, b: Weights) -> Weights:
    return {(row.k, None, row.v): m for row, m in b.items() if not _has(a, row.k)}


def _doubled(row: Part) -> Part:
    return Part(row.k, 2 * row.v)


TABLE: dict[str, tuple[Any, Callable[[Weights, Weights], Weights]]] = {
    "map": (A.map(_doubled), lambda a, b: {_doubled(row): n for row, n in a.items()}),
    "filter": (A.filter(lambda row: row.v > 0), lambda a, b: {r: n for r, n in a.items() if r.v}),
    "+": (A + B, _sum(1)),
    "-": (A - B, _sum(-1)),
    "distinct": (A.distinct(), _set(lambda n, m: n > 0)),
    "union": (A.union(B), _set(lambda n, m: n > 0 or m > 0)),
    "union of three": ((A - B).union(B).union(A), _set(lambda n, m: max(n - m, m, n) > 0)),
    "intersect": (A.intersect(B), _set(lambda n, m: n > 0 and m > 0)),
    "except": (A.except_(B), _set(lambda n, m: n > 0 and m <= 0)),
    "semi": (
        A.join(C, on="k", how="semi"),
        lambda a, b: {row: n for row, n in a.items() if _has(b, row.k)},
    ),
    "anti": (
        A.join(C, on="k", how="anti"),
        lambda a, b: {row: n for row, n in a.items() if not _has(b, row.k)},
    ),
    "inner": (A.join(C, on="k"), _inner),
    "left": (A.join(C, on="k", how="left"), lambda a, b: _inner(a, b) | _left(a, b)),
    "right": (A.join(C, on="k", how="right"), lambda a, b: _inner(a, b) | _right(a, b)),
    "full": (
        A.join(C, on="k", how="full"),
        lambda a, b: _inner(a, b) | _left(a, b) | _right(a, b),
    ),
}
REFUSED = {
    "reduce": A.reduce(ef.count()),
    "agg": A.group_by("k").agg(n=ef.sum("v")),
    "top_k": A.top_k(1, order="v"),
    "session": A.session("v", 1),
    "through": A.through(ef.operator.distinct()),
}


def program(verbs: Iterable[str] = TABLE) -> Any:
    """These rows of the table at once."""
    return ef.program(**{f"o{i}": TABLE[verb][0] for i, verb in enumerate(verbs)})


def check(
    step: Callable[[Any], Any],
    value: Callable[[], Any],
    dice: Random,
    epochs: int,
    verbs: Iterable[str] = TABLE,
) -> None:
    """Steps of the program, after each of which all outputs are what the table says."""
    sides: dict[str, dict[Any, int]] = {name: {} for name in program().plan.sources}
    for _ in range(epochs):
        epoch: dict[str, Any] = {}
        for name in dice.sample(sorted(sides), dice.randint(1, 4)):
            rows = [Part(dice.randrange(2), dice.randrange(3)) for _ in range(dice.randint(1, 3))]
            moved = {row: dice.randint(-sides[name].get(row, 0), 2) for row in rows}
            for row, weight in moved.items():
                sides[name][row] = sides[name].get(row, 0) + weight
            epoch[name] = ZSet(moved)
        step(epoch)
        found = value()
        a, b = (
            {row: plus.get(row, 0) - minus.get(row, 0) for row in {**plus, **minus}}
            for plus, minus in (
                (sides["a_plus"], sides["a_minus"]),
                (sides["b_plus"], sides["b_minus"]),
            )
        )
        for i, verb in enumerate(verbs):
            expected = {row: weight for row, weight in TABLE[verb][1](a, b).items() if weight}
            assert dict(found[f"o{i}"].items()) == expected, (verb, a, b)
