"""Leader: the driver leads a loop through its rounds.

A loop reads all of its rows together and has one schedule, so it is in one place, the driver, with
what is waiting for which round. A round that has little to do runs right there: its state is
fetched as a task would fetch it, and stays for the next round. Where a stage of a round has more
than `small` rows to look at, a job does it, in tasks by key (`rounds`).

Before a job, what was done here to the state it looks at is written as a piece, for its tasks to
see; what they write is added to what is read here. So the state at any moment is that of the last
epoch, and the segments that this one has written so far, in order. All of them are in the one
report of the loop, and become part of the state with the epoch or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from ebbflow.engine.runtime.parts import StatePart, written
from ebbflow.engine.runtime.stage import Stage, fetched, nested
from ebbflow.engine.spark.tasks.replica import Delta, Replica
from ebbflow.engine.spark.tasks.report import REPORT, Line, TaskReport
from ebbflow.engine.spark.tasks.rounds import (
    LATER,
    OUT,
    Address,
    CountTask,
    DeriveTask,
    LiftedTask,
    RoundTask,
    TriggerTask,
    version_and_blob,
)
from ebbflow.engine.spark.tasks.task import EpochJob, Segment
from ebbflow.engine.spark.tasks.transport import packed, pairs, sent, unpacked
from ebbflow.engine.spark.tasks.waves import Waves
from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import Index
from ebbflow.state.spine import Spine
from ebbflow.state.spine.piece import Piece
from ebbflow.state.tallies import Tallies
from ebbflow.zset import add_into

RunJob = Callable[[EpochJob, RoundTask, list[Line]], list[Line]]
"""Runs a task for each number that lines are for, and gives the lines of all."""


class WentWrong(BaseException):
    """What went wrong in a job, on its way out. It is no Exception: it says what has to be said of
    the stage already, and must not be explained as a failure of the loop around."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Leader:
    """Leads the loops of one wave; somebody has to `run_job`. It is what loops ask who may do a
    part of their work (`ebbflow.engine.runtime.elsewhere`)."""

    def __init__(
        self, job: EpochJob, replica: Replica, waves: Waves, wave: int, small: int, run_job: RunJob
    ) -> None:
        self.job, self.replica, self.waves, self.wave = job, replica, waves, wave
        self.small, self.run_job = small, run_job
        self.segments: list[Segment] = []
        """What has been written so far, the first first."""
        self.jobs: dict[int, int] = {}
        """How many jobs each loop has had, by its number."""
        self._addresses: dict[int, Address] = {}
        self._parts: dict[int, StatePart] = {id(part.owner): part for part in replica.parts}
        self._snapshot: Any = None
        self._summaries: dict[int, set[Any]] = {}
        """Of what tasks have counted the derivations, and told no more than the best, by loop."""

    def lead(self, arrived: Mapping[int, Delta]) -> tuple[dict[int, Delta], TaskReport]:
        """Run the loops on what has arrived for them, by port: rows by slot for later waves, and a
        report of it."""
        replica, job = self.replica, self.job
        loops = [stage for stage, _ in self.waves.waves[self.wave].loops]
        piece = Piece(job.files, job.epoch, uuid4().hex)
        try:
            self._snapshot = job.snapshot()
            replica.open(self._snapshot)
            for stage in loops:
                self._join(stage, (replica.machine.stages.index(stage),))
            made = replica.loops(self.waves, self.wave, arrived)
            for name, spine in replica.changed_spines():
                piece.add(name, spine)
            self.segments += piece.finish()
            jobs = list(self.jobs.items())
            rounds = replica.rounds()
            return made, TaskReport(
                self.wave, self.segments, stats=replica.stats(), jobs=jobs, rounds=rounds
            )
        except BaseException as error:
            piece.abandon()
            if isinstance(error, WentWrong):
                raise error.error from error.error.__cause__
            raise
        finally:
            each: Any
            for each, _ in nested(loops):
                if each.looping:
                    each.elsewhere = None
            replica.detach()

    def _join(self, stage: Any, address: Address) -> None:
        """Be asked by a loop, and by those inside it."""
        self._addresses[id(stage)] = address
        if stage.looping:
            stage.elsewhere = self
        for number, each in enumerate(stage.inside):
            self._join(each, (*address, number))

    # ---- stages of a body ----

    def run_at(self, stage: Any, version: Any, reads: list[Any]) -> Delta | None:
        """What a stage of a body does at a version, where that is much."""
        due = stage.later.get(version, {}) if stage.later_keys else {}
        if sum(len(each) for each in (*reads, due) if each) <= self.small:
            return None
        self._hand_over(stage.containers, forget=True)
        lines: list[Line] = []
        for port, (side, change) in enumerate(zip(stage.sides, reads, strict=True)):
            lines += self._by_key(port, side.grouped(change))
        lines += self._by_key(len(reads), {key: [(key, 1)] for key in due})
        found = self._done(stage, LiftedTask, lines, version)
        waited = stage.later.pop(version, {})
        out: Delta = {} if stage.later_keys else waited
        add_into(out, unpacked(found[OUT]))
        for blob in found.get(LATER, ()):
            at, rest = version_and_blob(blob)
            waiting, more = stage.later.setdefault(at, {}), unpacked([rest])
            if stage.later_keys:
                waiting.update(dict.fromkeys(more))
            else:
                add_into(waiting, more)
            stage.schedule.add(at)
        return out

    # ---- lazy loops ----

    def triggered(self, stage: Any, term: Any, change: Delta) -> Any:
        """The derivations that come and go with a change of what facts are joined with."""
        if len(change) <= self.small:
            return None
        lines = self._by_key(OUT, term.theirs.grouped(change))
        return self._derivations(
            self._done(stage, TriggerTask, list(lines), stage.terms.index(term))
        )

    def derived(self, stage: Any, facts: list[tuple[Any, Any]], sign: int) -> Any:
        """What facts derive that come or go."""
        if len(facts) <= self.small or stage.pairs:
            return None
        self._hand_over([term.theirs for term in stage.terms if term.theirs is not None])
        tasks, token = self.job.tasks, self.replica.token
        lines = []
        for task in range(tasks):
            begin, end = (len(facts) * at // tasks for at in (task, task + 1))
            some = facts[begin:end]
            if some:
                blob = packed([fact for fact, _ in some], [at for _, at in some], token)
                lines.append((task, OUT, blob))
        return self._derivations(self._done(stage, DeriveTask, lines, sign))

    def counted(self, stage: Any, derived: Any, sign: int) -> bool:
        """Count derivations, where these are many. Here then are the tables with no more than the
        best of each; where more is wanted, they are fetched."""
        tables, summaries = stage.derivations, self._summaries.setdefault(id(stage), set())
        whats = [what for what, _, _ in derived]
        if len(derived) <= self.small:
            for what in summaries.intersection(whats) if summaries else ():
                summaries.discard(what)
                tables.values.pop(what, None)
                tables.backing.resident.pop(what, None)
            return False
        self._hand_over([tables])
        counts = [(at, count) for _, at, count in derived]
        lines = self._routed(OUT, whats, whats, counts)
        best = dict(pairs(self._done(stage, CountTask, list(lines), sign)[OUT]))
        for what, at in best.items():
            tables.values[what] = {} if at is None else {at: 1}
        tables.backing.resident.update(dict.fromkeys(best))
        summaries.update(best)
        fetched(stage.facts, best)
        return True

    @staticmethod
    def _derivations(found: Mapping[int, list[bytes]]) -> Any:
        return [(what, at, count) for what, (at, count) in pairs(found[OUT])]

    # ---- jobs ----

    def _by_key(self, port: int, found: Mapping[Any, Iterable[tuple[Any, int]]]) -> Iterator[Line]:
        """Lines with rows that are by key, for the tasks that have the keys."""
        keyed = [(key, row, weight) for key, some in found.items() for row, weight in some]
        if keyed:
            keys, rows, weights = map(list, zip(*keyed, strict=True))
            yield from self._routed(port, keys, rows, weights)

    def _routed(
        self, port: int, keys: list[Any], rows: list[Any], weights: list[Any]
    ) -> Iterator[Line]:
        for task, blob in sent(keys, rows, weights, self.job.tasks, self.replica.token):
            yield task, port, blob

    def _done(
        self, stage: Stage, task_class: Any, lines: list[Line], *more: Any
    ) -> dict[int, list[bytes]]:
        """Have tasks do some of the work of a stage: what they give, by port."""
        address = self._addresses[id(stage)]
        self.jobs[address[0]] = self.jobs.get(address[0], 0) + 1
        mine = {self._parts[id(each)].name for each in stage.containers}
        added = tuple(each for each in self.segments if each[0] in mine)
        task = task_class(self.job, self.wave, address, added, *more)
        found: dict[int, list[bytes]] = {OUT: []}
        reports = []
        try:
            for _, port, blob in self.run_job(self.job, task, lines):
                if port == REPORT:
                    reports.append(TaskReport.read(blob))
                else:
                    found.setdefault(port, []).append(blob)
            self._take([segment for report in reports for segment in report.segments])
            for report in reports:
                report.raise_error()
        except Exception as error:
            raise WentWrong(error) from error
        return found

    def _hand_over(self, containers: Iterable[Any], *, forget: bool = False) -> None:
        """Write what was done here to containers, for tasks to see; where these will change them,
        `forget` what is here of them."""
        piece = Piece(self.job.files, self.job.epoch, uuid4().hex)
        for container in containers:
            part = self._parts[id(container)]
            spine = Spine(part.layout, part.keys, part.rows, plain=not self.job.unpickle)
            for change in written(container):
                if isinstance(container, Cells):
                    change = {key: value or ABSENT for key, value in change.items()}
                spine.append(change)
            if spine.staged:
                piece.add(part.name, spine)
            _forget_journal(container)
            if forget:
                container.backing.reload()
        self._take(piece.finish())

    def _take(self, segments: Sequence[Segment]) -> None:
        """Have segments that were written be part of what is read here; those of one part in the
        order of their hashes."""
        known = {part.name: part.owner.backing.kept for part in self._parts.values()}
        opened = [(self._snapshot.piece(each[2]), each) for each in segments]
        for segment, each in sorted(opened, key=lambda pair: pair[0].firsts[0]):
            self.segments.append(each)
            known[each[0]].segments.append(segment)


def _forget_journal(container: Any) -> None:
    """Have what was done to a container be written by somebody else: also the rows of an index that
    wait for their keys to be brought here, as they will come with these. A loop holds on to the
    entry that is open for cells."""
    if isinstance(container, Cells) and not isinstance(container, Tallies):
        for entry in container.journal or ():
            entry.clear()
        return
    container.journal.clear()
    if isinstance(container, Index):
        container.pending.clear()
