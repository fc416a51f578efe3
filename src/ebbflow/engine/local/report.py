"""What a local view says of itself: what it did, what it keeps, and how it runs."""

from __future__ import annotations

from ebbflow.engine.runtime.columnar.program import column_facts
from ebbflow.engine.runtime.kept_once import kept_once_facts
from ebbflow.engine.runtime.loop_report import loops_of
from ebbflow.engine.runtime.program import RunningProgram
from ebbflow.engine.runtime.python import code_of
from ebbflow.engine.runtime.report import StateSize, ViewStats, added_up
from ebbflow.flow.plan import Node
from ebbflow.flow.show import explain


def stats_of(program: RunningProgram, epoch: int, seconds: float) -> ViewStats:
    """What a program did in all its epochs."""
    return ViewStats(
        epoch,
        seconds,
        {name: len(each) if each.keeps else None for name, each in program.inputs.items()},
        {
            name: None if each.rows is None else len(each.rows.rows)
            for name, each in program.outputs.items()
        },
        tuple(program.machine.stats()),
        program.recomputed,
    )


def sizes_of(now: ViewStats) -> tuple[StateSize, ...]:
    """What is kept in memory."""
    sizes = [(f"input {name}", rows) for name, rows in now.inputs.items()]
    sizes += [(node.label, node.state_rows) for node in now.nodes]
    sizes += [(f"output {name}", rows) for name, rows in now.outputs.items()]
    return added_up(StateSize(label, rows, None) for label, rows in sizes if rows is not None)


def explained(
    program: RunningProgram, format: str, converted: tuple[str, ...], stored: bool
) -> str:
    """A program as it runs; `converted` says of which inputs the rows were, when it was opened."""
    facts: dict[Node, object] = {}
    for state in program.inputs.values():
        was = any(said.startswith(f"input {state.name}: ") for said in converted)
        facts[state.source] = f"{state.said}, converted when it was opened" if was else state.said
    machine = program.machine
    for each in program.forgetting.closable:
        facts[each.stage.node] = "what is closed is forgotten"
    facts |= column_facts(machine)
    stages = getattr(machine, "stages", ())
    facts |= kept_once_facts(stages)
    return explain(
        getattr(machine, "plan", program.plan), format, facts=facts, loops=loops_of(stages),
        code=code_of(stages, stored) if format == "python" else (),
    )  # fmt: skip
