"""The state of each input of a program, and what may be done to it.

An input keeps its rows, so that it can refuse to lose what it does not have: a plain one in a bag,
one with a key under their keys (`ebbflow.engine.runtime.keyed_input`). One that is not checked
keeps none, and believes what it is told.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ebbflow.change.requests import ReplaceRows, Request
from ebbflow.engine.runtime.changes import hashable, read
from ebbflow.engine.runtime.events import (
    no_key,
)
from ebbflow.engine.runtime.replaced import difference
from ebbflow.engine.runtime.rows import Rows, Weights
from ebbflow.engine.runtime.values.check import canonical_row
from ebbflow.errors import AbsentRow, CheckError, Text
from ebbflow.flow.plan import Source
from ebbflow.flow.plan.time import ClockSource
from ebbflow.nan import one_nan
from ebbflow.zset import ZSet, trusted

FEW = 8
"""Of how many rows it does not pay to ask whether all of them are added."""


class InputState:
    """The state of one input. This one checks nothing and keeps no rows.

    Where `checks`, the values of rows are brought to their types, or refused.

    `apply` and `request` read what is given, check it, and give the change that it makes of the
    rows; nothing is changed before `keep`.
    """

    __slots__ = ("checks", "name", "source")

    keeps = False
    store: Any = None
    beside: Any = None
    """What is kept beside the rows (`InputNotes`), where something is."""

    def __init__(self, source: Source, checks: bool = False) -> None:
        self.source = source
        self.name = source.name
        self.checks = checks

    @property
    def holder(self) -> Any:
        """The container that has the rows; None where none has."""
        return self.store

    def apply(self, change: Any) -> Weights:
        """Be ready to apply a change, and give it as rows with weights."""
        return read(self.source, change, check=self.checks)

    def request(self, request: Request) -> Weights:
        """Be ready to do what is asked."""
        if isinstance(request, ReplaceRows):
            return self.replace(request)
        raise no_key(self.source, request.verb)

    def replace(self, request: ReplaceRows) -> Weights:
        """Be ready to have these rows and no others, or those of a part of the rows."""
        return self.apply(trusted(difference(self, request)))

    def get(self, key: Any) -> Any:
        """The row that has a key, or None."""
        raise no_key(self.source, "get")

    def has(self, row: Any) -> bool:
        """Whether a row is there; for an input with a key, whether a row of this key is."""
        return self.contents().weight(self.row_given(row)) != 0

    def row_given(self, row: Any) -> Any:
        """A row that somebody asks for, as the input has it."""
        row = hashable(self.source, row)
        return canonical_row(self.source, row) if self.checks else one_nan(row)

    def contents(self) -> ZSet[Any]:
        """The rows that are there; an error where nobody knows."""
        if not self.keeps:
            raise not_kept(self.source)
        return self.snapshot()

    @property
    def said(self) -> str:
        """What `explain` says of it."""
        return f"{len(self):,} rows" if self.keeps else "trusted: not kept"

    def keep(self) -> None:
        """Make what was prepared so. Doing it twice is doing it once."""

    def snapshot(self) -> ZSet[Any]:
        """The rows that are there."""
        return trusted({})

    def __len__(self) -> int:
        return 0


class CheckedInput(InputState):
    """An input without a key. Its rows must be of its type and, where `_prepare` looks, be there
    when they are taken away."""

    __slots__ = ("_prepare",)

    keeps = True

    def __init__(self, source: Source, prepare: Callable[[Weights], None] | None = None) -> None:
        super().__init__(source, checks=True)
        self._prepare = prepare

    def apply(self, change: Any) -> Weights:
        weights = read(self.source, change)
        if self._prepare is not None:
            self._prepare(weights)
        return weights


class BagInput(CheckedInput):
    """An input that keeps rows, each as often as it was added.

    >>> bag = BagInput(Source(name="words"))
    >>> bag.apply(["ebb", "flow", "ebb"]), len(bag)
    ({'ebb': 2, 'flow': 1}, 0)
    >>> bag.keep(); bag.snapshot()
    ZSet({'ebb': 2, 'flow': 1})
    """

    __slots__ = ("keep", "snapshot", "store")

    def __init__(self, source: Source) -> None:
        rows = self.store = Rows(partial(absent, source))
        super().__init__(source, rows.prepare)
        self.keep = rows.keep  # type: ignore[method-assign]
        self.snapshot = rows.snapshot  # type: ignore[method-assign]

    def has(self, row: Any) -> bool:
        rows, row = self.store, self.row_given(row)
        if rows.backing is not None:
            rows.backing.fetch([row])
        return row in rows.rows

    def __len__(self) -> int:
        return len(self.store.rows)


class SharedInput(CheckedInput):
    """An input whose rows are kept by an index that the program has anyway, and that refuses to
    lose what it does not have."""

    __slots__ = ("index",)

    def __init__(self, source: Source, index: Any) -> None:
        super().__init__(source)
        self.index = index

    @property
    def holder(self) -> Any:
        return self.index

    def snapshot(self) -> ZSet[Any]:
        groups = self.index.everything().values()
        return trusted({row: weight for rows in groups for row, weight in rows.items()})

    def __len__(self) -> int:
        return sum(map(len, self.index.everything().values()))


def not_kept(source: Source) -> CheckError:
    """The error for asking an input for rows that it does not keep."""
    return CheckError(
        f"input {source.name!r} is trusted, and its rows are not kept",
        created=source.place,
        remedy="run() without check_input=False, or an input with a key",
    )


def absent(source: Source, row: Any, there: int, taken: int) -> AbsentRow:
    """The error for taking away more of a row than there is."""
    return AbsentRow(
        f"input {source.name!r}: a row is taken away that is not there"
        + (" that often" if there else ""),
        row=row,
        there=Text(_times(there)),
        taken=Text(_times(taken)),
        created=source.place,
        remedy="remove only rows that were added, as often as they were; nothing was changed",
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def input_state_of(source: Source, check_input: bool) -> InputState:
    """The state of an input; one with a key always keeps its rows, or it could not find them."""
    if isinstance(source, ClockSource):
        from ebbflow.engine.runtime.clock import ClockInput

        return ClockInput(source)
    if source.key is not None:
        from ebbflow.engine.runtime.keyed_input import KeyedInput

        return KeyedInput(source, check_input)
    if source.lateness is not None:
        from ebbflow.engine.runtime.gate import GatedInput

        return GatedInput(source, check_input)
    return BagInput(source) if check_input else InputState(source)
