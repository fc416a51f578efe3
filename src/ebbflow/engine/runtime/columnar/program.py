"""A running program in columns, and back in rows."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ebbflow.engine.runtime.in_memory import use_memory
from ebbflow.engine.runtime.inputs import BagInput, InputState
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.runtime.program import RunningProgram
from ebbflow.engine.runtime.tables import is_columns, is_table
from ebbflow.errors import CompositionError, install
from ebbflow.flow.plan import Node
from ebbflow.kernel import missing, undisturbed

MANY = 50_000
"""A first table of so many rows has a program run in columns, if nothing else is said."""


def use_columns(program: RunningProgram, *, asked: bool = True) -> bool:
    """Have a program that has not run yet run in columns, and say whether any stage of it does. Who
    has asked for it is told by `explain` why none does."""
    undisturbed(import_module, "ebbflow.engine.runtime.columnar.choose")  # it may be in a step
    from ebbflow.engine.runtime.columnar.choose import on_columns_where_possible
    from ebbflow.engine.runtime.columnar.forgetting import TextsInUse
    from ebbflow.engine.runtime.columnar.inputs import CheckedColumnInput, ColumnInput
    from ebbflow.engine.runtime.columnar.keyed_input import keyed_in_columns
    from ebbflow.kernel.words import Texts, forms_of

    machine, texts = program.machine, Texts()
    if program.forgetting.gates:
        return False  # what is closed is forgotten row by row
    sources = program.plan.sources
    types = {slot: sources[name].type for name, slot in machine.inputs.items()}
    chosen = on_columns_where_possible(machine.stages, types, texts)
    some = any(stage.in_columns for stage in chosen.stages)
    if not some and not asked:
        return False
    machine.use(chosen.stages, chosen.why)
    inputs = program.inputs
    for name, state in list(inputs.items()) if some else ():
        if forms_of(state.source.type) is not None:
            if type(state) is BagInput:
                inputs[name] = CheckedColumnInput(state.source, texts)
            elif type(state) is InputState:
                inputs[name] = ColumnInput(state.source, texts)
            elif type(state) is KeyedInput:
                inputs[name] = keyed_in_columns(state, texts)
    if some:
        program.observers.append(TextsInUse(program, texts))
    return some


def use_rows(program: RunningProgram) -> None:
    """Have a program run in rows, whatever it did before; between two epochs."""
    machine = program.machine
    if machine.by_columns is None:
        return
    for stage in machine.stages:
        if stage.in_columns:
            stage.family.give_up("the program runs in rows")
    machine.use([getattr(stage, "by_rows", stage) for stage in machine.stages], None)
    for name, state in list(program.inputs.items()):
        if hasattr(state, "as_rows"):
            program.inputs[name] = state.as_rows()


def column_facts(machine: Any) -> dict[Node, object]:
    """What `explain` says of the nodes of a program in columns: whether they are, or why not."""
    why: Any = getattr(machine, "by_columns", None)
    found: dict[Node, object] = {}
    for stage in machine.stages if why is not None else ():
        if stage.arranges:
            continue
        if not stage.in_columns:
            found[stage.node] = f"in rows: {why[stage.slot]}"
        elif stage.given_up:
            found[stage.node] = f"in rows, since {stage.given_up} came"
        else:
            found[stage.node] = "in columns"
    return found


def require_columns() -> None:
    """Refuse to go on without what columns need."""
    lacking = missing()
    if lacking:
        raise CompositionError(
            f"run(columns=True) needs {' and '.join(lacking)}", remedy=install("fast")
        )


class FirstStep:
    """The first epoch of a program: when a large table is given, it runs in columns; otherwise in
    rows, and rows of inputs are kept once."""

    def __init__(self, storage: Any) -> None:
        self.storage = storage

    def __call__(self, epoch: int, given: Mapping[str, Any], batch: Any = None) -> Any:
        program = self.storage.program
        large = any(map(_is_large, given.values()))
        if large and not missing() and use_columns(program, asked=False):
            self.storage.advance = program.run
        else:
            self.in_rows()
        return program.run(epoch, given, batch)

    def in_rows(self) -> None:
        """Have the program run in rows, whatever the first change is."""
        use_memory(self.storage.program)
        self.storage.advance = self.storage.program.run


def _is_large(given: Any) -> bool:
    if is_table(given):
        rows = getattr(given, "num_rows", None)
        return (len(given) if rows is None and hasattr(given, "__len__") else rows or 0) >= MANY
    columns = given.values() if is_columns(given) else ()
    return max((len(each) for each in columns if hasattr(each, "__len__")), default=0) >= MANY
