"""What a changed program changes in the outputs, for the sinks of the program before.

The commit that opens a changed program is an epoch. What it changes in an output is the difference
between the rows that the old program left and the rows that the new one computes. It is written
with that commit, as the change of any epoch is: so every sink receives it exactly once, after the
epochs that it had not received before.

Some differences cannot be known: the rows are of another type now, or the old ones cannot be
computed without the old program. The state then notes a *gap*: the epoch, why, and the lines of the
program that changed. A sink that was before the gap cannot go on, and its error shows the note;
`view.restart_sink` has it begin again with everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import ndiff
from typing import Any

from ebbflow.engine.runtime.program import RunningProgram
from ebbflow.engine.runtime.reader.scan import output_rows
from ebbflow.engine.runtime.reader.stored import StoredOutput, stored_outputs
from ebbflow.engine.runtime.rows import OutputDeltas, Weights
from ebbflow.engine.runtime.sinks.log import ChangeLog
from ebbflow.engine.runtime.table.arrow import from_arrow, to_arrow
from ebbflow.engine.runtime.table.stored import row_type_of, stored_type
from ebbflow.errors import EbbflowError, Text
from ebbflow.flow.describe import verdict
from ebbflow.flow.items import described
from ebbflow.flow.plan import Plan
from ebbflow.record import attributes_of, fields_of, type_text
from ebbflow.state.spine import Snapshot, Store
from ebbflow.zset import add_into, weights_of

GAP, PROGRAM = "gap", "program"
"""The notes of a manifest: the last change of the program that sinks cannot be given, and the lines
of the program."""


class UnknownChange(Exception):
    """The difference of an output is not known."""


def staged_differences(
    store: Store, program: RunningProgram, log: ChangeLog, outputs: Iterable[str]
) -> OutputDeltas:
    """How these outputs differ from those of the last epoch of a store. In the log an output that
    is new begins as one that was empty."""
    with store.at(store.epoch) as old:
        deltas = output_differences(old, program, outputs)
        before = old.notes.get("outputs", {}).keys() & program.outputs.keys()
    for name in deltas.keys() - before:
        log.begin(name, before)
    return deltas


def output_differences(
    old: Snapshot, program: RunningProgram, outputs: Iterable[str]
) -> OutputDeltas:
    """How the rows of these outputs of a program differ from those in a state of the program
    before; of an output that is new, all its rows."""
    noted, found = old.notes.get("outputs", {}), dict[str, Weights]()
    known = stored_outputs(old, None)
    for name in outputs:
        delta = dict(weights_of(program.outputs[name].value()))
        if name in noted:
            require_same_columns(name, noted[name], program.plan)
            was = _rows_before(old, name, known[name], program.plan.outputs[name].type)
            add_into(delta, {row: -weight for row, weight in was.items()})
        found[name] = delta
    return found


def require_known(old: Snapshot, plan: Plan, outputs: Iterable[str]) -> None:
    """Refuse outputs whose difference from those in a state cannot be known."""
    noted = old.notes.get("outputs", {})
    for name in outputs:
        if name in noted:
            require_same_columns(name, noted[name], plan)
            try:
                output_rows(old, name)
            except EbbflowError as error:
                raise _unknown(error) from error


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


def _rows_before(old: Snapshot, name: str, output: StoredOutput, row_type: Any) -> Weights:
    """The rows of an output as the old program left them, in the classes of the new one."""
    try:
        rows = output.read(old)
    except EbbflowError as error:
        raise _unknown(error) from error
    if not _has_dataclass(row_type):
        return rows  # a NamedTuple equals one of another class
    made, weights = from_arrow(to_arrow(list(rows), rows.values(), output.type), row_type)
    return dict(zip(made, weights, strict=True))


def _unknown(error: EbbflowError) -> UnknownChange:
    why = error.facts.get("why", "")
    return UnknownChange(f"{error.what}{f': {why}' if why else ''}")


def _has_dataclass(hint: Any) -> bool:
    fields = attributes_of(hint)
    inside = getattr(hint, "__args__", ()) if fields is None else fields.values()
    return (fields is not None and fields_of(hint) is not None and not _is_tuple(hint)) or any(
        map(_has_dataclass, inside)
    )


def _is_tuple(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, tuple)


# ---- what is noted ----


def program_lines(plan: Plan) -> list[str]:
    """What the nodes of a program do, a line each, from the outputs down.

    >>> import ebbflow as ef
    >>> program_lines(ef.Input("words", str).filter(lambda word: len(word) > 3).plan)
    ['filter len(word) > 3', 'input words']
    """
    return [item.label for item in described(plan, {}, verdict, {}).items]


def gap_note(
    epoch: int, why: UnknownChange, notes: Mapping[str, Any], plan: Plan
) -> dict[str, Any]:
    """The note of a gap: its epoch, why, and the lines of the old program, where its `notes` have
    them, and of the new one."""
    now = program_lines(plan)
    return {"epoch": epoch, "why": str(why), "was": notes.get(PROGRAM), "now": now}


def gap_facts(gap: Mapping[str, Any]) -> dict[str, Any]:
    """What an error says of a gap: why, and how the program changed."""
    facts: dict[str, Any] = {"changed": Text(f"the program, in epoch {gap['epoch']}")}
    facts["why"] = Text(gap["why"])
    if gap["was"] is None:
        return facts
    lines = [line for line in ndiff(gap["was"], gap["now"]) if line[0] in "+-"]
    was = [line[2:] for line in lines if line[0] == "-"]
    now = [line[2:] for line in lines if line[0] == "+"]
    if was or now:
        facts["was"] = Text("; ".join(was) or "nothing")
        facts["now"] = Text("; ".join(now) or "nothing")
    else:
        facts["now"] = Text("the same steps; a function or a class that they use differs")
    return facts
