"""What a running plan keeps, and under which names it is found again.

A plan that runs keeps its state in containers: the rows of inputs, the containers of stages, the
rows of outputs. Where state is written down, each of them is a *part* with a name of its own, a
digest of what it holds (`identity`); so a program finds its state again wherever it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ebbflow.engine.runtime.identity import Names, digest
from ebbflow.engine.runtime.machine import Machine
from ebbflow.expression.schema import schema
from ebbflow.flow.plan import Plan
from ebbflow.record import fields_of
from ebbflow.state.cells import Cells
from ebbflow.state.index import Index


class Held(NamedTuple):
    """A container of a view: its name where it is stored, what it is called, and where it is."""

    name: str
    label: str
    owner: Any
    held: dict[Any, Any]
    layout: str
    keys: Any = Any
    rows: Any = Any
    codec: Any = None

    def spine(self, snapshot: Any) -> Any:
        """Where it is stored."""
        return snapshot.spine(self.name, layout=self.layout, key_type=self.keys, row_type=self.rows)


def held_of(
    plan: Plan, machine: Machine, inlets: Mapping[str, Any], outlets: Mapping[str, Any],
    names: Names | None = None,
) -> list[Held]:  # fmt: skip
    """Every container of a view, with its name."""
    return _told_apart(_named(plan, machine, inlets, outlets, names or Names()))


def renamed(parts: Sequence[Held], names: Iterable[str]) -> list[Held]:
    """The same parts under names that are known already."""
    return [part._replace(name=name) for part, name in zip(parts, names, strict=True)]


def unnamed(
    plan: Plan, machine: Machine, inlets: Mapping[str, Any], outlets: Mapping[str, Any]
) -> Iterator[Held]:
    """Every container of a view, in the order of `held_of`; finding names for them takes time."""
    for name, inlet in inlets.items():
        if inlet.store is not None:
            source, rows = inlet.source, inlet.store
            row_type = typed(source.type)
            types = (row_type, Any) if source.key is None else (Any, row_type)
            yield Held("", f"input {name}", rows, rows.rows, "value", *types)
    for stage in machine.stages:
        for each in stage.containers:
            label = f"{stage.label} {stage.node.place}"
            if isinstance(each, Index):
                yield Held("", label, each, each.groups, "bag", Any, typed(stage.node.type))
            else:
                assert isinstance(each, Cells)
                codec = stage.operator if hasattr(stage.operator, "dump") else None
                yield Held(
                    "", label, each, each.values, "value", typed(stage.cell_keys), Any, codec
                )
    for name, outlet in outlets.items():
        if outlet.rows is not None:
            row_type, rows = typed(plan.outputs[name].type), outlet.rows
            yield Held("", f"output {name}", rows, rows.rows, "value", row_type)


def _named(
    plan: Plan, machine: Machine, inlets: Mapping[str, Any], outlets: Mapping[str, Any],
    known: Names,
) -> Iterator[Held]:  # fmt: skip
    names = [known.of_input(inlet.source) for inlet in inlets.values() if inlet.store is not None]
    compiled = known.of(machine.plan)
    for stage in machine.stages:
        node = compiled[id(stage.node)]
        by = "" if stage.key is None else known.of_value(stage.key)
        for i, each in enumerate(stage.containers):
            row_type = stage.node.type if isinstance(each, Index) else typed(stage.cell_keys)
            names.append(digest(node, stage.label, by, str(i), schema(row_type)))
    meant = known.of(plan)
    for name, outlet in outlets.items():
        if outlet.rows is not None:
            made = plan.outputs[name]
            names.append(digest("output", name, meant[id(made)], schema(typed(made.type))))
    yield from renamed(list(unnamed(plan, machine, inlets, outlets)), names)


def _told_apart(parts: Iterable[Held]) -> list[Held]:
    """Containers that hold the same, each under a name of its own."""
    seen: dict[str, int] = {}
    found = []
    for part in parts:
        seen[part.name] = count = seen.get(part.name, 0) + 1
        found.append(part if count == 1 else part._replace(name=digest(part.name, str(count))))
    return found


def typed(row_type: Any) -> Any:
    """A row type where rows are columns, else Any."""
    return row_type if fields_of(row_type) is not None else Any


def written(container: Any) -> list[Any]:
    """What the open epoch has done to a container of a stage, to be appended to its state."""
    if not container.journal:
        return []
    return list(container.journal) if isinstance(container, Index) else [container.written()]
