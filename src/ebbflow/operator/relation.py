"""Relational operators: bags in, bags out, and one Z-set per step as the change.

A bag is a Z-set of positive weights: rows, each with how often it is there. Operators on one bag
read changes of `BAG`. Operators on two read changes of `pair(BAG, BAG)`, so that one side, the
other, or both can change in a step.

- `select`, `map_rows`, `project`, `flat_map_rows`, `union`, `count` are *linear*: what they do to a
  change does not depend on what is there. They have no state.
- `join` and `product` are linear in each side alone, `semi` in one of them (module `joins`).
- `distinct` and `difference` are neither (module `weights`), and `aggregate` and `group_aggregate`
  merge rows into values (module `aggregate`).

The work of a step follows the change, never what else is there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.chain import Chain, RowStep, gather
from ebbflow.change import BAG, NATURAL, Both, First, Second, pair
from ebbflow.errors import CompositionError, place
from ebbflow.fn import Fn
from ebbflow.operator.operator import Operator
from ebbflow.zset import ZSet, trusted

Bag = ZSet[Any]
NOTHING: Bag = ZSet()
TWO_BAGS = pair(BAG, BAG)


# ---- linear: no state ----


class RowChain(Operator[Bag, Bag, Bag, Bag]):
    """Steps on one row at a time, in one generated loop.

    >>> from ebbflow.chain import RowStep
    >>> shout = RowChain(Chain([RowStep("filter", Fn(str.isalpha)), RowStep("map", Fn(str.upper))]))
    >>> shout.open(ZSet.of("a1")).send(ZSet({"b": 1, "a": -1, "1": 1}))
    ZSet({'B': 1, 'A': -1})
    """

    input = BAG
    output = BAG

    def __init__(self, chain: Chain, shown: str = "", parts: Iterable[str] = ()) -> None:
        self.chain, self.shown, self.parts = chain, shown, tuple(parts)
        self.created = place()

    @cached_property
    def update(self) -> Callable[..., dict[Any, int]]:
        """The loop from a change to what the steps make of it."""
        return gather([self.chain])

    def f(self, x: Bag) -> Bag:
        return ZSet([(new, count) for row, count in x.items() for new in self.chain.rows(row)])

    def init(self, x: Bag) -> None:
        return None

    def step(self, state: Any, change: Bag) -> tuple[Any, Bag]:
        return None, trusted(self.update(change)) if self.chain.steps else change

    def __identity__(self) -> Any:
        return self.chain

    def __repr__(self) -> str:
        return self.shown or f"RowChain({self.chain!r})"


def _one_step(verb: str, function: Callable[[Any], Any], shown: str) -> RowChain:
    return RowChain(Chain([RowStep(verb, Fn(function))]), shown)


def select(predicate: Callable[[Any], object]) -> Operator[Bag, Bag, Bag, Bag]:
    """The rows for which `predicate(row)` is true.

    >>> select(str.isupper).open(ZSet.of("aBc")).send(ZSet({"B": -1, "D": 1, "e": 1}))
    ZSet({'B': -1, 'D': 1})
    """
    return _one_step("filter", predicate, f"select({function_name(predicate)})")


def map_rows(f: Callable[[Any], Hashable]) -> Operator[Bag, Bag, Bag, Bag]:
    """Every row replaced by `f(row)`; rows that become equal add up.

    >>> map_rows(str.lower).open(ZSet.of("aB")).send(ZSet({"B": -1, "b": 1, "C": 1}))
    ZSet({'c': 1})
    """
    return _one_step("map", f, f"map_rows({function_name(f)})")


def project(*fields: int | str) -> Operator[Bag, Bag, Bag, Bag]:
    """Some fields of every row, by position or by name; one field alone is not put in a tuple.

    >>> swapped = project(1, 0)
    >>> swapped.open(ZSet.of([("a", 1)])).send(ZSet({("b", 2): 1}))
    ZSet({(2, 'b'): 1})
    """
    return _one_step("map", _getter(fields), f"project({', '.join(map(repr, fields))})")


def _getter(fields: tuple[Any, ...]) -> Callable[[Any], Any]:
    if fields and all(type(field) is int for field in fields):
        return itemgetter(*fields)
    if fields and all(type(field) is str for field in fields):
        return attrgetter(*fields)
    raise CompositionError(
        "project(): give positions or names of fields, and at least one",
        fields=fields,
        created=place(),
        remedy='project(0, 2), project("city"), or map_rows(f) for anything else',
    )


def flat_map_rows(f: Callable[[Any], Iterable[Hashable]]) -> Operator[Bag, Bag, Bag, Bag]:
    """Every row replaced by all of `f(row)`.

    >>> flat_map_rows(str.split).open(ZSet()).send(ZSet({"to be": 1, "or not to be": 1}))
    ZSet({'to': 2, 'be': 2, 'or': 1, 'not': 1})
    """
    return _one_step("flat_map", f, f"flat_map_rows({function_name(f)})")


class Count(Operator[Bag, Bag, int, int]):
    """How many rows there are; see `count`."""

    input = BAG
    output = NATURAL

    def f(self, x: Bag) -> int:
        return sum(x.weight(row) for row in x)

    def init(self, x: Bag) -> None:
        return None

    def step(self, state: Any, change: Bag) -> tuple[Any, int]:
        return None, sum(weight for _, weight in change.items())

    def __repr__(self) -> str:
        return "count()"


def count() -> Operator[Bag, Bag, int, int]:
    """How many rows there are, each counted as often as it is there.

    >>> count().open(ZSet.of("abc")).send(ZSet({"a": 2, "b": -1}))
    1
    """
    return Count()


class Union(Operator[tuple[Bag, Bag], Any, Bag, Bag]):
    """The rows of both; see `union`."""

    input = TWO_BAGS
    output = BAG

    def f(self, x: tuple[Bag, Bag]) -> Bag:
        return ZSet([*x[0].items(), *x[1].items()])

    def init(self, x: tuple[Bag, Bag]) -> None:
        return None

    def step(self, state: Any, change: Any) -> tuple[Any, Bag]:
        left, right = sides(change)
        return None, left + right

    def __repr__(self) -> str:
        return "union()"


def union() -> Operator[tuple[Bag, Bag], Any, Bag, Bag]:
    """The rows of both bags, each as often as it is in the two together. (UNION ALL.)

    >>> union().open((ZSet.of("ab"), ZSet.of("b"))).send(Both(ZSet({"a": -1}), ZSet({"b": 1})))
    ZSet({'a': -1, 'b': 1})
    """
    return Union()


def sides(change: Any) -> tuple[Bag, Bag]:
    """What a change of a pair does to either side."""
    if type(change) is Both:
        return change.first, change.second
    if type(change) is First:
        return change.change, NOTHING
    if type(change) is Second:
        return NOTHING, change.change
    raise TWO_BAGS.stranger(change)
