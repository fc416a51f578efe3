"""Every monoid we ship keeps its laws, and so does what is made of them."""

from __future__ import annotations

import pickle
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbflow import ZSet, linear
from ebbflow.algebra import (
    ADD,
    AND,
    BYTES,
    LIST,
    MAX,
    MIN,
    MULTIPLY,
    OR,
    SET,
    STR,
    TUPLE,
    XOR,
    During,
    Homomorphism,
    Monoid,
    dict_of,
    free_product,
    functions,
    product,
    state_monoid,
    table_monoid,
    terminated,
    ticked,
)
from ebbflow.errors import AlgebraError, CompositionError, LawBroken
from ebbflow.laws import check
from ebbflow.laws.strategies import bags, zsets
from ebbflow.tensor import tensor
from ebbflow.zset import BAGS, ZSETS

SIMPLE = [ADD, MULTIPLY, MAX, MIN, OR, AND, XOR, LIST, TUPLE, STR, BYTES, SET, ZSETS, BAGS]
MADE = [
    product(ADD, LIST),
    product(ADD, ZSETS, ADD),
    product(SET, SET),
    product(),
    dict_of(ADD),
    dict_of(STR),
    dict_of(SET),
    dict_of(product(ADD, ADD)),
    functions(ADD, at=[1, 2, 3]),
    functions(SET, at="ab"),
    free_product(ADD, STR),
    free_product(ADD, ADD),
    ticked(SET),
    ticked(ZSETS),
    terminated(LIST),
    state_monoid(LIST, states=[0, 1]),
    table_monoid([0, 1, 2], STR),
]


@pytest.mark.parametrize("monoid", SIMPLE + MADE, ids=repr)
def test_003_H1_monoids_keep_their_laws(monoid: Monoid) -> None:
    check(monoid, examples=20)


@pytest.mark.parametrize("monoid", SIMPLE + MADE[:-2], ids=repr)
def test_monoids_survive_pickling_and_are_equal_again(monoid: Monoid) -> None:
    assert pickle.loads(pickle.dumps(monoid)) == monoid


def test_what_parts_have_in_common_the_whole_has() -> None:
    both = product(ADD, ZSETS)
    assert both.is_group
    assert both.commutative
    assert not product(ADD, SET).is_group
    assert not product(SET, LIST).commutative
    assert product(SET, MAX).idempotent
    assert product(LIST, ADD).is_left_cancellative
    assert not product(LIST, SET).is_left_cancellative
    assert dict_of(ADD).is_group


@pytest.mark.parametrize("factors", list(combinations([ADD, LIST, SET, ZSETS], 2)), ids=repr)
def test_any_product_and_any_dict_of_one_keeps_its_laws(factors: tuple[Monoid, Monoid]) -> None:
    check(dict_of(product(*factors)), examples=10)


def test_zero_is_fresh_where_it_could_be_changed() -> None:
    LIST.zero.append("mine")
    dict_of(ADD).zero["mine"] = 1
    assert LIST.zero == []
    assert dict_of(ADD).zero == {}
    for monoid in (product(LIST, ADD), terminated(LIST)):
        monoid.fold([])[0].append("mine")
        assert monoid.zero[0] == []


def test_dicts_drop_zeros_from_either_side() -> None:
    assert dict_of(ADD).combine({"a": 1}, {"b": 0}) == {"a": 1}
    assert dict_of(ADD).combine({}, {"a": 1, "b": 0}) == {"a": 1}


def test_what_is_not_in_a_bag_cannot_be_cancelled() -> None:
    with pytest.raises(AlgebraError, match="does not contain"):
        BAGS.cancel(ZSet.of("a"), ZSet.of("b"))


def test_homomorphisms_compose_only_where_their_monoids_meet() -> None:
    with pytest.raises(CompositionError, match="the first gives ADD"):
        Homomorphism(len, LIST, ADD) >> Homomorphism(frozenset, LIST, SET)
    long = Homomorphism(abs, ADD, ADD)
    for _ in range(2000):
        long = long >> Homomorphism(abs, ADD, ADD, name="abs")
    assert long(-1) == 1


def test_ticks_next_to_each_other_are_one() -> None:
    time = ticked(SET)
    assert time.fold([time.tick] * 5) == time.tick
    assert time.combine(time.of(frozenset("a")), time.tick) != time.of(frozenset("a"))


def test_a_word_of_a_group_cancels_through_its_letters() -> None:
    words = free_product(ZSETS, ADD)
    one, minus = ZSet.of("a"), -ZSet.of("a")
    from ebbflow.algebra import Left, Right

    word = (Left(one), Right(2), Left(minus))
    inverse = (Left(-minus), Right(-2), Left(-one))
    assert words.combine(word, inverse) == ()


@pytest.mark.parametrize(
    ("left", "right"),
    [(SET, SET), (ZSETS, ZSETS), (ZSETS, BAGS), (BAGS, SET), (ADD, ZSETS), (ADD, ADD),
     (product(ZSETS, ZSETS), ZSETS)],
    ids=repr,
)  # fmt: skip
def test_003_H8_tensor_products_are_linear_on_both_sides(left: Monoid, right: Monoid) -> None:
    check(tensor(left, right), examples=20)


def test_003_H8_a_tensor_of_a_set_and_a_group_is_refused_because_it_is_trivial() -> None:
    with pytest.raises(AlgebraError, match="only one element"):
        tensor(SET, ZSETS)
    with pytest.raises(AlgebraError, match="not commutative"):
        tensor(LIST, SET)
    with pytest.raises(AlgebraError, match="no basis"):
        tensor(MAX, SET)


GROUPS = [ADD, ZSETS, dict_of(ADD), product(ADD, ZSETS)]


@pytest.mark.parametrize("group", GROUPS, ids=repr)
def test_002_D1_abelian_groups(group: Monoid) -> None:
    assert group.is_group
    assert group.commutative
    check(group, examples=20)


def pairs_of(row: int) -> dict[str, int]:
    return {"n": row, "square": row * row} if row else {}


def test_002_D1_a_function_of_rows_extends_to_one_linear_function() -> None:
    extended = linear(pairs_of, dict_of(ADD))
    check(extended, examples=40)
    assert extended(ZSet.of([3])) == pairs_of(3)


@given(bags())
def test_002_D1_on_collections_the_extension_is_the_plain_sum(bag: ZSet) -> None:
    extended = linear(lambda row: row * row, ADD)
    assert extended(bag) == sum(row * row for row in bag.rows())


def test_002_D1_a_linear_function_needs_a_group_to_take_rows_back() -> None:
    with pytest.raises(AlgebraError, match="commutative group"):
        linear(lambda row: frozenset([row]), SET)


@given(zsets(), zsets())
def test_002_D1_selection_and_projection_are_linear_and_distinct_is_not(a: ZSet, b: ZSet) -> None:
    even = lambda z: z.filter(lambda n: n % 2 == 0)
    assert even(a + b) == even(a) + even(b)
    assert (a + b).map(abs) == a.map(abs) + b.map(abs)
    assert (a - a).distinct() == ZSet()


def test_002_D1_distinct_is_refuted_as_a_homomorphism() -> None:
    with pytest.raises(LawBroken) as caught:
        check(Homomorphism(lambda z: z.distinct(), ZSETS, ZSETS, name="distinct"))
    assert caught.value.law.name == "KEEPS_COMBINE"


def test_003_H1_homomorphisms_compose() -> None:
    size = Homomorphism(len, LIST, ADD)
    elements = Homomorphism(frozenset, LIST, SET)
    double = Homomorphism(lambda n: 2 * n, ADD, ADD)
    check(size >> double, examples=40)
    check(elements, examples=40)
    assert (size >> double)([1, 2]) == 4


@given(st.lists(st.lists(st.integers(), max_size=2), max_size=40))
def test_fold_keeps_the_order(lists: list[list[int]]) -> None:
    assert LIST.fold(lists) == [x for xs in lists for x in xs]


def test_folding_many_small_lists_copies_each_element_a_logarithm_of_times() -> None:
    copied = [0]

    def append(a: list, b: list) -> list:
        copied[0] += len(a) + len(b)
        return a + b

    counted = Monoid([], append)
    counted.fold([n] for n in range(4096))
    assert copied[0] <= 4096 * 14


def test_fold_gives_no_alias_of_a_single_element() -> None:
    one = [1, 2]
    LIST.fold([one]).append(3)
    assert one == [1, 2]
    assert LIST.fold([]) == []


@given(st.lists(st.frozensets(st.integers(0, 2), max_size=2), min_size=1, max_size=6))
def test_a_ticked_word_of_strata_is_their_product(strata: list[frozenset]) -> None:
    time = ticked(SET)
    letters = [(During(s),) if s else () for s in strata]
    spread = [piece for letter in letters for piece in (time.tick, letter)][1:]
    assert time.of(*strata) == time.fold(spread)
    assert time.of(*time.strata(time.of(*strata))) == time.of(*strata)
