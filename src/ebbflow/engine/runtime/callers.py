"""Whether a method is under way in those who called, asked of the stack.

A flag that is set before and cleared after would do, but for interrupts: one that comes between the
two, or in the `finally` that clears it, leaves the flag set for ever.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
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
    frame: FrameType | None = sys._getframe(1)
    code, skipped = method.__code__, 0
    while frame is not None:
        if skipped > skip and frame.f_code is code and frame.f_locals.get("self") is owner:
            return True
        frame, skipped = frame.f_back, skipped + 1
    return False
