"""The theorems of stream processors about ticks, strata and feedback."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow import ZSet, laws
from ebbflow.algebra import (
    ADD,
    LIST,
    SET,
    Homomorphism,
    product,
)
from ebbflow.errors import CompositionError, LawBroken
from ebbflow.laws import UPDATE_ADDS
from ebbflow.stream import (
    Consequences,
    StratifiedDifference,
    TickedDifference,
    by_cancelling,
    by_idempotence,
    datalog,
    loop,
    map_each,
    prefix_sum,
    processor,
    pure,
    settle,
    tighten,
)
from ebbflow.zset import ZSETS

check = partial(laws.check, examples=30)
equivalent = partial(laws.equivalent, examples=30)
independent = partial(laws.independent, examples=60)

SMALL = st.integers(-5, 5)
FACTS = st.frozensets(st.integers(0, 3), max_size=3)
EDGES = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=5)
TWO_SETS = product(SET, SET)
TWO_LISTS = product(LIST, LIST)


def both_ways(pair: tuple[list, list]) -> tuple[list, list]:
    return pair[0] + pair[1], pair[0] + pair[1]


# ---- H9: ticks and strata ----

difference = lambda both: both[0] - both[1]
STRATA = st.lists(st.tuples(FACTS, FACTS), max_size=4)


def test_003_H9_plain_set_difference_is_refused_3_65() -> None:
    plain = by_idempotence(difference, source=TWO_SETS, target=SET, name="set difference")
    with pytest.raises(LawBroken) as caught:
        check(plain, examples=50)
    case = caught.value.case
    assert caught.value.law is UPDATE_ADDS
    assert case["p"][0] & case["a"][1], "the counter-example takes away what was already given"


def test_003_H9_as_a_change_of_a_z_set_it_is_fine() -> None:
    minus = by_cancelling(
        lambda both: ZSet.of(both[0] - both[1]), source=TWO_SETS, target=ZSETS, name="minus"
    )
    check(minus)


def by_strata(strata: list) -> list[frozenset]:
    before = [frozenset(), *(minus for _, minus in strata)]
    return [plus - minus for (plus, _), minus in zip(strata, before, strict=False)]


@given(STRATA)
def test_003_H9_difference_of_complete_strata_3_68(strata: list) -> None:
    assert StratifiedDifference()(strata) == by_strata(strata)


def test_003_H9_difference_of_complete_strata_is_a_processor() -> None:
    check(StratifiedDifference(), elements=STRATA)


@given(STRATA)
def test_003_H9_difference_of_ticked_strata_3_67(strata: list) -> None:
    source, target = TickedDifference.source, TickedDifference.target
    word = source.of(*strata)
    assert TickedDifference()(word) == target.of(*by_strata(source.strata(word)))


def test_003_H9_ticked_difference_says_what_it_can_within_a_stratum() -> None:
    a, none = frozenset("a"), frozenset()
    live = TickedDifference().open()
    time = TickedDifference.source
    assert live.send(time.of((a, none))) == TickedDifference.target.of(a)
    assert live.send(time.of((none, a))) == ()


def test_003_H9_counting_ticks_as_strata_is_refused() -> None:
    """Two ticks in a row are one, so an empty stratum may not shift what is taken away."""

    def naive(state: Any, word: Any) -> Any:
        before, now = state
        strata = [frozenset()]
        for letter in word:
            if letter == TickedDifference.source.tick[0]:
                before, now = now, frozenset()
                strata.append(frozenset())
            else:
                now |= letter.value[1]
                strata[-1] = letter.value[0] - before
        return (before, now), TickedDifference.target.of(*strata)

    wrong = processor(
        naive, state=(frozenset(), frozenset()), name="naive",
        source=TickedDifference.source, target=TickedDifference.target,
    )  # fmt: skip
    with pytest.raises(LawBroken):
        check(wrong, examples=300)


# ---- H10: feedback ----


def next_ones(given: frozenset, derived: frozenset) -> frozenset:
    return given | {(a, c) for a, b in derived for b2, c in given if b == b2}


def closure(edges: frozenset) -> frozenset:
    found = edges
    while True:
        more = found | {(a, c) for a, b in found for b2, c in edges if b == b2}
        if more == found:
            return found
        found = more


@given(st.lists(EDGES, max_size=4))
@settings(max_examples=60)
def test_003_H10_monotone_datalog_reaches_the_fixed_point(batches: list) -> None:
    live, reached = datalog(next_ones).open(), frozenset()
    for i, batch in enumerate(batches, 1):
        new = settle(live, batch)
        assert not new & reached, "every fact is derived once"
        reached |= new
        assert reached == closure(frozenset().union(*batches[:i]))


def test_003_H10_a_loop_is_a_processor_of_rounds() -> None:
    check(datalog(next_ones), elements=st.lists(EDGES, max_size=3))


def test_003_H10_one_round_is_a_processor() -> None:
    check(Consequences(next_ones), elements=st.tuples(EDGES, EDGES))


@given(st.lists(SMALL, max_size=6))
def test_003_H10_a_loop_equals_its_definition_3_69(rounds: list[int]) -> None:
    body = pure(lambda p: (p[0] + 2 * p[1], p[0] - p[1]), product(ADD, ADD), product(ADD, ADD))
    back, outputs = 0, [0]
    for m in rounds:
        output, back = m + 2 * back, m - back
        outputs.append(output)
    assert loop(body)(rounds) == outputs


def test_003_H10_what_a_body_says_first_goes_out_and_back_3_71() -> None:
    body = processor(
        lambda n, pair: (n + 1, (pair[0] + pair[1], pair[1])), state=0,
        source=TWO_LISTS, target=TWO_LISTS, output=(["out"], ["back"]),
    )  # fmt: skip
    assert loop(body)([["a"], []]) == [["out"], ["a", "back"], ["back"]]


def test_003_H10_axioms_are_derived_from_nothing() -> None:
    def rules(given: frozenset, derived: frozenset) -> frozenset:
        return frozenset({"axiom"}) | ({"lemma"} if "axiom" in derived else frozenset())

    live = datalog(rules).open()
    assert live.output == [{"axiom"}]
    assert settle(live, frozenset()) == {"lemma"}


minus_one = Homomorphism(lambda n: -n, ADD, ADD, name="minus")
echo = loop(pure(lambda p: (p[0] + p[1], p[0]), product(ADD, ADD), product(ADD, ADD), name="echo"))


def test_003_H10_tightening_3_73_and_3_74() -> None:
    left, right = map_each(minus_one) >> echo, echo >> map_each(minus_one)
    both = map_each(minus_one) >> echo >> map_each(minus_one) >> map_each(minus_one)
    for program in (left, right, both):
        equivalent(program, tighten(program))
    assert repr(tighten(left)) == "loop(pure(on_first(minus, ADD)) >> pure(echo))"
    assert repr(tighten(right)) == "loop(pure(echo) >> pure(on_first(minus, ADD)))"


def test_003_H10_what_is_no_homomorphism_is_not_moved_into_a_loop() -> None:
    program = map_each(abs) >> echo
    assert repr(tighten(program)) == repr(program)


def test_003_H10_a_loop_that_never_settles_says_so() -> None:
    with pytest.raises(CompositionError, match="did not settle within 20 rounds"):
        settle(loop(pure(both_ways, TWO_LISTS, TWO_LISTS)).open(), [1], limit=20)


def test_003_H10_a_body_must_read_and_write_pairs() -> None:
    with pytest.raises(CompositionError, match="must read pairs"):
        loop(prefix_sum())
    with pytest.raises(CompositionError, match="what goes back"):
        loop(pure(lambda p: (p[0], len(p[1])), TWO_LISTS, product(LIST, ADD)))
