"""The order of texts, for loops that know texts by their numbers.

Numbers are given as texts come, and say nothing of their order. So the texts are here a second
time, as bytes of UTF-8 one after the other, which compare as the texts do: where each one is, and
its first eight bytes as one number, which decide most of the time. What is new is added before a
step (`follow`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.hashing import Words, grown
from ebbflow.kernel.words import NULL, NumberedTexts, Texts


class TextOrder:
    """The bytes of the texts of a program, by their numbers.

    >>> texts = Texts()
    >>> order = TextOrder(texts)
    >>> flow, ebb = texts.words(["flow", "ebb"])
    >>> order.follow(); order.is_behind(flow, ebb), order.is_behind(ebb, flow)
    (True, False)
    """

    __slots__ = ("end", "free", "known", "places", "pool", "texts", "used")

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self._begin(texts.now)

    def _begin(self, now: NumberedTexts) -> None:
        self.free = list(now.free)
        """The numbers that no text had, so far as is known."""
        self.end = 0
        """So many numbers are known."""
        self.used = 0
        """So many bytes are used."""
        self.places = np.zeros((0, 3), np.int64)
        """Of each text: where its bytes begin, how many there are, and the first eight."""
        self.pool = np.zeros(0, np.uint8)
        self.known = now

    def follow(self) -> None:
        """Know all texts that there are. An interrupt does no harm: it is done again then."""
        now = self.texts.now
        if self.known is not now:
            self._begin(now)
        end, free = len(now.known), len(now.free)
        if self.end < end:
            self._add(range(self.end, end), now)
            self.end = end
        if free < len(self.free):
            self._add(self.free[free:], now)
            del self.free[free:]

    @property
    def followed(self) -> tuple[Words, Words]:
        """What loops compare texts by, of all that there are now."""
        self.follow()
        return self.places, self.pool

    def _add(self, numbers: Any, now: NumberedTexts) -> None:
        texts: list[Any] = [now.known[number] for number in numbers]
        whole = "".join(texts)
        if not whole.isascii():  # a letter may have several bytes
            texts = [text.encode("utf-8", "surrogatepass") for text in texts]
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        begin, end = self.used, self.used + int(sizes.sum())
        if len(self.pool) < end:
            self.pool = grown(self.pool, 2 * end)
        if len(self.places) < len(now.known):
            self.places = grown(self.places, 2 * len(now.known))
        self.pool[begin:end] = np.frombuffer(whole.encode("utf-8", "surrogatepass"), np.uint8)
        _write(np.fromiter(numbers, np.int64, len(texts)), sizes, begin, self.places, self.pool)
        self.used = end

    def is_behind(self, x: int, y: int) -> bool:
        """Whether one text is behind another."""
        return bool(_is_behind(x, y, self.places, self.pool))


NO_TEXTS = np.zeros((0, 3), np.int64), np.zeros(0, np.uint8)
"""What loops are given that compare no texts."""


@inlined
def text_behind(x: int, y: int, places: Words, pool: Words) -> Any:
    """Whether the text of one number is behind that of another; None is before all."""
    if y == NULL:
        return True
    if x == NULL:
        return False
    if places[x, 2] != places[y, 2]:
        return places[x, 2] > places[y, 2]
    for k in range(8, min(places[x, 1], places[y, 1])):
        a, b = pool[places[x, 0] + k], pool[places[y, 0] + k]
        if a != b:
            return a > b
    return places[x, 1] > places[y, 1]


@compiled
def _is_behind(x: int, y: int, places: Words, pool: Words) -> Any:
    return text_behind(x, y, places, pool)


@compiled
def _write(numbers: Words, sizes: Words, begin: int, places: Words, pool: Words) -> None:
    for i in range(len(numbers)):
        first = np.uint64(0)
        for k in range(8):
            byte = np.uint64(pool[begin + k]) if k < sizes[i] else np.uint64(0)
            first = (first << np.uint64(8)) | byte
        number = numbers[i]
        places[number, 0], places[number, 1] = begin, sizes[i]
        places[number, 2] = np.int64(first ^ np.uint64(0x8000000000000000))
        begin += sizes[i]
