"""The cells of groups, and the columns that they are stored in.

A `StoredCell` says of each value that is stored of a group which cells of a kernel it is made of
(`ebbflow.engine.runtime.columnar.slots`). So rows and columns read what the other has written. A
value that has no cells here, such as a sum of floats with an infinity in it, raises `DoesNotFit`.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ebbflow.decimals import MOST
from ebbflow.engine.runtime.columnar.packed import BYTES, GroupValues, pack, unpack
from ebbflow.engine.runtime.columnar.slots import (
    Accumulated,
    AllValues,
    DecimalTotal,
    FirstValue,
    Number,
    Others,
    PackedCells,
    Slot,
    Times,
)
from ebbflow.engine.runtime.columnar.written import KeptNumbers
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arrow_words import arrow_column, arrow_words
from ebbflow.kernel.decimal_words import texts_of_words, words_of_texts
from ebbflow.kernel.groups import Groups
from ebbflow.kernel.words import NULL, Texts, WordForm, encoded
from ebbflow.state.spine.columns import PICKLE, PICKLED, ColumnShape, decode

Found = tuple[str, Any]
"""A column that was found: its encoding, and the values."""
INT = WordForm("int", optional=True)
ENCODINGS = {
    "int": {"int8", "int16", "int32", "int"},
    "float": {"float"},
    "bool": {"bool"},
    "text": {"text", "text64"},
    "date": {"date16", "date"},
    "time": {"time"},
    "decimal": {"decimal"},
}
"""For each form of words the columns that can be read as they are."""


class StoredCell(NamedTuple):
    """How the cells of a kernel are stored: as one value or as a tuple, what each value of it is
    made of, and how many cells there are."""

    how: str
    slots: tuple[Slot, ...]
    width: int

    def columns(
        self, cells: Any, texts: Texts, held: Callable[[int], Any] | None = None
    ) -> tuple[ColumnShape, list[Any]]:
        """Cells as what is stored; `held` gives the values of their groups that a reducer with some
        number looks at."""
        found = [
            (BYTES, pack(slot.forms, GroupValues(*held(slot.number)), len(cells), texts))
            if isinstance(slot, AllValues) and held is not None
            else _column(slot, cells, texts)
            for slot in self.slots
        ]
        return ColumnShape(self.how, tuple(name for name, _ in found)), [each for _, each in found]

    def cells(self, shape: ColumnShape, columns: Sequence[Found], texts: Texts) -> Any:
        """The cells that are stored in some columns."""
        if shape.how != self.how or len(columns) != len(self.slots):
            raise DoesNotFit("a cell of another shape")
        cells = np.zeros((len(columns[0][1]), self.width), np.int64)
        for slot, column in zip(self.slots, columns, strict=True):
            _fill(slot, cells, column, texts)
        return cells

    def values(self, columns: Sequence[Found], texts: Texts) -> Iterator[tuple[int, GroupValues]]:
        """The values of groups that are stored in some columns: the number of the reducer that
        looks at them, and the values."""
        for slot, column in zip(self.slots, columns, strict=True):
            if isinstance(slot, AllValues):
                yield slot.number, unpack(slot.forms, column, texts)


COUNT = StoredCell("one", (Number(0),), 1)
"""A cell that is a number of rows."""


def cell_of(parts: Sequence[Sequence[Slot]], groups: Groups) -> StoredCell:
    """How the cells of a group-by are stored, of which these are the reducers."""
    width = groups.cells.shape[1]
    slots: list[Slot] = [None, Number(0)]
    for part in parts:
        slots += [Number(width + s.number) if isinstance(s, Times) else s for s in part]
    return StoredCell("tuple", tuple(slots), width + groups.looked)


def words_of(found: Found, form: WordForm, texts: Texts) -> Any:
    """A column that was found, as words."""
    encoding, column = found
    if encoding == form.name == "decimal":
        words = words_of_texts(column, form.scale)
        if column.null_count:
            if not form.optional:
                raise DoesNotFit("None in a field of decimal")
            words[np.asarray(column.is_null())] = NULL
        return words
    if encoding in ENCODINGS[form.name]:
        return arrow_words(form, column, texts)
    return encoded(form, decode(ColumnShape("one", (encoding,)), [column]), texts)


def stored_column(form: WordForm, words: Any, texts: Texts) -> Any:
    """Words as the column that is stored: of Decimals their texts."""
    words = np.ascontiguousarray(words)
    if form.digits is None:
        return arrow_column(form, words, texts)
    absent = words == NULL if form.optional else None
    return texts_of_words(words, form.scale, absent)


def _column(slot: Slot, cells: Any, texts: Texts) -> Found:
    match slot:
        case Number(at):
            return "int", pa.array(np.ascontiguousarray(cells[:, at]))
        case Others(counted, true):
            return "int", pa.array(cells[:, counted] - cells[:, true])
        case PackedCells(places, counted):
            known = None if counted is None else cells[:, counted]
            return "bytes", _packed(cells[:, places], known)
        case Accumulated(places, kept):
            return _accumulators(cells[:, places], kept)
        case DecimalTotal(counted, total, scale):
            sums = np.ascontiguousarray(cells[:, total])
            return "decimal", texts_of_words(sums, scale, cells[:, counted] == 0)
        case FirstValue(at, form):
            return form.name, stored_column(form, cells[:, at], texts)
    return "none", pa.nulls(len(cells))


def _fill(slot: Slot, cells: Any, column: Found, texts: Texts) -> None:
    """Have what is stored in a column in the cells."""
    match slot:
        case Number(at):
            cells[:, at] = _numbers(column, texts)
        case Others(counted, true):
            cells[:, counted] = cells[:, true] + _numbers(column, texts)
        case PackedCells(places, _):
            cells[:, places] = _unpacked(column, len(places))
        case Accumulated(places, kept):
            cells[:, places] = _of_accumulators(column, kept, texts)
        case DecimalTotal(_, total, scale):
            sums = words_of(column, WordForm("decimal", True, (MOST, scale)), texts)
            cells[:, total] = np.where(sums == NULL, 0, sums)
        case FirstValue(at, form):
            cells[:, at] = words_of(column, form, texts)


def _accumulators(cells: Any, kept: KeptNumbers) -> Found:
    """Accumulators as the column that rows store them in."""
    if kept.several is not None:
        pickles = [pickle.dumps(kept.of_cells(row), PICKLE) for row in cells.tolist()]
        return PICKLED, pa.array(pickles, pa.large_binary())
    (form,), (none,) = kept.accumulator
    numbers = np.ascontiguousarray(cells[:, 0]) ^ none
    return form, pa.array(numbers if form == "int" else numbers != 0)


def _of_accumulators(column: Found, kept: KeptNumbers, texts: Texts) -> Any:
    """The cells of accumulators that are stored."""
    if kept.several is not None:
        encoding, array = column
        return kept.cells(decode(ColumnShape("one", (encoding,)), [array]))
    (form,), (none,) = kept.accumulator
    return words_of(column, WordForm(form), texts).reshape(-1, 1) ^ none


def _numbers(column: Found, texts: Texts) -> Any:
    """Whole numbers; what is not there is zero."""
    words = words_of(column, INT, texts)
    return np.where(words == NULL, 0, words) if column[1].null_count else words


def _packed(words: Any, counted: Any) -> Any:
    """Rows of words as bytes, the lowest word first; none where nothing is counted."""
    there = None if counted is None or counted.all() else counted != 0
    kept = words if there is None else words[there]
    size = 8 * words.shape[1]
    sizes = np.full(len(words), size, np.int32)
    if there is not None:
        sizes[~there] = 0
    ends = np.concatenate([np.zeros(1, np.int32), np.cumsum(sizes, dtype=np.int32)])
    data = pa.py_buffer(np.ascontiguousarray(kept, "<i8"))
    known = None if there is None else pa.array(there).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), len(words), [known, pa.py_buffer(ends), data])


def _unpacked(column: Found, width: int) -> Any:
    """The words again; zeros where nothing was counted."""
    encoding, array = column
    if encoding not in ("bytes", "bytes64"):
        values = decode(ColumnShape("one", (encoding,)), [array])
        if any(value is not None and type(value) is not bytes for value in values):
            raise DoesNotFit("a sum that has no columns")
        array = pa.array(values, pa.binary())
    there = array.drop_null()
    if len(there) and pc.min_max(pc.binary_length(there)).as_py() != {
        "min": 8 * width, "max": 8 * width,
    }:  # fmt: skip
        raise DoesNotFit("a sum that has no columns")
    found = np.zeros((len(array), width), np.int64)
    if not len(there):
        return found
    _, begins, data = there.buffers()
    begin = np.frombuffer(begins, np.int64 if pa.types.is_large_binary(there.type) else np.int32)
    words = np.frombuffer(data, "<i8", len(there) * width, begin[there.offset])
    if len(there) == len(array):
        found[:] = words.reshape(-1, width)
    else:
        found[array.is_valid().to_numpy(zero_copy_only=False)] = words.reshape(-1, width)
    return found
