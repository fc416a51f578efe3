"""Reduces and tops on columns whose state is stored: that of the touched keys is put into the
kernel, which takes the step, and what is new is staged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ebbflow.engine.runtime.columnar.keyed import ColumnGroupStage
from ebbflow.engine.runtime.columnar.stages import ColumnReduceStage, ColumnStage
from ebbflow.engine.runtime.columnar.stored import (
    Asked,
    KeptValues,
    load,
    of_keys,
    stage_cells,
    stored_rows,
)
from ebbflow.engine.runtime.columnar.stored_cells import cell_of
from ebbflow.engine.runtime.columnar.stored_kernels import stage_top_cells, stage_top_rows
from ebbflow.engine.runtime.columnar.stored_stages import StoredArrangeStage, StoredStage
from ebbflow.engine.runtime.columnar.top import ColumnTopStage
from ebbflow.kernel.columns import Columns
from ebbflow.kernel.hashing import WordTable
from ebbflow.kernel.words import NULL


class StoredReduceStage(StoredStage, ColumnReduceStage):
    """Counts, sums and means by key, whose cells are stored."""

    __slots__ = ("cell",)

    def __init__(self, of: ColumnReduceStage) -> None:
        super().__init__(
            of.by_rows, of.texts, of.reads_type, of.before, of.key_of, of.values, of.groups,
            of.cells_of, of.stored,
        )  # fmt: skip
        self.cell = cell_of(of.stored, of.groups)

    def step(self, change: Any) -> Any:
        columns = self.before(self.columns(change, self.reads_type))
        forms = self.key_of.forms
        keys = self.key_of(columns)
        load(self.groups, keys, of_keys(forms), forms, self.spine(), self.cell, self.texts)
        values = self.values(columns)
        out, signs = self.groups.step(keys, values, columns.weights)
        return Columns(self.type, list(out), signs, self.texts, canonical=True)

    def stage_changes(self) -> None:
        forms = self.key_of.forms
        stage_cells(self.groups, of_keys(forms), forms, self.spine(), self.cell, self.texts)


class StoredGroupStage(StoredStage, ColumnGroupStage):
    """Reducers that look at the values of groups.

    Where all values are stored, those of the touched groups are put into the kernel. Of a minimum
    or a maximum, an *end*, the value and how often it is there are stored, and mostly no other
    value matters: those that come are behind it, or take its place. Where the last one of it goes,
    all rows of the group are read."""

    __slots__ = ("cell", "ends")

    arranged: StoredArrangeStage

    def __init__(self, of: ColumnGroupStage, arranged: Any) -> None:
        reducers = of.reducers
        self.ends = [at for at, each in enumerate(reducers.looked) if each.order is not None]
        looked = list(reducers.looked)
        for column, at in enumerate(self.ends, len(reducers.values)):
            looked[at] = looked[at]._replace(column=column)
        self.groups = reducers.groups(len(arranged.key_of.parts), looked)
        ColumnStage.__init__(self, of.by_rows, of.texts, self.groups)
        self.arranged, self.reducers, self.values = arranged, reducers, of.values
        self.cell = cell_of(reducers.stored, self.groups)

    def step(self, change: Any) -> Any:
        columns, keys = self.stepped(change)
        groups, forms, weights = self.groups, self.arranged.key_of.forms, columns.weights
        slots, times, kept = load(
            groups, keys, of_keys(forms), forms, self.spine(), self.cell, self.texts
        )
        times = times[:, self.ends]
        owners = np.searchsorted(slots, groups.table.find(keys))
        side = self._values(columns)
        seen = side[:, len(self.reducers.values) :]
        first = groups.cells[np.ix_(slots, [self.reducers.looked[at].cell for at in self.ends])]
        first[groups.cells[slots, 0] == 0] = NULL
        meets = seen == first[owners]
        left = times.copy()
        for j in range(seen.shape[1]):
            np.add.at(left[:, j], owners, np.where(meets[:, j], weights, 0))
        sizes = groups.cells[slots, 0].copy()
        np.add.at(sizes, owners, weights)
        lost = ((first != NULL) & ((times == 0) | (left <= 0))).any(axis=1) & (sizes != 0)
        with self._unjournalled():
            self._put(slots, times, first, lost, kept)
        unknown = ~meets & (weights < 0).reshape(-1, 1)  # behind the first, and not put in
        seen[(unknown & ~lost[owners].reshape(-1, 1)) | (sizes == 0)[owners].reshape(-1, 1)] = NULL
        out, signs = groups.step(keys, side, weights)
        return Columns(self.type, list(out), signs, self.texts, canonical=True)

    def _values(self, columns: Columns) -> Any:
        """The values of rows, and once more those that may be ends."""
        values = self.values(columns)
        again = values[:, [self.reducers.looked[at].column for at in self.ends]]
        return np.concatenate([values, again], axis=1)

    @contextmanager
    def _unjournalled(self) -> Iterator[None]:
        """What is put into the kernel was there before the epoch."""
        journal, self.groups.journal = self.groups.journal, None
        try:
            yield
        finally:
            self.groups.journal = journal

    def _put(self, slots: Any, times: Any, first: Any, lost: Any, kept: list[KeptValues]) -> None:
        """Have the values of groups in the kernel, and of ends the first one; where that is `lost`
        all rows."""
        groups, there = self.groups, slots[~lost]
        for number, (owners, words, often) in kept:
            some = ~lost[owners]
            groups.put_values(number, slots[owners[some]], words[some], often[some], there)
        for j, number in enumerate(self.ends):
            often = np.maximum(times[~lost, j], 1)
            groups.put_values(number, there, first[~lost, j : j + 1], often, there)
        if lost.any():
            groups.cells[slots[lost]] = 0
            rows, keys = self.stepped(self.arranged.stored(groups.table.keys[slots[lost]]))
            groups.step(keys, self._values(rows), rows.weights)

    def stage_changes(self) -> None:
        forms = self.arranged.key_of.forms
        stage_cells(self.groups, of_keys(forms), forms, self.spine(), self.cell, self.texts)


class StoredTopStage(StoredStage, ColumnTopStage):
    """The first rows of each key. All rows are stored by key, and those of the touched keys are put
    into the kernel. What is first is stored beside that, for rows."""

    __slots__ = ()

    def __init__(self, of: ColumnTopStage) -> None:
        super().__init__(of.by_rows, of.texts, of.order, of.reads_type)

    def step(self, change: Any) -> Any:
        columns, forms, top = self.columns(change, self.reads_type), self.key_of.forms, self.top
        keys = self.key_of(columns)
        asked = WordTable(keys.shape[1])
        asked.add(keys)
        there, _ = stored_rows(
            self.spine(), Asked(of_keys(forms), forms, asked.keys[: asked.end], self.texts),
            self.reads_type,
        )  # fmt: skip
        journal, top.journal = top.journal, None
        try:
            top.step(self.key_of(there), self.rows_of(there), there.weights)
        finally:
            top.journal = journal
        return self._columns(*top.step(keys, self.rows_of(columns), columns.weights))

    def stage_changes(self) -> None:
        stage_top_rows(self, self.spine(0))
        stage_top_cells(self, self.spine(1))
