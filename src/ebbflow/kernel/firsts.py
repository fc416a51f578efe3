"""The value of the first row of each group in an order: what a reducer shows that needs more than
one number to compare by.

The values of each such reducer are entries of `Ranked`, with the one that is shown at the root of
the heap of its group. `Firsts` does this beside `Values`, and in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ebbflow.kernel.compiled import compiled
from ebbflow.kernel.hashing import Words
from ebbflow.kernel.ranked import Ranked
from ebbflow.kernel.text_order import TextOrder
from ebbflow.kernel.values import Looked, Values
from ebbflow.kernel.word_order import WordOrder, ranked_numbers, ranked_words, word_of
from ebbflow.kernel.words import NULL


class PlacedColumns(NamedTuple):
    """What one reducer looks at: which columns, how each of them is ordered, and in which cell of
    the group the last of them is shown. Rows whose first one is None are passed over."""

    columns: tuple[int, ...]
    ranks: tuple[WordOrder, ...]
    cell: int


class Firsts:
    """The first values of groups, beside `Values`.

    >>> latest = PlacedColumns((0, 1), (WordOrder("int", True), WordOrder("int", True)), 1)
    >>> firsts = Firsts((), [latest], None)
    >>> cells, group = np.zeros((1, 2), np.int64), np.zeros(2, np.int64)
    >>> firsts.step(group, np.array([[3, 70], [8, 50]]), np.ones(2, np.int64), group[:1], cells)
    True
    >>> cells.tolist()
    [[0, 50]]
    """

    __slots__ = ("hows", "placed", "ranked", "values")

    def __init__(
        self, looked: Sequence[Looked], placed: Sequence[PlacedColumns], texts: TextOrder | None
    ) -> None:
        self.values = Values(looked, texts)
        self.placed = placed
        self.hows = [np.array([rank.how for rank in each.ranks], np.int64) for each in placed]
        compared = [[rank.compared for rank in each.ranks] for each in placed]
        self.ranked = [Ranked(each, [0], texts) for each in compared]

    def step(
        self, slots: Words, values: Words, weights: Words, touched: Words, cells: Words
    ) -> bool:
        """Add the values of rows, whose groups are `slots`, and write the results into the cells of
        the groups that were touched; says whether no value went more often than it came."""
        fine = self.values.step(slots, values, weights, touched, cells)
        for placed, how, ranked in zip(self.placed, self.hows, self.ranked, strict=True):
            given, groups, often = values[:, placed.columns], slots, weights
            there = np.flatnonzero(given[:, 0] != NULL)
            if len(there) < len(given):
                given, groups, often = given[there], slots[there], weights[there]
            numbers = ranked_numbers(np.ascontiguousarray(given), groups, how)
            fine = ranked.step(numbers, often, len(cells)) and fine
            _show(touched, ranked.fences, ranked.table.keys, how, placed.cell, cells)
        return fine

    def undo(self, steps: int | None = None) -> None:
        """Have the values as before the last steps, or as when it was last settled. Doing it twice
        is doing it once."""
        self.values.undo(steps)
        for ranked in self.ranked:
            ranked.undo(steps)

    def settled(self) -> Firsts:
        """Keep what is done. What it gives has to be used from there on."""
        self.values = self.values.settled()
        for ranked in self.ranked:
            ranked.settle()
        return self

    def clear(self) -> None:
        """Have no values."""
        self.values.clear()
        for ranked in self.ranked:
            ranked.clear()

    # ---- what is there ----

    @property
    def parts(self) -> Words:
        """What `Values` looks at."""
        return self.values.parts

    @property
    def width(self) -> int:
        """How many columns it is given at least."""
        return max(self.values.width, *(1 + max(each.columns) for each in self.placed))

    def columns_of(self, number: int) -> tuple[int, ...]:
        """The columns that one reducer looks at."""
        return self.values.columns_of(number) if number >= 0 else self.placed[-1 - number].columns

    @property
    def times(self) -> Any:
        """How often the first values that `Values` finds are there."""
        return self.values.times

    def everything(self, *, gone: bool = False) -> tuple[Words, Words, Words]:
        """All that `Values` has."""
        return self.values.everything(gone=gone)

    def held(self, number: int, slots: Words) -> tuple[Words, Words, Words]:
        """The values of some groups that one reducer looks at: of which of these groups each is,
        its words, and how often it is there. Those in an order have the numbers -1, -2, ...
        """
        if number >= 0:
            return self.values.held(number, slots)
        ranked = self.ranked[-1 - number]
        owners, entries = ranked.held(slots)
        words = ranked_words(entries, ranked.table.keys, self.hows[-1 - number])
        return owners, np.ascontiguousarray(words.T), ranked.weights(entries)

    def placed_values(self, number: int, *, gone: bool = False) -> tuple[Words, Words, Words]:
        """The values of one of those in an order: the slots of their groups, the words of each
        column, and how often they are there; also those that are `gone`, and still have a place."""
        ranked = self.ranked[number]
        entries, weights = ranked.everything()
        if gone:
            entries = ranked.table.used()
        keys = ranked.table.keys
        return keys[entries, 0], ranked_words(entries, keys, self.hows[number]), weights

    def __len__(self) -> int:
        return len(self.values) + sum(map(len, self.ranked))


def values_of(
    looked: Sequence[Looked], placed: Sequence[PlacedColumns], texts: TextOrder | None
) -> Any:
    """What finds the values of groups; None where nothing is looked at."""
    if placed:
        return Firsts(looked, placed, texts)
    return Values(looked, texts) if looked else None


@compiled
def _show(touched: Words, fences: Words, keys: Words, how: Words, cell: int, cells: Words) -> None:
    """Write the first value of each group into its cell: the last of its words."""
    last = len(how)
    for i in range(len(touched)):
        root, found = fences[touched[i], 3], NULL
        if root != -1:
            found = word_of(keys[root, last], how[last - 1])
        cells[touched[i], cell] = found
