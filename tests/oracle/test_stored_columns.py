"""Views in columns with their state on disk against batch, change by change: closed and opened
again between epochs, in columns or in rows, which read what the other has written."""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.oracle import decimal_programs
from tests.oracle.asked import follow_requests, program_of, tables
from tests.oracle.column_programs import Sale, Shop, ends_of_groups, epochs, program, sale, shop
from tests.oracle.interrupts import instants, interrupted
from tests.oracle.ordered_programs import ends, top
from tests.oracle.random_requests import RandomRequests
from tests.oracle.reopened import Reopened, folder
from tests.oracle.written_reducers import written

import ebbflow as ef
from ebbflow.engine.runtime.columnar import packed, stored_cells
from ebbflow.engine.runtime.columnar.disk import ColumnDisk
from ebbflow.errors import AbsentRow, CompositionError
from ebbflow.flow.plan import Plan
from ebbflow.flow.running import planned
from ebbflow.kernel.columns import Columns
from ebbflow.kernel.top import FirstRows
from ebbflow.state.spine import Snapshot
from ebbflow.state.spine import part as spine_part
from ebbflow.testing import follow, random_epochs, random_program
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine crashes here, so nothing need be safe from that."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What ran in columns, and why the rest did not."""
    found: Counter[str] = Counter()
    stage, leave = ColumnDisk._stage, ColumnDisk._leave

    def staged(self: ColumnDisk) -> None:
        stage(self)
        if self.columns is not None:
            found["epochs"] += 1
            found.update(type(kernel).__name__ for kernel in self.columns.kernels)

    def left(self: ColumnDisk, why: str) -> None:
        found["left"] += self.columns is not None
        leave(self, why)

    monkeypatch.setattr(ColumnDisk, "_stage", staged)
    monkeypatch.setattr(ColumnDisk, "_leave", left)
    return found


OPTIONS: list[dict[str, Any]] = [
    {"keep_for": timedelta(hours=1)},
    {"keep_epochs": 3},
    {"flush_every": 3, "readable": True},
]


class Turned(Reopened):
    """A view on disk that is opened in columns or in rows."""

    def reopen(self) -> None:
        self.options = {**self.options, "columns": self.dice.random() < 0.8}
        super().reopen()


def followed(plan: Any, dice: Random, given: Any, **options: Any) -> None:
    with folder() as path:
        made: list[Turned] = []

        def turned(plan: Plan) -> Turned:
            made.append(Turned(plan, path, dice, columns=True, **options))
            return made[0]

        try:
            follow(turned, plan, given)
            made[0].reopen()
            if options.get("check_input", True):
                made[0].view.verify()
        except AssertionError as error:
            if "has more than 64 bits" not in str(error):  # no column of Arrow has room
                raise
        finally:
            made[0].view.close()


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_oracle_views_in_columns_on_disk_equal_batch(
    option: dict[str, Any], seen: Counter[str]
) -> None:
    for seed in range(20 * MORE):
        dice = Random(f"{option} {seed}")
        plan = planned({"output": program(dice).node})
        check, hard = dice.random() < 0.6, dice.choice([0, 0, 0.02, 0.2])
        given = epochs(dice, list(plan.sources), 8, hard)
        followed(plan, dice, given, check_input=check, **option)
    assert seen["epochs"] > 40, seen
    for each in ("Groups", "Index", "RowTable"):
        assert seen[f"Stored{each}"] > 10, seen


def test_oracle_decimals_in_columns_on_disk(seen: Counter[str]) -> None:
    for seed in range(40 * MORE):
        dice = Random(f"decimals {seed}")
        plan = planned({"output": decimal_programs.program(dice).node})
        given = decimal_programs.epochs(dice, list(plan.sources), 8, dice.choice([0, 0, 0.1]))
        followed(plan, dice, given, check_input=dice.random() < 0.6)
    assert seen["epochs"] > 100, seen
    assert seen["left"] < 12 * MORE, seen
    for each in ("Groups", "ValueGroups", "Index", "RowTable", "TopRows"):
        assert seen[f"Stored{each}"] > 5, seen


def test_oracle_minima_and_maxima_in_columns_on_disk(seen: Counter[str]) -> None:
    for seed in range(8 * MORE):
        dice = Random(f"ends {seed}")
        plan = planned({"output": ends_of_groups(dice).node})
        followed(plan, dice, epochs(dice, list(plan.sources), 8, dice.choice([0, 0.2])))
    assert seen["StoredValueGroups"] > 10, seen


def test_oracle_the_first_rows_in_columns_on_disk(seen: Counter[str]) -> None:
    for seed in range(24 * MORE):
        dice = Random(f"tops {seed}")
        plan = planned({"output": top(dice).node})
        followed(plan, dice, epochs(dice, list(plan.sources), 8, dice.choice([0, 0, 0.2])))
    assert seen["StoredTopRows"] > 30, seen


def test_oracle_all_values_of_groups_in_columns_on_disk(seen: Counter[str]) -> None:
    for seed in range(32 * MORE):
        dice = Random(f"values {seed}")
        plan = planned({"output": ends(dice).node})
        followed(plan, dice, epochs(dice, list(plan.sources), 8, dice.choice([0, 0, 0.2])))
    assert seen["StoredValueGroups"] > 20, seen
    assert seen["StoredGroups"] > 20, seen


def test_oracle_reducers_that_somebody_wrote_in_columns_on_disk(seen: Counter[str]) -> None:
    for seed in range(16 * MORE):
        dice = Random(f"written {seed}")
        plan = planned({"output": written(dice).node})
        followed(plan, dice, epochs(dice, list(plan.sources), 8, dice.choice([0, 0, 0.2])))
    assert seen["StoredValueGroups"] > 10, seen
    assert seen["StoredGroups"] > 3, seen


def test_oracle_any_program_may_be_in_columns_on_disk(seen: Counter[str]) -> None:
    for seed in range(12 * MORE):
        grown, dice = random_program(seed), Random(f"any {seed}")
        followed(grown, dice, random_epochs(grown, dice, 5, size=6))
    assert seen["epochs"] > 3, seen


class Switched(Reopened):
    """A view on disk that is opened between epochs, in columns or in rows."""

    def __init__(self, plan: Plan, path: Path, dice: Random) -> None:
        super().__init__(plan, path, dice, columns=True)

    def reopen(self) -> None:
        self.options = {"columns": self.dice.random() < 0.6}
        super().reopen()


def test_oracle_requests_of_inputs_in_columns_on_disk(seen: Counter[str], tmp_path: Path) -> None:
    done: Counter[str] = Counter()
    for seed in range(40 * MORE):
        dice = Random(f"columns {seed}")
        asked = program_of(dice)
        view = Switched(asked.plan, tmp_path / f"{seed}", dice)
        requests = RandomRequests(asked, dice)
        done += follow_requests(view, asked.plan, requests, 6, tables(requests, dice))
        view.reopen()
        view.view.verify()
        view.view.close()
    assert all(done[verb] > 3 for verb in ("weights", "upsert", "delete", "replace")), done
    assert seen["StoredKeyedRows"] > 10, seen


def by_city(sales: Any, shops: Any) -> Any:
    joined = sales.join(shops, on="city")
    return ef.program(
        sums=joined.group_by("city").agg(
            n=ef.count(),
            sum=ef.sum("price"),
            mean=ef.mean("rate"),
            spread=ef.variance("tax"),
            paid=ef.bool_or("paid"),
            bits=ef.bit_xor("price"),
        ),
        ends=sales.group_by("city").agg(top=ef.max("rate"), low=ef.min("tax"), day=ef.min("day")),
        alone=sales.join(shops, on="city", how="anti").select("city").distinct(),
        all=joined.select("id", "city", "owner"),
    )


def in_order(sales: Any) -> Any:
    return ef.program(
        values=sales.group_by("city").agg(
            days=ef.count_distinct("day"),
            cities=ef.count_distinct(lambda r: r.city[1:]),
            last=ef.last("city", order="day"),
            best=ef.arg_max("rate", "id"),
        ),
        names=sales.group_by("paid").agg(low=ef.min("city"), ids=ef.count_distinct("id")),
        best=sales.top_k(2, order="price", per="city"),
        page=sales.limit(3, order=("city", ef.desc("rate")), offset=2),
    )


IN_ORDER = in_order(ef.Input("sales", Sale))
BY_CITY = by_city(ef.Input("sales", Sale), ef.Input("shops", Shop, key=("city", "size")))


def some(count: int, seed: int = 0) -> ZSet[Sale]:
    dice = Random(seed)
    return ZSet.of(sale(dice, 0) for _ in range(count))


def places() -> list[Shop]:
    dice = Random(9)
    return [shop(dice, 0)._replace(city="Rome", size=n, score=0.5) for n in range(3)]


def refused(*_: Any) -> Any:
    raise AssertionError("a row is made")


@pytest.mark.parametrize("made", [BY_CITY, IN_ORDER], ids=["sums", "values"])
def test_an_epoch_in_columns_on_disk_makes_no_rows(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, expected = some(3000), made.run()
    gone = ZSet.of(Random(1).sample(list(rows), 400))
    changes = [{"sales": rows.to_arrow(Sale)}, {"sales": (-gone).to_arrow(Sale)}]
    if made is BY_CITY:
        changes.insert(1, {"shops": ZSet.of(places()).to_arrow(Shop)})
    with monkeypatch.context() as patch:
        patch.setattr(Columns, "rows", property(refused))
        for module in (spine_part, stored_cells, packed):
            patch.setattr(module, "decode", refused)
        for change in changes:
            with made.run(path=tmp_path, columns=True) as view:  # reads all of the state
                view.step(change)
    for change in changes:
        expected.step(change)
    with made.run(path=tmp_path, columns=True) as view:
        assert view.value == expected.value
        view.verify()
    with made.run(path=tmp_path) as view:
        view.step(sales=-ZSet.of(list(view.input("sales").value)[:50]))
        view.verify()


@pytest.mark.parametrize("key", [None, "id"])
def test_an_output_that_owes_rows_keeps_them_when_columns_open_it_again(
    key: Any, tmp_path: Path
) -> None:
    sales = ef.Input("sales", Sale, key=key)
    owing = sales.filter(lambda row: row.price > 3) - sales.filter(lambda row: row.price > 1)
    dice = Random(1)
    rows = {row.id: row for row in (sale(dice, 0) for _ in range(40))}
    view, expected = owing.run(path=tmp_path / "s", columns=True), owing.run(columns=False)
    for each in (view, expected):
        each.step(sales=list(rows.values()))
    assert min(dict(expected.value.items()).values()) < 0
    for columns in (True, True, False, True):
        view.close()
        view = owing.run(path=tmp_path / "s", columns=columns)
        assert view.value == expected.value
        for change in (ZSet(), ZSet({rows.popitem()[1]: -1})):
            assert view.step(sales=change) == expected.step(sales=change)
            assert view.value == expected.value
        view.verify()


def test_what_columns_refuse_rows_say_and_columns_go_on(tmp_path: Path) -> None:
    with BY_CITY.run(path=tmp_path, columns=True) as view:
        view.step(sales=some(50), shops=places())
        with pytest.raises(AbsentRow):
            view.step(sales={sale(Random(99), 0)._replace(id=99): -1})
        assert "in columns" in view.explain()
        # a generator is read once, and rows must see it all the same
        odd = (row._replace(price=2**70) for row in list(some(5, 1)))
        view.step(sales=odd)
        assert "in columns" not in view.explain()
        assert "came" in view.explain()
        view.verify()
        view.step(sales=some(5, 2))
        view.verify()
        value = view.value
    with BY_CITY.run(path=tmp_path, columns=True) as view:
        assert view.value == value
        view.step(sales=some(5, 3))
        assert "is stored" in view.explain()
        view.verify()


def test_a_few_rows_of_an_input_that_shares_its_rows_leave_columns_on_disk_as_they_are(
    tmp_path: Path,
) -> None:
    largest = ef.Input("sales", Sale).group_by("city").agg(high=ef.max("price"))
    row = sale(Random(1), 0)
    with largest.run(path=tmp_path, columns=True) as view:
        view.step(sales=[row])
        view.step(sales={row: -1, row._replace(price=7): 1})
        assert "now      in columns" in view.explain()
        with pytest.raises(AbsentRow):
            view.step(sales={row: -1})
        view.step(sales=[row._replace(price=2**70)])
        assert "in rows: a value that columns do not hold came" in view.explain()
        view.verify()


def test_a_branch_takes_rows_of_columns_on_disk(tmp_path: Path) -> None:
    with BY_CITY.run(path=tmp_path, columns=True) as view:
        view.step(sales=some(50), shops=places())
        with view.branch() as branch:
            branch.step(sales=some(5, 1))
            branch.verify()
        view.step(sales=some(5, 2))
        view.verify()


def test_readers_and_sinks_read_what_columns_have_written(tmp_path: Path) -> None:
    totals = ef.Input("sales", Sale).group_by("city").agg(n=ef.count(), sum=ef.sum("price"))
    with totals.run(path=tmp_path, columns=True, readable=True, keep_epochs=3) as view:
        for seed in range(4):
            view.step(sales=pa.table(some(30, seed).to_arrow(Sale)))
        assert ef.open(tmp_path).value == view.value
        assert view.at(view.epoch - 1) != view.value
        assert view.get("Rome") in set(view.value)


def test_columns_and_a_limit_of_memory_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(CompositionError, match="columns are in memory as a whole"):
        BY_CITY.run(path=tmp_path, columns=True, memory="1MB")


@pytest.mark.parametrize("apart", [797, pytest.param(41, marks=pytest.mark.slow)])
@pytest.mark.parametrize("published", [False, True])
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_an_interrupt_at_any_moment_leaves_an_epoch_done_or_not_done(
    apart: int, published: bool, tmp_path: Path
) -> None:
    view = BY_CITY.run(path=tmp_path, columns=True)
    view.step(sales=some(6, 1), shops=places())
    hit = {True: 0, False: 0}
    for moment in instants(1, 100_000, apart // 4 if published else apart):
        there = view.input("sales").value
        odd = Random(moment).random() < 0.2  # such an epoch runs again in rows
        more = some(3, moment).map(lambda row, odd=odd: row._replace(price=2**70 if odd else 1))  # type: ignore[misc]
        change = {"sales": more - ZSet.of(list(there)[:3])}
        before = view.epoch
        if not interrupted(partial(view.step, change), moment, published=published):
            break
        hit[view.epoch > before] += 1
        view.verify()
        assert Snapshot(tmp_path).epoch == view.epoch
        if odd:
            epoch = view.epoch
            view.step(sales=-ZSet.of(r for r in view.input("sales").value if r.price == 2**70))
            view.close()
            view = BY_CITY.run(path=tmp_path, columns=True)
            assert view.epoch == epoch + 1
            view.step(sales=some(3, moment))
    view.close()
    assert hit[published] > 1, hit


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("apart", [2003, pytest.param(97, marks=pytest.mark.slow)])
def test_an_interrupt_leaves_the_values_of_groups_done_or_not_done(
    apart: int, tmp_path: Path
) -> None:
    view = IN_ORDER.run(path=tmp_path, columns=True)
    view.step(sales=some(6, 1))
    hit: Counter[bool] = Counter()
    for moment in instants(1, 100_000, apart):
        change = some(3, moment) - ZSet.of(list(view.input("sales").value)[:3])
        before = view.epoch
        if not interrupted(partial(view.step, {"sales": change}), moment, published=False):
            break
        hit[view.epoch > before] += 1
        view.verify()
    view.close()
    assert hit[False] > 1, hit
    with IN_ORDER.run(path=tmp_path, columns=True) as view:
        view.step(sales=some(3, 5))
        assert "in rows" not in view.explain()
        view.verify()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_oracle_hundreds_of_views_in_columns_on_disk(part: int, seen: Counter[str]) -> None:
    for seed in range(100 * part, 100 * part + 100):
        dice = Random(f"more {seed}")
        plan = planned({"output": program(dice).node})
        given = epochs(dice, list(plan.sources), 8, dice.choice([0, 0, 0.02, 0.2]))
        followed(plan, dice, given)
    assert seen["epochs"] > 200, seen


def clipped(self: FirstRows, slots: Any) -> Any:
    """What an older version wrote: the last of the first rows only as often as it is at the top."""
    owners, entries = self.ranked.held(slots)
    often = self.ranked.inside(entries)
    there = np.flatnonzero(often)
    return owners[there], self.words(entries[there]), often[there]


@pytest.mark.parametrize("written", ["now", "by an older version"])
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("switch", ["reopen", "replace", "branch", "a large int"])
def test_rows_take_over_a_top_with_a_row_that_is_there_more_often(
    switch: str, offset: int, written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if written != "now":
        monkeypatch.setattr(FirstRows, "first", clipped)
    sales = ef.Input("sales", Sale)
    program = sales.limit(2, order="id", offset=offset)
    one, two, three = (sale(Random(1), 0)._replace(id=number, price=1) for number in (1, 2, 3))
    view = program.run(path=tmp_path, columns=True)
    view.step(sales={two: 5, three: 1})
    running = view
    if switch == "reopen":
        view.close()
        view = running = program.run(path=tmp_path, columns=False)
    elif switch == "replace":
        view.step(sales=ef.replace([two] * 5 + [three]))
    elif switch == "branch":
        running = view.branch()
    else:
        view.step(sales={three._replace(price=2**70): 1})
    changes: list[dict[Any, int]] = [{two: -3}, {one: 1, two: 2}, {two: -3}, {one: -1, two: -1}]
    for change in changes:
        running.step(sales=change)
        running.verify()
    left = 2 if switch == "a large int" else 1
    assert [row.id for row in running.value.rows()] == [3] * (left - offset)
    view.close()
