"""The first rows of each key, as columns.

A row is an entry of `Ranked`: the words that it is ordered by, and then the others, which decide
between rows with the same place. A key has a slot, which is the group of its rows. A step gives the
rows that came to the top, and those that left it. This equals `ebbflow.operator.top.TopRows`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.compiled import compiled
from ebbflow.kernel.hashing import EMPTY, Words, WordTable, hashed, slot_of, taken_out
from ebbflow.kernel.ranked import Ranked
from ebbflow.kernel.text_order import TextOrder
from ebbflow.kernel.word_order import WordOrder, ranked_numbers, ranked_words

MOST = 1 << 31
"""Of more rows than that no top is kept in columns."""


class FirstRows:
    """Rows by keys of `width` words: of each key the first `n` behind the first `offset`.

    >>> best = FirstRows(1, [WordOrder("int", True)], 1)
    >>> keys, rows = np.array([[7], [8], [7]]), np.array([[3], [4], [5]])
    >>> best.step(keys, rows, np.ones(3, np.int64))[0].tolist()
    [[4, 5]]
    >>> out, weights = best.step(keys[2:], rows[2:], np.array([-1]))
    >>> sorted(zip(*out.tolist(), weights.tolist()))
    [(3, 1), (5, -1)]
    """

    __slots__ = ("how", "journal", "ranked", "table")
    backing = None

    def __init__(
        self, width: int, ranks: Sequence[WordOrder], n: int, offset: int = 0,
        texts: TextOrder | None = None,
    ) -> None:  # fmt: skip
        self.how = np.array([rank.how for rank in ranks], np.int64)
        limits = [offset + n, offset] if offset else [n]
        self.ranked = Ranked([rank.compared for rank in ranks], limits, texts)
        self.table = WordTable(width)
        self.journal: list[Words] | None = None
        """The slots of the groups that the open epoch has touched."""

    def step(self, keys: Words, rows: Words, weights: Words) -> tuple[Words, Words]:
        """Add rows with weights, and give the change of the top: the words of each column, and
        weights. Each row is there once."""
        slots = np.full(len(keys), EMPTY, np.int64)
        if self.journal is not None:
            self.journal.append(slots)  # first, as an interrupt may come
        self.table.add(keys, slots)
        numbers = ranked_numbers(rows, slots, self.how)
        if not self.ranked.step(numbers, weights, len(self.table.keys)):
            if self.journal is None:
                self._end([slots])
            raise DoesNotFit("a row is taken away that is not there")
        found, changes = self.ranked.delta()
        out = self.words(found)
        if self.journal is None:
            self._end([slots])
        return out, changes

    def words(self, entries: Words) -> Words:
        """The words of entries, column by column."""
        return ranked_words(entries, self.ranked.table.keys, self.how)

    def read(self) -> tuple[Words, Words]:
        """The rows at the top now, and how often each is there."""
        entries, weights = self.ranked.shown()
        return self.words(entries), weights

    def everything(self) -> tuple[Words, Words]:
        """All rows, and their weights."""
        entries, weights = self.ranked.everything()
        return self.words(entries), weights

    def changed(self) -> tuple[Words, Words, Words]:
        """What the open epoch has changed: the slots of the keys of rows, their words, and how many
        more there are."""
        entries, before = self.ranked.noted().T
        more = self.ranked.weights(entries) - before
        some = np.flatnonzero(more)
        entries = entries[some]
        return self.ranked.table.keys[entries, 0], self.words(entries), more[some]

    def touched(self) -> Words:
        """The slots of the keys that the open epoch has touched."""
        slots = np.unique(np.concatenate(self.journal or [np.empty(0, np.int64)]))
        return slots[slots != EMPTY]

    def first(self, slots: Words) -> tuple[Words, Words, Words]:
        """The first rows of some keys, and those that are left out before them: of which of these
        keys each is, the words, and how often it is there, behind the top as well."""
        owners, entries = self.ranked.held(slots)
        there = np.flatnonzero(self.ranked.inside(entries))
        entries = entries[there]
        return owners[there], self.words(entries), self.ranked.weights(entries)

    def used(self) -> Words:
        """The words of all entries, also of those that are gone, and still have a place."""
        return self.words(self.ranked.table.used())

    def __len__(self) -> int:
        return len(self.ranked)

    # ---- one epoch ----

    def begin(self) -> None:
        """Remember from here on what is done."""
        self.journal = []

    def commit(self) -> None:
        """Keep what was done since `begin`. Doing it twice is doing it once."""
        self._end(self.journal or ())
        self.journal = None

    def rollback(self) -> None:
        """Undo what was done since `begin`."""
        self.ranked.undo()
        self.commit()

    def forget(self) -> None:
        """Have no epoch open, whatever it did."""
        self.journal = None

    def clear(self) -> None:
        """Have no rows."""
        self.table.clear()
        self.ranked.clear()

    def _end(self, touched: Sequence[Words]) -> None:
        """Keep what is done: entries that are gone go, and so do keys without entries."""
        self.ranked.settle()
        self.ranked.fit(len(self.table.keys))
        for slots in touched:
            _free(
                slots, self.ranked.fences, self.table.places, self.table.keys, self.table.free,
                self.table.state,
            )  # fmt: skip
        self.table.shrink()


@compiled
def _free(
    slots: Words, fences: Words, places: Words, keys: Words, free: Words, state: Words
) -> None:
    """Give back the slots of groups without entries, each once."""
    for i in range(len(slots)):
        slot = slots[i]
        if slot == EMPTY or fences[slot, 0] != 0:
            continue
        if slot_of(keys, slot, hashed(keys, slot), places, keys) == slot:
            taken_out(slot, places, keys, free, state)
