"""Processors that are always needed: maps, sums, differences, pairs, joins, Datalog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from ebbflow.algebra import (
    ADD,
    LIST,
    SET,
    Homomorphism,
    Monoid,
    Tick,
    product,
    ticked,
)
from ebbflow.algebra.value import function_name, same
from ebbflow.errors import AlgebraError, CompositionError, place
from ebbflow.stream.combine import Loop
from ebbflow.stream.processor import Named, Processor, Running
from ebbflow.tensor import tensor

Predicate = Callable[[Any], object]

# ---- without state ----


def identity(monoid: Monoid[Any]) -> Processor[Any, Any]:
    """What comes in goes out; changes nothing on either side of `>>`.

    >>> identity(LIST)([1, 2])
    [1, 2]
    """
    return Named(Homomorphism(same, monoid, monoid, name=f"identity({monoid!r})"))


def _map(f: Callable[[Any], Any], elements: list[Any]) -> list[Any]:
    return [f(x) for x in elements]


def _filter(f: Predicate, elements: list[Any]) -> list[Any]:
    return [x for x in elements if f(x)]


def _flat_map(f: Callable[[Any], Any], elements: list[Any]) -> list[Any]:
    return [y for x in elements for y in f(x)]


def _each(verb: Callable[..., list[Any]], f: Any) -> Processor[list[Any], list[Any]]:
    name = f"{verb.__name__[1:]}_each({function_name(f)})"
    return Named(Homomorphism(partial(verb, f), LIST, LIST, name=name))


def map_each(f: Callable[[Any], Any]) -> Processor[list[Any], list[Any]]:
    """`f(x)` for every element.

    >>> map_each(abs)([-1, 2])
    [1, 2]
    """
    return _each(_map, f)


def element_function(stage: Processor[Any, Any]) -> Callable[[Any], Any] | None:
    """The `f` of a `map_each(f)`, and None for every other processor."""
    whole = stage.f.f if isinstance(stage, Named) else None
    return whole.args[0] if isinstance(whole, partial) and whole.func is _map else None


def filter_each(predicate: Predicate) -> Processor[list[Any], list[Any]]:
    """Only the elements for which `predicate(x)` is true.

    >>> filter_each(str.isdigit)(["1", "b", "3"])
    ['1', '3']
    """
    return _each(_filter, predicate)


def flat_map_each(f: Callable[[Any], Any]) -> Processor[list[Any], list[Any]]:
    """All of `f(x)` for every element, in order.

    >>> flat_map_each(str.split)(["to be", "or not"])
    ['to', 'be', 'or', 'not']
    """
    return _each(_flat_map, f)


# ---- sums and differences of lists ----


@dataclass(frozen=True)
class _Neighbours(Processor[list[Any], list[Any]]):
    """A processor of lists whose state is an element of `group`: zero before any input."""

    group: Monoid[Any]
    source = LIST
    target = LIST

    def start(self) -> tuple[Any, list[Any]]:
        return self.group.zero, []


class Integral(_Neighbours):
    """The running totals of a list; see `integral`."""

    def step(self, state: Any, change: list[Any]) -> tuple[Any, list[Any]]:
        totals = list(accumulate(change, self.group.combine, initial=state))
        return totals[-1], totals[1:]

    def __repr__(self) -> str:
        return "prefix_sum()" if self.group is ADD else f"integral({self.group!r})"


class Derivative(_Neighbours):
    """The steps between neighbours of a list; see `derivative`."""

    def step(self, state: Any, change: list[Any]) -> tuple[Any, list[Any]]:
        if not change:
            return state, []
        cancel = self.group.cancel
        return change[-1], [cancel(a, b) for a, b in zip([state, *change], change, strict=False)]

    def __repr__(self) -> str:
        return f"derivative({'' if self.group is ADD else repr(self.group)})"


def integral(group: Monoid[Any]) -> Processor[list[Any], list[Any]]:
    """`[a, a·b, a·b·c, ...]` for any monoid.

    >>> from ebbflow.algebra import STR
    >>> integral(STR)(["a", "b", "c"])
    ['a', 'ab', 'abc']
    """
    return Integral(group)


def prefix_sum() -> Processor[list[Any], list[Any]]:
    """The running totals of numbers; `integral(ADD)`.

    >>> prefix_sum()([1, 2, 3])
    [1, 3, 6]
    """
    return Integral(ADD)


def derivative(group: Monoid[Any] = ADD) -> Processor[list[Any], list[Any]]:
    """`[a, a⁻¹·b, b⁻¹·c, ...]`: undoes `integral`, and `integral` undoes it, for every group.

    >>> derivative()([1, 3, 6])
    [1, 2, 3]
    >>> (prefix_sum() >> derivative())([5, 7])
    [5, 7]
    """
    if not group.is_left_cancellative:
        raise AlgebraError(
            f"derivative({group!r}): neighbours can only be compared in a group",
            created=place(),
            remedy="use ADD, ZSETS, dict_of(ADD), or a monoid with negate= or cancel=",
        )
    return Derivative(group)


# ---- pairs and joins ----


class Pairs(Processor[tuple[Any, Any], Any]):
    """Every pair of what came left and what came right; see `pairs` and `join`."""

    def __init__(self, left: Monoid[Any], right: Monoid[Any], matches: Any = None) -> None:
        self.left = left
        self.right = right
        self.matches = matches
        self.source = product(left, right)
        self.tensor = tensor(left, right)
        self.target = self.tensor.monoid

    def start(self) -> tuple[Any, Any]:
        return (self.left.zero, self.right.zero), self.target.zero

    def step(self, state: Any, change: tuple[Any, Any]) -> tuple[Any, Any]:
        (m, n), (dm, dn) = state, change
        state = self.left.combine(m, dm), self.right.combine(n, dn)
        of, matches = self.tensor.of, self.matches
        return state, self.target.combine(of(m, dn, matches), of(dm, state[1], matches))

    def __repr__(self) -> str:
        if self.matches is None:
            return f"pairs({self.left!r}, {self.right!r})"
        return f"join({function_name(self.matches)}, {self.left!r}, {self.right!r})"


def pairs(left: Monoid[Any], right: Monoid[Any]) -> Processor[tuple[Any, Any], Any]:
    """Every element that came left with every one that came right: `(m, n) ↦ m ⊗ n`, kept up to
    date.

    Not a homomorphism, so it needs a state: what is new on one side meets all that came on the
    other.

    >>> from ebbflow.algebra import SET
    >>> both = pairs(SET, SET).open()
    >>> both.send((frozenset("a"), frozenset()))
    frozenset()
    >>> both.send((frozenset(), frozenset("x")))
    frozenset({('a', 'x')})
    """
    return Pairs(left, right)


def join(
    matches: Callable[[Any, Any], object], left: Monoid[Any], right: Monoid[Any]
) -> Processor[tuple[Any, Any], Any]:
    """`pairs` of which only those with `matches(a, b)` are kept, in one processor.

    Equals `pairs(left, right) >> pure(filter)`, without ever making the pairs that do not match.

    >>> from ebbflow.zset import ZSETS, ZSet
    >>> same = join(lambda a, b: a[0] == b[0], ZSETS, ZSETS).open()
    >>> same.send((ZSet.of([("ann", "Rome")]), ZSet.of([("ann", 30), ("bob", 20)])))
    ZSet({(('ann', 'Rome'), ('ann', 30)): 1})
    >>> same.send((ZSet(), -ZSet.of([("ann", 30)])))
    ZSet({(('ann', 'Rome'), ('ann', 30)): -1})
    """
    return Pairs(left, right, matches)


# ---- set difference, one stratum after another ----


class TickedDifference(Processor[Any, Any]):
    """What is in a stratum and was not taken away in the one before it; ticks cut the strata.

    A stratum in which nothing came is not a stratum: two ticks in a row are one.

    >>> from ebbflow.algebra import SET, product
    >>> time = ticked(product(SET, SET))
    >>> a, b, none = frozenset("a"), frozenset("b"), frozenset()
    >>> minus = TickedDifference()
    >>> minus.target.strata(minus(time.of((none, a), (a | b, none))))
    [frozenset(), frozenset({'b'})]
    """

    source = ticked(product(SET, SET))
    target = ticked(SET)

    def start(self) -> tuple[Any, Any]:
        return (frozenset(), frozenset(), False), ()

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        before, now, begun = state
        strata: list[frozenset[Any]] = [frozenset()]
        for letter in change:
            if isinstance(letter, Tick):
                if begun:
                    before, now, begun = now, frozenset(), False
                strata.append(frozenset())
            else:
                plus, minus = letter.value
                now, begun = now | minus, True
                strata[-1] = plus - before
        return (before, now, begun), self.target.of(*strata)

    def __repr__(self) -> str:
        return "TickedDifference()"


class StratifiedDifference(Processor[list[Any], list[Any]]):
    """`TickedDifference` on a list of strata `(plus, minus)`, each of them complete when it comes.

    >>> a, b, none = frozenset("a"), frozenset("b"), frozenset()
    >>> StratifiedDifference()([(none, a), (a | b, none)])
    [frozenset(), frozenset({'b'})]
    """

    source = LIST
    target = LIST

    def start(self) -> tuple[Any, list[Any]]:
        return frozenset(), []

    def step(self, state: Any, change: list[Any]) -> tuple[Any, list[Any]]:
        outputs = []
        for plus, minus in change:
            outputs.append(plus - state)
            state = minus
        return state, outputs

    def __repr__(self) -> str:
        return "StratifiedDifference()"


# ---- recursion ----

Rules = Callable[[frozenset[Any], frozenset[Any]], frozenset[Any]]


@dataclass(frozen=True)
class Consequences(Processor[Any, Any]):
    """One round of monotone rules: what follows from the given and the derived facts so far.

    Reads `(given, derived)`, writes each newly derived fact once, both out and back.
    """

    rules: Rules
    source = product(SET, SET)
    target = product(SET, SET)

    def start(self) -> tuple[Any, Any]:
        first = frozenset(self.rules(frozenset(), frozenset()))
        return (frozenset(), frozenset(), first), (first, first)

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        given, derived, known = state
        if not change[0] and not change[1]:
            return state, (frozenset(), frozenset())
        given, derived = given | change[0], derived | change[1]
        new = frozenset(self.rules(given, derived)) - known
        return (given, derived, known | new), (new, new)

    def __repr__(self) -> str:
        return f"Consequences({function_name(self.rules)})"


def datalog(rules: Rules) -> Loop:
    """Monotone rules applied again and again: a list of batches of facts to a list of new facts.

    `rules(given, derived)` gives what follows in one step; it must be monotone (more facts never
    make fewer). One batch is one round; `settle` adds rounds until nothing new follows.

    >>> def path(edges, paths):
    ...     return edges | {(a, c) for a, b in paths for b2, c in edges if b == b2}
    >>> live = datalog(path).open()
    >>> sorted(settle(live, frozenset({(1, 2), (2, 3), (3, 4)})))
    [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
    >>> sorted(settle(live, frozenset({(4, 5)})))
    [(1, 5), (2, 5), (3, 5), (4, 5)]
    """
    return Loop(Consequences(rules))


def settle(live: Running[Any, Any], change: Any, *, limit: int = 10_000) -> Any:
    """Send `change` into a running loop, then rounds without input until nothing comes back.

    Gives all outputs of these rounds combined. What there is before any input is `live.output`.
    """
    body = live.processor
    if not isinstance(body, Loop):
        raise CompositionError(
            f"settle needs a run of a loop, not of {body!r}",
            created=place(),
            remedy="settle(loop(...).open(), change)",
        )
    outputs = live.send([change])
    for _ in range(limit):
        if body.settled(live.state):
            return body.outer.fold(outputs)
        outputs += live.send([body.inner.zero])
    raise CompositionError(
        f"{body!r} did not settle within {limit} rounds",
        back=live.state[1],
        remedy="raise limit=, or make the body stop sending things back when nothing is new",
    )
