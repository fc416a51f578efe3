"""Random programs with loops, and what is done with them: run by exact rounds, cut into epochs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from ebbflow.engine.batch import evaluate
from ebbflow.engine.local import run
from ebbflow.engine.runtime import compile as compiling
from ebbflow.engine.runtime.lazy import LazyLoopStage
from ebbflow.engine.runtime.loop import LoopStage
from ebbflow.errors import EbbflowError
from ebbflow.flow.plan import Iterate, Node, Plan
from ebbflow.flow.rewrite.terms import NotMonotone
from ebbflow.testing import ALL_NAMES, Epoch, random_epochs, random_program
from ebbflow.testing.loops import LOOP_NAMES
from ebbflow.zset import ZSet

LOOPY = (*ALL_NAMES, *LOOP_NAMES * 3)
"""Verbs of which about one in three is a loop."""


def looping(dice: Random, verbs: Sequence[str] = LOOPY) -> Any:
    """A random program that has a loop."""
    while True:
        made = random_program(dice, size=dice.randint(1, 5), verbs=verbs)
        if any(isinstance(node, Iterate) for node in made.plan.nodes()):
            return made


def every_node(plan: Plan) -> Iterator[Node]:
    """The nodes of a plan and of the bodies of its loops."""
    for node in plan.nodes():
        yield node
        if isinstance(node, Iterate):
            yield from every_node(node.body)


@contextmanager
def exact_rounds() -> Iterator[None]:
    """Inside it, programs are compiled as if no loop were monotone."""
    found = compiling.monotone
    compiling.monotone = lambda node: NotMonotone("it runs by exact rounds")
    try:
        yield
    finally:
        compiling.monotone = found


def run_exactly(plan: Plan, **options: Any) -> Any:
    """Run a plan here, all of its loops by exact rounds."""
    with exact_rounds():
        return run(plan, **options)


def loop_stages(view: Any) -> list[Any]:
    """The stages of a view that are loops."""
    stages = view._program.machine.stages
    return [stage for stage in stages if isinstance(stage, (LoopStage, LazyLoopStage))]


def loop_state(view: Any) -> list[dict[Any, Any]]:
    """What the loops of a view keep."""
    return [
        getattr(container, "groups", None) or getattr(container, "values", {})
        for stage in loop_stages(view)
        for container in stage.containers
    ]


# ---- epochs ----


def accepted(program: Any, epochs: Iterable[Epoch]) -> tuple[list[Epoch], dict[str, ZSet[Any]]]:
    """Of some epochs those that batch takes, and the inputs after them."""
    inputs: dict[str, ZSet[Any]] = {}
    taken: list[Epoch] = []
    for epoch in epochs:
        after = inputs | {name: inputs.get(name, ZSet()) + each for name, each in epoch.items()}
        try:
            if not all(rows.is_bag for rows in after.values()):
                continue
            evaluate(program.plan, after)
        except EbbflowError:
            continue
        inputs = after
        taken.append(dict(epoch))
    return taken, inputs


def pieces(epochs: Iterable[Epoch], dice: Random) -> list[Epoch]:
    """The same changes cut anew: some epochs row by row, what goes before what comes, and some
    together with the next."""
    found: list[Epoch] = []
    for epoch in epochs:
        what = dice.choice(["whole", "rows", "joined"])
        if what == "whole" or (what == "joined" and not found):
            found.append(epoch)
        elif what == "joined":
            found[-1] = added(found[-1], epoch)
        else:
            rows = [(n, row, w) for n, change in epoch.items() for row, w in change.items()]
            dice.shuffle(rows)
            found += [{name: ZSet({row: w})} for name, row, w in sorted(rows, key=_gone_first)]
    return found


def _gone_first(given: tuple[str, Any, int]) -> bool:
    return given[2] > 0


def added(one: Epoch, other: Epoch) -> Epoch:
    """Two epochs as one."""
    names = {**one, **other}
    return {name: one.get(name, ZSet()) + other.get(name, ZSet()) for name in names}


def stepped(view: Any, epochs: Iterable[Epoch]) -> Any:
    """The view after some epochs; one that it refuses is done together with the next."""
    left: Epoch = {}
    for epoch in epochs:
        left = added(left, epoch)
        try:
            view.step(left)
        except EbbflowError:
            continue
        left = {}
    if left:
        view.step(left)
    return view


def some_epochs(program: Any, dice: Random, epochs: int = 6, size: int = 4) -> list[Epoch]:
    """Random epochs of a program with loops."""
    return random_epochs(program, dice, epochs, size=size)
