"""Inputs of programs in columns: tables become columns, and no rows are made of them.

One that is trusted keeps nothing. One that is checked keeps its rows as columns, so that it can
refuse to lose what it does not have. What is not a table, and what columns do not hold, goes the
way of rows; the rows are handed over to an input that keeps rows, for good, when one comes that
columns do not hold.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ebbflow.change.requests import Request
from ebbflow.engine.runtime.changes import read
from ebbflow.engine.runtime.inputs import BagInput, InputState, absent
from ebbflow.engine.runtime.table.arrow import arrow_schema
from ebbflow.engine.runtime.table.column_types import WEIGHT
from ebbflow.engine.runtime.table.given import rows_of, table_of, total
from ebbflow.engine.runtime.tables import is_columns, is_table
from ebbflow.flow.plan import Source
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.columns import Columns, columns_of_rows, columns_of_table
from ebbflow.kernel.hashing import matrix
from ebbflow.kernel.rows import RowTable, RowTotals
from ebbflow.kernel.words import NULL, Texts, forms_of, one_float
from ebbflow.record import fields_of
from ebbflow.zset import ZSet, from_view


def read_columns(source: Source, change: Any, texts: Texts) -> Any:
    """A change as columns; rows with weights, where columns do not hold it."""
    found = plain_columns(source, change, texts)
    if found is not None:
        return found
    if is_table(change) or is_columns(change):
        table = table_of(source, change)
        try:
            return columns_of_table(table, source.type, texts)
        except DoesNotFit:
            return total(*rows_of(source, table))
    weights = read(source, change)
    try:
        return columns_of_rows(weights, source.type, texts)
    except DoesNotFit:
        return weights


def plain_columns(source: Source, change: Any, texts: Texts) -> Columns | None:
    """Columns of a table that has the columns of the input, in their own types and order, and
    nothing else but weights: what a program would give that has them already. None for any other
    table, which has to be looked at more closely."""
    import numpy as np
    import pyarrow as pa

    names, dtypes, schema = _expected(source.type)
    if type(change) is dict:
        if None in dtypes or tuple(change) not in (names, (*names, WEIGHT)):
            return None
        fields = list(change.values())
        for array, dtype in zip(fields, (*dtypes, np.int64), strict=False):
            if type(array) is not np.ndarray or array.dtype != dtype or array.ndim != 1:
                return None
        if len(set(map(len, fields))) != 1:
            return None
        columns = [_words(array) for array in fields[: len(names)]]
        weights = fields[-1] if len(fields) > len(names) else None
    elif isinstance(change, (pa.Table, pa.RecordBatch)):
        given = change.schema
        if given.names not in (schema.names[:-1], schema.names) or any(
            given.field(at).type != schema.field(at).type
            or (change.column(at).null_count and not schema.field(at).nullable)
            for at in range(len(given))
        ):
            return None
        made = columns_of_table(change, source.type, texts)
        return made if made.weights.all() else None
    else:
        return None
    if any(len(words) and words.min() == NULL for words in columns):
        return None
    weights = np.ones(len(columns[0]), np.int64) if weights is None else weights.copy()
    return Columns(source.type, columns, weights, texts) if weights.all() else None


def _words(array: Any) -> Any:
    return one_float(array) if array.dtype == float else array.astype("int64")


@cache
def _expected(row_type: Any) -> tuple[tuple[str, ...], tuple[Any, ...], Any]:
    """The names of the columns of a row type, the dtypes that are words, and the Arrow schema."""
    forms = forms_of(row_type) or ()
    names = tuple(fields_of(row_type) or ())
    dtypes = {"int": "int64", "float": "float64", "bool": "bool"}
    return names, tuple(dtypes.get(form.name) for form in forms), arrow_schema(row_type)


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
        self.rows = RowTable(len(forms_of(source.type) or ()))
        self.plain: BagInput | None = None

    def apply(self, change: Any) -> Any:
        found = read_columns(self.source, change, self.texts)
        if self.plain is None and not isinstance(found, Columns):
            self._give_up()
        if self.plain is not None:
            return self.plain.apply(getattr(found, "rows", found))
        totals = RowTotals(matrix(found.fields), found.weights)
        columns: Columns = found.of_totals(totals)
        negative = self.rows.prepare(totals)
        if negative is not None:
            at = int(negative[0])
            there = self.rows.there(self.rows.table.find(totals.rows[at : at + 1]))
            (row,) = columns.taken(negative[:1]).rows
            raise absent(self.source, row, int(there[0]), -int(totals.weights[at]))
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
