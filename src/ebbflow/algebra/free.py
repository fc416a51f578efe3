"""Words: streams in which time passes, and streams that end.

The *free product* of two monoids is what two streams become when their order relative to each other
matters: words whose letters come from one or the other, neighbours from the same side combined.
With a monoid of ticks on the right it is a stream cut into *strata*; `ticked` is that case.

A tick next to a tick is one tick: they say that time has passed, not how often. A processor that
must count ticks takes a `LIST` of strata instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ebbflow.algebra.monoid import OR, Monoid

Word = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """A letter of a word that comes from the left monoid."""

    value: Any


@dataclass(frozen=True, slots=True)
class Right:
    """A letter of a word that comes from the right monoid."""

    value: Any


@dataclass(frozen=True, slots=True)
class During:
    """What happened between two ticks."""

    value: Any


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passes: the end of a stratum."""

    @property
    def value(self) -> bool:
        return True


def free_product(left: Monoid[Any], right: Monoid[Any]) -> Monoid[Word]:
    """Words over two monoids: tuples of `Left(m)` and `Right(n)`, alternating, none of them zero.

    >>> from ebbflow.algebra import ADD, STR
    >>> words = free_product(ADD, STR)
    >>> words.fold([(Left(1),), (Left(2),), (Right("a"),), (Right(""),), (Right("b"),)])
    (Left(value=3), Right(value='ab'))
    """
    return Monoid(
        (),
        _concatenate({Left: (left, Left), Right: (right, Right)}),
        equal=_letterwise({Left: left, Right: right}),
        built=(free_product, (left, right)),
    )


class Ticked(Monoid[Word]):
    """Streams of `inner` cut into strata by ticks. Made by `ticked`."""

    tick: Word = (Tick(),)

    def __init__(self, inner: Monoid[Any]) -> None:
        super().__init__(
            (),
            _concatenate({During: (inner, During), Tick: (OR, lambda _: Tick())}),
            equal=_letterwise({During: inner, Tick: OR}),
            built=(ticked, (inner,)),
        )
        self.inner = inner

    def of(self, *strata: Any) -> Word:
        """One stratum after another, with a tick between each two."""
        letters: list[Any] = []
        for i, stratum in enumerate(strata):
            if i and letters[-1:] != [*self.tick]:
                letters += self.tick
            if not self.inner.is_zero(stratum):
                letters.append(During(stratum))
        return tuple(letters)

    def strata(self, word: Word) -> list[Any]:
        """The strata of a word; `of(*strata(word)) == word`."""
        found = [self.inner.zero]
        for letter in word:
            if isinstance(letter, Tick):
                found.append(self.inner.zero)
            else:
                found[-1] = letter.value
        return found


def ticked(inner: Monoid[Any]) -> Ticked:
    """Streams of `inner` in which time passes. (The free product with the booleans under `or`.)

    >>> from ebbflow.algebra import STR
    >>> time = ticked(STR)
    >>> time.combine(time.of("ab", "c"), time.of("d", "e"))
    (During(value='ab'), Tick(), During(value='cd'), Tick(), During(value='e'))
    >>> time.combine(time.tick, time.tick) == time.tick
    True
    """
    return Ticked(inner)


def terminated(inner: Monoid[Any]) -> Monoid[tuple[Any, bool]]:
    """Streams that may have ended: `(element, ended)`. After the end nothing more counts.

    `(zero, True)` is the terminator, a left zero: `end · x == end`.

    >>> from ebbflow.algebra import STR
    >>> terminated(STR).fold([("a", False), ("b", True), ("c", False)])
    ('ab', True)
    """

    def combine(a: tuple[Any, bool], b: tuple[Any, bool]) -> tuple[Any, bool]:
        return a if a[1] else (inner.combine(a[0], b[0]), b[1])

    def equal(a: tuple[Any, bool], b: tuple[Any, bool]) -> bool:
        return a[1] == b[1] and inner.equal(a[0], b[0])

    return Monoid((inner.zero, False), combine, equal=equal, built=(terminated, (inner,)))


def _concatenate(
    sides: dict[type, tuple[Monoid[Any], Callable[[Any], Any]]],
) -> Callable[[Word, Word], Word]:
    def concatenate(a: Word, b: Word) -> Word:
        end, begin = len(a), 0
        while end and begin < len(b) and type(a[end - 1]) is type(b[begin]):
            monoid, letter = sides[type(b[begin])]
            joined = monoid.combine(a[end - 1].value, b[begin].value)
            end, begin = end - 1, begin + 1
            if not monoid.is_zero(joined):
                return (*a[:end], letter(joined), *b[begin:])
        return a[:end] + b[begin:]

    return concatenate


def _letterwise(sides: dict[type, Monoid[Any]]) -> Callable[[Word, Word], bool]:
    def equal(a: Word, b: Word) -> bool:
        return len(a) == len(b) and all(
            type(x) is type(y) and sides[type(x)].equal(x.value, y.value)
            for x, y in zip(a, b, strict=True)
        )

    return equal
