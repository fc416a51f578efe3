"""Values that only get better, where a loop takes the least or the greatest of each key.

Better values must never make worse ones, and no value may be better than the one that it is made
from: a cost that is added must be known not to be negative, from a constant or a
`filter(lambda road: road.cost >= 0)` outside. Of floats one must also know that no -inf meets inf:
that a start has a value which is written down, or that a filter compares with a number; or a filter
does that with the costs, from above. Of texts there is only the least, handed on as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, isfinite
from typing import Any

from ebbflow import reducer
from ebbflow.expression import Constant, Expression, Get, Operation, Record, Row, Tuple
from ebbflow.expression.node import field_of
from ebbflow.flow.plan import Concat, FusedStep, Iterate, Node, Reduce
from ebbflow.flow.rewrite.terms import Choice, NotMonotone, Steps, Term, named, stripped, where
from ebbflow.flow.rewrite.traced import condition, conjuncts
from ebbflow.flow.types import classes
from ebbflow.fn import Fn
from ebbflow.record import fields_of

NUMBERS = {int, float}
"""Numbers of which `a + b` is never less than `a` when `b` is not negative: a `Decimal` of more
digits than there is room for may be rounded down."""


def choice_of(node: Reduce) -> Choice | NotMonotone:
    made: Any = getattr(node.reducer, "made", None)
    maker, given, options = (None, (), {}) if made is None else made
    fields, inner = fields_of(node.type), fields_of(node.parent.type)
    if maker not in (reducer.min, reducer.max) or options or node.spread:
        return NotMonotone(f"its body ends with {named(node)}, that is not one min or max")
    if not fields or not inner or node.key is None or node.key.expression is None:
        return NotMonotone(f"the fields or the key of its reduce cannot be seen{where(node)}")
    if not node.parent.bag:
        return NotMonotone(f"rows of a negative weight may come to its reduce{where(node)}")
    if len(given) != 1 or not isinstance(given[0], str) or given[0] not in inner:
        return NotMonotone(f"its {maker.__name__} is not of one field{where(node)}")
    least = maker is reducer.min
    if not _number(inner[given[0]]) and not (least and classes(inner[given[0]]) == (str,)):
        texts = ", nor of texts" if least else ""
        return NotMonotone(
            f"its {maker.__name__} is not of numbers of one type{texts}{where(node)}"
        )
    floats = float in (classes(inner[given[0]]) or ())
    return Choice(node, given[0], not least, floats)


def _number(hint: Any) -> bool:
    found = classes(hint)
    return found is not None and set(found) <= NUMBERS and len(found) == 1


def disorder(node: Iterate, term: Term, choice: Choice, constants: list[Term]) -> str:
    """Why better values in the variable may not give better values of the same keys, or why a value
    may be better than the one that it is made from; nothing where neither can be."""
    fields, inner = (list(fields_of(each.type) or ()) for each in (choice.reduce, term.input))
    if fields != inner:
        return "its rows have other fields than its variable"
    name = fields[-1]
    if term.other is not None and term.other.name in node.variables:
        return "it joins its variable with itself, for a min or max"
    value = Get(term.side, name, len(fields) - 1)
    if any(step.verb != "filter" or may_read(step.fn, 0, value.name) for step in term.before):
        return f"steps before its join may look at {name!r}"
    made: Expression | None = Row(0)
    if term.join is not None:
        key = (term.join.left_key, term.join.right_key)[term.side]
        if may_read(key, 0, value.name):
            return f"its join may look at {name!r}"
        made = term.join.merge.expression
    for step in term.after:
        made = _through(step.fn.expression, made) if step.verb == "map" else None
    assert choice.reduce.key is not None
    key_made = _through(choice.reduce.key.expression, made)
    value_made = _through(_field(choice), made)
    if key_made is None or value_made is None:
        return f"it cannot be seen how {name!r} is made"
    if _touches(key_made, value):
        return f"the key may depend on {name!r}"
    if choice.is_float and _misleads_nan(value_made, value, choice.greatest):
        return f"a NaN may make a better {name!r}"
    if choice.is_float and not _finite(node, term, value_made, value, choice, constants):
        return f"nothing says that no infinite {name!r} meets one of the other sign"
    better = "greater" if choice.greatest else "smaller"
    if not _rises(value_made, value):
        return f"a {better} {name!r} may make one that is not {better}"
    not_negative = _bounded(node, term, (">", ">="), lambda bound: bound >= 0)
    if not _no_better(value_made, value, choice.greatest, not_negative):
        return (
            f"what is made of a {name!r} may be {better} than it: nothing says that what is "
            + ("subtracted" if choice.greatest else "added")
            + " is not negative"
        )
    return ""


def _bounded(
    node: Iterate, term: Term, signs: tuple[str, ...], fits: Callable[[Any], bool]
) -> set[Expression]:
    """The fields of the other side of which a filter says that they compare so with a number that
    fits."""
    if term.other is None:
        return set()
    steps, _ = stripped(node.imports[node.outside.index(term.other.name)])
    found: set[Expression] = set()
    while steps and steps[-1].verb == "filter":
        found |= {
            type(field)(1 - term.side, field.name, field.index)
            for field, bound in _compared(steps[-1], signs)
            if fits(bound)
        }
        steps = steps[:-1]
    return found


def _compared(step: FusedStep, signs: tuple[str, ...]) -> Iterator[tuple[Get, Any]]:
    """The fields that a filter compares by one of these signs with a number, and the number."""
    for each in conjuncts(step.fn):
        made = each.expression
        if isinstance(made, Operation) and made.op in signs:
            field, bound = made.args
            if isinstance(field, Get) and _is_number(bound):
                yield field, bound.value  # type: ignore[attr-defined]


def _is_number(made: Expression) -> bool:
    return isinstance(made, Constant) and type(made.value) in NUMBERS


def _field(choice: Choice) -> Get:
    inner = list(fields_of(choice.reduce.parent.type) or ())
    return field_of(0, choice.value, inner.index(choice.value), choice.reduce.parent.type)


def may_read(fn: Fn, arg: int, name: str) -> bool:
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
            return type(leaf)(inner.arg, leaf.name, leaf.index)
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


def _finite(
    node: Iterate, term: Term, made: Expression, value: Get, choice: Choice, constants: list[Term]
) -> bool:
    """Whether no sum of floats can be `-inf + inf`, which is NaN: as all that is added is known to
    be less than infinite, or no row that enters has -inf."""
    if not any(isinstance(each, Operation) and each.op == "+" for each in made.walk()):
        return True
    costs = _bounded(node, term, ("<", "<="), lambda bound: bound < inf)
    costs |= _bounded(node, term, ("<",), lambda bound: bound == inf)
    leaves = [each for each in made.walk() if isinstance(each, (Get, Constant))]
    if all(
        isfinite(leaf.value) if isinstance(leaf, Constant) else leaf == value or leaf in costs
        for leaf in leaves
    ):
        return True
    entering: list[tuple[Node, Steps]] = [(node.starts[0], ())]
    for each in constants:
        entering.append((node.imports[node.outside.index(each.input.name)], each.before))
    return all(_has_bound(below, steps, choice) for below, steps in entering)


def _has_bound(below: Node, steps: Steps, choice: Choice) -> bool:
    """Whether rows are known to have a value that is no -inf: one that is written down, or that a
    filter compares with a number."""
    before, first = stripped(below)
    for step in reversed((*before, *steps)):
        if step.verb == "filter":
            if any(
                field.name == choice.value and bound > -inf
                for field, bound in _compared(step, (">", ">="))
            ):
                return True
        else:
            made = _through(_field(choice), step.fn.expression) if step.verb == "map" else None
            return made is not None and _is_number(made) and bool(made.value > -inf)  # type: ignore[attr-defined]
    return isinstance(first, Concat) and not first.parts


def _not_negative(made: Expression, known: set[Expression]) -> bool:
    return made in known or (_is_number(made) and bool(made.value >= 0))  # type: ignore[attr-defined]


def keeps_value(term: Term, choice: Choice) -> bool:
    """Whether what a term derives has the very value that the fact has."""
    side = 0 if term.join is None else term.side
    fields = list(fields_of(choice.reduce.type) or ())
    made: Expression | None = Row(0) if term.join is None else term.join.merge.expression
    for step in term.after:
        made = _through(step.fn.expression, made) if step.verb == "map" else None
    return _through(_field(choice), made) == Get(side, fields[-1], len(fields) - 1)


def key_of_plain(term: Term, choice: Choice) -> Fn | None:
    """The key of what a join derives, in terms of the joined rows, where these are only put
    together: then no row need be made to see it."""
    made = None if term.join is None or term.after else term.join.merge.expression
    if not isinstance(made, Record) or choice.reduce.key is None:
        return None
    if not all(isinstance(item, (Row, Get, Constant)) for item in made.items):
        return None
    assert term.join is not None
    return condition(term.join.merge, choice.reduce.key, plain=True)


def read_by_place(term: Term) -> bool:
    """Whether all that a term reads of a fact are fields, by their places: then a plain tuple will
    do for its row."""
    join = term.join
    if join is None or term.before:
        return False
    key = (join.left_key, join.right_key)[term.side].expression
    made = join.merge.expression
    if key is None or made is None:
        return False
    read = [each for each in key.walk() if isinstance(each, (Row, Get))]
    read += [e for e in made.walk() if isinstance(e, (Row, Get)) and e.arg == term.side]
    return all(type(each) is Get for each in read)


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
    whole = own[0] if len(own) == 1 else Tuple(tuple(own))
    return key == whole and read == frozenset(fields[-1:])
