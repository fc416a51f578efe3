"""Functions in a program, as values.

Wherever a program asks for a part of a row, a field name, several, or a function will do; all three
become an `Fn`. An Fn knows what it is called, where it was given, and what it is: a *fingerprint*
that is the same in every process as long as the function does the same. Where the function is
simple enough, and the fields of its rows are known, it is also *traced* to an expression over those
fields: then a compiled loop can have it inline instead of calling it, a rewrite can see which fields
it reads, and another engine can run it natively.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.errors import Text, place
from ebbflow.algebra.value import function_name

Bind = Callable[[Any], str]


class Fn:
    """A function of one or more rows."""

    __slots__ = ("call", "expression", "name", "place", "types")

    def __init__(self, call: Callable[..., Any], *types: Any, name: str = "") -> None:
        self.call = call
        self.types = types
        self.name = name or function_name(call)
        self.expression: Any = None
        self.place: Text = place()

    def __call__(self, *rows: Any) -> Any:
        return self.call(*rows)

    def source(self, bind: Bind, *rows: str) -> str:
        """Python text that computes it from the variables `rows`."""
        return f"{bind(self.call)}({', '.join(rows)})"
