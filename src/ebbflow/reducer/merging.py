"""Reducers whose accumulators are merged: of parts of the rows, wherever these are cut.

A reducer with a `merge` is a monoid: the accumulator of a run of rows is that of its first part
merged with that of the rest. So a tree of rows in the order of time can hold the accumulator of
every one of its parts, and that of any run of rows is found with a few merges. This pays where
accumulators are small; max and min, whose accumulators hold all values, are merged by value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.nan import one_nan
from ebbflow.ordering import total_order_key
from ebbflow.reducer.reducer import Reducer
from ebbflow.reducer.row import itself
from ebbflow.reducer.strategy import ENDS, SingleRow, part_of_row, strategies_of

SMALL = ("", "O(1)")
"""Sizes of accumulators that are merged at every node of a tree; what is not said is believed."""
_PLAIN = frozenset({int, str})


class MergedPart:
    """One reducer as a monoid: the accumulator `of` one row, `merge`, and `result`."""

    def __init__(self, reducer: Reducer[Any, Any, Any]) -> None:
        assert reducer.merge is not None
        self.of: Callable[[Any], Any] = SingleRow(reducer)
        self.merge: Callable[[Any, Any], Any] = reducer.merge
        self.finish: Callable[[Any], Any] = reducer.finish

    def result(self, acc: Any) -> Any:
        """What is shown of an accumulator, with one NaN."""
        return one_nan(self.finish(acc))


class MergedEnd(MergedPart):
    """The greatest value or the smallest, in the total order; None is no value."""

    def __init__(self, greatest: bool, of: Any, row_type: Any) -> None:
        self.part = itself if of is None else part_of_row(of, row_type)
        self.of = self._value
        self.merge = self._greater if greatest else self._smaller
        self.finish = itself

    def _value(self, row: Any) -> Any:
        return one_nan(self.part(row))

    def _greater(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        if type(a) is type(b) and type(a) in _PLAIN:
            return b if b > a else a
        return b if total_order_key(b) > total_order_key(a) else a

    def _smaller(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return a if self._greater(a, b) is b else b


def merged_parts(
    reducer: Reducer[Any, Any, Any], row_type: Any = Any
) -> tuple[MergedPart, ...] | None:
    """The reducers that are side by side in one, as monoids; None where one of them is none, or has
    accumulators too large to be merged often.

    >>> from ebbflow.reducer import count, max, median, sum
    >>> parts = merged_parts(count() & sum() & max())
    >>> [part.result(part.merge(part.of(3), part.of(4))) for part in parts]
    [2, 7, 4]
    >>> merged_parts(count() & median()) is None
    True
    """
    found: list[MergedPart] = []
    for strategy in strategies_of(reducer, row_type):
        each = strategy.reducer
        if each.made is not None and each.made[0] in ENDS:
            of = each.made[1][0] if each.made[1] else None
            found.append(MergedEnd(ENDS[each.made[0]], of, row_type))
        elif each.merge is not None and each.size in SMALL:
            found.append(MergedPart(each))
        else:
            return None
    return tuple(found)
