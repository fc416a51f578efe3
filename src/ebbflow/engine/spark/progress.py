"""Progress: one line for an epoch that takes its time, on a terminal.

    epoch 7: 45 of 96 tasks, 3 s
    epoch 7: 1,000,000 rows in 4.1 s, 243,902 rows/s

The line is there from the third second on, and is written over and over by a thread that asks Spark
how far its jobs are; a session of Spark Connect tells it. Whatever goes wrong with that is nobody's
business: the epoch goes on.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from shutil import get_terminal_size
from threading import Event, Thread
from time import perf_counter
from types import TracebackType
from typing import Any

from ebbflow.engine.spark.connect import is_connect

AFTER = 2.0
"""An epoch that takes fewer seconds than this is not shown."""
EVERY = 0.25


class Progress:
    """Shows how far an epoch is, while it runs: `with Progress(...) as shown`.

    `wanted` is whether to; without it, it is shown on a terminal only. `rows` are told at the end.

    >>> with Progress(None, "epoch 1", wanted=False) as shown:
    ...     shown.rows = 10
    """

    def __init__(
        self, session: Any, what: str, wanted: bool | None = None, *, after: float | None = None
    ) -> None:
        self.session, self.what = session, what
        self.after = AFTER if after is None else after
        self.rows: int | None = None
        self._wanted = _is_terminal() if wanted is None else wanted
        self._over = Event()
        self._thread: Thread | None = None
        self._width = 0
        self._before: set[int] = set()
        self._reported: dict[str, tuple[int, int]] = {}
        """On Connect: of every query that runs, the tasks that are done, and all of them."""

    def __enter__(self) -> Progress:
        if self._wanted:
            with suppress(Exception):
                self._started = perf_counter()
                if is_connect(self.session):
                    self.session.registerProgressHandler(self._tell)
                self._thread = Thread(target=self._watch, name="ebbflow progress", daemon=True)
                self._thread.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is None:
            return
        with suppress(Exception):
            self._over.set()
            if is_connect(self.session):
                self.session.removeProgressHandler(self._tell)
            self._thread.join(1.0)
            if self._width:
                self._write(self._end(error_type), "\n")

    # ---- what is written ----

    def _watch(self) -> None:
        with suppress(Exception):
            self._before = set(self._tracker().getActiveJobsIds())
        if self._over.wait(self.after):
            return
        while True:
            with suppress(Exception):
                self._write(self._now())
            if self._over.wait(EVERY):
                return

    def _now(self) -> str:
        done, total = 0, 0
        with suppress(Exception):
            done, total = self._tasks()
        far = f"{done:,} of {total:,} tasks, " if total else ""
        return f"{self.what}: {far}{self._seconds():.0f} s"

    def _end(self, failed: type[BaseException] | None) -> str:
        seconds = self._seconds()
        if failed is not None:
            return f"{self.what}: failed after {seconds:.1f} s"
        if self.rows is None:
            return f"{self.what}: {seconds:.1f} s"
        speed = self.rows / max(seconds, 1e-9)
        return f"{self.what}: {self.rows:,} rows in {seconds:.1f} s, {speed:,.0f} rows/s"

    def _write(self, text: str, end: str = "") -> None:
        text = text[: max(get_terminal_size().columns - 1, 20)]
        sys.stderr.write(f"\r{text.ljust(self._width)}{end}")
        sys.stderr.flush()
        self._width = len(text)

    def _seconds(self) -> float:
        return perf_counter() - self._started

    # ---- how far it is ----

    def _tracker(self) -> Any:
        return self.session.sparkContext.statusTracker()

    def _tasks(self) -> tuple[int, int]:
        """Of the jobs that began since: the tasks that are done, and all of them."""
        done = total = 0
        if is_connect(self.session):
            for finished, known in list(self._reported.values()):
                done, total = done + finished, total + known
            return done, total
        tracker = self._tracker()
        for job in set(tracker.getActiveJobsIds()) - self._before:
            info = tracker.getJobInfo(job)
            for stage in () if info is None else info.stageIds:
                found = tracker.getStageInfo(stage)
                if found is not None:
                    done += found.numCompletedTasks
                    total += found.numTasks
        return done, total

    def _tell(self, stages: Any, inflight_tasks: int, operation_id: str, done: bool) -> None:
        found = [(each.num_completed_tasks, each.num_tasks) for each in stages or ()]
        if done:
            self._reported.pop(operation_id, None)
        elif found:
            self._reported[operation_id] = sum(n for n, _ in found), sum(n for _, n in found)


def _is_terminal() -> bool:
    try:
        return bool(sys.stderr.isatty())
    except Exception:
        return False
