"""Columns of Arrow and NumPy as words, and words as such columns.

Where Arrow has numbers of 64 bits as words have them, nothing is copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.compiled import compiled
from ebbflow.kernel.decimal_words import arrow_of_words, words_of_arrow
from ebbflow.kernel.words import NULL, NumberedTexts, Texts, WordForm, decoded, one_float


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


class _Memory:
    """Numbers of 64 bits that Arrow has, as NumPy asks for them."""

    __slots__ = ("__array_interface__", "owner")


def memory_of(column: Any) -> Any:
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
        words = memory_of(column)
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
    elif form.digits is not None:
        words = words_of_arrow(array, form.digits)
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


def array_of_numbers(type: Any, words: Any) -> Any:
    """An Arrow array of numbers of 64 bits, none of them null; nothing is copied."""
    import pyarrow as pa

    return pa.Array.from_buffers(type, len(words), [None, pa.py_buffer(words)], 0)


def numpy_column(form: WordForm, words: Any, texts: Texts) -> Any:
    """Words as a NumPy array: of ints, floats, truth values and times of NumPy's own; of texts, of
    Decimals, and where there may be None, of Python's objects.

    >>> numpy_column(WordForm("date"), np.array([1, 2]), Texts()).tolist()
    [datetime.date(1970, 1, 2), datetime.date(1970, 1, 3)]
    """
    if form == _INT:
        return words.view()
    if form.optional or form.name in ("text", "decimal"):
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
        return array_of_numbers(pa.int64() if form.name == "int" else pa.float64(), words)
    if form.name == "text":
        places = pa.array(words, mask=absent)
        return pa.DictionaryArray.from_arrays(*_dictionary(places, texts)).cast(pa.utf8())
    if form.digits is not None:
        return arrow_of_words(words, form.digits, absent)
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
