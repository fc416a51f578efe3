"""Operators for generated programs: what a user might send rows through.

Each is made from a condition on a row, with what it gives: the dtypes of the parts of its rows,
None when they are as before, or `VALUE` when it gives an int in place of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ebbflow.change import BAG, NATURAL, pair
from ebbflow.operator import (
    count,
    difference,
    distinct,
    map_rows,
    of,
    on_input,
    select,
    stateless,
    union,
)
from ebbflow.stream import by_cancelling, join, processor_of, pure
from ebbflow.testing.functions import function
from ebbflow.zset import ZSETS, ZSet

VALUE = "value"
Made = tuple[Any, Any]


def _size(bag: ZSet[Any]) -> int:
    return sum(weight for _, weight in bag.items())


def _different(bag: ZSet[Any], change: ZSet[Any]) -> int:
    return len(bag + change) - len(bag)


def _twice(bag: ZSet[Any]) -> ZSet[Any]:
    return bag + bag


def _marked(condition: str) -> Any:
    return map_rows(function(f"(1 if {condition} else 0, r)"))


def _seen(condition: str) -> Any:
    return distinct() >> map_rows(function(f"(1 if {condition} else 0, 1)"))


def _distinct_rows(bag: ZSet[Any]) -> ZSet[Any]:
    return bag.distinct()


def _once(condition: str) -> Any:
    """A processor whose state is all of its input, and one without a state after it."""
    once = by_cancelling(_distinct_rows, source=ZSETS, target=ZSETS, name="once")
    return processor_of(once) >> pure(partial(ZSet.filter, predicate=function(condition)), ZSETS,
                                      ZSETS, name="kept")  # fmt: skip


def _share(condition: str, bag: ZSet[Any]) -> int:
    """Not linear, and not to be had from a part of the rows: a per cent of all of them."""
    kept = _size(bag.filter(function(condition)))
    return 100 * kept // (_size(bag) or 1)


OPERATORS: list[Callable[[str], Made]] = [
    lambda condition: (select(function(condition)), None),
    lambda condition: (_marked(condition), ("int", "any")),
    lambda condition: (stateless(_twice, _twice, input=BAG, output=BAG, name="twice"), None),
    lambda condition: (_seen(condition), ("int", "int")),
    lambda condition: (
        on_input(len, _different, input=BAG, output=NATURAL, name="different"),
        VALUE,
    ),
    lambda condition: (stateless(_size, _size, input=BAG, output=NATURAL, name="size"), VALUE),
    lambda condition: (select(function(condition)) >> count(), VALUE),
    lambda condition: (_once(condition), None),
    lambda condition: (of(partial(_share, condition), BAG, NATURAL, name="share"), VALUE),
]


def _both_or_none(left: Any, right: Any) -> bool:
    return (left is None) == (right is None)


def _excess(bags: tuple[ZSet[Any], ZSet[Any]]) -> int:
    return max(_size(bags[0]) - 2 * len(bags[1]), 0)


ON_TWO: list[tuple[Any, Any]] = [
    (union() >> count(), VALUE),
    (join(_both_or_none, ZSETS, ZSETS), "pairs"),
    (difference(), None),
    (of(_excess, pair(BAG, BAG), NATURAL, name="excess"), VALUE),
]
"""Operators on two collections, with what they give; `pairs` are pairs of their rows."""
