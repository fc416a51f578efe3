"""Sinks of local views: every epoch once, in order, whatever fails and however often opened."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Annotated, Any, NamedTuple

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import ebbflow as ef
from ebbflow.errors import CompositionError, SinkError, ViewClosed
from ebbflow.frozen import Frozen
from ebbflow.zset import ZSet


class Sale(NamedTuple):
    city: str
    price: int


sales = ef.Input("sales", Sale)
totals = sales.group_by("city").agg(total=ef.sum("price"))
two = ef.program(totals=totals, dear=sales.filter(lambda sale: sale.price > 10))
Open = Callable[..., Any]


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    """Opens the view on the same state, as often as it is asked to."""
    views: list[Any] = []

    def run(program: Any = totals, **options: Any) -> Any:
        for view in views:
            view.close()
        views.append(program.run(path=tmp_path / "state", **options))
        return views[-1]

    yield run
    for view in views:
        view.close()


def log(path: Path) -> dict[int, list[dict[str, Any]]]:
    """What a change log has, by epoch."""
    found = {}
    for folder in path.glob("epoch=*"):
        rows = [row for file in folder.glob("*.parquet")
                for row in pq.ParquetFile(file).read().to_pylist()]  # fmt: skip
        found[int(folder.name.partition("=")[2])] = sorted(rows, key=lambda row: row["__weight"])
    return found


def seen(into: list[Any]) -> Callable[[Any, int], None]:
    return lambda change, epoch: into.append(epoch)


NEW = {"city": "Rome", "total": 7, "__weight": 1}
OLD = {"city": "Rome", "total": 3, "__weight": -1}


@pytest.mark.parametrize("kept", ["memory", "disk"])
def test_every_epoch_is_in_a_folder_of_its_own_and_all_are_one_table(
    kept: str, tmp_path: Path
) -> None:
    options = {} if kept == "memory" else {"path": tmp_path / "state"}
    with totals.run(**options) as view:
        end = view.write_changes(tmp_path / "log")
        view.step(sales=[Sale("Rome", 3)])
        view.step(sales=[Sale("Rome", 4)])
        view.step()
        end()
        view.step(sales=[Sale("Rome", 5)])
    assert log(tmp_path / "log") == {1: [{**OLD, "__weight": 1}], 2: [OLD, NEW], 3: []}
    table = ds.dataset(tmp_path / "log", format="parquet", partitioning="hive").to_table()
    assert sorted(table.column("epoch").to_pylist()) == [1, 2, 2]


def test_a_log_goes_on_where_it_was_and_gets_what_it_has_missed(
    opened: Open, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    opened().write_changes(path)
    view = opened()
    for price in (1, 2, 3, 4):
        view.step(sales=[Sale("Rome", price)])
    assert not path.exists(), "nobody writes it in this run"
    view = opened()
    view.write_changes(path)
    assert {epoch: rows[-1]["total"] for epoch, rows in log(path).items()} == {
        1: 1, 2: 3, 3: 6, 4: 10
    }  # fmt: skip
    view.step()
    view.step()
    assert view._storage.logged() == [6], "nobody needs the others any more"


def test_without_sinks_nothing_is_kept_for_them(opened: Open) -> None:
    view = opened()
    for price in range(4):
        view.step(sales=[Sale("Rome", price)])
    assert not any(name.startswith("change of") for name, _ in view._storage.store.names())
    view = opened(keep_epochs=3)
    for price in range(5):
        view.step(sales=[Sale("Rome", price)])
    assert view._storage.logged() == [7, 8, 9], "as on Spark, those that can be read"


def test_a_gap_is_said_with_its_epochs_and_leaves_nothing(opened: Open, tmp_path: Path) -> None:
    view, path = opened(), tmp_path / "log"
    end = view.write_changes(path)
    view.step(sales=[Sale("Rome", 1)])
    end()
    for price in range(5):
        view.step(sales=[Sale("Oslo", price)])
    with pytest.raises(SinkError, match="up to 1, and the changes of some") as caught:
        view.write_changes(path)
    assert str(caught.value.facts["missing"]) == "2 to 6"
    assert view.sinks == {}
    (tmp_path / "other" / "epoch=70").mkdir(parents=True)
    with pytest.raises(SinkError, match="it is not a sink of this state"):
        view.write_changes(tmp_path / "other")


def test_an_output_that_is_new_begins_with_all_its_rows(opened: Open) -> None:
    others = ef.Input("others", Sale)
    more, received = ef.program(output=totals, more=others), list[Any]()

    def function(change: Any, epoch: int) -> None:
        received.append((epoch, change))

    view = opened()
    view.each_epoch(seen([]), name="ours")
    view.step(sales=[Sale("Rome", 1)])
    view.step(sales=[Sale("Rome", 2)])
    view = opened(more)
    view.each_epoch(function, name="ours")
    assert received == [(3, {"output": ef.ZSet(), "more": ef.ZSet()})]
    view.step(others=[Sale("Oslo", 1)])
    view = opened(ef.program(output=totals, more=others, all=others))
    view.each_epoch(function, name="ours")
    assert received[-1][1] == {
        "output": ef.ZSet(), "more": ef.ZSet(), "all": ef.ZSet.of([Sale("Oslo", 1)])
    }  # fmt: skip


def test_a_sink_that_is_behind_a_new_output_has_the_epochs_before_it(opened: Open) -> None:
    received: list[Any] = []
    view = opened()
    view.each_epoch(seen([]), name="ours")
    view = opened()
    view.step(sales=[Sale("Rome", 1)])
    view.step(sales=[Sale("Rome", 2)])
    view = opened(ef.program(output=totals, more=sales))
    view.each_epoch(lambda change, epoch: received.append((epoch, change)), name="ours")
    assert [epoch for epoch, _ in received] == [1, 2, 3]
    assert received[1][1]["more"] == ef.ZSet()
    assert received[2][1] == {"output": ef.ZSet(), "more": view.value["more"]}


def test_a_function_hears_of_every_epoch_and_goes_on_after_those_it_finished(opened: Open) -> None:
    received: list[int] = []
    view = opened()
    view.step(sales=[Sale("Rome", 1)])
    view.each_epoch(seen(received), name="ours")
    view.step(sales=[Sale("Rome", 2)])
    view.step()
    assert received == [2, 3], "from when it was given on"
    view = opened()
    for price in range(4):
        view.step(sales=[Sale("Rome", price)])
    assert view.sinks == {"ours": 3}
    view.each_epoch(seen(received), name="ours")
    assert received == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("kept", ["memory", "disk"])
def test_a_sink_that_fails_leaves_the_epoch_and_is_tried_again(kept: str, tmp_path: Path) -> None:
    received: list[int] = []
    other: list[ZSet[Any]] = []
    broken = True

    def write(change: Any, epoch: int) -> None:
        if broken:
            raise OSError("no room")
        received.append(epoch)

    options = {} if kept == "memory" else {"path": tmp_path}
    with totals.run(**options) as view:
        view.each_epoch(write)
        view.each_epoch(lambda change, epoch: other.append(change), name="other")
        for epoch in (1, 2, 3):
            with pytest.raises(OSError, match="no room") as caught:
                view.step(sales=[Sale("Rome", 1)])
            assert "the sink 'write' for epoch 1" in caught.value.__notes__[0]
            assert view.epoch == epoch
        assert sum(other, start=ZSet()) == view.value
        broken = False
        view.deliver()
        view.step()
    assert received == [1, 2, 3, 4]


def test_sinks_are_given_epochs_that_are_safe_and_no_others(opened: Open) -> None:
    received: list[int] = []
    view = opened(flush_every=3)
    view.each_epoch(seen(received), name="ours")
    steps = []
    for price in range(4):
        view.step(sales=[Sale("Rome", price)])
        steps.append(list(received))
    assert steps == [[], [], [1, 2, 3], [1, 2, 3]]
    view.deliver()
    assert received == [1, 2, 3, 4]
    view.step(sales=[Sale("Rome", 9)])
    view.close()
    assert received == [1, 2, 3, 4, 5], "closing writes what waits"


def test_a_sink_that_comes_while_epochs_wait_begins_after_them(opened: Open) -> None:
    received: list[int] = []
    view = opened(flush_every=3)
    for price in range(4):
        view.step(sales=[Sale("Rome", price)])
    view.each_epoch(seen(received), name="ours")
    for price in range(3):
        view.step(sales=[Sale("Rome", price)])
    assert received == [5, 6, 7]


class Bank(ef.Sink):
    """A table with the last epoch in the same transaction; it dies after a commit when told to."""

    name = "bank"

    def __init__(self, path: Path, dies: bool = False) -> None:
        self.db, self.dies = sqlite3.connect(path), dies
        self.db.execute("create table if not exists rows (city, total, weight, epoch)")
        self.db.execute("create table if not exists done (epoch)")

    def had(self, known: int | None, first: int, last: int) -> int:
        (epoch,) = self.db.execute("select max(epoch) from done").fetchone()
        return last if epoch is None else int(epoch)

    def publish(self, epoch: int, change: Any) -> None:
        with self.db:
            rows = [(*row, weight, epoch) for row, weight in change.items()]
            self.db.executemany("insert into rows values (?, ?, ?, ?)", rows)
            self.db.execute("insert into done values (?)", (epoch,))
        if self.dies:
            raise KeyboardInterrupt


def test_a_sink_that_asks_its_target_has_every_epoch_exactly_once(
    opened: Open, tmp_path: Path
) -> None:
    view = opened()
    view.add_sink(Bank(tmp_path / "bank.db", dies=True))
    with pytest.raises(KeyboardInterrupt):
        view.step(sales=[Sale("Rome", 1)])
    assert (view.epoch, view.sinks) == (1, {"bank": 0}), "published, and not noted"
    view = opened()
    bank = Bank(tmp_path / "bank.db")
    view.add_sink(bank)
    view.step(sales=[Sale("Rome", 2)])
    query = "select city, total, sum(weight) from rows group by 1, 2 having sum(weight) != 0"
    assert bank.db.execute(query).fetchall() == [("Rome", 3, 1)]
    assert bank.db.execute("select count(*) from done").fetchone() == (2,)


def test_a_sink_may_step_the_view_and_end_itself() -> None:
    view, received, other = totals.run(), list[int](), list[int]()

    def more(change: Any, epoch: int) -> None:
        received.append(epoch)
        if epoch < 3:
            view.step(sales=[Sale("Rome", epoch)])
        else:
            end()

    end = view.each_epoch(more)
    view.each_epoch(seen(other), name="other")
    view.step(sales=[Sale("Rome", 1)])
    view.step()
    assert (received, other, view.sinks) == ([1, 2, 3], [1, 2, 3, 4], {"other": 4})


def test_threads_that_step_give_every_epoch_once_and_in_order(opened: Open) -> None:
    view, received = opened(), list[int]()
    view.each_epoch(seen(received), name="ours")
    threads = [
        Thread(target=lambda: [view.step(sales=[Sale("Rome", 1)]) for _ in range(5)])
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert received == list(range(1, 16))


def test_what_is_no_sink_is_refused(opened: Open, tmp_path: Path) -> None:
    view = opened()
    with pytest.raises(CompositionError, match="that is not a sink"):
        view.add_sink(print)
    with pytest.raises(CompositionError, match="without a name"):
        view.each_epoch(lambda change, epoch: None)
    view.each_epoch(print)
    with pytest.raises(CompositionError, match="there is a sink 'print' already"):
        view.each_epoch(print)
    for wrong in (view.write_changes, view.write_snapshot):
        with pytest.raises(CompositionError, match=r"no such format(?s:.*)'parquet', 'csv'"):
            wrong(tmp_path / "log", format="xlsx")
        with pytest.raises(CompositionError, match="path="):
            wrong("s3a://bucket/x")
        with pytest.raises(CompositionError, match="no output 'totls'"):
            wrong(tmp_path / "log", output="totls")
    renamed = sales.group_by(epoch="price").agg(n=ef.count())
    with pytest.raises(CompositionError, match="have a field 'epoch'"):
        renamed.run().write_changes(tmp_path / "log")
    view.close()
    with pytest.raises(ViewClosed):
        view.each_epoch(print, name="other")
    assert not (tmp_path / "log").exists()


# ---- files ----


class Wide(NamedTuple):
    id: int
    at: Annotated[datetime, UTC]
    cost: Decimal
    share: float | None
    note: str | None
    raw: bytes
    tags: tuple[str, ...]
    per: dict[str, int]


WIDE = Wide(
    1, datetime(2026, 1, 1, tzinfo=UTC), Decimal("1.5"), float("inf"), "a\n\"b\"", b"\0", ("x",),
    Frozen(a=1),
)  # fmt: skip
BARE = Wide(2, datetime(2026, 1, 1, tzinfo=UTC), Decimal(0), None, None, b"", (), WIDE.per)


def test_rows_are_lines_of_text_that_others_read_back(tmp_path: Path) -> None:
    with ef.Input("wide", Wide).run() as view:
        for format in ("csv", "jsonl"):
            view.write_changes(tmp_path / format, format=format)
        view.step(wide=[WIDE, BARE])
        view.write_snapshot(tmp_path / "now", format="jsonl")
    with open(tmp_path / "csv" / "epoch=1" / "part-00000.csv", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["id"], first["note"], first["__weight"]) == ("1", WIDE.note, "1")
    assert json.loads(first["tags"]) == ["x"]
    assert json.loads(first["per"]) == {"a": 1}
    assert (second["share"], second["note"]) == ("", "")
    lines = (tmp_path / "jsonl" / "epoch=1" / "part-00000.jsonl").read_text().splitlines()
    first, second = map(json.loads, lines)
    assert first == {
        "id": 1, "at": "2026-01-01T00:00:00+00:00", "cost": "1.500000000000000000",
        "share": "Infinity", "note": WIDE.note, "raw": "AA==", "tags": ["x"], "per": {"a": 1},
        "__weight": 1,
    }  # fmt: skip
    assert (second["share"], second["note"]) == (None, None)
    (now,) = (tmp_path / "now").iterdir()
    assert [json.loads(line)["id"] for line in now.read_text().splitlines()] == [1, 2]


def test_a_snapshot_replaces_the_one_before_and_nothing_else(tmp_path: Path) -> None:
    with two.run() as view:
        view.step(sales=[Sale("Rome", 30), Sale("Rome", 30)])
        view.write_snapshot(tmp_path / "now")
        (tmp_path / "now" / "dear" / "mine").write_text("kept")
        view.write_snapshot(tmp_path / "now", format="csv")
        view["dear"].write_snapshot(tmp_path / "one")
        with pytest.raises(CompositionError, match="there is something in"):
            view.write_snapshot(tmp_path / "now", mode="error")
    assert sorted(os.listdir(tmp_path / "now" / "dear")) == ["mine", "part-00000.csv"]
    assert pq.read_table(tmp_path / "one").to_pylist() == [{"city": "Rome", "price": 30}] * 2


def modes(folder: Path) -> set[tuple[bool, str]]:
    found = [folder, *folder.rglob("*")]
    return {(each.is_dir(), oct(stat.S_IMODE(each.lstat().st_mode))) for each in found}


def test_only_those_can_read_who_may(tmp_path: Path) -> None:
    for permissions, expected in ((None, "0o700"), (0o750, "0o750")):
        state = tmp_path / f"state {expected}"
        with two.run(path=state, permissions=permissions) as view:
            view.write_changes(tmp_path / f"log {expected}")
            view.each_epoch(print, name="p")
            view.end_sink("p")
            view.step(sales=[Sale("Rome", 30)])
            view.write_snapshot(tmp_path / f"now {expected}", format="csv")
        file = oct(int(expected, 8) & 0o666)
        for folder in ("state", "log", "now"):
            assert modes(tmp_path / f"{folder} {expected}") == {(True, expected), (False, file)}
    with two.run() as view:
        view.write_changes(tmp_path / "shared", permissions=0o750)
        view.step(sales=[Sale("Rome", 30)])
    assert modes(tmp_path / "shared") == {(True, "0o750"), (False, "0o640")}
