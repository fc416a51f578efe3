"""Operators for generated programs: what a user might send rows through.

Each is made from a condition on a row, with what it gives: the dtypes of the parts of its rows,
None when they are as before, or `VALUE` when it gives an int in place of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.change import BAG, NATURAL
from ebbflow.operator import count, distinct, map_rows, on_input, select, stateless
from ebbflow.testing.functions import function
from ebbflow.zset import ZSet

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
]
