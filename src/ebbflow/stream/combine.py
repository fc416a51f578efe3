"""Processors made of processors: one after the other, side by side, and in a circle.

Each combinator's meaning is that of the plain functions: `⟦a >> b⟧ = ⟦b⟧ ∘ ⟦a⟧`,
`⟦a * b⟧(m, n) = (⟦a⟧(m), ⟦b⟧(n))`. The state of the whole is the states of the parts.
"""

from __future__ import annotations

from typing import Any

from ebbflow.algebra import LIST, Monoid, product
from ebbflow.algebra.value import in_brackets
from ebbflow.errors import CompositionError, place
from ebbflow.stream.processor import Processor


class Sequential(Processor[Any, Any]):
    """`a >> b >> c`: each reads what the one before it writes."""

    def __init__(self, *stages: Processor[Any, Any]) -> None:
        self.stages = stages
        self.source = stages[0].source
        self.target = stages[-1].target
        self._steps = [stage.step for stage in stages]

    def start(self) -> tuple[Any, Any]:
        first, *rest = self.stages
        state, output = first.start()
        states = [state]
        for stage in rest:
            state, said = stage.start()
            state, more = stage.step(state, output)
            states.append(state)
            output = stage.target.combine(said, more)
        return tuple(states), output

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        states = []
        for step, own in zip(self._steps, state, strict=True):
            own, change = step(own, change)
            states.append(own)
        return tuple(states), change

    def as_fused(self) -> Processor[Any, Any]:
        from ebbflow.stream.rewrite import fused_stages

        return fused_stages(self.stages)

    def __repr__(self) -> str:
        return " >> ".join(in_brackets(stage, FanOut) for stage in self.stages)

    def __reduce__(self) -> Any:
        return Sequential, self.stages


def sequential(*processors: Processor[Any, Any]) -> Processor[Any, Any]:
    """Processors one after the other: `a >> b >> c` for `sequential(a, b, c)`, without nesting."""
    stages: list[Processor[Any, Any]] = []
    for each in processors:
        inner = each.stages if isinstance(each, Sequential) else (each,)
        if stages and stages[-1].target != inner[0].source:
            raise _does_not_fit(stages[-1], inner[0])
        stages += inner
    return stages[0] if len(stages) == 1 else Sequential(*stages)


class Parallel(Processor[Any, tuple[Any, ...]]):
    """`a * b`: each reads its own stream; see `parallel`."""

    def __init__(self, *parts: Processor[Any, Any]) -> None:
        self.parts = parts
        self.source = product(*(part.source for part in parts))
        self.target = product(*(part.target for part in parts))

    def start(self) -> tuple[Any, tuple[Any, ...]]:
        states, outputs = zip(*(part.start() for part in self.parts), strict=True)
        return states, outputs

    def step(self, state: Any, change: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        states, outputs = [], []
        for part, own, piece in zip(self.parts, state, change, strict=True):
            own, output = part.step(own, piece)
            states.append(own)
            outputs.append(output)
        return tuple(states), tuple(outputs)

    def __repr__(self) -> str:
        if len(self.parts) != 2:
            return f"parallel({', '.join(map(repr, self.parts))})"
        first, second = self.parts
        return (
            f"{in_brackets(first, Sequential, FanOut)} * "
            f"{in_brackets(second, Sequential, FanOut, Parallel)}"
        )


def parallel(*parts: Processor[Any, Any]) -> Processor[tuple[Any, ...], tuple[Any, ...]]:
    """Side by side on tuples, each on its own position; `parallel(a, b)` is `a * b`.

    >>> from ebbflow.stream import prefix_sum
    >>> parallel(prefix_sum(), prefix_sum())(([1, 1], [5, 5, 5]))
    ([1, 2], [5, 10, 15])
    """
    return Parallel(*parts)


class FanOut(Parallel):
    """`a & b`: both on the same input, outputs as a pair.

    >>> from ebbflow.stream import derivative, prefix_sum
    >>> (prefix_sum() & derivative())([1, 4, 9])
    ([1, 5, 14], [1, 3, 5])
    """

    def __init__(self, first: Processor[Any, Any], second: Processor[Any, Any]) -> None:
        if first.source != second.source:
            raise CompositionError(
                f"{first!r} & {second!r}: the first reads {first.source!r}, "
                f"the second {second.source!r}",
                created=place(),
                remedy="both sides of & read the same stream; for two streams use *",
            )
        super().__init__(first, second)
        self.source = first.source

    def step(self, state: Any, change: Any) -> tuple[Any, tuple[Any, ...]]:
        return super().step(state, (change, change))

    def __repr__(self) -> str:
        first, second = self.parts
        return f"{first!r} & {in_brackets(second, FanOut)}"


class Loop(Processor[list[Any], list[Any]]):
    """A processor whose second output comes back as its second input; see `loop`."""

    source = LIST
    target = LIST

    def __init__(self, body: Processor[Any, Any]) -> None:
        self.body = body
        self.inner, back = _pair(body.source, body, "read")
        self.outer: Monoid[Any]
        self.feedback: Monoid[Any]
        self.outer, self.feedback = _pair(body.target, body, "write")
        if back != self.feedback:
            raise CompositionError(
                f"loop({body!r}): what goes back is {self.feedback!r}, but {back!r} is expected",
                created=place(),
                remedy="the second part of the input and of the output must be the same monoid",
            )

    def start(self) -> tuple[Any, list[Any]]:
        state, (output, back) = self.body.start()
        return (state, back), [output]

    def step(self, state: Any, change: list[Any]) -> tuple[Any, list[Any]]:
        own, back = state
        outputs = []
        for piece in change:
            own, (output, back) = self.body.step(own, (piece, back))
            outputs.append(output)
        return (own, back), outputs

    def settled(self, state: Any) -> bool:
        """Whether nothing is on its way back: a round without input would do nothing."""
        return self.feedback.is_zero(state[1])

    def __repr__(self) -> str:
        return f"loop({self.body!r})"


def loop(body: Processor[Any, Any]) -> Loop:
    """Feed the second output of `body` back as its second input, one round later.

    `body` reads pairs `(input, back)` and writes pairs `(output, back)`. The loop reads a list of
    inputs, one for each round, and writes the list of outputs, led by what there is before any.

    >>> from ebbflow.algebra import ADD, product
    >>> from ebbflow.stream import pure
    >>> two_numbers = product(ADD, ADD)
    >>> fibonacci = loop(pure(lambda pair: (pair[1], pair[0] + pair[1]), two_numbers, two_numbers))
    >>> fibonacci([1, 0, 0, 0])
    [0, 0, 1, 1, 1]
    """
    return Loop(body)


def _does_not_fit(before: Processor[Any, Any], after: Processor[Any, Any]) -> CompositionError:
    writes, reads = repr(before.target), repr(after.source)
    return CompositionError(
        f"{before!r} >> {after!r}: the first writes {writes}, the second reads {reads}",
        created=place(),
        remedy="make the monoid once and use it for both"
        if writes == reads
        else "put a pure(f, source, target) between them to turn one into the other",
    )


def _pair(monoid: Monoid[Any], body: Processor[Any, Any], verb: str) -> tuple[Any, Any]:
    if monoid.built is None or monoid.built[0] is not product or len(monoid.built[1]) != 2:
        raise CompositionError(
            f"loop({body!r}): the body must {verb} pairs, not {monoid!r}",
            created=place(),
            remedy="a body reads product(input, back) and writes product(output, back)",
        )
    first, second = monoid.built[1]
    return first, second
