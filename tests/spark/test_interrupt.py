"""An interrupt in a step on Spark, wherever it comes in the driver, leaves an epoch that happened
or one that did not: what the view says, what it holds and what is on disk agree, and it goes on.

Most is tried with the cluster that is not there; a little on a real one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.interrupts import dice_of, instants, interrupted
from tests.oracle.kept_shop import SHOP, advance, change, expected
from tests.spark.simulated import Driver

import ebbflow as ef
from ebbflow.state.spine import Snapshot, Store

ERRORS = [KeyboardInterrupt, MemoryError]
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine crashes here, so nothing need be safe from that."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


def through(
    opened: Callable[[], Any],
    points: Iterable[int],
    *,
    published: bool = True,
    second: int = 0,
) -> dict[bool, int]:
    """Epochs that are interrupted at one point after the other; how often one happened all the
    same, and how often not."""
    view, hit = opened(), {True: 0, False: 0}
    dice = dice_of("the second", second)
    heard, given = list[int](), list[int]()
    advance(view, 2)
    view.on_change(lambda found: heard.append(view.epoch))
    view.each_epoch(lambda found, epoch: given.append(epoch), name="sink")
    first = view.epoch
    for number, point in enumerate(points):
        before = view.epoch
        raised = interrupted(
            lambda before=before: view.step(change(before + 1)),
            *((point, dice.randint(1, second)) if second else (point,)),
            error=ERRORS[number % 2],
            published=published,
        )
        done = view.epoch - before
        assert done in (0, 1)
        assert done or not published, point
        assert view.zset() == expected(view.epoch)
        assert Snapshot(view.path).epoch == view.epoch
        if not raised:
            break
        hit[bool(done)] += 1
    advance(view, view.epoch + 1)
    view.verify()
    epochs = [*range(first + 1, view.epoch + 1)]
    assert sorted(set(given)) == epochs
    assert len(heard) <= len(epochs)
    view.close()
    with Store(view.path, verify=True) as store:
        assert store.epoch == epochs[-1]
    view = opened()
    assert (view.epoch, view.zset()) == (epochs[-1], expected(epochs[-1]))
    view.close()
    return hit


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged"])
def test_a_sample_of_interrupts_after_an_epoch_is_published(tmp_path: Path, mode: str) -> None:
    opened = lambda: Driver(SHOP.plan, mode, str(tmp_path))
    assert through(opened, instants(5, 6_000, 1_103))[True] > 1


@pytest.mark.parametrize("mode", ["driver", "staged"])
def test_a_sample_of_interrupts_anywhere_in_a_step(tmp_path: Path, mode: str) -> None:
    opened = lambda: Driver(SHOP.plan, mode, str(tmp_path))
    assert through(opened, instants(50, 300_000, 50_001), published=False)[False] > 1


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["driver", "single_task", "staged"])
def test_many_interrupts_in_a_step(tmp_path: Path, mode: str) -> None:
    opened = lambda name: lambda: Driver(SHOP.plan, mode, str(tmp_path / name))
    step = 31 if mode == "driver" else 97
    assert through(opened("after"), instants(1, 20_000, step))[True] > 39
    through(opened("twice"), instants(1, 20_000, 499), second=100)
    through(opened("anywhere"), instants(1, 1_000_000, 20_011), published=False)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["driver", "single_task"])
def test_interrupts_on_a_real_session(spark: Any, tmp_path: Path, mode: str) -> None:
    opened = lambda: SHOP.run(ef.spark(spark, path=tmp_path, mode=mode, buckets=2))
    assert through(opened, instants(5, 6_000, 1_103))[True] > 1
