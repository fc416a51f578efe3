"""Sinks: every epoch once, in order, whatever fails and however often the view is opened."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

import ebbflow as ef
from ebbflow.connectors.rows import OutputSink
from ebbflow.engine.spark.output.targets import upserts
from ebbflow.errors import CompositionError, SinkError, ViewClosed


class Sale(NamedTuple):
    city: str
    price: int


sales = ef.Input("sales", Sale)
totals = sales.group_by("city").agg(total=ef.sum("price"))
two = ef.program(totals=totals, dear=sales.filter(lambda sale: sale.price > 10))
Open = Callable[..., Any]


@pytest.fixture
def opened(spark: Any, tmp_path: Path) -> Any:
    """Opens the view on the same state, as often as it is asked to."""
    views: list[Any] = []

    def run(program: Any = totals, **options: Any) -> Any:
        for view in views:
            view.close()
        options = {"in_driver": True, "keep_epochs": 2, **options}
        views.append(program.run(ef.spark(spark, path=tmp_path / "the state [1]", **options)))
        return views[-1]

    yield run
    for view in views:
        view.close()


def test_a_sink_of_blocks_begins_with_everything_and_goes_on_with_changes(opened: Open) -> None:
    class Blocks(OutputSink):
        name, output = "blocks", "totals"
        rows: ef.ZSet[Any] = ef.ZSet({})

        def had(self, known: int | None, first: int, last: int) -> None:
            return None

        def publish(self, epoch: int, change: Any) -> None:
            for block in self.blocks(change, 2):
                assert len(block) <= 2
                self.rows = self.rows + ef.ZSet(block)

    view = opened(two)
    view.step(sales=[Sale(f"city {i}", i) for i in range(7)])
    sink = Blocks()
    view.add_sink(sink)
    assert len(sink.rows) == 7
    assert sink.rows == view.zset()["totals"]
    view.step(sales={Sale("city 1", 1): -1, Sale("city 2", 5): 1})
    assert sink.rows == view.zset()["totals"]


def log(path: Path) -> dict[int, list[dict[str, Any]]]:
    """What a change log has, by epoch, read without Spark."""
    found = {}
    for folder in path.glob("epoch=*"):
        rows = [row for file in sorted(folder.glob("*.parquet"))
                for row in pq.ParquetFile(file).read().to_pylist()]  # fmt: skip
        found[int(folder.name.partition("=")[2])] = sorted(rows, key=lambda row: row["__weight"])
    return found


def seen(into: list[Any]) -> Callable[[Any, int], None]:
    return lambda change, epoch: into.append(epoch)


# ---- the change log ----


def test_every_epoch_is_in_a_folder_of_its_own_and_all_are_one_table(
    spark: Any, opened: Open, tmp_path: Path
) -> None:
    view, path = opened(), tmp_path / "log"
    view.step(sales=[Sale("Rome", 3)])
    view.write_changes(path)
    view.step(sales=[Sale("Rome", 4)])
    view.step()
    new = {"city": "Rome", "total": 7, "__weight": 1}
    old = {"city": "Rome", "total": 3, "__weight": -1}
    assert log(path) == {1: [{**old, "__weight": 1}], 2: [old, new], 3: []}
    assert [file for file in path.iterdir() if file.name.startswith(".")] == []
    read = spark.read.parquet(str(path)).where("epoch > 1").orderBy("__weight").collect()
    assert [row.asDict() for row in read] == [{**old, "epoch": 2}, {**new, "epoch": 2}]


def test_a_log_goes_on_where_it_was_and_gets_what_it_has_missed(
    opened: Open, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    opened().write_changes(path)
    view = opened()
    for price in (1, 2, 3, 4):
        view.step(sales=[Sale("Rome", price)])
    assert not path.exists(), "nobody writes it in this run"
    opened().write_changes(path)
    assert {epoch: rows[-1]["total"] for epoch, rows in log(path).items()} == {
        1: 1, 2: 3, 3: 6, 4: 10
    }  # fmt: skip
    assert view.sinks.keys() == opened().sinks.keys()


def test_an_epoch_that_a_log_has_is_not_written_again(opened: Open, tmp_path: Path) -> None:
    view, path = opened(), tmp_path / "log"
    view.write_changes(path)
    view.step(sales=[Sale("Rome", 1)])
    (file,) = Path(view.path).glob("sink-*.json")
    file.write_text(json.dumps({"sink": next(iter(view.sinks)), "epoch": 0}))
    before = {each: each.stat().st_mtime_ns for each in path.rglob("*")}
    view = opened()
    assert list(view.sinks.values()) == [0], "as after a crash between the folder and the note"
    view.write_changes(path)
    assert {each: each.stat().st_mtime_ns for each in path.rglob("*")} == before
    assert list(view.sinks.values()) == [1]


def test_what_an_attempt_has_left_is_removed(opened: Open, tmp_path: Path) -> None:
    path = tmp_path / "log"
    (path / ".epoch=1.ab").mkdir(parents=True)
    view = opened()
    view.write_changes(path)
    assert list(path.iterdir()) == []


def test_a_gap_that_cannot_be_filled_is_said_with_its_epochs(opened: Open, tmp_path: Path) -> None:
    view, path = opened(), tmp_path / "log"
    end = view.write_changes(path)
    view.step(sales=[Sale("Rome", 1)])
    end()
    for price in range(5):
        view.step(sales=[Sale("Oslo", price)])
    with pytest.raises(SinkError, match="up to 1, and the changes of some") as caught:
        view.write_changes(path)
    assert str(caught.value.facts["missing"]) == "2 to 4"
    assert "view.restart_sink(" in caught.value.remedy
    assert view.sinks == {}
    view.write_changes(tmp_path / "other")
    assert sorted(log(tmp_path / "other")) == [5, 6]


def test_a_log_of_another_state_is_refused(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "log" / "epoch=7").mkdir(parents=True)
    with pytest.raises(SinkError, match="it is not a sink of this state"):
        opened().write_changes(tmp_path / "log")


def test_several_outputs_have_a_folder_each_and_one_can_be_had_alone(
    opened: Open, tmp_path: Path
) -> None:
    view = opened(two)
    view.write_changes(tmp_path / "all")
    view["totals"].write_changes(tmp_path / "one")
    view.step(sales=[Sale("Rome", 3)])
    view.step(sales=[Sale("Rome", 30)])
    assert log(tmp_path / "all" / "dear") == {
        1: [], 2: [{"city": "Rome", "price": 30, "__weight": 1}]
    }  # fmt: skip
    assert log(tmp_path / "all" / "totals") == log(tmp_path / "one")
    shutil.rmtree(tmp_path / "all" / "dear" / "epoch=2")
    opened(two).write_changes(tmp_path / "all")
    assert sorted(log(tmp_path / "all" / "dear")) == [1, 2]


def test_a_field_that_the_log_has_itself_is_refused(opened: Open, tmp_path: Path) -> None:
    renamed = sales.group_by(epoch="price").agg(n=ef.count())
    with pytest.raises(CompositionError, match="have a field 'epoch'"):
        opened(renamed).write_changes(tmp_path / "log")


def test_a_load_that_is_derived_is_in_the_log(opened: Open, tmp_path: Path) -> None:
    dear = sales.filter(lambda sale: sale.price > 10)
    view = opened(dear, mode="bulk")
    view.step(sales=[Sale("Rome", 30), Sale("Oslo", 1)])
    assert view._log.of(1) == {"output": None}, "nobody wrote down what changed"
    view.write_changes((tmp_path / "the log").as_uri())
    assert log(tmp_path / "the log") == {1: [{"city": "Rome", "price": 30, "__weight": 1}]}


# ---- names, paths and permissions ----

AWKWARD = ["../up", "_hidden = é"]
awkward = ef.program(**dict.fromkeys(AWKWARD, totals))


def test_outputs_are_written_into_the_folder_whatever_they_are_called(
    spark: Any, opened: Open, tmp_path: Path
) -> None:
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "precious").write_text("kept")
    view = opened(awkward)
    view.write_changes(tmp_path / "log")
    view.each_epoch(lambda change, epoch: None, name="../../" + "up/" * 100)
    view.step(sales=[Sale("Rome", 30)])
    view.write_snapshot(tmp_path / "tables")
    assert sorted(os.listdir(tmp_path)) == ["log", "tables", "the state [1]", "up"]
    assert os.listdir(tmp_path / "up") == ["precious"]
    for folder in (tmp_path / "log", tmp_path / "tables"):
        assert len(os.listdir(folder)) == len(AWKWARD)
        for each in folder.iterdir():
            assert spark.read.parquet(str(each)).count() == 1, "Spark hides no such folder"
    assert len(opened(awkward).sinks) == 2


@pytest.mark.parametrize("path", ["s3a://bucket/x", "hdfs://n/x", "dbfs:/x", ""])
def test_other_places_are_refused_before_anything_is_written(path: str, opened: Open) -> None:
    view = opened()
    for write in (view.write_changes, view.write_snapshot, view["output"].write_changes):
        with pytest.raises(CompositionError, match="path="):
            write(path)
    assert view.sinks == {}


def modes(folder: Path) -> set[tuple[str, str]]:
    found = [folder, *folder.rglob("*")]
    return {
        ("dir" if each.is_dir() else "file", oct(stat.S_IMODE(each.lstat().st_mode)))
        for each in found
    }


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        (None, {("dir", "0o700"), ("file", "0o600")}),
        (0o770, {("dir", "0o770"), ("file", "0o660")}),
    ],
)
def test_tasks_and_logs_write_what_only_those_can_read_who_may(
    permissions: int | None, expected: Any, opened: Open, tmp_path: Path
) -> None:
    first = True
    for mode in ("bulk", "single_task", "staged", "auto"):
        view = opened(two, mode=mode, **({"permissions": permissions} if first else {}))
        view.write_changes(tmp_path / "log")
        view.step(sales=[Sale(f"city {i}", i) for i in range(40)])
        first = False
    view["dear"].write_changes(tmp_path / "read" / "by a group", permissions=0o750)
    view.step(sales=[Sale("Rome", 30)])
    for folder in ("the state [1]", "log"):
        assert modes(tmp_path / folder) == expected
    assert modes(tmp_path / "read") == {("dir", "0o750"), ("file", "0o640")}


def test_a_view_runs_without_unpickling_what_others_have_written(opened: Open) -> None:
    for mode in ("bulk", "staged", "auto"):
        view = opened(two, mode=mode, unpickle=False)
        view.step(sales=[Sale("Rome", 30)])
    assert view.zset()["totals"] == ef.ZSet.of([("Rome", 90)])


# ---- functions ----


def test_a_function_hears_of_every_epoch_and_goes_on_after_those_it_finished(opened: Open) -> None:
    heard: list[int] = []
    view = opened()
    view.step(sales=[Sale("Rome", 1)])
    view.each_epoch(seen(heard), name="ours")
    view.step(sales=[Sale("Rome", 2)])
    view.step()
    assert heard == [2, 3], "from when it was given on"
    view = opened()
    for price in range(4):
        view.step(sales=[Sale("Rome", price)])
    view.each_epoch(seen(heard), name="ours")
    assert heard == [2, 3, 4, 5, 6, 7], "kept for it, though only two epochs are kept for others"
    view.each_epoch(seen(heard), name="another")
    assert view.sinks == {"ours": 7, "another": 7}


def test_the_change_is_what_step_gives(opened: Open) -> None:
    found: dict[int, Any] = {}
    view = opened(two)

    def keep(change: Any, epoch: int) -> None:
        found[epoch] = {name: frame.count() for name, frame in change.items()}

    view.each_epoch(keep)
    view.step(sales=[Sale("Rome", 30)])
    assert (found, view.sinks) == ({1: {"totals": 1, "dear": 1}}, {"keep": 1})


def test_a_sink_that_fails_leaves_the_epoch_and_is_tried_again(opened: Open) -> None:
    heard: list[Any] = []
    other: list[int] = []
    broken = True

    def write(change: Any, epoch: int) -> None:
        if broken:
            raise OSError("no room")
        heard.append(epoch)

    view = opened()
    view.each_epoch(write)
    view.each_epoch(seen(other), name="other")
    for epoch in (1, 2, 3, 4):
        with pytest.raises(OSError, match="no room") as caught:
            view.step(sales=[Sale("Rome", 1)])
        assert "the sink 'write' for epoch 1" in caught.value.__notes__[0]
        assert view.epoch == epoch
    assert other == [1, 2, 3, 4]
    with pytest.raises(OSError, match="no room"):
        view.deliver()
    broken = False
    view.deliver()
    assert heard == [1, 2, 3, 4]
    view.step()
    assert heard == other == [1, 2, 3, 4, 5]


def test_sinks_that_fail_together_are_raised_together(opened: Open) -> None:
    def fails(change: Any, epoch: int) -> None:
        raise ValueError(epoch)

    view = opened()
    view.each_epoch(fails, name="a")
    view.each_epoch(fails, name="b")
    with pytest.raises(ExceptionGroup, match="several sinks failed") as caught:
        view.step()
    assert [error.args for error in caught.value.exceptions] == [(1,), (1,)]


def test_what_a_sink_has_not_had_is_kept_until_it_has_or_is_ended(opened: Open) -> None:
    view = opened(keep_epochs=1)
    view.each_epoch(seen([]), name="lost")
    view = opened(keep_epochs=1)
    for price in range(3):
        view.step(sales=[Sale("Rome", price)])
    files = Path(view.path, "changes")
    assert len(list(files.iterdir())) == len(view._log.epochs) == 3
    view.end_sink("lost")
    view.step(sales=[Sale("Rome", 1)])
    assert view._log.epochs == [4]
    assert len(list(files.iterdir())) == 1
    assert view.sinks == {}
    assert not list(Path(view.path).glob("sink-*"))
    with pytest.raises(CompositionError, match="there is no sink 'lost'"):
        view.end_sink("lost")


def test_a_load_that_is_derived_can_be_read_for_as_long_as_a_sink_needs_it(opened: Open) -> None:
    view = opened(sales.filter(lambda sale: sale.price > 10), mode="bulk", keep_epochs=1)
    counts: list[int] = []
    broken = True

    def count(change: Any, epoch: int) -> None:
        assert not broken
        counts.append(change.count())

    view.each_epoch(count)
    for change in ([Sale("Rome", 30), Sale("Oslo", 20)], {Sale("Oslo", 20): -1}, []):
        with pytest.raises(AssertionError):
            view.step(sales=change)
        object.__setattr__(view.options, "mode", "driver")
    broken = False
    view.deliver()
    assert counts == [2, 1, 0]


def test_a_sink_may_step_the_view_and_end_itself(opened: Open) -> None:
    view = opened()
    heard: list[int] = []

    def more(change: Any, epoch: int) -> None:
        heard.append(epoch)
        if epoch < 3:
            view.step(sales=[Sale("Rome", epoch)])
        else:
            end()

    end = view.each_epoch(more)
    other: list[int] = []
    view.each_epoch(seen(other), name="other")
    view.step(sales=[Sale("Rome", 1)])
    view.step()
    assert (heard, other, view.sinks) == ([1, 2, 3], [1, 2, 3, 4], {"other": 4})


def test_threads_that_step_give_every_epoch_once_and_in_order(opened: Open) -> None:
    view = opened()
    heard: list[int] = []
    view.each_epoch(seen(heard), name="ours")
    threads = [
        Thread(target=lambda: [view.step(sales=[Sale("Rome", 1)]) for _ in range(5)])
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == list(range(1, 16))


def test_a_name_is_needed_and_is_given_once(opened: Open) -> None:
    view = opened()
    with pytest.raises(CompositionError, match="without a name"):
        view.each_epoch(lambda change, epoch: None)
    view.each_epoch(print)
    with pytest.raises(CompositionError, match="there is a sink 'print' already"):
        view.each_epoch(print)
    view.close()
    with pytest.raises(ViewClosed):
        view.each_epoch(print, name="other")


# ---- callbacks ----


def test_callbacks_hear_of_what_changed_and_of_nothing_else(opened: Open) -> None:
    view = opened(two)
    whole: list[Any] = []
    dear: list[Any] = []
    end = view.on_change(whole.append)
    view["dear"].on_change(lambda frame: dear.append(frame.columns))
    view.step()
    view.step(sales=[Sale("Rome", 1)])
    view.step(sales=[Sale("Rome", 11)])
    end()
    view.step(sales=[Sale("Rome", 12)])
    assert [list(change) for change in whole] == [["totals", "dear"]] * 2
    assert dear == [["city", "price", "__weight"]] * 2


def test_what_a_callback_raises_is_raised_after_the_epoch(opened: Open) -> None:
    view = opened()

    def fails(change: Any) -> None:
        raise KeyError("no")

    view.on_change(fails)
    with pytest.raises(KeyError, match="no"):
        view.step(sales=[Sale("Rome", 1)])
    assert view.epoch == 1


# ---- tables ----


def test_a_snapshot_is_the_value_as_a_table(spark: Any, opened: Open, tmp_path: Path) -> None:
    view = opened(two)
    view.step(sales={Sale("Rome", 30): 2})
    view.write_snapshot(tmp_path / "json", format="json")
    view["dear"].write_snapshot(tmp_path / "dear")
    lines = "".join(file.read_text() for file in (tmp_path / "json" / "totals").glob("*.json"))
    assert json.loads(lines) == {"city": "Rome", "total": 60}
    dear = [row for file in (tmp_path / "dear").glob("*.parquet")
            for row in pq.ParquetFile(file).read().to_pylist()]  # fmt: skip
    assert dear == [{"city": "Rome", "price": 30}] * 2


def test_upserts_are_the_rows_to_put_in_and_the_keys_that_are_gone(spark: Any) -> None:
    change = spark.createDataFrame(
        [("a", 1, -1), ("a", 2, 1), ("b", 1, -1), ("c", 5, 1), (None, 1, -1), (None, 2, 1)],
        "city string, total long, __weight long",
    )
    rows, gone = upserts(change, "city")
    assert sorted(map(tuple, rows.collect()), key=str) == [("a", 2), ("c", 5), (None, 2)]
    assert list(map(tuple, gone.collect())) == [("b",)]
    with pytest.raises(CompositionError, match="no column 'town'"):
        upserts(change, "town")
    with pytest.raises(CompositionError, match="without a key"):
        upserts(change)
