"""Streams: every batch is an epoch, exactly once, and nothing is done for batches that are none."""

from __future__ import annotations

import shutil
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.spark import live_feed as feed

import ebbflow as ef
from ebbflow.engine.spark.streams.view import ViewWithStreams
from ebbflow.errors import (
    ChangeError,
    CompositionError,
    EbbflowError,
    RepeatedBatch,
    SparkError,
    StateError,
    ViewClosed,
)


class Sale(NamedTuple):
    city: str
    price: int


TOTALS = ef.Input("sales", Sale).group_by("city").agg(total=ef.sum("price"))
SCHEMA = "city string, price long"
NOW = {"availableNow": True}


def totals(**cities: int) -> ef.ZSet[Any]:
    return ef.ZSet({TOTALS.type(city, total): 1 for city, total in cities.items()})


def sales(spark: Any, folder: Path) -> Any:
    folder.mkdir(exist_ok=True)
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def put(folder: Path, n: int, **cities: int | None) -> None:
    feed.put(folder, n, [{"city": city, "price": price} for city, price in cities.items()])


def jobs(stream: Any) -> int:
    tracker = stream.view.session.sparkContext.statusTracker()
    return len(tracker.getJobIdsForGroup(stream.query.runId))


def epoch_files(view: Any) -> list[str]:
    return [name for name in view._storage.files.names() if name.startswith("epoch-")]


@pytest.fixture
def view(spark: Any, tmp_path: Path) -> Iterator[Any]:
    with TOTALS.run(ef.spark(spark, path=tmp_path / "state")) as opened:
        yield opened


# ---- what comes ----


@pytest.mark.parametrize("in_driver", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_several_inputs_by_weights_and_upserts_change_by_change(
    spark: Any, tmp_path: Path, in_driver: bool
) -> None:
    files = 4
    for n in range(files):
        feed.drop(tmp_path, n)
    with feed.opened(spark, tmp_path, in_driver=in_driver) as view:
        stream = feed.follow(view, tmp_path, trigger=NOW)
        assert stream.wait()
        assert (stream.progress.epochs, stream.progress.batch) == (files, files - 1)
        assert stream.progress.rows == sum(each.rows_in for each in view.stats().epochs)
        total: dict[Any, int] = {}
        for epoch, changes in feed.log_of(tmp_path / "log").items():
            for row, weight in changes.items():
                total[row] = total.get(row, 0) + weight
            wanted = {tuple(row): n for row, n in feed.expected(epoch).items()}
            assert {row: n for row, n in total.items() if n} == wanted
        assert in_driver or jobs(stream) == files, "one job an epoch, with two inputs"
        feed.put(tmp_path / "customers", files, [{"id": 1, "country": "Peru", "version": 99}])
        assert feed.follow(view, tmp_path, trigger=NOW).wait(), "an input that brings no rows"
        view.verify()


def test_what_is_large_is_computed_once_and_a_first_one_is_loaded_in_bulk(
    spark: Any, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()

    def noticed(batches: Iterator[Any]) -> Iterator[Any]:
        from uuid import uuid4

        for batch in batches:
            (seen / uuid4().hex).write_text(str(batch.num_rows))
            yield batch

    frame = sales(spark, tmp_path / "in").mapInArrow(noticed, SCHEMA)
    rows = [{"city": "ab"[i % 2], "price": i} for i in range(122)]
    with TOTALS.run(ef.spark(spark, path=tmp_path / "state", small=20, buckets=2)) as view:
        stream, modes = view.stream(sales=frame), []
        for n, some in enumerate((rows[:60], rows[60:120], rows[120:])):
            feed.put(tmp_path / "in", n, some)
            stream.process_all()
            modes.append(view.last.mode)
        assert modes == ["bulk", "staged", "single_task"]
        assert view.zset() == totals(a=sum(range(0, 122, 2)), b=sum(range(1, 122, 2)))
        assert stream.progress.rows == 122
    assert sum(int(file.read_text()) for file in seen.iterdir()) == 122


def test_an_idle_stream_and_a_batch_of_no_rows_cost_nothing(spark: Any, tmp_path: Path) -> None:
    place, frame = tmp_path / "state", sales(spark, tmp_path / "in")
    put(tmp_path / "in", 0, a=1)
    with TOTALS.run(ef.spark(spark, path=place)) as view:
        stream = view.stream(sales=frame.filter("price > 0"), name="sold")
        stream.process_all()
        before, ran = epoch_files(view), jobs(stream)
        stream.process_all()
        assert (epoch_files(view), jobs(stream), view.epoch) == (before, ran, 1)
        put(tmp_path / "in", 1, b=0)
        stream.process_all()
        assert (epoch_files(view), view.epoch, stream.progress.batch) == (before, 1, 1)
    put(tmp_path / "in", 2, c=5)
    with TOTALS.run(ef.spark(spark, path=place)) as view:
        view.stream(sales=frame.filter("price > 0"), name="sold", trigger=NOW).wait()
        assert view.zset() == totals(a=1, c=5)


def test_a_stream_of_numbers_with_its_own_checkpoint_and_one_beside_it(
    spark: Any, tmp_path: Path, view: Any
) -> None:
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).load()
    frame = rate.selectExpr("concat('n', value % 2) AS city", "1L AS price")
    heard: list[int] = []
    view.on_change(lambda change: (heard.append(view.epoch), view.streams["numbers"].stop()))
    with view.stream(
        {"sales": frame}, name="numbers", checkpoint=tmp_path / "own", trigger="100 milliseconds"
    ) as stream:
        other = view.stream(sales=sales(spark, tmp_path / "in"))
        assert stream.wait(60), "a callback has stopped it"
        put(tmp_path / "in", 0, n0=10)
        other.process_all()
    assert (tmp_path / "own" / "metadata").exists()
    assert other.active
    assert not stream.active
    taken = 2 * stream.progress.epochs
    assert view.zset() == totals(n0=taken + 10, n1=taken)
    assert len(heard) == view.epoch
    view.close()
    assert not other.active
    with pytest.raises(ViewClosed):
        view.stream(sales=frame)


# ---- again ----


def test_a_batch_that_comes_again_is_left_out_and_nobody_is_warned(
    spark: Any, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "state" / "streams" / "sales"
    put(tmp_path / "in", 0, a=1)
    put(tmp_path / "in", 1, a=2)
    for turn, at in enumerate(["commits/1", "commits/1"]):
        with TOTALS.run(ef.spark(spark, path=tmp_path / "state")) as view:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RepeatedBatch)
                stream = view.stream(sales=sales(spark, tmp_path / "in"), trigger=NOW)
                stream.wait()
            assert stream.progress.repeated == turn
            assert (view.zset(), view.epoch) == (totals(a=3), 2)
        (checkpoint / at).unlink()
        (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)


def test_another_checkpoint_and_an_older_state_are_told_from_a_kill(
    spark: Any, tmp_path: Path
) -> None:
    state, old = tmp_path / "state", tmp_path / "old"
    frame = sales(spark, tmp_path / "in")
    put(tmp_path / "in", 0, a=1)

    def run(path: Path, checkpoint: str, **options: Any) -> Any:
        with TOTALS.run(ef.spark(spark, path=path)) as view:
            place = tmp_path / checkpoint
            view.stream(sales=frame, trigger=NOW, checkpoint=place, **options).wait()
            return view.zset()

    assert run(state, "checkpoint") == totals(a=1)
    shutil.copytree(state, old)
    put(tmp_path / "in", 1, a=2)
    assert run(state, "checkpoint") == totals(a=3)
    put(tmp_path / "in", 2, a=4)
    with pytest.raises(StateError, match="was fed from another checkpoint") as caught:
        run(state, "new")
    assert "another name=" in caught.value.remedy
    with pytest.raises(StateError, match="comes with batch 2, and the state does not") as caught:
        run(old, "checkpoint")
    assert caught.value.facts["missing"] == "1"
    assert run(state, "checkpoint") == totals(a=7)
    assert run(state, "new", name="once more") == totals(a=14)


# ---- what fails ----


def test_a_batch_that_fails_ends_the_stream_and_changes_nothing(spark: Any, tmp_path: Path) -> None:
    marker = tmp_path / "killed"

    def dear(sale: Sale) -> bool:
        if sale.price == 13:
            raise ValueError("unlucky")
        if sale.price == 9 and not marker.exists():
            marker.touch()
            signal.raise_signal(signal.SIGKILL)
        return sale.price > 1

    program = ef.Input("sales", Sale).filter(dear)
    options = {"path": tmp_path / "state", "mode": "single_task"}
    with program.run(ef.spark(spark, **options)) as view:
        view.write_changes(tmp_path / "log")
        stream = view.stream(sales=sales(spark, tmp_path / "in"))
        put(tmp_path / "in", 0, a=2)
        stream.process_all()
        put(tmp_path / "in", 1, b=9)
        with pytest.raises(SparkError, match="the epoch failed in Spark, and changed nothing"):
            stream.process_all()
        assert (view.epoch, stream.active) == (1, False)
        stream = view.stream(sales=sales(spark, tmp_path / "in"))
        stream.process_all()
        assert view.zset() == ef.ZSet.of([Sale("a", 2), Sale("b", 9)])
        put(tmp_path / "in", 2, c=13)
        for wait in (stream.process_all, stream.wait):
            with pytest.raises(EbbflowError, match="raised ValueError") as caught:
                wait()
            assert stream.error is caught.value
        assert "failed" in repr(stream)
        assert view.zset() == ef.ZSet.of([Sale("a", 2), Sale("b", 9)])
        put(tmp_path / "in", 2, c=14)
        view.each_epoch(lambda change, epoch: 1 // (3 - epoch), name="fails")
        with pytest.raises(ZeroDivisionError):
            view.stream(sales=sales(spark, tmp_path / "in"), trigger=NOW).wait()
        assert view.epoch == 3, "a sink that fails ends the stream; the epoch stays"
        view.end_sink("fails")
        view.stream(sales=sales(spark, tmp_path / "in"), trigger=NOW).wait()
        assert view.zset() == ef.ZSet.of([Sale("a", 2), Sale("b", 9), Sale("c", 14)])
    assert sorted(feed.log_of(tmp_path / "log")) == [1, 2, 3]


def test_what_cannot_be_a_stream_is_refused_before_anything_starts(
    spark: Any, tmp_path: Path, view: Any
) -> None:
    frame = sales(spark, tmp_path / "in")
    rows = spark.createDataFrame([("a", 1)], SCHEMA)
    for given, why in [
        ({}, "no input is given"),
        ({"sales": frame, "trigger": {"continuous": "1 second"}}, "none that runs in batches"),
        ({"sales": rows}, "is given what is no streaming DataFrame"),
        ({"sales": [Sale("a", 1)]}, "is given what is no streaming DataFrame"),
        ({"sales": ef.replace(frame)}, "replace needs all rows at once"),
        ({"sales": ef.upsert(frame, delete=["a"])}, "a stream brings one"),
        ({"sales": ef.upsert(frame)}, "has no key"),
        ({"sales": frame.withColumn("price", frame.city)}, "column 'price' is string"),
        ({"sale": frame}, "sale"),
    ]:
        with pytest.raises((ChangeError, CompositionError), match=why):
            view.stream(**given)
    with pytest.raises(ChangeError, match="has no end"):
        view.step(sales=ef.replace(frame))
    stream = view.stream(sales=frame)
    with pytest.raises(CompositionError, match="'sales' of this view is running already"):
        view.stream(sales=frame)
    assert view.streams == {"sales": stream}
    assert len(spark.streams.active) == 1, "none of those that were refused was started"


def test_with_connect_it_is_said_why_not() -> None:
    class Remote(ViewWithStreams):
        session = object()

    with pytest.raises(CompositionError, match="with Spark Connect") as caught:
        Remote().stream(sales=object())
    assert "step(..., batch=(source, number))" in caught.value.remedy
