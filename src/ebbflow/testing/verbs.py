"""The verbs of generated programs: each makes one more collection of those there are.

A verb looks for collections it can be applied to, decides the rest by the numbers it is given, and
builds through the same methods that a user calls. What must be known of a collection goes along
with it: the shape of its rows, whether it is a *bag* for certain (behind `-` it may not be), and
its *degree*, which is how many inputs have been multiplied: it is kept low, so that results stay
small.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ebbflow.flow.descending import desc
from ebbflow.flow.types import common
from ebbflow.testing.compare_verbs import COMPARE_VERBS
from ebbflow.testing.functions import ORDERED, TYPES, Choices, Pair, RowKey, function
from ebbflow.testing.grown import Grown, Pool, Verb, chosen, one, two
from ebbflow.testing.operators import ON_TWO, OPERATORS, VALUE
from ebbflow.testing.reducers import SORTS, reducer
from ebbflow.testing.reshape_verbs import RESHAPE_VERBS

HOWS = ("inner", "left", "semi", "anti", "right", "full")


# ---- one row at a time ----


def _filter(pool: Pool, choices: Choices) -> Grown | None:
    of = pool[-1] if (found := one(pool, choices)) is None else found
    return of.then(of.rows.filter(function(of.shape.condition(choices))))


def _map(pool: Pool, choices: Choices) -> Grown | None:
    of = one(pool, choices) or pool[-1]
    result = choices.pick(("pair", "term", "tuple"))
    if result == "pair":
        k, v = of.shape.number(choices), of.shape.number(choices)
        made = function(f"Pair({k}, {v} + 1)")
        return of.then(of.rows.map(made, type=Pair), ("int", "int"))
    text, dtype = of.shape.term(choices)
    if result == "term":
        hint = choices.pick((None, TYPES[dtype]))
        return of.then(of.rows.map(function(text), type=hint), (dtype,), whole=True)
    other, second = of.shape.term(choices)
    return of.then(of.rows.map(function(f"({text}, {other})")), (dtype, second))


def _flat_map(pool: Pool, choices: Choices) -> Grown | None:
    of = one(pool, choices) or pool[-1]
    result = choices.pick(("same", "pairs", "ints"))
    number = of.shape.number(choices)
    if result == "same":
        text = choices.pick(("[r, r]", f"[r] * (({number}) % 3)", "(r,)"))
        return of.then(of.rows.flat_map(function(text), type=of.type))
    if result == "pairs":
        made = function(f"[Pair({number}, i) for i in range(2)]")
        return of.then(of.rows.flat_map(made, type=Pair), ("int", "int"))
    made = function(f"range(({number}) % 3)")
    return of.then(of.rows.flat_map(made, type=int), ("int",), whole=True)


def _select(pool: Pool, choices: Choices) -> Grown | None:
    of = one(pool, choices, lambda each: each.shape.names)
    if of is None:
        return None
    names, dtypes = of.shape.names, dict(zip(of.shape.names, of.shape.dtypes, strict=True))
    chosen = list(dict.fromkeys(choices.pick(names) for _ in range(choices.pick((1, 2)))))
    parts = [dtypes[name] for name in chosen]
    if not choices.pick((0, 1)) or "x" in chosen:
        return of.then(of.rows.select(*chosen), parts)
    text, dtype = of.shape.term(choices)
    return of.then(of.rows.select(*chosen, x=function(text)), [*parts, dtype])


# ---- two collections ----


def _fit(first: Grown) -> Callable[[Grown], object]:
    """Whether rows of another collection can be added to those of the first."""
    return lambda each: each.shape == first.shape and common(first.type, each.type) is not None


def _two_alike(
    pool: Pool, choices: Choices, *, same: bool = True
) -> tuple[Grown, Grown, dict[str, Any]]:
    left = one(pool, choices) or pool[-1]
    others = pool if same else [each for each in pool if each is not left]
    right = one(others, choices, _fit(left)) or left
    facts = {"bag": left.bag and right.bag, "degree": max(left.degree, right.degree)}
    return left, right, facts


def _plus(pool: Pool, choices: Choices) -> Grown | None:
    left, right, facts = _two_alike(pool, choices)
    return left.then(left.rows + right.rows, **facts)


def _minus(pool: Pool, choices: Choices) -> Grown | None:
    left, right, facts = _two_alike(pool, choices, same=False)
    form = choices.pick(("some of it", "one of each", "another", "another, distinct", "another"))
    if form == "some of it":
        return left.then(left.rows - left.rows.filter(function(left.shape.condition(choices))))
    if form == "one of each":
        return left.then(left.rows - left.rows.distinct())
    rest = left.rows - right.rows
    if form == "another":
        return left.then(rest, **{**facts, "bag": False})
    return left.then(rest.distinct(), **{**facts, "bag": True})


def _owing(left: Any, right: Any, choices: Choices) -> tuple[Any, Any]:
    """Two collections for a set verb, one of which may owe rows that the other has."""
    form = choices.pick(("as they are", "left negative", "as they are", "right negative"))
    if form == "left negative":
        return left - right, right
    return (left, right - left) if form == "right negative" else (left, right)


def _sets(verb: str) -> Verb:
    def apply(pool: Pool, choices: Choices) -> Grown | None:
        left, right, facts = _two_alike(pool, choices)
        first, second = _owing(left.rows, right.rows, choices)
        return left.then(getattr(first, verb)(second), **{**facts, "bag": True})

    return apply


def _joins(how: str) -> Verb:
    def apply(pool: Pool, choices: Choices) -> Grown | None:
        both = two(pool, choices)
        return None if both is None else _join(*both, how, choices)

    return apply


def _join(left: Grown, right: Grown, how: str, choices: Choices) -> Grown:
    ours, theirs = two_keys(left, right, choices)
    on = {"left_on": ours.given, "right_on": theirs.given}
    shared = ours.name if ours.name and ours.name == theirs.name else ""
    if shared:
        on = {"on": shared}
    if how in ("semi", "anti"):
        return left.then(left.rows.join(right.rows, **on, how=how))
    facts = {"bag": left.bag and right.bag, "degree": left.degree + right.degree}
    natural = _merged(left, right, how, shared)
    if natural is None or choices.pick((0, 0, 1)):
        text, dtypes = chosen(left, right, how, choices)
        merge = function(text, "l, r")
        return left.then(left.rows.join(right.rows, **on, how=how, select=merge), dtypes, **facts)
    return left.then(left.rows.join(right.rows, **on, how=how), natural, **facts)


def two_keys(left: Grown, right: Grown, choices: Choices) -> tuple[RowKey, RowKey]:
    """Keys of both sides that can be equal; by preference a field that both have."""
    common_names = [
        RowKey(left.shape, f"r.{name}", dtype)
        for name, dtype in zip(left.shape.names, left.shape.dtypes, strict=False)
        if dtype != "any"
        and (name, dtype) in zip(right.shape.names, right.shape.dtypes, strict=False)
    ]
    if common_names and bool(choices.pick((1, 1, 0))):
        ours = choices.pick(common_names)
        return ours, RowKey(right.shape, ours.text, ours.dtype)
    dtypes = [dtype for dtype in ("int", "str", "maybe", *ORDERED) if dtype in left.shape.dtypes]
    alike = [dtype for dtype in dtypes if dtype in right.shape.dtypes]
    if not alike:
        numbers = left.shape.number(choices), right.shape.number(choices)
        return RowKey(left.shape, numbers[0], "int"), RowKey(right.shape, numbers[1], "int")
    dtype = choices.pick(alike)
    return left.shape.key(choices, dtype), right.shape.key(choices, dtype)


def _merged(left: Grown, right: Grown, how: str, shared: str) -> list[str] | None:
    """The dtypes of merged rows; None where names clash or only one side has names."""
    ours, theirs = left.shape, right.shape
    left_open, right_open = how in ("right", "full"), how in ("left", "full")
    if not ours.names and not theirs.names:
        return ["any", "any"]
    if not (ours.names and theirs.names) or set(ours.names) & set(theirs.names) - {shared}:
        return None
    first = [
        dtype if name == shared or not left_open else _open(dtype)
        for name, dtype in zip(ours.names, ours.dtypes, strict=True)
    ]
    second = [
        dtype if not right_open else _open(dtype)
        for name, dtype in zip(theirs.names, theirs.dtypes, strict=True)
        if name != shared
    ]
    return first + second


def _open(dtype: str) -> str:
    return "maybe" if dtype in ("int", "maybe") else "any"


def _cross(pool: Pool, choices: Choices) -> Grown | None:
    both = two(pool, choices)
    if both is None:
        return None
    left, right = both
    facts = {"bag": left.bag and right.bag, "degree": left.degree + right.degree}
    natural = _merged(left, right, "inner", "")
    if natural is not None:
        return left.then(left.rows.cross(right.rows), natural, **facts)
    text, dtypes = chosen(left, right, "inner", choices)
    crossed = left.rows.cross(right.rows, select=function(text, "l, r"))
    return left.then(crossed, dtypes, **facts)


# ---- rows of one key ----


def _distinct(pool: Pool, choices: Choices) -> Grown | None:
    of = one(pool, choices) or pool[-1]
    return of.then(of.rows.distinct(), bag=True)


def a_bag(pool: Pool, choices: Choices) -> Grown | None:
    return one(pool, choices, lambda each: each.bag)


def _reduces(*sorts: str) -> Verb:
    """Groups, or all rows, through reducers of these sorts."""

    def apply(pool: Pool, choices: Choices) -> Grown | None:
        of = a_bag(pool, choices)
        if of is None:
            return None
        grouped, keys = _grouped(of, choices)
        made, dtype = reducer(of.shape, choices, sorts)
        if not choices.pick((0, 1)) and "value" not in keys:
            return of.then(grouped.reduce(made), [*keys.values(), dtype], degree=1)
        names = [name for name in ("n", "total", "best", "more") if name not in keys]
        results, dtypes = {names[0]: made}, [*keys.values(), dtype]
        if choices.pick((0, 1)):
            results[names[1]], another = reducer(of.shape, choices, SORTS)
            dtypes.append(another)
        return of.then(grouped.agg(**results), dtypes, degree=1)

    return apply


def _grouped(of: Grown, choices: Choices) -> tuple[Any, dict[str, str]]:
    """The rows or groups to be reduced, and the fields of the key with their dtypes."""
    form = choices.pick(("one", "function", "two", "named", "all"))
    first, second = of.shape.key(choices), of.shape.key(choices)
    if form == "all":
        return of.rows, {}
    if form == "two" and first.name and second.name and first.name != second.name:
        names = {first.name: first.dtype, second.name: second.dtype}
        return of.rows.group_by(first.name, second.name), names
    if form == "named":
        return of.rows.group_by(m=function(first.text)), {"m": first.dtype}
    if form == "one" and first.name:
        return of.rows.group_by(first.name), {first.name: first.dtype}
    return of.rows.group_by(function(first.text)), {"key": first.dtype}


def _top_k(pool: Pool, choices: Choices) -> Grown | None:
    of = a_bag(pool, choices)
    if of is None:
        return None
    by: Any = function(of.shape.number(choices))
    orders = ("int", "str", "maybe", *ORDERED)
    if of.shape.paths(*orders):
        by = choices.pick((of.shape.key(choices, *orders).given, by))
    per = of.shape.key(choices).given if bool(choices.pick((1, 0))) else None
    n, smallest = choices.pick((1, 2, 3)), choices.pick((False, True))
    if not choices.pick((1, 1, 0)):
        by = choices.pick((desc(by), (function(of.shape.number(choices)), desc(by))))
    if choices.pick((1, 1, 0)):
        return of.then(of.rows.top_k(n, order=by, per=per, smallest=smallest), degree=1)
    offset = choices.pick((1, 0, 2, 3))
    first = of.rows.limit(n, order=by, offset=offset, per=per, descending=not smallest)
    return of.then(first, degree=1)


def _windows(verb: str) -> Verb:
    def apply(pool: Pool, choices: Choices) -> Grown | None:
        def fits(each: Grown) -> bool:
            named = {"window_start", "window_end"} & {*each.shape.names}
            return not named and (each.bag or verb != "session")

        of = one(pool, choices, fits)
        if of is None:
            return None
        time: Any = function(of.shape.number(choices))
        dtype = "int"
        unit: Any = 1
        clocks = [each for each in ("int", "time", "zoned") if each in of.shape.dtypes]
        if clocks and bool(choices.pick((1, 0))):
            dtype = choices.pick(clocks[::-1])
            time = of.shape.key(choices, dtype).given
            unit = 1 if dtype == "int" else timedelta(hours=5)
        size, every = choices.pick((2, 1, 3)) * unit, choices.pick((1, 2)) * unit
        if verb == "tumbling":
            rows = of.rows.tumbling(time, size)
        elif verb == "sliding":
            rows = of.rows.sliding(time, size, every)
        else:
            per = of.shape.key(choices).given if bool(choices.pick((1, 0))) else None
            rows = of.rows.session(time, size, per=per)
        dtypes = of.shape.dtypes if of.shape.names else ("any",)
        return of.then(rows, [*dtypes, dtype, dtype])

    return apply


# ---- a user's own operators ----


def _through(pool: Pool, choices: Choices) -> Grown | None:
    of = a_bag(pool, choices)
    if of is None:
        return None
    operator, gives = choices.pick(OPERATORS)(of.shape.condition(choices))
    key = of.shape.key(choices) if choices.pick((0, 1)) else None
    per = None if key is None else function(key.text) if key.name == "value" else key.given
    rows = of.rows.through(operator, per=per)
    front = [] if key is None else [key.dtype]
    if gives == VALUE:
        return of.then(rows, [*front, "int"], degree=1)
    return of.then(rows, [*front, "any"] if front else gives)


def _through_two(pool: Pool, choices: Choices) -> Grown | None:
    both = two([each for each in pool if each.bag], choices)
    if both is None:
        return None
    left, right = both
    operator, gives = choices.pick(ON_TWO)
    if not choices.pick((0, 1)):
        rows, front = left.rows.through(operator, right.rows), []
    else:
        ours, theirs = two_keys(left, right, choices)
        per = {"left_per": function(ours.text), "right_per": function(theirs.text)}
        rows, front = left.rows.through(operator, right.rows, **per), [ours.dtype]
    degree = left.degree + right.degree
    if gives == VALUE:
        return left.then(rows, [*front, "int"], degree=1)
    if front:
        return left.then(rows, [*front, "any"], degree=degree)
    return left.then(rows, ["any", "any"] if gives == "pairs" else None, degree=degree)


# What is simpler comes first, and before everything that is a form of it.
SIMPLE: dict[str, Verb] = {
    "filter": _filter,
    "map": _map,
    "flat_map": _flat_map,
    "select": _select,
    "distinct": _distinct,
    "plus": _plus,
    "minus": _minus,
    "union": _sets("union"),
    "intersect": _sets("intersect"),
    "except": _sets("except_"),
    "join": _joins("inner"),
    "cross": _cross,
    "semi": _joins("semi"),
    "anti": _joins("anti"),
    "left": _joins("left"),
    "right": _joins("right"),
    "full": _joins("full"),
    "reduce": _reduces("library"),
    "invertible": _reduces("invertible"),
    "partial": _reduces("partial"),
    "tree": _reduces("tree"),
    "refold": _reduces("refold"),
    "top_k": _top_k,
    "tumbling": _windows("tumbling"),
    "sliding": _windows("sliding"),
    "session": _windows("session"),
    "through": _through,
    "through two": _through_two,
    **RESHAPE_VERBS,
    **COMPARE_VERBS,
}
