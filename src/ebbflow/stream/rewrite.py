"""Rewrites: the same processor, written another way. Each is a theorem, and each is tested as one.

The pieces they move around are the two halves of every processor: a homomorphism that says what
each input would do (`hypotheticals`), and an evaluation that does it (`evaluate`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial, reduce
from typing import Any

from ebbflow.algebra import Homomorphism, Monoid, product, state_monoid
from ebbflow.algebra.state import Hypothetical
from ebbflow.errors import CompositionError, place
from ebbflow.stream.combine import Loop, Sequential, loop, sequential
from ebbflow.stream.library import element_function
from ebbflow.stream.processor import Named, Processor, Pure, pure


def commutes(processor: Processor[Any, Any]) -> bool:
    """Whether it does not matter in which order what inputs do is done: where the input itself has
    no order, and where it is declared (`commuting`)."""
    return processor.source.commutative or processor.commuting


class Evaluate(Processor[Hypothetical, Any]):
    """Applies the functions of the state that it reads; see `evaluate`."""

    def __init__(self, inner: Processor[Any, Any], after: Homomorphism[Any, Any] | None) -> None:
        self.inner = inner
        self.after = after
        self.target = inner.target if after is None else after.target
        self.source = state_monoid(self.target, commutative=commutes(inner))

    def start(self) -> tuple[Any, Any]:
        state, output = self.inner.start()
        return state, output if self.after is None else self.after(output)

    def step(self, state: Any, change: Hypothetical) -> tuple[Any, Any]:
        return change(state)

    def __repr__(self) -> str:
        after = "" if self.after is None else f", after={self.after!r}"
        return f"evaluate({self.inner!r}{after})"


def evaluate(
    processor: Processor[Any, Any], *, after: Homomorphism[Any, Any] | None = None
) -> Processor[Hypothetical, Any]:
    """`eval σ`: reads functions of σ's state and applies them, starting where σ starts.

    With `after`, the functions say what `after` makes of σ's output: that is `eval` after `f_*`.
    """
    return Evaluate(processor, after)


def hypotheticals(processor: Processor[Any, Any]) -> Processor[Any, Hypothetical]:
    """`pure f`: turns each input into what it would do to σ's state, without a state of its own."""
    target = state_monoid(processor.target, commutative=commutes(processor))
    name = f"hypotheticals({processor!r})"
    return Named(Homomorphism(processor.at, processor.source, target, name=name))


def decompose(processor: Processor[Any, Any]) -> Processor[Any, Any]:
    """`σ ~ pure f >> eval σ`: what can be done anywhere, then what must be done in order.

    >>> from ebbflow.stream import prefix_sum
    >>> decompose(prefix_sum())
    hypotheticals(prefix_sum()) >> evaluate(prefix_sum())
    >>> decompose(prefix_sum())([1, 2, 3])
    [1, 3, 6]
    """
    return hypotheticals(processor) >> evaluate(processor)


def _with_output(f: Any, hypothetical: Hypothetical, state: Any) -> tuple[Any, Any]:
    state, output = hypothetical(state)
    return state, f(output)


def on_output(
    f: Homomorphism[Any, Any], *, commutative: bool = False
) -> Homomorphism[Hypothetical, Hypothetical]:
    """`f_*` : State[S, A] → State[S, B], a homomorphism if and only if `f` is one.

    >>> from ebbflow.algebra import ADD, LIST
    >>> count = on_output(Homomorphism(len, LIST, ADD))
    >>> count(lambda state: (state + 1, ["a", "b"]))(0)
    (1, 2)
    """
    return Homomorphism(
        partial(partial, _with_output, f),
        state_monoid(f.source, commutative=commutative),
        state_monoid(f.target, commutative=commutative),
        name=f"on_output({f!r})",
    )


class FusedStages(Processor[Any, Any]):
    """`pure f >> σ` in one step; see `fuse`."""

    def __init__(self, f: Homomorphism[Any, Any], inner: Processor[Any, Any], name: str) -> None:
        self.f = f
        self.inner = inner
        self.name = name
        self.source = f.source
        self.target = inner.target
        self._call = f.f
        self._step = inner.step

    def start(self) -> tuple[Any, Any]:
        return self.inner.start()

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        return self._step(state, self._call(change))

    def __repr__(self) -> str:
        return self.name


def fuse(processor: Processor[Any, Any]) -> Processor[Any, Any]:
    """Neighbouring stateless stages become one, and go into the stateful stage after them.

    `pure f >> pure g ~ pure (f >> g)`, and `pure f >> σ ~ σ reading f(input)`. Operators on one row
    at a time become one with all steps in a generated loop, as they do in a program.

    >>> from ebbflow.stream import map_each, prefix_sum
    >>> fuse(map_each(abs) >> map_each(float) >> prefix_sum() >> map_each(int))
    fuse(map_each(abs) >> map_each(float) >> prefix_sum()) >> map_each(int)
    >>> from ebbflow.operator import count, map_rows, select
    >>> fuse(select(str.isalpha) >> map_rows(str.upper) >> count())
    fuse(select(str.isalpha) >> map_rows(str.upper)) >> count()
    """
    return processor.as_fused()


def fused_stages(stages: Iterable[Processor[Any, Any]]) -> Processor[Any, Any]:
    """Stages one after the other, fused."""
    fused: list[Processor[Any, Any]] = []
    waiting: list[Pure[Any, Any]] = []
    for stage in stages:
        if isinstance(stage, Pure):
            waiting.append(stage)
            continue
        fused.append(_fused(waiting, stage))
        waiting = []
    if waiting:
        fused.append(_fused(waiting[:-1], waiting[-1]))
    return sequential(*fused)


def _fused(before: list[Pure[Any, Any]], last: Processor[Any, Any]) -> Processor[Any, Any]:
    if not before:
        return last
    f = reduce(lambda g, stage: g >> stage.f, before[1:], before[0].f)
    name = f"fuse({sequential(*before, last)!r})"
    if isinstance(last, Pure):
        f = f >> last.f
        return Named(Homomorphism(f.f, f.source, f.target, name=name))
    return FusedStages(f, last, name)


def exchange(processor: Processor[Any, Any], g: Homomorphism[Any, Any]) -> Processor[Any, Any]:
    """`eval σ >> pure g ~ pure g_* >> eval' σ`: what comes after a state can be done before it.

    Both sides read hypotheticals of σ's state; `g` is pushed into them.

    >>> from ebbflow.algebra import ADD, LIST
    >>> from ebbflow.stream import prefix_sum
    >>> early = exchange(prefix_sum(), Homomorphism(len, LIST, ADD))
    >>> early(prefix_sum().at([5, 5]))
    2
    """
    if g.source != processor.target:
        raise CompositionError(
            f"exchange: {processor!r} writes {processor.target!r}, {g!r} reads {g.source!r}",
            created=place(),
            remedy="g must read what the processor writes",
        )
    pushed = on_output(g, commutative=commutes(processor))
    return pure(pushed) >> evaluate(processor, after=g)


def tighten(processor: Processor[Any, Any]) -> Processor[Any, Any]:
    """Stateless stages on either side of a loop move into it.

    `map_each f >> loop σ ~ loop (pure (f × id) >> σ)`, and the same on the right. A loop reads one
    element for each round, so the stages that can move are `map_each` of a `Homomorphism`.

    >>> from operator import neg
    >>> from ebbflow.algebra import ADD, product
    >>> from ebbflow.stream import map_each, pure
    >>> swap = pure(lambda pair: pair[::-1], product(ADD, ADD), product(ADD, ADD), name="swap")
    >>> minus = map_each(Homomorphism(neg, ADD, ADD, name="minus"))
    >>> tighten(minus >> loop(swap) >> minus)
    loop(pure(on_first(minus, ADD)) >> pure(swap) >> pure(on_first(minus, ADD)))
    """
    if not isinstance(processor, Sequential):
        return processor
    stages = list(processor.stages)
    at = 0
    while at + 1 < len(stages):
        first, second = stages[at], stages[at + 1]
        left, right = element_function(first), element_function(second)
        if isinstance(left, Homomorphism) and isinstance(second, Loop):
            stages[at : at + 2] = [loop(pure(on_first(left, second.feedback)) >> second.body)]
            at = max(at - 1, 0)
        elif isinstance(right, Homomorphism) and isinstance(first, Loop):
            stages[at : at + 2] = [loop(first.body >> pure(on_first(right, first.feedback)))]
        else:
            at += 1
    return sequential(*stages)


def on_first(f: Homomorphism[Any, Any], second: Monoid[Any]) -> Homomorphism[Any, Any]:
    """`f × id`: `f` on the first of a pair, whose second is of the monoid `second`.

    >>> from ebbflow.algebra import ADD, LIST, STR
    >>> on_first(Homomorphism(len, LIST, ADD), STR)((["a", "b"], "c"))
    (2, 'c')
    """
    return Homomorphism(
        partial(_with_first, f),
        product(f.source, second),
        product(f.target, second),
        name=f"on_first({f!r}, {second!r})",
    )


def _with_first(f: Any, pair: tuple[Any, Any]) -> tuple[Any, Any]:
    return f(pair[0]), pair[1]
