"""What is retained stays readable, and everything else goes: over hundreds of epochs a state has as
many files and bytes as its rows, its readers and its sinks need, and not more."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime import ages
from ebbflow.engine.runtime.sinks import sink
from ebbflow.engine.runtime.upkeep.inspect import inspect
from ebbflow.errors import EbbflowError, StateError
from ebbflow.state.spine import Folder, Snapshot
from ebbflow.state.spine.manifest import Manifest
from ebbflow.zset import ZSet


class Order(NamedTuple):
    id: int
    city: str
    price: int


orders = ef.Input("orders", Order, key="id")
totals = orders.group_by("city").agg(n=ef.count(), total=ef.sum("price"))


def step(view: Any, dice: Random) -> None:
    number = view.epoch + 1
    rows = {i: Order(i, f"city {i % 7}", dice.randrange(99)) for i in dice.sample(range(200), 6)}
    view.step(orders=ef.upsert(list(rows.values())), batch=f"batch {number}")


def size(path: Path) -> tuple[int, int]:
    files = [each for each in path.iterdir() if each.is_file()]
    return len(files), sum(each.stat().st_size for each in files)


def at(view: Any) -> Any:
    return evaluate(totals.plan, {"orders": ZSet.of(view.input("orders").value)})["output"]


def test_files_bytes_and_names_stay_bounded_with_readers_at_every_retained_epoch(
    tmp_path: Path,
) -> None:
    dice, values, sizes = Random(1), {}, []
    with totals.run(path=tmp_path, keep_epochs=4, keep_batches=20) as view:
        for _ in range(120):
            step(view, dice)
            values[view.epoch] = view.value
            sizes.append(size(tmp_path))
            if view.epoch % 20 == 0:
                for epoch in range(view.epoch - 3, view.epoch + 1):
                    assert view.at(epoch) == values[epoch]
                    Snapshot(tmp_path, epoch).verify()
                assert ef.open(tmp_path, totals).value == values[view.epoch]
        assert len(view.batches()) == 20
        assert view.value == at(view)
    middle, end = sizes[30:70], sizes[80:]
    assert max(count for count, _ in end) <= max(count for count, _ in middle) + 5
    assert max(count for count, _ in end) < 60
    assert max(bytes for _, bytes in end) < 1.5 * max(bytes for _, bytes in middle)
    assert inspect(Folder(tmp_path)).epochs == [117, 118, 119, 120]


def test_what_a_stalled_sink_needs_stays_and_goes_when_it_has_had_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "LATE", 10)
    dice, had, stalled = Random(2), [], [False]

    def mail(change: Any, epoch: int) -> None:
        if stalled[0]:
            raise ConnectionError("no network")
        had.append(epoch)

    def run(view: Any, count: int) -> None:
        for _ in range(count):
            try:
                step(view, dice)
            except ConnectionError:
                assert stalled[0]

    with totals.run(path=tmp_path) as view, caplog.at_level(logging.WARNING, "ebbflow"):
        view.each_epoch(mail)
        run(view, 30)
        healthy = size(tmp_path)
        stalled[0] = True
        run(view, 25)
        assert view._logged() == list(range(31, 56))
        said = [each.getMessage() for each in caplog.records if "sink" in each.getMessage()]
        assert len(said) == 1
        assert "the sink 'mail'" in said[0]
        assert "has had epoch 30, and this is epoch 40" in said[0]
        assert "view.end_sink('mail')" in said[0]
        stalled[0] = False
        run(view, 2)
        assert had == list(range(1, 58))
        run(view, 30)
        assert size(tmp_path)[0] <= healthy[0] + 5
        assert size(tmp_path)[1] < 2 * healthy[1]


def test_epochs_are_kept_for_a_time_with_what_they_changed_and_then_only_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, dice, values = 1_000_000.0, Random(3), {}
    monkeypatch.setattr(ages, "time", lambda: now)

    def steps(view: Any, *pauses: float) -> None:
        nonlocal now
        for seconds in pauses:
            now += seconds
            step(view, dice)
            values[view.epoch] = view.value

    def kept(view: Any, first: int) -> None:
        read = list(range(first, view.epoch + 1))
        assert inspect(Folder(tmp_path)).epochs == view._logged() == read
        assert {epoch: view.at(epoch) for epoch in read} == {n: values[n] for n in read}

    with totals.run(path=tmp_path, keep_for=timedelta(hours=1)) as view:
        steps(view, *[600] * 5)
        with pytest.raises(EbbflowError):
            view.step(orders=[Order(1, "Rome", "dear")])  # type: ignore[arg-type]
    with totals.run(path=tmp_path, keep_for=timedelta(hours=1)) as view:  # it knows their ages
        steps(view, *[600] * 7)
        kept(view, 6)
        with pytest.raises(StateError):
            view.at(5)
        steps(view, 10_000)
        kept(view, 13)
        view.verify()
    with totals.run(path=tmp_path) as view:  # who does not ask any more keeps none
        steps(view, 1)
        assert "times" not in view._storage.store.notes
        assert view._logged() == []


def test_epochs_that_are_written_together_are_kept_no_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, dice = 1_000_000.0, Random(4)
    monkeypatch.setattr(ages, "time", lambda: now)
    for life in range(6):
        with totals.run(path=tmp_path, keep_for=timedelta(hours=1), flush_every=3) as view:
            for _ in range(1 + life):
                now += 600
                step(view, dice)
                young = range(max(1, view.epoch - 6), view.epoch + 1)
                assert set(young) <= set(view._logged())
    with totals.run(path=tmp_path, keep_for=timedelta(hours=1), flush_every=3) as view:
        now += 10_000
        for _ in range(3):
            step(view, dice)
        assert view._logged() == list(range(view.epoch - 2, view.epoch + 1))


def test_an_epoch_may_be_retained_for_longer_than_those_after_it() -> None:
    manifest = Manifest(-1, 0)
    for epoch in range(9):
        kept = manifest.kept(epoch, 2, {3})
        manifest = Manifest(epoch, 0, retained=kept)
    assert [int(name.split("-")[1]) for name in manifest.retained] == [3, 6, 7]
