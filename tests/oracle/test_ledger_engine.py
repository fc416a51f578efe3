"""The rows of the ledger that an engine can break, through a running view.

Each is shown on its own level already: on a reducer, a processor, a plan. Here the same is asked of
what a user runs.
"""

from __future__ import annotations

import operator
import pickle
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.local import run
from ebbflow.errors import AbsentRow
from ebbflow.flow.plan import Filter, Fused, Join, Plan
from ebbflow.flow.rewrite import fuse, push_filters
from ebbflow.reducer import RECOMPUTE, Reducer
from ebbflow.testing import follow, random_epochs
from ebbflow.zset import ZSet


class Purchase(NamedTuple):
    user: str
    price: int


class Gift(NamedTuple):
    user: str
    name: str


purchases = ef.Input("purchases", Purchase)
gifts = ef.Input("gifts", Gift)
START = [Purchase("user1", 30), Purchase("user1", 30), Purchase("user1", 50), Purchase("user2", 70)]


class Calls:
    """A reducer of prices whose calls of `add` and `remove` are written down."""

    def __init__(self, init: int, add: Any, remove: Any, partial: bool | None = None) -> None:
        self.made: list[str] = []
        self.reducer = Reducer(init, self.noted("add", add), self.noted("remove", remove),
                               partial=partial).on("price")  # fmt: skip

    def noted(self, name: str, f: Callable[[int, int], Any]) -> Callable[[int, int], Any]:
        def call(acc: int, price: int) -> Any:
            self.made.append(f"{name} {price}")
            return f(acc, price)

        return call

    def during(self, what: Callable[[], Any]) -> list[str]:
        self.made.clear()
        what()
        return list(self.made)


def highest_without(best: int, price: int) -> Any:
    return RECOMPUTE if price == best else best


# ---- 000 / 001: Skip's reduce ----


def test_000_R1_a_view_reduces_the_purchases_of_each_user() -> None:
    view = purchases.group_by("user").agg(total=ef.sum("price"), n=ef.count()).run()
    assert view.step(purchases=START) == ZSet.of([("user1", 110, 3), ("user2", 70, 1)])
    assert view.value == ZSet.of([("user1", 110, 3), ("user2", 70, 1)])
    view.input("purchases").remove(*START)
    assert view.value == ZSet()


def test_000_R6_a_view_takes_a_delta_exactly_when_what_it_removes_is_there() -> None:
    view = purchases.group_by("user").agg(total=ef.sum("price")).run()
    view.step(purchases=START)
    there = Purchase("user1", 30)
    with pytest.raises(AbsentRow, match="2 times"):
        view.step(purchases={there: -3, Purchase("user1", 20): 1})
    assert (view.epoch, view.value) == (1, ZSet.of([("user1", 110), ("user2", 70)]))
    assert view.step(purchases={there: -2, Purchase("user1", 20): 1}) == ZSet(
        {("user1", 110): -1, ("user1", 70): 1}
    )


def test_000_R7_in_an_epoch_a_view_removes_first_and_then_adds() -> None:
    calls = Calls(0, operator.add, operator.sub)
    view = purchases.group_by("user").reduce(calls.reducer).run()
    view.step(purchases=START)
    change = {Purchase("user1", 20): 1, Purchase("user2", 5): 1, Purchase("user1", 50): -1,
              Purchase("user2", 70): -1, Purchase("user1", 10): 1}  # fmt: skip
    made = calls.during(lambda: view.step(purchases=change))
    one, two = {"remove 50", "add 20", "add 10"}, {"remove 70", "add 5"}
    assert [call for call in made if call in one] == ["remove 50", "add 20", "add 10"]
    assert [call for call in made if call in two] == ["remove 70", "add 5"]
    assert view.value == ZSet.of([("user1", 90), ("user2", 5)])


def test_000_R8_a_view_of_a_well_formed_reducer_is_right_and_of_an_ill_formed_one_wrong() -> None:
    reducers = {
        "sum": Reducer(0, operator.add, operator.sub).on("price"),
        "highest": Reducer(0, max, highest_without).on("price"),
        "refolded": Reducer(0, max).on("price"),
        "tree": Reducer(0, max, merge=max).on("price"),
    }
    forgets = Reducer(0, max, lambda best, price: best).on("price")
    disagree = 0
    for seed in range(20):
        epochs = random_epochs(purchases, seed, 8)
        for reducer in reducers.values():
            follow(run, purchases.group_by("user").reduce(reducer), epochs)
        try:
            follow(run, purchases.group_by("user").reduce(forgets), epochs)
        except AssertionError:
            disagree += 1
    assert disagree > 5


@pytest.mark.parametrize("size", [10, 1_000])
def test_000_R9_a_view_folds_again_the_one_group_that_asks_and_only_then(size: int) -> None:
    calls = Calls(0, max, highest_without, partial=True)
    view = purchases.group_by("user").reduce(calls.reducer).run()
    rows = [Purchase(user, price) for user in ("user1", "user2") for price in range(1, size + 1)]
    view.step(purchases=rows)
    low, high = Purchase("user1", 5), Purchase("user1", size)
    assert calls.during(lambda: view.input("purchases").remove(low)) == ["remove 5"]
    made = calls.during(lambda: view.input("purchases").remove(high))
    assert Counter(made) == Counter(
        [f"remove {size}", *(f"add {price}" for price in range(1, size) if price != 5)]
    )
    assert view.value == ZSet.of([("user1", size - 1), ("user2", size)])


@pytest.mark.parametrize("size", [10, 1_000])
def test_000_R11_a_change_costs_a_view_one_call_for_each_row_of_it(size: int) -> None:
    calls = Calls(0, operator.add, operator.sub)
    view = purchases.group_by("user").reduce(calls.reducer).run()
    view.step(purchases=[Purchase(f"user{n % 3}", n) for n in range(size)])
    change = {Purchase("user0", 0): -1, Purchase("user1", 1): -1, Purchase("user0", size): 1}
    made = calls.during(lambda: view.step(purchases=change))
    assert sorted(made) == sorted(["remove 0", "remove 1", f"add {size}"])


def test_000_R12_one_reducer_value_serves_several_programs_also_after_a_journey() -> None:
    spread = (ef.max("price") & ef.min("price")).then(_difference)
    by_user = purchases.group_by("user").reduce(spread)
    everybody = purchases.agg(spread=spread)
    arrived = pickle.loads(pickle.dumps(spread))
    assert arrived == spread
    view = ef.program(a=by_user, b=everybody, c=purchases.group_by("user").reduce(arrived)).run()
    view.step(purchases=START)
    view.input("purchases").remove(Purchase("user1", 50))
    by_user_now = ZSet.of([("user1", 0), ("user2", 0)])
    assert view.value == {"a": by_user_now, "b": ZSet.of([(40,)]), "c": by_user_now}


def _difference(pair: tuple[int, int]) -> int:
    return pair[0] - pair[1]


# ---- 003: stream programs as homomorphisms ----


def same_changes(plain: Plan, rewritten: Plan) -> None:
    """The engine on the rewritten plan gives, epoch by epoch, the change that the plain one has."""
    for seed in range(15):
        view, inputs, old = run(rewritten), {}, ZSet()
        for epoch in random_epochs(plain, seed, 8):
            inputs |= {name: inputs.get(name, ZSet()) + change for name, change in epoch.items()}
            new = evaluate(plain, inputs)["output"]
            assert view.step(epoch) == new - old
            old = new


def verbs(plan: Plan) -> list[type]:
    return [type(node) for node in plan.nodes()]


def test_003_H5_fused_steps_give_the_same_changes() -> None:
    steps = (
        purchases.filter(lambda p: p.price > 0)
        .select("user", price=lambda p: p.price * 2)
        .filter(lambda p: p.price < 5)
        .distinct()
    )
    plain = Plan({"output": steps.node})
    fused = fuse(plain)
    assert verbs(fused).count(Fused) == 1
    assert Filter not in verbs(fused)
    same_changes(plain, fused)


def test_003_H5_a_filter_exchanged_with_a_join_gives_the_same_changes() -> None:
    late = purchases.join(gifts, on="user").filter(lambda row: row.price > 0 and row.name != "a")
    plain = Plan({"output": late.node})
    early = push_filters(plain)
    assert isinstance(plain.outputs["output"], Filter)
    join = early.outputs["output"]
    assert isinstance(join, Join)
    assert [type(side) for side in join.parents] == [Filter, Filter]
    same_changes(plain, early)


def halves(
    change: dict[str, ZSet[Any]], half: Callable[[Any], int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    first, second = (
        {name: rows.filter(lambda row, n=n: half(row) == n) for name, rows in change.items()}
        for n in (0, 1)
    )
    return first, second


def test_003_H8_a_join_partitioned_by_its_key_is_the_sum_of_its_parts_3_63() -> None:
    joined = purchases.join(gifts, on="user")
    for seed in range(20):
        whole, left, right = joined.run(), joined.run(), joined.run()
        for epoch in random_epochs(joined, seed, 8):
            first, second = halves(epoch, lambda row: len(row.user) % 2)
            assert whole.step(epoch) == left.step(first) + right.step(second)
        assert whole.value == left.value + right.value


def test_003_H8_a_join_partitioned_by_anything_else_is_not_3_62() -> None:
    joined, dice = purchases.join(gifts, on="user"), Random(1)
    sides: dict[Any, int] = {}
    lost = 0
    for seed in range(20):
        whole, left, right = joined.run(), joined.run(), joined.run()
        for epoch in random_epochs(joined, seed, 8):
            first, second = halves(epoch, lambda row: sides.setdefault(row, dice.randint(0, 1)))
            left.step(first)
            right.step(second)
            whole.step(epoch)
        lost += whole.value != left.value + right.value
    assert lost > 5
