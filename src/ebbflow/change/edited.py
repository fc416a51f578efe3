"""Texts and lists to be edited: values for the fields of rows.

A Python string cannot be edited: one new letter in ten million copies ten million. A `Text` is the
same text in a tree of short pieces that is never altered; an edit makes a new one that shares all
but one path of the tree with the old, and remembers how it was made (`ebbflow.change.remember`). A
`List` is the same for items.

    an edit              O(log n), and its own text
    a slice, a position  O(log n), and the slice
    hash, ==             after an edit, O(log n); what two values share is not compared
    str(text)            a copy of the whole; so are all methods of `str`, which a Text has too

A `Text` is equal to the `str` with the same characters. A text of up to `SHORT` code points also
has the hash of that `str`. The hash of a longer one is put together from those of its pieces, which
no `str` has: a long text is found in a dict or set only as a Text. (A field that is declared as
Text holds nothing else: what is given as a `str` becomes one.)
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, Self, SupportsIndex, TypeVar, overload

from ebbflow.change.items import LIST
from ebbflow.change.remember import Remembering
from ebbflow.change.rope import ItemRope, Rope
from ebbflow.change.structure import ChangeStructure
from ebbflow.change.text import TEXT

T = TypeVar("T")

SHORT = 4096
"""Texts of up to so many code points have the hash of the equal `str`."""
_SUM = "sum"
_MODULUS = 65521


class EditedSequence(Remembering):
    """What texts and lists share: the tree, and that it is never altered."""

    __slots__ = ("__weakref__", "_hash", "_notes", "_origin", "_rope")

    structure: ChangeStructure[Any, Any]
    rope: type[Rope] = Rope

    def __init__(self, rope: Rope) -> None:
        self._rope = rope
        self._notes: dict[Any, Any] = {}
        self._origin: Any = None
        self._hash: int | None = None

    def changed(self, change: Any) -> Self:
        rope = self._rope.copy()
        rope.splice(change)
        rope._tree()
        return self._of(rope)

    def edited(self, *changes: Any) -> Self:
        """The value after these changes, one after the other; a ChangeError where one does not
        fit."""
        made = self.structure.patch_all(self, changes)
        return made if made is self else made.remembering(self, self.structure, changes)

    @classmethod
    def _of(cls, rope: Rope) -> Self:
        made = object.__new__(cls)
        EditedSequence.__init__(made, rope)
        return made

    def forgetting(self) -> Self:
        return self._of(self._rope.copy())

    def __len__(self) -> int:
        return self._rope.size

    def __bool__(self) -> bool:
        return bool(self._rope.size)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def _slice(self, index: slice) -> Any:
        start, stop, step = index.indices(len(self))
        return self._rope.slice(start, stop) if step == 1 else self._whole()[index]

    def _place(self, index: SupportsIndex) -> int:
        at = index.__index__()
        at += len(self) if at < 0 else 0
        if not 0 <= at < len(self):
            raise IndexError(f"position {index} of {len(self)}")
        return at

    def _whole(self) -> Any:
        return self._rope.slice(0, len(self))

    @classmethod
    def of_leaves(cls, pieces: Sequence[Any], numbers: Iterable[int]) -> Self:
        """The value whose `leaves` were these pieces, stored under these numbers.

        >>> stored = Text.of_leaves(["ebb and ", "flow"], [7, 8])
        >>> stored, [leaf.number for leaf in stored.leaves()]
        (Text('ebb and flow'), [7, 8])
        """
        return cls._of(cls.rope.of_pieces(pieces, numbers))

    def leaves(self) -> list[Any]:
        """The leaves of the tree, in order; each has a `text` and a `number`. None is ever
        altered but for its number, which is for who stores it."""
        nodes = [self._rope._root]
        for _ in self._rope._heights:
            nodes = [kid for node in nodes for kid in node.kids]
        return nodes

    def _alike(self, other: EditedSequence) -> bool:
        """Whether two are equal. The hash tells most that differ apart, and pieces that both have
        are not looked at."""
        if self is other or self._rope._root is other._rope._root:
            return True
        if len(self) != len(other) or hash(self) != hash(other):
            return False
        return _same(self._rope, other._rope)


class Text(EditedSequence):
    """A text to be edited, equal to the `str` with the same characters.

    >>> from ebbflow.change import Delete, Insert
    >>> text = Text("held")
    >>> longer = text.edited(Insert(3, "lo wor"))
    >>> longer, text, longer == "hello word", longer[6:]
    (Text('hello word'), Text('held'), True, 'word')
    >>> longer.made_from(TEXT)
    (Text('held'), (Insert(at=3, text='lo wor'),))
    >>> text.edited(Delete(3, 2))
    Traceback (most recent call last):
    ebbflow.errors.ChangeError: Delete(at=3, count=2) is not a valid change of this text
        because    it ends at position 5, and the text ends at 4
        value      Text('held')
        try        a Delete that ends at or before position 4

    All methods of `str` are there, and work on a copy of the whole:

    >>> text.upper(), "el" in text, sorted([text, "ebb"])
    ('HELD', True, ['ebb', Text('held')])
    """

    __slots__ = ()

    structure = TEXT
    is_text = True

    def __new__(cls, text: str | Text = "") -> Self:
        if isinstance(text, cls):
            return text
        if not isinstance(text, str):
            raise TypeError(f"Text(...) takes a str, not {type(text).__name__}")
        return cls._of(cls.rope(text))

    def __init__(self, text: str | Text = "") -> None:
        """All is made by `__new__`."""

    def following(self, new: str | Text) -> Text:
        """The text `new`, made from this one by what the two differ in: a deletion and an insertion
        between what they begin and end with alike."""
        if isinstance(new, Text) and new._origin is not None:
            return new
        whole = str(new)
        return self.patched(TEXT, *TEXT.edits(whole, str(self)))

    def __str__(self) -> str:
        return str(self._whole())

    def __repr__(self) -> str:
        if len(self) <= SHORT:
            return f"Text({str(self)!r})"
        return f"<Text of {len(self)}: {self[:20]!r}...>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Text, (str(self),)

    def __getitem__(self, index: SupportsIndex | slice) -> str:
        if isinstance(index, slice):
            return str(self._slice(index))
        at = self._place(index)
        return str(self._rope.slice(at, at + 1))

    def __iter__(self) -> Iterator[str]:
        return (letter for piece in self._rope.pieces() for letter in piece)

    def __contains__(self, part: str) -> bool:
        return str(part) in str(self)

    def __hash__(self) -> int:
        if self._hash is None:
            rope = self._rope
            if rope.size <= SHORT:
                self._hash = hash(str(self))
            else:
                self._hash = hash(_sum(rope._root, len(rope._heights)))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Text):
            return self._alike(other)
        if isinstance(other, str):
            return len(self) == len(other) and str(self) == other
        return NotImplemented

    def __lt__(self, other: Any) -> bool:
        return str(self) < str(other) if isinstance(other, (str, Text)) else NotImplemented

    def __le__(self, other: Any) -> bool:
        return str(self) <= str(other) if isinstance(other, (str, Text)) else NotImplemented

    def __gt__(self, other: Any) -> bool:
        return str(self) > str(other) if isinstance(other, (str, Text)) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        return str(self) >= str(other) if isinstance(other, (str, Text)) else NotImplemented

    def __add__(self, other: str | Text) -> str:
        return str(self) + str(other) if isinstance(other, (str, Text)) else NotImplemented

    def __radd__(self, other: str) -> str:
        return other + str(self) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: int) -> str:
        return str(self) * times

    def __format__(self, how: str) -> str:
        return format(str(self), how)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'Text' object has no attribute {name!r}")
        return getattr(str(self), name)


class List(EditedSequence, Generic[T]):
    """A list to be edited by `InsertItems`, `DeleteItems` and `ReplaceItem`. It is equal to the
    tuple and to the list with the same items, and has the hash of the tuple where it is short.

    >>> from ebbflow.change import InsertItems
    >>> items = List(["a", "c"])
    >>> items.edited(InsertItems(1, ("b",)))
    List(['a', 'b', 'c'])
    >>> items == ["a", "c"], items[1], items[:1]
    (True, 'c', ('a',))
    """

    __slots__ = ()

    structure = LIST
    rope = ItemRope

    def __new__(cls, items: Iterable[T] = ()) -> Self:
        if isinstance(items, cls):
            return items
        if isinstance(items, (str, Text)):
            raise TypeError(f"List(...) takes a list, not {type(items).__name__}")
        return cls._of(cls.rope(tuple(items)))

    def __init__(self, items: Iterable[T] = ()) -> None:
        """All is made by `__new__`."""

    def following(self, new: Iterable[T]) -> List[T]:
        """The list `new`, made from this one by what the two differ in."""
        if isinstance(new, List) and new._origin is not None:
            return new
        return self.patched(LIST, *LIST.edits(tuple(new), tuple(self)))

    def __repr__(self) -> str:
        if len(self) <= SHORT:
            return f"List({list(self)!r})"
        return f"<List of {len(self)}: {list(self[:5])!r}...>"

    def __reduce__(self) -> tuple[Any, ...]:
        return List, (self._whole(),)

    @overload
    def __getitem__(self, index: SupportsIndex) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._slice(index)
        at = self._place(index)
        return self._rope.slice(at, at + 1)[0]

    def __iter__(self) -> Iterator[T]:
        return (item for piece in self._rope.pieces() for item in piece)

    def __hash__(self) -> int:
        if self._hash is None:
            rope = self._rope
            if rope.size <= SHORT:
                self._hash = hash(self._whole())
            else:
                self._hash = hash(_sum(rope._root, len(rope._heights)))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, List):
            return self._alike(other)
        if isinstance(other, (tuple, list)):
            return len(self) == len(other) and self._whole() == tuple(other)
        return NotImplemented


# ---- hashes and comparison ----


def _sum(node: Any, height: int) -> tuple[int, int, int]:
    """The checksum of Adler of the text below a node, with its length: that of two texts in a row
    is found from theirs, so where a text is cut makes no difference."""
    known: tuple[int, int, int] | None = node.known.get(_SUM)
    if known is None:
        if height:
            one, two, size = 1, 0, 0
            for kid in node.kids:
                first, second, more = _sum(kid, height - 1)
                two = (two + second + (one - 1) * more) % _MODULUS
                one = (one + first - 1) % _MODULUS
                size += more
        else:
            data = _bytes(node.text)
            found = zlib.adler32(data)
            one, two, size = found & 0xFFFF, found >> 16, len(data)
        known = one, two, size
        node.known = {_SUM: known}
    return known


def _bytes(piece: Any) -> bytes:
    """What the checksum is taken of: the text, or the hashes of items."""
    if isinstance(piece, str):
        return piece.encode("utf-8", "surrogatepass")
    return b"".join([hash(item).to_bytes(8, "little", signed=True) for item in piece])


def _same(one: Rope, two: Rope) -> bool:
    """Whether two ropes of one size hold the same. A leaf that both have in one place is equal at
    a glance."""
    ours, theirs = one.pieces(), two.pieces()
    left: Any = one.empty
    right: Any = one.empty
    at = 0
    while at < one.size:
        left, right = left or next(ours), right or next(theirs)
        size = min(len(left), len(right))
        mine, other = left[:size], right[:size]
        if mine is not other and mine != other:
            return False
        left, right, at = left[size:], right[size:], at + size
    return True
