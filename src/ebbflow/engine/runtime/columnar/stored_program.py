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

import pyarrow as pa

from ebbflow.change.requests import Request
from ebbflow.engine.runtime.columnar.choose import on_columns_where_possible
from ebbflow.engine.runtime.columnar.inputs import ColumnInput
from ebbflow.engine.runtime.columnar.keyed import (
    ColumnArrangeStage,
    ColumnDistinctStage,
    ColumnGroupStage,
    ColumnSemiStage,
)
from ebbflow.engine.runtime.columnar.stages import ColumnReduceStage, ColumnStage, Family
from ebbflow.engine.runtime.columnar.steps import KeyOnColumns
from ebbflow.engine.runtime.columnar.storable import storable
from ebbflow.engine.runtime.columnar.stored import keys_form, records_form, require_plain
from ebbflow.engine.runtime.columnar.stored_cells import COUNT, cell_of
from ebbflow.engine.runtime.columnar.stored_kernels import (
    MANY,
    OutputRows,
    SharedBagInput,
    StoredBagInput,
    StoredGroups,
    StoredIndex,
    StoredKernel,
    StoredKeyedInput,
    StoredKeyedRows,
    StoredRowTable,
    StoredSharedRows,
    StoredTopCells,
    StoredTopRows,
    StoredValueGroups,
)
from ebbflow.engine.runtime.columnar.stored_stages import RowsNeeded
from ebbflow.engine.runtime.columnar.top import ColumnTopStage
from ebbflow.engine.runtime.inputs import BagInput, InputState
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.runtime.program import RunningProgram
from ebbflow.engine.runtime.rows import Rows
from ebbflow.engine.runtime.stage import Stage
from ebbflow.kernel.arithmetic import NotInColumns
from ebbflow.kernel.chained import ChainedRows
from ebbflow.kernel.words import Texts, forms_of
from ebbflow.state.spine.spine import FANOUT


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
        chosen = on_columns_where_possible(machine.stages, types, texts, stored=True)
        self.stages, self.why = storable(chosen.stages, chosen.why), chosen.why
        self.some = any(stage.in_columns for stage in self.stages)
        for stage in self.stages:
            if isinstance(stage, ColumnStage):
                stage.family = REFUSING
                self._keep(stage)
        self.inputs = (dict(program.inputs), {n: self._input(s) for n, s in program.inputs.items()})
        outputs = {name: each.rows for name, each in program.outputs.items()}
        self.outputs = (outputs, {name: self._output(name, rows) for name, rows in outputs.items()})

    def _keep(self, stage: ColumnStage) -> None:
        """Have the kernel of a stage stored."""
        match stage:
            case ColumnArrangeStage():
                key, row = keys_form(stage.key_of.forms), records_form(stage.before.type)
                made: StoredKernel = StoredIndex(
                    stage.by_rows.index, key, row, stage.chained, self.texts
                )
            case ColumnReduceStage():
                key = keys_form(stage.key_of.forms)
                cell = cell_of(stage.stored, stage.groups)
                made = StoredGroups(stage.by_rows.cells, key, stage.groups, cell, self.texts)
            case ColumnGroupStage():
                key, cell = (
                    keys_form(stage.arranged.key_of.forms),
                    cell_of(stage.reducers.stored, stage.groups),
                )
                made = StoredGroups(stage.by_rows.cells, key, stage.groups, cell, self.texts)
                if isinstance(stage.arranged, ColumnArrangeStage):
                    made = StoredValueGroups(stage, key, cell)
            case ColumnSemiStage():
                key = keys_form(stage.right.key_of.forms)
                made = StoredGroups(stage.by_rows.totals, key, stage.present, COUNT, self.texts)
            case ColumnDistinctStage():
                (owner,) = stage.by_rows.containers
                row = records_form(stage.reads_type)
                made = StoredGroups(owner, row, stage.present, COUNT, self.texts)
            case ColumnTopStage():
                index, cells = stage.by_rows.containers
                self.kernels.append(StoredTopRows(index, stage))
                made = StoredTopCells(cells, stage)
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
            index = self._index_of(source.name)
            if index is not None:
                row = records_form(source.type)
                self.kernels.append(StoredSharedRows(state.store, row, index, texts))
                return SharedBagInput(source, index, texts)
            bag = StoredBagInput(source, texts)
            self.kernels.append(StoredRowTable(state.store, records_form(source.type), bag))
            return bag
        if type(state) is KeyedInput and state.beside is None:
            with suppress(NotInColumns):
                assert source.key is not None
                key = KeyOnColumns(source.key, source.type, texts)
                require_plain(source.key, key.forms)
                made = StoredKeyedInput(state, key, texts)
                side = keys_form(key.forms)
                self.kernels.append(StoredKeyedRows(state, side, records_form(source.type), made))
                return made
        return state

    def _index_of(self, name: str) -> ChainedRows | None:
        """An index that has all rows of an input as they are, if there is one."""
        slot = self.program.machine.inputs.get(name)
        for stage in self.stages:
            if isinstance(stage, ColumnArrangeStage) and stage.reads == (slot,):
                before = stage.before
                if stage.chained.bag and not before.steps and before.sign > 0:
                    return stage.chained
        return None

    def _output(self, name: str, rows: Rows | None) -> Rows | None:
        row_type = self.program.plan.outputs[name].type
        if rows is None or forms_of(row_type) is None:
            return rows
        made = OutputRows(row_type, self.texts)
        self.kernels.append(StoredRowTable(rows, records_form(row_type), made))
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
        for kernel in self.kernels:
            kernel.spine.fanout = MANY if which else FANOUT
        program.machine.use(stages, why)
        program.inputs.update(self.inputs[which])
        for name, output in program.outputs.items():
            output.rows, output.seen = self.outputs[which][name], None

    def load(self) -> None:
        """Have all that is stored."""
        for kernel in self.kernels:
            kernel.load()
        pa.default_memory_pool().release_unused()

    def stage(self) -> None:
        """Stage what the open epoch did."""
        assert self.program.pending is not None
        changed = {id(each) for each in self.program.pending[1]}
        for kernel in self.kernels:
            if kernel.belongs is None or id(kernel.belongs) in changed:
                kernel.stage()


class _Refusing(Family):
    """The family of a stage whose state is stored: that does not give up, as rows begin with what
    is stored."""

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
