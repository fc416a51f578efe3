"""State that a changed program has none of yet, computed from the state that is there.

A stage that is new, or means something else than before, has a part without state. It is filled
from what it reads: the state of the stages before it, up to the rows of the inputs. So are the rows
of an input that are in another part than they were, and those of an output that is new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

from ebbflow.engine.runtime.convert.rows import ConvertedRows
from ebbflow.engine.runtime.failure import explaining
from ebbflow.engine.runtime.parts import typed
from ebbflow.engine.runtime.program import RunningProgram
from ebbflow.engine.runtime.stage import Stage
from ebbflow.engine.runtime.values.check import canonical_rows
from ebbflow.flow.plan import Source
from ebbflow.state.spine import Snapshot, Store
from ebbflow.zset import trusted

NO_CONVERSIONS: Mapping[str, ConvertedRows] = {}
Append = Callable[[Any, Any], None]


def rebuild(
    program: RunningProgram,
    store: Store,
    new: set[str],
    append: Append,
    conversions: Mapping[str, ConvertedRows] = NO_CONVERSIONS,
) -> tuple[str, ...]:
    """Fill the parts that have no state, those named in `new`, and give their labels. What is done
    to a container is handed to `append`, at once: what comes after may read it from the store."""
    machine, wholes = program.machine, dict[int, Any]()
    lacking = {id(part.owner) for part in program.parts if part.name in new}
    was, now = store.notes["rows"], rows_of_inputs(program)

    def rows(name: str) -> dict[Any, int]:
        state = program.inputs[name]
        if name in conversions:
            return canonical_rows(state.source, conversions[name].rows(store, was[name], state))
        if was.get(name, now[name]) == now[name]:
            return dict(state.snapshot().items())
        return stored_rows(store, state.source, was[name])

    def fill(stage: Stage) -> None:
        values: list[Any] = [None] * machine.width
        with explaining(stage):
            for slot in stage.reads:
                values[slot] = machine.whole(slot, rows, wholes)
        machine.open = []
        machine.execute([machine.act(stage, stage.reads)], values, [0] * machine.width)
        wholes[stage.slot] = values[stage.slot] or {}
        with explaining(stage):
            for owner, change in program.staged():
                append(owner, change)
        machine.commit()

    for name, state in program.inputs.items():
        if id(state.store) in lacking and name in was:
            state.apply(trusted(rows(name)))
            append(state.store, state.store.changed())
            state.keep()
    for stage in machine.stages:
        if any(id(each) in lacking for each in stage.containers):
            fill(stage)
    for name, output in program.outputs.items():
        if output.rows is not None and id(output.rows) in lacking:
            output.rows.prepare(machine.whole(machine.outputs[name], rows, wholes))
            append(output.rows, output.rows.changed())
            output.rows.keep()
    machine.count_anew()
    return computed_labels(program, new)


def computed_labels(program: RunningProgram, new: Set[str]) -> tuple[str, ...]:
    """What the parts of these names are called, but for those of inputs."""
    states = program.inputs.values()
    inputs = {id(each) for state in states for each in (state.store, state.beside)}
    parts = [part for part in program.parts if part.name in new and id(part.owner) not in inputs]
    return tuple(dict.fromkeys(part.label for part in parts))


def rows_of_inputs(program: RunningProgram) -> dict[str, str]:
    """For each input whose rows are kept, the name of the part that has them."""
    inputs = program.inputs.items()
    return {name: program.part(state.holder).name for name, state in inputs if state.keeps}


def stored_rows(store: Snapshot, source: Source, name: str) -> dict[Any, int]:
    """The rows of an input, from a part that the program need not have any more."""
    row_type, layout = typed(source.type), store.layout(name)
    by_row = layout == "value" and source.key is None
    types = (row_type, Any) if by_row else (Any, row_type)
    spine = store.spine(name, layout=layout, key_type=types[0], row_type=types[1])
    if by_row:
        return {row: weight for row, weight, _ in spine.scan()}
    return {row: weight for _, row, weight in spine.scan()}
