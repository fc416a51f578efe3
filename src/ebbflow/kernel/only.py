"""What a key has only one of: its one value, or its one row.

The words of all values of a key, each once, are put together bit by bit with an exclusive or. What
comes and goes again leaves no trace in that: so when one value is left, its word is there, and no
other had to be looked for. Both kernels here are `Groups` with such cells.

    OtherValues     whether a key has a value other than a given one
    OneRows         the one row of each key
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.compiled import compiled, inlined
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

    @classmethod
    def room(cls, count: int, width: int) -> Turned:
        """Room for so many of each, with keys of so many words."""
        keys, pairs = np.empty((count, width), np.int64), np.empty((count, width + 1), np.int64)
        return cls(keys, np.empty(count, np.int64), pairs, np.empty(count, np.int64))


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
        turned = Turned.room(len(signs), width)
        keys_given, pairs_given = _turned(out, signs, *turned)
        return Turned(
            turned.keys[:keys_given], turned.signs[:keys_given],
            turned.pairs[:pairs_given], turned.less[:pairs_given],
        )  # fmt: skip

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
        found = np.empty((len(signs), width), np.int64)
        was, now = np.empty((2, len(signs)), np.int64)
        count = _replaced(out, signs, found, was, now)
        return found[:count], was[:count], now[:count]

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


@inlined
def _is_old(out: Words, signs: Words, i: int, width: int) -> Any:
    """Whether a row of what groups give is an old one, and the new one of its key is behind it."""
    if signs[i] > 0 or i + 1 == len(signs) or signs[i + 1] < 0:
        return False
    for j in range(width):  # noqa: SIM110, Numba knows no generators
        if out[j, i] != out[j, i + 1]:
            return False
    return True


@compiled
def _turned(
    out: Words, signs: Words, keys: Words, key_signs: Words, pairs: Words, less: Words
) -> tuple[int, int]:
    """Write who has turned, from the old and new numbers of keys; gives how many of each."""
    width = keys.shape[1]
    turned = alone = 0
    replaces = False
    for i in range(len(signs)):
        if out[width, i] == 1:
            for j in range(width):
                pairs[alone, j] = out[j, i]
            pairs[alone, width], less[alone] = out[width + 1, i], -signs[i]
            alone += 1
        replaced = _is_old(out, signs, i, width)
        if not replaced and not replaces:
            for j in range(width):
                keys[turned, j] = out[j, i]
            key_signs[turned] = signs[i]
            turned += 1
        replaces = replaced
    return turned, alone


@compiled
def _replaced(out: Words, signs: Words, keys: Words, was: Words, now: Words) -> int:
    """Write the keys that have another row now, and where the old and the new one are; gives how
    many there are."""
    width = keys.shape[1]
    count = 0
    replaces = False
    for i in range(len(signs)):
        if replaces:
            now[count - 1], replaces = i, False
            continue
        for j in range(width):
            keys[count, j] = out[j, i]
        was[count], now[count] = (i, -1) if signs[i] < 0 else (-1, i)
        count += 1
        replaces = _is_old(out, signs, i, width)
    return count


def _none(count: int) -> Words:
    return np.empty((count, 0), np.int64)
