"""Cells: one value per key, and a journal that can undo an epoch.

An operator that keeps something for every key (a count, an accumulator, a tree) keeps it in cells.
All of a step's new values are put in together, by `swap`, which gives back the old ones. A step
needs them anyway to say what changed; that they are also all it takes to undo the step is why the
journal costs nothing: between `begin` and `commit` it is the list of what `swap` gave back.

    begin()       from here on, remember
    commit()      forget how to go back, and give what was remembered
    rollback()    go back to where `begin` was called

A value that is in a cell must not be altered in place: the old one would not be old.

A rollback that is cut short goes on when it is called again. An entry stays in the journal until it
is undone, and undoing it either writes what was there before, which can be done twice, or is itself
an entry of the journal.

An engine that keeps its state elsewhere has a `Backing` put the cells of the touched keys into
`values`, runs a step, and writes down what was written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from ebbflow.errors import AlgebraError
from ebbflow.state.backing import ABSENT, Backing

J = TypeVar("J")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

__all__ = ["ABSENT", "Cells", "Journalled"]


class Journalled(ABC, Generic[J]):
    """A container that can go back to where its epoch began."""

    __slots__ = ("backing", "journal")

    backing: Backing | None
    journal: list[J] | None

    @abstractmethod
    def undo(self, entry: J) -> None:
        """Take back what one journal entry tells of. It may be done twice, or it is noted in the
        journal while that is open."""

    @property
    @abstractmethod
    def contents(self) -> dict[Any, Any]:
        """What is held for each key that is in memory."""

    @abstractmethod
    def before(self) -> dict[Any, Any]:
        """What was held before the open epoch, of the keys that it touches; ABSENT for nothing."""

    def apart(self, held: Any) -> Any:
        """What is held for a key, for another container: what is done to it there is not done to it
        here."""
        return held

    # ---- everything below is written with this ----

    def everything(self) -> dict[Any, Any]:
        """What is held for each key, also for those that are not in memory."""
        return self.contents if self.backing is None else self.backing.everything()

    def begin(self) -> None:
        """Remember from here on what is done."""
        if self.journal is not None:
            raise AlgebraError("an epoch is open already", remedy="commit() or rollback() first")
        self.journal = []

    def commit(self) -> list[J]:
        """Keep what was done since `begin`, and give the journal of it."""
        journal = self.journal
        if journal is None:
            return self._open()
        self.journal = None
        return journal

    def rollback(self) -> None:
        """Undo what was done since `begin`, the last first. If it is cut short, call it again."""
        journal = self._open()
        while journal:
            last = len(journal) - 1
            self.undo(journal[last])
            del journal[last:]
        self.journal = None

    def forget(self) -> None:
        """Have no epoch open, whatever it did; for who has thrown the state away."""
        self.journal = None

    def _open(self) -> list[J]:
        if self.journal is None:
            raise AlgebraError("no epoch is open", remedy="begin() first")
        return self.journal


class Cells(Journalled[dict[K, V]]):
    """A dict of one value per key, changed by `swap`; read `values` as you like.

    >>> cells = Cells({"Rome": 3})
    >>> cells.begin()
    >>> cells.swap({"Rome": 4, "Oslo": 1})
    {'Rome': 3, 'Oslo': ABSENT}
    >>> cells
    Cells({'Rome': 4, 'Oslo': 1})
    >>> cells.rollback()
    >>> cells
    Cells({'Rome': 3})
    """

    __slots__ = ("values",)

    def __init__(self, values: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self.values: dict[K, V] = dict(values)
        self.journal = None
        self.backing = None

    def swap(self, new: dict[K, V]) -> dict[K, V]:
        """Put in new values, ABSENT for none, and give the old ones of the same keys."""
        values = self.values
        get = values.get
        old = {key: get(key, ABSENT) for key in new}
        if self.journal is not None:
            self.journal.append(old)
        for key, value in new.items():
            if value is not ABSENT:
                values[key] = value
            elif old[key] is not ABSENT:
                del values[key]
        return old

    def undo(self, entry: dict[K, V]) -> None:
        """Put old values back. Doing it twice is doing it once."""
        values = self.values
        for key, value in entry.items():
            if value is not ABSENT:
                values[key] = value
            else:
                values.pop(key, None)

    @property
    def contents(self) -> dict[K, V]:
        return self.values

    def before(self) -> dict[K, V]:
        found: dict[K, V] = {}
        for old in self._open():
            found = {**old, **found}
        return found

    def written(self) -> dict[K, V]:
        """What the open epoch has put in so far; ABSENT for what it took out."""
        get = self.values.get
        return {key: get(key, ABSENT) for old in self._open() for key in old}

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return self.values == other.values if isinstance(other, Cells) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Cells({self.values!r})"
