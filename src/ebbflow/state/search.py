"""Searches in a tree: for what is around a key or next to an edit, for what is between two tokens,
by what holds of its elements, where their keys alone do not tell, and for the totals of what is
before a place and behind it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple, TypeVar

from ebbflow.ordering import comparable, total_order_key
from ebbflow.state.node import Node, Way
from ebbflow.state.tree import Tree, total_left, total_right

T = TypeVar("T")


class _Last:
    """Behind everything else."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


LAST = _Last()


def rank_at(tree: Tree[Any], key: Any, *, behind: bool = False) -> int:
    """How many are before all elements of this key, or `behind` them: those included. For trees
    that are ordered by a key.

    >>> tree = Tree.of(["fig", "pear", "kiwi"], key=len)
    >>> rank_at(tree, 4), rank_at(tree, 4, behind=True), rank_at(tree, 9)
    (1, 3, 3)
    """
    rank: int = _by_key(tree, key, _behind if behind else Tree.search)[0]
    return rank


def _by_key(tree: Tree[Any], key: Any, search: Callable[..., Any]) -> Any:
    """`search` with what the elements of a key are ordered by, and how to bisect."""
    if tree.native:
        try:
            if comparable(key):
                return search(tree, (key,), bisect_left, bisect_right)
        except TypeError:
            pass
        return search(tree, total_order_key((key,)), total_left, total_right)
    return search(tree, total_order_key((key,)), bisect_left, bisect_right)


def _behind(tree: Tree[Any], token: Any, left: Any, right: Any) -> tuple[int, int]:
    return tree.search((*token, LAST), left, right)


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


class Around(NamedTuple):
    """Elements of one key in a tree: from where to where they are, and four elements, each alone in
    a tuple, or none: the last before them, the first that is not before them, the last that is not
    behind them, and the first behind."""

    low: int
    high: int
    before: tuple[Any, ...]
    first: tuple[Any, ...]
    last: tuple[Any, ...]
    after: tuple[Any, ...]


def around(tree: Tree[Any], key: Any) -> Around:
    """Where the elements of this key are, and their neighbours. For trees that are ordered by a
    key.

    >>> around(Tree.of(["fig", "pear", "kiwi", "melon"], key=len), 4)
    Around(low=1, high=3, before=('fig',), first=('kiwi',), last=('pear',), after=('melon',))
    """
    found: Around = _by_key(tree, key, _around)
    return found


def _around(tree: Tree[Any], token: Any, left: Any, right: Any) -> Around:
    (node, height), low, end = tree.root, 0, (*token, LAST)
    prior: tuple[Node, int] | None = None
    later: tuple[Node, int] | None = None
    while height:  # the nodes next to the way down have the neighbours of what is in the leaf
        height -= 1
        children = node[1]
        i = left(node[0], end) - 1
        if i > 0:
            low += sum(node[2][:i])
            prior = children[i - 1], height
        else:
            i = 0
        if i + 1 < len(children):
            later = children[i + 1], height
        node = children[i]
    tokens, items, counts = node[:3]
    j = left(tokens, end)
    i = left(tokens, token, 0, j)
    single = node[4] == len(items)
    low += i if single else sum(counts[:i])
    high = low + (j - i if single else sum(counts[i:j]))
    after = items[j : j + 1] or _end(later, 1, 0)
    if i:
        before = items[i - 1 : i]
    elif left(_end(prior, 0, -1), token):
        before = _end(prior, 1, -1)
    elif prior is None:
        before = ()
    else:  # there are more of them before this leaf
        low = tree.search(token, left, right)[0]
        before = (tree.at(low - 1),) if low else ()
        return Around(low, high, before, (tree.at(low),), items[j - 1 : j], after)
    if i == j:
        return Around(low, high, before, after, before, after)
    return Around(low, high, before, items[i : i + 1], items[j - 1 : j], after)


def _end(beside: tuple[Node, int] | None, which: int, i: int) -> tuple[Any, ...]:
    """Of a node with so many levels below it the first token or element (`which` is 0 or 1) or the
    last (`i` is 0 or -1), alone in a tuple; of no node, nothing."""
    if beside is None:
        return ()
    node, height = beside
    for _ in range(height):
        node = node[1][i]
    return (node[which][i],)


def beside(way: Way, i: int) -> Any:
    """The token at a place of the leaf in which a way ends; at the place before its first item or
    behind its last, that of the leaf there. None where there is nothing.

    >>> _, way = Tree.of(range(9), width=4).edited([(4, 1)])
    >>> way[-1][0][1], way[-1][1]
    ((3, 4, 5), 1)
    >>> [beside(way, i) for i in (-1, 0, 3)]
    [2, 3, 6]
    """
    tokens = way[-1][0][0]
    if 0 <= i < len(tokens):
        return tokens[i]
    step, end = (-1, -1) if i < 0 else (1, 0)
    for height, (node, at) in enumerate(reversed(way[:-1])):
        if 0 <= at + step < len(node[1]):
            return _end((node[1][at + step], height), 0, end)[0]
    return None


def neighbours(tree: Tree[Any], token: Any) -> tuple[Any, Any]:
    """The last token of a tree before this one, and the first that is not before it; None for none.

    >>> neighbours(Tree.of(range(0, 90, 10), width=4), 30)
    (20, 30)
    """
    node, height = tree.root
    way = []
    while height:
        i = bisect_right(node[0], token, 1) - 1
        way.append((node, i))
        node = node[1][i]
        height -= 1
    i = bisect_left(node[0], token)
    way.append((node, i))
    return beside(way, i - 1), beside(way, i)


def between(tree: Tree[Any], start: Any, stop: Any) -> list[tuple[Any, int]]:
    """The elements of a tree from one token to before another, each with how often it is there.
    One way down the tree, where one leaf has them all.

    >>> between(Tree.of(range(0, 90, 10), width=4), 35, 50)
    [(40, 1)]
    """
    node, height = tree.root
    while height:
        lows = node[0]
        i = bisect_left(lows, start, 1)
        if i < len(lows) and lows[i] < stop:
            low, high = (tree.search(each, bisect_left, bisect_right)[0] for each in (start, stop))
            return list(tree.between(low, high))
        node = node[1][i - 1]
        height -= 1
    tokens, items, counts = node[:3]
    found = []
    i = bisect_left(tokens, start)
    while i < len(tokens) and tokens[i] < stop:
        found.append((items[i], counts[i]))
        i += 1
    return found


def totals(tree: Tree[Any], place: int, merge: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
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


def _merged(merge: Callable[[Any, Any], Any], values: list[Any]) -> Any:
    return reduce(merge, values) if values else None
