"""Loops in the tasks of the Spark engine against batch, change by change.

No Spark is needed for these: `simulated` calls the tasks one after the other.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.spark.loops import PROGRAMS, Edge, Node, epochs_of, made, moved, roots
from tests.spark.test_oracle import MODES, Reopened, running

from ebbflow.errors import NoFixedPoint
from ebbflow.testing import follow
from ebbflow.testing.epochs import plan_of
from ebbflow.zset import ZSet

each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
each_mode = pytest.mark.parametrize("mode", MODES)


class InAnyMode(Reopened):
    """A view that runs its epochs in one mode and another, and of rounds that are led by the driver
    some in tasks, some where it is."""

    def advance(self, asked: Any) -> Any:
        self.mode = self.dice.choice(MODES)
        self.cluster.small = self.dice.choice([0, 1, 3, 20_000])
        return super().advance(asked)


class InTasks(Reopened):
    """A view in which nothing of a loop is so small that it is not done by tasks."""

    at_most = 0

    def advance(self, asked: Any) -> Any:
        self.cluster.small = self.small = self.at_most
        return super().advance(asked)


class InSomeTasks(InTasks):
    at_most = 2


def followed(
    mode: str, program: Any, dice: Random, count: int, of: Any = Reopened, **sizes: int
) -> None:
    with running(mode, dice, of=of) as run:
        loop = made(program)
        follow(run, loop, epochs_of(loop, dice, count, **sizes))


@each_mode
@each_program
def test_oracle_a_loop_in_tasks_gives_what_batch_gives(mode: str, program: Any) -> None:
    for seed in range(2):
        followed(mode, program, Random(f"{mode} {seed}"), 5)


@each_program
def test_oracle_a_loop_goes_on_in_another_mode(program: Any) -> None:
    followed("driver", program, Random(program.__name__), 8, InAnyMode)


@pytest.mark.parametrize("of", [InTasks, InSomeTasks])
@each_program
def test_oracle_rounds_in_tasks_give_what_batch_gives(program: Any, of: Any) -> None:
    for seed in range(2):
        followed("staged", program, Random(f"{program.__name__} {seed}"), 5, of)


@each_mode
def test_a_loop_that_comes_to_no_end_is_refused_and_can_go_on(mode: str) -> None:
    endless = roots.iterate(
        lambda n: n.union(n.map(lambda each: Node(each.n + 1), type=Node)), limit=50
    )
    edges = ZSet.of([Edge(1, 2), Edge(2, 3), Edge(3, 4)])
    given = {"roots": ZSet.of([Node(1)]), "edges": edges}
    for loop in (endless, roots.iterate(lambda n: n.union(moved(n)), limit=2)):
        with running(mode, Random(1)) as run:
            view = run(plan_of(loop))
            with pytest.raises(NoFixedPoint) as caught:
                view.step(given)
            assert "rows of 'n' still change" in str(caught.value)
            assert "loops.py" in str(caught.value)
            assert (view.epoch, view.value) == (0, ZSet())
            if loop is not endless:
                given["roots"] = ZSet.of([Node(3)])
                assert view.step(given) == view.value == ZSet.of([Node(3), Node(4)])
