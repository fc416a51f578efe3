"""Kernels whose state is stored as well, and the inputs and outputs that are such kernels.

A kernel is loaded from the columns that are stored, chunk by chunk; what the open epoch did to it
is in its journal, the slots that it touched, and is staged as columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ebbflow.change.requests import Request
from ebbflow.engine.runtime.columnar.inputs import CheckedColumnInput, ColumnInput
from ebbflow.engine.runtime.columnar.keyed import (
    ArrangedColumns,
    ColumnArrangeStage,
    ColumnGroupStage,
)
from ebbflow.engine.runtime.columnar.keyed_input import KeyedColumnInput
from ebbflow.engine.runtime.columnar.packed import BYTES, GroupValues, pack
from ebbflow.engine.runtime.columnar.stored import (
    StoredForm,
    keys_form,
    records_form,
    stage_cells,
    stage_rows,
    stage_values,
)
from ebbflow.engine.runtime.columnar.stored_cells import COUNT, StoredCell
from ebbflow.engine.runtime.columnar.stored_stages import RowsNeeded
from ebbflow.engine.runtime.columnar.top import ColumnTopStage
from ebbflow.engine.runtime.rows import Rows
from ebbflow.flow.plan import Source
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.chained import ChainedRows
from ebbflow.kernel.columns import Columns, columns_of_rows
from ebbflow.kernel.groups import Groups
from ebbflow.kernel.hashing import EMPTY, WordTable
from ebbflow.kernel.rows import RowTable
from ebbflow.kernel.words import Texts, forms_of
from ebbflow.state.spine import Spine
from ebbflow.state.spine.columns import ColumnShape
from ebbflow.state.spine.part import BAG, EntryBatch
from ebbflow.zset import ZSet, from_view

MANY = 16
"""How many segments of about one size a spine may have that is only written."""


class StoredKernel:
    """A kernel whose state is stored by `owner`, a container of the row path. Where it `belongs` to
    an input or an output, that says whether the epoch did something to it."""

    def __init__(
        self, owner: Any, key: StoredForm, row: StoredForm, texts: Texts, belongs: Any = None
    ) -> None:
        self.owner, self.key, self.row, self.texts = owner, key, row, texts
        self.belongs = belongs

    @property
    def spine(self) -> Spine:
        """Where it is stored."""
        found: Spine = self.owner.backing.kept
        return found

    def load(self) -> None:
        """Have all that is stored."""
        if self.spine.texts is not None:
            raise DoesNotFit("texts in pieces")
        for table in self.tables:
            table.dense = True
        self.reserve(len(self.spine))
        parts = self.spine.changes() if self.spine.layout == BAG else self.spine.chunks()
        for part in parts:
            self.add(part, self.key.words(part.form.key, part.keys, self.texts))

    def rows_of(self, part: EntryBatch) -> Any:
        """The words of stored rows."""
        return self.row.words(part.form.row, part.rows, self.texts)

    @property
    def tables(self) -> Sequence[WordTable]:
        """The hash tables of the kernel. As a step also writes to disk, it matters little that
        dense ones are slower."""
        return ()

    def reserve(self, more: int) -> None:
        """Have room for so many entries, which is quicker than to grow by and by."""
        for table in self.tables[:1]:
            table.reserve(more)

    def add(self, part: EntryBatch, keys: Any) -> None:
        """Have some of what is stored."""
        raise NotImplementedError

    def stage(self) -> None:
        """Stage what the open epoch did."""
        raise NotImplementedError


class StoredGroups(StoredKernel):
    """The cells of groups."""

    def __init__(
        self, owner: Any, key: StoredForm, groups: Groups, cell: StoredCell, texts: Texts
    ) -> None:
        super().__init__(owner, key, key, texts)
        self.groups, self.cell = groups, cell

    @property
    def tables(self) -> Sequence[WordTable]:
        return (self.groups.table,)

    def add(self, part: EntryBatch, keys: Any) -> None:
        slots = self.groups.table.add(keys)
        self.groups.fit()
        columns = list(zip(part.form.row.encodings, part.rows, strict=True))
        cells = self.cell.cells(part.form.row, columns, self.texts)
        self.groups.cells[slots] = cells[:, : self.groups.width]
        self.groups.show(slots)
        for number, (owners, words, times) in self.cell.values(columns, self.texts):
            self.groups.put_values(number, slots[owners], words, times, slots)

    def stage(self) -> None:
        stage_cells(self.groups, *self.key, self.spine, self.cell, self.texts)


class StoredValueGroups(StoredGroups):
    """The cells of groups whose values are looked at: those of the rows in an index, which has been
    loaded before."""

    def __init__(self, stage: ColumnGroupStage, key: StoredForm, cell: StoredCell) -> None:
        super().__init__(stage.by_rows.cells, key, stage.groups, cell, stage.texts)
        self.of = stage

    def load(self) -> None:
        stage = self.of
        arranged = stage.arranged
        assert isinstance(arranged, ColumnArrangeStage), "they are kept for it"
        rows, weights = arranged.chained.everything()
        columns = Columns(arranged.before.type, list(rows.T.copy()), weights, self.texts)
        if len(columns):
            stage.step(ArrangedColumns(columns, arranged.key_of(columns)))


class StoredIndex(StoredKernel):
    """Rows by key."""

    def __init__(
        self, owner: Any, key: StoredForm, row: StoredForm, index: ChainedRows, texts: Texts
    ) -> None:
        super().__init__(owner, key, row, texts)
        self.index = index

    @property
    def tables(self) -> Sequence[WordTable]:
        return self.index.rows, self.index.keys

    def reserve(self, more: int) -> None:
        self.index.reserve(more)

    def add(self, part: EntryBatch, keys: Any) -> None:
        self.index.apply(keys, self.rows_of(part), np.require(part.count, np.int64, ["C", "W"]))

    def stage(self) -> None:
        index = self.index
        entries, weights = index.changed()
        keys = self.key.columns(index.keys_of(entries), self.texts)
        rows = self.row.columns(index.rows.words(entries), self.texts)
        self.spine.append_columns(keys, rows, weights)


class StoredTopRows(StoredKernel):
    """The rows of which the first of each key are shown."""

    def __init__(self, owner: Any, stage: ColumnTopStage) -> None:
        key, row = keys_form(stage.key_of.forms), records_form(stage.reads_type)
        super().__init__(owner, key, row, stage.texts)
        self.of = stage

    def add(self, part: EntryBatch, keys: Any) -> None:
        fields = list(self.rows_of(part).T.copy())
        weights = np.require(part.count, np.int64, ["C", "W"])
        rows = self.of.rows_of(Columns(self.of.reads_type, fields, weights, self.texts))
        self.of.top.step(keys, rows, weights)

    def stage(self) -> None:
        stage_top_rows(self.of, self.spine)


class StoredTopCells(StoredKernel):
    """The first rows of each key, which rows read."""

    def __init__(self, owner: Any, stage: ColumnTopStage) -> None:
        key = keys_form(stage.key_of.forms)
        super().__init__(owner, key, key, stage.texts)
        self.of = stage

    def load(self) -> None:
        """All rows are loaded."""

    def stage(self) -> None:
        stage_top_cells(self.of, self.spine)


def stage_top_rows(stage: ColumnTopStage, spine: Spine) -> None:
    """Stage the rows that the epoch has changed."""
    slots, words, weights = stage.top.changed()
    keys = keys_form(stage.key_of.forms).columns(stage.top.table.words(slots), stage.texts)
    rows = np.ascontiguousarray(words[stage.columns_of_fields].T)
    row = records_form(stage.reads_type).columns(rows, stage.texts)
    spine.append_columns(keys, row, np.ascontiguousarray(weights))


def stage_top_cells(stage: ColumnTopStage, spine: Spine) -> None:
    """Stage the first rows of the keys that the epoch has touched, as
    `ebbflow.operator.top.TopRows` reads them."""
    top, texts = stage.top, stage.texts
    slots = top.touched()
    owners, words, times = top.first(slots)
    rows = np.ascontiguousarray(words[stage.columns_of_fields].T)
    values = GroupValues(owners, rows, times)
    packed = pack(forms_of(stage.reads_type) or (), values, len(slots), texts)
    keys = keys_form(stage.key_of.forms).columns(top.table.words(slots), texts)
    cells = ColumnShape("one", (BYTES,)), [packed]
    spine.append_columns(keys, cells, live=np.bincount(owners, minlength=len(slots)) != 0)


class StoredRowTable(StoredKernel):
    """Rows, each with its weight, of an input or an output."""

    def __init__(self, owner: Any, row: StoredForm, belongs: StoredBagInput | OutputRows) -> None:
        super().__init__(owner, row, row, belongs.texts, belongs)
        self.rows: RowTable = belongs.rows

    @property
    def tables(self) -> Sequence[WordTable]:
        return (self.rows.table,)

    def add(self, part: EntryBatch, keys: Any) -> None:
        columns = zip(part.form.row.encodings, part.rows, strict=True)
        counts = COUNT.cells(part.form.row, list(columns), self.texts)[:, 0]
        if self.rows.prepare(keys, np.ascontiguousarray(counts)).wrong != EMPTY:
            raise DoesNotFit("a row of an output with a negative weight")
        self.rows.keep()

    def stage(self) -> None:
        change = self.rows._waiting
        assert change is not None
        found = change.found[: change.count[0]]
        found = found[found[:, 2] != 0]
        keys = self.key.columns(self.rows.table.words(found[:, 0]), self.texts)
        stage_values(self.spine, keys, COUNT, found[:, 3:], self.texts)


class StoredSharedRows(StoredKernel):
    """The rows of an input that an index has; they are stored by themselves as well."""

    def __init__(self, owner: Any, row: StoredForm, index: ChainedRows, texts: Texts) -> None:
        super().__init__(owner, row, row, texts)
        self.index = index

    def load(self) -> None:
        """The index has them."""

    def stage(self) -> None:
        index = self.index
        entries, _ = index.changed()
        keys = self.key.columns(index.rows.words(entries), self.texts)
        stage_values(self.spine, keys, COUNT, index.weights(entries).reshape(-1, 1), self.texts)


class StoredKeyedRows(StoredKernel):
    """The rows of an input with a key."""

    def __init__(
        self, owner: Any, key: StoredForm, row: StoredForm, state: StoredKeyedInput
    ) -> None:
        super().__init__(owner, key, row, state.texts, state)
        self.state = state

    @property
    def tables(self) -> Sequence[WordTable]:
        assert self.state.by_key is not None
        return (self.state.by_key.table,)

    def add(self, part: EntryBatch, keys: Any) -> None:
        assert self.state.by_key is not None
        self.state.by_key.put(keys, self.rows_of(part))

    def stage(self) -> None:
        put, taken = self.state._put, self.state._take
        if put is None or taken is None:
            self.spine.append(self.state.changed())
            return
        keys, rows = put
        added = WordTable(keys.shape[1])
        added.add(keys)
        gone = taken[added.find(taken) == EMPTY]
        assert self.state.by_key is not None
        stage_rows(self.spine, self.state.by_key, keys, rows, gone)


# ---- inputs and outputs ----


class StoredBagInput(CheckedColumnInput):
    """An input without a key."""

    __slots__ = ()

    def _give_up(self) -> None:
        raise RowsNeeded("a value that columns do not hold, or a request")


class SharedBagInput(ColumnInput):
    """An input without a key whose rows an index has: that refuses to lose what it does not have,
    and rows say so."""

    __slots__ = ("index",)

    keeps = True

    def __init__(self, source: Source, index: ChainedRows, texts: Texts) -> None:
        super().__init__(source, texts)
        self.index = index

    def apply(self, change: Any) -> Any:
        found = super().apply(change)
        if not isinstance(found, Columns):  # a few rows, or some that do not fit
            try:
                found = columns_of_rows(found, self.source.type, self.texts)
            except DoesNotFit as why:
                raise RowsNeeded("a value that columns do not hold") from why
        return found.consolidated()

    def request(self, request: Request) -> Any:
        raise RowsNeeded("a request")

    def snapshot(self) -> ZSet[Any]:
        rows, weights = self.index.everything()
        made = Columns(self.source.type, list(rows.T.copy()), weights, self.texts, canonical=True)
        return from_view(made, (self.source.type, False))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.index)


class StoredKeyedInput(KeyedColumnInput):
    """An input with a key."""

    __slots__ = ()

    def _give_up(self) -> None:
        raise RowsNeeded("a value that columns do not hold")


class OutputRows(Rows):
    """The rows of an output, in columns."""

    __slots__ = ("texts", "type")

    rows: RowTable  # type: ignore[assignment]

    def __init__(self, row_type: Any, texts: Texts) -> None:
        super().__init__()
        self.type, self.texts = row_type, texts
        self.rows = RowTable(len(forms_of(row_type) or ()))

    def prepare(self, delta: Any) -> None:
        columns = delta
        try:
            if not isinstance(delta, Columns):
                columns = columns_of_rows(delta, self.type, self.texts)
        except DoesNotFit as why:
            raise RowsNeeded(str(why)) from why
        if self.rows.prepare(columns.matrix, columns.weights).wrong != EMPTY:
            raise RowsNeeded("a row of an output is there less often than never")

    def keep(self) -> None:
        self.rows.keep()

    def whole(self) -> Any:
        rows, weights = self.rows.everything()
        return Columns(self.type, list(rows.T.copy()), weights, self.texts, canonical=True)
