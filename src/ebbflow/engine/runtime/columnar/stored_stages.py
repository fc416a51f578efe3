"""Stages on columns whose state is stored: they begin with nothing, look up the keys that a change
touches, and stage what the change did.

A group-by has the cells of the touched keys put into its kernel, takes the step there, and stages
the new cells. An index need not have stored rows in its kernel at all: that has the rows of the
change alone. As a join is bilinear, what changes in it is

    new left x new right  +  stored right x new left  +  stored left x new right

where "stored" are the rows of the touched keys as they were, read from the spine, which meet the
new rows of the other side. Rows that are stored with opposite weights in two segments give pairs
that cancel, wherever these are added up.

A step that does not fit raises `RowsNeeded`, and the whole epoch runs in rows: nothing is lost, as
all that was done is staged in spines that nobody has committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ebbflow.engine.runtime.columnar.keyed import (
    ArrangedColumns,
    ColumnArrangeStage,
    ColumnDistinctStage,
    ColumnJoinStage,
    ColumnKeyStage,
    ColumnSemiStage,
)
from ebbflow.engine.runtime.columnar.stages import ColumnStage, together
from ebbflow.engine.runtime.columnar.stored import (
    Asked,
    arrays_of,
    keys_form,
    load,
    of_keys,
    records_form,
    shape_of,
    stage_cells,
    stored_rows,
    stored_weights,
)
from ebbflow.engine.runtime.columnar.stored_cells import COUNT
from ebbflow.errors import EbbflowError
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.chained import NOW, ChainedRows
from ebbflow.kernel.columns import Columns
from ebbflow.kernel.hashing import matrix
from ebbflow.kernel.words import WordForm, forms_of
from ebbflow.state.spine import Spine
from ebbflow.state.spine.columns import ColumnShape


class RowsNeeded(EbbflowError):
    """A step that columns cannot take; rows can."""


class StoredStage(ColumnStage):
    """What stages on columns with stored state share."""

    __slots__ = ()

    def run(self, *changes: Any) -> Any:
        try:
            return self.step(*changes)
        except DoesNotFit as why:
            raise RowsNeeded(str(why)) from why

    def spine(self, container: int = 0) -> Spine:
        """Where the rows of a container are stored."""
        backing: Any = self.by_rows.containers[container].backing
        found: Spine = backing.kept
        return found

    def stage_changes(self) -> None:
        """Stage what the epoch did."""

    def clear(self) -> None:
        """Be as before the epoch: the state is elsewhere."""
        self.state.forget()
        for kernel in self.state.held:
            kernel.clear()


class StoredKeyStage(StoredStage, ColumnKeyStage):
    """Rows by key, not kept."""

    __slots__ = ()

    def __init__(self, of: ColumnKeyStage) -> None:
        super().__init__(of.by_rows, of.texts, of.reads_type, of.before, of.key_of)


class StoredArrangeStage(StoredStage, ColumnArrangeStage):
    """Rows by key, kept in a spine; the kernel has those of the change. Rows that go are
    `checked_before` where they follow from rows that an input has looked for: these are there."""

    __slots__ = ("checked_before", "given")

    def __init__(self, of: ColumnArrangeStage) -> None:
        super().__init__(of.by_rows, of.texts, of.reads_type, of.before, of.key_of)
        self.chained.bag = self.checked_before = False
        self.given: ArrangedColumns | None = None

    @property
    def key_shape(self) -> ColumnShape:
        return of_keys(self.key_of.forms)

    @property
    def row_forms(self) -> Sequence[WordForm]:
        return forms_of(self.before.type) or ()

    def step(self, change: Any) -> Any:
        arranged = ColumnArrangeStage.step(self, change)
        if not arranged.columns.canonical:
            columns = self._everything()
            arranged = ArrangedColumns(columns, self.key_of(columns))
        if self.by_rows.index.bag and not self.checked_before:
            self._require_there(arranged)
        self.given = arranged
        return arranged

    def _require_there(self, arranged: ArrangedColumns) -> None:
        """Refuse to lose rows that are not there."""
        weights = arranged.columns.weights
        gone = np.flatnonzero(weights < 0)
        if not len(gone):
            return
        rows = matrix([words[gone] for words in arranged.columns.fields])
        there = stored_weights(
            self.spine(), keys_form(self.key_of.forms), arranged.keys[gone],
            records_form(self.before.type), rows, self.texts,
        )  # fmt: skip
        if (there + weights[gone] < 0).any():
            raise DoesNotFit("a row is taken away that is not there")

    def distinct_keys(self) -> Any:
        """The keys of the change, each once."""
        table = self.chained.keys
        return table.words(table.used())

    def stored(self, keys: Any, weights: Any = None) -> ArrangedColumns:
        """The rows of some keys, all different, as they were before the epoch; their weights times
        those of the keys, where these have some."""
        asked = Asked(self.key_shape, self.key_of.forms, keys, self.texts)
        columns, at = stored_rows(self.spine(), asked, self.before.type)
        if weights is not None:
            counts = columns.weights
            if len(counts) and max(counts.max(), -counts.min()) >= 1 << 62:
                raise DoesNotFit("a weight of more than 62 bits")
            columns.weights = counts * weights[at]
        return ArrangedColumns(columns, keys[at])

    def stage_changes(self) -> None:
        given, self.given = self.given, None
        if given is None or not len(given):
            return
        keys = arrays_of(self.key_of.forms, given.keys.T, self.texts)
        rows = arrays_of(self.row_forms, given.columns.fields, self.texts)
        shapes = self.key_shape, shape_of("record", self.row_forms)
        self.spine().append_columns(
            (shapes[0], keys), (shapes[1], rows), np.ascontiguousarray(given.columns.weights)
        )

    def clear(self) -> None:
        super().clear()
        self.given = None


class StoredJoinStage(StoredStage, ColumnJoinStage):
    """A join of two stored arrangements; see the module."""

    __slots__ = ()

    left: StoredArrangeStage
    right: StoredArrangeStage

    def __init__(self, of: ColumnJoinStage, left: Any, right: Any) -> None:
        super().__init__(of.by_rows, of.texts, left, right, of.made, of.after, of.one_to_one)

    def step(self, left: Any, right: Any) -> Any:
        parts = []
        if left and right:
            parts.append(self._meeting(left, self.right.chained, False))
        if left:
            there = self.right.stored(self.left.distinct_keys())
            parts.append(self._meeting(there, self.left.chained, True))
        if right:
            there = self.left.stored(self.right.distinct_keys())
            parts.append(self._meeting(there, self.right.chained, False))
        one = together(parts, self.texts)
        one.canonical = self.one_to_one and len(parts) == 1 and there.columns.canonical
        return self.after(one)

    def _meeting(self, mine: ArrangedColumns, index: ChainedRows, flipped: bool) -> Columns:
        at, entries, weights, _ = index.meet(mine.keys, mine.columns.weights, NOW)
        return self._pairs(mine, index, at, entries, weights, flipped)


class StoredSemiStage(StoredStage, ColumnSemiStage):
    """A semijoin or antijoin of a stored arrangement with stored counts of the keys of another."""

    __slots__ = ()

    left: StoredArrangeStage

    def __init__(self, of: ColumnSemiStage, left: Any, right: Any) -> None:
        super().__init__(of.by_rows, of.texts, left, right, of.anti)

    def step(self, left: Any, right: Any) -> Any:
        forms, parts = self.right.key_of.forms, []
        keys = [side.keys for side in (left, right) if side]
        asked = np.concatenate(keys)
        load(self.present, asked, of_keys(forms), forms, self.spine(), COUNT, self.texts)
        if right:
            nothing = np.empty((len(right), 0), np.int64)
            turned, signs = self.present.step(right.keys, nothing, right.columns.weights)
            signs = -signs if self.anti else signs
            there = self.left.stored(np.ascontiguousarray(turned.T), signs)
            parts.append(there.columns)
        if left:
            parts.append(self._passing(left))
        made = together(parts, self.texts)
        made.canonical = not right and left.columns.canonical
        return made

    def stage_changes(self) -> None:
        forms = self.right.key_of.forms
        stage_cells(self.present, of_keys(forms), forms, self.spine(), COUNT, self.texts)


class StoredDistinctStage(StoredStage, ColumnDistinctStage):
    """Every row once: how often each is there is stored."""

    __slots__ = ()

    def __init__(self, of: ColumnDistinctStage) -> None:
        super().__init__(of.by_rows, of.texts, of.reads_type)

    @property
    def forms(self) -> Sequence[WordForm]:
        return forms_of(self.reads_type) or ()

    def step(self, change: Any) -> Any:
        columns = self.columns(change, self.reads_type)
        rows = matrix(columns.fields)
        shape = shape_of("record", self.forms)
        load(self.present, rows, shape, self.forms, self.spine(), COUNT, self.texts)
        return ColumnDistinctStage.step(self, columns)

    def stage_changes(self) -> None:
        shape = shape_of("record", self.forms)
        stage_cells(self.present, shape, self.forms, self.spine(), COUNT, self.texts)
