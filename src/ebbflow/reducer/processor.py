"""Reducers as stream processors, which read any Z-sets, in any pieces.

A row whose weight is negative does not count until it has come as often as it was taken away. So a
removal that overtakes its insertion does no harm, and the output does not depend on how the stream
was cut.
"""

from __future__ import annotations

from typing import Any

from ebbflow.algebra import Monoid
from ebbflow.errors import place
from ebbflow.operator.operator import all_or_nothing
from ebbflow.reducer.reducer import Reducer
from ebbflow.reducer.row import Key, key_text
from ebbflow.reducer.running import Bag, ReduceByKey
from ebbflow.stream import Processor
from ebbflow.zset import ZSETS, ZSet


class Reducing(Processor[Bag, Bag]):
    """Changes of rows in, changes of results out, however the stream is cut; see
    `Reducer.processor`.

    >>> from ebbflow.reducer import count
    >>> live = count().processor(str.lower).open()
    >>> live.send(ZSet.of("aAb")), live.send(ZSet({"b": -1}))
    (ZSet({('a', 2): 1, ('b', 1): 1}), ZSet({('b', 1): -1}))
    """

    target = ZSETS

    def __init__(
        self, reducer: Reducer[Any, Any, Any], key: tuple[Key, ...], source: Monoid[Bag]
    ) -> None:
        self.reducer = reducer
        self.given = key
        self.source = source
        self.operator = ReduceByKey(reducer, key or None)
        self.created = place()

    def start(self) -> tuple[Any, Bag]:
        return ({}, self.operator.init(ZSet())), ZSet()

    def step(self, state: Any, change: Bag) -> tuple[Any, Bag]:
        weights, groups = state
        delta = []
        for row, weight in change.items():
            old = weights.get(row, 0)
            delta.append((row, max(old + weight, 0) - max(old, 0)))
        groups, out = all_or_nothing(self.operator.step, groups, ZSet(delta))
        for row, weight in change.items():
            weight += weights.get(row, 0)
            if weight:
                weights[row] = weight
            else:
                weights.pop(row, None)
        return (weights, groups), out if self.given else out.map(_result)

    def __repr__(self) -> str:
        return f"({self.reducer!r}).processor({', '.join(map(key_text, self.given))})"


def _result(row: tuple[Any, Any]) -> Any:
    return row[1]
