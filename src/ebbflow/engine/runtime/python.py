"""The Python code that runs for each node of a program: `explain("python")`."""

from __future__ import annotations

from collections.abc import Iterable

from ebbflow.codegen import source_of
from ebbflow.engine.runtime.compile import Compiler
from ebbflow.engine.runtime.loop_report import loops_of
from ebbflow.engine.runtime.stage import BY_KEY, INDEX, Stage, nested
from ebbflow.flow.describe import fn_text, verb
from ebbflow.flow.plan import Plan
from ebbflow.flow.show import Code, explain


def code_of(stages: Iterable[Stage], stored: bool = False) -> list[Code]:
    """The functions that stages run, in the order in which they run; `stored` says that their state
    is not in memory."""
    return [
        Code(node, _label(stage), source_of(loop))
        for stage, _ in nested(stages)
        for node, loop in stage.code_of(stored)
    ]


def _label(stage: Stage) -> str:
    """What a stage does for its node, where the node does not say so."""
    if stage.label == INDEX:
        return f"index by {fn_text(stage.key)}"
    if stage.label == BY_KEY:
        return f"rows by {fn_text(stage.key)}"
    return "" if stage.label in (verb(stage.node), stage.node.verb) else stage.label


def explain_python(plan: Plan) -> str:
    """The code that a program would run in this process.

    >>> from ebbflow.flow.plan import Filter, Source
    >>> from ebbflow.fn import Fn
    >>> loud = Filter(parent=Source(name="words", type=str), fn=Fn(str.isupper))
    >>> print(explain_python(Plan({"loud": loud})))
    # 1 filter str.isupper
    def gather(change0):
        out = {}
        for row, weight in change0.items():
            if not isupper(row): continue
            out[row] = weight
        return out
    """
    compiled = Compiler(plan)
    stages = compiled.stages
    return explain(compiled.plan, "python", code=code_of(stages), loops=loops_of(stages))
