"""Stored outputs: how the rows of an output are found in a state.

An output whose rows are kept is a part of the state, and its manifest notes which one, and the type
of its rows. Other outputs are computed from what an operator keeps, or from the rows of inputs, by
nodes of the program that the manifest notes as well (`computed`). Where such a node calls a
function of the user's, that takes the program, or a view that was told to keep all outputs
(`readable=True`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.inputs import input_state_of
from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.runtime.parts import StatePart, typed
from ebbflow.engine.runtime.program import RunningProgram
from ebbflow.engine.runtime.reader.computed import computed_rows, noted_computation
from ebbflow.engine.runtime.rebuild import stored_rows
from ebbflow.engine.runtime.table.stored import row_type_of, stored_type
from ebbflow.errors import StateError, Text
from ebbflow.flow.plan import Plan
from ebbflow.state.backing import Backing
from ebbflow.state.spine import Snapshot
from ebbflow.zset import ZSet, add_into, trusted, weights_of

Weights = dict[Any, int]
MEANT = "meant"


class StoredOutput(NamedTuple):
    """An output in a state: the type of its rows, the parts it is read from, and how."""

    type: Any
    parts: tuple[str, ...]
    read: Callable[[Snapshot], Weights]


def noted_outputs(program: RunningProgram) -> dict[str, Any]:
    """What the manifest notes of each output: the part that has its rows, if one has, else how they
    are computed, and a digest of what they mean; and their type."""
    found = {}
    meant = program.identities.of(program.plan)
    for name, output in program.outputs.items():
        node = program.plan.outputs[name]
        kept = output.rows is not None
        part = program.part(output.rows).name if kept else None
        how = {} if kept else {MEANT: meant[id(node)], **noted_computation(program, name)}
        found[name] = {"part": part, "type": stored_type(node.type), **how}
    return found


def stored_outputs(snapshot: Snapshot, plan: Plan | None) -> dict[str, StoredOutput]:
    """The outputs of a state, each with how it is read; those of a plan, where one is given."""
    noted: Mapping[str, Any] = snapshot.notes.get("outputs", {})
    if plan is not None:
        return _planned(snapshot, noted, plan)
    found = {}
    for name, said in noted.items():
        row_type = row_type_of(said["type"])
        part = said["part"]
        found[name] = (
            _without_program(snapshot, name, said, row_type)
            if part is None
            else StoredOutput(row_type, (part,), _rows_in(part, row_type))
        )
    return found


def _without_program(snapshot: Snapshot, name: str, said: Any, row_type: Any) -> StoredOutput:
    scan = computed_rows(snapshot, name, said, row_type)
    if scan is None:
        return StoredOutput(row_type, (), _computing(name, said))

    def read(snapshot: Snapshot) -> Weights:
        total: Weights = {}
        for rows in scan.rows(snapshot):
            add_into(total, rows)
        return total

    return StoredOutput(row_type, scan.spines, read)


def _rows_in(part: str, row_type: Any) -> Callable[[Snapshot], Weights]:
    def read(snapshot: Snapshot) -> Weights:
        spine = snapshot.spine(part, layout="value", key_type=typed(row_type))
        return {row: weight for row, weight, _ in spine.scan()}

    return read


def _computing(name: str, said: Any) -> Callable[[Snapshot], Weights]:
    def read(snapshot: Snapshot) -> Weights:
        raise needs_program(name, said)

    return read


def needs_program(
    name: str, said: Mapping[str, Any], remedy: str = "ebbflow.open(path, program)"
) -> StateError:
    """The error for an output that a reader without its program cannot read. `said` is the note of
    the output in the manifest."""
    if MEANT in said:
        why = "a function of the program computes them, which the state does not have"
        other = "run(path=..., readable=True) where it is written, which keeps them"
    else:
        why = "an earlier version of ebbflow wrote this epoch, and did not note how"
        other = "open the view with its program and step() once: later epochs have the note"
    return StateError(
        f"output {name!r} keeps no rows of its own, and to compute them takes the program",
        why=Text(why),
        remedy=f"{remedy}; or {other}",
    )


# ---- with the program ----


def _planned(snapshot: Snapshot, noted: Mapping[str, Any], plan: Plan) -> dict[str, StoredOutput]:
    known = set(snapshot.notes.get("parts", {}))
    programs = [_compiled(plan, apart) for apart in (False, True)]
    found = {}
    for name, node in plan.outputs.items():
        said = noted.get(name)
        if said is None:
            raise _another(name, noted)
        if said["part"] is not None and said["type"] == stored_type(node.type):
            found[name] = StoredOutput(
                node.type, (said["part"],), _rows_in(said["part"], node.type)
            )
            continue
        parts = [_cells(program, name) for program in programs]
        there = [(part, stage) for part, stage in parts if part is not None and part.name in known]
        if there:
            part, stage = there[0]
            found[name] = StoredOutput(node.type, (part.name,), _computed(part, stage))
        else:
            found[name] = _from_inputs(snapshot, plan, name)
    return found


def _compiled(plan: Plan, apart: bool) -> RunningProgram:
    inputs = {name: input_state_of(source, True) for name, source in plan.sources.items()}
    return RunningProgram(plan, Machine(plan, apart=apart, stored=True), inputs, {})


def _cells(program: RunningProgram, name: str) -> tuple[StatePart | None, Any]:
    stage = program.machine.readers.get(name)
    return (None, None) if stage is None else (program.part(stage.cells), stage)


def _computed(part: StatePart, stage: Any) -> Callable[[Snapshot], Weights]:
    def read(snapshot: Snapshot) -> Weights:
        held = Backing({}, part.spine(snapshot), limited=False, codec=part.codec).held
        rows: Weights = stage.output_of(held)
        return rows

    return read


def _from_inputs(snapshot: Snapshot, plan: Plan, name: str) -> StoredOutput:
    """An output that is computed from the rows of its inputs."""
    alone = Plan({name: plan.outputs[name]})
    kept: Mapping[str, str] = snapshot.notes.get("rows", {})
    if not set(alone.sources) <= set(kept):
        raise _another(name, kept)

    def read(snapshot: Snapshot) -> Weights:
        rows: dict[str, ZSet[Any]] = {
            each: trusted(stored_rows(snapshot, source, kept[each]))
            for each, source in alone.sources.items()
        }
        return weights_of(evaluate(alone, rows)[name])

    return StoredOutput(plan.outputs[name].type, tuple(kept[each] for each in alone.sources), read)


def _another(name: str, known: Iterable[str]) -> StateError:
    return StateError(
        f"output {name!r} cannot be read: this is the state of another program",
        stored=Text(", ".join(known) or "nothing"),
        remedy="the program that writes it, as it is there; or none, to read what rows are kept",
    )
