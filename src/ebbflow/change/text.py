"""Text and its edits: insert a piece anywhere, delete a piece anywhere.

A position is the number of code points before it, from 0 (the start) to `len(text)` (the end), as
in Python's own slices, but never negative and never past the end. What a reader sees as one
character may be several code points, so an edit can fall between a letter and its accent.

One edit cannot both insert and delete, so two texts have no difference in general. They have
`edits`, at most two: what lies between the common start and the common end is deleted, and what the
new text has there is inserted. `sequence(TEXT)` is where that is a diff.

Patching a `str` copies it once, whatever the edit; a `Text` (`ebbflow.change.edited`) is patched in
O(log n), and stays one. Typing merges: a letter after a letter, a
correction inside what was just typed, a row of backspaces are one edit each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from ebbflow.change.remember import Remembering
from ebbflow.change.structure import ChangeStructure, ConstantStructure, Why
from ebbflow.errors import type_name


@dataclass(frozen=True, slots=True)
class Insert:
    """Put `text` in front of what is at position `at`.

    >>> TEXT.patch("held", Insert(3, "lo wor"))
    'hello word'
    """

    at: int
    text: str

    @property
    def extent(self) -> tuple[int, str]:
        """How many code points go at that position, and which come."""
        return 0, self.text


@dataclass(frozen=True, slots=True)
class Delete:
    """Take out `count` code points from position `at` on.

    >>> TEXT.patch("hello", Delete(1, 3))
    'ho'
    """

    at: int
    count: int

    @property
    def extent(self) -> tuple[int, str]:
        """How many code points go at that position, and which come."""
        return self.count, ""


Edit = Insert | Delete


class _Text(ConstantStructure[str, Edit]):
    """Strings, changed by Insert and Delete.

    >>> TEXT.compress([Insert(0, "H"), Insert(1, "j"), Delete(1, 1), Insert(1, "i")])
    (Insert(at=0, text='Hi'),)
    >>> TEXT.edits("the cat sat", "the dog sat")
    (Delete(at=4, count=3), Insert(at=4, text='cat'))
    >>> TEXT.patch("abcd", Delete(3, 4))
    Traceback (most recent call last):
    ebbflow.errors.ChangeError: Delete(at=3, count=4) is not a valid change of this text
        because    it ends at position 7, and the text ends at 4
        value      'abcd'
        try        a Delete that ends at or before position 4
    """

    noun, takes = "text", "Insert(at, text) or Delete(at, count)"

    def valid(self, change: object, value: str) -> bool:
        return is_text(value) and is_edit(change) and end_of(change) <= len(value)

    def apply(self, value: str, change: Edit) -> str:
        if isinstance(value, Remembering):
            return value.changed(change)
        if isinstance(change, Insert):
            return value[: change.at] + change.text + value[change.at :]
        return value[: change.at] + value[change.at + change.count :]

    def edits(self, new: str, old: str) -> tuple[Edit, ...]:
        new, old = str(new), str(old)
        start = common_prefix(new, old)
        new_rest, old_rest = new[start:], old[start:]
        same_end = common_prefix(new_rest[::-1], old_rest[::-1])
        delete = Delete(start, len(old_rest) - same_end)
        insert = Insert(start, new_rest[: len(new_rest) - same_end])
        return tuple(edit for edit in (delete, insert) if not self.is_nothing(edit))

    @property
    def nothing(self) -> Edit:
        return Insert(0, "")

    @property
    def empty(self) -> str:
        return ""

    def is_change(self, change: object) -> bool:
        return is_edit(change)

    def is_nothing(self, change: object) -> bool:
        return is_edit(change) and not (change.text if isinstance(change, Insert) else change.count)

    def merge(self, first: Edit, second: Edit) -> Edit | None:
        self.require(first, second)
        match first, second:
            case Insert(), Insert():
                return _typed_into(first, second)
            case Insert(), Delete():
                return _taken_back(first, second)
            case Delete(), Delete():
                return _deleted_on(first, second)
        return None

    def why(self, change: object, value: str) -> Why:
        if not is_text(value):
            return Why("the value is not a str", "a str", {"value": value})
        if not is_edit(change):
            reason = f"{type_name(change)} like this is no edit: at and count are ints of 0 or more"
            return Why(reason, self.takes, {"value": value})
        size = len(value)
        if isinstance(change, Insert):
            reason = f"it inserts at position {change.at}, and the text ends at {size}"
            return Why(reason, f"an Insert at or before position {size}", {"value": value})
        reason = f"it ends at position {end_of(change)}, and the text ends at {size}"
        return Why(reason, f"a Delete that ends at or before position {size}", {"value": value})


TEXT: ChangeStructure[str, Edit] = _Text(name="TEXT")


def is_edit(change: object) -> TypeGuard[Edit]:
    """Whether `change` is an Insert or Delete that fits some text.

    >>> is_edit(Insert(0, "x")), is_edit(Delete(-1, 1)), is_edit("x")
    (True, False, False)
    """
    if isinstance(change, Insert):
        return _is_position(change.at) and isinstance(change.text, str)
    return isinstance(change, Delete) and _is_position(change.at) and _is_position(change.count)


def is_text(value: object) -> bool:
    """Whether a value is a str or a `Text`.

    >>> is_text("a"), is_text(["a"])
    (True, False)
    """
    return isinstance(value, str) or getattr(value, "is_text", False) is True


def _is_position(x: object) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x >= 0


def end_of(change: Edit) -> int:
    """How long a text must be for the change to fit it.

    >>> end_of(Insert(3, "x")), end_of(Delete(2, 2))
    (3, 4)
    """
    return change.at if isinstance(change, Insert) else change.at + change.count


# ---- when two edits are one: the second touches what the first did ----


def _typed_into(first: Insert, second: Insert) -> Insert | None:
    """The second goes into, before or after the text just inserted."""
    cut = second.at - first.at
    if not 0 <= cut <= len(first.text):
        return None
    return Insert(first.at, first.text[:cut] + second.text + first.text[cut:])


def _taken_back(first: Insert, second: Delete) -> Edit | None:
    """The second deletes a piece of the text just inserted, or all of it and more around it."""
    start, end = second.at - first.at, second.at + second.count - first.at
    size = len(first.text)
    if start >= 0 and end <= size:
        return Insert(first.at, first.text[:start] + first.text[end:])
    return Delete(second.at, second.count - size) if start <= 0 and size <= end else None


def _deleted_on(first: Delete, second: Delete) -> Delete | None:
    """The second deletes on from where the first left a gap, to one side or to both."""
    touches = second.at <= first.at <= second.at + second.count
    return Delete(second.at, first.count + second.count) if touches else None


def common_prefix(a: str, b: str) -> int:
    """How many code points `a` and `b` begin with alike.

    Whole slices are compared, each half as long as the one before: linear, with no step per letter.

    >>> common_prefix("carpet", "carbon"), common_prefix("car", "carbon")
    (3, 3)
    """
    same, limit = 0, min(len(a), len(b))
    if a[:limit] == b[:limit]:
        return limit
    while limit - same > 1:
        middle = (same + limit) // 2
        if a[same:middle] == b[same:middle]:
            same = middle
        else:
            limit = middle
    return same
