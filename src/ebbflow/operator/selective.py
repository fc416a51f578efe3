"""Merges that give one of their two arguments: the longer word, the later order, the greater pair.

Such a merge is called *selective* here. Together with associativity this says a lot. Of rows merged
in order, only one is the result; any other can be taken out, and the result stays:

    let  a · x · b = r ≠ x.   If  a · x = a,  then  a · b = r.
    If  a · x = x,  then  x · b = r = b,  and  a · b = a · (x · b) = (a · x) · b = x · b = r.

So the rows are ranked: of two, the one that is the result of merging both, in their order, *beats*
the other; and the total of all rows is the one that beats all others. No totals of parts have to be
kept. As for `max`, an `Index` holds all rows, and a top buffer (see `ebbflow.state.top_buffer`) the
best of each group: the rows that its floor does not beat.

Which merges are selective is not promised but seen: those whose traced expression ends in one of
its arguments on every way through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key
from heapq import nlargest
from typing import Any

from ebbflow.codegen import GeneratedLoop
from ebbflow.expression.node import Expression, Operation, Row
from ebbflow.fn import Fn
from ebbflow.ordering import total_order_key
from ebbflow.state.top_buffer import Ranking, TopBuffer
from ebbflow.state.tree import Tree


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


class MergeRanking(Ranking):
    """The order in which the row that beats all others is the first.

    >>> longest = MergeRanking(selective(lambda a, b: a if len(a) >= len(b) else b))
    >>> buffer = longest.update(longest.empty, {"fig": 1, "apple": 1, "pear": 2}.items(), dict)
    >>> list(buffer.tree)
    [('fig', 1), ('pear', 2), ('apple', 1)]
    >>> longest.best(longest.update(buffer, {"apple": -1, "pear": -1}.items(), dict))
    ['pear']
    """

    __slots__ = ("compared", "merge", "order", "rank", "unbeaten")

    def __init__(self, merge: Fn, order: Callable[[Any], Any] | None = None) -> None:
        self.merge, self.order = merge, order
        self.compared = _compared(merge, self._comes_before)
        self.rank = cmp_to_key(self.compared)
        self.unbeaten = _unbeaten(merge)
        super().__init__(up=True, empty=Tree(ranking=self))

    def __call__(self, row: Any) -> Any:
        """What stands for a row in comparisons."""
        return self.rank(row)

    def __reduce__(self) -> tuple[Any, ...]:
        return MergeRanking, (self.merge, self.order)

    def _comes_before(self, a: Any, b: Any) -> bool:
        return bool(self._place(a) < self._place(b))

    def _place(self, row: Any) -> Any:
        return total_order_key(row if self.order is None else (self.order(row), row))

    def update(self, buffer: TopBuffer, pairs: Any, everything: Any) -> TopBuffer:
        return super().update(self._ranked(buffer), pairs, everything)

    def best(self, buffer: TopBuffer) -> list[Any]:
        return super().best(self._ranked(buffer))

    def agrees(self, buffer: TopBuffer, everything: Mapping[Any, int]) -> bool:
        return super().agrees(self._ranked(buffer), everything)

    def _ranked(self, buffer: TopBuffer) -> TopBuffer:
        """The same buffer in this order, which one that was pickled has lost."""
        if buffer.tree.ranking is self:
            return buffer
        return buffer._replace(tree=self.empty.tree.update(buffer.tree))

    def near(self, pairs: list[tuple[Any, int]], tree: Tree[Any]) -> list[tuple[Any, int]]:
        floor, compared = tree.first, self.compared
        return [pair for pair in self.unbeaten(pairs, floor) if compared(pair[0], floor) >= 0]

    def first(self, n: int, elements: Iterable[Any]) -> list[Any]:
        return nlargest(n, elements, key=self.rank)


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
    merges = [merge.source(loop.bind, *two) for two in (("floor", "row"), ("row", "floor"))]
    near = " or ".join(["row is floor", *(f"({each}) is not floor" for each in merges)])
    loop.write("found = []")
    with loop.inside("for pair in pairs:"):
        loop.write("row = pair[0]")
        loop.write(f"if {near}: found.append(pair)", merge, "row", "floor")
    loop.write("return found")
    return loop.function()
