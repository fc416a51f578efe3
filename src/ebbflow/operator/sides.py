"""An operator on two bags, as one on a bag whose rows say which of the two they are of.

A program hands a keyed operator one collection. Rows of two collections become one when each says
its side, `(0, row)` or `(1, row)`: whatever runs an operator on one collection runs one on two.
"""

from __future__ import annotations

from typing import Any

from ebbflow.change import BAG, ZSET, Both, First, Second, pair
from ebbflow.errors import CompositionError, place
from ebbflow.operator.lift import AnyOperator
from ebbflow.operator.operator import Operator
from ebbflow.operator.relation import Bag
from ebbflow.zset import ZSet

LEFT, RIGHT = 0, 1
TWO = [pair(one, other) for one in (BAG, ZSET) for other in (BAG, ZSET)]


class OfSides(Operator[Bag, Bag, Any, Any]):
    """An operator on two bags that reads rows with their side; see `of_sides`."""

    input = BAG

    def __init__(self, operator: AnyOperator) -> None:
        self.operator = operator
        self.output = operator.output
        self.created = operator.created

    def f(self, x: Bag) -> Any:
        return self.operator.f(_apart(x))

    def init(self, x: Bag) -> Any:
        return self.operator.init(_apart(x))

    def step(self, state: Any, change: Bag) -> tuple[Any, Any]:
        return self.operator.step(state, _sides(change))

    def accepts(self, state: Any, change: Bag) -> bool:
        return self.input.is_change(change) and self.operator.accepts(state, _sides(change))

    def invariant(self, x: Bag, state: Any) -> bool:
        return self.operator.invariant(_apart(x), state)

    @property
    def recomputes(self) -> bool:
        return self.operator.recomputes

    def recalled(self, state: Any) -> Any:
        return self.operator.recalled(state)

    def __repr__(self) -> str:
        return repr(self.operator)


def _apart(x: Bag) -> tuple[Bag, Bag]:
    parts: tuple[list[Any], list[Any]] = ([], [])
    for (side, row), weight in x.items():
        parts[side].append((row, weight))
    return ZSet(parts[LEFT]), ZSet(parts[RIGHT])


def _sides(change: Bag) -> Any:
    left, right = _apart(change)
    return Both(left, right) if left and right else Second(right) if right else First(left)


def of_sides(operator: AnyOperator) -> OfSides:
    """The operator on rows `(0, row)` of its first bag and `(1, row)` of its second.

    >>> from ebbflow.operator import join
    >>> live = of_sides(join(abs, abs)).open(ZSet.of([(0, 3), (1, -3)]))
    >>> live.send(ZSet.of([(1, 3)]))
    ZSet({(3, 3): 1})
    """
    if operator.input not in TWO:
        raise CompositionError(
            f"of_sides({operator!r}): it reads {operator.input!r}, and not two bags",
            created=place(),
            remedy=f"an operator whose input is {TWO[0]!r}",
        )
    return OfSides(operator)
