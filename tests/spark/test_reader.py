"""What a view on Spark writes, read without Spark: by `ebbflow.open`, and from files of text."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.zset import ZSet


class Sale(NamedTuple):
    city: str
    price: int


sales = ef.Input("sales", Sale)
totals = sales.group_by("city").agg(total=ef.sum("price"))
PROGRAM = ef.program(totals=totals, dear=sales.filter(lambda sale: sale.price > 10))
STEPS: list[Any] = [
    [Sale("Rome", 30), Sale("Oslo", 1)],
    {Sale("Oslo", 1): -1, Sale("Rome", 5): 2},
    [],
    {Sale("Rome", 30): -1},
]


class Received(ef.Sink):
    def __init__(self) -> None:
        self.epochs: list[tuple[int, int]] = []

    def publish(self, epoch: int, change: Any) -> None:
        self.epochs.append((epoch, change["totals"].count()))


def run(spark: Any, path: Path, **options: Any) -> Any:
    return PROGRAM.run(ef.spark(spark, path=path, in_driver=True, keep_epochs=9, **options))


def followed(path: Path, program: Any, view: Any) -> None:
    """Follow a view from the beginning, and compare with the same program run here."""
    reader = ef.open(path, program)
    total: dict[str, ZSet[Any]] = {name: ZSet() for name in PROGRAM.plan.outputs}
    local, following = PROGRAM.run(), reader.changes(wait=0)
    assert next(following)[0] == reader.epoch == 0
    for epoch, change in enumerate(STEPS, 1):
        view.step(sales=change)
        local.step(sales=change)
        ((number, given),) = following
        assert number == epoch == reader.epoch
        total = {name: rows + given[name] for name, rows in total.items()}
        assert total == reader.value == local.value == reader.at(epoch)
    assert reader.at(1)["totals"] == ZSet.of([("Rome", 30), ("Oslo", 1)])
    assert [epoch for epoch, _ in reader.changes(since=1, wait=0)] == [2, 3, 4]
    assert list(reader.value["totals"].to_pandas().columns) == ["city", "total"]


def test_a_reader_needs_no_spark_and_no_program(spark: Any, tmp_path: Path) -> None:
    with run(spark, tmp_path / "state", readable=True) as view:
        sink = Received()
        view.add_sink(sink)
        for format in ("csv", "jsonl"):
            view.write_changes(tmp_path / format, format=format)
        followed(tmp_path / "state", None, view)
    assert sink.epochs == [(1, 2), (2, 3), (3, 0), (4, 2)]
    lines = (tmp_path / "jsonl" / "totals" / "epoch=4" / "part-00000.jsonl").read_text()
    assert sorted(json.loads(line)["__weight"] for line in lines.splitlines()) == [-1, 1]
    with open(tmp_path / "csv" / "dear" / "epoch=1" / "part-00000.csv", newline="") as file:
        assert list(csv.DictReader(file)) == [{"city": "Rome", "price": "30", "__weight": "1"}]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "bulk", "staged", "single_task"])
def test_a_reader_with_the_program_reads_what_is_computed(
    spark: Any, tmp_path: Path, mode: str
) -> None:
    for program in (None, PROGRAM):
        path = tmp_path / str(program is None)
        with run(spark, path, mode=mode) as view:
            followed(path, program, view)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["bulk", "staged", "single_task"])
def test_all_outputs_are_kept_in_every_mode(spark: Any, tmp_path: Path, mode: str) -> None:
    with run(spark, tmp_path, mode=mode, readable=True) as view:
        followed(tmp_path, None, view)
        view.verify()
