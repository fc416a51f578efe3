"""Branches against views of their own: whatever is done to a view and to its branches, each is what
it would be alone."""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.oracle.column_programs import Sale, Shop
from tests.oracle.column_programs import epochs as changes
from tests.oracle.column_programs import program as column_program
from tests.oracle.ordered_programs import ends, top

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.errors import AbsentRow, CompositionError, EbbflowError, ViewClosed
from ebbflow.flow.running import planned
from ebbflow.testing import random_epochs, random_program
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))


class Edge(NamedTuple):
    start: str
    end: str


def reachable() -> Any:
    """What can be reached from roots, by a loop."""
    edges = ef.Input("edges", Edge)
    return ef.Input("roots", str).iterate(
        lambda reached: reached.union(
            reached.join(edges, left_on=str, right_on="start", select=lambda at, edge: edge.end)
        )
    )


class Pair:
    """A view or a branch, and a view of its own that is told the same."""

    def __init__(self, view: Any, plan: Any, told: list[Any]) -> None:
        self.view, self.plan, self.told = view, plan, told
        self.alone = run(plan)
        for epoch in told:
            self.alone.step(epoch)

    def step(self, epoch: Any) -> None:
        try:
            expected = self.alone.step(epoch)
        except EbbflowError as error:
            with pytest.raises(type(error)):
                self.view.step(epoch)
        else:
            self.told.append(epoch)
            assert self.view.step(epoch) == expected

    def branch(self) -> Pair:
        return Pair(self.view.branch(), self.plan, list(self.told))

    def check(self) -> None:
        assert self.view.value == self.alone.value
        self.view.verify()


def differences(one: Any, other: Any) -> Any:
    if isinstance(one, ZSet):
        return one - other
    return {name: one[name] - other[name] for name in one}


@pytest.mark.parametrize("kept", [False, True])
def test_oracle_views_and_branches_never_see_each_other(kept: bool, tmp_path: Path) -> None:
    for seed in range((12 if kept else 60) * MORE):
        dice = Random(f"branch {seed} {kept}")
        program = random_program(dice)
        options: dict[str, Any] = {"path": tmp_path / str(seed)} if kept else {}
        pairs = [Pair(run(program.plan, **options), program.plan, [])]
        original = pairs[0]
        for number, epoch in enumerate(random_epochs(program, dice, 14, size=5)):
            dice.choice(pairs).step(epoch)
            if number in (3, 5):
                pairs.append(original.branch())
            elif number == 7:
                pairs.append(pairs[-1].branch())
            if not dice.randrange(3):
                dice.choice(pairs).check()
        for each in pairs:
            each.check()
        for each in pairs[1:3]:
            assert each.view.compare() == differences(each.view.value, original.view.value)
        for each in reversed(pairs):
            each.view.close()


@pytest.mark.parametrize("mode", ["rows", "columns", "columns on disk"])
def test_oracle_plans_of_columns_have_branches(mode: str, tmp_path: Path) -> None:
    """Joins of every kind in front of group-bys, first rows, differences; a branch takes rows."""
    for seed in range((16 if mode == "columns on disk" else 40) * MORE):
        dice = Random(f"branch of {mode} {seed}")
        made = dice.choice([column_program, joined, top, ends])(dice)
        plan = planned({"output": made.node})
        options = {"path": tmp_path / str(seed)} if "disk" in mode else {}
        pairs = [Pair(run(plan, columns=mode != "rows", **options), plan, [])]
        for number, epoch in enumerate(changes(dice, list(plan.sources), 8, 0)):
            dice.choice(pairs).step(epoch)
            if number in (3, 5):
                pairs.append(pairs[-1].branch())
        for each in pairs:
            each.check()
        for each in reversed(pairs):
            each.view.close()


def joined(dice: Random) -> Any:
    """A join of any kind, which a group-by alone reads."""
    sales, shops = ef.Input("sales", Sale), ef.Input("shops", Shop)
    how = dice.choice(["inner", "left", "right", "full", "semi", "anti"])
    both = sales.join(shops, on="city", how=how)
    return both.group_by("city").agg(n=ef.count(), **dice.choice([{}, {"last": ef.max("city")}]))


def test_oracle_an_adopted_branch_is_as_if_it_had_been_done_to_the_view() -> None:
    for seed in range(40 * MORE):
        dice = Random(f"adopt {seed}")
        program = random_program(dice)
        view = run(program.plan)
        epochs = list(random_epochs(program, dice, 10, size=5))
        for epoch in epochs[:5]:
            _try(view, epoch)
        branch = view.branch()
        for epoch in epochs[5:]:
            _try(branch, epoch)
        value, changed = branch.value, branch.compare()
        assert branch.adopt() == changed
        assert view.value == value
        view.verify()
        with pytest.raises(ViewClosed):
            _ = branch.value


def _try(view: Any, epoch: Any) -> None:
    with suppress(EbbflowError):
        view.step(epoch)


def test_a_branch_costs_the_keys_that_it_touches() -> None:
    class Sale(NamedTuple):
        shop: int
        price: int

    sales = ef.Input("sales", Sale)
    shops = sales.group_by("shop").agg(total=ef.sum("price"), top=ef.max("price"))
    view = shops.run()
    view.step(sales=[Sale(shop, price) for shop in range(200) for price in range(20)])
    branch = view.branch()
    backings = [
        each.backing for stage in branch._program.machine.stages for each in stage.containers
    ]
    assert not any(backing.resident for backing in backings)
    branch.step(sales=[Sale(7, 100), Sale(8, 100)])
    assert {key for backing in backings for key in backing.resident} == {7, 8}
    saved = [backing.kept.saved for backing in backings]
    view.step(sales=[Sale(8, 100), Sale(9, 100)])
    assert {key for each in saved for key in each} == {9}


def test_a_loop_has_branches() -> None:
    view = reachable().run()
    view.step(roots=["a"], edges=[Edge("a", "b"), Edge("b", "c"), Edge("c", "b")])
    with view.branch() as branch:
        assert branch.step(edges={Edge("a", "b"): -1}) == ZSet({"b": -1, "c": -1})
        assert view.step(edges=[Edge("c", "d")]) == ZSet({"d": 1})
        assert branch.compare() == ZSet({"b": -1, "c": -1, "d": -1})
        branch.verify()
    view.verify()


def test_what_is_gone_from_the_view_cannot_be_adopted_and_the_branch_stays() -> None:
    view = ef.Input("numbers", int).map(lambda n: -n).run()
    view.step(numbers=[1, 2])
    branch = view.branch()
    branch.step(numbers={1: -1})
    view.step(numbers={1: -1})
    with pytest.raises(AbsentRow):
        branch.adopt()
    assert (view.value, branch.value) == (ZSet({-2: 1}), ZSet({-2: 1}))
    branch.step(numbers=[1])
    assert branch.adopt() == ZSet()


def test_callbacks_hear_of_their_own_view_and_of_what_is_adopted() -> None:
    heard: list[Any] = []
    view = ef.Input("numbers", int).distinct().run()
    view.on_change(heard.append)
    branch = view.branch()
    branch.step(numbers=[1])
    assert heard == []
    branch.adopt()
    assert heard == [ZSet({1: 1})]


def test_a_dropped_branch_costs_its_view_nothing() -> None:
    view = ef.Input("numbers", int).distinct().run()
    view.branch().step(numbers=[1])
    gc.collect()
    assert view._program.observers == []


def test_a_branch_outlives_its_view() -> None:
    view = ef.Input("numbers", int).distinct().run()
    view.step(numbers=[1])
    branch = view.branch()
    view.close()
    assert branch.step(numbers=[2]) == ZSet({2: 1})
    assert branch.value == ZSet({1: 1, 2: 1})
    with pytest.raises(ViewClosed):
        branch.adopt()


def test_a_view_with_a_memory_limit_has_no_branches(tmp_path: Path) -> None:
    view = ef.Input("numbers", int).distinct().run(path=tmp_path, memory="1MB")
    with pytest.raises(CompositionError, match="memory limit"):
        view.branch()
    view.close()


def test_states_of_operators_that_are_altered_in_place_are_not_shared() -> None:
    """An operator of `through` may alter the containers of its state, key by key."""
    numbers = ef.Input("numbers", int)
    view = numbers.through(ef.operator.distinct(), per=lambda n: n % 2).run()
    view.step(numbers=[1, 2, 3])
    early, late = view.branch(), view.branch()
    assert early.step(numbers={1: -1}) == ZSet({(1, 1): -1})
    assert view.step(numbers=[3, 5]) == ZSet({(1, 5): 1})
    assert view.step(numbers={5: -1}) == ZSet({(1, 5): -1})
    assert late.step(numbers={3: -1}) == ZSet({(1, 3): -1})
    for each in (view, early, late):
        each.verify()


class Reading(NamedTuple):
    place: str
    at: int
    value: int


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("verb", ["over", "asof_join", "interval_join"])
def test_a_branch_computes_the_rows_in_order_of_keys_that_only_its_view_has(
    verb: str, kept: bool, tmp_path: Path
) -> None:
    readings, others = ef.Input("readings", Reading), ef.Input("others", Reading)
    programs: dict[str, Any] = {
        "over": readings.over(per="place", order="at").with_fields(total=ef.sum("value")),
        "asof_join": others.asof_join(readings, on="place", order="at", suffixes=("", "_of")),
        "interval_join": others.interval_join(
            readings, on="place", order="at", low=-1, high=1, suffixes=("", "_of")
        ),
    }
    plan = programs[verb].plan
    rows = [Reading("abc"[n % 3], n, n) for n in range(9)]
    pair = Pair(run(plan, **({"path": tmp_path / "state"} if kept else {})), plan, [])
    pair.step(dict.fromkeys(plan.sources, rows))
    branch = pair.branch()
    branch.step({"readings": [Reading("a", -1, 3)]})
    pair.step({"readings": {rows[1]: -1, rows[2]: -1}})
    branch.check()
    pair.check()
