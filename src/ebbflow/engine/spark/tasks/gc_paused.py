"""Tasks without the search for cycles.

Python looks for cycles whenever many objects have been made, and goes over all there are. A task
makes hundreds of thousands of rows, which have none; the search would take nearly half of its time.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any


def gc_paused(task: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """The same generator, without a search until it has given all.

    >>> @gc_paused
    ... def task(given):
    ...     for each in given:
    ...         yield gc.isenabled()
    >>> list(task("ab")), gc.isenabled()
    ([False, False], True)
    """

    @wraps(task)
    def run(*given: Any) -> Iterator[Any]:
        on = gc.isenabled()
        gc.disable()
        try:
            yield from task(*given)
        finally:
            if on:
                gc.enable()

    return run
