"""Orders of versions: locally finite partial orders whose every fast μ is the defined one."""

import itertools
import operator
import pickle
from math import lcm, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow.algebra.order import (
    NATURALS,
    POWERSETS,
    Order,
    mobius_by_recursion,
    order_product,
)
from ebbflow.errors import AlgebraError


def divides(a, b):
    return b % a == 0


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def lexicographically_below(t):
    epoch, stage = t
    earlier = ((e, s) for e in range(epoch) for s in itertools.count())
    return itertools.chain(earlier, ((epoch, s) for s in range(stage + 1)))


DIVISORS = Order(divides, divisors, lcm, name="DIVISORS")
PREFIXES = Order(
    lambda a, b: b.startswith(a),
    lambda word: [word[:n] for n in range(len(word) + 1)],
    name="PREFIXES",
)
SETS = st.frozensets(st.sampled_from("abc"))
SMALL = st.integers(0, 3)

ORDERS = {
    "naturals": (NATURALS, st.integers(0, 12)),
    "pairs": (order_product(NATURALS, NATURALS), st.tuples(SMALL, SMALL)),
    "triples": (order_product(NATURALS, NATURALS, NATURALS), st.tuples(SMALL, SMALL, SMALL)),
    "powersets": (POWERSETS, SETS),
    "naturals with powersets": (order_product(NATURALS, POWERSETS), st.tuples(SMALL, SETS)),
    "nested": (
        order_product(NATURALS, order_product(POWERSETS, NATURALS)),
        st.tuples(SMALL, st.tuples(SETS, SMALL)),
    ),
    "divisors": (DIVISORS, st.integers(1, 120)),
    "divisors with naturals": (
        order_product(DIVISORS, NATURALS), st.tuples(st.integers(1, 24), SMALL),
    ),
    "prefixes": (PREFIXES, st.text("ab", max_size=5)),
    "the empty product": (order_product(), st.just(())),
}  # fmt: skip

every_order = pytest.mark.parametrize("name", ORDERS)
lawful = settings(max_examples=20)


@every_order
@lawful
@given(data=st.data())
def test_002_D2_leq_is_a_partial_order(name, data):
    order, versions = ORDERS[name]
    a, b, c = (data.draw(versions) for _ in range(3))
    assert order.leq(a, a)
    assert not (order.leq(a, b) and order.leq(b, a)) or a == b
    assert not (order.leq(a, b) and order.leq(b, c)) or order.leq(a, c)


@every_order
@lawful
@given(data=st.data())
def test_002_D2_below_lists_each_smaller_version_once_and_before_the_larger(name, data):
    order, versions = ORDERS[name]
    t, other = data.draw(versions), data.draw(versions)
    listed = list(order.below(t))
    assert listed[-1] == t
    assert len(set(listed)) == len(listed)
    assert (other in listed) == order.leq(other, t)
    for earlier, later in itertools.combinations(listed, 2):
        assert not order.leq(later, earlier)


@every_order
@lawful
@given(data=st.data())
def test_002_D2_mobius_equals_its_recursion(name, data):
    order, versions = ORDERS[name]
    b = data.draw(versions)
    for a in [*order.below(b), data.draw(versions)]:
        assert order.mobius(a, b) == mobius_by_recursion(order, a, b)


@every_order
@lawful
@given(data=st.data())
def test_002_D2_a_row_is_every_coefficient_that_is_not_zero(name, data):
    order, versions = ORDERS[name]
    t = data.draw(versions)
    expected = [(a, mu) for a in order.below(t) if (mu := mobius_by_recursion(order, a, t))]
    assert dict(order.row(t)) == dict(expected)
    assert len(order.row(t)) == len(expected)
    assert order.row(t)[-1] == (t, 1)


@every_order
@lawful
@given(data=st.data())
def test_002_D2_join_is_the_least_upper_bound(name, data):
    order, versions = ORDERS[name]
    a, b, c = (data.draw(versions) for _ in range(3))
    join = order.join(a, b)
    if join is None:
        assert not order.leq(a, b)
        assert not order.leq(b, a)
        return
    assert order.leq(a, join)
    assert order.leq(b, join)
    assert not (order.leq(a, c) and order.leq(b, c)) or order.leq(join, c)


@lawful
@given(a=st.tuples(SMALL, SETS), b=st.tuples(SMALL, SETS))
def test_002_D2_the_coefficient_of_a_product_is_the_product_of_coefficients(a, b):
    together = order_product(NATURALS, POWERSETS)
    apart = NATURALS.mobius(a[0], b[0]) * POWERSETS.mobius(a[1], b[1])
    assert mobius_by_recursion(together, a, b) == apart


def test_002_D2_the_closed_forms_of_the_naturals_and_of_powersets():
    assert [NATURALS.mobius(n, 5) for n in range(8)] == [0, 0, 0, 0, -1, 1, 0, 0]
    for x, y in itertools.product(POWERSETS.below(frozenset("abcd")), repeat=2):
        assert POWERSETS.mobius(x, y) == ((-1) ** len(y - x) if x <= y else 0)


def test_002_D2_the_divisors_have_the_coefficients_of_number_theory():
    def by_primes(n):
        primes = [p for p in range(2, n + 1) if divides(p, n) and len(divisors(p)) == 2]
        return (-1) ** len(primes) if prod(primes) == n else 0

    assert all(DIVISORS.mobius(1, n) == by_primes(n) for n in range(1, 200))
    assert all(DIVISORS.mobius(d, n) == by_primes(n // d)
               for n in range(1, 60) for d in divisors(n))  # fmt: skip


def test_002_D2_a_long_chain_needs_no_deep_recursion():
    chain = Order(operator.le, lambda n: range(n + 1), name="chain")
    assert chain.row(5_000) == ((4_999, -1), (5_000, 1))
    assert mobius_by_recursion(chain, 0, 5_000) == 0


def test_002_D2_the_lexicographic_order_is_refused_because_it_is_not_locally_finite():
    lexicographic = Order(operator.le, lexicographically_below, max, name="lexicographic", limit=99)
    assert lexicographic.row((0, 5)) == (((0, 4), -1), ((0, 5), 1))
    with pytest.raises(AlgebraError, match="locally finite"):
        lexicographic.row((1, 0))
    with pytest.raises(AlgebraError, match="locally finite"):
        list(order_product(NATURALS, lexicographic).below((3, (1, 0))))


@pytest.mark.parametrize(
    "below",
    [lambda n: range(n), lambda n: range(n, -1, -1), lambda n: [*range(n + 1), n], lambda n: []],
    ids=["without itself", "larger first", "one twice", "nothing"],
)
def test_002_D2_a_below_that_cannot_be_right_is_refused(below):
    with pytest.raises(AlgebraError, match="smaller ones first"):
        Order(operator.le, below).row(3)


@pytest.mark.parametrize(
    ("order", "stranger"),
    [
        (NATURALS, -1),
        (NATURALS, "a"),
        (POWERSETS, "ab"),
        (order_product(NATURALS, NATURALS), (1, 2, 3)),
        (order_product(NATURALS, NATURALS), (1, -2)),
    ],
    ids=repr,
)
def test_what_is_not_a_version_is_refused(order, stranger):
    assert stranger not in order
    for ask in (order.below, order.row, lambda t: order.mobius(t, t)):
        with pytest.raises(AlgebraError, match="is not a version of"):
            ask(stranger)


def test_an_order_without_join_knows_the_join_of_versions_that_can_be_compared():
    assert PREFIXES.join("a", "abc") == PREFIXES.join("abc", "a") == "abc"
    assert PREFIXES.join("ab", "ac") is None
    assert order_product(PREFIXES, NATURALS).join(("ab", 1), ("ac", 2)) is None


def test_closed_forms_given_by_a_user_are_used():
    fast = Order(operator.le, lambda n: range(n + 1), mobius=lambda a, b: (a == b) - (a + 1 == b))
    short = Order(operator.le, lambda n: range(n + 1), row=NATURALS.row)
    assert fast.row(7) == short.row(7) == ((6, -1), (7, 1))
    assert short.mobius(6, 7) == fast.mobius(6, 7) == -1


@pytest.mark.parametrize(
    "order",
    [NATURALS, POWERSETS, order_product(NATURALS, order_product(POWERSETS, NATURALS)),
     Order(divides, divisors, lcm)],
    ids=repr,
)  # fmt: skip
def test_orders_are_values(order):
    order_copy = pickle.loads(pickle.dumps(order))
    assert order_copy == order
    assert hash(order_copy) == hash(order)
    assert repr(order_copy) == repr(order)
    assert eval(repr(order)) == order
    with pytest.raises(AttributeError):
        order.name = "another"


def test_different_orders_are_different():
    assert NATURALS != POWERSETS
    assert order_product(NATURALS) != NATURALS
    assert order_product(NATURALS, POWERSETS) != order_product(POWERSETS, NATURALS)
    assert Order(divides, divisors, elements=range(9)).elements == range(9)
