"""Delta tables in and out of a local view, against what the tables themselves hold: every kind of
commit to them, and a process that is killed between any two of the things it does."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

deltalake = pytest.importorskip("deltalake", reason="Delta tables were not tested: no deltalake")

import pyarrow as pa  # noqa: E402
from deltalake import DeltaTable, write_deltalake  # noqa: E402

import ebbflow as ef  # noqa: E402
from ebbflow.connectors import delta  # noqa: E402
from ebbflow.engine.batch import evaluate  # noqa: E402
from ebbflow.errors import ChangeError, CompositionError, SinkError  # noqa: E402
from ebbflow.zset import ZSet  # noqa: E402


class Order(NamedTuple):
    id: int
    city: str | None
    price: int


orders = ef.Input("orders", Order)
keyed = ef.Input("orders", Order, key="id")
SHAPES = {"bag": orders, "keyed": keyed}
FEED = {"delta.enableChangeDataFeed": "true"}


def totals(source: Any) -> Any:
    return source.group_by("city").agg(n=ef.count(), total=ef.sum("price"))


def table(rows: list[Order]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    types = [pa.int64(), pa.string(), pa.int64()]
    arrays = [pa.array(list(each), kind) for each, kind in zip(columns, types, strict=True)]
    notes = pa.array([f"note {i}" for i in range(len(rows))], pa.string())
    return pa.table([*arrays, notes], ["id", "city", "price", "note"])


def rows_of(path: Path) -> list[Order]:
    found = DeltaTable(path).to_pyarrow_table(columns=list(Order._fields))
    return [Order(*row.values()) for row in found.to_pylist()]


def make(path: Path, rows: list[Order], **how: Any) -> None:
    write_deltalake(path, table(rows), configuration=FEED, **how)


def change(path: Path, dice: Random, unused: list[int]) -> None:
    """One commit of any kind to a table of orders."""
    where = f"id % {dice.randrange(2, 6)} = 1"
    new = [Order(unused.pop(), dice.choice(["Rome", "Oslo", None]), dice.randrange(9))
           for _ in range(dice.randrange(1, 6))]  # fmt: skip
    match dice.randrange(6):
        case 0 | 1:
            write_deltalake(path, table(new), mode="append")
        case 2:
            DeltaTable(path).delete(where)
        case 3:
            DeltaTable(path).update(updates={"price": "price + 10"}, predicate=where)
        case 4:
            some = [row._replace(price=row.price + 1) for row in rows_of(path)[:3]] + new
            merging = DeltaTable(path).merge(table(some), "t.id = s.id", "s", "t")
            merging.when_matched_update_all().when_not_matched_insert_all().execute()
        case 5:
            kept = rows_of(path)[:8] + new
            write_deltalake(path, table(kept), mode="overwrite")


def expected(plan: Any, path: Path) -> Any:
    return evaluate(plan, {"orders": ZSet.of(rows_of(path))})["output"]


def holds(path: Path) -> Counter[Any]:
    return Counter(tuple(row.values()) for row in DeltaTable(path).to_pyarrow_table().to_pylist())


def as_rows(value: ZSet[Any]) -> Counter[Any]:
    return Counter({tuple(row): weight for row, weight in value.items()})


def log_at(path: Path, epoch: int) -> Counter[Any]:
    """What the weights of a log add up to."""
    found: Counter[Any] = Counter()
    for *row, weight, at in (r.values() for r in DeltaTable(path).to_pyarrow_table().to_pylist()):
        found[tuple(row)] += weight if at <= epoch else 0
    return Counter({row: weight for row, weight in found.items() if weight})


@pytest.mark.parametrize("shape", SHAPES)
def test_oracle_a_view_follows_a_table_and_a_table_follows_the_view(
    shape: str, tmp_path: Path
) -> None:
    dice, unused = Random(shape), list(range(10_000, 0, -1))
    source, program = tmp_path / "orders", totals(SHAPES[shape])
    make(source, [Order(unused.pop(), "Rome", 5) for _ in range(9)])
    follow = delta.changes({"orders": source})
    with program.run(path=tmp_path / "state") as view:
        assert follow.run(view, follow=False) == 1
        view.add_sink(delta.TableSink(tmp_path / "totals"))
        view.add_sink(delta.LogSink(tmp_path / "log"))
        begun = view.epoch
        for step in range(9):
            for _ in range(dice.randrange(1, 3)):
                change(source, dice, unused)
            follow.run(view, follow=False)
            assert view.value == expected(program.plan, source), step
            assert holds(tmp_path / "totals") == as_rows(view.value), step
            assert log_at(tmp_path / "log", view.epoch) == as_rows(view.value)
        assert view.batches()[-1].name[1].popitem()[1] == DeltaTable(source).version()
        assert view.epoch > begun + 3
    versions = [DeltaTable(tmp_path / each).version() for each in ("totals", "log")]
    with program.run(path=tmp_path / "state") as view:  # again: nothing is new
        view.add_sink(delta.TableSink(tmp_path / "totals"))
        view.add_sink(delta.LogSink(tmp_path / "log"))
        assert follow.run(view, follow=False) == 0
    assert versions == [DeltaTable(tmp_path / each).version() for each in ("totals", "log")]


def test_what_is_waiting_is_one_epoch_or_several(tmp_path: Path) -> None:
    source = tmp_path / "orders"
    make(source, [Order(1, "Rome", 5)])
    for versions, epochs in ((None, [2]), (2, [2, 2, 1])):
        view = totals(keyed).run()
        follow = delta.changes({"orders": source}, versions=versions)
        follow.run(view, follow=False)
        begin = DeltaTable(source).version()
        for i in range(5 if versions else 2):
            write_deltalake(source, table([Order(100 * begin + i + 2, "Oslo", 1)]), mode="append")
        batches = [each.name[1] for each in map(_stepped(view), follow.batches(view, follow=False))]
        ends = [begin, *(next(iter(each.values())) for each in batches)]
        assert [b - a for a, b in itertools.pairwise(ends)] == epochs
        DeltaTable(source).optimize.compact()
        assert follow.run(view, follow=False) == 0  # rows are where they were


def _stepped(view: Any) -> Any:
    def step(batch: Any) -> Any:
        view.step(batch.changes, batch=batch.name)
        return batch

    return step


# ---- what cannot be followed ----


def test_a_table_without_a_feed_or_made_anew_is_refused_or_replaced(tmp_path: Path) -> None:
    source, program = tmp_path / "orders", totals(keyed)
    write_deltalake(source, table([Order(1, "Rome", 5)]))
    follow = delta.changes({"orders": source})
    instead = delta.changes({"orders": source}, gap="replace")
    view = program.run()
    follow.run(view, follow=False)
    write_deltalake(source, table([Order(2, "Rome", 6)]), mode="append")
    with pytest.raises(ChangeError, match=r"change feed is off[\s\S]*gap=\"replace\""):
        follow.run(view, follow=False)
    assert as_rows(view.value) == {("Rome", 1, 5): 1}
    assert instead.run(view, follow=False) == 1
    assert view.value == expected(program.plan, source)
    assert as_rows(view.value) == {("Rome", 2, 11): 1}
    (source / "_delta_log").rename(tmp_path / "old")
    make(source, [Order(7, "Oslo", 1)])
    with pytest.raises(ChangeError, match="another table was followed before"):
        follow.run(view, follow=False)
    instead.run(view, follow=False)
    assert view.value == expected(program.plan, source)
    assert as_rows(view.value) == {("Oslo", 1, 1): 1}
    write_deltalake(source, table([Order(8, "Oslo", 2)]), mode="append")
    assert follow.run(view, follow=False) == 1
    assert as_rows(view.value) == {("Oslo", 2, 3): 1}


def test_a_feed_that_was_off_for_a_while_is_refused(tmp_path: Path) -> None:
    source, program = tmp_path / "orders", totals(orders)
    make(source, [Order(i, "Rome", i) for i in range(9)])
    view = program.run()
    follow = delta.changes({"orders": source})
    follow.run(view, follow=False)
    DeltaTable(source).alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
    DeltaTable(source).update(updates={"price": "price + 10"}, predicate="id % 2 = 1")
    DeltaTable(source).delete("id = 4")
    DeltaTable(source).alter.set_table_properties(FEED)
    DeltaTable(source).delete("id = 6")
    with pytest.raises(ChangeError, match="Change Data not enabled for version"):
        follow.run(view, follow=False)
    delta.changes({"orders": source}, gap="replace").run(view, follow=False)
    assert view.value == expected(program.plan, source)


def test_mistakes_are_told_before_anything_is_written(tmp_path: Path) -> None:
    source = tmp_path / "orders"
    make(source, [Order(1, "Rome", 5)])
    view = totals(keyed).run()
    with pytest.raises(ef.EbbflowError, match="no input 'order'"):
        delta.changes({"order": source}).run(view)
    with pytest.raises(ef.EbbflowError, match="there is no such choice"):
        delta.changes({"orders": source}, gap="skip")
    view.step(orders=[Order(5, "Bonn", 1)])
    with pytest.raises(ChangeError, match="rows that did not come from this table"):
        delta.changes({"orders": source}).run(view)
    write_deltalake(tmp_path / "less", table([]).drop_columns(["city"]))
    with pytest.raises(ChangeError, match="the table has no column 'city'"):
        delta.changes({"orders": tmp_path / "less"}).run(view)
    bag = orders.run()
    with pytest.raises(CompositionError, match=r"no key that the program shows[\s\S]*LogSink"):
        bag.add_sink(delta.TableSink(tmp_path / "out"))
    with pytest.raises(CompositionError, match="no field 'town'"):
        bag.add_sink(delta.TableSink(tmp_path / "out", key="town"))
    with pytest.raises(ef.EbbflowError, match="it has no epoch of this sink"):
        bag.add_sink(delta.TableSink(source, key="id"))
    bag.add_sink(delta.TableSink(tmp_path / "out", key="id"))
    with pytest.raises(ef.EbbflowError, match="two rows of the output have one key"):
        bag.step(orders=[Order(1, "Rome", 5), Order(1, "Oslo", 5)])
    assert holds(tmp_path / "out") == Counter()


def test_a_table_of_another_state_is_not_gone_on_with(tmp_path: Path) -> None:
    with totals(keyed).run(path=tmp_path / "one") as view:
        view.add_sink(delta.TableSink(tmp_path / "out"))
        for i in range(3):
            view.step(orders=[Order(i, "Rome", i)])
    with totals(keyed).run(path=tmp_path / "two") as view:
        view.step(orders=[Order(1, "Oslo", 1)])
        with pytest.raises(ef.EbbflowError, match="it is not a sink of this state"):
            view.add_sink(delta.TableSink(tmp_path / "out"))
    assert holds(tmp_path / "out") == Counter({("Rome", 3, 3): 1})


# ---- killed ----

CHILD = """
import os, signal, sys, threading, time
sys.path.insert(0, {tests!r})
import tests.oracle.test_delta as t
from ebbflow.connectors import delta
from ebbflow.connectors.delta import tables
from ebbflow.engine.runtime.sinks import sink

def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)

where, after = {where!r}, {after!r}
count = [0]
def killing(owner, name, before):
    real = getattr(owner, name)
    def run(*given, **named):
        count[0] += 1
        if before and count[0] == after:
            die()
        found = real(*given, **named)
        if not before and count[0] == after:
            die()
        return found
    setattr(owner, name, run)

if where == "before merge": killing(tables.LocalTable, "merge", True)
elif where == "after merge": killing(tables.LocalTable, "merge", False)
elif where == "before append": killing(tables.LocalTable, "append", True)
elif where == "after append": killing(tables.LocalTable, "append", False)
elif where == "noting": killing(sink, "note", True)
elif where == "any time":
    threading.Timer(after, die).start()

path = t.Path({path!r})
with t.totals(t.keyed).run(path=path / "state") as view:
    view.add_sink(delta.TableSink(path / "totals"))
    view.add_sink(delta.LogSink(path / "log"))
    if where == "step":
        killing(type(view), "step", False)
    delta.changes({{"orders": path / "orders"}}, versions=1).run(view, follow=False)
os._exit(0)
"""


def run_child(path: Path, where: str, after: float) -> int:
    code = CHILD.format(
        tests=str(Path(__file__).parents[2]), path=str(path), where=where, after=after
    )
    return subprocess.run([sys.executable, "-c", code], check=False).returncode


def killed_and_resumed(path: Path, kills: list[tuple[str, float]], seed: int) -> int:
    """Kill a process at each of these places while it follows a table; gives how often it was."""
    dice, unused = Random(seed), list(range(10_000, 0, -1))
    make(path / "orders", [Order(unused.pop(), "Rome", 5) for _ in range(9)])
    killed = 0
    for where, after in [*kills, ("", 0.0)]:
        for _ in range(3):
            change(path / "orders", dice, unused)
        status = run_child(path, where, after)
        assert status in (0, -signal.SIGKILL)
        killed += status != 0
    program = totals(keyed)
    with program.run(path=path / "state") as view:
        assert view.value == expected(program.plan, path / "orders")
        assert holds(path / "totals") == as_rows(view.value)
        assert log_at(path / "log", view.epoch) == as_rows(view.value)
        log = DeltaTable(path / "log").history()
        epochs = sorted(int(each["epoch"]) for each in log if "epoch" in each)
        assert len(epochs) == len(set(epochs))
    return killed


def test_a_killed_process_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    kills = [("after merge", 1), ("noting", 2)]
    assert killed_and_resumed(tmp_path, kills, 1) == len(kills)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_oracle_killed_at_any_time(seed: int, tmp_path: Path) -> None:
    dice = Random(seed)
    places = ["before merge", "after merge", "before append", "after append", "noting", "step"]
    kills = [(dice.choice(places), dice.randrange(1, 5)) for _ in range(6)]
    kills += [("any time", dice.uniform(0.0, 0.4)) for _ in range(8)]
    dice.shuffle(kills)
    assert killed_and_resumed(tmp_path, kills, seed) > 5
    assert os.path.isdir(tmp_path / "state")


def test_tables_have_what_a_changed_program_gives_and_begin_again(tmp_path: Path) -> None:
    def program(least: int, price: Any = ef.sum) -> Any:
        some = keyed.filter(lambda order: order.price > least)
        return some.group_by("city").agg(n=ef.count(), total=price("price"))

    def add(view: Any) -> None:
        view.add_sink(delta.TableSink(tmp_path / "table"))
        view.add_sink(delta.LogSink(tmp_path / "log"))

    names = [f"delta {tmp_path / each}" for each in ("table", "log")]
    rows = [Order(i, ["Rome", "Oslo", None][i % 3], i) for i in range(12)]
    with program(0).run(path=tmp_path / "state") as view:
        add(view)
        view.step(orders=rows)
    for least in (5, 9, 0):
        with program(least).run(path=tmp_path / "state") as view:
            add(view)
            assert holds(tmp_path / "table") == as_rows(view.value)
            assert log_at(tmp_path / "log", view.epoch) == as_rows(view.value)
    with program(0, ef.mean).run(path=tmp_path / "state") as view:
        with pytest.raises(SinkError, match="then the program changed"):
            add(view)
        for name in names:
            view.restart_sink(name)
        add(view)
        assert holds(tmp_path / "table") == as_rows(view.value)
        edited = DeltaTable(tmp_path / "table").to_pyarrow_table()
        write_deltalake(tmp_path / "table", edited, mode="append")
        view.restart_sink(names[0])
        view.step(orders=ef.delete([3, 4]))
        assert holds(tmp_path / "table") == as_rows(view.value)
        assert log_at(tmp_path / "log", view.epoch) == as_rows(view.value)
    with program(0).run(path=tmp_path / "another") as view:
        view.restart_sink(names[0])
        with pytest.raises(SinkError, match=r"has epoch 6 of this sink[\s\S]*another name="):
            view.add_sink(delta.TableSink(tmp_path / "table"))
        view.end_sink(names[0])
        view.add_sink(delta.TableSink(tmp_path / "table", name="another", overwrite=True))
        assert holds(tmp_path / "table") == as_rows(view.value)
