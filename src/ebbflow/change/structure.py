"""Change structures: what a change to a value is, when it fits, and what it does.

A *value* is anything the program computes with. A *change* is a small description of how a value
moves: add 3, insert "x" at position 7, take two rows away. A *change structure* ties the two
together with two primitives:

    valid(change, value)      does this change fit this value?
    apply(value, change)      the new value, for a change that fits

Not every change fits every value: nobody can take a row out of a bag that does not hold it. `patch`
asks first and raises a `ChangeError` when the answer is no, so nothing is ever cut off, wrapped
round or silently skipped. A change is made without knowing what it will be applied to; that is why
validity is a question with two arguments and not a part of the change.

Three things are optional, and a structure that has them is held to their laws:

    diff(new, old)            valid(diff(new, old), old)  and  patch(old, diff(new, old)) == new
    nothing                   valid(nothing, v)           and  patch(v, nothing) == v
    merge(first, second)      one change that does what the two do, one after the other

A structure may also be a *stream*: `monoid` says how its changes are put together, any two of them
into one, and `empty` is the value before any change. Then an operator from one stream to another is
a stream processor. Where the values are themselves elements of that monoid, and a change is
combined onto the end of one (numbers, Z-sets, `group`), the structure is `acting_on_itself`.

A difference need not exist (one `Insert` or `Delete` cannot turn "ab" into "ac") and need not be
unique, so nothing here depends on it. Merging is what makes `compress` work: a long sequence of
changes becomes a short one that does the same. The law has one direction: wherever the sequence is
valid, the short one is valid too and gives the same value. The short one may fit more values:
taking a row out and putting it back fits only the bags that hold the row, and what is left of the
two, nothing at all, fits every bag.

Patching never alters the old value, and pays for that by copying; each structure says how much.
Whoever patches one large value many times keeps a state of its own instead, as the engines do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from ebbflow.algebra import Monoid
from ebbflow.algebra.value import Built, Recipe
from ebbflow.errors import ChangeError, Text, value_text

T = TypeVar("T")
D = TypeVar("D")


class Why(NamedTuple):
    """Why a change is not valid, what to do about it, and the facts worth showing.

    >>> Why("2 + -3 is below zero", "a change of at least -2", {"value": 2}).reason
    '2 + -3 is below zero'
    """

    reason: str
    remedy: str
    facts: Mapping[str, object]


class ChangeStructure(Built, ABC, Generic[T, D]):
    """Values of type T and their changes of type D. To make one, write `valid` and `apply`.

    >>> class Volume(ChangeStructure[int, int]):
    ...     noun, takes = "volume", "an int that keeps it within 0 to 10"
    ...     nothing = 0
    ...
    ...     def valid(self, change, value):
    ...         return isinstance(change, int) and 0 <= value + change <= 10
    ...
    ...     def apply(self, value, change):
    ...         return value + change
    ...
    ...     def merge(self, first, second):
    ...         return first + second
    >>> volume = Volume(name="volume")
    >>> volume.patch(4, 5)
    9
    >>> volume.compress([3, -1, 2])
    (4,)
    >>> volume.patch(9, 5)
    Traceback (most recent call last):
    ebbflow.errors.ChangeError: 5 is not a valid change of this volume
        because    it does not fit this value
        value      9
        try        an int that keeps it within 0 to 10

    `noun` and `takes` are words for the errors; override `why` to say more.

    `elements` is what `check` draws values from, and `changes` a function from a value to what it
    draws that value's valid changes from. Both are only kept here, and are no part of what makes
    two structures equal.
    """

    noun: str = "value"
    takes: str = "a change for which valid(change, value) is true"
    elements: Any = None
    changes: Callable[[T], Any] | None = None
    acting_on_itself: bool = False

    def __init__(
        self,
        *,
        name: str = "",
        elements: Any = None,
        changes: Callable[[T], Any] | None = None,
        built: Recipe | None = None,
    ) -> None:
        self.name = name
        self.elements = elements
        self.changes = changes
        self.built = built

    @abstractmethod
    def valid(self, change: object, value: T) -> bool:
        """Whether `change` fits `value`. Total: what is no change at all is False, no exception."""

    @abstractmethod
    def apply(self, value: T, change: D) -> T:
        """The new value, for a change that is valid. Leaves `value` as it was."""

    # ---- optional: what a structure may add ----

    def diff(self, new: T, old: T) -> D:
        """A change that turns `old` into `new`: `patch(old, diff(new, old)) == new`."""
        raise ChangeError(
            f"{self!r} has no diff: one change cannot always turn one {self.noun} into another",
            new=new,
            old=old,
            remedy=f"sequence({self!r}).diff(new, old)"
            if self.has_edits
            else "REPLACE, whose change is the new value",
        )

    def edits(self, new: T, old: T) -> tuple[D, ...]:
        """Changes that turn `old` into `new` in order: the diff of `sequence(...)`."""
        change = self.diff(new, old)
        return () if self.is_nothing(change) else (change,)

    @property
    def nothing(self) -> D:
        """The change that changes nothing, valid for every value."""
        raise ChangeError(
            f"{self!r} has no change that changes nothing",
            remedy=f"sequence({self!r}), where () changes nothing",
        )

    def is_nothing(self, change: object) -> bool:
        """Whether `change` leaves every value it fits as it was."""
        return self.has_nothing and bool(change == self.nothing)

    def is_change(self, change: object) -> bool:
        """Whether `change` is a change of this structure at all, for some value."""
        return True

    def merge(self, first: D, second: D) -> D | None:
        """One change that does what `first` and then `second` do, or None when no one change can.

        Where they cancel, that is a change for which `is_nothing` is true. Changes that can never
        follow each other, whatever the value, raise a ChangeError.
        """
        return None

    @property
    def monoid(self) -> Monoid[D]:
        """Its changes as the pieces of a stream: any two put together are one change."""
        raise ChangeError(
            f"two changes of {self!r} are not always one change, so they are no stream",
            remedy=f"sequence({self!r}), whose changes are put together by appending",
        )

    @property
    def empty(self) -> T:
        """The value before any change, where a stream of changes starts."""
        raise ChangeError(
            f"{self!r} has no value that a stream of changes could start from",
            remedy="operator.open(value), which starts from a value of yours",
        )

    def from_empty(self, value: T) -> D:
        """The change that leads from `empty` to a value."""
        return self.diff(value, self.empty)

    def why(self, change: object, value: T) -> Why:
        """Why `change` is not valid for `value`; asked only when it is not."""
        return Why("it does not fit this value", self.takes, {"value": value})

    # ---- everything below is written with these ----

    @property
    def has_diff(self) -> bool:
        """Whether `diff` exists. A pair of values may still be refused, see NUMBER."""
        return type(self).diff is not ChangeStructure.diff

    @property
    def has_edits(self) -> bool:
        """Whether `edits` exists: always where `diff` does, and sometimes where it does not."""
        return self.has_diff or type(self).edits is not ChangeStructure.edits

    @property
    def has_nothing(self) -> bool:
        """Whether `nothing` exists."""
        return type(self).nothing is not ChangeStructure.nothing

    @property
    def has_empty(self) -> bool:
        """Whether `empty` exists."""
        return type(self).empty is not ChangeStructure.empty

    @property
    def is_stream(self) -> bool:
        """Whether its changes are the pieces of a stream: `monoid` and `empty` exist."""
        return type(self).monoid is not ChangeStructure.monoid and self.has_empty

    def patch(self, value: T, change: D) -> T:
        """The value after the change; a ChangeError when the change is not valid."""
        if not self.valid(change, value):
            raise self.refusal(change, value)
        return self.apply(value, change)

    def patch_all(self, value: T, changes: Iterable[D]) -> T:
        """The value after all changes, one after the other."""
        for change in changes:
            value = self.patch(value, change)
        return value

    def refusal(self, change: object, value: T) -> ChangeError:
        """The error that says that `change` is not valid for `value`, and why."""
        reason, remedy, facts = self.why(change, value)
        return ChangeError(
            f"{value_text(change, width=200)} is not a valid change of this {self.noun}",
            remedy=remedy,
            **{"because": Text(reason), **facts},
        )

    def stranger(self, change: object) -> ChangeError:
        """The error that says that `change` is no change of this structure, whatever the value."""
        return ChangeError(
            f"{value_text(change, width=200)} is no change of a {self.noun}, whatever its value",
            remedy=self.takes,
        )

    def require(self, *changes: object) -> None:
        """Refuse what is no change of this structure."""
        for change in changes:
            if not self.is_change(change):
                raise self.stranger(change)

    def compose(self, first: D, second: D) -> tuple[D, ...]:
        """The two changes as none where they cancel, as one where they merge, else as they were."""
        if self.is_nothing(first):
            return () if self.is_nothing(second) else (second,)
        if self.is_nothing(second):
            return (first,)
        merged = self.merge(first, second)
        if merged is None:
            return first, second
        return () if self.is_nothing(merged) else (merged,)

    def compress(self, changes: Iterable[D]) -> tuple[D, ...]:
        """A sequence that does the same as `changes` and is never longer.

        Neighbours are merged half by half, as in a merge sort, and not from left to right: a merged
        change can be as long as all that went into it, and is then copied once per level instead of
        once per change. `compose` is called at most four times per change.
        """
        return tuple(self._compressed([c for c in changes if not self.is_nothing(c)]))

    def _compressed(self, changes: list[D]) -> list[D]:
        if len(changes) < 2:
            return changes
        middle = len(changes) // 2
        return self._joined(self._compressed(changes[:middle]), self._compressed(changes[middle:]))

    def _joined(self, left: list[D], right: list[D]) -> list[D]:
        """Both lists of changes, merged where they meet. `fresh`: the last change of `left` is
        newly merged, and may merge with the one before it."""
        used, fresh = 0, False
        while True:
            if left and used < len(right) and len(made := self.compose(left[-1], right[used])) < 2:
                left[-1:], used = made, used + 1
            elif fresh and len(left) > 1 and len(made := self.compose(left[-2], left[-1])) < 2:
                left[-2:] = made
            else:
                return left + right[used:]
            fresh = len(made) == 1


class ConstantStructure(ChangeStructure[T, D]):
    """A structure there is one of, kept in its module under its `name` and pickled as that name."""

    @property
    def home(self) -> str:  # type: ignore[override]
        return type(self).__module__


class ByParts(ChangeStructure[T, D]):
    """A structure that compresses a whole sequence part by part, and two changes as a short one."""

    @abstractmethod
    def compress(self, changes: Iterable[D]) -> tuple[D, ...]: ...

    def compose(self, first: D, second: D) -> tuple[D, ...]:
        merged = self.compress((first, second))
        return merged if len(merged) < 2 else (first, second)
