"""The theorems of stream processors, each as a check on random inputs in random pieces."""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow import ZSet, laws
from ebbflow.algebra import (
    ADD,
    LIST,
    MAX,
    SET,
    STR,
    Homomorphism,
    Monoid,
    dict_of,
    product,
    state_monoid,
    terminated,
    ticked,
)
from ebbflow.errors import AlgebraError, CompositionError, LawBroken
from ebbflow.laws import PROGRESS, PROGRESS_AT_END, UPDATE_ADDS, laws_of
from ebbflow.laws.strategies import elements_of, zsets
from ebbflow.stream import (
    Consequences,
    Processor,
    Splitter,
    StreamFunction,
    TickedDifference,
    by_cancelling,
    by_idempotence,
    decompose,
    defunctionalise,
    derivative,
    elementwise,
    evaluate,
    exchange,
    filter_each,
    flat_map_each,
    full_adder,
    function_of,
    fuse,
    hypotheticals,
    identity,
    integral,
    join,
    map_each,
    merge,
    on_output,
    pairs,
    parallel,
    partition,
    prefix_sum,
    processor,
    processor_of,
    pure,
    split_by,
    split_join,
    tabulate,
)
from ebbflow.tensor import tensor
from ebbflow.zset import BAGS, ZSETS

check = partial(laws.check, examples=30)
equivalent = partial(laws.equivalent, examples=30)
independent = partial(laws.independent, examples=60)

SMALL = st.integers(-5, 5)
LISTS = st.lists(SMALL, max_size=5)
BITS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=6)
TWO_SETS = product(SET, SET)


def letters(word: str) -> int:
    return len(word)


size = Homomorphism(len, LIST, ADD, name="size")
delayed = elementwise(lambda last, x: (x, [last]), state=0, name="delayed")
greeting = processor(
    lambda n, xs: (n + len(xs), xs), state=0, source=LIST, target=LIST, output=["hello"],
    name="greeting",
)  # fmt: skip


def both_ways(pair: tuple[list, list]) -> tuple[list, list]:
    return pair[0] + pair[1], pair[0] + pair[1]


PROCESSORS: list[Processor[Any, Any]] = [
    prefix_sum(),
    derivative(),
    integral(STR),
    delayed,
    greeting,
    map_each(abs),
    filter_each(bool),
    flat_map_each(lambda n: range(max(n, 0))),
    pure(size),
    identity(ZSETS),
    prefix_sum() >> derivative(),
    greeting >> map_each(str),
    prefix_sum() * derivative(),
    parallel(prefix_sum(), delayed, pure(size)),
    prefix_sum() & pure(size),
    pairs(SET, SET),
    pairs(ZSETS, BAGS),
    join(lambda a, b: a == b, ZSETS, ZSETS),
    TickedDifference(),
    decompose(prefix_sum()),
    fuse(map_each(abs) >> map_each(str) >> delayed),
    merge(ZSETS),
    split_by(lambda n: n, ZSETS, ways=3),
    partition(join(lambda a, b: a == b, SET, SET), split_by(lambda g: g[1], TWO_SETS)),
    Consequences(lambda given, derived: given | {n + 1 for n in derived if n < 4}),
]
STRINGS = st.lists(st.text("ab", max_size=2), max_size=4)


@pytest.mark.parametrize("given_processor", PROCESSORS, ids=repr)
def test_003_H3_every_processor_is_a_homomorphism_into_state(given_processor: Processor) -> None:
    own = STRINGS if given_processor == integral(STR) else None
    check(given_processor, elements=own)


# ---- H2: stream functions ----

totals = StreamFunction(
    lambda xs: list(accumulate(xs)),
    lambda p, a: [sum(p) + total for total in accumulate(a)],
    source=LIST,
    target=LIST,
    name="totals",
)


def test_003_H2_prefix_sum_is_a_stream_function_and_no_homomorphism() -> None:
    check(totals)
    with pytest.raises(LawBroken, match="not a homomorphism"):
        check(Homomorphism(totals, LIST, LIST))


@pytest.mark.parametrize(
    "function",
    [
        by_cancelling(lambda xs: xs[::2], source=LIST, target=LIST, name="every second"),
        by_cancelling(lambda n: 3 * n + 1, source=ADD, target=ADD, name="3n + 1"),
        by_cancelling(lambda z: z.distinct(), source=ZSETS, target=ZSETS, name="distinct"),
    ],
    ids=repr,
)
def test_003_H2_proposition_3_15_cancelling_makes_a_stream_function(function: Any) -> None:
    check(function)


@pytest.mark.parametrize(
    "function",
    [
        by_idempotence(frozenset, source=LIST, target=SET, name="elements"),
        by_idempotence(lambda xs: max(xs, default=MAX.zero), source=LIST, target=MAX, name="max"),
        by_idempotence(lambda s: frozenset(range(len(s))), source=SET, target=SET, name="sizes"),
    ],
    ids=repr,
)
def test_003_H2_proposition_3_16_idempotence_makes_a_stream_function(function: Any) -> None:
    check(function)


def test_003_H2_the_constructions_refuse_targets_that_cannot() -> None:
    with pytest.raises(AlgebraError, match="not left-cancellative"):
        by_cancelling(frozenset, source=LIST, target=SET)
    with pytest.raises(AlgebraError, match="not idempotent"):
        by_idempotence(list, source=LIST, target=LIST)


def test_003_H2_proposition_3_16_does_not_hold_where_inputs_cancel() -> None:
    """Its proof passes over the case a · b == zero with neither zero; groups have it."""
    constant = lambda n: frozenset("c")
    with pytest.raises(AlgebraError, match="can take input back"):
        by_idempotence(constant, source=ADD, target=SET)
    as_in_the_paper = StreamFunction(
        constant, lambda p, a: constant(p + a) if a else frozenset(), source=ADD, target=SET
    )
    with pytest.raises(LawBroken) as caught:
        check(as_in_the_paper)
    assert caught.value.law.name == "UPDATE_CUT"
    assert caught.value.case["a"] == -caught.value.case["b"] != 0


def test_003_H2_what_sorts_is_no_stream_function() -> None:
    with pytest.raises(LawBroken) as caught:
        check(by_cancelling(sorted, source=LIST, target=LIST, name="sorted"))
    assert caught.value.law is UPDATE_ADDS


def test_003_H2_an_update_may_satisfy_1_and_still_depend_on_the_cut() -> None:
    shown_again = StreamFunction(
        frozenset, lambda p, a: frozenset(p) | frozenset(a), source=LIST, target=SET, name="again"
    )
    assert shown_again.delta([1], []) == {1}
    with pytest.raises(LawBroken) as caught:
        check(shown_again)
    assert caught.value.law.name == "UPDATE_EMPTY"


# ---- H3: decomposition, soundness, completeness ----


@pytest.mark.parametrize("function", [totals, totals * totals], ids=repr)
def test_003_H3_every_stream_function_has_a_processor(function: StreamFunction) -> None:
    made = processor_of(function)
    check(made)
    check(function_of(made))


@given(LISTS)
def test_003_H3_the_processor_computes_the_function(xs: list[int]) -> None:
    assert processor_of(totals)(xs) == totals(xs) == prefix_sum()(xs)


def test_003_H3_every_processor_has_a_stream_function() -> None:
    for one in (prefix_sum(), greeting, pairs(SET, SET), prefix_sum() * delayed):
        check(function_of(one))


def test_003_H3_two_decompositions_are_equivalent_though_not_equal() -> None:
    equivalent(processor_of(totals), prefix_sum())


# ---- H4: pure, sequence, functor laws ----


def test_003_H4_pure_of_the_identity_is_neutral() -> None:
    equivalent(identity(LIST) >> prefix_sum(), prefix_sum())
    equivalent(prefix_sum() >> identity(LIST), prefix_sum())


@given(LISTS)
def test_003_H4_the_meaning_of_a_sequence_is_the_sequence_of_meanings(xs: list[int]) -> None:
    assert (prefix_sum() >> delayed)(xs) == delayed(prefix_sum()(xs))
    assert (greeting >> map_each(str))(xs) == map_each(str)(greeting(xs))


def test_003_H4_sequences_are_associative() -> None:
    a, b, c = greeting, map_each(str), elementwise(lambda n, s: (n + 1, [(n, s)]), state=0)
    equivalent((a >> b) >> c, a >> (b >> c))


def test_003_H4_an_initial_output_goes_through_what_follows() -> None:
    numbered = elementwise(lambda n, s: (n + 1, [f"{n}:{s}"]), state=0)
    assert list((greeting >> numbered).run([["a"]])) == [["0:hello"], ["1:a"]]


def test_003_H4_every_stage_says_its_own_first_output() -> None:
    again = processor(
        lambda n, xs: (n, [f"<{x}>" for x in xs]), source=LIST, target=LIST, output=["begin"]
    )
    assert list((greeting >> again).run([["a"]])) == [["begin", "<hello>"], ["<a>"]]


def test_003_H4_stateless_processors_are_homomorphisms() -> None:
    check(Homomorphism(pure(size), LIST, ADD))


def test_003_H4_different_processors_are_told_apart_with_the_input() -> None:
    with pytest.raises(LawBroken) as caught:
        equivalent(prefix_sum(), map_each(abs))
    assert caught.value.law.name == "EQUIVALENT"
    assert len(repr(caught.value.case["pieces"])) <= len("[[0, -1]]")


def test_003_H4_only_like_can_be_compared_or_composed() -> None:
    with pytest.raises(CompositionError, match="writes LIST"):
        prefix_sum() >> merge(SET)
    with pytest.raises(CompositionError, match="same monoids"):
        equivalent(prefix_sum(), pure(size))


# ---- H5: fusion, evaluation, exchange ----


def test_003_H5_fusion_3_36_and_3_37() -> None:
    program = map_each(abs) >> filter_each(bool) >> delayed >> map_each(str) >> map_each(letters)
    fused = fuse(program)
    assert repr(fused) == (
        "fuse(map_each(abs) >> filter_each(bool) >> delayed) >> "
        "fuse(map_each(str) >> map_each(letters))"
    )
    equivalent(program, fused)
    assert fuse(prefix_sum()) == prefix_sum()


@pytest.mark.parametrize("one", [prefix_sum(), greeting, delayed, pairs(SET, SET)], ids=repr)
def test_003_H5_decomposition_3_39(one: Processor) -> None:
    equivalent(one, decompose(one))


def test_003_H5_evaluate_reads_hypotheticals() -> None:
    inputs = LISTS.map(prefix_sum().at)
    check(evaluate(prefix_sum()), elements=inputs, laws=laws_of(prefix_sum())[3:])
    check(hypotheticals(delayed), equal=state_monoid(LIST, states=range(3)).equal)


HOMOMORPHISMS = [size, Homomorphism(frozenset, LIST, SET, name="elements")]


@pytest.mark.parametrize("g", HOMOMORPHISMS, ids=repr)
def test_003_H5_on_output_is_a_homomorphism_3_41(g: Homomorphism) -> None:
    states = range(3)
    pushed = Homomorphism(on_output(g), state_monoid(LIST, states), state_monoid(g.target, states))
    check(pushed)


def test_003_H5_on_output_of_what_is_none_is_none() -> None:
    last = Homomorphism(lambda xs: xs[-1:] and [xs[-1], 0], LIST, LIST, name="last")
    states = range(3)
    with pytest.raises(LawBroken):
        check(Homomorphism(on_output(last), *[state_monoid(LIST, states)] * 2))


@pytest.mark.parametrize("one", [prefix_sum(), delayed, greeting], ids=repr)
@pytest.mark.parametrize("g", HOMOMORPHISMS, ids=repr)
def test_003_H5_exchange_3_42(one: Processor, g: Homomorphism) -> None:
    inputs = LISTS.map(one.at)
    equivalent(evaluate(one) >> pure(g), exchange(one, g), elements=inputs)


def test_003_H5_all_steps_of_pairs_then_filter_to_join() -> None:
    same = lambda a, b: a == b
    keep = Homomorphism(lambda s: frozenset(ab for ab in s if same(*ab)), SET, SET, name="keep")
    both = pairs(SET, SET)
    first = both >> pure(keep)
    second = hypotheticals(both) >> evaluate(both) >> pure(keep)
    third = hypotheticals(both) >> exchange(both, keep)
    fourth = fuse(third)
    for step in (second, third, fourth, join(same, SET, SET)):
        equivalent(first, step)


# ---- H6: integral and derivative ----

QUATERNION_UNITS = ["1", "i", "j", "k"]
_TABLE = {("i", "j"): (1, "k"), ("j", "k"): (1, "i"), ("k", "i"): (1, "j")}


def quaternion(a: tuple[int, str], b: tuple[int, str]) -> tuple[int, str]:
    """The product of signed quaternion units: a group of eight that is not commutative."""
    (s, x), (t, y) = a, b
    if "1" in (x, y):
        return s * t, x if y == "1" else y
    if x == y:
        return -s * t, "1"
    sign, unit = _TABLE.get((x, y)) or (-1, _TABLE[y, x][1])
    return s * t * sign, unit


QUATERNIONS = Monoid(
    (1, "1"), quaternion, name="QUATERNIONS",
    negate=lambda a: a if a[1] == "1" else (-a[0], a[1]),
    elements=[(s, u) for s in (1, -1) for u in QUATERNION_UNITS],
)  # fmt: skip


@pytest.mark.parametrize(
    "group", [ADD, ZSETS, dict_of(ADD), product(ADD, ZSETS), QUATERNIONS], ids=repr
)
def test_003_H6_integral_and_derivative_are_inverse(group: Monoid) -> None:
    check(group)
    inputs = st.lists(elements_of(group), max_size=4)
    for both in (integral(group) >> derivative(group), derivative(group) >> integral(group)):
        equivalent(both, identity(LIST), elements=inputs)


def test_003_H6_the_group_of_quaternions_is_not_commutative() -> None:
    assert quaternion((1, "i"), (1, "j")) != quaternion((1, "j"), (1, "i"))


def test_003_H6_a_derivative_needs_something_to_take_away() -> None:
    with pytest.raises(AlgebraError, match="only be compared in a group"):
        derivative(SET)


# ---- H7: side by side, splitters, MapReduce ----


@given(LISTS, LISTS)
def test_003_H7_the_meaning_of_a_product_is_the_product_of_meanings(a: list, b: list) -> None:
    assert (prefix_sum() * delayed)((a, b)) == (prefix_sum()(a), delayed(b))
    assert (prefix_sum() & delayed)(a) == (prefix_sum()(a), delayed(a))


def test_003_H7_products_of_stream_functions_are_stream_functions() -> None:
    check(totals * by_idempotence(frozenset, source=LIST, target=SET))


def test_003_H7_merge_is_a_homomorphism_and_needs_a_commutative_monoid() -> None:
    check(merge(SET))
    check(merge(ZSETS, ways=3))
    with pytest.raises(AlgebraError, match="not commutative"):
        merge(LIST)


@pytest.mark.parametrize("ways", [1, 2, 5])
@pytest.mark.parametrize("source", [SET, ZSETS, BAGS], ids=repr)
def test_003_H7_a_splitter_loses_nothing(source: Monoid, ways: int) -> None:
    split = split_by(lambda n: n, source, ways=ways)
    check(split)
    equivalent(split >> merge(source, ways), identity(source))


def squares(z: ZSet) -> ZSet:
    return z.map(lambda n: n * n)


def test_003_H7_map_reduce_3_56() -> None:
    work = pure(squares, ZSETS, ZSETS)
    split = split_by(lambda n: n, ZSETS)
    equivalent(work, split >> (work * work) >> merge(ZSETS))


def test_003_H7_a_splitter_must_write_what_it_reads() -> None:
    with pytest.raises(CompositionError, match="reads LIST"):
        Splitter(pure(size))


# ---- H8: pairs, joins, partitions ----


@given(zsets(), zsets())
def test_003_H8_pairs_compute_the_tensor_product(m: ZSet, n: ZSet) -> None:
    assert pairs(ZSETS, ZSETS)((m, n)) == m.product(n)


def test_003_H8_pairs_is_a_stream_function_and_no_homomorphism() -> None:
    check(function_of(pairs(SET, SET)))
    with pytest.raises(LawBroken):
        check(Homomorphism(pairs(SET, SET), TWO_SETS, SET))


def test_003_H8_the_tensor_is_of_the_kind_its_sides_ask_for() -> None:
    assert tensor(BAGS, BAGS).monoid is BAGS
    assert tensor(BAGS, SET).monoid is SET
    assert tensor(ADD, BAGS).monoid is ZSETS
    assert product(ZSETS, SET).basis is None, "one counts with sign, the other does not"


@given(zsets(), zsets())
def test_003_H8_each_side_of_a_join_is_split_by_its_own_key(m: ZSet, n: ZSet) -> None:
    near = join(lambda a, b: a % 3 == b // 2, ZSETS, ZSETS)
    split = split_join((lambda a: a % 3, lambda b: b // 2), near.source, ways=3)
    assert partition(near, split)((m, n)) == near((m, n))


MOD3 = lambda n: n % 3
same_mod_3 = join(lambda a, b: a % 3 == b % 3, ZSETS, ZSETS)


@given(zsets(), zsets())
def test_003_H8_join_is_pairs_filtered(m: ZSet, n: ZSet) -> None:
    assert same_mod_3((m, n)) == m.join(n, MOD3)


@pytest.mark.parametrize("ways", [2, 4])
def test_003_H8_a_join_may_be_partitioned_by_its_key_3_63(ways: int) -> None:
    split = split_join((MOD3, MOD3), same_mod_3.source, ways=ways)
    independent(same_mod_3, split)
    equivalent(same_mod_3, partition(same_mod_3, split))


def test_003_H8_a_join_may_not_be_partitioned_otherwise_3_62() -> None:
    split = split_by(lambda side_and_row: side_and_row[1] // 3, same_mod_3.source)
    check(split)
    with pytest.raises(LawBroken, match="not independent"):
        independent(same_mod_3, split)
    with pytest.raises(LawBroken, match="different things"):
        equivalent(same_mod_3, partition(same_mod_3, split))


# ---- H12: representations ----


def test_003_H12_tables_and_codes_stand_for_what_inputs_do() -> None:
    alphabet = [(0, 0), (0, 1), (1, 0), (1, 1)]
    check(tabulate(full_adder(), [0, 1]), elements=BITS)
    check(defunctionalise(full_adder(), alphabet), elements=BITS)
    merged = defunctionalise(full_adder(), alphabet, states=[0, 1])
    assert len(set(merged.codes.values())) == 3, "the paper's x, y and z"
    check(merged, elements=BITS)


def test_003_H12_the_example_of_section_4_2() -> None:
    adder = tabulate(full_adder(), [0, 1])
    assert adder.encode([(0, 1), (0, 0), (1, 1)]) == ((1, [1, 0, 0]), (1, [0, 1, 0]))


def test_003_H12_a_stateless_table_is_the_output() -> None:
    assert tabulate(map_each(abs), [None]).encode([-1, 2]) == ((None, [1, 2]),)


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_003_H12_the_full_adder_adds(a: int, b: int) -> None:
    bits = [(a >> i & 1, b >> i & 1) for i in range(42)]
    assert sum(bit << i for i, bit in enumerate(full_adder()(bits))) == a + b


# ---- H13: progress, and determinism under batching ----


@pytest.mark.parametrize("one", PROCESSORS[:6], ids=repr)
@given(data=st.data())
@settings(max_examples=30)
def test_003_H13_the_output_does_not_depend_on_the_batches(one: Processor, data: Any) -> None:
    element = st.text("ab", max_size=2) if one == integral(STR) else SMALL
    xs = data.draw(st.lists(element, max_size=12))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(xs)), max_size=5)))
    pieces = [xs[i:j] for i, j in zip([0, *cuts], [*cuts, len(xs)], strict=True)]
    assert one.target.fold(one.run(pieces)) == one(xs)


def test_003_H13_ticked_difference_makes_progress() -> None:
    check(TickedDifference(), laws=[PROGRESS])


def test_003_H13_what_holds_ticks_back_is_refused() -> None:
    time = ticked(LIST)
    swallow = processor(
        lambda n, word: (n, tuple(x for x in word if x != time.tick[0])), source=time, target=time
    )
    with pytest.raises(LawBroken, match="holds back"):
        check(swallow, laws=[PROGRESS])


def test_003_H13_prefix_sums_make_progress_and_a_sum_at_the_end_does_not() -> None:
    source = terminated(LIST)

    def so_far(state: Any, piece: Any) -> Any:
        total, closed = state
        if closed:
            return state, ([], False)
        totals = list(accumulate(piece[0], initial=total))
        return (totals[-1], piece[1]), (totals[1:], piece[1])

    def at_end(state: Any, piece: Any) -> Any:
        total, closed = state
        if closed:
            return state, ([], False)
        total += sum(piece[0])
        return (total, piece[1]), ([total], True) if piece[1] else ([], False)

    eager = processor(so_far, state=(0, False), source=source, target=source, name="eager")
    waiting = processor(at_end, state=(0, False), source=source, target=source, name="waiting")
    check(eager)
    check(waiting)
    check(eager, laws=[PROGRESS_AT_END])
    with pytest.raises(LawBroken, match="waits for the end"):
        check(waiting, laws=[PROGRESS_AT_END])
