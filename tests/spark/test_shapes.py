"""Reshaped rows, joins on inequalities, scalar filters and limits on Spark, beside the same view in
this process: a bulk load, waves of tasks, and single tasks."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")

import ebbflow as ef
from ebbflow.engine.spark.output.frames import zset_of
from ebbflow.zset import ZSet


class Line(NamedTuple):
    order: int
    supplier: str
    price: int | None
    tags: tuple[str, ...]


class Span(NamedTuple):
    low: int
    high: int


LINES, SPANS = ef.Input("lines", Line), ef.Input("spans", Span)
FILLED = LINES.fill_null(price=0).with_fields(double=lambda line: line.price * 2)
SAME: dict[str, ef.Collection] = {
    "fields": FILLED.rename(cost="price").select("order", "cost", "double"),
    "tags": LINES.explode("tags", into="tag", position="at").select("order", "tag", "at"),
    "long": FILLED.select("order", "price", "double").unpivot("price", "double"),
    "wide": FILLED.pivot("supplier", ("a", "b"), using=ef.sum("price"), per="order"),
    "some": LINES.sample(0.5, per="order").select("order", "supplier"),
    "others": LINES.join(LINES, on="order", where=ef.ne("supplier"), how="semi").select("order"),
    "inside": FILLED.select("order", "price").join(SPANS, where=ef.between("price", "low", "high")),
    "dear": FILLED.select("order", "price").filter(
        lambda line, all: line.price > all.mean, FILLED.agg(mean=ef.mean("price"))
    ),
    "page": LINES.select("order", "supplier").limit(
        3, order=(ef.desc("supplier"), "order"), offset=2
    ),
}


def changes(dice: Random) -> Any:
    """Rows that come and go, many at first."""
    lines: list[Line] = []
    for size in (60, 4):
        new = [
            Line(dice.randrange(8), dice.choice("abc"), dice.choice([None, 1, 5, 9]),
                 tuple(dice.sample("xyz", dice.randrange(3))))
            for _ in range(size)
        ]  # fmt: skip
        gone = dice.sample(lines, min(len(lines), 3))
        for line in gone:
            lines.remove(line)
        lines += new
        low = dice.randrange(9)
        yield {"lines": ZSet.of(new) - ZSet.of(gone), "spans": ZSet.of([Span(low, low + 3)])}


FEW = ("others", "dear")


@pytest.mark.parametrize(
    ("mode", "names"),
    [("auto", FEW), pytest.param("staged", tuple(SAME), marks=pytest.mark.slow)],
    ids=["few", "all"],
)
def test_every_shape_and_comparison_is_the_same_on_spark(
    spark: Any, tmp_path: Path, mode: str, names: tuple[str, ...]
) -> None:
    program = ef.program(**{name: SAME[name] for name in names})
    here = program.run()
    there = program.run(ef.spark(spark, path=tmp_path, mode=mode, small=10, in_driver=True))
    for change in changes(Random(mode)):
        given = {name: each for name, each in change.items() if name in program.plan.sources}
        here.step(given)
        there.step(given)
    for name in names:
        row_type = program.plan.outputs[name].type
        assert zset_of(there.value[name], row_type) == here.value[name]
    there.close()


def test_fields_that_are_kept_added_and_filled_are_columns() -> None:
    maps = [node for node in FILLED.plan.nodes() if node.verb == "map"]
    assert len(maps) == 2
    assert all(node.fn.expression is not None for node in maps)
