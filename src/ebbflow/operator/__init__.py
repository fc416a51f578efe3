"""Differential operators: functions kept up to date by changes.

On bags: `select map_rows project flat_map_rows union product join semi range_join scalar_filter
distinct difference count aggregate group_aggregate`. On edited text: the package
`ebbflow.operator.text`. Of your own: subclass `Operator`, or use `stateless`, `on_input` and `of`.
An operator is a stream processor, and `operator_of` makes one of any.
"""

from ebbflow.operator.again import of
from ebbflow.operator.aggregate import aggregate, group_aggregate
from ebbflow.operator.compose import Beside, Fork, Seq, binary, seq
from ebbflow.operator.joins import join, product, semi
from ebbflow.operator.keyed import per_key
from ebbflow.operator.lift import Each, each
from ebbflow.operator.operator import Live, OnInput, Operator, Stateless, on_input, stateless
from ebbflow.operator.range_join import range_join
from ebbflow.operator.relation import (
    count,
    flat_map_rows,
    map_rows,
    project,
    select,
    union,
)
from ebbflow.operator.scalar import scalar_filter
from ebbflow.operator.session import sessions
from ebbflow.operator.streams import operator_of
from ebbflow.operator.top import top_rows
from ebbflow.operator.weights import difference, distinct

__all__ = [
    "Beside", "Each", "Fork", "Live", "OnInput", "Operator", "Seq", "Stateless", "aggregate",
    "binary", "count", "difference", "distinct", "each", "flat_map_rows", "group_aggregate",
    "join", "map_rows", "of", "on_input", "operator_of", "per_key", "product", "project",
    "range_join", "scalar_filter", "select", "semi", "seq", "sessions", "stateless", "top_rows",
    "union",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
