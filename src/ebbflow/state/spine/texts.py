"""Long texts in pieces: what a keystroke writes is the keystroke.

A row is stored whole when it changes. Where a field is a `Text` or a `List` that is long, its
leaves (`ebbflow.change.tree`) are stored apart, each under a number of its own in the spine `texts`
of the same store, and the row holds the list of the numbers. A text that was edited shares all but
one of its leaves with the text before, and a leaf remembers its number; so an edit writes a leaf,
and eight bytes for every other.

A number belongs to one row. The leaves that a row had and has no more are taken out in the same
epoch: what it had is read from the spine, so nothing has to be remembered between epochs, and an
epoch that did not happen leaves nothing behind. Retained epochs have the segments of their time, in
which the leaves still are.

Only rows that are values of keys are stored so, as those of an input with a key: rows that are
keys are compared as they are stored. A text that is read again has the leaves that were stored, and
their numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from ebbflow.change.edited import EditedSequence, List, Text
from ebbflow.change.fields import edited_fields
from ebbflow.errors import AlgebraError
from ebbflow.record import maker, taken_apart
from ebbflow.state.backing import ABSENT

if TYPE_CHECKING:
    from ebbflow.state.spine.spine import Spine

TEXTS = "texts"
"""The name of the spine with the leaves."""
LEAVES = 256
"""How many leaves are in a chunk: each has the size of a hundred other entries."""
LEAST = 4
"""From so many leaves on a text is stored in pieces."""
_CLASSES: dict[str, type[Text | List[Any]]] = {"text": Text, "list": List}
_new_number = SystemRandom().getrandbits


class InPieces:
    """What stands in a row for a long text or list: the numbers of its leaves, as bytes."""

    __slots__ = ("numbers", "of")

    def __init__(self, of: str, numbers: bytes) -> None:
        self.of, self.numbers = of, numbers

    def __reduce__(self) -> tuple[Any, ...]:
        return InPieces, (self.of, self.numbers)

    def __iter__(self) -> Iterator[int]:
        return iter(array("q", self.numbers))


class AnyRow(tuple[Any, ...]):
    """A row of whatever type, to be looked at."""


class TextPieces:
    """Rows with long texts apart, and together again; `leaves` gives the spine that has them."""

    def __init__(self, row_type: Any, leaves: Callable[[], Spine], *, writes: bool = False) -> None:
        self.leaves, self._type = leaves, row_type
        self.writes = writes and not hasattr(row_type, "__post_init__")  # which may look at fields
        self._places = [i for i, _ in edited_fields(row_type)]
        self._apart, self._make = taken_apart(row_type), maker(row_type)

    def apart(self, change: Mapping[Any, Any], old: Mapping[Any, Any]) -> dict[Any, Any]:
        """A change of rows by key, with the long texts of its rows in pieces. `old` are the rows of
        the same keys as they are stored."""
        new: dict[Any, Any] = {}
        written: dict[int, Any] = {}
        for key, row in change.items():
            had = {number for part in self._stored(old.get(key)) for number in part}
            if row is not ABSENT:
                values = list(self._apart(row))
                for i in self._places:
                    if isinstance(values[i], EditedSequence):
                        values[i] = _numbered(values[i], had, written)
                row = self._make(values)
            new[key] = row
            has = {number for part in self._stored(row) for number in part}
            written.update(dict.fromkeys(had - has, ABSENT))
        if written:
            self.leaves().append(written)
        return new

    def together(self, rows: list[Any]) -> list[Any]:
        """Rows as they are stored, with their texts whole."""
        wanted = {number for row in rows for part in self._stored(row) for number in part}
        if not wanted:
            return rows
        found = self.leaves().probe(wanted)
        return [self._whole(row, found) for row in rows]

    def _stored(self, row: Any) -> list[InPieces]:
        known = row is not None and row is not ABSENT and isinstance(row, self._type)
        return pieces_in(self._apart(row)) if known else []

    def _whole(self, row: Any, found: Mapping[int, Any]) -> Any:
        if not self._stored(row):
            return row
        values = [
            _joined(value, found) if isinstance(value, InPieces) else value
            for value in self._apart(row)
        ]
        return self._make(values)


def pieces_in(values: Any) -> list[InPieces]:
    """Those of the values of a row that are in pieces."""
    return [value for value in values if isinstance(value, InPieces)]


def _numbered(value: EditedSequence, had: set[int], written: dict[int, Any]) -> Any:
    """A long text as the numbers of its leaves; those that are new are among what is `written`."""
    leaves = list(value.leaves())
    if len(leaves) < LEAST:
        return value
    numbers = array("q")
    for leaf in leaves:
        number = leaf.number
        if number not in had or number in numbers[-1:]:
            number = leaf.number = _new_number(63)
            written[number] = leaf.text
        numbers.append(number)
    return InPieces("text" if isinstance(value, Text) else "list", numbers.tobytes())


def _joined(stored: InPieces, found: Mapping[int, Any]) -> Any:
    pieces: list[Any] = [found.get(number) for number in stored]
    if None in pieces:
        raise AlgebraError(
            "a piece of a text is not in the state it was stored in",
            remedy="another copy of the state: this one is damaged",
        )
    return _CLASSES[stored.of].of_leaves(pieces, stored)
