"""Interrupts at every instruction: what Ctrl-C, or a want of memory, may do to a call.

`interrupted` runs a call in which an error is raised before the n-th instruction that this package
executes: counted from the beginning of the call, or from when a file was given its final name,
which is where an epoch begins to be so. A second error may follow a number of instructions after
the first, in what puts things right. One run for each number covers everything that can happen.

A sweep that leaves numbers out draws them at random (`instants`), other ones every time, so that
many runs cover what one leaves out. They follow from the seed, which is printed.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from random import Random
from types import FrameType
from typing import Any

import ebbflow

PACKAGE = os.path.dirname(ebbflow.__file__)
VARIABLE = "EBBFLOW_INSTANTS"
SEED = os.environ.get(VARIABLE) or str(Random().getrandbits(32))
"""What the numbers of all sweeps in this process follow from."""


def dice_of(*what: object) -> Random:
    """A source of random numbers for a sweep; the seed is printed, for who wants to repeat it."""
    print(f"{VARIABLE}={SEED} repeats these interrupts")
    return Random(f"{SEED} {what}")


def instants(first: int, last: int, apart: int = 1) -> Iterator[int]:
    """Numbers of instructions, growing, from `first` on and before `last`: one at random of every
    `apart`, and each of them where that is 1. When a sweep ends, what interrupts have left open is
    collected."""
    dice = dice_of(first, last, apart)
    try:
        for begin in range(first, last, apart):
            yield begin + dice.randrange(min(apart, last - begin))
    finally:
        collect()


class Interrupts:
    """Raises `error` at the given numbers of instructions, the second counted from the first."""

    def __init__(self, points: list[int], error: type[BaseException]) -> None:
        self.points, self.error = points, error
        self.passed = self.raised = 0

    def arm(self, frame: FrameType | None) -> None:
        """Count from here on, in this frame, those that called it, and those it will call."""
        sys.settrace(self._enter)
        while frame is not None:
            self._enter(frame, "call", None)
            frame = frame.f_back

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith((PACKAGE, "<ebbflow")):
            return None
        frame.f_trace, frame.f_trace_opcodes, frame.f_trace_lines = self._count, True, False
        return self._count

    def _count(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            self.passed += 1
            if self.raised < len(self.points) and self.passed == self.points[self.raised]:
                self.raised, self.passed = self.raised + 1, 0
                if self.raised < len(self.points):
                    sys.setprofile(self._again)  # as tracing ends with an error in a trace function
                raise self.error
        return self._count

    def _again(self, frame: FrameType, event: str, _: Any) -> None:
        sys.setprofile(None)
        self.arm(frame)


def interrupted(
    call: Callable[[], Any],
    *points: int,
    error: type[BaseException] = KeyboardInterrupt,
    published: bool = True,
) -> int:
    """How many of the errors were raised in a call; whether it raised them itself or not. When
    none of those that were to be was, which is how a sweep ends, what those before have left open
    is collected."""
    interrupts, traced, collecting = Interrupts(list(points), error), sys.gettrace(), gc.isenabled()
    link: Any = os.link if published else None  # not every system has it

    def linked(*args: Any) -> None:
        link(*args)
        interrupts.arm(sys._getframe(1))

    if published:
        os.link = linked  # type: ignore[assignment]
    try:
        if not published:
            sys.settrace(interrupts._enter)
        call()
    except (error, ebbflow.EbbflowError) as raised:
        if not interrupts.raised or (error is not MemoryError and type(raised) is not error):
            raise
    finally:
        sys.settrace(traced)
        sys.setprofile(None)
        if published:
            os.link = link
        if collecting:  # no signal is looked at between `finally` and the call that ends a pause
            gc.enable()
    if points and not interrupts.raised:
        collect()
    return interrupts.raised


def collect() -> None:
    """Collect what interrupts have left open, which is nothing to warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
