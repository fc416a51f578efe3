"""The theorems of reducers, on the library, on combinations, and on random reducers right and
wrong."""

from __future__ import annotations

import math
import operator
import statistics
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ebbflow import reducer as r
from ebbflow.laws import (
    FOLD_ANY_ORDER,
    INCREMENTAL,
    REMOVE_ADD_COMMUTE,
    check,
    judge,
)
from ebbflow.reducer import RECOMPUTE, Reducer
from ebbflow.zset import BAGS, ZSETS, ZSet

few = settings(max_examples=60)
first_of, second_of = operator.itemgetter(0), operator.itemgetter(1)
PAIRS = [(a, b) for a in (1, 2, None, 0.5) for b in (0, 1, 3, "x")]
NUMBER_PAIRS = [(a, b) for a in (1, 2, None, 0.1) for b in (0, 1, 1e16)]

# ---- the library keeps its promises ----

LIBRARY: list[tuple[Reducer, str, str, Any]] = [
    (r.count(), "invertible", "distributive", None),
    (r.count(lambda x: x), "invertible", "distributive", (None, 1, 2)),
    (r.sum(), "invertible", "distributive", None),
    (r.mean(), "invertible", "algebraic", None),
    (r.min(), "invertible", "distributive", None),
    (r.max(), "invertible", "distributive", (1, 2.0, math.nan, float("nan"), math.inf, None)),
    (r.product(), "invertible", "distributive", None),
    (r.variance(), "invertible", "algebraic", None),
    (r.stddev(), "invertible", "algebraic", None),
    (r.covariance(first_of, second_of), "invertible", "algebraic", NUMBER_PAIRS),
    (r.weighted_mean(first_of, second_of), "invertible", "algebraic", NUMBER_PAIRS),
    (r.count_distinct(), "invertible", "holistic", None),
    (r.histogram(), "invertible", "holistic", ("a", "b", None, 1, 1.0)),
    (r.mode(), "invertible", "holistic", ("a", 1, None, math.nan, (1, None))),
    (r.collect(), "invertible", "holistic", ("a", 1, None, math.nan, (1, None), (1, 0))),
    (r.set_of(), "invertible", "holistic", None),
    (r.string_agg(), "invertible", "holistic", None),
    (r.first(second_of, order=first_of), "invertible", "distributive", PAIRS),
    (r.last(second_of, order=first_of), "invertible", "distributive", PAIRS),
    (r.arg_min(first_of), "invertible", "distributive", PAIRS),
    (r.arg_max(first_of, second_of), "invertible", "distributive", PAIRS),
    (r.top_k(2), "invertible", "algebraic", None),
    (r.median(), "invertible", "holistic", None),
    (r.quantile(0.3), "invertible", "holistic", None),
    (r.rank(2), "invertible", "holistic", None),
    (r.bool_and(), "invertible", "algebraic", None),
    (r.bool_or(), "invertible", "algebraic", None),
    (r.bit_xor(), "invertible", "distributive", None),
    (r.approx_count_distinct(exact=2, bits=4), "partial", "holistic", range(9)),
    (r.approx_count_distinct(), "partial", "holistic", None),
    (r.approx_quantile(0.5, error=0.1), "invertible", "holistic", None),
    (r.naive_sum(), "refuted", "", None),
    (r.naive_sum(), "invertible", "distributive", range(4)),
]
SHOWN = [f"{reducer!r}-{verdict}" for reducer, verdict, *_ in LIBRARY]


@pytest.mark.parametrize(("reducer", "verdict", "aggregate", "elements"), LIBRARY, ids=SHOWN)
def test_000_R5_every_reducer_of_the_library_has_its_class_and_verdict(
    reducer: Reducer, verdict: str, aggregate: str, elements: Any
) -> None:
    judged = judge(reducer, elements=elements, examples=200)
    assert judged.verdict == verdict, judged
    assert judged.aggregate == aggregate


def test_nobody_is_advised_to_promise_what_a_sketch_cannot_keep() -> None:
    for reducer in (r.approx_count_distinct(), r.sum() & r.approx_count_distinct()):
        judged = judge(reducer, examples=50)
        assert not [note for note in judged.notes if "partial=False" in note]
    assert "values> leaves" in judge(r.approx_count_distinct(), examples=50).why


FORGETFUL = Reducer(math.inf, min, lambda low, x: RECOMPUTE if x == low else low, name="low")
COMBINED = [
    (r.count() & r.max() & FORGETFUL, "partial", range(4)),
    (r.sum().where(lambda x: x > 1), "invertible", range(4)),
    (r.sum().by(lambda x: x % 2), "invertible", range(5)),
    (FORGETFUL.by(lambda x: x % 2), "partial", range(5)),
    (Reducer(0, max).by(lambda x: x % 2), "partial", range(5)),
    (Reducer(0, max, merge=max) & r.sum(), "tree", range(4)),
    (Reducer(0, max) & r.sum(), "refold", range(4)),
    (r.mean(second_of).then(str).by(first_of), "invertible", [("a", 0.1), ("a", 0.2), ("b", 1)]),
    (r.sum().on(len), "invertible", ["", "a", "bc"]),
]


@pytest.mark.parametrize(("reducer", "verdict", "elements"), COMBINED, ids=lambda x: str(x)[:40])
def test_000_R12_what_is_made_of_well_formed_reducers_is_well_formed(
    reducer: Reducer, verdict: str, elements: Any
) -> None:
    assert check(reducer, elements=elements, examples=200).verdict == verdict


@pytest.mark.parametrize(
    "reducer", [r.sum(), FORGETFUL, Reducer(0, max, merge=max, name="tree"), r.mode()], ids=str
)
def test_reducers_are_lawful_operators_and_processors(reducer: Reducer) -> None:
    parity = reducer.operator(lambda x: x % 2)
    for thing in (parity, reducer.operator(), reducer.processor(lambda x: x % 2)):
        check(thing, examples=6)
    check(reducer.processor(source=BAGS), examples=5)
    assert reducer.processor().source is ZSETS


# ---- random reducers over finite sets, where everything can be decided ----


class Table(NamedTuple):
    """A reducer given by its tables: accumulators 0..n-1, values 0 and 1."""

    size: int
    start: int
    adds: tuple[tuple[int, int], ...]
    removes: tuple[tuple[int, int], ...]

    def reducer(self) -> Reducer:
        return Reducer(
            self.start, lambda a, v: self.adds[a][v], lambda a, v: self.removes[a][v],
            name="table", elements=(0, 1),
        )  # fmt: skip

    def reachable(self) -> set[int]:
        found, new = set(), {self.start}
        while new:
            found |= new
            new = {self.adds[a][v] for a in new for v in (0, 1)} - found
        return found

    def commutes(self) -> bool:
        add = self.adds
        return all(add[add[a][0]][1] == add[add[a][1]][0] for a in self.reachable())

    def well_formed(self) -> bool:
        return all(self.removes[self.adds[a][v]][v] == a for a in self.reachable() for v in (0, 1))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Anything at all: mostly wrong."""
    size = draw(st.integers(1, 4))
    column = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    rows = st.tuples(*[column] * size)
    return Table(size, draw(st.integers(0, size - 1)), draw(rows), draw(rows))


@st.composite
def nearly_right(draw: st.DrawFn) -> Table:
    """Two powers of one permutation, undone by their inverses, perhaps with one mistake."""
    size = draw(st.integers(1, 5))
    turn = draw(st.permutations(range(size)))
    powers = [list(range(size))]
    for _ in range(5):
        powers.append([turn[a] for a in powers[-1]])
    one, two = draw(st.sampled_from(powers)), draw(st.sampled_from(powers))
    back = [[one.index(a), two.index(a)] for a in range(size)]
    if draw(st.booleans()):
        at, value, wrong = draw(st.tuples(*[st.integers(0, size - 1)] * 3))
        back[at][value % 2] = wrong
    adds = tuple((one[a], two[a]) for a in range(size))
    return Table(size, draw(st.integers(0, size - 1)), adds, tuple(map(tuple, back)))


def collections(size: int) -> Iterator[tuple[int, ...]]:
    """All collections of up to `size` values."""
    for n in range(size + 1):
        yield from combinations_with_replacement((0, 1), n)


def changes(rows: tuple[int, ...]) -> Iterator[ZSet]:
    """All valid changes that take some rows away and add up to one of each."""
    there = Counter(rows)
    for out0, out1, in0, in1 in product(range(there[0] + 1), range(there[1] + 1), (0, 1), (0, 1)):
        yield ZSet([(0, in0 - out0), (1, in1 - out1)])


@few
@given(tables() | nearly_right())
def test_000_R2_theorem_1_add_commutes_exactly_when_no_order_matters(table: Table) -> None:
    reducer = table.reducer()
    any_order = all(
        FOLD_ANY_ORDER.holds(reducer, rows=rows, order=order)
        for rows in collections(table.size + 1)
        for order in set(permutations(rows))
    )
    assert any_order == table.commutes()


@few
@given(tables().filter(Table.commutes) | nearly_right())
def test_000_R8_theorem_2_well_formed_exactly_when_incrementally_correct(table: Table) -> None:
    reducer = table.reducer()
    correct = all(
        INCREMENTAL.holds(reducer, rows=rows, updates=(delta,))
        for rows in collections(table.size)
        for delta in changes(rows)
    )
    assert correct == table.well_formed()


@few
@given(nearly_right(), st.lists(st.sampled_from((0, 1)), max_size=8), st.data())
def test_000_R8_lemma_2_removals_of_a_well_formed_reducer_cancel(
    table: Table, rows: list[int], data: st.DataObject
) -> None:
    assume(table.well_formed())
    reducer = table.reducer()
    kept = [row for row in rows if data.draw(st.booleans())]
    gone = ZSet.of(rows) - ZSet.of(kept)
    assert reducer.update(reducer.fold(rows), -gone) == reducer.fold(kept)


def random_tables(count: int, *, right: bool) -> list[Table]:
    """Random tables whose well-formedness is known, drawn without Hypothesis."""
    dice, found = Random(4), []
    while len(found) < count:
        size = dice.randint(2, 4)
        turn = dice.sample(range(size), size)
        two = [turn[a] for a in turn]
        back = [[turn.index(a), two.index(a)] for a in range(size)]
        if not right:
            back[dice.randrange(size)][dice.randrange(2)] = dice.randrange(size)
        adds = tuple((turn[a], two[a]) for a in range(size))
        table = Table(size, dice.randrange(size), adds, tuple(map(tuple, back)))
        if table.well_formed() == right:
            found.append(table)
    return found


@pytest.mark.parametrize("table", random_tables(6, right=False), ids=lambda t: f"size {t.size}")
def test_000_R8_ill_formed_reducers_are_refuted_by_the_inverse_and_by_an_update(
    table: Table,
) -> None:
    judged = judge(table.reducer(), examples=60)
    assert judged.verdict == "refuted"
    assert judged.broken.law.name == "REMOVE_INVERTS"
    rows, value = judged.broken.case["rows"], judged.broken.case["value"]
    delta = ZSet({value: -1})
    assert not INCREMENTAL.holds(table.reducer(), rows=(*rows, value), updates=(delta,))


@pytest.mark.parametrize("table", random_tables(4, right=True), ids=lambda t: f"size {t.size}")
def test_000_R8_well_formed_reducers_pass(table: Table) -> None:
    assert judge(table.reducer(), examples=30).verdict == "invertible"


def test_000_R3_what_happens_at_unreachable_accumulators_does_not_matter() -> None:
    """Even numbers only; `remove` is nonsense at odd ones, which no rows lead to."""
    even = Reducer(
        0, lambda a, x: a + 2 * x, lambda a, x: a - 2 * x if a % 2 == 0 else 99, elements=range(4)
    )
    assert check(even, examples=40).verdict == "invertible"
    assert even.remove(even.add(1, 1), 1) == 99


def test_000_R4_removing_and_adding_commute_is_reported_and_not_required() -> None:
    notes = check(r.sum(), elements=range(4), examples=20).notes
    assert "removing and adding commute (not required)" in notes
    stamped = Reducer(
        (0, 0),
        lambda a, x: (a[0] + x, 0),
        lambda a, x: (a[0] - x, 0),
        name="stamped", elements=range(3),
    )  # fmt: skip
    assert check(stamped, examples=20).verdict == "invertible"
    asymmetric = Reducer(frozenset(), lambda a, x: a | {x}, lambda a, x: a - {x}, elements=(1, 2))
    assert REMOVE_ADD_COMMUTE.holds(asymmetric, rows=(), x=1, y=2)
    assert not REMOVE_ADD_COMMUTE.holds(asymmetric, rows=(), x=1, y=1)


# ---- exact sums ----


def churn(steps: int, seed: int, look: int) -> None:
    """Random adds and removes of floats of all sizes; now and then compare with the exact sum."""
    dice, total, mean = Random(seed), r.sum(), r.mean()
    acc, rows = total.start(), []
    for step in range(steps):
        if rows and dice.random() < 0.5:
            at = dice.randrange(len(rows))
            rows[at], rows[-1] = rows[-1], rows[at]
            acc = total.remove(acc, rows.pop())
        else:
            rows.append(math.ldexp(dice.uniform(-1, 1), dice.randrange(-300, 300)))
            acc = total.add(acc, rows[-1])
        if step % look == 0:
            assert total.finish(acc) == (math.fsum(rows) if rows else None)
    assert total.finish(acc) == math.fsum(rows)
    assert mean.finish(acc) == pytest.approx(math.fsum(rows) / len(rows), rel=1e-15)
    for row in rows:
        acc = total.remove(acc, row)
    assert acc == total.start()


def test_float_sums_survive_ten_thousand_changes_exactly() -> None:
    churn(10_000, seed=1, look=100)


@pytest.mark.slow
def test_float_sums_survive_a_million_changes_exactly() -> None:
    churn(1_000_000, seed=2, look=10_000)


floats = st.floats(allow_nan=False, allow_infinity=False)


@few
@given(st.lists(floats, max_size=12), st.lists(floats, max_size=6))
def test_any_history_gives_the_correctly_rounded_sum_of_what_is_left(
    kept: list[float], gone: list[float]
) -> None:
    total = r.sum()
    acc = total.fold([*gone, *kept])
    for x in gone:
        acc = total.remove(acc, x)
    assert acc == total.fold(kept)
    try:
        expected = math.fsum(kept) if kept else None
    except OverflowError:
        return
    assert total.finish(acc) == expected


numbers = st.integers() | floats | st.fractions(max_denominator=50) | st.booleans()


sizes = st.floats(-1e150, 1e150) | st.integers() | st.sampled_from([1e-200, 3e-200, 10**200])


@few
@given(st.lists(sizes, min_size=2, max_size=6))
def test_a_standard_deviation_is_the_nearest_float_to_the_root(rows: list[Any]) -> None:
    exactly = statistics.pvariance(list(map(Fraction, rows)))
    for reducer, square in (
        (r.stddev(ddof=0), exactly),
        (r.stddev(), exactly * len(rows) / (len(rows) - 1)),
    ):
        found = reducer(rows)
        below = Fraction(found) + Fraction(math.nextafter(found, 0.0))
        above = Fraction(found) + Fraction(math.nextafter(found, math.inf))
        assert (below / 2) ** 2 <= square <= (above / 2) ** 2
    plain = [x for x in rows if abs(x) < 1e100]
    if len(plain) > 1:
        assert r.stddev()(plain) == statistics.stdev(plain)
        assert r.stddev(ddof=0)(plain) == statistics.pstdev(plain)


@few
@given(st.lists(numbers, max_size=6), st.lists(numbers, max_size=6), st.randoms())
def test_every_mixture_of_numbers_forgets_and_merges(
    kept: list[Any], gone: list[Any], dice: Random
) -> None:
    for reducer in (r.sum(), r.variance(), r.product()):
        rows = [*kept, *gone]
        dice.shuffle(rows)
        acc = reducer.fold(rows)
        assert reducer.merge(reducer.fold(kept), reducer.fold(gone)) == acc
        for x in gone:
            acc = reducer.remove(acc, x)
        assert acc == reducer.fold(kept)
        assert type(reducer.finish(acc)) is type(reducer(kept))


@few
@given(st.lists(st.decimals(allow_nan=False, places=3), max_size=6), st.integers(0, 6))
def test_decimals_forget_completely(rows: list[Any], cut: int) -> None:
    total = r.sum()
    acc = total.fold(rows)
    for x in rows[cut:]:
        acc = total.remove(acc, x)
    assert acc == total.fold(rows[:cut])
