"""Deriving rows in a monotone loop: the terms of its body as generated functions.

A term turns a fact into *derivations*: what is derived, from which round on, and how often. For a
collection of facts a derivation is `(row, round, count)`. Where a value is chosen for each key it
is `(key, (mark, round), count)`, with a *mark* in whose order the best value comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ebbflow.chain import Chain, RowStep, grouping, key_source
from ebbflow.codegen import GeneratedLoop
from ebbflow.flow.plan import FusedStep
from ebbflow.flow.rewrite.monotone import Choice, Term
from ebbflow.record import fields_of
from ebbflow.state.index import Index

Derivations = list[tuple[Any, Any, int]]

_CONSEQUENCES = """
    out = []
    for row in (fact,):
        $before
        mine = $mine
        $find
        if key in groups:
            for their, count in groups[key].items():
                $merge
                $after
                out.append(($what, $at, count))
    return out
"""
_STEPS_ONLY = """
    out = []
    for row in (fact,):
        $before
        out.append(($what, $at, 1))
    return out
"""
_TRIGGERED = """
    out = []
    for key, pairs in found.items():
        for fact in facts.get(key, ()):
            number = $number
            for row in (fact,):
                $before
                mine = $mine
                $skip
                for their, count in pairs:
                    $merge
                    $after
                    out.append(($what, $at, count))
    return out
"""
_BY_KEY = """
    found = {}
    for pair in pairs:
        for row in (pair[0],):
            $before
            key = $key
            if key not in found:
                found[key] = [pair]
            elif found[key][-1] is not pair:
                found[key].append(pair)
    return found
"""


class DerivedTerm:
    """One term, ready to run.

    `theirs` holds the rows it is joined with, by key; `mine`, where these may change from outside,
    the facts by key.
    """

    def __init__(self, term: Term, choice: Choice | None, name: str) -> None:
        self.term, self.choice = term, choice
        self.itself = term.other is not None and term.other.name == name
        self.before = Chain([_row_step(step) for step in term.before])
        self.after = Chain([_row_step(step) for step in term.after])
        self.theirs: Index[Any, Any] | None = None
        self.mine: Index[Any, Any] | None = None
        join = term.join
        if join is None:
            self.consequences = self._generated(_STEPS_ONLY, "consequences", "fact, number")
            return
        keys = (join.left_key, join.right_key)
        self.my_key, self.their_key = keys[term.side], keys[1 - term.side]
        self.theirs = Index(self.their_key, None, grouping(self.their_key, None, join), bag=True)
        self.consequences = self._generated(
            _CONSEQUENCES, "consequences", "fact, number, groups, rounds"
        )
        self.grouping = self._grouping()
        if self.itself:
            return
        self.mine = Index(None, None, self.grouping, bag=False)
        self.triggered = self._generated(_TRIGGERED, "triggered", "found, facts, rounds")

    def derive(self, fact: Any, number: Any, rounds: Any) -> Derivations:
        """What a fact of this round derives."""
        if self.theirs is None:
            found: Derivations = self.consequences(fact, number)
            return found
        return self.consequences(fact, number, self.theirs.groups, rounds)  # type: ignore[no-any-return]

    def _generated(self, template: str, title: str, parameters: str) -> Callable[..., Any]:
        term, loop = self.term, GeneratedLoop(title, parameters)
        join: Any = term.join
        last = self.before if join is None else self.after
        lines: dict[str, Any] = {}
        if join is not None:
            sides = ("mine", "their") if term.side == 0 else ("their", "mine")
            made = join.merge.kept(loop.bind, *sides, hint=join.type)
            key = key_source(loop, self.my_key, "mine")
            lines = {
                "find": partial(loop.write, f"key = {key}", join, "mine"),
                "skip": partial(loop.write, f"if {key} != key: continue", join, "mine"),
                "merge": partial(loop.write, f"row = {made}", join, *sides),
            }
        what, at = last.last_row, "number"
        if self.itself:
            at = "max(number, rounds[their])"
        if self.choice is not None:
            what, at = _marked(loop, self.choice, last.last_row, at)
        loop.template(
            template, join or (term.before[-1] if term.before else None), "fact",
            before=partial(self.before.write, loop), after=partial(self.after.write, loop),
            mine=self.before.last_row, what=what, at=at, number=_number(self.choice), **lines,
        )  # fmt: skip
        return loop.function()

    def _grouping(self) -> Callable[..., Any]:
        loop = GeneratedLoop("grouping", "pairs")
        loop.template(
            _BY_KEY, self.term.join, "row", before=partial(self.before.write, loop),
            key=key_source(loop, self.my_key, self.before.last_row),
        )  # fmt: skip
        return loop.function()


def _number(choice: Choice | None) -> str:
    """Python text for the round of a fact."""
    if choice is None:
        return "rounds[fact]"
    width = choice.reduce.width
    return f"rounds[{'fact[0]' if width == 1 else f'tuple(fact[:{width}])'}][1]"


def _row_step(step: FusedStep) -> RowStep:
    return RowStep(step.verb, step.fn, step)


def _marked(loop: GeneratedLoop, choice: Choice, row: str, at: str) -> tuple[str, str]:
    """Python text for the key of a candidate row, and for its mark and round."""
    inner = list(fields_of(choice.reduce.parent.type) or ())
    value = f"{row}[{inner.index(choice.value)}]"
    key = key_source(loop, choice.reduce.key, row)
    return key, f"({mark_source(choice, value)}, {at})"


def mark_source(choice: Choice, value: str) -> str:
    """Python text for the mark of a value: better values have smaller marks. NaN, which is greater
    than all numbers, and not equal to itself, has a mark of its own."""
    sign = "-" if choice.greatest else ""
    if not choice.is_float:
        return f"{sign}{value}"
    is_nan = f"{value} {'==' if choice.greatest else '!='} {value}"
    return f"({is_nan}, {sign}{value} if {value} == {value} else 0.0)"
