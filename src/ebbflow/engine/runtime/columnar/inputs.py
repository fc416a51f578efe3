"""Inputs of programs in columns: tables become columns, and no rows are made of them.

One that is trusted keeps nothing. One that is checked keeps its rows as columns, so that it can
refuse to lose what it does not have. What is not a table, and what columns do not hold, goes the
way of rows; the rows are handed over to an input that keeps rows, for good, when one comes that
columns do not hold.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from ebbflow.chain import Chain
from ebbflow.change.requests import Request
from ebbflow.engine.runtime.changes import read
from ebbflow.engine.runtime.columnar.few import (
    FewRows,
    Part,
    array_reader,
    is_few,
    number_reader,
)
from ebbflow.engine.runtime.inputs import BagInput, InputState, absent
from ebbflow.engine.runtime.table.arrow import arrow_schema
from ebbflow.engine.runtime.table.column_types import WEIGHT
from ebbflow.engine.runtime.table.given import rows_of, table_of, total
from ebbflow.engine.runtime.tables import is_columns, is_table
from ebbflow.flow.plan import Source
from ebbflow.fn import Fn
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arrow_batches import batch_words, layout_of
from ebbflow.kernel.arrow_texts import TextColumn
from ebbflow.kernel.arrow_words import holds
from ebbflow.kernel.columns import (
    HEAVIEST,
    Columns,
    columns_of_rows,
    columns_of_table,
    out_of_range,
)
from ebbflow.kernel.few import FEW
from ebbflow.kernel.hashing import EMPTY
from ebbflow.kernel.messages import numbers_of
from ebbflow.kernel.rows import LookedUp, RowTable
from ebbflow.kernel.words import Texts, WordForm, forms_of, one_float
from ebbflow.record import fields_of
from ebbflow.zset import ZSet, from_view


def read_columns(source: Source, change: Any, texts: Texts) -> Any:
    """A change as columns; rows with weights, where columns do not hold it."""
    if not is_few(change, source.type):
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
    """Columns of a table that has the columns of the input, in their own order and types, or with
    shorter ints, and nothing else but weights: what a program would give that has them already.
    None for any other table, which has to be looked at more closely."""
    expected = _expected(source.type)
    if type(change) is dict:
        fields = expected.arrays(change)
    elif isinstance(change, (pa.Table, pa.RecordBatch)) and expected.has_schema(change):
        made = expected.small(change, source.type, texts)
        if made is None and expected.is_plain(change):
            try:
                made = columns_of_table(change, source.type, texts)
            except DoesNotFit:
                return None
            return None if holds(made.weights, 0) else made
        return made
    else:
        return None
    if fields is None:
        return None
    *columns, weights = fields
    return Columns(source.type, columns, weights, texts)


class _Expected:
    """What a table of an input looks like that is columns already."""

    def __init__(self, row_type: Any) -> None:
        self.type = row_type
        self.forms = forms_of(row_type) or ()
        self.names = tuple(fields_of(row_type) or ())
        self.weighted = (*self.names, WEIGHT)
        dtypes = {"int": "int64", "float": "float64", "bool": "bool"}
        known = [dtypes.get(form.name) for form in self.forms]
        self.dtypes = None if None in known else [np.dtype(each) for each in (*known, "int64")]
        self.few = None if self.dtypes is None else array_reader(row_type, self.dtypes)
        """What makes rows of arrays of a few."""
        self.ints = np.array([form.name == "int" for form in self.forms])
        in_arrow = {*known} <= {"int64", "float64"}  # Arrow has the same numbers in memory
        self.letters = "".join("d" if form.name == "float" else "q" for form in self.forms)
        self.few_numbers = number_reader(row_type) if in_arrow else None
        self.texts = [
            (at, (row_type, at)) for at, form in enumerate(self.forms) if form.name == "text"
        ]
        self.schema = arrow_schema(row_type)
        self.seen: Any = None
        """The last schema that was right: most tables of a program have the same."""
        self.own = False
        """Whether its types are the very same."""
        self.layout: Any = None
        """How the columns of such a table are in memory."""

    def few_rows(self, change: Any) -> dict[Any, int] | None:
        """The rows of arrays, or of an Arrow table, of a few rows that are all different."""
        if type(change) is dict:
            return None if self.few is None else self.few(change)
        count = getattr(change, "num_rows", 0)
        if (
            self.few_numbers is None or not 0 < count <= FEW
            or not isinstance(change, (pa.Table, pa.RecordBatch))
            or not self.has_schema(change) or not self.own
        ):  # fmt: skip
            return None
        batch = _one_batch(change)
        if batch is None:
            return None
        ones = (1,) * count if batch.num_columns == len(self.letters) else ()
        numbers = numbers_of(batch, self.letters if ones else self.letters + "q")
        return None if numbers is None else self.few_numbers(numbers + ones, count)

    def arrays(self, change: dict[str, Any]) -> list[Any] | None:
        """The words of arrays, and the weights; None where something is not as it should be."""
        dtypes, given = self.dtypes, tuple(change)
        if dtypes is None or (given != self.weighted and given != self.names):
            return None
        shape = np.shape(change[given[0]])
        arrays = list(change.values())
        for array, dtype in zip(arrays, dtypes, strict=False):
            if type(array) is not np.ndarray or array.dtype != dtype or array.shape != shape:
                return None
        return self._words(arrays, shape[0]) if len(shape) == 1 else None

    def small(self, table: Any, row_type: Any, texts: Texts) -> Columns | None:
        """Columns of an Arrow table of few rows that are one after the other in memory; None where
        something is not as it should be."""
        if self.layout is None or not 0 < table.num_rows <= SMALL_TABLE:
            return None
        batch = _one_batch(table)
        found = None if batch is None else batch_words(batch, self.layout, HEAVIEST)
        if found is None:
            return None
        (*fields, weights), where = found
        for at, name in self.texts:
            fields[at] = TextColumn(self.forms[at], batch, at, where[at], texts.now, name)
        return Columns(row_type, fields, weights, texts)

    def _words(self, arrays: list[Any], count: int) -> list[Any] | None:
        """Arrays of numbers as words, in memory of their own; None where some do not fit."""
        words = np.empty((len(self.weighted), count), np.int64)
        for at, array in enumerate(arrays):
            words[at] = one_float(array) if array.dtype.kind == "f" else array
        if len(arrays) < len(words):
            words[-1] = 1
        return None if out_of_range(words, self.ints, HEAVIEST) else list(words)

    def has_schema(self, table: Any) -> bool:
        """Whether an Arrow table has the columns in their own types and order; ints may be
        shorter."""
        given, schema = table.schema, self.schema
        if self.seen is None or not given.equals(self.seen):
            if given.names not in (schema.names[:-1], schema.names):
                return False
            pairs = list(zip(given.types, schema.types, strict=False))
            others = [mine for mine, own in pairs if mine != own]
            shorter = [mine for mine, own in pairs if mine in SHORTER and own == INT]
            if len(others) > len(shorter) or given.types[len(self.forms) :] not in ([], [INT]):
                return False
            nulls = [form.optional for form in self.forms]
            self.seen, self.own = given, not others
            most = [form.largest for form in self.forms]
            self.layout = layout_of(given.types, most, nulls)
        return True

    def is_plain(self, table: Any) -> bool:
        """Whether it has no nulls where there must be none."""
        return not any(
            table.column(at).null_count
            for at, form in enumerate((*self.forms, REQUIRED)[: table.num_columns])
            if not form.optional
        )


def _one_batch(table: Any) -> Any:
    """The rows of an Arrow table that has some, where they are one after the other in memory; None
    where they are not."""
    if not isinstance(table, pa.Table):
        return table
    batch, *more = table.to_batches()
    return None if more else batch


SMALL_TABLE = 1 << 12
"""Tables of up to so many rows are copied, which takes less than to look at where they are."""
INT = pa.int64()
SHORTER = {pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32()}
REQUIRED = WordForm("int")
_expected = cache(_Expected)


class ColumnInput(InputState):
    """A trusted input in columns."""

    __slots__ = ("expected", "texts")

    def __init__(self, source: Source, texts: Texts) -> None:
        super().__init__(source)
        self.texts, self.expected = texts, _expected(source.type)

    def apply(self, change: Any) -> Any:
        if is_few(change, self.expected.type):
            return read(self.source, change)
        rows = self.expected.few_rows(change)
        return read_columns(self.source, change, self.texts) if rows is None else rows

    def as_rows(self) -> InputState:
        """The same input, for a program of rows."""
        return InputState(self.source)


class CheckedColumnInput(InputState):
    """An input that keeps its rows, in columns: no row can be taken away more often than it was
    added. `plain` keeps them as rows, when columns could not go on."""

    __slots__ = ("expected", "few", "plain", "rows", "texts")

    keeps = True

    def __init__(self, source: Source, texts: Texts) -> None:
        super().__init__(source)
        self.texts, self.expected = texts, _expected(source.type)
        forms = forms_of(source.type) or ()
        parts = [
            Part(Fn.of(name, source.type), form)
            for name, form in zip(fields_of(source.type) or (), forms, strict=True)
        ]
        self.few = FewRows(source.type, Chain(), None, (), parts, texts)
        self.rows = RowTable(len(forms))
        self.plain: BagInput | None = None

    def apply(self, change: Any) -> Any:
        if self.plain is None:
            few = is_few(change, self.source.type)
            weights = read(self.source, change) if few else self.expected.few_rows(change)
            if weights is not None and self._prepare_few(weights):
                return weights
            change = weights if few else change
        found = read_columns(self.source, change, self.texts)
        if self.plain is None and not isinstance(found, Columns):
            self._give_up()
        if self.plain is not None:
            return self.plain.apply(getattr(found, "rows", found))
        change = self.rows.prepare(found.matrix, found.weights)
        if change.wrong != EMPTY:
            (row,) = found.taken(change.first[change.wrong : change.wrong + 1]).rows
            raise self._absent(row, change)
        if change.zeros or len(change.first) < len(found):
            some = np.flatnonzero(change.weights)
            weights = change.weights[some]
            found = found.taken(change.first[some])
            found.weights = weights
        found.canonical = True
        return found

    def _prepare_few(self, weights: dict[Any, int]) -> bool:
        """Be ready to keep a few rows; says whether they are what columns hold."""
        try:
            _, rows, counts = self.few.given[self.few.write(weights)]
        except DoesNotFit:
            return False
        looked_up = self.rows.prepare(rows, counts)
        if looked_up.wrong != EMPTY:
            row = list(weights)[looked_up.first[looked_up.wrong]]
            raise self._absent(row, looked_up)
        return True

    def _absent(self, row: Any, change: LookedUp) -> Exception:
        """What is raised where a row goes that is not there."""
        at = change.wrong
        return absent(self.source, row, int(change.there[at]), -int(change.weights[at]))

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
