"""A change as columns: an array of words for each field, and an array of weights.

`Columns` stand wherever a change of rows stands: they are a mapping from row to weight, which is
made when somebody looks at it. A kernel looks at `words` instead, and no row is made.

Equal rows may be there several times, until they are `consolidated`; what is given to a user is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.hashing import matrix
from ebbflow.kernel.rows import RowTotals
from ebbflow.kernel.words import NULL, Texts, WordForm, decoded, encoded, forms_of, one_float
from ebbflow.zset import without_zeros

WEIGHT = "__weight"
HEAVIEST = 1 << 31


class Columns(Mapping[Any, int]):
    """Rows of a type with weights, as columns.

    `fields` are the words of each field, or functions that give them, for those that may never be
    asked for. `canonical` says that no row is there twice, and no weight is zero.

    >>> from ebbflow.record import record
    >>> Order = record("Order", id=int, city=str)
    >>> columns = columns_of_rows({Order(1, "Rome"): 2, Order(2, "Oslo"): -1}, Order, Texts())
    >>> columns.words(0).tolist(), columns.weights.tolist()
    ([1, 2], [2, -1])
    >>> dict(columns)
    {Order(id=1, city='Rome'): 2, Order(id=2, city='Oslo'): -1}
    """

    def __init__(
        self, type: Any, fields: Sequence[Any], weights: Any, texts: Texts,
        *, canonical: bool = False,
    ) -> None:  # fmt: skip
        self.type, self.weights, self.texts, self.canonical = type, weights, texts, canonical
        self.given = list(fields)

    @property
    def forms(self) -> tuple[WordForm, ...]:
        """How each field is words."""
        forms = forms_of(self.type)
        assert forms is not None
        return forms

    def words(self, at: int) -> Any:
        """The words of a field."""
        found = self.given[at]
        if callable(found):
            found = self.given[at] = found()
        return found

    @property
    def fields(self) -> list[Any]:
        """The words of all fields."""
        return [self.words(at) for at in range(len(self.given))]

    def taken(self, chosen: Any, *, canonical: bool = False) -> Columns:
        """Some of the rows: those at these places, or where a mask is true."""
        fields = [partial(_chosen, self, at, chosen) for at in range(len(self.given))]
        return Columns(self.type, fields, self.weights[chosen], self.texts, canonical=canonical)

    def consolidated(self) -> Columns:
        """The same change with every row once, and none of weight zero."""
        if self.canonical:
            return self
        return self.of_totals(RowTotals(matrix(self.fields), self.weights))

    def of_totals(self, totals: RowTotals) -> Columns:
        """Rows that were added up, as columns like these."""
        fields = list(totals.rows.T.copy())
        return Columns(self.type, fields, totals.weights, self.texts, canonical=True)

    def table(self, schema: Any) -> Any:
        """An Arrow table of this schema, whose last column are the weights: every row once."""
        import pyarrow as pa

        made = self.consolidated()
        arrays = [
            arrow_column(form, made.words(at), made.texts) for at, form in enumerate(made.forms)
        ]
        return pa.Table.from_arrays([*arrays, pa.array(made.weights)], schema=schema)

    # ---- as rows ----

    @cached_property
    def rows(self) -> dict[Any, int]:
        """The rows with their weights, those of equal rows added up."""
        lists = [decoded(form, self.words(at), self.texts) for at, form in enumerate(self.forms)]
        made = map(partial(tuple.__new__, self.type), zip(*lists, strict=True))
        weights = self.weights.tolist()
        if self.canonical:
            return dict(zip(made, weights, strict=True))
        found: dict[Any, int] = {}
        get = found.get
        for row, weight in zip(made, weights, strict=True):
            found[row] = get(row, 0) + weight
        return without_zeros(found)

    def __getitem__(self, row: Any) -> int:
        return self.rows[row]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.weights)

    def __bool__(self) -> bool:
        return len(self.weights) > 0

    def items(self) -> Any:
        return self.rows.items()

    def keys(self) -> Any:
        return self.rows.keys()

    def values(self) -> Any:
        return self.rows.values()

    def __eq__(self, other: object) -> bool:
        return self.rows == (other.rows if isinstance(other, Columns) else other)

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> dict[Any, int]:
        """The rows with their weights, in a dict."""
        return self.rows.copy()

    def __repr__(self) -> str:
        return repr(self.rows)


def _chosen(columns: Columns, at: int, chosen: Any) -> Any:
    return columns.words(at)[chosen]


def columns_of_rows(weights: Mapping[Any, int], row_type: Any, texts: Texts) -> Columns:
    """A change of rows as columns."""
    forms = forms_of(row_type)
    assert forms is not None
    if set(map(type, weights)) - {row_type}:
        raise DoesNotFit("a row of another type")
    lists: Sequence[Any] = list(zip(*weights, strict=True)) if weights else [()] * len(forms)
    fields = [encoded(form, values, texts) for form, values in zip(forms, lists, strict=True)]
    try:
        counts = np.fromiter(weights.values(), np.int64, len(weights))
    except OverflowError as error:
        raise DoesNotFit("a weight of more than 64 bits") from error
    made = Columns(row_type, fields, _moderate(counts), texts, canonical=True)
    if isinstance(weights, dict):
        made.__dict__["rows"] = weights
    return made


# ---- Arrow ----


def columns_of_table(table: Any, row_type: Any, texts: Texts) -> Columns:
    """A table of rows and weights as columns; it has the schema of the row type (see
    `ebbflow.engine.runtime.table.arrow`). Words are made when they are asked for."""
    forms = forms_of(row_type)
    assert forms is not None
    fields = [partial(arrow_words, form, table.column(at), texts) for at, form in enumerate(forms)]
    for at, form in enumerate(forms):
        if form.name == "int":  # of which some do not fit
            fields[at] = fields[at]()
    given = WEIGHT in table.schema.names
    weights = np.asarray(table.column(WEIGHT)) if given else np.ones(table.num_rows, np.int64)
    return Columns(row_type, fields, _moderate(weights), texts)


def _moderate(weights: Any) -> Any:
    """Weights, if they are no larger than can be added up without a care."""
    if len(weights) and (weights.max() > HEAVIEST or weights.min() < -HEAVIEST):
        raise DoesNotFit("a weight of more than 31 bits")
    return weights


def arrow_words(form: WordForm, column: Any, texts: Texts) -> Any:
    """The words of an Arrow column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    absent = np.asarray(array.is_null()) if array.null_count else None
    if absent is not None and not form.optional:
        raise DoesNotFit(f"None in a field of {form.name}")
    if form.name == "text":
        encoded = array.dictionary_encode()
        numbers = np.array(texts.words(encoded.dictionary.to_pylist()), np.int64)
        places = encoded.indices
        if absent is not None:
            places = places.fill_null(0)
            numbers = numbers if len(numbers) else np.zeros(1, np.int64)
        words = numbers[np.asarray(places)]
    elif form.name == "float":
        words = one_float(np.asarray(pc.fill_null(array, 0.0) if array.null_count else array))
    else:
        other = {"date": pa.int32(), "time": pa.int64(), "bool": pa.uint8()}.get(form.name)
        plain = array if other is None else array.cast(other)
        words = np.asarray(plain.fill_null(0) if array.null_count else plain)
        words = words.astype(np.int64, copy=absent is not None)
        if form.name == "int" and len(words) and words.min() == NULL:
            raise DoesNotFit("the smallest int of 64 bits")
    if absent is not None:
        words[absent] = NULL
    return words


def arrow_column(form: WordForm, words: Any, texts: Texts) -> Any:
    """Words as an Arrow array; the other way round."""
    import pyarrow as pa

    absent = words == NULL if form.optional else None
    if absent is not None and not absent.any():
        absent = None
    if form.name == "text":
        places = pa.array(words, mask=absent)
        return pa.DictionaryArray.from_arrays(*_dictionary(places, texts)).cast(pa.utf8())
    if form.name == "float":
        return pa.array(words.view(np.float64), mask=absent)
    if form.name == "bool":
        return pa.array(words != 0, mask=absent)
    if form.name == "date":
        days = words if absent is None else np.where(absent, 0, words)
        return pa.array(days.astype(np.int32), pa.date32(), mask=absent)
    if form.name == "time":
        return pa.array(words, pa.timestamp("us"), mask=absent)
    return pa.array(words, mask=absent)


def _dictionary(numbers: Any, texts: Texts) -> tuple[Any, Any]:
    """Numbers of texts as places in a dictionary of only those that are there."""
    import pyarrow as pa

    encoded = numbers.dictionary_encode()
    known = texts.known
    used = [known[number] for number in encoded.dictionary.to_pylist()]
    return encoded.indices, pa.array(used, pa.utf8())
