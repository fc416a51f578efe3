"""A changed program and its sinks on Spark: the difference is one epoch; a sink begins again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

import ebbflow as ef
from ebbflow.errors import SinkError


class Sale(NamedTuple):
    id: int
    city: str
    price: int


SALES = ef.Input("sales", Sale, key="id")
ROWS = [Sale(i, ["Rome", "Oslo", "Bonn"][i % 3], i) for i in range(12)]
Open = Callable[..., Any]


def above(least: int) -> Any:
    """A filter alone, which Spark derives from the rows of the input."""
    return SALES.filter(lambda sale: sale.price > least)


def totals(least: int) -> Any:
    return above(least).group_by("city").agg(n=ef.count(), total=ef.sum("price"))


def own(least: int) -> Any:
    """A reducer of the user's, which only the program can read."""
    total: Any = ef.Reducer(
        0, lambda acc, sale: acc + sale.price, lambda acc, sale: acc - sale.price,
        result=ef.typed(int, lambda acc: acc),
    )  # fmt: skip
    return above(least).group_by("city").agg(total=total)


def tags(least: int) -> Any:
    """Rows with a set in them, which Spark cannot compare."""
    return above(least).group_by("city").agg(ids=ef.set_of("id"))


@pytest.fixture
def opened(spark: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a program on the same state, as often as it is asked to."""
    views: list[Any] = []

    def run(program: Any, **options: Any) -> Any:
        for view in views:
            view.close()
        options = {"in_driver": True, "keep_epochs": 1, **options}
        views.append(program.run(ef.spark(spark, path=tmp_path / "state", **options)))
        return views[-1]

    yield run
    for view in views:
        view.close()


class Target(ef.Sink):
    """A target that is outside, and survives."""

    name = "target"

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self.rows: ef.ZSet[Any] = ef.ZSet()

    def publish(self, epoch: int, change: Any) -> None:
        self.epochs.append(epoch)
        self.rows = self.rows + rows_of(change)

    def restart(self, epoch: int, value: Any) -> None:
        self.epochs, self.rows = [epoch], rows_of(value)


def rows_of(frame: Any) -> ef.ZSet[Any]:
    found = [tuple(frozenset(x) if isinstance(x, list) else x for x in row)
             for row in frame.collect()]  # fmt: skip
    assert len({row[:-1] for row in found}) == len(found), "every row is there once"
    return ef.ZSet([(row[:-1], row[-1]) for row in found])


def plain(value: Any) -> ef.ZSet[Any]:
    return ef.ZSet([(tuple(row), weight) for row, weight in value.items()])


@pytest.mark.parametrize(
    "program", [above, totals, own, tags], ids=lambda program: program.__name__
)
def test_every_change_of_the_program_is_one_epoch(program: Any, opened: Open) -> None:
    target = Target()
    view = opened(program(0))
    view.add_sink(target)
    view.step(sales=ROWS[:6])
    view.close()
    view = opened(program(0))
    view.step(sales=ROWS[6:])  # the sink is behind
    for least in (3, 8, 0, 0):
        view = opened(program(least))
    view.add_sink(target)
    assert target.epochs == [1, 2, 3, 4, 5]
    assert target.rows == plain(view.zset())
    view.step(sales=ef.delete([1, 2]))
    assert target.rows == plain(program(0).run().step(sales=[ROWS[0], *ROWS[3:]]))
    assert view._store.keep_also == set()


def test_a_gap_names_the_change_and_restart_sink_rewrites_the_target(
    opened: Open, tmp_path: Path
) -> None:
    target, folder = Target(), tmp_path / "log"
    view = opened(totals(0))
    view.add_sink(target)
    view.write_changes(folder)
    view.step(sales=ROWS)
    wider = above(4).group_by("city").agg(n=ef.count(), total=ef.mean("price"))
    view = opened(wider)
    with pytest.raises(SinkError, match="then the program changed") as caught:
        view.add_sink(target)
    assert "total: int" in str(caught.value.facts["why"])
    assert "price > 4" in str(caught.value.facts["now"])
    view.restart_sink("target")
    view.add_sink(target)
    assert target.rows == plain(view.zset())
    (name,) = [name for name in view.sinks if name != "target"]
    view.restart_sink(name)
    view = opened(wider)
    view.write_changes(folder)
    assert sorted(each.name for each in folder.iterdir()) == ["_before_epoch_2", "epoch=2"]
    assert (folder / "epoch=2" / "_snapshot").exists()
    view.step(sales=ef.delete([11]))
    found = [row for file in sorted(folder.glob("epoch=*/*.parquet"))
             for row in pq.ParquetFile(file).read().to_pylist()]  # fmt: skip
    added = ef.ZSet([((row["city"], row["n"], row["total"]), row["__weight"]) for row in found])
    assert added == plain(view.zset())


def test_a_restart_at_the_epoch_of_a_change_writes_everything(opened: Open, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    view = opened(totals(0))
    view.write_changes(folder, format="jsonl")
    view.step(sales=ROWS)
    view = opened(totals(4))
    view.write_changes(folder, format="jsonl")
    view.restart_sink(next(iter(view.sinks)))
    lines = [json.loads(line) for file in (folder / "epoch=2").glob("part-*")
             for line in file.read_text().splitlines()]  # fmt: skip
    rows = [(line["city"], line["n"], line["total"]) for line in lines]
    assert ef.ZSet.of(rows) == plain(view.zset())


class Interrupted(BaseException):
    """Stands for the death of the process."""


@pytest.mark.parametrize("restart", [False, True], ids=["difference", "restart"])
def test_a_death_after_the_target_was_written_writes_nothing_twice(
    restart: bool, opened: Open, tmp_path: Path
) -> None:
    class Dying(Target):
        alive = True

        def had(self, known: int | None, first: int, last: int) -> int:
            return self.epochs[-1] if self.epochs else 0

        def publish(self, epoch: int, change: Any) -> None:
            super().publish(epoch, change)
            self.live_on()

        def restart(self, epoch: int, value: Any) -> None:
            super().restart(epoch, value)
            self.live_on()

        def live_on(self) -> None:
            if not self.alive:
                raise Interrupted

    target = Dying()
    view = opened(totals(0))
    view.add_sink(target)
    view.step(sales=ROWS)
    view = opened(totals(4))
    if restart:
        view.restart_sink("target")
    target.alive = False
    with pytest.raises(Interrupted):
        view.add_sink(target)
    note = json.loads((tmp_path / "state" / "sink-target.json").read_text())
    marked = {"sink": "target", "epoch": 2, "restart": True}
    assert note == (marked if restart else {"sink": "target", "epoch": 1})
    target.alive = True
    view = opened(totals(4))
    view.add_sink(target)
    assert target.epochs == ([2] if restart else [1, 2])
    view.step(sales=ef.delete([11]))
    assert target.rows == plain(view.zset())
    assert "restart" not in (tmp_path / "state" / "sink-target.json").read_text()
