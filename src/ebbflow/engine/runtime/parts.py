"""The parts of the state of a program, and the names under which they are found again.

A plan that runs keeps its state in containers: the rows of inputs, the containers of stages, the
rows of outputs. Where state is written down, each of them is a *part* with a name of its own, a
digest of what it holds (`identity`); so a program finds its state again wherever it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ebbflow.engine.runtime.identity import Names, digest
from ebbflow.expression.schema import schema
from ebbflow.record import fields_of
from ebbflow.state.cells import Cells
from ebbflow.state.index import Index

if TYPE_CHECKING:
    from ebbflow.engine.runtime.program import RunningProgram


class StatePart(NamedTuple):
    """A container that holds state: its name where it is stored, what it is called, the container
    and its contents, and how they are laid out where they are stored."""

    name: str
    label: str
    owner: Any
    contents: dict[Any, Any]
    layout: str
    keys: Any = Any
    rows: Any = Any
    codec: Any = None

    def spine(self, snapshot: Any) -> Any:
        """The spine of a store or of a snapshot that has this part."""
        return snapshot.spine(self.name, layout=self.layout, key_type=self.keys, row_type=self.rows)


def state_parts(program: RunningProgram, names: Sequence[str] | None = None) -> list[StatePart]:
    """Every container of a program, under its name; finding `names` takes time, so they can be
    given."""
    if names is None:
        return _told_apart(_parts(program, program.identities))
    found = _parts(program, None)
    return [part._replace(name=name) for part, name in zip(found, names, strict=True)]


def _parts(program: RunningProgram, known: Names | None) -> Iterator[StatePart]:
    """Every container of a program, in order; without what is `known` of names, under none."""
    name = ""
    for label, state in program.inputs.items():
        if state.store is not None:
            source, rows = state.source, state.store
            row_type = typed(source.type)
            types = (row_type, Any) if source.key is None else (Any, row_type)
            if known is not None:
                name = known.of_input(source)
            yield StatePart(name, f"input {label}", rows, rows.rows, "value", *types)
        if state.beside is not None:
            beside, part = state.beside, state.source.sequence or state.source.time
            if known is not None:
                name = digest(beside.what, known.of_input(state.source), known.of_value(part))
            yield StatePart(name, f"{beside.label} {label}", beside, beside.rows, "value")
    compiled = {} if known is None else known.of(program.machine.plan)
    for stage in program.machine.stages:
        label = f"{stage.label} {stage.node.place}"
        for i, each in enumerate(stage.containers):
            row_type = stage.row_type(each)
            if isinstance(each, Cells):
                row_type = typed(row_type)
            if known is not None:
                by = "" if stage.key is None else known.of_value(stage.key)
                name = digest(compiled[id(stage.node)], stage.label, by, str(i), schema(row_type))
            if isinstance(each, Index):
                rows = typed(row_type)
                yield StatePart(name, label, each, each.groups, "bag", Any, rows, each.codec)
            else:
                assert isinstance(each, Cells)
                codec = stage.operator if hasattr(stage.operator, "dump") else None
                yield StatePart(name, label, each, each.values, "value", row_type, Any, codec)
    meant = {} if known is None else known.of(program.plan)
    for label, output in program.outputs.items():
        if output.rows is not None:
            node, rows = program.plan.outputs[label], output.rows
            row_type = typed(node.type)
            if known is not None:
                name = digest("output", label, meant[id(node)], schema(row_type))
            yield StatePart(name, f"output {label}", rows, rows.rows, "value", row_type)


def _told_apart(parts: Iterable[StatePart]) -> list[StatePart]:
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
