"""How much work a change makes: calls of ⊕, ⊖ and merge counted, whatever the size of the group."""

from __future__ import annotations

import math
import operator
from collections import Counter
from typing import Any

import pytest

from ebbflow import reducer as r
from ebbflow.reducer import RECOMPUTE, Reducer
from ebbflow.zset import ZSet

N = 2_000


class Counted:
    """A reducer whose calls are counted."""

    def __init__(self, reducer: Reducer) -> None:
        self.calls: Counter[str] = Counter()
        names = ("add", "remove", "merge")
        given = {name: self.spy(name, getattr(reducer, name)) for name in names}
        self.reducer = Reducer(
            reducer.init, given["add"], given["remove"], given["merge"], partial=reducer.partial
        )

    def spy(self, name: str, f: Any) -> Any:
        def counted(*arguments: Any) -> Any:
            self.calls[name] += 1
            return f(*arguments)

        return f and counted

    def during(self, act: Any) -> dict[str, int]:
        self.calls.clear()
        act()
        return dict(self.calls)


SUM = Reducer(0, operator.add, operator.sub, partial=False)
LOW = Reducer(math.inf, min, lambda low, x: RECOMPUTE if x == low else low)


@pytest.mark.parametrize("size", [10, N])
def test_000_R11_an_update_costs_one_call_for_each_row_of_the_change(size: int) -> None:
    counted = Counted(SUM)
    bag = ZSet.of(range(size))
    acc = counted.reducer.fold(bag)
    delta = ZSet({0: -1, 1: -1, 2: -1, size: 1, size + 1: 1})
    calls = counted.during(lambda: counted.reducer.update(acc, delta, bag))
    assert calls == {"remove": 3, "add": 2}


@pytest.mark.parametrize("size", [10, N])
def test_000_R11_an_operator_costs_one_call_for_each_row_of_the_change(size: int) -> None:
    counted = Counted(SUM)
    live = counted.reducer.operator(lambda x: x % 3).open(ZSet.of(range(size)))
    assert counted.during(lambda: live.send(ZSet({0: -1, size: 1}))) == {"remove": 1, "add": 1}
    live = counted.reducer.processor().open()
    live.send(ZSet.of(range(size)))
    assert counted.during(lambda: live.send(ZSet({0: -1, size: 1}))) == {"remove": 1, "add": 1}


def test_000_R11_validity_of_a_delta_looks_at_its_rows_only() -> None:
    class Row:
        looked = 0

        def __hash__(self) -> int:
            Row.looked += 1
            return id(self)

    rows = [Row() for _ in range(N)]
    bag, size = ZSet.of(rows), Reducer(0, lambda n, _: n + 1, lambda n, _: n - 1)
    delta = ZSet({rows[0]: -1})
    Row.looked = 0
    assert size.update(N, delta, bag) == N - 1
    assert Row.looked <= 2


def test_000_R9_only_the_group_that_asks_is_folded_again_and_only_then() -> None:
    counted = Counted(LOW)
    rows = [(key, n) for key in "ab" for n in range(N // 2)]
    low = counted.reducer.on(lambda row: row[1])
    live = low.operator(lambda row: row[0]).open(ZSet.of(rows))
    assert counted.during(lambda: live.send(ZSet({("a", 5): -1}))) == {"remove": 1}
    calls = counted.during(lambda: live.send(ZSet({("a", 0): -1})))
    assert calls == {"remove": 1, "add": N // 2 - 2}


def test_a_reducer_without_remove_or_merge_folds_its_group_for_each_removal() -> None:
    counted = Counted(Reducer(0, max))
    live = counted.reducer.operator().open(ZSet.of(range(100)))
    assert counted.during(lambda: live.send(ZSet({7: -1}))) == {"add": 99}
    assert counted.during(lambda: live.send(ZSet({7: 1}))) == {"add": 1}


def test_an_associative_merge_answers_a_removal_in_logarithmically_many_calls() -> None:
    calls = {}
    for size in (100, 10_000):
        counted = Counted(Reducer(-math.inf, max, merge=max))
        live = counted.reducer.operator().open(ZSet.of(range(size)))
        calls[size] = counted.during(lambda live=live, top=size - 1: live.send(ZSet({top: -1})))
        assert live.operator.now(live.state) == size - 2
        assert calls[size].get("add", 0) <= 1
    assert calls[10_000]["merge"] <= 80
    assert calls[10_000]["merge"] <= 4 * calls[100]["merge"]


def test_equal_rows_are_one_call_where_the_reducer_can_repeat() -> None:
    calls: list[int] = []
    size = Reducer(
        0, lambda n, _: n + 1, lambda n, _: n - 1,
        repeat=lambda n, _, count: calls.append(count) or n + count,
    )  # fmt: skip
    assert size.fold(ZSet({"a": 1_000_000})) == 1_000_000
    assert size.update(1_000_000, ZSet({"a": -999_999})) == 1
    assert calls == [1_000_000, -999_999]
    assert r.sum()(ZSet({0.1: 10**9})) == 1e8
    assert r.median()(ZSet({1: 10**9, 2: 10**9 + 1})) == 2


@pytest.mark.parametrize("reducer", [r.min(), r.max(), r.top_k(3), r.median(), r.mode()], ids=str)
def test_ordered_reducers_never_fold_again(reducer: Reducer) -> None:
    """Taking the extreme out again and again compares O(log n) values each time."""

    class Value(float):
        compared = 0

        def __lt__(self, other: Any) -> bool:
            Value.compared += 1
            return float.__lt__(self, other)

    values = [Value(n) for n in range(N)]
    acc = reducer.fold(values)
    Value.compared = 0
    for value in values[:50]:
        acc = reducer.remove(acc, value)
    assert acc is not RECOMPUTE
    assert Value.compared < 50 * 60


def test_old_accumulators_stay_what_they_were() -> None:
    """So a rejected change costs nothing to undo."""
    for reducer in (r.histogram(), r.median(), r.mode(), r.sum(), r.sum().by(lambda x: x % 7)):
        acc = reducer.fold(range(300))
        before = reducer.finish(acc)
        after = acc
        for x in range(150):
            after = reducer.remove(after, x)
        assert reducer.finish(acc) == before
        assert reducer.finish(after) == reducer(range(150, 300))
