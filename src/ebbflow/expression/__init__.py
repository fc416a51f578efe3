"""Expressions: what simple functions compute, as values; and what makes a function itself."""

from ebbflow.expression.identity import fingerprint, known_by_name
from ebbflow.expression.node import (
    Constant,
    Expression,
    Get,
    Operation,
    Record,
    Row,
    Tuple,
)
from ebbflow.expression.trace import trace

__all__ = [
    "Constant",
    "Expression",
    "Get",
    "Operation",
    "Record",
    "Row",
    "Tuple",
    "fingerprint",
    "known_by_name",
    "trace",
]
