"""Joins in front of a reduce: what they give is added up, and nobody has to hash it before.

A join gives a change: every row once, with the sum of its weights. A reduce that adds up what it
reads needs neither. Where it alone reads joins, it is given pairs of a row and a weight as they are
found, of which several may be of the same row; and steps in between are in the loops of the joins.
So a left join, which is a join and an antijoin put together, needs no stage that puts them
together.

    join ─┐
          ├─ map ── reduce      becomes      join, antijoin ── reduce
    anti ─┘

As with rows that are kept once (`ebbflow.engine.runtime.kept_once`) that is for programs in memory,
in rows, before their first step.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

from ebbflow.chain import Chain, RowStep
from ebbflow.engine.runtime.operators import reducing, straight
from ebbflow.engine.runtime.program import RunningProgram
from ebbflow.engine.runtime.stage import WHOLE, Stage
from ebbflow.engine.runtime.stages import (
    AddedUpStage,
    FusedReduceStage,
    JoinStage,
    LinearStage,
    SemiJoinStage,
)
from ebbflow.flow.plan import Reduce
from ebbflow.operator import joins
from ebbflow.reducer.running import ReduceByKey


class Way(NamedTuple):
    """From a join to a reduce: its slot, and the steps in between."""

    slot: int
    steps: tuple[RowStep, ...]


def add_up_joins(program: RunningProgram) -> None:
    """Have reduces of a program that has not run yet read pairs from the joins in front of them."""
    machine = program.machine
    before: list[Stage] = machine.stages
    by_slot = {stage.slot: stage for stage in before}
    readers: dict[int, int] = dict.fromkeys(machine.outputs.values(), 1)
    for slot in chain.from_iterable(stage.reads for stage in before):
        readers[slot] = readers.get(slot, 0) + 1
    found: dict[int, Stage | None] = {}
    for stage in before:
        if type(stage) is not FusedReduceStage or type(stage.operator) is not ReduceByKey:
            continue
        ways, gathers = _ways(stage, by_slot, readers)
        if ways and stage.partial is not None and isinstance(stage.node, Reduce):
            found[stage.slot] = AddedUpStage(
                stage, [way.slot for way in ways], reducing(stage.node, WHOLE)
            )
            found |= dict.fromkeys(gathers)
            row_type = stage.node.parent.type
            found |= {way.slot: _listing(by_slot[way.slot], way.steps, row_type) for way in ways}
    if found:
        stages = [found.get(stage.slot, stage) for stage in before]
        machine.use([stage for stage in stages if stage is not None], None)


def _ways(
    stage: FusedReduceStage, by_slot: dict[int, Stage], readers: dict[int, int]
) -> tuple[list[Way], list[int]]:
    """The ways from joins to a reduce, and the slots on them, where all of it comes from joins that
    nobody else reads."""
    slot, steps = stage.reads[0], stage.operator.before.steps
    ways, gathers = [Way(slot, steps)], list[int]()
    linear = by_slot.get(slot)
    if isinstance(linear, LinearStage) and readers[slot] == 1:
        if any(each.sign < 0 for each in linear.chains):
            return [], []
        pairs = zip(linear.reads, linear.chains, strict=True)
        ways = [Way(each, (*chain.steps, *steps)) for each, chain in pairs]
        gathers = [slot]
    alone = all(
        type(by_slot.get(way.slot)) in (JoinStage, SemiJoinStage) and readers[way.slot] == 1
        for way in ways
    )
    return (ways, gathers) if alone else ([], [])


def _listing(stage: Any, steps: tuple[RowStep, ...], row_type: Any) -> Stage:
    """A join that gives pairs, of rows of this type, behind these steps."""
    old, node = stage.joining, stage.node
    made: Stage
    if isinstance(stage, SemiJoinStage):
        semi = joins.Semi(
            old.left_key, old.right_key, old.anti, old.bag, held=old.held, listed=True,
            made=Chain([*old.made.steps, *steps]),
        )  # fmt: skip
        made = SemiJoinStage(node, stage.reads, semi, stage.left)
    else:
        rest = straight(old.straight.merge, old.straight.type, [*old.straight.after.steps, *steps])
        join = joins.Join(
            old.left_key, old.right_key, old.merge, after=Chain([*old.after.steps, *steps]),
            owner=node, held=old.held, listed=True,
            straight=rest._replace(where=(*old.straight.where, *rest.where)),
        )  # fmt: skip
        made = JoinStage(node, stage.reads, join, stage.left, stage.right, stage.certain)
    made.slot, made.type = stage.slot, row_type
    return made
