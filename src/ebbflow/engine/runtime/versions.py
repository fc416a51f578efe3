"""Versions: where the differences of a loop are, and which are still to be looked at.

A version is a round, and in nested loops one round for each loop, `(i, j)`, ordered position by
position (`ebbflow.algebra.order`). Sums of differences up to a version are what a loop spends most
of its time with. So the comparison is written into the loop that adds up, for each depth once; and
while an epoch runs, the sum of a key with many differences is kept: a greater version has the same
rows, and what has become part of it since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from heapq import heappop, heappush
from typing import Any

from ebbflow.algebra.order import NATURALS, Order, order_product
from ebbflow.chain import grouping
from ebbflow.codegen import GeneratedLoop
from ebbflow.flow.plan import Node
from ebbflow.fn import Fn
from ebbflow.state.index import Index
from ebbflow.zset import add_into, without_zeros

Version = tuple[int, ...]
Delta = dict[Any, int]
Groups = dict[Any, dict[Any, int]]
Later = dict[Version, Delta]
NONE: Any = {}
FEW = 4
"""So many differences are added up as quickly as a sum is found."""


class Schedule:
    """The rounds of one loop at which something is waiting, for each version of the loops around
    it."""

    def __init__(self, around: Schedule | None) -> None:
        self.around = around
        self.depth: int = 1 if around is None else around.depth + 1
        self.order: Order[Version] = order_product(*[NATURALS] * self.depth)
        self.join = joining(self.depth)
        self.rounds: dict[Version, list[int]] = {}
        self.known: set[Version] = set()

    def add(self, version: Version) -> None:
        """Come to this version."""
        if version not in self.known:
            self.known.add(version)
            outer = version[:-1]
            heappush(self.rounds.setdefault(outer, []), version[-1])
            if self.around is not None:
                self.around.add(outer)

    def next(self, outer: Version) -> int | None:
        """The first round that is waiting, at a version of the loops around; it is not, then."""
        waiting = self.rounds.get(outer)
        if not waiting:
            self.rounds.pop(outer, None)
            return None
        found = heappop(waiting)
        self.known.discard((*outer, found))
        return found

    def clear(self) -> None:
        """Nothing is waiting."""
        self.rounds, self.known = {}, set()


class VersionedIndex:
    """The differences of a collection by key, each row with its version.

    Those of a `constant` collection, the same in every round of every loop around, have none.
    """

    __slots__ = ("below", "constant", "grouping", "index", "join", "split", "sums")

    def __init__(self, key: Fn | None, depth: int, constant: bool, owner: Node) -> None:
        self.grouping: Callable[[Any], dict[Any, Any]] = grouping(key, None, owner)
        self.index: Index[Any, Any] = Index(None)
        self.constant = constant
        self.split, self.join, self.below = splitting(depth), joining(depth), comparing(depth)
        self.sums: dict[Any, tuple[Version, Delta, Later]] = {}
        """Of the keys that were looked at in this epoch, for the last version: their rows there,
        and the differences that are not at or below it, or new."""

    def grouped(self, change: Delta | None) -> dict[Any, Any]:
        """The rows of a change by key."""
        return self.grouping(change.items()) if change else {}

    def add(self, version: Version, found: dict[Any, Any]) -> None:
        """Add differences at a version, by key."""
        if not found:
            return
        sums = self.sums
        if not self.constant:
            for key in found if sums else ():
                if key in sums:
                    _, _, later = sums[key]
                    if version in later:
                        add_into(later[version], dict(found[key]))
                    else:
                        later[version] = dict(found[key])
            found = {
                key: [((version, row), weight) for row, weight in pairs]
                for key, pairs in found.items()
            }
        self.index.bring(found)
        self.index.put(found)

    def at(self, key: Any, version: Version) -> tuple[Delta, Later]:
        """The rows of a key at a version, the sum of all differences at or below it; and those that
        are not, by version."""
        group = self.index.groups.get(key, NONE)
        if self.constant:
            return group, NONE
        if len(group) <= FEW:
            return self.split(group, version)
        known = self.sums.get(key)
        if known is not None and self.below(known[0], version):
            _, rows, later = known
            for at in [at for at in later if self.below(at, version)] if later else ():
                add_into(rows, later.pop(at))
        else:
            rows, later = self.split(group, version)
        self.sums[key] = version, rows, later
        return rows, later

    def totals(self) -> Groups:
        """The differences at all versions, added up, by key."""
        if self.constant:
            return self.index.groups
        found: Groups = {}
        for key, group in self.index.groups.items():
            rows: Delta = {}
            for (_, row), weight in group.items():
                rows[row] = rows.get(row, 0) + weight
            found[key] = without_zeros(rows)
        return found

    def meeting(self, keys: Iterable[Any], version: Version) -> Iterator[tuple[Version, Groups]]:
        """The differences of some keys by the version at which they meet one at `version`."""
        self.index.bring(keys)
        if self.constant:
            yield version, self.index.groups
            return
        here: Groups = {}
        found: dict[Version, Groups] = {}
        for key in keys:
            rows, later = self.at(key, version)
            if rows:
                here[key] = rows
            for at, differences in later.items():
                there = found.setdefault(self.join(at, version), {}).setdefault(key, {})
                add_into(there, differences)
        if here:
            yield version, here
        yield from found.items()


_SPLIT = """
    rows, later = {}, {}
    $unpack
    for (at, row), weight in group.items():
        if not ($below):
            if at in later:
                later[at][row] = weight
            else:
                later[at] = {row: weight}
        elif row in rows:
            weight += rows[row]
            if weight:
                rows[row] = weight
            else:
                del rows[row]
        else:
            rows[row] = weight
    return rows, later
"""


@cache
def splitting(depth: int) -> Callable[[Any, Version], tuple[Delta, Later]]:
    """The function that adds up the differences of a group which are at or below a version, and
    gives the others by version; for versions of so many rounds.

    >>> group = {((0, 1), "a"): 1, ((2, 1), "a"): -1, ((2, 2), "b"): 1, ((3, 0), "c"): 1}
    >>> splitting(2)(group, (2, 1))
    ({}, {(2, 2): {'b': 1}, (3, 0): {'c': 1}})
    """
    loop = GeneratedLoop("split", "group, version")
    rounds = [f"round{i}" for i in range(depth)]
    loop.template(
        _SPLIT,
        unpack=f"{', '.join(rounds)}, = version",
        below=" and ".join(f"at[{i}] <= {each}" for i, each in enumerate(rounds)),
    )
    return loop.function()


@cache
def joining(depth: int) -> Callable[[Version, Version], Version]:
    """The least version above two, of so many rounds each.

    >>> joining(2)((0, 5), (3, 1))
    (3, 5)
    """
    loop = GeneratedLoop("join", "a, b")
    parts = [f"a[{i}] if a[{i}] > b[{i}] else b[{i}]" for i in range(depth)]
    loop.write(f"return ({', '.join(parts)},)")
    return loop.function()


@cache
def comparing(depth: int) -> Callable[[Version, Version], bool]:
    """Whether a version is at or below another.

    >>> comparing(2)((0, 5), (3, 1)), comparing(2)((0, 1), (3, 1))
    (False, True)
    """
    loop = GeneratedLoop("below", "a, b")
    loop.write(f"return {' and '.join(f'a[{i}] <= b[{i}]' for i in range(depth))}")
    return loop.function()
