"""What is asked of Spark in the wrong way is said in one sentence, with what to write instead."""

from __future__ import annotations

import re
import shutil
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.spark import checks
from ebbflow.engine.spark.checks import check_session
from ebbflow.engine.spark.session import plain
from ebbflow.errors import AbsentRow, ChangeError, CompositionError, SparkError
from ebbflow.zset import ZSet


class Order(NamedTuple):
    id: int
    city: str


ORDERS = ef.Input("orders", Order, key="id")


@pytest.mark.parametrize(
    ("ask", "what", "remedy"),
    [
        (lambda: ef.spark("local[2]"), "spark('local[2]'): that is not a Spark session",  # type: ignore[arg-type]
         "SparkSession.builder.master('local[2]').getOrCreate(), or none for a local one"),
        (lambda: ef.spark("state/"), "spark('state/'): that is not a Spark session",  # type: ignore[arg-type]
         "spark(path='state/')"),
        (lambda: ef.spark(path="x", bukets=3), "spark() has no argument 'bukets'",
         "buckets=..."),
        (lambda: ef.spark(path="x", zzz=3), "spark() has no argument 'zzz'",
         "one of these"),
        (lambda: ORDERS.run("spark"), "run('spark'): that is not an engine",
         'run(ef.spark(path="state/"))'),
    ],
)  # fmt: skip
def test_a_wrong_way_to_ask_names_the_right_one(ask: Any, what: str, remedy: str) -> None:
    with pytest.raises(CompositionError) as caught:
        ask()
    assert (caught.value.what, caught.value.remedy) == (what, remedy)
    assert "test_messages.py" in str(caught.value.facts["created"])


def test_a_session_is_no_engine(spark: Any) -> None:
    with pytest.raises(CompositionError, match="that is not an engine") as caught:
        ORDERS.run(spark)
    assert caught.value.remedy == 'run(ef.spark(session, path="state/"))'


def test_a_session_that_was_stopped_is_refused_though_it_was_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None), version="4.2.0")
    monkeypatch.setattr(checks, "_checked", [stopped])
    with pytest.raises(SparkError, match="this Spark session was stopped"):
        check_session(stopped)  # type: ignore[arg-type]


def test_workers_that_lack_a_package_are_told_by_which_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("ModuleNotFoundError: No module named 'ebbflow'")

    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/bare/bin/python")
    with pytest.raises(SparkError, match="the workers cannot import ebbflow") as caught:
        checks._check_workers(SimpleNamespace(range=fail))  # type: ignore[arg-type]
    assert str(caught.value.facts["python"]) == "/opt/bare/bin/python"
    assert "PYSPARK_PYTHON" in caught.value.remedy


def test_what_java_says_of_itself_is_left_out() -> None:
    said = (
        "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: no disk\n"
        "\tat org.apache.spark.Errors$.f(Errors.scala:3)\n\tat java.base/java.lang.T.run(T:1)\n"
        "Driver stacktrace:\n\t... 12 more\nCaused by: java.io.IOException: no disk\n"
    )
    assert "at " not in plain(said)
    assert plain(said).count("no disk") == 2


def test_changes_that_cannot_be_are_refused_with_what_to_write(spark: Any, tmp_path: Path) -> None:
    with ORDERS.run(ef.spark(spark, path=tmp_path, mode="driver")) as view:
        view.step(orders=[Order(1, "Rome"), Order(2, "Oslo")])
        stream = spark.readStream.format("rate").load().selectExpr("value as id", "'x' as city")
        with pytest.raises(ChangeError, match="a streaming DataFrame has no end") as caught:
            view.step(orders=stream)
        assert caught.value.remedy.startswith("view.stream(orders=...)")
        with pytest.raises(ChangeError, match="delete: a key of input 'orders'") as caught:
            view.input("orders").delete([1], [2])
        assert "delete(*keys)" in caught.value.remedy
        with pytest.raises(AbsentRow, match="a key was deleted twice"):
            view.input("orders").delete(1, 1)
        view.input("orders").delete()
        view.input("orders").delete(1, 2)
        assert view.zset() == ZSet()


def test_keys_are_deleted_that_are_given_as_a_list_a_set_or_a_frame(
    spark: Any, tmp_path: Path
) -> None:
    with ORDERS.run(ef.spark(spark, path=tmp_path, mode="driver")) as view:
        for keys in ([1, 2], {1, 2}, spark.range(1, 3)):
            view.step(orders=[Order(1, "Rome"), Order(2, "Oslo")])
            view.input("orders").delete(keys)
            assert view.zset() == ZSet()


def test_many_keys_are_deleted(spark: Any, tmp_path: Path) -> None:
    rows = [Order(i, "Rome") for i in range(100)]
    with ORDERS.run(ef.spark(spark, path=tmp_path, small=10, buckets=2)) as view:
        view.step(orders=rows)
        view.input("orders").delete(*range(99))
        assert view.last.mode == "staged"
        assert view.stats().epochs[-1].rows_in == 99
        assert view.zset() == ZSet.of(rows[99:])
        with pytest.raises(AbsentRow, match="there is no row of this key"):
            view.input("orders").delete(*range(50, 70))
        assert view.epoch == 2


# ---- frames that Spark cannot read ----


def test_a_frame_of_a_stopped_session_is_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.createDataFrame([(1, "Rome")], "id long, city string")
    stopped = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None))
    with ORDERS.run(ef.spark(spark, path=tmp_path)) as view:
        monkeypatch.setattr(type(frame), "sparkSession", property(lambda self: stopped))
        for change in (frame, ef.upsert(frame), ef.upsert([], delete=frame)):
            with pytest.raises(ChangeError, match="a Spark session which was stopped") as caught:
                view.step(orders=change)
            assert "view.session" in caught.value.remedy
        assert view.epoch == 0


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged", "bulk"])
def test_a_frame_that_fails_says_why_in_one_line(spark: Any, mode: Any, tmp_path: Path) -> None:
    from pyspark.sql.functions import udf

    @udf("string")
    def failing(number):  # type: ignore[no-untyped-def]
        raise ValueError(f"no city of {number}")

    folder = tmp_path / "files"
    spark.range(3).selectExpr("id", "'Rome' AS city").write.parquet(str(folder))
    gone = spark.read.parquet(str(folder))
    shutil.rmtree(folder)
    ids = spark.range(3)
    with ORDERS.run(ef.spark(spark, path=tmp_path / "state", mode=mode)) as view:
        for frame, why in (
            (ids.withColumn("city", failing("id")), r"ValueError: no city of \d"),
            (ids.selectExpr("id", "CAST(1 / (id - 1) AS STRING) AS city"), r"\[DIVIDE_BY_ZERO\]"),
            (gone, r"\[FAILED_READ_FILE.FILE_NOT_EXIST\]|does not exist"),
        ):
            with pytest.raises(SparkError) as caught:
                view.step(orders=frame)
            assert re.match(why, str(caught.value.facts["cause"])), caught.value.facts["cause"]
            assert "\tat " not in "".join(traceback.format_exception(caught.value))
        assert view.epoch == 0
