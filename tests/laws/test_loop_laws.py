"""What the engine keeps of a loop are differences in the sense of paper 002.

The stages of a body run at versions, and keep a difference for each. Here these are compared with
the theory in `ebbflow.algebra`: a lifted operator with Propositions 1 and 2, on streams over one or
two loops and in several epochs; and all that the stages of random loops have kept with the Möbius
inversion of the values that batch computes at each version.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest
from tests.oracle.loop_shapes import SHAPES, Edge, edges, roots
from tests.oracle.looped import accepted, loop_stages, looping, run_exactly, some_epochs, stepped

import ebbflow as ef
from ebbflow.algebra import NATURALS, order_product
from ebbflow.algebra.differential import bilinear, differential_of_lifted, loop_differences
from ebbflow.algebra.mobius import Stream, delta
from ebbflow.algebra.order import Order
from ebbflow.engine.batch import evaluate, rows_of
from ebbflow.engine.runtime.compile import BodyCompiler
from ebbflow.engine.runtime.loop import LoopStage
from ebbflow.engine.runtime.rounds import LiftedByKey, LiftedJoin, LiftedStage
from ebbflow.engine.runtime.versions import Schedule
from ebbflow.flow.collection import Collection
from ebbflow.flow.plan import Iterate, LoopInput, Plan
from ebbflow.zset import ZSETS, ZSet

Version = tuple[int, ...]
Values = Callable[[Version], ZSet[Any]]
pytestmark = pytest.mark.filterwarnings("ignore::ebbflow.errors.MayNotEnd")
SIDE = 4


def versions(depth: int, side: int = SIDE) -> list[Version]:
    return list(itertools.product(range(side), repeat=depth))


def order_of(depth: int) -> Order[Version]:
    return order_product(*[NATURALS] * depth)


# ---- Propositions 1 and 2 ----


class Body:
    """One verb with state as the body of so many loops has it, run at the versions that it and its
    input ask for."""

    def __init__(self, rows: Any, depth: int) -> None:
        self.plan = Plan({"out": rows.node})
        self.schedules = [Schedule(None)]
        for _ in range(depth - 1):
            self.schedules.append(Schedule(self.schedules[-1]))
        self.compiled = BodyCompiler(self.plan, self.schedules[-1], ())
        self.out: dict[Version, ZSet[Any]] = {}

    def epoch(self, changes: dict[str, dict[Version, ZSet[Any]]]) -> None:
        """Differences of the inputs by version; `out` has what came out so far, by version."""
        for each in changes.values():
            for version in each:
                self.schedules[-1].add(version)
        self._rounds((), changes)

    def _rounds(self, outer: Version, changes: Any) -> None:
        schedule = self.schedules[len(outer)]
        while (number := schedule.next(outer)) is not None:
            version = (*outer, number)
            if len(version) < len(self.schedules):
                self._rounds(version, changes)
                continue
            values: list[Any] = [None] * self.compiled.width
            for name, slot in self.compiled.inputs.items():
                values[slot] = dict(changes[name].get(version, ZSet()).items()) or None
            for stage in self.compiled.stages:
                reads = [values[slot] for slot in stage.reads]
                lifted = isinstance(stage, LiftedStage)
                if any(reads) or (lifted and stage.waits_for(version)):
                    run = stage.run_at(version, *reads) if lifted else stage.run(*reads)
                    values[stage.slot] = run
            given = values[self.compiled.outputs["out"]] or {}
            self.out[version] = self.out.get(version, ZSet()) + ZSet(given)

    def f(self, *rows: ZSet[Any]) -> ZSet[Any]:
        """What the verb means, by batch."""
        return evaluate(self.plan, dict(zip(self.plan.sources, rows, strict=True)))["out"]


def a_stream(dice: Random, depth: int) -> Stream[Version, ZSet[Any]]:
    """The differences of a collection that is a bag at every version, and does not change any more
    when a loop has run for `SIDE` rounds."""
    values: dict[Version, ZSet[Any]] = {
        at: ZSet.of([(dice.randrange(3), dice.randrange(3)) for _ in range(dice.randint(0, 4))])
        for at in versions(depth)
    }
    order = order_of(depth)
    made = Stream(order, ZSETS, lambda t: values[tuple(min(n, SIDE - 1) for n in t)])
    return delta(made)


def halves(dice: Random, c: Stream[Version, ZSet[Any]], depth: int) -> list[dict[Version, Any]]:
    """A stream as the sum of two, by chance: two epochs."""
    one: dict[Version, ZSet[Any]] = {}
    for at in versions(depth):
        one[at] = ZSet({row: w for row, w in c[at].items() if dice.random() < 0.5})
    other = {at: c[at] - rows for at, rows in one.items()}
    return [{at: rows for at, rows in each.items() if rows} for each in (one, other)]


def variable(name: str) -> Any:
    return Collection(LoopInput(name=name, type=tuple[int, int], never_negative=True))


LEFT, RIGHT = variable("left"), variable("right")
BY_KEY: dict[str, Any] = {
    "distinct": LEFT.distinct(),
    "reduce": LEFT.group_by(lambda r: r[0]).reduce(ef.sum(lambda r: r[1])),
    "median": LEFT.group_by(lambda r: r[0]).reduce(ef.median(lambda r: r[1])),
    "top_k": LEFT.top_k(2, order=lambda r: r[1]),
    "session": LEFT.session(lambda r: r[1], 1, per=lambda r: r[0]),
}
TWO = {"left_on": lambda r: r[0], "right_on": lambda r: r[1]}


@pytest.mark.parametrize("verb", BY_KEY)
@pytest.mark.parametrize("depth", [1, 2])
def test_002_D8_proposition_1_any_verb_on_one_collection(verb: str, depth: int) -> None:
    for seed in range(6 if depth == 1 else 3):
        dice = Random(f"{verb} {seed}")
        body, c = Body(BY_KEY[verb], depth), a_stream(dice, depth)
        lifted = [each for each in body.compiled.stages if isinstance(each, LiftedStage)]
        assert [type(each) for each in lifted] == [LiftedByKey]
        body.epoch({"left": {at: c[at] for at in versions(depth) if c[at]}})
        law = differential_of_lifted(body.f, ZSETS, ZSETS)(c)
        for at in versions(depth, SIDE + 1):
            assert body.out.get(at, ZSet()) == law[at]


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_002_D8_proposition_1_verbs_on_two_collections_in_two_epochs(how: str) -> None:
    for seed in range(4):
        dice = Random(f"{how} {seed}")
        body = Body(LEFT.join(RIGHT, **TWO, how=how), 2)
        c, d = a_stream(dice, 2), a_stream(dice, 2)
        for left, right in zip(halves(dice, c, 2), halves(dice, d, 2), strict=True):
            body.epoch({"left": left, "right": right})
        law = differential_of_lifted(body.f, [ZSETS, ZSETS], ZSETS)(c, d)
        for at in versions(2, SIDE + 1):
            assert body.out.get(at, ZSet()) == law[at]


@pytest.mark.parametrize("depth", [1, 2])
def test_002_D8_proposition_2_a_join_in_two_epochs(depth: int) -> None:
    for seed in range(5):
        dice = Random(f"join {seed}")
        body = Body(LEFT.join(RIGHT, **TWO, select=lambda a, b: (a, b)), depth)
        assert [type(stage) for stage in body.compiled.stages] == [LiftedJoin]
        c, d = a_stream(dice, depth), a_stream(dice, depth)
        for left, right in zip(halves(dice, c, depth), halves(dice, d, depth), strict=True):
            body.epoch({"left": left, "right": right})
        law = bilinear(body.f, c, d)
        for at in versions(depth, SIDE + 1):
            assert body.out.get(at, ZSet()) == law[at]


# ---- what loops have kept ----


def kept(history: Any) -> dict[Version, ZSet[Any]]:
    """The differences that a stage has kept, by version; those of what is constant under `()`."""
    found: dict[Version, dict[Any, int]] = {}
    for group in history.index.groups.values():
        for entry, weight in group.items():
            at, row = ((), entry) if history.constant else entry
            rows = found.setdefault(at, {})
            rows[row] = rows.get(row, 0) + weight
    return {at: ZSet(rows) for at, rows in found.items()}


def histories(stage: Any) -> Iterable[tuple[Any, Any]]:
    """What a lifted stage keeps, each with the node whose rows it is about."""
    if isinstance(stage, LiftedJoin):
        return zip((stage.left, stage.right), stage.node.parents, strict=True)
    nodes = (*stage.node.parents, stage.node)
    return zip((*stage.sides, stage.given), nodes, strict=True)


class Checked:
    """A loop that has run, beside the values that batch computes for it at each version."""

    def __init__(
        self, stage: LoopStage, around: Callable[[Version], dict[str, ZSet[Any]]],
        rounds: tuple[int | None, ...] = (),
    ) -> None:  # fmt: skip
        self.stage, self.around = stage, around
        self.node = stage.node
        assert isinstance(self.node, Iterate)
        self.rounds = (*rounds, self.node.rounds)
        self.count = 0
        self.entered = cache(self._entered)
        self.inside = cache(self._inside)

    def _entered(self, outer: Version) -> list[dict[Any, int]]:
        """The rows of its parents at a version of the loops around."""
        plan = Plan({str(i): each for i, each in enumerate(self.node.parents)})
        return [dict(rows.items()) for rows in evaluate(plan, self.around(outer)).values()]

    def _inside(self, version: Version) -> dict[str, ZSet[Any]]:
        """The inputs of its body at a version: variables after so many rounds, and outside."""
        node, (*outer, number) = self.node, version
        given = self.entered(tuple(outer))
        rows = rows_of(replace(node, rounds=number), *given)
        found = dict(zip(node.outside, map(ZSet, given[len(node.starts) :]), strict=True))
        if len(node.variables) == 1:
            return {node.variables[0]: ZSet(rows), **found}
        for name in node.variables:
            found[name] = ZSet({row: w for (of, row), w in rows.items() if of == name})
        return found

    def check(self) -> int:
        """Compare every difference that was kept; how many there were."""
        for stage in self.stage.body.stages:
            if isinstance(stage, LoopStage):
                inner = Checked(stage, self.inside, self.rounds)
                self.count += inner.check()
            elif isinstance(stage, LiftedStage):
                for history, node in histories(stage):
                    self._compare(history, node)
        return self.count

    def _compare(self, history: Any, node: Any) -> None:
        depth, found = self.stage.schedule.depth, kept(history)
        plan = Plan({"value": node})
        order = order_of(depth)

        def value(version: Version) -> ZSet[Any]:
            return evaluate(plan, self.inside(version))["value"]

        if 0 in self.rounds:
            assert not found
            return
        if history.constant:
            assert found.get((), ZSet()) == value((0,) * depth)
            return
        last = [
            max((at[i] for at in found), default=0) + 2 if rounds is None else rounds
            for i, rounds in enumerate(self.rounds)
        ]
        if any(n > 12 for n in last):
            return
        law = delta(Stream(order, ZSETS, value))
        for at in itertools.product(*map(range, last)):
            assert found.pop(at, ZSet()) == law[at], at
            self.count += 1
        assert not found


def checked(program: Any, epochs: Any) -> int:
    taken, inputs = accepted(program, epochs)
    view = stepped(run_exactly(program.plan), taken)
    assert view._program.machine.plan.outputs
    found = {name: inputs.get(name, ZSet()) for name in program.plan.sources}
    return sum(Checked(stage, lambda _: found).check() for stage in loop_stages(view))


def test_002_D8_what_random_loops_keep_by_version_is_the_mobius_inversion_of_their_values() -> None:
    count = 0
    for seed in range(25):
        dice = Random(f"kept {seed}")
        program = looping(dice)
        count += checked(program, some_epochs(program, dice, 4))
    assert count > 200


@pytest.mark.slow
def test_002_D8_what_many_loops_keep_by_version_is_the_mobius_inversion_of_their_values() -> None:
    for seed in range(25, 400):
        dice = Random(f"kept {seed}")
        program = looping(dice)
        checked(program, some_epochs(program, dice, 4))


@pytest.mark.parametrize(
    "name", ["reachability", "a_loop_in_a_loop", "rounds_in_rounds", "priorities_in_priorities"]
)
def test_002_D9_what_loops_in_loops_and_with_priorities_keep_is_the_mobius_inversion(
    name: str,
) -> None:
    program, dice = ef.program(out=SHAPES[name]()), Random(name)
    assert checked(program, some_epochs(program, dice, 8, 8)) > 7


def test_002_D6_the_variable_of_a_loop_has_the_differences_of_the_explicit_formula() -> None:
    program = roots.iterate(
        lambda x: x.union(
            x.join(edges, left_on=lambda n: n, right_on="a", select=lambda n, e: e.b)
        ),
        rounds=8,
    )
    view = run_exactly(program.plan)
    view.step(roots=[0, 4], edges=[Edge(0, 1), Edge(1, 2), Edge(2, 0), Edge(4, 2)])
    view.step(edges={Edge(0, 1): -1, Edge(2, 3): 1, Edge(3, 1): 1})
    graph = ZSet.of([Edge(1, 2), Edge(2, 0), Edge(4, 2), Edge(2, 3), Edge(3, 1)])
    (stage,) = loop_stages(view)
    (join,) = [each for each in stage.body.stages if isinstance(each, LiftedJoin)]
    body = stage.node.body

    def f(rows: ZSet[Any]) -> ZSet[Any]:
        (variable,), (outside,) = stage.node.variables, stage.node.outside
        return evaluate(body, {variable: rows, outside: graph})[variable]

    law, found = loop_differences(f, ZSet.of([0, 4]), ZSETS), kept(join.left)
    for number in range(8):
        assert found.get((number,), ZSet()) == law[number]
    assert found
