"""Operators made of operators: one after the other, side by side, both on one input.

Each combinator computes the plain composition of what its parts compute, and its invariant is that
of its parts. An output may feed several operators: `a >> (b & c)` runs `a` once and hands its
change to both. So `>>`, `*` and `&` build every network without cycles.

A change may pass through a network in less time than it takes to call a function for each of its
knots. So the step of a sequence is generated (see `ebbflow.codegen`). An operator on pairs may have
`on_first(state, dx)` and `on_second(state, dy)`, which do what `step` does with `First(dx)` and
`Second(dy)`: then a side of `a * b` that changes alone is handed on without being wrapped.

Nor should it be kept twice. An operator may have `read(state)`, which gives its whole output; one
behind it may be `leaning(before)`: then its step is also given the state of the one before, and it
keeps less of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

from ebbflow.algebra.value import in_brackets
from ebbflow.chain import DEEPEST, Chain
from ebbflow.change import Both, First, Second, pair, sequence
from ebbflow.codegen import GeneratedLoop
from ebbflow.errors import CompositionError, place
from ebbflow.operator.lift import AnyOperator, EachSide, each, sides_fit
from ebbflow.operator.operator import Operator
from ebbflow.operator.relation import RowChain
from ebbflow.operator.streams import OfProcessor, fits, operator_of
from ebbflow.stream.combine import FanOut, sequential
from ebbflow.stream.processor import Processor

AnyProcessor = Processor[Any, Any]


class Seq(Operator[Any, Any, Any, Any]):
    """`a >> b >> c`: each reads the changes that the one before it writes; see `seq`."""

    def __init__(self, *stages: AnyOperator) -> None:
        self.stages = stages
        self.input = stages[0].input
        self.output = stages[-1].output
        self._leaning = _leaning(stages)

    @cached_property
    def _run(self) -> Callable[[Any, Any], tuple[Any, Any]]:
        return _step_loop(self.stages, self._leaning)

    def f(self, x: Any) -> Any:
        for stage in self.stages:
            x = stage.f(x)
        return x

    def init(self, x: Any) -> Any:
        states = []
        for stage, lean in zip(self.stages, self._leaning, strict=True):
            states.append((lean or stage).init(x))
            if len(states) < len(self.stages):
                x = stage.f(x)
        return tuple(states)

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        return self._run(state, change)

    def checked(self, state: Any, change: Any) -> tuple[Any, Any]:
        states: list[Any] = []
        for stage, lean, own in zip(self.stages, self._leaning, state, strict=True):
            if lean is None:
                own, change = stage.checked(own, change)
            elif stage.input.is_change(change):
                own, change = lean.step(own, change, states[-1])
            else:
                raise stage.input.stranger(change)
            states.append(own)
        return tuple(states), change

    def invariant(self, x: Any, state: Any) -> bool:
        for stage, lean, own in zip(self.stages, self._leaning, state, strict=True):
            if not (lean or stage).invariant(x, own):
                return False
            x = stage.f(x)
        return True

    def accepts(self, state: Any, change: Any) -> bool:
        return self.stages[0].accepts(state[0], change)

    def as_fused(self) -> AnyOperator:
        stages: list[AnyOperator] = []
        for stage in self.stages:
            one = _one_loop(stages[-1], stage) if stages else None
            stages[-1:] = [*stages[-1:], stage] if one is None else [one]
        return stages[0] if len(stages) == 1 else Seq(*stages)

    @property
    def recomputes(self) -> bool:
        return any(stage.recomputes for stage in self.stages)

    def recalled(self, state: Any) -> Any:
        return self.stages[-1].recalled(state[-1])

    def __repr__(self) -> str:
        return " >> ".join(in_brackets(stage, Fork) for stage in self.stages)

    def __reduce__(self) -> Any:
        return Seq, self.stages


def _one_loop(first: AnyOperator, second: AnyOperator) -> RowChain | None:
    """Steps on one row at a time as one operator, whose steps are in one generated loop."""
    if not (isinstance(first, RowChain) and isinstance(second, RowChain)):
        return None
    names = [*(first.parts or [repr(first)]), *(second.parts or [repr(second)])]
    steps = [*first.chain.steps, *second.chain.steps]
    if sum(step.verb == "flat_map" for step in steps) > DEEPEST:
        return None
    return RowChain(Chain(steps), f"fuse({' >> '.join(names)})", names)


def _leaning(stages: tuple[AnyOperator, ...]) -> list[Any]:
    """What stands for each stage that leans on the one before it; None for the others."""
    found = [None]
    for before, stage in pairwise(stages):
        found.append(stage.leaning(before) if hasattr(stage, "leaning") else None)
    return found


_ONE_SIDE = """
    cls = type(change)
    if cls is $First:
        one, two = $pair
        one, change = $first_step(one, change.change)
        $pair = one, two
        $after, change = $on_first($after, change)
    elif cls is $Second:
        one, two = $pair
        two, change = $second_step(two, change.change)
        $pair = one, two
        $after, change = $on_second($after, change)
    else:
        $both
"""


def _step_loop(stages: tuple[AnyOperator, ...], leaning: list[Any]) -> Callable[..., Any]:
    """The step of a sequence, as one function from states and a change to states and a change."""
    loop = GeneratedLoop("step", "state, change")
    names = [f"s{i}" for i in range(len(stages))]
    loop.write(f"{', '.join(names)}, = state")

    def plain(*some: int) -> None:
        for i in some:
            lean = leaning[i]
            step = loop.bind(stages[i].step if lean is None else lean.step)
            before = "" if lean is None else f", s{i - 1}"
            loop.write(f"s{i}, change = {step}(s{i}, change{before})")

    i = 0
    while i < len(stages):
        stage = stages[i]
        after: Any = stages[i + 1] if i + 1 < len(stages) else None
        if not isinstance(stage, Beside) or not hasattr(after, "on_first"):
            plain(i)
            i += 1
            continue
        loop.template(
            _ONE_SIDE, pair=f"s{i}", after=f"s{i + 1}", First=First, Second=Second,
            first_step=stage.first.step, second_step=stage.second.step,
            on_first=after.on_first, on_second=after.on_second,
            both=partial(plain, i, i + 1),
        )  # fmt: skip
        i += 2
    loop.write(f"return ({', '.join(names)},), change")
    return loop.function()


def seq(*operators: AnyProcessor) -> Any:
    """One after the other; `seq(a, b)` is `a >> b`.

    Where one writes sequences of what the next reads, as a whole or on a side of a pair, the next
    is lifted, and where the next reads sequences, the one before it. A processor becomes an
    operator where its pieces are changes of what its neighbour reads or writes. Where that is not
    so, and changes are pieces all the same, the whole is a processor.

    >>> from ebbflow.operator import count, select
    >>> from ebbflow.stream import identity
    >>> from ebbflow.zset import ZSETS, ZSet
    >>> odd = select(lambda n: n % 2) >> identity(ZSETS) >> count()
    >>> odd.f(ZSet.of([1, 2, 3])), odd.open().send(ZSet.of([4, 5]))
    (2, 1)
    """
    if not operators:
        raise CompositionError("seq needs at least one operator", created=place())
    if not all(isinstance(each_one, Operator) for each_one in operators):
        found = _operators(operators)
        if found is None:
            return sequential(*operators)
        operators = tuple(found)
    stages: list[AnyOperator] = []
    for each_one in operators:
        assert isinstance(each_one, Operator)
        for stage in each_one.stages if isinstance(each_one, Seq) else (each_one,):
            if stages:
                stages[-1], stage = _fit(stages[-1], stage)
            stages.append(stage)
    return stages[0] if len(stages) == 1 else Seq(*stages)


def _operators(parts: tuple[AnyProcessor, ...]) -> list[AnyOperator] | None:
    """Parts of a sequence as operators, each of whose ends is that of its neighbour; None where a
    processor cannot be one there."""
    found: list[AnyOperator] = []
    for i, part in enumerate(parts):
        before = found[-1].output if found else None
        after = parts[i + 1] if i + 1 < len(parts) else None
        wanted = after.input if isinstance(after, Operator) else None
        if isinstance(part, Operator):
            found.append(part)
        elif (before is None or fits(before, part.source)) and (
            wanted is None or fits(wanted, part.target)
        ):
            found.append(operator_of(part, input=before, output=wanted))
        else:
            return None
    return found


def _fit(before: AnyOperator, after: AnyOperator) -> tuple[AnyOperator, AnyOperator]:
    if before.output == after.input:
        return before, after
    if isinstance(before, OfProcessor) and fits(after.input, before.processor.target):
        return operator_of(before.processor, input=before.input, output=after.input), after
    if isinstance(after, OfProcessor) and fits(before.output, after.processor.source):
        return before, operator_of(after.processor, input=before.output, output=after.output)
    if before.output == sequence(after.input):
        return before, each(after)
    if sequence(before.output) == after.input:
        return each(before), after
    if sides_fit(before.output, after.input):
        return before, EachSide(after, before.output)
    raise CompositionError(
        f"{before!r} >> {after!r}: the first writes changes of {before.output!r}, "
        f"the second reads changes of {after.input!r}",
        created=place(),
        remedy="put an operator between them that turns one kind of change into the other",
    )


class Beside(Operator[Any, Any, Any, Any]):
    """`a * b`: each on its own side of a pair."""

    def __init__(self, first: AnyOperator, second: AnyOperator) -> None:
        self.first = first
        self.second = second
        self.input = pair(first.input, second.input)
        self.output = pair(first.output, second.output)

    def f(self, x: Any) -> Any:
        return self.first.f(x[0]), self.second.f(x[1])

    def init(self, x: Any) -> Any:
        return self.first.init(x[0]), self.second.init(x[1])

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        return self._run(self.first.step, self.second.step, state, change)

    def checked(self, state: Any, change: Any) -> tuple[Any, Any]:
        return self._run(self.first.checked, self.second.checked, state, change)

    def _run(self, first: Any, second: Any, state: Any, change: Any) -> tuple[Any, Any]:
        one, two = state
        cls = type(change)
        if cls is First:
            one, left = first(one, change.change)
            return (one, two), First(left)
        if cls is Second:
            two, right = second(two, change.change)
            return (one, two), Second(right)
        if cls is Both:
            one, left = first(one, change.first)
            two, right = second(two, change.second)
            return (one, two), Both(left, right)
        raise self.input.stranger(change)

    def invariant(self, x: Any, state: Any) -> bool:
        return self.first.invariant(x[0], state[0]) and self.second.invariant(x[1], state[1])

    def accepts(self, state: Any, change: Any) -> bool:
        match change:
            case First(dx):
                return self.first.accepts(state[0], dx)
            case Second(dy):
                return self.second.accepts(state[1], dy)
            case Both(dx, dy):
                return self.first.accepts(state[0], dx) and self.second.accepts(state[1], dy)
        return False

    @property
    def recomputes(self) -> bool:
        return self.first.recomputes or self.second.recomputes

    def __repr__(self) -> str:
        first, second = self.first, self.second
        return f"{in_brackets(first, Seq, Fork)} * {in_brackets(second, Seq, Fork, Beside)}"


class Fork(Operator[Any, Any, Any, Any]):
    """`a & b`: both on the same input, outputs as a pair."""

    def __init__(self, first: AnyOperator, second: AnyOperator) -> None:
        if first.input != second.input:
            raise CompositionError(
                f"{first!r} & {second!r}: the first reads changes of {first.input!r}, "
                f"the second of {second.input!r}",
                created=place(),
                remedy="both sides of & read the same input; for two inputs use *",
            )
        self.first = first
        self.second = second
        self.input = first.input
        self.output = pair(first.output, second.output)

    def f(self, x: Any) -> Any:
        return self.first.f(x), self.second.f(x)

    def init(self, x: Any) -> Any:
        return self.first.init(x), self.second.init(x)

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        one, left = self.first.step(state[0], change)
        two, right = self.second.step(state[1], change)
        return (one, two), Both(left, right)

    def checked(self, state: Any, change: Any) -> tuple[Any, Any]:
        one, left = self.first.checked(state[0], change)
        two, right = self.second.checked(state[1], change)
        return (one, two), Both(left, right)

    def invariant(self, x: Any, state: Any) -> bool:
        return self.first.invariant(x, state[0]) and self.second.invariant(x, state[1])

    def accepts(self, state: Any, change: Any) -> bool:
        return self.first.accepts(state[0], change) and self.second.accepts(state[1], change)

    @property
    def recomputes(self) -> bool:
        return self.first.recomputes or self.second.recomputes

    def __repr__(self) -> str:
        return f"{self.first!r} & {in_brackets(self.second, Fork)}"


def beside(first: AnyProcessor, second: AnyProcessor) -> AnyOperator:
    """Side by side on pairs: `a * b`. A processor among the two becomes an operator.

    >>> from ebbflow.operator import count
    >>> from ebbflow.stream import prefix_sum
    >>> (count() * prefix_sum()).input
    pair(BAG, group(LIST))
    """
    return Beside(operator_of(first), operator_of(second))


def fork(first: AnyProcessor, second: AnyProcessor) -> Any:
    """Both on the same input: `a & b`. A processor among the two becomes an operator where its
    pieces are changes of what the other one reads, and the whole a processor where only the
    monoids are the same.

    >>> from ebbflow.operator import count
    >>> from ebbflow.stream import identity
    >>> from ebbflow.zset import ZSETS, ZSet
    >>> (count() & identity(ZSETS)).open().send(ZSet.of("a"))
    Both(first=1, second=ZSet({'a': 1}))
    """
    known = first if isinstance(first, Operator) else second
    assert isinstance(known, Operator)
    for part in (first, second):
        if not isinstance(part, Operator) and not fits(known.input, part.source):
            return FanOut(first, second)
    parts = [
        part if isinstance(part, Operator) else operator_of(part, input=known.input)
        for part in (first, second)
    ]
    return Fork(*parts)


def binary(f: AnyOperator, g: AnyOperator, h: AnyOperator) -> AnyOperator:
    """`(x, y) ↦ h(f(x), g(y))`: two inputs, an operator for each, then one that takes both."""
    made: AnyOperator = (f * g) >> h
    return made
