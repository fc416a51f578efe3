"""Finding a pattern in an edited text: the first one, the last one, how many, and replacing all.

A pattern is matched piece by piece by a *matcher*, see `ebbflow.operator.text.matcher`.

    operator         state                    cost of an edit, for a pattern of m code points
    index_of         a rope, the position     O(log n + m), also when the match found is deleted;
    last_index_of                             beyond that match nothing is looked at, only noted
    count            a rope, the count        O(log n + m); see below
    replace          a rope                   O(log n + m) and the matches that move; see below

Each also pays for the edit's own text. To read again a leaf of the rope that was edited is paid by
the edit, though it may be done by a later one. Nothing is ever scanned for the next match: the rope
knows which of its branches have none.

Where the end of a pattern is also its beginning ("aa", "abab"), matches can be chained, each where
the one before lets it begin, and an edit can move all later ones of the chain. `count` then reads
the leaves of that chain again, at most once in each of m states until they are edited; `replace`
rewrites what it has to move. In all other cases, and for all other patterns, no match moves.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ebbflow.change import NATURAL, NUMBER, ChangeStructure, Delete, Edit, Insert
from ebbflow.change.rope import Rope
from ebbflow.operator.text.basic import EDITS, Edited, MadeWith, TextOperator, growth
from ebbflow.operator.text.matcher import BackMatcher, Matcher


class _Found(Edited):
    """The text, and a number about it: where the pattern is, or how often."""

    __slots__ = ("value",)

    def __init__(self, rope: Rope, value: int) -> None:
        super().__init__(rope)
        self.value = value

    def __repr__(self) -> str:
        return f"<{self.rope!r} at {self.value}>"


class _OfPattern(MadeWith):
    """An operator made with a pattern, whose output is a number about the text."""

    name: str
    matcher: type[Matcher] = Matcher

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self.pattern = pattern

    def init(self, x: str) -> _Found:
        return _Found(_matched(x, self.pattern, self.matcher), self.f(x))

    def invariant(self, x: str, state: _Found) -> bool:
        return str(state.rope) == x and bool(state.value == self.f(x))


def _matched(text: str, pattern: str, matcher: type[Matcher]) -> Rope:
    """A rope of the text that was read by a matcher of the pattern, unless that is empty."""
    if not pattern:
        return Rope(text)
    rope = _rope(text, pattern, matcher(pattern))
    rope.total(0, back=matcher is BackMatcher)
    return rope


def _rope(text: str, pattern: str, matcher: Matcher) -> Rope:
    """A rope whose leaves are longer than the pattern: to read a leaf costs O(leaf + m), and what
    an edit leaves begun does not reach over many of them."""
    return Rope(text, matcher, chunk=2 * len(pattern))


class _Find(_OfPattern):
    """What both directions share: the state, and moving on to a new position."""

    output: ChangeStructure[int, int] = NUMBER
    result_type = int

    def step(self, state: _Found, change: Edit) -> tuple[_Found, int]:
        old, rope, at = state.value, state.rope, change.at
        if isinstance(change, Insert):
            more, less = len(change.text), 0
            rope.insert(at, change.text)
        else:
            more, less = 0, change.count
            rope.delete(at, less)
        state.value = self._shifted(rope, old, at, more, less)
        return state, state.value - old

    @abstractmethod
    def _shifted(self, rope: Rope, old: int, at: int, more: int, less: int) -> int:
        """Where the match is now, after `less` code points at `at` gave way to `more` others."""

    def _around(self, rope: Rope, at: int, more: int) -> tuple[int, str]:
        """The text in which a match could have come about, and where it begins."""
        reach = len(self.pattern) - 1
        start = max(at - reach, 0)
        return start, rope.slice(start, at + more + reach)


class _IndexOf(_Find):
    name = "index_of"

    def f(self, x: str) -> int:
        return x.find(self.pattern)

    def _shifted(self, rope: Rope, old: int, at: int, more: int, less: int) -> int:
        if not self.pattern or 0 <= old <= at - len(self.pattern):
            return old
        start, text = self._around(rope, at, more)
        made = text.find(self.pattern)
        if made >= 0:
            return start + made
        if old < 0 or old >= at + less:
            return old + more - less if old >= 0 else old
        hit = rope.first(at + more, 0)
        if hit is None:
            return -1
        seen: str = self.pattern[: hit.state]
        return hit.at - len(seen) + (seen + hit.piece).find(self.pattern)


def index_of(pattern: str) -> TextOperator:
    """`text.find(pattern)`: the position of the first match, -1 if there is none.

    The state is a rope of the text, and the position.

    >>> live = index_of("ab").open("xaxb ab")
    >>> live.send(Delete(2, 1)), live.send(Insert(2, "-")), live.send(Delete(0, 7))
    (-4, 4, -6)
    """
    return _IndexOf(pattern)


class _LastIndexOf(_Find):
    name = "last_index_of"
    matcher = BackMatcher

    def f(self, x: str) -> int:
        return x.rfind(self.pattern)

    def _shifted(self, rope: Rope, old: int, at: int, more: int, less: int) -> int:
        if old >= at + less:
            return old + more - less
        size = len(self.pattern)
        if not size:
            return rope.size
        start, text = self._around(rope, at, more)
        made = text.rfind(self.pattern)
        if made >= 0:
            return start + made
        if old <= at - size:
            return old
        hit = rope.last(at, 0)
        if hit is None:
            return -1
        seen: str = self.pattern[size - hit.state :]
        return hit.at + (hit.piece + seen).rfind(self.pattern)


def last_index_of(pattern: str) -> TextOperator:
    """`text.rfind(pattern)`: the position of the last match, -1 if there is none.

    The state is a rope of the text, and the position.

    >>> live = last_index_of("A").open("bAnAna")
    >>> live.send(Insert(0, "AA")), live.send(Delete(5, 1)), live.send(Insert(7, "A"))
    (2, -2, 4)
    """
    return _LastIndexOf(pattern)


class _Count(_OfPattern):
    name = "count"
    output = NATURAL

    def f(self, x: str) -> int:
        return x.count(self.pattern)

    def step(self, state: _Found, change: Edit) -> tuple[_Found, int]:
        old, rope = state.value, state.rope
        rope.edit(change)
        state.value = rope.total(0)[1] if self.pattern else rope.size + 1
        return state, state.value - old


def count(pattern: str) -> TextOperator:
    """`text.count(pattern)`: how many matches there are from the left, none overlapping.

    The state is a rope of the text, and the count.

    >>> live = count("aa").open("aaaa aaa")
    >>> live.send(Insert(4, "a")), live.send(Delete(5, 1)), live.send(Delete(0, 3))
    (0, 1, -2)
    """
    return _Count(pattern)


class _Replaced(MadeWith):
    output = EDITS
    name = "replace"

    def __init__(self, old: str, new: str) -> None:
        super().__init__(old, new)
        self.old = old
        self.new = new

    def f(self, x: str) -> str:
        return x.replace(self.old, self.new)

    def init(self, x: str) -> Any:
        return _matched(x, self.old, Matcher) if self.old else len(x)

    def size(self, state: Any) -> int:
        return state if isinstance(state, int) else len(state)

    def invariant(self, x: str, state: Any) -> bool:
        return state == len(x) if isinstance(state, int) else str(state) == x

    def step(self, state: Any, change: Edit) -> tuple[Any, tuple[Edit, ...]]:
        if isinstance(state, int):
            return state + growth(change), self._everywhere(change)
        return state, self._rewritten(state, change)

    def _everywhere(self, change: Edit) -> tuple[Edit, ...]:
        """With an empty `old`, `new` stands before the text and after each code point."""
        width = 1 + len(self.new)
        place = change.at * width + width - 1
        if isinstance(change, Delete):
            return (Delete(place, change.count * width),)
        return (Insert(place, "".join([c + self.new for c in change.text])),)

    def _rewritten(self, rope: Rope, change: Edit) -> tuple[Edit, ...]:
        """Both texts are matched alike up to `start` and again from where both are in one state;
        what the output has in between is rewritten."""
        at, text = change.at, change.text if isinstance(change, Insert) else ""
        end = at if isinstance(change, Insert) else at + change.count
        begun, before = rope.upto(at, 0)
        start, grows = at - begun, len(self.new) - len(self.old)
        window = 0
        while True:
            stop = min(end + window, rope.size)
            state, matches = rope.upto(stop, 0)
            fresh = self.old[:begun] + text + rope.slice(end, stop)
            now, _ = rope.read(0, fresh)
            if now == state or stop == rope.size:
                break
            window = 2 * window + len(self.old)
        pending = state if now == state else 0
        gone = stop - pending - start + (matches - before) * grows
        put = fresh.replace(self.old, self.new)
        put = put[: len(put) - pending]
        rope.edit(change)
        place = start + before * grows
        edits: tuple[Edit, ...] = (Delete(place, gone), Insert(place, put))
        return tuple(edit for edit in edits if growth(edit))


def replace(old: str, new: str) -> TextOperator:
    """`text.replace(old, new)`: every match from the left, none overlapping, replaced.

    The state is a rope of the text; with an empty `old`, which matches everywhere, its length.

    >>> live = replace("cat", "dog").open("the cat sat on a cart")
    >>> live.send(Delete(19, 1))
    (Delete(at=17, count=4), Insert(at=17, text='dog'))
    """
    return _Replaced(old, new)
