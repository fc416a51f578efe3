"""An epoch whose rows the driver has is a job of one task, and no query; and nobody makes a query
of what it changed before somebody looks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame

import ebbflow as ef
from ebbflow.engine.spark.borrowed import environment_of_queries
from ebbflow.engine.spark.output.late import LateFrame
from ebbflow.engine.spark.tasks import alone
from ebbflow.errors import AbsentRow, FunctionFailed

pytestmark = pytest.mark.classic


class Sale(NamedTuple):
    city: str
    price: int


SUMS = ef.Input("sales", Sale).group_by("city").agg(total=ef.sum("price"))


@pytest.mark.parametrize("limit", [0, 1 << 15])
def test_an_epoch_of_rows_is_no_query(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("a query is made")

    monkeypatch.setattr("ebbflow.engine.spark.tasks.epochs.WITH_TASK", limit)
    with SUMS.run(ef.spark(spark, path=str(tmp_path / "state"))) as view:
        with monkeypatch.context() as patch:
            for name in ("mapInArrow", "collect"):
                patch.setattr("pyspark.sql.classic.dataframe.DataFrame." + name, refused)
            patch.setattr(type(spark), "createDataFrame", refused)
            first = view.step(sales=[Sale("Rome", 1), Sale("Oslo", 2)])
            second = view.step(sales={Sale("Oslo", 2): -1, Sale("Rome", 2): 1})
        assert view.stats().epochs[-1].mode == "single_task"
        assert sorted(map(tuple, first.collect())) == [("Oslo", 2, 1), ("Rome", 1, 1)]
        wanted = [("Oslo", 2, -1), ("Rome", 1, -1), ("Rome", 3, 1)]
        assert sorted(map(tuple, second.collect())) == wanted
        assert dict(view.zset().items()) == {("Rome", 3): 1}


def test_what_is_refused_is_said_as_ever(spark: Any, tmp_path: Path) -> None:
    failing = ef.Input("sales", Sale).map(lambda sale: 1 // (sale.price - 7), type=int)
    with failing.run(ef.spark(spark, path=str(tmp_path / "state"))) as view:
        with pytest.raises(FunctionFailed, match="ZeroDivisionError"):
            view.step(sales=[Sale("Rome", 7)])
        with pytest.raises(AbsentRow, match="taken away"):
            view.step(sales={Sale("Rome", 7): -1})
        assert view.epoch == 0
        view.step(sales=[Sale("Rome", 8)])
        assert dict(view.zset().items()) == {1: 1}


def parents(_: Any) -> Any:
    yield str(os.getppid()).encode()


def parents_in_query(given: Any) -> Any:
    import pyarrow as pa

    for _ in given:
        yield pa.record_batch({"id": [os.getppid()]})


def test_it_runs_in_the_workers_of_queries(spark: Any) -> None:
    (_, _, blob), = alone.LoneTasks(spark).run(parents, {})  # fmt: skip
    query = spark.range(0, 1, 1, 1).mapInArrow(parents_in_query, "id long").collect()
    assert int(blob) == query[0].id
    environment = dict(spark.sparkContext.environment)
    with pytest.raises(ValueError, match="no"), environment_of_queries(spark):
        raise ValueError("no")
    assert spark.sparkContext.environment == environment


def test_a_late_frame_is_the_frame(spark: Any) -> None:
    made: list[str] = []

    def make() -> DataFrame:
        made.append("once")
        return spark.range(3)

    frame = LateFrame(spark, make)
    assert (isinstance(frame, DataFrame), frame.sparkSession is spark, made) == (True, True, [])
    assert frame.columns == ["id"]
    assert [row.id for row in frame.filter(frame.id > 0).collect()] == [1, 2]
    assert (frame.count(), frame.union(spark.range(1)).count(), made) == (3, 4, ["once"])
    spark.range(1).join(frame, "id").count()
    frame.createOrReplaceTempView("late")
    assert spark.sql("SELECT sum(id) AS n FROM late").collect()[0].n == 3
    spark.catalog.dropTempView("late")
