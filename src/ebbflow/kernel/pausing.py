"""Many objects made at once, without the garbage collector.

Python looks for cycles of objects whenever some hundred have been made. Rows have none, and to look
through those that were just made takes a third of the time of making them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

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
