"""Loops of generated programs: a body is grown like a program, with variables in its pool.

Rows of a variable have few values, whatever the body makes of them, so that most loops come to an
end; those that do not have a low limit, and raise `NoFixedPoint`. What a body gives is *finished*
in one of several ways: with the variable or without it, as a set, as the least value of each key,
as a few of the rows; and, where the number of rounds is given, as any collection, also one that
owes rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ebbflow as ef
from ebbflow.errors import MayNotEnd
from ebbflow.testing.functions import Choices, Pair, RowShape, function
from ebbflow.testing.grown import Grown, Pool, one

Grow = Callable[[Pool], None]
Loop = Callable[[Pool, Choices, Grow], "Grown | None"]

ANY_PART = {"str": "'a'", "maybe": "None", "float": "0.5"}
SETS = ("union", "sum, distinct", "start, distinct", "distinct", "least", "greatest", "top", "it")
BAGS = ("as it is", "sum")
OWING = ("less", "less of it", "negative")
ROUNDS = (None, None, 2, None, 1, 3, None, 0)
LIMITS = (12, 30, 12, 4, 1)
HIGH_LIMITS = (30, 60)
"""Of loops with several variables: one that no other reads is not waited for (`tighten`), so with a
limit that is just reached engines may differ."""


@dataclass(frozen=True)
class Form:
    """What the rows of a variable are: pairs, ints, tuples, or rows of two named fields. The second
    part of the last two is of a `dtype`."""

    structure: str
    dtype: str

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of the parts."""
        return ("int",) if self.structure == "int" else ("int", self.dtype)

    def rows(self, of: Grown, choices: Choices) -> Any:
        """Rows of this form, made of those of a collection."""
        first = f"({of.shape.number(choices)}) % 3"
        if self.structure == "int":
            return of.rows.map(function(f"({of.shape.number(choices)}) % 5"), type=int)
        second = f"({of.shape.number(choices)}) % 4"
        if self.dtype != "int":
            second = choices.pick([*of.shape.paths(self.dtype), ANY_PART[self.dtype]])
        if self.dtype == "float":
            second = f"min(max({second}, -1.0), 2.0)"
        if self.dtype == "maybe":
            second = f"None if ({second}) is None else ({second}) % 4"
        if self.structure == "pair":
            return of.rows.map(function(f"Pair({first}, {second})"), type=Pair)
        if self.structure == "tuple":
            return of.rows.map(function(f"({first}, {second})"))
        return of.rows.select(k=function(first), v=function(second))

    def grown(self, rows: Any, **facts: Any) -> Grown:
        """A collection of such rows."""
        if self.structure == "int":
            return Grown(rows, RowShape(("int",), whole=True), **facts)
        return Grown(rows, RowShape.of(self.dtypes, rows.node.type), **facts)


@dataclass(frozen=True)
class Variable:
    """A variable of a loop: the form of its rows, what it starts as, and how what the body gives
    is finished."""

    form: Form
    start: Any
    finish: str
    priority: Any

    @property
    def bag(self) -> bool:
        """Whether no row of it is owed."""
        return self.finish not in OWING

    def finished(self, rows: Any, given: Any, choices: Choices) -> Any:
        """What the body gives, from `rows` of the variable itself and others that were made."""
        match self.finish:
            case "union":
                return rows.union(given)
            case "sum, distinct":
                return (rows + given).distinct()
            case "start, distinct":
                return (self.start + given).distinct()
            case "distinct":
                return given.distinct()
            case "least" | "greatest":
                best = ef.min if self.finish == "least" else ef.max
                if self.form.structure == "int":
                    return (rows + given).reduce(best()).map(function("r[0]"), type=int)
                if self.form.structure == "tuple":
                    reduced = (rows + given).group_by(function("r[0]"))
                    return reduced.reduce(best(function("r[1]"))).map(function("(r[0], r[1])"))
                return (rows + given).group_by("k").agg(v=best("v"))
            case "top":
                smallest = choices.pick((True, False))
                return (rows + given).top_k(2, order=function("r"), smallest=smallest)
            case "it":
                return rows
            case "as it is":
                return given
            case "sum":
                return rows + given
            case "less":
                return rows - given
            case "less of it":
                return given - rows
        return -given


def _variable(pool: Pool, choices: Choices, rounds: int | None) -> Variable:
    structure = choices.pick(("pair", "int", "fields", "tuple"))
    dtype = choices.pick(("int", "int", *ANY_PART)) if structure in ("fields", "tuple") else "int"
    form = Form(structure, dtype)
    of = one(pool, choices) or pool[-1]
    finish = choices.pick(SETS if rounds is None or rounds > 3 else (*SETS, *BAGS, *OWING, *OWING))
    start = form.rows(of, choices)
    if not of.bag and finish not in OWING:
        start = start.distinct()
    what = choices.pick(("as it is", "as it is", "empty", "distinct"))
    if what == "empty":
        start = ef.empty(start.node.type)
    elif what == "distinct":
        start = start.distinct()
    whole = form.grown(start).shape
    number = choices.pick((None, None, f"abs({whole.number(choices)}) % 3"))
    return Variable(form, start, finish, None if number is None else function(number))


def _grown(
    variables: dict[str, Variable], rows: dict[str, Any], pool: Pool, choices: Choices, grow: Grow
) -> dict[str, Any]:
    """What a body gives for each variable."""
    inside = [
        each.form.grown(rows[name], bag=each.bag, degree=1 if each.finish in SETS else 2)
        for name, each in variables.items()
    ]
    made = [*pool, *inside]
    grow(made)
    found = {}
    for at, (name, each) in enumerate(variables.items()):
        of = made[-1 - at] if at < len(made) - len(pool) else made[-1]
        given = each.form.rows(of, choices)
        if each.bag and not of.bag:
            given = given.distinct()
        found[name] = each.finished(rows[name], given, choices)
    return found


def _iterate(pool: Pool, choices: Choices, grow: Grow) -> Grown | None:
    rounds, limit = choices.pick(ROUNDS), choices.pick(LIMITS)
    variable, number = _variable(pool, choices, rounds), choices.number

    def body(rows: Any) -> Any:
        found = _grown({"rows": variable}, {"rows": rows}, pool, Choices(number), grow)
        return found["rows"]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MayNotEnd)
        made = variable.start.iterate(body, rounds=rounds, limit=limit, priority=variable.priority)
    return _left(variable, made)


def _fixpoint(pool: Pool, choices: Choices, grow: Grow) -> Grown | None:
    rounds, limit = choices.pick(ROUNDS), choices.pick(HIGH_LIMITS)
    names = "pqs"[: choices.pick((2, 2, 3))]
    variables = {name: _variable(pool, choices, rounds) for name in names}
    number = choices.number

    def body(*rows: Any) -> dict[str, Any]:
        of = dict(zip(names, rows, strict=True))
        return _grown(variables, of, pool, Choices(number), grow)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MayNotEnd)
        made = ef.fixpoint(
            body, rounds=rounds, limit=limit,
            priority={n: each.priority for n, each in variables.items() if each.priority},
            **{name: each.start for name, each in variables.items()},
        )  # fmt: skip
    *more, last = [_left(each, made[name]) for name, each in variables.items()]
    pool += more
    return last


# ---- loops in which more is more ----


def _closure(pool: Pool, choices: Choices, grow: Grow) -> Grown | None:
    """A loop that only adds: rows, through steps and joins, give more rows."""
    limit = choices.pick((30, 30, 30, 5, 2, 1))
    form = Form(choices.pick(("pair", "int", "fields")), "int")
    of = one(pool, choices, lambda each: each.bag) or pool[0]
    start = choices.pick((form.rows(of, choices), ef.empty(form.rows(of, choices).node.type)))
    finish = choices.pick(("union", "sum, distinct", "start, distinct"))
    variable, number = Variable(form, start, finish, None), choices.number
    bags = [each for each in pool if each.bag]

    def body(rows: Any) -> Any:
        inner = Choices(number)
        terms = [_term(form.grown(rows), bags, form, inner) for _ in range(inner.pick((1, 2, 3)))]
        given = terms[0]
        for term in terms[1:]:
            given += term
        return variable.finished(rows, given, inner)

    return _left(variable, start.iterate(body, limit=limit))


def _term(rows: Grown, pool: Pool, form: Form, choices: Choices) -> Any:
    """One way to make rows: rows of a variable through steps, with rows of the pool or with
    themselves."""
    mine: Grown = rows
    match choices.pick(("as it is", "filter", "as it is", "map", "flat_map")):
        case "filter":
            mine = rows.then(rows.rows.filter(function(rows.shape.condition(choices))))
        case "map":
            mine = form.grown(form.rows(rows, choices))
        case "flat_map":
            mine = rows.then(rows.rows.flat_map(function("[r, r]"), type=rows.type))
    what = choices.pick(("outside", "outside", "itself", "nothing", "constant"))
    if what == "constant":
        mine = one(pool, choices) or pool[-1]
    if what in ("constant", "nothing"):
        return form.rows(mine, choices)
    other = rows if what == "itself" else one(pool, choices) or pool[-1]
    wide = choices.pick((False, False, True))
    keys = [
        f"({a}, {b})" if wide else a
        for a, b in (
            (each.shape.number(choices), f"({each.shape.number(choices)}) % 2")
            for each in (mine, other)
        )
    ]
    sides = [(mine, keys[0]), (other, keys[1])]
    (left, ours), (right, theirs) = choices.pick((sides, sides[::-1]))
    merge = f"Pair({left.shape.number(choices, 'l')}, {right.shape.number(choices, 'r')} + 1)"
    joined = left.rows.join(
        right.rows, left_on=function(ours), right_on=function(theirs),
        select=function(merge, "l, r"),
    )  # fmt: skip
    return form.rows(Grown(joined, RowShape.of_type(Pair)), choices)


def _shortest(pool: Pool, choices: Choices, grow: Grow) -> Grown | None:
    """A loop that takes the least or the greatest value of each key, along weighted edges."""
    limit, dtype = choices.pick((30, 30, 30, 5, 2, 1)), choices.pick(("int", "float"))
    form = Form("fields", dtype)
    of, over = (one(pool, choices, lambda each: each.bag) or pool[0] for _ in range(2))
    greatest = choices.pick((False, True))
    finish = "greatest" if greatest else "least"
    start = choices.pick((form.rows(of, choices), ef.empty(form.rows(of, choices).node.type)))
    paths = over.shape.paths(dtype)
    cost = choices.pick(paths) if paths else f"{over.shape.number(choices)}"
    ends = [f"({over.shape.number(choices)} + {n}) % 5" for n in choices.pick(((0, 1), (1, 0)))]
    edges = over.rows.select(
        here=function(ends[0]), there=function(ends[1]), cost=function(f"{cost}")
    ).filter(function(choices.pick(("r.cost >= 0", "r.cost > 0"))))
    if dtype == "float":
        edges = edges.filter(function("r.cost < 100.0"))
    sign = "-" if greatest else "+"
    value = choices.pick((
        f"l.v {sign} r.cost", f"l.v {sign} 1", f"l.v {sign} r.cost {sign} 1",
        f"{'min' if greatest else 'max'}(l.v, r.cost)", "l.v",
    ))  # fmt: skip
    variable, number = Variable(form, start, finish, None), choices.number
    made = function(f"{'Pair' if dtype == 'int' else 'Scored'}(r.there, {value})", "l, r")

    def body(rows: Any) -> Any:
        inner = Choices(number)
        joined = rows.join(edges, left_on="k", right_on="here", select=made)
        more = inner.pick((None, None, form.rows(of, inner)))
        given = joined.select(k="k", v="v")
        return variable.finished(rows, given if more is None else given + more, inner)

    return _left(variable, start.iterate(body, limit=limit))


def _left(variable: Variable, rows: Any) -> Grown:
    return variable.form.grown(rows, bag=variable.bag, degree=1 if variable.finish in SETS else 3)


LOOPS: dict[str, Loop] = {
    "iterate": _iterate,
    "fixpoint": _fixpoint,
    "closure": _closure,
    "shortest": _shortest,
}
LOOP_NAMES = tuple(LOOPS)
