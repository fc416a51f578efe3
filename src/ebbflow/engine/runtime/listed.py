"""Rows that are added, as they were given: a change that nobody has hashed.

A change is read into a dict, which hashes every row of it. Where inputs are trusted, and all that
read one go through the rows of a change once, a list of rows is as good as that dict: the steps
behind it hash what they make of the rows, and nobody else has to. Rows of an input with a key are
different because their keys are, which have to be looked at anyway. Without a key a row may come
twice; then all that read it must add rows up (`Stage.adds_up`).

Whatever else is given is read as ever: rows that are not of the type of the input, that hold a NaN
of their own, or lists where tuples are declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any

from ebbflow.change.fields import as_declared, unchanged
from ebbflow.engine.runtime.changes import is_loose
from ebbflow.engine.runtime.inputs import FEW, InputState
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.runtime.rows import Weights
from ebbflow.flow.plan import Source
from ebbflow.nan import finder
from ebbflow.record import fields_of


class AddedRows:
    """Rows that a change adds, each as often as it is there.

    >>> added = AddedRows(["ebb", "flow"])
    >>> len(added), dict(added.items())
    (2, {'ebb': 1, 'flow': 1})
    """

    __slots__ = ("listed",)

    def __init__(self, rows: Iterable[Any]) -> None:
        self.listed = list(rows)

    def items(self) -> Iterator[tuple[Any, int]]:
        """The rows, each with its weight."""
        return zip(self.listed, repeat(1))

    def __len__(self) -> int:
        return len(self.listed)


def added(state: InputState, rows: list[Any]) -> Weights | AddedRows:
    """Be ready to add rows to a trusted input, and give them as they are, or as ever."""
    if len(rows) <= FEW or not _as_declared(state.source, rows):
        return state.apply(rows)
    if type(state) is InputState:
        return AddedRows(rows)
    if type(state) is KeyedInput and state.add_new(rows):
        return AddedRows(rows)
    return state.apply(rows)


def _as_declared(source: Source, rows: list[Any]) -> bool:
    """Whether reading rows would change none of them."""
    row_type = source.type
    if fields_of(row_type) is None or {*map(type, rows)} != {row_type} or is_loose(row_type):
        return False
    found = finder(row_type)
    return as_declared(row_type) is unchanged and (found is None or not found(rows))
