"""Large epochs without the garbage collector.

Python looks for cycles of objects whenever many have been made, and goes over all there are. A
large epoch, a task, or a loop whatever the change, makes hundreds of thousands of rows, which have
none; the search would take nearly half of its time.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def pause_gc() -> bool:
    """Stop the garbage collector; whether it ran, and is to be started again by `gc.enable()`."""
    ran = gc.isenabled()
    gc.disable()
    return ran


def pausing_gc(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, with the garbage collector paused while it runs.

    >>> pausing_gc(gc.isenabled)(), gc.isenabled()
    (False, True)
    """

    @wraps(function)
    def run(*args: P.args, **options: P.kwargs) -> T:
        ran = pause_gc()
        try:
            return function(*args, **options)
        finally:
            if ran:
                gc.enable()

    return run


def gc_paused(task: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """The same generator, with the garbage collector paused until it has given all.

    >>> @gc_paused
    ... def task(given):
    ...     for each in given:
    ...         yield gc.isenabled()
    >>> list(task("ab")), gc.isenabled()
    ([False, False], True)
    """

    @wraps(task)
    def run(*given: Any) -> Iterator[Any]:
        ran = pause_gc()
        try:
            yield from task(*given)
        finally:
            if ran:
                gc.enable()

    return run
