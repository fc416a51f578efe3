"""Merges that give one of their two arguments: the longer word, the later order, the greater pair.

Such a merge is called *selective* here. Together with associativity this says a lot. Of rows merged
in order, only one is the result; any other can be taken out, and the result stays:

    let  a · x · b = r ≠ x.   If  a · x = a,  then  a · b = r.
    If  a · x = x,  then  x · b = r = b,  and  a · b = a · (x · b) = (a · x) · b = x · b = r.

So the rows are ranked: of two, the one that is the result of merging both, in their order, *beats*
the other; and the total of all rows is the one that beats all others. No totals of parts have to be
kept. As for `max`, an `Index` holds all rows, and only the *front* of each group is held ranked:
the rows that its floor does not beat. What is not among these costs one look at the floor. When all
of the front is gone it is picked anew, with more room each time, so that all rows are looked
through about log n times at most before all are in the front.

Which merges are selective is not promised but seen: those whose traced expression ends in one of
its arguments on every way through it.
"""

from __future__ import annotations

from bisect import insort_left
from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key
from heapq import nlargest
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

from ebbflow.codegen import GeneratedLoop
from ebbflow.expression.node import Expression, Operation, Row
from ebbflow.fn import Fn
from ebbflow.state.node import absent
from ebbflow.state.order import before, orderly

ROOM = 16


def selective(merge: Any) -> Fn | None:
    """The merge as a traced function, if it gives one of its two arguments, whatever they are.

    >>> selective(lambda a, b: a if len(a) >= len(b) else b).text
    'a if len(a) >= len(b) else b'
    >>> selective(lambda a, b: a + b) is None
    True
    """
    fn = Fn(merge, Any, Any)
    return fn if fn.expression is not None and _is_argument(fn.expression) else None


def _is_argument(result: Expression) -> bool:
    if isinstance(result, Operation):
        ends = result.args[1:] if result.op == "if" else result.args
        return result.op in ("if", "and", "or", "max", "min") and all(map(_is_argument, ends))
    return isinstance(result, Row)


class Front(NamedTuple):
    """The rows that the floor does not beat, with how often each is there, and ranked, the best
    last; `all` says that there are no others. The floor itself need not be there any more."""

    counts: Mapping[Any, int] = {}
    ranked: tuple[Any, ...] = ()
    room: int = ROOM
    all: bool = True
    floor: Any = None


NONE = Front()


class Contest:
    """How a front follows changes.

    >>> longest = Contest(selective(lambda a, b: a if len(a) >= len(b) else b))
    >>> front = longest.moved(NONE, {"fig": 1, "apple": 1, "pear": 2}.items(), dict)
    >>> front.ranked
    ('fig', 'pear', 'apple')
    >>> longest.best(longest.moved(front, {"apple": -1, "pear": -1}.items(), dict))
    ['pear']
    """

    def __init__(self, merge: Fn, order: Callable[[Any], Any] | None = None) -> None:
        self.merge, self.order = merge, order
        self.compared = _compared(merge, self._comes_before)
        self.rank = cmp_to_key(self.compared)
        self.unbeaten = _unbeaten(merge)

    def __reduce__(self) -> tuple[Any, ...]:
        return Contest, (self.merge, self.order)

    def beats(self, a: Any, b: Any) -> bool:
        """Whether merging the two in order gives `a`."""
        return bool(self.compared(a, b) > 0)

    def _comes_before(self, a: Any, b: Any) -> bool:
        return before(self._place(a), self._place(b))

    def _place(self, row: Any) -> Any:
        return orderly(row) if self.order is None else (orderly(self.order(row)), orderly(row))

    def moved(
        self,
        front: Front,
        pairs: Iterable[tuple[Any, int]],
        everything: Callable[[], Mapping[Any, int]],
    ) -> Front:
        """The front after some rows came or went, each named once.

        `everything()` is asked for all rows with their counts, after the change, when none of the
        front is left.
        """
        near = list(pairs) if front.all else self.unbeaten(pairs, front.floor)
        if not near:
            return front
        counts = dict(front.counts)
        fresh = []
        for row, weight in near:
            was = counts.get(row, 0)
            if not was and not self._within(front, row):
                continue
            if was + weight < 0:
                raise absent(row, -weight, was)
            if was + weight:
                counts[row] = was + weight
            else:
                del counts[row]
            if not was:
                fresh.append(row)
        if not counts and not front.all:
            return self.picked(everything(), 2 * front.room)
        if len(fresh) > front.room or len(counts) > 4 * front.room:
            return self.picked(counts, front.room, front)
        ranked = [row for row in front.ranked if row in counts]
        for row in fresh:
            insort_left(ranked, row, key=self.rank)
        return front._replace(counts=counts, ranked=tuple(ranked))

    def _within(self, front: Front, row: Any) -> bool:
        return bool(front.all or self.compared(row, front.floor) >= 0)

    def picked(self, rows: Mapping[Any, int], room: int = ROOM, within: Front = NONE) -> Front:
        """The best of some rows: of all there are, or of all that are `within` a front."""
        room = max(room, isqrt(len(rows)))
        if len(rows) <= 2 * room:
            ranked = tuple(sorted(rows, key=self.rank))
            return Front(dict(rows), ranked, room, within.all, within.floor)
        best = nlargest(2 * room, rows, key=self.rank)[::-1]
        return Front({row: rows[row] for row in best}, tuple(best), room, False, best[0])

    def best(self, front: Front) -> list[Any]:
        """The row that beats all others, alone in a list; an empty one where there are no rows."""
        return list(front.ranked[-1:])

    def agrees(self, front: Front, rows: Mapping[Any, int]) -> bool:
        """Whether a front is right for these rows."""
        near = {row: count for row, count in rows.items() if self._within(front, row)}
        return (
            front.counts == near
            and set(front.ranked) == near.keys()
            and len(front.ranked) == len(near) <= 4 * front.room
            and bool(near or not rows)
            and all(self.beats(b, a) for a, b in pairwise(front.ranked))
        )


def _compared(merge: Fn, comes_before: Callable[[Any, Any], bool]) -> Callable[[Any, Any], int]:
    """A function that says which of two rows beats the other: 1 for the first, -1 for the second, 0
    for none, because they are equal. Their order is asked for only where it makes a difference."""
    loop = GeneratedLoop("compared", "a, b")
    loop.write("if a is b: return 0")
    for name, two in (("one", ("a", "b")), ("two", ("b", "a"))):
        loop.write(f"{name} = {merge.source(loop.bind, *two)}", merge, "a", "b")
    loop.write("if one is two: return 1 if one is a else -1")
    loop.write("if a == b: return 0")
    loop.write(f"if not {loop.bind(comes_before)}(a, b): one = two")
    loop.write("return 1 if one is a else -1")
    return loop.function()


def _unbeaten(merge: Fn) -> Callable[..., list[Any]]:
    """A loop for the rows of a change that a floor does not beat, or not in both orders."""
    loop = GeneratedLoop("unbeaten", "pairs, floor")
    ways = [merge.source(loop.bind, *two) for two in (("floor", "row"), ("row", "floor"))]
    near = " or ".join(["row is floor", *(f"({way}) is not floor" for way in ways)])
    loop.write("found = []")
    with loop.inside("for pair in pairs:"):
        loop.write("row = pair[0]")
        loop.write(f"if {near}: found.append(pair)", merge, "row", "floor")
    loop.write("return found")
    return loop.function()
