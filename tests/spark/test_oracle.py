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
from tests.spark.forms import some_form
from tests.spark.simulated import View

from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.inputs import APPLY, DELETE, UPSERT
from ebbflow.flow.plan import Plan
from ebbflow.flow.plan.time import ClockSource
from ebbflow.flow.source import Input
from ebbflow.testing import VERB_NAMES, changes, follow, plans, random_epochs, random_program
from ebbflow.testing.epochs import row_maker
from ebbflow.testing.functions import Choices, RowShape
from ebbflow.testing.programs import Bill, Measurement, Moment, Stock, Tag
from ebbflow.testing.reducers import MAKERS, SORTS
from ebbflow.zset import ZSet

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
            name: (verb, some_form(change, sources[name].type, self.dice))
            for name, (verb, change) in asked.items()
        })  # fmt: skip


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
    for seed in range((16 if check_input else 6) * MORE):
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
    deadline=None,
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


# ---- what is done by key ----


class ByKey:
    """The rows of inputs with keys, and random things done to them."""

    def __init__(self, plan: Plan, dice: Random) -> None:
        self.plan, self.dice = plan, dice
        self.there: dict[str, Counter[Any]] = {name: Counter() for name in plan.sources}
        self.done: Counter[str] = Counter()

    def epoch(self) -> dict[str, tuple[str, Any]]:
        names = self.dice.sample(sorted(self.there), self.dice.randint(1, len(self.there)))
        return {name: each for name in names if (each := self._asked(name)) is not None}

    def _asked(self, name: str) -> tuple[str, Any] | None:
        source, there, dice = self.plan.sources[name], self.there[name], self.dice
        row = row_maker(source)
        rows = [row(dice.randrange(1 << 20)) for _ in range(dice.randint(1, 4))]
        key = None if source.key is None else source.key.call
        verb = APPLY if key is None else dice.choice([UPSERT, UPSERT, DELETE, APPLY])
        self.done[verb] += 1
        if key is None:
            gone = Counter(dice.sample([*there], min(len(there), dice.randint(0, 2))))
            there += (added := Counter(rows)) - gone  # type: ignore[misc]
            there -= gone - added  # type: ignore[misc]
            self.there[name] = there
            return verb, ZSet(added) - ZSet(gone)
        held = {key(each): each for each in there}
        if verb == DELETE:
            gone_keys = dice.sample([*held], min(len(held), dice.randint(1, 3)))
            for at in gone_keys:
                del there[held[at]]
            return (verb, gone_keys) if gone_keys else None
        latest = {key(each): each for each in rows}
        old = [held[at] for at in latest if at in held]
        for each in old:
            del there[each]
        there.update(latest.values())
        if verb == UPSERT:
            return verb, list(latest.values())
        return verb, ZSet.of(latest.values()) - ZSet.of(old)


def by_key(mode: str, dice: Random, epochs: int) -> Counter[str]:
    """A random program with keys, changed by them; how often what was done."""
    while True:
        program = random_program(dice)
        sources = program.plan.sources.values()
        clocks = any(isinstance(source, ClockSource) for source in sources)
        if not clocks and any(source.key is not None for source in sources):
            break
    plan = program.plan
    inputs = ByKey(plan, dice)
    with running(mode, dice) as run:
        view = run(plan)
        total = evaluate(plan, {})
        for _ in range(epochs):
            change = view.advance(inputs.epoch())
            value = view.value
            if len(plan.outputs) == 1:
                (only,) = plan.outputs
                change, value = {only: change}, {only: value}
            total = {name: rows + change[name] for name, rows in total.items()}
            expected = evaluate(plan, {name: ZSet(rows) for name, rows in inputs.there.items()})
            assert total == expected
            assert value == expected
    return inputs.done


@each_mode
def test_oracle_upserts_and_deletes_between_other_changes(mode: str) -> None:
    done: Counter[str] = Counter()
    for seed in range(7 * MORE):
        done += by_key(mode, Random(f"{mode} {seed}"), 7)
    assert min(done[verb] for verb in (APPLY, UPSERT, DELETE)) > 5


# ---- more of the same ----


@pytest.mark.slow
@each_mode
@pytest.mark.parametrize("part", range(4))
def test_oracle_many_programs(mode: str, part: int) -> None:
    for seed in range(1000 + part, 1400, 4):
        dice = Random(f"{mode} {seed}")
        followed(mode, random_program(seed), dice, 8, check_input=seed % 5 > 0)


@pytest.mark.slow
@each_mode
@pytest.mark.parametrize("kind", VERB_NAMES)
def test_oracle_each_kind_of_step_often(mode: str, kind: str) -> None:
    for seed in range(10):
        dice = Random(f"{kind} {mode} {seed}")
        followed(mode, random_program(dice, verbs=[kind], size=3), dice, 8)


@pytest.mark.slow
@each_mode
def test_oracle_upserts_and_deletes_often(mode: str) -> None:
    for seed in range(100, 300):
        by_key(mode, Random(f"{mode} {seed}"), 10)


@pytest.mark.slow
@each_mode
def test_a_long_run_stays_right(mode: str) -> None:
    for seed in range(6):
        followed(mode, random_program(seed, size=12), Random(f"{mode} {seed}"), 60, size=12)
