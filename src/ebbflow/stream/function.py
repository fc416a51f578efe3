"""Stream functions: what a processor computes, said without a state.

A function F between monoids can be streamed when new input only ever *adds* to the output: there is
a ΔF with

    (1)   F(p · a)      == F(p) · ΔF(p, a)
    (2a)  ΔF(p, zero)   == zero
    (2b)  ΔF(p, a · b)  == ΔF(p, a) · ΔF(p · a, b)

A stream function is the specification, a processor the implementation, and they describe the same
programs: `processor_of(F)` is a processor that computes F, `function_of(σ)` is the function that σ
computes. Often ΔF need not be written: `by_cancelling` and `by_idempotence` derive it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from ebbflow.algebra import Monoid
from ebbflow.algebra.value import function_name
from ebbflow.errors import AlgebraError, place
from ebbflow.stream.processor import Processor

X = TypeVar("X")
Y = TypeVar("Y")


class StreamFunction(Generic[X, Y]):
    """A function with its update: `delta(p, a)` is what `a` adds to the output after `p`.

    >>> from ebbflow.algebra import LIST
    >>> from itertools import accumulate
    >>> totals = StreamFunction(
    ...     lambda xs: list(accumulate(xs)),
    ...     lambda p, a: [sum(p) + total for total in accumulate(a)],
    ...     source=LIST, target=LIST)
    >>> totals([1, 2]) + totals.delta([1, 2], [3, 4]) == totals([1, 2, 3, 4])
    True
    """

    def __init__(
        self,
        f: Callable[[X], Y],
        delta: Callable[[X, X], Y],
        *,
        source: Monoid[X],
        target: Monoid[Y],
        name: str = "",
    ) -> None:
        self.f = f
        self.delta = delta
        self.source = source
        self.target = target
        self.name = name
        self.created = place()

    def __call__(self, whole: X) -> Y:
        return self.f(whole)

    def __mul__(self, other: StreamFunction[Any, Any]) -> StreamFunction[Any, Any]:
        """Both functions side by side on pairs.

        >>> from ebbflow.algebra import ADD
        >>> double = by_cancelling(lambda n: 2 * n, source=ADD, target=ADD)
        >>> (double * double).delta((1, 1), (2, 3))
        (4, 6)
        """
        from ebbflow.algebra import product

        return StreamFunction(
            lambda pair: (self.f(pair[0]), other.f(pair[1])),
            lambda p, a: (self.delta(p[0], a[0]), other.delta(p[1], a[1])),
            source=product(self.source, other.source),
            target=product(self.target, other.target),
            name=f"{self!r} * {other!r}",
        )

    def __repr__(self) -> str:
        return self.name or f"StreamFunction({function_name(self.f)})"


def by_cancelling(
    f: Callable[[X], Y], *, source: Monoid[X], target: Monoid[Y], name: str = ""
) -> StreamFunction[X, Y]:
    """The update is whatever is missing: `F(p)` taken off the front of `F(p · a)`.

    For left-cancellative targets (groups, lists, text): there (1) alone makes a stream function.

    >>> from ebbflow.algebra import LIST
    >>> evens = by_cancelling(lambda xs: xs[::2], source=LIST, target=LIST)
    >>> evens.delta([1, 2, 3], [4, 5])
    [5]
    """
    if not target.is_left_cancellative:
        raise AlgebraError(
            f"by_cancelling: {target!r} is not left-cancellative",
            created=place(),
            remedy="use by_idempotence for sets, max or min, or write delta yourself",
        )
    delta = partial(_missing, f, source, target)
    return StreamFunction(f, delta, source=source, target=target, name=name or function_name(f))


def _missing(f: Callable[[X], Y], source: Monoid[X], target: Monoid[Y], p: X, a: X) -> Y:
    return target.cancel(f(p), f(source.combine(p, a)))


def by_idempotence(
    f: Callable[[X], Y], *, source: Monoid[X], target: Monoid[Y], name: str = ""
) -> StreamFunction[X, Y]:
    """The update is the whole new output again; saying a thing twice does no harm.

    For idempotent targets (sets, max, min): there (1), which says that F is monotone, makes a
    stream function, as long as no two inputs cancel. (Where `a · b == zero` with neither zero, the
    two say something and their product does not; so groups are refused as a source.)

    >>> from ebbflow.algebra import LIST, SET
    >>> letters = by_idempotence(lambda words: frozenset("".join(words)), source=LIST, target=SET)
    >>> sorted(letters.delta(["ab"], ["c"]))
    ['a', 'b', 'c']
    """
    if not target.idempotent:
        raise AlgebraError(
            f"by_idempotence: {target!r} is not idempotent",
            created=place(),
            remedy="use by_cancelling for groups, lists and text, or write delta yourself",
        )
    if source.is_group:
        raise AlgebraError(
            f"by_idempotence: {source!r} can take input back, but {target!r} cannot unsay",
            created=place(),
            remedy="write delta yourself, or use by_cancelling with a target such as ZSETS",
        )
    delta = partial(_repeated, f, source, target)
    return StreamFunction(f, delta, source=source, target=target, name=name or function_name(f))


def _repeated(f: Callable[[X], Y], source: Monoid[X], target: Monoid[Y], p: X, a: X) -> Y:
    return target.zero if source.is_zero(a) else f(source.combine(p, a))


class InputAsState(Processor[X, Y]):
    """A processor for any stream function, which remembers all of its input."""

    def __init__(self, function: StreamFunction[X, Y]) -> None:
        self.function = function
        self.source = function.source
        self.target = function.target
        self.created = function.created

    def start(self) -> tuple[Any, Y]:
        return self.source.zero, self.function(self.source.zero)

    def step(self, state: Any, change: X) -> tuple[Any, Y]:
        return self.source.combine(state, change), self.function.delta(state, change)

    def __repr__(self) -> str:
        return f"processor_of({self.function!r})"


def processor_of(function: StreamFunction[X, Y]) -> Processor[X, Y]:
    """A processor that computes `function`. (Decomposition: one always exists.)

    Its state is all the input so far: a specification to test against, rarely what you want to run.

    >>> from ebbflow.algebra import LIST
    >>> evens = by_cancelling(lambda xs: xs[::2], source=LIST, target=LIST)
    >>> list(processor_of(evens).run([[1, 2, 3], [4, 5]]))
    [[], [1, 3], [5]]
    """
    return InputAsState(function)


def function_of(processor: Processor[X, Y]) -> StreamFunction[X, Y]:
    """The stream function that `processor` computes. (Soundness: it always is one.)

    >>> from ebbflow.stream import prefix_sum
    >>> function_of(prefix_sum()).delta([1, 2], [3])
    [6]
    """
    return StreamFunction(
        processor.__call__,
        partial(_said_after, processor),
        source=processor.source,
        target=processor.target,
        name=f"function_of({processor!r})",
    )


def _said_after(processor: Processor[X, Y], p: X, a: X) -> Y:
    state, _ = processor.start()
    state, _ = processor.step(state, p)
    return processor.step(state, a)[1]
