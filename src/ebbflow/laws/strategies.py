"""Data to try laws on: Hypothesis strategies for the elements of monoids and versions of orders.

What a structure brings itself (`elements=`) comes first; the rest is known here by how the
structure was built. Elements are small on purpose: small ones collide, and laws break where they
do. Values and their changes are in `laws.changes`, what each law is given in `laws.sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from ebbflow import algebra as al
from ebbflow.algebra.order import NATURALS, POWERSETS, Order, order_product
from ebbflow.errors import CheckError
from ebbflow.laws.law import simplest
from ebbflow.laws.search import NoSuchExample, SearchStrategy, first_found, st
from ebbflow.zset import BAGS, ZSETS, ZSet

Strategy = SearchStrategy[Any]
SMALL = st.integers(-9, 9)
LETTERS = st.text(alphabet="abcAB é", max_size=6)


def as_strategy(source: Any) -> Strategy:
    """A strategy from what a user gives: a strategy, a collection, or a function giving one."""
    if isinstance(source, SearchStrategy):
        return source
    if isinstance(source, Collection) and not isinstance(source, (str, bytes)):
        if not source:
            raise CheckError("there is nothing to draw from", elements=source)
        return st.sampled_from(sorted(source, key=simplest))
    if callable(source):
        return as_strategy(source())
    raise CheckError(
        f"cannot draw from a {type(source).__name__}",
        elements=source,
        remedy="give a Hypothesis strategy, a list of values, or a function that returns one",
    )


def examples(source: Any, count: int = 40) -> list[Any]:
    """Some values of a source, always the same ones.

    >>> examples([3, 1])
    [1, 3]
    """
    if isinstance(source, Collection) and not isinstance(source, (str, bytes)):
        return sorted(source, key=simplest)
    drawn: list[Any] = []
    note = drawn.append
    with suppress(NoSuchExample):
        first_found(as_strategy(source), lambda x: bool(note(x)), examples=count, shrink=False)
    return drawn


def zsets(rows: Strategy = SMALL, weights: Strategy | None = None, *, size: int = 5) -> Strategy:
    """Z-sets of up to `size` rows."""
    counts = st.integers(-3, 3) if weights is None else weights
    return st.dictionaries(rows, counts, max_size=size).map(ZSet)


def bags(rows: Strategy = SMALL, *, size: int = 5) -> Strategy:
    """Z-sets with positive weights only."""
    return zsets(rows, st.integers(1, 3), size=size)


# ---- monoids ----

_ELEMENTS: dict[al.Monoid[Any], Strategy] = {
    al.ADD: SMALL,
    al.MULTIPLY: SMALL,
    al.MAX: SMALL,
    al.MIN: SMALL,
    al.OR: st.booleans(),
    al.AND: st.booleans(),
    al.XOR: st.booleans(),
    al.LIST: st.lists(SMALL, max_size=5),
    al.TUPLE: st.lists(SMALL, max_size=5).map(tuple),
    al.STR: LETTERS,
    al.BYTES: st.binary(max_size=5),
    al.SET: st.frozensets(st.integers(0, 3), max_size=3),
    ZSETS: zsets(),
    BAGS: bags(),
}


def _dicts(values: al.Monoid[Any]) -> Strategy:
    own = elements_of(values).filter(lambda value: not values.is_zero(value))
    return st.dictionaries(st.sampled_from("abc"), own, max_size=3)


def _functions(values: al.Monoid[Any], at: tuple[Any, ...]) -> Strategy:
    return st.lists(elements_of(values), min_size=len(at), max_size=len(at)).map(
        lambda images: Lookup(dict(zip(at, images, strict=True)))
    )


def _words(left: al.Monoid[Any], right: al.Monoid[Any]) -> Strategy:
    words = al.free_product(left, right)
    letter = st.one_of(
        elements_of(left).map(lambda m: () if left.is_zero(m) else (al.Left(m),)),
        elements_of(right).map(lambda n: () if right.is_zero(n) else (al.Right(n),)),
    )
    return st.lists(letter, max_size=4).map(words.fold)


def _ticked(inner: al.Monoid[Any]) -> Strategy:
    time = al.ticked(inner)
    stratum = st.just(inner.zero) | elements_of(inner)
    return st.lists(stratum, max_size=3).map(lambda strata: time.of(*strata))


def _hypotheticals(
    output: al.Monoid[Any], states: tuple[Any, ...], commutative: bool = False
) -> Strategy:
    if not states:
        raise unmade(al.state_monoid(output))
    return _tables(states, output).map(lambda table: Lookup(dict(zip(states, table, strict=True))))


def _tables(states: tuple[Any, ...], output: al.Monoid[Any]) -> Strategy:
    entry = st.tuples(st.sampled_from(states), elements_of(output))
    return st.tuples(*[entry] * len(states))


_BUILT: dict[Callable[..., Any], Callable[..., Strategy]] = {
    al.product: lambda *factors: st.tuples(*map(elements_of, factors)),
    al.dict_of: _dicts,
    al.functions: _functions,
    al.free_product: _words,
    al.ticked: _ticked,
    al.terminated: lambda inner: st.tuples(elements_of(inner), st.booleans()),
    al.state_monoid: _hypotheticals,
    al.table_monoid: _tables,
}


class Lookup:
    """A function given by its graph, so that a counter-example shows what it does."""

    def __init__(self, graph: dict[Any, Any]) -> None:
        self.graph = graph

    def __call__(self, x: Any) -> Any:
        return self.graph[x]

    def __repr__(self) -> str:
        return f"Lookup({self.graph!r})"


def elements_of(monoid: al.Monoid[Any]) -> Strategy:
    """Elements of a monoid: its own `elements`, or what is known from how it was built.

    >>> from ebbflow.algebra import ADD, LIST, product
    >>> elements_of(product(ADD, LIST))  # doctest: +ELLIPSIS
    tuples(integers(...), lists(integers(...), max_size=5))
    """
    if monoid.elements is not None:
        return as_strategy(monoid.elements)
    if monoid.built is not None and monoid.built[0] in _BUILT:
        make, arguments = monoid.built
        return _BUILT[make](*arguments)
    if monoid in _ELEMENTS:
        return _ELEMENTS[monoid]
    raise unmade(monoid)


def unmade(thing: Any) -> CheckError:
    """The error for a thing whose elements are not known."""
    return CheckError(
        f"it is not known what {thing!r} is made of",
        **({"created": thing.created} if getattr(thing, "created", None) else {}),
        remedy="pass elements= (a list or a Hypothesis strategy), here or where it is made",
    )


# ---- versions ----


def versions_of(order: Order[Any]) -> Strategy:
    """Versions of a partial order, small enough that few lie below them."""
    if order.elements is not None:
        return as_strategy(order.elements)
    if order == NATURALS:
        return st.integers(0, 4)
    if order == POWERSETS:
        return st.frozensets(st.sampled_from("abc"), max_size=3)
    if order.built is not None and order.built[0] is order_product:
        return st.tuples(*map(versions_of, order.built[1]))
    raise unmade(order)
