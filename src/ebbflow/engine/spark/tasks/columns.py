"""A replica in columns: the stages of a task on Arrow batches, with no rows in between.

Where rows are typed and functions traced, a task takes the batches it is given as columns, and runs
stages on columns whose state is stored (`ebbflow.engine.runtime.columnar.stored_stages`): the keys
that a change touches are looked up in the spines as columns, and what was done is staged as
columns. A stage that cannot gets rows, and its neighbours go on in columns.

An epoch that does not fit, and one that is wrong, runs again in rows, which can do everything and
say what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from ebbflow.change.requests import Request, Upsert
from ebbflow.engine.runtime.columnar.choose import on_columns_where_possible
from ebbflow.engine.runtime.columnar.inputs import read_columns
from ebbflow.engine.runtime.columnar.storable import stored_stages
from ebbflow.engine.runtime.columnar.stored import StoredWeights
from ebbflow.engine.runtime.columnar.stored_keyed import StoredKeyed
from ebbflow.engine.runtime.columnar.stored_stages import RowsNeeded, StoredStage
from ebbflow.engine.runtime.inputs import BagInput, InputState, SharedInput
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.runtime.parts import written
from ebbflow.engine.runtime.stage import Stage
from ebbflow.errors import EbbflowError
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arithmetic import NotInColumns
from ebbflow.kernel.columns import Columns, columns_of_rows
from ebbflow.kernel.words import Texts, forms_of

TEXTS = 1_000_000
"""So many texts a worker remembers from task to task."""
MISSES, PAUSE = 3, 20
"""After so many epochs one after the other that had to run again in rows, columns are tried once
in so many."""


class ColumnReplica:
    """The stages of a replica on columns. `useful` says whether any of them is; `why` the others
    are not, by slot."""

    def __init__(self, replica: Any) -> None:
        self.replica = replica
        self.texts = Texts()
        self.missed = self.passed = 0
        """How many epochs rows had to take, one after the other, and how many were not tried."""
        machine: Machine = copy(replica.machine)
        sources = replica.plan.sources
        types = {slot: sources[name].type for name, slot in machine.inputs.items()}
        chosen = on_columns_where_possible(machine.stages, types, self.texts, stored=True)
        stages = stored_stages(chosen.stages, chosen.why)
        machine.reached = {}
        machine.use(stages, chosen.why)
        self.machine, self.why = machine, chosen.why
        self.stored = [stage for stage in stages if isinstance(stage, StoredStage)]
        some = any(stage.in_columns for stage in stages)
        self.useful = some and not replica.forgetting.gates
        self._inputs: dict[str, StoredWeights] = {}
        self._outputs: dict[str, StoredWeights] = {}
        self._keyed: dict[str, StoredKeyed] = {}
        for name, state in replica.inputs.items():
            if type(state) is KeyedInput and state.beside is None:
                with suppress(NotInColumns):
                    if forms_of(state.source.type) is not None:
                        self._keyed[name] = StoredKeyed(state, self.texts)
            if type(state) is BagInput and forms_of(state.source.type) is not None:
                self._inputs[name] = StoredWeights(state.source.type, self.texts)
        for name, output in replica.outputs.items():
            row_type = replica.plan.outputs[name].type
            if output.rows is not None and forms_of(row_type) is not None:
                self._outputs[name] = StoredWeights(row_type, self.texts)

    def takes(self, name: str, request: Request | None = None) -> bool:
        """Whether an input takes a change, or the rows of a request, as columns."""
        state = self.replica.inputs[name]
        known = {*self._inputs, *self._keyed}
        if request is not None:
            plain = isinstance(request, Upsert) and request.by is None
            return plain and name in self._keyed
        if name not in known and type(state) not in (SharedInput, InputState):
            return False
        return forms_of(state.source.type) is not None

    def count(self, stages: Sequence[Stage]) -> int:
        """How many of these stages, and of the inputs that keep rows, are in columns."""
        inputs = [name for name, state in self.replica.inputs.items() if state.keeps]
        return sum(stage.slot not in self.why for stage in stages) + sum(map(self.takes, inputs))

    def columns(self, name: str, change: Any) -> Columns:
        """A change of an input, a table or rows with weights, as columns."""
        found = read_columns(self.replica.inputs[name].source, change, self.texts)
        if not isinstance(found, Columns):
            raise RowsNeeded("a value that columns do not hold")
        fields = [partial(_own, each) for each in found.given]
        return Columns(
            found.type, fields, _own(found.weights), self.texts, canonical=found.canonical
        )

    @property
    def full(self) -> bool:
        """Whether it has so many texts that another should take its place."""
        return len(self.texts.known) > TEXTS

    def tries(self) -> bool:
        """Whether to try the next epoch in columns."""
        if self.missed < MISSES:
            return True
        self.passed += 1
        return self.passed % PAUSE == 0

    def miss(self, error: EbbflowError) -> str:
        """Note that rows have to take an epoch, and say why; nothing where it is wrong, as rows
        will say."""
        if not isinstance(error, RowsNeeded):
            return ""
        self.missed += 1
        return f"in rows: {error.what}"

    def begin(self) -> None:
        """Have no state of a task before."""
        for stage in self.stored:
            stage.clear()
        for rows in self._rows():
            rows.ready = None

    def _rows(self) -> Iterator[StoredWeights | StoredKeyed]:
        """The rows of inputs and outputs that are stored."""
        yield from self._inputs.values()
        yield from self._keyed.values()
        yield from self._outputs.values()

    def all_at_once(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Run a whole epoch, stage its changes of the state, and give those of the outputs."""
        replica, machine = self.replica, self.machine
        machine.open, machine.backed = [], True
        keeping: list[Any] = []
        changes = {}
        for name, change in given.items():
            delta = self._entered(name, change, keeping)
            if delta:
                changes[name] = delta
        deltas = machine.run(changes)
        for name, delta in deltas.items():
            self._left(name, delta, keeping)
        replica.pending = 0, keeping, deltas
        self._stage()
        return deltas

    def _entered(self, name: str, change: Any, keeping: list[Any]) -> Any:
        """A change of an input that is checked."""
        state: Any = self.replica.inputs[name]
        if isinstance(change, Upsert) and isinstance(change.rows, Columns):
            return _fitting(self._keyed[name].upsert, state.store.backing.kept, change.rows)
        if isinstance(change, Columns):
            rows = self._inputs.get(name) or self._keyed.get(name)
            if rows is None:
                return change
            return _fitting(rows.apply, state.store.backing.kept, change)
        delta = state.request(change) if isinstance(change, Request) else state.apply(change)
        keeping += [state] if state.beside is None else [state, state.beside]
        return delta

    def _left(self, name: str, delta: Any, keeping: list[Any]) -> None:
        """What an output has to keep."""
        output = self.replica.outputs[name].rows
        if output is None:
            return
        rows = self._outputs.get(name)
        if rows is None:
            output.prepare(delta)
            keeping.append(output)
            return
        row_type = self.replica.plan.outputs[name].type
        columns = delta
        if not isinstance(delta, Columns):
            columns = _fitting(columns_of_rows, delta, row_type, self.texts)
        assert output.backing is not None
        _fitting(rows.apply, output.backing.kept, columns)

    def _stage(self) -> None:
        for stage in self.stored:
            stage.stage_changes()
        for rows in self._rows():
            rows.stage()
        self.replica._append(self._row_changes())

    def _row_changes(self) -> Iterator[tuple[Any, Any]]:
        """What stages in rows, and inputs and outputs that keep rows, have to stage."""
        for container in self.machine.open:
            if container.backing is not None:
                for change in written(container):
                    yield container, change
        for each in self.replica.pending[1]:
            if each.store is not None and each.store.backing is not None:
                yield each.store, each.store.changed()


def _own(words: Any) -> Any:
    """An array that may be written to: of one that may not, a copy. A kernel would be compiled once
    more for arrays that belong to Arrow."""
    return np.require(words() if callable(words) else words, requirements=["W"])


def _fitting(step: Callable[..., Any], *given: Any) -> Any:
    """Take a step, and ask for rows where it does not fit."""
    try:
        return step(*given)
    except DoesNotFit as why:
        raise RowsNeeded(str(why)) from why
