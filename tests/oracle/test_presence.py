"""Rows of negative weight before every verb: the table of `ebbflow.flow.joins`, by arithmetic."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.oracle.presence import REFUSED, Part, check, program

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import EbbflowError
from ebbflow.zset import ZSet


class Batch:
    """The oracle as a view."""

    def __init__(self) -> None:
        self.inputs: dict[str, ZSet[Any]] = {}

    def step(self, epoch: Any) -> None:
        for name, change in epoch.items():
            self.inputs[name] = self.inputs.get(name, ZSet()) + change

    @property
    def value(self) -> Any:
        return evaluate(program().plan, self.inputs)


@pytest.mark.parametrize("seed", range(6))
def test_every_verb_over_negative_weights_means_what_the_table_says(seed: int) -> None:
    for view in (Batch(), program().run()):
        check(view.step, lambda view=view: view.value, Random(seed), 25)


@pytest.mark.parametrize("options", [{}, {"memory": 1}], ids=["held", "on disk"])
def test_every_verb_over_negative_weights_on_disk(tmp_path: Path, options: Any) -> None:
    path, dice, views = tmp_path / "state", Random(7), list[Any]()

    def step(epoch: Any) -> None:
        if views and dice.random() < 0.3:
            views.pop().close()
        if not views:
            views.append(program().run(path=path, **options))
        views[0].step(epoch)

    check(step, lambda: views[0].value, Random(8), 25)
    views[0].close()


def test_a_union_of_rows_and_of_what_is_negative_loses_nothing() -> None:
    a, b = ef.Input("a", str), ef.Input("b", str)
    view = (a - b).union(b).run()
    assert view.step(a=["x"], b=["z", "z"]) == ZSet({"x": 1, "z": 1})
    assert view.step(a={"z": 2}) == ZSet()
    assert view.step(b={"z": -2}) == ZSet()
    assert view.step(a={"z": -2}) == ZSet({"z": -1})


def test_a_union_of_bags_keeps_one_weight_a_row_as_it_always_did() -> None:
    a, b = ef.Input("a", str), ef.Input("b", str)
    assert [node.verb for node in a.union(b).plan.nodes()] == [
        "input",
        "input",
        "concat",
        "distinct",
    ]
    assert (a - b).union(b).plan.nodes()[-1].verb == "distinct"


@pytest.mark.parametrize("verb", REFUSED)
def test_what_needs_a_collection_refuses_rows_that_are_negative(verb: str) -> None:
    made = REFUSED[verb]
    view = made.run()
    view.step(a_plus=[Part(1, 1)])
    before = view.value
    with pytest.raises(EbbflowError, match="negative"):
        view.step(a_minus=[Part(2, 2)])
    with pytest.raises(EbbflowError, match="negative"):
        evaluate(made.plan, {"a_minus": ZSet.of([Part(2, 2)])})
    assert (view.epoch, view.value) == (1, before)
