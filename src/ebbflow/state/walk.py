"""Walks through the nodes of a tree: its elements in order, all of them, those between two places,
and those between two cuts.

A *place* is how many elements are before one. A *cut* tells for tokens in order how many of them
are before it: so the elements between two cuts are found in the time that it takes to go down the
tree. Where the tree has totals, a condition on them leaves out whole parts of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any, TypeVar

from ebbflow.state.node import Node

T = TypeVar("T")
Cut = Callable[[Any], int]


def items_between(node: Node, height: int, start: int, stop: int) -> Iterator[tuple[Any, int]]:
    """The items of a node from one place to before another."""
    if start >= stop:
        return
    i, inside = reach(node, start)
    at = start - inside
    for item, count in zip(node[1][i:], node[2][i:], strict=True):
        if at >= stop:
            return
        first, last = max(start - at, 0), min(stop - at, count)
        if height:
            yield from items_between(item, height - 1, first, last)
        else:
            yield item, last - first
        at += count


def walk(node: Node, height: int, way: Callable[[Any], Any]) -> Iterator[tuple[Any, int]]:
    """All elements with their counts; `way` is `iter`, or `reversed`."""
    if height:
        return chain.from_iterable(walk(child, height - 1, way) for child in way(node[1]))
    return zip(way(node[1]), way(node[2]), strict=True)


def repeated(pairs: Iterable[tuple[T, int]], most: int) -> Iterator[T]:
    """Each element as often as it is there, or `most` times."""
    return chain.from_iterable(repeat(x, min(count, most)) for x, count in pairs)


def reach(node: Node, place: int) -> tuple[int, int]:
    """The item of a node that holds a place, and the place within that item."""
    if node[4] == len(node[1]):
        return place, 0
    counts = node[2]
    i = place * len(counts) // node[4]  # about there, as items are about as large as one another
    place -= sum(counts[:i])
    while place < 0:
        i -= 1
        place += counts[i]
    while place >= counts[i]:
        place -= counts[i]
        i += 1
    return i, place


def between_cuts(
    node: Node, height: int, after: Cut | None, before: Cut | None,
    keep: Callable[[Any], bool] | None = None,
) -> Iterator[Any]:  # fmt: skip
    """The elements from one cut to another, in order; None is an end of the tree. Parts for whose
    total `keep` is false are left out, unseen.

    >>> from ebbflow.state.tree import Tree
    >>> tree = Tree.of(range(9), value=lambda n: -n, merge=max, width=4)
    >>> list(between_cuts(*tree.root, None, None, lambda greatest: greatest >= -1))
    [0, 1]
    """
    tokens, items, values = node[0], node[1], node[3]
    start = 0 if after is None else after(tokens)
    stop = len(items) if before is None else before(tokens)
    if height:
        for i in range(max(start - 1, 0), stop):
            if keep is None or keep(values[i]):
                yield from between_cuts(items[i], height - 1, after, before, keep)
    elif keep is None:
        yield from items[start:stop]
    else:
        for i in range(start, stop):
            if keep(values[i]):
                yield items[i]
