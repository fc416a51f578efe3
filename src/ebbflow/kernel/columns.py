"""A change as columns: an array of words for each field, and an array of weights.

`Columns` stand wherever a change of rows stands: they are a mapping from row to weight, which is
made when somebody looks at it. A kernel looks at `words` instead, and no row is made.

Equal rows may be there several times, until they are `consolidated`; what is given to a user is.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain, repeat
from operator import countOf
from typing import Any

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arrow_words import (
    array_of_numbers,
    arrow_column,
    arrow_words,
    memory_of,
    numpy_column,
)
from ebbflow.kernel.compiled import compiled
from ebbflow.kernel.hashing import matrix
from ebbflow.kernel.messages import table_of_numbers
from ebbflow.kernel.pausing import pausing_gc
from ebbflow.kernel.pending import ArrowColumn, TakenRows
from ebbflow.kernel.rows import RowTotals
from ebbflow.kernel.words import (
    NULL,
    Texts,
    WordForm,
    decoded,
    encoded,
    forms_of,
    int_words,
)
from ebbflow.record import fields_of
from ebbflow.zset import without_zeros

WEIGHT = "__weight"
HEAVIEST = 1 << 31
FEW_NUMBERS = 1 << 6
"""Of so many rows of numbers, a table is made at once."""


class Columns(Mapping[Any, int]):
    """Rows of a type with weights, as columns.

    `fields` are the words of each field, or functions that give them, for those that may never be
    asked for; or the words of all in one array. `canonical` says that no row is there twice, and no
    weight is zero.

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
        self.type, self.weights, self.canonical = type, weights, canonical
        self.texts: Any = texts.now
        self.given: Any = fields if isinstance(fields, np.ndarray) else list(fields)

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

    @cached_property
    def matrix(self) -> Any:
        """The words of all fields, one row after the other."""
        return matrix(self.fields)

    @property
    def fields(self) -> Any:
        """The words of all fields."""
        for at, found in enumerate(self.given):
            if callable(found):
                self.given[at] = found()
        return self.given

    def taken(self, chosen: Any, *, canonical: bool = False) -> Columns:
        """Some of the rows: those at these places, or where a mask is true."""
        fields = [TakenRows(self.given, at, chosen) for at in range(len(self.given))]
        return Columns(self.type, fields, self.weights[chosen], self.texts, canonical=canonical)

    def consolidated(self) -> Columns:
        """The same change with every row once, and none of weight zero."""
        if self.canonical:
            return self
        return self.of_totals(RowTotals(self.matrix, self.weights))

    def of_totals(self, totals: RowTotals) -> Columns:
        """Rows that were added up, as columns like these."""
        fields = list(totals.rows.T.copy())
        return Columns(self.type, fields, totals.weights, self.texts, canonical=True)

    def table(self, schema: Any) -> Any:
        """An Arrow table of this schema, whose last column are the weights: every row once."""
        return self.consolidated().batch(schema)

    def batch(self, schema: Any) -> Any:
        """The same of rows as they are: equal ones are not added up."""
        import pyarrow as pa

        count = len(self.weights)
        if 0 < count <= FEW_NUMBERS and _are_numbers(self.type):
            numbers = b"".join([words.tobytes() for words in (*self.fields, self.weights)])
            return table_of_numbers(numbers, count, schema)
        arrays = [
            arrow_column(form, self.words(at), self.texts) for at, form in enumerate(self.forms)
        ]
        arrays.append(array_of_numbers(pa.int64(), np.ascontiguousarray(self.weights)))
        return pa.Table.from_arrays(arrays, schema=schema)

    def arrays(self) -> dict[str, Any]:
        """A NumPy array for each field, by its name, and one of the weights: every row once. They
        cannot be written to."""
        made, names = self.consolidated(), _names(self.type)
        found: dict[str, Any] = {}
        if type(made.given) is np.ndarray and _are_ints(made.type):
            found = dict(zip(names, read_only(made.given), strict=True))
            found[WEIGHT] = read_only(made.weights)
            return found
        for name, form, words in zip(names, made.forms, made.fields, strict=True):
            found[name] = numpy_column(form, words, made.texts)
        found[WEIGHT] = made.weights.view()
        for array in found.values():
            array.setflags(False)
        return found

    # ---- as rows ----

    @cached_property
    @pausing_gc
    def rows(self) -> dict[Any, int]:
        """The rows with their weights, those of equal rows added up."""
        if self.canonical:
            return dict(self.__dict__.get("listed") or self._pairs())
        found: dict[Any, int] = {}
        get = found.get
        for row, weight in self._pairs():
            found[row] = get(row, 0) + weight
        return without_zeros(found)

    @cached_property
    @pausing_gc
    def listed(self) -> list[tuple[Any, int]]:
        """The rows as they are, each with its weight: none is hashed."""
        return list(self._pairs())

    def _pairs(self) -> Iterator[tuple[Any, int]]:
        made = _rows(self.type, self.fields, self.texts)
        return zip(made, self.weights.tolist(), strict=True)

    def __getitem__(self, row: Any) -> int:
        return self.rows[row]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.weights)

    def __bool__(self) -> bool:
        return len(self.weights) > 0

    def items(self) -> Any:
        if self.canonical and "rows" not in self.__dict__:
            return ListedItems(self)
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


class ListedItems(ItemsView[Any, int]):
    """The items of columns whose rows are all different: who goes through them needs no dict, and
    who looks one up has one made."""

    __slots__ = ("_listed",)

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self._listed = columns.listed

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return iter(self._listed)


class OneArray(Columns):
    """Rows, all different, whose words are in one array: field by field, and last the weights.

    >>> from ebbflow.record import record
    >>> array = np.array([[7, 7], [3, 4], [-1, 1]])
    >>> sums = OneArray(record("Sum", key=int, total=int), array, Texts())
    >>> sums.rows, sums.arrays()["total"].tolist()
    ({Sum(key=7, total=3): -1, Sum(key=7, total=4): 1}, [3, 4])
    """

    def __init__(self, type: Any, array: Any, texts: Texts) -> None:
        self.type, self.array, self.canonical, self.texts = type, array, True, texts.now

    @cached_property
    def given(self) -> Any:
        return self.array[:-1]

    @cached_property
    def weights(self) -> Any:
        return self.array[-1]

    def batch(self, schema: Any) -> Any:
        array, row_type = self.array, self.type
        if 0 < array.shape[1] <= FEW_NUMBERS and _are_numbers(row_type):
            return table_of_numbers(array.tobytes(), array.shape[1], schema)
        return super().batch(schema)

    def arrays(self) -> dict[str, Any]:
        if not _are_ints(self.type):
            return super().arrays()
        return dict(zip(_weighted_names(self.type), read_only(self.array), strict=True))

    def __len__(self) -> int:
        return len(self.array[-1])

    def __bool__(self) -> bool:
        return bool(self.array.size)


def read_only(array: Any) -> Any:
    """An array that cannot be written to, in the same memory."""
    made = array.view()
    made.setflags(False)
    return made


def _rows(row_type: Any, fields: Any, texts: Texts) -> Iterator[Any]:
    """The rows that have these words."""
    if _are_ints(row_type):
        whole = isinstance(fields, np.ndarray)
        lists = fields.tolist() if whole else [words.tolist() for words in fields]
    else:
        forms = forms_of(row_type) or ()
        pairs = zip(forms, fields, strict=True)
        lists = [decoded(form, words, texts) for form, words in pairs]
    return map(tuple.__new__, repeat(row_type), zip(*lists, strict=True))


@cache
def _names(row_type: Any) -> tuple[str, ...]:
    return tuple(fields_of(row_type) or ())


@cache
def _weighted_names(row_type: Any) -> tuple[str, ...]:
    return (*_names(row_type), WEIGHT)


@cache
def _are_ints(row_type: Any) -> bool:
    """Whether all fields are ints, and none may be None."""
    return {*(forms_of(row_type) or ())} == {WordForm("int")}


@cache
def _are_numbers(row_type: Any) -> bool:
    """Whether all fields are ints or floats, and none may be None."""
    return {*(forms_of(row_type) or ())} <= {WordForm("int"), WordForm("float")}


def columns_of_rows(weights: Mapping[Any, int], row_type: Any, texts: Texts) -> Columns:
    """A change of rows as columns."""
    forms = forms_of(row_type)
    assert forms is not None
    if countOf(map(type, weights), row_type) < len(weights):
        raise DoesNotFit("a row of another type")
    fields = _of_ints(weights, len(forms)) if _are_ints(row_type) else None
    if fields is None:
        lists: Sequence[Any] = list(zip(*weights, strict=True)) if weights else [()] * len(forms)
        fields = [encoded(form, values, texts) for form, values in zip(forms, lists, strict=True)]
    try:
        counts = np.fromiter(weights.values(), np.int64, len(weights))
    except OverflowError as error:
        raise DoesNotFit("a weight of more than 64 bits") from error
    made = Columns(row_type, fields, _moderate(counts), texts, canonical=True)
    if isinstance(weights, dict):
        made.__dict__["rows"] = weights if type(weights) is dict else dict(weights)
    return made


def _of_ints(rows: Iterable[Any], width: int) -> Any:
    """The words of rows of ints, field by field; None where others are among them."""
    values = list(chain.from_iterable(rows))
    if countOf(map(type, values), int) < len(values):
        return None
    return int_words(values).reshape(-1, width).T.copy()


# ---- Arrow ----


def columns_of_table(table: Any, row_type: Any, texts: Texts) -> Columns:
    """A table of rows and weights as columns; it has the schema of the row type (see
    `ebbflow.engine.runtime.table.arrow`). Words are made when they are asked for."""
    forms, now = forms_of(row_type), texts.now
    assert forms is not None
    fields = [
        arrow_words(form, table.column(at), now)
        if form.name in ("int", "decimal")  # some values may not fit
        else ArrowColumn(form, table.column(at), now)
        for at, form in enumerate(forms)
    ]
    if table.num_columns > len(forms):
        weights = memory_of(table.column(len(forms)))
        if weights is None:
            weights = np.array(table.column(len(forms)))
    else:
        weights = np.ones(table.num_rows, np.int64)
    return Columns(row_type, fields, _moderate(weights), texts)


def _moderate(weights: Any) -> Any:
    """Weights, if they are no larger than can be added up without a care."""
    if beyond(weights, HEAVIEST):
        raise DoesNotFit("a weight of more than 31 bits")
    return weights


@compiled
def beyond(weights: Any, most: int) -> bool:
    """Whether a number is larger than so much, or smaller than the same below zero.

    >>> beyond(np.array([1, -9]), 8), beyond(np.array([8]), 8)
    (True, False)
    """
    found = False
    for i in range(len(weights)):
        found |= weights[i] > most or weights[i] < -most
    return found


@compiled
def out_of_range(words: Any, ints: Any, most: int) -> bool:
    """Whether words of several fields, of which some are `ints`, and last the weights, have an int
    that does not fit, or a weight that is zero or larger than so much.

    >>> out_of_range(np.array([[3, NULL], [1, 1]]), np.array([True]), 8)
    True
    >>> out_of_range(np.array([[3, NULL], [1, 1]]), np.array([False]), 8)
    False
    """
    found = False
    last = len(words) - 1
    for j in range(last):
        if ints[j]:
            for i in range(words.shape[1]):
                found |= words[j, i] == NULL
    for i in range(words.shape[1]):
        weight = words[last, i]
        found |= weight == 0 or weight > most or weight < -most
    return found
