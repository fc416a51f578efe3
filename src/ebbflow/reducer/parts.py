"""How one reducer follows the rows of one group, in each of the ways there are.

A *part* is a reducer with such a way; `sum("price") & max("price")` has two parts, each with an
accumulator of its own, so when one has to look at the rows again the other need not.

    Folding      `add` and `remove` for each row; when `remove` declines, the rows again
    Treed        no `remove`, but a `merge`: an aggregate tree of the rows
    Outermost    max and min: the few values nearest to that end; when they are gone, the rows again

An accumulator is never altered, so the old one is all it takes to go back.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import nlargest, nsmallest
from itertools import islice
from math import isqrt
from typing import Any

from ebbflow.errors import ChangeError, NotDeterministic
from ebbflow.reducer import ordered
from ebbflow.reducer.combine import together
from ebbflow.reducer.reducer import Recompute, Reducer
from ebbflow.reducer.row import NAN, getter
from ebbflow.state.tree import Tree

Rows = dict[Any, int]
Pairs = Any


class Part:
    """A reducer, and how it follows one group.

    `moved(acc, pairs, rows)` is the accumulator after a change of the group by `pairs`, rows with
    their weights, each row once; `rows` is the whole group after it, where the part keeps rows.
    """

    def __init__(self, reducer: Reducer[Any, Any, Any]) -> None:
        self.reducer = reducer
        self.keeps_rows = reducer.remove is None or reducer.partial is not False

    def start(self) -> Any:
        """The accumulator of no rows."""
        return self.reducer.start()

    def moved(self, acc: Any, pairs: Pairs, rows: Rows | None) -> Any:
        raise NotImplementedError

    def result(self, acc: Any) -> Any:
        """What is shown of an accumulator; NaN is always the same NaN, so it can be taken back."""
        shown = self.reducer.finish(acc)
        return shown if shown == shown else NAN if type(shown) is float else shown

    def agrees(self, acc: Any, rows: Rows) -> bool:
        """Whether an accumulator is right for the rows of its group."""
        return bool(self.reducer.equal(acc, self.moved(self.start(), rows.items(), rows)))


class Folding(Part):
    """One call for each row: removals first, then additions."""

    def moved(self, acc: Any, pairs: Pairs, rows: Rows | None) -> Any:
        removed, added = self.reducer.removed, self.reducer.added
        for row, weight in pairs:
            if weight < 0:
                acc = removed(acc, row, -weight)
                if isinstance(acc, Recompute):
                    return self.again(rows)
        for row, weight in pairs:
            if weight > 0:
                acc = added(acc, row, weight)
        return acc

    def again(self, rows: Rows | None) -> Any:
        """The accumulator from all rows of the group."""
        if not self.keeps_rows:
            raise ChangeError(
                f"{self.reducer!r} asks to recompute, but is declared partial=False",
                remedy="leave partial= out: then the rows are kept for it",
            )
        acc, added = self.reducer.start(), self.reducer.added
        for row, weight in (rows or {}).items():
            acc = added(acc, row, weight)
        return acc


class Treed(Part):
    """The rows in an aggregate tree, whose total is the reducer's accumulator."""

    def __init__(self, reducer: Reducer[Any, Any, Any]) -> None:
        super().__init__(reducer)
        self.keeps_rows = False
        self.empty: Tree[Any] = Tree(value=Single(reducer), merge=reducer.merge)

    def start(self) -> Tree[Any]:
        return self.empty

    def moved(self, acc: Any, pairs: Pairs, rows: Rows | None) -> Any:
        return acc.update(pairs)

    def result(self, acc: Any) -> Any:
        return super().result(acc.total if acc.distinct else self.reducer.start())

    def agrees(self, acc: Any, rows: Rows) -> bool:
        return bool(acc.invariant()) and dict(acc) == rows


class Single:
    """The accumulator of one row, as a value that can be pickled."""

    def __init__(self, reducer: Reducer[Any, Any, Any]) -> None:
        self.reducer = reducer

    def __call__(self, row: Any) -> Any:
        return self.reducer.add(self.reducer.start(), row)


class Outermost(Part):
    """For max and min: a tree of the values nearest to the end, and its *room*.

    Every value that is not before the first of the tree (for `max`) is in the tree; what is before
    it costs one comparison. The tree is picked with twice its room, and cut back to that when it has
    twice as many again. When it is empty it is picked anew from the rows, with more room each time,
    so a group is looked through at most about log n times before all of it is in its tree.
    """

    def __init__(self, reducer: Reducer[Any, Any, Any], up: bool, of: Any) -> None:
        super().__init__(reducer)
        self.keeps_rows = True
        self.up = up
        self.of = getter(of)
        self.nothing: tuple[Tree[Any], int] = (Tree(), 0)

    def start(self) -> tuple[Tree[Any], int]:
        return self.nothing

    def values(self, pairs: Pairs) -> Rows:
        """How often each value comes or goes; None is no value."""
        of, total = self.of, dict[Any, int]()
        get = total.get
        for row, weight in pairs:
            value = of(row)
            if value is not None:
                if type(value) is not int:
                    value = ordered.kept(value)
                total[value] = get(value, 0) + weight
        return total

    def moved(self, acc: Any, pairs: Pairs, rows: Rows | None) -> Any:
        tree, room = acc
        moved = self.values(pairs)
        if not room:
            return self.picked(self.values((rows or {}).items()), 16) if rows else acc
        if tree.distinct:
            floor = tree.first if self.up else tree.last
            near = [
                (value, weight)
                for value, weight in moved.items()
                if weight and (value >= floor if self.up else value <= floor)
            ]
            if not near:
                return acc
            tree = tree.update(near)
        elif not moved:
            return acc
        if not tree.distinct:
            return self.picked(self.values((rows or {}).items()), 2 * room)
        if tree.distinct > 4 * room:
            tree = Tree.counted(islice(reversed(tree) if self.up else iter(tree), 2 * room))
        return tree, room

    def picked(self, values: Rows, room: int) -> tuple[Tree[Any], int]:
        """The tree of the outermost of these values."""
        room = max(room, isqrt(len(values)))
        outer = (nlargest if self.up else nsmallest)(2 * room, values)
        return Tree.counted((value, values[value]) for value in outer), room

    def result(self, acc: Any) -> Any:
        tree = acc[0]
        if not tree.distinct:
            return None
        end = tree.last if self.up else tree.first
        return end if type(end) is int else ordered.shown(end)

    def agrees(self, acc: Any, rows: Rows) -> bool:
        tree, room = acc
        values = self.values(rows.items())
        if not tree.distinct or not tree.invariant():
            return not values and not tree.distinct
        floor = tree.first if self.up else tree.last
        outer = {x: n for x, n in values.items() if (x >= floor if self.up else x <= floor)}
        return tree.distinct <= 4 * room and dict(tree) == outer


def parts_of(reducer: Reducer[Any, Any, Any]) -> tuple[Part, ...]:
    """The parts of a reducer: those side by side in it, or itself.

    >>> from ebbflow.reducer import count, max, median
    >>> [type(part).__name__ for part in parts_of(count() & max() & median())]
    ['Folding', 'Outermost', 'Folding']
    """
    made = reducer.made
    if made is not None and made[0] is together:
        return tuple(_part(each) for each in made[1])
    return (_part(reducer),)


def _part(reducer: Reducer[Any, Any, Any]) -> Part:
    made = reducer.made
    if made is not None and made[0] in ENDS:
        return Outermost(reducer, ENDS[made[0]], made[1][0] if made[1] else None)
    if reducer.remove is None and reducer.merge is not None:
        return Treed(reducer)
    return Folding(reducer)


ENDS: dict[Callable[..., Any], bool] = {ordered.max: True, ordered.min: False}


def owing(key: Any, size: int) -> None:
    """More rows of a group were taken away than there were."""
    raise ChangeError(
        "more rows are taken away than there are",
        key=key,
        missing=-size,
        remedy="a change that takes away rows that are there",
    )


def spoilt(key: Any, cell: tuple[Any, ...]) -> None:
    """The last row of a group has left something in the accumulators."""
    raise NotDeterministic(
        "the last row of a group was taken back, and its accumulator is not that of no rows",
        key=key,
        accumulator=cell[1] if len(cell) == 2 else cell[1:],
        remedy="functions that give the same answer for the same row every time; "
        "ebbflow.laws.check(reducer) tells whether its remove undoes its add",
    )
