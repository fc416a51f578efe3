"""Stages on columns: what all of them share, steps on rows, and reduces.

Each replaces a row stage (`by_rows`) and equals it. `run` takes columns, or rows, of which it makes
columns first; when a value does not fit, the row stage does it. A stage with state hands that over
to the row stage, once and for good: `give_up`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ebbflow.engine.runtime.columnar.few import FewRows, few_rows, rows_reader
from ebbflow.engine.runtime.columnar.steps import ChainOnColumns, SideBySide
from ebbflow.engine.runtime.stage import Stage
from ebbflow.engine.runtime.stages import FusedReduceStage, LinearStage
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.columns import Columns, OneArray, columns_of_rows
from ebbflow.kernel.few import FewSteps
from ebbflow.kernel.groups import Groups
from ebbflow.kernel.words import Texts, WordForm, decoded


class ColumnState:
    """The container of a stage on columns: that of the kernel, until rows have taken over; then
    those of the row stage. `journal` are those of the epoch that is open."""

    __slots__ = ("journal", "kernels", "stage")
    backing = None

    def __init__(self, stage: ColumnStage, kernels: Sequence[Any]) -> None:
        self.stage, self.kernels = stage, kernels
        self.journal: Sequence[Any] | None = None

    @property
    def held(self) -> Sequence[Any]:
        """What has the state now."""
        stage = self.stage
        return stage.by_rows.containers if stage.family.given_up else self.kernels

    def begin(self) -> None:
        """Remember from here on what is done."""
        stage = self.stage
        held = self.journal = stage.by_rows.containers if stage.family.given_up else self.kernels
        for each in held:
            each.begin()

    def commit(self) -> None:
        """Keep what was done since `begin`. Doing it twice is doing it once."""
        for each in self.journal or ():
            if each.journal is not None:
                each.commit()
        self.journal = self.stage.done = None

    def rollback(self) -> None:
        """Undo what was done since `begin`."""
        self.go_back()
        self.journal = self.stage.done = None

    def go_back(self) -> None:
        """Be as when the epoch began."""
        for each in self.journal or ():
            if each.journal is not None:
                each.rollback()

    def forget(self) -> None:
        """Have no epoch open, whatever it did."""
        self.journal = None
        for each in self.held:
            each.forget()

    def __len__(self) -> int:
        return sum(map(len, self.held))


class Family:
    """Stages that can only give up together, as they read each other's state. `given_up` is why
    rows have taken over, or nothing."""

    def __init__(self, *stages: ColumnStage) -> None:
        self.stages = sorted(stages, key=lambda stage: stage.slot)
        self.given_up = ""

    def give_up(self, why: object) -> None:
        """Hand the state over to the row stages, for good; what they had of the epoch that is open,
        they get again. Whoever is interrupted has handed over nothing, or all that there was when
        the epoch began."""
        if self.given_up:
            return
        holding = [stage for stage in self.stages if stage.containers]
        for stage in holding:
            stage.state.go_back()
            for container in stage.by_rows.containers:
                container.contents.clear()  # an interrupt may have come when it was half filled
            stage.fill()
        self.given_up = str(why)
        for stage in holding:
            for kernel in stage.state.kernels:
                kernel.clear()
            again, stage.done = stage.done, None
            if stage.state.journal is not None:
                stage.state.begin()
                if again is not None:
                    stage.by_rows.run(*stage.rows_given(*again))


class ColumnStage(Stage):
    """A stage on columns in the place of a row stage.

    `texts` are those of the program. `done` is what it was given in the epoch that is open, where
    its state has that already. `family` are the stages that it gives up with.
    """

    __slots__ = ("by_rows", "done", "family", "state", "texts")

    in_columns = True

    def __init__(self, by_rows: Any, texts: Texts, *kernels: Any) -> None:
        self.by_rows, self.texts = by_rows, texts
        self.node, self.owner, self.label = by_rows.node, by_rows.owner, by_rows.label
        self.reads, self.slot, self.type = by_rows.reads, by_rows.slot, by_rows.type
        self.counts = by_rows.counts
        self.state = ColumnState(self, kernels)
        self.containers = (self.state,) if kernels else ()  # type: ignore[assignment]
        self.done: Any = None
        self.family = Family(self)

    def step(self, *changes: Any) -> Any:
        """The change of its slot, on columns."""
        raise NotImplementedError

    def _read(self, groups: Any) -> Columns:
        """The rows that groups give now, each once."""
        rows = groups.read()
        ones = np.ones(rows.shape[1], np.int64)
        return Columns(self.type, list(rows), ones, self.texts, canonical=True)

    def fill(self) -> None:
        """Have the containers of the row stage hold what the kernel holds."""

    def rows_given(self, *changes: Any) -> Sequence[Any]:
        """Changes as the row stage takes them."""
        return [as_rows(change) for change in changes]

    # ---- everything below is written with these ----

    def run(self, *changes: Any) -> Any:
        self.done = None
        if not self.family.given_up:
            try:
                out = self.step(*changes)
                self.done = changes if self.containers else None
                return out
            except DoesNotFit as why:
                self.family.give_up(why)
        return self.by_rows.run(*self.rows_given(*changes))

    @property
    def given_up(self) -> str:  # type: ignore[override]
        """Why rows have taken over, or nothing."""
        return self.family.given_up

    def columns(self, change: Any, row_type: Any) -> Columns:
        """A change as columns."""
        if isinstance(change, Columns):
            return change
        return columns_of_rows(change or {}, row_type, self.texts)

    @property
    def kept(self) -> bool:  # type: ignore[override]
        return bool(self.by_rows.kept)

    @property
    def certain(self) -> bool:  # type: ignore[override]
        return bool(self.by_rows.certain)

    @property
    def steps(self) -> Any:  # type: ignore[override]
        return self.by_rows.steps

    def loops(self, stored: bool) -> tuple[Callable[..., Any], ...]:
        loops: tuple[Callable[..., Any], ...] = self.by_rows.loops(stored)
        return loops

    def code_of(self, stored: bool) -> Iterator[Any]:
        yield from self.by_rows.code_of(stored)


def as_rows(change: Any) -> Any:
    """A change as a dict of rows, for a row stage."""
    return change.rows if isinstance(change, Columns) else change


def together(parts: Sequence[Columns], texts: Texts) -> Columns:
    """Several changes as one; equal rows are not added up."""
    if len(parts) == 1:
        return parts[0]
    fields = [
        np.concatenate([part.words(at) for part in parts]) for at in range(len(parts[0].given))
    ]
    return Columns(parts[0].type, fields, np.concatenate([p.weights for p in parts]), texts)


class ColumnLinearStage(ColumnStage):
    """Filters and maps on each slot that it reads, added up. It has no state: what does not fit
    goes through the row stage, and the next change may fit again."""

    __slots__ = ("chains", "types")

    by_rows: LinearStage

    def __init__(
        self, by_rows: LinearStage, texts: Texts, chains: Sequence[ChainOnColumns],
        types: Sequence[Any],
    ) -> None:  # fmt: skip
        super().__init__(by_rows, texts)
        self.chains, self.types = chains, types

    def run(self, *changes: Any) -> Any:
        if all(type(change) is dict and few_rows(change) for change in changes if change):
            return self.by_rows.run(*changes)
        try:
            parts = [
                chain(self.columns(change, row_type))
                for chain, change, row_type in zip(self.chains, changes, self.types, strict=True)
                if change
            ]
        except DoesNotFit:
            return self.by_rows.run(*self.rows_given(*changes))
        return together(parts, self.texts) if parts else {}


class ColumnReduceStage(ColumnStage):
    """Counts, sums and means by key, in `Groups`; `cells_of` makes the cells of the row stage,
    `stored` says what they are made of on disk. `few` makes the words of a few rows, for which
    there is a step of their own."""

    __slots__ = ("before", "cells_of", "few", "few_steps", "groups", "key_of", "reads_type",
                 "rows_of", "stored", "values")  # fmt: skip

    by_rows: FusedReduceStage

    def __init__(
        self, by_rows: FusedReduceStage, texts: Texts, reads_type: Any, before: ChainOnColumns,
        key: SideBySide, values: SideBySide, groups: Groups, cells_of: Any,
        stored: Sequence[Any], few: FewRows | None = None,
    ) -> None:  # fmt: skip
        super().__init__(by_rows, texts, groups)
        self.reads_type, self.before, self.key_of, self.values = reads_type, before, key, values
        self.groups, self.cells_of, self.stored, self.few = groups, cells_of, stored, few
        self.few_steps: Any = None
        if few is not None:
            self.few_steps = FewSteps(groups, *few.given[-1])
            self.rows_of = rows_reader(self.type, texts)

    def step(self, change: Any) -> Any:
        rows = few_rows(change)
        few, steps = self.few, self.few_steps
        if rows is None or few is None:
            columns = self.before(self.columns(change, self.reads_type))
            keys, values = self.key_of(columns), self.values(columns)
            out, signs = self.groups.step(keys, values, columns.weights)
            return Columns(self.type, out, signs, self.texts, canonical=True)
        count = few.write(rows)
        if not count:
            return {}
        given = steps(count)
        if type(change) is dict:
            return self.rows_of(steps.out, given, 2 * count)
        return OneArray(self.type, steps.words(count, given), self.texts)

    def whole(self, *_: Any) -> Any:
        return self.by_rows.whole() if self.given_up else self._read(self.groups)

    def fill(self) -> None:
        keys, cells = self.groups.everything()
        self.by_rows.cells.values.update(self.cells_of(keys, cells))


def key_values(forms: Sequence[WordForm], keys: Any, texts: Texts) -> list[Any]:
    """Keys as the row path has them: one value, or a tuple of several."""
    if not forms:
        return [()] * len(keys)
    parts = [decoded(form, np.ascontiguousarray(keys[:, j]), texts) for j, form in enumerate(forms)]
    return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))
