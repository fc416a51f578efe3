"""Inputs that keep only what is read of their rows, on Spark: in every mode what batch gives over
whole rows, with narrow columns in the state."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import AbsentRow, StateError
from ebbflow.zset import ZSet


class Line(NamedTuple):
    order: int
    number: int
    price: int
    day: date
    note: str
    mode: str | None


class Order(NamedTuple):
    id: int
    city: str
    clerk: str


DAY = date(2024, 1, 5)
lines = ef.Input("lines", Line, key=("order", "number"))
orders = ef.Input("orders", Order)  # rows of the same id and city are several rows, by their clerks
PROGRAM = (
    lines.filter(lambda row: row.day > DAY)
    .select("order", "price")
    .join(orders.select("id", "city"), left_on="order", right_on="id")
    .group_by("city")
    .agg(total=ef.sum("price"), n=ef.count())
)
KEPT = {"lines": ("order", "number", "price", "day"), "orders": ("id", "city")}


def line(dice: Random, order: int, number: int) -> Line:
    day = date(2024, 1, dice.randrange(1, 10))
    return Line(order, number, dice.randrange(9), day, dice.choice("ab"), dice.choice([None, "x"]))


def change(dice: Random, there: dict[str, ZSet[Any]], size: int) -> dict[str, ZSet[Any]]:
    """Rows that come, that go, and that differ from those that were there in some field."""
    found = {(row.order, row.number): row for row in there["lines"]}
    delta: ZSet[Any] = ZSet()
    for at in dice.sample([(order, number) for order in range(size) for number in range(3)], size):
        old = found.get(at)
        if old is not None:
            delta -= ZSet.of([old])
        if old is not None and dice.random() < 0.4:
            delta += ZSet.of([old._replace(note=old.note + "!")])
        elif dice.random() < 0.7:
            delta += ZSet.of([line(dice, *at)])
    some = [Order(dice.randrange(size), dice.choice("RO"), dice.choice("xyz")) for _ in range(size)]
    gone = [row for row in there["orders"] if dice.random() < 0.3]
    return {
        "lines": delta,
        "orders": ZSet.of(some) - ZSet({row: there["orders"].weight(row) for row in gone}),
    }


@pytest.mark.parametrize("mode", ["single_task", "staged", "bulk"])
def test_every_mode_gives_what_batch_gives_over_whole_rows(
    mode: str, spark: Any, tmp_path: Path
) -> None:
    dice = Random(mode)
    there: dict[str, ZSet[Any]] = {"lines": ZSet(), "orders": ZSet()}
    with PROGRAM.run(ef.spark(spark, path=tmp_path, mode=mode, narrow=True)) as view:
        for number in range(4):
            delta = change(dice, there, 30)
            there = {name: rows + delta[name] for name, rows in there.items()}
            given: dict[str, Any] = dict(delta)
            if number % 2:
                tables = {name: rows.to_arrow(view.plan.sources[name].given)
                          for name, rows in delta.items()}  # fmt: skip
                given = {name: spark.createDataFrame(table) for name, table in tables.items()}
            view.step(given)
            (expected,) = evaluate(PROGRAM.plan, there).values()
            assert view.zset() == expected
        for name, fields in KEPT.items():
            kept = view.input(name).value
            assert tuple(kept.columns) == fields
            wanted = [tuple(getattr(row, each) for each in fields)
                      for row, n in there[name].items() for _ in range(n)]  # fmt: skip
            assert sorted(map(tuple, kept.collect())) == sorted(wanted)
        row = next(iter(there["lines"]))
        assert view.input("lines").get((row.order, row.number)) == row[:4]
        with pytest.raises(AbsentRow):
            view.step(lines={row._replace(price=99): -1})
        view.step(lines={row._replace(note="another"): -1})
        assert (row.order, row.number) not in view.input("lines")


def test_tables_may_leave_out_what_nobody_reads_and_a_program_that_reads_it_is_refused(
    spark: Any, tmp_path: Path
) -> None:
    by_mode = lines.group_by("mode").agg(n=ef.count())
    table = pa.table({"order": [1], "number": [2], "price": [3], "day": [date(2024, 2, 1)]})
    cities = pa.table({"id": [1], "city": ["Rome"]})
    with PROGRAM.run(ef.spark(spark, path=tmp_path, narrow=True)) as view:
        view.step(lines=spark.createDataFrame(table), orders=cities)
        assert view.zset() == ZSet({("Rome", 3, 1): 1})
    both = ef.program(totals=PROGRAM, modes=by_mode)
    with pytest.raises(StateError, match="'mode' is read now, and was not kept"):
        both.run(ef.spark(spark, path=tmp_path, narrow=True))
