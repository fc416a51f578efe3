"""What stages forget behind inputs that put late rows aside: groups that are closed, and sessions.

Each container whose keys are closed one day (`ebbflow.flow.closing`) can be asked which of them
are, when it is known before which time the inputs are closed; see `ebbflow.engine.runtime.gate`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from ebbflow.engine.runtime.stage import Stage
from ebbflow.engine.runtime.stages import ArrangeStage
from ebbflow.flow.closing import (
    NONE,
    Bounds,
    Closings,
    TimeBounds,
    bounds_of,
    key_bounds,
    row_bounds,
    session_time,
)
from ebbflow.flow.plan import Distinct, Plan, Reduce, Sessions, TopK
from ebbflow.flow.plan.time import SessionReduce
from ebbflow.state.backing import ABSENT
from ebbflow.state.cells import Journalled
from ebbflow.state.index import Index

IsClosed = Callable[[Any, Closings], bool]
Entries = dict[Any, Any]


class Forgotten:
    """Entries of a container that are forgotten with an epoch: the change of what is `stored` of
    it, and what is held for each key `after` it. It is kept as inputs and outputs are."""

    __slots__ = ("after", "store", "stored")

    def __init__(self, store: Any, stored: Entries, after: Entries) -> None:
        self.store, self.stored, self.after = store, stored, after

    def keep(self) -> None:
        """Forget. Doing it twice is doing it once."""
        held = held_in(self.store)
        for key, now in self.after.items():
            if now is ABSENT:
                held.pop(key, None)
            else:
                held[key] = now


def held_in(container: Any) -> Entries:
    """What a container holds in memory, by key."""
    held: Entries = container.contents if isinstance(container, Journalled) else container.rows
    return held


def keys_of(container: Any) -> Collection[Any]:
    """All keys of a container, also those that are not in memory."""
    backing = container.backing
    if backing is None or backing.resident is None:
        return list(held_in(container))
    return dict.fromkeys(key for key, _, _ in backing.kept.scan())


class Closable(NamedTuple):
    """A container of a stage, and how to find what can be forgotten of it."""

    stage: Stage
    container: Any
    closed: Callable[[Any, Closings], tuple[Forgotten, int]]
    """Given the container: what is forgotten, and how many entries are left."""


def closable(plan: Plan, stages: Sequence[Stage]) -> list[Closable]:
    """The containers of stages that have something to forget one day. Rows by key that are kept
    for other stages are forgotten where all of those forget them, too."""
    bounds = bounds_of(plan)
    return list(_closable(bounds, stages)) if bounds else []


def _closable(bounds: dict[int, Bounds], stages: Sequence[Stage]) -> Iterator[Closable]:
    readers: dict[int, list[Stage]] = {}
    for stage in stages:
        for slot in stage.reads:
            readers.setdefault(slot, []).append(stage)
    for stage in stages:
        node, is_closed = stage.node, None
        if isinstance(stage, ArrangeStage):
            if all(isinstance(each.node, Reduce) for each in readers.get(stage.slot, ())):
                is_closed = key_bounds(stage.key, bounds.get(id(node), NONE))
        elif stage.operator is None:
            continue
        elif isinstance(node, (Sessions, SessionReduce)):
            time = session_time(node, bounds.get(id(node.parent), NONE))
            if time is not None:
                over = partial(over_sessions, stage.operator, time)
                yield Closable(stage, stage.containers[0], over)
        elif isinstance(node, Distinct):
            is_closed = row_bounds(bounds.get(id(node), NONE))
        elif isinstance(node, (Reduce, TopK)):
            is_closed = key_bounds(node.key, bounds.get(id(node.parent), NONE))
        if is_closed is not None:
            for container in stage.containers:
                yield Closable(stage, container, partial(closed_keys, is_closed))


def closed_keys(is_closed: IsClosed, container: Any, closings: Closings) -> tuple[Forgotten, int]:
    """The keys of a container that are closed."""
    keys = keys_of(container)
    after = dict.fromkeys([key for key in keys if is_closed(key, closings)], ABSENT)
    gone: Entries = after
    if isinstance(container, Index):
        container.bring(after)
        groups = container.groups
        gone = {key: [(row, -n) for row, n in groups[key].items()] for key in after}
    return Forgotten(container, gone, after), len(keys) - len(after)


def over_sessions(
    operator: Any, time: TimeBounds, container: Any, closings: Closings
) -> tuple[Forgotten, int]:
    """The rows of sessions that are closed, of every key: the first ones in the order of time."""
    gone: Entries = {}
    after: Entries = {}
    left = 0
    keys = keys_of(container)
    container.bring(keys)
    for key in keys:
        tree = container.groups[key]
        over: list[tuple[Any, int]] = []
        session: list[tuple[Any, int]] = []
        last = None
        for row, count in tree:
            at = operator.time(row)
            if last is not None and at - last > operator.gap:
                over, session = over + session, []
            if not time.is_closed(at + operator.gap, closings):
                break
            session.append((row, -count))
            last = at
        else:
            over += session
        left += tree.distinct - len(over)
        if over:
            gone[key], now = over, tree.update(over)
            after[key] = now if now.distinct else ABSENT
    return Forgotten(container, gone, after), left
