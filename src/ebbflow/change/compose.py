"""Change structures made of change structures: pairs, and several changes in a row.

A *pair* changes on its first side, on its second, or on both at once. The sides know nothing of
each other, so a sequence of changes of a pair is two sequences, one per side, each compressed alone
and then laid side by side again.

A *sequence* is a change made of changes of the same value, applied in order; each must be valid for
what the ones before it left. It says at least as much as a single change and often more: a text has
no one edit from "dog" to "cat", and always a sequence of edits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, Generic, TypeVar

from ebbflow.algebra import TUPLE, Monoid
from ebbflow.change.structure import ByParts, ChangeStructure, Why
from ebbflow.errors import type_name

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class First(Generic[C]):
    """A change of the first of a pair.

    >>> from ebbflow.change import NUMBER, TEXT
    >>> pair(NUMBER, TEXT).patch((1, "a"), First(2))
    (3, 'a')
    """

    change: C


@dataclass(frozen=True, slots=True)
class Second(Generic[D]):
    """A change of the second of a pair.

    >>> from ebbflow.change import NUMBER, TEXT, Insert
    >>> pair(NUMBER, TEXT).patch((1, "a"), Second(Insert(1, "b")))
    (1, 'ab')
    """

    change: D


@dataclass(frozen=True, slots=True)
class Both(Generic[C, D]):
    """A change of the first and one of the second of a pair, at once.

    >>> from ebbflow.change import NUMBER, BOOL
    >>> pair(NUMBER, BOOL).patch((1, True), Both(2, True))
    (3, False)
    """

    first: C
    second: D


PairChange = First[C] | Second[D] | Both[C, D]


def pair(
    first: ChangeStructure[A, C],
    second: ChangeStructure[B, D],
    *,
    elements: Any = None,
    changes: Callable[[tuple[A, B]], Any] | None = None,
) -> ChangeStructure[tuple[A, B], PairChange[C, D]]:
    """Pairs, changed on either side or on both: `First(c)`, `Second(d)`, `Both(c, d)`.

    >>> from ebbflow.change import NUMBER, BOOL
    >>> counter = pair(NUMBER, BOOL)
    >>> counter.compress([First(1), Second(True), Both(2, True)])
    (First(change=3),)
    >>> counter.diff((5, True), (2, False))
    Both(first=3, second=True)
    """
    built = pair, (first, second)
    return _Pair(first, second, built=built, elements=elements, changes=changes)


def pair_changes(first: Monoid[C], second: Monoid[D]) -> Monoid[PairChange[C, D]]:
    """The changes of a pair, put together side by side, each side as its own monoid says.

    A side that does not change is one that changes by zero: `First(c)` equals `Both(c, zero)`.

    >>> from ebbflow.algebra import ADD, LIST
    >>> pair_changes(ADD, LIST).combine(First(2), Both(1, ["a"]))
    Both(first=3, second=['a'])
    """

    def sides(change: PairChange[C, D]) -> tuple[C, D]:
        match change:
            case First(c):
                return c, second.zero
            case Second(d):
                return first.zero, d
            case Both(c, d):
                return c, d

    def combine(a: PairChange[C, D], b: PairChange[C, D]) -> PairChange[C, D]:
        (c, d), (more_c, more_d) = sides(a), sides(b)
        return Both(first.combine(c, more_c), second.combine(d, more_d))

    def equal(a: PairChange[C, D], b: PairChange[C, D]) -> bool:
        (c, d), (other_c, other_d) = sides(a), sides(b)
        return first.equal(c, other_c) and second.equal(d, other_d)

    def negate(a: PairChange[C, D]) -> PairChange[C, D]:
        c, d = sides(a)
        return Both(first.minus(first.zero, c), second.minus(second.zero, d))

    return Monoid(
        Both(first.zero, second.zero),
        combine,
        commutative=first.commutative and second.commutative,
        idempotent=first.idempotent and second.idempotent,
        negate=negate if first.is_group and second.is_group else None,
        equal=equal,
        built=(pair_changes, (first, second)),
    )


class _Pair(ByParts[tuple[A, B], PairChange[C, D]]):
    noun, takes = "pair", "First(change), Second(change) or Both(first, second)"

    def __init__(
        self, first: ChangeStructure[A, C], second: ChangeStructure[B, D], **rest: Any
    ) -> None:
        super().__init__(**rest)
        self.first = first
        self.second = second
        self.acting_on_itself = first.acting_on_itself and second.acting_on_itself

    def _sides(self, change: object) -> list[tuple[int, ChangeStructure[Any, Any], Any]]:
        """The sides that change: which, its structure and its change."""
        match change:
            case First(c):
                return [(0, self.first, c)]
            case Second(d):
                return [(1, self.second, d)]
            case Both(c, d):
                return [(0, self.first, c), (1, self.second, d)]
        return []

    def valid(self, change: object, value: tuple[A, B]) -> bool:
        sides = self._sides(change) if _is_pair(value) else []
        return bool(sides) and all(side.valid(own, value[i]) for i, side, own in sides)

    def is_change(self, change: object) -> bool:
        sides = self._sides(change)
        return bool(sides) and all(side.is_change(own) for _, side, own in sides)

    def apply(self, value: tuple[A, B], change: PairChange[C, D]) -> tuple[A, B]:
        parts: list[Any] = [*value]
        for i, side, own in self._sides(change):
            parts[i] = side.apply(parts[i], own)
        return parts[0], parts[1]

    @property
    def has_diff(self) -> bool:
        return self.first.has_diff and self.second.has_diff

    @property
    def has_edits(self) -> bool:
        return self.first.has_edits and self.second.has_edits

    def diff(self, new: tuple[A, B], old: tuple[A, B]) -> PairChange[C, D]:
        if not self.has_diff:
            return super().diff(new, old)
        return Both(self.first.diff(new[0], old[0]), self.second.diff(new[1], old[1]))

    def edits(self, new: tuple[A, B], old: tuple[A, B]) -> tuple[PairChange[C, D], ...]:
        return _zipped(self.first.edits(new[0], old[0]), self.second.edits(new[1], old[1]))

    @property
    def has_nothing(self) -> bool:
        return self.first.has_nothing or self.second.has_nothing

    @property
    def nothing(self) -> PairChange[C, D]:
        return First(self.first.nothing) if self.first.has_nothing else Second(self.second.nothing)

    def is_nothing(self, change: object) -> bool:
        sides = self._sides(change)
        return bool(sides) and all(side.is_nothing(own) for _, side, own in sides)

    @property
    def monoid(self) -> Monoid[PairChange[C, D]]:
        return pair_changes(self.first.monoid, self.second.monoid)

    @property
    def empty(self) -> tuple[A, B]:
        return self.first.empty, self.second.empty

    def from_empty(self, value: tuple[A, B]) -> PairChange[C, D]:
        return Both(self.first.from_empty(value[0]), self.second.from_empty(value[1]))

    @property
    def has_empty(self) -> bool:
        return self.first.has_empty and self.second.has_empty

    @property
    def is_stream(self) -> bool:
        return self.first.is_stream and self.second.is_stream

    def compress(self, changes: Iterable[PairChange[C, D]]) -> tuple[PairChange[C, D], ...]:
        parts: tuple[list[C], list[D]] = ([], [])
        for change in changes:
            sides = self._sides(change)
            if not sides:
                raise self.stranger(change)
            for i, _, own in sides:
                parts[i].append(own)
        return _zipped(self.first.compress(parts[0]), self.second.compress(parts[1]))

    def why(self, change: object, value: tuple[A, B]) -> Why:
        if not _is_pair(value):
            return Why("the value is not a tuple of two", "a pair", {"value": value})
        sides = self._sides(change)
        if not sides:
            reason = f"{type_name(change)} does not say which side it changes"
            return Why(reason, self.takes, {"value": value})
        for i, side, own in sides:
            if not side.valid(own, value[i]):
                at = ("first", "second")[i]
                reason, remedy, facts = side.why(own, value[i])
                return Why(f"{at}: {reason}", f"{at}: {remedy}", facts)
        return super().why(change, value)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2


_NONE: Any = object()


def _zipped(firsts: Iterable[C], seconds: Iterable[D]) -> tuple[PairChange[C, D], ...]:
    """Two sequences side by side: both while both last, then the rest of the longer one."""
    return tuple(
        Second(d) if c is _NONE else First(c) if d is _NONE else Both(c, d)
        for c, d in zip_longest(firsts, seconds, fillvalue=_NONE)
    )


def sequence(
    inner: ChangeStructure[A, D],
    *,
    elements: Any = None,
    changes: Callable[[A], Any] | None = None,
) -> ChangeStructure[A, tuple[D, ...]]:
    """The same values, changed by a tuple of changes, one after the other.

    >>> from ebbflow.change import TEXT, Insert, Delete
    >>> sequence(TEXT).patch("cat", (Delete(0, 1), Insert(0, "b")))
    'bat'
    >>> sequence(TEXT).diff("bat", "cat")
    (Delete(at=0, count=1), Insert(at=0, text='b'))

    Each change is applied to what the ones before it left, so n changes of a large text or bag copy
    it n times: `compress` first.
    """
    return _Sequence(inner, built=(sequence, (inner,)), elements=elements, changes=changes)


class _Sequence(ByParts[A, tuple[D, ...]]):
    def __init__(self, inner: ChangeStructure[A, D], **rest: Any) -> None:
        super().__init__(**rest)
        self.inner = inner
        self.noun = inner.noun
        self.takes = f"a tuple of changes, each of them {inner.takes}"

    def valid(self, change: object, value: A) -> bool:
        return isinstance(change, tuple) and self._walk(value, change)[0] == len(change)

    def is_change(self, change: object) -> bool:
        return isinstance(change, tuple) and all(map(self.inner.is_change, change))

    def apply(self, value: A, change: tuple[D, ...]) -> A:
        for each in change:
            value = self.inner.apply(value, each)
        return value

    def patch(self, value: A, change: tuple[D, ...]) -> A:
        """The value after all changes, found in one walk: `valid` would have to apply them too."""
        if isinstance(change, tuple):
            done, reached = self._walk(value, change)
            if done == len(change):
                return reached
        raise self.refusal(change, value)

    @property
    def has_diff(self) -> bool:
        return self.inner.has_edits

    def diff(self, new: A, old: A) -> tuple[D, ...]:
        if not self.has_diff:
            return super().diff(new, old)
        return self.inner.edits(new, old)

    @property
    def nothing(self) -> tuple[D, ...]:
        return ()

    def is_nothing(self, change: object) -> bool:
        return isinstance(change, tuple) and all(map(self.inner.is_nothing, change))

    @property
    def monoid(self) -> Monoid[tuple[D, ...]]:
        return TUPLE

    @property
    def empty(self) -> A:
        return self.inner.empty

    @property
    def has_empty(self) -> bool:
        return self.inner.has_empty

    def compress(self, changes: Iterable[tuple[D, ...]]) -> tuple[tuple[D, ...], ...]:
        kept = list(changes)
        for change in kept:
            if not isinstance(change, tuple):
                raise self.stranger(change)
        merged = self.inner.compress(chain.from_iterable(kept))
        return (merged,) if merged else ()

    def why(self, change: object, value: A) -> Why:
        if not isinstance(change, tuple):
            return Why(
                f"{type_name(change)} is not a tuple of changes", self.takes, {"value": value}
            )
        done, reached = self._walk(value, change)
        reason, remedy, facts = self.inner.why(change[done], reached)
        return Why(f"change {done} of {len(change)}: {reason}", remedy, facts)

    def _walk(self, value: A, changes: tuple[Any, ...]) -> tuple[int, A]:
        """How many of the changes could be applied, and the value they led to."""
        for done, change in enumerate(changes):
            if not self.inner.valid(change, value):
                return done, value
            value = self.inner.apply(value, change)
        return len(changes), value
