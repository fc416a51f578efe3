"""Program: a plan that runs, with the state of its inputs, its stages and its outputs.

This is what an engine owns and runs: the local view one with its state in memory or on disk, a
Spark task one whose state is brought in before it and taken away after it. An epoch of it goes so:

    run        the inputs read and check their changes, the stages run, the outputs check theirs
    staged     what the epoch does to each container, for somebody to write down
    keep       everything that is prepared becomes so; doing it twice is doing it once
    rollback   instead of `keep`: the stages are as they were; inputs and outputs never changed

Where state is outside, `attach` connects every container to what is stored of it, and `detach`
forgets all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from threading import RLock
from typing import Any

from ebbflow.change.requests import Request
from ebbflow.engine.runtime.again import FEW, computed_again, pays
from ebbflow.engine.runtime.batches import Batches, BatchName
from ebbflow.engine.runtime.closable import Forgotten
from ebbflow.engine.runtime.events import InputNotes
from ebbflow.engine.runtime.gate import Forgetting
from ebbflow.engine.runtime.identity import Names
from ebbflow.engine.runtime.inputs import InputState
from ebbflow.engine.runtime.listed import added
from ebbflow.engine.runtime.outputs import OutputState, may_be_negative
from ebbflow.engine.runtime.parts import StatePart, state_parts, written
from ebbflow.engine.runtime.rows import OutputDeltas, Rows, Weights
from ebbflow.errors import CompositionError, Text, ViewClosed, cause_of, shown
from ebbflow.flow.plan import Plan
from ebbflow.state.backing import Backing
from ebbflow.state.cells import Journalled
from ebbflow.zset import ZSet

Kept = InputState | InputNotes | Rows | Batches | Forgotten
Pending = tuple[int, list[Kept], OutputDeltas]
"""An epoch that has run: its number, the inputs, outputs and batches with something to keep,
and what changed in the outputs."""
Computed = Mapping[str, Callable[[], Weights]]


class RunningProgram:
    """A compiled plan and its state; see the module.

    The `machine` runs it, in `run(changes)`; `rollback` undoes that until `commit`, which may be
    called twice. It says which inputs may be `listed`, and has `stats()`, and perhaps `read(name)`:
    the rows of an output in a new dict, made from what it keeps anyway, or None. Outputs that are
    `computed` by a function keep no rows.
    """

    def __init__(
        self, plan: Plan, machine: Any, inputs: dict[str, InputState], computed: Computed
    ) -> None:
        self.plan = plan
        self.machine = machine
        self.inputs = inputs
        trusting = not all(state.keeps for state in inputs.values())
        self.outputs = {
            name: OutputState(
                name, machine, plan.outputs[name].type,
                negative=negative, trusting=trusting, whole=computed.get(name),
            )
            for name, negative in may_be_negative(plan).items()
        }  # fmt: skip
        self.pending: Pending | None = None
        self.changes: OutputDeltas = {}
        """What the last `run` changes in the inputs."""
        self.batches = Batches()
        self.forgetting = Forgetting(machine, inputs)
        """What is forgotten behind inputs that put late rows aside."""
        self.recomputed = 0
        """In how many epochs it was computed again, and the change not followed."""
        self.observers: list[Callable[[Pending], None]] = []
        """Called before an epoch is kept, perhaps twice."""

    @cached_property
    def identities(self) -> Names:
        """What gives names to the nodes of the plan and to its inputs, for where it is stored."""
        return Names()

    @cached_property
    def parts(self) -> list[StatePart]:
        """Every container that holds state, with its name."""
        return state_parts(self)

    @property
    def names(self) -> list[str]:
        """What each part is called where it is stored."""
        return [part.name for part in self.parts]

    def part(self, owner: Any) -> StatePart:
        """The part of a container."""
        return next(part for part in self.parts if part.owner is owner)

    # ---- one epoch ----

    def run(
        self, epoch: int, given: Mapping[str, Any], batch: BatchName | None = None
    ) -> OutputDeltas:
        """Run an epoch of the change, or the request, that is given to each input, and give what it
        changes in the outputs. It is `pending` then, with its batch."""
        inputs, outputs = self.inputs, self.outputs
        changes: dict[str, Weights] = {}
        keeping: list[Kept] = []
        large = False
        for name, change in given.items():
            state = inputs.get(name)
            if state is None:
                raise unknown_name("input", name, inputs)
            delta: Any
            if isinstance(change, Request):
                delta = state.request(change)
            elif type(change) is list and name in self.machine.listed:
                delta = added(state, change)
            else:
                delta = state.apply(change)
            if delta:
                changes[name] = delta
                keeping.append(state)
                large |= len(delta) > FEW
            if state.beside is not None and state.beside.waiting:
                keeping.append(state.beside)
        self.changes = changes
        again = large and pays(self, changes)
        deltas: OutputDeltas = computed_again(self, changes) if again else self.machine.run(changes)
        if self.forgetting.active:
            keeping += self.forgetting.due(sum(map(len, changes.values())))
        for name, delta in deltas.items():
            output = outputs[name]
            if output.rows is not None and (rows := output.prepare(delta)) is not None:
                keeping.append(rows)
        if batch is not None:
            self.batches.prepare(batch, epoch)
            keeping.append(self.batches)
        self.pending = epoch, keeping, deltas
        return deltas

    def keep(self, pending: Pending) -> None:
        """Keep what an epoch did. Doing it twice is doing it once."""
        _, keeping, deltas = pending
        for observer in self.observers:
            observer(pending)
        self.machine.commit()
        for each in keeping:
            each.keep()
        outputs = self.outputs
        for name in deltas:
            outputs[name].seen = None

    def rollback(self) -> None:
        """Undo what the last `run` did. If it is cut short, call it again."""
        self.machine.rollback()

    def staged(self) -> Iterator[tuple[Any, Any]]:
        """What the last `run` does to containers that are stored: each, and what to append to it.
        Of inputs and outputs, those that have something to keep."""
        for container in self.machine.open:
            if container.backing is not None:
                for change in written(container):
                    yield container, change
        for each in () if self.pending is None else self.pending[1]:
            rows = each.store
            if rows is not None and rows.backing is not None:
                yield rows, each.stored if isinstance(each, Forgotten) else rows.changed()

    # ---- state that is stored ----

    def attach(self, snapshot: Any, *, limited: bool) -> None:
        """Connect every container with what a store or a snapshot has of it: all of it is read
        now, or, where memory is `limited`, keys when they are needed."""
        for part in self.parts:
            part.owner.backing = Backing(
                part.contents, part.spine(snapshot), limited=limited, codec=part.codec
            )
        self.machine.backed = limited

    def load(self) -> None:
        """Have all of the state here that is stored, after the last epoch is."""
        for part in self.parts:
            part.owner.backing.load()
        self.machine.backed = False

    def detach(self) -> None:
        """Forget all state."""
        for part in self.parts:
            part.contents.clear()
            part.owner.backing = None
        self.pending = None
        self._forget_open()

    def reload(self) -> None:
        """Have the state that is stored, whatever was done to it here. An epoch that is pending
        stays so, as it may be what is stored."""
        self._forget_open()
        for part in self.parts:
            part.owner.backing.reload()

    def _forget_open(self) -> None:
        self.machine.open = []
        for part in self.parts:
            if isinstance(part.owner, Journalled):
                part.owner.forget()


class Memory:
    """Where a view has its state in memory alone: nothing is written, and nothing can be read
    again. `ebbflow.engine.runtime.durable.Disk` is the other place."""

    epoch = 0
    rebuilt: tuple[str, ...] = ()
    converted: tuple[str, ...] = ()
    assumed: Mapping[str, tuple[str, ...]] = {}
    files = None
    """Where sinks are noted: nowhere."""

    def __init__(self, program: RunningProgram) -> None:
        self.program = program
        self.done: dict[str, int] = {}
        """The last epoch that each sink has had."""
        self._changes: dict[int, OutputDeltas] = {}
        self.advance = program.run
        self.keep = program.keep

    def happened(self, pending: Pending) -> bool:
        """Whether an epoch that was interrupted has happened: all that have run have."""
        return True

    def undo(self, error: BaseException | None, epoch: int) -> None:
        """Be as at the last epoch. If it is cut short, call it again."""
        try:
            self.program.rollback()
        except Exception as failed:
            if error is not None or isinstance(failed, MemoryError):
                raise
            raise ViewClosed(
                "the view cannot put things back, and is of no use any more",
                epoch=epoch,
                remedy="run() a new one",
            ) from cause_of(failed)

    def at(self, epoch: int) -> dict[str, ZSet[Any]]:
        """No epoch but the last is known."""
        raise CompositionError(
            "a view in memory knows its last epoch only",
            remedy='run(path="state/", keep_epochs=10)',
        )

    def remember(self, epoch: int, deltas: OutputDeltas) -> None:
        """Keep what an epoch changed for as long as a sink needs it. Doing it twice is doing it
        once."""
        self._changes[epoch] = deltas
        had = min(self.done.values(), default=epoch)
        for each in [each for each in self._changes if each <= had]:
            del self._changes[each]

    def logged(self) -> list[int]:
        """The epochs whose changes are kept, in order."""
        return sorted(self._changes)

    def change_of(self, epoch: int) -> OutputDeltas | None:
        """What an epoch changed; None where that is not kept."""
        return self._changes.get(epoch)

    def flush(self) -> None:
        """There is nothing to write."""

    def close_with(self, view: Any, lock: RLock) -> None:
        """There is nothing to do when the view is dropped."""

    def close(self) -> None:
        """There is nothing to write."""


def computed_outputs(plan: Plan, machine: Any, inputs: Mapping[str, InputState]) -> Computed:
    """The outputs that a machine can compute from what is kept anyway, each with how it does."""
    if not hasattr(machine, "derives"):
        return {}
    kept = {name for name, state in inputs.items() if state.keeps}

    def rows(name: str) -> Weights:
        return dict(inputs[name].snapshot().items())

    def computing(name: str) -> Callable[[], Weights]:
        return lambda: dict(machine.whole(machine.outputs[name], rows, {}))

    return {name: computing(name) for name in plan.outputs if machine.derives(name, kept)}


def unknown_name(what: str, name: object, known: Mapping[str, Any]) -> CompositionError:
    """The error for an input or an output that the program does not have."""
    near = get_close_matches(str(name), known, 1, 0.0) or ["a name that is there"]
    return CompositionError(
        f"the program has no {what} {shown(name)}",
        **{f"{what}s": Text(", ".join(known) or "none")},
        remedy=near[0],
    )
