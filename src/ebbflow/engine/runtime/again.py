"""Programs in memory that are computed again, where that is less than to follow a change.

A row that goes is followed through all stages, as one that comes is. When most rows go at once, it
takes less to compute the program from the rows that are there afterwards, by stages that have no
state yet, and to give the difference between what comes out and what the outputs had. The state and
the outputs are what following the change would have left.

That needs the rows of all inputs, which trusted ones do not keep, and what outputs had, which all
tell. A loop decides for itself (`ebbflow.engine.runtime.loop_again`), and what is in columns is
followed about as fast as it is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ebbflow.engine.runtime.rows import OutputDeltas, Weights
from ebbflow.zset import add_into

if TYPE_CHECKING:
    from ebbflow.engine.runtime.program import RunningProgram

FEW = 10_000
"""Changes of at most so many rows are followed, however few there are."""
SHARE = 0.3
"""How many rows may be there afterwards, for each that is changed. Where all rows are replaced by
others there is one for every two, and to follow them takes about as long."""


class FormerStages:
    """The stages that a machine had before it was computed again, among what an epoch can undo."""

    backing = None

    def __init__(self, machine: Any) -> None:
        self.machine, self.stages = machine, machine.stages
        self.journal: Any = self.stages

    def commit(self) -> None:
        """Forget them."""
        self.journal = None

    def rollback(self) -> None:
        """Have the machine use them again."""
        self.machine.use(self.stages, None)
        self.journal = None


def pays(program: RunningProgram, changes: Mapping[str, Weights]) -> bool:
    """Whether to compute a program again takes less than to follow these changes of its inputs, and
    can be done."""
    machine, inputs = program.machine, program.inputs
    changed = sum(map(len, changes.values()))
    had = sum(map(len, inputs.values()))
    if changed <= FEW or abs(had - changed) > SHARE * changed:  # whichever of them come or go
        return False
    if machine.by_columns is not None or program.observers or machine.closable:
        return False
    if not all(state.keeps and state.store is not None for state in inputs.values()):
        return False
    if not all(isinstance(change, dict) for change in changes.values()):  # a list of new rows
        return False
    if any(each.looping for each in machine.stages) or any(
        each.backing is not None for stage in machine.stages for each in stage.containers
    ):
        return False
    gone = sum(sum([weight < 0 for weight in change.values()]) for change in changes.values())
    return had + changed - 2 * gone <= SHARE * changed


def computed_again(program: RunningProgram, changes: Mapping[str, Weights]) -> OutputDeltas:
    """Compute a program from the rows that its inputs have after these changes, and give the
    changes of its outputs. `program.rollback` undoes it."""
    from ebbflow.engine.runtime.in_memory import use_memory  # which reads programs

    machine = program.machine
    before = {name: output.whole() for name, output in program.outputs.items()}
    rows = {name: dict(state.snapshot().items()) for name, state in program.inputs.items()}
    for name, change in changes.items():
        add_into(rows[name], change)
    former = machine.renew(program.plan)
    if machine.in_memory:
        use_memory(program)
    for stage, old in zip(machine.stages, former.stages, strict=True):
        stage.counts = old.counts
    now = machine.run({name: each for name, each in rows.items() if each}, former)
    deltas: dict[str, Weights] = {}
    for name, was in before.items():
        delta = {row: -weight for row, weight in was.items()}
        add_into(delta, now.get(name, {}))
        if delta:
            deltas[name] = delta
    program.recomputed += 1
    return deltas
