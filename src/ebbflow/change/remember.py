"""Values that remember how they were made.

A row holds a value, not a change: when a letter is typed into a text, the old row goes and a new
one comes. So that the *edit* is not lost on the way, the new text remembers the text that it was
made from, and by which changes. Whoever has kept something about the old text (an operator its
state) can then follow the edit, and pays for the edit and not for the text.

    new = old.edited(change)
    new.made_from(TEXT)     ->  (old, (change,)),  as long as somebody else has the old value

The old value is held weakly: a text that was edited a thousand times does not keep a thousand texts
alive. What was not looked at in between is passed over: of two edits in one epoch, the second text
remembers the first one and both edits.

What operators have found out about a value is kept with it, in `notes`, by operator, and goes when
the value goes. None of this is part of the value: it takes no part in `==`, in the hash, or in what
is written to disk or sent elsewhere.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self
from weakref import ref

LONGEST = 64
"""So many changes are remembered at most; whoever has to follow more begins again."""


class Remembering:
    """A value that is never altered, and knows what it was made from.

    A subclass has the slots `_notes` and `_origin`, and `__weakref__`.
    """

    __slots__ = ()

    _notes: dict[Any, Any]
    _origin: tuple[ref[Any], Any, tuple[Any, ...]] | None

    @abstractmethod
    def changed(self, change: Any) -> Self:
        """The value after a change that is known to fit, as a new value that remembers nothing."""

    # ---- everything below is written with this ----

    def patched(self, structure: Any, *changes: Any) -> Self:
        """The value after changes of a change structure that are known to fit it, one after the
        other. It remembers this value and the changes."""
        made = self
        for change in changes:
            made = structure.apply(made, change)
        return made if made is self else made.remembering(self, structure, changes)

    def remembering(self, old: Self, structure: Any, changes: tuple[Any, ...]) -> Self:
        """This value, which was made from `old` by these changes."""
        before = None if old._notes else old.made_from(structure)
        if before is not None and len(before[1]) + len(changes) <= LONGEST:
            old, changes = before[0], (*before[1], *changes)
        object.__setattr__(self, "_origin", (ref(old), structure, changes))
        return self

    def made_from(self, structure: Any) -> tuple[Self, tuple[Any, ...]] | None:
        """The value that this one was made from, and by which changes of a change structure; None
        where that is not known, or nobody has the old value any more."""
        if self._origin is None:
            return None
        old, made_by, changes = self._origin
        value = old()
        return None if value is None or made_by != structure else (value, changes)

    @property
    def notes(self) -> dict[Any, Any]:
        """What operators have found out about this value, by operator."""
        return self._notes

    @abstractmethod
    def forgetting(self) -> Self:
        """An equal value that remembers nothing; it shares what it can."""
