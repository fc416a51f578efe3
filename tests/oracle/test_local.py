"""The local engine against batch, change by change, on programs and changes nobody thought of."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ebbflow.engine.local import run
from ebbflow.errors import EbbflowError
from ebbflow.flow.source import Input
from ebbflow.testing import VERB_NAMES, changes, follow, plans, random_epochs, random_program
from ebbflow.testing.functions import Choices, RowShape, function
from ebbflow.testing.programs import Bill, Event, Measurement, Moment, Stock, Tag
from ebbflow.testing.reducers import MAKERS, SORTS
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))  # how many times as many examples
QUICK = settings(
    database=None,
    max_examples=90 * MORE,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)


@given(st.data())
@QUICK
def test_oracle_local_equals_batch(data: st.DataObject) -> None:
    program = data.draw(plans())
    follow(run, program, data.draw(changes(program)))


@given(st.data())
@settings(QUICK, max_examples=40 * MORE)
def test_oracle_local_equals_batch_on_trusted_input(data: st.DataObject) -> None:
    program = data.draw(plans())
    view = follow(lambda plan: run(plan, check_input=False), program, data.draw(changes(program)))
    assert view.epoch is not None


@pytest.mark.parametrize("check_input", [True, False])
def test_oracle_a_value_asked_for_late_is_what_asking_always_would_have_given(
    check_input: bool,
) -> None:
    derived = 0
    for seed in range(60 * MORE):
        program = random_program(seed)
        early, late = run(program.plan), run(program.plan, check_input=check_input)
        derived += any(
            state.rows is None and state._read is None for state in late._program.outputs.values()
        )
        for number, epoch in enumerate(random_epochs(program, seed, 8)):
            try:
                early.step(epoch)
            except EbbflowError:
                continue
            late.step(epoch)
            if number == seed % 8:
                assert late.value == early.value
        assert late.value == early.value
        late.close()
    assert derived > 5


@pytest.mark.parametrize("kind", VERB_NAMES)
def test_oracle_each_kind_of_step(kind: str) -> None:
    for seed in range(12 * MORE):
        dice = Random(f"{kind} {seed}")
        program = random_program(dice, verbs=[kind], size=2)
        follow(run, program, random_epochs(program, dice, 6, size=6))


@pytest.mark.parametrize("kind", [Measurement, Moment, Bill])
def test_oracle_floats_large_ints_times_and_decimals(kind: Any) -> None:
    for seed in range(25 * MORE):
        program = random_program(seed, types=[kind], size=5)
        follow(run, program, random_epochs(program, seed, 6, size=6))
    compared = (
        Input("a", Measurement)
        .filter(lambda r: r.n > r.x)
        .select("k", "n", big=lambda r: r.n == r.x)
    )
    follow(run, compared, random_epochs(compared, 1, 20, size=6))


@pytest.mark.parametrize("sort", SORTS)
def test_000_R6_reducers_of_every_sort_follow_changes(sort: str) -> None:
    items = Input("items", Stock)
    for seed in range(25 * MORE):
        dice = Random(f"{sort} {seed}")
        made, _ = MAKERS[sort](RowShape.of_type(Stock), Choices(dice.randrange(1 << 24)))
        grouped = dice.choice([items, items.group_by("k"), items.group_by("k", "s")])
        reduced = grouped.reduce(made) if dice.randint(0, 1) else grouped.agg(x=made, y=made)
        follow(run, reduced, random_epochs(reduced, dice, 8, size=6))


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("keyed", [None, "k"], ids=["bags", "keyed"])
def test_joins_follow_changes_on_both_sides_with_duplicates(how: str, keyed: Any) -> None:
    joined = Input("a", Stock, key=keyed).join(Input("b", Tag), on="k", how=how)
    for seed in range(15 * MORE):
        follow(run, joined, random_epochs(joined, Random(f"{how} {seed}"), 8, size=6))


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_a_collection_joined_with_itself_follows_its_changes(how: str) -> None:
    a = Input("a", Event)
    merge = None if how in ("semi", "anti") else function("(l, r)", "l, r")
    joined = a.join(a, left_on="k", right_on="t", how=how, select=merge)
    for seed in range(15 * MORE):
        follow(run, joined, random_epochs(joined, Random(f"{how} {seed}"), 8, size=6))


def test_a_long_run_stays_right() -> None:
    for seed in range(3 * MORE):
        program = random_program(seed, size=12)
        follow(run, program, random_epochs(program, seed, 60, size=3))


def test_everything_taken_away_leaves_nothing_but_what_empty_inputs_give() -> None:
    for seed in range(40 * MORE):
        program = random_program(seed)
        epochs = random_epochs(program, seed, 4)
        back = [{name: -change for name, change in epoch.items()} for epoch in reversed(epochs)]
        if any(node.key is not None for node in program.plan.sources.values()):
            continue
        view = follow(run, program, [*epochs, *back])
        values = [view.value] if isinstance(view.value, ZSet) else [*view.value.values()]
        assert not any(values)


@pytest.mark.parametrize("how", ["inner", "left", "full", "semi", "anti"])
def test_joins_with_rows_that_are_negative_are_right(how: str) -> None:
    negative = Input("b", Tag) - Input("c", Tag)
    joined = Input("a", Stock).join(negative, on="k", how=how)
    for seed in range(15 * MORE):
        follow(run, joined, random_epochs(joined, Random(f"{how} {seed}"), 8, size=6))
