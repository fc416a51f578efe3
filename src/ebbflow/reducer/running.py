"""Reducers in programs: as differential operators over bags.

The operator keeps a cell for each key: how many rows there are, the accumulators, and, where it is
not made in the generated loop, the row that was given for it, so that the same row is taken back. A
group with no rows is not there. The operator also keeps the rows by key, in an index, where a part
of the reducer may need them again (see `strategy`). Where every part can be generated, the whole
step is one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from ebbflow.chain import Chain, gather, grouping
from ebbflow.change import BAG, KEEP, REPLACE, Replace
from ebbflow.errors import place
from ebbflow.fn import Fn
from ebbflow.operator import Operator
from ebbflow.reducer.fused import FusedReduce
from ebbflow.reducer.reducer import Reducer
from ebbflow.reducer.row import Key, getter, key_text
from ebbflow.reducer.shape import PAIR, ResultShape
from ebbflow.reducer.strategy import (
    GroupStrategy,
    refuse_leftover,
    refuse_negative_size,
    strategies_of,
)
from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import Grouped, Index
from ebbflow.zset import ZSet, trusted

Bag = ZSet[Any]
MOST_FUSED = 200
"""How many parts are generated as one loop; to compile more takes longer than it saves."""


class ReduceGroups(Operator[Bag, Bag, Any, Any]):
    """What a reducer keeps for groups of rows, and how that follows changes."""

    input = BAG

    def __init__(
        self, reducer: Reducer[Any, Any, Any], key: Callable[[Any], Any] | None, shape: ResultShape,
        row_type: Any = Any, before: Chain | None = None, owner: Any = None,
    ) -> None:  # fmt: skip
        self.reducer = reducer
        self.key = key
        self.shape = shape
        self.row_type = row_type
        self.before = before or Chain()
        self.owner = owner
        self.created = place()

    # ---- what is made of it, when it is first asked for ----

    @cached_property
    def parts(self) -> tuple[GroupStrategy, ...]:
        """The reducers that are side by side in it, each with a strategy. Of many none is
        generated."""
        parts = strategies_of(self.reducer, self.row_type)
        if len(parts) > MOST_FUSED:
            for part in parts:
                part.inline = None
        return parts

    @cached_property
    def keeps_rows(self) -> bool:
        """Whether a part may need the rows of a group again."""
        return any(part.keeps_rows for part in self.parts)

    @cached_property
    def no_rows(self) -> tuple[Any, ...]:
        """The cell of a group that has no rows yet."""
        return (0, *(part.start() for part in self.parts), None)

    @cached_property
    def inlines(self) -> list[Any]:
        """How each part is generated; None where one cannot be."""
        return [part.inline for part in self.parts]

    @cached_property
    def by_key(self) -> Callable[[Any], Grouped]:
        """The loop that groups rows by key."""
        return grouping(self.key)

    @cached_property
    def chained(self) -> Callable[[Any], dict[Any, int]]:
        """The loop of the steps before."""
        return gather([self.before])

    @cached_property
    def make(self) -> Callable[..., Any]:
        """The row of a group, from its key and its results."""
        return self.shape.function(len(self.parts))

    @cached_property
    def fused(self) -> FusedReduce | None:
        """The loops of a step, where rows need not come by key."""
        by_key = any(inline is None or inline.close for inline in self.inlines)
        if self.keeps_rows or by_key:
            return None
        return self._fused()

    def _fused(self) -> FusedReduce:
        return FusedReduce(self.parts, self.key, self.shape, self.row_type, self.before, self.owner)

    @cached_property
    def loop(self) -> Callable[..., dict[Any, int]] | None:
        """The loop of a whole step, where there is one."""
        return self.fused.step() if self.fused else None

    @cached_property
    def group_loop(self) -> Callable[..., dict[Any, int]]:
        """The loop of a step of rows by key; of many parts, one that calls them."""
        if len(self.parts) > MOST_FUSED:
            return self._call_parts
        return self._fused().step_groups(self._require_empty)

    @cached_property
    def partial(self) -> Callable[[Any], dict[Any, Any]] | None:
        """The loop of what a change adds to the cell of each key, for `merge_partial`; None where
        it needs the cells."""
        return self.fused.partial() if self.fused and self.fused.can_merge else None

    @cached_property
    def merge_loop(self) -> Callable[..., dict[Any, int]]:
        """The loop of `merge_partial`."""
        assert self.fused is not None
        return self.fused.merge()

    # ---- the state ----

    def init(self, x: Bag) -> Any:
        cells: Cells[Any, Any] = Cells()
        state = (Index(self.key, None, self.by_key, bag=True), cells) if self.keeps_rows else cells
        self.update(state, x)
        return state

    def update(self, state: Any, change: Any) -> dict[Any, int]:
        """Take a change in, and give the change of the rows `make(key, results)`."""
        if self.loop is not None:
            return self.update_fused(state, change)
        change = self.chained(change)
        if not self.keeps_rows:
            return self.update_groups(self.by_key(change.items()), None, state)
        index, cells = state
        return self.update_groups(index.apply(change), index.groups, cells)

    def from_scratch(self, key: Any, rows: dict[Any, int]) -> dict[Any, int]:
        """What is given for a group with these rows, all of positive weight, and kept nowhere."""
        if self.loop is not None:
            return self.loop(rows, {}, {})
        return {self.make(key, *[part.from_scratch(rows) for part in self.parts]): 1}

    def update_fused(self, cells: Any, change: Any) -> dict[Any, int]:
        """A step as one generated loop."""
        loop: Any = self.loop
        out: dict[Any, int] = loop(change, cells.values, _remembered(cells))
        return out

    def merge_partial(self, cells: Any, pairs: Iterable[tuple[Any, Any]]) -> dict[Any, int]:
        """A step from what `partial` gave, in whatever pieces."""
        return self.merge_loop(pairs, cells.values, _remembered(cells))

    def update_groups(self, found: Grouped, groups: Any, cells: Any) -> dict[Any, int]:
        """A step group by group, from the change by key and, where they are kept, all rows."""
        return self.group_loop(found, groups, cells.values, _remembered(cells))

    def _call_parts(self, found: Grouped, groups: Any, values: Any, old: Any) -> dict[Any, int]:
        """What the generated loop does, part by part."""
        parts, out = self.parts, dict[Any, int]()
        for key, pairs in found.items():
            was = values.get(key)
            cell = self.no_rows if was is None else was
            size = cell[0] + sum([weight for _, weight in pairs])
            if size < 0:
                refuse_negative_size(key, size)
            rows = None if groups is None else groups.get(key)
            accs = [
                part.update(acc, pairs, rows) for part, acc in zip(parts, cell[1:-1], strict=True)
            ]
            old[key] = ABSENT if was is None else was
            before, after = cell[-1], None
            if size:
                values[key] = now = self.cell(key, size, accs)
                after = now[-1]
            else:
                self._require_empty(key, (0, *accs))
                values.pop(key, None)
            if before != after:
                if was is not None:
                    out[before] = -1
                if size:
                    out[after] = 1
        return out

    def _require_empty(self, key: Any, cell: tuple[Any, ...]) -> None:
        for part, acc in zip(self.parts, self._accs(cell), strict=True):
            if not part.is_empty(acc):
                refuse_leftover(key, acc)

    def accs(self, cell: tuple[Any, ...]) -> list[Any]:
        """The accumulators in a cell; those of rows by key have a row behind them."""
        return self._accs(cell if self.loop is not None else cell[:-1])

    def _accs(self, cell: tuple[Any, ...]) -> list[Any]:
        found, at = [], 1
        for part, width in zip(self.parts, self._widths, strict=True):
            slots = cell[at : at + width]
            found.append(slots[0] if part.inline is None else part.inline.pack(cell[0], slots))
            at += len(slots)
        return found

    def cell(self, key: Any, size: int, accs: list[Any]) -> tuple[Any, ...]:
        """The cell of a group."""
        cell: list[Any] = [size]
        for part, acc in zip(self.parts, accs, strict=True):
            cell += (acc,) if part.inline is None else part.inline.unpack(acc)
        return tuple(cell) if self.loop is not None else (*cell, self.row(key, accs))

    def row(self, key: Any, accs: list[Any]) -> Any:
        """The row that is given for a group."""
        return self.make(key, *[part.result(a) for part, a in zip(self.parts, accs, strict=True)])

    def read(self, state: Any) -> dict[Any, int]:
        """The whole output, from the state."""
        cells = state[1] if self.keeps_rows else state
        if self.loop is None:
            return {cell[-1]: 1 for cell in cells.everything().values()}
        return {self.row(key, self.accs(cell)): 1 for key, cell in cells.everything().items()}

    def dump(self, key: Any, cell: tuple[Any, ...]) -> tuple[Any, ...]:
        """A cell to be written down, without what can be made again: None, the size, and what each
        part keeps, side by side, so that each value has a column and few are pickled."""
        found, at = [None, cell[0]], 1
        for part, width in zip(self.parts, self._widths, strict=True):
            slots = cell[at : at + width]
            found += part.store(slots)
            at += width
        return tuple(found)

    def load(self, key: Any, stored: tuple[Any, ...]) -> tuple[Any, ...]:
        """The cell that was written down."""
        if stored[0] is not None:  # as older versions have written it
            accs = [part.load(acc) for part, acc in zip(self.parts, stored[1:], strict=True)]
            return self.cell(key, stored[0], accs)
        found, at = [stored[1]], 2
        for part, width in zip(self.parts, self._widths, strict=True):
            found += part.restore(stored[at : at + width])
            at += width
        cell = tuple(found)
        return cell if self.loop is not None else self.cell(key, cell[0], self._accs(cell))

    @cached_property
    def _widths(self) -> list[int]:
        """How many slots each part has in a cell."""
        return [1 if part.inline is None else len(part.inline.slots) for part in self.parts]

    def keys(self, change: Bag) -> set[Any]:
        """The keys whose groups a change touches."""
        return set(self.by_key(self.chained(change).items()))

    def accepts(self, state: Any, change: Bag) -> bool:
        if not self.input.is_change(change):
            return False
        if self.keeps_rows:
            return bool(state[0].holds(trusted(self.chained(change))))
        for key, pairs in self.by_key(self.chained(change).items()).items():
            size = state.values.get(key, self.no_rows)[0]
            if size + sum(weight for _, weight in pairs if weight < 0) < 0:
                return False
        return True

    def invariant(self, x: Bag, state: Any) -> bool:
        cells = state[1] if self.keeps_rows else state
        groups = Index(self.key, trusted(self.chained(x)), self.by_key).groups
        return (
            (not self.keeps_rows or state[0].groups == groups)
            and cells.values.keys() == groups.keys()
            and all(
                cell[0] == sum(groups[key].values())
                and all(
                    part.agrees(acc, groups[key])
                    for part, acc in zip(self.parts, self.accs(cell), strict=True)
                )
                for key, cell in cells.values.items()
            )
        )


def _remembered(cells: Any) -> dict[Any, Any]:
    """A dict for the old cells of a step, in the journal where there is one."""
    old: dict[Any, Any] = {}
    if cells.journal is not None:
        cells.journal.append(old)
    return old


# ---- differential operators ----


class ReduceByKey(ReduceGroups):
    """The bag of `(key, result)` for a bag of rows; see `Reducer.operator`.

    >>> from ebbflow.reducer import sum
    >>> revenue = sum(lambda sale: sale[1]).operator(lambda sale: sale[0])
    >>> live = revenue.open(ZSet.of([("Rome", 10), ("Oslo", 7)]))
    >>> live.send(ZSet({("Rome", 5): 1, ("Oslo", 7): -1}))
    ZSet({('Rome', 10): -1, ('Rome', 15): 1, ('Oslo', 7): -1})
    """

    output = BAG

    def __init__(
        self, reducer: Reducer[Any, Any, Any], key: tuple[Key, ...] | Fn | None,
        shape: ResultShape = PAIR, row_type: Any = Any, before: Chain | None = None,
        owner: Any = None,
    ) -> None:  # fmt: skip
        self.given = key if isinstance(key, tuple) else (key,)
        by = getter(*key) if isinstance(key, tuple) else key
        super().__init__(reducer, by, shape, row_type, before, owner)

    def f(self, x: Bag) -> Bag:
        rows = x.flat_map(self.before.rows) if self.before.steps else x
        bags: dict[Any, dict[Any, int]] = {}
        for row, weight in rows.items():
            bags.setdefault(() if self.key is None else self.key(row), {})[row] = weight
        several = len(self.parts) > 1
        out = []
        for key, bag in bags.items():
            result = self.reducer(ZSet(bag))
            out.append(self.make(key, *(result if several else (result,))))
        return ZSet.of(out)

    def step(self, state: Any, change: Bag) -> tuple[Any, Bag]:
        return state, trusted(self.update(state, change))

    def __repr__(self) -> str:
        return f"({self.reducer!r}).operator({', '.join(map(key_text, self.given))})"


class ReduceAll(ReduceGroups):
    """The result for all rows of a bag, replaced when it changes; see `Reducer.operator`.

    >>> from ebbflow.reducer import max
    >>> live = max().operator().open(ZSet.of([3, 5]))
    >>> live.send(ZSet({3: -1})), live.send(ZSet({5: -1, 4: 1}))
    (KEEP, Replace(value=4))
    """

    output = REPLACE

    def __init__(self, reducer: Reducer[Any, Any, Any]) -> None:
        super().__init__(reducer, None, PAIR)

    def f(self, x: Bag) -> Any:
        return self.reducer(x)

    def now(self, state: Any) -> Any:
        """The result as it is."""
        cells = state[1] if self.keeps_rows else state
        there = cells.values.get(())
        accs = self.no_rows[1:-1] if there is None else self.accs(there)
        results = [part.result(acc) for part, acc in zip(self.parts, accs, strict=True)]
        return results[0] if len(results) == 1 else tuple(results)

    def step(self, state: Any, change: Bag) -> tuple[Any, Any]:
        old = self.now(state)
        self.update(state, change)
        new = self.now(state)
        return state, KEEP if new is old or new == old else Replace(new)

    def __repr__(self) -> str:
        return f"({self.reducer!r}).operator()"
