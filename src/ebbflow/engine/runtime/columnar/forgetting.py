"""Texts that nobody needs any more are forgotten.

A text has a number for as long as it is in the state of a stage or of an input, or is a constant of
the program. Who holds which is not counted: when there are twice as many texts as there were, and
10,000 more, all state is looked through once, so a text costs the same however often it comes and
goes. What was given away keeps the texts that it has (`ebbflow.kernel.words.Texts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ebbflow.engine.runtime.columnar.compared import ColumnCompareStage
from ebbflow.engine.runtime.columnar.inputs import CheckedColumnInput
from ebbflow.engine.runtime.columnar.keyed import (
    ColumnArrangeStage,
    ColumnDistinctStage,
    ColumnGroupStage,
    ColumnKeyStage,
    ColumnSemiStage,
)
from ebbflow.engine.runtime.columnar.keyed_input import KeyedColumnInput
from ebbflow.engine.runtime.columnar.stages import ColumnReduceStage
from ebbflow.engine.runtime.columnar.top import ColumnTopStage
from ebbflow.engine.runtime.program import RunningProgram
from ebbflow.kernel.chained import ChainedRows
from ebbflow.kernel.words import NULL, Texts, WordForm, forms_of

MANY = 10_000
"""So many texts are kept, whoever needs them."""
Held = tuple[Any, Sequence[WordForm]]
"""Rows of words, and how each of their fields is words."""


class TextsInUse:
    """Forgets the texts of a program that no part of it has; asked when an epoch is kept."""

    def __init__(self, program: RunningProgram, texts: Texts) -> None:
        self.program, self.texts = program, texts
        self.constants = len(texts.known)
        self.most = 2 * self.constants + MANY
        """How many texts there may be before it is looked which are in use."""

    def __call__(self, _: Any) -> None:
        if len(self.texts.now.numbers) > self.most:
            self.forget()

    def forget(self) -> None:
        """Forget what is not in use. Doing it twice is doing it once."""
        used = np.zeros(len(self.texts.known), np.bool_)
        used[: self.constants] = True
        parts = [*self.program.machine.stages, *self.program.inputs.values()]
        for words, forms in (each for part in parts for each in held(part)):
            for at, form in enumerate(forms):
                if form.name == "text":
                    numbers = words[:, at]
                    used[numbers[numbers != NULL] if form.optional else numbers] = True
        used[self.texts.now.free] = True
        self.texts.forget(np.flatnonzero(~used).tolist())
        self.most = 2 * len(self.texts.numbers) + MANY


def held(part: Any) -> Iterator[Held]:
    """The words that a stage or an input has."""
    match part:
        case ColumnReduceStage():
            yield part.groups.everything()[0], part.key_of.forms
        case ColumnGroupStage():
            yield part.groups.everything()[0], part.arranged.key_of.forms
            yield from _values(part)
        case ColumnArrangeStage():
            yield from _indexed(part.chained, part)
        case ColumnSemiStage():
            yield part.present.everything()[0], part.right.key_of.forms
        case ColumnCompareStage():
            yield from part.keys_held()
            for columns in part.lefts(), part.rights():
                yield columns.matrix, columns.forms
        case ColumnDistinctStage():
            yield part.present.everything()[0], forms_of(part.reads_type) or ()
        case ColumnTopStage():
            yield part.top.table.keys[part.top.table.used()], part.key_of.forms
            yield part.top.used().T, part.forms
        case CheckedColumnInput():
            table = part.rows.table
            yield table.words(table.used()), forms_of(part.source.type) or ()
        case KeyedColumnInput(by_key=rows) if rows is not None:
            forms = forms_of(part.source.type) or ()
            used = rows.table.used()
            yield rows.table.keys[used], rows.key.forms
            yield rows.words[used], forms
            if part._put is not None:
                yield part._put[0], rows.key.forms
                yield part._put[1], forms


def _indexed(index: ChainedRows, side: ColumnKeyStage) -> Iterator[Held]:
    """The rows of an index, which a stage arranges, and their keys."""
    yield index.keys.words(index.keys.used()), side.key_of.forms
    yield index.rows.words(index.rows.used()), forms_of(side.before.type) or ()


def _values(stage: ColumnGroupStage) -> Iterator[Held]:
    """The values of groups that are counted, one of those who count after the other."""
    if stage.groups.values is not None:
        of, words, _ = stage.groups.values.everything(gone=True)
        seen = stage.reducers.seen
        for number, form in enumerate(seen):
            yield words[of % len(seen) == number].reshape(-1, 1), (form,)
        for number, forms in enumerate(stage.reducers.places):
            yield stage.groups.values.placed_values(number, gone=True)[1].T, forms
