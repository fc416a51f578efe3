"""OrderedIndex: rows by key, those of each key in an order.

It is an `Index` whose groups are trees instead of dicts of weights: stored, fetched and undone like
any other, since what is done to it is the same change. A tree is made of the rows of a key when
they are fetched. Trees are values, so the one before a step is still there for who has kept it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.errors import AbsentRow, cause_of
from ebbflow.state.backing import ABSENT
from ebbflow.state.index import CUT_SHORT, Grouped, Index, not_there
from ebbflow.state.node import Way
from ebbflow.state.tree import Tree

Replaced = dict[Any, tuple[Tree[Any], Way]]
"""The trees before a change, by key, each with the way to its place where it is one row: see
`Tree.edited`."""
NOTHING: tuple[Any, Replaced] = (None, {})


class OrderedIndex(Index[Any, Any]):
    """Rows by `key(row)`, those of each key in a tree like `empty`; without a key, under `()`.

    >>> index = OrderedIndex(Tree(key=str.lower), len)
    >>> _ = index.apply({"fig": 1, "Pear": 1, "kiwi": 2})
    >>> index.groups[4]
    Tree.counted([('kiwi', 2), ('Pear', 1)], key=str.lower)
    >>> index.begin(); _ = index.apply({"kiwi": -2, "plum": 1}); index.rollback()
    >>> list(index.groups[4])
    [('kiwi', 2), ('Pear', 1)]
    """

    __slots__ = ("empty", "replaced")

    groups: dict[Any, Tree[Any]]  # type: ignore[assignment]

    def __init__(
        self, empty: Tree[Any], key: Any = None, by_key: Callable[[Any], Grouped] | None = None
    ) -> None:
        self.empty = empty
        self.replaced = NOTHING
        """The last change, and the trees that it replaced, until its epoch ends."""
        super().__init__(key, None, by_key, bag=True)

    @property
    def codec(self) -> OrderedIndex:  # type: ignore[override]
        """How the rows of a key, which are stored with their weights, become a tree."""
        return self

    def dump(self, key: Any, change: Any) -> Any:
        """A change of the rows of a key is stored as it is."""
        return change

    def load(self, key: Any, stored: Any) -> Any:
        """The tree of the rows of a key."""
        return stored if isinstance(stored, Tree) else self.empty.update(stored.items())

    def put(self, found: Grouped) -> list[Any]:
        groups, empty = self.groups, self.empty
        old: Replaced = {}
        new: dict[Any, Tree[Any]] = {}
        for at, pairs in found.items():
            tree = groups.get(at, empty)
            try:
                new[at], way = tree.edited(pairs)
            except AbsentRow as error:
                gone = [row for row, weight in pairs if tree.count(row) + weight < 0]
                raise not_there(gone[0]) from cause_of(error)
            old[at] = tree, way
        journal = self.journal
        self.replaced = found, old
        try:
            if journal is not None:
                journal.append(CUT_SHORT)
            for at, tree in new.items():
                if tree.distinct:
                    groups[at] = tree
                else:
                    groups.pop(at, None)
            if journal is not None:
                journal[-1] = found
        except BaseException:
            self.cut = found, new  # calls nothing
            raise
        return []

    def _so_far(self, found: Grouped, new: dict[Any, Tree[Any]]) -> Grouped:  # type: ignore[override]
        groups, empty = self.groups, self.empty
        done = [at for at, tree in new.items() if groups.get(at, empty) is _there(tree, empty)]
        return {at: found[at] for at in done}

    def trees_before(self, found: Any) -> Replaced:
        """The trees that a change has replaced, if it is the last one and its epoch is open."""
        change, trees = self.replaced
        return trees if change is found else {}

    def commit(self) -> list[Grouped]:
        self.replaced = NOTHING
        return Index.commit(self)

    def rollback(self) -> None:
        super().rollback()
        self.replaced = NOTHING

    def forget(self) -> None:
        self.replaced = NOTHING
        super().forget()

    def before(self) -> dict[Any, Any]:
        found: dict[Any, Tree[Any]] = {}
        for entry in reversed(self._open()):
            for at, pairs in entry.items():
                tree = found[at] if at in found else self.groups.get(at, self.empty)
                found[at] = tree.update([(row, -weight) for row, weight in pairs])
        return {at: tree if tree.distinct else ABSENT for at, tree in found.items()}

    def apart(self, held: Any) -> Any:
        return held

    def weight(self, row: Any) -> int:
        at = () if self.key is None else self.key(row)
        return self.groups[at].count(row) if at in self.groups else 0

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.empty, self.key, self.groups)


def _there(tree: Tree[Any], empty: Tree[Any]) -> Tree[Any]:
    return tree if tree.distinct else empty


def _rebuilt(empty: Tree[Any], key: Any, groups: dict[Any, Tree[Any]]) -> OrderedIndex:
    index = OrderedIndex(empty, key)
    index.groups = groups
    return index
