"""Tasks in columns against batch, change by change: what a task does to Arrow columns is what it
does to rows, and what either has stored the other reads.

No Spark is needed: `simulated` calls the tasks one after the other. Columns are for large changes;
here they take every change, or every other one.
"""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.oracle import decimal_programs
from tests.oracle.asked import follow_requests, program_of, tables
from tests.oracle.column_programs import Sale, Shop, ends_of_groups, epochs, program, sale, shop
from tests.oracle.ordered_programs import ends, top
from tests.oracle.random_requests import RandomRequests
from tests.oracle.written_reducers import written
from tests.spark.simulated import View
from tests.spark.test_oracle import Reopened, running

import ebbflow as ef
from ebbflow.engine.local import run as run_here
from ebbflow.engine.runtime.columnar import stored_cells, stored_stages
from ebbflow.engine.runtime.columnar.stored_stages import RowsNeeded, StoredArrangeStage
from ebbflow.engine.spark.tasks import columns, replica, sending, single, transport
from ebbflow.engine.spark.tasks.columns import ColumnReplica
from ebbflow.engine.spark.tasks.epochs import InputChange
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.report import TaskReport
from ebbflow.errors import AbsentRow, ChangeError, FunctionFailed
from ebbflow.flow.running import planned
from ebbflow.kernel.columns import Columns
from ebbflow.state.spine import part as spine_part
from ebbflow.testing import follow, random_epochs, random_program
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))
MODES = ["single_task", "staged"]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """What ran in columns, and why the rest did not. A function that fails in columns and not in
    rows is a mistake here, though rows would mend it."""
    found: Counter[str] = Counter()
    failed_alone: list[str] = []
    report = TaskReport.failed

    def failed(*given: Any) -> TaskReport:
        failed_alone.clear()
        return report(*given)

    def counting(run: Any) -> Any:
        def counted(self: ColumnReplica, *given: Any) -> Any:
            assert not failed_alone
            try:
                made = run(self, *given)
            except RowsNeeded as why:
                found[f"rows: {why.what}"] += 1
                raise
            except FunctionFailed as error:
                failed_alone.append(str(error))
                raise
            found["epochs"] += 1
            found.update(type(stage).__name__ for stage in self.stored)
            return made

        return counted

    for name in ("all_at_once", "wave"):
        monkeypatch.setattr(ColumnReplica, name, counting(getattr(ColumnReplica, name)))
    monkeypatch.setattr(sending, "COLUMNS_FROM", 0)
    monkeypatch.setattr(TaskReport, "failed", staticmethod(failed))
    yield found
    assert not failed_alone


class Mixed(Reopened):
    """Some epochs in columns, others in rows, on one state."""

    def advance(self, asked: Any) -> Any:
        sending.COLUMNS_FROM = self.dice.choice([0, 0, 10**9])
        return super().advance(asked)


def followed(
    mode: str, seeds: range, made: Any = program, of: type[View] = Mixed, given: Any = epochs
) -> None:
    for seed in seeds:
        dice = Random(f"spark {seed}")
        plan = planned({"output": made(dice).node})
        check, hard = dice.random() < 0.6, dice.choice([0, 0, 0.02, 0.2])
        with running(mode, dice, check, of) as run:  # type: ignore[arg-type]
            try:
                follow(run, plan, given(dice, list(plan.sources), 8, hard))
            except AssertionError as error:
                if "has more than 64 bits" not in str(error):  # no column of Spark's has room
                    raise


@pytest.mark.parametrize("mode", MODES)
def test_oracle_tasks_in_columns_give_what_batch_gives(mode: str, seen: Counter[str]) -> None:
    followed(mode, range(24 * MORE))
    assert seen["epochs"] > 40, seen
    for each in ("Reduce", "Arrange", "Join", "Semi", "Distinct"):
        assert seen[f"Stored{each}Stage"] > 3, seen


@pytest.mark.parametrize("mode", MODES)
def test_oracle_decimals_of_tasks_in_columns(mode: str, seen: Counter[str]) -> None:
    followed(mode, range(16 * MORE), decimal_programs.program, given=decimal_programs.epochs)
    assert seen["epochs"] > 40, seen
    for each in ("Reduce", "Arrange", "Join", "Group"):
        assert seen[f"Stored{each}Stage"] > 3, seen


@pytest.mark.parametrize("mode", MODES)
def test_oracle_minima_and_maxima_of_tasks_in_columns(mode: str, seen: Counter[str]) -> None:
    followed(mode, range(8 * MORE), ends_of_groups)
    assert seen["StoredGroupStage"] > 10, seen


@pytest.mark.parametrize("mode", MODES)
def test_oracle_the_first_rows_of_tasks_in_columns(mode: str, seen: Counter[str]) -> None:
    followed(mode, range(16 * MORE), top)
    assert seen["StoredTopStage"] > 10, seen


@pytest.mark.parametrize("mode", MODES)
def test_oracle_all_values_of_groups_of_tasks_in_columns(mode: str, seen: Counter[str]) -> None:
    followed(mode, range(24 * MORE), ends)
    assert seen["StoredGroupStage"] > 20, seen


@pytest.mark.parametrize("mode", MODES)
def test_oracle_reducers_that_somebody_wrote_of_tasks_in_columns(
    mode: str, seen: Counter[str]
) -> None:
    followed(mode, range(12 * MORE), written)
    assert seen["StoredGroupStage"] > 10, seen


@pytest.mark.parametrize("mode", MODES)
def test_oracle_any_program_may_have_tasks_in_columns(mode: str, seen: Counter[str]) -> None:
    for seed in range(12 * MORE):
        grown = random_program(seed)
        dice = Random(f"any {seed}")
        with running(mode, dice, of=Mixed) as run:
            follow(run, grown, random_epochs(grown, dice, 5, size=6))
    assert seen["epochs"] > 3, seen


def test_oracle_requests_of_tasks_in_columns_give_what_batch_gives(seen: Counter[str]) -> None:
    done: Counter[str] = Counter()
    for seed in range(8 * MORE):
        dice = Random(f"asked {seed}")
        asked = program_of(dice)
        requests = RandomRequests(asked, dice)
        with running("single_task", dice, of=Mixed) as run:
            view = run(asked.plan)
            done += follow_requests(view, asked.plan, requests, 6, tables(requests, dice))
    assert seen["epochs"] > 3, (seen, done)


def test_upserts_in_columns_are_those_of_rows(seen: Counter[str], tmp_path: Path) -> None:
    sales = ef.Input("sales", Sale, key="id")
    sums = sales.group_by("city").agg(n=ef.count(), sum=ef.sum("price"))
    plan = planned({"output": sums.node})
    view, expected = View(plan, "single_task", path=tmp_path), sums.run()
    dice = Random(5)
    for turn in range(24):
        sending.COLUMNS_FROM = 0 if turn % 4 else 10**9
        rows = {row.id: row._replace(tax=1) for row in (sale(dice, 0.02) for _ in range(12))}
        table = ZSet.of(rows.values()).to_arrow(Sale, weights=False)
        there = expected.input("sales")
        for change in (ef.upsert(table), ef.delete(dice.sample(list(rows), 3)), None):
            change = change or _swapped(list(there.value))
            assert view.step({"sales": change}) == expected.step(sales=change)
        assert view.value == expected.value
        with pytest.raises(ChangeError, match="more than one row of a key"):
            view.step({"sales": list(there.value)[:1]})
    view.close()
    assert seen["epochs"] > 30, seen
    assert seen["rows: a change that an input with a key refuses"] > 3, seen


def _swapped(there: list[Any]) -> dict[Any, int]:
    """Some rows go, and of some of these another comes."""
    gone = dict.fromkeys(there[:4], -1)
    return gone | {row._replace(city=f"{row.city}!"): 1 for row in there[:2]}


def test_a_task_in_columns_makes_no_rows(
    seen: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sales, shops = ef.Input("sales", Sale), ef.Input("shops", Shop)
    joined = sales.filter(lambda row: row.price > 1).join(shops, on="city")
    sums = joined.group_by("city", "size").agg(sum=ef.sum("price"), mean=ef.mean("rate"))
    ends = joined.group_by("city", "size").agg(top=ef.max("price"), spread=ef.variance("id"))
    plan = planned({"output": sums.node, "ends": ends.node})
    view, expected = View(plan, "single_task", path=tmp_path), run_here(plan)
    dice = Random(1)
    rows = ZSet.of(sale(dice, 0) for _ in range(3000))
    some = ZSet.of(shop(dice, 0) for _ in range(20))
    gone = ZSet.of(dice.sample(list(rows), 400))

    def refused(*_: Any) -> Any:
        raise AssertionError("a row is made")

    with monkeypatch.context() as patch:
        patch.setattr(Columns, "rows", property(refused))
        for module in (spine_part, stored_cells, single):
            name = "decode" if module is not single else "rows_of"
            patch.setattr(module, name, refused)
        tables = [(rows, Sale), (some, Shop), (-gone, Sale)]
        for change, row_type in tables:
            name = "sales" if row_type is Sale else "shops"
            given = {name: InputChange(None, None, table=change.to_arrow(row_type))}
            view.cluster.whole(given, 10**9)
            view.commit()
    assert seen["epochs"] == 3, seen
    for change, row_type in tables:
        expected.step({"sales" if row_type is Sale else "shops": change})
    assert view.value == expected.value
    view.close()


def _checked_before(plan: Any, *, check_input: bool = True) -> list[bool]:
    stages = Replica(plan, check_input=check_input).columns.machine.stages
    return [stage.checked_before for stage in stages if isinstance(stage, StoredArrangeStage)]


def test_rows_that_follow_from_checked_inputs_are_not_looked_for_again(
    seen: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(key: str | None) -> tuple[Any, Any]:
        sales, shops = ef.Input("sales", Sale, key=key), ef.Input("shops", Shop)
        sizes = shops.select("size")
        joined = sales.join(shops, on="city").select("city", "price")
        joined = joined.join(sizes, left_on="price", right_on="size")
        return sales, joined.group_by("city").agg(n=ef.count())

    sales, sums = twice("id")
    keyed, bags = planned({"output": sums.node}), planned({"output": twice(None)[1].node})
    assert _checked_before(keyed) == [True, False, True, True]  # one of those of shops checks them
    assert sorted(_checked_before(bags)) == [False, False, True, True]
    assert not any(_checked_before(keyed, check_input=False)[1:])
    less = sales - sales.filter(lambda row: row.price > 1)
    shops = ef.Input("shops", Shop)
    behind = planned({"output": less.join(shops, on="city").node})
    assert not any(_checked_before(behind))
    asked: list[int] = []
    look = stored_stages.stored_weights
    monkeypatch.setattr(
        stored_stages, "stored_weights", lambda *given: asked.append(1) or look(*given)
    )
    view, expected = View(keyed, "single_task", path=tmp_path), sums.run()
    dice = Random(3)
    rows = [sale(dice, 0)._replace(id=i) for i in range(40)]
    shop_rows = list({shop(dice, 0) for _ in range(9)})
    steps: list[dict[str, Any]] = [
        {"sales": rows, "shops": shop_rows},
        {"sales": dict.fromkeys(rows[:9], -1)},
        {"shops": dict.fromkeys(shop_rows[:3], -1)},
    ]
    for step, looked in zip(steps, [0, 0, 1], strict=True):
        asked.clear()
        assert view.step(step) == expected.step(step)
        assert len(asked) == looked
    for name, gone in (("shops", shop_rows[0]), ("sales", rows[0])):
        with pytest.raises(AbsentRow):
            view.step({name: {gone: -1}})
    assert view.value == expected.value
    view.close()


def test_columns_that_never_fit_are_not_tried_each_time(seen: Counter[str], tmp_path: Path) -> None:
    sums = ef.Input("sales", Sale).group_by("city").agg(n=ef.count())
    plan = planned({"output": sums.node})
    view, expected = View(plan, "single_task", path=tmp_path), sums.run()
    dice, said = Random(1), []
    for turn in range(columns.MISSES + columns.PAUSE + 3):
        large = turn <= columns.MISSES + 5
        row = sale(dice, 0)._replace(id=turn, price=2**70 if large else 1)
        given = {"sales": InputChange(None, {row: 1})}
        said.append(view.cluster.whole(given, 10**9).why)
        view.commit()
        expected.step(sales=[row])
    assert view.value == expected.value
    view.close()
    assert said[0] == "in rows: a value that columns do not hold"
    assert said[columns.MISSES] == "in rows, as the epochs before"
    tried = [turn for turn, why in enumerate(said) if why != "in rows, as the epochs before"]
    assert tried[: columns.MISSES + 1] == [
        *range(columns.MISSES),
        columns.MISSES + columns.PAUSE - 1,
    ]


def test_a_group_that_has_no_columns_leaves_others_in_columns(
    seen: Counter[str], tmp_path: Path
) -> None:
    sales = ef.Input("sales", Sale)
    sums = sales.group_by("city").agg(sum=ef.sum("rate"), spread=ef.variance("id"))
    plan = planned({"output": sums.node})
    view, expected = View(plan, "single_task", path=tmp_path), sums.run()
    row = sale(Random(1), 0)
    steps = [("Rome", 0.1, 1), ("Rome", math.inf, 1), ("Oslo", 0.1, 1), ("Rome", 0.2, 1)]
    said = []
    for city, rate, weight in [*steps, ("Rome", math.inf, -1), ("Rome", 0.1, 1)]:
        given = {row._replace(city=city, rate=rate): weight}
        said.append(view.cluster.whole({"sales": InputChange(None, given)}, 10**9).why)
        view.commit()
        expected.step(sales=given)
        assert view.value == expected.value
    view.close()
    assert [bool(why) for why in said] == [False, True, False, True, True, False], said


def test_a_minimum_reads_the_rows_of_a_group_only_when_its_last_one_goes(
    seen: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = ef.Input("sales", Sale).group_by("city").agg(low=ef.min("price"), top=ef.max("rate"))
    plan = planned({"output": ends.node})
    view, expected = View(plan, "single_task", path=tmp_path), ends.run()
    rows = [sale(Random(i), 0)._replace(id=i, city="Rome", price=i, rate=i / 8) for i in range(99)]
    read: list[int] = []
    stored = StoredArrangeStage.stored

    def counted(self: StoredArrangeStage, *asked: Any) -> Any:
        found = stored(self, *asked)
        read.append(int(found.columns.weights.sum()))
        return found

    monkeypatch.setattr(StoredArrangeStage, "stored", counted)
    below = rows[1]._replace(id=100, price=-1)
    steps: list[tuple[dict[Sale, int], int]] = [
        (dict.fromkeys(rows, 1), 0),
        ({rows[5]: -1, rows[6]: -1}, 0),  # behind the first, whatever it is
        ({rows[5]: 1, rows[7]: -1}, 0),
        ({below: 1}, 0),  # takes its place
        ({rows[0]: -1, rows[50]: -1}, 0),
        ({below: -1}, 96),  # the last one goes
        ({rows[98]: -1}, 95),
        (dict.fromkeys([rows[5], *rows[1:5], *rows[8:50], *rows[51:98]], -1), 0),  # all go
    ]
    for given, wanted in steps:
        read.clear()
        view.step({"sales": given})
        expected.step(sales=given)
        assert (view.value, sum(read)) == (expected.value, wanted)
    assert len(view.value) == 0
    view.close()
    assert seen["epochs"] == len(steps), seen


@pytest.mark.parametrize("broken", [False, True])
def test_a_worker_without_kernels_runs_in_rows_what_others_run_in_columns(
    broken: bool, seen: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums = ef.Input("sales", Sale).group_by("city").agg(mean=ef.mean("rate"), top=ef.max("price"))
    plan, dice = planned({"output": sums.node}), Random(1)
    view, expected = View(plan, "single_task", path=tmp_path), sums.run()
    assert view.replica.columns is not None, "the driver has kernels"
    for turn in range(6):
        rows = ZSet.of(sale(dice, 0) for _ in range(20))
        with monkeypatch.context() as patch:
            if turn % 2 and broken:
                patch.setitem(sys.modules, columns.__name__, None)
            elif turn % 2:
                patch.setattr(replica, "missing", lambda: ["numba"])
                patch.setattr(sending, "missing", lambda: ["numba"])
            patch.setattr(transport, "_replicas", {})
            done = view.cluster.whole({"sales": InputChange(None, dict(rows.items()))}, 10**9)
        missing = "in rows: numba is not installed where tasks run"
        assert done.why == (missing if turn % 2 and not broken else "")
        view.commit()
        expected.step(sales=rows)
        assert view.value == expected.value
    view.close()
    assert seen["epochs"] == 3, seen


def test_a_replica_with_too_many_texts_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "TEXTS", 2)
    plan = planned({"output": ef.Input("sales", Sale).group_by("city").agg(n=ef.count()).node})
    made = Replica(plan)
    first = made.columns_for_task()
    first.texts.words(["Rome", "Oslo"])
    assert made.columns_for_task() is first
    first.texts.words(["Bergen"])
    assert made.columns_for_task() is not first


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("part", range(4))
def test_oracle_hundreds_of_programs_in_columns(mode: str, part: int, seen: Counter[str]) -> None:
    followed(mode, range(1000 + 100 * part, 1100 + 100 * part))
