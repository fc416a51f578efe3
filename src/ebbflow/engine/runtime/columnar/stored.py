"""Words, and the columns that state is stored in.

Where state is stored, keys and rows are Arrow columns already (`ebbflow.state.spine`). A stage on
columns that has its state there looks up the keys that a change touches, by their hashes, and gets
words; what it did becomes columns again, and a new segment. No row is made on the way.

    Asked           keys as words, to be found in a spine
    StoredForm      keys or rows as words, and as the columns that are stored
    StoredWeights   rows with weights, as an input or an output keeps them

What was written by the row path is read here, and the other way round: the columns are the same.
What words do not hold raises `DoesNotFit`, and nothing has been staged then.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ebbflow.engine.runtime.columnar.keyed_input import RowsByKey
from ebbflow.engine.runtime.columnar.packed import GroupValues
from ebbflow.engine.runtime.columnar.stored_cells import (
    COUNT,
    ENCODINGS,
    StoredCell,
    stored_column,
    words_of,
)
from ebbflow.expression import Tuple
from ebbflow.fn import Fn
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arithmetic import NotInColumns
from ebbflow.kernel.columns import Columns
from ebbflow.kernel.groups import Groups
from ebbflow.kernel.hashing import matrix
from ebbflow.kernel.words import Texts, WordForm, forms_of
from ebbflow.state.spine import Spine
from ebbflow.state.spine.columns import ANYTHING, PICKLE, ColumnShape
from ebbflow.state.spine.columns_hash import column_hashes
from ebbflow.state.spine.hashing import row_words
from ebbflow.state.spine.lookup import FoundEntries, entries_of, pairs_of


def shape_of(how: str, forms: Sequence[WordForm]) -> ColumnShape:
    """How values of these forms are stored."""
    return ColumnShape(how, tuple(form.name for form in forms))


def of_keys(forms: Sequence[WordForm]) -> ColumnShape:
    """How keys are stored: one value, or a tuple of several; where all rows have one key, an empty
    tuple, which is pickled."""
    if not forms:
        return ANYTHING
    return shape_of("one" if len(forms) == 1 else "tuple", forms)


def require_plain(key: Fn, forms: Sequence[WordForm]) -> None:
    """Refuse a key that is a tuple of one value, which words do not tell from the value, and one
    that is always None."""
    if isinstance(key.expression, Tuple) and len(key.expression.items) < 2:
        raise NotInColumns("its key is a tuple of one value")
    if any(form.name not in ENCODINGS for form in forms):
        raise NotInColumns("its key is None")


def arrays_of(forms: Sequence[WordForm], words: Sequence[Any], texts: Texts) -> list[Any]:
    """Words as the columns that are stored."""
    pairs = zip(forms, words, strict=True)
    return [stored_column(form, each, texts) for form, each in pairs]


def key_arrays(forms: Sequence[WordForm], keys: Any, texts: Texts) -> list[Any]:
    """Keys as the columns that are stored."""
    if forms:
        return arrays_of(forms, list(keys.T), texts)
    return [pa.array([_NO_KEY] * len(keys), pa.large_binary())]


_NO_KEY = pickle.dumps((), PICKLE)


KeptValues = tuple[int, GroupValues]
"""The number of a reducer that looks at values, and values of groups."""


class StoredForm(NamedTuple):
    """How keys, or rows, are stored, and the forms of their words."""

    shape: ColumnShape
    forms: Sequence[WordForm]

    def words(self, how: ColumnShape, columns: Sequence[Any], texts: Texts) -> Any:
        """Stored columns as rows of words."""
        if self.shape == how == ANYTHING:
            return np.empty((len(columns[0]), 0), np.int64)
        if how.how != self.shape.how or len(how.encodings) != len(self.forms):
            raise DoesNotFit("values that are pickled")
        triples = zip(how.encodings, columns, self.forms, strict=True)
        return matrix([words_of((name, each), form, texts) for name, each, form in triples])

    def columns(self, words: Any, texts: Texts) -> tuple[ColumnShape, list[Any]]:
        """Rows of words as what is stored."""
        return self.shape, key_arrays(self.forms, words, texts)


def keys_form(forms: Sequence[WordForm]) -> StoredForm:
    """Keys of these forms."""
    return StoredForm(of_keys(forms), forms)


def records_form(row_type: Any) -> StoredForm:
    """Rows of a type that has columns."""
    forms = forms_of(row_type) or ()
    return StoredForm(shape_of("record", forms), forms)


class Asked:
    """Keys, or rows, of words, all different, that are looked up in a spine."""

    def __init__(self, shape: ColumnShape, forms: Sequence[WordForm], keys: Any, texts: Texts):
        self.shape, self.forms, self.keys, self.texts = shape, forms, keys, texts
        self.arrays = key_arrays(forms, keys, texts)
        hash = column_hashes(shape, self.arrays)
        self.order = np.argsort(hash)
        self.wanted = hash[self.order]
        if (self.wanted[1:] == self.wanted[:-1]).any():
            raise DoesNotFit("two keys of one hash")

    def found(self, spine: Spine) -> Iterator[tuple[Any, FoundEntries]]:
        """What a spine has of them, the oldest first: of each entry which key it has."""
        for found in entries_of([*spine.segments, *spine.staged], self.wanted):
            at = self.order[found.owners]
            same = self._same(found, at)
            yield at[same], found.chosen(same)

    def _same(self, found: FoundEntries, at: Any) -> Any:
        return alike(found.form.key, self.shape, found.key, self.forms, self.keys, at, self.texts)

    def last(self, spine: Spine) -> Iterator[tuple[Any, FoundEntries]]:
        """What a spine has of them now: of each entry which key it has."""
        found = list(self.found(spine))
        last = np.full(len(self.keys), -1)
        for number, (at, _) in enumerate(found):
            last[at] = number
        for number, (at, entries) in enumerate(found):
            live = (entries.counts != 0) & (last[at] == number)
            if live.any():
                yield at[live], entries.chosen(live)

    def values(self, spine: Spine, cell: StoredCell) -> Any:
        """The cells of all keys; zeros for keys that are not there."""
        return self.groups(spine, cell)[0]

    def groups(self, spine: Spine, cell: StoredCell) -> tuple[Any, list[KeptValues]]:
        """The cells of all keys, and the values that are stored of them beside cells."""
        cells = np.zeros((len(self.keys), cell.width), np.int64)
        kept: list[KeptValues] = []
        for at, there in self.last(spine):
            row = there.form.row
            columns = [there.row(j) for j in range(len(row.encodings))]
            cells[at] = cell.cells(row, columns, self.texts)
            for number, (owners, *values) in cell.values(columns, self.texts):
                kept.append((number, GroupValues(at[owners], *values)))
        return cells, kept


def alike(
    shape: ColumnShape, wanted: ColumnShape, column: Any, forms: Sequence[WordForm], asked: Any,
    at: Any, texts: Texts,
) -> Any:  # fmt: skip
    """Which of the entries that were found are those that were meant, which are `at` these places
    of the words that were asked for."""
    if shape == wanted == ANYTHING:
        return np.ones(len(at), np.bool_)
    if shape.how != wanted.how or len(shape.encodings) != len(forms):
        raise DoesNotFit("values that are pickled")
    same = np.ones(len(at), np.bool_)
    for j, form in enumerate(forms):
        same &= words_of(column(j), form.or_none, texts) == asked[at, j]
    return same


def stored_weights(
    spine: Spine, key: StoredForm, keys: Any, row: StoredForm, rows: Any, texts: Texts
) -> Any:  # fmt: skip
    """How often rows are in a bag, each given with its key. Equal rows have equal keys, so only
    rows are compared."""
    owners, words = (
        column_hashes(*side.columns(given, texts)) for side, given in ((key, keys), (row, rows))
    )
    words = row_words(words)
    order = np.lexsort((words, owners))
    totals = np.zeros(len(order), np.int64)
    for found in pairs_of([*spine.segments, *spine.staged], owners[order], words[order]):
        at = order[found.owners]
        same = alike(found.form.row, row.shape, found.row, row.forms, rows, at, texts)
        np.add.at(totals, at[same], found.counts[same])
    return totals


def stored_rows(spine: Spine, asked: Asked, row_type: Any) -> tuple[Columns, Any]:
    """The rows of some keys, and of each which key it has. A row may come several times, with
    weights that add up."""
    forms, texts = forms_of(row_type) or (), asked.texts
    entries: list[FoundEntries] = []
    places: list[Any] = []
    for at, found in asked.found(spine):
        if found.form.row.how != "record" or len(found.form.row.encodings) != len(forms):
            raise DoesNotFit("rows that are pickled")
        entries.append(found)
        places.append(at)
    at = np.concatenate(places) if places else np.empty(0, np.int64)
    counts = np.concatenate([each.counts for each in entries]) if entries else at
    fields = [partial(_field, entries, i, form, texts) for i, form in enumerate(forms)]
    return Columns(row_type, fields, counts, texts, canonical=len(entries) < 2), at


def _field(entries: Sequence[FoundEntries], field: int, form: WordForm, texts: Texts) -> Any:
    """A field of the rows that were found."""
    found = [words_of(each.row(field), form, texts) for each in entries]
    if not found:
        return np.empty(0, np.int64)
    return found[0] if len(found) == 1 else np.concatenate(found)


class StoredWeights:
    """The rows of an input or an output, each with its weight, in a spine: what
    `ebbflow.engine.runtime.rows.Rows` is to rows."""

    def __init__(self, row_type: Any, texts: Texts) -> None:
        self.forms, self.texts = forms_of(row_type) or (), texts
        self.shape = shape_of("record", self.forms)
        self.ready: tuple[Spine, Asked, Any] | None = None

    def apply(self, spine: Spine, change: Columns) -> Columns:
        """Be ready to add a change, and give it with every row once."""
        made = change.consolidated()
        asked = Asked(self.shape, self.forms, matrix(made.fields), self.texts)
        after = asked.values(spine, COUNT)[:, 0] + made.weights
        if len(after) and after.min() < 0:
            raise DoesNotFit("a row is taken away that is not there")
        self.ready = spine, asked, after
        return made

    def stage(self) -> None:
        """Stage what was prepared."""
        if self.ready is not None:
            (spine, asked, after), self.ready = self.ready, None
            keys = asked.shape, asked.arrays
            stage_values(spine, keys, COUNT, after.reshape(-1, 1), self.texts)


def stage_values(
    spine: Spine, keys: tuple[ColumnShape, Sequence[Any]], cell: StoredCell, cells: Any,
    texts: Texts,
) -> None:  # fmt: skip
    """Stage cells for keys; none where the first, the size, is zero."""
    spine.append_columns(keys, cell.columns(cells, texts), live=cells[:, 0] != 0)


def stage_rows(spine: Spine, there: RowsByKey, keys: Any, rows: Any, gone: Any) -> None:
    """Stage rows by key, and that there are none of some other keys, which are `there` now."""
    key, row, texts = keys_form(there.key.forms), records_form(there.type), there.texts
    old = there.words[there.table.find(gone)]
    names = key.columns(np.concatenate([keys, gone]), texts)
    columns = row.columns(np.concatenate([rows, old]), texts)
    spine.append_columns(names, columns, live=np.arange(len(keys) + len(gone)) < len(keys))


def load(
    groups: Groups, keys: Any, shape: ColumnShape, forms: Sequence[WordForm], spine: Spine,
    cell: StoredCell, texts: Texts,
) -> tuple[Any, Any, list[KeptValues]]:  # fmt: skip
    """Have the cells of some keys in a kernel that has none yet; gives their slots, what is stored
    behind the cells, and the values of groups, which `put_values` puts there."""
    groups.table.add(keys)
    groups.fit()
    slots = groups.table.used()
    asked = Asked(shape, forms, groups.table.keys[slots], texts)
    found, kept = asked.groups(spine, cell)
    width = groups.cells.shape[1]
    groups.cells[slots] = found[:, :width]
    groups.show(slots)
    return slots, found[:, width:], kept


def stage_cells(
    groups: Groups, shape: ColumnShape, forms: Sequence[WordForm], spine: Spine,
    cell: StoredCell, texts: Texts,
) -> None:  # fmt: skip
    """Stage the cells that the epoch has changed; where values are looked at, all that it touched,
    as these are no cells."""
    for note in groups.journal or ():
        slots, old = note.done
        cells, held = groups.cells[slots], None
        if groups.values is None:
            changed = (cells != old).any(axis=1)
            slots, cells = slots[changed], cells[changed]
        else:
            cells = np.concatenate([cells, groups.values.times(slots)], axis=1)
            held = partial(groups.values.held, slots=slots)
        keys = shape, key_arrays(forms, groups.table.keys[slots], texts)
        spine.append_columns(keys, cell.columns(cells, texts, held), live=cells[:, 0] != 0)
