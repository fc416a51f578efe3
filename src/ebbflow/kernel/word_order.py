"""The numbers by which words are in order.

The entries of `ebbflow.kernel.ranked.Ranked` compare by numbers that are larger, the sooner a value
comes. A word becomes such a number, and a number the word again, by what its `WordOrder` says. A
text has no such number: it stays what it is, and is compared with others by its place among all
texts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.hashing import Words
from ebbflow.kernel.heaps import GREATEST_TEXT, LEAST_TEXT, NUMBER
from ebbflow.kernel.words import NULL


class WordOrder(NamedTuple):
    """How a word is ordered: its form, and whether the greatest comes first. None is less than all
    others, and NaN is the greatest float."""

    form: str
    greatest: bool

    @property
    def compared(self) -> int:
        """How what stands for the word compares."""
        if self.form != "text":
            return NUMBER
        return GREATEST_TEXT if self.greatest else LEAST_TEXT

    @property
    def how(self) -> int:
        """What is done to a word to make that number: one bit for a float, one where the least
        comes first."""
        return 0 if self.form == "text" else (self.form == "float") + 2 * (not self.greatest)


def ranked_numbers(rows: Words, slots: Words, how: Words) -> Words:
    """The numbers of rows of words, each behind the slot of its group.

    >>> how = np.array([WordOrder("int", True).how, WordOrder("int", False).how])
    >>> ranked_numbers(np.array([[5, 5]]), np.array([3]), how).tolist()
    [[3, 5, -6]]
    """
    numbers = np.empty((len(rows), 1 + len(how)), np.int64)
    _numbers(rows, slots, how, numbers)
    return numbers


def ranked_words(entries: Words, keys: Words, how: Words) -> Words:
    """The words of entries that have these numbers, column by column.

    >>> how = np.array([WordOrder("int", False).how])
    >>> ranked_words(np.array([0]), np.array([[3, -6]]), how).tolist()
    [[5]]
    """
    out = np.empty((len(how), len(entries)), np.int64)
    _words(entries, keys, how, out)
    return out


@inlined
def in_order(word: Any, how: Any) -> Any:
    """The bits of a float as a number that has its order, and back."""
    if how & 1 and word < 0 and word != NULL:
        word = word ^ 0x7FFFFFFFFFFFFFFF
    return word


@inlined
def number_of(word: Any, how: Any) -> Any:
    """A number that is larger, the sooner a word comes."""
    return ~in_order(word, how) if how & 2 else in_order(word, how)


@inlined
def word_of(number: Any, how: Any) -> Any:
    """The word that has this number."""
    return in_order(~number if how & 2 else number, how)


@compiled
def _numbers(rows: Words, slots: Words, how: Words, numbers: Words) -> None:
    for i in range(len(rows)):
        numbers[i, 0] = slots[i]
        for k in range(len(how)):
            numbers[i, k + 1] = number_of(rows[i, k], how[k])


@compiled
def _words(entries: Words, keys: Words, how: Words, out: Words) -> None:
    for i in range(len(entries)):
        for k in range(len(how)):
            out[k, i] = word_of(keys[entries[i], k + 1], how[k])
