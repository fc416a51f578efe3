"""The B-tree below a rope: a text, or a list of items, in leaves.

Every branch holds the sizes of what is below it, every leaf is equally deep, and nothing but the
root is ever less than a quarter full. A node has `known`: what was read of it, forgotten by every
edit that touches it.

Trees share nodes. A node has an `owner`, and the tree that owns it edits it in place; any other
copies it first. `_share` makes a second tree of all the nodes of one, and from then on neither owns
them: each copies the path that it edits, and what it has copied is its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, ClassVar

NOTHING: dict[Hashable, tuple[Any, int]] = {}  # what is known of a node: one for all, never altered


class _Leaf:
    __slots__ = ("known", "number", "owner", "text")

    number: int | None
    """Under which number it is stored, where it is."""

    def __init__(self, text: Any, owner: object) -> None:
        self.text = text
        self.number = None
        self.known = NOTHING
        self.owner = owner

    def copy(self, owner: object) -> _Leaf:
        return _Leaf(self.text, owner)


class _Branch:
    __slots__ = ("kids", "known", "owner", "sizes")

    def __init__(self, kids: list[Any], sizes: list[int], owner: object) -> None:
        self.kids = kids
        self.sizes = sizes
        self.known = NOTHING
        self.owner = owner

    def copy(self, owner: object) -> _Branch:
        return _Branch(self.kids[:], self.sizes[:], owner)


class SequenceTree:
    """The leaves of a text of at most `_leaf` code points each, below `_root`; `_heights` is as
    long as the tree is high. Of a list, `empty` is the empty tuple, and leaves are tuples."""

    fan: ClassVar[int] = 16
    empty: ClassVar[Any] = ""
    _leaf: int

    __slots__ = ("_heights", "_leaf", "_owner", "_root")

    def _plant(self, text: Any) -> None:
        self._owner: object = object()
        self._heights = range(0)
        self._root: Any = None
        self._grow(self._leaves(text), [])

    def _plant_leaves(self, pieces: Iterable[Any], numbers: Iterable[int]) -> None:
        leaves = [_Leaf(piece, self._owner) for piece in pieces]
        for leaf, number in zip(leaves, numbers, strict=True):
            leaf.number = number
        self._heights = range(0)
        self._grow(leaves, [])

    def _share(self, other: SequenceTree) -> None:
        """Have the nodes of another tree, which from now on are neither's own."""
        self._leaf, self._heights, self._root = other._leaf, other._heights, other._root
        self._owner, other._owner = object(), object()

    def _own(self, node: Any) -> Any:
        """The node, to be altered: a copy where it is not this tree's own."""
        return node if node.owner is self._owner else node.copy(self._owner)

    def _own_kid(self, branch: Any, i: int) -> Any:
        kid = branch.kids[i] = self._own(branch.kids[i])
        return kid

    def _leaves(self, text: Any) -> list[Any]:
        return [_Leaf(piece, self._owner) for piece in self._pieces(text)]

    def _splice(self, splices: list[tuple[int, int, Any]]) -> None:
        """Put in each `text`, in the place of `less` code points: mostly one leaf with another
        text. Everything is in one loop, because a call costs as much as a level of the tree."""
        leaf, nothing, owner = self._leaf, NOTHING, self._owner
        path: list[Any] = []
        note, forget = path.append, path.clear
        for at, less, text in splices:
            more = len(text) - less
            node: Any = self._root
            if node.owner is not owner:
                node = self._root = node.copy(owner)
            where = at if less else at - 1  # an insertion goes to the leaf that ends there
            forget()
            for _ in self._heights:
                i = 0
                sizes = node.sizes
                for size in sizes:
                    if where < size:
                        break
                    where -= size
                    i += 1
                note(node)
                note(i)
                if more:
                    sizes[i] = size + more
                if node.known is not nothing:
                    node.known = nothing
                kid = node.kids[i]
                if kid.owner is not owner:
                    kid = node.kids[i] = kid.copy(owner)
                node = kid
            old = node.text
            size = len(old) + more
            if not less:
                where += 1
            if less and path and (where + less > len(old) or 4 * size < leaf):
                if self._between(path[-2], path[-1], where, text, where + less - len(old)):
                    continue
                for branch, i in _pairs(path):
                    branch.sizes[i] -= more
                self._delete_across(at, less)
                if text:
                    self._splice([(at, 0, text)])
                continue
            if node.known is not nothing:
                node.known = nothing
            node.text = old[:where] + text + old[where + less :]
            if size > leaf:
                self._grow(self._leaves(node.text), _pairs(path))

    def _between(self, branch: Any, i: int, where: int, text: Any, over: int) -> bool:
        """Put `text` in the place of the end of one leaf and `over` code points of the next, if the
        next is of the same branch and both stay full enough."""
        if over <= 0 or i + 1 == len(branch.kids):
            return False
        one, two = branch.kids[i : i + 2]
        first, second = where + len(text), len(two.text) - over
        if not (4 * first >= self._leaf >= first and 4 * second >= self._leaf):
            return False
        two = self._own_kid(branch, i + 1)
        one.text, two.text = one.text[:where] + text, two.text[over:]
        one.known = two.known = NOTHING
        branch.sizes[i : i + 2] = first, second
        return True

    def _delete_across(self, at: int, count: int) -> None:
        """The deletion that reaches over several leaves or leaves too little of one."""
        if count == sum(self._root.sizes):
            self._plant(self.empty)
            return
        self._root = self._own(self._root)
        self._cut(self._root, len(self._heights), at, at + count)
        while self._heights and len(self._root.kids) == 1:
            self._root = self._root.kids[0]
            self._heights = range(len(self._heights) - 1)

    def _parts(self, node: Any, height: int, start: int, stop: int) -> Iterator[Any]:
        if not height:
            yield node.text[max(start, 0) : max(stop, 0)]
            return
        for kid, size in zip(node.kids, node.sizes, strict=True):
            if stop <= 0:
                return
            if start < size:
                yield from self._parts(kid, height - 1, start, stop)
            start -= size
            stop -= size

    def _pieces(self, text: Any) -> list[Any]:
        return [text[a:b] for a, b in _even(len(text), self._leaf)]

    def _grow(self, nodes: list[Any], path: list[tuple[Any, int]]) -> None:
        """Put `nodes` where the last of the path points to, and split upwards what is too full."""
        while len(nodes) > 1:
            sizes = [_size(node) for node in nodes]
            if not path:
                self._heights = range(len(self._heights) + 1)
                nodes = self._branches(nodes, sizes)
                continue
            branch, i = path.pop()
            branch.kids[i : i + 1] = nodes
            branch.sizes[i : i + 1] = sizes
            if len(branch.kids) <= self.fan:
                return
            nodes = self._branches(branch.kids, branch.sizes)
        self._root = nodes[0]

    def _branches(self, kids: list[Any], sizes: list[int]) -> list[Any]:
        parts = _even(len(kids), self.fan)
        return [_Branch(kids[a:b], sizes[a:b], self._owner) for a, b in parts]

    def _cut(self, branch: Any, height: int, start: int, stop: int) -> None:
        """Take out a part of a branch, but not all of it."""
        branch.known = NOTHING
        kids, sizes = branch.kids, branch.sizes
        i = 0
        for size in sizes:
            if start < size:
                break
            start -= size
            stop -= size
            i += 1
        if start or stop < sizes[i]:
            end = min(stop, sizes[i])
            self._cut_kid(branch, i, height - 1, start, end)
            sizes[i] -= end - start
            stop -= end - start
            if stop <= sizes[i]:
                self._mend(branch, i, height)
                return
            stop -= sizes[i]
            i += 1
        gone = i
        while gone < len(sizes) and sizes[gone] <= stop:
            stop -= sizes[gone]
            gone += 1
        del kids[i:gone], sizes[i:gone]
        if stop:
            self._cut_kid(branch, i, height - 1, 0, stop)
            sizes[i] -= stop
        for place in (i, i - 1):
            if 0 <= place < len(kids):
                self._mend(branch, place, height)

    def _cut_kid(self, branch: Any, i: int, height: int, start: int, stop: int) -> None:
        kid = self._own_kid(branch, i)
        if height:
            self._cut(kid, height, start, stop)
        else:
            _shorten(kid, start, stop)

    def _mend(self, branch: Any, i: int, height: int) -> None:
        """Join kid `i` with a neighbour, if it holds too little, and split the two if too much."""
        kids, sizes = branch.kids, branch.sizes
        leaves = height == 1
        while len(kids) > 1 and (
            4 * sizes[i] < self._leaf if leaves else 4 * len(kids[i].kids) < max(self.fan, 8)
        ):
            i = max(i - 1, 0)
            one, two = kids[i], kids[i + 1]
            if leaves:
                new: list[Any] = self._leaves(one.text + two.text)
            else:
                seam = len(one.kids)
                joined = _Branch(one.kids + two.kids, one.sizes + two.sizes, self._owner)
                self._mend(joined, seam, height - 1)
                self._mend(joined, min(seam, len(joined.kids)) - 1, height - 1)
                new = self._branches(joined.kids, joined.sizes)
            kids[i : i + 2] = new
            sizes[i : i + 2] = map(_size, new)


def _pairs(path: list[Any]) -> list[tuple[Any, int]]:
    """A path as branches, each with which kid comes next."""
    return list(zip(path[::2], path[1::2], strict=True))


def _shorten(leaf: _Leaf, start: int, stop: int) -> None:
    leaf.text = leaf.text[:start] + leaf.text[stop:]
    leaf.known = NOTHING


def _size(node: Any) -> int:
    return len(node.text) if isinstance(node, _Leaf) else sum(node.sizes)


def _even(size: int, limit: int) -> list[tuple[int, int]]:
    """Where to cut `size` things: into one part if the limit allows, else into equal parts that
    leave room for a quarter more."""
    parts = 1 if size <= limit else -(-4 * size // (3 * limit))
    return [(size * k // parts, size * (k + 1) // parts) for k in range(parts)]
