"""A rope: a long text that is cheap to edit and that remembers what was found out about its parts.

Python's strings cannot be edited in place: one new letter in ten million copies ten million. A rope
cuts the text into *leaves* of about ten thousand code points and keeps them in a B-tree: every
branch holds the sizes of what is below it, every leaf is equally deep, and nothing but the root is
ever less than a quarter full. An edit descends to one leaf, replaces it, and adjusts the sizes on
the way.

    cost of an edit      O(log n) steps, a copy of one leaf, and the edit's own text
                         (a few microseconds in ten million code points)
    memory               the text, and about a twentieth of it for the tree

**Reading.** An operator asks questions such as "how many lines come before here?" and "where is the
next match?". It says how to answer them with one function that reads a piece of text from the left
(or, for the questions that go backwards, from the right):

    read(state, piece) -> (state after the piece, amount found in the piece)

    read(s, a + b) == (s2, m + n)   where   s1, m = read(s, a)   and   s2, n = read(s1, b)

This is the law it has to keep: reading is a homomorphism, so a text may be read in any pieces. The
state is whatever must be known about the text already read ("it ended inside a word", "two letters
of the pattern were matched"); the amount is a number that is never negative. A rope keeps what it
read in a leaf or branch, for each state it was read in, until an edit touches it. So a question
reads again only what was edited since it was last asked, and goes down one path of the tree. (What
is known is known in one direction. Whoever reads a rope in both gives them different states, unless
the amounts are the same.)

**Waiting.** Many questions need no look at the text: an insertion before the last match moves it,
and that is all. So an edit is only noted, and the notes are carried out when the text is read or
when there are `Rope.notes` of them, whichever comes first. Edits that touch are then one edit of
the tree: letters typed one after the other, a row of backspaces, a word replaced by another.

A rope is changed in place: a state that is stepped mostly has one owner, who has no use for the old
text. `copy` makes another rope with the same text, in a few steps whatever its size: the two share
what is known of them, and from then on each copies the path that it edits (see `tree`).

`ItemRope` is the same for a list: what is said here of code points is true of items.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Self

from ebbflow.change.text import Edit, Insert
from ebbflow.change.tree import NOTHING, SequenceTree
from ebbflow.errors import ChangeError

Read = Callable[[Any, Any], tuple[Any, int]]


class Hit(NamedTuple):
    """A piece of text in which something was found: where it begins, and the state it was read in.

    >>> Hit(at=4, state=None, piece="abc").at
    4
    """

    at: int
    state: Any
    piece: str


def _nothing(state: Any, piece: str) -> tuple[Any, int]:
    return state, 0


class Rope(SequenceTree):
    """A text that is edited in place, and read by `read`.

    >>> rope = Rope("to be or not to be")
    >>> rope.insert(8, " rather")
    >>> rope.delete(0, 6)
    >>> str(rope), len(rope), rope.slice(3, 9)
    ('or rather not to be', 19, 'rather')

    What `read` finds is added up, or looked for:

    >>> rope = Rope("to be or not to be", lambda state, piece: (state, piece.count("o")))
    >>> rope.upto(8), rope.total()
    ((None, 2), (None, 4))
    >>> rope.first(3).piece
    'be or not to be'
    """

    chunk: ClassVar[int] = 12288
    notes: ClassVar[int] = 512

    __slots__ = ("_notes", "read", "size")

    def __init__(self, text: Any = "", read: Read = _nothing, *, chunk: int = 0) -> None:
        self.read = read
        self.size = len(text)
        self._notes: list[tuple[int, Any]] = []
        self._leaf = max(chunk, self.chunk)
        self._plant(text)

    @classmethod
    def of_pieces(cls, pieces: Sequence[Any], numbers: Iterable[int]) -> Self:
        """A rope whose leaves are pieces that were leaves of another, stored under numbers.

        >>> str(Rope.of_pieces(["ebb and ", "flow"], [7, 8]))
        'ebb and flow'
        """
        rope = cls(cls.empty)
        if max(map(len, pieces), default=0) > rope._leaf:  # they were larger then
            return cls(cls.join(pieces))
        rope.size = sum(map(len, pieces))
        rope._plant_leaves(pieces, numbers)
        return rope

    def __len__(self) -> int:
        return self.size

    def __str__(self) -> str:
        return str(self.slice(0, self.size))

    def __repr__(self) -> str:
        shown = self.slice(0, 20)
        return f"<rope of {self.size}: {shown!r}{'...' if self.size > 20 else ''}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self), self.slice(0, self.size), self.read, self._leaf)

    def copy(self) -> Self:
        """Another rope with the same text: the two share their nodes until they are edited."""
        made = object.__new__(type(self))
        self._tree()
        made._share(self)
        made.read, made.size, made._notes = self.read, self.size, []
        return made

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    @staticmethod
    def join(pieces: Iterable[Any]) -> Any:
        """Pieces of a text as one."""
        return "".join(pieces)

    def pieces(self, start: int = 0) -> Iterator[Any]:
        """The text from position `start` on, leaf by leaf."""
        return self._parts(self._tree(), len(self._heights), start, self.size)

    # ---- editing ----

    def insert(self, at: int, text: Any) -> None:
        """Put `text` in front of what is at position `at`."""
        if not 0 <= at <= self.size:
            raise self._outside(at, at)
        self.size += len(text)
        notes = self._notes
        notes.append((at, text))
        if len(notes) > self.notes:
            self._carry_out()

    def delete(self, at: int, count: int) -> None:
        """Take out `count` code points from position `at` on."""
        if not 0 <= at <= at + count <= self.size:
            raise self._outside(at, at + count)
        self.size -= count
        notes = self._notes
        notes.append((at, count))
        if len(notes) > self.notes:
            self._carry_out()

    def edit(self, change: Edit) -> None:
        """Do what an `Insert` or a `Delete` says."""
        if isinstance(change, Insert):
            self.insert(change.at, change.text)
        else:
            self.delete(change.at, change.count)

    def splice(self, change: Any) -> None:
        """Do what a change says whose `extent` is how many go, and which come."""
        less, more = change.extent
        if less:
            self.delete(change.at, less)
        if more:
            self.insert(change.at, more)

    def slice(self, start: int, stop: int) -> Any:
        """The text from `start` to before `stop`; past either end there is nothing."""
        if start >= self.size:
            return self.empty
        node, at = self._tree(), start
        for _ in self._heights:
            i = 0
            for size in node.sizes:
                if at < size:
                    break
                at -= size
                i += 1
            if at < 0 or at + stop - start > size:
                return self.join(self._parts(self._root, len(self._heights), start, stop))
            node = node.kids[i]
        return node.text[max(at, 0) : max(at + stop - start, 0)]

    def _outside(self, start: int, stop: int) -> ChangeError:
        return ChangeError(
            f"an edit from position {start} to {stop} does not fit this text",
            value=self,
            remedy=f"positions from 0 to {self.size}, the first not after the second",
        )

    # ---- reading ----

    def total(self, state: Any = None, *, back: bool = False) -> tuple[Any, int]:
        """The whole text, read from the left or `back` from the right: last state and amount."""
        return self._whole(self._tree(), len(self._heights), state, back)

    def upto(self, at: int, state: Any = None) -> tuple[Any, int]:
        """The text before position `at` read from the left: the state there and the amount."""
        node, amount = self._tree(), 0
        for height in reversed(self._heights):
            for i, size in enumerate(node.sizes):
                if at <= size:
                    break
                at -= size
                state, more = self._whole(node.kids[i], height, state)
                amount += more
            node = node.kids[i]
        whole = at >= len(node.text)
        state, more = self._whole(node, 0, state) if whole else self.read(state, node.text[:at])
        return state, amount + more

    def first(self, start: int = 0, state: Any = None) -> Hit | None:
        """From `start` on to the right, the first piece whose amount is not zero."""
        return self._seek(self._tree(), len(self._heights), 0, start, self.size, state, False)[0]

    def last(self, stop: int, state: Any = None) -> Hit | None:
        """From `stop` on to the left, the first piece whose amount is not zero, as `read` has it
        when it is given the pieces from right to left."""
        return self._seek(self._tree(), len(self._heights), 0, 0, stop, state, True)[0]

    def _whole(self, node: Any, height: int, state: Any, back: bool = False) -> tuple[Any, int]:
        found: tuple[Any, int] | None = node.known.get(state)
        if found is None:
            if height:
                now, amount = state, 0
                for kid in reversed(node.kids) if back else node.kids:
                    now, more = self._whole(kid, height - 1, now, back)
                    amount += more
                found = now, amount
            else:
                found = self.read(state, node.text)
            _learn(node, state, found)
        return found

    def _seek(
        self, node: Any, height: int, base: int, start: int, stop: int, state: Any, back: bool
    ) -> tuple[Hit | None, Any]:
        """The first hit within `node`, or the state after all of it was read without one.

        `base` is where the node begins. Nothing is read beyond the hit.
        """
        size = sum(node.sizes) if height else len(node.text)
        whole = start <= base and base + size <= stop
        known = node.known.get(state) if whole else None
        if known is not None and not known[1]:
            return None, known[0]
        if not height:
            piece = node.text if whole else node.text[max(start - base, 0) : stop - base]
            after, amount = known or self.read(state, piece)
            if whole:
                _learn(node, state, (after, amount))
            return (Hit(max(base, start), state, piece), after) if amount else (None, after)
        now = state
        for kid, at, end in _placed(node, base, back):
            if at < stop and start < end:
                hit, now = self._seek(kid, height - 1, at, start, stop, now, back)
                if hit is not None:
                    return hit, now
        if whole:
            _learn(node, state, (now, 0))
        return None, now

    # ---- what was noted ----

    def _tree(self) -> Any:
        if self._notes:
            self._carry_out()
        return self._root

    def _carry_out(self) -> None:
        """Apply the noted edits to the tree, neighbouring ones as one."""
        notes, self._notes = self._notes, []
        self._splice(_splices(notes, self._leaf, self.join))


class ItemRope(Rope):
    """A list that is edited in place, and read by `read`, which is given tuples.

    >>> rope = ItemRope(("a", "c"))
    >>> rope.insert(1, ("b",))
    >>> rope.slice(0, 3)
    ('a', 'b', 'c')
    """

    chunk: ClassVar[int] = 128
    empty: ClassVar[Any] = ()

    __slots__ = ()

    @staticmethod
    def join(pieces: Iterable[Any]) -> Any:
        return tuple(chain.from_iterable(pieces))


def _made(cls: type[Rope], text: Any, read: Read, chunk: int) -> Rope:
    return cls(text, read, chunk=chunk)


def _splices(
    notes: list[tuple[int, Any]], most: int, join: Callable[[Any], Any] = Rope.join
) -> list[tuple[int, int, Any]]:
    """The noted edits as splices: a position, how many code points go there, and the new text.

    Edits that touch are one: typing, a row of backspaces, a word that is replaced, what was typed
    and taken back. (Where that would copy much text again and again, they stay apart.)
    """
    found = []
    at, less, size = -1, 0, 0
    parts: list[Any] = []
    for place, new in notes:
        end = at + size
        if not isinstance(new, int):
            if place == end:
                parts.append(new)
                size += len(new)
                continue
            if at <= place < end and size <= most:
                text, cut = join(parts), place - at
                parts = [text[:cut], new, text[cut:]]
                size += len(new)
                continue
        elif place <= end and at <= place + new and size <= most:
            text, start, stop = join(parts), place - at, place - at + new
            if start < 0:
                at, less, start = place, less - start, 0
            if stop > size:
                less, stop = less + stop - size, size
            parts = [text[:start], text[stop:]]
            size -= stop - start
            continue
        found.append((at, less, join(parts)))
        if not isinstance(new, int):
            at, less, size, parts = place, 0, len(new), [new]
        else:
            at, less, size, parts = place, new, 0, []
    found.append((at, less, join(parts)))
    return [splice for splice in found if splice[1] or splice[2]]


def _learn(node: Any, state: Hashable, found: tuple[Any, int]) -> None:
    if node.known is NOTHING:
        node.known = {}
    node.known[state] = found


def _placed(branch: Any, base: int, back: bool) -> list[tuple[Any, int, int]]:
    """The kids with where they begin and end, in the order in which they are read."""
    placed = []
    for kid, size in zip(branch.kids, branch.sizes, strict=True):
        placed.append((kid, base, base + size))
        base += size
    return placed[::-1] if back else placed
