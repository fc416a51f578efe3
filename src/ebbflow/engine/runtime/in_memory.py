"""A program that runs in memory, in rows: its stages are put together for that."""

from __future__ import annotations

from ebbflow.engine.runtime.into_reduce import add_up_joins
from ebbflow.engine.runtime.kept_once import keep_once
from ebbflow.engine.runtime.program import RunningProgram


def use_memory(program: RunningProgram) -> None:
    """Have a program that has not run yet run in memory, in rows."""
    keep_once(program)
    add_up_joins(program)
    program.machine.in_memory = True
