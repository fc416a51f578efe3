"""Operators as processors: what they say, as how their output moves.

An operator is a processor whose pieces are changes. Two changes of a value may look different and
do the same to it, so what an operator says is compared by what it does to the output so far.
`Moves` is the operator, seen like that, and every law of processors is a law about it.
"""

from __future__ import annotations

from typing import Any

from ebbflow.algebra import Monoid
from ebbflow.laws.law import Equal, alike, fresh, own
from ebbflow.operator import Operator
from ebbflow.stream import Processor


def _from_end_to_end(first: Any, second: Any) -> Any:
    """From the old value of the first to the new one of the second; None moves nothing."""
    return first if second is None else second if first is None else (first[0], second[1])


def _same_move(first: Any, second: Any) -> bool:
    def still(move: Any) -> bool:
        return move is None or alike(*move)

    return (still(first) and still(second)) or (
        first is not None and second is not None and alike(first, second)
    )


MOVES: Monoid[Any] = Monoid(None, _from_end_to_end, name="MOVES", equal=_same_move, home=__name__)
"""How a value moves: from the old one to the new one; None where it does not."""


class Moves(Processor[Any, Any]):
    """An operator as the processor that says how its output moves, from `x` or the empty input.

    >>> from ebbflow.change import NUMBER
    >>> from ebbflow.operator import on_input
    >>> square = on_input(lambda n: n * n, lambda n, k: 2 * n * k + k * k,
    ...                   input=NUMBER, output=NUMBER, name="square")
    >>> list(Moves(square, 1).run([2, 0]))
    [None, (1, 9), (9, 9)]
    """

    target = MOVES

    def __init__(self, operator: Operator[Any, Any, Any, Any], *given: Any) -> None:
        self.operator, self.given = operator, given
        self.source = operator.source
        self.created = operator.created

    def start(self) -> tuple[Any, Any]:
        x = fresh(self.given[0] if self.given else self.operator.input.empty)
        return (self.operator.init(x), self.operator.f(x)), None

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        own, y = state
        own, said = self.operator.checked(own, change)
        new = self.operator.output.patch(y, said)
        return (own, new), (y, new)

    def __repr__(self) -> str:
        return repr(self.operator)


def as_stream(thing: Any) -> Any:
    """What a law of processors is about: the processor, and of an operator how its output moves."""
    return Moves(thing) if isinstance(thing, Operator) else thing


def of_target(thing: Any) -> Equal:
    """The equality of the monoid that a thing writes."""
    return own(as_stream(thing).target)
