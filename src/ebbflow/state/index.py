"""Index: rows by key, with their weights, and a journal that can undo an epoch.

A join has one index per side. What is done to an index is a change, a Z-set of rows; so the change
itself is the journal, and the way back is to apply it with its weights negated. (`begin`, `commit`
and `rollback` are those of `Cells`.)

Weights may be negative: an index is as good for differences as it is for rows. A row of weight zero
is not there, and a key without rows is not there either.

`groups` is a plain dict of plain dicts, for loops that cannot afford a call per row. An engine that
keeps its state elsewhere puts the groups of the touched keys into it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from ebbflow.algebra.value import function_name
from ebbflow.state.cells import Journalled
from ebbflow.zset import ZSet

K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound=Hashable)

Grouped = dict[Any, Iterable[tuple[Any, int]]]


class Index(Journalled[ZSet[Any]], Generic[K, R]):
    """Rows by `key(row)`; without a key, all rows are under `()`.

    >>> index = Index(len, ZSet.of(["fig", "pear", "kiwi"]))
    >>> index.groups
    {3: {'fig': 1}, 4: {'pear': 1, 'kiwi': 1}}
    >>> index.begin()
    >>> index.apply(ZSet({"fig": -1, "nut": 2}))
    {3: [('fig', -1), ('nut', 2)]}
    >>> index.groups[3]
    {'nut': 2}
    >>> index.rollback()
    >>> index.groups[3]
    {'fig': 1}
    """

    __slots__ = ("groups", "key")

    def __init__(self, key: Callable[[R], K] | None = None, rows: ZSet[R] | None = None) -> None:
        self.key = key
        self.groups: dict[Any, dict[R, int]] = {}
        self.journal = None
        if rows is not None:
            self.apply(rows)

    def grouped(self, change: ZSet[R]) -> Grouped:
        """The rows of a change by key, with their weights. All keys are computed here."""
        key = self.key
        if key is None:
            return {(): change.items()} if change else {}
        found: dict[Any, list[tuple[R, int]]] = {}
        for pair in change.items():
            at = key(pair[0])
            if at in found:
                found[at].append(pair)
            else:
                found[at] = [pair]
        return found  # type: ignore[return-value]

    def apply(self, change: ZSet[R]) -> Grouped:
        """Add a change, and give its rows by key, which a step nearly always wants next."""
        found = self.grouped(change)
        if self.journal is not None:
            self.journal.append(change)
        groups = self.groups
        for at, pairs in found.items():
            group = groups.get(at)
            if group is None:
                groups[at] = dict(pairs)
                continue
            get = group.get
            for row, weight in pairs:
                total = get(row, 0) + weight
                if total:
                    group[row] = total
                else:
                    del group[row]
            if not group:
                del groups[at]
        return found

    def undo(self, entry: ZSet[R]) -> None:
        """Take a change out again."""
        self.apply(-entry)

    def weight(self, row: R) -> int:
        """How often `row` is there; 0 when it is not."""
        at = () if self.key is None else self.key(row)
        return self.groups.get(at, {}).get(row, 0)

    def holds(self, change: ZSet[R]) -> bool:
        """Whether every row that `change` takes away is there so often."""
        return all(weight > 0 or self.weight(row) + weight >= 0 for row, weight in change.items())

    def __eq__(self, other: object) -> bool:
        return self.groups == other.groups if isinstance(other, Index) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        key = "None" if self.key is None else function_name(self.key)
        rows = {row: weight for group in self.groups.values() for row, weight in group.items()}
        return f"Index({key}, {ZSet(rows)!r})"
