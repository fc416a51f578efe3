"""What a reducer gives for the rows of each session, kept up to date.

It equals `session(...)` and then `group_by(..., "window_start", "window_end").agg(...)`. But rows
do not go out with their session to be reduced behind it, all of them again when it grows by one:
the accumulators are in the tree of the rows, with the runs that its parts begin and end with (see
`ebbflow.operator.session`). A row costs about log n merges, whether it comes last, late, joins two
sessions or, when it goes, parts one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from ebbflow.operator.relation import Bag
from ebbflow.operator.session import Pairs, Run, SessionTrees
from ebbflow.reducer.merging import MergedPart, merged_parts
from ebbflow.reducer.reducer import Reducer
from ebbflow.reducer.shape import ResultShape
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet

START, END, KEY = 0, 1, 2
"""Which part of a session a field is: `KEY` is the first part of its key, `KEY + 1` the second."""


class SessionResults(SessionTrees):
    """One row for each session: the parts of it that `front` names, then the results.

    >>> from ebbflow.reducer import count
    >>> live = SessionResults(lambda t: t, 5, None, count()).open(ZSet.of([1, 4]))
    >>> live.send(ZSet({9: 1, 20: 1}))
    ZSet({(1, 9, 2): -1, (1, 14, 3): 1, (20, 25, 1): 1})
    """

    def __init__(
        self, time: Any, gap: Any, key: Any, reducer: Reducer[Any, Any, Any], *,
        row_type: Any = Any, front: tuple[int, ...] = (START, END), spread: bool = True,
        width: int = 0, made: Any = None, owner: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(time, gap, key, owner)
        self.reducer, self.row_type, self.made = reducer, row_type, made
        self.front, self.width, self.spread = front, width, spread

    @cached_property
    def parts(self) -> Sequence[MergedPart]:  # type: ignore[override]
        """The reducers side by side, as monoids."""
        parts = merged_parts(self.reducer, self.row_type)
        assert parts is not None, "a reducer that cannot be merged"
        return parts

    @cached_property
    def make(self) -> Callable[..., Any]:
        """A row of the output, from its first fields and the results."""
        several = self.spread and len(self.parts) > 1
        return ResultShape(self.made, len(self.front), several).function(len(self.parts))

    def row(self, key: Any, first: Any, last: Any, results: Sequence[Any]) -> Any:
        """The row that is given for a session."""
        known = (first, last + self.gap, *(key if self.width > 1 else (key,)))
        front = [known[i] for i in self.front]
        return self.make(front[0] if len(front) == 1 else front, *results)

    def f(self, x: Bag) -> Bag:
        out = []
        for key, rows in self.sessions_of(x):
            result = self.reducer(ZSet({row: count for _, row, count in rows}))
            results = result if len(self.parts) > 1 else (result,)
            out.append(self.row(key, rows[0][0], rows[-1][0], results))
        return ZSet.of(out)

    def shift(
        self, key: Any, was: Tree[Any], now: Tree[Any], pairs: Pairs
    ) -> Iterator[tuple[Any, int]]:
        times = sorted([self.time(row) for row, _ in pairs])
        for tree, sign in ((was, -1), (now, 1)):
            for run in self.touched(tree, times):
                yield self.finished(key, run), sign

    def finished(self, key: Any, run: Run) -> Any:
        """The row of a session as it stands."""
        accs = zip(self.parts, run.accs, strict=True)
        return self.row(key, run.first, run.last, [part.result(acc) for part, acc in accs])

    def __repr__(self) -> str:
        return f"SessionResults({self._options()}, {self.reducer!r})"
