"""Joins of inputs without keys that a reduce adds up, against recomputing: rows may be there many
times, and pairs of rows may come and go in the same epoch."""

from __future__ import annotations

import os
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.stages import AddedUpStage
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))


class Left(NamedTuple):
    k: int | None
    x: int


class Right(NamedTuple):
    k: int | None
    y: int


left, right = ef.Input("left", Left), ef.Input("right", Right)
PROGRAMS = {
    how: left.join(right, on="k", how=how).group_by("k").agg(n=ef.count(), x=ef.sum("x"))
    for how in ("inner", "left", "full", "semi", "anti")
} | {
    "mean": left.join(right, on="k").group_by("y").agg(x=ef.mean("x")),
    "all rows": left.join(right, on="k").agg(n=ef.count()),
    "filter": left.join(right, on="k", how="left")
    .filter(lambda row: row.y != 1)
    .group_by("x")
    .agg(n=ef.count()),
    "several rows of one": left.join(right, on="k")
    .flat_map(lambda row: [row.x, row.y])
    .group_by(lambda n: n)
    .agg(n=ef.count()),
    "minus": (left.join(right, on="k") - left.join(right, on="k").filter(lambda row: row.x > 1))
    .group_by("y")
    .agg(n=ef.count()),
}
ADDED_UP = set(PROGRAMS) - {"minus"}


def change(dice: Random, rows: ZSet[Any], made: Any) -> ZSet[Any]:
    new = ZSet.of([made(dice.choice((None, 0, 1)), dice.randrange(3)) for _ in range(3)])
    return new - ZSet({row: dice.randint(1, n) for row, n in rows.items() if dice.random() < 0.4})


@pytest.mark.parametrize("check_input", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_oracle_joins_that_are_added_up_equal_batch(name: str, check_input: bool) -> None:
    for seed in range(5 * MORE):
        dice = Random(f"{name} {seed}")
        view = PROGRAMS[name].run(columns=False, check_input=check_input)
        stages = view._program.machine.stages
        assert any(isinstance(each, AddedUpStage) for each in stages) is (name in ADDED_UP)
        there: dict[str, ZSet[Any]] = {"left": ZSet(), "right": ZSet()}
        before = view.value
        for _ in range(30):
            given = {
                "left": change(dice, there["left"], Left),
                "right": change(dice, there["right"], Right),
            }
            there = {each: rows + given[each] for each, rows in there.items()}
            before = before + view.step(given)
            (expected,) = evaluate(view.plan, there).values()
            assert view.value == before == expected


def test_an_error_behind_a_join_names_the_step_and_the_row() -> None:
    view = left.join(right, on="k").map(lambda row: 1 // row.x).group_by(lambda n: n)
    running = view.agg(n=ef.count()).run(columns=False)
    running.step(left=[Left(1, 2)], right=[Right(1, 1)])
    with pytest.raises(ef.EbbflowError, match=r"(?s)map.*x=0"):
        running.step(left=[Left(1, 0)])
    assert running.value == ZSet({(0, 1): 1})


def test_a_branch_of_joins_that_are_added_up() -> None:
    view = PROGRAMS["left"].run()
    view.step(left=[Left(1, 2), Left(2, 2)], right=[Right(1, 1)])
    branch = view.branch()
    branch.step(right=[Right(2, 1), Right(1, 1)], left={Left(2, 2): -1})
    view.step(left=[Left(1, 5)])
    assert branch.value == ZSet({(1, 2, 4): 1})
    assert view.value == ZSet({(1, 2, 7): 1, (2, 1, 2): 1})
    branch.verify()
    view.verify()
