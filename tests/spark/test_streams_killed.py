"""A process that a stream feeds is killed at any moment, and started again: nothing that it said to
be done is lost, nothing is counted twice, and the log of changes has every epoch once."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.spark import live_feed as feed

NOW = {"availableNow": True}
KILLS = int(os.environ.get("EBBFLOW_KILLS", "4"))
"""How often a process is killed in the slow suite."""


def kill(folder: Path, at: int, delay: float, **options: Any) -> int:
    """Start a process, kill it so long after it has said an epoch, and give the last it said."""
    process = feed.Process(folder, **options)
    try:
        process.until(at)
        time.sleep(delay)
    finally:
        said = process.kill()
    return said


def go_on(spark: Any, folder: Path, said: int, files: int) -> int:
    """Open what was left here, take all that is there, and see that it is right; gives the last
    epoch."""
    with feed.opened(spark, folder) as view:
        assert view.epoch >= said
        feed.follow(view, folder, files=100, trigger=NOW).wait()
        feed.require_right(view, folder, files)
        view.verify()
        return int(view.epoch)


def test_a_driver_that_is_killed_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    files = 12
    for n in range(files):
        feed.drop(tmp_path, n)
    said = kill(tmp_path, 2, Random(7).uniform(0, 0.4), in_driver=True)
    go_on(spark, tmp_path, said, files)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"in_driver": True}, {"mode": "staged"}], ids=str)
def test_a_driver_is_killed_at_many_moments(
    spark: Any, tmp_path: Path, options: dict[str, Any]
) -> None:
    dice, said, files = Random(str(options)), 0, 0
    for turn in range(KILLS):
        for n in range(files, files + 8):
            feed.drop(tmp_path, n)
        files += 8
        said = kill(tmp_path, said + dice.randrange(1, 4), dice.uniform(0, 1.5), **options)
        if turn % 3 == 2 or turn == KILLS - 1:
            said = go_on(spark, tmp_path, said, files)
