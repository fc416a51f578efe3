"""Joins on inequalities and scalar filters, with the orders of all groups kept: the axioms, and
long runs with rows of any type, against what every pair of rows says."""

from __future__ import annotations

import operator
from random import Random
from typing import Any

import cloudpickle
import pytest
from tests.laws.keyed_operators import AnyOperator, fifth, half, itself, odd, random_change, third

from ebbflow.chain import Chain
from ebbflow.errors import NotDeterministic
from ebbflow.laws import check
from ebbflow.nan import NAN
from ebbflow.operator import top_rows
from ebbflow.operator.range_join import range_join
from ebbflow.operator.relation import RowChain
from ebbflow.operator.scalar import Threshold, scalar_filter
from ebbflow.state import spots
from ebbflow.state.index import Index
from ebbflow.zset import ZSet

SIGNS = ("<", "<=", ">", ">=", "!=")
TWO_WAYS = [
    [(half, "<=", half), (fifth, ">=", third)],
    [(fifth, "!=", fifth), (half, "<", half)],
    [(fifth, "!=", fifth), (third, "!=", third)],
]
ANY_TYPE = [None, NAN, 1, 1.5, True, "a", "b", (1, None), (1, 2), frozenset([1]), 2.5, -3, 0]


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spots, "KEPT", 1)


def run(of: AnyOperator, rows: list[Any], seed: Any, n: int = 50, travel: bool = True) -> None:
    """Follow random changes; half-way the operator and its state go through a pickle, unless they
    hold a NaN, which would be another then."""
    random = Random(seed)
    x: Any = (ZSet.of(random.choices(rows, k=12)), ZSet.of(random.choices(rows, k=3)))
    live, y = of.open(x), of.f(x)
    for i in range(n):
        if i == n // 2 and travel:
            of, live.state = cloudpickle.loads(cloudpickle.dumps((of, live.state)))
            live.processor = of
        change = random_change(x, rows, random)
        moved = live.send(change)
        x = of.input.patch(x, change)
        y = y + moved
        assert y == of.f(x)
        assert all(weight for _, weight in moved.items())
        assert of.invariant(x, live.state)


@pytest.mark.parametrize("how", ["inner", "semi", "anti"])
@pytest.mark.parametrize("sign", SIGNS)
def test_one_comparison_follows_rows_of_any_type(sign: str, how: str) -> None:
    of_all = range_join(None, None, where=[(itself, sign, itself)], how=how)
    run(of_all, ANY_TYPE, f"{sign} {how}", travel=False)
    numbers = list(range(30))
    run(range_join(odd, odd, where=[(half, sign, third)], how=how), numbers, f"{how} {sign}")


@pytest.mark.parametrize("how", ["inner", "semi", "anti"])
@pytest.mark.parametrize("where", TWO_WAYS, ids=["interval", "order and not", "two nots"])
def test_two_comparisons_follow_every_change(where: Any, how: str) -> None:
    run(range_join(None, None, where=where, how=how), list(range(40)), how)
    run(range_join(odd, odd, where=where, how=how), list(range(40)), how)


@pytest.mark.parametrize("sign", ["<", ">=", "=="])
def test_a_threshold_moves_over_rows_in_order(sign: str) -> None:
    signs = {"<": operator.lt, ">=": operator.ge, "==": operator.eq}
    holds = scalar_filter(
        lambda a, b: signs[sign](a // 2, b // 2), threshold=Threshold(half, sign, half)
    )
    run(RowChain(Chain()) * top_rows(1, fifth) >> holds, list(range(40)), sign)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["inner", "semi", "anti"])
def test_orders_that_are_kept_fulfil_every_axiom(how: str) -> None:
    check(
        range_join(odd, odd, where=[(half, "<", half), (fifth, "!=", fifth)], how=how), examples=3
    )


def test_an_order_goes_back_with_its_epoch_and_is_made_anew_when_it_is_cut_short() -> None:
    def place(row: Any) -> Any:
        return (10 // row,)

    index = spots.SpotIndex(None, place, ZSet.of([1, 2, 5]))
    assert [spot for spot, _ in index.order(()).spots] == [(2,), (5,), (10,)]
    index.begin()
    index.apply(ZSet({5: -1, 3: 1}))
    assert [spot for spot, _ in index.order(()).spots] == [(3,), (5,), (10,)]
    index.rollback()
    assert [spot for spot, _ in index.order(()).spots] == [(2,), (5,), (10,)]
    index.begin()
    with pytest.raises(ZeroDivisionError):
        index.apply(ZSet({0: 1, 7: 1}))
    index.rollback()
    assert index.groups == Index(None, ZSet.of([1, 2, 5])).groups
    assert index.in_order()
    assert [spot for spot, _ in index.order(()).spots] == [(2,), (5,), (10,)]


def test_a_row_whose_place_has_changed_is_found_out() -> None:
    places = iter([1, 2, 3])
    index = spots.SpotIndex(None, lambda row: (next(places),), ZSet.of(["a"]))
    index.order(())
    with pytest.raises(NotDeterministic, match="its place in the order is another"):
        index.apply(ZSet({"a": 1, "b": 1}) - ZSet({"a": 2}))
