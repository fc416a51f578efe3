"""Differential operators: functions kept up to date by changes."""

from ebbflow.operator.compose import Beside, Each, Fan, Seq, binary, each, seq
from ebbflow.operator.operator import Live, OnInput, Operator, Stateless, on_input, stateless

__all__ = [
    "Beside",
    "Each",
    "Fan",
    "Live",
    "OnInput",
    "Operator",
    "Seq",
    "Stateless",
    "binary",
    "each",
    "on_input",
    "seq",
    "stateless",
]
