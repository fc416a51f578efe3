"""Rows that are found by a key of their own, kept once: joins read the rows that an input keeps.

A join has an index of each side, and where a side is a few fields of an input, rows of these fields
are made, hashed and kept beside the rows of the input. An input with a key has every row once, so
they need not be: a `KeyedIndex` holds the rows of the input as they are, and the loop of the join
reads the fields that it needs from them. That is for programs in memory, in rows; where state is
stored, or sent to tasks, narrow rows are less to write.

    input → select → index → join      becomes      input → keyed index → join

A reduce gives one row for each key as well. Where a join reads it by that key, its index is a
`KeyedIndex` too, with one row of each key.

It is done to the stages of a program before its first step, as it is with columns (see
`ebbflow.engine.runtime.columnar`): a stage takes the place of one that gives the same, in its slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ebbflow.chain import Chain, RowStep
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.runtime.operators import injective, straight
from ebbflow.engine.runtime.program import RunningProgram
from ebbflow.engine.runtime.stage import Stage
from ebbflow.engine.runtime.stages import (
    ArrangeStage,
    FusedReduceStage,
    GroupReduceStage,
    JoinStage,
    LinearStage,
    SemiJoinStage,
)
from ebbflow.expression import Get, Record
from ebbflow.flow.plan import Node, Reduce
from ebbflow.flow.rewrite.traced import of_made
from ebbflow.fn import Fn
from ebbflow.operator import joins
from ebbflow.record import fields_of
from ebbflow.state.index import Index
from ebbflow.state.keyed_index import KeyedIndex


class Kept(NamedTuple):
    """Rows with a key of their own: of what type, by which key, and by whom they are kept."""

    type: Any
    own: Fn
    by: str


class KeyedArrangeStage(ArrangeStage):
    """Rows with a key of their own by another key, or by that one."""

    __slots__ = ("by",)

    def __init__(self, of: ArrangeStage, kept: Kept, side: ReadSide) -> None:
        before = Chain(side.filters)
        index: Any = KeyedIndex(side.key, kept.own, before, of.owner)
        super().__init__(of.node, side.slot, side.key, index, of.owner, before)
        self.slot, self.type, self.by = of.slot, kept.type, kept.by

    def whole(self, *_: Any) -> Any:
        index: Any = self.index
        groups = index.everything()
        return {key: [(row, 1) for row in index.rows(held)] for key, held in groups.items()}


class ReadSide(NamedTuple):
    """What a join reads: the slot of such rows, which of them, by which key, and what of them, if
    not all."""

    slot: int
    filters: tuple[RowStep, ...]
    key: Fn
    made: RowStep | None

    @property
    def maker(self) -> Fn | None:
        """The function that makes what is read of a row."""
        return None if self.made is None else self.made.fn


def keep_once(program: RunningProgram) -> None:
    """Have the joins of a program that has not run yet read rows as they are kept."""
    machine = program.machine
    kept = {}
    for name, slot in machine.inputs.items():
        state = program.inputs[name]
        if type(state) is KeyedInput and state.source.key is not None:
            kept[slot] = Kept(state.source.type, state.source.key, f"the input {name}")
    for stage in machine.stages:
        reduces = isinstance(stage, (FusedReduceStage, GroupReduceStage))
        if reduces and isinstance(stage.node, Reduce) and not program.forgetting.gates:
            own = _key_of_groups(stage.node)
            if own is not None:
                kept[stage.slot] = Kept(stage.node.type, own, "")
    found = KeptOnce(machine.stages, kept, machine.outputs.values())
    if found.sides:
        machine.use(list(found.stages()), None)


def _key_of_groups(node: Reduce) -> Fn | None:
    """The key of the rows that a reduce gives."""
    names = [*(fields_of(node.type) or ())][: node.width]
    if not names:
        return None
    return Fn.of(names[0] if len(names) == 1 else tuple(names), node.type)


def kept_once_facts(stages: Iterable[Stage]) -> dict[Node, object]:
    """What `explain` says of joins that read rows of inputs as they are kept."""
    stages = list(stages)
    arranged = {
        stage.slot: stage.by
        for stage in stages
        if isinstance(stage, KeyedArrangeStage) and stage.by
    }
    found: dict[Node, object] = {}
    for stage in stages:
        names = dict.fromkeys([arranged[slot] for slot in stage.reads if slot in arranged])
        if names:
            found[stage.node] = f"reads rows that {' and '.join(names)} keeps"
    return found


class KeptOnce:
    """Which indices of a program can hold rows with a key of their own, and the stages then."""

    def __init__(
        self, stages: Iterable[Stage], kept: dict[int, Kept], outputs: Iterable[int]
    ) -> None:
        self.before, self.kept, self.outputs = list(stages), kept, set(outputs)
        self.by_slot = {stage.slot: stage for stage in self.before}
        self.readers: dict[int, list[Stage]] = {}
        for stage in self.before:
            for slot in stage.reads:
                self.readers.setdefault(slot, []).append(stage)
        self.sides: dict[int, ReadSide] = {}
        self.unread: set[int] = set()
        """The slots of stages that nobody needs then."""
        for stage in self.before:
            if type(stage) is ArrangeStage and type(stage.index) is Index:
                self._look_at(stage)

    def _look_at(self, stage: ArrangeStage) -> None:
        slot, steps, unread = stage.reads[0], list(stage.before.steps), -1
        linear = self.by_slot.get(slot)
        if isinstance(linear, LinearStage) and len(linear.reads) == 1:
            alone = len(self.readers[slot]) == 1 and slot not in self.outputs
            if not alone or linear.chains[0].sign < 0:
                return
            slot, unread = linear.reads[0], slot
            steps = [*linear.chains[0].steps, *steps]
        kept = self.kept.get(slot)
        if kept is None or stage.key is None:
            return
        made = steps.pop() if steps and steps[-1].verb == "map" else None
        if any(step.verb != "filter" for step in steps) or not _takes_fields(made):
            return
        key = stage.key if made is None else of_made(stage.key, made.fn)
        if key is None or (key != kept.own and not kept.by):
            return
        if all(_may_read(each, made) for each in self.readers.get(stage.slot, ())):
            self.sides[stage.slot] = ReadSide(slot, tuple(steps), key, made)
            self.unread.add(unread)

    def stages(self) -> Iterator[Stage]:
        """All stages, some in the place of others."""
        found: dict[int, KeyedArrangeStage] = {}
        for stage in self.before:
            if stage.slot in self.unread:
                continue
            side = self.sides.get(stage.slot)
            if isinstance(stage, ArrangeStage) and side is not None:
                stage = found[stage.slot] = KeyedArrangeStage(stage, self.kept[side.slot], side)
            elif found.keys() & stage.reads:
                stage = self._reading(stage, found)
            yield stage

    def _reading(self, stage: Any, found: dict[int, KeyedArrangeStage]) -> Stage:
        """A join that reads these indices."""
        node, reads = stage.node, stage.reads
        sides = [self.sides.get(slot) for slot in reads]
        held = [_held(found.get(slot)) for slot in reads]
        index = found[reads[0]].index if reads[0] in found else stage.left
        if isinstance(stage, SemiJoinStage):
            if reads[0] not in found:
                return stage
            mine = sides[0] and sides[0].made
            operator: Any = joins.Semi(
                node.left_key, node.right_key, node.anti, node.right.bag,
                held=held[0], made=Chain([mine] if mine else []),
            )  # fmt: skip
            made: Stage = SemiJoinStage(node, reads, operator, index)
        else:
            merge = of_made(node.merge, *[each and each.maker for each in sides])
            operator = joins.Join(
                node.left_key, node.right_key, node.merge, after=stage.after,
                one_to_one=injective(node) and not any(each and each.made for each in sides),
                owner=node, held=(held[0], held[1]),
                straight=straight(merge or node.merge, node.type, stage.steps),
            )  # fmt: skip
            right = found[reads[1]].index if reads[1] in found else stage.right
            made = JoinStage(node, reads, operator, index, right, stage.certain)
        made.slot, made.type = stage.slot, stage.type
        return made


def _may_read(reader: Stage, made: RowStep | None) -> bool:
    """Whether a stage can make of rows by itself what it reads of them."""
    if type(reader) is JoinStage:
        node: Any = reader.node
        return made is None or node.merge.expression is not None
    return type(reader) is SemiJoinStage


def _takes_fields(made: RowStep | None) -> bool:
    """Whether a step does nothing but to take fields of a row."""
    if made is None:
        return True
    record = made.fn.expression
    return isinstance(record, Record) and all(isinstance(item, Get) for item in record.items)


def _held(arranged: KeyedArrangeStage | None) -> joins.Held:
    """How an index holds the rows of a key."""
    if arranged is None:
        return joins.WEIGHED
    index: Any = arranged.index
    rows = "({},)" if index.one else "{}.values()"
    return joins.Held("{}", rows, "1", index.rows_before, "rest")
