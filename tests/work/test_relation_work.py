"""How much work a step does: calls counted, rows touched, and what does not depend on the state."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from ebbflow.change import Both, First
from ebbflow.operator import (
    aggregate,
    difference,
    distinct,
    group_aggregate,
    join,
    product,
)
from ebbflow.state.top_buffer import Ranking
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet

SIZES = [1_000, 8_000, 64_000]


class Counted:
    """A function that counts its calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        return self.function(*arguments)


class Row:
    """A row that counts how often any row is hashed or compared."""

    hashed = compared = 0

    def __init__(self, key: int, number: int) -> None:
        self.key = key
        self.number = number

    def __hash__(self) -> int:
        Row.hashed += 1
        return hash((self.key, self.number))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and (self.key, self.number) == (other.key, other.number)

    def __lt__(self, other: Row) -> bool:
        Row.compared += 1
        return self.number < other.number

    def __ge__(self, other: Row) -> bool:
        Row.compared += 1
        return self.number >= other.number


def work(relational: Any, state: Any, change: Any) -> tuple[int, int, Any]:
    """Hashes and comparisons of rows in one step, and what it gave."""
    Row.hashed = Row.compared = 0
    _, moved = relational.step(state, change)
    return Row.hashed, Row.compared, moved


def greatest(merge: Callable[..., Any], n: int) -> int:
    """The most merges that one of some edits spread over a tree of `n` elements takes."""
    counted = Counted(merge)
    tree = Tree.of(range(n), merge=counted)
    most = 0
    for x in range(0, n, n // 50):
        for edit in (tree.remove, lambda y: tree.add(y + 0.5)):
            counted.calls = 0
            edit(x)
            most = max(most, counted.calls)
    return most


def test_004_O7_an_edit_of_a_tree_takes_logarithmically_many_merges() -> None:
    calls = [greatest(max, n) for n in SIZES]
    for n, most in zip(SIZES, calls, strict=True):
        assert most <= 6 * math.log2(n)
    assert calls[2] - calls[1] <= 6 * math.log2(8)


def test_004_O7_a_thousand_edits_one_by_one_take_logarithmically_many_merges_each() -> None:
    counted = Counted(max)
    tree = Tree.of(range(20_000), merge=counted)
    counted.calls = 0
    for step in range(1_000):
        tree = tree.add(step * 7919 % 20_000 + 0.5).remove(step * 104_729 % 20_000)
    assert counted.calls <= 2_000 * 6 * math.log2(20_000)
    assert tree.invariant()


def test_004_O7_edits_in_a_batch_share_the_way_to_the_root() -> None:
    counted = Counted(max)
    tree = Tree.of(range(64_000), merge=counted)
    changes = [(x + 0.5, 1) for x in range(30_000, 31_000)]
    counted.calls = 0
    together = tree.update(changes)
    batch, counted.calls = counted.calls, 0
    for x, count in changes:
        tree = tree.add(x, count)
    assert tree == together
    assert batch * 10 < counted.calls


@pytest.mark.parametrize("count", [1, 1_000, 1_000_000])
def test_004_O7_a_count_takes_logarithmically_many_merges(count: int) -> None:
    counted = Counted(lambda a, b: a + b)
    assert Tree.counted([(3, count)], merge=counted).total == 3 * count
    assert counted.calls <= 2 * math.log2(count) + 1


def test_004_O7_building_a_tree_takes_one_merge_per_element_or_so() -> None:
    counted = Counted(max)
    Tree.of(range(10_000), merge=counted)
    assert counted.calls <= 1.2 * 10_000


def joined(size: int, per_key: int = 5) -> tuple[Any, Any, tuple[ZSet[Row], ZSet[Row]]]:
    key = Counted(lambda row: row.key)
    rows = [Row(n // per_key, n) for n in range(size)]
    others = [Row(n // per_key, -1 - n) for n in range(size)]
    x = ZSet.of(rows), ZSet.of(others)
    return join(key), key, x


def test_004_O6_a_join_step_touches_the_changed_rows_and_those_they_meet() -> None:
    found = []
    for size in SIZES[:2]:
        relational, key, x = joined(size)
        state = relational.init(x)
        change = Both(ZSet.of([Row(7, size), Row(9, size)]), ZSet.of([Row(7, -size - 1)]))
        key.calls = 0
        hashed, _, moved = work(relational, state, change)
        assert key.calls == 3
        assert len(moved) == 2 * 5 + 6
        found.append(hashed)
    assert found[0] == found[1]
    assert found[0] <= 4 * (3 + 2 * 16)


def test_004_O6_a_change_that_meets_nothing_costs_nothing_more() -> None:
    relational, _, x = joined(2_000)
    state = relational.init(x)
    hashed, _, moved = work(relational, state, First(ZSet.of([Row(-1, 0)])))
    assert (len(moved), hashed) == (0, 1)


@pytest.mark.parametrize("relational", [distinct(), difference()], ids=repr)
def test_004_O6_weights_are_looked_up_for_the_changed_rows_only(relational: Any) -> None:
    found = []
    for size in SIZES[:2]:
        rows = ZSet.of([Row(0, n) for n in range(size)])
        two = repr(relational) == "difference()"
        state = relational.init((rows, rows) if two else rows)
        change = ZSet({Row(0, 3): -1, Row(0, size): 1})
        found.append(work(relational, state, First(change) if two else change)[0])
    assert found[0] == found[1] <= 20


def test_004_O6_a_product_step_touches_the_other_side_only() -> None:
    relational = product()
    few, many = ZSet.of([Row(0, n) for n in range(10)]), ZSet.of([Row(1, n) for n in range(5_000)])
    hashed, _, moved = work(relational, relational.init((few, many)), First(ZSet()))
    assert (hashed, len(moved)) == (0, 0)
    change = Both(ZSet(), ZSet.of([Row(1, 5_000)]))
    hashed, _, moved = work(relational, relational.init((few, many)), change)
    assert len(moved) == 10
    assert hashed <= 30


def test_004_O7_only_the_groups_of_the_changed_rows_are_merged() -> None:
    found = []
    for size in SIZES[:2]:
        merge, key = Counted(lambda a, b: a + b), Counted(lambda n: n // 20)
        relational = group_aggregate(key, merge)
        state = relational.init(ZSet.of(range(size)))
        merge.calls = key.calls = 0
        relational.step(state, ZSet({40: -1, 105: 2}))
        assert key.calls == 2
        found.append(merge.calls)
    assert found[0] == found[1] <= 80


def test_004_O7_a_row_far_from_the_maximum_costs_one_comparison() -> None:
    for size in SIZES[:2]:
        relational = aggregate(max)
        state = relational.init(ZSet.of([Row(0, n) for n in range(size)]))
        change = ZSet({Row(0, 5): -1, Row(0, 6): -1, Row(1, 7): 1})
        hashed, compared, _ = work(relational, state, change)
        assert (hashed, compared) == (3 * 2, 3)


def test_004_O7_draining_a_bag_from_its_maximum_is_cheap_per_row() -> None:
    size = 4_000
    rows = [Row(0, n) for n in range(size)]
    relational = aggregate(max)
    state = relational.init(ZSet.of(rows))
    Row.compared = 0
    for row in reversed(rows):
        state, _ = relational.step(state, ZSet({row: -1}))
    assert Row.compared <= 20 * math.log2(size) * size


def test_004_O7_draining_a_bag_scans_it_a_logarithm_of_times(monkeypatch: Any) -> None:
    scans = []
    picked = Ranking.picked

    def counted(self: Any, elements: Any, room: int, complete: bool = True) -> Any:
        if complete:
            scans.append(len(elements))
        return picked(self, elements, room, complete)

    monkeypatch.setattr(Ranking, "picked", counted)
    live = aggregate(max).open(ZSet.of(range(5000)))
    for n in reversed(range(5000)):
        live.send(ZSet({n: -1}))
    assert len(scans) <= math.log2(5000)


def test_004_O7_a_row_that_the_floor_beats_costs_two_comparisons() -> None:
    for size in SIZES[:2]:
        relational = aggregate(lambda a, b: a if a > b else b)
        state = relational.init(ZSet.of([Row(0, n) for n in range(size)]))
        change = ZSet({Row(0, 5): -1, Row(0, 6): -1, Row(1, 7): 1})
        hashed, compared, _ = work(relational, state, change)
        assert (hashed, compared) == (3 * 2, 3 * 2)


def test_004_O7_draining_a_bag_by_a_selective_merge_scans_it_a_logarithm_of_times(
    monkeypatch: Any,
) -> None:
    scans = []
    picked = Ranking.picked

    def counted(self: Any, rows: Any, room: int, complete: bool = True) -> Any:
        if complete:
            scans.append(len(rows))
        return picked(self, rows, room, complete)

    monkeypatch.setattr(Ranking, "picked", counted)
    live = aggregate(lambda a, b: a if a > b else b).open(ZSet.of(range(5000)))
    for n in reversed(range(5000)):
        live.send(ZSet({n: -1}))
    assert len(scans) <= math.log2(5000)


def test_004_O6_a_join_makes_each_pair_of_a_change_once() -> None:
    """Both sides change under one key: rows that are left alone are met without a look-up."""
    relational = join(lambda row: row.key)
    rows = [Row(0, n) for n in range(50)]
    state = relational.init((ZSet.of(rows), ZSet.of(rows)))
    change = Both(ZSet({rows[0]: -1, Row(0, 50): 1}), ZSet({rows[1]: -1, Row(0, 51): 1}))
    hashed, _, moved = work(relational, state, change)
    assert len(moved) == 50 + 50 + 49 + 49
    assert hashed <= 2 * len(moved) + 30
