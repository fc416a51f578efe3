"""The state of a view as a data source of Spark's: what it gives is what the view has.

What tasks of Spark would do is mostly done here, partition by partition, without a session: every
partition is read from the folder anew, as a task in another process does. Some of it is done by
Spark, which finds the source by itself.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import cloudpickle
import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType
from tests.oracle import kept_shop as the_shop

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.table.arrow import from_arrow
from ebbflow.engine.runtime.table.column_types import columns_of
from ebbflow.engine.runtime.table.untyped import pickled
from ebbflow.engine.spark.source.content import EPOCH, Content, content_of
from ebbflow.engine.spark.source.options import SourceOptions
from ebbflow.engine.spark.source.readers import StateReader, stream_reader
from ebbflow.errors import CompositionError, EbbflowError, StateError
from ebbflow.testing import random_epochs, random_program
from ebbflow.zset import ZSet

SHOP = the_shop.SHOP


class Sale(NamedTuple):
    city: str
    price: int


sales = ef.Input("sales", Sale)
TOTALS = sales.group_by("city").agg(total=ef.sum("price"))
MINE = sales.group_by("city").agg(
    total=ef.Reducer(0, lambda acc, sale: acc + sale.price, lambda acc, sale: acc - sale.price)
)
PROGRAM = ef.program(totals=TOTALS, sales=sales, mine=MINE)
"""A program with an output that takes the program to be read: its reducer is its own."""
MINE_NOW = ZSet({("Rome", 40): 1})
STEPS: list[Any] = [
    [Sale("Rome", 30), Sale("Oslo", 1), Sale("Rome", 30)],
    {Sale("Oslo", 1): -1, Sale("Rome", 5): 2},
    [],
    {Sale("Rome", 30): -1},
]


def asked(path: Path, **options: Any) -> SourceOptions:
    """Options, as Spark gives them to a source: texts."""
    given = {name: str(value) for name, value in options.items()}
    return SourceOptions.of({"path": str(path), **given})


def batches(content: Content) -> Iterator[Any]:
    """What Spark's tasks read: each partition, as it arrives in a task."""
    reader = StateReader(content.options, content.schema())
    for partition in reader.partitions():
        sent, task = cloudpickle.loads(cloudpickle.dumps((partition, reader)))
        yield from task.read(sent)


def table(path: Path, **options: Any) -> Any:
    """What is read, as one table."""
    content = content_of(asked(path, **options))
    found = list(batches(content))
    return pa.Table.from_batches(found) if found else pa.table({})


def rows(path: Path, row_type: Any, **options: Any) -> ZSet[Any]:
    """The same as a ZSet of rows of a type."""
    found = table(path, **options)
    return ZSet.of([]) if not len(found) else ZSet(zip(*from_arrow(found, row_type), strict=True))


def changes(path: Path, row_type: Any, **options: Any) -> dict[int, ZSet[Any]]:
    """Changes by their epoch."""
    found = table(path, changes=True, **options)
    epochs = found[EPOCH].to_pylist() if len(found) else []
    apart = dict.fromkeys(epochs, ZSet[Any]())
    for epoch in apart:
        some = found.filter(pa.array([each == epoch for each in epochs]))
        apart[epoch] = ZSet(zip(*from_arrow(some, row_type), strict=True))
    return apart


def compare(path: Path, name: str, row_type: Any, values: Sequence[ZSet[Any]], tasks: int) -> None:
    """Everything that can be read of an output, against its values at epochs 0, 1, ..."""
    log_of = {"output": name, "unpickle": True}  # a row in a row is pickled
    now, options = values[-1], {**log_of, "partitions": tasks}
    assert rows(path, row_type, weights=True, **options) == now
    if all(weight > 0 for _, weight in now.items()):
        assert rows(path, row_type, **options) == now
    then = len(values) // 2
    assert rows(path, row_type, weights=True, epoch=then, **options) == values[then]
    log = changes(path, row_type, **log_of)
    for epoch, (before, after) in enumerate(pairwise(values), 1):
        assert log.get(epoch, ZSet()) == after - before, epoch
    some = changes(path, row_type, startingEpoch=2, endingEpoch=3, **log_of)
    assert some == {epoch: log[epoch] for epoch in (2, 3) if epoch in log}


@pytest.mark.parametrize(
    "seed", [1, 5, *[pytest.param(i, marks=pytest.mark.slow) for i in range(6, 40)]]
)
def test_oracle_what_is_read_is_what_the_view_has(seed: int, tmp_path: Path) -> None:
    program = random_program(seed)
    with program.run(path=tmp_path, readable=True, keep_epochs=20) as view:
        seen = [view.value]
        for epoch in random_epochs(program, seed, 5):
            view.step(epoch)
            seen.append(view.value)
        several = len(program.plan.outputs) > 1
        for name, node in program.plan.outputs.items():
            values = [value[name] if several else value for value in seen]
            if has_columns(tmp_path, node.type, output=name):
                compare(tmp_path, name, node.type, values, tasks=1 + seed % 3)
        for name, source in program.plan.sources.items():
            if has_columns(tmp_path, source.type, input=name):
                given = rows(tmp_path, source.type, input=name, partitions=2, unpickle=True)
                assert given == view.input(name).value


def has_columns(path: Path, row_type: Any, **options: Any) -> bool:
    """Whether Spark has columns for rows; where it has not, that is said."""
    if all(pickled(column) is None for _, column in columns_of(row_type)):
        return True
    with pytest.raises(CompositionError, match="of no type that Spark has a column for"):
        table(path, **options)
    return False


class Wide(NamedTuple):
    id: int
    ratio: float
    paid: bool
    name: str | None
    raw: bytes
    day: date
    at: datetime
    instant: Annotated[datetime, UTC]
    price: Annotated[Decimal, (10, 2)]
    tags: tuple[str, ...]
    sizes: dict[str, int]
    place: tuple[str, int] | None


def wide(i: int) -> Wide:
    at = datetime(2026, 1, 1 + i % 20, i % 24, 30, 0, 12345)
    return Wide(
        i * 2**40, i / 7, i % 2 == 0, None if i % 3 else f"ü{i}", b"\0" * (i % 4), at.date(), at,
        at.replace(tzinfo=UTC), Decimal(i) / 4, tuple("ab"[: i % 3]), {"x": i},
        None if i % 5 else ("Rome", i),
    )  # fmt: skip


def test_every_type_that_has_a_column_comes_back(tmp_path: Path) -> None:
    given = [wide(i) for i in range(40)]
    with ef.Input("wide", Wide).run(path=tmp_path, readable=True) as view:
        view.step(wide=given)
        assert len(view.value) == 40
        assert rows(tmp_path, Wide) == rows(tmp_path, Wide, input="wide") == view.value


def test_what_operators_keep_can_be_looked_into(tmp_path: Path) -> None:
    with TOTALS.run(path=tmp_path) as view:
        view.step(sales=STEPS[0])
        node = table(tmp_path, node="reduce").to_pylist()
    assert {each["key"] for each in node} == {"'Rome'", "'Oslo'"}
    assert all("reduce" in each["node"] and each["weight"] == 1 for each in node)
    with pytest.raises(CompositionError, match=r"no node 'fold'(?s:.*)input sales, reduce"):
        table(tmp_path, node="fold")


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    """A task reads the part of the state that its range is in, and no other output."""
    program = ef.program(totals=TOTALS, sales=sales)
    with program.run(path=tmp_path, readable=True, keep_epochs=3) as view:
        view.step(sales=[Sale(str(i), i) for i in range(500)])
        content = content_of(asked(tmp_path, output="totals", partitions=4))
        parts = [list(content.batches(each)) for each in content.partitions()]
        counts = [sum(map(len, part)) for part in parts]
        assert sum(counts) == 500
        assert min(counts) > 50
        snapshot = content.open().glance()
        assert len(content.spines(snapshot)) == 1  # type: ignore[attr-defined]
        some = StructType([StructField("total", LongType(), False)])
        reader = StateReader(content.options, some)
        assert [each.schema.names for each in reader.read(reader.partitions()[0])] == [["total"]]
        text = StateReader(content.options, StructType([StructField("total", StringType(), False)]))
        with pytest.raises(CompositionError, match="'total' is int64, and was asked for as string"):
            list(text.read(text.partitions()[0]))


# ---- what is not there ----


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with PROGRAM.run(path=tmp_path / "two", keep_epochs=3) as view:
        for change in STEPS:
            view.step(sales=change)
        path = tmp_path / "two"
        here = f"{__name__}:PROGRAM"
        assert rows(path, MINE.plan.outputs["output"].type, output="mine", program=here) == MINE_NOW
        for wrong, options in {
            r"the view has several outputs(?s:.*)\.option\(\"output\", \"totals\"\)": {},
            "no output 'total'(?s:.*)totals, sales, mine": {"output": "total"},
            r"'mine' keeps no rows of its own(?s:.*)\"program\", \"module:name\"(?s:.*)readable":
            {"output": "mine"},
            "there is no program 'no.shop:it'": {"output": "mine", "program": "no.shop:it"},
            r"epoch 1 is not there(?s:.*)keep_epochs": {"output": "sales", "epoch": 1},
            r"epoch 1 changed in output 'sales' is not kept"
            r"(?s:.*)epochs 2 to 4(?s:.*)keep_epochs": {"output": "sales", "startingEpoch": 1},
            "epoch 9 has not happened": {"output": "sales", "startingEpoch": 9},
            "epoch 5 has not happened": {"output": "sales", "endingEpoch": 5},
        }.items():  # fmt: skip
            with pytest.raises(EbbflowError, match=wrong):
                table(path, **options)
        log = table(path, output="totals", startingEpoch=3)
        assert set(log[EPOCH].to_pylist()) == {4}, "changes are there where rows are not"
    with TOTALS.run(path=tmp_path / "none", readable=True) as view:
        view.step(sales=STEPS[0])
        with pytest.raises(StateError, match=r"epoch 1 changed(?s:.*)kept +none"):
            table(tmp_path / "none", changes=True)
    with pytest.raises(StateError, match="there is no state of a view in"):
        table(tmp_path)
    for options, wrong in [
        ({"epoch": "soon"}, "'epoch' cannot be 'soon'"),
        ({"weights": "maybe"}, "'weights' cannot be 'maybe'"),
        ({"output": "a", "input": "b"}, "'output' and 'input' cannot be had together"),
        ({"changes": True, "epoch": 1}, "'epoch' and 'changes' cannot"),
        ({"node": "a", "changes": True}, "'node' and 'changes' cannot"),
        ({"startingEpoch": 4, "endingEpoch": 3}, "'endingEpoch' cannot be '3'"),
    ]:
        with pytest.raises(CompositionError, match=wrong):
            asked(tmp_path, **options)
    with pytest.raises(CompositionError, match="there is no path"):
        SourceOptions.of({})


def test_rows_of_negative_weight_are_read_with_their_weights(tmp_path: Path) -> None:
    with (-sales).run(path=tmp_path, readable=True) as view:
        view.step(sales=STEPS[0])
        assert rows(tmp_path, Sale, weights=True) == view.value
        with pytest.raises(StateError, match=r"negative weight(?s:.*)\"weights\", \"true\""):
            table(tmp_path)


@pytest.mark.parametrize("tasks", [1, 3])
def test_where_the_writer_is_faster_nothing_wrong_is_read(tasks: int, tmp_path: Path) -> None:
    """The epoch of a plan is gone when its tasks begin. One task alone reads the newest anyway,
    where no epoch was asked for; others say what to do."""
    with TOTALS.run(path=tmp_path, readable=True) as view:
        view.step(sales=STEPS[0])
        loose = content_of(asked(tmp_path, partitions=tasks))
        exact = content_of(asked(tmp_path, partitions=tasks, epoch=1))
        plans = [(each, each.partitions()) for each in (loose, exact)]
        for change in STEPS[1:]:
            view.step(sales=change)
        for content, partitions in plans:
            if tasks == 1 and content is loose:
                found = [row for part in partitions for batch in content.batches(part)
                         for row in batch.to_pylist()]  # fmt: skip
                assert found == [{"city": "Rome", "total": 40}]
            else:
                with pytest.raises(StateError, match=r"epoch 1 could not be(?s:.*)keep_epochs"):
                    list(content.batches(partitions[0]))


def test_changes_that_go_while_they_are_read_are_missed_by_nobody(tmp_path: Path) -> None:
    with TOTALS.run(path=tmp_path, keep_epochs=2) as view:
        view.step(sales=STEPS[0])
        view.step(sales=STEPS[1])
        content = content_of(asked(tmp_path, changes=True))
        (partition,) = content.partitions()
        view.step(sales=STEPS[3])
        with pytest.raises(StateError, match=r"epoch 1 changed(?s:.*)epochs 2 to 3"):
            list(content.batches(partition))


# ---- streams ----


def streamed(stream: Any, offset: Any, limit: Any, total: ZSet[Any]) -> tuple[Any, ZSet[Any]]:
    """One batch of a stream, read twice, as after a crash; what was read before, and it."""
    end = stream.latestOffset(offset, limit)
    found = [
        ZSet([
            (tuple(row[:-2]), row[-2])
            for each in stream.partitions(offset, end)
            for batch in stream.read(each)
            for row in zip(*batch.to_pydict().values(), strict=True)
        ])
        for _ in range(2)
    ]  # fmt: skip
    assert found[0] == found[1]
    return end, total + found[0]


def test_a_stream_begins_with_the_value_and_has_every_epoch_once(tmp_path: Path) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

    with TOTALS.run(path=tmp_path, readable=True, keep_epochs=9) as view:
        view.step(sales=STEPS[0])
        options = asked(tmp_path, changes=True, maxEpochsPerTrigger=1)
        schema = content_of(asked(tmp_path, changes=True)).schema()
        stream = stream_reader(options, schema)
        assert stream.getDefaultReadLimit() == ReadMaxFiles(1)
        offset, total = streamed(stream, stream.initialOffset(), ReadMaxFiles(1), ZSet())
        assert offset == {"epoch": 1}
        assert total == view.value
        for change in STEPS[1:3]:
            view.step(sales=change)
        stream.prepareForTriggerAvailableNow()
        view.step(sales=STEPS[3])
        for epoch in (2, 3, 3):
            offset, total = streamed(stream, offset, ReadMaxFiles(1), total)
            assert offset == {"epoch": epoch}
            assert total == view.at(epoch)
        assert stream.reportLatestOffset() == {"epoch": 4}
        later = stream_reader(options, schema)
        offset, total = streamed(later, offset, ReadAllAvailable(), total)
        assert total == view.value
        first = stream_reader(asked(tmp_path, startingEpoch=1), schema)
        assert streamed(first, first.initialOffset(), None, ZSet()) == (offset, view.value)
        with pytest.raises(StateError, match="it is another one"):
            later.latestOffset({"epoch": 5}, None)
        with pytest.raises(CompositionError, match="a stream has no option 'endingEpoch'"):
            stream_reader(asked(tmp_path, endingEpoch=2), schema)
        with pytest.raises(CompositionError, match=r"gives changes(?s:.*)\"changes\", True"):
            stream_reader(asked(tmp_path), schema)


# ---- Spark itself ----


def collected(frame: Any) -> ZSet[Any]:
    """The rows of a DataFrame."""
    return ZSet.of([tuple(row) for row in frame.collect()])


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_spark_finds_the_source_and_reads_what_both_engines_write(
    engine: str, spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state"
    if engine == "local":
        view: Any = TOTALS.run(path=path, readable=True, keep_epochs=9)
    else:
        run = ef.spark(spark, path=path, readable=True, keep_epochs=9, in_driver=True)
        view = TOTALS.run(run)
    caplog.set_level(logging.INFO, "ebbflow")
    with view:
        local = TOTALS.run()
        for change in STEPS:
            view.step(sales=change)
            local.step(sales=change)
        records: list[Any] = caplog.records  # type: ignore[assignment]
        said = [(each.epoch, each.mode, sum(each.rows_out.values())) for each in records]
        mode = "driver" if engine == "spark" else "local"
        assert said == [(1, mode, 2), (2, mode, 3), (3, mode, 0), (4, mode, 2)]
        assert view.metrics().nodes[0].rows_out == 7
        assert sum(each.entries for each in view.metrics().state) > 0
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW found USING ebbflow OPTIONS (path '{path}')")
        assert collected(spark.sql("SELECT city, total FROM found WHERE total > 3")) == local.value
        spark.catalog.dropTempView("found")
        log = spark.read.format("ebbflow").option("changes", True).load(str(path))
        summed = (
            log.groupBy("city", "total").sum("__weight").where("`sum(__weight)` <> 0").collect()
        )
        assert {tuple(row) for row in summed} == {(*row, 1) for row in local.value}
        if engine == "spark":
            given = spark.read.format("ebbflow").options(input="sales", partitions=2)
            assert collected(given.load(str(path))) == local.input("sales").value


class Order(NamedTuple):
    id: int
    city: str
    price: int


orders = ef.Input("orders", Order, key="id")
by_city = orders.group_by("city").agg(total=ef.sum("price"), n=ef.count(), top=ef.max("price"))


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_spark_reads_every_output_without_options_of_the_writer(
    engine: str, spark: Any, tmp_path: Path
) -> None:
    """As the README has it: a group, and on Spark also what is computed from the rows of inputs."""
    path = tmp_path / "state"
    program = ef.program(
        totals=by_city, dear=orders.filter(lambda order: order.price > 8),
        best=orders.top_k(1, order="price", per="city"), cities=orders.select("city").distinct(),
        both=orders.join(by_city, on="city"),
    )  # fmt: skip
    run = {"path": path} if engine == "local" else {"engine": ef.spark(spark, path=path)}
    with program.run(**run) as view:  # type: ignore[arg-type]
        view.step(orders=[Order(1, "Rome", 10), Order(2, "Rome", 30), Order(3, "Oslo", 7)])
        view.input("orders").delete(2)
        for name, output in program.plan.outputs.items():
            value = view.value[name]
            right = value if engine == "local" else collected(value)
            source = spark.read.format("ebbflow").option("output", name)
            assert collected(source.load(str(path))) == right, name
            assert rows(path, output.type, output=name, partitions=3) == right, name
            assert ef.open(path).value[name] == right, name
        with pytest.raises(Exception, match="there is no such option") as raised:
            spark.read.format("ebbflow").option("outputs", "best").load(str(path))
        assert "File" not in str(raised.value)
        assert "Traceback" not in str(raised.value)


def test_a_query_stopped_and_started_again_has_every_epoch_once(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, out = tmp_path / "state", tmp_path / "out"
    caplog.set_level(logging.INFO, "ebbflow")
    listener = ef.metrics.listener()
    spark.streams.addListener(listener)

    def catch_up() -> None:
        stream = spark.readStream.format("ebbflow").options(changes=True, maxEpochsPerTrigger=2)
        query = (
            stream.load(str(path)).writeStream.queryName("followed").format("parquet")
            .trigger(availableNow=True)
            .option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(out))
        )  # fmt: skip
        query.awaitTermination()

    with TOTALS.run(path=path, readable=True, keep_epochs=9) as view:
        view.step(sales=STEPS[0])
        catch_up()
        for change in STEPS[1:]:
            view.step(sales=change)
        catch_up()
        read = spark.read.parquet(str(out)).collect()
        assert ZSet([((row.city, row.total), row["__weight"]) for row in read]) == view.value
        assert {row["__epoch"] for row in read} == {1, 2, 4}, "epoch 3 changed nothing"
    until = time.monotonic() + 30
    while (
        time.monotonic() < until
        and [each.getMessage() for each in caplog.records].count("query followed ended") < 2
    ):
        time.sleep(0.05)
    spark.streams.removeListener(listener)
    said = {each.name: each.value for each in listener.measures()}
    assert (said["query_running"], said["query_failed"], said["query_epochs_behind"]) == (0, 0, 0)
    told = [each for each in caplog.records if hasattr(each, "batch")]
    assert sum(each.rows_in for each in told) == len(read)  # type: ignore[attr-defined]


# ---- a writer in another process ----


def started(path: Path, last: int) -> subprocess.Popen[bytes]:
    """A writer that goes on until an epoch, and has begun."""
    root = str(Path(__file__).parents[2])
    here = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, __file__, str(path), str(last)]
    writer = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": here})
    while not (path / "newest").exists():
        assert writer.poll() is None
        time.sleep(0.1)
    return writer


def write(path: str, last: str) -> None:
    """What the writer does, in its process."""
    with SHOP.run(path=path, readable=True, keep_epochs=5000) as view:
        while view.epoch < int(last):
            the_shop.advance(view, view.epoch + 1)
            time.sleep(0.02)


@pytest.mark.slow
def test_a_stream_follows_a_writer_in_another_process(spark: Any, tmp_path: Path) -> None:
    """The query is stopped at random moments and started again; the writer never waits."""
    path, dice, last = tmp_path / "state", Random(3), 250
    writer = started(path, last)
    try:
        for _ in range(6):
            stream = (
                spark.readStream.format("ebbflow")
                .options(output="lands", changes=True)
                .load(str(path))
            )
            query = (
                stream.writeStream.format("parquet")
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .start(str(tmp_path / "out"))
            )
            time.sleep(dice.uniform(1, 4))
            query.stop()
        assert writer.wait(300) == 0
    finally:
        writer.kill()
        writer.wait()
    query = (
        stream.writeStream.format("parquet").trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(tmp_path / "out"))
    )  # fmt: skip
    query.awaitTermination()
    read = spark.read.parquet(str(tmp_path / "out"))  # what the sink has in its log: a query that
    # was stopped may have left a file of a batch behind that never happened
    found = read.groupBy("land", "total", "most").sum("__weight").where("`sum(__weight)` <> 0")
    right = evaluate(SHOP.plan, the_shop.inputs(last))["lands"]
    assert ZSet([(tuple(row[:3]), int(row[3])) for row in found.collect()]) == right
    once = read.groupBy("__epoch", "land", "total", "most", "__weight").count()
    assert once.where("count > 1").count() == 0, "nothing twice"


@pytest.mark.slow
def test_reads_while_the_state_is_written_are_of_whole_epochs(spark: Any, tmp_path: Path) -> None:
    """Of a state of which every epoch is removed at once; what is read is one that batch knows."""
    path = tmp_path / "state"
    writer = started(path, 200)
    seen = set()
    try:
        for tasks in (1, 3) * 3:
            frame = spark.read.format("ebbflow").options(output="joined", partitions=tasks)
            found = collected(frame.load(str(path)))
            reader = ef.open(path)
            matches = [e for e in range(reader.epoch + 1)
                       if evaluate(SHOP.plan, the_shop.inputs(e))["joined"] == found]  # fmt: skip
            assert matches
            seen.add(matches[-1])
    finally:
        writer.kill()
        writer.wait()
    assert len(seen) > 2


if __name__ == "__main__":
    write(*sys.argv[1:])
