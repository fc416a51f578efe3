"""Reducers by example: the papers' own numbers, every reducer of the library, None, NaN, errors."""

from __future__ import annotations

import math
import operator
import pickle
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import cloudpickle
import pytest

from ebbflow import reducer as r
from ebbflow.change import BAG, KEEP, Replace
from ebbflow.errors import ChangeError, CompositionError, EbbflowError
from ebbflow.reducer import RECOMPUTE, Map, Reducer
from ebbflow.zset import ZSet

SUM = Reducer(0, operator.add, operator.sub, name="SUM")
COUNT = Reducer(0, lambda n, _: n + 1, lambda n, _: n - 1, name="COUNT")
MIN = Reducer(math.inf, min, lambda low, x: RECOMPUTE if x == low else low, name="MIN")
AVERAGE = Reducer(
    (0, 0), lambda a, x: (a[0] + x, a[1] + 1), lambda a, x: (a[0] - x, a[1] - 1),
    result=lambda a: a[0] / a[1] if a[1] else None, name="AVERAGE",
)  # fmt: skip


def second(row: tuple[Any, Any]) -> Any:
    return row[1]


class Order(NamedTuple):
    id: int
    city: str | None
    price: Any


ORDERS = [Order(1, "Rome", 10), Order(2, "Rome", 30), Order(3, "Oslo", 7), Order(4, "Oslo", None)]
BIG = 10**400

# ---- the papers' examples ----

PURCHASES = {"user1": ZSet.of([30, 30, 50]), "user2": ZSet.of([70])}


def reduce(reducer: Reducer, collection: dict[str, ZSet]) -> dict[str, Any]:
    return {key: reducer.fold(bag) for key, bag in collection.items()}


def test_000_R1_reduce_folds_the_purchases_of_each_user() -> None:
    assert reduce(SUM, PURCHASES) == {"user1": 110, "user2": 70}
    assert reduce(COUNT, PURCHASES) == {"user1": 3, "user2": 1}
    assert SUM.fold([30, 30, 50]) == SUM.fold([50, 30, 30]) == 110
    rows = ZSet.of((user, price) for user, bag in PURCHASES.items() for price in bag.rows())
    by_user = SUM.on(lambda row: row[1]).operator(lambda row: row[0])
    assert by_user.f(rows) == ZSet.of([("user1", 110), ("user2", 70)])


def test_000_R2_folding_a_union_is_folding_one_after_the_other() -> None:
    some, more = [30], [30, 50]
    assert SUM.fold(some + more) == SUM.update(SUM.fold(some), ZSet.of(more)) == 110


def test_000_R3_adding_and_removing_a_purchase_leaves_the_total() -> None:
    total = SUM.fold([30, 30, 50])
    assert SUM.remove(SUM.add(total, 20), 20) == total


def test_000_R6_a_delta_is_applied_checked_and_constructed() -> None:
    old, delta = PURCHASES["user1"], ZSet({30: -1, 20: 1})
    new = ZSet.of([30, 50, 20])
    assert BAG.patch(old, delta) == new
    assert BAG.diff(new, old) == delta
    assert (delta.positive(), delta.negative()) == (ZSet.of([20]), ZSet.of([30]))
    with pytest.raises(ChangeError, match="takes away what is not there"):
        SUM.update(110, ZSet({30: -3}), old)


def test_000_R7_an_update_removes_first_and_then_adds() -> None:
    calls: list[str] = []
    spy = Reducer(
        0,
        lambda a, x: calls.append(f"+{x}") or a + x,
        lambda a, x: calls.append(f"-{x}") or a - x,
    )
    assert spy.update(110, ZSet({20: 1, 30: -1}), PURCHASES["user1"]) == 100
    assert calls == ["-30", "+20"]


def test_000_R8_removing_cancelled_purchases_gives_the_total_of_the_rest() -> None:
    assert SUM.update(110, ZSet({30: -1})) == SUM.fold([30, 50]) == 80


def test_000_R9_one_removal_asks_to_recompute_and_another_does_not() -> None:
    bag = ZSet.of([3, 5])
    assert MIN.update(3, ZSet({5: -1}), bag) == 3
    assert MIN.update(3, ZSet({3: -1})) is RECOMPUTE
    assert MIN.update(3, ZSet({3: -1}), bag) == 5
    no_remove = Reducer(0, operator.add)
    assert no_remove.update(8, ZSet({3: -1})) is RECOMPUTE
    assert no_remove.update(8, ZSet({3: -1, 1: 2}), bag) == 7
    assert no_remove.update(8, ZSet({1: 1})) == 9


@pytest.mark.parametrize("total", [SUM, r.sum()], ids=str)
def test_000_R10_the_worked_sum(total: Reducer) -> None:
    acc = total.fold([3, 5, 7])
    assert total.finish(acc) == 15
    assert total.finish(total.update(acc, ZSet({5: -1, 2: 1}))) == total([3, 7, 2]) == 12


@pytest.mark.parametrize("size", [COUNT, r.count()], ids=str)
def test_000_R10_the_worked_count(size: Reducer) -> None:
    assert size.update(size.fold("xyz"), ZSet({"y": -1, "w": 1})) == 3


@pytest.mark.parametrize("average", [AVERAGE, r.mean()], ids=str)
def test_000_R10_the_average_is_a_sum_and_a_count_shown_as_a_quotient(average: Reducer) -> None:
    acc = average.fold([3, 5, 7])
    assert average.finish(acc) == 5
    assert average.finish(average.update(acc, ZSet({7: -1}))) == 4
    assert average([]) is None
    assert average.update(acc, ZSet({3: -1, 5: -1, 7: -1})) == average.start()


@pytest.mark.parametrize("lowest", [MIN, r.min()], ids=str)
def test_000_R10_the_worked_minimum(lowest: Reducer) -> None:
    bag = ZSet.of([3, 5])
    acc = lowest.fold(bag)
    assert lowest.finish(lowest.update(acc, ZSet({5: -1}), bag)) == 3
    assert lowest.finish(lowest.update(acc, ZSet({3: -1}), bag)) == 5


def test_000_R12_one_reducer_serves_several_programs() -> None:
    total = r.sum("price")
    assert total(ORDERS) == 47
    by_city = total.operator("city").open(ZSet.of(ORDERS))
    assert by_city.send(ZSet({ORDERS[0]: -1})) == ZSet({("Rome", 40): -1, ("Rome", 30): 1})
    stream = total.processor("city").open()
    assert stream.send(ZSet.of(ORDERS)) == ZSet.of([("Rome", 40), ("Oslo", 7)])
    assert total(ORDERS) == 47


# ---- combining ----


def test_combinations_compute_what_they_say() -> None:
    both = r.count() & r.sum("price") & r.max("price").then(lambda top: top and -top)
    assert both(ORDERS) == (4, 47, -30)
    assert r.sum("price").where(lambda order: order.city == "Rome")(ORDERS) == 40
    assert r.count().where("price")(ORDERS) == 3
    assert r.sum("price").by("city")(ORDERS) == {"Rome": 40, "Oslo": 7}
    assert r.count().by("city", "price")(ORDERS)["Oslo", None] == 1
    assert (r.count() & (r.sum() & r.min()))([1, 2]) == (2, 3, 1)
    assert ((r.count() & r.sum()).then(str) & r.min())([1, 2]) == ("(2, 3)", 1)
    assert SUM.on("price")([Order(1, "Rome", 2)]) == 2
    assert SUM.on(lambda pair: pair[0] * pair[1]).on("id", "price")([Order(3, "", 4)]) == 12


def test_combinations_recompute_only_when_a_part_asks() -> None:
    both = COUNT & MIN
    bag = ZSet.of([3, 5])
    assert both.update((2, 3), ZSet({5: -1}), bag) == (1, 3)
    assert both.update((2, 3), ZSet({3: -1})) is RECOMPUTE
    assert both.update((2, 3), ZSet({3: -1}), bag) == (1, 5)
    folding = Reducer(0, operator.add)
    assert (COUNT & folding).remove is None
    assert folding.where(lambda x: x > 3).update(5, ZSet({3: -1})) == 5
    assert folding.where(lambda x: x > 3).update(5, ZSet({5: -1})) is RECOMPUTE
    per_parity = folding.by(lambda x: x % 2)
    acc = per_parity.fold([1, 2, 3])
    assert per_parity.finish(per_parity.update(acc, ZSet({2: -1}))) == {1: 4}
    assert per_parity.update(acc, ZSet({1: -1})) is RECOMPUTE
    merging = Reducer(0, max, merge=max)
    assert (r.max() & merging).remove is None
    assert (r.max() & merging).merge is not None


def test_weighted_rows_count_as_often_as_they_are_there() -> None:
    for reducer in (r.sum(), r.count(), r.median(), SUM, r.mean() & SUM, SUM.by(lambda x: x % 2)):
        assert reducer(ZSet({3: 4, 5: 1})) == reducer([3, 3, 3, 3, 5])
        acc = reducer.update(reducer.fold(ZSet({3: 4, 5: 1})), ZSet({3: -3}))
        assert reducer.finish(acc) == reducer([3, 5])


def test_groups_do_not_share_a_mutable_start() -> None:
    rows = Reducer([], lambda acc, x: acc.append(x) or acc)
    assert rows.fold([1]) == [1]
    assert rows.fold([2]) == [2]
    nested = Reducer(([], 0), lambda acc, x: (acc[0].append(x) or acc[0], acc[1] + 1))
    assert nested.fold([1]) == ([1], 1)
    assert nested.start() == ([], 0)
    made = Reducer(list, lambda acc, x: [*acc, x])
    assert made.start() is not made.start()


# ---- programs ----


def test_an_operator_replaces_its_result_only_when_it_changes() -> None:
    live = r.max("price").operator().open(ZSet.of(ORDERS))
    assert live.send(ZSet({ORDERS[0]: -1})) is KEEP
    assert live.send(ZSet({ORDERS[1]: -1})) == Replace(7)
    assert live.send(ZSet({ORDERS[2]: -1, ORDERS[3]: -1})) == Replace(None)
    with pytest.raises(ChangeError, match="cannot take"):
        live.send(ZSet({ORDERS[2]: -1}))


def test_a_group_without_rows_disappears_and_a_group_of_nulls_does_not() -> None:
    by_city = r.sum("price").operator("city")
    live = by_city.open(ZSet.of(ORDERS))
    assert by_city.keys(ZSet.of(ORDERS[2:])) == {"Oslo"}
    assert live.send(ZSet({ORDERS[2]: -1})) == ZSet({("Oslo", 7): -1, ("Oslo", None): 1})
    assert live.send(ZSet({ORDERS[3]: -1})) == ZSet({("Oslo", None): -1})
    assert list(live.state.values) == ["Rome"]
    with pytest.raises(ChangeError, match="cannot take"):
        live.send(ZSet({ORDERS[3]: -1}))


def test_a_processor_waits_for_a_row_that_is_negative() -> None:
    live = r.sum().processor().open()
    assert live.send(ZSet({5: -1})) == ZSet()
    assert live.send(ZSet({5: 1, 3: 1})) == ZSet({3: 1})
    assert live.send(ZSet({3: -1})) == ZSet({3: -1})
    whole = r.sum().processor()
    assert whole(ZSet({5: 2})) == ZSet({10: 1})
    assert repr(r.sum("price").processor("city")) == "(sum('price')).processor('city')"


def test_a_step_that_raises_leaves_the_state_as_it_was() -> None:
    for reducer in (r.sum(second), MIN.on(second), Reducer(0, operator.add, merge=max).on(second)):
        live = reducer.operator(operator.itemgetter(0)).open(ZSet.of([("a", 1), ("b", 2)]))
        before = pickle.dumps(live.operator.init(ZSet.of([("a", 1), ("b", 2)])))
        with pytest.raises((TypeError, EbbflowError)):
            live.send(ZSet({("a", 1): -1, ("a", 5): 1, ("b", "x"): 1}))
        assert live.state == pickle.loads(before)
    with pytest.raises(ChangeError, match="more rows are taken away"):
        r.count().operator().step(r.count().operator().init(ZSet()), ZSet({1: -1}))


def test_a_promise_not_to_recompute_is_held() -> None:
    broken = Reducer(math.inf, min, lambda low, x: RECOMPUTE, partial=False)
    live = broken.operator().open(ZSet.of([1, 2]))
    with pytest.raises(ChangeError, match="declared partial=False"):
        live.send(ZSet({1: -1}))


# ---- as values ----

COMBINED = [
    r.sum("price"), r.top_k(2, "price", smallest=True), r.quantile(0.25, "price", discrete=True),
    r.string_agg("city", separator="; ", order="id"), r.count() & r.max("price"),
    r.sum("price").by("city"), r.mean("price").then(str), r.covariance("id", "price"),
    r.approx_count_distinct("city", exact=8, bits=6), r.min().on("id"), r.first("city", order="id"),
    (r.count() & r.sum("id")).then(len) & r.max("id"), (r.count() & r.sum("id")).by("city"),
    (r.count() & r.sum()).on("id"), (r.count() & r.sum("id")).where("city"),
    (r.count() & r.sum("id")).where("city").then(len), r.rank(None, "city"), r.rank(None),
    r.rank(3, "id"),
]  # fmt: skip


@pytest.mark.parametrize("reducer", COMBINED, ids=str)
def test_000_R12_reducers_survive_the_trip_to_a_worker(reducer: Reducer) -> None:
    there = pickle.loads(pickle.dumps(reducer))
    assert there(ORDERS) == reducer(ORDERS)
    assert there == reducer
    assert hash(there) == hash(reducer)
    assert repr(there) == repr(reducer)
    acc = reducer.fold(ORDERS)
    assert pickle.loads(pickle.dumps(acc)) == acc


def test_000_R12_lambdas_survive_the_trip_to_a_worker() -> None:
    mine = Reducer(0, lambda a, x: a + x, lambda a, x: a - x, name="mine").on(lambda o: o.id)
    there = cloudpickle.loads(cloudpickle.dumps(mine & r.sum(lambda o: o.price)))
    assert there(ORDERS) == (10, 47)
    assert pickle.loads(pickle.dumps(RECOMPUTE)) is RECOMPUTE
    assert r.Recompute() is RECOMPUTE
    live = r.sum("price").operator("city").open(ZSet.of(ORDERS))
    assert pickle.loads(pickle.dumps(live)).send(ZSet({ORDERS[0]: -1}))


def test_reducers_show_how_they_were_made() -> None:
    shown = [repr(each) for each in COMBINED]
    assert shown[:6] == [
        "sum('price')", "top_k(2, 'price', smallest=True)",
        "quantile(0.25, 'price', discrete=True)",
        "string_agg('city', separator='; ', order='id')", "count() & max('price')",
        "sum('price').by('city')",
    ]  # fmt: skip
    for reducer in COMBINED:
        assert eval(repr(reducer), {**vars(r), "str": str}) == reducer
    both = r.count() & r.sum("a")
    assert repr(both.then(len) & r.max("b")) == "(count() & sum('a')).then(len) & max('b')"
    assert repr(r.rank(None)) == "rank(None)"
    assert repr(Reducer(0, operator.add, operator.sub)) == "Reducer(0, add, sub)"
    assert repr(Reducer(list, max)) == "Reducer(list, max)"
    assert SUM != COUNT
    assert Reducer(0, operator.add) == Reducer(0, operator.add)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: r.sum("prise")(ORDERS), "no field 'prise'"),
        (lambda: r.sum("price")([{"prise": 1}]), "no field 'price'"),
        (lambda: r.sum(3), "is no part of a row"),
        (lambda: r.top_k(0), "at least 1"),
        (lambda: r.quantile(1.5), "no quantile"),
        (lambda: r.median()(["a", "b"]), "nothing between"),
        (lambda: r.approx_quantile(0.5, error=2), "makes no sketch"),
        (lambda: r.approx_count_distinct(bits=99), "makes no sketch"),
        (lambda: r.variance()([timedelta(1)]), "no square"),
        (lambda: Reducer(0, max, aggregate="odd"), "no class of aggregates"),
        (lambda: Reducer(0, None), "add must be a function"),
        (lambda: SUM.fold(ZSet({1: -1})), "only a collection can be folded"),
        (lambda: SUM.by(lambda x: 0).remove(Map(), 3), "not there"),
        (lambda: r.max().remove(r.max().fold([1]), 2), "cannot be taken away"),
        (lambda: r.sum()([timedelta.max] * 2), "longer than the longest"),
        (lambda: r.median()([BIG, BIG + 3]), "too large for a float"),
        (lambda: r.median()([Decimal(1), Fraction(5, 2)]), "does not mix"),
        (lambda: r.median()([0.5, Decimal(1)]), "does not mix"),
        (lambda: r.approx_quantile(0.5)([BIG]), "none near"),
        (lambda: r.approx_quantile(0.5)([Decimal("-1e400")]), "none near"),
        *[
            (lambda make=make: make()([Decimal("sNaN")]), "signaling")
            for make in (
                r.sum,
                r.mean,
                r.min,
                r.product,
                r.variance,
                r.count_distinct,
                r.collect,
                r.mode,
                r.approx_count_distinct,
                lambda: r.approx_quantile(0.5),
                r.median,
            )
        ],
        (lambda: r.set_of().remove(r.set_of().fold([1]), 2), "cannot be taken away"),
    ],
)
def test_mistakes_are_named(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(EbbflowError, match=says):
        make()


def test_an_unknown_field_names_the_nearest() -> None:
    with pytest.raises(CompositionError) as error:
        r.sum("prise")(ORDERS)
    assert error.value.remedy == "'price'"
    assert SUM != 3
    with pytest.raises(TypeError):
        SUM & 3
