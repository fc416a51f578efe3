"""A program in columns whose state is on disk as well.

Kernels have all of the state in memory, and take every step there. What an epoch did to them is in
their journals: the slots that it touched. Those become the columns of a new segment, as the row
path would have written them, and no row is made. So a state is read by either, whoever wrote it:

    load     kernels get what the spines have, chunk by chunk, before the first epoch
    stage    what the open epoch did is staged in the spines
    leave    the program runs in rows, which find their keys on disk, as where memory is limited

A step that columns cannot take raises `RowsNeeded`, and the program leaves them (`Disk.advance`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ebbflow.change.requests import Request
from ebbflow.engine.runtime.columnar.choose import on_columns_where_possible
from ebbflow.engine.runtime.columnar.inputs import CheckedColumnInput, ColumnInput
from ebbflow.engine.runtime.columnar.keyed import (
    ColumnArrangeStage,
    ColumnDistinctStage,
    ColumnSemiStage,
)
from ebbflow.engine.runtime.columnar.keyed_input import KeyedColumnInput
from ebbflow.engine.runtime.columnar.stages import ColumnReduceStage, ColumnStage
from ebbflow.engine.runtime.columnar.steps import KeyOnColumns
from ebbflow.engine.runtime.columnar.stored import (
    COUNT,
    Side,
    StoredCell,
    cells_of,
    keys_side,
    records_side,
    require_plain,
    stage_rows,
    stage_values,
)
from ebbflow.engine.runtime.columnar.stored_stages import (
    RowsNeeded,
    cell_of,
    stage_cells,
    storable,
)
from ebbflow.engine.runtime.inputs import BagInput, InputState, KeyedInput
from ebbflow.engine.runtime.program import RunningProgram
from ebbflow.engine.runtime.rows import Rows
from ebbflow.engine.runtime.stage import Stage
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arithmetic import NotInColumns
from ebbflow.kernel.chained import ChainedRows
from ebbflow.kernel.columns import Columns, columns_of_rows
from ebbflow.kernel.groups import Groups
from ebbflow.kernel.hashing import EMPTY, WordTable
from ebbflow.kernel.rows import RowTable
from ebbflow.kernel.words import Texts, forms_of
from ebbflow.state.spine import Spine
from ebbflow.state.spine.part import EntryBatch


class StoredKernel:
    """A kernel whose state is stored by `owner`, a container of the row path. Where it `belongs` to
    an input or an output, that says whether the epoch did something to it."""

    def __init__(self, owner: Any, key: Side, row: Side, texts: Texts, belongs: Any = None) -> None:
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
        for part in self.spine.chunks():
            self.add(part, self.key.words(part.form.key, part.keys, self.texts))

    def rows_of(self, part: EntryBatch) -> Any:
        """The words of stored rows."""
        return self.row.words(part.form.row, part.rows, self.texts)

    def add(self, part: EntryBatch, keys: Any) -> None:
        """Have some of what is stored."""
        raise NotImplementedError

    def stage(self) -> None:
        """Stage what the open epoch did."""
        raise NotImplementedError


class StoredGroups(StoredKernel):
    """The cells of groups."""

    def __init__(
        self, owner: Any, key: Side, groups: Groups, cell: StoredCell, texts: Texts
    ) -> None:
        super().__init__(owner, key, key, texts)
        self.groups, self.cell = groups, cell

    def add(self, part: EntryBatch, keys: Any) -> None:
        slots = self.groups.table.add(keys)
        self.groups._fit()
        columns = zip(part.form.row.encodings, part.rows, strict=True)
        self.groups.cells[slots] = cells_of(part.form.row, list(columns), self.cell, self.texts)

    def stage(self) -> None:
        stage_cells(self.groups, *self.key, self.spine, self.cell, self.texts)


class StoredIndex(StoredKernel):
    """Rows by key."""

    def __init__(self, owner: Any, key: Side, row: Side, index: ChainedRows, texts: Texts) -> None:
        super().__init__(owner, key, row, texts)
        self.index = index

    def add(self, part: EntryBatch, keys: Any) -> None:
        self.index.apply(keys, self.rows_of(part), np.require(part.count, np.int64, ["C", "W"]))

    def stage(self) -> None:
        index = self.index
        for touched, count in index.journal or ():
            entries = touched[: count[0]]
            weights = index.weights[entries] - index.before[entries]
            some = np.flatnonzero(weights)
            entries, weights = entries[some], weights[some]
            keys = index.keys.keys[index.links[entries, 2]]
            columns = [self.key.columns(keys, self.texts),
                       self.row.columns(index.rows.keys[entries], self.texts)]  # fmt: skip
            self.spine.append_columns(*columns, weights)


class StoredRowTable(StoredKernel):
    """Rows, each with its weight, of an input or an output."""

    def __init__(self, owner: Any, row: Side, belongs: StoredBagInput | OutputRows) -> None:
        super().__init__(owner, row, row, belongs.texts, belongs)
        self.rows: RowTable = belongs.rows

    def add(self, part: EntryBatch, keys: Any) -> None:
        columns = zip(part.form.row.encodings, part.rows, strict=True)
        counts = cells_of(part.form.row, list(columns), COUNT, self.texts)[:, 0]
        self.rows.prepare(keys, np.ascontiguousarray(counts))
        self.rows.keep()

    def stage(self) -> None:
        change = self.rows._waiting
        assert change is not None
        found = change.found[: change.count[0]]
        found = found[found[:, 2] != 0]
        _, columns = self.key.columns(self.rows.table.keys[found[:, 0]], self.texts)
        stage_values(self.spine, self.key.shape, columns, COUNT, found[:, 3:])


class StoredKeyedRows(StoredKernel):
    """The rows of an input with a key."""

    def __init__(self, owner: Any, key: Side, row: Side, state: StoredKeyedInput) -> None:
        super().__init__(owner, key, row, state.texts, state)
        self.state = state

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


# ---- the program ----


class StoredColumns:
    """A program that is attached to a store, in columns; `why` says of stages that are not why.
    `DoesNotFit` where what is stored has no columns."""

    def __init__(self, program: RunningProgram) -> None:
        self.program, self.texts = program, Texts()
        self.kernels: list[StoredKernel] = []
        machine, texts = program.machine, self.texts
        sources = program.plan.sources
        types = {slot: sources[name].type for name, slot in machine.inputs.items()}
        self.by_rows: list[Stage] = machine.stages
        chosen = on_columns_where_possible(machine.stages, types, texts)
        self.stages, self.why = storable(chosen.stages, chosen.why), chosen.why
        self.some = any(stage.in_columns for stage in self.stages)
        for stage in self.stages:
            if isinstance(stage, ColumnStage):
                stage.family = [REFUSING]  # type: ignore[list-item]
                self._keep(stage)
        self.inputs = (dict(program.inputs), {n: self._input(s) for n, s in program.inputs.items()})
        outputs = {name: each.rows for name, each in program.outputs.items()}
        self.outputs = (outputs, {name: self._output(name, rows) for name, rows in outputs.items()})

    def _keep(self, stage: ColumnStage) -> None:
        """Have the kernel of a stage stored."""
        match stage:
            case ColumnArrangeStage():
                key, row = keys_side(stage.key_of.forms), records_side(stage.before.type)
                made: StoredKernel = StoredIndex(
                    stage.by_rows.index, key, row, stage.chained, self.texts
                )
            case ColumnReduceStage():
                key = keys_side(stage.key_of.forms)
                made = StoredGroups(
                    stage.by_rows.cells, key, stage.groups, cell_of(stage), self.texts
                )
            case ColumnSemiStage():
                key = keys_side(stage.right.key_of.forms)
                made = StoredGroups(stage.by_rows.totals, key, stage.present, COUNT, self.texts)
            case ColumnDistinctStage():
                (owner,) = stage.by_rows.containers
                row = records_side(stage.reads_type)
                made = StoredGroups(owner, row, stage.present, COUNT, self.texts)
            case _:
                return
        self.kernels.append(made)

    def _input(self, state: InputState) -> InputState:
        """An input in columns, where it can be."""
        source, texts = state.source, self.texts
        if forms_of(source.type) is None:
            return state
        if type(state) is InputState:
            return ColumnInput(source, texts)
        if type(state) is BagInput:
            bag = StoredBagInput(source, texts)
            self.kernels.append(StoredRowTable(state.store, records_side(source.type), bag))
            return bag
        if type(state) is KeyedInput and state.beside is None:
            with suppress(NotInColumns):
                assert source.key is not None
                key = KeyOnColumns(source.key, source.type, texts)
                require_plain(source.key, key.forms)
                made = StoredKeyedInput(state, key, texts)
                side = keys_side(key.forms)
                self.kernels.append(StoredKeyedRows(state, side, records_side(source.type), made))
                return made
        return state

    def _output(self, name: str, rows: Rows | None) -> Rows | None:
        row_type = self.program.plan.outputs[name].type
        if rows is None or forms_of(row_type) is None:
            return rows
        made = OutputRows(row_type, self.texts)
        self.kernels.append(StoredRowTable(rows, records_side(row_type), made))
        return made

    def enter(self) -> None:
        """Have the program run in columns, which have what is stored."""
        self._use(1, self.stages, self.why)

    def leave(self, why: str) -> None:
        """Have the program run in rows, which have none of the state here."""
        self._use(0, self.by_rows, {stage.slot: why for stage in self.by_rows})

    def _use(self, which: int, stages: Sequence[Stage], why: dict[int, str]) -> None:
        program = self.program
        program.reload()
        program.machine.use(stages, why)
        program.inputs.update(self.inputs[which])
        for name, output in program.outputs.items():
            output.rows, output.seen = self.outputs[which][name], None

    def load(self) -> None:
        """Have all that is stored."""
        for kernel in self.kernels:
            kernel.load()

    def stage(self) -> None:
        """Stage what the open epoch did."""
        assert self.program.pending is not None
        changed = {id(each) for each in self.program.pending[1]}
        for kernel in self.kernels:
            if kernel.belongs is None or id(kernel.belongs) in changed:
                kernel.stage()


class _Refusing:
    """Stands for the family of a stage whose state is stored: that does not give up, as rows begin
    with what is stored."""

    slot = 0

    def give_up(self, why: object) -> None:
        raise RowsNeeded(str(why))


REFUSING = _Refusing()


def given_again(change: Any) -> Any:
    """A change that can be read twice: rows and tables that come but once are kept."""
    if isinstance(change, Request):
        parts = {each.name: getattr(change, each.name) for each in fields(change)}  # type: ignore[arg-type]
        return replace(change, **{name: given_again(part) for name, part in parts.items()})  # type: ignore[type-var]
    if isinstance(change, pa.RecordBatchReader):
        return change.read_all()
    return list(change) if isinstance(change, Iterator) else change
