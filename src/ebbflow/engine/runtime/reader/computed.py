"""Computed outputs: the rows of an output that keeps none, without the program.

They are computed from what the state has anyway, by the nodes that the manifest notes (`noted`):

    CellScan    the last node reads them from its cells, any range of hashes by itself
    KeyScan     the last node computes them from the rows that it keeps by key, likewise
    PlanScan    all nodes compute them from the rows of inputs, at once
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, ClassVar

from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.identity import Names
from ebbflow.engine.runtime.operators import operator_of
from ebbflow.engine.runtime.parts import typed
from ebbflow.engine.runtime.reader.noted import READ, node_of, stored_node
from ebbflow.engine.runtime.rebuild import stored_rows
from ebbflow.engine.runtime.table.arrow import to_arrow
from ebbflow.flow.plan import Distinct, Node, Plan, Source, TopK
from ebbflow.state.backing import Backing
from ebbflow.state.cells import Cells
from ebbflow.state.spine import Snapshot
from ebbflow.state.spine.segment import END
from ebbflow.zset import trusted, weights_of

SLICE = 1 << 16
KEPT_IN, READ_BY = "kept in", "read by"
"""What is noted of an output that only its program can read: the part with its cells, and a digest
of the node that reads them."""
Weights = dict[Any, int]


def noted_computation(program: Any, name: str) -> dict[str, Any]:
    """What the manifest notes of an output that keeps no rows: the node that computes it, and the
    part with its cells, where it reads these."""
    machine = program.machine
    stage = machine.readers.get(name)
    stage = getattr(stage, "by_rows", stage)
    node = machine.plan.outputs[name] if stage is None else stage.node
    found = stored_node(node, whole=stage is None)
    if found is None or not (stage is None or isinstance(node, READ)):
        if stage is None or len(node.parents) != 1:
            return {}
        return {KEPT_IN: program.part(stage.cells).name, READ_BY: reading(node)}
    if stage is None:
        return {"computed": found}
    if isinstance(node, TopK) and "fn" in found["by"]:  # cells have rows behind places, pickled
        return {"computed": found, "by_key": program.part(stage.containers[0]).name}
    return {"computed": found, "cells": program.part(stage.cells).name}


def reading(node: Node) -> str:
    """A digest of what a node means, whatever it reads: nodes of one digest read cells alike."""
    (parent,) = node.parents
    names = [each.name for each in fields(node) if getattr(node, each.name) is parent]
    instead: dict[str, Any] = dict.fromkeys(names, Source(name="", type=parent.type))
    alone = replace(node, **instead)
    return Names().of(Plan({"": alone}))[id(alone)]


def former_cells(program: Any, name: str, said: Mapping[str, Any]) -> str | None:
    """The part with the cells of an output of a former program that the stage of this one reads,
    where the function that reads them is not noted; None if it reads them otherwise."""
    stage = program.machine.readers.get(name)
    node = getattr(getattr(stage, "by_rows", stage), "node", None)
    if READ_BY not in said or node is None or len(node.parents) != 1:
        return None
    return said[KEPT_IN] if said[READ_BY] == reading(node) else None


def computed_rows(snapshot: Snapshot, name: str, said: Mapping[str, Any], row_type: Any) -> Any:
    """How an output that keeps no rows is computed; None where that takes the program."""
    if "computed" not in said:
        return None
    node = node_of(said["computed"])
    if "cells" in said:
        return CellScan(row_type, said["cells"], node)
    if "by_key" in said:
        return KeyScan(row_type, said["by_key"], node)
    plan, kept = Plan({name: node}), snapshot.notes.get("rows", {})
    if not plan.sources.keys() <= kept.keys():
        return None
    return PlanScan(row_type, plan, {each: kept[each] for each in plan.sources})


@dataclass(frozen=True)
class CellScan:
    """The rows that an operator reads from its cells, which are in a part of the state."""

    type: Any
    part: str
    node: Node
    whole: ClassVar[bool] = False

    @property
    def spines(self) -> tuple[str, ...]:
        """The names of the spines that are read."""
        return (self.part,)

    def entries(self, snapshot: Snapshot) -> int:
        """How many entries of state there are to read."""
        return entries_of(snapshot, self.part)

    def rows(self, snapshot: Snapshot, low: int = 0, high: int = END) -> Iterator[Weights]:
        """The rows with their weights, some at a time."""
        keys = typed(self.node.type) if isinstance(self.node, Distinct) else Any
        spine = snapshot.spine(self.part, layout="value", key_type=keys, row_type=Any)
        operator = operator_of(self.node)
        codec = operator if hasattr(operator, "dump") else None
        paired = isinstance(self.node, TopK) or getattr(operator, "keeps_rows", False)
        entries = iter(spine.scan(low, high))
        while some := list(islice(entries, SLICE)):
            held = Backing({}, spine, limited=True, codec=codec)
            cells: Cells[Any, Any] = Cells(held._loaded({key: value for key, value, _ in some}))
            yield operator.read((None, cells) if paired else cells)

    def batches(self, snapshot: Snapshot, low: int = 0, high: int = END) -> Iterator[Any]:
        """The same as Arrow batches."""
        return in_batches(self.rows(snapshot, low, high), self.type)


@dataclass(frozen=True)
class KeyScan:
    """The rows that an operator computes from those that it keeps by key, which are in a part of
    the state."""

    type: Any
    part: str
    node: Node
    whole: ClassVar[bool] = False

    @property
    def spines(self) -> tuple[str, ...]:
        """The names of the spines that are read."""
        return (self.part,)

    def entries(self, snapshot: Snapshot) -> int:
        """How many entries of state there are to read."""
        return entries_of(snapshot, self.part)

    def rows(self, snapshot: Snapshot, low: int = 0, high: int = END) -> Iterator[Weights]:
        """The rows with their weights, all at once: those of one key are in one range."""
        kept = typed(self.node.parents[0].type)
        spine = snapshot.spine(self.part, layout="bag", key_type=Any, row_type=kept)
        there = trusted({row: weight for _, row, weight in spine.scan(low, high)})
        yield weights_of(operator_of(self.node).f(there))

    def batches(self, snapshot: Snapshot, low: int = 0, high: int = END) -> Iterator[Any]:
        """The same as Arrow batches."""
        return in_batches(self.rows(snapshot, low, high), self.type)


@dataclass(frozen=True)
class PlanScan:
    """The rows that a plan computes from those of its inputs, which are in parts of the state."""

    type: Any
    plan: Plan
    parts: Mapping[str, str]
    whole: ClassVar[bool] = True

    @property
    def spines(self) -> tuple[str, ...]:
        """The names of the spines that are read."""
        return tuple(self.parts.values())

    def entries(self, snapshot: Snapshot) -> int:
        """How many entries of state there are to read."""
        return sum(entries_of(snapshot, part) for part in self.parts.values())

    def rows(self, snapshot: Snapshot, low: int = 0, high: int = END) -> Iterator[Weights]:
        """The rows with their weights, all at once."""
        sources = self.plan.sources.items()
        given = {
            name: trusted(stored_rows(snapshot, source, self.parts[name]))
            for name, source in sources
        }
        for found in evaluate(self.plan, given).values():
            yield weights_of(found)

    def batches(self, snapshot: Snapshot, low: int = 0, high: int = END) -> Iterator[Any]:
        """The same as Arrow batches."""
        return in_batches(self.rows(snapshot), self.type)


def in_batches(found: Iterable[Weights], row_type: Any) -> Iterator[Any]:
    """Rows with their weights as Arrow batches in the columns of their type."""
    for rows in found:
        entries = iter(rows.items())
        while some := dict(islice(entries, SLICE)):
            yield to_arrow(list(some), list(some.values()), row_type)


def entries_of(snapshot: Snapshot, name: str, number: int = 0) -> int:
    """How many entries a spine has."""
    spines = snapshot.manifest.spines
    mine = [each for each in spines if (each.operator, each.bucket) == (name, number)]
    return sum(ref.entries for each in mine for ref in each.segments)
