"""Index and Cells against plain dicts, with epochs that are kept and epochs that are undone."""

from __future__ import annotations

import pickle
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow.errors import AlgebraError
from ebbflow.state.backing import Backing
from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import Index
from ebbflow.state.ordered import OrderedIndex
from ebbflow.state.spine import Spine
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet

some = settings(max_examples=60)

zsets = st.dictionaries(st.integers(0, 9), st.integers(-2, 2), max_size=5).map(ZSet)
epochs = st.lists(st.tuples(st.lists(zsets, max_size=3), st.booleans()), max_size=5)
values = st.integers(0, 3) | st.none() | st.just(ABSENT)
puts = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


def third(row: int) -> int:
    return row % 3


def by_third(rows: ZSet[int]) -> dict[int, dict[int, int]]:
    groups: dict[int, dict[int, int]] = defaultdict(dict)
    for row, weight in rows.items():
        groups[row % 3][row] = weight
    return dict(groups)


@some
@given(epochs)
def test_an_index_is_its_rows_by_key_and_a_rollback_undoes_an_epoch(epochs: Any) -> None:
    index, rows = Index(third), ZSet[int]()
    for changes, keep in epochs:
        index.begin()
        after = rows
        for change in changes:
            touched = index.apply(change)
            assert {key: dict(pairs) for key, pairs in touched.items()} == by_third(change)
            after = after + change
            assert index.groups == by_third(after)
        if keep:
            rows = after
            assert index.commit() == [index.grouped(change) for change in changes]
        else:
            index.rollback()
        assert index.groups == by_third(rows)
        assert index == Index(third, rows)
        assert all(index.weight(row) == rows.weight(row) for row in range(10))


def test_what_waits_for_a_key_that_is_not_here_may_wait_twice() -> None:
    spine = Spine("bag")
    spine.append({0: [(3, 1)], 1: [(4, 1)]})
    index: Index[int, int] = Index(third, bag=True)
    index.backing = Backing(index.groups, spine, limited=True)
    index.begin()
    for change in ({6: 1}, {6: -1, 9: 1}, {3: -1}):
        index.apply(ZSet(change))
    index.bring([0])
    assert index.groups == {0: {9: 1}}
    index.rollback()
    index.bring([0, 1])
    assert index.groups == {0: {3: 1}, 1: {4: 1}}


@some
@given(zsets, zsets)
def test_an_index_holds_a_change_that_takes_away_at_most_what_is_there(
    rows: ZSet[int], change: ZSet[int]
) -> None:
    rows = rows.positive()
    assert Index(third, rows).holds(change) == (rows + change).is_bag


def test_without_a_key_all_rows_are_in_one_group() -> None:
    index = Index(None, ZSet({"a": 2, "b": 1}))
    assert index.groups == {(): {"a": 2, "b": 1}}
    index.apply(ZSet({"a": -2, "b": -1}))
    assert index.groups == {}
    assert index.apply(ZSet()) == {}


def test_a_key_function_that_fails_leaves_the_index_and_its_journal_alone() -> None:
    index = Index(lambda row: 1 // row, ZSet.of([1, 2]))
    index.begin()
    with pytest.raises(ZeroDivisionError):
        index.apply(ZSet.of([3, 0]))
    assert index.commit() == []
    assert index == Index(lambda row: 1 // row, ZSet.of([1, 2]))
    unhashable = Index[Any, int](lambda row: [row])
    with pytest.raises(TypeError):
        unhashable.apply(ZSet.of([1]))
    assert unhashable.groups == {}


@some
@given(st.lists(st.tuples(st.lists(puts, max_size=3), st.booleans()), max_size=5))
def test_cells_are_a_dict_and_a_rollback_undoes_an_epoch(epochs: Any) -> None:
    cells, model = Cells[str, Any](), dict[str, Any]()
    for swaps, keep in epochs:
        cells.begin()
        after = dict(model)
        for new in swaps:
            assert cells.swap(new) == {key: after.get(key, ABSENT) for key in new}
            after |= new
            after = {key: value for key, value in after.items() if value is not ABSENT}
            assert cells.values == after
        if keep:
            model = after
            assert len(cells.commit()) == len(swaps)
        else:
            cells.rollback()
        assert cells.values == model
        assert cells == Cells(model)
        assert len(cells) == len(model)


@pytest.mark.parametrize("container", [Cells({"a": 1}), Index(third, ZSet.of([1, 2]))], ids=repr)
def test_an_epoch_begins_once_and_ends_once(container: Any) -> None:
    for end in (container.commit, container.rollback):
        with pytest.raises(AlgebraError, match="no epoch is open"):
            end()
        container.begin()
        with pytest.raises(AlgebraError, match="open already"):
            container.begin()
        end()


def test_containers_are_shown_and_pickled_as_values() -> None:
    cells, index = Cells({"a": 1}), Index(third, ZSet({1: 2, 4: 1}))
    assert eval(repr(cells)) == cells == pickle.loads(pickle.dumps(cells))
    assert eval(repr(index)) == index == pickle.loads(pickle.dumps(index))
    assert pickle.loads(pickle.dumps(index)).apply(ZSet({7: 1})) == {1: [(7, 1)]}
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT
    assert cells != {"a": 1}
    assert index != cells


def test_trees_that_a_change_replaced_are_known_until_the_epoch_ends() -> None:
    index = OrderedIndex(Tree(), lambda x: x % 2)
    index.apply({1: 1, 2: 1, 3: 1})
    index.begin()
    first = index.apply({5: 1})
    assert {at: list(tree) for at, (tree, _) in index.trees_before(first).items()} == {
        1: [(1, 1), (3, 1)]
    }
    second = index.apply({4: 1, 6: 1})
    assert index.trees_before(first) == {}  # not the last: who needs them undoes the change
    assert {at: list(tree) for at, (tree, _) in index.trees_before(second).items()} == {0: [(2, 1)]}
    index.rollback()
    assert index.trees_before(second) == {}
    index.begin()
    third = index.apply({1: -1})
    index.commit()
    assert index.trees_before(third) == {}
