"""Proofs: the laws of a reducer for *every* row and every accumulator, where z3 can see them.

Tests look at some rows; a proof covers all. `add` and `remove` are run on unknowns
(`ebbflow.laws.symbolic`), and z3 is asked whether a law can fail. There are three answers:

    proved         for which rows; over the real numbers it says so, since floats round
    refuted        with rows that break the law when they are run in plain Python
    not provable   here, and why; then what was tested stands, as tested

An accumulator is taken to be anything that has the *shape* of one that rows lead to, and that keeps
what every `add` keeps (a count that is never negative, a field that never changes). A
counter-example is only believed when it starts from rows: an accumulator that no rows lead to
proves nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from ebbflow.errors import LawBroken
from ebbflow.laws.law import Law
from ebbflow.laws.purity import strange
from ebbflow.laws.reducers import ADD_COMMUTES, MERGES, REMOVE_INVERTS, AnyReducer
from ebbflow.laws.shapes import (
    alternatives,
    domain,
    drawn,
    equal,
    include,
    joined,
    leaves,
    plain,
    shape,
    unknown,
)
from ebbflow.laws.symbolic import REALS, TIMEOUT, NotTraceable, Raised, TracePath, number, paths, z3
from ebbflow.notebook import Preformatted
from ebbflow.reducer import RECOMPUTE

MOST_SHAPES = 6
DEPTH = 3
STARTS = 10


@dataclass(frozen=True)
class Proof(Preformatted):
    """The result of an attempt to prove the laws of a reducer.

    >>> print(Proof("proved", "every int", (ADD_COMMUTES,)))
    proved for every int: ADD_COMMUTES
    """

    answer: str
    domain: str = ""
    laws: tuple[Law, ...] = ()
    why: str = ""
    broken: LawBroken | None = None
    uncovered: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.answer == "proved":
            rest = "".join(f"; {what} is not covered" for what in self.uncovered)
            return f"proved for {self.domain}: {', '.join(law.name for law in self.laws)}{rest}"
        return f"{self.answer}: {self.why}"


def prove(reducer: AnyReducer, of: Any = None, *, elements: Any = None) -> Proof:
    """Prove that `add` commutes, that `remove` undoes it, and that `merge` agrees with both.

    `of` says what a row is: `int`, `float` (then the proof is over the real numbers), `bool`, a
    tuple of these, or a NamedTuple class. By default it is what `elements` are.

    >>> from ebbflow.reducer import Reducer
    >>> total = Reducer(0, lambda a, x: a + x, lambda a, x: a - x, name="total")
    >>> print(prove(total, int))
    proved for every int: ADD_COMMUTES, REMOVE_INVERTS
    >>> print(prove(total, float))
    proved for every real number, not for floats, which round: ADD_COMMUTES, REMOVE_INVERTS
    >>> print(prove(Reducer(0, lambda a, x: a ^ x, lambda a, x: a ^ x), int))
    not provable here: it works on the bits of ints, which z3's ints do not have
    """
    z3()
    try:
        row_shapes = alternatives(of) if of is not None else drawn(reducer, elements)
        return _Attempt(reducer, row_shapes).run()
    except NotTraceable as reason:
        return Proof("not provable here", why=str(reason))


# ---- the attempt ----


class _Attempt:
    """The laws of one reducer for rows of some shapes."""

    def __init__(self, reducer: AnyReducer, row_shapes: list[Any]) -> None:
        self.reducer = reducer
        self.row_shapes = row_shapes
        self.start = reducer.start()
        self.seen: set[str] = set()
        self.laws = [ADD_COMMUTES]
        self.laws += [REMOVE_INVERTS] * (reducer.remove is not None)
        self.laws += [MERGES] * (reducer.merge is not None)

    def run(self) -> Proof:
        self._look_through()
        for size in range(DEPTH):
            broken = self._broken_from(size)
            if broken is not None:
                return Proof("refuted", laws=(broken.law,), why=broken.what, broken=broken)
        self._find_invariant()
        for law, of in product(self.laws, self.shapes):
            if not self._holds(law, of):
                raise NotTraceable(
                    f"{law.name} holds from up to {DEPTH - 1} rows, but z3 could not show it "
                    "from every accumulator"
                )
        return Proof(
            "proved", domain(self.row_shapes, REALS not in self.seen), tuple(self.laws),
            uncovered=("repeat",) * (self.reducer.repeat is not None),
        )  # fmt: skip

    def _look_through(self) -> None:
        """Decline what may remember, or be equal in a way of its own, before anything is run."""
        first = shape(self.start)
        for f in (self.reducer.init, self.reducer.add, self.reducer.remove, self.reducer.merge):
            if why := strange(f):
                raise NotTraceable(why)
        if self.reducer.equal is not operator.eq:
            raise NotTraceable("it has an equal= of its own")
        for _ in range(STARTS):
            again = self.reducer.start()
            if shape(again) != first or again != self.start:
                raise NotTraceable("init gives a different accumulator when it is called again")

    # ---- refuting: from rows ----

    def _broken_from(self, size: int) -> LawBroken | None:
        """A law broken by an accumulator of `size` rows, replayed in plain Python."""
        for rows in product(self.row_shapes, repeat=size):
            for law in [law for law in self.laws if law is not MERGES]:
                for more in product(self.row_shapes, repeat=2 if law is ADD_COMMUTES else 1):
                    found = self._counter_example(law, rows, more)
                    if found is not None:
                        return found
        return None

    def _counter_example(self, law: Law, rows: Any, more: Any) -> LawBroken | None:
        held: dict[str, Any] = {}

        def sides(run: TracePath) -> Any:
            held["rows"] = [unknown(of, f"row{i}", run) for i, of in enumerate(rows)]
            held["more"] = [unknown(of, f"more{i}", run) for i, of in enumerate(more)]
            acc = self.start
            for row in held["rows"]:
                acc = self.reducer.add(acc, row)
            return self._sides(law, acc, held["more"], run)

        for conditions, goal in paths(sides, self.seen):
            model = _model([*conditions, z3().Not(_goal(goal))])
            if model is None:
                continue
            case = {
                "rows": tuple(plain(row, model) for row in held["rows"]),
                **dict(zip(("x", "y") if law is ADD_COMMUTES else ("value",),
                           [plain(row, model) for row in held["more"]], strict=True)),
            }  # fmt: skip
            try:
                law.test(self.reducer, **case)
            except LawBroken as broken:
                return broken
            raise NotTraceable(f"z3 sees {case} break {law.name}, but running it does not")
        return None

    def _sides(self, law: Law, acc: Any, more: list[Any], run: TracePath) -> Any:
        add, remove = self.reducer.add, self.reducer.remove
        if law is ADD_COMMUTES:
            x, y = more
            return equal(add(add(acc, x), y), add(add(acc, y), x), run)
        assert remove is not None
        back = remove(add(acc, more[0]), more[0])
        return z3().BoolVal(True) if back is RECOMPUTE else equal(back, acc, run)

    # ---- proving: from every accumulator of a shape ----

    def _find_invariant(self) -> None:
        """What every `add` keeps: found by assuming much and dropping what does not last.

        Candidates speak of accumulators with the shape of `init`: a number that stays what it is
        there, is never negative, stays below a constant of the code, or is as in `init` whenever
        another is.
        """
        self.fixed = dict(leaves(self.start, "acc"))
        self.kept = list(_candidates(self.fixed, _constants(self.reducer)))
        while True:
            self.shapes = self._shapes()
            changed, lost = self._not_kept()
            if not changed and not lost:
                return
            self.fixed = {n: value for n, value in self.fixed.items() if n not in changed}
            self.kept = [each for each in self.kept if each not in lost]

    def _acc(self, of: Any, run: TracePath, name: str = "acc") -> Any:
        """Any accumulator of a shape that keeps the invariant."""
        if joined(of, shape(self.start)) != of:
            return unknown(of, name, run)
        fixed = {name + at.removeprefix("acc"): value for at, value in self.fixed.items()}
        acc = unknown(of, name, run, fixed)
        here = {at.replace(name, "acc", 1): value for at, value in leaves(acc, name)}
        for each in self.kept:
            run.assume(each.holds(here, run))
        return acc

    def _shapes(self) -> list[Any]:
        """The shapes that rows lead to: those of `init` and of what `add` makes of them."""
        found = [shape(self.start)]
        grew = True
        while grew:
            grew = False
            for of, row_shape in product(list(found), self.row_shapes):
                for _, result in self._added(of, row_shape):
                    grew = include(found, shape(result)) or grew
            if len(found) > MOST_SHAPES:
                raise NotTraceable(f"accumulators have more than {MOST_SHAPES} shapes")
        return found

    def _added(self, of: Any, row_shape: Any) -> Iterator[tuple[list[Any], Any]]:
        def once(run: TracePath) -> Any:
            return self.reducer.add(self._acc(of, run), unknown(row_shape, "row", run))

        for conditions, result in paths(once, self.seen):
            if type(result) is Raised:
                raise NotTraceable(f"add may raise {result.name}")
            yield conditions, result

    def _not_kept(self) -> tuple[set[str], set[Invariant]]:
        changed: set[str] = set()
        lost: set[Invariant] = set()
        own = next(of for of in self.shapes if joined(of, shape(self.start)) == of)
        for of, row_shape in product(self.shapes, self.row_shapes):
            for conditions, result in self._added(of, row_shape):
                if joined(own, shape(result)) != own:
                    continue
                run, here = TracePath(()), dict(leaves(result, "acc"))
                changed |= {
                    name for name, value in self.fixed.items()
                    if _fails(conditions, equal(here[name], value, run))
                }  # fmt: skip
                lost |= {
                    each for each in self.kept
                    if _fails(conditions, each.holds(here, run))
                }  # fmt: skip
        return changed, lost

    def _holds(self, law: Law, of: Any) -> bool:
        if law is MERGES:
            cases = product(self.shapes, self.row_shapes)
            return all(
                self._all_paths(self._merges(of, other, row_shape)) for other, row_shape in cases
            )
        several = product(self.row_shapes, repeat=2 if law is ADD_COMMUTES else 1)
        return all(self._all_paths(self._lawful(law, of, more)) for more in several)

    def _lawful(self, law: Law, of: Any, more: Any) -> Callable[[TracePath], Any]:
        def sides(run: TracePath) -> Any:
            rows = [unknown(row_shape, f"row{i}", run) for i, row_shape in enumerate(more)]
            return self._sides(law, self._acc(of, run), rows, run)

        return sides

    def _merges(self, of: Any, other: Any, row_shape: Any) -> Callable[[TracePath], Any]:
        """`merge(a, init) == a` and `merge(a, add(b, x)) == add(merge(a, b), x)`: by induction, all
        that merge owes."""

        def sides(run: TracePath) -> Any:
            merge, add = self.reducer.merge, self.reducer.add
            assert merge is not None
            a, b = self._acc(of, run), self._acc(other, run, "more")
            row = unknown(row_shape, "row", run)
            grown = equal(merge(a, add(b, row)), add(merge(a, b), row), run)
            return z3().And(equal(merge(a, self.start), a, run), grown)

        return sides

    def _all_paths(self, sides: Callable[[TracePath], Any]) -> bool:
        return all(
            not _fails(conditions, _goal(goal)) for conditions, goal in paths(sides, self.seen)
        )


class Invariant(NamedTuple):
    """A candidate: a number that keeps to a bound, or is as in `init` whenever another is."""

    name: str
    word: str
    bound: Any
    when: str = ""
    start: Any = None

    def holds(self, here: dict[str, Any], run: TracePath) -> Any:
        term = number(here[self.name], run)
        if self.word == "at least":
            return term >= self.bound
        if self.word == "below":
            return term < self.bound
        same = equal(here[self.name], self.bound, run)
        return z3().Implies(equal(here[self.when], self.start, run), same)


def _candidates(start: dict[str, Any], constants: set[int]) -> Iterator[Invariant]:
    for name, value in start.items():
        if type(value) is not bool and value >= 0:
            yield Invariant(name, "at least", 0)
            yield from (Invariant(name, "below", bound) for bound in constants if value < bound)
        for other, first in start.items():
            if other != name:
                yield Invariant(name, "as in init", value, other, first)


def _constants(reducer: AnyReducer) -> set[int]:
    """The ints that the code of `add` mentions: the bounds it may keep to."""
    code = getattr(reducer.add, "__code__", None)
    return {c for c in (code.co_consts if code else ()) if type(c) is int and c > 0}


def _goal(goal: Any) -> Any:
    return z3().BoolVal(False) if type(goal) is Raised else goal


def _fails(conditions: list[Any], goal: Any) -> bool:
    """Whether a goal may be false; a model without any values is one, too."""
    return _model([*conditions, z3().Not(goal)], surely=True) is not None


def _model(terms: list[Any], *, surely: bool = False) -> Any:
    """Values for which all terms hold, or None; with `surely`, None only when there are none."""
    solver = z3().Solver()
    solver.set("timeout", TIMEOUT)
    solver.add(*terms)
    answer = solver.check()
    if answer == z3().sat:
        return solver.model()
    return None if answer == z3().unsat or not surely else "unknown"
