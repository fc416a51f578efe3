"""The reducers everybody needs: counts, sums, means, sets, and truth values.

Each takes what to look at: a field name, a function of the row, or nothing, which is the row
itself. `sum("price")`, `sum(lambda order: order.price)`, `sum()`.

**None** is treated as SQL treats NULL: a row whose value is None is skipped, and the sum, mean,
minimum, ... of nothing is None. `count()` counts rows, `count("price")` those with a price. What is
a collection (`collect`, `set_of`, `histogram`, ...) is empty of nothing, not None.

**NaN** equals itself here, and is greater than every other number; so it is inside tuples. A
signaling NaN is refused.

Each docstring says what a reducer costs: its class of aggregates, its verdict (see
`ebbflow.laws`), how large an accumulator gets for n rows, and what a row costs that comes or goes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ebbflow.decimals import Digits
from ebbflow.keywords import checked
from ebbflow.nan import one_nan
from ebbflow.reducer import exact
from ebbflow.reducer.hashed import Map, tally, tally_all
from ebbflow.reducer.inline import Inline, called, gathered
from ebbflow.reducer.reducer import Reducer, counted
from ebbflow.reducer.row import Key, getter
from ebbflow.typevars import V

AnyReducer = Reducer[Any, Any, Any]
Repeat = Callable[[Any, Any, int], Any]

TOTAL = "({1} if type({1}) is int and {0} else {shown}({packed}({0}, {1})))"
"""The result of a sum, of the count and the total that its slots are."""
_SHOWN = "{shown}({packed}({0}, {1}))"
NUMBERS = (0, 1, -1, 2, 7, 0.1, 0.2, -0.5, 1e16, 1e-300, 1e308, math.inf, -math.inf, None)
SMALL = (0, 1, 2, 3, 5, None)


def present(repeat: Repeat, of: Key | None) -> Repeat:
    """`repeat` on a part of a row, where that part is not None.

    >>> present(lambda total, x, n: total + x * n, len)(1, "abc", 2)
    7
    """
    part = getter(of)

    def step(acc: Any, row: Any, count: int) -> Any:
        x = part(row)
        return acc if x is None else repeat(acc, x, count)

    def step_on_row(acc: Any, row: Any, count: int) -> Any:
        return acc if row is None else repeat(acc, row, count)

    return step_on_row if of is None else step


def ready(
    made: Any, init: Any, repeat: Repeat, of: Key | None, result: Any = None, **facts: Any
) -> AnyReducer:
    """A reducer of the library: None skipped, never partial, pickled as the call that made it.

    >>> ready((count, ()), 0, lambda n, x, times: n + times, None)([1, None, 2])
    2
    """
    made_by, given, *named = made
    facts = {"elements": SMALL, "cost": "O(1)", "size": "O(1)", "partial": False, **facts}
    if of is not None:
        facts["elements"] = None
    return counted(
        init, present(repeat, of), result, made=(made_by, given, *(named or [{}])), **facts
    )  # fmt: skip


def arguments(*given: Any) -> tuple[Any, ...]:
    """As they were written: what was left out at the end is left out.

    >>> arguments(3, None)
    (3,)
    """
    while given and given[-1] is None:
        given = given[:-1]
    return given


# ---- counting and adding ----


def _more(n: int, _: Any, count: int) -> int:
    return n + count


def _add(a: Any, b: Any) -> Any:
    return a + b


def _counting(of: Key | None) -> Inline:
    if of is None:
        return Inline(None, (), (), "{size}", (), lambda size, _: size, lambda _: (), sql="count")
    return Inline(
        of, (0,), ("if {x} is not None: {0} += {n}",), "{0}", merge=("{0} += {m0}",), sql="count"
    )


def _adding(of: Key | None, result: str, shown: Callable[..., Any]) -> Inline:
    """Ints beside ints are added here; `exact` knows what else there is."""
    return Inline(
        of,
        (0, 0),
        (
            "if type({x}) is int and type({1}) is int: {0} += {n}; {1} += {x} * {n}",
            "elif {x} is not None: {0}, {1} = {plus}({0}, {1}, {x}, {n})",
        ),
        result,
        (
            ("plus", exact.spread_plus),
            ("joined", exact.spread_merged),
            ("shown", shown),
            ("packed", exact.packed),
        ),
        lambda size, slots: exact.packed(*slots),
        exact.spread,
        (
            "if type({1}) is int and type({m1}) is int: {0} += {m0}; {1} += {m1}",
            "else: {0}, {1} = {joined}({0}, {1}, {m0}, {m1})",
        ),
        sql="sum",
        stored=exact.stored,
        restored=exact.restored,
    )


@checked
def count(of: Key[V] | None = None) -> Reducer[V]:
    """How many rows there are; with `of`, how many whose value is not None.

    distributive · invertible · state O(1) · O(1) a row

    >>> count()([3, None, 5]), count(lambda row: row)([3, None, 5])
    (3, 2)
    """
    return counted(
        0, _more if of is None else present(_more, of), None, merge=_add, partial=False,
        aggregate="distributive", cost="O(1)", size="O(1)", made=(count, arguments(of), {}),
        elements=SMALL if of is None else None, inline=_counting(of),
    )  # fmt: skip


@checked
def sum(of: Key[V] | None = None, *, digits: Digits = None) -> Reducer[V]:
    """The sum, exact for ints, floats, Decimals, Fractions and timedeltas; see
    `ebbflow.reducer.exact`. A program sets the `digits` of a sum of Decimals, by their type.

    distributive · invertible · state O(1) · O(1) a row

    >>> sum()([0.1] * 10), sum()([1e16, 1.0, -1e16]), sum()([None])
    (1.0, 1.0, None)
    >>> sum("price")
    sum('price')
    """
    shown = exact.value if digits is None else partial(exact.decimal_value, digits)
    text = TOTAL if digits is None else _SHOWN
    return ready(
        (sum, arguments(of), _named(digits)), exact.NOTHING, exact.plus, of, shown,
        merge=exact.merged, aggregate="distributive", elements=NUMBERS,
        inline=_adding(of, text, shown),
    )  # fmt: skip


def _named(digits: Digits) -> dict[str, Any]:
    return {} if digits is None else {"digits": digits}


@checked
def mean(of: Key[V] | None = None, *, digits: Digits = None) -> Reducer[V]:
    """The mean: the exact sum by the count, rounded once. A program sets the `digits` of a mean of
    Decimals, by their type.

    algebraic · invertible · state O(1) · O(1) a row

    >>> mean()([1, 2, 6]), mean()([])
    (3.0, None)
    """
    shown = exact.average if digits is None else partial(exact.decimal_average, digits)
    return ready(
        (mean, arguments(of), _named(digits)), exact.NOTHING, exact.plus, of, shown,
        merge=exact.merged, aggregate="algebraic", elements=NUMBERS,
        inline=_adding(of, _SHOWN, shown),
    )  # fmt: skip


def _naive(acc: Any, x: Any, count: int) -> Any:
    size, total = acc
    for _ in range(abs(count)):
        total = total + x if count > 0 else total - x
    return size + count, total


def _both_added(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1]


def shown_if_any(acc: Any) -> Any:
    """The second of a count and a value, if the count is not zero.

    >>> shown_if_any((2, 7)), shown_if_any((0, 7))
    (7, None)
    """
    return acc[1] if acc[0] else None


@checked
def naive_sum(of: Key[V] | None = None) -> Reducer[V]:
    """The sum by `+` and `-` alone: fast, and right only for numbers that do not round.

    distributive · refuted for floats, whose sums drift · state O(1) · O(1) a row

    >>> naive_sum()([0.1] * 10)
    0.9999999999999999
    >>> drifted = naive_sum()
    >>> drifted.finish(drifted.remove(drifted.fold([1e16, 1.0]), 1e16))
    0.0
    """
    return ready(
        (naive_sum, arguments(of)), (0, 0), _naive, of, shown_if_any,
        merge=_both_added, aggregate="distributive", elements=(0.1, 0.2, 1e16, 1, 2),
    )  # fmt: skip


# ---- sets and counts of values ----


def _tally(counts: Map[Any, int], x: Any, count: int) -> Map[Any, int]:
    return tally(counts, one_nan(x), count)


def tally_merge(a: Map[Any, int], b: Map[Any, int]) -> Map[Any, int]:
    """Two counts as one.

    >>> tally_merge(Map({"a": 1}), Map({"a": 2}))
    Map({'a': 3})
    """
    large, small = (a, b) if len(a) >= len(b) else (b, a)
    for x, n in small.items():
        large = tally(large, x, n)
    return large


def _tallied(pairs: Iterable[tuple[tuple[Any], int]]) -> Map[Any, int]:
    return Map({x: times for (x,), times in pairs})


def _counts(made: Any, of: Key | None, result: Any) -> AnyReducer:
    """A reducer whose state is how often each value is there."""
    return ready(
        made, Map(), _tally, of, result, merge=tally_merge, aggregate="holistic", size="O(n)",
        cost="O(log n)", inline=gathered(of, Map(), tally_all, result, _tallied),
    )  # fmt: skip


@checked
def count_distinct(of: Key[V] | None = None) -> Reducer[V]:
    """How many different values there are.

    holistic · invertible · state O(different values) · O(log n) a row

    >>> count_distinct()("banana")
    3
    """
    return _counts((count_distinct, arguments(of)), of, len)


@checked
def histogram(of: Key[V] | None = None) -> Reducer[V]:
    """How often each value is there, as a mapping that can be a row itself.

    holistic · invertible · state O(different values) · O(log n) a row

    >>> histogram()("banana")
    Map({'a': 3, 'b': 1, 'n': 2})
    """
    return _counts((histogram, arguments(of)), of, None)


@checked
def set_of(of: Key[V] | None = None) -> Reducer[V]:
    """The different values, as a frozenset.

    holistic · invertible · state O(different values) · O(log n) a row, O(n) to show

    >>> sorted(set_of()("banana"))
    ['a', 'b', 'n']
    """
    return _counts((set_of, arguments(of)), of, frozenset)


# ---- truth values and bits ----


def _votes(acc: tuple[int, int], x: Any, count: int) -> tuple[int, int]:
    return (acc[0] + count, acc[1]) if x else (acc[0], acc[1] + count)


def _all(acc: tuple[int, int]) -> bool | None:
    return not acc[1] if acc[0] or acc[1] else None


def _any(acc: tuple[int, int]) -> bool | None:
    return acc[0] > 0 if acc[0] or acc[1] else None


def _voting(made: Any, of: Key | None, result: Any) -> AnyReducer:
    """A reducer whose state is how many values are true, and how many are not."""
    step = "if {x} is not None: {0}, {1} = ({0} + {n}, {1}) if {x} else ({0}, {1} + {n})"
    inline = Inline(
        of, (0, 0), (step,), "{shown}(({0}, {1}))", (("shown", result),),
        lambda size, slots: slots, tuple, ("{0} += {m0}; {1} += {m1}",),
    )  # fmt: skip
    return ready(
        made, (0, 0), _votes, of, result, merge=_both_added, aggregate="algebraic",
        elements=(True, False, None), inline=inline,
    )  # fmt: skip


@checked
def bool_and(of: Key[V] | None = None) -> Reducer[V]:
    """Whether every value is true; None of nothing.

    algebraic · invertible · state O(1) · O(1) a row

    >>> bool_and()([True, None, True]), bool_and()([True, False]), bool_and()([])
    (True, False, None)
    """
    return _voting((bool_and, arguments(of)), of, _all)


@checked
def bool_or(of: Key[V] | None = None) -> Reducer[V]:
    """Whether any value is true; None of nothing.

    algebraic · invertible · state O(1) · O(1) a row

    >>> bool_or()([False, True]), bool_or()([False]), bool_or()([None])
    (True, False, None)
    """
    return _voting((bool_or, arguments(of)), of, _any)


def _xor(acc: tuple[int, int], x: int, count: int) -> tuple[int, int]:
    return acc[0] + count, acc[1] ^ x if count % 2 else acc[1]


def _xor_merge(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return a[0] + b[0], a[1] ^ b[1]


_XOR = struct.Struct("<qq")


def _xor_stored(slots: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return (_XOR.pack(*slots[0]),)
    except struct.error:  # more than 64 bits
        return slots


def _xor_restored(stored: tuple[Any, ...]) -> tuple[Any, ...]:
    return (_XOR.unpack(stored[0]),) if type(stored[0]) is bytes else stored


@checked
def bit_xor(of: Key[V] | None = None) -> Reducer[V]:
    """All ints combined by exclusive or, each its own inverse; None of nothing.

    distributive · invertible · state O(1) · O(1) a row

    >>> bit_xor()([5, 3]), bit_xor()([5, 3, 3])
    (6, 5)
    """
    return ready(
        (bit_xor, arguments(of)), (0, 0), _xor, of, shown_if_any,
        merge=_xor_merge, aggregate="distributive", elements=(0, 1, 2, 3, 7, 255, None),
        inline=called(of, (0, 0), _xor, _xor_merge, shown_if_any)._replace(
            stored=_xor_stored, restored=_xor_restored
        ),
    )  # fmt: skip
