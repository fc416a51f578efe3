"""Lowering: how each stage of a plan is computed where Spark can choose, and why not natively.

    native            in columns of Spark's own
    Arrow function    in Python on batches of rows, which all the same is part of a query
    operator in task  by the operators of this package

Which it is depends on the plan alone. `Lowering` decides it once for each stage, by making the
query: a bulk load and outputs that are derived run these queries, and `explain` shows what was
decided, of queries on tables without rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ebbflow.chain import Chain, RowStep, gather
from ebbflow.engine.runtime.failure import explained
from ebbflow.engine.runtime.gc_paused import gc_paused
from ebbflow.engine.runtime.table.arrow import from_arrow, to_arrow
from ebbflow.engine.runtime.table.column_types import WEIGHT, columns_of
from ebbflow.engine.spark.native.functions import (
    KeyColumns,
    native_filter,
    native_key,
    native_map,
    native_merge,
)
from ebbflow.engine.spark.native.groups import group_query, group_rows
from ebbflow.engine.spark.native.values import NotNative, shown
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.report import task_failed
from ebbflow.engine.spark.tasks.task import EpochJob
from ebbflow.engine.spark.tasks.transport import add, replica_of
from ebbflow.engine.spark.tasks.waves import raw_slot
from ebbflow.errors import cause_of
from ebbflow.expression.node import COMPARISONS, Expression, Operation
from ebbflow.zset import without_zeros

NATIVE, ARROW, IN_TASK = "native", "Arrow function", "operator in task"
SEVERAL = "it gives several rows"
BEHIND = "it comes after such a step"
NO_QUERY = "what it reads is not a query"
NEVER = "it never has rows"
OTHER_KEY = "the keys of both sides differ in type"
TOTAL_KEY = "__k"
_LEFT, _RIGHT = "__l_", "__r_"
_SURE = COMPARISONS | {
    "and",
    "or",
    "not",
    "if",
    "len",
    "bool",
    "[:]",
    ".",
    "startswith",
    "endswith",
}
_EXACT = {"int", "bool", "text", "bytes", "date", "time", "instant", "decimal"}


@dataclass(frozen=True, eq=False)
class Lowered:
    """How a stage, or a step in one, is computed: natively, as an Arrow function or in a task, and
    `why` not natively.

    Where it is a query, `rows` are those of its slot, with their weights. Where what its state
    holds is one, `cells` are that: keys of this `shape`, or rows where it is None, with the total
    of their weights; for a reduce, the lines of `group_query`.
    """

    how: str
    why: str = ""
    rows: DataFrame | None = None
    cells: DataFrame | None = None
    shape: Any = None

    def __str__(self) -> str:
        return f"{self.how} (why not native: {self.why})" if self.why else self.how

    @property
    def _rank(self) -> tuple[int, int]:
        return (NATIVE, ARROW, IN_TASK).index(self.how), len(self.why)


class Lowering:
    """How the slots of a plan are computed. `leaf` gives the rows of an input."""

    def __init__(self, replica: Replica, job: EpochJob, leaf: Callable[[str], DataFrame]) -> None:
        self.replica, self.job, self.leaf = replica, job, leaf
        self.stages = replica.machine.by_slot
        self.names = {slot: name for name, slot in replica.machine.inputs.items()}
        self.row_type = replica.row_type
        self._slots: dict[int, Lowered] = {}
        self._nodes: dict[int, Lowered] = {}
        self._queries: dict[str, Callable[[Any], Lowered]] = {
            "linear": self._linear, "join": self._join, "semijoin": self._semijoin,
            "distinct": self._distinct, "group": self._group,
        }  # fmt: skip

    def of(self, slot: int) -> Lowered:
        """How a slot is computed."""
        if slot not in self._slots:
            self._slots[slot] = self._lowered(slot)
        return self._slots[slot]

    def nodes(self) -> dict[int, Lowered]:
        """How nodes are computed, by their id; where one is in several stages, what is furthest
        from native. Nodes that only add up or subtract are not there."""
        for stage in self.stages.values():
            if not stage.arranges:
                self.of(stage.slot)
        return self._nodes

    def _lowered(self, slot: int) -> Lowered:
        if slot in self.names:
            return Lowered(NATIVE, rows=self.leaf(self.names[slot]))
        stage = self.stages[slot]
        try:
            found = self._queries[stage.query](stage) if stage.query else Lowered(IN_TASK)
        except NotNative as refused:
            found = Lowered(IN_TASK, str(refused))
        if not stage.linear or found.how == IN_TASK:
            for node in (stage.node, *(step.owner for step in stage.steps)):
                self._note(node, found)
        return found

    def _note(self, node: Any, found: Lowered) -> None:
        old = self._nodes.setdefault(id(node), found)
        self._nodes[id(node)] = max(old, found, key=lambda each: each._rank)

    # ---- what holds of a query ----

    def rows(self, slot: int) -> DataFrame:
        """The rows of a slot with their weights."""
        found = self.of(slot).rows
        if found is None:
            raise NotNative(NO_QUERY)
        return found

    def raw(self, slot: int) -> int:
        """The slot whose rows are arranged in this one."""
        return raw_slot(self.stages, slot)

    def native(self, slot: int) -> bool:
        """Whether no row of the query for a slot goes through Python."""
        found = self.of(slot)
        return found.rows is not None and found.how == NATIVE and self._all(self.native, slot)

    def sure(self, slot: int) -> bool:
        """Whether a query cannot fail, whatever the rows: nothing in it may overflow; sums do."""
        stage = self.stages.get(slot)
        if stage is not None and stage.query == "group":
            return False
        traced = [] if stage is None else [fn.expression for fn in stage.functions]
        simple = all(each is not None and _simple(each) for each in traced)
        return simple and self._all(self.sure, slot)

    def cheap(self, slot: int) -> bool:
        """Whether a query only has native steps on one row at a time, so that it may run twice."""
        linear = slot in self.names or self.stages[slot].linear
        return linear and self.of(slot).how == NATIVE and self._all(self.cheap, slot)

    def factors(self, slot: int) -> int:
        """Of how many rows of inputs the weights are multiplied in a row of a query."""
        if slot in self.names:
            return 1
        inside = [self.factors(each) for each in self._reads(slot)]
        return sum(inside) if self.stages[slot].multiplies else max(inside)

    def _all(self, holds: Callable[[int], bool], slot: int) -> bool:
        return all(map(holds, self._reads(slot)))

    def _reads(self, slot: int) -> list[int]:
        stage = self.stages.get(slot)
        return [] if stage is None else [self.raw(each) for each in stage.reads]

    # ---- steps on one row at a time ----

    def _linear(self, stage: Any) -> Lowered:
        why, parts = "", []
        if not stage.reads:
            raise NotNative(NEVER)
        wanted = [f"`{name}`" for name, _ in columns_of(stage.type)]
        frames = [self.rows(slot) for slot in stage.reads]
        for number, (frame, chain) in enumerate(zip(frames, stage.chains, strict=True)):
            made, refused = self._steps(frame, stage, number)
            why = why or refused
            weight = f.col(WEIGHT) * chain.sign
            parts.append(made.select(*wanted, weight.alias(WEIGHT)))
        return Lowered(ARROW if why else NATIVE, why, rows=reduce(DataFrame.union, parts))

    def _steps(self, frame: DataFrame, stage: Any, read: int) -> tuple[DataFrame, str]:
        """The steps on one of the slots that a stage reads, and why not all of them are native."""
        row_type = self.row_type(stage.reads[read])
        steps = stage.chains[read].steps
        for i, step in enumerate(steps):
            try:
                frame, row_type = _step(step, frame, row_type)
                self._note(step.owner, Lowered(NATIVE))
            except NotNative as refused:
                self._note(step.owner, Lowered(ARROW, str(refused)))
                for behind in steps[i + 1 :]:
                    self._note(behind.owner, Lowered(ARROW, BEHIND))
                number = self.replica.machine.stages.index(stage)
                rest = ArrowSteps(self.job, number, read, i)
                return frame.mapInArrow(rest, schema_of(stage.type, weight=True)), str(refused)
        return frame, ""

    # ---- joins ----

    def _join(self, stage: Any) -> Lowered:
        left, right = (self.rows(self.raw(slot)) for slot in stage.reads)
        return Lowered(NATIVE, rows=self._joined(stage, left, right))

    def _joined(self, stage: Any, left_rows: DataFrame, right_rows: DataFrame) -> DataFrame:
        """Some rows of both sides, joined."""
        node = stage.node
        slots = [self.raw(slot) for slot in stage.reads]
        row_types = [self.row_type(slot) for slot in slots]
        rows = left_rows, right_rows
        with _about("the key of the left"):
            lkey = native_key(node.left_key, rows[0], row_types[0], f"{_LEFT}k")
        with _about("the key of the right"):
            rkey = native_key(node.right_key, rows[1], row_types[1], f"{_RIGHT}k")
        if lkey.shape != rkey.shape:
            raise NotNative(OTHER_KEY)
        left, right = _prefixed(lkey, _LEFT, row_types[0]), _prefixed(rkey, _RIGHT, row_types[1])
        on = lkey.equal(left, rkey, right)
        both = left.join(right, reduce(lambda a, b: a & b, on)) if on else left.crossJoin(right)
        weight = f.col(_LEFT + WEIGHT) * f.col(_RIGHT + WEIGHT)
        with _about("what it makes of two rows"):
            sides = _column(_LEFT), _column(_RIGHT)
            made = native_merge(node.merge, both, row_types, sides, node.type, weight)
        row_type: Any = node.type
        for step in stage.steps:
            with _about(f"the {step.verb} after it"):
                made, row_type = _step(step, made, row_type)
        return made

    # ---- what is there, and how often ----

    def _semijoin(self, stage: Any) -> Lowered:
        node = stage.node
        left, right = (self.raw(slot) for slot in stage.reads)
        rows = self.rows(left), self.rows(right)
        with _about("the key of the right"):
            found = native_key(node.right_key, rows[1], self.row_type(right), TOTAL_KEY)
        if not found.names:
            raise NotNative("its key is always None")
        with _about("the key of the left"):
            key = native_key(node.left_key, rows[0], self.row_type(left), f"{_LEFT}k")
        if key.shape != found.shape:
            raise NotNative(OTHER_KEY)
        totals = added(found.frame, found.names)
        there = totals.filter(f.col(WEIGHT) > 0).drop(WEIGHT)
        on = key.equal(key.frame, found, there)
        how = "left_anti" if node.anti else "left_semi"
        kept = key.frame.join(there, reduce(lambda a, b: a & b, on), how)
        kept = kept.select(*(f"`{name}`" for name in _names(self.row_type(left))))
        return Lowered(NATIVE, rows=kept, cells=totals, shape=found.shape)

    def _distinct(self, stage: Any) -> Lowered:
        (slot,) = stage.reads
        columns = columns_of(self.row_type(slot))
        inexact = [column for _, column in columns if column.form not in _EXACT]
        if inexact:
            raise NotNative(f"it compares {shown(inexact[0])}")
        totals = added(self.rows(slot), [name for name, _ in columns])
        there = totals.filter(f.col(WEIGHT) > 0)
        rows = there.withColumn(WEIGHT, f.lit(1).cast("long"))
        return Lowered(NATIVE, rows=rows, cells=totals)

    def _group(self, stage: Any) -> Lowered:
        (slot,) = stage.reads
        if self.raw(slot) != slot:
            raise NotNative("rows before it may have negative weights")
        found = group_query(stage, self.rows(slot), self.row_type(slot))
        rows = group_rows(stage, found, self.row_type(slot))
        return Lowered(NATIVE, rows=rows, cells=found.frame, shape=found.shape)


@contextmanager
def _about(part: str) -> Iterator[None]:
    """Have a reason say which part it is about."""
    try:
        yield
    except NotNative as refused:
        raise NotNative(f"{part}: {refused}") from None


def _simple(expression: Expression) -> bool:
    """Whether an expression only picks, compares and puts together."""
    nodes = [each for each in expression.walk() if isinstance(each, Operation)]
    return all(node.op in _SURE for node in nodes)


def added(frame: DataFrame, by: list[str]) -> DataFrame:
    """Weights added up, without those that are zero then."""
    total = frame.groupBy(*(f.col(f"`{name}`") for name in by)).agg(f.sum(WEIGHT).alias(WEIGHT))
    return total.filter(f.col(WEIGHT) != 0)


def row_columns(frame: DataFrame) -> list[str]:
    """The columns of the rows of a frame: all but the weight."""
    return [name for name in frame.columns if name != WEIGHT]


def once_each(frame: DataFrame) -> DataFrame:
    """Equal rows as one, with their weights added up."""
    return added(frame, row_columns(frame))


def _step(step: RowStep, frame: DataFrame, row_type: Any) -> tuple[DataFrame, Any]:
    """One step as native columns, and the type of the rows behind it."""
    match step.verb:
        case "filter":
            return native_filter(step.fn, frame, row_type), row_type
        case "map":
            return native_map(step.fn, frame, row_type, step.owner.type), step.owner.type
    raise NotNative(SEVERAL)


def _names(row_type: Any) -> list[str]:
    return [*(name for name, _ in columns_of(row_type)), WEIGHT]


def _prefixed(key: KeyColumns, prefix: str, row_type: Any) -> DataFrame:
    """One side of a join: its columns under names of their own, and those of its key."""
    renamed = [f.col(f"`{name}`").alias(prefix + name) for name in _names(row_type)]
    return key.frame.select(*renamed, *key.names)


def _column(prefix: str) -> Callable[[str], Any]:
    return lambda name: f.col(f"`{prefix}{name}`")


@dataclass(frozen=True)
class ArrowSteps:
    """The steps on one of the slots that a stage reads, from the `first` on, on Arrow batches."""

    job: EpochJob
    stage: int
    read: int
    first: int

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        replica = replica_of(self.job.program)
        stage: Any = replica.machine.stages[self.stage]
        steps = stage.chains[self.read].steps
        row_type = replica.row_type(stage.reads[self.read])
        for step in steps[: self.first]:
            row_type = row_type if step.verb == "filter" else step.owner.type
        loop = gather([Chain(steps[self.first :])])
        for batch in given:
            delta: dict[Any, int] = {}
            try:
                add(delta, *from_arrow(batch, row_type))
                out = loop(without_zeros(delta))
            except Exception as error:
                raise task_failed(explained(error, stage), self.job.secret) from cause_of(error)
            yield to_arrow(list(out), list(out.values()), stage.type)
