"""The tasks of the Spark engine against batch, change by change, on programs nobody thought of.

No Spark is needed for these: `simulated` calls the tasks one after the other. The state is closed
and opened again between some of the epochs, and the number of tasks changes, as it may.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.oracle.asked import follow_requests, program_of, tables
from tests.oracle.random_requests import RandomRequests
from tests.spark.forms import some_form
from tests.spark.simulated import View

from ebbflow.engine.runtime.events import key_fields
from ebbflow.flow.plan import Plan
from ebbflow.flow.source import Input
from ebbflow.record import fields_of
from ebbflow.testing import VERB_NAMES, changes, follow, plans, random_epochs, random_program
from ebbflow.testing.functions import Choices, RowShape
from ebbflow.testing.programs import Bill, Measurement, Moment, Stock, Tag
from ebbflow.testing.reducers import MAKERS, SORTS

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))  # how many times as many examples
MODES = ["driver", "single_task", "staged"]
SHARED = Path("/dev/shm") if Path("/dev/shm").is_dir() else None  # much faster than a disk
each_mode = pytest.mark.parametrize("mode", MODES)


class Reopened(View):
    """A view that is closed and opened again, or gets other tasks, before some of its epochs, and
    changes in all forms."""

    dice = Random(0)

    def advance(self, asked: Any) -> Any:
        if self.dice.random() < 0.2:
            self.reopen()
        self.tasks = self.dice.randint(1, 4)
        sources = self.plan.sources
        return super().advance({
            name: change if name in self.by_floats
            else some_form(change, sources[name].type, self.dice)
            for name, change in asked.items()
        })  # fmt: skip

    @property
    def by_floats(self) -> set[str]:
        """Inputs whose key may be NaN, which is no key of a table."""
        return {
            name for name, source in self.plan.sources.items()
            if source.key is not None
            and any(fields_of(source.type)[each] is float for each in key_fields(source) or ())
        }  # fmt: skip


@contextmanager
def running(
    mode: str, dice: Random, check_input: bool = True, of: type[Reopened] = Reopened
) -> Iterator[Any]:
    """How to run plans on a cluster that is not there; what runs is closed in the end."""
    views: list[View] = []
    with TemporaryDirectory(prefix="ebbflow-", dir=SHARED) as path:

        def run(plan: Plan) -> View:
            view = of(plan, mode, 3, check_input, f"{path}/{len(views)}")
            view.dice = Random(dice.random())
            views.append(view)
            return view

        try:
            yield run
        finally:
            for view in views:
                view.close()


def followed(
    mode: str, program: Any, dice: Random, epochs: int = 5, size: int = 6, check_input: bool = True
) -> None:
    with running(mode, dice, check_input) as run:
        follow(run, program, random_epochs(program, dice, epochs, size=size))


# ---- random programs ----


@each_mode
@pytest.mark.parametrize("check_input", [True, False], ids=["checked", "trusted"])
def test_oracle_tasks_give_what_batch_gives(mode: str, check_input: bool) -> None:
    for seed in range((9 if check_input else 3) * MORE):
        dice = Random(f"{mode} {seed}")
        followed(mode, random_program(seed), dice, check_input=check_input)


@pytest.mark.parametrize("kind", VERB_NAMES)
def test_oracle_each_kind_of_step(kind: str) -> None:
    for number, mode in enumerate(MODES * MORE):
        dice = Random(f"{kind} {number}")
        followed(mode, random_program(dice, verbs=[kind], size=2), dice, check_input=number % 4 > 0)


@each_mode
@pytest.mark.parametrize("kind", [Measurement, Moment, Bill])
def test_oracle_floats_large_ints_and_times(mode: str, kind: Any) -> None:
    for seed in range(3 * MORE):
        followed(mode, random_program(seed, types=[kind], size=5), Random(f"{mode} {seed}"))


@pytest.mark.parametrize("sort", SORTS)
def test_reducers_of_every_sort(sort: str) -> None:
    items = Input("items", Stock)
    for seed in range(2 * MORE):
        dice = Random(f"{sort} {seed}")
        made, _ = MAKERS[sort](RowShape.of_type(Stock), Choices(dice.randrange(1 << 24)))
        grouped = dice.choice([items, items.group_by("k"), items.group_by("k", "s")])
        reduced = grouped.reduce(made) if dice.randint(0, 1) else grouped.agg(x=made, y=made)
        followed(MODES[1 + seed % 2], reduced, dice, 6)


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("keyed", [None, "k"], ids=["bags", "keyed"])
def test_joins_follow_changes_on_both_sides_with_duplicates(how: str, keyed: Any) -> None:
    joined = Input("a", Stock, key=keyed).join(Input("b", Tag), on="k", how=how)
    for seed in range(2 * MORE):
        followed(MODES[1 + seed % 2], joined, Random(f"{how} {seed}"), 6)


@given(st.data())
@settings(
    database=None,
    max_examples=20 * MORE,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)
def test_oracle_waves_of_tasks_give_what_batch_gives(data: st.DataObject) -> None:
    program, tasks = data.draw(plans()), data.draw(st.integers(1, 4))
    with TemporaryDirectory(prefix="ebbflow-", dir=SHARED) as path:
        view = View(program.plan, "staged", tasks, path=path)
        try:
            follow(lambda plan: view, program, data.draw(changes(program)))
        finally:
            view.close()


# ---- requests ----


def requests(mode: str, dice: Random, epochs: int) -> Counter[str]:
    """A random program with keys, and what is asked of its inputs; how often what was."""
    program = program_of(dice)
    asked = RandomRequests(program, dice)
    with running(mode, dice) as run:
        return follow_requests(run(program.plan), program.plan, asked, epochs, tables(asked, dice))


@each_mode
def test_oracle_requests_in_tasks_give_what_batch_gives(mode: str) -> None:
    done: Counter[str] = Counter()
    for seed in range(7 * MORE):
        done += requests(mode, Random(f"{mode} {seed}"), 7)
    assert min(done[verb] for verb in ("weights", "upsert", "feed", "replace", "refused")) > 0


# ---- more of the same ----


@pytest.mark.slow
@each_mode
@pytest.mark.parametrize("part", range(4))
def test_oracle_many_programs(mode: str, part: int) -> None:
    for seed in range(1000 + part, 1100, 4):
        dice = Random(f"{mode} {seed}")
        followed(mode, random_program(seed), dice, 8, check_input=seed % 5 > 0)


@pytest.mark.slow
@each_mode
@pytest.mark.parametrize("kind", VERB_NAMES)
def test_oracle_each_kind_of_step_often(mode: str, kind: str) -> None:
    for seed in range(2):
        dice = Random(f"{kind} {mode} {seed}")
        followed(mode, random_program(dice, verbs=[kind], size=3), dice, 8)


@pytest.mark.slow
@each_mode
def test_oracle_requests_in_tasks_often(mode: str) -> None:
    for seed in range(100, 140):
        requests(mode, Random(f"{mode} {seed}"), 10)


@pytest.mark.slow
@each_mode
def test_a_long_run_stays_right(mode: str) -> None:
    for seed in range(3):
        followed(mode, random_program(seed, size=12), Random(f"{mode} {seed}"), 60, size=12)
