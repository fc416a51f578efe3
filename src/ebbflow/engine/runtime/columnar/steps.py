"""Steps on one row at a time, on columns: filters are masks, and maps make columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ebbflow.chain import Chain
from ebbflow.expression.node import Expression, Record, Tuple
from ebbflow.fn import Fn
from ebbflow.kernel.arithmetic import Computed, NotInColumns
from ebbflow.kernel.columns import Columns
from ebbflow.kernel.expressions import RowOnColumns, on_columns, row_on_columns
from ebbflow.kernel.hashing import matrix
from ebbflow.kernel.words import Texts, WordForm


class ChainOnColumns:
    """A chain of filters and maps on rows of a type."""

    def __init__(self, chain: Chain, row_type: Any, texts: Texts) -> None:
        self.steps: list[tuple[Computed | RowOnColumns, Any]] = []
        self.sign = chain.sign
        self.texts = texts
        for step in chain.steps:
            expression = traced(step.fn)
            if step.verb == "filter":
                test = on_columns(expression, [row_type], texts)
                if test.form.name not in ("bool", "int", "float") or test.form.optional:
                    raise NotInColumns(f"whether a {test.form.name} is true")
                self.steps.append((test, row_type))
            elif step.verb == "map":
                made = getattr(step.owner, "type", Any)
                if isinstance(expression, Record):
                    made = expression.type
                self.steps.append((row_on_columns(expression, [row_type], made, texts), made))
                row_type = made
            else:
                raise NotInColumns(f"{step.verb}: a row becomes several")
        self.type = row_type

    def __call__(self, change: Columns) -> Columns:
        for step, row_type in self.steps:
            if isinstance(step, Computed):
                mask = step.mask([change.words], len(change))
                if not mask.all():
                    change = change.taken(np.flatnonzero(mask), canonical=change.canonical)
            else:
                fields = step.words([change.words], len(change))
                change = Columns(row_type, fields, change.weights, self.texts)
        if self.sign < 0:
            change = Columns(
                change.type, change.given, -change.weights, self.texts, canonical=change.canonical
            )
        return change


def traced(fn: Fn) -> Expression:
    """What a function computes; an error where that is not known."""
    if fn.expression is None:
        raise NotInColumns(f"{fn.name} is a function that could not be read")
    return fn.expression


class KeyOnColumns:
    """The key of rows of a type, as words side by side."""

    def __init__(self, key: Fn | None, row_type: Any, texts: Texts) -> None:
        items: Sequence[Expression] = ()
        if key is not None:
            expression = traced(key)
            items = expression.items if isinstance(expression, Tuple) else (expression,)
        self.parts = [on_columns(item, [row_type], texts) for item in items]
        self.forms = [part.form for part in self.parts]

    def __call__(self, change: Columns) -> Any:
        return side_by_side(self.parts, change)


def side_by_side(parts: Sequence[Computed], change: Columns) -> Any:
    """The words of several expressions, as one key or one row of values after the other."""
    count = len(change.weights)
    if not parts:
        return np.empty((count, 0), np.int64)
    words = change.words
    return matrix(
        [
            words(part.field[1]) if part.field else part.words([words], count, part.form)
            for part in parts
        ]
    )


def same_forms(ours: Sequence[WordForm], theirs: Sequence[WordForm]) -> bool:
    """Whether equal values have equal words on both sides."""
    return [form.name for form in ours] == [form.name for form in theirs]
