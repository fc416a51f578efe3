"""A second process reads a state while the first writes it: every epoch it sees is one that was
published, and what it is given adds up to what batch computes.

The writer is a process of its own. It merges and removes files all the time, is killed, and is
started again; it never hears of its reader.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.zset import ZSet

the_shop: Any = sys.modules.get("kept_shop")
if the_shop is None:  # a class must be one, to be pickled
    spec = importlib.util.spec_from_file_location(
        "kept_shop", Path(__file__).parent / "kept_shop.py"
    )
    assert spec is not None
    assert spec.loader is not None
    the_shop = importlib.util.module_from_spec(spec)
    sys.modules["kept_shop"] = the_shop
    spec.loader.exec_module(the_shop)
SHOP = the_shop.SHOP
OUTPUTS = list(SHOP.plan.outputs)


def started(path: Path, last: int, *options: str) -> subprocess.Popen[bytes]:
    """A writer that goes on until an epoch."""
    command = [sys.executable, __file__, str(path), str(last), *options]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert writer.stdout is not None
    with writer.stdout as said:
        said.readline()
    return writer


def write(path: str, last: str, *options: str) -> None:
    """What the writer does, in its process."""
    given = {name: int(value) for name, value in (each.split("=") for each in options)}
    with SHOP.run(path=path, **{**given, "readable": bool(given.get("readable"))}) as view:
        print("open", flush=True)
        the_shop.advance(view, int(last))


def expected(epoch: int) -> Any:
    return evaluate(SHOP.plan, the_shop.inputs(epoch))


class Ledger:
    """What a reader was given so far, added up, and compared with batch at every epoch."""

    def __init__(self) -> None:
        self.total: dict[str, ZSet[Any]] = {name: ZSet() for name in OUTPUTS}
        self.epochs: list[int] = []

    def add(self, epoch: int, change: Any) -> None:
        assert not self.epochs or epoch > self.epochs[-1]
        self.epochs.append(epoch)
        self.total = {name: rows + change[name] for name, rows in self.total.items()}
        assert self.total == expected(epoch), epoch


def opened(path: Path) -> Any:
    """A reader with the program; what an operator keeps of rows is pickled."""
    return ef.open(path, SHOP, unpickle=True)


def follow(path: Path, last: int, options: list[str], *, killed: bool = False) -> Ledger:
    """Follow a writer until its last epoch. It is killed on the way, and another goes on, unless
    that has been done."""
    writer = started(path, last, *options)
    ledger = Ledger()
    reader = ef.open(path) if "readable=1" in options else opened(path)
    for epoch, change in reader.changes(wait=30, every=0.001):
        ledger.add(epoch, change)
        if epoch > last // 2 and not killed:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            killed = True
            now = reader.epoch
            assert reader.value == reader.at(now) == expected(now), "the writer is dead"
            writer = started(path, last, *options)
        if epoch == last:
            break
    assert writer.wait() == 0, "the reader has kept nobody out"
    assert reader.value == ledger.total
    return ledger


OPTIONS = [["keep_epochs=2000"], ["readable=1"], ["flush_every=4", "readable=1"]]


def test_a_reader_follows_a_writer_in_another_process(tmp_path: Path) -> None:
    assert follow(tmp_path / "state", 16, ["readable=1"], killed=True).epochs[-1] == 16


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_reader_follows_a_writer_that_is_killed_and_goes_on(
    options: list[str], tmp_path: Path
) -> None:
    ledger = follow(tmp_path / "state", 400, options)
    assert ledger.epochs[-1] == 400
    if "keep_epochs=2000" in options:
        assert ledger.epochs == list(range(ledger.epochs[0], 401)), "every epoch by itself"


@pytest.mark.slow
def test_snapshots_stay_whole_while_their_files_are_removed(tmp_path: Path) -> None:
    writer = started(tmp_path / "state", 1 << 20, "readable=1")
    try:
        reader, seen = ef.open(tmp_path / "state"), set[int]()
        until = time.monotonic() + 20
        while time.monotonic() < until or len(seen) < 10:
            snapshot = reader.snapshot()
            time.sleep(0.02)  # in which the writer goes on
            assert reader.values(snapshot) == expected(snapshot.epoch)
            seen.add(snapshot.epoch)
    finally:
        writer.kill()
        writer.wait()


# ---- in one process ----


def test_where_changes_are_kept_every_epoch_is_given_alone(tmp_path: Path) -> None:
    with SHOP.run(path=tmp_path, keep_epochs=4) as view:
        reader = opened(tmp_path)
        the_shop.advance(view, 3)
        assert [epoch for epoch, _ in opened(tmp_path).changes(since=0, wait=0)] == [1, 2, 3]
        ledger = Ledger()
        for epoch, change in reader.changes(since=0, wait=0):
            ledger.add(epoch, change)
        following = reader.changes(since=3)
        the_shop.advance(view, 12)
        with pytest.raises(
            ef.EbbflowError, match="what changed since epoch 3 is not kept any more"
        ):
            next(following)
        assert [epoch for epoch, _ in reader.changes(since=10, wait=0)] == [11, 12]


def test_where_nothing_is_kept_what_differs_is_given(tmp_path: Path) -> None:
    with SHOP.run(path=tmp_path) as view:
        following, ledger = opened(tmp_path).changes(wait=0), Ledger()
        for last in (2, 5, 6):
            the_shop.advance(view, last)
            for epoch, change in following:
                ledger.add(epoch, change)
        assert ledger.epochs == [0, 2, 5, 6]


def test_changes_are_for_async_for_too(tmp_path: Path) -> None:
    async def main() -> list[int]:
        with SHOP.run(path=tmp_path, keep_epochs=9) as view:
            following = opened(tmp_path).changes(since=0, wait=0.2, every=0.001)

            async def step() -> None:
                for last in (1, 2, 3):
                    the_shop.advance(view, last)
                    await asyncio.sleep(0.005)

            task = asyncio.create_task(step())
            found = [epoch async for epoch, _ in following]
            await task
        return found

    assert asyncio.run(main()) == [1, 2, 3]


def test_a_reader_takes_no_lock_and_writes_nothing(tmp_path: Path) -> None:
    with SHOP.run(path=tmp_path, readable=True) as view:
        the_shop.advance(view, 3)
    before = {each.name: each.stat().st_mtime_ns for each in tmp_path.iterdir()}
    os.chmod(tmp_path, 0o500)
    try:
        reader = ef.open(tmp_path)
        assert reader.value == expected(3)
        with SHOP.run(path=tmp_path, readable=True) as view:
            assert view.value == reader.value
    finally:
        os.chmod(tmp_path, 0o700)
    del before["lock"]  # the view's own, in which it says who it is
    assert {each.name: each.stat().st_mtime_ns for each in tmp_path.iterdir() if each.name != "lock"
            } == before  # fmt: skip


if __name__ == "__main__":
    write(*sys.argv[1:])
