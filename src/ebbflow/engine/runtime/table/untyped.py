"""Columns of outputs that nobody could read.

A field of no known type is carried as a pickle. Between the nodes of a program that is nobody's
business; in an output it would be a column of bytes, in `show()`, in SQL, and in every table that
is written. So a program with such an output is refused before it runs.
"""

from __future__ import annotations

from typing import Any

from ebbflow.engine.runtime.table.column_types import Column, columns_of
from ebbflow.errors import CompositionError, Text
from ebbflow.flow.plan import Node, Plan, Source
from ebbflow.record import fields_of, name_of


def require_types(plan: Plan) -> None:
    """Refuse a plan with an output that has a column of pickles."""
    for output, node in plan.outputs.items():
        for name, column in columns_of(node.type):
            path = pickled(column)
            if path is not None:
                raise _refused(output, node, name, path)


def pickled(column: Column) -> str | None:
    """Where in a column there is a pickle."""
    if column.form == "any":
        return ""
    for name, part in column.parts:
        inside = pickled(part)
        if inside is not None:
            return f"{'.' + name if column.form == 'record' else '[]'}{inside}"
    return None


def _refused(output: str, node: Node, name: str, path: str) -> CompositionError:
    whole = fields_of(node.type) is None
    hint = node.type if whole else (fields_of(node.type) or {})[name]
    maker = _maker(node, name)
    what = "its rows are" if whole and not path else f"its column {name + path!r} is"
    unknown = "Any" in name_of(hint)
    why = "of no known type" if unknown else f"a {name_of(hint)}, and Spark has no column for it"
    return CompositionError(
        f"output {output!r}: {what} {why}",
        made=Text(f"by {maker.verb}, {maker.place}"),
        remedy=_remedy(maker, name, whole, unknown),
    )


def _maker(node: Node, name: str) -> Node:
    """The node that a column of no type comes from."""
    for parent in node.parents:
        carried = (fields_of(parent.type) or {}).get(name) is Any and node.verb != "map"
        if carried or parent.type == node.type:
            return _maker(parent, name)
    return node


def _remedy(maker: Node, name: str, whole: bool, unknown: bool) -> str:
    if not unknown:
        return "a function that makes a number, a text, a time, a tuple or a NamedTuple of it"
    if isinstance(maker, Source):
        return f"Input({maker.name!r}, Row), where Row is a NamedTuple with hints for its fields"
    if maker.verb == "reduce" and name == "value":
        return "reduce(..., type=...), or Reducer(..., type=...)"
    if maker.verb in ("through", "scan", "fold") or (
        maker.verb in ("map", "flat_map", "join") and whole
    ):
        return f"{maker.verb}(..., type=...), or a function whose hints say what it returns"
    given = "..." if whole else f"{name}=ebbflow.typed(str, ...)"
    return f"{given}, with its type, or a function whose hints say what it returns"
