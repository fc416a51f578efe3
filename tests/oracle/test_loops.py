"""Theorem 1 of paper 002: what a loop is kept up to date to is what it is computed to be.

Random programs with loops, in loops as well, of every verb; after every epoch of random changes,
those that are taken back included, all engines have the rows that batch computes by running the
body round after round. It does not matter how changes are cut into epochs, nor whether a monotone
loop runs with lazy rounds or by versions.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.oracle.looped import (
    LOOPY,
    accepted,
    every_node,
    loop_stages,
    loop_state,
    looping,
    pieces,
    run_exactly,
    some_epochs,
    stepped,
)
from tests.oracle.reopened import OPTIONS, followed

from ebbflow.engine.batch import evaluate
from ebbflow.engine.local import run
from ebbflow.engine.runtime.lazy import LazyLoopStage
from ebbflow.engine.runtime.lazy_choice import LazyChoiceStage
from ebbflow.errors import EbbflowError, NoFixedPoint
from ebbflow.flow import plan as nodes
from ebbflow.flow.plan import Iterate, Plan
from ebbflow.testing import ALL_NAMES, changes, follow, plans
from ebbflow.testing.loops import LOOP_NAMES

QUICK = settings(
    database=None,
    max_examples=30,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)


# ---- what is generated ----


def depth(plan: Plan) -> int:
    return max((1 + depth(n.body) for n in plan.nodes() if isinstance(n, Iterate)), default=0)


def test_random_loops_are_of_every_kind() -> None:
    seen: Counter[Any] = Counter()
    for seed in range(80):
        program = looping(Random(seed))
        seen[f"depth {depth(program.plan)}"] += 1
        for node in every_node(program.plan):
            if isinstance(node, Iterate):
                seen["rounds"] += node.rounds is not None
                seen["priority"] += any(node.priorities)
                seen["several variables"] += len(node.starts) > 1
                seen["empty start"] += any(getattr(e, "parts", None) == () for e in node.starts)
                seen["negative"] += not node.bag
                seen["of loops"] += any(isinstance(each, Iterate) for each in node.parents)
                seen.update({f"{each.verb} inside" for each in every_node(node.body)})
        for stage in loop_stages(run(program.plan)):
            seen["by versions"] += not isinstance(stage, LazyLoopStage)
            seen["lazy"] += isinstance(stage, LazyLoopStage)
            seen["lazy choice"] += isinstance(stage, LazyChoiceStage)
    verbs = {
        each.verb for each in vars(nodes).values()
        if isinstance(each, type) and "verb" in vars(each)
    } - {"input", "fused"}  # fmt: skip
    rare = {"depth 3", "session inside", "through inside"}
    ordered = ("over", "scan", "fold", "match", "asof_join", "interval_join", "interval_semi")
    timed = ("within", "session_reduce", "compare", "scalar")
    rare |= {f"{verb} inside" for verb in (*ordered, *timed)}
    assert {word for word, times in seen.items() if times < 3} <= rare
    assert {f"{verb} inside" for verb in verbs} | {"depth 2", "depth 3"} <= set(seen)


# ---- engines against batch ----


@given(st.data())
@QUICK
def test_002_D8_theorem_1_a_view_of_any_loops_is_what_batch_computes(data: st.DataObject) -> None:
    program = data.draw(plans(verbs=ALL_NAMES, size=4))
    follow(run, program, data.draw(changes(program, size=4)))


@pytest.mark.parametrize("kind", LOOP_NAMES)
@pytest.mark.parametrize("way", [run, run_exactly], ids=["lazy", "by versions"])
def test_002_D8_theorem_1_for_each_kind_of_loop(kind: str, way: Any) -> None:
    for seed in range(6):
        dice = Random(f"{kind} {seed}")
        program = looping(dice, [*ALL_NAMES, *[kind] * 30])
        follow(way, program, some_epochs(program, dice))


def one_program(seed: Any, way: Any, **options: Any) -> None:
    dice = Random(seed)
    program = looping(dice)
    follow(lambda plan: way(plan, **options), program, some_epochs(program, dice))


@pytest.mark.parametrize("way", [run, run_exactly], ids=["lazy", "by versions"])
def test_002_D8_theorem_1_on_trusted_input(way: Any) -> None:
    for seed in range(6):
        one_program(f"trusted {seed}", way, check_input=False)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("way", [run, run_exactly], ids=["lazy", "by versions"])
def test_002_D8_theorem_1_for_a_thousand_programs(way: Any, part: int) -> None:
    for seed in range(part, 1000, 4):
        one_program(f"many {seed}", way)


# ---- cut anew ----


def outputs(view: Any) -> dict[str, Any]:
    found = view.value
    return found if isinstance(found, dict) else {"out": found}


def cut(seed: Any) -> int:
    """The same changes, cut in several ways, all end in the rows of batch; and what loops keep by
    versions is the same, however it was come to. How many rows that are."""
    dice = Random(seed)
    program = looping(dice)
    epochs, inputs = accepted(program, some_epochs(program, dice))
    expected = evaluate(program.plan, inputs)
    at_once = stepped(run_exactly(program.plan), [inputs])
    lazy = stepped(run(program.plan), pieces(epochs, dice))
    exact = stepped(run_exactly(program.plan), pieces(epochs, dice))
    for view in (at_once, lazy, exact):
        assert outputs(view) == expected, program.explain()
    assert loop_state(exact) == loop_state(at_once), program.explain()
    return sum(map(len, loop_state(exact)))


def test_002_D8_changes_cut_into_any_epochs_end_in_the_same_view_and_the_same_state() -> None:
    assert sum(cut(f"cut {seed}") for seed in range(35)) > 200


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_002_D8_changes_of_hundreds_of_programs_cut_into_any_epochs(part: int) -> None:
    for seed in range(100 + part, 700, 4):
        cut(f"cut {seed}")


# ---- on disk ----


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_002_D8_loops_on_disk_equal_batch(options: dict[str, Any]) -> None:
    for seed in range(2):
        dice = Random(f"{options} {seed}")
        followed(looping(dice), dice, epochs=5, **options)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_002_D8_many_loops_on_disk_equal_batch(options: dict[str, Any]) -> None:
    for seed in range(2, 22):
        dice = Random(f"{options} {seed}")
        followed(looping(dice), dice, **options)


# ---- loops that come to no end ----


def refusals(way: Any, seeds: range) -> int:
    """After an epoch that has no fixed point, a view is as it was, and goes on; how many had
    none."""
    found = 0
    for seed in seeds:
        dice = Random(f"endless {seed}")
        program = looping(dice, ["iterate", "fixpoint", "minus", "anti", "join"])
        view = way(program.plan)
        for epoch in some_epochs(program, dice):
            before, state = outputs(view), deepcopy(loop_state(view))
            try:
                view.step(epoch)
            except NoFixedPoint:
                found += 1
                assert (outputs(view), loop_state(view)) == (before, state)
            except EbbflowError:
                continue
        view.verify()
    return found


@pytest.mark.parametrize("way", [run, run_exactly], ids=["lazy", "by versions"])
def test_002_D10_an_epoch_without_a_fixed_point_leaves_everything_as_it_was(way: Any) -> None:
    assert refusals(way, range(30)) > 10


@pytest.mark.slow
@pytest.mark.parametrize("way", [run, run_exactly], ids=["lazy", "by versions"])
def test_002_D10_no_epoch_without_a_fixed_point_leaves_anything(way: Any) -> None:
    assert refusals(way, range(30, 230)) > 30


def test_random_programs_have_about_one_loop_in_three_verbs() -> None:
    assert 0.2 < sum(verb in LOOP_NAMES for verb in LOOPY) / len(LOOPY) < 0.4
