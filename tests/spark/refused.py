"""Native functions as values: None where one is refused, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.engine.spark.native import functions
from ebbflow.engine.spark.native.functions import quoted
from ebbflow.engine.spark.native.values import NotNative
from ebbflow.engine.spark.native.walk import Walk
from ebbflow.expression.node import Expression
from ebbflow.fn import Fn


def _or_none(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        try:
            return function(*given)
        except NotNative:
            return None

    return call


native_map = _or_none(functions.native_map)
native_merge = _or_none(functions.native_merge)
native_filter = _or_none(functions.native_filter)
native_key = _or_none(functions.native_key)


@_or_none
def native(expression: Expression, row_types: Any, columns: Any) -> Any:
    """An expression over rows of these types."""
    return Walk(row_types, columns).value(expression)


class _Frame:
    """Takes any columns."""

    def select(self, *columns: Any) -> _Frame:
        return self

    filter = select


def why_not(fn: Fn, *row_types: Any, use: str = "map", result: Any = None) -> str:
    """Why a function of such rows is not native, in a few words; "" where it is."""
    frame: Any = _Frame()
    try:
        if use == "filter":
            functions.native_filter(fn, frame, row_types[0])
        elif use == "key":
            functions.native_key(fn, frame, row_types[0], "k")
        else:
            functions.native_merge(fn, frame, row_types, [quoted] * len(row_types), result)
    except NotNative as refused:
        return str(refused)
    return ""
