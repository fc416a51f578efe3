"""Steps on one row at a time, on columns: filters choose rows, and maps make columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from ebbflow.chain import Chain
from ebbflow.engine.runtime.columnar.windows import windows_on_columns
from ebbflow.expression.node import Expression, Record, Tuple
from ebbflow.flow.windows import Tumbling
from ebbflow.fn import Fn
from ebbflow.kernel.arithmetic import Computed, NotInColumns, both
from ebbflow.kernel.columns import Columns
from ebbflow.kernel.expressions import (
    RowOnColumns,
    by_calling,
    condition_on_columns,
    on_columns,
    row_on_columns,
)
from ebbflow.kernel.hashing import matrix
from ebbflow.kernel.instructions import Instructions
from ebbflow.kernel.words import Texts, WordForm


class ChainOnColumns:
    """A chain of filters and maps on rows of a type."""

    def __init__(self, chain: Chain, row_type: Any, texts: Texts) -> None:
        self.steps: list[tuple[Instructions | RowOnColumns, Any]] = []
        tests: list[Computed] = []
        self.sign = chain.sign
        self.texts = texts
        for step in chain.steps:
            if step.verb == "filter":
                try:
                    tests.append(condition_on_columns(traced(step.fn), [row_type], texts))
                except NotInColumns:
                    called = by_calling(step.fn, row_type, texts)
                    self._filter(tests, row_type)  # it is not called for rows that are gone
                    self._filter([called], row_type)
            elif step.verb == "map":
                self._filter(tests, row_type)
                windows = windows_on_columns(step.fn.call, row_type, texts)
                if windows is not None:
                    row_type = step.fn.call.clock.row
                    self.steps.append((windows, row_type))
                    continue
                expression = traced(step.fn)
                made = getattr(step.owner, "type", Any)
                if isinstance(expression, Record):
                    made = expression.type
                self.steps.append((row_on_columns(expression, [row_type], made, texts), made))
                row_type = made
            else:
                raise NotInColumns(f"{step.verb}: a row becomes several")
        self._filter(tests, row_type)
        self.type = row_type

    def _filter(self, tests: list[Computed], row_type: Any) -> None:
        """Have a filter by tests that come one after the other, if there are some."""
        if tests:
            all_of_them = reduce(partial(both, "and"), tests)
            self.steps.append((Instructions([all_of_them.how]), row_type))
            tests.clear()

    def __call__(self, change: Columns) -> Columns:
        for step, row_type in self.steps:
            count = len(change)
            if isinstance(step, Instructions):
                chosen = step.chosen([change.words], count)
                if len(chosen) < count:
                    change = change.taken(chosen, canonical=change.canonical)
            else:
                passed = [change.given]
                fields = step.fields([change.words], count, passed)
                change = Columns(row_type, fields, change.weights, self.texts)
        if self.sign < 0:
            change = Columns(
                change.type, change.given, -change.weights, self.texts, canonical=change.canonical
            )
        return change


def traced(fn: Fn) -> Expression:
    """What a function computes; an error where that is not known. What has columns and can be
    subtracted from a whole number is one, so windows are counted in whole numbers."""
    found = fn.call.of_ints if isinstance(fn.call, Tumbling) else fn.expression
    if found is None:
        raise NotInColumns(f"{fn.name} is a function that could not be read")
    return found


class SideBySide:
    """Several expressions of rows of a type: their words as one key, or one row of values, after
    the other."""

    def __init__(self, parts: Sequence[Computed]) -> None:
        self.parts = parts
        self.forms = [part.form for part in parts]
        self.plain = [part.field[1] for part in parts if part.field is not None]
        self.program: Instructions | None = None
        if len(self.plain) < len(parts):
            self.program = Instructions([part.as_words(part.form) for part in parts])

    def __call__(self, change: Columns) -> Any:
        count = len(change.weights)
        if self.program is not None:
            return self.program.rows([change.words], count)
        if not self.plain:
            return np.empty((count, 0), np.int64)
        return matrix([change.words(at) for at in self.plain])


class KeyOnColumns(SideBySide):
    """The key of rows of a type."""

    def __init__(self, key: Fn | None, row_type: Any, texts: Texts) -> None:
        items: Sequence[Expression] = ()
        if key is not None:
            expression = traced(key)
            items = expression.items if isinstance(expression, Tuple) else (expression,)
        super().__init__([on_columns(item, [row_type], texts) for item in items])


def same_forms(ours: Sequence[WordForm], theirs: Sequence[WordForm]) -> bool:
    """Whether equal values have equal words on both sides."""
    return [form.encoding for form in ours] == [form.encoding for form in theirs]
