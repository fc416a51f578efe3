"""The first few rows of each key, in an order.

All rows are kept by key, in an index, and of each key the first of them in a top buffer (see
`ebbflow.state.top_buffer`). Where two rows have the same place in the order, the rows themselves
decide, so the answer never depends on who came first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.errors import AbsentRow, NotDeterministic, cause_of
from ebbflow.nan import one_nan
from ebbflow.operator.by_key import ByKey
from ebbflow.operator.relation import Bag
from ebbflow.ordering import total_order_key
from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import Index
from ebbflow.state.top_buffer import Ranking
from ebbflow.zset import ZSet, add_into


class Element(tuple[Any, Any]):
    """A row behind its place in the order, which need not be hashable."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(self[1])


FEW = 16
"""When there are so many times more top rows than changes, they are not all listed again."""


class TopRows(ByKey):
    """The first rows of each key; see `top_rows`."""

    def __init__(
        self, n: int, by: Any, key: Any, smallest: bool, owner: Any, offset: int = 0
    ) -> None:
        super().__init__(key, owner)
        self.n, self.by, self.smallest, self.offset = n, by, smallest, offset
        self.ranking = Ranking(not smallest, offset + n)
        self.skipped = Ranking(not smallest, offset)

    def element(self, row: Any) -> Element:
        """A row with its place in the order."""
        return Element((one_nan(self.by(row)), row))

    def f(self, x: Bag) -> Bag:
        groups: dict[Any, list[Element]] = {}
        for row, count in x.items():
            key = () if self.key is None else self.key(row)
            groups.setdefault(key, []).extend([self.element(row)] * count)
        best: list[Any] = []
        for elements in groups.values():
            elements.sort(key=total_order_key, reverse=not self.smallest)
            best += [row for _, row in elements[self.offset : self.offset + self.n]]
        return ZSet.of(best)

    def init(self, x: Bag) -> tuple[Index[Any, Any], Cells[Any, Any]]:
        state = Index[Any, Any](self.key, None, self.by_key, bag=True), Cells[Any, Any]()
        self.update(state, x)
        return state

    def update(self, state: Any, change: Any) -> dict[Any, int]:
        """Take a change in, and give the rows that came to the top or left it."""
        index, cells = state
        groups, get, element = index.groups, cells.values.get, self.element
        empty = self.ranking.empty
        new, few = {}, {}
        for key, pairs in index.apply(change).items():
            rows = groups.get(key)
            if rows is None:
                new[key] = ABSENT
                continue
            pairs = [(element(row), weight) for row, weight in pairs]
            new[key] = self._updated(get(key, empty), pairs, _Elements(rows, element))
            if FEW * len(pairs) < self.ranking.least:
                few[key] = [each for each, _ in pairs]
        old = cells.swap(new)
        out: dict[Any, int] = {}
        for key, now in new.items():
            was = old[key]
            if was is now:
                continue
            if key in few and was is not ABSENT:
                shift = self.ranking.shift(was, now, few[key])
                add_into(out, {row: count for (_, row), count in shift})
                if self.offset:
                    shift = self.skipped.shift(was, now, few[key])
                    add_into(out, {row: -count for (_, row), count in shift})
            else:
                self._count(out, was, -1)
                self._count(out, now, 1)
        return out

    def _updated(self, buffer: Any, pairs: Any, everything: Any) -> Any:
        try:
            return self.ranking.update(buffer, pairs, everything)
        except AbsentRow as error:
            gone = [each for each, weight in pairs if buffer.tree.count(each) + weight < 0]
            raise NotDeterministic(
                "a row is taken back, and its place in the order is another than when it came",
                row=gone[0][1],
                remedy="an order that is the same for the same row every time",
            ) from cause_of(error)

    def _count(self, out: dict[Any, int], buffer: Any, sign: int) -> None:
        """Count the top of one key in or out."""
        for _, row in [] if buffer is ABSENT else self.ranking.best(buffer)[self.offset :]:
            total = out.get(row, 0) + sign
            if total:
                out[row] = total
            else:
                del out[row]

    def read(self, state: Any) -> dict[Any, int]:
        """The whole output, from the state."""
        out: dict[Any, int] = {}
        for buffer in state[1].everything().values():
            self._count(out, buffer, 1)
        return out

    def accepts(self, state: Any, change: Bag) -> bool:
        return self.input.is_change(change) and bool(state[0].holds(change))

    def invariant(self, x: Bag, state: Any) -> bool:
        index, cells = state[0], state[1].values
        return (
            index == Index(self.key, x, self.by_key)
            and cells.keys() == index.groups.keys()
            and all(
                self.ranking.agrees(cells[key], _Elements(rows, self.element)())
                for key, rows in index.groups.items()
            )
        )

    def __repr__(self) -> str:
        key = "" if self.key is None else f", {function_name(self.key)}"
        smallest = ", smallest=True" if self.smallest else ""
        offset = f", offset={self.offset}" if self.offset else ""
        return f"top_rows({self.n}, {function_name(self.by)}{key}{smallest}{offset})"


class _Elements:
    """All rows of a key with their places in the order, when they are asked for."""

    __slots__ = ("element", "rows")

    def __init__(self, rows: dict[Any, int], element: Callable[[Any], Element]) -> None:
        self.rows, self.element = rows, element

    def __call__(self) -> dict[Element, int]:
        return {self.element(row): count for row, count in self.rows.items()}


def top_rows(
    n: int,
    by: Callable[[Any], Any],
    key: Callable[[Any], Hashable] | None = None,
    *,
    smallest: bool = False,
    offset: int = 0,
    owner: Any = None,
) -> TopRows:
    """For each key the `n` rows with the greatest `by(row)`, or the smallest, behind the first
    `offset` of them; repeated rows count.

    Without a key, of all rows. The order is `ebbflow.ordering.total_order_key`, which has a place
    for values of any type: None is before all, NaN behind all numbers.

    >>> best = top_rows(1, lambda sale: sale[1], lambda sale: sale[0])
    >>> live = best.open(ZSet.of([("Rome", 3), ("Rome", 5), ("Oslo", 4)]))
    >>> live.send(ZSet({("Rome", 5): -1, ("Oslo", 6): 1}))
    ZSet({('Rome', 5): -1, ('Rome', 3): 1, ('Oslo', 4): -1, ('Oslo', 6): 1})
    """
    return TopRows(n, by, key, smallest, owner, offset)
