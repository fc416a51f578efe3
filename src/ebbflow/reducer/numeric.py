"""Products and statistics: what needs more than a sum, and is as exact.

See `ebbflow.reducer.library` for what all of them share.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from ebbflow.decimals import PLAIN, of_ratio
from ebbflow.keywords import checked
from ebbflow.nan import is_nan
from ebbflow.reducer import exact, moments
from ebbflow.reducer.inline import Inline, called
from ebbflow.reducer.library import NUMBERS, AnyReducer, arguments, ready
from ebbflow.reducer.reducer import Reducer, counted
from ebbflow.reducer.row import Key, getter
from ebbflow.typevars import V

# ---- products ----

_ONE = (0, 0, 1, 1, 0, 0, 0, 0, 0, 0)


def _times(acc: tuple[int, ...], x: Any, n: int) -> tuple[int, ...]:
    size, zeros, top, bottom, floats, fractions, decimals, highs, lows, nans = acc
    size, floats = size + n, floats + n * isinstance(x, float)
    fractions, decimals = (
        fractions + n * isinstance(x, Fraction), decimals + n * isinstance(x, Decimal)
    )  # fmt: skip
    if is_nan(x):
        nans += n
    elif x in (math.inf, -math.inf):
        highs, lows = highs + n * (x > 0), lows + n * (x < 0)
    elif x == 0:
        zeros += n
    else:
        a, b = x.as_integer_ratio()
        a, b = a ** abs(n), b ** abs(n)
        top, bottom = (top * a, bottom * b) if n > 0 else (top // a, bottom // b)
    return size, zeros, top, bottom, floats, fractions, decimals, highs, lows, nans


def _times_merge(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    new = [x + y for x, y in zip(a, b, strict=True)]
    new[2:4] = [a[2] * b[2], a[3] * b[3]]
    return tuple(new)


def _product(acc: tuple[int, ...]) -> Any:
    size, zeros, top, bottom, floats, fractions, decimals, highs, lows, nans = acc
    if not size:
        return None
    if nans or highs or lows:
        sign = 1 if (top > 0) == (lows % 2 == 0) else -1
        found = math.nan if nans or zeros else sign * math.inf
        return Decimal(found) if decimals and not floats else found
    if floats:
        return 0.0 if zeros else exact.rounded(top, bottom)
    if decimals:
        return of_ratio(0 if zeros else top, bottom, PLAIN)
    exactly = Fraction(0 if zeros else top, bottom)
    return exactly if fractions else int(exactly)


@checked
def product(of: Key[V] | None = None) -> Reducer[V]:
    """The product of ints, floats, Fractions or Decimals, exact and rounded once; zeros are
    counted, so that they can leave again.

    distributive · invertible · state O(n) bits, as the product is exact · O(n) bits a row

    >>> numbers = product()
    >>> numbers([2, 0, 5]), numbers.finish(numbers.remove(numbers.fold([2, 0, 5]), 0))
    (0, 10)
    """
    return ready(
        (product, arguments(of)), _ONE, _times, of, _product, merge=_times_merge,
        aggregate="distributive", size="O(n)", cost="O(n)",
        elements=(0, 1, -1, 2, 3, 0.5, 0.1, math.inf, None),
    )  # fmt: skip


# ---- moments ----


def _adding(terms: moments.Terms) -> Any:
    """Moments with their terms fixed, for rows of one number."""
    return lambda acc, x, count: moments.plus(acc, (x,), count, terms)


def _square(x: Any) -> tuple[Any, ...]:
    return x, moments.times(x, x)


def _cross(x: Any, y: Any) -> tuple[Any, ...]:
    return x, y, moments.times(x, y)


def _weigh(x: Any, weight: Any) -> tuple[Any, ...]:
    return weight, moments.times(x, weight)


def _spread(ddof: int, root: bool, acc: moments.Moments) -> Any:
    """The mean product of deviations, or its root: of one column with itself, or of two."""
    n, sums = acc.size, [each.value for each in acc.sums]
    if n <= ddof:
        return None
    spread = (sums[-1] - sums[0] * sums[-2] / n) / (n - ddof)
    if not root or acc.odd:
        return moments.shown(acc, spread)
    decimals = acc.decimals and not acc.floats
    return exact.decimal_root(spread) if decimals else exact.root(spread)


def _calls(of: Key | None, shown: Any) -> Inline:
    calls = called(of, moments.nothing(2), _adding(_square), moments.merged, shown)
    return calls._replace(stored=moments.stored, restored=moments.restored)


@checked
def variance(of: Key[V] | None = None, *, ddof: int = 1) -> Reducer[V]:
    """The variance of a sample, or with `ddof=0` of a whole population; exact, rounded once.

    algebraic · invertible · state O(1) · O(1) a row

    >>> variance()([1, 2, 6]), variance(ddof=0)([1e9 + 1, 1e9 + 3]), variance()([1])
    (7.0, 1.0, None)
    """
    named = {} if ddof == 1 else {"ddof": ddof}
    return ready(
        (variance, arguments(of), named), moments.nothing(2), _adding(_square), of,
        partial(_spread, ddof, False), merge=moments.merged, aggregate="algebraic",
        elements=NUMBERS, inline=_calls(of, partial(_spread, ddof, False)),
    )  # fmt: skip


@checked
def stddev(of: Key[V] | None = None, *, ddof: int = 1) -> Reducer[V]:
    """The standard deviation: the root of the exact variance, rounded once.

    algebraic · invertible · state O(1) · O(1) a row

    >>> stddev()([1, 3, 5]), stddev(ddof=0)([2, 4])
    (2.0, 1.0)
    """
    named = {} if ddof == 1 else {"ddof": ddof}
    return ready(
        (stddev, arguments(of), named), moments.nothing(2), _adding(_square), of,
        partial(_spread, ddof, True), merge=moments.merged, aggregate="algebraic", elements=NUMBERS,
        inline=_calls(of, partial(_spread, ddof, True)),
    )  # fmt: skip


def _paired(made: Any, x: Key, y: Key, size: int, terms: moments.Terms, result: Any) -> AnyReducer:
    """A reducer of two parts of a row, both of which must be there."""
    parts = getter(x, y)

    def repeat(acc: moments.Moments, row: Any, count: int) -> moments.Moments:
        both = parts(row)
        return acc if None in both else moments.plus(acc, both, count, terms)

    return counted(
        moments.nothing(size), repeat, result, merge=moments.merged, made=made,
        aggregate="algebraic", size="O(1)", cost="O(1)", partial=False,
        inline=called(None, moments.nothing(size), repeat, moments.merged, result),
    )  # fmt: skip


@checked
def covariance(x: Key[V], y: Key[V], *, ddof: int = 1) -> Reducer[V]:
    """The covariance of two parts of a row; rows where either is None are skipped.

    algebraic · invertible · state O(1) · O(1) a row

    >>> covariance(lambda row: row[0], lambda row: row[1])([(1, 2), (2, 4), (3, 6)])
    2.0
    """
    made = (covariance, (x, y), {} if ddof == 1 else {"ddof": ddof})
    return _paired(made, x, y, 3, _cross, partial(_spread, ddof, False))


def _weighted(acc: moments.Moments) -> Any:
    weight, total = [each.value for each in acc.sums]
    return moments.shown(acc, total / weight if weight else None)


@checked
def weighted_mean(of: Key[V], weight: Key[V]) -> Reducer[V]:
    """The mean of `of`, each counted `weight` times; None where the weights add up to zero.

    algebraic · invertible · state O(1) · O(1) a row

    >>> weighted_mean(lambda row: row[0], lambda row: row[1])([(10, 3), (20, 1)])
    12.5
    """
    return _paired((weighted_mean, (of, weight), {}), of, weight, 2, _weigh, _weighted)
