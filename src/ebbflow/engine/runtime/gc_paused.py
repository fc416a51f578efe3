"""Large epochs without the garbage collector.

Python looks for cycles of objects whenever many have been made, and goes over all there are. A
large epoch, a task, or a loop whatever the change, makes hundreds of thousands of rows, which have
none; the search would take nearly half of its time.

What a large epoch has brought stays, and would be gone over again by each of the next collections:
one of them takes some hundred milliseconds for a million rows, in the middle of some small step. So
behind a large epoch garbage is collected once, and what is left is *frozen*: the collector does not
look at it any more. Memory is freed as before when the last reference goes; only cycles that were
there then and are dropped later wait, until the view is closed or dropped, or has grown as much
again. Who has switched the collector off, or has frozen objects of their own, keeps it that way;
and `run(freeze=False)` never freezes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ClassVar, ParamSpec, TypeVar
from weakref import finalize

P = ParamSpec("P")
T = TypeVar("T")


def pausing_gc(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, with the garbage collector paused while it runs.

    >>> gc.enable()
    >>> pausing_gc(gc.isenabled)(), gc.isenabled()
    (False, True)
    """

    @wraps(function)
    def run(*args: P.args, **options: P.kwargs) -> T:
        ran = gc.isenabled()
        try:
            gc.disable()
            return function(*args, **options)
        finally:
            if ran:
                gc.enable()

    return run


FREEZE = 250_000
"""How many rows large epochs bring before anything is frozen. A collection costs as much as it
takes to load a part of them."""


class Freezer:
    """Keeps what large epochs of its owner have brought out of the collector's way."""

    owners: ClassVar[set[int]] = set()
    """Whose objects are frozen: when the last of them goes, all are looked at again."""

    def __init__(self) -> None:
        self.frozen = self.waiting = 0

    def loaded(self, rows: int) -> None:
        """So many rows have come in one large epoch. To freeze costs a collection, so it is done
        when as many have come as are frozen."""
        self.waiting += rows
        if self.waiting < max(FREEZE, self.frozen) or not gc.isenabled():
            return
        self.frozen, self.waiting = self.frozen + self.waiting, 0
        if not self.owners and gc.get_freeze_count():
            return
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self.owners.add(id(self))

    def until(self, owner: object) -> None:
        """Have `close` called when the owner is dropped."""
        finalize(owner, self.close).atexit = False

    def close(self) -> None:
        """Have the collector look at everything again, when no other owner is left."""
        if id(self) in self.owners:
            self.owners.remove(id(self))
            if not self.owners:
                gc.unfreeze()


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
