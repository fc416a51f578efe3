"""Monoids made of monoids: tuples, dicts and functions.

Each constructor keeps the structure its parts have in common: a product of groups is a group, a
dict of commutative monoids is commutative. What a composed monoid claims is therefore never more
than its parts claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ebbflow.algebra.monoid import Basis, Monoid


def product(*factors: Monoid[Any]) -> Monoid[tuple[Any, ...]]:
    """Tuples, combined position by position: several streams side by side. (The direct product.)

    >>> from ebbflow.algebra import ADD, LIST
    >>> product(ADD, LIST).combine((1, ["a"]), (2, ["b"]))
    (3, ['a', 'b'])
    """
    combines = [factor.combine for factor in factors]
    equals = [factor.equal for factor in factors]
    negates = [factor.negate for factor in factors if factor.negate is not None]
    bases = [factor.basis for factor in factors if factor.basis is not None]

    if len(factors) == 2:
        first, second = combines

        def combine(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
            return first(a[0], b[0]), second(a[1], b[1])
    else:

        def combine(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(f(x, y) for f, x, y in zip(combines, a, b, strict=True))

    def negate(a: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(f(x) for f, x in zip(negates, a, strict=True))

    def cancel(p: tuple[Any, ...], w: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(f.cancel(x, y) for f, x, y in zip(factors, p, w, strict=True))

    def equal(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
        return len(a) == len(b) and all(f(x, y) for f, x, y in zip(equals, a, b, strict=True))

    def parts(a: tuple[Any, ...]) -> Mapping[Any, int]:
        return {
            (i, generator): count
            for i, (basis, x) in enumerate(zip(bases, a, strict=True))
            for generator, count in basis.parts(x).items()
        }

    def build(counts: Mapping[Any, int]) -> tuple[Any, ...]:
        split: list[dict[Any, int]] = [{} for _ in bases]
        for (i, generator), count in counts.items():
            split[i][generator] = count
        return tuple(basis.build(own) for basis, own in zip(bases, split, strict=True))

    uniform = len({(f.idempotent, f.is_group) for f in factors}) <= 1
    return Monoid(
        tuple(f.zero for f in factors),
        combine,
        commutative=all(f.commutative for f in factors),
        idempotent=all(f.idempotent for f in factors),
        negate=negate if len(negates) == len(factors) else None,
        cancel=cancel if all(f.is_left_cancellative for f in factors) else None,
        basis=Basis(parts, build) if len(bases) == len(factors) and uniform else None,
        equal=equal,
        built=(product, factors),
    )


def dict_of(values: Monoid[Any]) -> Monoid[dict[Any, Any]]:
    """Dicts whose values are combined key by key; a key whose value is zero is absent.

    >>> from ebbflow.algebra import ADD
    >>> dict_of(ADD).combine({"Rome": 10, "Oslo": 5}, {"Rome": -10, "Lima": 1})
    {'Oslo': 5, 'Lima': 1}
    """
    combine_values, is_zero = values.combine, values.is_zero
    negate_value = values.negate

    def combine(a: dict[Any, Any], b: dict[Any, Any]) -> dict[Any, Any]:
        total = dict(a)
        for key, value in b.items():
            if key in total:
                value = combine_values(total[key], value)
                if is_zero(value):
                    del total[key]
                    continue
            elif is_zero(value):
                continue
            total[key] = value
        return total

    def negate(a: dict[Any, Any]) -> dict[Any, Any]:
        assert negate_value is not None
        return {key: negate_value(value) for key, value in a.items()}

    def cancel(p: dict[Any, Any], w: dict[Any, Any]) -> dict[Any, Any]:
        zero = values.zero
        rest = {key: values.cancel(p.get(key, zero), w.get(key, zero)) for key in {**w, **p}}
        return {key: value for key, value in rest.items() if not is_zero(value)}

    def equal(a: dict[Any, Any], b: dict[Any, Any]) -> bool:
        return a.keys() == b.keys() and all(values.equal(value, b[key]) for key, value in a.items())

    return Monoid(
        {},
        combine,
        commutative=values.commutative,
        idempotent=values.idempotent,
        negate=negate if negate_value is not None else None,
        cancel=cancel if values.is_left_cancellative else None,
        equal=equal,
        built=(dict_of, (values,)),
    )


def functions(values: Monoid[Any], at: Iterable[Any]) -> Monoid[Callable[[Any], Any]]:
    """Functions into a monoid, combined point by point.

    Two functions count as equal when they agree `at` the given points: nobody can compare them
    everywhere.

    >>> from ebbflow.algebra import ADD
    >>> f = functions(ADD, at=range(3)).combine(lambda x: x, lambda x: 10)
    >>> f(1)
    11
    """
    points = tuple(at)
    negate_value = values.negate

    def combine(f: Callable[[Any], Any], g: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: values.combine(f(x), g(x))

    def negate(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        assert negate_value is not None
        return lambda x: negate_value(f(x))

    def cancel(f: Callable[[Any], Any], g: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: values.cancel(f(x), g(x))

    return Monoid(
        lambda x: values.zero,
        combine,
        commutative=values.commutative,
        idempotent=values.idempotent,
        negate=negate if negate_value is not None else None,
        cancel=cancel if values.is_left_cancellative else None,
        equal=lambda f, g: all(values.equal(f(x), g(x)) for x in points),
        built=(functions, (values, points)),
    )
