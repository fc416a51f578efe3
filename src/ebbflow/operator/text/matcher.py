"""Matching a pattern in a text that is read piece by piece, from the left or from the right.

A *matcher* is a `read` of a rope. Its state is how many letters of the pattern the text read so far
ends with, counted from after the last match: with "banana", the text "xxban" leaves 3. Reading on
in state q is reading from scratch with the first q letters of the pattern put in front, so
`str.split` does all the work, and does it as `str.count` and `str.replace` see it: from the left, a
match at a time, none overlapping the one before.

    read(q, piece):  split(pattern[:q] + piece)  →  matches between the parts, letters at the end

So a match is found wherever the text is cut, and an edit in the middle of "aaaa" moves every later
match of "aa" as it should.
"""

from __future__ import annotations

from typing import Any

LOOKS = 16


class Matcher:
    """Reads matches of a pattern from the left: `read` of a rope.

    >>> Matcher("aab")(2, "b, aabaa")
    (2, 2)
    """

    __slots__ = ("_borders", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._borders: list[int] | None = None

    def __call__(self, state: int, piece: str) -> tuple[int, int]:
        pattern = self.pattern
        if len(pattern) == 1:
            return 0, piece.count(pattern)
        parts = (pattern[:state] + piece).split(pattern)
        return self.begun(parts[-1]), len(parts) - 1

    def begun(self, tail: str) -> int:
        """How many first letters of the pattern the tail ends with, if it does not hold all of it.

        Compares where the first letter is, mostly once or never. A text that looks like the pattern
        in many places would be compared with it m times; so after a few the rest is read letter by
        letter.

        >>> Matcher("abac").begun("cabaaba"), Matcher("abac").begun("xyz")
        (3, 0)
        """
        pattern, size = self.pattern, len(tail)
        at = max(size - len(pattern) + 1, 0)
        for _ in range(LOOKS):
            at = tail.find(pattern[0], at)
            if at < 0:
                return 0
            if pattern.startswith(tail[at:]):
                return size - at
            at += 1
        return _ending(pattern, self.borders(pattern), tail[at:])

    def borders(self, pattern: str) -> list[int]:
        """The table of `_borders` for the pattern, made when it is first needed."""
        if self._borders is None:
            self._borders = _borders(pattern)
        return self._borders

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.pattern,)


class BackMatcher(Matcher):
    """Reads matches from the right; its state is how many letters of the pattern's end are there.

    >>> BackMatcher("aab")(1, "ab, aa")
    (2, 1)
    """

    __slots__ = ()

    def __call__(self, state: int, piece: str) -> tuple[int, int]:
        pattern = self.pattern
        if len(pattern) == 1:
            return 0, piece.count(pattern)
        parts = (piece + pattern[len(pattern) - state :]).rsplit(pattern)
        return self.ended(parts[0]), len(parts) - 1

    def ended(self, head: str) -> int:
        """How many last letters of the pattern the head begins with, if it does not hold all of it.

        >>> BackMatcher("caba").ended("abaabac")
        3
        """
        pattern = self.pattern
        end = len(pattern) - 1
        for _ in range(LOOKS):
            end = head.rfind(pattern[-1], 0, end)
            if end < 0:
                return 0
            if pattern.endswith(head[: end + 1]):
                return end + 1
        mirrored = pattern[::-1]
        return _ending(mirrored, self.borders(mirrored), head[:end][::-1])


def _borders(pattern: str) -> list[int]:
    """For each number of the pattern's first letters, how many of its first letters they also end
    with, not counting all of them: the failure function of Knuth, Morris and Pratt.

    >>> _borders("abacab")
    [0, 0, 0, 1, 0, 1, 2]
    """
    table, size = [0, 0], 0
    for letter in pattern[1:]:
        while size and pattern[size] != letter:
            size = table[size]
        size += pattern[size] == letter
        table.append(size)
    return table


def _ending(pattern: str, borders: list[int], text: str) -> int:
    """How many first letters of the pattern a text ends with, if it is shorter: in O(text)."""
    size = 0
    for letter in text:
        while size and pattern[size] != letter:
            size = borders[size]
        size += pattern[size] == letter
    return size
