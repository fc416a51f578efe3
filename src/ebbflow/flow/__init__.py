"""Programs over collections, as data.

`Input` is where rows come in, `Collection` has the verbs, `program` puts several outputs together,
`fixpoint` computes several from each other.
What they build is a plan (`ebbflow.flow.plan`): frozen nodes, checked when made, that an engine
runs.
"""

from ebbflow.flow.clock import Clock, clock
from ebbflow.flow.collection import Collection
from ebbflow.flow.compare import between, ge, gt, le, lt, ne
from ebbflow.flow.descending import desc
from ebbflow.flow.grouped import Grouped
from ebbflow.flow.plan import Plan
from ebbflow.flow.program import Program, empty, fixpoint, iterate, program
from ebbflow.flow.source import Input
from ebbflow.flow.typed import typed

__all__ = [
    "Clock", "Collection", "Grouped", "Input", "Plan", "Program", "between", "clock", "desc",
    "empty", "fixpoint", "ge", "gt", "iterate", "le", "lt", "ne", "program", "typed",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
