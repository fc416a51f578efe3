"""Inputs of programs in columns: tables become columns, and no rows are made of them.

One that is trusted keeps nothing. One that is checked keeps its rows as columns, so that it can
refuse to lose what it does not have. What is not a table, and what columns do not hold, goes the
way of rows; the rows are handed over to an input that keeps rows, for good, when one comes that
columns do not hold.
"""

from __future__ import annotations

from typing import Any

from ebbflow.change.requests import Request
from ebbflow.engine.runtime.changes import read
from ebbflow.engine.runtime.inputs import BagInput, InputState, absent
from ebbflow.engine.runtime.table.given import rows_of, table_of, total
from ebbflow.engine.runtime.tables import is_columns, is_table
from ebbflow.flow.plan import Source
from ebbflow.kernel import Unfit
from ebbflow.kernel.columns import Columns, columns_of_rows, columns_of_table
from ebbflow.kernel.hashing import matrix
from ebbflow.kernel.rows import RowTable
from ebbflow.kernel.words import Texts, kinds_of
from ebbflow.zset import ZSet, from_view


def read_columns(source: Source, change: Any, texts: Texts) -> Any:
    """A change as columns; rows with weights, where columns do not hold it."""
    if is_table(change) or is_columns(change):
        table = table_of(source, change)
        try:
            return columns_of_table(table, source.type, texts)
        except Unfit:
            return total(*rows_of(source, table))
    weights = read(source, change)
    try:
        return columns_of_rows(weights, source.type, texts)
    except Unfit:
        return weights


class ColumnInput(InputState):
    """A trusted input in columns."""

    __slots__ = ("texts",)

    def __init__(self, source: Source, texts: Texts) -> None:
        super().__init__(source)
        self.texts = texts

    def apply(self, change: Any) -> Any:
        return read_columns(self.source, change, self.texts)

    def as_rows(self) -> InputState:
        """The same input, for a program of rows."""
        return InputState(self.source)


class CheckedColumnInput(InputState):
    """An input that keeps its rows, in columns: no row can be taken away more often than it was
    added. `plain` keeps them as rows, when columns could not go on."""

    __slots__ = ("plain", "rows", "texts")

    keeps = True

    def __init__(self, source: Source, texts: Texts) -> None:
        super().__init__(source)
        self.texts = texts
        self.rows = RowTable(len(kinds_of(source.type) or ()))
        self.plain: BagInput | None = None

    def apply(self, change: Any) -> Any:
        found = read_columns(self.source, change, self.texts)
        if self.plain is None and not isinstance(found, Columns):
            self._give_up()
        if self.plain is not None:
            return self.plain.apply(getattr(found, "rows", found))
        columns = found.consolidated()
        rows = matrix(columns.fields)
        negative = self.rows.prepare(rows, columns.weights)
        if negative is not None:
            at = int(negative[0])
            there = int(self.rows.there(rows[at : at + 1])[0])
            (row,) = columns.taken(negative[:1]).rows
            raise absent(self.source, row, there, -int(columns.weights[at]))
        return columns

    def request(self, request: Request) -> Any:
        self._give_up()
        assert self.plain is not None
        return self.plain.request(request)

    def keep(self) -> None:
        if self.plain is None:
            self.rows.keep()
        else:
            self.plain.keep()

    def _columns(self) -> Columns:
        rows, weights = self.rows.everything()
        fields = list(rows.T.copy())
        return Columns(self.source.type, fields, weights, self.texts, canonical=True)

    def _give_up(self) -> None:
        if self.plain is None:
            plain = BagInput(self.source)
            plain.store.rows = self._columns().rows
            self.plain = plain
            self.rows = RowTable(self.rows.table.width)

    def as_rows(self) -> InputState:
        """The same input, for a program of rows."""
        self._give_up()
        assert self.plain is not None
        return self.plain

    def snapshot(self) -> ZSet[Any]:
        if self.plain is not None:
            return self.plain.snapshot()
        return from_view(self._columns(), (self.source.type, False))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.rows) if self.plain is None else len(self.plain)
