"""Expressions: what simple functions compute, as values; and what makes a function itself."""

from ebbflow.expression.fingerprints import Fingerprints, assumed, fingerprint
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
    "Constant", "Expression", "Fingerprints", "Get", "Operation", "Record", "Row", "Tuple",
    "assumed", "fingerprint", "trace",
]  # fmt: skip
