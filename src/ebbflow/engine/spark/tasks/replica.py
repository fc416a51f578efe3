"""Replica: a program compiled in some process, whose state is elsewhere.

It runs what the local engine runs, the same stages with the same operators. The state that a change
touches is fetched from a snapshot of the last epoch, one probe for each container; what was done to
it is staged in the spines of the snapshot, for somebody to write down. A replica is used for one
task at a time, and forgets everything after it.

`all_at_once` runs a whole epoch; `wave` runs one wave of it, on the rows that this task has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any

from ebbflow.change.requests import Request
from ebbflow.engine.runtime.failure import explained, explaining
from ebbflow.engine.runtime.gate import GatedInput
from ebbflow.engine.runtime.inputs import InputState, SharedInput, input_state_of
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.runtime.loop_report import last_epoch
from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.runtime.parts import state_parts
from ebbflow.engine.runtime.program import Kept, RunningProgram
from ebbflow.engine.runtime.rows import OutputDeltas, Rows
from ebbflow.engine.runtime.stage import by_row
from ebbflow.engine.spark.tasks.running import WaveRunner
from ebbflow.engine.spark.tasks.waves import Key, Waves
from ebbflow.errors import ChangeError, EbbflowError
from ebbflow.flow.plan import Plan, Source
from ebbflow.kernel import missing
from ebbflow.state.spine.texts import TEXTS
from ebbflow.zset import trusted

Delta = dict[Any, int]


class Replica(RunningProgram, WaveRunner):
    """A program with no state of its own. Outputs that are `derived` keep no rows; where it is to
    be `readable`, all others do. `names` are those of its parts, where they are known."""

    machine: Machine

    def __init__(
        self,
        plan: Plan,
        *,
        check_input: bool = True,
        names: Sequence[str] | None = None,
        derived: Iterable[str] = (),
        readable: bool = False,
    ) -> None:
        machine = Machine(plan, trusting=not check_input, apart=True)
        if readable:
            machine.readers = {}
        inputs = {n: _input_state(machine, each, check_input) for n, each in plan.sources.items()}
        shared = [name for name, each in inputs.items() if isinstance(each, SharedInput)]
        machine.unchecked = frozenset(shared)
        for each in inputs.values():
            if isinstance(each, GatedInput):
                each.passive = True  # the driver has let in what comes
        self.derived, self.readable = frozenset(derived), readable
        super().__init__(plan, machine, inputs, dict.fromkeys(self.derived, dict))
        if names is not None:
            self.parts = state_parts(self, names)
        self.token = ""
        self._waves: dict[Any, Waves] = {}

    def waves(
        self,
        given: Iterable[str] = (),
        provided: Iterable[int] = (),
        done: Iterable[str] = (),
        reported: Iterable[str] = (),
        summed: Iterable[int] = (),
    ) -> Waves:
        """The waves of an epoch in which these inputs are given by key; where it is a bulk load,
        with the slots that are provided, the parts, by name, whose state is written already, the
        outputs whose changes others have `reported`, and the reduces, by slot, that others have
        `summed`."""
        at = (
            frozenset(given), frozenset(provided), frozenset(done), frozenset(reported),
            frozenset(summed),
        )  # fmt: skip
        if at not in self._waves:
            written = {id(part.owner) for part in self.parts if part.name in at[2]}
            keeping: dict[str, Key] = {
                name: state.source.key or by_row
                for name, state in self.inputs.items()
                if state.store is not None and id(state.store) not in written
                and name in self.machine.inputs
            }  # fmt: skip
            known = {*self.machine.readers, *at[3]}
            outputs = [name for name in self.outputs if name not in known]
            self._waves[at] = Waves(
                self.machine, keeping, outputs, at[0], at[1], written, at[4]
            )  # fmt: skip
        return self._waves[at]

    @cached_property
    def columns(self) -> Any:
        """Its stages on columns (`ColumnReplica`); None where none is, or kernels are missing."""
        if missing():
            return None
        try:
            from ebbflow.engine.spark.tasks.columns import ColumnReplica
        except ImportError:  # they are there, and do not fit together
            return None
        made = ColumnReplica(self)
        return made if made.useful else None

    def columns_for_task(self) -> Any:
        """The same for a task: with no state, and not with the texts of too many others."""
        if self.columns is not None and self.columns.full:
            del self.columns
        if self.columns is not None:
            self.columns.begin()
        return self.columns

    def row_type(self, slot: int) -> Any:
        """The type of the rows of a slot."""
        for name, at in self.machine.inputs.items():
            if at == slot:
                return self.plan.sources[name].type
        return self.machine.by_slot[slot].type

    # ---- one task ----

    def open(self, snapshot: Any, added: Iterable[tuple[str, str, Any]] = ()) -> None:
        """Be ready for a task that begins at this state, and with the segments that earlier tasks
        of the epoch have `added` to its parts, in order."""
        self.detach()
        self.attach(snapshot, limited=True)
        self.machine.count_anew()
        spines = {part.name: part.owner.backing.kept for part in self.parts} if added else {}
        for name, _, ref in added:
            spines[name].segments.append(snapshot.piece(ref))

    def all_at_once(self, given: Mapping[str, Any]) -> OutputDeltas:
        """Run a whole epoch, stage its changes of the state, and give those of the outputs."""
        deltas = self.run(0, given)
        self.stage_changes()
        return deltas

    def entered(self, name: str, change: Any, keeping: list[Kept]) -> Any:
        state = self.inputs[name]
        if isinstance(change, Request):
            delta = state.request(change)
        else:
            delta = state.apply(trusted(change) if isinstance(change, dict) else change)
        keeping += [state] if state.beside is None else [state, state.beside]
        return delta

    def asked(self, name: str, request: Request | None, rows: Any) -> Any:
        return trusted(rows) if request is None else request.taking(trusted(rows))

    def left(self, name: str, delta: Any, keeping: list[Kept]) -> Any:
        output = self.outputs[name].rows
        if output is not None:
            output.prepare(delta)
            keeping.append(output)
        return delta

    def stage_wave(self, keeping: list[Kept], deltas: dict[str, Any], writes: set[int]) -> None:
        self.pending = 0, keeping, deltas
        written = writes | {id(each.store) for each in keeping}
        self._append(each for each in self.staged() if id(each[0]) in written)

    def loops(self, waves: Waves, number: int, arrived: Mapping[int, Any]) -> dict[int, Delta]:
        """The loops of one wave, on all that they read: rows by slot for later waves. Changes of
        the state are staged."""
        pieces = self._executed(waves.waves[number].loops, arrived, len(waves.ports))
        self.stage_changes()
        return self._spread(waves, pieces)

    def added(self, slot: int, delta: Delta) -> dict[Any, Any]:
        """What rows add to the cells of a reduce, by key."""
        stage = self.machine.by_slot[slot]
        started = perf_counter()
        with explaining(stage, self.machine.trusts(stage)):
            found: dict[Any, Any] = stage.partial(delta)
        stage.counts.seconds += perf_counter() - started
        stage.counts.rows_in += len(delta)
        return found

    def key_failed(self, waves: Waves, port: int, delta: Delta, error: Exception) -> Exception:
        """What to raise when the key of a port fails on some row: what the stage, or the input,
        would have raised."""
        end = waves.ports[port].end
        stage = waves.readers.get(port)
        try:
            if end in self.inputs and isinstance(self.inputs[end], KeyedInput):
                self.inputs[end].apply(trusted(delta))
            elif stage is not None:
                stage.compute_keys(delta)
        except EbbflowError as found:
            return found
        except Exception as found:
            return explained(found, stage)
        return error if stage is None else explained(error, stage)

    # ---- what is staged ----

    def stage_changes(self) -> None:
        """Stage all that was done to containers of stages here."""
        self._append(self.staged())

    def _append(self, changes: Iterable[tuple[Any, Any]]) -> None:
        """Stage changes of containers in their spines."""
        for owner, change in changes:
            if isinstance(owner, Rows) and owner.heaviest >= 1 << 63:
                raise ChangeError(
                    "a row would be there more often than 64 bits can tell",
                    weight=owner.heaviest,
                    remedy="a field that counts, instead of a row that is added so often",
                )
            owner.backing.append(change)

    def changed_spines(self) -> list[tuple[str, Any]]:
        """The spines that this task has changed, by name: those of parts, and the one that has the
        long texts of their rows."""
        spines = {part.name: part.owner.backing.kept for part in self.parts}
        for spine in [*spines.values()]:
            if spine.texts is not None and spine.texts.writes:
                spines[TEXTS] = spine.texts.leaves()
        return [(name, spine) for name, spine in spines.items() if spine.staged]

    def rounds(self) -> list[tuple[int, str]]:
        """For each loop that ran: its number, and what its rounds did."""
        return [
            (i, last_epoch(stage))  # type: ignore[arg-type]
            for i, stage in enumerate(self.machine.stages)
            if stage.looping and (stage.counts.rows_in or stage.counts.rows_out)
        ]

    def stats(self) -> list[tuple[int, int, int, float]]:
        """For each stage that ran: its number, rows in, rows out, seconds."""
        return [
            (i, stage.counts.rows_in, stage.counts.rows_out, stage.counts.seconds)
            for i, stage in enumerate(self.machine.stages)
            if stage.counts.rows_in or stage.counts.rows_out
        ]


def _input_state(machine: Machine, source: Source, check_input: bool) -> InputState:
    """The state of an input; one whose rows are in an index need not keep them again."""
    slot = machine.inputs.get(source.name)
    if check_input and source.key is None and source.lateness is None:
        for stage in machine.stages:
            index = stage.index
            if index is not None and index.codec is None and stage.reads == (slot,):
                return SharedInput(source, index)
    return input_state_of(source, check_input)
