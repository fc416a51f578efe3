"""An input with a key, in columns: at most one row of each key, found by it.

Changes and upserts that are tables, or rows that have columns, are looked up and checked as
columns. Whatever else may be asked of an input with a key goes the way of rows, over the same
columns: they look like a dict from key to row (`RowsByKey`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np

from ebbflow.change.requests import LAST, Upsert
from ebbflow.engine.runtime.columnar.inputs import plain_columns, read_columns
from ebbflow.engine.runtime.columnar.stages import key_values
from ebbflow.engine.runtime.columnar.steps import KeyOnColumns
from ebbflow.engine.runtime.inputs import InputState
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.runtime.requested import are_none
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arithmetic import NotInColumns
from ebbflow.kernel.columns import Columns, columns_of_rows
from ebbflow.kernel.hashing import EMPTY, Words, WordTable, grown, matrix
from ebbflow.kernel.rows import RowTotals
from ebbflow.kernel.words import Texts, encoded, forms_of
from ebbflow.zset import ZSet, from_view


class RowsByKey(MutableMapping[Any, Any]):
    """Rows as columns, each in the slot of its key: a dict for those who look at few."""

    def __init__(self, row_type: Any, key: KeyOnColumns, texts: Texts) -> None:
        self.type, self.key, self.texts = row_type, key, texts
        self.table = WordTable(len(key.parts))
        self.words = np.empty((len(self.table.keys), len(forms_of(row_type) or ())), np.int64)

    def put(self, keys: Words, rows: Words) -> None:
        """Have these rows, each in the place of the one that has its key."""
        slots = self.table.add(keys)
        if len(self.table.keys) > len(self.words):
            self.words = grown(self.words, len(self.table.keys))
        self.words[slots] = rows

    def take(self, keys: Words) -> None:
        """Have no rows of these keys."""
        slots = self.table.find(keys)
        self.table.remove(slots[slots != EMPTY])

    def columns(self, slots: Words | None = None) -> Columns:
        """The rows in these slots, or all, as columns."""
        words = self.words[self.table.used() if slots is None else slots]
        ones = np.ones(len(words), np.int64)
        return Columns(self.type, list(words.T.copy()), ones, self.texts, canonical=True)

    def _slot(self, key: Any) -> int:
        parts = key if len(self.key.parts) > 1 else (key,)
        forms = self.key.forms
        if len(forms) != len(parts) if isinstance(parts, tuple) else True:
            return EMPTY
        try:
            words = [
                encoded(form, [part], self.texts)[0]
                for form, part in zip(forms, parts, strict=True)
            ]
        except DoesNotFit:
            return EMPTY
        return int(self.table.find(np.array([words], np.int64))[0])

    def __getitem__(self, key: Any) -> Any:
        slot = self._slot(key)
        if slot == EMPTY:
            raise KeyError(key)
        (row,) = self.columns(np.array([slot])).rows
        return row

    def __setitem__(self, key: Any, row: Any) -> None:
        self.update({key: row})

    def __delitem__(self, key: Any) -> None:
        slot = self._slot(key)
        if slot == EMPTY:
            raise KeyError(key)
        self.table.remove(np.array([slot]))

    def __contains__(self, key: object) -> bool:
        return self._slot(key) != EMPTY

    def update(self, rows: Mapping[Any, Any]) -> None:  # type: ignore[override]
        """Have these rows, by key."""
        columns = columns_of_rows(dict.fromkeys(rows.values(), 1), self.type, self.texts)
        self.put(self.key(columns), matrix(columns.fields))

    def __iter__(self) -> Iterator[Any]:
        return iter(key_values(self.key.forms, self.table.keys[self.table.used()], self.texts))

    def values(self) -> Any:
        return self.columns().rows.keys()

    def __len__(self) -> int:
        return len(self.table)


class KeyedColumnInput(KeyedInput):
    """An input with a key, in columns, until a row comes that columns do not hold."""

    __slots__ = ("_put", "_take", "by_key", "texts")

    def __init__(self, plain: KeyedInput, key: KeyOnColumns, texts: Texts) -> None:
        super().__init__(plain.source)
        self.texts = texts
        self.by_key: RowsByKey | None = RowsByKey(self.source.type, key, texts)
        self.rows = self.by_key  # type: ignore[assignment]
        self._put: tuple[Words, Words] | None = None
        self._take: Words | None = None

    def apply(self, change: Any) -> Any:
        self._put = self._take = None
        found = read_columns(self.source, change, self.texts)
        if isinstance(found, Columns) and self.by_key is not None:
            out = self._changed(found, self.by_key)
            if out is not None:
                return out
        rows = getattr(found, "rows", found)
        self._require_fit(rows)
        return super().apply(rows)

    def _changed(self, given: Columns, rows: RowsByKey) -> Columns | None:
        """Be ready for a change, if it leaves one row of each key and takes only what is there."""
        totals = RowTotals(matrix(given.fields), given.weights)
        columns = given.of_totals(totals)
        keys, weights = rows.key(columns), totals.weights
        adds, takes = np.flatnonzero(weights > 0), np.flatnonzero(weights < 0)
        slots = rows.table.find(keys)
        taken = slots[takes]
        if (
            (len(weights) and np.abs(weights).max() > 1)
            or (taken == EMPTY).any()
            or (rows.words[taken] != totals.rows[takes]).any()
            or not np.isin(slots[adds], np.append(taken, EMPTY)).all()
            or len(RowTotals(keys[adds], weights[adds]).weights) < len(adds)
        ):
            return None
        self._put, self._take = (keys[adds], totals.rows[adds]), keys[takes]
        return columns

    def upsert(self, request: Upsert) -> Any:
        self._put = self._take = None
        rows = self.by_key
        plain = request.order is None and are_none(request.delete) and request.duplicates == LAST
        given = plain_columns(self.source, request.rows, self.texts) if plain and rows else None
        if given is None or rows is None or (given.weights != 1).any():
            return self._as_rows(super().upsert, request)
        keys = rows.key(given)
        if len(RowTotals(keys, given.weights).weights) < len(keys):
            return self._as_rows(super().upsert, request)
        words, slots = matrix(given.fields), rows.table.find(keys)
        there = slots != EMPTY
        other = ~there
        other[there] = (rows.words[slots[there]] != words[there]).any(axis=1)
        old = rows.columns(slots[there & other])
        new = given.taken(np.flatnonzero(other), canonical=True)
        self._put, self._take = (keys[other], words[other]), keys[:0]
        fields = [np.concatenate([old.words(at), new.words(at)]) for at in range(words.shape[1])]
        weights = np.concatenate([-old.weights, new.weights])
        return Columns(self.source.type, fields, weights, self.texts, canonical=True)

    def _as_rows(self, upsert: Any, request: Upsert) -> Any:
        found = upsert(request)
        self._require_fit({row: 1 for row, weight in found.items() if weight > 0})
        return found

    def events(self, request: Any) -> Any:
        self._put = self._take = None
        found = super().events(request)
        self._require_fit({row: 1 for row, weight in found.items() if weight > 0})
        return found

    def _require_fit(self, rows: Mapping[Any, int]) -> None:
        """Keep rows as rows from here on, if there is one that columns do not hold."""
        if self.by_key is None:
            return
        try:
            columns_of_rows(rows, self.source.type, self.texts)
        except DoesNotFit:
            self._give_up()

    def _give_up(self) -> None:
        if self.by_key is not None:
            self.rows = dict(self.by_key.items())
            self.by_key = None

    def keep(self) -> None:
        if self._put is None or self.by_key is None:
            return super().keep()
        assert self._take is not None
        self.by_key.take(self._take)
        self.by_key.put(*self._put)
        self._put = self._take = None
        return None

    def as_rows(self) -> InputState:
        """The same input, for a program of rows."""
        self._give_up()
        plain = KeyedInput(self.source)
        plain.rows, plain.beside = self.rows, self.beside
        return plain

    def snapshot(self) -> ZSet[Any]:
        if self.by_key is None:
            return super().snapshot()
        return from_view(self.by_key.columns(), (self.source.type, False))  # type: ignore[arg-type]


def keyed_in_columns(state: KeyedInput, texts: Texts) -> InputState:
    """An input with a key, in columns where its key can be."""
    try:
        key = KeyOnColumns(state.source.key, state.source.type, texts)
    except NotInColumns:
        return state
    return state if state.beside is not None else KeyedColumnInput(state, key, texts)
