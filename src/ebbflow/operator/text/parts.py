"""Parts of an edited text: a stretch of it, how it begins and ends, and its words.

operator                  state            cost of an edit
substring(start, stop)    a rope           O(log n), and what comes into view
starts_with(prefix),      a rope           O(log n + m) near that end, O(1) elsewhere, for a
ends_with(suffix)                          prefix of m code points
words                     a rope           O(log n), and the words that the edit touches
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ebbflow.change import BAG, BOOL, Delete, Edit, Insert
from ebbflow.change.rope import Rope
from ebbflow.errors import CompositionError, place
from ebbflow.operator.text.basic import EDITS, MadeWith, TextConstant, growth
from ebbflow.zset import ZSet

STRETCH = 64


class _OfRope:
    """An operator whose state is a rope of the text."""

    def init(self, x: str) -> Rope:
        return Rope(x)

    def invariant(self, x: str, state: Rope) -> bool:
        return str(state) == x


class _Substring(_OfRope, MadeWith):
    output = EDITS
    name = "substring"

    def __init__(self, start: int, stop: int | None) -> None:
        super().__init__(start, stop)
        self.low, self.stop = start, stop

    def f(self, x: str) -> str:
        return x[self.low : self.stop]

    def _end(self, size: int) -> int:
        return size if self.stop is None else min(self.stop, size)

    def step(self, state: Rope, change: Edit) -> tuple[Rope, tuple[Edit, ...]]:
        start = self.low
        seen = max(self._end(state.size) - start, 0)
        state.edit(change)
        end = self._end(state.size)
        place = max(change.at - start, 0)
        edits: tuple[Edit, ...]
        if isinstance(change, Insert):
            new = state.slice(start + place, min(start + place + len(change.text), end))
            over = seen + len(new) - max(end - start, 0)
            edits = Insert(place, new), Delete(seen + len(new) - over, over)
        else:
            gone = min(change.count, seen - place)
            if gone <= 0:
                return state, ()
            left = seen - gone
            edits = Delete(place, gone), Insert(left, state.slice(start + left, end))
        return state, tuple(edit for edit in edits if growth(edit))


def substring(start: int, stop: int | None = None) -> MadeWith:
    """`text[start:stop]`, for positions that are counted from the start.

    >>> live = substring(2, 5).open("abcdefg")
    >>> live.send(Insert(0, "xy"))
    (Insert(at=0, text='ab'), Delete(at=3, count=2))
    >>> live.send(Delete(1, 4))
    (Delete(at=0, count=3), Insert(at=0, text='efg'))
    """
    for at in (start, 0 if stop is None else stop):
        if not isinstance(at, int) or isinstance(at, bool) or at < 0:
            raise CompositionError(
                "substring: a position is counted from the start, from 0 on",
                given=at,
                created=place(),
                remedy="substring(0, 10), or substring(10) for the rest",
            )
    return _Substring(start, stop)


class _AtAnEnd(_OfRope, MadeWith):
    """Whether the text has a piece at one end; a change is whether that turned over."""

    output = BOOL
    piece: str

    def __init__(self, piece: str) -> None:
        super().__init__(piece)
        self.piece = piece

    def step(self, state: Rope, change: Edit) -> tuple[Rope, bool]:
        before = self._holds(state)
        state.edit(change)
        return state, before is not self._holds(state)

    def _holds(self, rope: Rope) -> bool:
        raise NotImplementedError


class _StartsWith(_AtAnEnd):
    name = "starts_with"

    def f(self, x: str) -> bool:
        return x.startswith(self.piece)

    def step(self, state: Rope, change: Edit) -> tuple[Rope, bool]:
        if change.at >= len(self.piece):
            state.edit(change)
            return state, False
        return super().step(state, change)

    def _holds(self, rope: Rope) -> bool:
        return bool(rope.slice(0, len(self.piece)) == self.piece)


def starts_with(prefix: str) -> MadeWith:
    """`text.startswith(prefix)`.

    >>> live = starts_with("ebb").open("eb and flow")
    >>> live.send(Insert(2, "b")), live.send(Insert(9, "x")), live.send(Delete(0, 1))
    (True, False, True)
    """
    return _StartsWith(prefix)


class _EndsWith(_AtAnEnd):
    name = "ends_with"

    def f(self, x: str) -> bool:
        return x.endswith(self.piece)

    def step(self, state: Rope, change: Edit) -> tuple[Rope, bool]:
        end = change.at + (change.count if isinstance(change, Delete) else 0)
        if end < state.size - len(self.piece):
            state.edit(change)
            return state, False
        return super().step(state, change)

    def _holds(self, rope: Rope) -> bool:
        size = len(self.piece)
        return rope.size >= size and bool(rope.slice(rope.size - size, rope.size) == self.piece)


def ends_with(suffix: str) -> MadeWith:
    """`text.endswith(suffix)`.

    >>> live = ends_with("flow").open("ebb and flo")
    >>> live.send(Insert(11, "w")), live.send(Delete(0, 3)), live.send(Insert(9, "."))
    (True, False, True)
    """
    return _EndsWith(suffix)


class _Words(_OfRope, TextConstant):
    """The words of a text, what `text.split()` gives, each as often as it is there: a bag.

    >>> live = words.open("to be or not to be")
    >>> live.send(Delete(2, 1))
    ZSet({'to': -1, 'be': -1, 'tobe': 1})
    """

    output = BAG
    result_type = str
    name = "words"

    def f(self, x: str) -> ZSet[str]:
        return ZSet(Counter(x.split()))

    def step(self, state: Rope, change: Edit) -> tuple[Rope, ZSet[str]]:
        at = change.at
        end = at + change.count if isinstance(change, Delete) else at
        start, stop = _blank_before(state, at), _blank_from(state, end)
        old = state.slice(start, stop)
        state.edit(change)
        new = state.slice(start, stop + growth(change))
        found: Counter[Any] = Counter()
        for word in old.split():
            found[word] -= 1
        for word in new.split():
            found[word] += 1
        return state, ZSet(found)


words = _Words()


def _blank_before(rope: Rope, at: int) -> int:
    """Where the word that ends at `at` begins; `at`, if none ends there."""
    while at > 0:
        start = max(at - STRETCH, 0)
        tail = (rope.slice(start, at) + "|").split()[-1]
        at -= len(tail) - 1
        if at > start or not start:
            return at
    return at


def _blank_from(rope: Rope, at: int) -> int:
    """Where the word that begins at `at` ends; `at`, if none begins there."""
    while at < rope.size:
        stop = min(at + STRETCH, rope.size)
        at += len(("|" + rope.slice(at, stop)).split()[0]) - 1
        if at < stop:
            return at
    return at
