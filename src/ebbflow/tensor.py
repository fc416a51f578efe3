"""The tensor product: all pairs of two collections, linear on both sides.

`m ⊗ n` holds every element of `m` with every element of `n`. It is what a cross product or a join
emits, and it is not a homomorphism of pairs: what is new on one side meets all there is on the
other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ebbflow.algebra import SET, Monoid
from ebbflow.errors import AlgebraError
from ebbflow.zset import BAGS, ZSETS


@dataclass(frozen=True)
class Tensor:
    """`left ⊗ right`, whose elements are those of `monoid` over pairs of generators."""

    left: Monoid[Any]
    right: Monoid[Any]
    monoid: Monoid[Any]

    def of(self, m: Any, n: Any, matches: Callable[[Any, Any], object] | None = None) -> Any:
        """`m ⊗ n`: every generator of `m` with every one of `n`, multiplicities multiplied.

        With `matches`, only the pairs `a ⊗ b` for which `matches(a, b)` is true.
        """
        assert self.left.basis is not None
        assert self.right.basis is not None
        assert self.monoid.basis is not None
        ours, theirs = self.left.basis.parts(m).items(), self.right.basis.parts(n).items()
        if matches is None:
            pairs = {(a, b): i * j for a, i in ours for b, j in theirs}
        else:
            pairs = {(a, b): i * j for a, i in ours for b, j in theirs if matches(a, b)}
        return self.monoid.basis.build(pairs)

    def __repr__(self) -> str:
        return f"tensor({self.left!r}, {self.right!r})"


def tensor(left: Monoid[Any], right: Monoid[Any]) -> Tensor:
    """All pairs of two commutative, freely generated monoids (those with a `basis`).

    Then the tensor product is free on the pairs of generators, so its elements have one form and
    can be compared: sets of pairs where either side is a set, Z-sets where either has inverses,
    bags else.

    >>> from ebbflow.algebra import ADD, SET
    >>> sorted(tensor(SET, SET).of(frozenset("ab"), frozenset("xy")))
    [('a', 'x'), ('a', 'y'), ('b', 'x'), ('b', 'y')]
    >>> from ebbflow.zset import ZSet
    >>> tensor(ADD, ZSETS).of(3, ZSet({"row": -2}))
    ZSet({(1, 'row'): -6})
    """
    for side in (left, right):
        if not side.commutative:
            raise AlgebraError(
                f"tensor({left!r}, {right!r}): {side!r} is not commutative",
                remedy="pairs of two streams need streams without an order: use SET, ZSETS or BAGS",
            )
        if side.basis is None:
            raise AlgebraError(
                f"tensor({left!r}, {right!r}): {side!r} has no basis, so its elements "
                "cannot be multiplied out",
                remedy="use a freely generated monoid (SET, ZSETS, BAGS, ADD) or give basis=",
            )
    sets, inverses = (left.idempotent or right.idempotent), (left.is_group or right.is_group)
    if sets and inverses:
        raise AlgebraError(
            f"tensor({left!r}, {right!r}) has only one element: where x + x == x and x has an "
            "inverse, x is zero",
            remedy="pair sets with sets, Z-sets with Z-sets; ZSet.of(a_set) is a Z-set",
        )
    return Tensor(left, right, SET if sets else ZSETS if inverses else BAGS)
