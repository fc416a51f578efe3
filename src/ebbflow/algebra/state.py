"""The State monoid: what would happen, whatever the state turns out to be.

An element is a function `state -> (state, output)`. Two are combined by running one after the other
and combining their outputs. A stream processor is a homomorphism into this monoid: it turns each
piece of its input into such a function, and it does not matter how the input was cut.

Functions are hard to send, compare or reduce ahead of time. When there are only a few states, the
function can be written down as a *table*: `table_monoid` is the same monoid with tables for
elements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any

from ebbflow.algebra.monoid import Monoid
from ebbflow.errors import AlgebraError

Hypothetical = Callable[[Any], tuple[Any, Any]]
Table = tuple[tuple[Any, Any], ...]


def _stay(output: Monoid[Any], state: Any) -> tuple[Any, Any]:
    """What the neutral element does: the state stays, the output is empty."""
    return state, output.zero


class Chained:
    """One hypothetical after another, however deep they are nested."""

    __slots__ = ("first", "output", "second")

    def __init__(self, first: Hypothetical, second: Hypothetical, output: Monoid[Any]) -> None:
        self.first = first
        self.second = second
        self.output = output

    def __call__(self, state: Any) -> tuple[Any, Any]:
        said = []
        waiting: list[Hypothetical] = [self]
        while waiting:
            step = waiting.pop()
            if isinstance(step, Chained):
                waiting += (step.second, step.first)
            else:
                state, output = step(state)
                said.append(output)
        return state, self.output.fold(said)


def state_monoid(
    output: Monoid[Any], states: Iterable[Any] = (), commutative: bool = False
) -> Monoid[Hypothetical]:
    """`State[S, output]`: functions from a state to the next one and an output.

    Two of them count as equal when they agree on all of `states`; that decides it when S is finite.
    `commutative` declares it of a part of them: those functions that are put together here.

    >>> from ebbflow.algebra import LIST
    >>> add = lambda n: lambda total: (total + n, [total + n])
    >>> state_monoid(LIST).combine(add(1), add(4))(10)
    (15, [11, 15])
    """
    points = tuple(states)

    def combine(first: Hypothetical, second: Hypothetical) -> Hypothetical:
        return Chained(first, second, output)

    def equal(f: Hypothetical, g: Hypothetical) -> bool:
        if f is g:
            return True
        if not points:
            raise AlgebraError(
                "two functions of the state can only be compared on given states",
                remedy="state_monoid(output, states=[...]) with the states that matter",
            )
        return all(_same(f(state), g(state), output) for state in points)

    given = (output, points, True) if commutative else (output, points)
    return Monoid(
        partial(_stay, output),
        combine,
        commutative=commutative,
        equal=equal,
        built=(state_monoid, given),
    )


def table_monoid(states: Iterable[Hashable], output: Monoid[Any]) -> Monoid[Table]:
    """`State[S, output]` written as tables: for each state in turn, the next state and the output.

    Unlike functions, tables can be sent and compared, and combining two of them does the work.

    >>> from ebbflow.algebra import STR
    >>> flip = ((1, "up "), (0, "down "))
    >>> table_monoid([0, 1], STR).combine(flip, flip)
    ((0, 'up down '), (1, 'down up '))
    """
    rows = tuple(states)
    position = {state: i for i, state in enumerate(rows)}

    def combine(a: Table, b: Table) -> Table:
        combined = []
        for state, first in a:
            state, second = b[position[state]]
            combined.append((state, output.combine(first, second)))
        return tuple(combined)

    def equal(a: Table, b: Table) -> bool:
        return all(_same(x, y, output) for x, y in zip(a, b, strict=True))

    return Monoid(
        tuple((state, output.zero) for state in rows),
        combine,
        equal=equal,
        built=(table_monoid, (rows, output)),
    )


def _same(a: tuple[Any, Any], b: tuple[Any, Any], output: Monoid[Any]) -> bool:
    return bool(a[0] == b[0]) and output.equal(a[1], b[1])
