"""Stages on columns that find rows by key: arrangements, joins, semijoins, and distinct rows.

An arrangement gives the change that it has put into its index, with the keys of its rows; the joins
behind it look up what these meet. All stages that read one arrangement are one family: they give up
together, as the rows of one and the columns of another would not meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ebbflow.engine.runtime.columnar.reducers import Reducers
from ebbflow.engine.runtime.columnar.stages import ColumnStage, key_values, together
from ebbflow.engine.runtime.columnar.steps import ChainOnColumns, SideBySide
from ebbflow.engine.runtime.stages import GroupReduceStage, JoinStage, KeyedStage, SemiJoinStage
from ebbflow.kernel.chained import NOW, WAS, ChainedRows
from ebbflow.kernel.columns import Columns
from ebbflow.kernel.expressions import RowOnColumns
from ebbflow.kernel.groups import Groups
from ebbflow.kernel.joined import Change, joined
from ebbflow.kernel.words import Texts, forms_of


class ArrangedColumns:
    """A change with the keys of its rows, and their entries in the index, where they have some and
    each came once."""

    __slots__ = ("columns", "entries", "keys")

    def __init__(self, columns: Columns, keys: Any, entries: Any = None) -> None:
        self.columns, self.keys, self.entries = columns, keys, entries

    @property
    def change(self) -> Change:
        """What a join of two indices looks at."""
        return Change(self.keys, self.columns.matrix, self.columns.weights, self.entries)

    def __len__(self) -> int:
        return len(self.columns)


class ColumnKeyStage(ColumnStage):
    """Rows by key, not kept."""

    __slots__ = ("before", "key_of", "reads_type")

    arranges = True

    def __init__(
        self, by_rows: Any, texts: Texts, reads_type: Any, before: ChainOnColumns,
        key: SideBySide, *kernels: Any,
    ) -> None:  # fmt: skip
        super().__init__(by_rows, texts, *kernels)
        self.reads_type, self.before, self.key_of = reads_type, before, key

    def step(self, change: Any) -> Any:
        columns = self.before(self.columns(change, self.reads_type))
        return ArrangedColumns(columns, self.key_of(columns))

    def by_key(self, change: Any) -> Any:
        """What the row stage gives for a change."""
        if isinstance(change, ArrangedColumns):
            rows = change.columns
            grouped = self.by_rows.by_key if self.by_rows.index is None else None
            return (grouped or self.by_rows.index.grouping)(rows.items())
        return change


class ColumnArrangeStage(ColumnKeyStage):
    """Rows by key, kept in `ChainedRows`."""

    __slots__ = ("chained",)

    def __init__(
        self, by_rows: Any, texts: Texts, reads_type: Any, before: ChainOnColumns,
        key: SideBySide,
    ) -> None:  # fmt: skip
        width = len(forms_of(before.type) or ())
        self.chained = ChainedRows(len(key.parts), width, bag=by_rows.index.bag)
        super().__init__(by_rows, texts, reads_type, before, key, self.chained)

    def step(self, change: Any) -> Any:
        arranged = super().step(change)
        columns = arranged.columns
        entries = self.chained.apply(arranged.keys, columns.matrix, columns.weights)
        arranged.entries, columns.canonical = entries, entries is not None
        return arranged

    def _everything(self) -> Columns:
        return all_rows(self.chained, self.before.type, self.texts)

    def whole(self, *_: Any) -> Any:
        if self.given_up:
            return self.by_rows.whole()
        columns = self._everything()
        return ArrangedColumns(columns, self.key_of(columns))

    def fill(self) -> None:
        index = self.by_rows.index
        index.put(index.grouping(self._everything().items()))


def all_rows(index: ChainedRows, row_type: Any, texts: Texts) -> Columns:
    """All rows of an index, which are of this type."""
    rows, weights = index.everything()
    return Columns(row_type, list(rows.T.copy()), weights, texts, canonical=True)


def found_rows(
    index: ChainedRows, keys: Any, signs: Any, when: int, row_type: Any, texts: Texts
) -> list[Columns]:
    """The rows of an index that have these keys, as they are NOW or WERE, their weights times the
    signs; nothing where there is none."""
    if not len(keys) or not len(index):
        return []
    _, entries, weights, _ = index.meet(keys, signs, when)
    return index_rows(index, entries, weights, row_type, texts)


def index_rows(
    index: ChainedRows, entries: Any, weights: Any, row_type: Any, texts: Texts
) -> list[Columns]:
    """These entries of an index as columns; nothing where there is none."""
    if not len(entries):
        return []
    fields = [index.column(at, entries) for at in range(index.rows.width)]
    return [Columns(row_type, fields, weights, texts)]


def with_passing(
    turned: list[Columns], left: Any, passing: Callable[[ArrangedColumns], Columns], texts: Texts
) -> Any:
    """The change of a stage that chooses rows of the left: those that have turned, and those of the
    change of the left that pass."""
    if not left:
        return together(turned, texts) if turned else {}
    some = passing(left)
    some.canonical = left.columns.canonical
    return together([*turned, some], texts)


class ColumnJoinStage(ColumnStage):
    """A join of two arrangements on columns, with the steps behind it."""

    __slots__ = ("after", "left", "made", "one_to_one", "plain", "plan", "right")

    by_rows: JoinStage

    def __init__(
        self, by_rows: JoinStage, texts: Texts, left: ColumnArrangeStage,
        right: ColumnArrangeStage, made: RowOnColumns, after: ChainOnColumns, one_to_one: bool,
    ) -> None:  # fmt: skip
        super().__init__(by_rows, texts)
        self.left, self.right, self.made, self.after = left, right, made, after
        self.one_to_one = one_to_one
        self.plain = made.program is None
        wanted: Any = [*made.passed.values()]
        if not self.plain:
            widths = left.chained.rows.width, right.chained.rows.width
            wanted = [(side, at) for side in (0, 1) for at in range(widths[side])]
        self.plan = np.array(wanted, np.int64).reshape(-1, 2)

    def rows_given(self, *changes: Any) -> Sequence[Any]:
        left, right = changes
        return self.left.by_key(left), self.right.by_key(right)

    def step(self, left: Any, right: Any) -> Any:
        if any(side and side.entries is None for side in (left, right)):
            return self.joined(left, right, NOW, WAS)
        ours, theirs = (side.change if side else None for side in (left, right))
        out, weights = joined(self.left.chained, self.right.chained, ours, theirs, self.plan)
        fields = list(out)
        if not self.plain:
            width = self.left.chained.rows.width
            parts = fields[:width], fields[width:]
            sides = [each.__getitem__ for each in parts]
            fields = self.made.fields(sides, len(weights), parts)
        one = Columns(self.by_rows.node.type, fields, weights, self.texts)
        one.canonical = self.one_to_one
        return self.after(one)

    def whole(self, left: Any, right: Any) -> Any:
        if self.given_up:
            return self.by_rows.whole(left, right)
        return self.joined(left, None, NOW, NOW)

    def joined(self, left: Any, right: Any, rights: int, lefts: int) -> Any:
        """The change of a join: a change of the left with the right as it is `rights`, and one of
        the right with the left as it is `lefts`. Only pairs of two changed rows can meet twice."""
        sides = [
            (mine, index, flipped, index.meet(mine.keys, mine.columns.weights, when))
            for mine, index, when, flipped in (
                (left, self.right.chained, rights, False),
                (right, self.left.chained, lefts, True),
            )
            if mine
        ]
        if not sides:
            return {}
        once: list[Columns] = []
        twice: list[Columns] = []
        both = len(sides) == 2 and all(fresh.any() for *_, (_, _, _, fresh) in sides)
        for mine, index, flipped, (at, entries, weights, fresh) in sides:
            for mask in (~fresh, fresh) if both else (slice(None),):
                part = self._pairs(mine, index, at[mask], entries[mask], weights[mask], flipped)
                (twice if mask is fresh else once).append(part)
        if twice:
            once.append(together(twice, self.texts).consolidated())
        one = together(once, self.texts)
        given = [side.columns.canonical for side in (left, right) if side]
        one.canonical = self.one_to_one and all(given)
        return self.after(one)

    def _pairs(
        self, mine: ArrangedColumns, index: ChainedRows, at: Any, entries: Any, weights: Any,
        flipped: bool,
    ) -> Columns:  # fmt: skip
        columns = mine.columns
        ours = [columns.words(each)[at] for each in range(len(columns.given))]
        theirs = [index.column(each, entries) for each in range(index.rows.width)]
        parts = (theirs, ours) if flipped else (ours, theirs)
        fields = self.made.fields([each.__getitem__ for each in parts], len(at), parts)
        return Columns(self.by_rows.node.type, fields, weights, self.texts)


class ColumnGroupStage(ColumnStage):
    """A reduce of rows that were arranged, with reducers that count the values of a group."""

    __slots__ = ("arranged", "groups", "reducers", "values")

    by_rows: GroupReduceStage

    def __init__(
        self, by_rows: GroupReduceStage, texts: Texts, arranged: ColumnKeyStage, reducers: Reducers
    ) -> None:
        self.groups = reducers.groups(len(arranged.key_of.parts))
        super().__init__(by_rows, texts, self.groups)
        self.arranged, self.reducers = arranged, reducers
        self.values = SideBySide(reducers.values)

    def rows_given(self, *changes: Any) -> Sequence[Any]:
        return [self.arranged.by_key(change) for change in changes]

    def step(self, change: Any) -> Any:
        columns, keys = self.stepped(change)
        out, signs = self.groups.step(keys, self.values(columns), columns.weights)
        return Columns(self.type, list(out), signs, self.texts, canonical=True)

    def stepped(self, change: ArrangedColumns) -> tuple[Columns, Any]:
        """The rows of a change and their keys. Where each row is a step of a reducer, none comes
        and goes at once."""
        columns = change.columns
        if columns.canonical or not self.groups.folds:
            return columns, change.keys
        columns = columns.consolidated()
        return columns, self.arranged.key_of(columns)

    def whole(self, *_: Any) -> Any:
        return self.by_rows.whole() if self.given_up else self._read(self.groups)

    def fill(self) -> None:
        operator, reducers = self.by_rows.operator, self.reducers
        slots = self.groups.slots()
        keys = key_values(self.arranged.key_of.forms, self.groups.table.keys[slots], self.texts)
        counted = reducers.counted_values(self.groups)
        cells = zip(keys, slots.tolist(), self.groups.cells[slots].tolist(), strict=True)
        values = self.by_rows.cells.values
        for key, slot, cell in cells:
            slotted = (*reducers.cell(cell, counted.get(slot)), None)
            values[key] = operator.cell(key, cell[0], operator.accs(slotted))


class ColumnSemiStage(ColumnStage):
    """A semijoin or antijoin of an arrangement with the keys of another collection, which are
    `Groups` that come and go."""

    __slots__ = ("anti", "left", "present", "right")

    by_rows: SemiJoinStage

    def __init__(
        self, by_rows: SemiJoinStage, texts: Texts, left: ColumnArrangeStage, right: ColumnKeyStage,
        anti: bool,
    ) -> None:  # fmt: skip
        self.present = Groups(len(right.key_of.parts), [], [])
        super().__init__(by_rows, texts, self.present)
        self.left, self.right, self.anti = left, right, anti

    def rows_given(self, *changes: Any) -> Sequence[Any]:
        left, right = changes
        return self.left.by_key(left), self.right.by_key(right)

    def step(self, left: Any, right: Any) -> Any:
        parts = []
        if right:
            keys, signs = self.present.step(right.keys, _nothing(len(right)), right.columns.weights)
            keys = np.ascontiguousarray(keys.T)
            signs = -signs if self.anti else signs
            index = self.left.chained
            parts += found_rows(index, keys, signs, WAS, self.left.before.type, self.texts)
        return with_passing(parts, left, self._passing, self.texts)

    def _passing(self, left: ArrangedColumns) -> Columns:
        there = self.present.has(left.keys)
        return left.columns.taken(np.flatnonzero(there != self.anti))

    def whole(self, left: Any, right: Any) -> Any:
        return self.by_rows.whole(left, right) if self.given_up else self._passing(left)

    def fill(self) -> None:
        keys, cells = self.present.everything()
        found = key_values(self.right.key_of.forms, keys, self.texts)
        sizes = cells[:, 0].tolist()
        self.by_rows.totals.values.update(zip(found, sizes, strict=True))


class ColumnDistinctStage(ColumnStage):
    """Every row once: rows are `Groups` that come and go."""

    __slots__ = ("present", "reads_type")

    by_rows: KeyedStage

    def __init__(self, by_rows: KeyedStage, texts: Texts, reads_type: Any) -> None:
        self.present = Groups(len(forms_of(reads_type) or ()), [], [])
        super().__init__(by_rows, texts, self.present)
        self.reads_type = reads_type

    def step(self, change: Any) -> Any:
        columns = self.columns(change, self.reads_type)
        rows, signs = self.present.step(columns.matrix, _nothing(len(columns)), columns.weights)
        return Columns(self.type, list(rows), signs, self.texts, canonical=True)

    def whole(self, *_: Any) -> Any:
        return self.by_rows.whole() if self.given_up else self._read(self.present)

    def fill(self) -> None:
        rows, cells = self.present.everything()
        columns = Columns(
            self.reads_type, list(rows.T.copy()), cells[:, 0].copy(), self.texts, canonical=True
        )
        self.by_rows.containers[0].values.update(columns.rows)  # type: ignore[attr-defined]


def _nothing(count: int) -> Any:
    return np.empty((count, 0), np.int64)
