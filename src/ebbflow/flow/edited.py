"""Operators on edited fields in a program: `select(upper=text.upper("body"))`.

Such a part of a row is a function of a field like any other, checked where it is given; that it
follows the edits of the field is the function's own affair (`ebbflow.operator.follow`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ebbflow.change import LIST, TEXT, List, Text
from ebbflow.change.mapping import mapping
from ebbflow.flow import parts
from ebbflow.flow.plan import Node
from ebbflow.flow.types import classes, without_none
from ebbflow.fn import Fn
from ebbflow.operator.applied import Applied, OfField, gives_rows, result_type
from ebbflow.operator.text import LINES
from ebbflow.record import fields_of, name_of

_TAKES: dict[Any, tuple[tuple[type, ...], str]] = {
    TEXT: ((str, Text), "Text"),
    LIST: ((tuple, list, List), "List or list"),
    LINES: ((tuple, list, List), "List or list"),
}


def part(shape: str, node: Node, given: Applied) -> Fn:
    """An operator applied to a field, as a function of the rows of a node.

    >>> from ebbflow.flow.plan import Source
    >>> from ebbflow.operator import text
    >>> from ebbflow.record import record
    >>> Doc = record("Doc", id=int, body=Text)
    >>> part("select({})", Source(name="docs", type=Doc), text.upper("body"))(Doc(1, Text("ebb")))
    Text('EBB')
    """
    checked(shape, node, given)
    if gives_rows(given.operator):
        parts.refuse(
            f"{shape.format(given)}: {given.operator!r} gives rows, and here one value is wanted",
            f"through({given}, per=...)",
        )
    fields = given.fields[0] if len(given.fields) == 1 else given.fields
    return Fn.of(fields, node.type).then(Fn(given.of_value, Any, name=repr(given.operator)))


def of_field(node: Node, given: Applied, type: Any) -> tuple[OfField, Any]:
    """An operator that gives rows, applied to a field, for `through`; and the type of its rows."""
    checked("through({})", node, given)
    if not gives_rows(given.operator):
        parts.refuse(
            f"through({given}): {given.operator!r} gives one value for each row, and no rows",
            f"select(..., value={given})",
        )
    said = value_type(node, given) if type is None else type
    return OfField(given), said


def value_type(node: Node, given: Applied) -> Any:
    """The type of what an operator gives for a field of the rows of a node."""
    hint = (fields_of(node.type) or {}).get(given.fields[0], Any)
    return result_type(given.operator, without_none(hint))


def checked(shape: str, node: Node, given: Applied) -> None:
    """Refuse an operator applied to a field that the rows do not have, or of another kind."""
    for field, structure in zip(given.fields, given.structures, strict=True):
        parts.field(shape.format(f"{given.operator!r}({{}})"), node, field)
        hint = (fields_of(node.type) or {}).get(field, Any)
        known = classes(hint)
        wanted, words = _TAKES.get(structure, ((object,), ""))
        if structure.built is not None and structure.built[0] is mapping:
            wanted, words = (Mapping,), "dict"
        if known is not None and not any(issubclass(each, wanted) for each in known):
            parts.refuse(
                f"{shape.format(given)}: {given.operator!r} is applied to a "
                f"{words or repr(structure)}, and the field {field!r} is {name_of(hint)}",
                f"a field that is declared as {words}" if words else "another field",
            )
