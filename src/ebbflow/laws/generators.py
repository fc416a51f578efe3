"""The laws of steps on generators: the equations that hold between the generators of a monoid.

A step that obeys them respects every cut, since the monoid is nothing but its generators and these
equations. They are smaller than the law of the cut, and what breaks one says which.
"""

from __future__ import annotations

from typing import Any

from ebbflow.algebra import During, Monoid, Tick, Ticked, product
from ebbflow.laws.law import Law, own
from ebbflow.laws.streams import PAB, processor_laws, said_in_order
from ebbflow.stream.generators import Elementwise, singles


def _halves(source: Monoid[Any], single: Any) -> list[Any]:
    """A generator with its weight, in two parts; in a group the first goes beyond it."""
    if isinstance(source, Ticked):
        (letter,) = single
        if isinstance(letter, Tick):
            return [single]
        return [(During(half),) for half in _halves(source.inner, letter.value)]
    assert source.basis is not None
    ((generator, weight),) = source.basis.parts(single).items()
    first = weight + 1 if source.is_group else weight - 1
    return [source.basis.build({generator: part}) for part in (first, weight - first) if part]


def _in_halves(source: Monoid[Any], piece: Any) -> list[Any]:
    return [half for single in singles(source, piece) for half in _halves(source, single)]


def _both_outputs(f: Any) -> Any:
    return own(product(f.target, f.target))


ANY_ORDER = Law(
    "ANY_ORDER", "the order in which it is given the generators of a piece matters",
    "generators of a one by one, in either order; then b", PAB,
    lambda f, p, a, b: (
        said_in_order(f, [p, *singles(f.source, a)], b),
        said_in_order(f, [p, *singles(f.source, a, backwards=True)], b),
    ),
    "give and keep what does not depend on which of two generators came first",
    _both_outputs,
)  # fmt: skip
AGAIN = Law(
    "AGAIN", "a generator that comes again changes something",
    "generators of a one by one, once and twice; then b", PAB,
    lambda f, p, a, b: (
        said_in_order(f, [p, *singles(f.source, a)], b),
        said_in_order(f, [p, *(one for one in singles(f.source, a) for _ in range(2))], b),
    ),
    "say nothing for an element that was there before, and leave the state as it is",
    _both_outputs,
)  # fmt: skip
WEIGHTS_ADD = Law(
    "WEIGHTS_ADD", "a weight that comes in two parts does something else",
    "each row of a with its weight, at once and in two parts; then b", PAB,
    lambda f, p, a, b: (
        said_in_order(f, [p, *singles(f.source, a)], b),
        said_in_order(f, [p, *_in_halves(f.source, a)], b),
    ),
    "do for a weight what is done for its parts, one after the other; for rows that go, the "
    "opposite of what is done when they come",
    _both_outputs,
)  # fmt: skip
ONE_TICK = Law(
    "ONE_TICK", "a tick right after a tick does something",
    "a tick, once and twice; then b", PAB,
    lambda f, p, a, b: (
        said_in_order(f, [p, a, f.source.tick], b),
        said_in_order(f, [p, a, f.source.tick, f.source.tick], b),
    ),
    "remember whether anything has come since the last tick: two ticks say what one says",
    _both_outputs,
)  # fmt: skip


def elementwise_laws(processor: Elementwise[Any]) -> list[Law]:
    """The laws of a processor that is given by a step on generators."""
    return generator_laws(processor.source) + processor_laws(processor)


def generator_laws(source: Monoid[Any]) -> list[Law]:
    """What a step on generators owes: the equations between the generators of a monoid.

    >>> from ebbflow.algebra import LIST, SET, ticked
    >>> [law.name for law in generator_laws(ticked(SET))], generator_laws(LIST)
    (['ANY_ORDER', 'AGAIN', 'ONE_TICK'], [])
    """
    if isinstance(source, Ticked):
        return [*generator_laws(source.inner), ONE_TICK]
    if source.basis is None:
        return []
    return [ANY_ORDER, AGAIN if source.idempotent else WEIGHTS_ADD]
