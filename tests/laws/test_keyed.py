"""Operators that keep something for each key, and the chains before and after them: the axioms, and
long runs over odd rows."""

from __future__ import annotations

import operator
from random import Random
from typing import Any, NamedTuple

import cloudpickle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.keyed_operators import (
    EVERY,
    AnyOperator,
    around,
    both,
    fifth,
    flipped,
    half,
    itself,
    low,
    lowest,
    mixed,
    odd,
    random_change,
    sorted_in,
    sorted_together,
    spanned,
    third,
    unless_lowest,
)

from ebbflow.chain import Chain, RowStep
from ebbflow.errors import ChangeError, NotDeterministic
from ebbflow.fn import Fn
from ebbflow.laws import check
from ebbflow.nan import NAN
from ebbflow.operator import (
    count,
    distinct,
    per_key,
    semi,
    sessions,
    top_rows,
)
from ebbflow.operator.joins import Join
from ebbflow.operator.relation import RowChain
from ebbflow.reducer import Reducer, mean
from ebbflow.reducer import count as how_many
from ebbflow.reducer import max as greatest
from ebbflow.reducer import min as least
from ebbflow.reducer import sum as total
from ebbflow.reducer.combine import together
from ebbflow.reducer.running import ReduceByKey
from ebbflow.reducer.shape import PAIR, ResultShape
from ebbflow.zset import ZSet, trusted

# ---- the axioms ----


@pytest.mark.parametrize("name", EVERY)
def test_every_operator_of_keys_fulfils_every_axiom(name: str) -> None:
    check(EVERY[name](itself), examples=5)


# ---- long runs ----


def no_zeros(moved: Any) -> bool:
    return all(weight for _, weight in moved.items())


def run(of: AnyOperator, rows: list[Any], seed: int, n: int = 60, travel: bool = True) -> Any:
    """Follow random changes; half-way the operator and its state go through a pickle."""
    random = Random(seed)
    start = ZSet.of(random.choices(rows, k=20))
    x: Any = (start, ZSet.of(random.choices(rows, k=9))) if both(of) else start
    live, y = of.open(x), of.f(x)
    for step in range(n):
        change = random_change(x, rows, random)
        moved = live.send(change)
        x, y = of.input.patch(x, change), of.output.patch(y, moved)
        assert no_zeros(moved)
        assert y == of.f(x)
        if step % 15 == 14:
            assert of.invariant(x, live.state)
            assert not hasattr(of, "read") or ZSet(of.read(live.state)) == y  # type: ignore[attr-defined]
        if step == n // 2 and travel:
            shape = repr(of)
            of, state = cloudpickle.loads(cloudpickle.dumps((of, live.state)))
            assert repr(of) == shape
            live.processor, live.state = of, state
    return x


@pytest.mark.parametrize("name", EVERY)
def test_sixty_changes_in_a_row_lead_where_recomputing_does(name: str) -> None:
    run(EVERY[name](itself), list(range(40)), seed=5)


@pytest.mark.parametrize("name", EVERY)
def test_what_is_written_as_a_lambda_travels_and_follows_too(name: str) -> None:
    def anonymous(f: Any) -> Any:
        return (lambda a, b: f(a, b)) if f in TWOS else (
            (lambda a, b, c: f(a, b, c)) if f is spanned else lambda x: f(x)
        )  # fmt: skip

    run(EVERY[name](anonymous), list(range(40)), seed=6)


TWOS = [
    operator.add,
    operator.mul,
    operator.gt,
    flipped,
    low,
    unless_lowest,
    sorted_in,
    sorted_together,
]

ODD_KEYS = [None, NAN, 0, 1.5, "a", "b", (1, None), (1, "x"), frozenset({1})]
ODD_ROWS = [(key, n) for key in ODD_KEYS for n in range(4)]
ODD_VALUES = [None, NAN, 3, 2.5, "c", (NAN, 1), frozenset({2, 3}), frozenset({2, 4}), b"d"]
ODDER_ROWS = [*ODD_ROWS, *[("a", value) for value in ODD_VALUES], None, NAN, "alone"]

first, second = operator.itemgetter(0), operator.itemgetter(1)


def head(row: Any) -> Any:
    return row[0] if isinstance(row, tuple) else row


def tail(row: Any) -> Any:
    return row[1] if isinstance(row, tuple) else row


def numbers(of: Any) -> Reducer[Any, Any, Any]:
    return total(of) & how_many(of) & greatest(of) & lowest().on(of)


ON_ODD_ROWS: dict[str, tuple[AnyOperator, list[Any]]] = {
    "top": (top_rows(2, tail, head), ODDER_ROWS),
    "top of all": (top_rows(5, head, smallest=True), ODDER_ROWS),
    "sessions": (sessions(second, 1, first), ODD_ROWS),
    "per key": (per_key(distinct(), head), ODDER_ROWS),
    "counts": (per_key(count(), head), ODDER_ROWS),
    "distinct": (distinct(), ODDER_ROWS),
    "semi": (semi(head), ODDER_ROWS),
    "anti": (semi(tail, head, anti=True), ODDER_ROWS),
    "join": (Join(head, head), ODDER_ROWS),
    "join on the other": (Join(head, tail, after=Chain([RowStep("map", Fn(first))])), ODDER_ROWS),
    "reduce": (ReduceByKey(numbers(second), Fn(first)), ODD_ROWS),
    "max": (ReduceByKey(greatest(tail) & least(tail), Fn(lambda row: 0)), ODDER_ROWS),
    "inline": (ReduceByKey(how_many(tail) & how_many(), Fn(head)), ODDER_ROWS),
}  # fmt: skip


@pytest.mark.parametrize("name", ON_ODD_ROWS)
def test_rows_and_keys_of_all_kinds_are_followed(name: str) -> None:
    of, rows = ON_ODD_ROWS[name]
    for seed in (7, 8):
        run(of, Random(seed).sample(rows, 25) + [rows[-2]] * 3, seed, n=40, travel=False)


# ---- chains at random ----

VERBS = {
    "filter": [odd, third, lambda x: x > 7, lambda x: x % 4 and x],
    "map": [half, third, lambda x: x * 2 - 5, lambda x: (x, x)[0]],
    "flat_map": [around, lambda x: (), lambda x: (x, x), lambda x: range(x % 4)],
}


def some_steps(random: Random, most: int) -> Chain:
    verbs = random.choices(list(VERBS), k=random.randint(0, most))
    return Chain([RowStep(verb, Fn(random.choice(VERBS[verb]))) for verb in verbs])


@pytest.mark.parametrize("seed", range(12))
def test_steps_in_any_order_are_the_steps_one_by_one(seed: int) -> None:
    random = Random(seed)
    chain = some_steps(random, 6)
    x = run(RowChain(chain), list(range(-5, 30)), seed, n=25)
    one_by_one = x
    for step in chain.steps:
        if step.verb == "filter":
            one_by_one = one_by_one.filter(step.fn)
        elif step.verb == "map":
            one_by_one = one_by_one.map(step.fn)
        else:
            one_by_one = one_by_one.flat_map(step.fn)
    assert RowChain(chain).f(x) == one_by_one


@pytest.mark.parametrize("seed", range(8))
def test_steps_before_a_reduce_and_after_a_join_are_those_steps(seed: int) -> None:
    random = Random(seed)
    chain = some_steps(random, 4)
    rows = list(range(-5, 25))
    reducer = random.choice([total(), total() & how_many(), greatest() & total(), lowest()])
    run(ReduceByKey(reducer, Fn(third), before=chain), rows, seed, n=25)
    run(Join(third, fifth, lambda a, b: a - b, after=chain), rows, seed, n=25)


# ---- typed rows, shapes ----


class Order(NamedTuple):
    city: str | None
    day: int
    price: float | None


class Summary(NamedTuple):
    city: str | None
    day: int
    sold: float | None
    n: int
    mean: float | None


class Best(NamedTuple):
    city: str | None
    best: tuple[Any, Any]


ORDERS = [Order(city, day, price) for city in ("Rome", None, "Oslo") for day in (1, 2)
          for price in (1, 2, 0.1, 1e16, -1e16, None)]  # fmt: skip
BY_BOTH = Fn.of(("city", "day"), Order)
DOUBLE = RowStep("map", Fn.of(lambda o: Order(o.city, o.day, 2), Order))


@pytest.mark.parametrize(
    "chain",
    [Chain(), Chain([RowStep("filter", Fn.of(lambda o: o.day > 1, Order))]), Chain([DOUBLE])],
    ids=["whole", "filter", "map"],
)  # fmt: skip
def test_typed_rows_are_reduced_inline_into_typed_rows(chain: Chain) -> None:
    inline = total("price") & how_many("price") & mean(lambda o: o.price)
    of = ReduceByKey(inline, BY_BOTH, ResultShape(Summary, 2, True), Order, chain)
    assert of.loop is not None
    x = run(of, ORDERS, seed=8)
    assert {type(row) for row in of.f(x)} == {Summary}
    live = of.open(ZSet())
    assert {type(row) for row in live.send(x)} == {Summary}


def test_several_results_that_are_not_spread_are_one_field() -> None:
    both = greatest("price") & least("price")
    of = ReduceByKey(both, Fn.of("city", Order), ResultShape(Best), Order)
    assert of.loop is None
    run(of, ORDERS, seed=9)
    moved = of.open(ZSet()).send(ZSet.of([Order("Rome", 1, 5), Order("Rome", 2, 3)]))
    assert moved == ZSet({Best("Rome", (5, 3)): 1})
    assert type(next(iter(moved))) is Best


def test_the_sum_of_floats_does_not_drift_inline() -> None:
    of = ReduceByKey(total("price"), Fn.of("city", Order), PAIR, Order)
    live = of.open(ZSet.of([Order("Rome", 1, 1e16), Order("Rome", 1, 1.0)]))
    assert live.send(ZSet({Order("Rome", 1, 1e16): -1})) == ZSet(
        {("Rome", 1e16): -1, ("Rome", 1.0): 1}
    )


def test_a_sum_that_is_not_a_number_can_be_taken_back() -> None:
    of = ReduceByKey(total("price"), Fn.of("city", Order), PAIR, Order)
    live = of.open(ZSet.of([Order("Rome", 1, float("inf"))]))
    y = of.f(ZSet.of([Order("Rome", 1, float("inf"))]))
    for row in (Order("Rome", 1, float("-inf")), Order("Rome", 1, NAN)):
        y = y + live.send(ZSet({row: 1}))
    assert y == ZSet({("Rome", NAN): 1})
    y = y + live.send(ZSet({Order("Rome", 1, NAN): -1, Order("Rome", 1, float("-inf")): -1}))
    assert y == ZSet({("Rome", float("inf")): 1})


class Sizes(NamedTuple):
    city: str | None
    day: int
    value: int


def test_an_operator_per_key_of_several_parts_gives_typed_rows() -> None:
    of = per_key(count(), BY_BOTH, width=2, row_type=Sizes)
    x = run(of, ORDERS, seed=16)
    assert {type(row) for row in of.f(x)} == {Sizes}
    live = of.open(ZSet.of([Order("Rome", 1, 5)]))
    assert live.send(ZSet({Order("Rome", 1, 5): -1, Order(None, 2, 5): 2})) == ZSet(
        {Sizes("Rome", 1, 1): -1, Sizes(None, 2, 2): 1}
    )
    alone = per_key(distinct(), width=0).open(ZSet())
    assert alone.send(ZSet({"a": 2})) == ZSet({"a": 1})
    assert per_key(count(), width=0).open(ZSet()).send(ZSet({"a": 2})) == ZSet({(2,): 1})


# ---- what each computes, against plain Python ----

small_bags = st.dictionaries(st.integers(0, 14), st.integers(1, 3), max_size=6).map(ZSet)


@settings(max_examples=40)
@given(small_bags, small_bags)
def test_what_is_kept_up_to_date_is_what_lists_would_give(
    left: ZSet[int], right: ZSet[int]
) -> None:
    a, b = sorted(left.rows()), sorted(right.rows())
    keys = {third(row) for row in a}
    groups = {key: [row for row in a if third(row) == key] for key in keys}
    best = [row for rows in groups.values() for row in sorted(rows)[-2:]]
    assert top_rows(2, half, third).f(left) == ZSet.of(best)
    first = [row for rows in groups.values() for row in sorted(rows, key=lambda row: (-row,))[-1:]]
    assert top_rows(1, itself, third, smallest=True).f(left) == ZSet.of(first)
    there = {half(row) for row in b}
    assert semi(third, half).f((left, right)) == ZSet.of(r for r in a if third(r) in there)
    anti = semi(third, half, anti=True)
    assert anti.f((left, right)) == ZSet.of(r for r in a if third(r) not in there)
    counted = [(key, len(rows)) for key, rows in groups.items()]
    assert per_key(count(), third).f(left) == ZSet.of(counted)
    once = [(key, row) for key, rows in groups.items() for row in set(rows)]
    assert per_key(distinct(), third).f(left) == ZSet.of(once)
    joined = [x - y for x in a for y in b if third(x) == fifth(y) and (x - y) % 2]
    after = Chain([RowStep("filter", Fn(odd))])
    assert Join(third, fifth, operator.sub, after=after).f((left, right)) == ZSet.of(joined)
    reduced = [(key, (sum(rows), max(rows), min(rows))) for key, rows in groups.items()]
    assert ReduceByKey(total() & greatest() & lowest(), Fn(third)).f(left) == ZSet.of(reduced)
    runs: list[list[int]] = []
    for row in a:
        if runs and row - runs[-1][-1] <= 2:
            runs[-1].append(row)
        else:
            runs.append([row])
    spans = [(row, run[0], run[-1] + 2) for run in runs for row in run]
    assert sessions(itself, 2).f(left) == ZSet.of(spans)


def test_a_step_that_is_not_asked_first_refuses_what_is_not_there() -> None:
    of: AnyOperator
    for of in (sessions(itself, 2, third), per_key(distinct(), third), top_rows(1, half, third)):
        state = of.init(ZSet.of([0, 3, 6]))
        with pytest.raises((ChangeError, NotDeterministic), match=r"taken|cannot take"):
            of.step(state, ZSet({9: -1}))
    state = sessions(itself, 2).init(ZSet.of([0]))
    with pytest.raises(ChangeError, match=r"sessions.* a row is taken away that is not there"):
        sessions(itself, 2).step(state, ZSet({0: -2}))


def test_a_group_cannot_lose_more_rows_than_it_has() -> None:
    for reducer in (how_many(), how_many().where(odd), mixed()):
        of = ReduceByKey(reducer, Fn(third))
        state = of.init(ZSet.of([1, 4, 3]))
        with pytest.raises((ChangeError, NotDeterministic), match="taken") as caught:
            of.step(state, ZSet({1: -3, 3: 1}))
        if not of.keeps_rows:
            assert caught.value.facts["key"] == 1
            assert caught.value.facts["missing"] == 1


def test_a_single_result_that_is_spread_is_a_tuple_itself() -> None:
    for reducer in (together(total()), (total() & how_many()).then(itself), total().then(twice)):
        of = ReduceByKey(reducer, Fn(third), ResultShape(width=1, spread=True))
        moved = of.open(ZSet.of([1])).send(ZSet({4: 1, 1: -1, 2: 1}))
        width = len(reducer([1]))
        assert {len(row) for row in moved} == {1 + width}
        assert moved.filter(lambda row: row[0] == 2) == ZSet({(2, *reducer([2])): 1})


def twice(x: Any) -> tuple[Any, Any]:
    return x, x


# ---- a planted bug ----


class KeepsZeros(RowChain):
    """Says of rows that come and go at once that they change by nothing."""

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        out: dict[Any, int] = {}
        for row, weight in change.items():
            for new in self.chain.rows(row):
                out[new] = out.get(new, 0) + weight
        return None, trusted(out)


def test_steps_that_forget_to_drop_zeros_are_refuted() -> None:
    chain = Chain([RowStep("map", Fn(half))])
    with pytest.raises(AssertionError, match="no_zeros"):
        run(KeepsZeros(chain), list(range(9)), seed=15)
    run(RowChain(chain), list(range(9)), seed=15)
