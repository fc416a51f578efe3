"""A filter by the one row of another collection, on columns.

Both sides are indices (`ebbflow.kernel.chained`), which know their rows as they are now and as they
were before the epoch. Where the one row of a key changes, the condition is computed for all rows of
that key, once with the old one and once with the new one; those for which it differs are the
change. This equals `ebbflow.operator.scalar.OneRowFilter` without a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ebbflow.engine.runtime.columnar.keyed import ArrangedColumns, ColumnKeyStage
from ebbflow.engine.runtime.columnar.stages import ColumnStage, together
from ebbflow.engine.runtime.columnar.steps import traced
from ebbflow.engine.runtime.compare import CompareStage
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.chained import NOW, WAS, ChainedRows
from ebbflow.kernel.columns import Columns
from ebbflow.kernel.expressions import condition_on_columns
from ebbflow.kernel.hashing import EMPTY, WordTable
from ebbflow.kernel.instructions import Instructions
from ebbflow.kernel.words import Texts, forms_of

Fields = Callable[[int], Any]
"""The words of a field of some rows, by its number."""


class ColumnScalarStage(ColumnStage):
    """The rows of the left for which a condition holds with the one row that the right has of their
    key; none where it has no row."""

    __slots__ = ("condition", "left", "ones", "right", "rows")

    by_rows: CompareStage

    def __init__(
        self, by_rows: CompareStage, texts: Texts, left: ColumnKeyStage, right: ColumnKeyStage
    ) -> None:
        node: Any = by_rows.node
        types = left.before.type, right.before.type
        self.condition = Instructions([condition_on_columns(traced(node.fn), types, texts).how])
        widths = [len(forms_of(each) or ()) for each in types]
        self.rows = ChainedRows(len(left.key_of.parts), widths[0], bag=False)
        self.ones = ChainedRows(len(right.key_of.parts), widths[1], bag=True)
        super().__init__(by_rows, texts, self.rows, self.ones)
        self.left, self.right = left, right

    def rows_given(self, *changes: Any) -> Sequence[Any]:
        left, right = changes
        return self.left.by_key(left), self.right.by_key(right)

    def step(self, left: Any, right: Any) -> Any:
        parts = []
        if right:
            self.ones.apply(right.keys, right.columns.matrix, right.columns.weights)
            parts.append(self._turned(right.keys))
        if left:
            parts.append(self._passing(left))
            self.rows.apply(left.keys, left.columns.matrix, left.columns.weights)
        if not parts:
            return {}
        made = together(parts, self.texts)
        made.canonical = not right and left.columns.canonical
        return made

    def _turned(self, changed: Any) -> Columns:
        """The rows that were there and pass now and did not, and with a minus those that did, of
        keys whose one row has changed."""
        table = WordTable(changed.shape[1])
        table.add(changed)
        keys = table.keys[: table.end]
        was, now = self._one_row(keys, WAS), self._one_row(keys, NOW)
        others = np.flatnonzero(was != now)
        ones = np.ones(len(others), np.int64)
        at, entries, weights, _ = self.rows.meet(keys[others], ones, WAS)
        was, now = was[others[at]], now[others[at]]

        def fields(of: Any) -> Fields:
            return lambda number: self.rows.column(number, entries[of])

        signs = self._holds(fields, now) - self._holds(fields, was)
        some = np.flatnonzero(signs)
        found = [self.rows.column(number, entries[some]) for number in range(self.rows.rows.width)]
        return Columns(self.type, found, weights[some] * signs[some], self.texts)

    def _passing(self, left: ArrangedColumns) -> Columns:
        """Those of some rows that pass with the one row as it is now."""
        columns = left.columns

        def fields(of: Any) -> Fields:
            return lambda number: columns.words(number)[of]

        holds = self._holds(fields, self._one_row(left.keys, NOW))
        return columns.taken(np.flatnonzero(holds))

    def _one_row(self, keys: Any, when: int) -> Any:
        """The entry of the one row of each key, or EMPTY."""
        at, entries, weights, _ = self.ones.meet(keys, np.ones(len(keys), np.int64), when)
        if (weights != 1).any() or (at[1:] == at[:-1]).any():
            raise DoesNotFit("a second row where one is compared with")
        found = np.full(len(keys), EMPTY, np.int64)
        found[at] = entries
        return found

    def _holds(self, fields: Callable[[Any], Fields], ones: Any) -> Any:
        """Whether the condition holds for rows, each with the one row of an entry: 1, or 0."""
        there = np.flatnonzero(ones != EMPTY)
        entries = ones[there]
        sides = [fields(there), lambda number: self.ones.column(number, entries)]
        found = np.zeros(len(ones), np.int64)
        found[there[self.condition.chosen(sides, len(there))]] = 1
        return found

    def whole(self, *_: Any) -> Any:
        if self.given_up:
            return self.by_rows.whole()
        columns = self._everything(self.rows, self.left)
        return self._passing(ArrangedColumns(columns, self.left.key_of(columns)))

    def _everything(self, index: ChainedRows, side: ColumnKeyStage) -> Columns:
        rows, weights = index.everything()
        fields = list(rows.T.copy())
        return Columns(side.before.type, fields, weights, self.texts, canonical=True)

    def fill(self) -> None:
        mine = (self.rows, self.left), (self.ones, self.right)
        for index, (chained, side) in zip(self.by_rows.state, mine, strict=True):
            index.put(index.grouping(self._everything(chained, side).items()))
