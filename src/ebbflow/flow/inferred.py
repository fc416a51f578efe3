"""The type of what a traced function gives, read off its expression.

`lambda order: order.city` says nothing about what it returns, but where the fields of its rows are
known it is traced, and then it is plain: it is what the field `city` is. So a short function needs
no hint. What cannot be told is `Any`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ebbflow.expression.node import (
    COMPARISONS,
    Constant,
    Expression,
    Get,
    Operation,
    Record,
    Row,
    Tuple,
)
from ebbflow.flow.types import common
from ebbflow.fn import Fn
from ebbflow.record import fields_of

_SCALARS = {bool, int, float, str, bytes}
_NUMBERS = {bool, int, float}
_BY_NAME = {"bool": bool, "float": float, "int": int, "len": int, "str": str}
_ALWAYS_BOOL = {"not", "is", "is not", "in", "not in"}


def inferred(fn: Fn) -> Any:
    """The type of `fn(row)`, as far as its expression tells.

    >>> from ebbflow.record import record
    >>> Order = record("Order", city=str, price=int)
    >>> inferred(Fn.of(lambda order: order.city, Order))
    <class 'str'>
    >>> inferred(Fn.of(lambda order: (order.price > 10, order.price / 2), Order))
    tuple[bool, float]
    """
    return Any if fn.expression is None else _type(fn.expression, fn.types)


def _type(of: Expression, rows: Sequence[Any]) -> Any:
    match of:
        case Row():
            return rows[of.arg] if of.arg < len(rows) else Any
        case Get():
            return (fields_of(rows[of.arg]) or {}).get(of.name, Any)
        case Constant():
            return type(of.value)
        case Record():
            return of.type
        case Tuple():
            return tuple[tuple(_type(each, rows) for each in of.items)]  # type: ignore[misc]
        case Operation():
            return _operation(of.op, [_type(each, rows) for each in of.args])
    return Any


def _operation(op: str, kinds: list[Any]) -> Any:
    if op in _ALWAYS_BOOL:
        return bool
    if op in _BY_NAME:
        return _BY_NAME[op]
    if op in ("and", "or", "if"):
        first, second = kinds[-2:]
        return _either(first, second)
    if op in ("[]", "[:]"):
        return str if kinds[0] is str else Any
    if not set(kinds) <= _SCALARS:
        return Any
    return bool if op in COMPARISONS else _arithmetic(op, set(kinds))


def _either(first: Any, second: Any) -> Any:
    kind = common(first, second)
    return Any if kind is None else kind


def _arithmetic(op: str, kinds: set[type]) -> Any:
    if op == "+" and kinds == {str}:
        return str
    if op not in ("+", "-", "*", "//", "%", "/") or not kinds <= _NUMBERS:
        return Any
    return float if op == "/" or float in kinds else int
