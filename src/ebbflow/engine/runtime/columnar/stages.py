"""The stages on columns: steps on rows, reduces, arrangements and joins.

Each replaces a row stage (`by_rows`) and equals it. `run` takes columns, or rows, of which it makes
columns first; when a value does not fit, the row stage does it. A stage with state hands that over
to the row stage, once and for good: `give_up`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ebbflow.engine.runtime.columnar.steps import ChainOnColumns, KeyOnColumns, side_by_side
from ebbflow.engine.runtime.stage import (
    ArrangeStage,
    FusedReduceStage,
    JoinStage,
    LinearStage,
    Stage,
)
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arithmetic import Computed, RowOnColumns
from ebbflow.kernel.chained import NOW, WAS, ChainedRows
from ebbflow.kernel.columns import Columns, columns_of_rows
from ebbflow.kernel.groups import Groups
from ebbflow.kernel.hashing import matrix
from ebbflow.kernel.words import Texts, decoded, forms_of

Rowwise = Any
"""A row stage."""


class ColumnState:
    """The container of a stage on columns: that of the kernel, until rows have taken over; then
    those of the row stage."""

    __slots__ = ("held", "open")
    backing = None

    def __init__(self, *held: Any) -> None:
        self.held: Sequence[Any] = held
        self.open = False

    @property
    def journal(self) -> Any:
        """Something while an epoch is open."""
        return self if self.open else None

    def begin(self) -> None:
        """Remember from here on what is done."""
        for each in self.held:
            each.begin()
        self.open = True

    def commit(self) -> None:
        """Keep what was done since `begin`."""
        self.open = False
        for each in self.held:
            if each.journal is not None:
                each.commit()

    def rollback(self) -> None:
        """Undo what was done since `begin`."""
        self.open = False
        for each in self.held:
            if each.journal is not None:
                each.rollback()

    def forget(self) -> None:
        """Have no epoch open, whatever it did."""
        self.open = False
        for each in self.held:
            each.forget()

    def hand_over(self, containers: Sequence[Any]) -> None:
        """Hold other containers from here on; the epoch that is open stays so."""
        self.held = containers
        if self.open:
            for each in containers:
                each.begin()

    def __len__(self) -> int:
        return sum(map(len, self.held))


class ColumnStage(Stage):
    """A stage on columns in the place of a row stage.

    `texts` are those of the program. `given_up` is why rows have taken over, or nothing.
    """

    __slots__ = ("by_rows", "given_up", "texts")

    in_columns = True

    def __init__(self, by_rows: Rowwise, texts: Texts, *containers: Any) -> None:
        self.by_rows, self.texts, self.given_up = by_rows, texts, ""
        self.node, self.owner, self.label = by_rows.node, by_rows.owner, by_rows.label
        self.reads, self.slot, self.type = by_rows.reads, by_rows.slot, by_rows.type
        self.counts = by_rows.counts
        self.containers = containers

    @property
    def kept(self) -> bool:  # type: ignore[override]
        return bool(self.by_rows.kept)

    @property
    def certain(self) -> bool:  # type: ignore[override]
        return bool(self.by_rows.certain)

    @property
    def steps(self) -> Any:  # type: ignore[override]
        return self.by_rows.steps

    def loops(self, stored: bool) -> tuple[Callable[..., Any], ...]:
        loops: tuple[Callable[..., Any], ...] = self.by_rows.loops(stored)
        return loops

    def code_of(self, stored: bool) -> Iterator[Any]:
        yield from self.by_rows.code_of(stored)

    def columns(self, change: Any, row_type: Any) -> Columns:
        """A change as columns."""
        if isinstance(change, Columns):
            return change
        return columns_of_rows(change or {}, row_type, self.texts)

    def give_up(self, why: object) -> None:
        """Hand the state over to the row stage, for good."""
        self.given_up = self.given_up or str(why)


def as_rows(change: Any) -> Any:
    """A change as a dict of rows, for a row stage."""
    return change.rows if isinstance(change, Columns) else change


class ColumnLinearStage(ColumnStage):
    """Filters and maps on each slot that it reads, added up. It has no state: what does not fit
    goes through the row stage, and the next change may fit again."""

    __slots__ = ("chains", "types")

    by_rows: LinearStage

    def __init__(
        self, by_rows: LinearStage, texts: Texts, chains: Sequence[ChainOnColumns],
        types: Sequence[Any],
    ) -> None:  # fmt: skip
        super().__init__(by_rows, texts)
        self.chains, self.types = chains, types

    def run(self, *changes: Any) -> Any:
        try:
            parts = [
                chain(self.columns(change, row_type))
                for chain, change, row_type in zip(self.chains, changes, self.types, strict=True)
                if change
            ]
        except DoesNotFit:
            return self.by_rows.run(*map(as_rows, changes))
        return _together(parts, self.texts) if parts else {}


class ColumnReduceStage(ColumnStage):
    """Counts, sums and means by key, in `Groups`."""

    __slots__ = ("before", "cells_of", "groups", "key_of", "reads_type", "state", "values")

    by_rows: FusedReduceStage

    def __init__(
        self, by_rows: FusedReduceStage, texts: Texts, reads_type: Any, before: ChainOnColumns,
        key: KeyOnColumns, values: Sequence[Computed], groups: Groups,
        cells_of: Any,
    ) -> None:  # fmt: skip
        self.state = ColumnState(groups)
        super().__init__(by_rows, texts, self.state)
        self.reads_type, self.before, self.key_of, self.values = reads_type, before, key, values
        self.groups, self.cells_of = groups, cells_of

    def run(self, change: Any) -> Any:
        if not self.given_up:
            try:
                columns = self.before(self.columns(change, self.reads_type))
                values = side_by_side(self.values, [columns.words], len(columns))
                out, signs = self.groups.step(self.key_of(columns), values, columns.weights)
                return Columns(self.type, list(out), signs, self.texts, canonical=True)
            except DoesNotFit as why:
                self.give_up(why)
        return self.by_rows.run(as_rows(change))

    def whole(self, *_: Any) -> Any:
        if self.given_up:
            return self.by_rows.whole()
        out = self.groups.read()
        ones = np.ones(out.shape[1], np.int64)
        return Columns(self.type, list(out), ones, self.texts, canonical=True)

    def give_up(self, why: object) -> None:
        if self.given_up:
            return
        super().give_up(why)
        keys, cells = self.groups.everything()
        self.by_rows.cells.values.update(self.cells_of(keys, cells))
        self.groups.clear()
        self.groups.forget()
        self.state.hand_over(self.by_rows.containers)


class ArrangedColumns:
    """A change with the keys of its rows, for the joins behind an arrangement."""

    __slots__ = ("columns", "keys", "rows")

    def __init__(self, columns: Columns, keys: Any) -> None:
        self.columns, self.keys = columns, keys
        self.rows = matrix(columns.fields)

    def __len__(self) -> int:
        return len(self.columns)


class ColumnArrangeStage(ColumnStage):
    """Rows by key, kept in `ChainedRows`. It gives up together with all joins that read it, and
    their other sides: its `family`."""

    __slots__ = ("before", "done", "family", "index_rows", "key_of", "reads_type", "state")

    by_rows: ArrangeStage
    arranges = True

    def __init__(
        self, by_rows: ArrangeStage, texts: Texts, reads_type: Any, before: ChainOnColumns,
        key: KeyOnColumns,
    ) -> None:  # fmt: skip
        width = len(forms_of(before.type) or ())
        self.index_rows = ChainedRows(len(key.parts), width, bag=by_rows.index.bag)
        self.state = ColumnState(self.index_rows)
        super().__init__(by_rows, texts, self.state)
        self.reads_type, self.before, self.key_of = reads_type, before, key
        self.family: list[ColumnStage] = []
        self.done: Any = None
        """The change of the epoch that is open, where it is in the index already."""

    def run(self, change: Any) -> Any:
        self.done = None
        if not self.given_up:
            try:
                columns = self.before(self.columns(change, self.reads_type))
                arranged = ArrangedColumns(columns, self.key_of(columns))
                self.index_rows.apply(arranged.keys, arranged.rows, columns.weights)
                self.done = change
                return arranged
            except DoesNotFit as why:
                for stage in self.family:
                    stage.give_up(why)
        return self.by_rows.run(as_rows(change))

    def whole(self, *_: Any) -> Any:
        if self.given_up:
            return self.by_rows.whole()
        rows, weights = self.index_rows.everything()
        columns = Columns(self.type, list(rows.T.copy()), weights, self.texts, canonical=True)
        return ArrangedColumns(columns, self.key_of(columns))

    def give_up(self, why: object) -> None:
        if self.given_up:
            return
        super().give_up(why)
        again, self.done = self.done if self.state.open else None, None
        if self.index_rows.journal is not None:
            self.index_rows.rollback()
        rows, weights = self.index_rows.everything()
        columns = Columns(self.type, list(rows.T.copy()), weights, self.texts, canonical=True)
        index = self.by_rows.index
        index.put(index.grouping(columns.items()))
        self.index_rows.clear()
        self.state.hand_over(self.by_rows.containers)
        if again is not None:
            self.by_rows.run(as_rows(again))

    def by_key(self, change: Any) -> Any:
        """What the row stage gives for a change."""
        if isinstance(change, ArrangedColumns):
            return self.by_rows.index.grouping(change.columns.items())
        return change


class ColumnJoinStage(ColumnStage):
    """A join of two arrangements on columns, with the steps behind it."""

    __slots__ = ("after", "left", "made", "one_to_one", "right")

    by_rows: JoinStage

    def __init__(
        self, by_rows: JoinStage, texts: Texts, left: ColumnArrangeStage, right: ColumnArrangeStage,
        made: RowOnColumns, after: ChainOnColumns, one_to_one: bool,
    ) -> None:  # fmt: skip
        super().__init__(by_rows, texts)
        self.left, self.right, self.made, self.after = left, right, made, after
        self.one_to_one = one_to_one

    def run(self, left: Any, right: Any) -> Any:
        if not self.given_up:
            try:
                return self.joined(left, right, NOW, WAS)
            except DoesNotFit as why:
                for stage in self.left.family:
                    stage.give_up(why)
        return self.by_rows.run(self.left.by_key(left), self.right.by_key(right))

    def joined(self, left: Any, right: Any, rights: int, lefts: int) -> Any:
        """The change of a join: a change of the left with the right as it is `rights`, and one of
        the right with the left as it is `lefts`."""
        sure: list[Columns] = []
        twice: list[Columns] = []
        for mine, index, when, flipped in (
            (left, self.right.index_rows, rights, False),
            (right, self.left.index_rows, lefts, True),
        ):
            if not mine:
                continue
            at, entries, weights, fresh = index.meet(mine.keys, mine.columns.weights, when)
            both = bool(left) and bool(right)
            for mask in (~fresh, fresh) if both and fresh.any() else (slice(None),):
                part = self._pairs(mine, index, at[mask], entries[mask], weights[mask], flipped)
                (twice if mask is fresh else sure).append(part)
        if not sure:
            return {}
        if twice:
            sure.append(_together(twice, self.texts).consolidated())
        one = _together(sure, self.texts)
        one.canonical = self.one_to_one and all(
            side.columns.canonical for side in (left, right) if side
        )
        return self.after(one)

    def _pairs(
        self,
        mine: ArrangedColumns,
        index: ChainedRows,
        at: Any,
        entries: Any,
        weights: Any,
        flipped: bool,
    ) -> Columns:
        def ours(field: int) -> Any:
            return mine.columns.words(field)[at]

        def theirs(field: int) -> Any:
            return index.column(field, entries)

        sides = (theirs, ours) if flipped else (ours, theirs)
        found = Columns(
            self.by_rows.node.type, self.made.words(sides, len(at)), weights, self.texts
        )
        found.given = found.fields  # now: the index goes on
        return found

    def whole(self, left: Any, right: Any) -> Any:
        if self.given_up:
            return self.by_rows.whole(left, right)
        return self.joined(left, None, NOW, NOW)


def _together(parts: Sequence[Columns], texts: Texts) -> Columns:
    if len(parts) == 1:
        return parts[0]
    fields = [
        np.concatenate([part.words(at) for part in parts]) for at in range(len(parts[0].given))
    ]
    return Columns(parts[0].type, fields, np.concatenate([p.weights for p in parts]), texts)


def key_values(forms: Sequence[Any], keys: Any, texts: Texts) -> list[Any]:
    """Keys as the row path has them: one value, or a tuple of several."""
    if not forms:
        return [()] * len(keys)
    parts = [decoded(form, np.ascontiguousarray(keys[:, j]), texts) for j, form in enumerate(forms)]
    return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))
