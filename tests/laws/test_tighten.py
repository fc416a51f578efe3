"""Tightening: what does not touch the feedback of a loop leaves it, and nothing changes but the
work (003, Propositions 3.73 and 3.74, as rewrites of plans)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.local import run
from ebbflow.errors import EbbflowError
from ebbflow.flow.plan import Iterate, Plan
from ebbflow.flow.rewrite import LOCAL, optimise, tighten
from ebbflow.testing import ALL_NAMES, follow, random_epochs, random_program
from ebbflow.testing.loops import LOOP_NAMES
from ebbflow.zset import ZSet


class At(NamedTuple):
    place: int


class Road(NamedTuple):
    start: int
    end: int
    open: bool


ROADS = ef.Input("roads", Road)
HOMES = ef.Input("homes", At)


def moved(at: Any) -> Any:
    """Where one can be next, by an open road."""
    return (
        at.join(ROADS, left_on="place", right_on="start", select=lambda at, road: road)
        .filter(lambda road: road.open)
        .map(lambda road: At(road.end % 5))
    )


def filtered() -> Any:
    """A filter that becomes one of the roads."""
    return HOMES.iterate(lambda at: at.union(moved(at)))


def both() -> Any:
    """Two variables, of which nobody needs the second."""
    found = ef.fixpoint(
        lambda at, ends: {"at": at.union(moved(at)), "ends": at - moved(at).distinct()},
        at=HOMES, ends=ef.Input("other", At),
    )  # fmt: skip
    return ef.program(**found)


def chain() -> Any:
    """A variable that is needed only by one that nobody needs."""
    found = ef.fixpoint(
        lambda at, one, two: {
            "at": at.union(moved(at)),
            "one": at.map(lambda at: At(at.place + 10)),
            "two": one.map(lambda at: At(at.place + 10)).distinct(),
        },
        at=HOMES, one=ef.empty(At), two=ef.empty(At),
    )  # fmt: skip
    return ef.program(**found)


def nested() -> Any:
    """A filter that leaves the inner loop, and then the outer one."""
    return HOMES.iterate(
        lambda outer: outer.union(HOMES.iterate(lambda at: at.union(moved(at)).union(outer))),
    )


def none() -> Any:
    """Bodies that ignore their variables."""
    found = ef.fixpoint(lambda a, b: {"a": HOMES, "b": HOMES.distinct()}, a=HOMES, b=HOMES)
    return ef.program(**found)


PROGRAMS: dict[str, Callable[[], Any]] = {
    each.__name__: each for each in (filtered, both, chain, nested, none)
}


def made(name: str) -> Plan:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = PROGRAMS[name]()
    plan: Plan = program.plan
    return plan


def loops(plan: Plan) -> list[Iterate]:
    here = [node for node in plan.nodes() if isinstance(node, Iterate)]
    return [*here, *(each for node in here for each in loops(node.body))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_003_H10_a_tightened_plan_gives_the_same_change_by_change(name: str) -> None:
    plan = made(name)
    smaller = tighten(plan)
    assert [node.type for node in smaller.outputs.values()] == [
        node.type for node in plan.outputs.values()
    ]
    for seed in range(15):
        inputs: dict[str, ZSet[Any]] = {}
        epochs = list(random_epochs(plan, Random(f"{name} {seed}"), 6, size=5))
        for epoch in epochs:
            inputs |= {key: inputs.get(key, ZSet()) + change for key, change in epoch.items()}
            assert evaluate(smaller, inputs) == evaluate(plan, inputs)
        follow(run, plan, epochs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_003_H10_a_plan_is_tightened_once(name: str) -> None:
    for rewrites in ((tighten,), LOCAL):
        once = optimise(made(name), rewrites)
        again = optimise(once, rewrites)
        assert all(again.outputs[key] is node for key, node in once.outputs.items())


def body_verbs(name: str) -> list[set[str]]:
    return [{node.verb for node in loop.body.nodes()} for loop in loops(tighten(made(name)))]


def test_003_H10_left_tightening_a_filter_of_the_other_side_of_a_join_leaves_the_loop() -> None:
    (loop,) = loops(tighten(made("filtered")))
    assert [node.verb for node in loop.imports] == ["filter"]
    assert body_verbs("filtered") == [{"loop input", "join", "map", "concat", "distinct"}]


def test_003_H10_left_tightening_leaves_as_many_loops_as_it_can() -> None:
    outer, inner = loops(tighten(made("nested")))
    assert "filter" in {node.verb for node in outer.imports}
    assert "filter" not in {node.verb for each in (outer, inner) for node in each.body.nodes()}


def test_003_H10_right_tightening_variables_that_nobody_needs_are_computed_behind_the_loop() -> (
    None
):
    for name in ("both", "chain"):
        (loop,) = loops(tighten(made(name)))
        assert loop.variables == ("at",)
        assert loop.type is At
    (loop,) = loops(tighten(made("none")))
    assert loop.variables == ("a",)


@pytest.mark.parametrize("counted", [{"rounds": 2}, {"limit": 20}], ids=str)
def test_a_loop_whose_rounds_are_counted_keeps_its_variables(counted: dict[str, int]) -> None:
    found = ef.fixpoint(lambda at, ends: {"at": at.union(moved(at)), "ends": at},
                        at=HOMES, ends=ef.empty(At), **counted)  # fmt: skip
    (loop,) = loops(tighten(ef.program(**found).plan))
    assert loop.variables == ("at", "ends")


def test_an_input_that_only_a_variable_nobody_needs_begins_with_can_still_be_stepped() -> None:
    view = run(made("both"))
    found = view.step(other=[At(7)], homes=[At(1)])
    assert found == {"at": ZSet({At(1): 1}), "ends": ZSet({At(1): 1})}
    assert view.verify().epoch == 1


def test_work_that_left_the_loop_is_done_once_for_each_row() -> None:
    """The join in the loop sees open roads only, and needs no versions for them."""
    view = filtered().run()
    view.step(homes=[At(0)], roads=[Road(n, n + 1, n % 2 == 0) for n in range(4)])
    stats = {node.label: node for node in view.stats().nodes}
    assert "filter" in stats
    assert stats["filter"].rows_in == 4


def test_003_H10_random_loops_are_tightened_and_give_the_same() -> None:
    changed = 0
    for seed in range(100):
        dice = Random(f"tighten {seed}")
        program = random_program(dice, size=4, verbs=(*ALL_NAMES, *LOOP_NAMES * 8))
        smaller = tighten(program.plan)
        changed += any(
            smaller.outputs[name] is not node for name, node in program.plan.outputs.items()
        )
        inputs: dict[str, ZSet[Any]] = {}
        for epoch in random_epochs(program, dice, 3):
            after = {key: inputs.get(key, ZSet()) + change for key, change in epoch.items()}
            assert outcome(smaller, {**inputs, **after}) == outcome(program.plan, inputs | after)
            inputs |= after
    assert changed >= 3


def outcome(plan: Plan, inputs: dict[str, ZSet[Any]]) -> Any:
    """What batch gives, or which error."""
    try:
        return evaluate(plan, inputs)
    except EbbflowError as error:
        return type(error)
