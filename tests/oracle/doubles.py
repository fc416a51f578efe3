"""Engines to try the comparison on: one that is right, and some that are wrong in one way each.

All of them compute from scratch by batch. The wrong ones spoil one node, by changing what it is
given or what it gives, in a way that is invisible in most steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ebbflow.engine import batch
from ebbflow.flow.plan import Distinct, Join, Node, Plan, Reduce, Source
from ebbflow.zset import ZSet

Rows = dict[Any, int]
Spoil = Callable[[Node, "Recomputing", tuple[Rows, ...], Rows], Rows]


class Recomputing:
    """A view that evaluates the whole plan after every epoch and gives the difference."""

    def __init__(self, plan: Plan, spoil: Spoil | None = None) -> None:
        self.plan = plan
        self.spoil = spoil
        self.inputs: dict[str, ZSet[Any]] = {}
        self.before: dict[int, tuple[Rows, ...]] = {}
        self.memory: dict[int, Rows] = {}
        self.outputs = self._computed(self.inputs)

    @property
    def value(self) -> Any:
        return self._one_or_all(self.outputs)

    def step(self, changes: Mapping[str, ZSet[Any]]) -> Any:
        inputs = dict(self.inputs)
        for name, change in changes.items():
            inputs[name] = inputs.get(name, ZSet()) + change
        new = self._computed(inputs)
        out = {name: rows - self.outputs[name] for name, rows in new.items()}
        self.inputs, self.outputs = inputs, new
        return self._one_or_all({name: rows for name, rows in out.items() if rows})

    def _one_or_all(self, outputs: dict[str, ZSet[Any]]) -> Any:
        if len(self.plan.outputs) > 1:
            return outputs
        return outputs.get(next(iter(self.plan.outputs)), ZSet())

    def _computed(self, inputs: Mapping[str, ZSet[Any]]) -> dict[str, ZSet[Any]]:
        if self.spoil is None:
            return batch.evaluate(self.plan, inputs)
        found: dict[int, Rows] = {}
        for node in self.plan.nodes():
            given = tuple(found[id(parent)] for parent in node.parents)
            if isinstance(node, Source):
                rows = dict(inputs.get(node.name, ZSet()).items())
            else:
                rows = batch.rows_of(node, *given)
            found[id(node)] = self.spoil(node, self, given, rows)
            self.before[id(node)] = given
        return {name: ZSet(found[id(node)]) for name, node in self.plan.outputs.items()}


def forgets_deletions(node: Node, view: Recomputing, given: Any, rows: Rows) -> Rows:
    """An input whose rows never go."""
    if isinstance(node, Source):
        kept = view.memory.setdefault(id(node), {})
        for row, weight in rows.items():
            kept[row] = max(weight, kept.get(row, 0))
        return dict(kept)
    return rows


def drops_duplicates(node: Node, view: Recomputing, given: Any, rows: Rows) -> Rows:
    """An input that has every row once."""
    return dict.fromkeys(rows, 1) if isinstance(node, Source) else rows


def joins_old_sides_only(node: Node, view: Recomputing, given: Any, rows: Rows) -> Rows:
    """A join whose change is l ⋈ R + L ⋈ r of the old sides: what both changes make is lost."""
    if not isinstance(node, Join):
        return rows
    old_left, old_right = map(ZSet, view.before.get(id(node), ({}, {})))
    left, right = map(ZSet, given)
    lost = batch.rows_of(node, *(dict(z.items()) for z in (left - old_left, right - old_right)))
    total = ZSet(view.memory.get(id(node), {})) + ZSet(lost)
    view.memory[id(node)] = dict(total.items())
    return dict((ZSet(rows) - total).items())


def keeps_empty_groups(node: Node, view: Recomputing, given: Any, rows: Rows) -> Rows:
    """A reduce whose groups stay when their rows have gone."""
    if not isinstance(node, Reduce) or node.width == 0:
        return rows
    width, old = node.width, view.memory.get(id(node), {})
    keys = {row[:width] for row in rows}
    stale = {row: weight for row, weight in old.items() if row[:width] not in keys}
    view.memory[id(node)] = {**stale, **rows}
    return {**stale, **rows}


def never_takes_back_results(node: Node, view: Recomputing, given: Any, rows: Rows) -> Rows:
    """A reduce that adds the new row of a group and leaves the old one."""
    if not isinstance(node, Reduce):
        return rows
    view.memory[id(node)] = {**view.memory.get(id(node), {}), **rows}
    return view.memory[id(node)]


def distinct_goes_with_the_first_deletion(
    node: Node, view: Recomputing, given: Any, rows: Rows
) -> Rows:
    """A distinct that drops a row as soon as one of several goes."""
    if not isinstance(node, Distinct):
        return rows
    old = view.before.get(id(node), ({},))[0]
    return {row: 1 for row in rows if given[0][row] >= old.get(row, 0)}


WRONG: list[Spoil] = [
    forgets_deletions,
    drops_duplicates,
    joins_old_sides_only,
    keeps_empty_groups,
    never_takes_back_results,
    distinct_goes_with_the_first_deletion,
]
