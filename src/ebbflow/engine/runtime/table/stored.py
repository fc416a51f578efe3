"""Row types as they are noted beside a state, for readers that have no program.

A type is noted as JSON: the forms of its columns, with their names, and what its values are made
of. What comes back is a type with the same columns: of a NamedTuple class, one that `record` makes,
with its name and its fields. Rows of the two are equal.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce
from operator import or_
from types import NoneType
from typing import Annotated, Any

from ebbflow.change import List, Text
from ebbflow.engine.runtime.table.column_types import PLAIN, Column, column_of, columns_of
from ebbflow.frozen import Frozen
from ebbflow.record import fields_of, record, with_notes
from ebbflow.reducer import Map

_CLASSES = {form: cls for cls, form in PLAIN.items()}
_MADE: dict[str, Any] = {cls.__name__: cls for cls in (Text, List, Map, Frozen, tuple)}


def stored_type(row_type: Any) -> Any:
    """A row type as JSON.

    >>> stored_type(record("City", name=str, size=int | None))
    {'form': 'record', 'named': 'City', 'parts': [['name', {'form': 'text'}], \
['size', {'form': 'int', 'optional': True}]]}
    """
    if fields_of(row_type) is None:
        return _column(column_of(row_type))
    return _column(Column("record", parts=columns_of(row_type), make=row_type))


def _column(column: Column) -> dict[str, Any]:
    found: dict[str, Any] = {"form": column.form}
    if column.form == "record" and column.make is not tuple:
        found["named"] = column.make.__name__
    elif column.make is not None:
        found["made"] = column.make.__name__
    if column.form == "decimal":
        found["digits"] = list(column.digits)
    if column.optional:
        found["optional"] = True
    if column.parts:
        found["parts"] = [[name, _column(part)] for name, part in column.parts]
    return found


def row_type_of(stored: Any) -> Any:
    """The row type that was noted.

    >>> row_type_of(stored_type(tuple[int, ...])), row_type_of(stored_type(dict[str, int] | None))
    (tuple[int, ...], ebbflow.frozen.Frozen[str, int] | None)
    """
    hint = _hint(stored["form"], stored)
    return reduce(or_, [hint, NoneType]) if stored.get("optional") and hint is not Any else hint


def _hint(form: str, stored: Any) -> Any:
    parts = {name: row_type_of(part) for name, part in stored.get("parts", ())}
    inside, made = tuple(parts.values()), _MADE.get(stored.get("made", ""))
    match form:
        case "record":
            return made[inside] if made is tuple else record(stored["named"], **parts)
        case "list":
            return _MADE["tuple"][(*inside, ...)] if made is None else made[inside]
        case "set":
            return frozenset[inside]  # type: ignore[valid-type]
        case "map":
            return Frozen if made is None else made[inside]
        case "instant":
            return Annotated[datetime, UTC]
        case "decimal":
            return with_notes(_CLASSES[form], (tuple(stored["digits"]),))
    return made or _CLASSES.get(form, Any)
