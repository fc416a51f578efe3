"""What row a group becomes: from its key and its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ebbflow.codegen import GeneratedLoop


class ResultShape(NamedTuple):
    """A row of type `row_type`: the `width` parts of the key, then the results.

    A key of several parts is a tuple and is spread; so are the results with `spread`, and otherwise
    several of them are one tuple. A single result that is spread is a tuple itself. Without a
    `row_type` the row is a plain tuple.

    >>> ResultShape(width=2, spread=True).function(2)(("Rome", "May"), 30, 2)
    ('Rome', 'May', 30, 2)
    >>> PAIR.function(1)("Rome", 30), PAIR.function(2)("Rome", 30, 2)
    (('Rome', 30), ('Rome', (30, 2)))
    """

    row_type: Any = None
    width: int = 1
    spread: bool = False

    def source(self, loop: GeneratedLoop, key: str, results: list[str]) -> str:
        """Python text that makes the row."""
        keys = [] if not self.width else [key] if self.width == 1 else [f"*{key}"]
        values = [f"({', '.join(results)})"] if len(results) > 1 else results
        if self.spread:
            values = results if len(results) > 1 else [f"*{results[0]}"]
        row = f"({', '.join([*keys, *values])},)"
        return row if self.row_type is None else f"new({loop.bind(self.row_type)}, {row})"

    def function(self, parts: int) -> Callable[..., Any]:
        """A function of the key and as many results."""
        names = [f"result{i}" for i in range(parts)]
        loop = GeneratedLoop("make", ", ".join(["key", *names]))
        loop.write(f"return {self.source(loop, 'key', names)}")
        return loop.function()


PAIR = ResultShape()
