"""Loops in the tasks of the Spark engine against batch, change by change.

No Spark is needed for these: `simulated` calls the tasks one after the other.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.spark.loops import (
    PROGRAMS,
    Edge,
    Node,
    closure,
    distances,
    edges,
    epochs_of,
    later,
    made,
    moved,
    open_only,
    reachable,
    roots,
    walks,
)
from tests.spark.simulated import View
from tests.spark.test_oracle import MODES, Reopened, running

from ebbflow.engine.spark.tasks.rounds import RoundTask
from ebbflow.errors import FunctionFailed, NoFixedPoint
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


def loop_parts(replica: Any) -> list[Any]:
    """The parts of the state that loops keep."""
    held = [each for stage in replica.machine.stages if stage.looping for each in stage.containers]
    return [part for part in replica.parts if any(part.owner is each for each in held)]


def followed(
    mode: str, program: Any, dice: Random, count: int, of: Any = Reopened, **sizes: int
) -> None:
    with running(mode, dice, of=of) as run:
        loop = made(program)
        follow(run, loop, epochs_of(loop, dice, count, **sizes))


@each_mode
@each_program
def test_oracle_a_loop_in_tasks_gives_what_batch_gives(mode: str, program: Any) -> None:
    followed(mode, program, Random(mode), 5)


@each_program
def test_oracle_a_loop_goes_on_in_another_mode(program: Any) -> None:
    followed("driver", program, Random(program.__name__), 8, InAnyMode)


@pytest.mark.parametrize("of", [InTasks, InSomeTasks])
@each_program
def test_oracle_rounds_in_tasks_give_what_batch_gives(program: Any, of: Any) -> None:
    followed("staged", program, Random(program.__name__), 4, of)


@pytest.mark.slow
@pytest.mark.parametrize("of", [InAnyMode, InTasks, InSomeTasks])
@each_program
def test_oracle_rounds_in_tasks_often(program: Any, of: Any) -> None:
    for seed in range(3):
        nodes = (5, 8, 14)[seed % 3]
        followed("staged", program, Random(f"often {seed}"), 10, of, nodes=nodes, size=4)


class Flaky(View):
    """A view whose tasks can be made to die; Spark runs the others twice, to be sure."""

    dying = 0

    def _open(self) -> None:
        super()._open()
        self.cluster.small = 0
        run_round = self.cluster.run_round

        def flaky(job: Any, task: Any, lines: Any) -> Any:
            if isinstance(task, RoundTask):
                self.dying -= 1
                run_round(job, task, lines)
                if self.dying == 0:
                    raise OSError("the worker is gone")
            return run_round(job, task, lines)

        self.cluster.run_round = flaky  # type: ignore[method-assign]


@pytest.mark.parametrize("program", [reachable, distances, walks])
def test_an_epoch_in_which_a_round_fails_is_as_if_it_had_not_been(
    program: Any, tmp_path: Path
) -> None:
    loop, dice = made(program), Random(2)
    first, *rest = epochs_of(loop, dice, 3, nodes=8)
    view, other = (Flaky(plan_of(loop), "staged", 3, path=str(tmp_path / n)) for n in "ab")
    expected = other.step(first)
    for dying in (1, 2, 3):
        view.dying = dying
        with pytest.raises(Exception, match="the worker is gone"):
            view.step(first)
        assert (view.epoch, view.value) == (0, ZSet())
    assert view.step(first) == expected
    for epoch in rest:
        assert view.step(epoch) == other.step(epoch)
        assert view.value == other.value
    view.reopen()  # removes what nobody needs
    pieces = {each.name for each in (tmp_path / "a").glob("part-*")}
    assert pieces <= view.disk.store.manifest.files()
    view.close()
    other.close()


def test_a_function_that_raises_in_a_round_is_one_error_with_place_and_row() -> None:
    def shifted(node: Node, edge: Edge) -> Node:
        return Node(10 // edge.b)

    loop = roots.iterate(
        lambda n: n.union(n.join(edges, left_on="n", right_on="a", select=shifted)), limit=9
    )
    given = {"roots": ZSet.of([Node(1)]), "edges": ZSet.of([Edge(1, 0)])}
    told = []
    for mode, of in (("single_task", Reopened), ("staged", Reopened), ("staged", InTasks)):
        with running(mode, Random(1), of=of) as run:
            view = run(plan_of(loop))
            with pytest.raises(FunctionFailed) as caught:
                view.step(given)
            told.append(str(caught.value))
            assert not list(Path(view.path).glob("part-*"))
            assert (view.epoch, view.value) == (0, ZSet())
    assert "ZeroDivisionError" in told[0]
    assert "Node(n=1)" in told[0]
    assert told == [told[0]] * 3


@pytest.mark.parametrize("program", [reachable, distances, closure, open_only, later])
def test_what_tasks_keep_of_a_loop_is_what_one_place_keeps(program: Any, tmp_path: Path) -> None:
    loop = made(program)
    kept = []
    for small in (20_000, 3, 0):
        view = View(plan_of(loop), "staged", 2, path=str(tmp_path / str(small)))
        view.cluster.small = small
        for epoch in epochs_of(loop, Random(3), 3):
            view.step(epoch)
        view.replica.open(view.disk.store)
        kept.append([part.owner.everything() for part in loop_parts(view.replica)])
        view.close()
    assert kept[1] == kept[0]
    assert kept[2] == kept[0]


def test_a_round_with_little_to_do_needs_no_job(tmp_path: Path) -> None:
    """A star: one round with a hundred rows, and a path behind it with one in each."""
    view = View(plan_of(reachable()), "staged", 3, path=str(tmp_path))
    view.cluster.small = 50
    star = [Edge(0, n) for n in range(1, 101)] + [Edge(n, n + 1) for n in range(100, 130)]
    view.cluster.calls = 0
    done = {}
    stage_reports = view.cluster.stage_reports
    view.cluster.stage_reports = lambda *given: done.setdefault("", stage_reports(*given))
    view.step({"roots": ZSet.of([Node(0)]), "edges": ZSet.of(star)})
    assert view.value == ZSet.of([Node(n) for n in range(131)])
    assert list(done[""].jobs.values()) == [
        3
    ]  # the edges come; a hundred derivations are counted; the facts derive
    view.close()


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
