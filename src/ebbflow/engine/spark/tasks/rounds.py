"""The work of a loop in one round, in many tasks.

The driver leads the loops of an epoch (`leader`). Where a round has much to do, tasks do it: each
gets the rows whose keys are in its range, looks at the state of the last epoch and at what earlier
rounds of this one have written, and runs what would have run in the driver:

    LiftedTask    a stage of a body, at one version                                 by its key
    TriggerTask   a change of the rows that the facts of a lazy loop are joined     by that key
                  with: the derivations that come and go, and the rows are kept
    DeriveTask    what facts derive that come or go; nothing is kept                in any parts
    CountTask     derivations, counted for what they are of                         by that

A task gives lines, and its report last, as every task does. What has come of it at a version is at
the port `OUT`. At the port `LATER` is what it found out for a later version, which is said first.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ebbflow.engine.runtime.failure import explaining
from ebbflow.engine.runtime.gc_paused import gc_paused
from ebbflow.engine.runtime.versions import Version
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.report import Line
from ebbflow.engine.spark.tasks.task import EpochJob, Segment, StatefulTask, batches, lines_of
from ebbflow.engine.spark.tasks.transport import packed, pairs, replica_of, unpacked

OUT, LATER = 0, 1
Blobs = Mapping[int, list[bytes]]
Address = tuple[int, ...]
"""Which stage: its number in the plan; in a loop, then its number in the body; and so on."""


def stage_at(replica: Replica, address: Address) -> Any:
    """The stage with this address."""
    first, *rest = address
    stage: Any = replica.machine.stages[first]
    for number in rest:
        stage = stage.inside[number]
    return stage


@dataclass(frozen=True)
class RoundTask:
    """Some of the work of a stage in a round. `added` are the segments that earlier rounds have
    written."""

    job: EpochJob
    wave: int
    stage: Address
    added: tuple[Segment, ...]

    @abstractmethod
    def work(self, stage: Any, blobs: Blobs, token: str) -> Iterator[Line]:
        """What has arrived, by port, through the stage."""

    # ---- everything below is written with this ----

    @gc_paused
    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        blobs: dict[int, list[bytes]] = {}
        for _, port, blob in lines_of(given):
            blobs.setdefault(port, []).append(blob)
        if not blobs:
            yield from batches([])
            return
        replica = replica_of(self.job.program)
        task = StatefulTask(self.job, replica, self.wave, self.added)
        yield from batches(task.run(lambda: (self._worked(replica, blobs), {})))

    def _worked(self, replica: Replica, blobs: Blobs) -> list[Line]:
        machine, stage = replica.machine, stage_at(replica, self.stage)
        for container in stage.containers:
            machine.open.append(container)
            container.begin()
        with explaining(stage, machine.trusts(stage)):
            lines = list(self.work(stage, blobs, replica.token))
        replica.stage_changes()
        return lines


@dataclass(frozen=True)
class LiftedTask(RoundTask):
    """A stage of a body at a version. What it reads is at the ports of the same numbers, keys that
    are due at the next."""

    version: Version

    def work(self, stage: Any, blobs: Blobs, token: str) -> Iterator[Line]:
        stage.clear()
        stage.schedule.clear()
        reads = [unpacked(blobs.get(port, ())) for port in range(len(stage.reads))]
        if len(reads) in blobs:
            stage.later[self.version] = dict.fromkeys(unpacked(blobs[len(reads)]))
        out = stage.run_at(self.version, *reads)
        yield 0, OUT, packed(out, out.values(), token)
        for version, found in stage.later.items():
            weights = [1] * len(found) if stage.later_keys else found.values()
            yield 0, LATER, in_front(version, packed(found, weights, token))


def in_front(version: Version, blob: bytes) -> bytes:
    """A blob with its version.

    >>> version_and_blob(in_front((1, 2), b"rows"))
    ((1, 2), b'rows')
    """
    return json.dumps(version).encode() + b"\n" + blob


def version_and_blob(blob: bytes) -> tuple[Version, bytes]:
    """What `in_front` has put together."""
    version, _, rest = blob.partition(b"\n")
    return tuple(json.loads(version)), rest


@dataclass(frozen=True)
class TriggerTask(RoundTask):
    """A change of what the facts of a term are joined with, `term` by its number."""

    term: int

    def work(self, stage: Any, blobs: Blobs, token: str) -> Iterator[Line]:
        yield _derivations(stage.trigger_part(self.term, unpacked(blobs[OUT])), token)


@dataclass(frozen=True)
class DeriveTask(RoundTask):
    """What facts derive; each is sent with its round. They come (1) or go (-1)."""

    sign: int

    def work(self, stage: Any, blobs: Blobs, token: str) -> Iterator[Line]:
        yield _derivations(stage.derive_part(list(pairs(blobs[OUT])), self.sign), token)


@dataclass(frozen=True)
class CountTask(RoundTask):
    """Derivations, to be added (1) or taken out (-1). What comes back is of what they are, with the
    best derivation that it has now."""

    sign: int

    def work(self, stage: Any, blobs: Blobs, token: str) -> Iterator[Line]:
        derived = [(what, at, count) for what, (at, count) in pairs(blobs[OUT])]
        best = stage.count_part(derived, self.sign)
        yield 0, OUT, packed(best, best.values(), token)


def _derivations(found: Any, token: str) -> Line:
    counts: Any = [(at, count) for _, at, count in found]
    return 0, OUT, packed([what for what, _, _ in found], counts, token)
