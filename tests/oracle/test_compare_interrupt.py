"""Orders that are kept for comparisons: an interrupt anywhere leaves them as they should be."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.oracle.interrupts import instants, interrupted

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.state import spots
from ebbflow.zset import ZSet


class Row(NamedTuple):
    k: int
    x: int


A, B = ef.Input("a", Row), ef.Input("b", Row)
PROGRAM = ef.program(
    semi=A.join(B, on="k", where=ef.gt("x"), how="semi"),
    anti=A.join(B, where=(ef.ge("x"), ef.ne("k")), how="anti"),
    inner=A.join(B, on="k", where=ef.lt("x"), suffixes=("", "_other")),
    scalar=A.filter(lambda row, all: row.x > all.mean, B.agg(mean=ef.mean("x"))),
)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"path": ""}, {"path": "", "memory": 1}], ids=str)
def test_oracle_an_interrupt_leaves_every_order_right(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spots, "KEPT", 2)
    dice = Random(4)
    view = PROGRAM.run(**{**options, **({"path": tmp_path / "state"} if options else {})})
    there = {"a": ZSet[Any](), "b": ZSet[Any]()}
    raised = 0
    for point in instants(5, 9000, 47 if options else 19):
        for points in ([], [point]):
            change = {}
            for name, rows in there.items():
                new = ZSet.of([Row(dice.randrange(2), dice.randrange(12)) for _ in range(2)])
                change[name] = new - ZSet.of([row for row in rows if dice.random() < 0.25])
            before = view.epoch

            def step(given: Any = change) -> Any:
                return view.step(given)

            raised += interrupted(step, *points, published=False)
            if view.epoch != before:
                there = {name: there[name] + change[name] for name in there}
            assert view.value == evaluate(PROGRAM.plan, there)
    containers = [each for stage in view._program.machine.stages for each in stage.containers]
    orders = [each for each in containers if isinstance(each, spots.SpotIndex)]
    assert orders
    assert all(each.in_order() for each in orders)
    assert raised > 100
    view.close()
