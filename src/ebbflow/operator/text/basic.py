"""Operators on text: length, emptiness, joining two texts, trimming white space.

Each keeps what a method of `str` computes, while the text is edited by `Insert` and `Delete`. The
`str` method is the specification, for every code point there is. Costs are per edit, for a text of
n code points:

    operator                   state                            cost
    length, is_empty           the length                       O(1)
    concat                     both lengths                     O(1)
    trim_left, trim_right,     a rope of the text               O(log n), and the white space that
    trim                                                        comes into view

More are in `case` (upper, lower), `search` (index_of, last_index_of, count, replace) and `lines`
(split_lines).
"""

from __future__ import annotations

from typing import Any

from ebbflow.change import (
    BOOL,
    NATURAL,
    TEXT,
    Both,
    Delete,
    Edit,
    First,
    Insert,
    Second,
    pair,
    sequence,
)
from ebbflow.change.rope import Rope
from ebbflow.change.text import end_of, is_edit
from ebbflow.operator.operator import Operator

EDITS = sequence(TEXT)


class TextOperator(Operator[str, Edit, Any, Any]):
    """An operator whose input is an edited text; `size(state)` is the length of the text.

    >>> trim.accepts(trim.init("abc"), Insert(4, "d"))
    False
    """

    input = TEXT

    def size(self, state: Any) -> int:
        """How long the text is: by default the state has it."""
        return int(state.size)

    def accepts(self, state: Any, change: object) -> bool:
        return fits(change, self.size(state))


class TextConstant(TextOperator):
    """An operator there is one of, kept in its module under its `name` and pickled as that name.

    >>> trim.name, trim
    ('trim', trim)
    """

    name: str

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name


class MadeWith(TextOperator):
    """An operator made with arguments; two made with the same are equal.

    >>> from ebbflow.operator import text
    >>> text.count("a"), text.count("a") == text.count("a"), text.count("a") == text.count("b")
    (count('a'), True, False)
    """

    name: str

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.arguments))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.arguments

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.arguments == other.arguments

    def __hash__(self) -> int:
        return hash((type(self), self.arguments))


class Edited:
    """A state that holds the text as a rope.

    >>> Edited(Rope("abc")).size
    3
    """

    __slots__ = ("rope",)

    def __init__(self, rope: Rope) -> None:
        self.rope = rope

    @property
    def size(self) -> int:
        return self.rope.size


def fits(change: object, size: int) -> bool:
    """Whether an edit is valid for a text of that size.

    >>> fits(Insert(3, "x"), 3), fits(Delete(2, 2), 3)
    (True, False)
    """
    return is_edit(change) and end_of(change) <= size


def growth(edit: Edit) -> int:
    """By how much an edit makes a text longer.

    >>> growth(Insert(3, "abc")), growth(Delete(0, 2))
    (3, -2)
    """
    return len(edit.text) if isinstance(edit, Insert) else -edit.count


class _Sized(TextConstant):
    """An operator whose state is the length."""

    def init(self, x: str) -> int:
        return len(x)

    def size(self, state: int) -> int:
        return state


class _Length(_Sized):
    """`len(text)`. The changes need no state: it is there to refuse an edit past the end.

    >>> live = length.open("abc")
    >>> live.send(Insert(3, "de")), live.send(Delete(0, 4))
    (2, -4)
    >>> length.accepts(live.state, Delete(0, 2))
    False
    """

    output = NATURAL
    name = "length"

    def f(self, x: str) -> int:
        return len(x)

    def step(self, state: int, change: Edit) -> tuple[int, int]:
        more = growth(change)
        return state + more, more


length = _Length()


class _IsEmpty(_Sized):
    """`not text`. The state is the length.

    >>> live = is_empty.open("abc")
    >>> live.send(Delete(1, 1)), live.send(Delete(0, 2))
    (False, True)
    """

    output = BOOL
    name = "is_empty"

    def f(self, x: str) -> bool:
        return not x

    def step(self, state: int, change: Edit) -> tuple[int, bool]:
        after = state + growth(change)
        return after, (not after) is not (not state)


is_empty = _IsEmpty()


class _Concat(Operator[tuple[str, str], Any, str, tuple[Edit, ...]]):
    """`first + second`. The state is the two lengths.

    >>> live = concat.open(("ab", "cd"))
    >>> live.send(Both(Insert(0, "x"), Delete(1, 1)))
    (Insert(at=0, text='x'), Delete(at=4, count=1))
    """

    input = pair(TEXT, TEXT)
    output = EDITS

    def f(self, x: tuple[str, str]) -> str:
        return x[0] + x[1]

    def init(self, x: tuple[str, str]) -> tuple[int, int]:
        return len(x[0]), len(x[1])

    def step(self, state: tuple[int, int], change: Any) -> tuple[tuple[int, int], tuple[Edit, ...]]:
        if type(change) is First:
            return self.on_first(state, change.change)
        if type(change) is Second:
            return self.on_second(state, change.change)
        if type(change) is Both:
            state, (first,) = self.on_first(state, change.first)
            state, (second,) = self.on_second(state, change.second)
            return state, (first, second)
        raise self.input.stranger(change)

    def on_first(
        self, state: tuple[int, int], change: Edit
    ) -> tuple[tuple[int, int], tuple[Edit, ...]]:
        more = len(change.text) if isinstance(change, Insert) else -change.count
        return (state[0] + more, state[1]), (change,)

    def on_second(
        self, state: tuple[int, int], change: Edit
    ) -> tuple[tuple[int, int], tuple[Edit, ...]]:
        left, right = state
        if isinstance(change, Insert):
            text = change.text
            return (left, right + len(text)), (Insert(change.at + left, text),)
        return (left, right - change.count), (Delete(change.at + left, change.count),)

    def accepts(self, state: tuple[int, int], change: object) -> bool:
        match change:
            case First(c):
                return fits(c, state[0])
            case Second(d):
                return fits(d, state[1])
            case Both(c, d):
                return fits(c, state[0]) and fits(d, state[1])
        return False

    def __repr__(self) -> str:
        return "concat"

    def __reduce__(self) -> str:
        return "concat"


concat = _Concat()


def shifted(edit: Edit, by: int) -> Edit:
    """The edit, so much further to the right.

    >>> shifted(Delete(1, 2), 10)
    Delete(at=11, count=2)
    """
    if isinstance(edit, Insert):
        return Insert(edit.at + by, edit.text)
    return Delete(edit.at + by, edit.count)


# ---- white space at the ends ----


def _ink(state: Any, piece: str) -> tuple[Any, int]:
    """Reads whether there is anything but white space."""
    return state, 1 if piece and not piece.isspace() else 0


class _Trimmed(Edited):
    """The text, and where the part that is not trimmed begins and ends."""

    __slots__ = ("end", "start")

    def __init__(self, text: str, start: int, end: int) -> None:
        super().__init__(Rope(text, _ink))
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"<{self.rope!r} kept from {self.start} to {self.end}>"


class _Trim(TextConstant):
    """`text.lstrip()`, `text.rstrip()` and `text.strip()`. The state is a rope of the text, and
    where what is kept of it begins and ends.

    An edit inside of what is kept only moves along. At an end that is not trimmed, `start` is 0 or
    `end` is the size. Where nothing is kept, the whole text is white space, and both are 0.

    >>> trim_left.open("  ab").send(Insert(1, "x"))
    Insert(at=0, text='x ')
    >>> trim_right.open("ab  ").send(Delete(1, 1))
    Delete(at=1, count=1)
    >>> live = trim.open(" a ")
    >>> live.send(Insert(3, "b ")), live.send(Delete(1, 1))
    (Insert(at=1, text=' b'), Delete(at=0, count=2))
    """

    output = TEXT

    def __init__(self, name: str, left: bool, right: bool) -> None:
        self.name = name
        self.left = left
        self.right = right

    def f(self, x: str) -> str:
        return self._strip(x)

    def _strip(self, x: str) -> str:
        x = x.lstrip() if self.left else x
        return x.rstrip() if self.right else x

    def init(self, x: str) -> _Trimmed:
        kept = len(self._strip(x))
        start = len(x) - len(x.lstrip()) if self.left and kept else 0
        return _Trimmed(x, start, start + kept)

    def step(self, state: _Trimmed, change: Edit) -> tuple[_Trimmed, Edit]:
        if isinstance(change, Insert):
            return state, self._insert(state, change.at, change.text)
        return state, self._delete(state, change.at, change.count)

    def _insert(self, state: _Trimmed, at: int, text: str) -> Edit:
        rope, start, end = state.rope, state.start, state.end
        rope.insert(at, text)
        more, blank = len(text), not text.strip()
        if start == end:
            if blank:
                return TEXT.nothing
            state.start = at + more - len(text.lstrip()) if self.left else 0
            state.end = at + len(text.rstrip()) if self.right else rope.size
            return Insert(0, rope.slice(state.start, state.end))
        if start < at < end or (at == start and not self.left) or (at == end and not self.right):
            state.end += more
            return Insert(at - start, text)
        if blank:
            if at <= start:
                state.start += more
                state.end += more
            return TEXT.nothing
        if at <= start:
            state.start = at + more - len(text.lstrip())
            state.end += more
            return Insert(0, rope.slice(state.start, start + more))
        state.end = at + len(text.rstrip())
        return Insert(end - start, rope.slice(end, state.end))

    def _delete(self, state: _Trimmed, at: int, count: int) -> Edit:
        rope, start, end = state.rope, state.start, state.end
        rope.delete(at, count)
        after = at + count
        if start == end or at >= end:
            return TEXT.nothing
        if after <= start:
            state.start -= count
            state.end -= count
            return TEXT.nothing
        if (start < at or not self.left) and (after < end or not self.right):
            state.end -= count
            return Delete(at - start, count)
        if self.left and at <= start:
            state.start = _ink_from(rope, at)
        state.end = _ink_before(rope, at) if self.right and after >= end else end - count
        if state.start >= state.end:
            state.start = state.end = 0
            return Delete(0, end - start)
        if self.left and at <= start:
            return Delete(0, state.start + count - start)
        return Delete(state.end - start, end - state.end)

    def invariant(self, x: str, state: _Trimmed) -> bool:
        fresh = self.init(x)
        return str(state.rope) == x and (state.start, state.end) == (fresh.start, fresh.end)


def _ink_from(rope: Rope, at: int) -> int:
    """The first position from `at` on that is not white space, or the size."""
    hit = rope.first(at)
    return rope.size if hit is None else hit.at + len(hit.piece) - len(hit.piece.lstrip())


def _ink_before(rope: Rope, at: int) -> int:
    """The position after the last one before `at` that is not white space, or 0."""
    hit = rope.last(at)
    return 0 if hit is None else hit.at + len(hit.piece.rstrip())


trim_left = _Trim("trim_left", True, False)
trim_right = _Trim("trim_right", False, True)
trim = _Trim("trim", True, True)
