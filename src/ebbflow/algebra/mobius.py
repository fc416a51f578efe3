"""Streams over versions, their differences, and Möbius inversion between the two.

A *stream* gives a group element for every version of an order. Its *difference* at a version is
what the versions below do not say yet; adding the differences up gives the stream back:

    delta(s)[t] = Σ μ(r, t) · s[r]   over r <= t          delta(total(d)) == d
    total(d)[t] = Σ d[r]             over r <= t          total(delta(s)) == s

Over the naturals `delta` subtracts the previous value and `total` is the running sum. Over
(epoch, round) pairs the same two lines say how a loop and its changing input share their work.

A *space* is a commutative group with such a pair of linear inverses: plain data has the identity,
streams and tuples build theirs from their parts. What a function does to differences is in
`ebbflow.algebra.differential`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ebbflow.algebra.compose import product
from ebbflow.algebra.monoid import Monoid
from ebbflow.algebra.order import Order
from ebbflow.algebra.value import function_name, same
from ebbflow.errors import AlgebraError

T = TypeVar("T")
G = TypeVar("G")

Term = tuple[int, "Stream[Any, Any]", Any]
Terms = Callable[[Any], Sequence[Term]]
Function = Callable[..., Any]


class Stream(Generic[T, G]):
    """An element of `group` for every version of `order`: `at(t)`, asked at most once per version.

    >>> from ebbflow.algebra import ADD, NATURALS
    >>> squares = Stream(NATURALS, ADD, lambda n: n * n)
    >>> squares[5], (squares + squares)[5]
    (25, 50)

    `support`, where it is known, holds the versions outside which the stream is zero.
    """

    def __init__(
        self, order: Order[T], group: Monoid[G], at: Callable[[T], G], *,
        support: Iterable[T] | None = None,
    ) -> None:  # fmt: skip
        self.order = order
        self.group = _commutative(group)
        self.support = None if support is None else tuple(dict.fromkeys(support))
        self._at = at
        self._terms: Terms | None = None
        self._make: Callable[..., Any] | None = None
        self._known: dict[T, G] = {}

    @classmethod
    def of(cls, values: Mapping[T, G], order: Order[T], group: Monoid[G]) -> Stream[T, G]:
        """The stream with these values, and zero everywhere else.

        >>> from ebbflow.algebra import ADD, NATURALS
        >>> Stream.of({2: 10}, NATURALS, ADD)
        Stream.of({2: 10}, NATURALS, ADD)
        """
        for t in values:
            order.require(t)
        fixed = dict(values)
        return cls(order, group, lambda t: fixed.get(t, group.zero), support=fixed)

    def __getitem__(self, t: T) -> G:
        if t not in self._known:
            self.order.require(t)
            _evaluate(self, t)
        return self._known[t]

    __call__ = __getitem__

    def __add__(self, other: Stream[T, G]) -> Stream[T, G]:
        terms: Terms = lambda t: ((1, self, t), (1, other, t))
        return derived(common_order(self, other), self.group, terms, support=_support(self, other))

    def __neg__(self) -> Stream[T, G]:
        return derived(self.order, self.group, lambda t: ((-1, self, t),), support=self.support)

    def __sub__(self, other: Stream[T, G]) -> Stream[T, G]:
        return self + -other

    def __repr__(self) -> str:
        if self.support is None:
            return f"Stream({self.order!r}, {self.group!r}, {function_name(self._at)})"
        values = {t: self[t] for t in self.support}
        return f"Stream.of({values!r}, {self.order!r}, {self.group!r})"


def derived(
    order: Order[Any], group: Monoid[Any], terms: Terms, *,
    make: Callable[..., Any] | None = None, support: Iterable[Any] | None = None,
) -> Stream[Any, Any]:  # fmt: skip
    """At `t`, the sum of `count · stream[version]` over `terms(t)`, or `make` of those elements."""
    new: Stream[Any, Any] = Stream(order, group, make or terms, support=support)
    new._terms, new._make = terms, make
    return new


def _evaluate(stream: Stream[Any, Any], version: Any) -> None:
    """Find `stream[version]` and all it needs, with a list in place of Python's own stack."""
    pending = [(stream, version)]
    while pending:
        at, t = pending[-1]
        if t in at._known:
            pending.pop()
        elif at._terms is None:
            at._known[t] = at._at(t)
        else:
            terms = at._terms(t)
            missing = [(s, v) for _, s, v in terms if v not in s._known]
            if missing:
                pending += missing
            else:
                at._known[t] = _put_together(at, terms)


def _put_together(stream: Stream[Any, Any], terms: Sequence[Term]) -> Any:
    if stream._make is not None:
        return stream._make(*(s._known[t] for _, s, t in terms))
    parts = (_times(stream.group, count, s._known[t]) for count, s, t in terms)
    whole = next(parts, stream.group.zero)
    for part in parts:
        whole = stream.group.combine(whole, part)
    return whole


def _times(group: Monoid[G], count: int, element: G) -> G:
    if count == -1 and group.negate is not None:
        return group.negate(element)
    return element if count == 1 else group.times(count, element)


def delta(stream: Stream[T, G]) -> Stream[T, G]:
    """What is new at each version: `Σ μ(r, t) · stream[r]` over r <= t. (δ, the Möbius transform.)

    >>> from ebbflow.algebra import ADD, NATURALS
    >>> [delta(Stream(NATURALS, ADD, lambda n: n * n))[n] for n in range(5)]
    [0, 1, 3, 5, 7]
    """
    row = stream.order.row
    terms: Terms = lambda t: [(mu, stream, r) for r, mu in reversed(row(t))]
    return derived(stream.order, stream.group, terms)


def total(stream: Stream[T, G]) -> Stream[T, G]:
    """What is there at each version: `Σ stream[r]` over r <= t. (S, the inverse of δ.)

    Where rows are short a total is found from those just below it, `stream[t] - Σ μ(r, t) ·
    total[r]` over r < t. Where the support is known, no other version is looked at.

    >>> from ebbflow.algebra import ADD, NATURALS
    >>> total(Stream(NATURALS, ADD, lambda n: n))[100_000]
    5000050000
    """
    order = stream.order

    def terms(t: T) -> Sequence[Term]:
        if order.sparse:
            earlier = order.row(t)[:-1]
            if stream.support is None or all(r in found._known for r, _ in earlier):
                return [(1, stream, t), *((-mu, found, r) for r, mu in earlier)]
        return [(1, stream, r) for r in under(stream, t)]

    found = derived(order, stream.group, terms)
    return found


# ---- spaces: abelian groups with linear inverses ----


class Space(NamedTuple):
    """A commutative `group` with linear functions `delta` and `total` that undo each other.

    >>> from ebbflow.algebra import ADD, NATURALS
    >>> streams(NATURALS, ADD).group
    stream_group(NATURALS, ADD)
    """

    group: Monoid[Any]
    delta: Callable[[Any], Any]
    total: Callable[[Any], Any]


def plain(group: Monoid[Any]) -> Space:
    """Data without versions: `delta` and `total` change nothing. A bare group stands for this.

    >>> from ebbflow.algebra import ADD
    >>> plain(ADD).delta(7)
    7
    """
    return Space(_commutative(group), same, same)


def streams(order: Order[T], inner: Space | Monoid[Any], *, at: Iterable[T] = ()) -> Space:
    """Streams of elements of a group, or of a space: then differences are taken at every level.

    Its delta is `Σ μ(r, t) · inner.delta(s[r])`, so streams over T of streams over U behave as
    streams over T × U. What `at` is for, see `stream_group`.

    >>> from ebbflow.algebra import ADD, NATURALS
    >>> row = streams(NATURALS, ADD)
    >>> ones = Stream(NATURALS, row.group, lambda epoch: Stream(NATURALS, ADD, lambda round: 1))
    >>> streams(NATURALS, row).total(ones)[3][4]
    20
    """
    own, group = as_space(inner), stream_group(order, as_space(inner).group, tuple(at))
    if own.delta is same and own.total is same:
        return Space(group, lambda s: delta(over(order, s)), lambda s: total(over(order, s)))
    return Space(
        group,
        lambda s: lift(own.delta)(delta(over(order, s))),
        lambda s: lift(own.total)(total(over(order, s))),
    )


def stream_group(order: Order[T], group: Monoid[G], at: tuple[T, ...] = ()) -> Monoid[Stream[T, G]]:
    """Streams, added version by version.

    Two count as equal when they agree `at` these versions; if none are given, on their supports.

    >>> from ebbflow.algebra import ADD, NATURALS, ingress
    >>> stream_group(NATURALS, ADD).is_zero(ingress(3, ADD) - ingress(3, ADD))
    True
    """

    def equal(a: Stream[T, G], b: Stream[T, G]) -> bool:
        versions = at or _support(a, b)
        if versions is None:
            raise AlgebraError(
                "two streams that may differ at any version cannot be compared",
                remedy="say where to look: stream_group(order, group, versions)",
            )
        return all(group.equal(a[t], b[t]) for t in versions)

    return Monoid(
        Stream.of({}, order, group), operator.add, commutative=True, negate=operator.neg,
        equal=equal, built=(stream_group, (order, group, at) if at else (order, group)),
    )  # fmt: skip


def pairs(*spaces: Space | Monoid[Any]) -> Space:
    """Tuples, each position with the inverses of its own space.

    >>> from ebbflow.algebra import ADD, NATURALS, ingress
    >>> running, number = pairs(streams(NATURALS, ADD), ADD).total((ingress(2, ADD), 7))
    >>> running[9], number
    (2, 7)
    """
    parts = [as_space(space) for space in spaces]
    return Space(
        product(*(part.group for part in parts)),
        lambda xs: tuple(part.delta(x) for part, x in zip(parts, xs, strict=True)),
        lambda xs: tuple(part.total(x) for part, x in zip(parts, xs, strict=True)),
    )


def lift(f: Function, group: Monoid[Any] | None = None) -> Callable[..., Stream[Any, Any]]:
    """`f` version by version, on streams: `lift(f)(c, d)[t] == f(c[t], d[t])`. (fᵀ.)

    `group` is where the results of `f` live, if not where its first argument does.

    >>> from ebbflow.algebra import ADD, ingress
    >>> lift(max)(ingress(3, ADD), ingress(8, ADD))[0]
    8
    """

    def lifted(*of: Stream[Any, Any]) -> Stream[Any, Any]:
        terms: Terms = lambda t: [(1, stream, t) for stream in of]
        return derived(common_order(*of), group or of[0].group, terms, make=f)

    return lifted


# ---- what the above share ----


def as_space(of: Space | Monoid[Any]) -> Space:
    return of if isinstance(of, Space) else plain(of)


def _commutative(group: Monoid[G]) -> Monoid[G]:
    if not (isinstance(group, Monoid) and group.is_group and group.commutative):
        raise AlgebraError(
            f"{group!r}: differences need a commutative group",
            remedy="use ADD, ZSETS, dict_of(ADD), a product of these, or a monoid with negate=",
        )
    return group


def common_order(*of: Stream[Any, Any]) -> Order[Any]:
    return over(of[0].order, *of).order


def over(order: Order[Any], *of: Stream[Any, Any]) -> Stream[Any, Any]:
    for stream in of:
        if stream.order != order:
            raise AlgebraError(f"a stream over {stream.order!r} where one over {order!r} is needed")
    return of[0]


def _support(*of: Stream[T, Any]) -> list[T] | None:
    known = [stream.support for stream in of if stream.support is not None]
    return [t for support in known for t in support] if len(known) == len(of) else None


def under(stream: Stream[T, Any], t: T) -> Iterable[T]:
    order, support = stream.order, stream.support
    return order.below(t) if support is None else (r for r in support if order.leq(r, t))
