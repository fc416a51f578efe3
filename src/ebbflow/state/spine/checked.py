"""Which chunks have been checked, for processes that are forked from one.

A chunk is checked when a process first reads it. Where many short-lived processes read the same
state, as Spark's workers do, each would check all of it again. A `Checked` made before they are
forked is memory that they share: what one has checked the others need not.

A chunk is known by its file: which one it is, how long, and when it was last written to. So what is
in a copy, or in a file that was written to since, is checked again.

It is a table of 64-bit fingerprints. One that is lost, as two processes wrote at the same place,
is only checked again.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

SLOTS = 1 << 17
NEAR = 8


class Checked:
    """Fingerprints in shared memory.

    >>> checked = Checked()
    >>> at = checked.at(("file", 0, 12345))
    >>> at in checked
    False
    >>> checked.add(at)
    >>> at in checked
    True
    """

    def __init__(self) -> None:
        self.table: Any = np.frombuffer(mmap.mmap(-1, 8 * (SLOTS + NEAR)), np.uint64)

    @staticmethod
    def at(what: tuple[Any, ...]) -> int:
        """The fingerprint of a chunk; the same in every process that is forked from this one."""
        return (hash(what) & (1 << 64) - 1) or 1

    def __contains__(self, mark: int) -> bool:
        begin = mark % SLOTS
        return np.uint64(mark) in self.table[begin : begin + NEAR]

    def add(self, mark: int) -> None:
        """Remember a chunk; where there is no room near its place, instead of another."""
        begin = mark % SLOTS
        near = self.table[begin : begin + NEAR]
        free = np.flatnonzero(near == 0)
        near[int(free[0]) if len(free) else mark >> 32 & NEAR - 1] = mark
