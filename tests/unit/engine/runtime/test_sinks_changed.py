"""A changed program and its sinks: what is delivered, what is refused, and how to begin again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.connectors.rows import OutputSink
from ebbflow.errors import CompositionError, SinkError
from ebbflow.reducer import Reducer


class Sale(NamedTuple):
    city: str
    price: int


SALES = ef.Input("sales", Sale)
ROWS = [Sale("Rome", 3), Sale("Oslo", 8), Sale("Rome", 1)]
Open = Callable[..., Any]


def totals(least: int) -> Any:
    return SALES.filter(lambda sale: sale.price > least).group_by("city").agg(n=ef.count())


def own(least: int, factor: int = 1) -> Any:
    """A reducer of the user's, which only the program can read."""
    total: Any = Reducer(0, lambda acc, sale: acc + sale.price, lambda acc, sale: acc - sale.price,
                         result=lambda acc: acc * factor)  # fmt: skip
    return SALES.filter(lambda sale: sale.price > least).group_by("city").agg(n=total)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    views: list[Any] = []

    def run(program: Any, **options: Any) -> Any:
        for view in views:
            view.close()
        views.append(program.run(path=tmp_path / "state", **options))
        return views[-1]

    yield run
    for view in views:
        view.close()


class Target:
    """What a function has received, added up."""

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self.total: Any = ef.ZSet()

    def __call__(self, change: Any, epoch: int) -> None:
        self.epochs.append(epoch)
        self.total = self.total + change


def test_a_sink_that_fails_holds_up_no_other_and_gets_the_difference_later(opened: Open) -> None:
    good, bad, broken = Target(), Target(), [True]

    def fails(change: Any, epoch: int) -> None:
        if broken and epoch > 1:
            raise OSError("no room")
        bad(change, epoch)

    view = opened(totals(0))
    view.each_epoch(good, name="good")
    view.each_epoch(fails, name="bad")
    view.step(sales=ROWS)
    view = opened(totals(2))
    view.each_epoch(good, name="good")
    with pytest.raises(OSError, match="no room"):
        view.each_epoch(fails, name="bad")
    assert view.sinks == {"good": 2, "bad": 1}
    view = opened(totals(5))
    broken.clear()
    view.each_epoch(good, name="good")
    view.each_epoch(fails, name="bad")
    assert good.epochs == bad.epochs == [1, 2, 3]
    assert good.total == bad.total == view.value


def test_only_sinks_of_an_output_with_other_columns_are_refused(opened: Open) -> None:
    class One(OutputSink):
        def __init__(self, output: str) -> None:
            self.name = self.output = output
            self.total: Any = ef.ZSet()

        def publish(self, epoch: int, change: Any) -> None:
            self.total = self.total + change[self.output]

        def restart(self, epoch: int, value: Any) -> None:
            self.total = value[self.output]

    def program(least: int, how: Any) -> Any:
        some = SALES.filter(lambda sale: sale.price > least)
        return ef.program(same=totals(least), other=some.group_by("city").agg(price=how("price")))

    same, other = One("same"), One("other")
    view = opened(program(0, ef.sum))
    view.add_sink(same)
    view.add_sink(other)
    view.step(sales=ROWS[:1])
    view = opened(program(0, ef.sum))
    view.step(sales=ROWS[1:])  # both are behind
    for least in (2, 5):
        view = opened(program(least, ef.mean))
        view.add_sink(same)
        assert same.total == view.value["same"]
        with pytest.raises(SinkError, match=r"other: Group|'other' were Group") as caught:
            view.add_sink(other)
        assert "price: float" in str(caught.value.facts["why"])
        assert "in epoch 3" in str(caught.value.facts["changed"]), "the later change is known"
    view.restart_sink("other")
    view.add_sink(other)
    view.step(sales=[Sale("Bonn", 9)])
    assert other.total == view.value["other"]
    assert same.total == view.value["same"]


def test_a_folder_that_is_new_begins_after_a_gap(opened: Open, tmp_path: Path) -> None:
    view = opened(totals(0), keep_epochs=9)
    view.step(sales=ROWS[:2])
    wider = SALES.group_by("city").agg(n=ef.mean("price"))
    view = opened(wider, keep_epochs=9)
    view.step(sales=ROWS[2:])
    view.write_changes(tmp_path / "log")
    assert [each.name for each in (tmp_path / "log").iterdir()] == ["epoch=3"]


def test_a_reader_does_not_take_a_gap_for_an_epoch_without_a_change(
    opened: Open, tmp_path: Path
) -> None:
    target = Target()
    view = opened(totals(0), keep_epochs=9)
    view.each_epoch(target, name="target")
    view.step(sales=ROWS[:2])
    total = ef.open(tmp_path / "state").value
    view = opened(totals(5), keep_epochs=9)
    view.step(sales=ROWS[2:])
    for _, change in ef.open(tmp_path / "state").changes(since=1, wait=0):
        total = total + change
    assert total == view.value
    view = opened(SALES.group_by("city").agg(n=ef.mean("price")), keep_epochs=9)
    view.step(sales=ROWS)
    for _, change in ef.open(tmp_path / "state").changes(since=3, wait=0):
        total = total + change
    assert total == view.value


def test_a_reducer_of_the_user_reads_what_the_program_before_has_left(opened: Open) -> None:
    target = Target()
    view = opened(own(0))
    view.each_epoch(target, name="target")
    view.step(sales=ROWS)
    view = opened(own(2))
    view = opened(own(1))
    view.each_epoch(target, name="target")
    assert target.total == view.value
    assert target.epochs == [1, 2, 3]
    view = opened(own(1, factor=2))  # which reads other rows
    with pytest.raises(SinkError, match="a function of the program"):
        view.each_epoch(target, name="target")
    target.total = ef.ZSet()
    view.restart_sink("target")
    view.each_epoch(target, name="target")
    view.step(sales=[Sale("Bonn", 9)])
    assert target.total == view.value


def test_a_sink_without_restart_says_so_and_can_be_ended(opened: Open) -> None:
    class Mine(ef.Sink):
        def publish(self, epoch: int, change: Any) -> None:
            pass

    view = opened(totals(0))
    view.add_sink(Mine())
    view.step(sales=ROWS)
    with pytest.raises(SinkError, match="'Mine' cannot begin again: it has no `restart`"):
        view.restart_sink("Mine")
    with pytest.raises(SinkError, match="no `restart`"):
        view.step(sales=ROWS)
    assert view.epoch == 2, "the epoch stays"
    view.end_sink("Mine")
    view.step(sales=ROWS)
    assert view.sinks == {}


def test_a_restart_survives_until_the_sink_is_added(opened: Open) -> None:
    target = Target()
    view = opened(totals(0))
    view.each_epoch(target, name="target")
    view.step(sales=ROWS[:1])
    view = opened(totals(0))
    view.restart_sink("target")
    view = opened(totals(0))
    view.step(sales=ROWS[1:])
    view = opened(totals(1))
    target.total = ef.ZSet()
    view.each_epoch(target, name="target")
    assert target.total == view.value
    assert target.epochs == [1, 3]
    target.total = ef.ZSet()
    view = opened(totals(1))
    view.each_epoch(target, name="target")
    assert target.epochs == [1, 3], "once"


def test_a_sink_cannot_restart_in_the_middle_of_a_delivery() -> None:
    view = SALES.run()

    def restarts(change: Any, epoch: int) -> None:
        view.restart_sink("restarts")

    view.each_epoch(restarts)
    with pytest.raises(CompositionError, match="in the middle of a delivery"):
        view.step(sales=ROWS)


def test_a_restart_in_memory_writes_what_there_is(tmp_path: Path) -> None:
    view = totals(0).run()
    view.write_changes(tmp_path / "log", format="jsonl")
    view.step(sales=ROWS)
    view.step(sales=ROWS[:1])
    for _ in range(2):
        view.restart_sink(next(iter(view.sinks)))
    view.step()
    found = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("epoch=*"))
    assert found[-2:] == ["log/epoch=2", "log/epoch=3"]
    assert len(found) == 2 + 3, "nothing is removed"
    lines = (tmp_path / "log/epoch=2/part-00000.jsonl").read_text().splitlines()
    assert sorted(lines) == [
        '{"city": "Oslo", "n": 1, "__weight": 1}', '{"city": "Rome", "n": 3, "__weight": 1}'
    ]  # fmt: skip
