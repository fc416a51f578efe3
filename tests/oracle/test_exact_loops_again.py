"""A loop in exact rounds that is computed again gives what it gives by following the change, and
has the same state: in memory and on disk, after an epoch that is refused, in random programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.oracle.loop_shapes import SHAPES, Edge, built, edges, moved, roots
from tests.oracle.looped import (
    accepted,
    exact_rounds,
    loop_stages,
    loop_state,
    looping,
    run_exactly,
    some_epochs,
)

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.engine.runtime import loop, loop_again
from ebbflow.engine.runtime.loop import LoopStage
from ebbflow.engine.runtime.loop_report import last_epoch
from ebbflow.errors import AbsentRow, EbbflowError
from ebbflow.testing import random_epochs

pytestmark = pytest.mark.filterwarnings("ignore::ebbflow.errors.MayNotEnd")
NOT_TOLD = {
    "a_body_that_is_the_variable",
    "a_loop_of_a_loop",
    "a_sign_that_turns",
    "a_negative_start",
    "priorities",
    "rounds_of_none_one_and_many",
    "variables_that_nobody_reads",
}
"""Shapes of which a loop is never computed again: it adds to itself, leaves before its start has,
or reads another loop."""


@contextmanager
def always_again(dice: Random) -> Iterator[None]:
    """Inside it, loops are computed again in most epochs in which they can be."""
    found = loop.wholes_if_replaced

    def wholes(stage: LoopStage, changes: Any) -> Any:
        able = stage.entering is not None and dice.random() < 0.7
        return stage.entering() if able else None  # type: ignore[misc]

    loop.wholes_if_replaced = wholes  # type: ignore[assignment]
    try:
        yield
    finally:
        loop.wholes_if_replaced = found  # type: ignore[assignment]


def followed_by_both(program: Any, epochs: Any, dice: Random, **options: Any) -> list[int]:
    """How often each loop was computed again, in a view that has the rows and the state of one in
    which none was, after every epoch."""
    one, other = run_exactly(program.plan, **options), run_exactly(program.plan)
    for epoch in epochs:
        with always_again(dice):
            change = one.step(epoch)
        assert change == other.step(epoch)
        assert one.value == other.value
        assert loop_state(one) == loop_state(other)
    one.verify()
    found = [stage.recomputed for stage in loop_stages(one) if isinstance(stage, LoopStage)]
    one.close()
    return found


@pytest.mark.parametrize("name", SHAPES)
def test_oracle_a_loop_of_this_shape_that_is_computed_again_is_as_if_it_were_not(
    name: str,
) -> None:
    program, dice = built(name), Random(name)
    epochs, _ = accepted(program, random_epochs(program, dice, 8, size=6))
    counts = followed_by_both(program, epochs, dice)
    assert 0 in counts if name in NOT_TOLD else any(counts)


def random_programs(seeds: range) -> int:
    total = 0
    for seed in seeds:
        dice = Random(seed)
        program = looping(dice)
        epochs, _ = accepted(program, some_epochs(program, dice))
        total += sum(followed_by_both(program, epochs, dice))
    return total


def test_oracle_random_loops_that_are_computed_again_are_as_if_they_were_not() -> None:
    assert random_programs(range(12)) > 10


@pytest.mark.slow
def test_oracle_many_random_loops_that_are_computed_again() -> None:
    assert random_programs(range(100, 700)) > 500


def test_a_stored_loop_that_is_computed_again_is_there_when_it_is_opened_again(
    tmp_path: Path,
) -> None:
    program, dice = built("a_loop_in_a_loop"), Random(4)
    epochs, _ = accepted(program, random_epochs(program, dice, 12, size=6))
    other = run_exactly(program.plan)
    again = 0
    for at in range(0, 12, 3):
        with run_exactly(program.plan, path=tmp_path / "state") as view:
            assert loop_state(view) == loop_state(other)
            for epoch in epochs[at : at + 3]:
                with always_again(dice):
                    assert view.step(epoch) == other.step(epoch)
            view.verify()
            again += loop_stages(view)[0].recomputed
    assert again > 3


def test_a_refused_epoch_in_which_a_loop_is_computed_again_changes_nothing(
    tmp_path: Path,
) -> None:
    def inverse(node: int, edge: Edge) -> int:
        return 6 // edge.b

    program = roots.iterate(
        lambda x: x.union(x.join(edges, left_on=lambda n: n, right_on="a", select=inverse))
    )
    chain = [Edge(n, n + 1) for n in range(6)]
    for options in ({}, {"path": tmp_path / "state"}):
        view = run_exactly(program.plan, **options)
        view.step(roots=[0], edges=chain)
        before, state = view.value, deepcopy(loop_state(view))
        with always_again(Random(1)):
            for change, error in (
                ({Edge(0, 1): -1, Edge(0, 0): 1}, EbbflowError),
                ({Edge(0, 1): -1, Edge(8, 8): -1}, AbsentRow),
            ):
                with pytest.raises(error):
                    view.step(edges=ef.ZSet(change))
                assert (view.value, loop_state(view)) == (before, state)
            view.step(edges=ef.ZSet({Edge(0, 1): -1, Edge(0, 2): 1}))
        view.verify()
        view.close()


def test_the_engine_chooses_to_compute_a_loop_in_exact_rounds_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """When a fourth of what enters goes; not for a first load, nor for rows that only come, nor for
    few, nor where only some of the state is in memory."""
    monkeypatch.setattr(loop_again, "FEW", 10)
    program = roots.iterate(lambda x: x.union(moved(x)))
    chain = [Edge(n, n + 1) for n in range(60)]
    with exact_rounds():
        view = run(program.plan)
        small = run(program.plan, path=tmp_path / "state", memory="10KB")
    for each in (view, small):
        (stage,) = loop_stages(each)
        each.step(roots=[0], edges=chain[:30])
        each.step(edges=chain[30:])
        each.step(edges=ef.ZSet(dict.fromkeys(chain[:9], -1)))
        each.step(edges=ef.ZSet(dict.fromkeys(chain[:9], 1)))
        assert stage.recomputed == 0
        assert "computed again" not in last_epoch(stage)
        each.step(edges=ef.ZSet(dict.fromkeys(chain[10:40], -1)))
        assert each.value == ef.ZSet.of(range(11))
        each.verify()
    assert loop_stages(small)[0].recomputed == 0
    assert loop_stages(view)[0].recomputed == 1
    assert " · computed again" in view.explain()
    view.step(edges=chain[10:12])
    assert "computed again" not in view.explain()
    assert view.value == ef.ZSet.of(range(13))
    small.close()
