"""Whatever goes wrong in an epoch of a program with loops, it happened or it did not.

A view with loops of all three kinds (lazy, of the best values, by versions and nested) is refused
epochs, interrupted at any instruction, and stopped before any call to a disk that forgets. The
oracle is batch; what an epoch does depends on its number alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.oracle.disk import Crash, Disk
from tests.oracle.interrupts import dice_of, instants, interrupted
from tests.oracle.loop_shapes import Edge, Road, built, edges, moved, roots
from tests.oracle.looped import loop_state, run_exactly

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.local import run
from ebbflow.errors import AbsentRow, EbbflowError, FunctionFailed, NoFixedPoint
from ebbflow.zset import ZSet

LOOPS = ef.program(
    reached=built("reachability"),
    paths=built("closure_of_itself_with_itself"),
    far=built("shortest_paths"),
    inner=built("a_loop_in_a_loop"),
)
pytestmark = pytest.mark.filterwarnings("ignore::ebbflow.errors.MayNotEnd")
NODES, EPOCHS = 6, 6


@cache
def change(epoch: int) -> dict[str, ZSet[Any]]:
    """What an epoch does to the inputs; the same every time."""
    dice, there = Random(epoch), inputs(epoch - 1)

    def node() -> int:
        return dice.randrange(NODES)

    came: dict[str, ZSet[Any]] = {
        "roots": ZSet.of([node()]),
        "edges": ZSet.of([Edge(node(), node()) for _ in range(3)]),
        "roads": ZSet.of([Road(node(), node(), dice.randrange(4)) for _ in range(3)]),
    }
    gone = {name: dice.sample(sorted(there[name]), min(2, len(there[name]))) for name in came}
    return {name: rows - ZSet.of(gone[name]) for name, rows in came.items()}


@cache
def inputs(epoch: int) -> dict[str, ZSet[Any]]:
    if epoch < 1:
        return {"roots": ZSet(), "edges": ZSet(), "roads": ZSet()}
    return {name: rows + change(epoch)[name] for name, rows in inputs(epoch - 1).items()}


@cache
def expected(epoch: int) -> dict[str, ZSet[Any]]:
    return evaluate(LOOPS.plan, inputs(epoch))


def advance(view: Any, last: int) -> None:
    while view.epoch < last:
        view.step(change(view.epoch + 1))
        assert view.value == expected(view.epoch)


# ---- interrupted ----


def through(view: Any, points: Iterable[int], *, second: int = 0) -> int:
    """Epochs that are interrupted at one point after the other; how many were undone."""
    undone, dice = 0, dice_of("the second", second)
    advance(view, 3)
    for number, point in enumerate(points):
        before = view.epoch
        interrupted(
            lambda before=before: view.step(change(before + 1)),
            *((point, dice.randint(1, second)) if second else (point,)),
            error=(KeyboardInterrupt, MemoryError)[number % 2],
            published=False,
        )
        assert view.epoch - before in (0, 1)
        undone += view.epoch == before
        assert view.value == expected(view.epoch), point
    advance(view, view.epoch + 3)
    view.verify()
    return undone


@pytest.mark.parametrize("way", [run, run_exactly], ids=["lazy", "by versions"])
def test_a_sample_of_interrupts_anywhere_in_a_loop(way: Any) -> None:
    assert through(way(LOOPS.plan), instants(60, 30_000, 1_201)) > 9


def test_a_sample_of_interrupts_anywhere_in_a_loop_on_disk(tmp_path: Path) -> None:
    with run(LOOPS.plan, path=tmp_path, memory=1) as view:
        assert through(view, instants(60, 40_000, 5_003), second=60) > 3
        epoch = view.epoch
    with run(LOOPS.plan, path=tmp_path) as view:
        assert (view.epoch, view.value, view.rebuilt) == (epoch, expected(epoch), ())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("way", [run, run_exactly], ids=["lazy", "by versions"])
def test_interrupts_nearly_everywhere_in_a_loop(way: Any, part: int) -> None:
    assert through(way(LOOPS.plan), instants(1 + part, 40_000, 136)) > 100


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"memory": 1}, {"flush_every": 3}], ids=str)
def test_many_interrupts_in_a_loop_on_disk(tmp_path: Path, options: dict[str, Any]) -> None:
    with run(LOOPS.plan, path=tmp_path, **options) as view:
        assert through(view, instants(1, 60_000, 797), second=200) > 24


# ---- stopped before a call to the disk ----


def whole_life(files: Any, known: list[int], **options: Any) -> None:
    view = run(LOOPS.plan, path=files, **options)
    end = view._storage._end
    try:
        while view.epoch < EPOCHS:
            view.step(change(view.epoch + 1))
            known.append(view.epoch)
        view.close()
    finally:
        end.detach()  # what has crashed closes nothing


def crash(at: int, how: str, **options: Any) -> None:
    broken, known = Disk(crash_at=at), [0]
    with pytest.raises(Crash):
        whole_life(broken, known, **options)
    with run(LOOPS.plan, path=broken.after(how, Random(at)), **options) as view:
        assert known[-1] <= view.epoch <= known[-1] + 1
        assert (view.rebuilt, view.value) == ((), expected(view.epoch))
        advance(view, view.epoch + 2)
        view.verify()


def calls(**options: Any) -> int:
    whole = Disk()
    whole_life(whole, [], **options)
    return int(whole.calls)


@pytest.mark.parametrize("options", [{}, {"memory": 1}], ids=str)
def test_a_sample_of_crashes_leaves_the_last_acknowledged_epoch_of_loops(
    options: dict[str, Any],
) -> None:
    total = calls(**options)
    for at in range(total // 6, total, total // 3):
        crash(at, ["lost", "kept", "torn"][at % 3], **options)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["lost", "kept", "torn"])
@pytest.mark.parametrize("options", [{}, {"memory": 1}], ids=str)
def test_many_crashes_leave_the_last_acknowledged_epoch_of_loops(
    options: dict[str, Any], how: str
) -> None:
    for at in range(0, calls(**options), 61):
        crash(at, how, **options)


# ---- refused ----


class Trap:
    """A function that fails on some nodes."""

    def __init__(self, bad: int) -> None:
        self.bad = bad

    def __call__(self, node: int) -> int:
        if node == self.bad:
            raise ValueError(f"no {node}")
        return node


def trapped() -> Any:
    trap = Trap(9)
    return ef.program(
        lazy=roots.iterate(lambda x: x.union(moved(x.map(trap)))),
        counted=roots.iterate(lambda x: (x + moved(x).map(trap)).distinct(), rounds=4),
        short=roots.iterate(lambda x: x.union(moved(x)), limit=6),
    )


REFUSED: list[tuple[type[EbbflowError], dict[str, Any]]] = [
    (NoFixedPoint, {"edges": [Edge(i, i + 1) for i in range(20, 40)], "roots": [20]}),
    (FunctionFailed, {"edges": [Edge(2, 9), Edge(9, 1)]}),
    (FunctionFailed, {"edges": [Edge(3, 4), Edge(4, 9), Edge(5, 3)], "roots": [3]}),
    (AbsentRow, {"edges": {Edge(0, 1): -1, Edge(7, 7): -1}}),
]


@pytest.mark.parametrize("where", ["memory", "disk", "little memory"])
@pytest.mark.parametrize("way", [run, run_exactly], ids=["lazy", "by versions"])
def test_a_refused_epoch_leaves_a_loop_exactly_as_it_was(
    way: Any, where: str, tmp_path: Path
) -> None:
    program = trapped()
    options = {} if where == "memory" else {"path": tmp_path}
    if where == "little memory":
        options["memory"] = 1
    view, plain = way(program.plan, **options), way(program.plan)
    good = {"roots": [0], "edges": [Edge(0, 1), Edge(1, 2), Edge(2, 0), Edge(2, 5), Edge(5, 2)]}
    view.step(good)
    plain.step(good)
    for error, epoch in REFUSED:
        before, state = view.value, deepcopy(loop_state(view))
        with pytest.raises(error):
            view.step(epoch)
        assert (view.epoch, view.value) == (plain.epoch, before)
        if where != "little memory":
            assert loop_state(view) == state
        here = Edge(0, 1 if view.epoch == 1 else 10 + view.epoch)
        more = {"edges": ZSet({here: -1, Edge(0, 11 + view.epoch): 1, Edge(11 + view.epoch, 2): 1})}
        assert view.step(more) == plain.step(more)
    view.verify()
    view.close()


# ---- what a failure says ----


class Fails:
    """A function of any rows that fails."""

    def __call__(self, *rows: Any) -> Any:
        raise ValueError("on purpose")


FAILING: dict[str, Callable[[Any, Any], Any]] = {
    "map": lambda rows, bad: rows.map(bad),
    "filter": lambda rows, bad: rows.filter(bad),
    "flat_map": lambda rows, bad: rows.flat_map(bad),
    "join": lambda rows, bad: rows.join(
        edges, left_on=lambda n: n, right_on="a", select=bad
    ),
    "left key": lambda rows, bad: rows.join(edges, left_on=bad, right_on="a").map(lambda p: p[0]),
    "right key": lambda rows, bad: rows.join(edges, left_on=lambda n: n, right_on=bad).map(
        lambda p: p[0]
    ),
    "semi": lambda rows, bad: rows.join(edges, left_on=bad, right_on="a", how="semi"),
    "reduce": lambda rows, bad: rows.reduce(ef.sum(bad)).map(lambda row: row[0]),
    "key": lambda rows, bad: rows.group_by(bad).reduce(ef.count()).map(lambda row: row[1]),
    "top_k": lambda rows, bad: rows.top_k(1, order=bad),
    "session": lambda rows, bad: rows.session(bad, 1).map(lambda row: row[0]),
}  # fmt: skip


def failure(program: Any, way: Any) -> FunctionFailed:
    view = way(program.plan)
    rows = {"roots": [1], "edges": [Edge(1, 2)]}
    with pytest.raises(FunctionFailed) as caught:
        view.step({name: rows[name] for name in program.plan.sources})
    assert not view.value
    return caught.value


@pytest.mark.parametrize("verb", FAILING)
@pytest.mark.parametrize("way", [run, run_exactly], ids=["lazy", "by versions"])
def test_a_function_that_fails_in_a_body_is_told_as_it_is_outside(verb: str, way: Any) -> None:
    failing, bad = FAILING[verb], Fails()
    outside = failure(failing(roots, bad), way)
    for rounds in (1, None):
        inside = failure(roots.iterate(lambda x: x.union(failing(x, bad)), rounds=rounds), way)
        assert inside.what == outside.what
        assert inside.facts.keys() == outside.facts.keys()
        assert inside.facts["created"] == outside.facts["created"]
        rest = {"row", "left", "right", "key"} & inside.facts.keys()
        assert {name: inside.facts[name] for name in rest} == {
            name: outside.facts[name] for name in rest
        }


@pytest.mark.parametrize("way", [run, run_exactly], ids=["lazy", "by versions"])
def test_a_function_that_fails_in_a_loop_in_a_loop_is_told_by_its_own_place(way: Any) -> None:
    bad = Fails()
    inner = lambda x: x.iterate(lambda y: y.union(y.map(bad)))
    error = failure(roots.iterate(lambda x: x.union(inner(x))), way)
    assert (error.what.split("(")[0], error.facts["row"]) == ("map", 1)
    assert "test_loop_crash.py" in str(error.facts["created"])
