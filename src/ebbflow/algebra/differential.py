"""Differentials: what a function does to differences, for single functions and for loops.

The *differential* of a function between spaces takes differences to differences:
`differential(f) = delta ∘ f ∘ total`. A program made of functions is made differential part by
part, since `δ(f)(δ(x)) == δ(f(x))`. The rest of this module says what the differential is for a
function applied version by version, for a linear or bilinear one, and for a loop.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ebbflow.algebra.mobius import (
    Function,
    Space,
    Stream,
    Terms,
    as_space,
    common_order,
    delta,
    derived,
    lift,
    over,
    pairs,
    total,
    under,
)
from ebbflow.algebra.monoid import Monoid
from ebbflow.algebra.order import NATURALS, Order
from ebbflow.errors import AlgebraError, value_text

T = TypeVar("T")
G = TypeVar("G")


def differential(
    f: Function, source: Space | Monoid[Any] | list[Any], target: Space | Monoid[Any]
) -> Function:
    """What `f` does to differences: `target.delta(f(source.total(c)))`. (δ(f) = δ ∘ f ∘ S.)

    A function of several arguments has a list of sources; one of a tuple has `pairs`. The law is
    δ(f)(δ(x)) == δ(f(x)): a program is turned into one on differences part by part.

    >>> from ebbflow.algebra import ADD, streams
    >>> ints = streams(NATURALS, ADD)
    >>> differential(feedback, ints, ints)(ingress(5, ADD))[1]
    5
    """
    back, into = pairs(*(source if isinstance(source, list) else [source])), as_space(target)
    return lambda *changes: into.delta(f(*back.total(changes)))


def differential_of_lifted(
    f: Function, source: Space | Monoid[Any] | list[Any], target: Space | Monoid[Any], *,
    linear: bool = False,
) -> Callable[..., Stream[Any, Any]]:  # fmt: skip
    """The differential of `lift(f)`: at t, `Σ μ(r, t) · δ(f)(Σ c[q] over q <= r)` over r <= t.

    A `linear` f needs no sums: at t it is `δ(f)(c[t])`, and on plain data δ(f) is f.

    >>> from ebbflow.algebra import ADD
    >>> [differential_of_lifted(abs, ADD, ADD)(ingress(-3, ADD))[n] for n in range(3)]
    [3, 0, 0]
    """
    lifted = lift(differential(f, source, target), as_space(target).group)
    return lifted if linear else lambda *changes: delta(lifted(*map(total, changes)))


def bilinear(
    f: Function, c: Stream[T, Any], d: Stream[T, Any], group: Monoid[Any] | None = None
) -> Stream[T, Any]:
    """The differential of a lifted bilinear `f`: differences at r and s meet at their join r ∨ s.

    At t it is `Σ f(c[r], d[s])` over r ∨ s == t; equals `differential_of_lifted(f, ...)(c, d)`.
    Any two of them below t must have a join. Where data is not plain, give δ(f) in place of f.

    >>> from ebbflow.algebra import ADD
    >>> bilinear(operator.mul, ingress(3, ADD), feedback(ingress(5, ADD)))[1]
    15
    """
    order, into = common_order(c, d), group or c.group
    finite = c.support is not None and d.support is not None
    meetings = _meetings(order, c.support or (), d.support or ())
    support = meetings if finite and None not in meetings else None

    def at(t: T) -> Any:
        by_join = meetings if finite else _meetings(order, under(c, t), under(d, t))
        for r, s in by_join.get(None, ()):
            if order.leq(r, t) and order.leq(s, t):
                raise AlgebraError(
                    f"the differences at {value_text(r)} and {value_text(s)} are both below "
                    f"{value_text(t)}, but have no join",
                    order=order,
                    remedy="give the order join=, or use differential_of_lifted, which needs none",
                )
        return into.fold(f(c[r], d[s]) for r, s in by_join.get(t, ()))

    return Stream(order, into, at, support=support)


def bilinear_in_sequence(
    f: Function, c: Stream[T, Any], d: Stream[T, Any], group: Monoid[Any] | None = None
) -> Stream[T, Any]:
    """`bilinear` where versions follow one another, as in ℕ: new with all, all with new, less both.

    With C, D the totals: `f(C[t], d[t]) + f(c[t], D[t]) - f(c[t], d[t])`. It holds wherever at most
    one version lies directly below t, and t is refused elsewhere.

    >>> from ebbflow.algebra import ADD
    >>> bilinear_in_sequence(operator.mul, ingress(3, ADD), feedback(ingress(5, ADD)))[1]
    15
    """
    order, into, all_c, all_d = common_order(c, d), group or c.group, total(c), total(d)

    def at(t: T) -> Any:
        if len(order.row(t)) > 2:
            raise AlgebraError(
                f"several versions lie directly below {value_text(t)}",
                order=order,
                remedy="use bilinear",
            )
        new = into.combine(f(all_c[t], d[t]), f(c[t], all_d[t]))
        return into.minus(new, f(c[t], d[t]))

    return Stream(order, into, at)


# ---- loops: rounds are versions ----


def ingress(c: G, group: Monoid[G]) -> Stream[int, G]:
    """Input enters a loop: `c` at round 0, zero at every other. (**in**; δ(in) is c, -c, 0, 0, ...)

    >>> from ebbflow.algebra import ADD
    >>> ingress(5, ADD)
    Stream.of({0: 5}, NATURALS, ADD)
    """
    return Stream.of({0: c}, NATURALS, group)


def feedback(stream: Stream[int, G]) -> Stream[int, G]:
    """What a round gives enters the next: zero, s[0], s[1], ... (**fb**, its own differential.)

    >>> from ebbflow.algebra import ADD
    >>> feedback(ingress(5, ADD))
    Stream.of({1: 5}, NATURALS, ADD)
    """
    support = over(NATURALS, stream).support
    later = None if support is None else [n + 1 for n in support]
    terms: Terms = lambda n: ((1, stream, n - 1),) if n else ()
    return derived(NATURALS, stream.group, terms, support=later)


def egress(k: int) -> Callable[[Stream[int, G]], G]:
    """Leave a loop after `k` rounds: `s[k]`. (**out**; δ(out) is the sum of all s[n] up to k.)

    >>> from ebbflow.algebra import ADD
    >>> egress(0)(ingress(5, ADD))
    5
    """
    NATURALS.require(k)
    return operator.itemgetter(k)


def loop_stream(f: Callable[[G], G], c: Stream[int, G]) -> Stream[int, G]:
    """All rounds of a loop: the one solution of `d == c + feedback(lift(f)(d))`.

    So d[0] = c[0] and d[n + 1] = c[n + 1] + f(d[n]): `c` is what enters in each round. With
    `ingress(x, group)` for c, the rounds are x, f(x), f(f(x)), ...

    >>> from ebbflow.algebra import ADD
    >>> egress(10)(loop_stream(lambda n: 2 * n, ingress(1, ADD)))
    1024
    """
    rounds: list[G] = []
    group = over(NATURALS, c).group

    def at(n: int) -> G:
        for k in range(len(rounds), n + 1):
            rounds.append(group.combine(c[k], f(rounds[-1])) if k else c[0])
        return rounds[n]

    return Stream(NATURALS, group, at)


def loop_differences(f: Callable[[G], G], c: G, space: Space | Monoid[G]) -> Stream[int, G]:
    """The differences of a loop from the difference `c` of its input: `Σ μ(m, n) · δ(f)ᵐ(c)`.

    That is c at round 0, and `δ(f)ⁿ(c) - δ(f)ⁿ⁻¹(c)` at round n. Equals the delta, at every level,
    of `loop_stream(f, ingress(space.total(c), space.group))`.

    >>> from ebbflow.algebra import ADD
    >>> [loop_differences(lambda n: 2 * n, 1, ADD)[n] for n in range(5)]
    [1, 1, 2, 4, 8]
    """
    return delta(loop_stream(differential(f, space, space), ingress(c, as_space(space).group)))


def _meetings(order: Order[T], left: Iterable[T], right: Iterable[T]) -> dict[Any, list[Any]]:
    """Pairs of versions by their join; those that have none under None."""
    by_join: dict[Any, list[Any]] = {}
    for r, s in itertools.product(left, right):
        by_join.setdefault(order.join(r, s), []).append((r, s))
    return by_join
