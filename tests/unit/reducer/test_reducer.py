"""Reducers by example: the papers' own numbers, every reducer of the library, None, NaN, errors."""

from __future__ import annotations

import functools
import math
import operator
import pickle
import statistics
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import cloudpickle
import pytest

from ebbflow import reducer as r
from ebbflow.change import BAG, KEEP, Replace
from ebbflow.errors import AlgebraError, ChangeError, CompositionError, EbbflowError
from ebbflow.reducer import RECOMPUTE, Map, Reducer
from ebbflow.zset import ZSet

SUM = Reducer(0, operator.add, operator.sub, name="SUM")
COUNT = Reducer(0, lambda n, _: n + 1, lambda n, _: n - 1, name="COUNT")
MIN = Reducer(math.inf, min, lambda low, x: RECOMPUTE if x == low else low, name="MIN")
AVERAGE = Reducer(
    (0, 0), lambda a, x: (a[0] + x, a[1] + 1), lambda a, x: (a[0] - x, a[1] - 1),
    result=lambda a: a[0] / a[1] if a[1] else None, name="AVERAGE",
)  # fmt: skip


def second(row: tuple[Any, Any]) -> Any:
    return row[1]


class Order(NamedTuple):
    id: int
    city: str | None
    price: Any


ORDERS = [Order(1, "Rome", 10), Order(2, "Rome", 30), Order(3, "Oslo", 7), Order(4, "Oslo", None)]

# ---- the papers' examples ----

PURCHASES = {"user1": ZSet.of([30, 30, 50]), "user2": ZSet.of([70])}


def reduce(reducer: Reducer, collection: dict[str, ZSet]) -> dict[str, Any]:
    return {key: reducer.fold(bag) for key, bag in collection.items()}


def test_000_R1_reduce_folds_the_purchases_of_each_user() -> None:
    assert reduce(SUM, PURCHASES) == {"user1": 110, "user2": 70}
    assert reduce(COUNT, PURCHASES) == {"user1": 3, "user2": 1}
    assert SUM.fold([30, 30, 50]) == SUM.fold([50, 30, 30]) == 110
    rows = ZSet.of((user, price) for user, bag in PURCHASES.items() for price in bag.rows())
    by_user = SUM.on(lambda row: row[1]).operator(lambda row: row[0])
    assert by_user.f(rows) == ZSet.of([("user1", 110), ("user2", 70)])


def test_000_R2_folding_a_union_is_folding_one_after_the_other() -> None:
    some, more = [30], [30, 50]
    assert SUM.fold(some + more) == SUM.update(SUM.fold(some), ZSet.of(more)) == 110


def test_000_R3_adding_and_removing_a_purchase_leaves_the_total() -> None:
    total = SUM.fold([30, 30, 50])
    assert SUM.remove(SUM.add(total, 20), 20) == total


def test_000_R6_a_delta_is_applied_checked_and_constructed() -> None:
    old, delta = PURCHASES["user1"], ZSet({30: -1, 20: 1})
    new = ZSet.of([30, 50, 20])
    assert BAG.patch(old, delta) == new
    assert BAG.diff(new, old) == delta
    assert (delta.positive(), delta.negative()) == (ZSet.of([20]), ZSet.of([30]))
    with pytest.raises(ChangeError, match="takes away what is not there"):
        SUM.update(110, ZSet({30: -3}), old)


def test_000_R7_an_update_removes_first_and_then_adds() -> None:
    calls: list[str] = []
    spy = Reducer(
        0,
        lambda a, x: calls.append(f"+{x}") or a + x,
        lambda a, x: calls.append(f"-{x}") or a - x,
    )
    assert spy.update(110, ZSet({20: 1, 30: -1}), PURCHASES["user1"]) == 100
    assert calls == ["-30", "+20"]


def test_000_R8_removing_cancelled_purchases_gives_the_total_of_the_rest() -> None:
    assert SUM.update(110, ZSet({30: -1})) == SUM.fold([30, 50]) == 80


def test_000_R9_one_removal_asks_to_recompute_and_another_does_not() -> None:
    bag = ZSet.of([3, 5])
    assert MIN.update(3, ZSet({5: -1}), bag) == 3
    assert MIN.update(3, ZSet({3: -1})) is RECOMPUTE
    assert MIN.update(3, ZSet({3: -1}), bag) == 5
    no_remove = Reducer(0, operator.add)
    assert no_remove.update(8, ZSet({3: -1})) is RECOMPUTE
    assert no_remove.update(8, ZSet({3: -1, 1: 2}), bag) == 7
    assert no_remove.update(8, ZSet({1: 1})) == 9


@pytest.mark.parametrize("total", [SUM, r.sum()], ids=str)
def test_000_R10_the_worked_sum(total: Reducer) -> None:
    acc = total.fold([3, 5, 7])
    assert total.finish(acc) == 15
    assert total.finish(total.update(acc, ZSet({5: -1, 2: 1}))) == total([3, 7, 2]) == 12


@pytest.mark.parametrize("size", [COUNT, r.count()], ids=str)
def test_000_R10_the_worked_count(size: Reducer) -> None:
    assert size.update(size.fold("xyz"), ZSet({"y": -1, "w": 1})) == 3


@pytest.mark.parametrize("average", [AVERAGE, r.mean()], ids=str)
def test_000_R10_the_average_is_a_sum_and_a_count_shown_as_a_quotient(average: Reducer) -> None:
    acc = average.fold([3, 5, 7])
    assert average.finish(acc) == 5
    assert average.finish(average.update(acc, ZSet({7: -1}))) == 4
    assert average([]) is None
    assert average.update(acc, ZSet({3: -1, 5: -1, 7: -1})) == average.start()


@pytest.mark.parametrize("lowest", [MIN, r.min()], ids=str)
def test_000_R10_the_worked_minimum(lowest: Reducer) -> None:
    bag = ZSet.of([3, 5])
    acc = lowest.fold(bag)
    assert lowest.finish(lowest.update(acc, ZSet({5: -1}), bag)) == 3
    assert lowest.finish(lowest.update(acc, ZSet({3: -1}), bag)) == 5


def test_000_R12_one_reducer_serves_several_programs() -> None:
    total = r.sum("price")
    assert total(ORDERS) == 47
    by_city = total.operator("city").open(ZSet.of(ORDERS))
    assert by_city.send(ZSet({ORDERS[0]: -1})) == ZSet({("Rome", 40): -1, ("Rome", 30): 1})
    stream = total.processor("city").open()
    assert stream.send(ZSet.of(ORDERS)) == ZSet.of([("Rome", 40), ("Oslo", 7)])
    assert total(ORDERS) == 47


# ---- the library ----


def oracle(f: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    return lambda rows: f(rows) if rows else None


def covariance(pairs: list[tuple[int, int]]) -> Fraction:
    n = len(pairs)
    x, y = (Fraction(sum(column), n) for column in zip(*pairs, strict=True))
    return sum(((a - x) * (b - y) for a, b in pairs), Fraction(0)) / (n - 1)


NUMBERS = [5, 3, 3, 9, 1, 3, 9, 0]
WORDS = ["pear", "fig", "fig", "apple", "kiwi"]
PAIRS = [(1, 2), (2, 3), (4, 1), (4, 9)]
first_of, second_of = operator.itemgetter(0), operator.itemgetter(1)

ORACLES: list[tuple[Reducer, list[Any], Callable[[list[Any]], Any]]] = [
    (r.count(), NUMBERS, len),
    (r.sum(), NUMBERS, oracle(sum)),
    (r.mean(), NUMBERS, oracle(statistics.mean)),
    (r.min(), NUMBERS, oracle(min)),
    (r.max(), NUMBERS, oracle(max)),
    (r.product(), NUMBERS, oracle(math.prod)),
    (r.variance(), NUMBERS, lambda xs: statistics.variance(xs) if len(xs) > 1 else None),
    (r.variance(ddof=0), NUMBERS, oracle(statistics.pvariance)),
    (r.stddev(), NUMBERS, lambda xs: statistics.stdev(xs) if len(xs) > 1 else None),
    (r.covariance(first_of, second_of), PAIRS,
     lambda xs: float(covariance(xs)) if len(xs) > 1 else None),
    (r.weighted_mean(first_of, second_of), PAIRS,
     oracle(lambda xs: sum(x * w for x, w in xs) / sum(w for _, w in xs))),
    (r.count_distinct(), WORDS, lambda xs: len(set(xs))),
    (r.approx_count_distinct(), WORDS, lambda xs: len(set(xs))),
    (r.histogram(), WORDS, Counter),
    (r.mode(), WORDS, oracle(lambda xs: min(xs, key=lambda x: (-xs.count(x), x)))),
    (r.collect(), WORDS, lambda xs: tuple(sorted(xs))),
    (r.set_of(), WORDS, frozenset),
    (r.string_agg(separator="+"), WORDS, oracle(lambda xs: "+".join(sorted(xs)))),
    (r.string_agg(by=len), WORDS,
     oracle(lambda xs: ", ".join(sorted(xs, key=lambda x: (len(x), x))))),
    (r.first(second_of, by=first_of), PAIRS, oracle(lambda xs: min(xs)[1])),
    (r.last(second_of, by=first_of), PAIRS, oracle(lambda xs: max(xs)[1])),
    (r.arg_min(len), WORDS, oracle(lambda xs: min(xs, key=lambda x: (len(x), x)))),
    (r.arg_max(len), WORDS, oracle(lambda xs: max(xs, key=lambda x: (len(x), x)))),
    (r.top_k(3), NUMBERS, lambda xs: tuple(sorted(xs, reverse=True)[:3])),
    (r.top_k(3, smallest=True), NUMBERS, lambda xs: tuple(sorted(xs)[:3])),
    (r.median(), NUMBERS, oracle(statistics.median)),
    (r.quantile(0.25), NUMBERS,
     oracle(lambda xs: statistics.quantiles([*xs, *xs[: len(xs) == 1]], method="inclusive")[0])),
    (r.quantile(0.75, discrete=True), NUMBERS,
     oracle(lambda xs: sorted(xs)[math.ceil(0.75 * len(xs)) - 1])),
    (r.rank(3), NUMBERS, lambda xs: 1 + sum(x < 3 for x in xs)),
    (r.bool_and(), [True, False, True], oracle(all)),
    (r.bool_or(), [False, True, False], oracle(any)),
    (r.bit_xor(), NUMBERS, oracle(lambda xs: functools.reduce(operator.xor, xs))),
    (r.naive_sum(), NUMBERS, oracle(sum)),
]  # fmt: skip


@pytest.mark.parametrize(("reducer", "rows", "plainly"), ORACLES, ids=[str(o[0]) for o in ORACLES])
def test_library_follows_rows_out_and_in_as_plain_python_does(
    reducer: Reducer, rows: list[Any], plainly: Callable[[list[Any]], Any]
) -> None:
    left = list(rows)
    acc = reducer.fold(left)
    assert reducer.finish(acc) == plainly(left)
    for row in rows[::2] + rows[1::2]:
        left.remove(row)
        acc = reducer.update(acc, ZSet({row: -1}))
        assert reducer.finish(acc) == plainly(left), left
    assert acc == reducer.start()


def test_approx_quantile_is_within_its_error() -> None:
    for q in (0.01, 0.5, 0.99):
        exactly, about = r.quantile(q, discrete=True), r.approx_quantile(q, error=0.02)
        rows = [x**3 / 7 for x in range(1, 500)]
        assert about(rows) == pytest.approx(exactly(rows), rel=0.02)
        assert about([-x for x in rows]) == pytest.approx(exactly([-x for x in rows]), rel=0.02)
    assert r.approx_quantile(0.5)([0, 0.0, 0]) == 0


def test_approx_count_distinct_is_exact_while_small_and_near_when_large() -> None:
    about = r.approx_count_distinct(exact=64, bits=10)
    assert about(range(50)) == 50
    acc = about.fold(range(5_000))
    assert about.finish(acc) == pytest.approx(5_000, rel=0.1)
    for x in range(100, 5_000):
        acc = about.removed(acc, x)
        if acc is RECOMPUTE:
            break
    assert acc is RECOMPUTE or about.finish(acc) == pytest.approx(100, rel=0.2)
    assert about.fold([1, 1.0, True]) == about.fold([1, 1, 1])


# ---- exact numbers ----


def test_float_sums_round_once_and_forget_completely() -> None:
    total = r.sum()
    assert total([0.1] * 10) == 1.0
    assert total([1e308, 1e308, -1e308]) == 1e308
    assert total([1e308, 1e308]) == math.inf
    assert total([5e-324, 5e-324]) == 1e-323
    assert total([2**53, 1.0, 1.0]) == float(2**53 + 2)
    acc = total.fold([1e308, 0.1, 5e-324])
    assert total.remove(total.remove(acc, 1e308), 5e-324) == total.fold([0.1])
    assert total.finish(total.remove(total.fold([2.5, 3]), 2.5)) == 3
    assert type(total.finish(total.remove(total.fold([2.5, 3]), 2.5))) is int
    assert repr(total([-0.0])) == "0.0"


def test_infinities_and_nan_come_and_go() -> None:
    total = r.sum()
    acc = total.fold([1.5, math.inf])
    assert total.finish(acc) == math.inf
    acc = total.add(acc, -math.inf)
    assert math.isnan(total.finish(acc))
    acc = total.remove(total.add(acc, math.nan), math.inf)
    assert math.isnan(total.finish(acc))
    acc = total.remove(acc, float("nan"))
    assert total.finish(acc) == -math.inf
    assert total.remove(acc, -math.inf) == total.fold([1.5])
    assert r.mean()([math.inf, 1]) == math.inf
    assert math.isnan(r.variance()([math.inf, 1.0]))
    product = r.product()
    assert math.isnan(product([0, math.inf]))
    assert product.finish(product.remove(product.fold([0, math.inf, -2.0]), 0)) == -math.inf


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([Decimal("1.10"), Decimal("2.90")], Decimal("4.00")),
        ([Decimal("1e28"), Decimal("1e-28"), 1], Decimal("1" + "0" * 27 + "1." + "0" * 27 + "1")),
        ([Fraction(1, 3), Fraction(1, 6), 1], Fraction(3, 2)),
        ([Fraction(1, 3), 0.5], 0.8333333333333334),
        ([timedelta(hours=1), timedelta(microseconds=1)], timedelta(hours=1, microseconds=1)),
        ([True, True, 2], 4),
        ([10**400, 1], 10**400 + 1),
        ([Decimal("Infinity"), Decimal(1)], Decimal("Infinity")),
    ],
)
def test_sums_of_every_numeric_type(rows: list[Any], expected: Any) -> None:
    total = r.sum()
    found = total(rows)
    assert found == expected
    assert type(found) is type(expected)
    acc = total.fold(rows)
    for row in rows:
        acc = total.remove(acc, row)
    assert acc == total.start()


def test_decimals_keep_their_places_and_are_not_rounded() -> None:
    assert str(r.sum()([Decimal("1.10"), Decimal("2.90")])) == "4.00"
    assert str(r.sum()([Decimal("1E+2"), Decimal("0.5")])) == "100.5"
    long = Decimal("1." + "0" * 40 + "1")
    assert r.sum()([long, long, long.copy_negate()]) == long
    assert str(r.mean()([Decimal("1.0"), Decimal("2.0")])) == "1.5"
    assert r.sum()([Decimal(10) ** 6000, Decimal(1)]).as_tuple().digits[-1] == 1


def test_products_of_every_numeric_type() -> None:
    assert str(r.product()([Decimal("1.5"), 2])) == "3"
    assert r.product()([Fraction(1, 3), 6]) == Fraction(2)
    assert r.product()([0.1, 3]) == 0.1 * 3
    times = r.product()
    acc = times.fold([Decimal("1.5"), 2])
    assert type(times.finish(times.remove(acc, Decimal("1.5")))) is int


def test_means_round_once() -> None:
    assert r.mean()([0.1, 0.2, 0.3]) == 0.2
    assert r.mean()([2**53, 2**53 + 1]) == float(Fraction(2**54 + 1, 2))
    assert r.mean()([Fraction(1, 3), Fraction(2, 3)]) == Fraction(1, 2)
    assert r.mean()([timedelta(hours=1), timedelta(hours=2)]) == timedelta(minutes=90)
    assert r.variance()([1e9 + 1, 1e9 + 2, 1e9 + 3]) == 1.0
    assert r.variance()([Fraction(1, 2), Fraction(3, 2)]) == Fraction(1, 2)
    assert r.variance()([Decimal(1), Decimal(3)]) == 2
    assert r.median()([1, 2**60]) == (1 + 2**60) / 2
    assert r.quantile(0.5)([Decimal(1), Decimal(2)]) == Decimal("1.5")
    assert r.median()([timedelta(1), timedelta(2)]) == timedelta(1.5)
    assert r.median()([-math.inf, math.inf]) != r.median()([-math.inf, math.inf])


@pytest.mark.parametrize(
    "rows",
    [[Decimal(1), 0.5], [0.5, Decimal(1)], [timedelta(1), 3], [3, timedelta(1)], ["a"], [1j]],
)
def test_types_that_do_not_mix_are_refused_by_name(rows: list[Any]) -> None:
    with pytest.raises(AlgebraError, match=r"cannot be added|not known how to add"):
        r.sum()(rows)


@pytest.mark.parametrize(
    ("one", "other"), [(Decimal("0.1"), 0.5), (Decimal(1), Fraction(1, 2)), (timedelta(1), 5)]
)
def test_sums_that_do_not_mix_are_not_merged_either(one: Any, other: Any) -> None:
    total = r.sum()
    assert total.merge is not None
    for a, b in ((one, other), (other, one)):
        with pytest.raises(AlgebraError, match="cannot be added"):
            total.merge(total.fold([a]), total.fold([b]))
        assert total.merge(total.fold([a]), total.start()) == total.fold([a])
    assert total.finish(total.merge(total.fold([Decimal("0.1")]), total.fold([1]))) == Decimal(
        "1.1"
    )


def test_a_standard_deviation_is_rounded_once() -> None:
    assert r.stddev(ddof=0)([1e-200, 3e-200]) == 1e-200
    assert r.stddev()([10**200, -(10**200)]) == pytest.approx(math.sqrt(2) * 1e200)
    assert r.stddev()([Fraction(10**400), Fraction(0)]) == math.inf
    assert r.stddev()([Fraction(1, 10**400), Fraction(0)]) == 0.0
    assert r.stddev()([Decimal("1e-5000"), Decimal("3e-5000")]) == Decimal(2).sqrt().scaleb(-5000)
    assert r.stddev()([Decimal("1e5000"), Decimal("3e5000")]) == Decimal(2).sqrt().scaleb(5000)
    assert str(r.stddev(ddof=0)([Decimal(1), Decimal(2)])) == "0.5"
    assert math.isnan(r.stddev()([Decimal("1"), Decimal("Infinity")]))
    assert r.variance()([Decimal("1e400"), Decimal(0)]) == Decimal("5e799")


BIG, MICRO = 10**400, timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("reducer", "rows", "expected"),
    [
        (r.mean(), [timedelta.max] * 2, timedelta.max),
        (r.quantile(0.5), [timedelta.min, -timedelta.min - timedelta(days=2)], timedelta(-1)),
        (r.median(), [BIG, BIG + 2], BIG + 1),
        (r.median(), [BIG, math.inf], math.inf),
        (r.median(), [-math.inf, BIG], -math.inf),
        (r.median(), [Fraction(BIG), BIG + 3], Fraction(2 * BIG + 3, 2)),
        (r.quantile(0.5, discrete=True), [BIG, BIG + 3], BIG),
        (r.median(), [1, Decimal(2)], Decimal("1.5")),
        (r.median(), [Decimal(1), 2], Decimal("1.5")),
        (r.median(), [Decimal("1.10"), Decimal("1.30")], Decimal("1.20")),
        (r.median(), [Decimal(1), Decimal("Infinity")], Decimal("Infinity")),
        (r.product(), [Decimal("Infinity"), -1], Decimal("-Infinity")),
        (r.product(), [Decimal("Infinity"), 2.0], math.inf),
    ],
)
def test_nothing_overflows_or_depends_on_the_order_of_types(
    reducer: Reducer, rows: list[Any], expected: Any
) -> None:
    for turned in (rows, rows[::-1]):
        assert reducer(turned) == expected
        assert type(reducer(turned)) is type(expected)


def test_quantiles_reach_the_ends_of_what_there_is() -> None:
    tenth = (timedelta.min // MICRO * 9 + timedelta.max // MICRO) * Fraction(1, 10)
    assert r.quantile(0.1)([timedelta.min, timedelta.max]) == MICRO * round(tenth)
    for size in (1.79e308, 1.7976931348623157e308, 5e-324, 2.3e-308):
        for error in (0.001, 0.01, 0.5):
            about = r.approx_quantile(0.5, error=error)
            assert about([size]) == pytest.approx(size, rel=error)
            assert about([-size]) == -about([size])
    assert r.approx_quantile(0.5)([math.inf]) == math.inf
    for x in (r.product()([Decimal("nan"), 1]), r.product()([0, Decimal("inf")])):
        assert isinstance(x, Decimal)
        assert x.is_nan()


# ---- None, NaN, ties ----

EMPTY = {
    "count": 0, "count_distinct": 0, "approx_count_distinct": 0, "rank": 1, "collect": (),
    "set_of": frozenset(), "top_k": (), "histogram": {},
}  # fmt: skip


@pytest.mark.parametrize(
    "reducer",
    [
        r.sum("price"), r.mean("price"), r.min("price"), r.max("price"), r.product("price"),
        r.variance("price"), r.stddev("price"), r.mode("price"), r.median("price"),
        r.quantile(0.5, "price"), r.bool_and("price"), r.bool_or("price"), r.bit_xor("price"),
        r.string_agg("price"), r.naive_sum("price"), r.approx_quantile(0.5, "price"),
        r.arg_min("price"), r.arg_max("price"), r.first("id", by="price"), r.last("id", by="price"),
        r.covariance("price", "id"), r.weighted_mean("id", "price"), r.count("price"),
        r.count_distinct("price"), r.approx_count_distinct("price"), r.rank(5, "price"),
        r.collect("price"), r.set_of("price"), r.top_k(2, "price"), r.histogram("price"),
    ],
    ids=str,
)  # fmt: skip
def test_none_is_skipped_as_sql_skips_null(reducer: Reducer) -> None:
    nothing = EMPTY.get(repr(reducer).split("(")[0])
    missing = Order(1, "Rome", None)
    assert reducer([missing]) == reducer([]) == nothing
    acc = reducer.fold([Order(2, "Rome", 3)])
    assert reducer.add(acc, missing) == reducer.remove(acc, missing) == acc


def test_count_counts_rows_and_with_a_field_values() -> None:
    assert r.count()(ORDERS) == 4
    assert r.count("price")(ORDERS) == 3
    assert r.first("price", by="id")([Order(1, "Rome", None)]) is None


def test_nan_is_one_value_greater_than_all_others() -> None:
    rows = [math.nan, 1.0, float("nan"), 2.0]
    assert math.isnan(r.max()(rows))
    assert r.min()(rows) == 1.0
    assert r.count_distinct()(rows) == 3
    assert r.mode()([math.nan, float("nan"), 1.0]) != 1.0
    biggest = r.max()
    acc = biggest.remove(biggest.remove(biggest.fold(rows), float("nan")), math.nan)
    assert biggest.finish(acc) == 2.0
    assert r.histogram()(rows)[r.set_of()([float("nan")]).__iter__().__next__()] == 2


def test_nan_inside_a_tuple_is_one_value_too() -> None:
    rows = [(1, math.nan), (1, 2.0), Pair(1, float("nan")), (0, (math.nan, 1)), (1, 1.0)]
    for turned in (rows, rows[::-1], rows[2:] + rows[:2]):
        assert r.min()(turned)[0] == 0
        assert math.isnan(r.max()(turned)[1])
        assert r.rank((1, math.nan))(turned) == 4
        assert r.count_distinct()(turned) == r.approx_count_distinct()(turned) == 4
        assert r.top_k(4)(turned)[2:] == ((1, 2.0), (1, 1.0))
    for reducer in (r.max(), r.count_distinct(), r.collect(), r.approx_count_distinct(), r.mode()):
        acc = reducer.remove(reducer.fold(rows), (1, float("nan")))
        assert reducer.remove(acc, (1, float("nan"))) == reducer.fold([rows[1], *rows[3:]])
    assert type(r.max()([Pair(2, float("nan")), (1, 2.0)])) is Pair
    assert r.count_distinct()([frozenset({float("nan")}), frozenset({math.nan})]) == 1


class Pair(NamedTuple):
    a: float
    b: float


class Opaque:
    """Equal by content, and printed by address."""

    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and self.x == other.x

    def __hash__(self) -> int:
        return hash(self.x)


class Plain:
    """Equal to itself alone, and printed by address: that is consistent."""


@pytest.mark.parametrize("reducer", [r.mode(), r.collect(), r.approx_count_distinct()], ids=str)
def test_values_that_look_different_when_equal_are_refused(reducer: Reducer) -> None:
    with pytest.raises(AlgebraError, match="equal ones print differently") as error:
        reducer([Opaque(1), Opaque(1)])
    assert "__repr__" in error.value.remedy
    plain = Plain()
    assert reducer.remove(reducer.fold([plain, 1]), plain) == reducer.fold([1])
    assert r.count_distinct()([Opaque(1), Opaque(1)]) == 1
    assert repr(r.histogram()([Opaque(1)])).startswith("Map({")


@pytest.mark.parametrize("rows", [[1, 1.0, True], [Decimal("1.0"), Decimal("1.00"), 1]], ids=str)
def test_a_string_of_equal_values_is_the_same_for_any_history(rows: list[Any]) -> None:
    for reducer in (r.string_agg(), r.string_agg(by=lambda x: 0)):
        assert reducer(rows) == reducer(rows[::-1]) == ", ".join(sorted(map(str, rows)))
        for x in rows:
            left = [y for y in rows if y is not x]
            assert reducer.finish(reducer.remove(reducer.fold(rows), x)) == reducer(left)


def test_ties_do_not_depend_on_who_came_first() -> None:
    rows = [Order(1, None, 5), Order(1, "Rome", 5), Order(2, "Oslo", 5)]
    for turned in (rows, rows[::-1], rows[1:] + rows[:1]):
        assert r.arg_max("price")(turned) == rows[2]
        assert r.arg_min("price")(turned) == rows[0]
        assert r.mode("city")(turned) == "Oslo"
        assert r.collect()(turned) == (rows[0], rows[1], rows[2])
        assert r.collect("price")(turned) == (5, 5, 5)


def test_values_of_any_types_can_be_collected() -> None:
    mixed = ["b", 2, (1, None), (1, 0), "a", 1.5, date(2026, 1, 1), frozenset({1, "x"}), b"c"]
    assert r.collect()(mixed) == r.collect()(mixed[::-1])
    assert r.mode()([frozenset({1}), frozenset({2, 1})]) is not None


# ---- combining ----


def test_combinations_compute_what_they_say() -> None:
    both = r.count() & r.sum("price") & r.max("price").then(lambda top: top and -top)
    assert both(ORDERS) == (4, 47, -30)
    assert r.sum("price").where(lambda order: order.city == "Rome")(ORDERS) == 40
    assert r.count().where("price")(ORDERS) == 3
    assert r.sum("price").by("city")(ORDERS) == {"Rome": 40, "Oslo": 7}
    assert r.count().by("city", "price")(ORDERS)["Oslo", None] == 1
    assert (r.count() & (r.sum() & r.min()))([1, 2]) == (2, 3, 1)
    assert ((r.count() & r.sum()).then(str) & r.min())([1, 2]) == ("(2, 3)", 1)
    assert SUM.on("price")([Order(1, "Rome", 2)]) == 2
    assert SUM.on(lambda pair: pair[0] * pair[1]).on("id", "price")([Order(3, "", 4)]) == 12


def test_combinations_recompute_only_when_a_part_asks() -> None:
    both = COUNT & MIN
    bag = ZSet.of([3, 5])
    assert both.update((2, 3), ZSet({5: -1}), bag) == (1, 3)
    assert both.update((2, 3), ZSet({3: -1})) is RECOMPUTE
    assert both.update((2, 3), ZSet({3: -1}), bag) == (1, 5)
    folding = Reducer(0, operator.add)
    assert (COUNT & folding).remove is None
    assert folding.where(lambda x: x > 3).update(5, ZSet({3: -1})) == 5
    assert folding.where(lambda x: x > 3).update(5, ZSet({5: -1})) is RECOMPUTE
    per_parity = folding.by(lambda x: x % 2)
    acc = per_parity.fold([1, 2, 3])
    assert per_parity.finish(per_parity.update(acc, ZSet({2: -1}))) == {1: 4}
    assert per_parity.update(acc, ZSet({1: -1})) is RECOMPUTE
    merging = Reducer(0, max, merge=max)
    assert (r.max() & merging).remove is None
    assert (r.max() & merging).merge is not None


def test_weighted_rows_count_as_often_as_they_are_there() -> None:
    for reducer in (r.sum(), r.count(), r.median(), SUM, r.mean() & SUM, SUM.by(lambda x: x % 2)):
        assert reducer(ZSet({3: 4, 5: 1})) == reducer([3, 3, 3, 3, 5])
        acc = reducer.update(reducer.fold(ZSet({3: 4, 5: 1})), ZSet({3: -3}))
        assert reducer.finish(acc) == reducer([3, 5])


def test_groups_do_not_share_a_mutable_start() -> None:
    rows = Reducer([], lambda acc, x: acc.append(x) or acc)
    assert rows.fold([1]) == [1]
    assert rows.fold([2]) == [2]
    nested = Reducer(([], 0), lambda acc, x: (acc[0].append(x) or acc[0], acc[1] + 1))
    assert nested.fold([1]) == ([1], 1)
    assert nested.start() == ([], 0)
    made = Reducer(list, lambda acc, x: [*acc, x])
    assert made.start() is not made.start()


# ---- programs ----


def test_an_operator_replaces_its_result_only_when_it_changes() -> None:
    live = r.max("price").operator().open(ZSet.of(ORDERS))
    assert live.send(ZSet({ORDERS[0]: -1})) is KEEP
    assert live.send(ZSet({ORDERS[1]: -1})) == Replace(7)
    assert live.send(ZSet({ORDERS[2]: -1, ORDERS[3]: -1})) == Replace(None)
    with pytest.raises(ChangeError, match="cannot take"):
        live.send(ZSet({ORDERS[2]: -1}))


def test_a_group_without_rows_disappears_and_a_group_of_nulls_does_not() -> None:
    by_city = r.sum("price").operator("city")
    live = by_city.open(ZSet.of(ORDERS))
    assert by_city.keys(ZSet.of(ORDERS[2:])) == {"Oslo"}
    assert live.send(ZSet({ORDERS[2]: -1})) == ZSet({("Oslo", 7): -1, ("Oslo", None): 1})
    assert live.send(ZSet({ORDERS[3]: -1})) == ZSet({("Oslo", None): -1})
    assert list(live.state.values) == ["Rome"]
    with pytest.raises(ChangeError, match="cannot take"):
        live.send(ZSet({ORDERS[3]: -1}))


def test_a_processor_waits_for_a_row_that_is_owed() -> None:
    live = r.sum().processor().open()
    assert live.send(ZSet({5: -1})) == ZSet()
    assert live.send(ZSet({5: 1, 3: 1})) == ZSet({3: 1})
    assert live.send(ZSet({3: -1})) == ZSet({3: -1})
    whole = r.sum().processor()
    assert whole(ZSet({5: 2})) == ZSet({10: 1})
    assert repr(r.sum("price").processor("city")) == "(sum('price')).processor('city')"


def test_a_step_that_raises_leaves_the_state_as_it_was() -> None:
    for reducer in (r.sum(second), MIN.on(second), Reducer(0, operator.add, merge=max).on(second)):
        live = reducer.operator(operator.itemgetter(0)).open(ZSet.of([("a", 1), ("b", 2)]))
        before = pickle.dumps(live.operator.init(ZSet.of([("a", 1), ("b", 2)])))
        with pytest.raises((TypeError, EbbflowError)):
            live.send(ZSet({("a", 1): -1, ("a", 5): 1, ("b", "x"): 1}))
        assert live.state == pickle.loads(before)
    with pytest.raises(ChangeError, match="more rows are taken away"):
        r.count().operator().step(r.count().operator().init(ZSet()), ZSet({1: -1}))


def test_a_promise_not_to_recompute_is_held() -> None:
    broken = Reducer(math.inf, min, lambda low, x: RECOMPUTE, partial=False)
    live = broken.operator().open(ZSet.of([1, 2]))
    with pytest.raises(ChangeError, match="declared partial=False"):
        live.send(ZSet({1: -1}))


# ---- as values ----

COMBINED = [
    r.sum("price"), r.top_k(2, "price", smallest=True), r.quantile(0.25, "price", discrete=True),
    r.string_agg("city", separator="; ", by="id"), r.count() & r.max("price"),
    r.sum("price").by("city"), r.mean("price").then(str), r.covariance("id", "price"),
    r.approx_count_distinct("city", exact=8, bits=6), r.min().on("id"), r.first("city", by="id"),
    (r.count() & r.sum("id")).then(len) & r.max("id"), (r.count() & r.sum("id")).by("city"),
    (r.count() & r.sum()).on("id"), (r.count() & r.sum("id")).where("city"),
    (r.count() & r.sum("id")).where("city").then(len), r.rank(None, "city"), r.rank(None),
    r.rank(3, "id"),
]  # fmt: skip


@pytest.mark.parametrize("reducer", COMBINED, ids=str)
def test_000_R12_reducers_survive_the_trip_to_a_worker(reducer: Reducer) -> None:
    there = pickle.loads(pickle.dumps(reducer))
    assert there(ORDERS) == reducer(ORDERS)
    assert there == reducer
    assert hash(there) == hash(reducer)
    assert repr(there) == repr(reducer)
    acc = reducer.fold(ORDERS)
    assert pickle.loads(pickle.dumps(acc)) == acc


def test_000_R12_lambdas_survive_the_trip_to_a_worker() -> None:
    mine = Reducer(0, lambda a, x: a + x, lambda a, x: a - x, name="mine").on(lambda o: o.id)
    there = cloudpickle.loads(cloudpickle.dumps(mine & r.sum(lambda o: o.price)))
    assert there(ORDERS) == (10, 47)
    assert pickle.loads(pickle.dumps(RECOMPUTE)) is RECOMPUTE
    assert r.Recompute() is RECOMPUTE
    live = r.sum("price").operator("city").open(ZSet.of(ORDERS))
    assert pickle.loads(pickle.dumps(live)).send(ZSet({ORDERS[0]: -1}))


def test_reducers_show_how_they_were_made() -> None:
    shown = [repr(each) for each in COMBINED]
    assert shown[:6] == [
        "sum('price')", "top_k(2, 'price', smallest=True)",
        "quantile(0.25, 'price', discrete=True)",
        "string_agg('city', separator='; ', by='id')", "count() & max('price')",
        "sum('price').by('city')",
    ]  # fmt: skip
    for reducer in COMBINED:
        assert eval(repr(reducer), {**vars(r), "str": str}) == reducer
    both = r.count() & r.sum("a")
    assert repr(both.then(len) & r.max("b")) == "(count() & sum('a')).then(len) & max('b')"
    assert repr(r.rank(None)) == "rank(None)"
    assert repr(Reducer(0, operator.add, operator.sub)) == "Reducer(0, add, sub)"
    assert repr(Reducer(list, max)) == "Reducer(list, max)"
    assert SUM != COUNT
    assert Reducer(0, operator.add) == Reducer(0, operator.add)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: r.sum("prise")(ORDERS), "no field 'prise'"),
        (lambda: r.sum("price")([{"prise": 1}]), "no field 'price'"),
        (lambda: r.sum(3), "is no part of a row"),
        (lambda: r.top_k(0), "at least 1"),
        (lambda: r.quantile(1.5), "no quantile"),
        (lambda: r.median()(["a", "b"]), "nothing between"),
        (lambda: r.approx_quantile(0.5, error=2), "makes no sketch"),
        (lambda: r.approx_count_distinct(bits=99), "needs 4"),
        (lambda: r.variance()([timedelta(1)]), "no square"),
        (lambda: Reducer(0, max, aggregate="odd"), "no class of aggregates"),
        (lambda: Reducer(0, None), "add must be a function"),
        (lambda: SUM.fold(ZSet({1: -1})), "only a collection can be folded"),
        (lambda: SUM.by(lambda x: 0).remove(Map(), 3), "not there"),
        (lambda: r.max().remove(r.max().fold([1]), 2), "cannot be taken away"),
        (lambda: r.sum()([timedelta.max] * 2), "longer than the longest"),
        (lambda: r.median()([BIG, BIG + 3]), "too large for a float"),
        (lambda: r.median()([Decimal(1), Fraction(5, 2)]), "does not mix"),
        (lambda: r.median()([0.5, Decimal(1)]), "does not mix"),
        (lambda: r.approx_quantile(0.5)([BIG]), "none near"),
        (lambda: r.approx_quantile(0.5)([Decimal("-1e400")]), "none near"),
        *[
            (lambda make=make: make()([Decimal("sNaN")]), "signaling")
            for make in (
                r.sum,
                r.mean,
                r.min,
                r.product,
                r.variance,
                r.count_distinct,
                r.collect,
                r.mode,
                r.approx_count_distinct,
                lambda: r.approx_quantile(0.5),
                r.median,
            )
        ],
        (lambda: r.set_of().remove(r.set_of().fold([1]), 2), "cannot be taken away"),
    ],
)
def test_mistakes_are_named(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(EbbflowError, match=says):
        make()


def test_an_unknown_field_names_the_nearest() -> None:
    with pytest.raises(CompositionError) as error:
        r.sum("prise")(ORDERS)
    assert error.value.remedy == "'price'"
    assert SUM != 3
    with pytest.raises(TypeError):
        SUM & 3


# ---- the mapping behind counts ----


def test_a_map_is_a_dict_that_is_replaced() -> None:
    plain: dict[int, int] = {}
    shared: Map[int, int] = Map()
    older = []
    for n in range(3000):
        key = n * 7919 % 1009
        if key in plain and n % 3 == 0:
            del plain[key]
            shared = shared.drop(key)
        else:
            plain[key] = n
            shared = shared.put(key, n)
        if n % 500 == 0:
            older.append((dict(plain), shared))
    assert shared == plain
    assert len(shared) == len(plain)
    assert sorted(shared) == sorted(plain)
    for then, version in older:
        assert version == then
    assert pickle.loads(pickle.dumps(shared)) == shared == Map(plain)
    assert hash(shared) == hash(Map(plain))
    for key in list(plain):
        shared = shared.drop(key)
    assert (len(shared), shared) == (0, Map())
    with pytest.raises(KeyError):
        shared.drop(1)
    with pytest.raises(KeyError):
        shared[1]
    assert shared != 3


def test_a_map_bears_keys_whose_hashes_are_all_the_same() -> None:
    class Same(NamedTuple):
        n: int

        def __hash__(self) -> int:
            return 7

    built = Map({Same(n): n for n in range(100)})
    assert built.put(Same(5), 0).drop(Same(7))[Same(5)] == 0
    assert len(built) == 100
