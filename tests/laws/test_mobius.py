"""Streams, differences, differentials and loops: each fast form against the formula it stands for.

The formulas are written out here with sums over `below` and the defining recursion of μ, so they
share nothing with the code they check but the order.
"""

import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow.algebra import ADD, LIST, MAX, product
from ebbflow.algebra.differential import (
    bilinear,
    bilinear_in_sequence,
    differential,
    differential_of_lifted,
    egress,
    feedback,
    ingress,
    loop_differences,
    loop_stream,
)
from ebbflow.algebra.mobius import (
    Stream,
    delta,
    lift,
    pairs,
    plain,
    stream_group,
    streams,
    total,
)
from ebbflow.algebra.order import (
    NATURALS,
    POWERSETS,
    Order,
    mobius_by_recursion,
    order_product,
)
from ebbflow.errors import AlgebraError
from ebbflow.zset import ZSETS, ZSet

GRID = order_product(NATURALS, NATURALS)
DIVISORS = Order(
    lambda a, b: b % a == 0,
    lambda n: [d for d in range(1, n + 1) if n % d == 0],
    lambda a, b: next(n for n in range(max(a, b), a * b + 1) if n % a == 0 and n % b == 0),
    name="DIVISORS",
)
PREFIXES = Order(
    lambda a, b: b.startswith(a),
    lambda word: [word[:n] for n in range(len(word) + 1)],
    name="PREFIXES",
)

# versions to look at: with each, everything below it
POINTS = {
    NATURALS: list(NATURALS.below(4)),
    GRID: list(GRID.below((2, 2))),
    POWERSETS: list(POWERSETS.below(frozenset("abc"))),
    order_product(NATURALS, POWERSETS): [
        (n, s) for n in range(3) for s in POWERSETS.below(frozenset("ab"))
    ],
    DIVISORS: list(DIVISORS.below(36)),
    PREFIXES: ["", "a", "b", "aa", "ab", "ba", "aba"],
}
INTS = st.integers(-4, 4)
ZSET = st.dictionaries(st.tuples(st.sampled_from("xy"), st.integers(0, 2)), INTS).map(ZSet)
ELEMENTS = {ADD: INTS, ZSETS: ZSET, product(ADD, ZSETS): st.tuples(INTS, ZSET)}

every_order = pytest.mark.parametrize("order", POINTS, ids=repr)
every_group = pytest.mark.parametrize("group", ELEMENTS, ids=repr)
lawful = settings(max_examples=7)


def drawn(data, order, group, *, finite=None):
    """A random stream, that knows its support or does not."""
    values = data.draw(st.dictionaries(st.sampled_from(POINTS[order]), ELEMENTS[group], max_size=6))
    known = data.draw(st.booleans()) if finite is None else finite
    if known:
        return Stream.of(values, order, group)
    return Stream(order, group, lambda t: values.get(t, group.zero))


def drawn_nested(data, outer, inner):
    """A random stream over `outer` of streams over `inner` of ints."""
    rows = {t: drawn(data, inner, ADD) for t in POINTS[outer]}
    return Stream(outer, stream_group(inner, ADD), rows.__getitem__)


def either_way(data, versions):
    """Asked from below, or from above, which finds totals in another order."""
    return versions if data.draw(st.booleans()) else versions[::-1]


def flat(value, depth, points):
    """A stream, or a stream of streams, as nested lists of what it says at `points`."""
    if depth == 0:
        return value
    return [flat(value[t], depth - 1, points) for t in points]


def sum_below(stream, t):
    return stream.group.fold(stream[r] for r in stream.order.below(t))


def mobius_sum(order, group, t, at):
    """Σ μ(r, t) · at(r) over r <= t."""
    return group.fold(group.times(mobius_by_recursion(order, r, t), at(r)) for r in order.below(t))


def join_on_first(c, d):
    return c.join(d, key=operator.itemgetter(0))


# ---- D3: δ and S ----


@every_order
@every_group
@lawful
@given(data=st.data())
def test_002_D3_total_and_delta_are_what_they_say(order, group, data):
    s = drawn(data, order, group)
    up, down = total(s), delta(s)
    for t in either_way(data, POINTS[order]):
        assert up[t] == sum_below(s, t)
        assert down[t] == mobius_sum(order, group, t, s)


@every_order
@every_group
@lawful
@given(data=st.data())
def test_002_D3_delta_and_total_undo_each_other(order, group, data):
    s = drawn(data, order, group)
    for t in either_way(data, POINTS[order]):
        assert delta(total(s))[t] == s[t] == total(delta(s))[t]


@every_order
@every_group
@lawful
@given(data=st.data())
def test_002_D3_delta_and_total_are_linear(order, group, data):
    a, b = drawn(data, order, group), drawn(data, order, group)
    for inverse in (delta, total):
        whole, parts = inverse(a - b), inverse(a) - inverse(b)
        assert all(whole[t] == parts[t] for t in POINTS[order])


@pytest.mark.parametrize("inner", [NATURALS, POWERSETS], ids=repr)
@pytest.mark.parametrize("outer", [NATURALS, GRID, DIVISORS], ids=repr)
@lawful
@given(data=st.data())
def test_002_D3_streams_of_streams_have_linear_inverses(outer, inner, data):
    row = streams(inner, ADD)
    space = streams(outer, row)
    s = drawn_nested(data, outer, inner)
    there, back = space.delta(space.total(s)), space.total(space.delta(s))
    for t in POINTS[outer]:
        by_definition = mobius_sum(outer, row.group, t, lambda r: row.delta(s[r]))
        summed = row.group.fold(row.total(s[r]) for r in outer.below(t))
        for u in POINTS[inner]:
            assert there[t][u] == s[t][u] == back[t][u]
            assert space.delta(s)[t][u] == by_definition[u]
            assert space.total(s)[t][u] == summed[u]


@lawful
@given(data=st.data())
def test_002_D3_streams_over_T_of_streams_over_U_are_streams_over_pairs(data):
    outer, inner = NATURALS, POWERSETS
    both = order_product(outer, inner)
    nested = drawn_nested(data, outer, inner)
    paired = Stream(both, ADD, lambda t: nested[t[0]][t[1]])
    space = streams(outer, streams(inner, ADD))
    for t, u in ((t, u) for t in POINTS[outer] for u in POINTS[inner]):
        assert space.delta(nested)[t][u] == delta(paired)[t, u]
        assert space.total(nested)[t][u] == total(paired)[t, u]


@lawful
@given(data=st.data())
def test_002_D3_pairs_have_the_inverses_of_their_parts(data):
    space = pairs(streams(GRID, ZSETS), ADD, pairs(streams(NATURALS, ADD)))
    x = drawn(data, GRID, ZSETS), data.draw(INTS), (drawn(data, NATURALS, ADD),)
    for there in (space.delta(space.total(x)), space.total(space.delta(x))):
        assert flat(there[0], 1, POINTS[GRID]) == flat(x[0], 1, POINTS[GRID])
        assert there[1] == x[1]
        assert flat(there[2][0], 1, range(5)) == flat(x[2][0], 1, range(5))
    assert all(space.delta(x)[0][t] == delta(x[0])[t] for t in POINTS[GRID])


@lawful
@given(data=st.data())
def test_002_D3_streams_of_pairs_of_streams_have_linear_inverses(data):
    inner = pairs(streams(NATURALS, ADD), ADD)
    rows = [(drawn(data, NATURALS, ADD), data.draw(INTS)) for _ in range(5)]
    s = Stream(NATURALS, inner.group, rows.__getitem__)
    space = streams(NATURALS, inner)
    for there in (space.delta(space.total(s)), space.total(space.delta(s))):
        for n in range(5):
            assert flat(there[n][0], 1, range(5)) == flat(s[n][0], 1, range(5))
            assert there[n][1] == s[n][1]


def test_002_D3_plain_data_is_its_own_difference():
    assert plain(ADD).delta(3) == plain(ADD).total(3) == 3


def test_002_D3_streams_form_a_group():
    group = streams(NATURALS, ADD).group
    a, b = Stream.of({0: 1, 3: 2}, NATURALS, ADD), Stream.of({3: 5}, NATURALS, ADD)
    assert group == stream_group(NATURALS, ADD) != stream_group(GRID, ADD)
    assert group.equal(group.combine(a, b), Stream.of({0: 1, 3: 7}, NATURALS, ADD))
    assert group.is_zero(group.minus(a, a))
    assert not group.is_zero(a)
    assert group.times(-3, a)[3] == -6
    assert stream_group(NATURALS, ADD, (0, 1)).equal(a, ingress(1, ADD))


def test_streams_that_may_differ_anywhere_are_not_compared():
    ones = Stream(NATURALS, ADD, lambda n: 1)
    with pytest.raises(AlgebraError, match="cannot be compared"):
        stream_group(NATURALS, ADD).is_zero(ones)


@pytest.mark.parametrize("monoid", [LIST, MAX], ids=repr)
def test_streams_need_a_commutative_group(monoid):
    with pytest.raises(AlgebraError, match="differences need a commutative group"):
        Stream(NATURALS, monoid, lambda n: monoid.zero)
    with pytest.raises(AlgebraError, match="differences need a commutative group"):
        plain(monoid)


def test_a_source_that_is_no_space_is_refused():
    with pytest.raises(AlgebraError, match="differences need a commutative group"):
        differential(operator.mul, (ADD, ADD), ADD)


def test_a_stream_refuses_what_is_not_a_version():
    with pytest.raises(AlgebraError, match="-1 is not a version of NATURALS"):
        total(ingress(1, ADD))[-1]
    with pytest.raises(AlgebraError, match="not a version"):
        Stream.of({(1, 2): 3}, NATURALS, ADD)


def test_streams_over_different_orders_do_not_mix():
    over_pairs = Stream.of({(0, 0): 1}, GRID, ADD)
    for mix in (
        lambda: ingress(1, ADD) + over_pairs,
        lambda: lift(max)(ingress(1, ADD), over_pairs),
        lambda: bilinear(operator.mul, ingress(1, ADD), over_pairs),
        lambda: feedback(over_pairs),
        lambda: loop_stream(abs, over_pairs),
        lambda: streams(NATURALS, ADD).delta(over_pairs),
    ):
        with pytest.raises(AlgebraError, match="is needed"):
            mix()


def test_a_finite_stream_can_be_pasted_back():
    s = Stream.of({2: 5, 0: 1}, NATURALS, ADD)
    assert repr(eval(repr(s))) == repr(s) == "Stream.of({2: 5, 0: 1}, NATURALS, ADD)"
    assert repr(s - s) == "Stream.of({2: 0, 0: 0}, NATURALS, ADD)"


# ---- D4: differentials, Proposition 1 ----

ROWS = streams(NATURALS, ADD)


def square_and_next(s):
    """Neither linear nor version by version."""
    return Stream(NATURALS, ADD, lambda n: s[n] ** 2 + s[n + 1])


def scaled(s):
    """Linear, but not its own differential."""
    return Stream(NATURALS, ADD, lambda n: n * s[n])


@lawful
@given(data=st.data())
def test_002_D4_the_differential_takes_differences_to_differences(data):
    s, d = drawn(data, NATURALS, ADD), drawn(data, NATURALS, ADD)
    changed = differential(square_and_next, ROWS, ROWS)
    both = differential(lift(operator.mul), [ROWS, ROWS], ROWS)
    as_tuple = differential(lambda pair: lift(operator.mul)(*pair), pairs(ROWS, ROWS), ROWS)
    for n in range(5):
        assert changed(delta(s))[n] == delta(square_and_next(s))[n]
        product_change = delta(lift(operator.mul)(s, d))[n]
        assert both(delta(s), delta(d))[n] == product_change
        assert as_tuple((delta(s), delta(d)))[n] == product_change


@every_order
@lawful
@given(data=st.data())
def test_002_D4_proposition_1_general(order, data):
    c = drawn(data, order, ZSETS)
    by_definition = differential(lift(ZSet.distinct), streams(order, ZSETS), streams(order, ZSETS))
    formula = differential_of_lifted(ZSet.distinct, ZSETS, ZSETS)
    for t in POINTS[order]:
        written_out = mobius_sum(order, ZSETS, t, lambda r: sum_below(c, r).distinct())
        assert formula(c)[t] == by_definition(c)[t] == written_out


@lawful
@given(data=st.data())
def test_002_D4_proposition_1_where_elements_have_differences_of_their_own(data):
    c = drawn_nested(data, NATURALS, NATURALS)
    space = streams(NATURALS, ROWS)
    df = differential(square_and_next, ROWS, ROWS)
    by_definition = differential(lift(square_and_next), space, space)(c)
    formula = differential_of_lifted(square_and_next, ROWS, ROWS)(c)
    for t in range(4):
        written_out = mobius_sum(NATURALS, ROWS.group, t, lambda r: df(sum_below(c, r)))
        for u in range(3):
            assert formula[t][u] == by_definition[t][u] == written_out[u]


@lawful
@given(data=st.data())
def test_002_D4_proposition_1_linear(data):
    c = drawn_nested(data, GRID, NATURALS)
    space = streams(GRID, ROWS)
    by_definition = differential(lift(scaled), space, space)(c)
    direct = differential_of_lifted(scaled, ROWS, ROWS, linear=True)(c)
    df = differential(scaled, ROWS, ROWS)
    for t in POINTS[GRID]:
        for u in range(4):
            assert direct[t][u] == by_definition[t][u] == df(c[t])[u]


@every_order
@pytest.mark.parametrize(
    "f",
    [lambda z: z.map(operator.itemgetter(0)), lambda z: z.filter(lambda row: row[1]), ZSETS.negate],
    ids=["map", "filter", "negate"],
)
@lawful
@given(data=st.data())
def test_002_D4_proposition_1_a_lifted_linear_function_is_its_own_differential(order, f, data):
    c = drawn(data, order, ZSETS)
    by_definition = differential(lift(f), streams(order, ZSETS), streams(order, ZSETS))(c)
    assert all(by_definition[t] == f(c[t]) for t in POINTS[order])


def test_002_D4_non_law_the_linear_form_is_wrong_for_a_function_that_is_not_linear():
    c = Stream.of({0: 3, 1: -5}, NATURALS, ADD)
    right = differential_of_lifted(abs, ADD, ADD)(c)
    wrong = differential_of_lifted(abs, ADD, ADD, linear=True)(c)
    assert ([right[n] for n in range(3)], [wrong[n] for n in range(3)]) == ([3, -1, 0], [3, 5, 0])


# ---- D5: two arguments, Proposition 2 ----


@every_order
@lawful
@given(data=st.data())
def test_002_D5_proposition_2_general(order, data):
    c, d = drawn(data, order, ZSETS), drawn(data, order, ZSETS)

    def both_once(a, b):
        return a.distinct() - b.distinct()

    space = streams(order, ZSETS)
    by_definition = differential(lift(both_once), [space, space], space)(c, d)
    formula = differential_of_lifted(both_once, [ZSETS, ZSETS], ZSETS)(c, d)
    for t in POINTS[order]:
        written_out = mobius_sum(
            order, ZSETS, t, lambda r: both_once(sum_below(c, r), sum_below(d, r))
        )
        assert formula[t] == by_definition[t] == written_out


@every_order
@lawful
@given(data=st.data())
def test_002_D5_proposition_2_a_join_of_differences_happens_at_the_join_of_versions(order, data):
    c, d = drawn(data, order, ZSETS), drawn(data, order, ZSETS)
    general = differential_of_lifted(join_on_first, [ZSETS, ZSETS], ZSETS)(c, d)
    met = bilinear(join_on_first, c, d)
    for t in POINTS[order]:
        written_out = ZSETS.fold(
            join_on_first(c[r], d[s])
            for r in order.below(t) for s in order.below(t) if order.join(r, s) == t
        )  # fmt: skip
        assert met[t] == general[t] == written_out
    assert all(total(met)[t] == total(general)[t] for t in POINTS[order])


@lawful
@given(data=st.data())
def test_002_D5_proposition_2_where_elements_have_differences_of_their_own(data):
    c, d = drawn_nested(data, NATURALS, NATURALS), drawn_nested(data, NATURALS, NATURALS)
    times, space = lift(operator.mul), streams(NATURALS, ROWS)
    by_definition = differential(lift(times), [space, space], space)(c, d)
    met = bilinear(differential(times, [ROWS, ROWS], ROWS), c, d)
    assert flat(met, 2, range(3)) == flat(by_definition, 2, range(3))


def test_002_D5_a_bilinear_function_may_give_elements_of_another_group():
    c, d = Stream.of({1: ZSet.of("ab")}, NATURALS, ZSETS), Stream.of({3: 2}, NATURALS, ADD)
    met = bilinear(lambda z, n: n * sum(w for _, w in z.items()), c, d, ADD)
    assert ([met[n] for n in range(5)], met.support) == ([0, 0, 0, 4, 0], (3,))


@pytest.mark.parametrize("order", [NATURALS, PREFIXES], ids=repr)
@lawful
@given(data=st.data())
def test_002_D5_where_versions_follow_one_another_three_joins_are_enough(order, data):
    c, d = drawn(data, order, ZSETS), drawn(data, order, ZSETS)
    general = differential_of_lifted(join_on_first, [ZSETS, ZSETS], ZSETS)(c, d)
    in_sequence = bilinear_in_sequence(join_on_first, c, d)
    for t in POINTS[order]:
        all_c, all_d = sum_below(c, t), sum_below(d, t)
        three = join_on_first(all_c, d[t]) + join_on_first(c[t], all_d) - join_on_first(c[t], d[t])
        assert in_sequence[t] == general[t] == three


@lawful
@given(data=st.data())
def test_002_D5_the_formula_for_the_naturals_holds_for_values_and_their_differences(data):
    c, d = drawn(data, NATURALS, ZSETS), drawn(data, NATURALS, ZSETS)
    new_c, new_d = delta(c), delta(d)
    change = delta(lift(join_on_first)(c, d))
    for n in range(5):
        assert change[n] == (
            join_on_first(c[n], new_d[n])
            + join_on_first(new_c[n], d[n])
            - join_on_first(new_c[n], new_d[n])
        )


def test_002_D5_non_law_the_formula_for_the_naturals_does_not_take_differences_for_values():
    c = d = ingress(1, ADD)
    change = differential_of_lifted(operator.mul, [ADD, ADD], ADD)(c, d)
    read_wrongly = c[1] * delta(d)[1] + delta(c)[1] * d[1] - delta(c)[1] * delta(d)[1]
    assert (change[1], read_wrongly) == (0, -1)


def test_002_D5_non_law_three_joins_are_not_enough_where_versions_meet():
    c, d = Stream.of({(0, 1): 2}, GRID, ADD), Stream.of({(1, 0): 3}, GRID, ADD)
    assert bilinear(operator.mul, c, d)[1, 1] == 6
    with pytest.raises(AlgebraError, match="several versions lie directly below"):
        bilinear_in_sequence(operator.mul, c, d)[1, 1]


def test_002_D5_non_law_without_joins_differences_have_nowhere_to_meet():
    below = {"a": "a", "b": "b", "u": "abu", "v": "abv"}
    crossed = Order(lambda x, y: x in below[y], below.__getitem__, name="crossed")
    c, d = Stream.of({"a": 2}, crossed, ADD), Stream.of({"b": 3}, crossed, ADD)
    general = differential_of_lifted(operator.mul, [ADD, ADD], ADD)(c, d)
    assert [general[t] for t in "abuv"] == [0, 0, 6, 6]

    met = bilinear(operator.mul, c, d)
    assert met["a"] == 0
    with pytest.raises(AlgebraError, match="have no join"):
        met["u"]
    with pytest.raises(AlgebraError, match="have no join"):
        total(met)["v"]


# ---- D6: loops, Proposition 3 ----

SPACES = {
    "ints": (plain(ADD), lambda data: data.draw(INTS), lambda n: 2 * n * n + 1, 0),
    "Z-sets": (
        plain(ZSETS),
        lambda data: data.draw(ZSET),
        lambda z: (z + z.map(lambda row: (row[0], row[1] + 1))).distinct(),
        0,
    ),
    "streams": (ROWS, lambda data: drawn(data, NATURALS, ADD), square_and_next, 1),
    "streams over a grid": (
        streams(GRID, ADD), lambda data: drawn(data, GRID, ADD), lift(lambda n: n * n - 1), 1,
    ),
}  # fmt: skip
GRID_POINTS = [(0, 0), (0, 1), (1, 0), (1, 1)]

every_space = pytest.mark.parametrize("name", SPACES)
loops = settings(max_examples=7)


def seen(name, value, depth=0):
    """`depth` levels of rounds above an element of the named space, as lists."""
    points = GRID_POINTS if "grid" in name else range(3)
    own = SPACES[name][3]
    if depth == 0:
        return flat(value, own, points)
    return [seen(name, value[n], depth - 1) for n in range(4)]


def drawn_rounds(name, data):
    space, element, _, _ = SPACES[name]
    values = [element(data) for _ in range(4)]
    return Stream(NATURALS, space.group, lambda n: values[n] if n < 4 else space.group.zero)


@every_space
@loops
@given(data=st.data())
def test_002_D6_proposition_3_ingress(name, data):
    space, element, _, _ = SPACES[name]
    c = element(data)
    changed = differential(
        lambda x: ingress(x, space.group), space, streams(NATURALS, space)
    )(c)  # fmt: skip
    zero = space.group.zero
    expected = [c, space.group.minus(zero, c), zero, zero]
    assert seen(name, changed, 1) == [seen(name, x) for x in expected]


@every_space
@loops
@given(data=st.data())
def test_002_D6_proposition_3_feedback_is_its_own_differential(name, data):
    space = streams(NATURALS, SPACES[name][0])
    c = drawn_rounds(name, data)
    assert seen(name, differential(feedback, space, space)(c), 1) == seen(name, feedback(c), 1)


@every_space
@pytest.mark.parametrize("k", [0, 3])
@loops
@given(data=st.data())
def test_002_D6_proposition_3_egress_adds_up_the_rounds_so_far(name, k, data):
    space = SPACES[name][0]
    c = drawn_rounds(name, data)
    changed = differential(egress(k), streams(NATURALS, space), space)(c)
    assert seen(name, changed) == seen(name, space.group.fold(c[m] for m in range(k + 1)))


@every_space
@loops
@given(data=st.data())
def test_002_D6_concat_is_its_own_differential(name, data):
    space = streams(NATURALS, SPACES[name][0])
    a, b = drawn_rounds(name, data), drawn_rounds(name, data)
    changed = differential(operator.add, [space, space], space)(a, b)
    assert seen(name, changed, 1) == seen(name, a + b, 1)


@every_space
@loops
@given(data=st.data())
def test_002_D6_equation_1_a_loop_repeats_its_body(name, data):
    space, element, f, _ = SPACES[name]
    c = element(data)
    s = loop_stream(f, ingress(c, space.group))
    assert seen(name, s, 1) == seen(name, ingress(c, space.group) + feedback(lift(f)(s)), 1)
    assert seen(name, egress(3)(s)) == seen(name, f(f(f(c))))


@every_space
@loops
@given(data=st.data())
def test_002_D6_equation_1_has_no_other_solution(name, data):
    space, element, f, _ = SPACES[name]
    entered = ingress(element(data), space.group)
    d = drawn_rounds(name, data)
    for _ in range(4):
        d = entered + feedback(lift(f)(d))
    assert seen(name, d, 1) == seen(name, loop_stream(f, entered), 1)


@every_space
@loops
@given(data=st.data())
def test_002_D6_equation_2_the_differences_of_a_loop_are_a_loop_of_differences(name, data):
    space, element, f, _ = SPACES[name]
    rounds = streams(NATURALS, space)
    c = element(data)
    changes = rounds.delta(loop_stream(f, ingress(c, space.group)))
    entered = differential(lambda x: ingress(x, space.group), space, rounds)(space.delta(c))
    again = entered + feedback(differential_of_lifted(f, space, space)(changes))
    assert seen(name, changes, 1) == seen(name, again, 1)


@every_space
@loops
@given(data=st.data())
def test_002_D6_the_explicit_formula_for_the_differences_of_a_loop(name, data):
    space, element, f, _ = SPACES[name]
    change = element(data)
    explicit = loop_differences(f, change, space)
    by_definition = streams(NATURALS, space).delta(
        loop_stream(f, ingress(space.total(change), space.group))
    )
    assert seen(name, explicit, 1) == seen(name, by_definition, 1)

    df, power, expected = differential(f, space, space), change, [change]
    for _ in range(3):
        power, previous = df(power), power
        expected.append(space.group.minus(power, previous))
    assert seen(name, explicit, 1) == [seen(name, x) for x in expected]


@every_space
@loops
@given(data=st.data())
def test_002_D6_leaving_the_differential_loop_gives_the_differential_of_the_kth_round(name, data):
    space, element, f, _ = SPACES[name]
    change = element(data)
    df = differential(f, space, space)
    left = differential(egress(3), streams(NATURALS, space), space)(
        loop_differences(f, change, space)
    )
    assert seen(name, left) == seen(name, df(df(df(change))))


@every_space
@loops
@given(data=st.data())
def test_002_D6_equation_3_new_input_may_enter_in_every_round(name, data):
    space, _, f, _ = SPACES[name]
    c = drawn_rounds(name, data)
    s = loop_stream(f, c)
    assert seen(name, s, 1) == seen(name, c + feedback(lift(f)(s)), 1)
    assert seen(name, s[2]) == seen(
        name, space.group.combine(c[2], f(space.group.combine(c[1], f(c[0]))))
    )

    rounds = streams(NATURALS, space)
    changes = rounds.delta(s)
    again = rounds.delta(c) + feedback(differential_of_lifted(f, space, space)(changes))
    assert seen(name, changes, 1) == seen(name, again, 1)


@loops
@given(start=INTS)
def test_002_D6_loops_nest(start):
    def inner(n):
        return egress(3)(loop_stream(lambda m: m + n, ingress(n, ADD)))

    s = loop_stream(inner, ingress(start, ADD))
    assert [s[n] for n in range(4)] == [start * 4**n for n in range(4)]


def test_002_D6_a_loop_of_many_rounds_needs_no_deep_recursion():
    body, entered = lift(lambda n: n + 1), ingress(ingress(1, ADD), ROWS.group)
    assert loop_stream(body, entered)[5_000][0] == 5_001
    assert loop_differences(body, ingress(1, ADD), ROWS)[2_000][0] == 1
