"""A reduce of windows that overlap, by panes.

With windows of an hour, a new one every five minutes, a row is in twelve of them. But all rows of
the same five minutes are in the same windows. So a change is first added up by *pane*, a piece of
time that every window has whole or not at all, and what a pane adds up to is then added to each of
its windows: one addition for every row, and not one for each of its windows.

It equals the reduce of every row once for each window. Nothing is kept of the panes: what is kept
is what is kept without them, an accumulator for each window.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from ebbflow.chain import Chain
from ebbflow.fn import Fn
from ebbflow.reducer.fused import FusedReduce
from ebbflow.reducer.running import ReduceByKey


class Expanded(list[tuple[Any, Any]]):
    """Pairs of a key and what is added to its cell; a key may be there several times."""

    def items(self) -> Expanded:
        """The pairs, as of a dict."""
        return self


class ReduceByPane(ReduceByKey):
    """`before` are steps of which the last makes a row for each window; `early` are those up to
    it, and `pane` what the panes of rows of type `pane_type` are known by. `windows(pane)` are the
    keys of the groups that a pane is part of."""

    early: Chain
    pane: Fn
    pane_type: Any
    windows: Callable[[Any], list[Any]]

    def by_panes(
        self, early: Chain, pane: Fn, pane_type: Any, windows: Callable[[Any], list[Any]]
    ) -> ReduceByPane:
        """Have it add up by these panes."""
        self.early, self.pane, self.pane_type, self.windows = early, pane, pane_type, windows
        return self

    @cached_property
    def loop(self) -> Callable[..., Any] | None:
        """The loop that adds a change up by pane."""
        early = FusedReduce(
            self.parts, self.pane, self.shape, self.pane_type, self.early, self.owner
        )
        return early.partial()

    def _expanded(self, change: Any) -> Expanded:
        windows, found = self.windows, Expanded()
        assert self.loop is not None
        for pane, added in self.loop(change).items():
            found += [(key, added) for key in windows(pane)]
        return found

    @cached_property
    def partial(self) -> Callable[[Any], Any]:
        """What a change adds to the cell of each window, one pane after the other."""
        return self._expanded

    def update_fused(self, cells: Any, change: Any) -> dict[Any, int]:
        return self.merge_partial(cells, self._expanded(change))
