"""An interrupt, wherever it comes, leaves an epoch that happened or one that did not.

What the view says (`epoch`), what it holds, and what is on disk agree, and the view goes on. The
oracle is batch; `interrupts.py` raises at one instruction after the other.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.interrupts import dice_of, instants, interrupted
from tests.oracle.kept_shop import SHOP, advance, change, right

import ebbflow as ef
from ebbflow.state.backing import Backing
from ebbflow.state.spine import Snapshot, Store

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
WAYS: list[dict[str, Any]] = [{}, {"memory": 1}, {"flush_every": 3}, {"keep_epochs": 3}]
ERRORS = [KeyboardInterrupt, MemoryError]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine crashes here, so nothing need be safe from that."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


def agrees(view: Any, path: Path, **options: Any) -> None:
    """What a view says, holds, and has written is the same epoch."""
    right(view)
    view.verify()
    if options.get("flush_every", 1) == 1:
        assert Snapshot(path).epoch == view.epoch


def reopened(view: Any, path: Path, **options: Any) -> Any:
    """The view again, after a look at what it has left."""
    epoch = view.epoch
    view.close()
    with Store(path, verify=True) as store:
        assert store.epoch == epoch
    view = SHOP.run(path=path, **options)
    assert (view.epoch, view.rebuilt) == (epoch, ())
    right(view)
    return view


def through(
    path: Path, points: Iterable[int], *, published: bool = True, second: int = 0, **options: Any
) -> dict[bool, int]:
    """Epochs that are interrupted at one point after the other, until a step has no such point; how
    often one happened all the same, and how often not."""
    view = SHOP.run(path=path, **options)
    advance(view, 3)
    hit, dice = {True: 0, False: 0}, dice_of("the second", second)
    for number, point in enumerate(points):
        raised = tries = 0
        while not raised and tries < 2 * options.get("flush_every", 1):
            before, tries = view.epoch, tries + 1
            raised = interrupted(
                lambda view=view, before=before: view.step(change(before + 1)),
                *((point, dice.randint(1, second)) if second else (point,)),
                error=ERRORS[number % 2],
                published=published,
            )
            done = view.epoch - before
            assert done in (0, 1)
            assert done or not published, point
            agrees(view, path, **options)
        if not raised:
            break
        hit[bool(done)] += 1
        if number % 10 == 5:
            view = reopened(view, path, **options)
    advance(view, view.epoch + 3)
    reopened(view, path, **options).close()
    return hit


def test_a_sample_of_interrupts_after_an_epoch_is_published(tmp_path: Path) -> None:
    for number, options in enumerate(WAYS):
        hit = through(tmp_path / str(number), instants(1 + number, 4_000, 331), **options)
        assert hit[True] > 7


def test_a_sample_of_interrupts_anywhere_in_a_step(tmp_path: Path) -> None:
    for number, options in enumerate(WAYS):
        points = instants(50 + number, 80_000, 9_001)
        hit = through(tmp_path / str(number), points, published=False, **options)
        assert hit[False] > 4


def test_a_sample_of_two_interrupts_the_second_in_what_puts_things_right(tmp_path: Path) -> None:
    for number, options in enumerate(WAYS):
        path = tmp_path / str(number)
        assert through(path / "after", instants(1, 4_000, 701), second=60, **options)[True] > 2
        points = instants(50, 80_000, 19_001)
        through(path / "before", points, second=60, published=False, **options)


def test_an_epoch_that_happened_is_not_forgotten_by_two_interrupts_in_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one comes while memory is given back, the second while that is put right."""
    view = SHOP.run(path=tmp_path / "state", memory=1)
    advance(view, 3)

    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Backing, "bytes", stopped)
        patched.setattr(Backing, "reload", stopped)
        with pytest.raises(KeyboardInterrupt):
            view.step(change(4))
    assert view.epoch == 4
    agrees(view, tmp_path / "state")


@pytest.mark.slow
@pytest.mark.parametrize("options", WAYS, ids=str)
def test_every_interrupt_after_an_epoch_is_published(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """Before every instruction; before every 29th when there are options."""
    step = 1 if not options else 29
    assert through(tmp_path, instants(1, 20_000, step), **options)[True] >= 4_000 // step


@pytest.mark.slow
@pytest.mark.parametrize("options", WAYS, ids=str)
def test_many_interrupts_anywhere_in_a_step(tmp_path: Path, options: dict[str, Any]) -> None:
    hit = through(tmp_path, instants(1, 200_000, 997), published=False, **options)
    assert hit[False] > 49


@pytest.mark.slow
@pytest.mark.parametrize("options", WAYS, ids=str)
def test_many_pairs_of_interrupts(tmp_path: Path, options: dict[str, Any]) -> None:
    through(tmp_path / "after", instants(1, 20_000, 101), second=300, **options)
    through(
        tmp_path / "before", instants(1, 200_000, 1_499), second=300, published=False, **options
    )


# ---- callbacks ----


def heard_after(points: Iterable[int]) -> int:
    """Interrupts in steps of a view that a callback listens to: it hears of every epoch that comes
    after one, and of none twice; how many there were."""
    view, heard, hit = ef.Input("n", int).distinct().run(), list[int](), 0
    view.on_change(lambda change: heard.append(view.epoch))
    for point in points:
        raised = interrupted(lambda: view.step(n=[view.epoch]), point, published=False)
        view.step(n=[-1 - view.epoch])
        assert heard[-1] == view.epoch, point
        assert len(heard) <= view.epoch, point
        if not raised:  # the step is over before
            break
        hit += raised
    return hit


def test_a_sample_of_interrupts_after_which_callbacks_are_called() -> None:
    assert heard_after(instants(1, 2_000, 12)) > 24


@pytest.mark.slow
def test_every_interrupt_after_which_callbacks_are_called() -> None:
    assert heard_after(instants(1, 2_000)) > 300


# ---- large merges ----


def merging(path: Path, points: Iterable[int], second: int = 0) -> int:
    """Epochs of a store with chunks so small that large merges are always under way; how many were
    interrupted."""
    dice, oracle, hit = dice_of("merges", second), dict[int, int](), 0
    store = Store(path, chunk=16)
    for epoch, point in enumerate(points):
        cells = store.spine("cells", layout="value")
        change = {dice.randrange(400): epoch for _ in range(40)}
        cells.append(change)
        cuts = (point, dice.randint(1, second)) if second else (point,)
        hit += bool(interrupted(partial(store.commit, epoch), *cuts))
        assert store.epoch == epoch
        store.rollback()
        oracle.update(change)
        assert {key: value for key, value, _ in cells.scan()} == oracle
        if epoch % 20 == 19:
            store.close()
            store = Store(path, verify=True, chunk=16)
    store.compact()
    assert {key: value for key, value, _ in store.spine("cells", layout="value").scan()} == oracle
    store.close()
    return hit


def test_a_sample_of_interrupts_in_the_midst_of_merges(tmp_path: Path) -> None:
    assert merging(tmp_path / "one", instants(100, 20_000, 1_499)) > 4
    assert merging(tmp_path / "two", instants(100, 20_000, 2_999), second=80) > 1


@pytest.mark.slow
def test_many_interrupts_in_the_midst_of_merges(tmp_path: Path) -> None:
    assert merging(tmp_path / "one", instants(1, 30_000, 499)) > 24
    assert merging(tmp_path / "two", instants(1, 30_000, 1_499), second=300) > 6


# ---- a real signal ----


def stop(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def alarmed(call: Any, seconds: float) -> bool:
    """Make a call that a timer interrupts; whether it did."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    return False


def signalled(path: Path, rounds: int, **options: Any) -> dict[bool, int]:
    """Epochs that a timer may interrupt at any moment; how many of those happened."""
    view = SHOP.run(path=path, **options)
    advance(view, 3)
    started = time.perf_counter()
    advance(view, 9)
    seconds = (time.perf_counter() - started) / 6
    hit, dice, before = (
        {True: 0, False: 0},
        dice_of("signals", rounds),
        signal.signal(signal.SIGALRM, stop),
    )
    try:
        for number in range(rounds):
            epoch = view.epoch
            step = lambda view=view, epoch=epoch: view.step(change(epoch + 1))
            if alarmed(step, max(1e-5, 1.2 * seconds * dice.random())):
                hit[view.epoch > epoch] += 1
            assert view.epoch - epoch in (0, 1)
            agrees(view, path, **options)
            if number % 20 == 9:
                view = reopened(view, path, **options)
    finally:
        signal.signal(signal.SIGALRM, before)
    reopened(view, path, **options).close()
    return hit


def test_a_signal_at_some_moment_leaves_an_epoch_done_or_not_done(tmp_path: Path) -> None:
    for number, options in enumerate(WAYS):
        signalled(tmp_path / str(number), 10, **options)


@pytest.mark.slow
@pytest.mark.parametrize("options", WAYS, ids=str)
def test_a_signal_at_many_moments_leaves_an_epoch_done_or_not_done(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    assert sum(signalled(tmp_path, 150, **options).values()) > 25
