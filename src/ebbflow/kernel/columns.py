"""A change as columns: an array of words for each field, and an array of weights.

`Columns` stand wherever a change of rows stands: they are a mapping from row to weight, which is
made when somebody looks at it. A kernel looks at `words` instead, and no row is made.

Equal rows may be there several times, until they are `consolidated`; what is given to a user is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain, repeat
from operator import countOf
from typing import Any

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.compiled import compiled
from ebbflow.kernel.hashing import matrix
from ebbflow.kernel.messages import table_of_numbers
from ebbflow.kernel.rows import RowTotals
from ebbflow.kernel.words import (
    NULL,
    NumberedTexts,
    Texts,
    WordForm,
    decoded,
    encoded,
    forms_of,
    int_words,
    one_float,
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
        fields = [_Chosen(self.given, at, chosen) for at in range(len(self.given))]
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
        arrays.append(_array(pa.int64(), np.ascontiguousarray(self.weights)))
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
    def rows(self) -> dict[Any, int]:
        """The rows with their weights, those of equal rows added up."""
        if self.canonical:
            return rows_of_words(self.type, self.fields, self.weights, self.texts)
        found: dict[Any, int] = {}
        get = found.get
        made = _rows(self.type, self.fields, self.texts)
        for row, weight in zip(made, self.weights.tolist(), strict=True):
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


class FewColumns(Columns):
    """A few rows, all different, that were given as columns: words are made where they are asked
    for.

    >>> FewColumns(int, {}, Texts()).canonical
    True
    """

    def __init__(self, type: Any, rows: dict[Any, int], texts: Texts) -> None:
        self.type, self.canonical, self.texts = type, True, texts.now
        self.__dict__["rows"] = rows

    @cached_property
    def _columns(self) -> Columns:
        return columns_of_rows(self.rows, self.type, self.texts)

    @cached_property
    def given(self) -> Any:
        return self._columns.given

    @cached_property
    def weights(self) -> Any:
        return self._columns.weights

    def __len__(self) -> int:
        return len(self.rows)

    def __bool__(self) -> bool:
        return bool(self.rows)


def read_only(array: Any) -> Any:
    """An array that cannot be written to, in the same memory."""
    made = array.view()
    made.setflags(False)
    return made


def rows_of_words(row_type: Any, fields: Any, weights: Any, texts: Texts) -> dict[Any, int]:
    """Rows that are all different, with their weights, from the words of their fields."""
    return dict(zip(_rows(row_type, fields, texts), weights.tolist(), strict=True))


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
def _are_ints(row_type: Any) -> bool:
    """Whether all fields are ints, and none may be None."""
    return {*(forms_of(row_type) or ())} == {WordForm("int")}


@cache
def _are_numbers(row_type: Any) -> bool:
    """Whether all fields are ints or floats, and none may be None."""
    return {*(forms_of(row_type) or ())} <= {WordForm("int"), WordForm("float")}


class Pending:
    """The words of a field that are made when somebody asks for them by calling it, and once."""

    __slots__ = ("made",)

    made: Any

    def __call__(self) -> Any:
        """The words of all rows."""
        raise NotImplementedError

    def chosen(self, rows: Any) -> Any:
        """The words of some rows."""
        return self()[rows]

    def unnumbered(self) -> tuple[list[str], Any] | None:
        """Of a field of texts that have no numbers yet: the texts, and which of them each row has,
        or None where each has its own. None where their words are at hand, or as soon made."""
        return None


class _ArrowColumn(Pending):
    """The words of an Arrow column."""

    __slots__ = ("column", "form", "texts")

    def __init__(self, form: WordForm, column: Any, texts: NumberedTexts) -> None:
        self.form, self.column, self.texts, self.made = form, column, texts, None

    def __call__(self) -> Any:
        if self.made is None:
            self.made = arrow_words(self.form, self.column, self.texts)
        return self.made

    def unnumbered(self) -> tuple[list[str], Any] | None:
        if self.made is not None or self.form.name != "text" or self.column.null_count:
            return None
        encoded = self.column.combine_chunks().dictionary_encode()
        if hasattr(encoded, "num_chunks"):
            return None
        return encoded.dictionary.to_pylist(), np.asarray(encoded.indices)


class _Chosen(Pending):
    """Those of some rows of a field that is among `given`."""

    __slots__ = ("at", "given", "rows")

    def __init__(self, given: Any, at: int, rows: Any) -> None:
        self.given, self.at, self.rows, self.made = given, at, rows, None

    def __call__(self) -> Any:
        if self.made is None:
            self.made = self._at(self.rows)
        return self.made

    def chosen(self, rows: Any) -> Any:
        return self._at(self.rows[rows]) if self.made is None else self.made[rows]

    def unnumbered(self) -> tuple[list[str], Any] | None:
        found = self.given[self.at]
        apart = None
        if self.made is None and isinstance(found, Pending):
            apart = found.unnumbered()
        if apart is None:
            return None
        texts, places = apart
        rows = np.arange(len(texts))[self.rows] if places is None else places[self.rows]
        used, places = np.unique(rows, return_inverse=True)
        return [texts[at] for at in used.tolist()], places

    def _at(self, rows: Any) -> Any:
        found = self.given[self.at]
        if isinstance(found, Pending):
            return found.chosen(rows)
        return (found() if callable(found) else found)[rows]


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
        made.__dict__["rows"] = weights
    return made


def _of_ints(rows: Iterable[Any], width: int) -> list[Any] | None:
    """The fields of rows of ints, read one after the other; None where others are among them."""
    values = list(chain.from_iterable(rows))
    if countOf(map(type, values), int) < len(values):
        return None
    words = int_words(values).reshape(-1, width)
    return list(words.T.copy())


# ---- Arrow ----


def columns_of_table(table: Any, row_type: Any, texts: Texts) -> Columns:
    """A table of rows and weights as columns; it has the schema of the row type (see
    `ebbflow.engine.runtime.table.arrow`). Words are made when they are asked for."""
    forms, now = forms_of(row_type), texts.now
    assert forms is not None
    fields = [
        arrow_words(form, table.column(at), now)
        if form.name == "int"  # of which some do not fit
        else _ArrowColumn(form, table.column(at), now)
        for at, form in enumerate(forms)
    ]
    if table.num_columns > len(forms):
        weights = _memory(table.column(len(forms)))
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
def holds(words: Any, word: int) -> bool:
    """Whether a word is among words.

    >>> holds(np.array([3, 5]), 5)
    True
    """
    found = False
    for i in range(len(words)):
        found |= words[i] == word
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


class _Memory:
    """Numbers of 64 bits that Arrow has, as NumPy asks for them."""

    __slots__ = ("__array_interface__", "owner")


def _memory(column: Any) -> Any:
    """The numbers of 64 bits in an Arrow column, where they are one after the other and none is
    null; None where they are not. Nobody may write to them, though it would be possible: loops are
    compiled once for arrays that can be written to, and once more for others."""
    array = column
    if hasattr(column, "num_chunks"):
        if column.num_chunks != 1:
            return None
        array = column.chunk(0)
    if array.null_count:
        return None
    count, buffer = len(array), array.buffers()[1]
    if buffer is None or not count:
        return None
    made: Any = _Memory()
    made.owner = buffer
    made.__array_interface__ = {
        "shape": (count,), "typestr": _INT64, "version": 3,
        "data": (buffer.address + 8 * array.offset, False),
    }  # fmt: skip
    return np.asarray(made)


_INT64 = np.dtype(np.int64).str
_INT = WordForm("int")


def arrow_words(form: WordForm, column: Any, texts: Texts | NumberedTexts) -> Any:
    """The words of an Arrow column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if form.name in ("int", "float") and column.type.bit_width == 64:
        words = _memory(column)
        if words is not None and form.name == "float":
            return one_float(words.view(np.float64))
        if words is not None:
            return _without_null(words)
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
        words = words.astype(np.int64)  # a copy, which can be written to
        if form.name == "int":
            _without_null(words)
    if absent is not None:
        words[absent] = NULL
    return words


def _without_null(words: Any) -> Any:
    """Words of ints, if none of them is what None is."""
    if holds(words, NULL):
        raise DoesNotFit("the smallest int of 64 bits")
    return words


def _array(type: Any, words: Any) -> Any:
    """An Arrow array of numbers of 64 bits, none of them null; nothing is copied."""
    import pyarrow as pa

    return pa.Array.from_buffers(type, len(words), [None, pa.py_buffer(words)], 0)


def numpy_column(form: WordForm, words: Any, texts: Texts) -> Any:
    """Words as a NumPy array: of ints, floats, truth values and times of NumPy's own; of texts, and
    where there may be None, of Python's objects.

    >>> numpy_column(WordForm("date"), np.array([1, 2]), Texts()).tolist()
    [datetime.date(1970, 1, 2), datetime.date(1970, 1, 3)]
    """
    if form == _INT:
        return words.view()
    if form.optional or form.name == "text":
        made = np.empty(len(words), object)
        made[:] = decoded(form, words, texts)
        return made
    if form.name == "bool":
        return words != 0
    if form.name == "date":
        return words.view("datetime64[D]")
    return words.view("float64" if form.name == "float" else "datetime64[us]")


def arrow_column(form: WordForm, words: Any, texts: Texts) -> Any:
    """Words as an Arrow array; the other way round."""
    import pyarrow as pa

    absent = words == NULL if form.optional and holds(words, NULL) else None
    if absent is None and form.name in ("int", "float") and words.flags.c_contiguous:
        return _array(pa.int64() if form.name == "int" else pa.float64(), words)
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
