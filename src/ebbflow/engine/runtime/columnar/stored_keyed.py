"""The rows of an input with a key, in columns, where they are stored.

The rows that have the keys of a change are looked up and held as columns (`RowsByKey`), and the
change is checked against them as a view in columns does. What it leaves is staged as columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.engine.runtime.columnar.keyed_input import KeyedColumnInput, RowsByKey
from ebbflow.engine.runtime.columnar.steps import KeyOnColumns
from ebbflow.engine.runtime.columnar.stored import Asked, of_keys, require_plain, stage_rows
from ebbflow.engine.runtime.columnar.stored_cells import words_of
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.columns import Columns
from ebbflow.kernel.hashing import EMPTY, WordTable, matrix
from ebbflow.kernel.words import Texts, forms_of
from ebbflow.state.spine import Spine


class StoredKeyed:
    """The rows of an input with a key; `NotInColumns` where it has no columns."""

    def __init__(self, state: KeyedInput, texts: Texts) -> None:
        source = state.source
        assert source.key is not None
        self.key = KeyOnColumns(source.key, source.type, texts)
        require_plain(source.key, self.key.forms)
        self.input = KeyedColumnInput(state, self.key, texts)
        self.type, self.texts = source.type, texts
        self.forms = forms_of(source.type) or ()
        self.ready: tuple[Spine, Any, Any, Any] | None = None

    def apply(self, spine: Spine, change: Columns) -> Columns:
        """Be ready for a change that leaves at most one row of each key; gives it, each row
        once."""
        rows = self._fetched(spine, self.key(change))
        made = self.input._changed(change, rows)
        if made is None:
            raise DoesNotFit("a change that an input with a key refuses")
        assert self.input._put is not None
        keys, words = self.input._put
        added = WordTable(keys.shape[1])
        added.add(keys)
        taken: Any = self.input._take
        self.ready = spine, keys, words, taken[added.find(taken) == EMPTY]
        return made

    def upsert(self, spine: Spine, given: Columns) -> Columns:
        """Be ready to put rows in, each in the place of the one that has its key; gives what
        changes."""
        keys = self.key(given)
        rows = self._fetched(spine, keys)
        known = WordTable(keys.shape[1])
        known.add(keys)
        if len(known) < len(keys) or (given.weights != 1).any():
            raise DoesNotFit("two rows of a key")
        words, slots = matrix(given.fields), rows.table.find(keys)
        there = slots != EMPTY
        other = ~there
        other[there] = (rows.words[slots[there]] != words[there]).any(axis=1)
        old, new = rows.words[slots[there & other]], words[other]
        weights = np.repeat(np.array([-1, 1]), [len(old), len(new)])
        self.ready = spine, keys[other], new, keys[:0]
        fields = list(np.concatenate([old, new]).T.copy())
        return Columns(self.type, fields, weights, self.texts, canonical=True)

    def stage(self) -> None:
        """Stage what was prepared."""
        if self.ready is None:
            return
        (spine, keys, rows, gone), self.ready = self.ready, None
        assert self.input.by_key is not None
        stage_rows(spine, self.input.by_key, keys, rows, gone)

    def _fetched(self, spine: Spine, keys: Any) -> RowsByKey:
        """The rows that have these keys."""
        if spine.texts is not None:
            raise DoesNotFit("texts in pieces")
        table = WordTable(keys.shape[1])
        table.add(keys)
        asked = Asked(of_keys(self.key.forms), self.key.forms, table.keys[: table.end], self.texts)
        words = np.zeros((table.end, len(self.forms)), np.int64)
        there = np.zeros(table.end, np.bool_)
        for at, found in asked.found(spine):
            live = found.counts != 0
            there[at] = live
            known, at = found.chosen(live), at[live]
            if len(at):
                row = known.form.row
                if row.how != "record" or len(row.encodings) != len(self.forms):
                    raise DoesNotFit("rows that are pickled")
                for j, form in enumerate(self.forms):
                    words[at, j] = words_of(known.row(j), form, self.texts)
        rows = RowsByKey(self.type, self.key, self.texts)
        rows.put(table.keys[: table.end][there], words[there])
        self.input.by_key = rows
        return rows
