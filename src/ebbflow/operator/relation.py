"""Relational operators: bags in, bags out, and one Z-set per step as the change.

A bag is a Z-set of positive weights: rows, each with how often it is there. Operators on one bag
read changes of `BAG`. Operators on two read changes of `pair(BAG, BAG)`, so that one side, the
other, or both can change in a step.

- `select`, `map_rows`, `project`, `flat_map_rows`, `union`, `count` are *linear*: what they do to a
  change does not depend on what is there. They have no state.
- `join` and `product` are linear in each side alone. With an index of both sides, where `l` and `r`
  are the changes and `L` is taken after its change and `R` before its own,

      change of L ⋈ R  ==  l ⋈ R + L ⋈ r

  Using the old `L`, or the new `R`, forgets or doubles what the two changes make together.
- `distinct` and `difference` are neither (module `weights`), and `aggregate` and `group_aggregate`
  merge rows into values (module `aggregate`).

The work of a step follows the change and the rows that it meets, never what else is there. A keyed
operator says by `keys(change)` which keys of its state a step will touch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from operator import attrgetter, itemgetter
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.change import BAG, NATURAL, Both, First, Second, pair
from ebbflow.errors import CompositionError, place
from ebbflow.operator.operator import Operator
from ebbflow.state.index import Index
from ebbflow.zset import ZSet, trusted, without_zeros

Bag = ZSet[Any]
NOTHING: Bag = ZSet()
TWO_BAGS = pair(BAG, BAG)


# ---- linear: no state ----


class RowByRow(Operator[Bag, Bag, Bag, Bag]):
    """An operator that looks at one row at a time, through one function."""

    input = BAG
    output = BAG
    verb: str

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.created = place()

    def init(self, x: Bag) -> None:
        return None

    def __repr__(self) -> str:
        return f"{self.verb}({function_name(self.function)})"


class Select(RowByRow):
    """The rows that fulfil a condition; see `select`."""

    verb = "select"

    def f(self, x: Bag) -> Bag:
        return ZSet([(row, count) for row, count in x.items() if self.function(row)])

    def step(self, state: Any, change: Bag) -> tuple[Any, Bag]:
        return None, change.filter(self.function)


def select(predicate: Callable[[Any], object]) -> Operator[Bag, Bag, Bag, Bag]:
    """The rows for which `predicate(row)` is true.

    >>> select(str.isupper).open(ZSet.of("aBc")).send(ZSet({"B": -1, "D": 1, "e": 1}))
    ZSet({'B': -1, 'D': 1})
    """
    return Select(predicate)


class MapRows(RowByRow):
    """Every row through a function; see `map_rows`."""

    verb = "map_rows"

    def f(self, x: Bag) -> Bag:
        return ZSet([(self.function(row), count) for row, count in x.items()])

    def step(self, state: Any, change: Bag) -> tuple[Any, Bag]:
        return None, change.map(self.function)


def map_rows(f: Callable[[Any], Hashable]) -> Operator[Bag, Bag, Bag, Bag]:
    """Every row replaced by `f(row)`; rows that become equal add up.

    >>> map_rows(str.lower).open(ZSet.of("aB")).send(ZSet({"B": -1, "b": 1, "C": 1}))
    ZSet({'c': 1})
    """
    return MapRows(f)


class Project(MapRows):
    """Some fields of every row; see `project`."""

    def __init__(self, fields: tuple[Any, ...]) -> None:
        super().__init__(_getter(fields))
        self.fields = fields

    def __repr__(self) -> str:
        return f"project({', '.join(map(repr, self.fields))})"


def project(*fields: int | str) -> Operator[Bag, Bag, Bag, Bag]:
    """Some fields of every row, by position or by name; one field alone is not put in a tuple.

    >>> swapped = project(1, 0)
    >>> swapped.open(ZSet.of([("a", 1)])).send(ZSet({("b", 2): 1}))
    ZSet({(2, 'b'): 1})
    """
    return Project(fields)


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


class FlatMapRows(RowByRow):
    """Every row replaced by several; see `flat_map_rows`."""

    verb = "flat_map_rows"

    def f(self, x: Bag) -> Bag:
        return ZSet([(new, count) for row, count in x.items() for new in self.function(row)])

    def step(self, state: Any, change: Bag) -> tuple[Any, Bag]:
        return None, change.flat_map(self.function)


def flat_map_rows(f: Callable[[Any], Iterable[Hashable]]) -> Operator[Bag, Bag, Bag, Bag]:
    """Every row replaced by all of `f(row)`.

    >>> flat_map_rows(str.split).open(ZSet()).send(ZSet({"to be": 1, "or not to be": 1}))
    ZSet({'to': 2, 'be': 2, 'or': 1, 'not': 1})
    """
    return FlatMapRows(f)


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


# ---- bilinear: an index per side ----


class Join(Operator[tuple[Bag, Bag], Any, Bag, Bag]):
    """Rows of both sides with equal keys; see `join`."""

    input = TWO_BAGS
    output = BAG

    def __init__(self, left_key: Any, right_key: Any, merge: Any = None) -> None:
        self.left_key, self.right_key, self.merge = left_key, right_key, merge
        self.created = place()

    def f(self, x: tuple[Bag, Bag]) -> Bag:
        return x[0].join(x[1], self.left_key, self.right_key, self.merge)

    def init(self, x: tuple[Bag, Bag]) -> tuple[Index[Any, Any], Index[Any, Any]]:
        return Index(self.left_key, x[0]), Index(self.right_key, x[1])

    def step(self, state: Any, change: Any) -> tuple[Any, Bag]:
        left, right = state
        left_change, right_change = sides(change)
        if self.merge is not None:
            return state, self._merged(left, right, left_change, right_change)
        from_left, groups = left.apply(left_change), right.groups
        out = {
            (row, other): weight * count
            for key, pairs in from_left.items()
            if key in groups
            for row, weight in pairs
            for other, count in groups[key].items()
        }
        from_right, groups = right.apply(right_change), left.groups
        for key, pairs in from_right.items():
            if key in groups:
                others = groups[key].items()
                for row, weight in pairs:
                    for other, count in others:
                        out[other, row] = weight * count
        for key in from_left.keys() & from_right.keys():
            _set_met(out, from_left[key], from_right[key], left, right, key)
        return state, trusted(out)

    def _merged(self, left: Any, right: Any, left_change: Bag, right_change: Bag) -> Bag:
        merge, total = self.merge, dict[Any, int]()
        get = total.get
        from_left, groups = left.apply(left_change), right.groups
        for key, pairs in from_left.items():
            if key in groups:
                for row, weight in pairs:
                    for other, count in groups[key].items():
                        new = merge(row, other)
                        total[new] = get(new, 0) + weight * count
        from_right, groups = right.apply(right_change), left.groups
        for key, pairs in from_right.items():
            if key in groups:
                for row, weight in pairs:
                    for other, count in groups[key].items():
                        new = merge(other, row)
                        total[new] = get(new, 0) + weight * count
        return trusted(without_zeros(total))

    def keys(self, change: Any) -> set[Any]:
        """The keys whose state, on both sides, a step with this change touches."""
        left, right = sides(change)
        return {self.left_key(row) for row in left} | {self.right_key(row) for row in right}

    def invariant(self, x: tuple[Bag, Bag], state: Any) -> bool:
        return bool(state == self.init(x))

    def accepts(self, state: Any, change: Any) -> bool:
        if not self.input.is_change(change):
            return False
        left, right = sides(change)
        return bool(state[0].holds(left) and state[1].holds(right))

    def __repr__(self) -> str:
        functions = [self.left_key, self.right_key]
        merge = f", merge={function_name(self.merge)}" if self.merge else ""
        return f"join({', '.join(map(function_name, functions))}{merge})"


def _set_met(
    out: dict[Any, int], left_pairs: Any, right_pairs: Any, left: Any, right: Any, key: Any
) -> None:
    """The pairs of two rows that both changed: the new product of their weights minus the old."""
    lefts, rights = left.groups.get(key, {}), right.groups.get(key, {})
    for row, weight in left_pairs:
        n = lefts.get(row, 0)
        for other, change in right_pairs:
            m = rights.get(other, 0)
            moved = n * m - (n - weight) * (m - change)
            if moved:
                out[row, other] = moved
            else:
                out.pop((row, other), None)


def join(
    left_key: Callable[[Any], Hashable],
    right_key: Callable[[Any], Hashable] | None = None,
    merge: Callable[[Any, Any], Hashable] | None = None,
) -> Operator[tuple[Bag, Bag], Any, Bag, Bag]:
    """Every row of the first with every row of the second that has the same key; counts multiply.

    One key function serves both sides. The new row is `merge(left, right)`, by default the pair.

    >>> by_name = join(lambda row: row[0], merge=lambda a, b: (*a, b[1]))
    >>> live = by_name.open((ZSet.of([("ann", "Rome")]), ZSet.of([("ann", 30)])))
    >>> live.send(Both(ZSet({("bob", "Oslo"): 1}), ZSet({("ann", 30): -1, ("bob", 25): 1})))
    ZSet({('ann', 'Rome', 30): -1, ('bob', 'Oslo', 25): 1})
    """
    return Join(left_key, left_key if right_key is None else right_key, merge)


class Product(Join):
    """Every row of one with every row of the other; see `product`."""

    def __init__(self) -> None:
        super().__init__(None, None)

    def f(self, x: tuple[Bag, Bag]) -> Bag:
        return x[0].product(x[1])

    def keys(self, change: Any) -> set[Any]:
        return {()}

    def __repr__(self) -> str:
        return "product()"


def product() -> Operator[tuple[Bag, Bag], Any, Bag, Bag]:
    """Every row of the first with every row of the second; counts multiply.

    >>> product().open((ZSet.of("ab"), ZSet.of([1]))).send(Second(ZSet({2: 1})))
    ZSet({('a', 2): 1, ('b', 2): 1})
    """
    return Product()


def sides(change: Any) -> tuple[Bag, Bag]:
    """What a change of a pair does to either side."""
    if type(change) is Both:
        return change.first, change.second
    if type(change) is First:
        return change.change, NOTHING
    if type(change) is Second:
        return NOTHING, change.change
    raise TWO_BAGS.stranger(change)
