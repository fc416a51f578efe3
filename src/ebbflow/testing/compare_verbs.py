"""Verbs of generated programs that compare rows of two collections."""

from __future__ import annotations

from typing import Any

from ebbflow.flow.compare import between, ge, gt, le, lt, ne
from ebbflow.reducer import count, max, mean, min
from ebbflow.testing.functions import ORDERED, Choices, function
from ebbflow.testing.grown import Grown, Pool, Verb, chosen, one, two

SIGNS = (lt, ne, ge, gt, le)
HOWS = ("semi", "inner", "anti", "left", "right", "full")


def _part(left: Grown, right: Grown, choices: Choices) -> tuple[Any, Any]:
    """Parts of both sides that can be compared."""
    dtypes = [each for each in ("int", "str", "maybe", *ORDERED) if each in left.shape.dtypes]
    alike = [each for each in dtypes if each in right.shape.dtypes]
    if not alike or choices.pick((0, 0, 0, 1)):
        numbers = left.shape.number(choices), right.shape.number(choices)
        return function(numbers[0]), function(numbers[1])
    dtype = choices.pick(alike)
    return left.shape.key(choices, dtype).given, right.shape.key(choices, dtype).given


def _where(left: Grown, right: Grown, choices: Choices) -> Any:
    first = choices.pick(SIGNS)(*_part(left, right, choices))
    form = choices.pick(("one", "two", "one", "range"))
    if form == "one":
        return first
    if form == "two":
        return first, choices.pick(SIGNS)(*_part(left, right, choices))
    at = left.shape.number(choices)
    low, high = right.shape.number(choices), right.shape.number(choices)
    return between(function(at), function(f"{low} - 1"), function(f"{high} + 1"))


def _compare_join(pool: Pool, choices: Choices) -> Grown | None:
    both = two(pool, choices)
    if both is None:
        return None
    left, right = both
    how = choices.pick(HOWS)
    on: dict[str, Any] = {}
    if choices.pick((1, 1, 0)):
        ours, theirs = left.shape.number(choices), right.shape.number(choices)
        on = {"left_on": function(f"{ours} % 2"), "right_on": function(f"{theirs} % 2")}
    given = {**on, "how": how, "where": _where(left, right, choices)}
    if how in ("semi", "anti"):
        return left.then(left.rows.join(right.rows, **given))
    text, dtypes = chosen(left, right, how, choices)
    joined = left.rows.join(right.rows, **given, select=function(text, "l, r"))
    facts = {"bag": left.bag and right.bag, "degree": left.degree + right.degree}
    return left.then(joined, dtypes, **facts)


def _scalar_filter(pool: Pool, choices: Choices) -> Grown | None:
    """Rows compared with one row: of all rows of another collection, or of those of a key."""
    left, right = one(pool, choices), one(pool, choices, lambda each: each.bag)
    if left is None or right is None:
        return None
    ours, theirs = left.shape.number(choices, "l"), right.shape.number(choices)
    made = choices.pick((mean, min, max))(function(theirs))
    sign = choices.pick(("<", ">", "<=", ">=", "==", "!="))
    text = choices.pick((f"{ours} {sign} r.m", f"r.m {sign} {ours}", f"({ours} - r.m) {sign} 0"))
    if choices.pick((0, 0, 1)) and left.shape.paths("float", row="l"):
        text = f"{choices.pick(left.shape.paths('float', row='l'))} {sign} r.m"
    condition = function(text, "l, r")
    if choices.pick((1, 0)):
        of = right.rows.agg(m=made, n=count())
        return left.then(left.rows.filter(condition, of))
    of = right.rows.group_by(key=function(f"{theirs} % 2")).agg(m=made, n=count())
    number = left.shape.number(choices)
    given = {"left_on": function(f"{number} % 2"), "right_on": "key"}
    return left.then(left.rows.filter(condition, of, **given))


COMPARE_VERBS: dict[str, Verb] = {"compare": _compare_join, "scalar": _scalar_filter}
