"""The rows of a collection, with their weights, as a program keeps them.

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
Refusal = Callable[[Any, int, int], EbbflowError]
NO_WEIGHTS: Weights = {}
NO_ROWS: tuple[()] = ()


class Rows:
    """Rows with their weights. When the weight of a row would become negative, `when_negative`
    makes the error to raise; without it, weights may be negative.

    >>> rows = Rows()
    >>> rows.prepare({"a": 2, "b": 1}); rows.keep()
    >>> rows.prepare({"a": -1, "b": -1, "c": -1}); rows.rows
    {'a': 2, 'b': 1}
    >>> rows.keep(); rows.rows
    {'a': 1, 'c': -1}
    """

    __slots__ = ("_after", "_delta", "_gone", "_when_negative", "backing", "rows")

    def __init__(self, when_negative: Refusal | None = None) -> None:
        self.rows: Weights = {}
        self.backing: Backing | None = None
        self._when_negative = when_negative
        self._delta: Weights = NO_WEIGHTS
        self._after: Weights = NO_WEIGHTS
        self._gone: list[Any] | tuple[()] = NO_ROWS

    def prepare(self, delta: Any) -> None:
        """Be ready to `keep` what `delta` makes of the rows; an error when it cannot be. It has
        rows with weights; where it has columns, rows are made of them."""
        delta = getattr(delta, "rows", delta)
        rows, when_negative = self.rows, self._when_negative
        if self.backing is not None:
            self.backing.fetch(delta)
        after: Weights = {}
        gone: list[Any] = []
        if rows or (delta and min(delta.values()) < 0):
            get = rows.get
            for row, weight in delta.items():
                there = get(row)
                if there is None:
                    if weight < 0 and when_negative is not None:
                        raise when_negative(row, 0, -weight)
                else:
                    weight += there
                    if not weight:
                        gone.append(row)
                    elif weight < 0 and when_negative is not None:
                        raise when_negative(row, there, there - weight)
                    else:
                        after[row] = weight
        self._delta, self._after, self._gone = delta, after, gone

    def keep(self) -> None:
        """Make the prepared change so. Doing it twice is doing it once."""
        rows = self.rows
        rows.update(self._delta)
        if self._after:
            rows.update(self._after)
        for row in self._gone:
            rows.pop(row, None)
        self._delta = self._after = NO_WEIGHTS
        self._gone = NO_ROWS

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
        return trusted(self.whole())

    def whole(self) -> Weights:
        """The rows as they are now, in a dict of their own."""
        here = self.rows if self.backing is None else self.backing.everything()
        return here.copy()
