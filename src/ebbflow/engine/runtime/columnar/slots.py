"""What the slots of an accumulator are made of where they are stored in columns.

The row path stores a cell as a tuple: None, the size of the group, and what each reducer keeps
(`ebbflow.reducer.running.ReduceGroups.dump`). Each of these values has a column. A `Slot` says of
one of them which cells of a kernel it is made of; None is nothing, or what is not needed here.
"""

from __future__ import annotations

from typing import NamedTuple

from ebbflow.engine.runtime.columnar.written import KeptNumbers
from ebbflow.kernel.words import WordForm


class Number(NamedTuple):
    """A slot of the row path that is a whole number, in a cell."""

    at: int


class Others(NamedTuple):
    """One that is how many values are not true, of those that are `counted`."""

    counted: int
    true: int


class PackedCells(NamedTuple):
    """One that is stored as the bytes of several cells, the lowest first; as None where the cell
    that counts its values, if there is one, is zero."""

    places: tuple[int, ...]
    counted: int | None


class DecimalTotal(NamedTuple):
    """One that is the sum of Decimals, in units of a scale, where some are `counted`: a Decimal."""

    counted: int
    total: int
    scale: int


class FirstValue(NamedTuple):
    """One that is the least or the greatest value; None where there is none."""

    at: int
    form: WordForm


class Times(NamedTuple):
    """One that is how often the first value is there, of those that one of `Looked` looks at. It is
    no cell, and stands behind the cells."""

    number: int


class AllValues(NamedTuple):
    """One that is all values of the group that a reducer looks at, and how often each is there: as
    bytes (`ebbflow.engine.runtime.columnar.packed`). They are in no cell; the kernel has them by
    this number (`ebbflow.kernel.firsts.Firsts.held`)."""

    number: int
    forms: tuple[WordForm, ...]


class Accumulated(NamedTuple):
    """One that is the accumulator of a reducer that somebody wrote, in several cells: a number, or
    a tuple, which is pickled."""

    places: tuple[int, ...]
    kept: KeptNumbers


Slot = (
    Number
    | Others
    | PackedCells
    | DecimalTotal
    | FirstValue
    | Times
    | AllValues
    | Accumulated
    | None
)
