"""How many elements a second go through five processors in a row, and in how much memory?"""

from __future__ import annotations

import tracemalloc
from collections import deque
from itertools import count, islice
from time import perf_counter

from harness import Row, main

from ebbflow.stream import (
    Processor,
    chunks,
    derivative,
    elementwise,
    filter_each,
    fuse,
    map_each,
    prefix_sum,
)


def triple(n: int) -> int:
    return 3 * n


def is_even(n: int) -> bool:
    return n % 2 == 0


def running_max(best: int, n: int) -> tuple[int, list[int]]:
    best = max(best, n)
    return best, [best]


PROGRAM = (
    map_each(triple)
    >> filter_each(is_even)
    >> prefix_sum()
    >> derivative()
    >> elementwise(running_max, state=0)
)


def by_hand(size: int) -> int:
    """The same five stages as one loop."""
    total = before = best = 0
    for n in range(size):
        n = triple(n)
        if is_even(n):
            total += n
            step, before = total - before, total
            best = max(best, step)
    return best


def measure(quick: bool) -> list[Row]:
    size = 20_000 if quick else 1_000_000
    begin = perf_counter()
    expected = by_hand(size)
    hand = perf_counter() - begin
    found = []
    for name, program in [("five stages", PROGRAM), ("fused", fuse(PROGRAM))]:
        for piece in [1, 16, 1024]:
            stream = program.run(chunks(range(size), piece))
            begin = perf_counter()
            last = next(reversed(deque((out for out in stream if out), maxlen=1)[-1]))
            seconds = perf_counter() - begin
            assert last == expected
            found.append(
                {"program": name, "elements": size, "elements a piece": piece,
                 "elements a second": int(size / seconds), "times one loop by hand": seconds / hand,
                 "peak kB, any length": peak_memory(program, piece) / 1e3}
            )  # fmt: skip
    return found


def peak_memory(program: Processor, piece: int) -> float:
    """Peak bytes while 20,000 elements pass, after a warm-up: what a run of any length needs."""
    outputs = program.run(chunks(count(), piece))
    next(islice(outputs, 100, None))
    tracemalloc.start()
    deque(islice(outputs, 20_000 // piece), maxlen=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


if __name__ == "__main__":
    main(str(__doc__), measure)
