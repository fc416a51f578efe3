"""A loop as one stage: it runs the stages of its body, round after round.

What enters, changes in the variables and in the collections from outside, is put at the versions
where it makes a difference (002, Proposition 3): a start `c` at the round where it enters, and `-c`
at the next, because it is not there any more; a collection from outside at round 0, because it is
the same in all rounds. What the body gives at a round is fed back into the next. What leaves is the
sum of the differences of the variables over all rounds, or over the first `rounds`.

Only the rounds that are waiting for something are run, and in each only the stages that have
something to do. In a nested loop, rounds are waiting at each version of the loops around it, and
these come back to it when they are there. Where most of what enters is replaced, the loop is
computed again (`loop_again`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any

from ebbflow.engine.runtime.elsewhere import Elsewhere
from ebbflow.engine.runtime.loop_again import NotTold, replaced, wholes_if_replaced
from ebbflow.engine.runtime.rounds import LiftedStage
from ebbflow.engine.runtime.stage import Stage, nested
from ebbflow.engine.runtime.versions import Delta, Schedule, Version
from ebbflow.errors import FunctionFailed
from ebbflow.flow.endless import no_fixed_point
from ebbflow.flow.plan import Iterate, Plan
from ebbflow.kernel.pausing import pausing_gc
from ebbflow.zset import add_into


class Body:
    """The compiled body of a loop: its plan, its stages in order, how many slots there are, those
    of the variables, of what is given back for them, and of the collections from outside."""

    def __init__(
        self, plan: Plan, stages: Sequence[Stage], width: int, variables: Sequence[int],
        results: Sequence[int], outside: Sequence[int],
    ) -> None:  # fmt: skip
        self.plan = plan
        self.stages = stages
        self.width = width
        self.variables, self.results, self.outside = variables, results, outside


class LoopStage(Stage):
    """A loop and the stages of its body.

    In a body it is run at versions of the loop around it; at the top at the only one there, `()`.
    `why` says why rounds are exact, and `rows_per_round` how many rows of the variables changed in
    each round of the last epoch, None before the first; `exact` that it was computed again in it,
    and `recomputed` in how many. `entering` gives all rows that enter, where somebody can tell.
    """

    __slots__ = (
        "body", "elsewhere", "entering", "exact", "fresh", "inner", "recomputed", "rows_per_round",
        "schedule", "waiting", "why",
    )  # fmt: skip

    certain = False
    looping = True

    def __init__(
        self, node: Iterate, reads: Iterable[int], schedule: Schedule, body: Body,
        fresh: Callable[[], Stage], why: str,
    ) -> None:  # fmt: skip
        self.schedule, self.body, self.fresh, self.why = schedule, body, fresh, why
        containers = [each for stage in body.stages for each in stage.containers]
        super().__init__(node, reads, *containers)
        self.waiting: dict[Version, dict[int, Delta]] = {}
        self.inner: Stage | None = None
        self.rows_per_round: dict[int, int] | None = None
        self.elsewhere: Elsewhere | None = None
        self.entering: Callable[[], list[Delta]] | None = None
        self.exact, self.recomputed = False, 0

    # ---- at the top ----

    @pausing_gc
    def run(self, *changes: Any) -> Delta:
        self.clear()
        self.exact = False
        try:
            wholes = wholes_if_replaced(self, changes)
            if wholes is not None:
                out = replaced(self, changes, wholes)
                self.exact, self.recomputed = True, self.recomputed + 1
                return out
        except NotTold:
            self.entering = None
        try:
            return self.run_at((), *changes)
        finally:
            for stage, _ in nested(self.inside):
                if isinstance(stage, LiftedStage):
                    stage.forget_sums()

    def row_type(self, container: Any) -> Any:
        return Any  # rows are kept with their versions

    def whole(self, *wholes: Any) -> Any:
        return self.fresh().run(*wholes)

    @property
    def at_work(self) -> Stage:
        return self if self.inner is None else self.inner.at_work

    @property
    def inside(self) -> Sequence[Stage]:
        return self.body.stages

    def loops(self, stored: bool) -> tuple[Callable[..., Any], ...]:
        return ()

    # ---- in any loop ----

    def clear(self) -> None:
        """Forget what an epoch has left behind that came to no end."""
        self.waiting, self.rows_per_round, self.inner = {}, {}, None
        self.schedule.clear()
        for stage in self.body.stages:
            if isinstance(stage, (LiftedStage, LoopStage)):
                stage.clear()

    def waits_for(self, version: Version) -> bool:
        """Whether rounds are waiting at a version of the loop around."""
        return version in self.schedule.rounds

    def run_at(self, outer: Version, *changes: Any) -> Delta:
        """Run all rounds that wait at a version of the loop around, and give the difference there
        of what leaves the loop."""
        node, body = self.node, self.body
        assert isinstance(node, Iterate)
        per_round = self.rows_per_round = self.rows_per_round or {}
        self._enter(outer, changes)
        names = node.variables
        out: Delta = {}
        while (number := self.schedule.next(outer)) is not None:
            version = (*outer, number)
            values: list[Any] = [None] * body.width
            rows = 0
            for slot, delta in self.waiting.pop(version, {}).items():
                values[slot] = delta
            for name, slot in zip(names, body.variables, strict=True):
                delta = values[slot]
                if delta:
                    if node.rounds is None and number >= node.limit:
                        raise no_fixed_point(node, number, {name: delta})
                    rows += len(delta)
                    tagged = delta if len(names) == 1 else {(name, r): n for r, n in delta.items()}
                    add_into(out, tagged)
            per_round[number] = per_round.get(number, 0) + rows
            if number == node.rounds:
                continue
            self._run_body(version, values)
            after = (*outer, number + 1)
            for slot, result in zip(body.variables, body.results, strict=True):
                if values[result]:
                    self._put(after, slot, values[result])
        return out

    def _run_body(self, version: Version, values: list[Any]) -> None:
        for stage in self.body.stages:
            reads = [values[slot] for slot in stage.reads]
            lifted = isinstance(stage, (LiftedStage, LoopStage))
            if not any(reads) and not (lifted and stage.waits_for(version)):  # type: ignore[attr-defined]
                continue
            self.inner = stage
            started = perf_counter()
            out = None
            if self.elsewhere is not None and isinstance(stage, LiftedStage):
                out = self.elsewhere.run_at(stage, version, reads)
                if out is not None:
                    stage.forget_sums()
            if out is None:
                out = stage.run_at(version, *reads) if lifted else stage.run(*reads)  # type: ignore[attr-defined]
            values[stage.slot] = out
            counts = stage.counts
            counts.seconds += perf_counter() - started
            counts.rows_in += sum(len(each) for each in reads if each)
            counts.rows_out += len(out)
        self.inner = None

    def _enter(self, outer: Version, changes: Sequence[Any]) -> None:
        node, body = self.node, self.body
        assert isinstance(node, Iterate)
        cut = len(body.variables)
        starts = zip(body.variables, changes[:cut], node.priorities, strict=True)
        for slot, change, priority in starts:
            for number, rows in _by_round(node, change or {}, priority).items():
                self._put((*outer, number), slot, rows)
                gone = {row: -weight for row, weight in rows.items()}
                self._put((*outer, number + 1), slot, gone)
        for slot, change in zip(body.outside, changes[cut:], strict=True):
            if change:
                self._put((*outer, 0), slot, change)

    def _put(self, version: Version, slot: int, delta: Delta) -> None:
        """Have a slot hold a difference at a version, with what it is to hold there already."""
        node = self.node
        assert isinstance(node, Iterate)
        if node.rounds is not None and version[-1] > node.rounds:
            return
        there = self.waiting.setdefault(version, {})
        if slot in there:
            add_into(there[slot], delta)
        else:
            there[slot] = dict(delta)
        self.schedule.add(version)


def _by_round(node: Iterate, change: Delta, priority: Any) -> dict[int, Delta]:
    """The rows of a start by the round in which they enter."""
    if priority is None:
        return {0: change} if change else {}
    found: dict[int, Delta] = {}
    for row, weight in change.items():
        at = priority(row)
        if type(at) is not int or at < 0:
            raise FunctionFailed(
                f"iterate: a priority is a round, 0 or more, and not {at!r}",
                row=row,
                created=node.place,
                remedy="a whole number; the step changed nothing",
            )
        found.setdefault(at, {})[row] = weight
    return found
