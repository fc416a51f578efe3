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

A rope is changed in place. A state that is stepped has one owner, who has no use for the old text,
and copying the path, as a persistent tree does, would double the cost of an edit. `copy.copy` makes
another rope with the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, ClassVar, NamedTuple

from ebbflow.errors import ChangeError

Read = Callable[[Any, str], tuple[Any, int]]

__all__ = ["Hit", "Read", "Rope"]


class Hit(NamedTuple):
    """A piece of text in which something was found: where it begins, and the state it was read in.

    >>> Hit(at=4, state=None, piece="abc").at
    4
    """

    at: int
    state: Any
    piece: str


NOTHING: dict[Hashable, tuple[Any, int]] = {}  # what is known of a node: one for all, never altered


class _Leaf:
    __slots__ = ("known", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.known = NOTHING


class _Branch:
    __slots__ = ("kids", "known", "sizes")

    def __init__(self, kids: list[Any], sizes: list[int]) -> None:
        self.kids = kids
        self.sizes = sizes
        self.known = NOTHING


def _nothing(state: Any, piece: str) -> tuple[Any, int]:
    return state, 0


class Rope:
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
    fan: ClassVar[int] = 16
    notes: ClassVar[int] = 512

    __slots__ = ("_heights", "_leaf", "_notes", "_root", "read", "size")

    def __init__(self, text: str = "", read: Read = _nothing, *, chunk: int = 0) -> None:
        self.read = read
        self.size = len(text)
        self._notes: list[tuple[int, Any]] = []
        self._leaf = max(chunk, self.chunk)
        self._plant(text)

    def __len__(self) -> int:
        return self.size

    def __str__(self) -> str:
        return self.slice(0, self.size)

    def __repr__(self) -> str:
        shown = self.slice(0, 20)
        return f"<rope of {self.size}: {shown!r}{'...' if self.size > 20 else ''}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (str(self), self.read, self._leaf)

    # ---- editing ----

    def insert(self, at: int, text: str) -> None:
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

    def slice(self, start: int, stop: int) -> str:
        """The text from `start` to before `stop`; past either end there is nothing."""
        if start >= self.size:
            return ""
        node, at = self._tree(), start
        for _ in self._heights:
            i = 0
            for size in node.sizes:
                if at < size:
                    break
                at -= size
                i += 1
            if at < 0 or at + stop - start > size:
                return "".join(self._parts(self._root, len(self._heights), start, stop))
            node = node.kids[i]
        text: str = node.text
        return text[max(at, 0) : max(at + stop - start, 0)]

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
        """The first hit within `node`, or the state after what was read of it in vain.

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

    # ---- the tree ----

    def _plant(self, text: str) -> None:
        self._heights = range(0)
        self._root: Any = None
        self._grow([_Leaf(piece) for piece in self._pieces(text)], [])

    def _tree(self) -> Any:
        if self._notes:
            self._carry_out()
        return self._root

    def _carry_out(self) -> None:
        """Do what was noted, neighbouring edits as one."""
        notes, self._notes = self._notes, []
        self._splice(_splices(notes, self._leaf))

    def _splice(self, splices: list[tuple[int, int, str]]) -> None:
        """Put in each `text`, in the place of `less` code points: mostly one leaf with another
        text. Everything is in one loop, because a call costs as much as a level of the tree."""
        leaf, nothing = self._leaf, NOTHING
        path: list[Any] = []
        note, forget = path.append, path.clear
        for at, less, text in splices:
            more = len(text) - less
            node: Any = self._root
            where = at if less else at - 1  # an insertion goes to the leaf that ends there
            forget()
            for _ in self._heights:
                i = 0
                sizes = node.sizes
                for size in sizes:
                    if where < size:
                        break
                    where -= size
                    i += 1
                note(node)
                note(i)
                if more:
                    sizes[i] = size + more
                if node.known is not nothing:
                    node.known = nothing
                node = node.kids[i]
            old = node.text
            size = len(old) + more
            if not less:
                where += 1
            if less and path and (where + less > len(old) or 4 * size < leaf):
                if self._between(path[-2], path[-1], where, text, where + less - len(old)):
                    continue
                for branch, i in _pairs(path):
                    branch.sizes[i] -= more
                self._delete_across(at, less)
                if text:
                    self._splice([(at, 0, text)])
                continue
            if node.known is not nothing:
                node.known = nothing
            node.text = old[:where] + text + old[where + less :]
            if size > leaf:
                self._grow([_Leaf(piece) for piece in self._pieces(node.text)], _pairs(path))

    def _between(self, branch: Any, i: int, where: int, text: str, over: int) -> bool:
        """Put `text` in the place of the end of one leaf and `over` code points of the next, if the
        next is of the same branch and both stay full enough."""
        if over <= 0 or i + 1 == len(branch.kids):
            return False
        one, two = branch.kids[i : i + 2]
        first, second = where + len(text), len(two.text) - over
        if not (4 * first >= self._leaf >= first and 4 * second >= self._leaf):
            return False
        one.text, two.text = one.text[:where] + text, two.text[over:]
        one.known = two.known = NOTHING
        branch.sizes[i : i + 2] = first, second
        return True

    def _delete_across(self, at: int, count: int) -> None:
        """The deletion that reaches over several leaves or leaves too little of one."""
        if count == sum(self._root.sizes):
            self._plant("")
            return
        self._cut(self._root, len(self._heights), at, at + count)
        while self._heights and len(self._root.kids) == 1:
            self._root = self._root.kids[0]
            self._heights = range(len(self._heights) - 1)

    def _parts(self, node: Any, height: int, start: int, stop: int) -> Iterator[str]:
        if not height:
            yield node.text[max(start, 0) : max(stop, 0)]
            return
        for kid, size in zip(node.kids, node.sizes, strict=True):
            if stop <= 0:
                return
            if start < size:
                yield from self._parts(kid, height - 1, start, stop)
            start -= size
            stop -= size

    def _pieces(self, text: str) -> list[str]:
        return [text[a:b] for a, b in _even(len(text), self._leaf)]

    def _grow(self, nodes: list[Any], path: list[tuple[Any, int]]) -> None:
        """Put `nodes` where the last of the path points to, and split upwards what is too full."""
        while len(nodes) > 1:
            sizes = [_size(node) for node in nodes]
            if not path:
                self._heights = range(len(self._heights) + 1)
                nodes = _branches(nodes, sizes, self.fan)
                continue
            branch, i = path.pop()
            branch.kids[i : i + 1] = nodes
            branch.sizes[i : i + 1] = sizes
            if len(branch.kids) <= self.fan:
                return
            nodes = _branches(branch.kids, branch.sizes, self.fan)
        self._root = nodes[0]

    def _cut(self, branch: Any, height: int, start: int, stop: int) -> None:
        """Take out a part of a branch, but not all of it."""
        branch.known = NOTHING
        kids, sizes = branch.kids, branch.sizes
        i = 0
        for size in sizes:
            if start < size:
                break
            start -= size
            stop -= size
            i += 1
        if start or stop < sizes[i]:
            end = min(stop, sizes[i])
            self._cut_kid(kids[i], height - 1, start, end)
            sizes[i] -= end - start
            stop -= end - start
            if stop <= sizes[i]:
                self._mend(branch, i, height)
                return
            stop -= sizes[i]
            i += 1
        gone = i
        while gone < len(sizes) and sizes[gone] <= stop:
            stop -= sizes[gone]
            gone += 1
        del kids[i:gone], sizes[i:gone]
        if stop:
            self._cut_kid(kids[i], height - 1, 0, stop)
            sizes[i] -= stop
        for place in (i, i - 1):
            if 0 <= place < len(kids):
                self._mend(branch, place, height)

    def _cut_kid(self, kid: Any, height: int, start: int, stop: int) -> None:
        if height:
            self._cut(kid, height, start, stop)
        else:
            _shorten(kid, start, stop)

    def _mend(self, branch: Any, i: int, height: int) -> None:
        """Join kid `i` with a neighbour, if it holds too little, and split the two if too much."""
        kids, sizes = branch.kids, branch.sizes
        leaves = height == 1
        while len(kids) > 1 and (
            4 * sizes[i] < self._leaf if leaves else 4 * len(kids[i].kids) < max(self.fan, 8)
        ):
            i = max(i - 1, 0)
            one, two = kids[i], kids[i + 1]
            if leaves:
                new: list[Any] = [_Leaf(piece) for piece in self._pieces(one.text + two.text)]
            else:
                seam = len(one.kids)
                joined = _Branch(one.kids + two.kids, one.sizes + two.sizes)
                self._mend(joined, seam, height - 1)
                self._mend(joined, min(seam, len(joined.kids)) - 1, height - 1)
                new = _branches(joined.kids, joined.sizes, self.fan)
            kids[i : i + 2] = new
            sizes[i : i + 2] = map(_size, new)


def _made(text: str, read: Read, chunk: int) -> Rope:
    return Rope(text, read, chunk=chunk)


def _splices(notes: list[tuple[int, Any]], most: int) -> list[tuple[int, int, str]]:
    """The edits, each as a place, how much goes there and what comes there.

    Edits that touch are one: typing, a row of backspaces, a word that is replaced, what was typed
    and taken back. (Where that would copy much text again and again, they stay apart.)
    """
    found = []
    at, less, size = -1, 0, 0
    parts: list[str] = []
    for place, new in notes:
        end = at + size
        if isinstance(new, str):
            if place == end:
                parts.append(new)
                size += len(new)
                continue
            if at <= place < end and size <= most:
                text, cut = "".join(parts), place - at
                parts = [text[:cut], new, text[cut:]]
                size += len(new)
                continue
        elif place <= end and at <= place + new and size <= most:
            text, start, stop = "".join(parts), place - at, place - at + new
            if start < 0:
                at, less, start = place, less - start, 0
            if stop > size:
                less, stop = less + stop - size, size
            parts = [text[:start], text[stop:]]
            size -= stop - start
            continue
        found.append((at, less, "".join(parts)))
        if isinstance(new, str):
            at, less, size, parts = place, 0, len(new), [new]
        else:
            at, less, size, parts = place, new, 0, []
    found.append((at, less, "".join(parts)))
    return [splice for splice in found if splice[1] or splice[2]]


def _pairs(path: list[Any]) -> list[tuple[Any, int]]:
    """A path as branches, each with which kid comes next."""
    return list(zip(path[::2], path[1::2], strict=True))


def _learn(node: Any, state: Hashable, found: tuple[Any, int]) -> None:
    if node.known is NOTHING:
        node.known = {}
    node.known[state] = found


def _shorten(leaf: _Leaf, start: int, stop: int) -> None:
    leaf.text = leaf.text[:start] + leaf.text[stop:]
    leaf.known = NOTHING


def _size(node: Any) -> int:
    return len(node.text) if isinstance(node, _Leaf) else sum(node.sizes)


def _placed(branch: Any, base: int, back: bool) -> list[tuple[Any, int, int]]:
    """The kids with where they begin and end, in the order in which they are read."""
    placed = []
    for kid, size in zip(branch.kids, branch.sizes, strict=True):
        placed.append((kid, base, base + size))
        base += size
    return placed[::-1] if back else placed


def _branches(kids: list[Any], sizes: list[int], fan: int) -> list[Any]:
    return [_Branch(kids[a:b], sizes[a:b]) for a, b in _even(len(kids), fan)]


def _even(size: int, limit: int) -> list[tuple[int, int]]:
    """Where to cut `size` things: into one part if the limit allows, else into equal parts that
    leave room for a quarter more."""
    parts = 1 if size <= limit else -(-4 * size // (3 * limit))
    return [(size * k // parts, size * (k + 1) // parts) for k in range(parts)]
