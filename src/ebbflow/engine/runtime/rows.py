"""What a view keeps of a collection: its rows, and how often each is there.

An epoch may be refused at any moment until it is done, so rows are kept in two moves. `prepare`
looks at a change and refuses it or remembers what it will do; it changes nothing. `keep` does it,
and cannot be refused. Whatever `keep` writes is a final weight, never a difference, so a `keep`
that was interrupted is simply done again.

New rows are the common case and the change itself says their final weight. Only rows that were
there before need a weight of their own, or have to go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ebbflow.errors import EbbflowError
from ebbflow.state.backing import Backing
from ebbflow.state.cells import ABSENT
from ebbflow.zset import ZSet, trusted

Weights = dict[Any, int]
OutputDeltas = Mapping[str, Weights]
"""What an epoch changed in each output that it changed."""
Owed = Callable[[Any, int, int], EbbflowError]
NONE: Weights = {}
NOBODY: tuple[()] = ()


class Rows:
    """Rows with their weights. When a weight would become negative, `owed` says which error it is;
    without it, weights may be negative.

    >>> rows = Rows()
    >>> rows.prepare({"a": 2, "b": 1}); rows.keep()
    >>> rows.prepare({"a": -1, "b": -1, "c": -1}); rows.rows
    {'a': 2, 'b': 1}
    >>> rows.keep(); rows.rows
    {'a': 1, 'c': -1}
    """

    __slots__ = ("_after", "_delta", "_gone", "_owed", "backing", "rows")

    def __init__(self, owed: Owed | None = None) -> None:
        self.rows: Weights = {}
        self.backing: Backing | None = None
        self._owed = owed
        self._delta: Weights = NONE
        self._after: Weights = NONE
        self._gone: list[Any] | tuple[()] = NOBODY

    def prepare(self, delta: Weights) -> None:
        """Be ready to `keep` what `delta` makes of the rows; an error when it cannot be."""
        rows, owed = self.rows, self._owed
        if self.backing is not None:
            self.backing.fetch(delta)
        after: Weights = {}
        gone: list[Any] = []
        if rows or (delta and min(delta.values()) < 0):
            get = rows.get
            for row, weight in delta.items():
                there = get(row)
                if there is None:
                    if weight < 0 and owed is not None:
                        raise owed(row, 0, -weight)
                else:
                    weight += there
                    if not weight:
                        gone.append(row)
                    elif weight < 0 and owed is not None:
                        raise owed(row, there, there - weight)
                    else:
                        after[row] = weight
        self._delta, self._after, self._gone = delta, after, gone

    def keep(self) -> None:
        """Make what was prepared so. Doing it twice is doing it once."""
        rows = self.rows
        rows.update(self._delta)
        if self._after:
            rows.update(self._after)
        for row in self._gone:
            rows.pop(row, None)
        self._delta = self._after = NONE
        self._gone = NOBODY

    def changed(self) -> dict[Any, Any]:
        """The weights that `keep` will write; ABSENT for rows that go."""
        gone = dict.fromkeys(self._gone, ABSENT)
        return {**self._delta, **self._after, **gone}

    @property
    def store(self) -> Rows:
        """The container that is stored, as with an input."""
        return self

    @property
    def heaviest(self) -> int:
        """The largest weight, either way, that a row which is there will have."""
        return max(map(abs, self._after.values()), default=0)

    def snapshot(self) -> ZSet[Any]:
        """The rows as they are now."""
        here = self.rows if self.backing is None else self.backing.everything()
        return trusted(here.copy())
