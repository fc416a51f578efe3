"""A batch that has a name happens once, whatever becomes of the one who brings it.

A *job* is what a file job or a consumer does: it brings its batches in order, and when it is
started again it begins with the first. However often it was cut short, at whatever call to the
disk, the end is the same as if every batch had come once.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.oracle import disk

import ebbflow as ef
from ebbflow.engine.runtime.batches import Batch, Batches
from ebbflow.errors import ChangeError, CompositionError, RepeatedBatch


class Sale(NamedTuple):
    shop: str
    price: int


SALES = ef.Input("sales", Sale)
TOTALS = SALES.group_by("shop").agg(n=ef.count(), total=ef.sum("price"))
DAYS = 6
HOWS = ["lost", "kept", "torn"]


def sales(day: int) -> list[Sale]:
    dice = Random(day)
    return [Sale(dice.choice("abc"), dice.randrange(100)) for _ in range(5)]


def name(day: int, form: str) -> Any:
    return f"day-{day}.csv" if form == "name" else ("days", day)


def job(files: Any, form: str = "name", **options: Any) -> Any:
    """Bring all days, from the first on; the ones that happened are recognised."""
    view = TOTALS.run(path=files, **options)
    end = view._storage._end
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RepeatedBatch)
            for day in range(DAYS):
                view.step(sales=sales(day), batch=name(day, form))
        found = view.value, view.epoch, view.batches()
        view.close()
    finally:
        end.detach()
    return found


ONCE = TOTALS.run().step(sales=[sale for day in range(DAYS) for sale in sales(day)])
ALL = [Batch(name(day, "name"), day + 1) for day in range(DAYS)]


def crash(at: int, how: str, form: str, **options: Any) -> None:
    broken = disk.Disk(crash_at=at)
    with pytest.raises(disk.Crash):
        job(broken, form, **options)
    left = broken.after(how, Random(at))
    for _ in range(2):
        value, epoch, batches = job(left, form, **options)
        assert value == ONCE
        assert epoch == DAYS
        assert batches == (ALL if form == "name" else [Batch(("days", DAYS - 1), DAYS)])


@pytest.mark.parametrize("form", ["name", "number"])
@pytest.mark.parametrize("options", [{}, {"flush_every": 3}], ids=str)
def test_a_job_that_crashed_anywhere_is_run_again_and_counts_nothing_twice(
    options: dict[str, Any], form: str
) -> None:
    whole = disk.Disk()
    assert job(whole, form, **options)[:2] == (ONCE, DAYS)
    for at in range(0, whole.calls, 29):
        crash(at, HOWS[at % 3], form, **options)


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("options", [{}, {"memory": 1}, {"flush_every": 3}], ids=str)
def test_a_job_that_crashed_at_one_of_many_calls_is_run_again(
    options: dict[str, Any], how: str
) -> None:
    whole = disk.Disk()
    job(whole, **options)
    for at in range(HOWS.index(how), whole.calls, 7):
        crash(at, how, "name", **options)


def _child(path: str) -> None:
    job(path)


def test_a_job_that_was_killed_is_run_again_and_counts_nothing_twice(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for delay in (0.0, 0.01, 0.02, 0.04):
        child = context.Process(target=_child, args=(str(tmp_path),))
        child.start()
        time.sleep(delay)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
    assert job(tmp_path) == (ONCE, DAYS, ALL)


def test_a_repeated_batch_warns_at_the_line_and_changes_nothing(tmp_path: Path) -> None:
    for options in ({}, {"path": tmp_path}):
        with TOTALS.run(**options) as view:
            heard: list[Any] = []
            view.step(sales=sales(0), batch="a")
            view.on_change(heard.append)
            with pytest.warns(RepeatedBatch, match="batch 'a' happened before, in epoch 1") as said:
                assert view.step(sales=["this is not even looked at"], batch="a") == ef.ZSet()
            assert said[0].filename.endswith("test_batches.py")
            assert (view.epoch, heard) == (1, [])


def test_a_batch_that_was_refused_may_come_again(tmp_path: Path) -> None:
    for options in ({}, {"path": tmp_path}):
        with TOTALS.run(**options) as view:
            with pytest.raises(ChangeError):
                view.step(sales=[3], batch="a")
            view.step(sales=sales(1))
            assert view.batches() == []
            assert view.step(sales=sales(0), batch="a") != ef.ZSet()
            assert view.batches() == [Batch("a", 2)]


def test_numbers_of_a_source_grow_and_each_source_has_its_own() -> None:
    view = TOTALS.run()
    view.step(sales=sales(0), batch=("kafka-0", 7))
    view.step(sales=sales(0), batch=("kafka-1", 3))
    view.step(sales=sales(0), batch=("kafka-0", 9))
    for batch in [("kafka-0", 9), ("kafka-0", 8), ("kafka-0", 7), ("kafka-1", 0)]:
        with pytest.warns(RepeatedBatch):
            view.step(sales=sales(0), batch=batch)
    assert view.batches() == [Batch(("kafka-1", 3), 2), Batch(("kafka-0", 9), 3)]


def test_a_source_of_several_parts_grows_in_each_and_is_known_when_opened_again(
    tmp_path: Path,
) -> None:
    with TOTALS.run(path=tmp_path) as view:
        view.step(sales=sales(0), batch=("topic", {"t/0": 4, "t/1": 0}))
        view.step(sales=sales(1), batch=("topic", {"t/1": 3}))
        with pytest.raises(ChangeError, match="less far in others"):
            view.step(sales=sales(2), batch=("topic", {"t/0": 5, "t/1": 2}))
        with pytest.raises(ChangeError, match="one number at one time"):
            view.step(sales=sales(2), batch=("topic", 7))
        was = view.value
    with TOTALS.run(path=tmp_path) as view:
        assert view.batches() == [Batch(("topic", {"t/0": 4, "t/1": 3}), 2)]
        for again in ({"t/0": 4, "t/1": 3}, {"t/1": 2}, {"t/0": 1}):
            with pytest.warns(RepeatedBatch, match="in epoch 2"):
                view.step(sales=sales(2), batch=("topic", again))
        assert view.value == was
        view.step(sales=sales(2), batch=("topic", {"t/0": 4, "t/1": 3, "t/2": 1}))
        assert view.value != was


def test_several_outputs_give_no_change_for_each() -> None:
    view = ef.program(sales=SALES, totals=TOTALS).run()
    view.step(sales=sales(0), batch="a")
    with pytest.warns(RepeatedBatch):
        assert view.step(sales=sales(0), batch="a") == {"sales": ef.ZSet(), "totals": ef.ZSet()}


def test_the_last_names_are_remembered_as_many_as_are_kept(tmp_path: Path) -> None:
    with TOTALS.run(path=tmp_path, keep_batches=3) as view:
        for day in range(5):
            view.step(sales=sales(day), batch=f"{day}")
    with TOTALS.run(path=tmp_path, keep_batches=3) as view:
        assert [batch.name for batch in view.batches()] == ["2", "3", "4"]
        view.step(sales=sales(0), batch="0")
    with TOTALS.run(path=tmp_path, keep_batches=1) as view:
        view.step(sales=sales(0), batch="5")
        assert [batch.name for batch in view.batches()] == ["5"]


def test_remembering_costs_what_is_new_and_not_what_is_known() -> None:
    """What is written for a batch is one name, and one that is forgotten."""
    batches = Batches(most=100)
    for epoch in range(300):
        batches.prepare(f"{epoch}", epoch)
        assert len(batches.changed()) <= 2
        batches.keep()
    assert len(batches.listed()) == 100


@pytest.mark.parametrize("batch", ["", 3, ("a",), ("a", "b"), ("", 1), ("a", True), [Sale("a", 1)]])
def test_what_cannot_be_a_name_is_refused(batch: Any) -> None:
    view = TOTALS.run()
    with pytest.raises(ChangeError, match="batch= is the name of a batch"):
        view.step(sales=sales(0), batch=batch)
    assert view.epoch == 0


def test_an_input_may_be_called_batch() -> None:
    view = ef.Input("batch", int).run()
    assert view.step({"batch": [1]}) == ef.ZSet({1: 1})
    with pytest.raises(ChangeError, match="called batch"):
        view.step(batch=[1])


def test_what_is_tried_out_on_a_branch_is_no_batch() -> None:
    view = TOTALS.run()
    with view.branch() as branch, pytest.raises(CompositionError, match="branch"):
        branch.step(sales=sales(0), batch="a")


def test_state_of_before_batches_has_none(tmp_path: Path) -> None:
    def days(view: Any, known: Sequence[int]) -> None:
        for day in known:
            view.step(sales=sales(day))

    with TOTALS.run(path=tmp_path) as view:
        days(view, [0, 1])
    with TOTALS.run(path=tmp_path) as view:
        assert view.batches() == []
        assert view.rebuilt == ()


def test_a_changed_program_still_knows_the_batches(tmp_path: Path) -> None:
    with TOTALS.run(path=tmp_path) as view:
        view.step(sales=sales(0), batch="monday")
    other = SALES.group_by("shop").agg(most=ef.max("price"))
    with other.run(path=tmp_path) as view:
        assert view.rebuilt
        with pytest.warns(RepeatedBatch, match="in epoch 1"):
            view.step(sales=sales(0), batch="monday")
        assert view.value == other.run().step(sales=sales(0))
