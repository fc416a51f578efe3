"""Totals of parts of a tree: of what is before a place, and of what is behind it."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from ebbflow.state.tree import Tree

Merge = Callable[[Any, Any], Any]


def totals(tree: Tree[Any], place: int, merge: Merge) -> tuple[Any, Any]:
    """The total of the elements before a place, and of those from it on; None for that of nothing.
    `merge` is that of the tree, and the place is that of an element, not within its repetitions.

    >>> words = Tree.of(["a", "c", "d"], merge=lambda a, b: a + b)
    >>> totals(words, 1, lambda a, b: a + b), totals(words, 3, lambda a, b: a + b)
    (('a', 'cd'), ('acd', None))
    """
    node, height = tree.root
    before: list[Any] = []
    behind: list[Any] = []
    for level in range(height, -1, -1):
        i = 0
        while i < len(node[2]) and place >= node[2][i]:
            place -= node[2][i]
            i += 1
        before += node[3][:i]
        if not level or i == len(node[2]):
            behind[:0] = node[3][i:]
            break
        behind[:0] = node[3][i + 1 :]
        node = node[1][i]
    return _merged(merge, before), _merged(merge, behind)


def _merged(merge: Merge, values: list[Any]) -> Any:
    return reduce(merge, values) if values else None
