"""A replica in columns: the stages of a task on Arrow batches, with no rows in between.

Where rows are typed and functions traced, a task takes the batches it is given as columns, and runs
stages on columns whose state is stored (`ebbflow.engine.runtime.columnar.stored_stages`): the keys
that a change touches are looked up in the spines as columns, and what was done is staged as
columns. A stage that cannot gets rows, and its neighbours go on in columns.

From task to task columns go as Arrow tables (`ColumnReplica.sent`), to the task that has the hash
of their key, as rows do. So it is for each task to say whether it runs in columns: what does not
fit, and what is wrong, it runs again in rows, which can do everything and say what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ebbflow.change.requests import Request, Upsert
from ebbflow.engine.runtime.columnar.choose import on_columns_where_possible
from ebbflow.engine.runtime.columnar.inputs import read_columns
from ebbflow.engine.runtime.columnar.stages import together
from ebbflow.engine.runtime.columnar.steps import KeyOnColumns
from ebbflow.engine.runtime.columnar.storable import stored_stages
from ebbflow.engine.runtime.columnar.stored import (
    StoredWeights,
    keys_form,
    records_form,
    require_plain,
)
from ebbflow.engine.runtime.columnar.stored_keyed import StoredKeyed
from ebbflow.engine.runtime.columnar.stored_stages import (
    RowsNeeded,
    StoredArrangeStage,
    StoredStage,
)
from ebbflow.engine.runtime.inputs import BagInput, InputState, SharedInput
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.runtime.parts import written
from ebbflow.engine.runtime.program import Kept
from ebbflow.engine.runtime.stage import Stage, by_row
from ebbflow.engine.runtime.table.arrow import arrow_schema
from ebbflow.engine.spark.tasks.running import WaveRunner
from ebbflow.engine.spark.tasks.transport import in_stream, ranges
from ebbflow.engine.spark.tasks.waves import Port
from ebbflow.errors import EbbflowError
from ebbflow.fn import Fn
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arithmetic import NotInColumns
from ebbflow.kernel.columns import Columns, columns_of_rows, columns_of_table
from ebbflow.kernel.hashing import matrix
from ebbflow.kernel.words import Texts, forms_of
from ebbflow.state.spine.columns_hash import column_hashes

TEXTS = 1_000_000
"""So many texts a worker remembers from task to task."""
MISSES, PAUSE = 3, 20
"""After so many epochs one after the other that had to run again in rows, columns are tried once
in so many."""


class ColumnReplica(WaveRunner):
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
        self._mark_checked()
        some = any(stage.in_columns for stage in stages)
        self.useful = some and not replica.forgetting.gates
        self._inputs: dict[str, StoredWeights] = {}
        self._outputs: dict[str, StoredWeights] = {}
        self._keyed: dict[str, StoredKeyed] = {}
        self._keys: dict[Port, Callable[[Columns], Any] | None] = {}
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

    def _mark_checked(self) -> None:
        """Say of which indexes all rows follow from inputs that are checked, by stages in columns,
        whose functions give the same each time. A row that goes is there then, unless it is the
        index that checks the input; and behind `-`, where rows may be missing."""
        inputs, machine = self.replica.inputs, self.machine
        if not all(node.bag for node in self.replica.plan.nodes()):
            return
        shared = [state.index for state in inputs.values() if isinstance(state, SharedInput)]
        checked = {machine.inputs[name] for name, state in inputs.items() if state.keeps}
        for stage in machine.stages:
            if stage.slot not in self.why and checked.issuperset(stage.reads):
                checked.add(stage.slot)
                if isinstance(stage, StoredArrangeStage):
                    index = stage.by_rows.index
                    stage.checked_before = not any(index is each for each in shared)

    def takes(self, name: str, request: Request | None = None) -> bool:
        """Whether an input takes a change, or the rows of a request, as columns."""
        state = self.replica.inputs[name]
        known = {*self._inputs, *self._keyed}
        if request is not None:
            plain = isinstance(request, Upsert) and request.order is None
            return plain and name in self._keyed
        if name not in known and type(state) not in (SharedInput, InputState):
            return False
        return self.has_columns(name)

    def has_columns(self, name: str) -> bool:
        """Whether the rows of an input have columns."""
        return forms_of(self.replica.inputs[name].source.type) is not None

    def count(self, stages: Sequence[Stage]) -> int:
        """How many of these stages, and of the inputs that keep rows, are in columns."""
        inputs = [name for name, state in self.replica.inputs.items() if state.keeps]
        return sum(stage.slot not in self.why for stage in stages) + sum(map(self.takes, inputs))

    def columns(self, name: str, change: Any) -> Columns:
        """A change of an input, a table or rows with weights, as columns."""
        found = read_columns(self.replica.inputs[name].source, change, self.texts)
        if not isinstance(found, Columns):
            raise RowsNeeded("a value that columns do not hold")
        return _owned(found, self.texts)

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
        self.machine.open, self.machine.backed = [], True

    def _rows(self) -> Iterator[StoredWeights | StoredKeyed]:
        """The rows of inputs and outputs that are stored."""
        yield from self._inputs.values()
        yield from self._keyed.values()
        yield from self._outputs.values()

    def all_at_once(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Run a whole epoch, stage its changes of the state, and give those of the outputs."""
        machine = self.machine
        keeping: list[Kept] = []
        changes = {}
        for name, change in given.items():
            delta = self.entered(name, change, keeping)
            if delta:
                changes[name] = delta
        deltas = machine.run(changes)
        for name, delta in deltas.items():
            self.left(name, delta, keeping)
        self.stage_wave(keeping, deltas)
        return deltas

    # ---- one wave ----

    def entered(self, name: str, change: Any, keeping: list[Kept]) -> Any:
        state: Any = self.replica.inputs[name]
        if isinstance(change, Upsert) and isinstance(change.rows, Columns):
            return _fitting(self._keyed[name].upsert, state.store.backing.kept, change.rows)
        if isinstance(change, Columns) and self.takes(name):
            rows = self._inputs.get(name) or self._keyed.get(name)
            if rows is None:
                return change
            return _fitting(rows.apply, state.store.backing.kept, change)
        if isinstance(change, Columns):
            change = change.rows
        return self.replica.entered(name, change, keeping)

    def asked(self, name: str, request: Request | None, rows: Any) -> Any:
        if not isinstance(rows, Columns):
            return self.replica.asked(name, request, rows)
        if not self.takes(name, request):
            return self.replica.asked(name, request, rows.rows)
        return rows if request is None else request.taking(rows)

    def left(self, name: str, delta: Any, keeping: list[Kept]) -> Any:
        output = self.replica.outputs[name].rows
        rows = self._outputs.get(name)
        if output is None or rows is None:
            return self.replica.left(name, delta, keeping)
        row_type = self.replica.plan.outputs[name].type
        columns = delta
        if not isinstance(delta, Columns):
            columns = _fitting(columns_of_rows, delta, row_type, self.texts)
        assert output.backing is not None
        return _fitting(rows.apply, output.backing.kept, columns)

    def stage_wave(
        self, keeping: list[Kept], deltas: dict[str, Any], writes: set[int] | None = None
    ) -> None:
        """Stage what was done; where these are given, to the containers that the wave writes."""
        self.replica.pending = 0, keeping, deltas
        for stage in self.stored:
            owners = map(id, stage.by_rows.containers)
            if writes is None or not writes.isdisjoint(owners):
                stage.stage_changes()
        for rows in self._rows():
            rows.stage()
        changes = self._row_changes()
        if writes is not None:
            all_written = writes | {id(each.store) for each in keeping}
            changes = (each for each in changes if id(each[0]) in all_written)
        self.replica._append(changes)

    def _row_changes(self) -> Iterator[tuple[Any, Any]]:
        """What stages in rows, and inputs and outputs that keep rows, have to stage."""
        for container in self.machine.open:
            if container.backing is not None:
                for change in written(container):
                    yield container, change
        for each in self.replica.pending[1]:
            if each.store is not None and each.store.backing is not None:
                yield each.store, each.store.changed()

    # ---- from task to task ----

    def sent(self, port: Port, change: Columns, tasks: int) -> Iterator[tuple[int, bytes]] | None:
        """A change as Arrow tables, each for the task that has the hash of their key; None where
        rows have to be sent: what they add up to, or by a key that columns do not have."""
        if port not in self._keys:
            self._keys[port] = self._hashes_of(port, change.type)
        hashes = self._keys[port]
        if hashes is None or (port.adds is not None and port.adds in self.why):
            return None
        return _in_parts(change, ranges(hashes(change), tasks) if tasks > 1 else None)

    def _hashes_of(self, port: Port, row_type: Any) -> Callable[[Columns], Any] | None:
        """The hashes of the keys of a port, as `ebbflow.state.spine.hashing.hashes` has them."""
        texts = self.texts
        if port.key is by_row:
            rows = records_form(row_type)
            return lambda change: column_hashes(*rows.columns(matrix(change.fields), texts))
        if not isinstance(port.key, Fn):
            return None
        try:
            key = KeyOnColumns(port.key, row_type, texts)
            require_plain(port.key, key.forms)
        except NotInColumns:
            return None
        form = keys_form(key.forms)
        return lambda change: column_hashes(*form.columns(key(change), texts))

    def received(self, row_type: Any, tables: Sequence[Any], rows: Mapping[Any, int]) -> Columns:
        """What has arrived at a port, in tables and as rows."""
        texts = self.texts
        parts = [_fitting(columns_of_table, table, row_type, texts) for table in tables]
        if rows:
            parts.append(_fitting(columns_of_rows, rows, row_type, texts))
        return _owned(together(parts, texts), texts)


def _in_parts(change: Columns, places: Any) -> Iterator[tuple[int, bytes]]:
    """Columns as tables, those of one place together; all at the first where none are given."""
    schema = arrow_schema(change.type)
    if places is None:
        yield 0, in_stream(change.batch(schema))
        return
    order = np.argsort(places, kind="stable")
    table = change.taken(order).batch(schema)
    ends = np.searchsorted(places[order], np.arange(places.max() + 2)) if len(places) else [0]
    for place, (begin, end) in enumerate(pairwise(ends)):
        if begin < end:
            yield place, in_stream(table.slice(begin, end - begin))


def _owned(columns: Columns, texts: Texts) -> Columns:
    """Columns whose arrays may be written to."""
    fields = [partial(_own, each) for each in columns.given]
    weights = _own(columns.weights)
    return Columns(columns.type, fields, weights, texts, canonical=columns.canonical)


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
