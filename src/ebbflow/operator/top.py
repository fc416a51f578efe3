"""The first few rows of each key, in an order.

All rows are kept by key, in an index, and of each key the first of them in a top buffer (see
`ebbflow.state.top_buffer`). Where two rows have the same place in the order, the rows themselves
decide, so the answer never depends on who came first.

Where one row is wanted, only that one is held as long as it stays the first, or a better one comes
in its place. When it goes without, the rows are looked through, and a buffer is held from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.chain import key_source
from ebbflow.codegen import GeneratedLoop
from ebbflow.errors import AbsentRow, NotDeterministic, cause_of
from ebbflow.nan import one_nan
from ebbflow.operator.by_key import ByKey
from ebbflow.operator.relation import Bag
from ebbflow.ordering import PLAIN, plainly, total_order_key
from ebbflow.record import maker
from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import Index
from ebbflow.state.packed import unpacked
from ebbflow.state.top_buffer import ROOM, Ranking, TopBuffer
from ebbflow.zset import ZSet, add_into


class Element(tuple[Any, Any]):
    """A row behind its place in the order, which need not be hashable."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(self[1])


FEW = 16
"""When there are so many times more top rows than changes, they are not all listed again."""


_ELEMENTS = """
    found = []
    for row, weight in pairs:
        place = $place
        if type(place) is cls and place $behind floor and (weight > 0 or row != held):
            continue
        found.append((new($Element, (place, row)), weight))
    return found
"""


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

    @cached_property
    def elements(self) -> Callable[[Any, Any, Any, Any], list[tuple[Element, int]]]:
        """A loop that puts rows behind their places, but for those whose place is of `cls` and
        behind the `floor`; a row that goes, and is the one that is `held`, is never left out."""
        loop = GeneratedLoop("elements", "pairs, cls, floor, held")
        place, behind = key_source(loop, self.by), ">" if self.smallest else "<"
        loop.template(
            _ELEMENTS, self.owner or self.by, "row", Element=Element, place=place, behind=behind
        )
        return loop.function()

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
        empty, single = self.ranking.empty, self.ranking.least == 1
        new, few = {}, {}
        for key, pairs in index.apply(change).items():
            rows, was = groups.get(key), get(key)
            if rows is None:
                new[key] = ABSENT
                continue
            if single and (was is None or type(was) is Element):
                now = self._followed(was, pairs, rows)
                if now is not was:
                    new[key] = now
                continue
            was = empty if was is None else was
            pairs = self._near(pairs, was)
            if not pairs:
                continue
            new[key] = self._updated(was, pairs, _Elements(rows, element))
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
                self._differ(out, self._top(was), self._top(now))
        return out

    def _near(self, pairs: Any, buffer: Any) -> list[Any]:
        """Rows behind their places, without those that are plainly behind all that a buffer holds,
        if it does not hold all there are."""
        if buffer.all or not buffer.tree.distinct:
            return self.elements(pairs, None, None, None)
        floor = (buffer.tree.last if self.smallest else buffer.tree.first)[0]
        if type(floor) in PLAIN:
            return self.elements(pairs, type(floor), floor, None)
        behind = 1 if self.smallest else -1
        found = self.elements(pairs, None, None, None)
        return [pair for pair in found if plainly(pair[0][0], floor) != behind]

    def _followed(self, best: Element | None, pairs: Any, rows: dict[Any, int]) -> Any:
        """The first row after a change, or a buffer, when it has gone and no better one came."""
        was, lost, first = best, False, self.ranking.first
        forward = -1 if self.smallest else 1
        floor, held = (None, None) if best is None else best
        cls = type(floor) if type(floor) in PLAIN else None
        for each, weight in self.elements(pairs, cls, floor, held):
            place, row = each
            if weight < 0:
                if was is None or plainly(place, was[0]) == forward:
                    raise self._elsewhere(row)
                if row == was[1]:
                    if each != was:
                        raise self._elsewhere(row)
                    lost = row not in rows
                continue
            if best is None:
                best = each
                continue
            ahead = plainly(place, best[0])
            if not ahead and (place,) == (best[0],):
                ahead = plainly(row, best[1])
            if ahead == forward or (not ahead and first(1, [best, each])[0] is not best):
                best = each
        if lost and best is was:
            return self.ranking.picked(_Elements(rows, self.element)(), ROOM)
        return best

    def _elsewhere(self, row: Any) -> NotDeterministic:
        return NotDeterministic(
            "a row is taken back, and its place in the order is another than when it came",
            row=row,
            remedy="an order that is the same for the same row every time",
        )

    def _updated(self, buffer: Any, pairs: Any, everything: Any) -> Any:
        try:
            return self.ranking.update(buffer, pairs, everything)
        except AbsentRow as error:
            tree = buffer.tree
            gone = [each for each, weight in pairs if tree.count(each) + weight < 0]
            last = tree.last if self.smallest else tree.first
            if buffer.all or gone != [last]:
                raise self._elsewhere(gone[0][1]) from cause_of(error)
            return self.ranking.picked(everything(), 2 * buffer.room)  # see `load`

    def _top(self, held: Any) -> list[Any]:
        """The rows at the top of a key, each behind its place."""
        if held is ABSENT:
            return []
        return [held] if type(held) is Element else self.ranking.best(held)[self.offset :]

    def _differ(self, out: dict[Any, int], was: list[Any], now: list[Any]) -> None:
        """Count out what was at the top, and in what is; what both begin or end with stays."""
        while was and now and was[-1] is now[-1]:
            was.pop()
            now.pop()
        same = 0
        for a, b in zip(was, now, strict=False):
            if a is not b:
                break
            same += 1
        for rows, sign in ((was, -1), (now, 1)):
            for _, row in rows[same:]:
                total = out.get(row, 0) + sign
                if total:
                    out[row] = total
                else:
                    del out[row]

    def read(self, state: Any) -> dict[Any, int]:
        """The whole output, from the state."""
        out: dict[Any, int] = {}
        for held in state[1].everything().values():
            self._differ(out, [], self._top(held))
        return out

    def dump(self, key: Any, held: Any) -> Any:
        """What is held of a key, to be written down."""
        return held

    def load(self, key: Any, stored: Any) -> Any:
        """What was written down: columns write the first rows of a key as bytes. Older ones wrote
        the last of these rows only as often as it is at the top."""
        if type(stored) is not bytes:
            return stored
        row = maker(self.owner.type)
        elements = [(self.element(row(parts)), times) for parts, times in unpacked(stored)]
        complete = sum(times for _, times in elements) < self.ranking.least
        return TopBuffer(self.ranking.empty.tree.update(elements), ROOM, complete)

    def accepts(self, state: Any, change: Bag) -> bool:
        return self.input.is_change(change) and bool(state[0].holds(change))

    def invariant(self, x: Bag, state: Any) -> bool:
        index, cells = state[0], state[1].values
        return (
            index == Index(self.key, x, self.by_key)
            and cells.keys() == index.groups.keys()
            and all(self._agrees(cells[key], rows) for key, rows in index.groups.items())
        )

    def _agrees(self, held: Any, rows: dict[Any, int]) -> bool:
        elements = _Elements(rows, self.element)()
        if type(held) is Element:
            return self.ranking.first(1, elements) == [held]
        return self.ranking.agrees(held, elements)

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
