"""Ways: how each node of a plan is computed where Spark can choose, and why not natively.

There are three: `native`, in columns of Spark's own; an `Arrow function`, in Python on batches of
rows, which all the same is part of a query; and an `operator in task`. Which it is depends on the
plan alone, so it is found once, on tables without rows, and nothing runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from ebbflow.chain import Chain, RowStep
from ebbflow.engine.runtime.stage import Gathered, Meeting, Stage
from ebbflow.engine.spark.native.functions import why_not
from ebbflow.engine.spark.native.groups import grouped
from ebbflow.engine.spark.native.queries import NATIVE, Queries
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.task import Job
from ebbflow.engine.spark.tasks.transport import PackedProgram
from ebbflow.flow.plan import Join, Node

IN_TASK = "operator in task"
SEVERAL = "it gives several rows"
BEHIND = "it comes after such a step"
NO_QUERY = "what it reads is not a query"


class Lowering:
    """How the nodes of a plan are computed."""

    def __init__(self, session: SparkSession, replica: Replica, program: PackedProgram) -> None:
        def nothing(name: str) -> Any:
            row_type = replica.plan.sources[name].type
            return session.createDataFrame([], schema_of(row_type, weight=True))

        self.sql = Queries(replica, Job(program, "", 0, 1), nothing)
        self._found: dict[int, list[str]] = {}
        for stage in replica.machine.stages:
            if isinstance(stage.run, Gathered):
                self._steps(stage, stage.run)
            elif not stage.sorts and stage.label != "guard":
                self._stage(stage)

    def of(self, node: Node) -> str:
        """How a node is computed, in words."""
        found = self._found.get(id(node), [NATIVE])
        return max(found, key=lambda way: (way != NATIVE, way == IN_TASK, len(way)))

    @staticmethod
    def is_step(stage: Stage, node: Node) -> bool:
        """Whether a node is a step inside a stage."""
        chains: Iterable[Chain] = ()
        if isinstance(stage.run, Gathered):
            chains = stage.run.chains
        elif isinstance(stage.run, Meeting):
            chains = (stage.run.after,)
        return any(step.owner is node for chain in chains for step in chain.steps)

    def _add(self, node: Any, way: str) -> None:
        self._found.setdefault(id(node), []).append(way)

    def _steps(self, stage: Stage, run: Gathered) -> None:
        for slot, chain in zip(stage.reads, run.chains, strict=True):
            row_type, python = self.sql.row_type(slot), self.sql.frame(slot) is None
            if python:
                for step in chain.steps:
                    self._add(step.owner, IN_TASK)
                continue
            for step in chain.steps:
                why = BEHIND if python else _why_not(step, row_type)
                self._add(step.owner, f"Arrow function (why not native: {why})" if why else NATIVE)
                python = python or bool(why)
                row_type = row_type if step.verb == "filter" else getattr(step.owner, "type", Any)
        if self.sql.frame(stage.slot) is None:
            self._add(stage.node, IN_TASK)

    def _stage(self, stage: Stage) -> None:
        made = self.sql.frame(stage.slot) is not None or grouped(self.sql, stage) is not None
        way = NATIVE if made else IN_TASK
        if not made and isinstance(stage.node, Join):
            why = self._why_not_joined(stage, stage.node)
            way = f"{IN_TASK} (why not native: {why})" if why else way
        self._add(stage.node, way)
        if isinstance(stage.run, Meeting):
            for step in stage.run.after.steps:
                self._add(step.owner, way)

    def _why_not_joined(self, stage: Stage, node: Join) -> str:
        slots = [self.sql.raw(slot) for slot in stage.reads]
        if any(self.sql.frame(slot) is None for slot in slots):
            return NO_QUERY
        row_types = [self.sql.row_type(slot) for slot in slots]
        for key, row_type, side in zip(
            (node.left_key, node.right_key), row_types, ("left", "right"), strict=True
        ):
            why = why_not(key, row_type, use="key")
            if why:
                return f"the key of the {side}: {why}"
        why = why_not(node.merge, *row_types, result=node.type)
        if why:
            return f"what it makes of two rows: {why}"
        assert isinstance(stage.run, Meeting)
        row_type = node.type
        for step in stage.run.after.steps:
            why = _why_not(step, row_type)
            if why:
                return f"the {step.verb} after it: {why}"
            row_type = row_type if step.verb == "filter" else step.owner.type
        return ""


def _why_not(step: RowStep, row_type: Any) -> str:
    if step.verb == "filter":
        return why_not(step.fn, row_type, use="filter")
    if step.verb == "map":
        return why_not(step.fn, row_type, result=getattr(step.owner, "type", None))
    return SEVERAL
