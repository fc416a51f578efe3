"""Merges that give one of their arguments: the front of a group, through long runs of changes."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from functools import partial, reduce
from random import Random
from typing import Any

import pytest

from ebbflow.change import Replace
from ebbflow.errors import AlgebraError
from ebbflow.operator import aggregate, group_aggregate
from ebbflow.operator.aggregate import Ends, Trees
from ebbflow.operator.selective import MergeRanking, selective
from ebbflow.ordering import in_order
from ebbflow.state.top_buffer import ROOM, TopBuffer
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet


def greater(a: Any, b: Any) -> Any:
    return a if a > b else b


def first_of_class(a: int, b: int) -> int:
    return a if a % 50 >= b % 50 else b


def last_of_class(a: int, b: int) -> int:
    return b if b % 50 >= a % 50 else a


def mixed(a: int, b: int) -> int:
    """In even classes the first wins, in odd ones the last."""
    if a % 50 == b % 50:
        return a if a % 2 == 0 else b
    return a if a % 50 > b % 50 else b


def first(a: Any, b: Any) -> Any:
    return a


def smaller(a: Any, b: Any) -> Any:
    return min(a, b)


MERGES: list[Callable[[Any, Any], Any]] = [
    greater, first_of_class, last_of_class, mixed, first, smaller,
]  # fmt: skip
ORDERS = [None, operator.neg, lambda n: n % 7]


@pytest.mark.parametrize("merge", MERGES)
def test_004_O7_a_merge_that_gives_an_argument_is_seen(merge: Any) -> None:
    assert selective(merge) is not None
    assert isinstance(aggregate(merge).groups, Ends)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "merge", [operator.add, lambda a, b: a + b, lambda a, b: a if a > b else -b, partial(greater)]
)
def test_004_O7_any_other_merge_keeps_a_tree(merge: Any) -> None:
    assert selective(merge) is None
    assert isinstance(aggregate(merge).groups, Trees)  # type: ignore[attr-defined]


def test_004_O7_a_merge_of_values_keeps_a_tree() -> None:
    assert isinstance(aggregate(greater, value=abs).groups, Trees)  # type: ignore[attr-defined]


@pytest.mark.parametrize("order", ORDERS, ids=["no order", "descending", "by rest"])
@pytest.mark.parametrize("merge", MERGES)
def test_004_O7_a_front_is_what_merging_all_rows_in_order_gives(merge: Any, order: Any) -> None:
    fn = selective(merge)
    assert fn is not None
    ranking, random = MergeRanking(fn, order), Random(7)
    rows: dict[int, int] = {}
    front = ranking.empty
    for step in range(120):
        size = random.choice([0, 1, 2, 5, 40, 300])
        growing = step % 60 < 30
        gone = random.sample(sorted(rows), min(len(rows), size // 8 if growing else size))
        if rows and not growing:
            gone = [*gone, *front.tree.largest(5)]
        new = random.sample(range(5000), size if growing else size // 8)
        change = dict.fromkeys(gone, -1) | {n: 1 for n in new if n not in rows}
        for row, weight in change.items():
            if weight > 0:
                rows[row] = 1
            else:
                del rows[row]
        front = ranking.update(front, change.items(), lambda: rows)
        assert ranking.agrees(front, rows)
        if rows:
            assert ranking.best(front) == [reduce(merge, in_order(rows, order))]
        else:
            assert not ranking.best(front)


def test_004_O7_rows_go_from_the_best_on_and_come_back() -> None:
    relational = aggregate(greater)
    x = ZSet.of(range(1500))
    state = relational.init(x)
    for at in range(1499, 0, -1):
        gone = ZSet({at: -1})
        state, moved = relational.step(state, gone)
        x = x + gone
        assert moved == Replace(at - 1)
        assert relational.invariant(x, state) if at % 100 == 0 else True
    for at in range(1, 1500):
        state, moved = relational.step(state, ZSet({at: 1}))
        assert moved == Replace(at)
    assert relational.invariant(ZSet.of(range(1500)), state)


def test_004_O7_a_row_that_is_there_twice_goes_when_both_are_gone() -> None:
    live = group_aggregate(lambda n: n % 2, greater).open(ZSet({9: 2, 7: 1, 2: 1}))
    assert live.send(ZSet({9: -1})) == ZSet()
    assert live.send(ZSet({9: -1})) == ZSet({(1, 9): -1, (1, 7): 1})
    assert live.send(ZSet({7: -1, 2: -1})) == ZSet({(1, 7): -1, (0, 2): -1})


def test_004_O7_nan_is_refused_also_where_no_tree_is_kept() -> None:
    nan = float("nan")
    for row in (nan, (1, nan), (1, (2.0, nan))):
        for merge in (max, greater):
            with pytest.raises(AlgebraError):
                aggregate(merge).open(ZSet.of([row]))
            with pytest.raises(AlgebraError):
                aggregate(merge).open(ZSet()).send(ZSet.of([row]))


def test_004_O7_a_front_that_misses_a_row_or_its_order_does_not_agree() -> None:
    fn = selective(greater)
    assert fn is not None
    ranking, rows = MergeRanking(fn), dict.fromkeys(range(10), 1)
    right = ranking.picked(rows, ROOM)
    assert ranking.agrees(right, rows)
    for wrong in (right.tree.remove(0), right.tree.add(11), ranking.empty.tree):
        assert not ranking.agrees(right._replace(tree=wrong), rows)
    assert not ranking.agrees(right._replace(tree=right.tree.add(3)), rows)
    disordered = Tree[int](ranking=ranking)
    disordered = disordered.update((row, 1) for row in rows)
    (tokens, elements, *rest), height = disordered.root
    disordered.root = (tokens[::-1], elements[::-1], *rest), height
    assert not ranking.agrees(right._replace(tree=disordered), rows)
    missing = ranking.empty.tree.update([(9, 1), (7, 1)])
    assert not ranking.agrees(TopBuffer(missing, 16, False), rows)


def test_a_buffer_that_was_pickled_gets_its_order_back() -> None:
    fn = selective(last_of_class)
    assert fn is not None
    ranking, rows = MergeRanking(fn), dict.fromkeys(range(900), 1)
    buffer = ranking.picked(rows, ROOM)
    again = pickle.loads(pickle.dumps(buffer))
    assert ranking.best(again) == ranking.best(buffer) == [899]
    assert ranking.agrees(again, rows)
    del rows[899]
    again = ranking.update(again, [(899, -1)], lambda: rows)
    assert ranking.agrees(again, rows)
    assert ranking.best(again) == [849]
