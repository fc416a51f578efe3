"""Transitions: how a state goes from row to row, and what it says on the way.

A scan sends the rows of a key, in order, through a *transition*: a first state, and a step that
makes of a state and a row the next state and a list of what to say. Any processor of lists is one
(`ebbflow.stream.Processor`), and so is a plain function.

What many rows do to the state is the composition of their steps, an element of the State monoid.
Where that can be written down, it can be kept for every part of a long sequence, and put together
in O(log n) when a row changes in the middle. There are two ways to write it down:

    tabulated    for each of a few states the one that it leads to
    composed     by a monoid of your own: `of(row)`, `merge(a, b)`, and `act(state, a)`

Without one of them, the states that rows led to are remembered, and rows are stepped through again
where they are reached in another state than before. Steps give the same answer every time. A step
may alter the state that it is given, and return the same object: the transition copies a state
before each step, unless nothing in it can be altered (see `ebbflow.frozen.apart`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import datetime, time, timezone
from decimal import Decimal
from operator import is_
from pickle import PicklingError
from typing import Any

from ebbflow.algebra import LIST, Monoid
from ebbflow.algebra.value import function_name
from ebbflow.errors import AlgebraError, place, value_text
from ebbflow.frozen import ATOMS, apart
from ebbflow.nan import one_nan
from ebbflow.stream.processor import Processor
from ebbflow.zset import ZSet

Step = Callable[[Any, Any], tuple[Any, list[Any]]]
_IDENTITY: Any = object.__eq__
_PRINTED = frozenset({Decimal, complex})
"""Types of values that are the same where they print the same."""
_WITH_ZONES = frozenset({datetime, time, timezone, object})
"""Types of values that can be equal and not the same, by their parts."""


class Transition:
    """A first state, what is said before any row, and `step(state, row)`; see `transition`."""

    of: Callable[[Any], Any] | None = None
    """What a row does to the state, as an element of a monoid; None where that is not known."""
    merge: Callable[[Any, Any], Any] | None = None
    """What two such elements do, one after the other."""
    last: Callable[[Any], list[Any]] | None = None
    """What is said behind the last row, from the state there."""
    composes = ""
    """How steps are composed, to be shown."""

    def __init__(self, step: Step, start: Any, first: list[Any], name: str) -> None:
        self._step, self._start, self.first, self.name = step, start, first, name

    @property
    def start(self) -> Any:
        """The first state."""
        return apart(self._start)

    def step(self, state: Any, row: Any) -> tuple[Any, list[Any]]:
        """The state after a row, and what it says."""
        return self._step(state if type(state) in ATOMS else apart(state), row)

    def act(self, state: Any, element: Any) -> Any:
        """The state after rows that do this to it."""
        raise NotImplementedError

    def after(self, state: Any, row: Any) -> Any:
        """The state after a row."""
        return self.step(state, row)[0]

    @property
    def certain(self) -> bool:
        """Whether it surely says the same of the same rows every time."""
        return False

    # ---- many rows ----

    def through(self, rows: Iterable[Any], state: Any) -> Any:
        """The state after rows."""
        step = self.step
        for row in rows:
            state = step(state, row)[0]
        return state

    def said(self, rows: Iterable[Any], state: Any, out: dict[Any, int], sign: int) -> Any:
        """The state after rows; what is said of them is counted in `out`, with one NaN."""
        step, get = self.step, out.get
        for row in rows:
            state, more = step(state, row)
            for each in map(one_nan, more):
                out[each] = get(each, 0) + sign
        return state

    def apart(
        self, rows: Iterator[Any], old: Any, new: Any, out: dict[Any, int]
    ) -> tuple[Any, Any]:
        """Two states after rows, up to the one behind which they are the same: one object then.
        Where the new one says something else than the old one, that is counted in `out`."""
        step, get = self.step, out.get
        for row in rows:
            old, before = step(old, row)
            new, after = step(new, row)
            if before != after:
                for each in map(one_nan, before):
                    out[each] = get(each, 0) - 1
                for each in map(one_nan, after):
                    out[each] = get(each, 0) + 1
            if same_state(old, new):
                return new, new
        return old, new

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __identity__(self) -> Any:
        """What a fingerprint is taken of: not how it is called."""
        return {name: value for name, value in vars(self).items() if name != "name"}

    def __repr__(self) -> str:
        return self.name


class TabulatedSteps(Transition):
    """A transition between a few states; see `transition`."""

    composes = "by a table of states"

    def __init__(
        self, step: Step, start: Any, first: list[Any], name: str, states: Iterable[Hashable]
    ) -> None:
        super().__init__(step, start, first, name)
        self.states = tuple(states)
        self.places = {state: i for i, state in enumerate(self.states)}
        if start not in self.places:
            raise self.unlisted(start)

    def of(self, row: Any) -> tuple[int, ...]:
        """For each state, which one the row leads to."""
        found = []
        for state in self.states:
            reached = self.step(state, row)[0]
            if reached not in self.places:
                raise self.unlisted(reached)
            found.append(self.places[reached])
        return tuple(found)

    def merge(self, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        """One table after another."""
        return tuple([b[i] for i in a])

    def act(self, state: Any, element: tuple[int, ...]) -> Any:
        try:
            return self.states[element[self.places[state]]]
        except KeyError:
            raise self.unlisted(state) from None

    def unlisted(self, state: Any) -> AlgebraError:
        """The error for a state that is not among those that were listed."""
        return AlgebraError(
            f"{self.name} reaches state {value_text(state)}, which is not among the states",
            states=self.states,
            created=place(),
            remedy="list every state that can be reached",
        )


class ComposedSteps(Transition):
    """A transition whose steps a monoid of the user's composes; see `transition`."""

    def __init__(
        self, step: Step, start: Any, first: list[Any], name: str,
        of: Callable[[Any], Any], merge: Callable[[Any, Any], Any], act: Callable[[Any, Any], Any],
    ) -> None:  # fmt: skip
        super().__init__(step, start, first, name)
        self.of, self.merge, self._act = of, merge, act
        self.composes = f"by {function_name(merge)}"

    def act(self, state: Any, element: Any) -> Any:
        return self._act(apart(state), element)


class PartSteps(Transition):
    """What the rows of a part do to the state of another transition, as an element of the monoid
    that composes its steps; None for no rows."""

    def __init__(self, whole: Transition) -> None:
        super().__init__(whole.step, None, [], f"parts of {whole.name}")
        self.whole, self.of, self.merge = whole, whole.of, whole.merge
        self.composes = whole.composes

    def step(self, state: Any, row: Any) -> tuple[Any, list[Any]]:
        assert self.of is not None
        assert self.merge is not None
        element = self.of(row)
        return (element if state is None else self.merge(state, element)), []

    def act(self, state: Any, element: Any) -> Any:
        assert self.merge is not None
        return element if state is None else self.merge(state, element)


class StepsOfParts(Transition):
    """The state of a transition behind several parts, one after the other; rows have the elements
    of the parts in their last field."""

    def __init__(self, whole: Transition) -> None:
        super().__init__(whole.step, whole.start, [], f"{whole.name} of parts")
        self.whole = whole

    def step(self, state: Any, row: Any) -> tuple[Any, list[Any]]:
        return self.whole.act(state, row[-1]), []


def transition(
    step: Step | Processor[Any, Any],
    start: Any = None,
    *,
    states: Iterable[Hashable] | None = None,
    of: Callable[[Any], Any] | None = None,
    merge: Callable[[Any, Any], Any] | Monoid[Any] | None = None,
    act: Callable[[Any, Any], Any] | None = None,
    name: str = "",
) -> Transition:
    """A transition: a function `step(state, row)` with its first state, or a processor of lists.

    With `states`, all that can be reached, what rows do is kept as tables. Or name the monoid that
    composes: `of(row)` is what a row does, `merge` what two do, and `act(state, what)` does it:

        act(state, of(row))      == step(state, row)[0]
        act(state, merge(a, b))  == act(act(state, a), b)

    >>> turned = transition(lambda s, e: (e, [e] * (s != e)), "shut", states=["shut", "open"])
    >>> turned.step("shut", "open"), turned.of("open")
    (('open', ['open']), (1, 1))
    >>> total = transition(lambda n, x: (n + x, [n + x]), 0, of=lambda x: x, merge=int.__add__,
    ...                    act=int.__add__)
    >>> total.act(10, total.merge(total.of(1), total.of(2)))
    13
    """
    first: list[Any] = []
    if isinstance(step, Processor):
        name = name or repr(step)
        start, step, first = _of_lists(step, start)
    elif not callable(step):
        raise AlgebraError(
            f"a scan needs a step, and not {value_text(step)}", created=place(),
            remedy="a function of a state and a row, or a processor of lists",
        )  # fmt: skip
    name = name or function_name(step)
    composing = [each for each in (of, merge, act) if each is not None]
    if (states is not None and composing) or (composing and len(composing) < 3):
        raise AlgebraError(
            f"{name}: steps are composed by states=..., or by of=, merge= and act= together",
            created=place(), remedy="one of the two",
        )  # fmt: skip
    if states is not None:
        return TabulatedSteps(step, start, first, name, states)
    if of is not None and merge is not None and act is not None:
        combine = merge.combine if isinstance(merge, Monoid) else merge
        return ComposedSteps(step, start, first, name, of, combine, act)
    return Transition(step, start, first, name)


def _of_lists(processor: Processor[Any, Any], start: Any) -> tuple[Any, Step, list[Any]]:
    """The first state, the step and the first output of a processor of lists."""
    if start is not None or processor.source != LIST or processor.target != LIST:
        raise AlgebraError(
            f"a scan runs processors from lists to lists, from their own start: {processor!r}",
            source=processor.source, target=processor.target, created=place(),
            remedy="ebbflow.stream.elementwise(step, state=...)",
        )  # fmt: skip
    state, first = processor.start()
    return state, OneByOne(processor), first


class OneByOne:
    """A processor of lists as a step on single elements."""

    def __init__(self, processor: Processor[Any, Any]) -> None:
        self.processor = processor

    def __call__(self, state: Any, row: Any) -> tuple[Any, list[Any]]:
        return self.processor.step(state, [row])

    def __repr__(self) -> str:
        return repr(self.processor)


def same_state(a: Any, b: Any) -> bool:
    """Whether steps cannot tell two states apart: equal, of the same types, with the same zeros,
    and dicts in the same order.

    >>> same_state((1, 2.0), (1, 2.0)), same_state((1, 2), (1, 2.0)), same_state(0.0, -0.0)
    (True, False, False)
    >>> same_state([1], [True]), same_state({"a": [0.0]}, {"a": [-0.0]})
    (False, False)
    """
    if a is b:
        return True
    try:
        if not bool(a == b):
            return False
    except (TypeError, ValueError):  # arrays, which are compared element by element
        pass
    return _alike(a, b)


def _alike(a: Any, b: Any) -> bool:
    """Whether two values are the same in all that they hold, also in what `==` leaves out: the
    zones of times, fields that are not compared, attributes of lists. No is always a safe answer:
    then more rows are stepped through."""
    if a is b:
        return True
    cls: Any = type(a)
    if cls is not type(b):
        return False
    if cls is float:
        return bool(a == b) and math.copysign(1.0, a) == math.copysign(1.0, b)
    if cls in _PRINTED:
        return repr(a) == repr(b)
    if cls in ATOMS and cls not in _WITH_ZONES:
        return bool(a == b)
    if cls is list or (isinstance(a, tuple) and not hasattr(a, "__dict__")):
        return len(a) == len(b) and (all(map(is_, a, b)) or all(map(_alike, a, b)))
    if cls is dict:
        return _alike([*a], [*b]) and _alike([*a.values()], [*b.values()])
    if cls in (set, frozenset, ZSet):
        there = {each: each for each in b}
        return bool(a == b) and all(_alike(each, there[each]) for each in a)
    return cls.__eq__ is not _IDENTITY and _alike_parts(a, b)


def _alike_parts(a: Any, b: Any) -> bool:
    """Whether two objects are made of parts that are the same, as they would be pickled."""
    try:
        made = [each.__reduce_ex__(4) for each in (a, b)]
    except (TypeError, PicklingError):
        return False
    if any(isinstance(each, str) for each in made):
        return False
    one, other = [(*each[:3], *map(_listed, each[3:5])) for each in made]
    return _alike(one, other)


def _listed(parts: Iterable[Any] | None) -> list[Any]:
    return [] if parts is None else [*parts]
