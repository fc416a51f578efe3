"""Every reducer of the library by example: exact numbers of every type, None, NaN and ties."""

from __future__ import annotations

import functools
import math
import operator
import statistics
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

from ebbflow import reducer as r
from ebbflow.errors import AlgebraError
from ebbflow.reducer import RECOMPUTE, Reducer
from ebbflow.zset import ZSet


class Order(NamedTuple):
    id: int
    city: str | None
    price: Any


ORDERS = [Order(1, "Rome", 10), Order(2, "Rome", 30), Order(3, "Oslo", 7), Order(4, "Oslo", None)]


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
    (r.string_agg(order=len), WORDS,
     oracle(lambda xs: ", ".join(sorted(xs, key=lambda x: (len(x), x))))),
    (r.first(second_of, order=first_of), PAIRS, oracle(lambda xs: min(xs)[1])),
    (r.last(second_of, order=first_of), PAIRS, oracle(lambda xs: max(xs)[1])),
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
        ([Decimal("1e28"), Decimal("1e-18"), 1], Decimal("1" + "0" * 27 + "1." + "0" * 17 + "1")),
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


def test_a_plain_decimal_has_18_digits_after_the_point_and_no_trailing_zeros() -> None:
    assert str(r.sum()([Decimal("1.10"), Decimal("2.90")])) == "4"
    assert str(r.sum()([Decimal("1E+2"), Decimal("0.5")])) == "100.5"
    long = Decimal("1." + "0" * 40 + "1")
    assert r.sum()([long, long, long.copy_negate()]) == 1
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
    assert r.stddev()([Decimal("1e-5000"), Decimal("3e-5000")]) == 0
    assert r.stddev()([Decimal("1e5000"), Decimal("3e5000")]) > Decimal("1.414e5000")
    assert str(r.stddev()([Decimal(1), Decimal(3)])) == "1.414213562373095049"
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
        r.arg_min("price"), r.arg_max("price"), r.first("id", order="price"),
        r.last("id", order="price"),
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
    assert r.first("price", order="id")([Order(1, "Rome", None)]) is None


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
    said = "equal ones print differently|no hash that is the same in every process"
    with pytest.raises(AlgebraError, match=said) as error:
        reducer([Opaque(1), Opaque(1)])
    assert "__repr__" in error.value.remedy
    plain = Plain()
    assert reducer.remove(reducer.fold([plain, 1]), plain) == reducer.fold([1])
    assert r.count_distinct()([Opaque(1), Opaque(1)]) == 1
    assert repr(r.histogram()([Opaque(1)])).startswith("Map({")


@pytest.mark.parametrize("rows", [[1, 1.0, True], [Decimal("1.0"), Decimal("1.00"), 1]], ids=str)
def test_a_string_of_equal_values_is_the_same_for_any_history(rows: list[Any]) -> None:
    for reducer in (r.string_agg(), r.string_agg(order=lambda x: 0)):
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
