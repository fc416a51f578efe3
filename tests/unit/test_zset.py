"""Z-sets are frozen, canonical, and equal to the dict program anyone would write."""

from __future__ import annotations

import copy
import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbflow import ZSet
from ebbflow.algebra import Monoid
from ebbflow.errors import AlgebraError
from ebbflow.laws.strategies import bags, zsets
from ebbflow.zset import ZSETS

ROWS = st.integers(-5, 5)


def plain(z: ZSet) -> Counter:
    return Counter(dict(z.items()))


def canonical(weights: Counter) -> ZSet:
    return ZSet(dict(weights))


@given(st.lists(st.tuples(ROWS, st.integers(-2, 2))))
def test_no_zero_weight_is_ever_kept(pairs: list[tuple[int, int]]) -> None:
    z = ZSet(pairs)
    assert all(weight for _, weight in z.items())
    assert all(z.weight(row) == sum(w for r, w in pairs if r == row) for row, _ in pairs)


@given(zsets(), zsets(), st.integers(-3, 3))
def test_arithmetic_equals_counters(a: ZSet, b: ZSet, n: int) -> None:
    total = plain(a)
    total.update(plain(b))
    assert a + b == canonical(total)
    rest = plain(a)
    rest.subtract(plain(b))
    assert a - b == canonical(rest)
    assert a * n == n * a == ZSet({row: weight * n for row, weight in a.items()})
    for z in (a + b, a - b, a * n, -a):
        assert all(weight for _, weight in z.items())


@given(zsets(), zsets())
def test_join_equals_two_loops(a: ZSet, b: ZSet) -> None:
    expected: Counter = Counter()
    merged: Counter = Counter()
    for x, i in a.items():
        for y, j in b.items():
            if x % 3 == y % 3:
                expected[x, y] += i * j
                merged[x + y] += i * j
    assert a.join(b, key=lambda n: n % 3) == canonical(expected)
    assert a.join(b, lambda n: n % 3, merge=lambda x, y: x + y) == canonical(merged)


@given(zsets(), zsets(), zsets())
def test_join_is_linear_on_both_sides(a: ZSet, b: ZSet, c: ZSet) -> None:
    on = lambda n: n % 2
    assert (a + b).join(c, on) == a.join(c, on) + b.join(c, on)
    assert c.join(a + b, on) == c.join(a, on) + c.join(b, on)


@given(zsets())
def test_map_and_flat_map_add_up_what_becomes_equal(z: ZSet) -> None:
    mapped: Counter = Counter()
    for row, weight in z.items():
        mapped[abs(row)] += weight
    assert z.map(abs) == canonical(mapped)
    assert z.flat_map(lambda row: [row, abs(row)]) == z + z.map(abs)
    assert z == z.positive() - z.negative()


@given(bags())
def test_a_bag_lists_each_row_as_often_as_it_is_there(bag: ZSet) -> None:
    assert ZSet.of(bag.rows()) == bag
    assert bag.is_bag


def test_a_negative_row_cannot_be_listed() -> None:
    with pytest.raises(AlgebraError, match="negative weight"):
        list(ZSet({"a": -1}).rows())


def test_equal_values_have_equal_hashes_however_they_were_made() -> None:
    one, other = ZSet({"a": 1, "b": 2}), ZSet.of("bab")
    assert one == other
    assert hash(one) == hash(other)
    assert {one: "x"}[other] == "x"
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one


def test_it_cannot_be_changed_through_what_went_in() -> None:
    weights = {"a": 1}
    z = ZSet(weights)
    weights["a"] = 99
    assert z.weight("a") == 1
    with pytest.raises(TypeError):
        z["a"] = 2  # type: ignore[index]


@pytest.mark.parametrize("weight", [1.0, "1", None, True])
def test_a_weight_that_is_no_int_is_refused_with_the_row(weight: object) -> None:
    with pytest.raises(AlgebraError, match="must be an int") as caught:
        ZSet({"row": weight})  # type: ignore[dict-item]
    assert "'row'" in str(caught.value)


def test_adding_nothing_costs_no_copy() -> None:
    z = ZSet.of(range(1000))
    assert z + ZSet() is z
    assert ZSet() + z is z


def test_a_repr_can_be_pasted_back() -> None:
    z = ZSet({("a", 1): 2, ("b", 2): -1})
    assert eval(repr(z)) == z


@pytest.mark.parametrize("make", [ZSet.of, lambda rows: ZSet([(row, 1) for row in rows])])
def test_a_row_that_cannot_be_hashed_is_refused_with_the_row(make: object) -> None:
    with pytest.raises(AlgebraError, match="a list is not") as caught:
        make(["fine", [1, 2]])  # type: ignore[operator]
    assert "[1, 2]" in str(caught.value)
    assert "tuples" in str(caught.value)


def test_a_zset_of_a_zset_is_the_same() -> None:
    z = ZSet({("a", 1): 5, ("b", 2): 1})
    assert ZSet(z) == z


@pytest.mark.parametrize("rows", [[1, 2], "ab", [("a", 1, 2)]])
def test_what_is_not_made_of_pairs_is_refused(rows: object) -> None:
    with pytest.raises(AlgebraError, match="pairs"):
        ZSet(rows)  # type: ignore[arg-type]


def test_what_a_function_gives_must_be_hashable_too() -> None:
    with pytest.raises(AlgebraError, match="a list is not"):
        ZSet.of([1]).map(lambda n: [n])
    with pytest.raises(AlgebraError, match="a list is not"):
        ZSet.of([1]).flat_map(lambda n: [[n]])
    with pytest.raises(TypeError, match="bad operand"):
        ZSet.of(["a"]).map(lambda s: -s)


def test_nothing_that_is_handed_out_can_change_it() -> None:
    z = ZSet.of("a")
    with pytest.raises(TypeError):
        ZSETS.basis.parts(z)["b"] = 1  # type: ignore[union-attr, index]


def test_a_sum_into_dicts_costs_no_more_than_n_log_n() -> None:
    combined = [0]

    def combine(a: dict, b: dict) -> dict:
        combined[0] += len(a) + len(b)
        return a | b

    dicts = Monoid({}, combine, commutative=True, negate=lambda a: a)
    ZSet.of(range(2048)).sum(lambda n: {n: 1}, dicts)
    assert combined[0] <= 2048 * 13
