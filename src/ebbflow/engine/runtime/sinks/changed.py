"""What a changed program changes in the outputs, for the sinks of the program before.

The commit that opens a changed program is an epoch. What it changes in an output is the difference
between the rows that the old program left and the rows that the new one computes. It is written
with that commit, as the change of any epoch is: so every sink receives it exactly once, after the
epochs that it had not received before.

Some differences cannot be known: the rows are of another type now, or the old ones cannot be
computed without the old program. The state then notes a *gap*: the epoch, the outputs with the
reasons, and the lines of both programs. A sink of such an output that was before the gap cannot go
on, and its error shows the note. `view.restart_sink` begins it again. Sinks of
other outputs go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ebbflow.engine.runtime.program import RunningProgram
from ebbflow.engine.runtime.reader.computed import former_cells
from ebbflow.engine.runtime.reader.scan import output_rows
from ebbflow.engine.runtime.reader.stored import StoredOutput, stored_outputs
from ebbflow.engine.runtime.rows import OutputDeltas, Weights
from ebbflow.engine.runtime.sinks.log import ChangeLog
from ebbflow.engine.runtime.table.arrow import from_arrow, to_arrow
from ebbflow.engine.runtime.table.stored import row_type_of, stored_type
from ebbflow.errors import EbbflowError
from ebbflow.flow.describe import verdict
from ebbflow.flow.items import described
from ebbflow.flow.plan import Plan
from ebbflow.record import attributes_of, fields_of, type_text
from ebbflow.state.backing import Backing
from ebbflow.state.spine import Snapshot, Store
from ebbflow.zset import add_into, weights_of

PROGRAM = "program"
"""The note of a manifest that has the lines of the program."""
Reasons = dict[str, str]
"""Outputs whose difference is not known, each with the reason."""


class UnknownChange(Exception):
    """The difference of an output is not known."""


def staged_differences(
    store: Store, program: RunningProgram, log: ChangeLog, outputs: Iterable[str]
) -> tuple[OutputDeltas, Reasons]:
    """How these outputs of a program differ from those of the last epoch of a store; all rows of an
    output that is new. A new output, or one with other columns, enters the log as unchanged in the
    epochs before."""
    deltas, unknown = dict[str, Weights](), Reasons()
    with store.at(store.epoch) as old:
        noted, found = old.notes.get("outputs", {}), stored_outputs(old, None)
        same = noted.keys() & program.outputs.keys()
        for name in outputs:
            delta = dict(weights_of(program.outputs[name].value()))
            program.outputs[name].seen = None  # it need not stay in memory
            if name in noted:
                row_type = program.plan.outputs[name].type
                try:
                    require_same_columns(name, noted[name], program.plan)
                    was = _rows_of_cells(old, program, name, noted[name])
                    if was is None:
                        was = _rows_before(old, found[name], row_type)
                except UnknownChange as error:
                    unknown[name] = str(error)
                    continue
                add_into(delta, {row: -weight for row, weight in was.items()})
            deltas[name] = delta
    for name in outputs:
        log.begin(name, same.difference(unknown))
    return deltas, unknown


def unknown_differences(old: Snapshot, program: RunningProgram, outputs: Iterable[str]) -> Reasons:
    """The outputs whose difference from those in a state cannot be known."""
    noted, unknown = old.notes.get("outputs", {}), Reasons()
    for name in outputs:
        if name in noted:
            try:
                require_same_columns(name, noted[name], program.plan)
                if former_cells(program, name, noted[name]) is None:
                    output_rows(old, name)
            except UnknownChange as error:
                unknown[name] = str(error)
            except EbbflowError as error:
                unknown[name] = _reason(error)
    return unknown


def require_same_columns(name: str, noted: Mapping[str, Any], plan: Plan) -> None:
    """Refuse a difference between rows of two types, whatever their classes are called."""
    now = stored_type(plan.outputs[name].type)
    if _unnamed(noted["type"]) != _unnamed(now):
        was, now = _columns_text(noted["type"]), _columns_text(now)
        raise UnknownChange(f"the rows of output {name!r} were {was}, and are {now}")


def _unnamed(stored: Any) -> Any:
    """A stored type without the names of classes."""
    kept = {key: value for key, value in stored.items() if key != "named"}
    if "parts" in kept:
        kept["parts"] = [[name, _unnamed(part)] for name, part in kept["parts"]]
    return kept


def _columns_text(stored: Any) -> str:
    hint = row_type_of(stored)
    fields = fields_of(hint)
    if fields is None:
        return type_text(hint)
    inside = ", ".join(f"{name}: {type_text(each)}" for name, each in fields.items())
    return f"{stored['named']}({inside})" if "named" in stored else f"({inside})"


def _rows_of_cells(
    old: Snapshot, program: RunningProgram, name: str, said: Mapping[str, Any]
) -> Weights | None:
    """The rows of an output that the new program reads as the old one did, from the old cells."""
    cells = former_cells(program, name, said)
    if cells is None:
        return None
    stage: Any = program.machine.readers[name]
    stage = getattr(stage, "by_rows", stage)
    part = program.part(stage.cells)._replace(name=cells)
    held = Backing({}, part.spine(old), limited=False, codec=part.codec).held
    rows: Weights = stage.output_of(held)
    return rows


def _rows_before(old: Snapshot, output: StoredOutput, row_type: Any) -> Weights:
    """The rows of an output as the old program left them, in the classes of the new one."""
    try:
        rows = output.read(old)
    except EbbflowError as error:
        raise UnknownChange(_reason(error)) from error
    if not _has_dataclass(row_type):
        return rows  # a NamedTuple equals one of another class
    made, weights = from_arrow(to_arrow(list(rows), rows.values(), output.type), row_type)
    return dict(zip(made, weights, strict=True))


def _reason(error: EbbflowError) -> str:
    why = error.facts.get("why", "")
    return f"{error.what}{f': {why}' if why else ''}"


def _has_dataclass(hint: Any) -> bool:
    fields = attributes_of(hint)
    inside = getattr(hint, "__args__", ()) if fields is None else fields.values()
    return (fields is not None and fields_of(hint) is not None and not _is_tuple(hint)) or any(
        map(_has_dataclass, inside)
    )


def _is_tuple(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, tuple)


def program_lines(plan: Plan) -> list[str]:
    """What the nodes of a program do, a line each, from the outputs down.

    >>> import ebbflow as ef
    >>> program_lines(ef.Input("words", str).filter(lambda word: len(word) > 3).plan)
    ['filter len(word) > 3', 'input words']
    """
    return [item.label for item in described(plan, {}, verdict, {}).items]
