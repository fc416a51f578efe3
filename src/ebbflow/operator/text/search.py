"""Finding a pattern in an edited text: the first one, the last one, how many, and replacing all.

A pattern is matched piece by piece by a *matcher*. Its state is how many letters of the pattern the
text read so far ends with, counted from after the last match: with "banana", the text "xxban"
leaves 3. Reading on in state q is reading from scratch with the first q letters of the pattern put
in front, so `str.split` does all the work, and does it as `str.count` and `str.replace` see it:
from the left, a match at a time, none overlapping the one before.

    read(q, piece):  split(pattern[:q] + piece)  →  matches between the parts, letters at the end

So a match is found wherever the text is cut, and an edit in the middle of "aaaa" moves every later
match of "aa" as it should.

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
from ebbflow.operator.text.basic import EDITS, TextOperator, growth
from ebbflow.operator.text.rope import Rope

__all__ = ["count", "index_of", "last_index_of", "replace"]


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
        """With how many letters of the pattern the tail ends, without holding all of it.

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
        """With how many letters of the pattern's end the head begins, without holding all of it.

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
    """With how many letters of the pattern a text ends that is shorter than it: in O(text)."""
    size = 0
    for letter in text:
        while size and pattern[size] != letter:
            size = borders[size]
        size += pattern[size] == letter
    return size


def _rope(text: str, pattern: str, matcher: Matcher) -> Rope:
    """A rope whose leaves are longer than the pattern: to read a leaf costs O(leaf + m), and what
    an edit leaves begun does not reach over many of them."""
    return Rope(text, matcher, chunk=2 * len(pattern))


class _OfPattern(TextOperator):
    """An operator made with a pattern."""

    name: str

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def __repr__(self) -> str:
        return f"{self.name}({self.pattern!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.pattern,)


class _Found:
    """The text, and a number about it: where the pattern is, or how often."""

    __slots__ = ("rope", "value")

    def __init__(self, rope: Rope, value: int) -> None:
        self.rope = rope
        self.value = value

    @property
    def size(self) -> int:
        return self.rope.size

    def __repr__(self) -> str:
        return f"<{self.rope!r} at {self.value}>"


class _Find(_OfPattern):
    """What both directions share: the state, and moving on to a new position."""

    output: ChangeStructure[int, int] = NUMBER

    def invariant(self, x: str, state: _Found) -> bool:
        return str(state.rope) == x and state.value == self.f(x)

    def step(self, state: _Found, change: Edit) -> tuple[_Found, int]:
        old, rope, at = state.value, state.rope, change.at
        if isinstance(change, Insert):
            more, less = len(change.text), 0
            rope.insert(at, change.text)
        else:
            more, less = 0, change.count
            rope.delete(at, less)
        state.value = self._moved(rope, old, at, more, less)
        return state, state.value - old

    @abstractmethod
    def _moved(self, rope: Rope, old: int, at: int, more: int, less: int) -> int:
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

    def init(self, x: str) -> _Found:
        if not self.pattern:
            return _Found(Rope(x), 0)
        rope = _rope(x, self.pattern, Matcher(self.pattern))
        rope.total(0)
        return _Found(rope, x.find(self.pattern))

    def _moved(self, rope: Rope, old: int, at: int, more: int, less: int) -> int:
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

    def f(self, x: str) -> int:
        return x.rfind(self.pattern)

    def init(self, x: str) -> _Found:
        if not self.pattern:
            return _Found(Rope(x), len(x))
        rope = _rope(x, self.pattern, BackMatcher(self.pattern))
        rope.total(0, back=True)
        return _Found(rope, x.rfind(self.pattern))

    def _moved(self, rope: Rope, old: int, at: int, more: int, less: int) -> int:
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

    def init(self, x: str) -> _Found:
        if not self.pattern:
            return _Found(Rope(x), len(x) + 1)
        rope = _rope(x, self.pattern, Matcher(self.pattern))
        return _Found(rope, rope.total(0)[1])

    def step(self, state: _Found, change: Edit) -> tuple[_Found, int]:
        old, rope = state.value, state.rope
        if isinstance(change, Insert):
            rope.insert(change.at, change.text)
        else:
            rope.delete(change.at, change.count)
        state.value = rope.total(0)[1] if self.pattern else rope.size + 1
        return state, state.value - old

    def invariant(self, x: str, state: _Found) -> bool:
        return str(state.rope) == x and state.value == self.f(x)


def count(pattern: str) -> TextOperator:
    """`text.count(pattern)`: how many matches there are from the left, none overlapping.

    The state is a rope of the text, and the count.

    >>> live = count("aa").open("aaaa aaa")
    >>> live.send(Insert(4, "a")), live.send(Delete(5, 1)), live.send(Delete(0, 3))
    (0, 1, -2)
    """
    return _Count(pattern)


class _Replaced(TextOperator):
    output = EDITS

    def __init__(self, old: str, new: str) -> None:
        self.old = old
        self.new = new

    def __repr__(self) -> str:
        return f"replace({self.old!r}, {self.new!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _Replaced, (self.old, self.new)

    def f(self, x: str) -> str:
        return x.replace(self.old, self.new)

    def init(self, x: str) -> Any:
        if not self.old:
            return len(x)
        rope = _rope(x, self.old, Matcher(self.old))
        rope.total(0)
        return rope

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
        if isinstance(change, Insert):
            rope.insert(at, text)
        else:
            rope.delete(at, end - at)
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
