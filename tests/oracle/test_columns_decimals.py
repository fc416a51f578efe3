"""Programs over Decimals with digits: columns give the values and the digits that rows give."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.oracle.decimal_programs import epochs, program

from ebbflow.engine.local import run
from ebbflow.engine.runtime.columnar import few
from ebbflow.flow.plan import Plan
from ebbflow.flow.running import planned
from ebbflow.testing import follow

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))
MOST = few.FEW


@pytest.fixture(autouse=True)
def few_rows_again() -> Iterator[None]:
    yield
    few.FEW = MOST


def given_up(view: Any) -> list[str]:
    stages = view._program.machine.stages
    return [stage.given_up for stage in stages if stage.in_columns and stage.given_up]


class Same:
    """A view in columns beside one in rows: every change is written alike, digit by digit."""

    def __init__(self, plan: Plan, seen: Counter[str], **options: Any) -> None:
        self.view = run(plan, columns=True, **options)
        self.rows = run(plan, columns=False, **options)
        for stage in self.view._program.machine.stages:
            seen[type(stage).__name__] += 1
            assert stage.in_columns, self.view.explain()

    def step(self, changes: Any) -> Any:
        made, expected = self.view.step(changes), self.rows.step(changes)
        for name in made if isinstance(made, dict) else [None]:
            ours, theirs = (made, expected) if name is None else (made[name], expected[name])
            assert written(ours) == written(theirs), self.view.explain()
        return made

    @property
    def value(self) -> Any:
        return self.view.value


def written(change: Any) -> list[str]:
    return sorted(f"{tuple(row)} {weight}" for row, weight in change.items())


def test_oracle_decimals_in_columns_equal_rows_and_batch() -> None:
    seen: Counter[str] = Counter()
    for seed in range(150 * MORE):
        random = Random(seed)
        few.FEW = random.choice([0, MOST])
        plan = planned({"output": program(random).node})
        check, hard = random.random() < 0.6, random.choice([0, 0, 0.1])
        given = epochs(random, list(plan.sources), 8, hard)
        try:
            made = follow(
                lambda plan, check=check: Same(plan, seen, check_input=check), plan, given
            )  # type: ignore[misc]
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        gave = given_up(made.view)
        seen.update(gave)
        seen["easy"] += not hard
        seen["easy, and gave up"] += bool(gave) and not hard
    for each in ("Linear", "Reduce", "Arrange", "Join", "Group", "Semi", "Distinct", "Top"):
        assert seen[f"Column{each}Stage"] > 4, seen
    assert seen["a Decimal of more than 64 bits"] > 0, seen
    assert seen["easy, and gave up"] < seen["easy"] // 50, seen
