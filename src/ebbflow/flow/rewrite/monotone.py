"""Loops in which more is more: those whose fixed point does not depend on the order of rounds.

A body is *monotone* when more rows of the variable never make fewer rows of the result. Where it
takes the least or the greatest value of each key, values must only get better (`better`).

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

from typing import NamedTuple

from ebbflow.flow.plan import Concat, Distinct, Iterate, Join, LoopInput, Node, Reduce
from ebbflow.flow.rewrite.better import choice_of, disorder
from ebbflow.flow.rewrite.terms import Choice, NotMonotone, Term, named, stripped, where


class Monotone(NamedTuple):
    """A monotone loop: the ways to derive rows from the variable, what is there without it, and how
    the rows of a key are chosen, where every row is not simply there once."""

    terms: tuple[Term, ...]
    constants: tuple[Term, ...]
    choice: Choice | None


def monotone(node: Iterate) -> Monotone | NotMonotone:
    """What is derived in a monotone loop that runs to its fixed point; for any other loop, why it
    is not one.

    >>> from ebbflow.flow.plan import Map, Plan, Source
    >>> from ebbflow.fn import Fn
    >>> roots, reached = Source(name="roots"), LoopInput(name="reached")
    >>> def loop(result):
    ...     return Iterate(starts=(roots,), imports=(), outside=(), priorities=(None,),
    ...                    body=Plan({"reached": result}))
    >>> double = Map(parent=reached, fn=Fn(lambda n: 2 * n % 9))
    >>> both = Concat(parts=(reached, double), signs=(1, 1))
    >>> len(monotone(loop(Distinct(parent=both))).terms)
    1
    >>> monotone(loop(Distinct(parent=double))).why
    "rows of 'reached' are not all in the next round: the body does not add to what there is"
    """
    if len(node.starts) > 1:
        return NotMonotone(f"it has {len(node.starts)} variables")
    if node.rounds is not None:
        return NotMonotone(f"it leaves after {node.rounds} rounds, not at the fixed point")
    if node.priorities != (None,):
        return NotMonotone("rows enter by priority")
    if node.limit == 1:  # then it tells whether the first round leaves out rows of the start
        return NotMonotone("it has one round")
    (variable,), (result,) = node.variables, node.body.outputs.values()
    if not isinstance(result, (Distinct, Reduce)):
        return NotMonotone(f"its body ends with {named(result)}, not with distinct, min or max")
    if not all(each.bag for each in node.parents):
        return NotMonotone("rows that enter may have a negative weight")
    whole = result.parent
    if isinstance(whole, Concat) and min(whole.signs, default=1) < 0:
        return NotMonotone(f"rows are taken away in its body{where(whole)}")
    terms: list[Term] = []
    for part in whole.parts if isinstance(whole, Concat) else (whole,):
        term = _term(part)
        if isinstance(term, NotMonotone):
            return term
        terms.append(term)
    if not _has_start(node, variable, terms):
        return NotMonotone(
            f"rows of {variable!r} are not all in the next round: the body does not add to what "
            "there is"
        )
    deriving: list[Term] = []
    constants: list[Term] = []
    for term in terms:
        of, other = (
            each is not None and each.name == variable for each in (term.input, term.other)
        )
        turned = term._replace(input=term.other or term.input, side=1 - term.side, other=term.input)
        if other and term.before:
            return NotMonotone(f"a join reads {variable!r} through steps on one side{where(term)}")
        if of and other:
            deriving += [term, turned]
        elif other:
            deriving.append(turned)
        elif of:
            deriving += [term] if term.join or term.before else []
        elif term.join is None:
            constants.append(term)
        else:
            return NotMonotone(f"it joins two collections from outside{where(term)}")
    choice = choice_of(result) if isinstance(result, Reduce) else None
    if isinstance(choice, NotMonotone):
        return choice
    for term in deriving:
        why = "" if choice is None else disorder(node, term, choice, constants)
        if why:
            return NotMonotone(f"{why}{where(term)}")
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


def _term(part: Node) -> Term | NotMonotone:
    after, part = stripped(part)
    if isinstance(part, LoopInput):
        return Term(part, after)
    if not isinstance(part, Join):
        return NotMonotone(f"its body has {named(part)}")
    (steps, left), (more, right) = stripped(part.left), stripped(part.right)
    if not isinstance(left, LoopInput) or not isinstance(right, LoopInput):
        other = right if isinstance(left, LoopInput) else left
        return NotMonotone(f"a join in its body reads {named(other)}")
    if more and steps:
        return NotMonotone(f"a join in its body has steps on both sides{where(part)}")
    return (
        Term(right, more, part, 1, left, after)
        if more
        else Term(left, steps, part, 0, right, after)
    )
