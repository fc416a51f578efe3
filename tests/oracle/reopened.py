"""Views with their state on disk that close and open again between two epochs.

`follow` then compares what comes back from disk with what batch computes, after every epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from ebbflow.engine.local import run
from ebbflow.flow.plan import Plan
from ebbflow.testing import follow, random_epochs

OPTIONS: list[dict[str, Any]] = [
    {},
    {"memory": 1},
    {"memory": 1_500},
    {"flush_every": 3},
    {"memory": 1, "flush_every": 3},
    {"keep_epochs": 4},
    {"keep_epochs": 3, "memory": 1},
    {"keep_for": timedelta(hours=1)},
    {"keep_for": timedelta(hours=1), "flush_every": 3},
]


class Reopened:
    """A view on disk that is opened anew before some of its epochs."""

    def __init__(self, plan: Plan, path: Path, dice: Random, **options: Any) -> None:
        self.plan, self.path, self.dice, self.options = plan, path, dice, options
        self.view = run(plan, path=path, **options)
        self.epochs = {0: self.view.value}

    def step(self, changes: Any) -> Any:
        if self.dice.random() < 0.35:
            self.reopen()
        change = self.view.step(changes)
        self.epochs[self.view.epoch] = self.view.value
        keep = 0 if "keep_for" in self.options else self.options.get("keep_epochs", 1)
        flushed = self.options.get("flush_every", 1) == 1
        for epoch in [*self.epochs][-keep:] if flushed else [self.view.epoch]:
            assert self.view.at(epoch) == self.epochs[epoch], epoch
        return change

    def reopen(self) -> None:
        epoch, value = self.view.epoch, self.view.value
        self.view.close()
        self.view = run(self.plan, path=self.path, **self.options)
        assert (self.view.epoch, self.view.rebuilt) == (epoch, ())
        assert self.view.value == value

    @property
    def value(self) -> Any:
        return self.view.value


@contextmanager
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="durable-") as path:
        yield Path(path) / "state"


def followed(program: Any, dice: Random, epochs: int = 8, **options: Any) -> None:
    """Run a program on disk and by batch, reopen it at the end, and verify that."""
    with folder() as path:
        made: list[Reopened] = []

        def reopened(plan: Plan) -> Reopened:
            made.append(Reopened(plan, path, dice, **options))
            return made[0]

        follow(reopened, program, random_epochs(program, dice, epochs))
        made[0].reopen()
        made[0].view.verify()
        made[0].view.close()
