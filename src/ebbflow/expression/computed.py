"""Expressions as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.expression.node import Expression


class ExpressionFunction:
    """An expression as a function. It is compiled when it is first called.

    >>> from ebbflow.expression.node import Operation, Row
    >>> ExpressionFunction(Operation("+", (Row(0), Row(1))), 2)(3, 4)
    7
    """

    def __init__(self, expression: Expression, arity: int) -> None:
        self.expression = expression
        self.arity = arity
        self._call: Callable[..., Any] | None = None

    def __call__(self, *rows: Any) -> Any:
        if self._call is None:
            self._call = self._compiled()
        return self._call(*rows)

    def _compiled(self) -> Callable[..., Any]:
        bound: dict[str, Any] = {}

        def bind(value: Any) -> str:
            name = f"value{len(bound)}"
            bound[name] = value
            return name

        rows = [f"row{i}" for i in range(self.arity)]
        source = f"lambda {', '.join(rows)}: {self.expression.source(bind, rows)}"
        return eval(source, bound)  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpressionFunction) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return self.expression, self.arity

    def __reduce__(self) -> tuple[Any, ...]:
        return ExpressionFunction, self._parts()
