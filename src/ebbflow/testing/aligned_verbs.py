"""Verbs of generated programs whose rows meet by their places in an order, or match a pattern."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import ebbflow as ef
from ebbflow.testing.functions import Choices, function
from ebbflow.testing.grown import Grown, Pool, Verb, chosen, one
from ebbflow.testing.reducers import reducer
from ebbflow.testing.verbs import a_bag, two_keys


def _asof(pool: Pool, choices: Choices) -> Grown | None:
    both = _two(pool, choices, multiplies=False)
    if both is None:
        return None
    left, right = both
    how = choices.pick(("left", "inner"))
    options, unit = _places(left, right, choices)
    options |= _on(left, right, choices)
    options["direction"] = choices.pick(("backward", "forward", "nearest"))
    if choices.pick((0, 0, 1)):
        options["tolerance"] = unit
    if choices.pick((0, 0, 1)):
        options["allow_exact"] = False
    text, dtypes = chosen(left, right, how, choices)
    rows = left.rows.asof_join(right.rows, how=how, select=function(text, "l, r"), **options)
    return left.then(rows, dtypes, bag=True)


def _interval(pool: Pool, choices: Choices) -> Grown | None:
    how = choices.pick(("inner", "left", "semi", "anti"))
    both = _two(pool, choices, multiplies=how in ("inner", "left"))
    if both is None:
        return None
    left, right = both
    options, unit = _places(left, right, choices)
    options |= _on(left, right, choices)
    low, high = choices.pick(((0, 1), (-1, 1), (1, 2), (-2, -1)))
    options |= {"low": low * unit, "high": high * unit, "how": how}
    if how in ("semi", "anti"):
        return left.then(left.rows.interval_join(right.rows, **options), bag=True)
    text, dtypes = chosen(left, right, how, choices)
    rows = left.rows.interval_join(right.rows, select=function(text, "l, r"), **options)
    return left.then(rows, dtypes, bag=True, degree=left.degree + right.degree)


def _two(pool: Pool, choices: Choices, *, multiplies: bool) -> tuple[Grown, Grown] | None:
    """Two bags; where they are multiplied, of a low degree."""
    left = a_bag(pool, choices)
    if left is None:
        return None
    most = 3 - left.degree if multiplies else 3
    right = one(pool, choices, lambda each: each.bag and each.degree <= most)
    return None if right is None else (left, right)


def _on(left: Grown, right: Grown, choices: Choices) -> dict[str, Any]:
    if not choices.pick((1, 1, 0)):
        return {}
    ours, theirs = two_keys(left, right, choices)
    return {"left_on": ours.given, "right_on": theirs.given}


def _places(left: Grown, right: Grown, choices: Choices) -> tuple[dict[str, Any], Any]:
    """What rows of both are ordered by, and a unit of distance in it."""
    alike = [
        dtype
        for dtype in ("int", "maybe", "time", "zoned")
        if dtype in left.shape.dtypes and dtype in right.shape.dtypes
    ]
    if alike and bool(choices.pick((1, 0))):
        dtype = choices.pick(alike)
        ours, theirs = (each.shape.key(choices, dtype).given for each in (left, right))
        unit: Any = 1 if dtype in ("int", "maybe") else timedelta(hours=5)
        return {"left_order": ours, "right_order": theirs}, unit
    numbers = [function(each.shape.number(choices)) for each in (left, right)]
    return dict(zip(("left_order", "right_order"), numbers, strict=True)), 1


def _match(pool: Pool, choices: Choices) -> Grown | None:
    of = a_bag(pool, choices)
    if of is None:
        return None
    steps: dict[str, Any] = {}
    dtypes = []
    for name in ("m1", "m2", "m3")[: choices.pick((2, 1, 3))]:
        fits = function(of.shape.condition(choices))
        unless = function(of.shape.condition(choices)) if choices.pick((0, 0, 1)) else None
        if choices.pick((0, 0, 1)):
            made, dtype = reducer(of.shape, choices, ("library",))
            steps[name] = ef.many(fits, made, unless=unless)
        else:
            steps[name], dtype = ef.once(fits, unless=unless), "any"
        dtypes.append(dtype)
    options: dict[str, Any] = {"order": function(of.shape.number(choices))}
    if choices.pick((0, 1)):
        options["within"] = choices.pick((1, 2))
    if choices.pick((0, 0, 1)):
        options["adjacent"] = True
    if choices.pick((1, 0)):
        key = of.shape.key(choices)
        options["per"] = function(key.text)
        dtypes.insert(0, key.dtype)
    return of.then(of.rows.match(steps, **options), dtypes)


ALIGNED_VERBS: dict[str, Verb] = {
    "asof_join": _asof,
    "interval_join": _interval,
    "match": _match,
}
