"""What a key has only one of: its one value, or its one row.

The words of all values of a key, each once, are put together bit by bit with an exclusive or. What
comes and goes again leaves no trace in that: so when one value is left, its word is there, and no
other had to be looked for. Both kernels here are `Groups` with such cells.

    OtherValues     whether a key has a value other than a given one
    OneRows         the one row of each key
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.groups import ONLY, TOTAL, Addend, Groups, Result
from ebbflow.kernel.hashing import EMPTY, Words
from ebbflow.kernel.words import NULL


class Turned(NamedTuple):
    """Whose answers a change has turned. All who have one of these `keys` meet something now, or
    with sign -1 do not any more; but those who have one of these `pairs`, a key and its value, the
    other way round, in addition."""

    keys: Words
    signs: Words
    pairs: Words
    less: Words


class OtherValues:
    """Which values, of keys of `width` words, some key has; a value that is NULL is not one.

    A value differs from some value of its key unless there is none, or it is the only one:

        meets  ==  there is one  -  it is the only one

    >>> others = OtherValues(1)
    >>> turned = others.step(np.array([[7], [7], [8]]), np.array([1, 2, 1]), np.ones(3, np.int64))
    >>> turned.keys.tolist(), turned.signs.tolist(), turned.pairs.tolist(), turned.less.tolist()
    ([[7], [8]], [1, 1], [[8, 1]], [-1])
    >>> others.differ(np.array([[7], [8], [8], [9]]), np.array([1, 1, 2, 1])).tolist()
    [True, False, True, False]
    """

    __slots__ = ("pairs", "values", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.pairs = Groups(width + 1, [], [])
        """How often each value of each key is there."""
        self.values = Groups(width, [Addend(ONLY, 0)], [Result(TOTAL, 0), Result(TOTAL, 1)])
        """How many different values each key has, and the bits of them all."""

    def step(self, keys: Words, values: Words, weights: Words) -> Turned:
        """Add values of keys with weights."""
        width = self.width
        pairs, signs = self.pairs.step(with_value(keys, values), _none(len(keys)), weights)
        there = np.flatnonzero(pairs[width] != NULL)
        if len(there) < len(signs):
            pairs, signs = pairs[:, there], signs[there]
        keys, values = np.ascontiguousarray(pairs[:width].T), pairs[width].reshape(-1, 1)
        out, signs = self.values.step(keys, values, signs)
        alone = np.flatnonzero(out[width] == 1)
        pairs = np.ascontiguousarray(out[[*range(width), width + 1]][:, alone].T)
        first, last = _ends(out[:width], signs)
        came = np.flatnonzero(first & last)
        keys = np.ascontiguousarray(out[:width, came].T)
        return Turned(keys, signs[came], pairs, -signs[alone])

    def differ(self, keys: Words, values: Words) -> Words:
        """Which of these values differ from some value that their key has."""
        self.values.fit()
        slots, cells = self.values.table.find(keys), self.values.cells
        some = cells[slots, 0]
        return (
            (slots != EMPTY) & (values != NULL)
            & ((some > 1) | ((some == 1) & (cells[slots, 1] != values)))
        )  # fmt: skip


class OneRows:
    """The one row, of `fields` words, of each key of `width` words. Where a key has more than one,
    `DoesNotFit` is raised.

    >>> ones = OneRows(1, 2)
    >>> keys, was, now = ones.step(np.array([[7]]), np.array([[7, 40]]), np.array([1]))
    >>> keys.tolist(), was.tolist(), now.tolist()
    ([[7]], [-1], [0])
    >>> ones.found(np.array([[7], [8]]))[0].tolist()
    [True, False]
    """

    __slots__ = ("groups", "made", "width")

    def __init__(self, width: int, fields: int) -> None:
        self.width = width
        results = [Result(TOTAL, at) for at in range(fields + 1)]
        self.groups = Groups(width, [Addend(ONLY, at) for at in range(fields)], results)
        self.made: Words = np.empty((0, 0), np.int64)
        """What the last step gave: the rows that went, and those that came."""

    def step(self, keys: Words, rows: Words, weights: Words) -> tuple[Words, Words, Words]:
        """Add rows with weights. Gives the keys that have another row now, and where among what was
        `made` the old row of each is, and the new one; -1 for none."""
        out, signs = self.groups.step(keys, rows, weights)
        width = self.width
        if (out[width] != 1).any():
            raise DoesNotFit("more than one row, where there is to be one")
        self.made = out[width + 1 :]
        first, last = (np.flatnonzero(each) for each in _ends(out[:width], signs))
        was = np.where(signs[first] < 0, first, -1)
        now = np.where(signs[last] > 0, last, -1)
        return np.ascontiguousarray(out[:width, first].T), was, now

    def found(self, keys: Words) -> tuple[Words, Words]:
        """Which of these keys have a row, and the slots of those that do."""
        self.groups.fit()
        slots = self.groups.table.find(keys)
        there = (slots != EMPTY) & (self.groups.cells[slots, 0] == 1)
        return there, slots[there]

    def column(self, at: int, slots: Words) -> Words:
        """A field of the rows of these slots."""
        return self.groups.cells[slots, 1 + at]


def with_value(keys: Words, values: Words) -> Words:
    """Keys with a value behind each."""
    made = np.empty((len(keys), keys.shape[1] + 1), np.int64)
    made[:, :-1], made[:, -1] = keys, values
    return made


def _ends(keys: Words, signs: Words) -> tuple[Words, Words]:
    """Of what groups give, key by key, an old row before the new one: which rows are the first of
    their key, and which are the last."""
    first, last = np.ones((2, len(signs)), np.bool_)
    first[1:] = (signs[1:] < 0) | (signs[:-1] > 0) | (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    last[:-1] = first[1:]
    return first, last


def _none(count: int) -> Words:
    return np.empty((count, 0), np.int64)
