"""Reducers that need the order of the values: extremes, quantiles and ranks.

What leaves may be the minimum, and then the next one is needed. So these keep all values, sorted,
in a persistent tree (`ebbflow.state.tree`): a row costs O(log n) whether it comes or goes, and no
group is ever folded again. Ties are decided by the values themselves, never by who came first.
"""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from ebbflow import decimals
from ebbflow.decimals import PLAIN, Digits
from ebbflow.errors import AlgebraError, cause_of, value_text
from ebbflow.keywords import checked
from ebbflow.nan import is_nan, one_nan
from ebbflow.reducer.exact import MICROSECOND, rounded, span
from ebbflow.reducer.inline import gathered
from ebbflow.reducer.library import AnyReducer, arguments, ready
from ebbflow.reducer.reducer import Reducer
from ebbflow.reducer.row import Key
from ebbflow.state.tree import Tree
from ebbflow.typevars import V

ORDERED: dict[str, Any] = {"size": "O(n)", "cost": "O(log n)", "elements": (0, 1, 2, 2.5, 9, None)}


def keep(tree: Tree[Any], x: Any, count: int) -> Tree[Any]:
    """The tree with `x` put in `count` times, or taken out.

    >>> keep(keep(Tree(), 3, 2), 3, -1)
    Tree.counted([(3, 1)])
    """
    return put(tree, one_nan(x), count)


def put(tree: Tree[Any], x: Any, count: int) -> Tree[Any]:
    """The same for an `x` without any NaN but `NAN`.

    >>> put(Tree(), (1, "a"), 2)
    Tree.counted([((1, 'a'), 2)])
    """
    return tree.add(x, count) if count > 0 else tree.remove(x, -count)


def tree_merge(a: Tree[Any], b: Tree[Any]) -> Tree[Any]:
    """Two sorted multisets as one.

    >>> tree_merge(Tree.of([1, 3]), Tree.of([2]))
    Tree.counted([(1, 1), (2, 1), (3, 1)])
    """
    large, small = (a, b) if len(a) >= len(b) else (b, a)
    return large.update(small)


def _sorted(made: Any, of: Key | None, result: Any, aggregate: str) -> AnyReducer:
    """A reducer whose state is the sorted values."""
    return ready(
        made, Tree(), keep, of, result, merge=tree_merge, aggregate=aggregate, **ORDERED,
        inline=gathered(of, Tree(), Tree.update, result),
    )  # fmt: skip


# ---- extremes ----


def _first(tree: Tree[Any]) -> Any:
    return tree.first if tree.size else None


def _last(tree: Tree[Any]) -> Any:
    return tree.last if tree.size else None


@checked
def min(of: Key[V] | None = None) -> Reducer[V]:
    """The smallest value; NaN, also inside a tuple, is greater than every other.

    distributive · invertible, as all values are kept · state O(n) · O(log n) a row

    >>> lowest = min()
    >>> lowest([3, 5]), lowest.finish(lowest.remove(lowest.fold([3, 5]), 3))
    (3, 5)
    """
    return _sorted((min, arguments(of)), of, _first, "distributive")


@checked
def max(of: Key[V] | None = None) -> Reducer[V]:
    """The greatest value; NaN, also inside a tuple, is greater than every other.

    distributive · invertible, as all values are kept · state O(n) · O(log n) a row

    >>> max(len)(["to", "be", "known"])
    5
    """
    return _sorted((max, arguments(of)), of, _last, "distributive")


def _best(k: int, smallest: bool, tree: Tree[Any]) -> tuple[Any, ...]:
    return tuple(tree.smallest(k) if smallest else tree.largest(k))


@checked
def top_k(k: int, of: Key[V] | None = None, *, smallest: bool = False) -> Reducer[V]:
    """The k greatest values, or smallest, best first; fewer where there are fewer.

    algebraic · invertible, as all values are kept · state O(n) · O(log n) a row, O(k) to show

    >>> top_k(2)([3, 9, 4, 9]), top_k(2, smallest=True)([3, 9, 4])
    ((9, 9), (3, 4))
    """
    if type(k) is not int or k < 1:
        raise AlgebraError(
            f"top_k({k!r}): how many must be an int of at least 1", remedy="top_k(3, of)"
        )
    named = {"smallest": True} if smallest else {}
    return _sorted((top_k, arguments(k, of), named), of, partial(_best, k, smallest), "algebraic")


# ---- positions ----


def value_at(q: Fraction, discrete: bool, tree: Tree[Any], digits: Digits = PLAIN) -> Any:
    """The value at a fraction `q` of the way from the smallest to the greatest, with these digits
    where they are Decimals and it may lie between two of them.

    >>> value_at(Fraction(1, 2), False, Tree.of([1, 3, 4]))
    3
    """
    size = tree.size
    if not size:
        return None
    if discrete:
        return tree.at(math.ceil(q * size) - 1 if q else 0)
    place = q * (size - 1)
    low = int(place)
    below = tree.at(low)
    above = below if place == low else tree.at(low + 1)
    return between(below, above, place - low, digits)


def between(low: Any, high: Any, part: Fraction, digits: Digits = PLAIN) -> Any:
    """The point that lies `part` of the way from `low` to `high`, rounded once; of Decimals, to
    these digits.

    >>> between(1, 2, Fraction(1, 2)), between(Decimal(1), Decimal(2), Fraction(1, 4))
    (1.5, Decimal('1.25'))
    """
    if low is high or low == high:
        return low if digits is PLAIN else decimals.fitting(digits)(low)
    if isinstance(low, timedelta) and isinstance(high, timedelta):
        start, end = low // MICROSECOND, high // MICROSECOND
        return span(start + (end - start) * part)
    if isinstance(low, _NUMBERS) and isinstance(high, _NUMBERS):
        return _between_numbers(low, high, part, digits)
    try:
        return low + (high - low) * float(part)
    except TypeError as error:
        raise AlgebraError(
            f"there is nothing between {value_text(low)} and {value_text(high)}",
            remedy=_DISCRETE,
        ) from cause_of(error)


_NUMBERS = (int, float, Fraction, Decimal)
_DISCRETE = "quantile(q, discrete=True), which gives a value that is there"


def _between_numbers(low: Any, high: Any, part: Fraction, digits: Digits) -> Any:
    types = {cls for x in (low, high) for cls in _NUMBERS if isinstance(x, cls)}
    odd = [x for x in (low, high) if is_nan(x) or x in (math.inf, -math.inf)]
    if odd:
        found = float(odd[0]) if len(odd) == 1 else math.nan
        return Decimal(found) if Decimal in types else found
    if Decimal in types:
        if types & {float, Fraction}:
            raise AlgebraError(
                f"there is nothing between {value_text(low)} and {value_text(high)}: "
                "Decimal does not mix with it",
                remedy="numbers of one type, as for Python's own +, or " + _DISCRETE,
            )
        return decimals.of_fraction(_point(low, high, part), digits)
    point = _point(low, high, part)
    if Fraction in types and float not in types:
        return point
    found = rounded(point.numerator, point.denominator)
    if math.isfinite(found):
        return found
    if point.denominator == 1:
        return point.numerator
    raise AlgebraError(
        "the point between two ints is too large for a float",
        remedy="Fractions, which have no largest, or " + _DISCRETE,
    )


def _point(low: Any, high: Any, part: Fraction) -> Fraction:
    return Fraction(low) + (Fraction(high) - Fraction(low)) * part


def fraction(q: Any) -> Fraction:
    """A quantile as it was written: 0.1 is one tenth.

    >>> fraction(0.1)
    Fraction(1, 10)
    """
    if not isinstance(q, (int, float, Fraction, Decimal)) or not 0 <= q <= 1:
        raise AlgebraError(f"{q!r} is no quantile", remedy="a number from 0 to 1")
    return Fraction(str(q)) if isinstance(q, float) else Fraction(q)


@checked
def median(of: Key[V] | None = None, *, digits: Digits = None) -> Reducer[V]:
    """The value in the middle, or half-way between the two there. A program sets the `digits` of a
    median of Decimals, by their type.

    holistic · invertible, as all values are kept · state O(n) · O(log n) a row

    >>> median()([5, 1, 3]), median()([1, 2])
    (3, 1.5)
    """
    named = {} if digits is None else {"digits": digits}
    found = partial(value_at, Fraction(1, 2), False, digits=digits)
    return _sorted((median, arguments(of), named), of, found, "holistic")


@checked
def quantile(
    q: float, of: Key[V] | None = None, *, discrete: bool = False, digits: Digits = None
) -> Reducer[V]:
    """The value at a fraction `q` of the way up, interpolated; with `discrete=True`, the first one
    that has at least this fraction at or below it. (SQL's percentile_cont and percentile_disc.) A
    program sets the `digits` of a quantile of Decimals, by their type.

    holistic · invertible, as all values are kept · state O(n) · O(log n) a row

    >>> quantile(0.25)([1, 2, 3, 4]), quantile(0.25, discrete=True)([1, 2, 3, 4])
    (1.75, 1)
    """
    named: dict[str, Any] = {"discrete": True} if discrete else {}
    named |= {} if digits is None else {"digits": digits}
    found = partial(value_at, fraction(q), discrete, digits=digits)
    return _sorted((quantile, arguments(q, of), named), of, found, "holistic")


def _rank(value: Any, tree: Tree[Any]) -> int:
    return 1 + tree.rank(value)


@checked
def rank(value: Any, of: Key[V] | None = None) -> Reducer[V]:
    """The place that `value` has, or would have, among the values: 1 if none is smaller.

    holistic · invertible, as all values are kept · state O(n) · O(log n) a row

    >>> rank(30)([10, 30, 20, 30]), rank(5)([])
    (3, 1)
    """
    return _sorted((rank, (value, *arguments(of))), of, partial(_rank, one_nan(value)), "holistic")
