"""From nodes to a plan that runs.

A plan is made when everything in it is known: then inputs of one name must be one input. Engines
are above this layer; the one that is used when none is given is looked up by its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from inspect import signature
from typing import Any, get_overloads

from ebbflow.errors import CompositionError, Text, place
from ebbflow.flow import types
from ebbflow.flow.plan import LoopInput, Node, Plan, Source
from ebbflow.keywords import F
from ebbflow.record import fields_of, name_of, type_text

LOCAL = "ebbflow.engine.local"
PYTHON = "ebbflow.engine.runtime.python"


def planned(outputs: Mapping[str, Node]) -> Plan:
    """A plan of these nodes, in which every input has one meaning.

    >>> import ebbflow as ef
    >>> (ef.Input("rows", int).map(str) + ef.Input("rows", str)).run()
    Traceback (most recent call last):
    ebbflow.errors.CompositionError: two inputs are called "rows" and are not the same
        first      rows of type int, created <doctest ebbflow.flow.running.planned[1]>:1
        second     rows of type str, created <doctest ebbflow.flow.running.planned[1]>:1
        try        one Input("rows", ...), used in both places, or another name
    """
    plan = Plan(outputs)
    seen: dict[str, Source] = {}
    for node in plan.nodes():
        if isinstance(node, LoopInput):
            raise CompositionError(
                f"{node.name!r} is a variable of a loop, and is used outside of its body",
                loop=node.place,
                remedy="what iterate(...) or fixpoint(...) gives, after the loop",
            )
        if isinstance(node, Source) and seen.setdefault(node.name, node) != node:
            raise CompositionError(
                f'two inputs are called "{node.name}" and are not the same',
                first=_described(seen[node.name]),
                second=_described(node),
                remedy=f'one Input("{node.name}", ...), used in both places, or another name',
            )
    return plan


def _described(node: Source) -> Text:
    key = "" if node.key is None else f" with the key {node.key.name}"
    return Text(f"rows of type {types.text(node.type)}{key}, created {node.place}")


def named_options(run: F) -> F:
    """Show a method `run` with an engine, and with the options of this process that its first
    overload names."""
    here = signature(get_overloads(run)[0])
    given = {**here.parameters}
    given["engine"] = given["engine"].replace(annotation="Engine | None")
    shown = here.replace(parameters=[*given.values()])
    run.__signature__ = shown  # type: ignore[attr-defined]
    return run


def run(plan: Plan, engine: Any, **options: Any) -> Any:
    """Run a plan by an engine, which is anything with `run(plan, **options)`; by default, here."""
    if engine is None:
        return importlib.import_module(LOCAL).run(plan, **options)
    if not callable(getattr(engine, "run", None)):
        spark = "spark" in f"{type(engine).__module__} {engine!r}".lower()
        given = "session, " if spark and not isinstance(engine, str) else ""
        raise CompositionError(
            f"run({engine!r}): that is not an engine",
            created=place(),
            remedy=f'run(ef.spark({given}path="state/"))'
            if spark
            else "run() for this process, or an engine, which has run(plan)",
        )
    return engine.run(plan, **options)


def explain(plan: Plan, format: str) -> str:
    """A plan as text; see `ebbflow.flow.show`. As Python it is what would run in this process."""
    from ebbflow.flow.show import explain

    if format == "python":
        made: str = importlib.import_module(PYTHON).explain_python(plan)
        return made
    return explain(plan, format)


def plan_html(program: Any) -> str:
    """A collection or a program for a notebook: what it is, and its plan below."""
    from ebbflow.notebook import folded, page, preformatted

    return page(program, {"": lambda: folded("the plan", preformatted(program.explain()))})


def node_text(node: Node) -> str:
    """A node in one line: its rows, and the way to them.

    >>> import ebbflow as ef
    >>> node_text(ef.Input("words", str).filter(len).node)
    'str: words → filter'
    """
    known = fields_of(node.type) is not None
    shown = type_text(node.type) if known else name_of(node.type)
    return f"{shown}: {_way(node)}"


def _way(node: Node) -> str:
    if isinstance(node, Source):
        return node.name
    if len(node.parents) == 1:
        before = _way(node.parents[0])
    else:
        before = f"({', '.join(Plan({'': node}).sources)})"
    return f"{before} → {'anti' if getattr(node, 'anti', False) else node.verb}"
