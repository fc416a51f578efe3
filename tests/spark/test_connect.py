"""Spark Connect: a client and a server, in the slow suite before a standalone cluster with a master
and two workers, and the state in a folder that they share. The whole folder of tests runs so with
`EBBFLOW_SPARK=connect-cluster`."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")
pytest.importorskip("grpc", reason="Spark Connect is not tested: pip install '.[connect]'")

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f
from tests.spark.servers import connected
from tests.spark.test_oracle_session import CHOSEN, epochs_of, followed

import ebbflow as ef
from ebbflow.engine.spark.connect import estimated_bytes, steady
from ebbflow.engine.spark.progress import Progress
from ebbflow.errors import EbbflowError, InUse, RepeatedBatch, SparkError
from ebbflow.testing import random_program


class Order(NamedTuple):
    id: int
    city: str
    price: int


ORDERS = ef.Input("orders", Order, key="id")
BY_CITY = ORDERS.group_by("city").agg(total=ef.sum("price"))
MODES = ["driver", "single_task", "staged", "bulk"]
SHOP = ef.program(by_city=BY_CITY, dear=ORDERS.filter(lambda order: order.price > 10))


RUNS = [
    (1, "staged"),
    *(pytest.param(n, MODES[n % 4], marks=pytest.mark.slow) for n in range(6)),
    *(pytest.param(n, MODES[(n + 2) % 4], marks=pytest.mark.slow) for n in range(6)),
]


@pytest.mark.parametrize(("number", "mode"), RUNS)
def test_oracle_connect_equals_batch(connect: Any, tmp_path: Path, number: int, mode: str) -> None:
    program = random_program(CHOSEN[number])
    epochs = epochs_of(program, Random(number), 12, 1)
    modes = followed(connect, program, tmp_path / "state", mode, epochs, check=number % 2 > 0)
    assert modes[0] == mode


def test_what_a_view_does_it_does_on_connect(connect: Any, tmp_path: Path) -> None:
    told: list[Any] = []
    with SHOP.run(ef.spark(connect, path=tmp_path / "state", buckets=2)) as view:
        view.each_epoch(lambda change, epoch: told.append((epoch, len(change))), name="told")
        change = view.step(orders=[Order(1, "Rome", 10), Order(2, "Oslo", 20)], batch=("shop", 1))
        assert sorted(map(tuple, change["by_city"].collect())) == [("Oslo", 20, 1), ("Rome", 10, 1)]
        frame = connect.createDataFrame([(1, "Oslo", 5)], "id long, city string, price long")
        view.step(orders=ef.upsert(frame), batch=("shop", 2))
        with pytest.warns(RepeatedBatch):
            view.step(orders=[Order(9, "Rome", 1)], batch=("shop", 2))
        assert view.epoch == 2
        assert told == [(1, 2), (2, 2)]
        view.step(orders=ef.delete([2]))
        with pytest.raises(EbbflowError, match="input 'orders'"):
            view.step(orders=ef.delete([2]))
        view.verify()
        assert tuple(view["by_city"].get("Oslo")) == ("Oslo", 5)
        assert "native" in view.explain()
        assert [tuple(row) for row in view.at(1)["dear"].collect()] == [(2, "Oslo", 20)]
        with pytest.raises(InUse), connected(_address(connect)) as other:
            SHOP.run(ef.spark(other, path=tmp_path / "state"))


def _address(session: Any) -> str:
    return f"sc://{session.client._builder.endpoint}"


def test_what_spark_knows_of_a_query_is_read_on_connect(connect: Any, tmp_path: Path) -> None:
    file = str(tmp_path / "numbers.parquet")
    pq.write_table(pa.table({"n": range(5000)}), file)
    rows = connect.read.parquet(file)
    assert 1_000 < estimated_bytes(rows) < 1_000_000
    assert steady(rows.select(f.coalesce("n", f.lit(0)).alias("n")).filter("n > 3"))
    assert not steady(rows.withColumn("at", f.rand()))
    assert not steady(rows.withColumns({f"c{i}": f.rand() for i in range(40)}))
    assert not steady(rows.distinct())


@pytest.mark.slow
def test_progress_is_told_by_the_server(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    def slowly(batches: Any) -> Any:
        from time import sleep

        sleep(5)  # the server tells every two seconds
        yield from batches

    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress(connect, "epoch 1", after=0.0):
        connect.range(0, 2, 1, 2).mapInArrow(slowly, "id long").collect()
    text = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert " of 2 tasks, " in text
    assert not connect.client._progress_handlers


def test_without_exact_arithmetic_there_is_no_bulk_load(connect: Any, tmp_path: Path) -> None:
    setting = "spark.sql.ansi.enabled"
    connect.conf.set(setting, "false")
    try:
        with BY_CITY.run(ef.spark(connect, path=tmp_path, mode="bulk", buckets=2)) as view:
            view.step(orders=[Order(1, "Rome", 7), Order(2, "Rome", 3)])
            assert view.last.mode == "staged"
            assert [tuple(row) for row in view.value.collect()] == [("Rome", 10)]
    finally:
        connect.conf.set(setting, "true")


@pytest.mark.slow
def test_a_session_that_the_server_does_not_know_any_more(connect: Any, tmp_path: Path) -> None:
    with connected(_address(connect)) as other:
        view = BY_CITY.run(ef.spark(other, path=tmp_path, mode="staged", buckets=2))
        view.step(orders=[Order(1, "Rome", 7)])
        other.client.release_session()
        with pytest.raises(SparkError, match="the epoch failed in Spark") as caught:
            view.step(orders=[Order(2, "Rome", 3)])
        assert "with a new session" in caught.value.remedy
        view.close()
    with BY_CITY.run(ef.spark(connect, path=tmp_path, mode="staged", buckets=2)) as view:
        view.step(orders=[Order(2, "Rome", 3)])
        assert [tuple(row) for row in view.value.collect()] == [("Rome", 10)]
