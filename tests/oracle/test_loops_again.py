"""A monotone loop that is computed again gives what it gives by suspending facts, and what batch
gives: in memory, on disk and where state is fetched, and after an epoch that is refused."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.runtime import lazy
from ebbflow.engine.runtime.lazy import LazyLoopStage
from ebbflow.engine.runtime.loop_report import last_epoch
from ebbflow.errors import AbsentRow, EbbflowError
from ebbflow.flow.collection import Collection
from ebbflow.state.index import Index


class Edge(NamedTuple):
    source: int
    target: int
    cost: int


class Pair(NamedTuple):
    source: int
    target: int


class Distance(NamedTuple):
    node: int
    cost: int


def reachability(roots: Collection, edges: Collection) -> Collection:
    return roots.iterate(
        lambda reached: reached.union(
            reached.join(
                edges, left_on=lambda n: n, right_on="source", select=lambda n, e: e.target
            )
        )
    )


def with_steps(roots: Collection, edges: Collection) -> Collection:
    """Facts that are found by another key than their own, and come from a constant too."""
    more = edges.filter(lambda e: e.cost > 4).map(lambda e: e.source)
    return roots.iterate(
        lambda reached: (
            roots
            + more
            + reached.flat_map(lambda n: [n, n + 1]).join(
                edges, left_on=lambda n: n, right_on="source", select=lambda n, e: e.target
            )
        ).distinct()
    )


def closure(roots: Collection, edges: Collection) -> Collection:
    pairs = edges.map(lambda e: Pair(e.source, e.target))
    return pairs.iterate(
        lambda known: known.union(
            known.join(known, left_on="target", right_on="source",
                       select=lambda a, b: Pair(a.source, b.target))
        )
    )  # fmt: skip


def shortest(roots: Collection, edges: Collection) -> Collection:
    roads = edges.filter(lambda e: e.cost >= 0)
    start = roots.map(lambda n: Distance(n, 0))
    return start.iterate(
        lambda near: (
            start
            + near.join(roads, left_on="node", right_on="source",
                        select=lambda d, e: Distance(e.target, d.cost + e.cost))
        )
        .group_by("node")
        .agg(cost=ef.min("cost"))
    )  # fmt: skip


def components(roots: Collection, edges: Collection) -> Collection:
    both = edges + edges.map(lambda e: Edge(e.target, e.source, e.cost))
    own = roots.map(lambda n: Distance(n, n))
    return own.iterate(
        lambda labels: (
            own
            + labels.join(both, left_on="node", right_on="source",
                          select=lambda d, e: Distance(e.target, d.cost))
        )
        .group_by("node")
        .agg(cost=ef.min("cost"))
    )  # fmt: skip


PROGRAMS = [reachability, with_steps, closure, shortest, components]
Program = Callable[[Collection, Collection], Collection]


def program(make: Program) -> Collection:
    return make(ef.Input("roots", int), ef.Input("edges", Edge))


def stage_of(view: Any) -> LazyLoopStage:
    return next(s for s in view._program.machine.stages if isinstance(s, LazyLoopStage))


def contents(container: Any) -> Any:
    return container.groups if isinstance(container, Index) else container.values


def random_changes(seed: int, epochs: int) -> list[dict[str, ef.ZSet[Any]]]:
    """Changes that bring rows, take some away, and now and then nearly all."""
    dice = Random(seed)
    edges: list[Edge] = []
    found = []
    for number in range(epochs):
        change: dict[Any, int] = {}
        for _ in range(20 if number == 0 else dice.choice([0, 1, 2, 8])):
            edge = Edge(dice.randrange(7), dice.randrange(7), dice.randrange(6))
            if edge not in edges:
                edges.append(edge)
                change[edge] = 1
        for _ in range(dice.choice([0, 1, 3, len(edges) - 2])):
            if edges:
                edge = edges.pop(dice.randrange(len(edges)))
                change[edge] = change.pop(edge, 0) - 1 or 0
        roots = dict.fromkeys(range(3), 1) if number == 0 else {}
        found.append({"roots": ef.ZSet(roots), "edges": ef.ZSet(change)})
    return found


@pytest.mark.parametrize("make", PROGRAMS)
@pytest.mark.parametrize("options", [{}, {"path": "state"}, {"path": "state", "memory": "10KB"}],
                         ids=["memory", "disk", "limited"])  # fmt: skip
def test_oracle_loops_that_are_computed_again_follow_batch(
    make: Program, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dice = Random(3)
    bounds = [(0, 0), (1, 2), (3, 0), (10**9, 10**9)]
    monkeypatch.setattr(LazyLoopStage, "_bounds", lambda self: dice.choice(bounds))
    view = program(make).run(**options)
    names = set(view._program.inputs)
    for changes in random_changes(7, 10 if options else 25):
        change = {name: each for name, each in changes.items() if name in names}
        before = view.value
        if dice.random() < 0.3:
            missing = ef.ZSet({Edge(9, 9, 9): -1})
            with pytest.raises(AbsentRow):
                view.step(**{**change, "edges": change["edges"] + missing})
            assert view.value == before
        assert before + view.step(**change) == view.value
        view.verify()
    assert stage_of(view).recomputed
    view.close()


def test_a_failure_while_a_loop_is_computed_again_leaves_everything_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LazyLoopStage, "_bounds", lambda self: (0, 10**9))
    edges = ef.Input("edges", Edge)
    reached = ef.Input("roots", int).iterate(
        lambda reached: reached.union(
            reached.join(edges, left_on=lambda n: n, right_on="source",
                         select=lambda n, e: e.target // (e.cost and 1))
        )
    )  # fmt: skip
    view = reached.run()
    chain = [Edge(n, n + 1, 1) for n in range(6)]
    view.step(roots=[0], edges=chain)
    stage, before = stage_of(view), view.value
    kept = [deepcopy(contents(each)) for each in stage.containers]
    with pytest.raises(EbbflowError, match="division"):
        view.step(
            edges=ef.ZSet({chain[1]: -1, Edge(0, 8, 1): 1, Edge(8, 2, 1): 1, Edge(8, 7, 0): 1})
        )
    assert view.value == before
    assert [contents(each) for each in stage.containers] == kept
    assert stage.recomputed == 1
    assert view.step(edges=ef.ZSet({chain[5]: -1})) == ef.ZSet({6: -1})
    view.verify()


@pytest.mark.parametrize("make", [reachability, components])
def test_the_engine_chooses_to_compute_again(
    make: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When much of what facts are joined with goes, and when more than half of the facts are
    suspended; not for a first load, nor for rows that only come, nor for a small change."""
    monkeypatch.setattr(lazy, "FEW", 20)
    count = 80
    chain = [Edge(n, n + 1, 1) for n in range(count)]
    view = program(make).run()
    stage = stage_of(view)
    roots = [0] if make is reachability else list(range(count + 2))
    view.step(roots=roots, edges=chain[: count // 2])
    view.step(edges=chain[count // 2 :])
    view.step(edges=ef.ZSet({chain[-1]: -1}))
    assert stage.recomputed == 0
    assert "computed again" not in last_epoch(stage)
    around = [Edge(0, count + 1, 1), Edge(count + 1, 1, 1)]
    view.step(edges=ef.ZSet({chain[0]: -1, **dict.fromkeys(around, 1)}))
    assert stage.recomputed == 1
    view.step(edges=ef.ZSet(dict.fromkeys(chain[2 : count - 10], -1)))
    assert (stage.recomputed, stage.suspended) == (2, 0)
    assert " · computed again" in last_epoch(stage)
    view.verify()
