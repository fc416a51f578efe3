"""Replica: a program compiled in some process, whose state is elsewhere.

It runs what the local engine runs, the same stages with the same operators. The state that a change
touches is fetched from a snapshot of the last epoch, one probe for each container; what was done to
it is staged in the spines of the snapshot, for somebody to write down. A replica is used for one
task at a time, and forgets everything after it.

`all_at_once` runs a whole epoch; `wave` runs one wave of it, on the rows that this task has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any

from ebbflow.engine.runtime.failure import explained
from ebbflow.engine.runtime.inputs import InputState, KeyedInput, SharedInput, input_state_of
from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.runtime.outputs import OutputState, may_be_negative
from ebbflow.engine.runtime.parts import StatePart, renamed, state_parts, unnamed, written
from ebbflow.engine.runtime.rows import Rows
from ebbflow.engine.runtime.stage import (
    Gathered,
    Indexing,
    Moving,
    Partial,
    Regrouping,
    Sorted,
    Stage,
    Swapping,
)
from ebbflow.engine.spark.tasks.waves import From, Key, Waves, by_row
from ebbflow.errors import ChangeError, EbbflowError, cause_of
from ebbflow.flow.plan import Plan, Source
from ebbflow.state.backing import Backing
from ebbflow.state.cells import Journalled
from ebbflow.zset import trusted

Delta = dict[Any, int]
APPLY, UPSERT, DELETE = "apply", "upsert", "delete"
InputChange = tuple[str, Any]
"""What is done to an input, and with which rows or keys."""


class Replica:
    """A plan with its inputs and outputs, and no state of its own."""

    def __init__(
        self,
        plan: Plan,
        *,
        check_input: bool = True,
        names: Sequence[str] | None = None,
        derived: Iterable[str] = (),
    ) -> None:
        self.plan = plan
        self.derived = frozenset(derived)
        self.token = ""
        self.machine = Machine(plan, trusting=not check_input, apart=True)
        self.machine.backed = True
        self.inputs: dict[str, InputState] = {
            name: self._state(source, check_input) for name, source in plan.sources.items()
        }
        elsewhere = [name for name, each in self.inputs.items() if isinstance(each, SharedInput)]
        self.machine.unchecked = frozenset(elsewhere)
        trusting = not all(state.keeps for state in self.inputs.values())
        self.outputs = {
            name: OutputState(
                name, self.machine, negative=negative, trusting=trusting,
                whole=dict if name in self.derived else None,
            )
            for name, negative in may_be_negative(plan).items()
        }  # fmt: skip
        ends = plan, self.machine, self.inputs, self.outputs
        self.parts: list[StatePart] = (
            state_parts(*ends) if names is None else renamed(list(unnamed(*ends)), names)
        )
        self._waves: dict[Any, Waves] = {}

    def _state(self, source: Source, check_input: bool) -> InputState:
        """Where an input goes in; one whose rows are in an index need not keep them again."""
        slot = self.machine.inputs.get(source.name)
        if check_input and source.key is None:
            for stage in self.machine.stages:
                if isinstance(stage.run, Indexing) and stage.reads == (slot,):
                    return SharedInput(source, stage.run.index)
        return input_state_of(source, check_input)

    @property
    def names(self) -> list[str]:
        """What each part is called where it is stored."""
        return [part.name for part in self.parts]

    def part(self, owner: Any) -> StatePart:
        """The part of a container."""
        return next(part for part in self.parts if part.owner is owner)

    def waves(
        self,
        given: Iterable[str] = (),
        provided: Iterable[int] = (),
        done: Iterable[str] = (),
        bulk: bool = False,
    ) -> Waves:
        """The waves of an epoch in which these inputs are given by key; where it is a bulk load,
        with the slots that are provided, and the parts, by name, whose state is written already.
        Outputs that are derived from the state need no waves of their own then."""
        at = frozenset(given), frozenset(provided), frozenset(done), bulk
        if at not in self._waves:
            written = {id(part.owner) for part in self.parts if part.name in at[2]}
            keeping: dict[str, Key] = {
                name: state.source.key or by_row
                for name, state in self.inputs.items()
                if state.store is not None and id(state.store) not in written
                and name in self.machine.inputs
            }  # fmt: skip
            reported = {*self.machine.readers, *(self.derived if bulk else ())}
            outputs = [name for name in self.outputs if name not in reported]
            self._waves[at] = Waves(self.machine, keeping, outputs, at[0], at[1], written)
        return self._waves[at]

    def row_type(self, slot: int) -> Any:
        """The type of the rows of a slot."""
        for name, at in self.machine.inputs.items():
            if at == slot:
                return self.plan.sources[name].type
        return self.machine.by_slot[slot].type

    # ---- one task ----

    def open(self, snapshot: Any) -> None:
        """Be ready for a task that begins at this state."""
        self.close()
        for part in self.parts:
            part.owner.backing = Backing(
                part.held, part.spine(snapshot), limited=True, codec=part.codec
            )
        self.count_anew()

    def count_anew(self) -> None:
        """Forget what the stages have done so far."""
        for stage in self.machine.stages:
            stage.rows_in = stage.rows_out = 0
            stage.seconds = 0.0

    def close(self) -> None:
        """Forget everything."""
        for part in self.parts:
            part.held.clear()
            part.owner.backing = None
            if isinstance(part.owner, Journalled):
                part.owner.forget()
        self.machine.begin()

    def all_at_once(self, given: Mapping[str, InputChange]) -> dict[str, Delta]:
        """A whole epoch: the change of each output that changed. What it does is staged."""
        changes: dict[str, Delta] = {}
        for name, (verb, rows) in given.items():
            delta = _taken(self.inputs[name], verb, rows)
            if delta:
                changes[name] = delta
        moved = self.machine.run({n: d for n, d in changes.items() if n in self.machine.inputs})
        for name, delta in moved.items():
            self._keep(name, delta)
        self._stage(self.machine.open)
        for name in changes:
            self._stage_rows(self.inputs[name].store)
        return moved

    def enter(self, waves: Waves, slot: int, delta: Delta) -> dict[int, Delta]:
        """Wave 0: rows of a slot, and what steps on one row at a time make of them, by slot."""
        return self._spread({slot: delta}, waves.provided)

    def wave(
        self, waves: Waves, number: int, arrived: Mapping[int, Any]
    ) -> tuple[dict[int, Delta], dict[str, Delta]]:
        """One wave, on what has arrived by port: rows by slot for later waves, and the changes of
        outputs that are whole. What it does is staged."""
        wave = waves.waves[number]
        pieces: dict[int, Delta] = {}
        for port, name in wave.checks.items():
            if arrived.get(port):
                _taken(self.inputs[name], APPLY, trusted(arrived[port]))
                self._stage_rows(self.inputs[name].store)
        for port, name in wave.lookups.items():
            if arrived.get(port):
                verb, rows = arrived[port]
                slot = self.machine.inputs[name]
                pieces[slot] = _taken(self.inputs[name], verb, rows)
                self._stage_rows(self.inputs[name].store)
        done: dict[int, Any] = {}

        def found(at: From) -> Any:
            return (arrived if at.port else done).get(at.at)

        for stage, sources in wave.acts:
            reads = [found(each) for each in sources]
            if any(reads):
                done[stage.slot] = self._run(stage, reads)
                if not stage.sorts and stage.label != "guard":
                    pieces[stage.slot] = done[stage.slot]
        self._stage([each for each in self.machine.open if id(each) in wave.writes])
        made = self._spread(pieces, waves.provided)
        moved = {
            name: made[self.machine.outputs[name]]
            for name in self.machine.readers
            if self.machine.outputs[name] in made
        }
        for port, name in wave.keeps.items():
            if arrived.get(port):
                self._keep(name, arrived[port])
                moved[name] = arrived[port]
        return made, moved

    def _run(self, stage: Stage, reads: list[Any]) -> Any:
        try:
            for container in stage.containers:
                self.machine.open.append(container)
                container.begin()
            started = perf_counter()
            stage.run.fetch(*reads)
            out = stage.run(*reads)
        except Exception as error:
            raise explained(error, stage, self.machine.trusts(stage)) from cause_of(error)
        stage.seconds += perf_counter() - started
        rows = sum([_count(self.machine, slot, read)
                    for slot, read in zip(stage.reads, reads, strict=True) if read])  # fmt: skip
        stage.rows_in += rows
        stage.rows_out += rows if stage.sorts else len(out)
        return out

    def added(self, slot: int, delta: Delta) -> dict[Any, Any]:
        """What rows add to the cells of a reduce, by key."""
        stage = self.machine.by_slot[slot]
        run: Any = stage.run
        started = perf_counter()
        try:
            found: dict[Any, Any] = run.operator.partial(delta)
        except Exception as error:
            raise explained(error, stage, self.machine.trusts(stage)) from cause_of(error)
        stage.seconds += perf_counter() - started
        stage.rows_in += len(delta)
        return found

    def _spread(self, pieces: dict[int, Delta], but: frozenset[int]) -> dict[int, Delta]:
        """Have the steps on one row at a time run on these pieces, and on what they give."""
        for stage in self.machine.stages:
            if not isinstance(stage.run, Gathered) or stage.slot in but:
                continue
            if any(pieces.get(slot) for slot in stage.reads):
                out = self._run(stage, [pieces.get(slot) for slot in stage.reads])
                if out:
                    pieces[stage.slot] = out
        return {slot: delta for slot, delta in pieces.items() if delta}

    def key_failed(self, waves: Waves, port: int, delta: Delta, error: Exception) -> Exception:
        """What to raise when the key of a port fails on some row: what the stage, or the input,
        would have raised."""
        end = waves.ports[port].end
        stage = waves.readers.get(port)
        try:
            if end in self.inputs and isinstance(self.inputs[end], KeyedInput):
                self.inputs[end].prepare(trusted(delta))
            elif stage is not None:
                _keys_of(stage.run, delta)
        except EbbflowError as found:
            return found
        except Exception as found:
            return explained(found, stage)
        return error if stage is None else explained(error, stage)

    # ---- what is staged ----

    def _keep(self, name: str, delta: Delta) -> None:
        rows = self.outputs[name].rows
        if rows is not None:
            rows.prepare(delta)
            self._stage_rows(rows)

    def _stage(self, containers: Iterable[Any]) -> None:
        for container in containers:
            for change in written(container):
                container.backing.append(change)

    def _stage_rows(self, rows: Any) -> None:
        if rows is not None and rows.backing is not None:
            if isinstance(rows, Rows) and rows.heaviest >= 1 << 63:
                raise ChangeError(
                    "a row would be there more often than 64 bits can tell",
                    weight=rows.heaviest,
                    remedy="a field that counts, instead of a row that is added so often",
                )
            rows.backing.append(rows.changed())

    def staged(self) -> list[tuple[StatePart, Any]]:
        """The parts that this task has changed, each with the spine that has what was done."""
        spines = [(part, part.owner.backing.kept) for part in self.parts]
        return [(part, spine) for part, spine in spines if spine.staged]

    def stats(self) -> list[tuple[int, int, int, float]]:
        """For each stage that ran: its number, rows in, rows out, seconds."""
        return [
            (i, stage.rows_in, stage.rows_out, stage.seconds)
            for i, stage in enumerate(self.machine.stages)
            if stage.rows_in or stage.rows_out
        ]


def _count(machine: Machine, slot: int, read: Any) -> int:
    """How many rows a stage reads in a slot; where they are by key, they are in lists."""
    if isinstance(read, Partial):
        return 0  # they were counted where they were added up
    maker = machine.by_slot.get(slot)
    return sum(map(len, read.values())) if maker is not None and maker.sorts else len(read)


def _keys_of(run: Any, delta: Delta) -> None:
    """Compute the keys of a change as a stage does."""
    if isinstance(run, Sorted):
        run.by_key(delta.items())
    elif isinstance(run, Indexing):
        run.index.grouped(delta)
    elif isinstance(run, (Swapping, Regrouping, Moving)):
        run.operator.keys(delta)


def _taken(state: InputState, verb: str, rows: Any) -> Delta:
    """What an input makes of what is done to it, checked."""
    if verb == APPLY:
        return state.prepare(rows)
    if not isinstance(state, KeyedInput):
        raise ChangeError(
            f"{verb}: input {state.name!r} has no key",
            created=state.source.place,
            remedy=f"Input({state.name!r}, ..., key=...), or add and remove rows",
        )
    if verb == DELETE:
        return state.deletes(tuple(rows))
    taken = [row for row, weight in rows.items() if weight < 1]
    if taken:
        raise ChangeError(
            f"upsert: input {state.name!r} is given a row to take away",
            row=taken[0],
            created=state.source.place,
            remedy="rows alone, each to be put in; changes, with weights or kinds, by step()",
        )
    if len(set(state._keys(rows))) < len(rows):
        raise ChangeError(
            f"upsert: input {state.name!r} is given several rows of one key, and no order",
            created=state.source.place,
            remedy="the last row of each key alone",
        )
    return state.upserts(tuple(rows))
