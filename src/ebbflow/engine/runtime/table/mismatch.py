"""What is said of a row that does not fit the columns of its type: the row, the field, the remedy.

A value is found out where its column is made, which may be deep inside a list inside a record, and
there it is known by its place alone. A *misfit* is carried outwards from there; every step tells it
where it has been, and the last one, who knows the rows, makes an error of it.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from ebbflow.engine.runtime.table.column_types import Column
from ebbflow.errors import SchemaMismatch, Text, value_text

NONE = "None is not allowed here"
_REMEDIES: dict[str, str] = {
    "int": "Decimals of the hint Annotated[Decimal, (38, 0)], or texts",
    "float": "the hint int or Decimal for this field",
    "any": "values made of plain values, or of classes that pickle",
    "time": "Annotated[datetime, UTC] as the hint for times with a zone",
    "instant": "a time with a zone, or datetime as the hint",
    "decimal": "other digits, Annotated[Decimal, (precision, scale)], or round the value",
}


class ColumnMismatch(Exception):
    """The value at a place does not fit; `path` leads from the field into it."""

    def __init__(self, at: int, column: Column, why: str, path: str = "") -> None:
        self.at, self.column, self.why, self.path = at, column, why, path

    def inside(self, at: int, path: str) -> ColumnMismatch:
        """The same, as seen from around it."""
        deeper = ColumnMismatch(at, self.column, self.why, path + self.path)
        deeper.__cause__ = self.__cause__
        return deeper

    def error(self, name: str, row: Any) -> SchemaMismatch:
        """The error, for the field of this name; without a name, for the weight of a row."""
        where = Text(str(self.column))
        remedy = _REMEDIES.get(self.column.form, "")
        if self.why == NONE:
            remedy = f"{self.column} | None as the hint, where None may be"
        return SchemaMismatch(
            f"field {name + self.path!r}: {self.why}" if name else f"a weight: {self.why}",
            row=row,
            type=where,
            remedy=remedy if name else "fewer repetitions of this row",
        )


def in_list(mismatch: ColumnMismatch, starts: list[int]) -> ColumnMismatch:
    """A misfit in one of many lists, which were put into one; `starts` says where each begins."""
    at = bisect_right(starts, mismatch.at) - 1
    return mismatch.inside(at, f"[{mismatch.at - starts[at]}]")


def row_at(table: Any, at: int) -> Any:
    """A row of a table or a batch, to be shown."""
    try:
        return table.slice(at, 1).to_pylist()[0]
    except Exception:  # a value that Python has none for, such as a time in nanoseconds
        return {name: shown(table.column(name)[at]) for name in table.schema.names}


def shown(scalar: Any) -> str:
    """A value of a column, for a message."""
    try:
        return value_text(scalar.as_py())
    except Exception:  # Python has no such value; Arrow may write it
        return value_text(_written(scalar))


def _written(scalar: Any) -> str:
    try:
        return str(scalar.cast("string").as_py())
    except Exception:
        return f"<{scalar.type} that cannot be shown>"
