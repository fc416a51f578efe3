"""Reduces on columns whose cells are stored: those of the touched keys are put into the kernel,
which takes the step, and the new cells are staged."""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.engine.runtime.columnar.keyed import ColumnGroupStage
from ebbflow.engine.runtime.columnar.stages import ColumnReduceStage, ColumnStage
from ebbflow.engine.runtime.columnar.stored import load, of_keys, stage_cells
from ebbflow.engine.runtime.columnar.stored_cells import cell_of
from ebbflow.engine.runtime.columnar.stored_stages import StoredArrangeStage, StoredStage
from ebbflow.kernel.columns import Columns
from ebbflow.kernel.groups import Groups
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
    """Reducers that look at the values of groups. Of a minimum or a maximum, the value and how
    often it is there are stored, and mostly no other value matters: those that come are behind it,
    or take its place. Where the last one of it goes, all rows of the group are read."""

    __slots__ = ("cell",)

    arranged: StoredArrangeStage

    def __init__(self, of: ColumnGroupStage, arranged: Any) -> None:
        reducers = of.reducers
        looked = [
            each._replace(column=len(reducers.values) + number)
            for number, each in enumerate(reducers.looked)
        ]
        width = len(arranged.key_of.parts)
        self.groups = Groups(width, reducers.totals, reducers.results, looked, folds=reducers.folds)
        ColumnStage.__init__(self, of.by_rows, of.texts, self.groups)
        self.arranged, self.reducers, self.values = arranged, reducers, of.values
        self.cell = cell_of(reducers.stored, self.groups)

    def step(self, change: Any) -> Any:
        columns, keys = self.stepped(change)
        groups, forms, weights = self.groups, self.arranged.key_of.forms, columns.weights
        slots, times = load(
            groups, keys, of_keys(forms), forms, self.spine(), self.cell, self.texts
        )
        owners = np.searchsorted(slots, groups.table.find(keys))
        side = self._values(columns)
        seen = side[:, len(self.reducers.values) :]
        first = groups.cells[np.ix_(slots, [each.cell for each in self.reducers.looked])]
        first[groups.cells[slots, 0] == 0] = NULL
        meets = seen == first[owners]
        left = times.copy()
        for j in range(seen.shape[1]):
            np.add.at(left[:, j], owners, np.where(meets[:, j], weights, 0))
        sizes = groups.cells[slots, 0].copy()
        np.add.at(sizes, owners, weights)
        lost = ((first != NULL) & ((times == 0) | (left <= 0))).any(axis=1) & (sizes != 0)
        self._begin(slots, times, first, lost)
        unknown = ~meets & (weights < 0).reshape(-1, 1)  # behind the first, and not put in
        seen[(unknown & ~lost[owners].reshape(-1, 1)) | (sizes == 0)[owners].reshape(-1, 1)] = NULL
        out, signs = groups.step(keys, side, weights)
        return Columns(self.type, list(out), signs, self.texts, canonical=True)

    def _values(self, columns: Columns) -> Any:
        """The values of rows, and once more those that are looked at."""
        values = self.values(columns)
        again = values[:, [each.column for each in self.reducers.looked]]
        return np.concatenate([values, again], axis=1)

    def _begin(self, slots: Any, times: Any, first: Any, lost: Any) -> None:
        """Have the first value of each group in the kernel, and where it is `lost` all rows."""
        groups, journal = self.groups, self.groups.journal
        groups.journal = None
        try:
            kept = slots[~lost]
            for j in range(first.shape[1]):
                side = np.full((len(kept), len(self.reducers.values) + first.shape[1]), NULL)
                side[:, len(self.reducers.values) + j] = first[~lost, j]
                often = np.maximum(times[~lost, j], 1)
                groups.values.step(kept, side, often, kept, groups.cells)
            groups._settle()
            if lost.any():
                groups.cells[slots[lost]] = 0
                there, keys = self.stepped(self.arranged.stored(groups.table.keys[slots[lost]]))
                groups.step(keys, self._values(there), there.weights)
        finally:
            groups.journal = journal

    def stage_changes(self) -> None:
        forms = self.arranged.key_of.forms
        stage_cells(self.groups, of_keys(forms), forms, self.spine(), self.cell, self.texts)
