"""Monoids: a way to put two things together, and a thing that changes nothing.

A *monoid* is a set of elements with an associative `combine` and a neutral `zero`. It is all that a
stream needs: two pieces of a stream can be put together, and it does not matter which neighbours
are put together first. A monoid that has `negate` is a *group*: what was put in can be taken out
again.

A monoid here is a small value over ordinary Python data. What it claims about itself
(`commutative`, `idempotent`, `cancel`, `negate`) is declared, and `ebbflow.laws.check` holds it to
its word.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from ebbflow.algebra.value import Built, Recipe, function_name, same
from ebbflow.errors import AlgebraError, CompositionError, Text, place

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class Basis(NamedTuple):
    """How an element of a *freely generated* commutative monoid is a sum of generators.

    `parts(x)` is a mapping from generator to how often it occurs, and `build` undoes it. Sets count
    each generator once; Z-sets count with sign. A tensor product needs this to multiply two
    elements out.
    """

    parts: Callable[[Any], Mapping[Any, int]]
    build: Callable[[Mapping[Any, int]], Any]


class Monoid(Built, Generic[T]):
    """An associative `combine` with a neutral `zero`.

    >>> longest = Monoid("", lambda a, b: b if len(b) > len(a) else a, name="longest")
    >>> longest.fold(["to", "be", "known"])
    'known'

    Keyword arguments declare more structure; each is a promise that `check` tests:

    - `commutative`: `a · b == b · a`; `idempotent`: `a · a == a`;
    - `negate`: a group, `negate(a) · a == zero`;
    - `cancel`: left-cancellative, `cancel(p, p · a) == a`;
    - `basis`: freely generated, see `Basis`;
    - `equal`: when two elements count as the same (default `==`);
    - `elements`: what `check` draws from: values, a Hypothesis strategy, or a function returning
      either.
    """

    def __init__(
        self,
        zero: T,
        combine: Callable[[T, T], T],
        *,
        name: str = "",
        commutative: bool = False,
        idempotent: bool = False,
        negate: Callable[[T], T] | None = None,
        cancel: Callable[[T, T], T] | None = None,
        basis: Basis | None = None,
        equal: Callable[[T, T], bool] = operator.eq,
        elements: Any = None,
        built: Recipe | None = None,
        home: str = "",
    ) -> None:
        self._zero = zero
        self._fresh = _copier(zero)
        self.combine = combine
        self.name = name
        self.commutative = commutative
        self.idempotent = idempotent
        self.negate = negate
        self._cancel = cancel
        self.basis = basis
        self.equal = equal
        self.elements = elements
        self.built = built
        self.home = home
        self.created: Text | None = None if home else place()

    @property
    def zero(self) -> T:
        """The neutral element, fresh each time where it could be changed by accident."""
        return self._zero if self._fresh is None else self._fresh(self._zero)

    # ---- everything below is written with zero, combine and what is declared ----

    @property
    def is_group(self) -> bool:
        return self.negate is not None

    @property
    def is_left_cancellative(self) -> bool:
        return self._cancel is not None or self.is_group

    def is_zero(self, element: T) -> bool:
        return self.equal(element, self._zero)

    def fold(self, elements: Iterable[T]) -> T:
        """All elements combined, in order.

        Neighbours are combined half by half, as in a merge sort, so that many small lists make a
        long one without copying its beginning each time.

        >>> LIST.fold([[1], [2, 3], []])
        [1, 2, 3]
        """
        combine = self.combine
        halves: list[T] = [self.zero]
        for number, element in enumerate(elements, 1):
            while not number & 1:
                element = combine(halves.pop(), element)
                number >>= 1
            halves.append(element)
        total = halves.pop()
        while halves:
            total = combine(halves.pop(), total)
        return total

    def minus(self, a: T, b: T) -> T:
        """`a · b⁻¹`, for groups.

        >>> ADD.minus(5, 2)
        3
        """
        if self.negate is None:
            raise AlgebraError(
                f"{self!r} is not a group: it cannot take an element away",
                created=self.created,
                remedy="give the monoid negate=, or use one that has it (ADD, ZSETS, dict_of(ADD))",
            )
        return self.combine(a, self.negate(b))

    def cancel(self, prefix: T, whole: T) -> T:
        """The one `x` with `prefix · x == whole`, for left-cancellative monoids.

        >>> LIST.cancel([1, 2], [1, 2, 3])
        [3]
        """
        if self._cancel is not None:
            return self._cancel(prefix, whole)
        if self.negate is not None:
            return self.combine(self.negate(prefix), whole)
        raise AlgebraError(
            f"{self!r} is not left-cancellative: what was put in front cannot be taken off again",
            created=self.created,
            remedy="give the monoid cancel=, or use one that has it (LIST, STR, ADD, any group)",
        )

    def times(self, count: int, element: T) -> T:
        """`element` combined with itself `count` times; negative counts need a group.

        >>> ADD.times(-3, 5), STR.times(2, "ab")
        (-15, 'abab')
        """
        if count < 0:
            element, count = self.minus(self.zero, element), -count
        if count == 0:
            return self.zero
        while not count & 1:
            element, count = self.combine(element, element), count >> 1
        total = element
        while count := count >> 1:
            element = self.combine(element, element)
            if count & 1:
                total = self.combine(total, element)
        return total

    def _described(self) -> str:
        return f"Monoid({self._zero!r}, {function_name(self.combine)})"

    def _essence(self) -> Any:
        declared = self.commutative, self.idempotent, self.negate, self.equal
        return self.name, self.combine, self._zero, declared


class Homomorphism(Generic[A, B]):
    """A function between monoids that respects both: `f(a · b) == f(a) · f(b)` and `f(zero) ==
    zero`.

    So it can be applied to pieces of a stream, in any cut and on any machine. Not checked when
    built: `ebbflow.laws.check(h)` does that.

    >>> size = Homomorphism(len, LIST, ADD)
    >>> size([1, 2]) + size([3]) == size([1, 2, 3])
    True
    >>> (size >> Homomorphism(abs, ADD, ADD))([1, 2])
    2
    """

    def __init__(
        self, f: Callable[[A], B], source: Monoid[A], target: Monoid[B], *, name: str = ""
    ) -> None:
        self.f = f
        self.source = source
        self.target = target
        self.name = name
        self.created = place()

    def __call__(self, element: A) -> B:
        return self.f(element)

    def __rshift__(self, after: Homomorphism[B, C]) -> Homomorphism[A, C]:
        if not isinstance(after, Homomorphism):
            return NotImplemented
        if self.target != after.source:
            raise CompositionError(
                f"{self!r} >> {after!r}: the first gives {self.target!r}, "
                f"the second takes {after.source!r}",
                created=place(),
                remedy="compose homomorphisms whose monoids meet",
            )
        return Homomorphism(
            Composed(self.f, after.f), self.source, after.target, name=f"{self!r} >> {after!r}"
        )

    def __repr__(self) -> str:
        return self.name or (
            f"Homomorphism({function_name(self.f)}, {self.source!r}, {self.target!r})"
        )


class Composed:
    """Functions one after the other, as a flat value that can be pickled."""

    def __init__(self, *functions: Callable[[Any], Any]) -> None:
        nested = [f.functions if isinstance(f, Composed) else (f,) for f in functions]
        self.functions: tuple[Callable[[Any], Any], ...] = tuple(chain.from_iterable(nested))

    def __call__(self, x: Any) -> Any:
        for f in self.functions:
            x = f(x)
        return x


def _copier(zero: Any) -> Callable[[Any], Any] | None:
    """How to make a fresh zero where the one there is could be changed by accident."""
    if type(zero) in (list, dict, set, bytearray):
        return copy.copy
    try:
        hash(zero)
    except TypeError:
        return copy.deepcopy
    return None


# ---- the monoids of everyday Python data ----


def _suffix(prefix: Any, whole: Any) -> Any:
    size = len(prefix)
    if whole[:size] != prefix:
        raise AlgebraError(
            "the second does not begin with the first",
            first=prefix,
            second=whole,
            remedy="cancel(p, w) takes p off the front of w, which must be p · something",
        )
    return whole[size:]


_here = partial(Monoid, home=__name__)
_choice = partial(_here, commutative=True, idempotent=True)
_joining = partial(_here, combine=operator.add, cancel=_suffix)

ADD: Monoid[Any] = _here(
    0, operator.add, name="ADD", commutative=True, negate=operator.neg,
    basis=Basis(lambda n: {1: n} if n else {}, lambda parts: sum(parts.values())),
)  # fmt: skip
MULTIPLY: Monoid[Any] = _here(1, operator.mul, name="MULTIPLY", commutative=True)
MAX: Monoid[Any] = _choice(float("-inf"), max, name="MAX")
MIN: Monoid[Any] = _choice(float("inf"), min, name="MIN")
OR: Monoid[bool] = _choice(False, lambda a, b: a or b, name="OR")
XOR: Monoid[bool] = _here(False, operator.xor, name="XOR", commutative=True, negate=same)
AND: Monoid[bool] = _choice(True, lambda a, b: a and b, name="AND")
SET: Monoid[frozenset[Any]] = _choice(
    frozenset(), operator.or_, name="SET",
    basis=Basis(lambda elements: dict.fromkeys(elements, 1), frozenset),
)  # fmt: skip
LIST: Monoid[list[Any]] = _joining([], name="LIST")
TUPLE: Monoid[tuple[Any, ...]] = _joining((), name="TUPLE")
STR: Monoid[str] = _joining("", name="STR")
BYTES: Monoid[bytes] = _joining(b"", name="BYTES")
