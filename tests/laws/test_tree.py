"""The aggregate tree against sorted lists: every answer, every invariant, every old version."""

from __future__ import annotations

import copy
import operator
import pickle
from collections import Counter
from collections.abc import Callable
from functools import reduce
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow.errors import AbsentRow, AlgebraError
from ebbflow.nan import NAN
from ebbflow.ordering import in_order, total_order_key
from ebbflow.state.search import around, beside, between, rank_at
from ebbflow.state.tree import Tree

some = settings(max_examples=60)
few = settings(max_examples=30)

elements = st.integers(0, 40)
edits = st.lists(st.tuples(elements, st.integers(-2, 4)), max_size=30)
batches = st.lists(edits, max_size=8)
widths = st.sampled_from([4, 5, 7, 16])


def third(x: int) -> int:
    return -(x // 3)


def alone(x: int) -> tuple[int, ...]:
    return (x,)


def listed(model: Counter[int], key: Callable[[int], Any]) -> list[int]:
    """The elements of a model as the list a tree stands for."""
    return sorted(model.elements(), key=lambda x: (key(x), x))


def allowed(model: Counter[int], batch: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The edits of a batch without those that would take away what is not there."""
    after, kept = Counter(model), []
    for x, count in batch:
        if after[x] + count >= 0:
            after[x] += count
            kept.append((x, count))
    return kept


def grown(
    batches: list[list[tuple[int, int]]], **form: Any
) -> list[tuple[Tree[int], Counter[int]]]:
    """A tree and its model after each batch, the empty ones first."""
    tree, model = Tree[int](**form), Counter[int]()
    history = [(tree, model)]
    for batch in batches:
        kept = allowed(model, batch)
        tree, model = tree.update(kept), Counter(model)
        for x, count in kept:
            model[x] += count
        history.append((tree, +model))
        model = +model
    return history


FORMS = [
    {},
    {"key": third},
    {"merge": operator.add, "value": alone},
    {"key": third, "merge": operator.add, "value": alone},
    {"key": third, "leaf": 6},
]
every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: "+".join(form) or "plain")


@every_form
@some
@given(batches=batches, width=widths)
def test_004_O7_a_tree_is_a_sorted_list_after_every_batch_of_edits(
    form: dict[str, Any], batches: list[list[tuple[int, int]]], width: int
) -> None:
    key = form.get("key", lambda x: x)
    for tree, model in grown(batches, width=width, **form):
        flat = listed(model, key)
        assert tree.invariant()
        assert [x for x, count in tree for _ in range(count)] == flat
        assert list(reversed(tree)) == list(tree)[::-1]
        assert (len(tree), tree.distinct) == (len(flat), len(model))
        assert tree.smallest(3) == flat[:3]
        assert tree.largest(3) == flat[::-1][:3]
        if flat and "merge" in form:
            assert tree.total == tuple(flat)


@every_form
@few
@given(batches=batches, width=widths)
def test_004_O7_places_counts_and_ranks_are_those_of_the_sorted_list(
    form: dict[str, Any], batches: list[list[tuple[int, int]]], width: int
) -> None:
    key = form.get("key", lambda x: x)
    tree, model = grown(batches, width=width, **form)[-1]
    flat = listed(model, key)
    assert [tree.at(i) for i in range(-len(flat), len(flat))] == flat + flat
    for x in range(-1, 42):
        assert tree.count(x) == model[x]
        assert (x in tree) == (x in flat)
        assert tree.rank(x) == sum((key(y), y) < (key(x), x) for y in flat)
    if flat:
        assert (tree.first, tree.last) == (flat[0], flat[-1])


@few
@given(batches=batches, width=widths, mixed=st.booleans())
def test_004_O7_what_is_around_a_key_is_what_is_around_it_in_the_sorted_list(
    batches: list[list[tuple[int, int]]], width: int, mixed: bool
) -> None:
    def key(x: int) -> Any:
        return (None, "a", 2.5)[x % 3] if mixed and x > 30 else third(x)

    tree, model = grown(batches, width=width, key=key)[-1]
    flat = in_order(model.elements(), key)
    places = [total_order_key(key(x)) for x in flat]
    for wanted in (*range(-15, 3), None, "a", "b", 2.5, NAN):
        at = total_order_key(wanted)
        before = [x for x, place in zip(flat, places, strict=True) if place < at]
        after = [x for x, place in zip(flat, places, strict=True) if place > at]
        low, high = len(before), len(flat) - len(after)
        assert around(tree, wanted) == (
            low, high, tuple(before[-1:]), tuple(flat[low:][:1]), tuple(flat[:high][-1:]),
            tuple(after[:1]),
        )  # fmt: skip
        assert (rank_at(tree, wanted), rank_at(tree, wanted, behind=True)) == (low, high)


@few
@given(batches=batches, width=widths, keyed=st.booleans())
def test_004_O7_what_is_beside_an_edit_and_between_two_tokens_is_so_in_the_sorted_list(
    batches: list[list[tuple[int, int]]], width: int, keyed: bool
) -> None:
    tree, model = grown(batches, width=width, key=third if keyed else None)[-1]
    tokens = [tree.token(x) for x, _ in tree]
    for x in range(41):
        _, way = tree.edited([(x, 1)])
        if way:
            at = sum(token < tree.token(x) for token in tokens)
            there, i = model[x] > 0, way[-1][1]
            around = [None, *tokens, None]
            assert beside(way, i - 1) == around[at]
            assert beside(way, i + there) == around[at + there + 1]
    for start, stop in product(range(-15, 42, 3), repeat=2):
        ends = ((start,), (stop,)) if keyed else (start, stop)
        found = [pair for pair in tree if ends[0] <= tree.token(pair[0]) < ends[1]]
        assert list(between(tree, *ends)) == found


@every_form
@few
@given(batches=batches, width=widths)
def test_004_O7_an_edit_leaves_every_older_tree_as_it_was(
    form: dict[str, Any], batches: list[list[tuple[int, int]]], width: int
) -> None:
    history = grown(batches, width=width, **form)
    for tree, model in history:
        assert dict(tree) == model
        assert tree.invariant()


@few
@given(batches=batches, width=widths)
def test_004_O7_one_by_one_and_all_at_once_give_the_same(
    batches: list[list[tuple[int, int]]], width: int
) -> None:
    form: dict[str, Any] = {"merge": operator.add, "value": alone, "width": width}
    tree, model = grown(batches, **form)[-1]
    single = Tree[int](**form)
    for x, count in model.items():
        single = single.add(x, count)
        assert single.invariant()
    bulk = Tree.of(model.elements(), **form)
    assert bulk.invariant()
    assert tree == single == bulk == Tree.counted(model.items(), **form)
    for x, count in model.items():
        single = single.remove(x, count)
        assert single.invariant()
    assert single == Tree()
    assert not len(single)


@pytest.mark.parametrize("width", [4, 16, 64])
def test_004_O7_large_trees_stay_balanced_under_any_order_of_edits(width: int) -> None:
    n = 2000
    for order in (range(n), range(n - 1, -1, -1), [i * 7919 % n for i in range(n)]):
        tree = Tree[int](merge=operator.add, width=width)
        for step, x in enumerate(order):
            tree = tree.add(x)
            if step % 500 == 0:
                assert tree.invariant()
        assert tree.invariant()
        assert tree.total == n * (n - 1) // 2
        for step, x in enumerate(reversed(order)):
            tree = tree.remove(x)
            if step % 500 == 0:
                assert tree.invariant()
        assert not len(tree)


def test_004_O7_emptying_most_of_a_tree_at_once_leaves_a_balanced_one() -> None:
    full = Tree.of(range(3000), width=4)
    for kept in ([7], [0, 2999], range(1400, 1500), range(0, 3000, 100), []):
        gone = [(x, -1) for x in range(3000) if x not in set(kept)]
        tree = full.update(gone)
        assert tree.invariant()
        assert [x for x, _ in tree] == list(kept)


@few
@given(st.lists(st.tuples(elements, st.integers(1, 50)), min_size=1, max_size=8))
def test_004_O7_an_element_that_is_there_often_is_merged_so_often(
    pairs: list[tuple[int, int]],
) -> None:
    tree = Tree.counted(pairs, merge=operator.add, value=alone)
    assert tree.total == reduce(operator.add, [(x,) * n for x, n in tree])


def test_004_O7_only_the_sum_of_the_edits_of_an_element_counts() -> None:
    tree = Tree.of("ab")
    assert tree.update([("c", -1), ("a", -3), ("c", 1), ("a", 2)]) == Tree.of("b")
    assert tree.update([("c", 1), ("c", -1)]) == tree
    assert tree.update([]) is tree
    assert Tree().update([("c", 1), ("c", -1)]) == Tree()


@pytest.mark.parametrize("size", [0, 3, 1000])
def test_004_O7_taking_away_what_is_not_there_names_it(size: int) -> None:
    tree = Tree.of(range(size))
    with pytest.raises(AbsentRow, match="-7 cannot be taken away 2 times: it is there 0 times"):
        tree.remove(-7, 2)
    with pytest.raises(AbsentRow, match="7 cannot be taken away 3 times: it is there 2 times"):
        tree.add(7, 2 - tree.count(7)).remove(7, 3)
    with pytest.raises(AbsentRow, match="'x' cannot"):
        Tree.of("abc").update([("x", -1), ("y", 1)])


def test_004_O7_an_empty_tree_says_what_it_does_not_have() -> None:
    for ask in (lambda t: t.first, lambda t: t.last, lambda t: t.at(0), lambda t: t.total):
        with pytest.raises(AlgebraError):
            ask(Tree(merge=operator.add))
    with pytest.raises(AlgebraError, match="no total"):
        Tree.of("a").total
    with pytest.raises(AlgebraError, match="no element at 3"):
        Tree.of("abc").at(3)
    with pytest.raises(AlgebraError, match="at least 4"):
        Tree(width=2)


# ---- the order, also where Python has none ----

mixed = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.floats(-3, 3),
    st.text("ab", max_size=2),
    st.tuples(st.none() | st.integers(0, 2), st.none() | st.text("ab", max_size=1)),
    st.frozensets(st.integers(0, 3), max_size=2),
)


@some
@given(st.lists(mixed, max_size=30), widths)
def test_004_O7_elements_that_cannot_be_compared_have_an_order_all_the_same(
    elements: list[Any], width: int
) -> None:
    tree = Tree.of(elements, width=width)
    assert tree.invariant()
    assert dict(tree) == Counter(elements)
    assert [x for x, _ in tree] == in_order(Counter(elements))
    for x in elements:
        assert tree.count(x) == elements.count(x)
        tree = tree.remove(x).add(x)
    for x in elements:
        tree = tree.remove(x)
        assert tree.invariant()
    assert not len(tree)


@some
@given(mixed, mixed, mixed)
def test_004_O7_the_order_is_total(a: Any, b: Any, c: Any) -> None:
    ordered = in_order([a, b, c])
    assert ordered == in_order([c, a, b]) == in_order([b, c, a])
    comparable = [x for x in ordered if not isinstance(x, frozenset)]
    assert not any(total_order_key(y) < total_order_key(x) for x, y in pairwise(comparable))


@few
@given(st.lists(st.frozensets(st.integers(0, 5)), max_size=20))
def test_004_O7_sets_of_one_size_are_told_apart(sets: list[frozenset[int]]) -> None:
    tree = Tree.of(sets, key=len, merge=operator.or_, width=4)
    assert dict(tree) == Counter(sets)
    assert not sets or tree.total == frozenset().union(*sets)
    for one in sets:
        tree = tree.remove(one)
    assert not len(tree)


def test_004_O7_nan_is_behind_all_numbers() -> None:
    assert [x for x, _ in Tree.of([NAN, "a", 1.0, None, (1, NAN), (1, 0)])] == [
        None, 1.0, NAN, "a", (1, 0), (1, NAN),
    ]  # fmt: skip


def test_004_O7_what_has_no_place_in_an_order_is_refused() -> None:
    class Same:
        def __repr__(self) -> str:
            return "Same()"

    with pytest.raises(AlgebraError, match="same place"):
        Tree.of([Same(), Same()])


# ---- as a value ----


def test_004_O7_trees_are_shown_compared_copied_and_pickled_as_values() -> None:
    tree = Tree.of("banana", key=str.upper, merge=operator.add, width=4)
    assert eval(repr(Tree.of("banana", key=str.upper))) == tree
    for again in (pickle.loads(pickle.dumps(tree)), copy.copy(tree), copy.deepcopy(tree)):
        assert again == tree
        assert again.invariant()
        assert again.add("c").total == "aaabcnn"
    assert tree != Tree.of("banan", key=str.upper)
    assert tree != "banana"


def test_a_tree_of_very_many_copies_is_stored_and_shown_by_its_elements() -> None:
    tree = Tree.counted([("a", 2**62), ("b", 2**40)])
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert repr(tree) == f"Tree.counted([('a', {2**62}), ('b', {2**40})])"
    assert tree.invariant()
