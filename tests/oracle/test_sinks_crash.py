"""Whatever moment the process dies at, sinks have every epoch: in order, none left out, none twice.

A view with three sinks is stopped before every call to the disk in turn, those of its state and
those of the folder that a sink writes to. The state is on a disk that forgets what it may forget
(`disk.py`). What the sinks have must add up to what batch computes, epoch by epoch.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.oracle import kept_shop as the_shop
from tests.oracle.disk import Crash, Disk
from tests.oracle.kept_shop import SHOP, advance

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.sinks import folder as folders
from ebbflow.engine.runtime.table.arrow import from_arrow
from ebbflow.zset import ZSet

EPOCHS = 5
HOWS = ["lost", "kept", "torn"]
OPTIONS: list[dict[str, Any]] = [{}, {"flush_every": 3}, {"keep_epochs": 3}]
Changes = dict[str, ZSet[Any]]


class Table(ef.Sink):
    """A target that can be asked for its last epoch, as one with transactions can."""

    name = "table"

    def __init__(self, rows: list[tuple[int, Changes]], call: Callable[[], None]) -> None:
        self.rows, self.call = rows, call

    def had(self, known: int | None, first: int, last: int) -> int:
        return self.rows[-1][0] if self.rows else 0

    def publish(self, epoch: int, change: Any) -> None:
        self.call()
        self.rows.append((epoch, change))
        self.call()


class World:
    """What is outside of the state, and survives a crash of the process."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch) -> None:
        self.table: list[tuple[int, Changes]] = []
        self.calls: list[tuple[int, Changes]] = []
        self.path, self.files = path, Disk()
        for name in ("settle", "make_folder", "make_folders", "allow_all"):
            patch.setattr(folders, name, self.counted(getattr(folders, name)))
        patch.setattr(folders.os, "rename", self.counted(folders.os.rename))
        write = self.counted(folders.FORMATS["parquet"])
        patch.setitem(folders.FORMATS, "parquet", write)
        removed = shutil.rmtree
        patch.setattr(
            folders.shutil, "rmtree", lambda path, **_: self.alive and removed(path, True)
        )

    @property
    def alive(self) -> bool:
        return not 0 <= self.files.crash_at <= self.files.calls

    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            self.files.call(needs_room=False)
            return function(*given)

        return call

    def life(self, last: int, **options: Any) -> None:
        """Open the view, give it its sinks, and go on."""
        view = SHOP.run(path=self.files, **options)
        end = view._storage._end
        try:
            view.add_sink(Table(self.table, lambda: self.files.call(needs_room=False)))
            view.each_epoch(self.called, name="calls")
            view.write_changes(self.path)
            advance(view, last)
            view.close()
        finally:
            end.detach()  # what has crashed closes nothing

    def called(self, change: Any, epoch: int) -> None:
        self.calls.append((epoch, change))

    def folder(self) -> list[tuple[int, Changes]]:
        found: dict[int, Changes] = {}
        for name, node in SHOP.plan.outputs.items():
            for place in (self.path / name).glob("epoch=*"):
                rows = [from_arrow(pq.ParquetFile(file).read(), node.type)
                        for file in place.glob("*.parquet")]  # fmt: skip
                change = sum((ZSet(zip(*some, strict=True)) for some in rows), start=ZSet())
                found.setdefault(int(place.name.partition("=")[2]), {})[name] = change
        return sorted(found.items())


def add_up(given: list[tuple[int, Changes]], last: int) -> None:
    """Every epoch is there once, in order, and they add up to what batch computes."""
    assert [epoch for epoch, _ in given] == list(range(1, last + 1))
    totals: Changes = {name: ZSet() for name in SHOP.plan.outputs}
    for epoch, change in given:
        totals = {name: total + change[name] for name, total in totals.items()}
        assert totals == evaluate(SHOP.plan, the_shop.inputs(epoch)), epoch


def crash(path: Path, at: int, how: str, **options: Any) -> bool:
    """Stop before one call, open what is left, and go on; gives whether there was such a call."""
    with pytest.MonkeyPatch.context() as patch:
        world = World(path, patch)
        world.files.crash_at = at
        try:
            world.life(EPOCHS, **options)
            return False
        except Crash:
            pass
        world.files = world.files.after(how, Random(at))
        world.life(EPOCHS + 2, **options)
        add_up(world.table, EPOCHS + 2)
        add_up(world.folder(), EPOCHS + 2)
        twice = [b for a, b in zip(world.calls, world.calls[1:], strict=False) if a[0] == b[0]]
        assert len(twice) <= 1, "only the last one before a crash comes again"
        add_up(list(dict(world.calls).items()), EPOCHS + 2)
        left = [each.name for each in path.rglob(".epoch=*")]
        assert left == []
    return True


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_sample_of_crashes_leaves_sinks_with_every_epoch(
    options: dict[str, Any], tmp_path: Path
) -> None:
    for at in (190, 430):
        at += 31 * OPTIONS.index(options)
        assert crash(tmp_path / str(at), at, HOWS[at % 3], **options)


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_many_crashes_leave_sinks_with_every_epoch(
    options: dict[str, Any], how: str, tmp_path: Path
) -> None:
    at = HOWS.index(how)
    while crash(tmp_path / str(at), at, how, **options):
        at += 41
