"""A soak: random changes go through a stream into a view for a long time, and the process is killed
now and then. The data stay as many as they are, so what the process and the state take must, too.

    EBBFLOW_SOAK=3600 pytest -m slow tests/spark/test_soak.py     for an hour; a minute without
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

import pytest
from tests.spark import live_feed as feed

SECONDS = float(os.environ.get("EBBFLOW_SOAK", "60"))
LIFE = max(20.0, min(600.0, SECONDS / 4))
"""For so many seconds a process lives at most, once it has begun."""
FEWEST = 12
"""It makes so many epochs at least."""


class Sample(NamedTuple):
    """What there is at some moment of a process: epochs it has made, bytes and files of the state,
    the time of an epoch, memory of the driver in MB, files that it has open."""

    epochs: int
    bytes: int
    files: int
    seconds: float
    memory: float
    handles: int


def sample(folder: Path, process: feed.Process, epochs: int, seconds: float) -> Sample:
    there = [file for file in (folder / "state").glob("*") if file.is_file()]
    changes = list((folder / "state" / "changes").glob("*"))
    sizes = []
    for file in [*there, *changes]:
        try:
            sizes.append(file.stat().st_size)
        except FileNotFoundError:
            continue
    at = Path("/proc", str(process.running.pid))
    found = re.search(r"VmRSS:\s+(\d+)", (at / "status").read_text())
    memory = int(found[1]) / 1024 if found else 0.0
    return Sample(epochs, sum(sizes), len(sizes), seconds, memory, len(list((at / "fd").iterdir())))


def life(folder: Path, files: int, said: int, seconds: float, dice: Random) -> Any:
    """Feed a process for some time, then kill it: the files there are now, the last epoch, and what
    was seen on the way."""
    process, seen, begin = feed.Process(folder), [], 0.0
    try:
        for n in range(files, files + 2):
            feed.drop(folder, n)
        files += 2
        process.until(said + 1)
        first, begin, last = process.said, time.monotonic(), time.monotonic()
        while time.monotonic() < begin + seconds or len(seen) < FEWEST:
            feed.drop(folder, files)
            files += 1
            process.until(process.said + 1)
            now = time.monotonic()
            seen.append(sample(folder, process, process.said - first, now - last))
            last = now
            time.sleep(dice.uniform(0, 0.05))
        for n in range(files, files + 3):
            feed.drop(folder, n)
        files += 3
        time.sleep(dice.uniform(0, 1.0))
    finally:
        said = process.kill()
    return files, said, seen


@pytest.mark.slow
def test_what_it_takes_stays_as_it_is_when_the_data_do(spark: Any, tmp_path: Path) -> None:
    dice, end = Random(3), time.monotonic() + SECONDS
    files, said, lives = 0, 0, 0
    seen: list[list[Sample]] = []
    while time.monotonic() < end:
        seconds = max(10.0, min(LIFE, end - time.monotonic())) * dice.uniform(0.5, 1)
        files, said, found = life(tmp_path, files, said, seconds, dice)
        seen.append(found)
        lives += 1
    with feed.opened(spark, tmp_path) as view:
        assert view.epoch >= said
        feed.follow(view, tmp_path, files=100, trigger={"availableNow": True}).wait()
        feed.require_right(view, tmp_path, files)
        view.verify()
        print(f"\n{lives} lives, {view.epoch} epochs, {files} files; the last of each life:")
    for some in seen:
        print("   ", some[-1]._replace(seconds=median(each.seconds for each in some[-20:])))
    flat(seen)


def flat(seen: list[list[Sample]]) -> None:
    """The last quarter of all samples is not much above the first that was warm. (Times are shown,
    and not judged: machines are busy.)"""
    every = [each for some in seen for each in some]
    parts = every[len(every) // 4 : len(every) // 2], every[-(len(every) // 4) :]
    for name, much in (("bytes", 2.0), ("files", 1.5)):
        first, last = (median(getattr(each, name) for each in part) for part in parts)
        assert last <= first * much + 64, (name, first, last)
    for some in seen:  # memory and handles are those of one process
        if len(some) < 40:
            continue
        begin, end = some[len(some) // 4 : len(some) // 2], some[-(len(some) // 4) :]
        grown = median(e.memory for e in end) - median(e.memory for e in begin)
        assert grown <= 30 + 0.02 * (end[-1].epochs - begin[0].epochs), ("memory", grown)
        opened = median(e.handles for e in end) - median(e.handles for e in begin)
        assert opened <= 4, ("handles", opened)
