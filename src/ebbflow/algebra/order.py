"""Versions: what may come before what, and how to take out what was counted twice.

Data changes over rounds, epochs, or both at once, so a *version* is not always a number: it is an
element of a partial order. All that is asked of the order is that every version has finitely many
versions below it (it is *locally finite*): then whatever is known at a version is a finite sum of
the differences at the versions below.

Turning values back into differences needs one integer for each pair of versions, the *Möbius
coefficient* μ(a, b):

    μ(b, b) = 1        μ(a, b) = -Σ μ(a, r) over a <= r < b        μ(a, b) = 0 unless a <= b

Over the naturals μ(n, n) = 1, μ(n - 1, n) = -1, and all others are 0: the difference of neighbours.
Over pairs of naturals they are ±1 at the four corners of a square. A *row* is the coefficients that
are not zero, and `ebbflow.algebra.mobius` computes with rows alone.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ebbflow.algebra.value import Built, Recipe, function_name
from ebbflow.errors import AlgebraError, Text, place, value_text

T = TypeVar("T")
Row = tuple[tuple[T, int], ...]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Order(Built, Generic[T]):
    """A locally finite partial order, given by `leq(a, b)` and `below(t)`.

    `below(t)` lists every version at or below `t`, smaller ones first, so `t` itself comes last.
    Numbers ordered by divisibility, whose coefficients are the ones of number theory:

    >>> divides = lambda a, b: b % a == 0
    >>> divisors = lambda n: (d for d in range(1, n + 1) if n % d == 0)
    >>> DIVISORS = Order(divides, divisors, math.lcm, name="DIVISORS")
    >>> [DIVISORS.mobius(1, n) for n in range(1, 11)]
    [1, -1, -1, 0, -1, 1, -1, 0, 0, 1]
    >>> DIVISORS.row(12)
    ((2, 1), (4, -1), (6, -1), (12, 1))

    More can be given; each is a promise about the same order:

    - `join`: the least upper bound of two versions, or None where there is none;
    - `mobius`, `row`: closed forms of the methods of that name;
    - `sparse`: rows are short, so totals are best found from the totals just below;
    - `contains`: whether a value is a version at all;
    - `limit`: how many versions `below` may list before it is taken to be endless;
    - `elements`: what a check draws versions from.
    """

    leq: Callable[[T, T], bool]
    sparse: bool
    limit: int | None
    elements: Any
    created: Text | None
    _below: Callable[[T], Iterable[T]]
    _join: Callable[[T, T], T | None] | None
    _mobius: Callable[[T, T], int] | None
    _row: Callable[[T], Row[T]] | None
    _contains: Callable[[Any], bool] | None
    _rows: dict[T, Row[T]]

    def __init__(
        self,
        leq: Callable[[T, T], bool],
        below: Callable[[T], Iterable[T]],
        join: Callable[[T, T], T | None] | None = None,
        *,
        name: str = "",
        mobius: Callable[[T, T], int] | None = None,
        row: Callable[[T], Row[T]] | None = None,
        sparse: bool = False,
        contains: Callable[[Any], bool] | None = None,
        limit: int | None = 1_000_000,
        elements: Any = None,
        built: Recipe | None = None,
        home: str = "",
    ) -> None:
        vars(self).update(
            leq=leq, name=name, home=home, sparse=sparse, limit=limit, elements=elements,
            built=built, created=None if home else place(), _below=below, _join=join,
            _mobius=mobius, _row=row, _contains=contains, _rows={},
        )  # fmt: skip

    def __contains__(self, t: object) -> bool:
        """Whether `t` is a version; an order made without `contains` takes your word for it."""
        return self._contains is None or self._contains(t)

    def below(self, t: T) -> Iterable[T]:
        """Every version at or below `t`, smaller ones first, one by one as they are asked for.

        >>> list(order_product(NATURALS, NATURALS).below((1, 1)))
        [(0, 0), (0, 1), (1, 0), (1, 1)]
        """
        self.require(t)
        found = self._below(t)
        return found if self.limit is None else self._counted(t, found, self.limit)

    def join(self, a: T, b: T) -> T | None:
        """The smallest version above both, or None where there is none or none is known.

        >>> order_product(NATURALS, NATURALS).join((0, 5), (3, 1))
        (3, 5)
        """
        if self._join is not None:
            return self._join(a, b)
        return b if self.leq(a, b) else a if self.leq(b, a) else None

    def mobius(self, a: T, b: T) -> int:
        """How often the value at `a` counts in the change at `b`: `mobius_by_recursion`, but fast.

        >>> NATURALS.mobius(4, 5), POWERSETS.mobius(frozenset(), frozenset("ab"))
        (-1, 1)
        """
        self.require(a)
        self.require(b)
        return self._mobius(a, b) if self._mobius is not None else dict(self.row(b)).get(a, 0)

    def row(self, t: T) -> Row[T]:
        """The pairs `(a, μ(a, t))` that are not zero, smaller versions first, so `(t, 1)` is last.

        >>> order_product(NATURALS, NATURALS).row((3, 7))
        (((2, 6), 1), ((2, 7), -1), ((3, 6), -1), ((3, 7), 1))
        """
        self.require(t)
        if self._row is not None:
            return self._row(t)
        if self._mobius is not None:
            return tuple((a, mu) for a in self.below(t) if (mu := self._mobius(a, t)))
        if t not in self._rows:
            self._rows[t] = self._going_down(t)
        return self._rows[t]

    def require(self, t: object) -> None:
        """Refuse what is not a version.

        >>> NATURALS.require(-1)
        Traceback (most recent call last):
        ebbflow.errors.AlgebraError: -1 is not a version of NATURALS
        """
        if self._contains is not None and not self._contains(t):
            raise AlgebraError(f"{value_text(t)} is not a version of {self!r}")

    def _going_down(self, t: T) -> Row[T]:
        """The recursion read from the other end: μ(a, t) = -Σ μ(r, t) over a < r <= t.

        Only coefficients that are not zero are added up, so a chain costs two per version.
        """
        versions = list(self.below(t))
        if versions[-1:] != [t] or len(set(versions)) < len(versions):
            raise AlgebraError(
                f"below({value_text(t)}) must list every version once, smaller ones first, and "
                "itself last",
                listed=versions,
                created=self.created,
            )
        leq, found = self.leq, {t: 1}
        for a in reversed(versions[:-1]):
            mu = -sum(coefficient for r, coefficient in found.items() if leq(a, r))
            if mu:
                found[a] = mu
        return tuple(reversed(found.items()))

    def _counted(self, t: T, found: Iterable[T], limit: int) -> Iterator[T]:
        for number, version in enumerate(found):
            if number >= limit:
                raise AlgebraError(
                    f"below({value_text(t)}) gives more than {limit:,}: is the order locally "
                    "finite?",
                    created=self.created,
                    remedy="order pairs by order_product, not lexicographically; or raise limit=",
                )
            yield version

    def _described(self) -> str:
        functions = filter(None, (self.leq, self._below, self._join))
        return f"Order({', '.join(map(function_name, functions))})"

    def _essence(self) -> Any:
        return self.name, self.leq, self._below, self._join

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_rows": {}}


def mobius_by_recursion(order: Order[T], a: T, b: T) -> int:
    """μ(a, b) by its definition, for any order: what every closed form must equal.

    >>> mobius_by_recursion(order_product(NATURALS, NATURALS), (2, 6), (3, 7))
    1
    """
    leq = order.leq
    if not leq(a, b):
        return 0
    found = {a: 1}
    for r in order.below(b):
        if r != a and leq(a, r):
            mu = -sum(coefficient for q, coefficient in found.items() if leq(q, r))
            if mu:
                found[r] = mu
    return found.get(b, 0)


# ---- the orders of everyday versions ----


def _subsets(s: frozenset[Any]) -> Iterator[frozenset[Any]]:
    return (frozenset(some) for n in range(len(s) + 1) for some in itertools.combinations(s, n))


NATURALS: Order[int] = Order(
    operator.le,
    lambda n: range(n + 1),
    max,
    name="NATURALS",
    home=__name__,
    row=lambda n: ((n - 1, -1), (n, 1)) if n else ((0, 1),),
    sparse=True,
    contains=lambda n: isinstance(n, int) and n >= 0,
    limit=None,
)
POWERSETS: Order[frozenset[Any]] = Order(
    operator.le,
    _subsets,
    operator.or_,
    name="POWERSETS",
    home=__name__,
    mobius=lambda a, b: (-1) ** len(b - a) if a <= b else 0,
    contains=lambda s: isinstance(s, frozenset),
    limit=None,
)


def _all_leq(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(map(operator.le, a, b))


def _each_join(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(max, a, b))


def order_product(*orders: Order[Any]) -> Order[tuple[Any, ...]]:
    """Tuples of versions, compared position by position: (epoch, round), (epoch, round, round), ...

    Coefficients multiply: μ((a, b), (c, d)) = μ(a, c) · μ(b, d).

    >>> nested = order_product(NATURALS, order_product(NATURALS, POWERSETS))
    >>> nested.mobius((1, (4, frozenset("a"))), (2, (4, frozenset("ab"))))
    1
    >>> nested
    order_product(NATURALS, order_product(NATURALS, POWERSETS))
    """

    def leq(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
        return all(order.leq(x, y) for order, x, y in zip(orders, a, b, strict=True))

    def below(t: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
        return itertools.product(*(order.below(x) for order, x in zip(orders, t, strict=True)))

    def join(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...] | None:
        joins = tuple(order.join(x, y) for order, x, y in zip(orders, a, b, strict=True))
        return None if None in joins else joins

    own: tuple[Any, Any] = leq, join
    if all(order is NATURALS for order in orders):  # an engine compares rounds for every row
        own = (operator.le, max) if len(orders) == 1 else (_all_leq, _each_join)

    def mobius(a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
        return math.prod(order.mobius(x, y) for order, x, y in zip(orders, a, b, strict=True))

    def row(t: tuple[Any, ...]) -> Row[tuple[Any, ...]]:
        corners: list[tuple[tuple[Any, ...], int]] = [((), 1)]
        for own in [order.row(x) for order, x in zip(orders, t, strict=True)]:
            corners = [((*v, w), mu * nu) for v, mu in corners for w, nu in own]
        return tuple(corners)

    def contains(t: Any) -> bool:
        fits = isinstance(t, tuple) and len(t) == len(orders)
        return fits and all(x in order for order, x in zip(orders, t, strict=True))

    return Order(
        own[0], below, own[1], mobius=mobius, row=row, contains=contains, limit=None,
        sparse=all(order.sparse for order in orders), built=(order_product, orders),
    )  # fmt: skip
