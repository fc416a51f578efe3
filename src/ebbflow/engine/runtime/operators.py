"""From a node of a plan to the operator that runs for it, and to the steps in its loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ebbflow.chain import Chain, RowStep
from ebbflow.engine.runtime.stage import WHOLE
from ebbflow.expression import Get, Record, Row, Tuple
from ebbflow.flow.plan import (
    Distinct,
    Filter,
    FlatMap,
    Fused,
    Join,
    Map,
    Node,
    Reduce,
    Sessions,
    Through,
    TopK,
)
from ebbflow.flow.plan.aligned import Aligned, AsOf, Interval, IntervalSemi
from ebbflow.flow.plan.order import Fold, Match, Over, Scan
from ebbflow.flow.plan.time import SessionReduce, Within
from ebbflow.flow.rewrite.traced import certain, composed, condition, total
from ebbflow.fn import Fn
from ebbflow.operator import joins, per_key, sessions, top_rows, weights
from ebbflow.operator.aligned import AlignedRows
from ebbflow.operator.asof import AsOfRows
from ebbflow.operator.interval import IntervalRows, NearSemi
from ebbflow.operator.match import Matching
from ebbflow.operator.over import over_rows
from ebbflow.operator.scan import fold_rows, scan_rows
from ebbflow.operator.within import within_rows
from ebbflow.record import fields_of
from ebbflow.reducer.running import ReduceByKey
from ebbflow.reducer.sessions import SessionResults
from ebbflow.reducer.shape import ResultShape


def operator_of(node: Node) -> Any:
    """The operator of a node on one collection."""
    match node:
        case Distinct():
            return weights.Distinct(node.parent.bag)
        case Reduce():
            return reducing(node, WHOLE)
        case TopK():
            return top_rows(
                node.n, node.by, node.key, smallest=node.smallest, offset=node.offset, owner=node
            )
        case Sessions():
            return sessions(node.time, node.gap, node.key, merge=node.merge, owner=node)
        case SessionReduce():
            return session_results(node)
        case Within():
            return within_rows(node.time, node.span, node.pane, owner=node)
        case Through():
            return per_key(
                node.operator, node.key, width=node.width, row_type=node.type, owner=node
            )
        case Scan():
            return scan_rows(node.transition, node.order, node.key, owner=node)
        case Fold():
            shape = ResultShape(node.type, node.width)
            merge = shape.function(1)
            return fold_rows(node.transition, node.order, node.key, merge=merge, owner=node)
        case Match():
            several = len(node.steps) > 1
            make = ResultShape(node.type, node.width, several).function(len(node.steps))
            matching = Matching(node.steps, node.order, node.key, make, node.within, node.adjacent)
            return scan_rows(matching, node.order, node.key, owner=node)
        case Over():
            return over_rows(
                node.functions, node.order, node.key, merge=node.merge,
                row_type=node.parent.type, owner=node,
            )  # fmt: skip
    raise AssertionError(f"there is no operator for {node!r}")


def aligning(node: Aligned) -> AlignedRows:
    """The operator of a node on two collections in order."""
    sides = node.left_key, node.right_key, node.left_order, node.right_order
    match node:
        case AsOf():
            return AsOfRows(
                *sides, node.merge, node.alone, node.direction, node.tolerance, node.exact, node
            )
        case Interval():
            return IntervalRows(*sides, node.low, node.high, merge=node.merge, owner=node)
        case IntervalSemi():
            return NearSemi(*sides, node.low, node.high, anti=node.anti, owner=node)
    raise AssertionError(f"there is no operator for {node!r}")


def steps_of(node: Node) -> list[RowStep]:
    if isinstance(node, Fused):
        return [RowStep(step.verb, step.fn, step) for step in node.steps]
    assert isinstance(node, (Map, Filter, FlatMap))
    return [RowStep(node.verb, node.fn, node)]


def all_traced(*chains: Chain) -> bool:
    """Whether all functions in them are traced, so that they do the same every time."""
    return all(step.fn.expression is not None for chain in chains for step in chain.steps)


def reducing(node: Reduce, before: Chain) -> ReduceByKey:
    shape = ResultShape(node.type, node.width, node.spread)
    return ReduceByKey(node.reducer, node.key, shape, node.parent.type, before, node)


def session_results(node: SessionReduce) -> SessionResults:
    """The operator of sessions that are reduced."""
    return SessionResults(
        node.time, node.gap, node.key, node.reducer, row_type=node.parent.type, front=node.front,
        width=node.width, spread=node.spread, made=node.type, owner=node,
    )  # fmt: skip


def straight(merge: Fn, row_type: Any, steps: Sequence[RowStep]) -> joins.Straight:
    """A join that looks at a pair before it makes a row of it, and makes the row that the steps
    behind it make of it, where fields of both sides are all that these need."""
    where = list[Fn]()
    while steps and merge.expression is not None and merge.expression.total:
        step, made = steps[0], steps[0].fn.expression
        if step.verb == "filter" and total(step.fn):
            asked = condition(merge, step.fn, plain=True)
            if asked is None:
                break
            where.append(asked)
        elif step.verb == "map" and isinstance(made, Record) and certain(step.fn):
            both = composed(merge, step.fn)
            if both is None:
                break
            merge, row_type = both, made.type
        else:
            break
        steps = steps[1:]
    return joins.Straight(tuple(where), merge, Chain(steps), row_type)


def injective(node: Join) -> bool:
    """Whether no two pairs of rows make the same row: all fields of both sides are in it, but for
    key fields of the right, which the left tells."""
    merged = node.merge.expression
    if merged == Tuple((Row(0), Row(1))):
        return True
    ours, theirs = fields_of(node.left.type), fields_of(node.right.type)
    if not isinstance(merged, Record) or ours is None or theirs is None:
        return False
    there = {(item.arg, item.name) for item in merged.items if isinstance(item, Get)}
    key = node.right_key.expression
    parts = key.items if isinstance(key, Tuple) else (key,)
    known = {part.name for part in parts if isinstance(part, Get)}
    return all((0, name) in there for name in ours) and all(
        (1, name) in there or name in known for name in theirs
    )
