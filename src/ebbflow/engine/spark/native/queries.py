"""Slots as DataFrames: what Spark's own SQL can compute of a plan.

Some slots of a compiled plan are the rows of native queries: inputs, steps on one row at a time
whose functions are traced, joins whose keys and results are. `Queries` makes these queries. What it
does not know is computed by the operators of this package, in tasks.

Steps that are not native run on Arrow batches in Python and are DataFrames all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ebbflow.chain import Chain, RowStep, gather
from ebbflow.engine.runtime.failure import explained
from ebbflow.engine.runtime.stage import Counting, Gathered, Meeting, Stage
from ebbflow.engine.spark.native.functions import (
    native_filter,
    native_key,
    native_map,
    native_merge,
)
from ebbflow.engine.spark.table.arrow import from_arrow, to_arrow
from ebbflow.engine.spark.table.column_types import WEIGHT, columns_of
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.engine.spark.tasks.gc_paused import gc_paused
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.report import reported
from ebbflow.engine.spark.tasks.task import Job
from ebbflow.engine.spark.tasks.transport import add, replica_of, settled
from ebbflow.engine.spark.tasks.waves import ARRANGING
from ebbflow.errors import cause_of
from ebbflow.expression.node import COMPARISONS, Expression, Operation
from ebbflow.flow.plan import Distinct, Join, Semi
from ebbflow.fn import Fn

_LEFT, _RIGHT = "__l_", "__r_"
NATIVE, ARROW = "native", "arrow"
TOTAL_KEY = "__k"
_SURE = COMPARISONS | {"and", "or", "not", "if", "len", "bool", "[:]", "."}
_FUNCTIONS = ("left_key", "right_key", "merge")
_EXACT = {"int", "bool", "text", "bytes", "date", "time", "instant", "decimal"}


class Queries:
    """Queries for the slots of a plan. `leaf` gives the rows of an input."""

    def __init__(self, replica: Replica, job: Job, leaf: Callable[[str], DataFrame]) -> None:
        self.replica, self.job, self.leaf = replica, job, leaf
        self.stages = {stage.slot: stage for stage in replica.machine.stages}
        self.names = {slot: name for name, slot in replica.machine.inputs.items()}
        self.frames: dict[int, DataFrame | None] = {}
        self.how: dict[int, str] = {}
        """For each slot that is a query, whether all of it is native."""

    def row_type(self, slot: int) -> Any:
        """The type of the rows of a slot."""
        return self.replica.row_type(slot)

    def frame(self, slot: int) -> DataFrame | None:
        """The rows of a slot with their weights, or None where that is no query."""
        if slot not in self.frames:
            self.frames[slot] = self._frame(slot)
        return self.frames[slot]

    def native(self, slot: int) -> bool:
        """Whether no row of the query for a slot goes through Python."""
        if slot in self.names:
            return True
        if self.frame(slot) is None or self.how[slot] != NATIVE:
            return False
        return all(self.native(self.raw(each)) for each in self.stages[slot].reads)

    def sure(self, slot: int) -> bool:
        """Whether a query cannot fail, whatever the rows: nothing in it may overflow."""
        stage = self.stages.get(slot)
        if stage is None:
            return True
        functions: list[Any] = [getattr(stage.node, name, None) for name in _FUNCTIONS]
        if isinstance(stage.run, Gathered):
            functions = [step.fn for chain in stage.run.chains for step in chain.steps]
        if isinstance(stage.run, Meeting):
            functions += [step.fn for step in stage.run.after.steps]
        traced = [fn.expression for fn in functions if isinstance(fn, Fn)]
        if any(expression is None or not _simple(expression) for expression in traced):
            return False
        return all(self.sure(self.raw(each)) for each in stage.reads)

    def factors(self, slot: int) -> int:
        """Of how many rows of inputs the weights are multiplied in a row of a query."""
        stage = self.stages.get(slot)
        if stage is None:
            return 1
        inside = [self.factors(self.raw(each)) for each in stage.reads]
        return sum(inside) if isinstance(stage.run, Meeting) else max(inside)

    def cheap(self, slot: int) -> bool:
        """Whether a query only has native steps on one row at a time, so that it may run twice."""
        stage = self.stages.get(slot)
        if stage is None:
            return True
        simple = isinstance(stage.run, Gathered) and self.native(slot)
        return simple and all(self.cheap(each) for each in stage.reads)

    def raw(self, slot: int) -> int:
        """The slot whose rows are arranged in this one."""
        stage = self.stages.get(slot)
        while stage is not None and arranges(stage):
            (slot,) = stage.reads
            stage = self.stages.get(slot)
        return slot

    def _frame(self, slot: int) -> DataFrame | None:
        if slot in self.names:
            return self.leaf(self.names[slot])
        stage = self.stages[slot]
        if isinstance(stage.run, Gathered):
            return self._gathered(stage, stage.run)
        if isinstance(stage.run, Meeting):
            return self._joined(stage)
        if isinstance(stage.run, Counting):
            return self._kept_by_key(stage)
        if isinstance(stage.node, Distinct):
            return self._once_each(stage)
        return None

    # ---- steps on one row at a time ----

    def _gathered(self, stage: Stage, run: Gathered) -> DataFrame | None:
        parts = []
        self.how[stage.slot] = NATIVE
        for number, (slot, chain) in enumerate(zip(stage.reads, run.chains, strict=True)):
            frame = self.frame(slot)
            if frame is None:
                return None
            made = self._steps(frame, self.row_type(slot), chain, stage, number)
            weight = f.col(WEIGHT) * chain.sign
            wanted = [f"`{name}`" for name, _ in columns_of(stage.type)]
            parts.append(made.select(*wanted, weight.alias(WEIGHT)))
        return reduce(DataFrame.union, parts)

    def _steps(
        self, frame: DataFrame, row_type: Any, chain: Chain, stage: Stage, read: int
    ) -> DataFrame:
        steps = list(chain.steps)
        for i, step in enumerate(steps):
            made = _stepped(step, frame, row_type)
            if made is None:
                self.how[stage.slot] = ARROW
                rest = Steps(self.job, self._number(stage), read, i)
                return frame.mapInArrow(rest, schema_of(stage.type, weight=True))
            frame, row_type = made, row_type if step.verb == "filter" else step.owner.type
        return frame

    def _number(self, stage: Stage) -> int:
        return self.replica.machine.stages.index(stage)

    # ---- joins ----

    def _joined(self, stage: Stage) -> DataFrame | None:
        node = stage.node
        assert isinstance(node, Join)
        assert isinstance(stage.run, Meeting)
        slots = [self.raw(slot) for slot in stage.reads]
        sides = []
        for slot, key, prefix in zip(
            slots, (node.left_key, node.right_key), (_LEFT, _RIGHT), strict=True
        ):
            frame = self.frame(slot)
            found = (
                None if frame is None else native_key(key, frame, self.row_type(slot), f"{prefix}k")
            )
            if found is None:
                return None
            names = [*(name for name, _ in columns_of(self.row_type(slot))), WEIGHT]
            renamed = [f.col(f"`{name}`").alias(prefix + name) for name in names]
            sides.append((found.frame.select(*renamed, *found.names), found))
        (left, lkey), (right, rkey) = sides
        if lkey.shape != rkey.shape:
            return None
        on = [left[a].eqNullSafe(right[b]) for a, b in zip(lkey.names, rkey.names, strict=True)]
        both = left.join(right, reduce(lambda a, b: a & b, on)) if on else left.crossJoin(right)
        weight = f.col(_LEFT + WEIGHT) * f.col(_RIGHT + WEIGHT)
        made = native_merge(
            node.merge, both, [self.row_type(slot) for slot in slots],
            [_column(_LEFT), _column(_RIGHT)], node.type, weight,
        )  # fmt: skip
        if made is None:
            return None
        row_type: Any = node.type
        for step in stage.run.after.steps:
            stepped = _stepped(step, made, row_type)
            if stepped is None:
                return None
            made, row_type = stepped, row_type if step.verb == "filter" else step.owner.type
        self.how[stage.slot] = NATIVE
        return made

    # ---- what is there, and how often ----

    def totals(self, stage: Stage) -> tuple[DataFrame, Any] | None:
        """What the cells of a semijoin or of a distinct hold, as a frame of keys, or of rows, with
        their weights added up, and the shape of the keys."""
        if isinstance(stage.node, Semi):
            slot = self.raw(stage.reads[1])
            frame = self.frame(slot)
            if frame is None:
                return None
            found = native_key(stage.node.right_key, frame, self.row_type(slot), TOTAL_KEY)
            if found is None or not found.names:
                return None
            return added(found.frame, found.names), found.shape
        (slot,) = stage.reads
        frame, columns = self.frame(slot), columns_of(self.row_type(slot))
        if frame is None or any(column.form not in _EXACT for _, column in columns):
            return None
        return added(frame, [name for name, _ in columns]), None

    def _kept_by_key(self, stage: Stage) -> DataFrame | None:
        node = stage.node
        assert isinstance(node, Semi)
        slot = self.raw(stage.reads[0])
        left, totals = self.frame(slot), self.totals(stage)
        if left is None or totals is None:
            return None
        key = native_key(node.left_key, left, self.row_type(slot), f"{_LEFT}k")
        right, shape = totals
        if key is None or key.shape != shape:
            return None
        there = right.filter(f.col(WEIGHT) > 0).drop(WEIGHT)
        pairs = zip(key.names, there.columns, strict=True)
        on = [key.frame[a].eqNullSafe(there[b]) for a, b in pairs]
        how = "left_anti" if node.anti else "left_semi"
        kept = key.frame.join(there, reduce(lambda a, b: a & b, on), how)
        self.how[stage.slot] = NATIVE
        names = [*(name for name, _ in columns_of(self.row_type(slot))), WEIGHT]
        return kept.select(*(f"`{name}`" for name in names))

    def _once_each(self, stage: Stage) -> DataFrame | None:
        totals = self.totals(stage)
        if totals is None:
            return None
        self.how[stage.slot] = NATIVE
        there = totals[0].filter(f.col(WEIGHT) > 0)
        return there.withColumn(WEIGHT, f.lit(1).cast("long"))


def _simple(expression: Expression) -> bool:
    """Whether an expression only picks, compares and puts together."""
    nodes = [each for each in expression.walk() if isinstance(each, Operation)]
    return all(node.op in _SURE for node in nodes)


def added(frame: DataFrame, by: list[str]) -> DataFrame:
    """Weights added up, without those that are zero then."""
    total = frame.groupBy(*(f.col(f"`{name}`") for name in by)).agg(f.sum(WEIGHT).alias(WEIGHT))
    return total.filter(f.col(WEIGHT) != 0)


def arranges(stage: Stage) -> bool:
    """Whether a stage gives the rows that it reads, by key or checked."""
    return isinstance(stage.run, ARRANGING)


def _stepped(step: RowStep, frame: DataFrame, row_type: Any) -> DataFrame | None:
    """One step as native columns."""
    if step.verb == "filter":
        return native_filter(step.fn, frame, row_type)
    if step.verb == "map":
        return native_map(step.fn, frame, row_type, getattr(step.owner, "type", None))
    return None


def _column(prefix: str) -> Callable[[str], Any]:
    return lambda name: f.col(f"`{prefix}{name}`")


@dataclass(frozen=True)
class Steps:
    """The steps of a chain from one on, on Arrow batches."""

    job: Job
    stage: int
    read: int
    first: int

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        replica = replica_of(self.job.program)
        run = replica.machine.stages[self.stage].run
        assert isinstance(run, Gathered)
        steps = run.chains[self.read].steps
        row_types = [step.owner.type for step in steps[: self.first] if step.verb != "filter"]
        row_type = [
            replica.row_type(replica.machine.stages[self.stage].reads[self.read]),
            *row_types,
        ][-1]
        loop = gather([Chain(steps[self.first :])])
        stage = replica.machine.stages[self.stage]
        for batch in given:
            delta: dict[Any, int] = {}
            try:
                add(delta, *from_arrow(batch, row_type))
                out = loop(settled(delta))
            except Exception as error:
                raise reported(explained(error, stage), self.job.secret) from cause_of(error)
            yield to_arrow(list(out), list(out.values()), stage.type)
