"""Random programs in memory whose epochs are interrupted, one time or two times in a row: an epoch
happened or did not, the view equals batch, and it goes on.

The second interrupt often comes while the view takes back what it did before the first. Two within
a few instructions may leave an index of which nobody knows how much is done: such a view says so.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any

import pytest
from tests.oracle import test_columns_in_order as in_order
from tests.oracle.column_programs import epochs as column_epochs
from tests.oracle.column_programs import program as in_columns
from tests.oracle.interrupts import dice_of, interrupted
from tests.oracle.ordered_programs import ends, top

from ebbflow.engine.batch import evaluate
from ebbflow.engine.local import run
from ebbflow.errors import EbbflowError, ViewClosed
from ebbflow.flow.running import planned
from ebbflow.testing import VERB_NAMES, random_epochs, random_program
from ebbflow.zset import ZSet

ERRORS = [KeyboardInterrupt, MemoryError]
EPOCHS = 6


def of_rows(dice: Random) -> tuple[Any, Any]:
    program = random_program(dice, size=5, verbs=VERB_NAMES)
    return program.plan, random_epochs(program, dice, EPOCHS)


def of_columns(dice: Random) -> tuple[Any, Any]:
    made = dice.choice([in_columns, in_columns, top, ends])
    plan = planned({"output": made(dice).node})
    epochs = column_epochs if made is in_columns else in_order.epochs
    return plan, list(epochs(dice, list(plan.sources), EPOCHS, dice.choice([0, 0, 0.02])))


def points_of(dice: Random) -> list[int]:
    """Where the interrupts come: those at the beginning of a step more often than later ones."""
    first = int(10 ** dice.uniform(0, 3.6))
    return [first, dice.randint(1, dice.choice([9, 60, 400]))] if dice.random() < 0.6 else [first]


def followed(view: Any, plan: Any, given: Any, dice: Random, seen: Counter[str]) -> None:
    """Interrupt every epoch once or twice, and then have it happen."""
    there: dict[str, ZSet[Any]] = {name: ZSet() for name in plan.sources}
    for change in given:
        for cut in (True, True, False):
            before, points = view.epoch, points_of(dice) if cut else []
            interrupted(
                lambda change=change: view.step(change), *points,  # type: ignore[misc]
                error=dice.choice(ERRORS), published=False,
            )  # fmt: skip
            done = view.epoch > before
            if done:
                there = {name: rows + change.get(name, ZSet()) for name, rows in there.items()}
            seen["done" if done else "undone"] += 1
            value, expected = view.value, evaluate(plan, there)
            assert [value] == [*expected.values()] or value == expected, points
            if done:
                break
        assert done
    view.verify()


def interrupted_programs(how: str, number: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    dice = dice_of(how, number)
    for at in count():
        own = Random(f"{dice.random()} {at}")
        made = None
        with suppress(EbbflowError):  # a loop without an end, or a function that takes not all rows
            plan, given = of_columns(own) if how == "columns" else of_rows(own)
            plain = run(plan, columns=how == "columns")
            for change in given:
                plain.step(change)
            made = run(plan, columns=how == "columns")
        if made is None:
            continue
        seen["programs"] += 1
        try:
            followed(made, plan, given, own, seen)
        except ViewClosed:
            seen["closed"] += 1
        if seen["programs"] == number:
            break
    return seen


@pytest.mark.parametrize("how", ["rows", "columns"])
def test_oracle_a_few_programs_that_are_interrupted_equal_batch(how: str) -> None:
    seen = interrupted_programs(how, 10)
    assert seen["done"] > 20, seen
    assert seen["undone"] > 10, seen
    assert seen["closed"] < 4, seen


@pytest.mark.slow
@pytest.mark.parametrize("how", ["rows", "columns"])
@pytest.mark.parametrize("part", range(4))
def test_oracle_many_programs_that_are_interrupted_equal_batch(how: str, part: int) -> None:
    seen = interrupted_programs(f"{how}", 60 + part)
    assert seen["undone"] > 100, seen
    assert seen["closed"] < 6, seen
