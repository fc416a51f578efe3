"""The columns of files: which are read, and how they become those of a row type.

A format gives a table of the columns that are asked for, with texts where it has nothing better, as
CSV has for everything. Each column is made one of the row type; where some values do not fit, their
rows are found, by halves, and put aside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from ebbflow.engine.runtime.files import Rejected
from ebbflow.engine.runtime.table.column_types import WEIGHT, Column, columns_of
from ebbflow.engine.runtime.table.decode import decode
from ebbflow.engine.runtime.table.fit import WrongColumn, all_bad, fit
from ebbflow.engine.runtime.table.layout import layout_of
from ebbflow.engine.runtime.table.libraries import NESTED
from ebbflow.engine.runtime.table.mismatch import ColumnMismatch, row_at
from ebbflow.engine.runtime.table.texts import read_texts
from ebbflow.errors import ChangeError, CompositionError, Text
from ebbflow.flow.plan import Source
from ebbflow.record import type_text

Block = tuple[Any, Callable[[int], int], list[Rejected]]
"""A table, the line of each of its rows, and the lines among them that are no rows at all."""
_MARKS = {
    WEIGHT: Column("int"), "_change_type": Column("text"), "op": Column("text"),
    "__op": Column("text"), "weight": Column("int"),
}  # fmt: skip
_MARKED = {"int": Source(name="files", type=int), "text": Source(name="files", type=str)}


class FileColumns:
    """The `fields` of a row type as columns, and `marks`: columns that say what changes."""

    def __init__(self, verb: str, row_type: Any) -> None:
        self.row_type = row_type
        self.fields = dict(columns_of(row_type))
        self.marks = {name: each for name, each in _MARKS.items() if name not in self.fields}
        self.known = {**self.fields, **self.marks}
        self._source = Source(name=verb, type=row_type)
        for name, column in self.fields.items():
            if column.form == "any":
                raise CompositionError(
                    f"{verb}: {name!r} of {type_text(row_type)} is of no type that files have",
                    remedy=f"{verb}(path, Order), a NamedTuple class with hints for its fields",
                )

    def among(self, path: str, names: Sequence[str]) -> dict[str, Column]:
        """Those of the columns of a file that are read; an error where a field is missing."""
        some = [name for name in names if name in self.known]
        try:
            layout_of(self._source, some)
        except ChangeError as error:
            what = error.what.removeprefix(f"input {self._source.name!r}: ")
            facts = {**error.facts, "columns": Text(", ".join(names))}
            raise ChangeError(f"{path}: {what}", **facts, remedy=error.remedy) from None
        return {name: self.known[name] for name in some}

    def fitted(self, path: str, raw: Any, line: Callable[[int], int]) -> tuple[Any, list[Rejected]]:
        """The rows of a block that fit, and those that do not."""
        bad: dict[int, Rejected] = {}
        made: dict[str, Any] = {}
        for name in raw.column_names:
            make, array = partial(self._column, name), raw.column(name)
            try:
                made[name] = make(array)
            except WrongColumn as wrong:
                if wrong.at is None:
                    raise ChangeError(f"{path}: {wrong.what}", remedy=wrong.remedy) from None
                for at in all_bad(array, make):
                    if at not in bad:
                        why = _why(make, array.slice(at, 1))
                        bad[at] = Rejected(path, line(at), name, why, row_at(raw, at))
        if bad:
            fits = pa.array([at not in bad for at in range(len(raw))], pa.bool_())
            raw = raw.filter(fits)
            made = {name: self._column(name, raw.column(name)) for name in raw.column_names}
        names = [*self.fields, *(name for name in raw.column_names if name in self.marks)]
        return pa.table([made[name] for name in names], names), list(bad.values())

    def _column(self, name: str, array: Any) -> Any:
        """A column of a file as one of the row type: read, if it is texts, and fitted."""
        column = self.known[name]
        array = read_texts(name, column, array)
        if name in self.marks:
            return fit(_MARKED[column.form], "value", column, array)
        made = fit(self._source, name, column, array)
        if column.form in NESTED:
            _require_inside(name, column, made)
        return made


def _why(make: Callable[[Any], Any], one: Any) -> str:
    """What is wrong with a value."""
    try:
        make(one)
    except WrongColumn as wrong:
        return wrong.why
    return ""


def _require_inside(name: str, column: Column, array: Any) -> None:
    """What is inside lists and records is seen by who makes rows of them; so some are made now."""
    start = 0
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        try:
            decode(column, chunk)
        except ColumnMismatch as wrong:
            why = f"{wrong.path.lstrip('.')}: {wrong.why}"
            raise WrongColumn(f"column {name!r}: {why}", "", start + wrong.at, why) from None
        start += len(chunk)
