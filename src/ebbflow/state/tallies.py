"""Tallies: cells that hold counts, and are changed in place.

For each key there is a *table*: how often each thing is there, by that thing. A step counts many
things of many keys, a few of each; a copy of every table that it touches, for the journal, would
cost more than the counting. So what is noted is each count as it was, before it is changed: going
back is writing these counts again, the last first. That can be done from wherever a step was cut
short, as a count that was noted and not changed yet is written as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import not_there

K = TypeVar("K", bound=Hashable)
A = TypeVar("A", bound=Hashable)
Table = dict[A, int]
Counted = list[tuple[K, A, int]]
"""What is counted: a key, the thing, and how often it comes or goes."""
NOTHING: Any = ((), ())
"""The first entry of a journal when there was nothing before it: then no others are needed."""


class Tallies(Cells[K, dict[A, int]]):
    """How often things are there, by key; see the module. A table may be empty until `drop_empty`.

    >>> tallies = Tallies({"Rome": {"rain": 2}})
    >>> tallies.begin()
    >>> tallies.count([("Rome", "rain", -2), ("Rome", "snow", 1), ("Oslo", "snow", 1)])
    [('Rome', 'rain')]
    >>> tallies
    Tallies({'Rome': {'snow': 1}, 'Oslo': {'snow': 1}})
    >>> tallies.rollback()
    >>> tallies
    Tallies({'Rome': {'rain': 2}})
    """

    __slots__ = ("emptied",)

    def __init__(self, values: Any = ()) -> None:
        super().__init__(values)
        self.emptied: list[K] = []

    def count(self, changes: Counted[K, A]) -> list[tuple[K, A]]:
        """Add counts, and say what is not there any more, of which keys. An error when something
        would be there less than not at all."""
        values, lost = self.values, list[tuple[K, A]]()
        counts: list[int] = []
        self._note((changes, counts))
        note, get = counts.append, values.get
        for key, at, count in changes:
            table = get(key)
            if table is None:
                table = values[key] = {}
            was = table.get(at, 0)
            note(was)
            count += was
            if count > 0:
                table[at] = count
            elif count:
                raise not_there(key)
            else:
                del table[at]
                lost.append((key, at))
                if not table:
                    self.emptied.append(key)
        return lost

    def discount(self, changes: Counted[K, A]) -> list[tuple[K, A]]:
        """Take counts off, all of which are there; say what is not there any more."""
        values, lost = self.values, list[tuple[K, A]]()
        counts: list[int] = []
        self._note((changes, counts))
        note = counts.append
        try:
            for key, at, count in changes:
                table = values[key]
                was = table[at]
                note(was)
                if was > count:
                    table[at] = was - count
                elif was < count:
                    raise not_there(key)
                else:
                    del table[at]
                    lost.append((key, at))
                    if not table:
                        self.emptied.append(key)
        except KeyError:
            raise not_there(key) from None
        return lost

    def keep(self, which: Callable[[A], bool]) -> None:
        """Have only the counts of such things. The tables are others then."""
        old = dict(self.values)
        self._note(old)
        for key, table in old.items():
            self.values[key] = {at: count for at, count in table.items() if which(at)}
        self.emptied += old

    def drop_empty(self) -> None:
        """Have no table where nothing is counted."""
        values, emptied, self.emptied = self.values, self.emptied, []
        for key in emptied:
            if key in values and not values[key]:
                del values[key]

    # ---- going back ----

    def _note(self, entry: Any) -> None:
        journal, backing = self.journal, self.backing
        if journal is None or (journal and journal[0] is NOTHING):
            return
        here = backing is None or backing.resident is None
        journal.append(NOTHING if here and not journal and not self.values else entry)

    def _keys(self, entry: Any) -> list[K]:
        """The keys that an entry tells of."""
        if entry is NOTHING or isinstance(entry, dict):
            return list(self.values if entry is NOTHING else entry)
        return [key for key, _, _ in entry[0]]

    def _back(self, entry: Any, tables: dict[K, Table[A]]) -> None:
        """Take an entry back in some tables; those that are not among them are put there first."""
        if entry is NOTHING or isinstance(entry, dict):
            for key in self._keys(entry):
                tables[key] = {} if entry is NOTHING else entry[key].copy()
            return
        for key in self._keys(entry):
            if key not in tables:
                tables[key] = self.values.get(key, {}).copy()
        for (key, at, _), was in reversed([*zip(*entry, strict=False)]):
            if was:
                tables[key][at] = was
            else:
                tables[key].pop(at, None)

    def undo(self, entry: Any) -> None:
        """Put counts back, or tables that were replaced."""
        self._back(entry, self.values)
        self.emptied += self._keys(entry)
        self.drop_empty()

    def before(self) -> dict[K, Table[A]]:
        found: dict[K, Table[A]] = {}
        for entry in reversed(self._open()):
            self._back(entry, found)
        return {key: table or ABSENT for key, table in found.items()}

    def written(self) -> dict[K, Table[A]]:
        get = self.values.get
        return {key: get(key) or ABSENT for each in self._open() for key in self._keys(each)}

    def apart(self, held: Table[A]) -> Table[A]:
        return held.copy()

    def __repr__(self) -> str:
        return f"Tallies({self.values!r})"
