"""How many group operations differences and totals cost, counted."""

import operator

import pytest

from ebbflow.algebra import ADD, Monoid
from ebbflow.algebra.differential import (
    bilinear,
    feedback,
    ingress,
    loop_stream,
)
from ebbflow.algebra.mobius import (
    Stream,
    delta,
    stream_group,
    streams,
    total,
)
from ebbflow.algebra.order import NATURALS, POWERSETS, Order, order_product

GRID = order_product(NATURALS, NATURALS)
CUBE = order_product(NATURALS, NATURALS, NATURALS)


class Counted:
    """The integers under addition, counting what is done with them."""

    def __init__(self):
        self.added = self.negated = self.asked = 0
        self.group = Monoid(0, self._add, commutative=True, negate=self._negate)

    def _add(self, a, b):
        self.added += 1
        return a + b

    def _negate(self, a):
        self.negated += 1
        return -a

    def ones(self, order):
        return Stream(order, self.group, self._one)

    def _one(self, t):
        self.asked += 1
        return 1


@pytest.mark.parametrize(
    ("order", "t", "terms"), [(NATURALS, 9, 2), (GRID, (9, 9), 4), (CUBE, (9, 9, 9), 8)]
)
def test_002_D3_a_difference_asks_only_where_the_coefficient_is_not_zero(order, t, terms):
    count = Counted()
    assert delta(count.ones(order))[t] == 0
    assert (count.asked, count.added, count.negated) == (terms, terms - 1, terms // 2)


@pytest.mark.parametrize(
    ("order", "origin"), [(NATURALS, 0), (GRID, (0, 0)), (CUBE, (0, 0, 0))], ids=repr
)
def test_002_D3_the_first_difference_is_the_first_value(order, origin):
    count = Counted()
    assert delta(count.ones(order))[origin] == 1
    assert (count.asked, count.added, count.negated) == (1, 0, 0)


def test_002_D3_a_far_total_over_the_naturals_costs_one_addition_per_version():
    count = Counted()
    totals = total(count.ones(NATURALS))
    assert totals[100_000] == 100_001
    assert (count.asked, count.added, count.negated) == (100_001, 100_000, 0)

    assert [totals[n] for n in range(0, 100_000, 7)] == list(range(1, 100_001, 7))
    assert totals[100_001] == 100_002
    assert count.added == 100_001


def test_002_D3_totals_asked_one_after_the_other_cost_one_addition_each():
    for stream_of in (Counted.ones, lambda count, order: finite(count, order, range(1_000))):
        count = Counted()
        totals = total(stream_of(count, NATURALS))
        assert [totals[n] for n in range(1_000)] == list(range(1, 1_001))
        assert count.added == 999


def test_002_D3_a_far_total_over_pairs_costs_three_additions_per_version():
    count = Counted()
    assert total(count.ones(GRID))[300, 300] == 301 * 301
    assert count.asked == 301 * 301
    assert count.added == 300 * 300 * 3 + 600
    assert count.negated == 300 * 300


def test_002_D3_a_total_over_streams_of_streams_costs_two_additions_per_version():
    count = Counted()
    row = streams(NATURALS, count.group)
    ones = Stream(NATURALS, row.group, lambda n: count.ones(NATURALS))
    assert streams(NATURALS, row).total(ones)[300][300] == 301 * 301
    assert count.added == 301 * 300 + 300


def test_002_D3_the_total_of_few_differences_looks_at_those_alone():
    count = Counted()
    few = finite(count, GRID, [(0, 0), (5, 10**9), (10**9, 5), (10**9, 10**9)])
    assert total(few)[10**9, 10**9 - 1] == 2
    assert count.added == 1


def test_002_D3_one_total_over_an_order_with_long_rows_is_one_plain_sum():
    some = frozenset(range(10))
    chain = Order(operator.le, lambda n: range(n + 1), name="chain")
    for order, t, versions in (
        (POWERSETS, some, 2**10),
        (order_product(NATURALS, POWERSETS), (3, some), 4 * 2**10),
        (chain, 5_000, 5_001),
    ):
        count = Counted()
        assert total(count.ones(order))[t] == versions
        assert count.added == versions - 1


def test_002_D5_differences_that_meet_are_multiplied_once():
    multiplied = []

    def times(a, b):
        multiplied.append((a, b))
        return a * b

    c = Stream.of({(0, n): n + 1 for n in range(30)}, GRID, ADD)
    d = Stream.of({(n, 0): n + 1 for n in range(30)}, GRID, ADD)
    met = bilinear(times, c, d)
    assert met[10**6, 3] == 0
    assert multiplied == []
    assert total(met)[2, 1] == (1 + 2) * (1 + 2 + 3)
    assert len(multiplied) == 6


def test_002_D6_every_round_of_a_loop_runs_its_body_once():
    rounds = []

    def body(n):
        rounds.append(n)
        return n + 1

    s = loop_stream(body, ingress(0, ADD))
    assert s[50] == 50
    assert s[49] == 49
    assert delta(s)[50] == feedback(s)[2] == 1
    assert rounds == list(range(50))


def test_nothing_is_computed_before_it_is_asked():
    def never(t):
        raise AssertionError(t)

    s = Stream(NATURALS, ADD, never)
    total(delta(s + s))
    feedback(loop_stream(never, s))
    bilinear(never, s, s)
    stream_group(NATURALS, ADD).times(3, s)


def finite(count, order, versions):
    return Stream.of(dict.fromkeys(versions, 1), order, count.group)
