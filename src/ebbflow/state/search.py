"""Searches in a tree by what holds of its elements, where their keys alone do not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ebbflow.state.tree import Tree

T = TypeVar("T")


def rank_where(tree: Tree[T], holds: Callable[[T], bool]) -> int:
    """How many elements are before the first of which something holds, in O(log n) calls; all, if
    it holds of none. What holds of an element must hold of all behind it.

    >>> squares = Tree.of([n * n for n in range(100)])
    >>> rank_where(squares, lambda x: x > 50), rank_where(squares, lambda x: x > 10_000)
    (8, 100)
    """
    node, height = tree.root
    before: int = 0
    while True:
        items = node[1]
        low, high = 0, len(items)
        while low < high:
            middle = (low + high) // 2
            if holds(_first(items[middle], height)):
                high = middle
            else:
                low = middle + 1
        if not height:
            return before + int(sum(node[2][:low]))
        height -= 1
        child = max(low - 1, 0)
        before += sum(node[2][:child])
        node = items[child]


def _first(item: Any, height: int) -> Any:
    """The first element of an item of a node with so many levels below it."""
    for _ in range(height):
        item = item[1][0]
    return item
