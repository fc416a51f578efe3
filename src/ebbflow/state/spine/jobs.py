"""Jobs: large merges, done a little with every epoch.

A job merges some neighbouring segments of a spine into a file of its own. It is paid with *credit*:
every entry that is written gives some, every entry that is read by a merge costs one. As an entry
is merged about once for each size of segment, that much credit per entry is enough to have each job
done before the next one of its size is due; so there is never much to wait for, and no epoch pays
for all of it. The longest an epoch may have to wait is for one step, and the writing of one chunk.

A job that fails, for want of room say, is given up and begun again later. The segments it was about
to replace are still there, and the epoch is none the worse for it. So is one that an interrupt has
cut short in the middle of a step, as nobody can tell what it has read and not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from ebbflow.state.spine.files import Files
from ebbflow.state.spine.part import EntryBatch
from ebbflow.state.spine.segment import Ref, Segment, SegmentWriter
from ebbflow.state.spine.spine import Spine

Opened = Callable[[Ref], Segment]
PATIENCE = 64
"""How many epochs to wait, at most, before a job that failed is begun again."""


class MergeJob:
    """One merge under way: the segments of a spine from `begin` on."""

    def __init__(self, files: Files, name: str, spine: Spine, begin: int, opened: Opened) -> None:
        self.spine = spine
        self._opened = opened
        self.segments = spine.segments[begin:]
        self.size = sum(map(len, self.segments))
        self.done = False
        self.midway = False
        """Whether it is in the middle of a step."""
        self._files = files
        self._steps = spine.merge(self.segments, last=begin == 0)
        self._writer = files.create(name)
        self._out: SegmentWriter | None = None

    def step(self) -> int:
        """Go on for a step; gives how many entries it read."""
        self.midway = True
        found = next(self._steps, None)
        read, part = found or (0, None)
        if found is None:
            self._finish()
        elif part is not None:
            self._add(part)
        self.midway = False
        return read

    def _add(self, part: EntryBatch) -> None:
        if self._out is None:
            self._out = SegmentWriter(part, self._writer)
        self._out.add(part)
        self._writer.ease()

    def _finish(self) -> None:
        ref = None if self._out is None else self._out.finish()
        self._writer.sync()
        self._writer.close()
        self._files.settle()
        begin = self.spine.segments.index(self.segments[0])
        new = [] if ref is None else [self._opened(ref)]
        self.done = True  # first: from when the segments are replaced, its file is needed
        self.spine.segments[begin : begin + len(self.segments)] = new

    @property
    def made(self) -> str:
        """The file it writes."""
        return self._writer.name

    @property
    def written(self) -> int:
        """How many bytes it has written."""
        return self._writer.at

    def give_up(self) -> None:
        """Stop, and leave nothing behind."""
        self._writer.close()
        if not self.done:
            with suppress(OSError):
                self._files.remove(self.made)


class MergeJobs:
    """The jobs of a store. Of one spine there may be several, each on newer segments than the one
    before; the smallest goes first.
    """

    def __init__(self, files: Files, prefix: str, opened: Opened) -> None:
        self._files = files
        self._opened = opened
        self._prefix = prefix
        self._running: list[MergeJob] = []
        self._count = 0
        self._credit = 0
        self._failures = 0
        self._pause = 0
        self.written = 0
        self.made: set[str] = set()
        """The files that were written."""
        self.error: Exception | None = None
        """Why a job failed last."""

    def __bool__(self) -> bool:
        return bool(self._sound())

    def _sound(self) -> list[MergeJob]:
        """The jobs under way. One that an interrupt has cut short is given up or done by now."""
        for job in tuple(self._running):
            if job.done:
                self.made.add(job.made)
                self._running.remove(job)
            elif job.midway:
                job.give_up()
                self._running.remove(job)
        return self._running

    def free(self, spine: Spine) -> int:
        """From which segment on no job is at work."""
        last = [job.segments[-1] for job in self._sound() if job.spine is spine]
        return max((spine.segments.index(segment) + 1 for segment in last), default=0)

    def files(self) -> set[str]:
        """Files that jobs still read."""
        refs = [segment.ref for job in self._sound() for segment in job.segments]
        return {ref.file for ref in refs if ref is not None}

    def pay(self, entries: int, spines: Iterable[Spine]) -> None:
        """Begin what is due, and go on for what an epoch of so many entries is good for."""
        if self._pause:
            self._pause -= 1
            return
        known = list(spines)
        self.begin(known)
        if not self._sound():
            self._credit = 0
            return
        sizes = max(len(spine) for spine in known).bit_length() // 2
        self._credit += entries * sizes
        self._credit -= self.work(self._credit)

    def begin(self, spines: Iterable[Spine], *, small: bool = False) -> None:
        """Begin the jobs that are due; `small` ones are left to the next epoch otherwise."""
        for spine in spines:
            free = self.free(spine)
            at = spine.due(spine.segments[free:], first=not free)
            if at is not None:
                total = sum(map(len, spine.segments[free + at :]))
                if small or total > spine.chunk:
                    self.start(spine, free + at)

    def start(self, spine: Spine, begin: int) -> None:
        """Begin to merge the segments of a spine from `begin` on."""
        self._count += 1
        name = f"merge-{self._prefix}-{self._count:04d}"
        try:
            self._running.append(MergeJob(self._files, name, spine, begin, self._opened))
        except OSError as error:
            self.error = error

    def work(self, entries: int) -> int:
        """Go on until so many entries were read; gives how many were."""
        read = 0
        while read < entries and (running := self._sound()):
            job = min(running, key=lambda job: job.size)
            try:
                read += job.step()
            except Exception as error:
                self.error = error
                self.give_up()
                self._failures += 1
                self._pause = min(2**self._failures, PATIENCE)
                break
            if job.done:
                self._failures = 0
                self.written += job.written
        self._sound()
        return read

    def only(self, spines: Iterable[Spine]) -> None:
        """Stop the jobs on spines that are no more."""
        known = {id(spine) for spine in spines}
        for job in [job for job in self._running if id(job.spine) not in known]:
            job.give_up()
            self._running.remove(job)

    def give_up(self) -> None:
        """Stop all jobs."""
        self.only(())
        self._credit = 0
