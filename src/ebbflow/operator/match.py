"""Patterns of events: the rows of each key, in order, through a machine that finds matches.

A *try* is a match that has begun: the place of its first row, the key, and what each step has taken
so far. Every row that fits the first step begins one, so the state is a tuple of tries, the
earliest first. A later try is never further than an earlier one, since at the same step both take
the same rows. So the first that comes to the end is the earliest that does, and it ends all others
that began before its last row. Without a limit in time, of tries at the same step only the earliest
is kept: the others would end as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from ebbflow.nan import one_nan
from ebbflow.stream.transition import Transition


class Try(NamedTuple):
    """A match that has begun. `took` has a value for each step that has begun: the row, or the
    accumulator of a step that takes many."""

    start: Any
    key: Any
    took: tuple[Any, ...]


class Matching(Transition):
    """A pattern as a transition between tuples of tries; see `ebbflow.flow.plan.order.Match`."""

    def __init__(
        self, steps: tuple[Any, ...], order: Callable[[Any], Any],
        key: Callable[[Any], Hashable] | None, make: Callable[..., Any], within: Any = None,
        adjacent: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(self._go, (), [], " → ".join(step.name for step in steps))
        self.steps, self.order, self.key, self.make = steps, order, key, make
        self.within, self.adjacent = within, adjacent
        if steps[-1].many:
            self.last = self._last

    @property
    def start(self) -> Any:
        return ()

    def step(self, state: Any, row: Any) -> tuple[Any, list[Any]]:
        return self._go(state, row)

    def _go(self, state: tuple[Try, ...], row: Any) -> tuple[tuple[Try, ...], list[Any]]:
        steps, said = self.steps, list[Any]()
        place = None if self.within is None else self.order(row)
        going: list[Try] = []
        for each in state:
            at = self._taking(each, row, place)
            if at == OVER:
                if len(each.took) == len(steps):
                    said.append(self._made(each))
                continue
            if at >= 0:
                each = each._replace(took=self._took(each.took, at, row))
                if len(each.took) == len(steps):
                    if not steps[-1].many:
                        return (), [*said, self._made(each)]
                    return (each,), said
            going.append(each)
        if not self._stops(0, row) and steps[0].fits(row):
            new = Try(place, None if self.key is None else self.key(row), self._took((), 0, row))
            if len(steps) == 1 and not steps[0].many:
                return tuple(going), [*said, self._made(new)]
            going.append(new)
        if self.within is None:
            going = list({len(each.took): each for each in reversed(going)}.values())[::-1]
        return tuple(going), said

    def _taking(self, each: Try, row: Any, place: Any) -> int:
        """Which step of a try takes a row: PASSED where none does, and OVER where it ends the
        try."""
        begun = len(each.took)
        if self.within is not None and place - each.start > self.within:
            return OVER
        waiting = [begun - 1] if self.steps[begun - 1].many else []
        waiting += [begun] if begun < len(self.steps) else []
        if any(self._stops(at, row) for at in waiting):
            return OVER
        for at in waiting:
            if self.steps[at].fits(row):
                return at
        return OVER if self.adjacent else PASSED

    def _stops(self, at: int, row: Any) -> bool:
        unless = self.steps[at].unless
        return unless is not None and bool(unless(row))

    def _took(self, took: tuple[Any, ...], at: int, row: Any) -> tuple[Any, ...]:
        reducer = self.steps[at].reducer
        if reducer is None:
            return (*took, row)
        acc = took[at] if at < len(took) else reducer.start()
        return (*took[:at], reducer.add(acc, row))

    def _made(self, each: Try) -> Any:
        """The row of a match."""
        values = [
            took if step.reducer is None else one_nan(step.reducer.finish(took))
            for step, took in zip(self.steps, each.took, strict=True)
        ]
        return self.make(each.key, *values)

    def _last(self, state: tuple[Try, ...]) -> list[Any]:
        """What is a match behind the last row, though another row might still be added to it."""
        return [self._made(each) for each in state if len(each.took) == len(self.steps)]


PASSED, OVER = -1, -2
