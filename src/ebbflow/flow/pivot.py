"""Columns turned to rows, and rows to columns: `unpivot` and `pivot`.

unpivot   one row for each of some fields      a map for each, and +
pivot     one field for each of some values    group_by, with a reducer `where` for each
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ebbflow.errors import Text, place
from ebbflow.expression.node import Expression, Operation
from ebbflow.flow import types
from ebbflow.flow.parts import Part, field, field_names, part, part_type, plain, refuse, row_type
from ebbflow.flow.plan import Concat, Map, Node
from ebbflow.flow.reshape import named_fields, traced
from ebbflow.flow.results import given
from ebbflow.fn import Fn
from ebbflow.record import name_of


def unpivoted(node: Node, names: Sequence[str], name: str, value: str) -> Concat:
    """The node of `unpivot`."""
    fields = named_fields("unpivot(...)", node)
    if not names:
        refuse("unpivot(): no field is given", 'unpivot("field", "field", ...)')
    for each in names:
        field("unpivot({})", node, each)
        if names.count(each) > 1:
            refuse(f"unpivot({each!r}): the field is given twice", "each field once")
    rest = [each for each in fields if each not in names]
    for each, what in ((name, "name"), (value, "value")):
        field_names(f"unpivot({what}={{}})", {each: each})
        if each in rest or name == value:
            refuse(
                f"unpivot({what}={each!r}): there is a field {each!r} already",
                f"unpivot(..., {what}=...) with another name",
                fields=Text(", ".join(rest)),
            )
    held = [part_type(node, each) for each in names]
    hints = {each: part_type(node, each) for each in rest}
    hints |= {name: str, value: reduce(types.common_or_any, held)}
    checked = row_type("unpivot({})", types.row(node.type.__name__, hints))
    kept = [part("unpivot({})", node, each) for each in rest]
    parts = []
    for each in names:
        there = [*kept, Fn.constant(each, node.type), part("unpivot({})", node, each)]
        fn = Fn.record(checked, there)
        parts.append(Map(parent=node, fn=fn, type=checked, place=place()))
    return Concat(parts=tuple(parts), signs=(1,) * len(parts), type=checked, place=place())


def pivoted(
    node: Node,
    on: Part,
    values: Iterable[Any] | Mapping[Any, str],
    using: Any,
    taken: Iterable[str],
) -> dict[str, Any]:
    """The reducers of `pivot`, by the field that each becomes; some names are taken.

    >>> import ebbflow as ef
    >>> from ebbflow.record import record
    >>> sales = ef.Input("sales", record("Sale", city=str, year=int, price=int)).node
    >>> list(pivoted(sales, "year", {2024: "last", 2025: "this"}, ef.sum("price"), ()))
    ['last', 'this']
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        refuse(
            f"pivot(values={values!r}): each value becomes a field, so they are told beforehand",
            'pivot("quarter", ("q1", "q2"), using=ebbflow.sum("price"))',
        )
    chosen = dict(values) if isinstance(values, Mapping) else {each: each for each in values}
    if not chosen:
        refuse("pivot(values=()): no value is given", 'pivot("quarter", ("q1", "q2"), ...)')
    using = given("pivot(using=...)", node, using)
    plain("pivot({})", on)
    of = part("pivot({})", node, on)
    hint = part_type(node, on)
    made: dict[str, Any] = {}
    for value, name in chosen.items():
        if not isinstance(name, str):
            refuse(
                f"pivot(values=...): {name!r} cannot be the name of a field",
                "{value: name, ...}, such as {2024: 'y2024'}",
            )
        field_names("pivot(values={})", {name: name})
        if name in made or name in taken:
            refuse(f"pivot(values=...): there is a field {name!r} already", "{value: name, ...}")
        if value is not None and types.common(hint, type(value)) is None:
            refuse(
                f"pivot(values=...): {value!r} is never among them, which are of type "
                f"{name_of(hint)}",
                f"values of type {name_of(hint)}",
            )
        matching = traced(Equals(of, value), node, of, value, _equal)
        if value is None:
            matching.expression = None
        made[name] = using.where(matching)
    return made


@dataclass(frozen=True)
class Equals:
    """Whether a part of a row is this value."""

    of: Fn
    value: Any

    def __call__(self, row: Any) -> Any:
        return self.of(row) == self.value


def _equal(of: Expression, value: Expression) -> Expression:
    return Operation("==", (of, value))
