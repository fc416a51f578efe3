"""Whether a method is under way in those who called, asked of the stack.

A flag that is set before and cleared after would do, but for interrupts: one that comes between the
two, or in the `finally` that clears it, leaves the flag set for ever.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def under_way(method: Callable[..., Any], owner: object, skip: int = 0) -> bool:
    """Whether `method` of `owner` is running in the callers of the one who asks; its own frame, and
    `skip` callers, are not looked at.

    >>> class Bell:
    ...     def ring(self, times):
    ...         again = under_way(Bell.ring, self)
    ...         return [again, *(self.ring(times - 1) if times else [])]
    >>> Bell().ring(2)
    [False, True, True]
    """
    frame, code = sys._getframe(2 + skip), method.__code__
    while frame is not None:
        if frame.f_code is code and frame.f_locals.get("self") is owner:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
