"""Stages on columns that compare rows of two sides with equal keys: semijoins and antijoins where a
value of the one is not that of the other, and filters by the one row that the other side has.

Both equal `CompareStage`. A change of the right turns rows of the left that are there, and then
rows of the left come and go as they meet the right that is now: so the left is changed last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ebbflow.engine.runtime.columnar.keyed import (
    ArrangedColumns,
    ColumnKeyStage,
    all_rows,
    found_rows,
    index_rows,
    with_passing,
)
from ebbflow.engine.runtime.columnar.stages import ColumnStage
from ebbflow.engine.runtime.columnar.steps import SideBySide
from ebbflow.engine.runtime.compare import CompareStage
from ebbflow.kernel.arithmetic import Computed
from ebbflow.kernel.chained import NOW, ChainedRows
from ebbflow.kernel.columns import Columns
from ebbflow.kernel.groups import Groups
from ebbflow.kernel.instructions import Instructions
from ebbflow.kernel.only import OneRows, OtherValues, with_value
from ebbflow.kernel.words import NULL, Texts, WordForm, forms_of


class ColumnCompareStage(ColumnStage):
    """What both have in common: rows of the left by key, and the way to them."""

    __slots__ = ("left", "right")

    by_rows: CompareStage

    def __init__(
        self, by_rows: CompareStage, texts: Texts, left: ColumnKeyStage, right: ColumnKeyStage,
        *kernels: Any,
    ) -> None:  # fmt: skip
        super().__init__(by_rows, texts, *kernels)
        self.left, self.right = left, right

    def rows_given(self, *changes: Any) -> Sequence[Any]:
        left, right = changes
        return self.left.by_key(left), self.right.by_key(right)

    def step(self, left: Any, right: Any) -> Any:
        turned = self.turned(right) if right else []
        made = with_passing(turned, left, self.passing, self.texts)
        if left:
            self.keep(left)
        return made

    def whole(self, *_: Any) -> Any:
        if self.given_up:
            return self.by_rows.whole()
        columns = self.lefts()
        return self.passing(ArrangedColumns(columns, self.left.key_of(columns)))

    def fill(self) -> None:
        for index, columns in zip(self.by_rows.state, (self.lefts(), self.rights()), strict=True):
            index.put(index.grouping(columns.items()))

    def turned(self, right: ArrangedColumns) -> list[Columns]:
        """The rows of the left that pass now, and did not before a change of the right, or the
        other way; that change is kept."""
        raise NotImplementedError

    def passing(self, left: ArrangedColumns) -> Columns:
        """The rows of the left that pass."""
        raise NotImplementedError

    def keep(self, left: ArrangedColumns) -> None:
        """Have a change of the left among its rows."""
        raise NotImplementedError

    def lefts(self) -> Columns:
        """All rows of the left."""
        raise NotImplementedError

    def rights(self) -> Columns:
        """All rows of the right."""
        raise NotImplementedError

    def keys_held(self) -> Iterator[tuple[Any, Sequence[WordForm]]]:
        """The words that it finds rows by, and how they are words."""
        raise NotImplementedError


class ColumnUnequalStage(ColumnCompareStage):
    """Rows of the left for which the right has, or has not, a row with the same key and another
    value. The rows of the left are kept twice: `by_value`, all of them by key and value, and
    `by_key`, those that have a value. Of the right there are `others`, and `rows` where these do
    not tell them."""

    __slots__ = ("anti", "by_key", "by_value", "order", "others", "rows", "values")

    def __init__(
        self, by_rows: CompareStage, texts: Texts, left: ColumnKeyStage, right: ColumnKeyStage,
        values: Sequence[Computed], anti: bool,
    ) -> None:  # fmt: skip
        self.values = [SideBySide([each]) for each in values]
        width = len(left.key_of.parts)
        ours, theirs = (len(forms_of(side.before.type) or ()) for side in (left, right))
        self.others = OtherValues(width)
        self.by_key = ChainedRows(width, ours, bag=False)
        self.by_value = ChainedRows(width + 1, ours, bag=False)
        self.order = _places([*right.key_of.parts, values[1]], theirs)
        self.rows = Groups(theirs, [], []) if self.order is None else None
        self.anti = anti
        kernels = self.others.pairs, self.others.values, self.by_key, self.by_value
        super().__init__(
            by_rows, texts, left, right, *kernels, *([] if self.rows is None else [self.rows])
        )

    def turned(self, right: ArrangedColumns) -> list[Columns]:
        columns = right.columns
        if self.rows is not None:
            self.rows.step(columns.matrix, np.empty((len(columns), 0), np.int64), columns.weights)
        values = self.values[1](columns)[:, 0]
        keys, signs, pairs, less = self.others.step(right.keys, values, columns.weights)
        if self.anti:
            signs, less = -signs, -less
        of = self.left.before.type, self.texts
        return [
            *found_rows(self.by_key, keys, signs, NOW, *of),
            *found_rows(self.by_value, pairs, less, NOW, *of),
        ]

    def passing(self, left: ArrangedColumns) -> Columns:
        values = self.values[0](left.columns)[:, 0]
        chosen = self.others.differ(left.keys, values) != self.anti
        return left.columns.taken(np.flatnonzero(chosen))

    def keep(self, left: ArrangedColumns) -> None:
        values = self.values[0](left.columns)[:, 0]
        keys, rows, weights = left.keys, left.columns.matrix, left.columns.weights
        self.by_value.apply(with_value(keys, values), rows, weights)
        there = np.flatnonzero(values != NULL)
        if len(there) < len(values):
            keys, rows, weights = keys[there], rows[there], weights[there]
        self.by_key.apply(keys, rows, weights)

    def lefts(self) -> Columns:
        return all_rows(self.by_value, self.left.before.type, self.texts)

    def rights(self) -> Columns:
        held = self.others.pairs if self.rows is None else self.rows
        words, cells = held.everything()
        if self.order is not None:
            words = words[:, self.order]
        fields = list(words.T.copy())
        weights = cells[:, 0].copy()
        return Columns(self.right.before.type, fields, weights, self.texts, canonical=True)

    def keys_held(self) -> Iterator[tuple[Any, Sequence[WordForm]]]:
        ours, theirs = (
            [*side.key_of.forms, *value.forms]
            for side, value in zip((self.left, self.right), self.values, strict=True)
        )
        keys = self.by_value.keys
        yield keys.words(keys.used()), ours
        yield self.others.pairs.everything()[0], theirs


def _places(parts: Sequence[Computed], fields: int) -> list[int] | None:
    """Where each field of a row is among these parts of it; None where some is not."""
    plain = {part.field[1]: at for at, part in enumerate(parts) if part.field is not None}
    return [plain[at] for at in range(fields)] if len(plain) == fields else None


class ColumnOneRowStage(ColumnCompareStage):
    """Rows of the left that pass a `test` with the one row that the right has of their key."""

    __slots__ = ("by_key", "ones", "test")

    def __init__(
        self, by_rows: CompareStage, texts: Texts, left: ColumnKeyStage, right: ColumnKeyStage,
        test: Computed,
    ) -> None:  # fmt: skip
        width = len(left.key_of.parts)
        self.by_key = ChainedRows(width, len(forms_of(left.before.type) or ()), bag=False)
        self.ones = OneRows(width, len(forms_of(right.before.type) or ()))
        self.test = Instructions([test.how])
        super().__init__(by_rows, texts, left, right, self.by_key, self.ones.groups)

    def turned(self, right: ArrangedColumns) -> list[Columns]:
        columns, index = right.columns, self.by_key
        keys, was, now = self.ones.step(right.keys, columns.matrix, columns.weights)
        if not len(keys) or not len(index):
            return []
        at, entries, weights, _ = index.meet(keys, np.ones(len(keys), np.int64), NOW)
        more = np.zeros(len(at), np.int64)
        for ones, sign in (was, -1), (now, 1):
            there = np.flatnonzero(ones[at] >= 0)
            with_one, found = ones[at[there]], entries[there]
            sides = [
                lambda field, found=found: index.column(field, found),
                lambda field, with_one=with_one: self.ones.made[field, with_one],
            ]
            more[there[self.test.chosen(sides, len(there))]] += sign
        some = np.flatnonzero(more)
        weights = weights[some] * more[some]
        return index_rows(index, entries[some], weights, self.left.before.type, self.texts)

    def passing(self, left: ArrangedColumns) -> Columns:
        columns = left.columns
        there, slots = self.ones.found(left.keys)
        some = np.flatnonzero(there)
        sides = [
            lambda field: columns.words(field)[some],
            lambda field: self.ones.column(field, slots),
        ]
        return columns.taken(some[self.test.chosen(sides, len(some))])

    def keep(self, left: ArrangedColumns) -> None:
        columns = left.columns
        self.by_key.apply(left.keys, columns.matrix, columns.weights)

    def lefts(self) -> Columns:
        return all_rows(self.by_key, self.left.before.type, self.texts)

    def rights(self) -> Columns:
        cells = self.ones.groups.everything()[1]
        fields = list(cells[:, 1:].T.copy())
        weights = cells[:, 0].copy()
        return Columns(self.right.before.type, fields, weights, self.texts, canonical=True)

    def keys_held(self) -> Iterator[tuple[Any, Sequence[WordForm]]]:
        keys = self.by_key.keys
        yield keys.words(keys.used()), self.left.key_of.forms
        yield self.ones.groups.everything()[0], self.right.key_of.forms
