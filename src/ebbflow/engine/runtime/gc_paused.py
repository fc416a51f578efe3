"""Large epochs without the garbage collector.

Python looks for cycles of objects whenever many have been made, and goes over all there are. A
large epoch, a task, or a loop whatever the change, makes hundreds of thousands of rows, which have
none; the search would take nearly half of its time.

What a large epoch has brought stays, and would be gone over by the next collections: two of those
that are made every few hundred objects, which take a fifth of the time of a stream of such epochs,
and then one of everything, some hundred milliseconds for a million rows in the middle of some small
step. So behind a load, and behind large epochs that follow each other closely, what is there is
*frozen*: the collector does not look at it any more, and that takes no time at all. Memory is freed
as before when the last reference goes; only cycles that are dropped later wait, until the view is
closed or dropped, or everything is looked at again: before a large epoch, when as many rows have
come again, and so much time has passed that looking takes a hundredth of it. Between epochs that do
not follow each other closely others may have made many cycles, so those freeze nothing. Who has
switched the collector off, or has frozen objects of their own, keeps it that way; and
`run(freeze=False)` never freezes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import wraps
from time import perf_counter
from typing import Any, ClassVar
from weakref import finalize

FREEZE = 250_000
"""How many rows are a load, whose epoch is frozen whatever was before it."""
BUSY = 4
"""An epoch follows another closely if the time between them is at most so many times what the other
took: a stream of rows that have to be read and checked."""
PATIENCE = 1e-4
"""How many seconds for each row have to pass before everything is looked at again, which takes some
microsecond for each."""


class Freezer:
    """Keeps what large epochs of its owner have brought out of the collector's way."""

    owners: ClassVar[set[int]] = set()
    """Whose objects are frozen: when one of them goes, all are looked at again."""

    def __init__(self) -> None:
        self.frozen = self.waiting = 0
        """Rows that came until everything was looked at last, and since."""
        self.apart = 0
        """Rows that came since anything was frozen last."""
        self.looked = perf_counter()
        self.freezing = self.refused = False
        self.begun = self.ended = self.took = 0.0

    def begin(self, rows: int) -> None:
        """A large epoch of so many rows begins; `end` freezes what it has brought, if that is to
        be. Garbage that is there is collected before a load, and when it is time again."""
        self.begun = now = perf_counter()
        close = now - self.ended <= BUSY * self.took
        self.apart += rows
        load = self.apart >= FREEZE
        self.freezing = (close or load) and gc.isenabled() and not self._refused(load)
        if not self.freezing:
            if load:
                self.apart = 0
            return
        if load or self._due(now):
            gc.unfreeze()
            gc.collect()
            self.looked, self.frozen = now, self.frozen + self.waiting + self.apart
            self.waiting = self.apart = 0
        self.waiting, self.apart = self.waiting + self.apart, 0

    def end(self) -> None:
        """The epoch has run."""
        if self.freezing:
            self.owners.add(id(self))
            gc.freeze()
        self.ended = perf_counter()
        self.took = self.ended - self.begun

    def _refused(self, load: bool) -> bool:
        """Whether somebody else has frozen objects. Python counts them all when it is asked, so
        where there were some, it is not asked again before the next load."""
        if self.owners:
            return False
        if load or not self.refused:
            self.refused = gc.get_freeze_count() > 0
        return self.refused

    def _due(self, now: float) -> bool:
        rows = self.frozen + self.waiting
        return self.waiting >= max(FREEZE, self.frozen) and now - self.looked >= PATIENCE * rows

    def until(self, owner: object) -> None:
        """Have `close` called when the owner is dropped."""
        finalize(owner, self.close).atexit = False

    def close(self) -> None:
        """Have the collector look at everything again; what other owners have is frozen after that.
        An owner that is part of a cycle may be among what it finds."""
        if id(self) in self.owners:
            self.owners.remove(id(self))
            gc.unfreeze()
            if self.owners and gc.isenabled():
                gc.collect()
                if self.owners:
                    gc.freeze()


def gc_paused(task: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """The same generator, with the garbage collector paused until it has given all.

    >>> @gc_paused
    ... def task(given):
    ...     for each in given:
    ...         yield gc.isenabled()
    >>> gc.enable()
    >>> list(task("ab")), gc.isenabled()
    ([False, False], True)
    """

    @wraps(task)
    def run(*given: Any) -> Iterator[Any]:
        ran = gc.isenabled()
        try:
            gc.disable()
            yield from task(*given)
        finally:
            if ran:
                gc.enable()

    return run
