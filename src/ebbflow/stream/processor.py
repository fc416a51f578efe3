"""Stream processors: state machines that do not care how their input was cut.

A processor reads a stream and writes a stream. A stream is an element of a monoid that arrives in
pieces, which are elements too: lists of events, sets of facts, Z-sets of row changes. `start` gives
the first state and what is said before any input; `step` takes the state and the next piece, and
gives the new state and what is said next.

The one law: `step` is a homomorphism. The empty piece does nothing, and a piece cut in two gives
the same output and an equivalent state. So pieces may be batched, split and resumed at will, and
the same program runs on one event at a time and on a million. (In symbols: (S, f, s_ε, o_ε), f : M
→ State[S, N].)

`step` may reuse the state object it was given; whoever needs the old one copies it first.

A differential operator (`ebbflow.operator.Operator`) is a processor too: the pieces are changes,
and it starts from the empty input. So the two can be mixed with the same signs.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ebbflow.algebra import LIST, Homomorphism, Monoid
from ebbflow.algebra.value import function_name
from ebbflow.errors import Text, place
from ebbflow.expression.reached import held_by, lasting
from ebbflow.frozen import apart

if TYPE_CHECKING:
    from ebbflow.algebra.state import Hypothetical

X = TypeVar("X")
Y = TypeVar("Y")
Z = TypeVar("Z")
E = TypeVar("E")


class Processor(ABC, Generic[X, Y]):
    """Something with `start` and `step`, reading `source` and writing `target`.

    Write one with `processor` or `elementwise`, or as a subclass. Compose them with `>>` (one after
    the other), `*` (side by side on pairs), `&` (both on the same input) and `loop`.
    """

    source: Monoid[X]
    target: Monoid[Y]
    created: Text | None = None
    commuting: bool = False
    """Whether it is declared that its steps may change places; see `commuting`."""
    differential: bool = False
    """Whether it is an operator: a processor of changes that knows the function it computes."""

    @abstractmethod
    def start(self) -> tuple[Any, Y]:
        """The first state, and the output that is there before any input."""

    @abstractmethod
    def step(self, state: Any, change: X) -> tuple[Any, Y]:
        """The state after `change`, and what to add to the output."""

    # ---- everything below is written with start and step ----

    def __call__(self, whole: X) -> Y:
        """The whole output for a whole input. (The meaning ⟦σ⟧ of a processor σ.)

        >>> from ebbflow.stream import prefix_sum
        >>> prefix_sum()([1, 2, 3])
        [1, 3, 6]
        """
        state, first = self.start()
        return self.target.combine(first, self.step(state, whole)[1])

    def open(self) -> Running[X, Y]:
        """A run of this processor: send it pieces, get outputs, pause, pickle, go on."""
        return Running(self)

    def run(self, stream: Iterable[X]) -> Iterator[Y]:
        """The outputs for a stream of pieces: first what is there before any input, then one for
        each.

        Lazy: takes one piece at a time, so the stream may be endless.

        >>> from itertools import count
        >>> from ebbflow.stream import prefix_sum
        >>> list(islice(prefix_sum().run([n, n] for n in count(1)), 4))
        [[], [1, 2], [4, 6], [9, 12]]
        """
        state, output = self.start()
        yield output
        for change in stream:
            state, output = self.step(state, change)
            yield output

    def at(self, change: X) -> Hypothetical:
        """What `change` would do, as a function of the state: an element of the State monoid."""
        return At(self, change)

    def __rshift__(self, after: Processor[Y, Z]) -> Processor[X, Z]:
        from ebbflow.stream.combine import sequential

        return sequential(self, after) if _is_plain(after) else NotImplemented

    def __mul__(self, other: Processor[Any, Any]) -> Processor[Any, Any]:
        from ebbflow.stream.combine import parallel

        return parallel(self, other) if _is_plain(other) else NotImplemented

    def __and__(self, other: Processor[X, Any]) -> Processor[X, Any]:
        from ebbflow.stream.combine import FanOut

        return FanOut(self, other) if _is_plain(other) else NotImplemented

    def as_fused(self) -> Processor[X, Y]:
        """The same with neighbouring stateless stages as one; see `fuse`."""
        return self

    def __getstate__(self) -> Any:
        """What it holds. Generated loops, and all else that is made when it is first asked for, are
        made again."""
        state = super().__getstate__()
        return lasting(type(self), state) if isinstance(state, dict) else state

    def __identity__(self) -> Any:
        """What a fingerprint is taken of: what it holds, not where it was made."""
        return {k: v for k, v in held_by(self).items() if k not in ("created", "owner")}


def _is_plain(other: object) -> bool:
    """Whether it is a processor that is no operator: those compose processors with themselves."""
    return isinstance(other, Processor) and not other.differential


class Running(Generic[X, Y]):
    """A processor with its state: something that can be paused, pickled and resumed elsewhere.

    >>> import pickle
    >>> from ebbflow.stream import prefix_sum
    >>> live = prefix_sum().open()
    >>> live.send([1, 2])
    [1, 3]
    >>> elsewhere = pickle.loads(pickle.dumps(live))
    >>> elsewhere.send([3])
    [6]

    `output` is what was there before any input. Processors made with lambdas need cloudpickle.
    """

    __slots__ = ("output", "processor", "state")

    def __init__(self, processor: Processor[X, Y]) -> None:
        self.processor = processor
        self.state, self.output = processor.start()

    def send(self, change: X) -> Y:
        """Take one piece of input and give the output for it."""
        self.state, output = self.processor.step(self.state, change)
        return output

    def __repr__(self) -> str:
        return f"<{self.processor!r} at {self.state!r}>"


class At:
    """`state ↦ processor.step(state, change)`."""

    def __init__(self, processor: Processor[Any, Any], change: Any) -> None:
        self.processor = processor
        self.change = change

    def __call__(self, state: Any) -> tuple[Any, Any]:
        return self.processor.step(state, self.change)

    def __repr__(self) -> str:
        return f"{self.processor!r}.at({self.change!r})"


def chunks(stream: Iterable[E], size: int = 1024) -> Iterator[list[E]]:
    """A stream of elements as a stream of lists, for processors that read `LIST`.

    >>> list(chunks(range(5), size=2))
    [[0, 1], [2, 3], [4]]
    """
    elements = iter(stream)
    for first in elements:
        yield list(chain((first,), islice(elements, size - 1)))


# ---- processors from functions ----


class StepProcessor(Processor[X, Y]):
    """A processor given by a first state and a step function; see `processor`."""

    def __init__(
        self,
        step: Callable[[Any, X], tuple[Any, Y]],
        state: Any,
        output: Y | None,
        source: Monoid[X],
        target: Monoid[Y],
        name: str,
    ) -> None:
        self.on_piece = step
        self.initial = state
        self.output = output
        self.source = source
        self.target = target
        self.name = name
        self.created = place()

    def start(self) -> tuple[Any, Y]:
        first = self.target.zero if self.output is None else copy.deepcopy(self.output)
        return apart(self.initial), first

    def step(self, state: Any, change: X) -> tuple[Any, Y]:
        return self.on_piece(state, change)

    def __repr__(self) -> str:
        return self.name or (
            f"processor({function_name(self.on_piece)}, state={self.initial!r}, "
            f"source={self.source!r}, target={self.target!r}"
            f"{'' if self.output is None else f', output={self.output!r}'})"
        )


def processor(
    step: Callable[[Any, X], tuple[Any, Y]],
    *,
    state: Any = None,
    source: Monoid[X],
    target: Monoid[Y],
    output: Y | None = None,
    name: str = "",
) -> Processor[X, Y]:
    """A processor from a step function on pieces of any monoid.

    `state` is the first state (copied for each run), `output` what is said before any input
    (default: nothing). `ebbflow.laws.check` tells whether the step respects the cut.

    >>> from ebbflow.algebra import MAX
    >>> record = processor(lambda best, x: (max(best, x),) * 2, state=0, source=MAX, target=MAX)
    >>> list(record.run([3, 1, 4]))
    [-inf, 3, 3, 4]
    """
    return StepProcessor(step, state, output, source, target, name)


class Pure(Processor[X, Y]):
    """A homomorphism as a processor without state; see `pure`."""

    def __init__(self, f: Homomorphism[X, Y]) -> None:
        self.f = f
        self.source = f.source
        self.target = f.target
        self.created = f.created
        self._call = f.f

    def start(self) -> tuple[Any, Y]:
        return None, self.target.zero

    def step(self, state: Any, change: X) -> tuple[Any, Y]:
        return None, self._call(change)

    def __repr__(self) -> str:
        if self.f.name:
            return f"pure({self.f.name})"
        return f"pure({function_name(self.f.f)}, {self.source!r}, {self.target!r})"


class Named(Pure[X, Y]):
    """A stateless processor that is called by its name alone."""

    def __repr__(self) -> str:
        return repr(self.f)


def pure(
    f: Callable[[X], Y] | Homomorphism[X, Y],
    source: Monoid[X] = LIST,  # type: ignore[assignment]
    target: Monoid[Y] = LIST,  # type: ignore[assignment]
    *,
    name: str = "",
) -> Processor[X, Y]:
    """A processor without state that gives `f(piece)` for each piece; `f` must be a homomorphism.

    >>> from ebbflow.algebra import ADD, LIST
    >>> list(pure(len, LIST, ADD).run([["a"], ["b", "c"]]))
    [0, 1, 2]
    """
    if isinstance(f, Homomorphism):
        return Pure(f)
    return Pure(Homomorphism(f, source, target, name=name))
