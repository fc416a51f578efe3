"""Requests against batch on what the inputs must hold, change by change: in memory and on disk."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.oracle.asked import follow_requests, program_of, tables
from tests.oracle.random_requests import RandomRequests

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))  # how many times as many examples
VERBS = ("weights", "replace", "where", "upsert", "delete", "feed", "forget", "refused")


def in_memory(seed: Any, epochs: int) -> Counter[str]:
    dice = Random(seed)
    program = program_of(dice)
    asked = RandomRequests(program, dice)
    return follow_requests(program.run(), program.plan, asked, epochs, tables(asked, dice))


def on_disk(seed: Any, epochs: int, path: Path) -> Counter[str]:
    """The state is opened again now and then, with more or less memory."""
    dice = Random(seed)
    program = program_of(dice)

    class Reopened:
        view = program.run(path=path)

        def step(self, changes: Any) -> Any:
            if dice.random() < 0.4:
                self.view.close()
                self.view = program.run(path=path, memory=dice.choice([None, 1, "1MB"]))
            return self.view.step(changes)

        @property
        def value(self) -> Any:
            return self.view.value

    view = Reopened()
    asked = RandomRequests(program, dice)
    found = follow_requests(view, program.plan, asked, epochs, tables(asked, dice))
    view.view.close()
    return found


def test_oracle_requests_give_what_batch_gives() -> None:
    done: Counter[str] = Counter()
    for seed in range(40 * MORE):
        done += in_memory(seed, 8)
    assert all(done[verb] > 3 for verb in VERBS), done


def test_oracle_requests_on_disk_give_what_batch_gives(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    done: Counter[str] = Counter()
    for seed in range(6 * MORE):
        done += on_disk(f"disk {seed}", 8, tmp_path / str(seed))
    assert all(done[verb] > 0 for verb in ("replace", "upsert", "delete", "feed", "refused")), done


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_oracle_many_requests(part: int, tmp_path: Path) -> None:
    for seed in range(1000 + part, 2000, 4):
        in_memory(seed, 15)
        if seed % 10 == part:
            on_disk(seed, 15, tmp_path / str(seed))
