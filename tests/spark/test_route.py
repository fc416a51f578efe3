"""Which way an epoch goes, and what a view says about it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'ebbflow[spark]'")

import pyarrow as pa
import pyarrow.parquet as pq

import ebbflow as ef
from ebbflow.engine.runtime import ages
from ebbflow.engine.spark.table.frame import frame_of
from ebbflow.engine.spark.tasks import epochs
from ebbflow.engine.spark.tasks.epochs import Epochs, TooMany
from ebbflow.errors import CompositionError, StateError


class Row(NamedTuple):
    k: int
    v: int


class Named(NamedTuple):
    k: int
    name: str


def test_a_view_says_which_way_a_large_epoch_went_and_why(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"k": [i % 7 for i in range(25_000)], "v": list(range(25_000))})
    program = ef.Input("a", Row).group_by(lambda r: str(r.k)).agg(s=ef.sum("v"))
    with program.run(ef.spark(spark, path=tmp_path)) as view:
        view.step(a=rows)
        first = view.stats()
        assert first.why.startswith("25,000 rows: single_task ")
        assert all(mode in first.why for mode in ("staged", "bulk"))
        assert f"{first.epochs[-1].mode}: {first.why}" in repr(first)
        assert f"last epoch {first.epochs[-1].mode} ({first.why})" in view.explain()
        assert view._route.costs.ratios.keys() == {first.epochs[-1].mode}
        view.step(a=[Row(1, 1)])
        assert view.stats().why == ""
        view.verify()


@pytest.mark.classic
def test_what_is_sent_to_a_task_leaves_no_file_behind(spark: Any, tmp_path: Path) -> None:
    """Rows and tables of more bytes than a task has with it, beside each other."""
    program = ef.program(
        sums=ef.Input("a", Row).group_by("k").agg(s=ef.sum("v")),
        texts=ef.Input("b", Named).group_by("k").agg(n=ef.count(), least=ef.min("name")),
    )
    tables = Path(spark.sparkContext._temp_dir)
    before = sorted(tables.iterdir())
    with program.run(ef.spark(spark, path=tmp_path, mode="single_task", small=10**6)) as view:
        for epoch in range(2):
            numbers = range(epoch * 10_000, epoch * 10_000 + 60_000)
            table = pa.table({"k": [i % 7 for i in numbers], "v": list(numbers)})
            assert table.nbytes > epochs.TRAVELS
            view.step(a=table, b=[Named(i % 5, "x" * 3_000 + str(i)) for i in range(200)])
        view.step(a={Row(3, 10): -1})
        assert [each.mode for each in view.stats().epochs] == ["single_task"] * 3
        view.verify()
    assert sorted(tables.iterdir()) == before


@pytest.mark.classic
def test_what_is_sent_beside_a_query_leaves_no_file_behind(spark: Any, tmp_path: Path) -> None:
    """A table of more bytes than a task has with it, rows, and a DataFrame, in one epoch. Files of
    Spark's are those of its blocks as well, where it keeps what a large task has with it."""
    program = ef.program(
        sums=ef.Input("a", Row).group_by("k").agg(s=ef.sum("v")),
        texts=ef.Input("b", Named).group_by("k").agg(n=ef.count(), least=ef.min("name")),
        more=ef.Input("c", Row).group_by("k").agg(s=ef.sum("v")),
    )
    tables = Path(spark.sparkContext._temp_dir)
    before = sorted(tables.iterdir())
    with program.run(ef.spark(spark, path=tmp_path, mode="single_task", small=10**6)) as view:
        for epoch in range(2):
            numbers = range(epoch * 10_000, epoch * 10_000 + 60_000)
            table = pa.table({"k": [i % 7 for i in numbers], "v": list(numbers)})
            assert table.nbytes > epochs.TRAVELS
            names = [Named(i % 5, "x" * 30 + str(i)) for i in range(20)]
            view.step(a=table, b=names, c=spark.range(50).selectExpr("id % 3 AS k", "id AS v"))
        assert [each.mode for each in view.stats().epochs] == ["single_task"] * 2
        assert [each.rows_in for each in view.stats().epochs] == [60_070] * 2
        view.verify()
    assert sorted(tables.iterdir()) == before


def test_of_a_query_with_more_rows_than_spark_has_guessed_the_next_guess_is_better(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, too_many = Epochs.whole, list[int]()

    def noticed(self: Epochs, given: Any, most: int) -> Any:
        try:
            return whole(self, given, most)
        except TooMany:
            too_many.append(self.store.epoch + 1)
            raise

    monkeypatch.setattr(Epochs, "whole", noticed)
    program = ef.Input("a", Row).group_by(lambda r: str(r.k % 7)).agg(s=ef.sum("v"))
    with program.run(ef.spark(spark, path=tmp_path / "state")) as view:
        for epoch in range(4):
            rows = pa.table({"k": range(epoch * 25_000, (epoch + 1) * 25_000), "v": [1] * 25_000})
            pq.write_table(rows, tmp_path / f"{epoch}.parquet")
            query = spark.read.parquet(str(tmp_path / f"{epoch}.parquet")).coalesce(1)
            view.step(a=query)  # it does more than read rows, so it is not collected
        assert too_many in ([1], [1, 2])
        assert view.last is not None
        assert view.last.why.partition(" rows")[0] == "25,000"
        assert {row.s for row in view.value.collect()} == {14_285, 14_286}


@pytest.mark.classic
def test_a_frame_of_many_columns_is_checked_in_few_calls_to_java(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from py4j.clientserver import ClientServerConnection

    wide: Any = NamedTuple("wide", [(f"c{i}", int) for i in range(20)])
    frame = spark.createDataFrame([], ", ".join(f"c{i} int" for i in range(20)))
    source: Any = ef.Input("wide", wide).node
    calls = 0
    send = ClientServerConnection.send_command

    def counted(self: Any, command: str) -> Any:
        nonlocal calls
        calls += not command.startswith("m\n")  # what is collected is let go of, by and by
        return send(self, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    made = frame_of(source, frame)
    monkeypatch.undo()
    assert calls <= 2 * 20 + 20
    assert made.columns == [*wide._fields, "__weight"]


def test_epochs_are_kept_for_a_time_and_then_only_so_many(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000_000.0
    monkeypatch.setattr(ages, "time", lambda: now)
    engine = ef.spark(spark, path=tmp_path, in_driver=True, keep_epochs=1,
                      keep_for=timedelta(hours=1))  # fmt: skip
    with ef.Input("a", Row).group_by("k").agg(n=ef.count()).run(engine) as view:
        for i in range(1, 5):
            view.step(a=[Row(1, i)])
            now += 600
        assert [view.at(i).collect()[0].n for i in range(1, 5)] == [1, 2, 3, 4]
        assert view._log.epochs == [1, 2, 3, 4]
        now += 2_000  # the first two are older than an hour now
        view.step(a=[Row(1, 5)])
        assert [view.at(i).collect()[0].n for i in (3, 4, 5)] == [3, 4, 5]
        assert view._log.epochs == [3, 4, 5]
        with pytest.raises(StateError):
            view.at(2).collect()
        now += 10_000
        view.step(a=[Row(1, 6)])
        assert view._log.epochs == [6]
        view.verify()


def test_a_time_to_keep_epochs_for_must_be_one() -> None:
    with pytest.raises(CompositionError, match="keep_for"):
        ef.spark(path="state", keep_for=3600)
