"""Deriving rows in a monotone loop: the terms of its body as generated functions.

A term turns a fact into *derivations*: what is derived, from which round on, and how often. For a
collection of facts a derivation is `(row, round, count)`. Where a value is chosen for each key it
is `(key, (mark, round), count)`, with a *mark* in whose order the best value comes first.

Facts come as pairs, as the loop has them: a row and its round, or a key and `(mark, round)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Any

from ebbflow.chain import Chain, RowStep, grouping, key_source
from ebbflow.codegen import GeneratedLoop
from ebbflow.expression.node import field_of
from ebbflow.flow.plan import FusedStep
from ebbflow.flow.rewrite.better import (
    found_by_key,
    keeps_value,
    key_of_plain,
    read_by_place,
)
from ebbflow.flow.rewrite.terms import Choice, Term, of_rest, rest_of_row
from ebbflow.fn import Fn
from ebbflow.nan import NAN
from ebbflow.record import fields_of
from ebbflow.reducer.shape import ResultShape
from ebbflow.state.index import Index

Derivations = list[tuple[Any, Any, int]]

_CONSEQUENCES = """
    out = []
    for fact, at in facts:
        $row
        $before
        $mine
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
    for fact, at in facts:
        $row
        $before
        out.append(($what, $at, 1))
    return out
"""
_ENTERING = """
    out = []
    for row, count in rows.items():
        $before
        out.append(($what, $at, count))
    return out
"""
_TRIGGERED = """
    out = []
    for key, pairs in found.items():
        for fact in facts.get(key, ()):
            at = $known
            $number
            row = fact
            $before
            $mine
            $skip
            for their, count in pairs:
                $merge
                $after
                out.append(($what, $at, count))
    return out
"""
_TRIGGERED_BY_KEY = """
    out = []
    for fact, pairs in found.items():
        at = rounds.get(fact)
        if at is not None:
            $row
            $mine
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

    `theirs` holds the rows it is joined with, by key; `mine`, where these may change from outside
    and their key is not that of the facts, the facts by key. Unless rows are kept `whole`, of those
    that have one field besides their key only that is kept, the `rest`.
    """

    def __init__(self, term: Term, choice: Choice | None, name: str, whole: bool = True) -> None:
        self.term, self.choice = term, choice
        self.itself = term.other is not None and term.other.name == name
        self.rest = None if whole or self.itself else rest_of_row(term)
        self.before = Chain([_row_step(step) for step in term.before])
        self.after = Chain([_row_step(step) for step in term.after])
        self.theirs: Index[Any, Any] | None = None
        self.mine: Index[Any, Any] | None = None
        join = term.join
        if join is None:
            self.consequences = self._generated(_STEPS_ONLY, "consequences", "facts")
            return
        keys = (join.left_key, join.right_key)
        self.my_key, self.their_key = keys[term.side], keys[1 - term.side]
        by_key = grouping(self.their_key, None, join, self.rest)
        self.theirs = Index(self.their_key, None, by_key, bag=True)
        self.consequences = self._generated(_CONSEQUENCES, "consequences", "facts, groups, rounds")
        self.grouping = self._grouping()
        if self.itself:
            return
        if found_by_key(term, choice):
            self.triggered = self._generated(_TRIGGERED_BY_KEY, "triggered", "found, rounds")
            return
        self.mine = Index(None, None, self.grouping, bag=False)
        self.triggered = self._generated(_TRIGGERED, "triggered", "found, facts, rounds")

    @cached_property
    def entering(self) -> Callable[..., Derivations]:
        """What rows from outside derive in a round, each with its weight; for a term without a
        join."""
        return self._generated(_ENTERING, "entering", "rows, number")

    def loops(self) -> tuple[Callable[..., Any], ...]:
        """The functions that are generated for it, for `explain("python")`."""
        if self.theirs is None or self.itself:
            return (self.consequences,)
        more = () if self.mine is None else (self.grouping,)
        return (self.consequences, self.triggered, *more)

    def derive(self, facts: Iterable[tuple[Any, Any]], rounds: Any) -> Derivations:
        """What facts derive, each given with its round."""
        if self.theirs is None:
            found: Derivations = self.consequences(facts)
            return found
        return self.consequences(facts, self.theirs.groups, rounds)  # type: ignore[no-any-return]

    def _generated(self, template: str, title: str, parameters: str) -> Callable[..., Any]:
        term, choice, loop = self.term, self.choice, GeneratedLoop(title, parameters)
        join: Any = term.join
        last = self.before if join is None else self.after
        holes: dict[str, Any] = {"row": "row = fact", "number": "", "known": "rounds[fact]"}
        holes["mine"] = f"mine = {self.before.last_row}"
        if join is not None:
            sides = ("mine", "their") if term.side == 0 else ("their", "mine")
            made = self._of_rest(join.merge).kept(loop.bind, *sides, hint=join.type)
            key = key_source(loop, self.my_key, "mine")
            skip = partial(loop.write, f"if {key} != key: continue", join, "mine")
            several = any(step.verb == "flat_map" for step in self.before.steps)
            holes |= {
                "find": partial(loop.write, f"key = {key}", join, "mine"),
                "skip": skip if several else "",
                "merge": partial(loop.write, f"row = {made}", join, *sides),
            }
        what, at = last.last_row, "max(at, rounds[their])" if self.itself else "at"
        if template is _ENTERING:
            at = "number"
        if choice is not None:
            what, mark = _marked(loop, choice, last.last_row)
            passed = template is not _ENTERING and keeps_value(term, choice)
            at = "at" if passed else f"({mark}, number)"
            found = key_of_plain(term, choice) if passed else None
            if found is not None:
                what, holes["merge"] = self._of_rest(found).kept(loop.bind, *sides), ""
            row = row_source(loop, choice, "fact", "mark", plain=read_by_place(term))
            key = "fact[0]" if choice.reduce.width == 1 else f"tuple(fact[:{choice.reduce.width}])"
            holes |= {
                "row": partial(_write_all, loop, "mark, number = at", f"row = {row}"),
                "known": f"rounds[{key}]",
                "number": "" if passed else "number = at[1]",
            }
            if found is not None and not found.reads[term.side] and found_by_key(term, choice):
                holes |= {"row": "", "mine": "", "find": "key = fact"}
        loop.template(
            template, join or (term.before[-1] if term.before else None), "fact",
            before=partial(self.before.write, loop), after=partial(self.after.write, loop),
            what=what, at=at, **holes,
        )  # fmt: skip
        return loop.function()

    def _of_rest(self, fn: Fn) -> Fn:
        return fn if self.rest is None else of_rest(fn, 1 - self.term.side, self.rest)

    def _grouping(self) -> Callable[..., Any]:
        loop = GeneratedLoop("grouping", "pairs")
        loop.template(
            _BY_KEY, self.term.join, "row", before=partial(self.before.write, loop),
            key=key_source(loop, self.my_key, self.before.last_row),
        )  # fmt: skip
        return loop.function()


def _write_all(loop: GeneratedLoop, *lines: str) -> None:
    for line in lines:
        loop.write(line)


def _row_step(step: FusedStep) -> RowStep:
    return RowStep(step.verb, step.fn, step)


def _marked(loop: GeneratedLoop, choice: Choice, row: str) -> tuple[str, str]:
    """Python text for the key of a candidate row, and for its mark."""
    row_type = choice.reduce.parent.type
    places = list(fields_of(row_type) or ())
    get = field_of(0, choice.value, places.index(choice.value), row_type)
    value = get.source(loop.bind, [row])
    return key_source(loop, choice.reduce.key, row), mark_source(choice, value)


def mark_source(choice: Choice, value: str) -> str:
    """Python text for the mark of a value: better values have smaller marks. NaN, which is greater
    than all numbers, and not equal to itself, has a mark of its own."""
    sign = "-" if choice.greatest else ""
    if not choice.is_float:
        return f"{sign}{value}"
    is_nan = f"{value} {'==' if choice.greatest else '!='} {value}"
    return f"({is_nan}, {sign}{value} if {value} == {value} else 0.0)"


def row_source(
    loop: GeneratedLoop, choice: Choice, key: str, mark: str, plain: bool = False
) -> str:
    """Python text for the row of a key and a mark; `plain`, where a tuple will do."""
    reduce, sign = choice.reduce, "-" if choice.greatest else ""
    value = f"{sign}{mark}"
    if choice.is_float:  # what the marks of numbers begin with, see `mark_source`
        value = f"({sign}{mark}[1] if {mark}[0] == {choice.greatest} else {loop.bind(NAN, 'nan')})"
    row_type = None if plain else reduce.type
    return ResultShape(row_type, reduce.width, reduce.spread).source(loop, key, [value])


def row_maker(choice: Choice) -> Callable[[Any, Any], Any]:
    """The function from a key and a mark to a row."""
    loop = GeneratedLoop("row", "key, mark")
    loop.write(f"return {row_source(loop, choice, 'key', 'mark')}")
    return loop.function()
