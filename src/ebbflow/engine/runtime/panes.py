"""Which reduces of sliding windows are added up by panes, and the panes of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from operator import itemgetter
from typing import Any

from ebbflow.chain import Chain
from ebbflow.expression import Get, Tuple
from ebbflow.expression.node import field_of
from ebbflow.expression.parts import WritesItself
from ebbflow.flow.plan import Reduce
from ebbflow.flow.rewrite.reducers import adds_up, reducer_reads
from ebbflow.flow.rewrite.sessions import WINDOW, items_of, read_by
from ebbflow.flow.rewrite.traced import written
from ebbflow.flow.windows import Sliding, WindowClock
from ebbflow.fn import Fn
from ebbflow.nan import one_nan
from ebbflow.record import fields_of
from ebbflow.reducer.panes import ReduceByPane
from ebbflow.reducer.sessions import KEY
from ebbflow.reducer.shape import ResultShape

MICROSECOND = timedelta(microseconds=1)
REMEMBERED = 4096
"""Of how many panes the windows are remembered."""


def by_panes(node: Reduce, chain: Chain) -> ReduceByPane | None:
    """The operator of a reduce whose rows come from sliding windows at the end of a chain, added up
    by panes; None where that cannot be, or does not pay.

    The windows must overlap and be counted in whole numbers, what a change adds must not depend on
    what is there, and the key is made of one end of the window or both, and of fields of the rows.
    """
    step = chain.steps[-1] if chain.steps else None
    if step is None or step.verb != "flat_map" or not isinstance(step.fn.call, Sliding):
        return None
    clock, row_type = step.fn.call.clock, step.fn.types[0]
    fields = {*(fields_of(row_type) or ())}
    pane = pane_of(clock.size, clock.every)
    reads = reducer_reads(node.reducer, node.parent.type, read_by)
    if pane is None or reads is None or not reads <= fields:
        return None
    parts = [_window_part(each) for each in items_of(node.key)]
    others = [each for each, part in zip(items_of(node.key), parts, strict=True) if part is None]
    windowed = node.parent.type
    if None in others or len(others) == len(parts) or not adds_up(node.reducer, windowed):
        return None
    if not all(_reads(each, windowed) <= fields for each in others):
        return None
    here = Tuple(tuple([each.substitute(partial(_field, row_type)) for each in others]))
    of = written(here, row_type) if others else None
    counting = replace(clock, size=pane, every=pane)
    shape = ResultShape(node.type, node.width, node.spread)
    operator = ReduceByPane(node.reducer, node.key, shape, windowed, chain, node)
    if operator.keeps_rows or None in operator.inlines:
        return None
    return operator.by_panes(
        Chain(chain.steps[:-1]), Fn(PaneKey(counting, of), row_type), row_type,
        PaneWindows(clock, pane, parts),
    )  # fmt: skip


def _field(row_type: Any, of: Any) -> Get:
    """A field of a row with its window, as one of the row: a dataclass is no tuple."""
    return field_of(of.arg, of.name, of.index, row_type)


def pane_of(size: Any, every: Any) -> Any:
    """The size of panes of windows of this size; None where windows do not overlap, or spans of
    time are no whole numbers.

    >>> pane_of(60, 25), pane_of(timedelta(hours=1), timedelta(minutes=5)), pane_of(60, 60)
    (5, datetime.timedelta(seconds=300), None)
    """
    if size <= every or isinstance(size, float) or isinstance(every, float):
        return None
    if isinstance(size, int) and isinstance(every, int):
        return math.gcd(size, every)
    if isinstance(size, timedelta):
        return MICROSECOND * math.gcd(size // MICROSECOND, every // MICROSECOND)
    return None


def _reads(item: Any, row_type: Any) -> frozenset[str]:
    names = written(item, row_type).reads[0]
    return frozenset({""}) if names is None else frozenset(names)


def _window_part(item: Any) -> int | None:
    return WINDOW.get(item.name) if isinstance(item, Get) else None


@dataclass(frozen=True)
class PaneKey(WritesItself):
    """What a row's pane is known by: the parts of the key that are not of the window, the origin of
    the windows, and the number of the pane."""

    clock: WindowClock
    of: Fn | None

    def __call__(self, row: Any) -> Any:
        _, origin, number = self.clock.at(row)
        return () if self.of is None else self.of(row), origin, number

    def written(self, bind: Any, row: str) -> str:
        others = "()" if self.of is None else self.of.kept(bind, row)
        return self.clock.written(
            bind,
            row,
            f"({others}, {{origin}}, {{number}})",
            f"{bind(one_nan)}({bind(self)}({row}))",
        )


class PaneWindows:
    """The keys of the windows that a pane is part of. `parts` says what the parts of the key are:
    an end of the window, or None for the next of those that are not."""

    def __init__(self, clock: WindowClock, pane: Any, parts: Sequence[int | None]) -> None:
        self.clock = clock
        self.panes, self.step = clock.size // pane, clock.every // pane
        places = [KEY + n for n in range(parts.count(None))][::-1]
        self.pick = itemgetter(*[places.pop() if part is None else part for part in parts])
        self.spans: dict[Any, list[tuple[Any, Any]]] = {}

    def __call__(self, pane: Any) -> list[Any]:
        others, origin, number = pane
        spans = self.spans.get((origin, number))
        if spans is None:
            spans = self._spans(origin, number)
        pick = self.pick
        return [pick((*span, *others)) for span in spans]

    def _spans(self, origin: Any, number: int) -> list[tuple[Any, Any]]:
        """The windows, remembered for a while: few panes come again and again."""
        first, last = (number - self.panes) // self.step + 1, number // self.step
        if len(self.spans) >= REMEMBERED:
            self.spans.clear()
        start, end = self.clock.start, self.clock.end
        spans = self.spans[origin, number] = [
            (start(origin, n), end(origin, n)) for n in range(first, last + 1)
        ]
        return spans
