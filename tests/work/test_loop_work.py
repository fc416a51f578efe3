"""How much work a loop does: calls of functions and keys evaluated, whatever is there besides; and
that its state is as large as what it is about, however many epochs it took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from tests.oracle.loop_shapes import SHAPES, Edge, built, edges, moved, roots
from tests.oracle.looped import (
    accepted,
    exact_rounds,
    loop_stages,
    loop_state,
    pieces,
    run_exactly,
    stepped,
)

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.engine.runtime.lazy import LazyLoopStage
from ebbflow.engine.runtime.loop import LoopStage
from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.runtime.rounds import LiftedByKey, LiftedStage
from ebbflow.testing import random_epochs
from ebbflow.zset import ZSet

pytestmark = pytest.mark.filterwarnings("ignore::ebbflow.errors.MayNotEnd")
SIZES = (50, 500)
BOTH = pytest.mark.parametrize("way", [run, run_exactly], ids=["lazy", "by versions"])


class Counted:
    """A function of two rows that counts its calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.calls = function, 0

    def __call__(self, one: Any, other: Any) -> Any:
        self.calls += 1
        return self.function(one, other)


def chain(n: int, start: int = 0) -> list[Edge]:
    return [Edge(i, i + 1) for i in range(start, start + n)]


def reaching(way: Any, rows: Sequence[Edge]) -> tuple[Any, Counted]:
    """Reachability over these edges from node 0, with its joins counted."""
    met = Counted(lambda node, edge: edge.b)
    program = roots.iterate(
        lambda x: x.union(x.join(edges, left_on=lambda n: n, right_on="a", select=met))
    )
    view = way(program.plan)
    view.step(roots=[0], edges=rows)
    met.calls = 0
    return view, met


def evaluated(view: Any) -> list[Any]:
    """Has a list grow by each key that a stage of a loop evaluates from here on."""
    found: list[Any] = []

    def watch(stages: Any) -> None:
        for stage in stages:
            if isinstance(stage, LoopStage):
                watch(stage.body.stages)
            elif isinstance(stage, LiftedByKey):
                stage.evaluate = watched(stage.evaluate)

    def watched(evaluate: Any) -> Any:
        def seen(*rows: Any) -> Any:
            found.append(rows)
            return evaluate(*rows)

        return seen

    watch(loop_stages(view))
    return found


# ---- one change ----


@BOTH
def test_an_edge_that_changes_nothing_downstream_costs_the_same_in_a_graph_of_any_size(
    way: Any,
) -> None:
    found = set()
    for n in SIZES:
        view, met = reaching(way, chain(n))
        keys, back = evaluated(view), Edge(n - 5, n // 2)
        assert view.step(edges=[back]) == ZSet()
        assert view.step(edges={back: -1}) == ZSet()
        found.add((met.calls, len(keys)))
    ((calls, keys_seen),) = found
    assert calls <= 4
    assert keys_seen <= 4


def test_with_lazy_rounds_a_shorter_way_costs_nothing_downstream() -> None:
    for n in SIZES:
        view, met = reaching(run, chain(n))
        assert view.step(edges=[Edge(0, 5)]) == ZSet()
        assert met.calls == 1


@BOTH
def test_a_change_at_the_end_costs_the_same_in_a_graph_of_any_size(way: Any) -> None:
    found = set()
    for n in SIZES:
        view, met = reaching(way, chain(n))
        keys = evaluated(view)
        assert view.step(edges=chain(3, n)) == ZSet.of([n + 1, n + 2, n + 3])
        assert view.step(edges=ZSet.of(chain(3, n)) * -1) == -ZSet.of([n + 1, n + 2, n + 3])
        found.add((met.calls, len(keys)))
    ((calls, keys_seen),) = found
    assert calls <= 16
    assert keys_seen <= 16


@BOTH
def test_rows_that_nothing_leads_to_cost_nothing(way: Any) -> None:
    view, met = reaching(way, chain(20))
    keys = evaluated(view)
    assert view.step(edges=chain(300, 1000)) == ZSet()
    assert (met.calls, keys) == (0, [])


def test_a_round_evaluates_only_the_keys_that_it_touches() -> None:
    """A chain takes as many rounds as it has edges, and each looks at a few keys."""
    seen = {}
    for n in SIZES:
        view, met = reaching(run_exactly, [])
        keys = evaluated(view)
        view.step(edges=chain(n))
        seen[n] = met.calls, len(keys)
        assert met.calls == n
    small, large = SIZES
    assert seen[large][1] <= seen[small][1] * large / small + 4


def test_an_epoch_that_does_not_reach_a_loop_runs_no_round() -> None:
    words = ef.Input("words", str)
    program = ef.program(words=words.distinct(), reached=SHAPES["a_loop_in_a_loop"]())
    view = run(program.plan)
    view.step(roots=[0], edges=chain(5))
    (stage,) = loop_stages(view)
    rows = stage.counts.rows_in
    view.step(words=["a", "b"])
    assert stage.counts.rows_in == rows > 0


# ---- state ----


def entries(view: Any) -> int:
    """Everything that the loops of a view hold on to, what is empty included."""
    total = 0

    def count(held: Any) -> None:
        nonlocal total
        if isinstance(held, (dict, list, set, tuple)) and not hasattr(held, "_fields"):
            total += 1
            for each in held.values() if isinstance(held, dict) else held:
                count(each)

    def look(stage: Any) -> None:
        for container in stage.containers:
            count(getattr(container, "groups", None) or getattr(container, "values", {}))
            count(getattr(container, "pending", {}))
        if isinstance(stage, LoopStage):
            count([stage.waiting, stage.schedule.rounds, stage.schedule.known])
            for each in stage.body.stages:
                look(each)
        elif isinstance(stage, LiftedStage):
            count(stage.later)
        elif isinstance(stage, LazyLoopStage):
            count([stage.was, stage.derivations.emptied])

    for stage in loop_stages(view):
        look(stage)
    return total


def flat(name: str, way: Any, epochs: int) -> None:
    """Edges of a ring go and others come, and back again: the state is the same as before, and in
    the second half of the epochs never larger than in the first."""
    view, dice = way(SHAPES[name]().plan), Random(1)
    sources = view.plan.sources
    where = "roads" if "roads" in sources else "edges"

    def made(a: int, b: int) -> Any:
        return sources[where].type(a, b, *[1] * (where == "roads"))

    view.step({where: [made(i, (i + 1) % 6) for i in range(6)]})
    if "roots" in sources:
        view.step(roots=[0])
    before, sizes = rows_kept(view), list[int]()
    for _ in range(epochs // 2):
        a = dice.randrange(6)
        change = ZSet({made(a, (a + 1) % 6): -1, made(100, a): 1, made(a, 200): 1})
        view.step({where: change})
        view.step({where: -change})
        sizes.append(entries(view))
    assert rows_kept(view) == before
    half = len(sizes) // 2
    assert max(sizes[half:]) <= max(sizes[:half])


def rows_kept(view: Any) -> int:
    return sum(map(len, loop_state(view)))


FLAT = [
    ("reachability", run),
    ("reachability", run_exactly),
    ("shortest_paths", run),
    ("closure_of_itself_with_itself", run),
    ("a_loop_in_a_loop", run_exactly),
]


@pytest.mark.parametrize(("name", "way"), FLAT)
def test_002_D8_state_is_flat_over_epochs_of_adding_and_removing(name: str, way: Any) -> None:
    flat(name, way, 200)


def test_002_D8_state_is_flat_over_10_000_epochs_of_adding_and_removing() -> None:
    flat("reachability", run, 10_000)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "way"), FLAT[1:])
def test_002_D8_state_of_any_loop_is_flat_over_10_000_epochs(name: str, way: Any) -> None:
    flat(name, way, 10_000)


def emptied(name: str, way: Any) -> None:
    """Rows come, and all of them go again, in whatever epochs: then a loop keeps nothing."""
    program, dice = built(name), Random(name)
    epochs, _ = accepted(program, random_epochs(program, dice, 15, size=5))
    back = [{each: -rows for each, rows in epoch.items()} for epoch in reversed(epochs)]
    view = stepped(way(program.plan), [*pieces(epochs, dice), *pieces(back, dice)])
    assert rows_kept(view) == 0


@BOTH
@pytest.mark.parametrize("name", ["reachability", "closure_to_the_left", "shortest_paths"])
def test_nothing_is_left_when_all_rows_are_gone(name: str, way: Any) -> None:
    emptied(name, way)


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("name", sorted({*SHAPES} - {"an_input_with_a_key"}))
def test_nothing_is_left_in_a_loop_of_any_shape_when_all_rows_are_gone(name: str, way: Any) -> None:
    emptied(name, way)


def test_lazy_rounds_know_the_same_derivations_however_changes_are_cut() -> None:
    for name in ("reachability", "closure_of_itself_with_itself", "two_joins_with_itself"):
        program, dice = SHAPES[name](), Random(name)
        graph = [Edge(dice.randrange(8), dice.randrange(8)) for _ in range(30)]
        gone = dice.sample(graph, 12)
        start = {"roots": [0]} if "roots" in program.plan.sources else {}
        at_once, one_by_one = run(program.plan), run(program.plan)
        at_once.step({"edges": ZSet.of(graph) - ZSet.of(gone), **start})
        one_by_one.step(start)
        for edge in graph:
            one_by_one.step(edges=[edge])
        for edge in gone:
            one_by_one.step(edges={edge: -1})
        assert _derivations(at_once) == _derivations(one_by_one)


def _derivations(view: Any) -> dict[Any, int]:
    (stage,) = loop_stages(view)
    return {row: sum(table.values()) for row, table in stage.derivations.values.items()}


# ---- outside loops ----


def test_operators_outside_loops_are_those_of_a_program_without_loops() -> None:
    found = edges.join(edges, left_on="b", right_on="a", select=lambda a, b: Edge(a.a, b.b))
    best = found.filter(lambda e: e.a != e.b).group_by("a").agg(b=ef.max("b"))
    plain = Machine(ef.program(found=found, best=best).plan)
    with exact_rounds():
        looping = Machine(ef.program(
            found=found, best=best, loop=best.map(lambda row: row.b).iterate(moved, rounds=2)
        ).plan)  # fmt: skip
    kinds = [type(stage).__name__ for stage in plain.stages]
    assert kinds == [type(stage).__name__ for stage in looping.stages][: len(kinds)]
    outside = [stage for stage in looping.stages if not isinstance(stage, LoopStage)]
    assert not any(isinstance(stage, LiftedStage) for stage in outside)
    assert len(looping.stages) - len(outside) == 1
