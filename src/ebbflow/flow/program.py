"""Programs: several collections kept up to date together, by name.

All outputs of one program move in the same epochs, and what they have in common is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ebbflow.flow.collection import Collection
from ebbflow.flow.grouped import NEXT, Grouped
from ebbflow.flow.parts import refuse
from ebbflow.flow.plan import Plan
from ebbflow.flow.running import explain, node_text, planned, run


@dataclass(frozen=True, repr=False)
class Program:
    """Named outputs, ready to run; see `program`."""

    plan: Plan

    def run(self, engine: Any = None, **options: Any) -> Any:
        """Start to keep the outputs up to date: in this process, or by the `engine` given.

        >>> import ebbflow as ef
        >>> words = ef.Input("words", str)
        >>> view = program(loud=words.map(str.upper), n=words.agg(n=ef.count())).run()
        >>> view.step(words=["to", "be"])
        {'loud': ZSet({'TO': 1, 'BE': 1}), 'n': ZSet({Group(n=2): 1})}
        """
        return run(self.plan, engine, **options)

    def explain(self, format: str = "text") -> str:
        """The plan, with what every node keeps as state: "text", "mermaid", "dot" or "json"."""
        return explain(self.plan, format)

    def __repr__(self) -> str:
        outputs = self.plan.outputs.items()
        return f"<program of {', '.join(f'{name}: {node_text(node)}' for name, node in outputs)}>"


def program(**outputs: Collection) -> Program:
    """Several collections as one program, each output under its name.

    >>> import ebbflow as ef
    >>> words = ef.Input("words", str)
    >>> program(sizes=words.map(len, type=int), last=words.reduce(ef.max()))
    <program of sizes: int: words → map, last: Group(value): words → reduce>
    """
    if not outputs:
        refuse("program(): no output is given", "program(name=collection, ...)")
    for name, each in outputs.items():
        if isinstance(each, Grouped):
            refuse(f"program({name}=...): group_by(...) alone is not a collection yet", NEXT)
        if not isinstance(each, Collection):
            refuse(
                f"program({name}=...): an output is a collection",
                "an Input or what is made of one",
                given=each,
            )
    return Program(planned({name: each.node for name, each in outputs.items()}))
