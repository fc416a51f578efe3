"""Loops in which more is more: those whose fixed point does not depend on the order of rounds.

A body is *monotone* when more rows of the variable never make fewer rows of the result. Where it
takes the least or the greatest value of each key, better values must never make worse ones, and no
value may be better than the one that it is made from: a cost that is added must be known not to be
negative, from a constant or a `filter(lambda road: road.cost >= 0)` outside.

If also every row of the start is in the result of the first round, rounds only add, and what they
come to is the smallest solution: the start, and all that can be derived from it. It does not matter
then in which round a row was found, only that it was found from rows that were there before it.

What is recognised here are bodies of the form

    (start + term + ... + term).distinct()
    (start + term + ... + term).group_by(key).agg(value=min or max)

in which a term is the variable through steps on one row at a time, with at most one join on the
way. Where the variable is among the terms, as in `reached.union(...)`, the start is too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ebbflow import reducer
from ebbflow.expression import Constant, Expression, Get, Operation, Record, Row, Tuple
from ebbflow.flow.plan import (
    Concat,
    Distinct,
    Filter,
    FlatMap,
    Fused,
    FusedStep,
    Iterate,
    Join,
    LoopInput,
    Map,
    Node,
    Reduce,
)
from ebbflow.flow.rewrite.traced import conjuncts
from ebbflow.flow.types import classes
from ebbflow.fn import Fn
from ebbflow.record import fields_of

Steps = tuple[FusedStep, ...]
NUMBERS = {int, float}
"""Numbers of which `a + b` is never less than `a` when `b` is not negative: a `Decimal` of more digits
than there is room for may be rounded down."""


class Term(NamedTuple):
    """One way to derive rows: rows of an input through `before`; where there is a `join`, on its
    side `side`, with the rows of `other`; then through `after`."""

    input: LoopInput
    before: Steps
    join: Join | None = None
    side: int = 0
    other: LoopInput | None = None
    after: Steps = ()


class Choice(NamedTuple):
    """Of the rows of each key, the least `value`, or the greatest."""

    reduce: Reduce
    value: str
    greatest: bool
    is_float: bool


class Monotone(NamedTuple):
    """A monotone loop: the ways to derive rows from the variable, what is there without it, and how
    the rows of a key are chosen, where every row is not simply there once."""

    terms: tuple[Term, ...]
    constants: tuple[Term, ...]
    choice: Choice | None


def monotone(node: Iterate) -> Monotone | None:
    """What is derived in a monotone loop that runs to its fixed point; None for any other loop.

    >>> from ebbflow.flow.plan import Plan, Source
    >>> roots, reached = Source(name="roots"), LoopInput(name="reached")
    >>> def loop(result):
    ...     return Iterate(starts=(roots,), imports=(), outside=(), priorities=(None,),
    ...                    body=Plan({"reached": result}))
    >>> double = Map(parent=reached, fn=Fn(lambda n: 2 * n % 9))
    >>> both = Concat(parts=(reached, double), signs=(1, 1))
    >>> len(monotone(loop(Distinct(parent=both))).terms)
    1
    >>> monotone(loop(Distinct(parent=double))) is None
    True
    """
    if len(node.starts) > 1 or node.rounds is not None or node.priorities != (None,):
        return None
    if node.limit == 1:  # then it tells whether the first round leaves out rows of the start
        return None
    (variable,), (result,) = node.variables, node.body.outputs.values()
    if not isinstance(result, (Distinct, Reduce)) or not all(each.bag for each in node.parents):
        return None
    whole = result.parent
    if isinstance(whole, Concat) and min(whole.signs, default=1) < 0:
        return None
    found = [_term(part) for part in (whole.parts if isinstance(whole, Concat) else (whole,))]
    terms = [term for term in found if term is not None]
    if len(terms) < len(found) or not _has_start(node, variable, terms):
        return None
    choice = _choice(result) if isinstance(result, Reduce) else None
    deriving: list[Term] = []
    constants: list[Term] = []
    for term in terms:
        of, other = (
            each is not None and each.name == variable for each in (term.input, term.other)
        )
        turned = term._replace(input=term.other or term.input, side=1 - term.side, other=term.input)
        if of and other:
            if term.before:
                return None
            deriving += [term, turned]
        elif other:
            if term.before:
                return None
            deriving.append(turned)
        elif of:
            deriving += [term] if term.join or term.before else []
        elif term.join is None:
            constants.append(term)
        else:
            return None
    if isinstance(result, Reduce) and (
        choice is None or not all(_keeps_order(node, term, choice) for term in deriving)
    ):
        return None
    return Monotone(tuple(deriving), tuple(constants), choice)


def _has_start(node: Iterate, variable: str, terms: list[Term]) -> bool:
    """Whether all rows of the start are in the result of the first round."""
    start = node.starts[0]
    if isinstance(start, Concat) and not start.parts:
        return True
    for term in terms:
        if term.join is None and not term.before and not term.after:
            name = term.input.name
            if name == variable or node.imports[node.outside.index(name)] == start:
                return True
    return False


def _term(part: Node) -> Term | None:
    after, part = _stripped(part)
    if isinstance(part, LoopInput):
        return Term(part, after)
    if not isinstance(part, Join):
        return None
    (steps, left), (more, right) = _stripped(part.left), _stripped(part.right)
    if not isinstance(left, LoopInput) or not isinstance(right, LoopInput):
        return None
    if more:
        return None if steps else Term(right, more, part, 1, left, after)
    return Term(left, steps, part, 0, right, after)


def _stripped(node: Node) -> tuple[Steps, Node]:
    """The steps on one row at a time that end in a node, and what they begin with."""
    steps: Steps = ()
    while isinstance(node, (Map, Filter, FlatMap, Fused)):
        if isinstance(node, Fused):
            steps = (*node.steps, *steps)
        else:
            steps = (FusedStep(verb=node.verb, fn=node.fn, place=node.place), *steps)
        node = node.parent
    return steps, node


# ---- the least and the greatest ----


def _choice(node: Reduce) -> Choice | None:
    made = getattr(node.reducer, "made", None)
    fields, inner = fields_of(node.type), fields_of(node.parent.type)
    if made is None or node.spread or not fields or not inner or not node.parent.bag:
        return None
    maker, given, options = made
    if maker not in (reducer.min, reducer.max) or options or len(given) != 1:
        return None
    if not isinstance(given[0], str) or given[0] not in inner:
        return None
    if not _number(inner[given[0]]) or node.key is None or node.key.expression is None:
        return None
    floats = float in (classes(inner[given[0]]) or ())
    return Choice(node, given[0], maker is reducer.max, floats)


def _number(hint: Any) -> bool:
    found = classes(hint)
    return found is not None and set(found) <= NUMBERS and len(found) == 1


def _keeps_order(node: Iterate, term: Term, choice: Choice) -> bool:
    """Whether better values in the variable give better values of the same keys, and a value is
    never better than the one that it is made from."""
    fields, inner = (list(fields_of(each.type) or ()) for each in (choice.reduce, term.input))
    if fields != inner or (term.other is not None and term.other.name in node.variables):
        return False
    value = Get(term.side, fields[-1], len(fields) - 1)
    if any(step.verb != "filter" or _uses(step.fn, 0, value.name) for step in term.before):
        return False
    made: Expression | None = Row(0)
    if term.join is not None:
        key = (term.join.left_key, term.join.right_key)[term.side]
        made = None if _uses(key, 0, value.name) else term.join.merge.expression
    for step in term.after:
        made = _through(step.fn.expression, made) if step.verb == "map" else None
    assert choice.reduce.key is not None
    key_made = _through(choice.reduce.key.expression, made)
    value_made = _through(_field(choice), made)
    if key_made is None or value_made is None or _touches(key_made, value):
        return False
    if choice.is_float and _misleads_nan(value_made, value, choice.greatest):
        return False
    signs = _signs(node, term)
    return _rises(value_made, value) and _no_better(value_made, value, choice.greatest, signs)


def _signs(node: Iterate, term: Term) -> set[Expression]:
    """The fields of the other side that are known not to be negative: a filter says so."""
    if term.other is None:
        return set()
    below: Node = node.imports[node.outside.index(term.other.name)]
    steps, _ = _stripped(below)
    found: set[Expression] = set()
    while steps and steps[-1].verb == "filter":
        for each in conjuncts(steps[-1].fn):
            made = each.expression
            if (
                isinstance(made, Operation)
                and made.op in (">", ">=")
                and _not_negative(made.args[1], set())
            ):
                least = made.args[0]
                found |= (
                    {Get(1 - term.side, least.name, least.index)}
                    if isinstance(least, Get)
                    else set()
                )
        steps = steps[:-1]
    return found


def _field(choice: Choice) -> Get:
    inner = list(fields_of(choice.reduce.parent.type) or ())
    return Get(0, choice.value, inner.index(choice.value))


def _uses(fn: Fn, arg: int, name: str) -> bool:
    """Whether a function may read a field."""
    reads = fn.reads[arg] if fn.expression is not None else None
    return reads is None or name in reads


def _through(outer: Expression | None, inner: Expression | None) -> Expression | None:
    """An expression of a row, where that row is made by another expression."""
    if outer is None or inner is None:
        return None

    def by(leaf: Row | Get) -> Expression:
        if isinstance(leaf, Get) and isinstance(inner, Record):
            return inner.items[leaf.index]
        if isinstance(leaf, Get) and isinstance(inner, Row):
            return Get(inner.arg, leaf.name, leaf.index)
        return inner

    return outer.substitute(by)


def _touches(made: Expression, value: Get) -> bool:
    """Whether an expression may depend on the value."""
    return any(
        each == value or (isinstance(each, Row) and each.arg == value.arg) for each in made.walk()
    )


def _rises(made: Expression, value: Get) -> bool:
    """Whether an expression never gets smaller when the value gets greater."""
    if not _touches(made, value) or made == value:
        return True
    if not isinstance(made, Operation):
        return False
    if made.op == "-":
        return _rises(made.args[0], value) and not _touches(made.args[1], value)
    return made.op in ("+", "max", "min") and all(_rises(each, value) for each in made.args)


def _no_better(made: Expression, value: Get, greatest: bool, known: set[Expression]) -> bool:
    """Whether an expression is never smaller than the value, or with `greatest` never greater."""
    if made == value:
        return True
    if not isinstance(made, Operation):
        return False
    parts = [_no_better(each, value, greatest, known) for each in made.args]
    if made.op in ("max", "min"):
        return any(parts) if (made.op == "min") == greatest else all(parts)
    if made.op == "+" and not greatest:
        rest = [each for each, part in zip(made.args, parts, strict=True) if not part]
        return parts.count(True) == 1 and all(_not_negative(each, known) for each in rest)
    return made.op == "-" and greatest and parts[0] and _not_negative(made.args[1], known)


def _misleads_nan(made: Expression, value: Get, greatest: bool) -> bool:
    """Whether NaN, which is greater than all numbers, may make something better of a value: where
    the greatest is taken, `inf - inf` is NaN; where the least is, `max(1.0, nan)` is 1.0, though
    `max(nan, 1.0)` is NaN."""
    return any(
        each.op == "-" if greatest
        else each.op in ("max", "min") and not _touches(each.args[0], value)
        for each in made.walk()
        if isinstance(each, Operation)
    )  # fmt: skip


def _not_negative(made: Expression, known: set[Expression]) -> bool:
    if isinstance(made, Constant):
        return type(made.value) in NUMBERS and bool(made.value >= 0)
    return made in known


def keeps_value(term: Term, choice: Choice) -> bool:
    """Whether what a term derives has the very value that the fact has."""
    side = 0 if term.join is None else term.side
    fields = list(fields_of(choice.reduce.type) or ())
    made: Expression | None = Row(0) if term.join is None else term.join.merge.expression
    for step in term.after:
        made = _through(step.fn.expression, made) if step.verb == "map" else None
    return _through(_field(choice), made) == Get(side, fields[-1], len(fields) - 1)


def found_by_key(term: Term, choice: Choice | None) -> bool:
    """Whether the key of a join tells which fact it is, and nothing else of the fact is needed but
    its value: then facts need no index of their own."""
    join = term.join
    if join is None or term.before:
        return False
    key = (join.left_key, join.right_key)[term.side].expression
    read = join.merge.reads[term.side]
    if choice is None:
        return key == Row(0) and read == frozenset()
    fields = list(fields_of(choice.reduce.type) or ())
    own = [Get(0, name, i) for i, name in enumerate(fields[:-1])]
    return key == (own[0] if len(own) == 1 else Tuple(tuple(own))) and read == frozenset(fields[-1:])
